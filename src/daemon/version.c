/* SPDX-License-Identifier: ISC */
#include "daemon/version.h"

#include <ares.h>
#include <event2/event.h>
#include <openssl/crypto.h>
#include <stdio.h>

#include "daemon/systemd.h"

const char *version_text(enum compat_version version)
{
#define TEXT(name, text, number) [name] = "PgBouncer " text " (pgusher " PACKAGE_VERSION ")",
	static const char *const texts[COMPAT_VERSIONS] = {COMPAT_VERSIONS_OF(TEXT)};
#undef TEXT

	return texts[version];
}

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

void version_print(enum compat_version version)
{
	printf("%s\n", version_text(version));
	printf("libevent %s\n", event_get_version());
	printf("adns: %s\n", version_of_adns());
	printf("tls: %s\n", version_of_tls());
	if (systemd_is_built())
		printf("systemd: yes\n");
}
