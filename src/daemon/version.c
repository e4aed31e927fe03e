/* SPDX-License-Identifier: ISC */
#include "daemon/version.h"

#include <ares.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <stdio.h>

#include "base/compat.h"
#include "daemon/systemd.h"

const char version_text[] = "PgBouncer " COMPAT_VERSION " (pgusher " PACKAGE_VERSION ")";

const char *version_of_adns(void)
{
	static char text[64];

	snprintf(text, sizeof(text), "c-ares %s", ares_version(NULL));
	return text;
}

const char *version_of_tls(void)
{
	return OpenSSL_version(OPENSSL_VERSION);
}

void version_print(void)
{
	printf("%s\n", version_text);
	printf("libevent %s\n", event_get_version());
	printf("adns: %s\n", version_of_adns());
	printf("tls: %s\n", version_of_tls());
	if (systemd_is_built())
		printf("systemd: yes\n");
}
