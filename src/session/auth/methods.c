/* SPDX-License-Identifier: ISC */
#include <stdio.h>

#include "session/auth/method.h"

const struct auth_method *auth_method_of(enum auth_type type)
{
	switch (type) {
	case AUTH_TYPE_ANY:
		return &auth_any;
	case AUTH_TYPE_TRUST:
		return &auth_trust;
	case AUTH_TYPE_PLAIN:
		return &auth_plain;
	case AUTH_TYPE_MD5:
		return &auth_md5;
	case AUTH_TYPE_SCRAM_SHA_256:
		return &auth_scram;
	case AUTH_TYPE_CERT:
		return &auth_cert;
	case AUTH_TYPE_HBA:
		return &auth_hba;
	case AUTH_TYPE_LDAP:
		return &auth_ldap;
	case AUTH_TYPE_PAM:
		return &auth_pam;
	}
	return NULL;
}

static bool load(const struct auth_method *method, char *why, size_t size)
{
	char missing[256];

	if (!method->load || method->load(missing, sizeof(missing)))
		return true;
	snprintf(why, size, "authentication by %s is not possible here: %s", method->name,
		missing);
	return false;
}

bool auth_load(const struct snapshot *config, char *why, size_t size)
{
	const enum auth_type type = snapshot_settings(config)->auth_type;
	const struct hba *hba = type == AUTH_TYPE_HBA ? snapshot_hba(config) : NULL;
	const struct auth_method *method;

	for (size_t i = 0; hba && (method = auth_hba_method_at(hba, i)) != NULL; i++)
		if (!load(method, why, size))
			return false;
	return load(auth_method_of(type), why, size);
}

const char *auth_external_name(const struct client_link *client, const char *user)
{
	const enum auth_type type = link_registry(&client->link)->process->settings->auth_type;
	const struct auth_method *method =
		type == AUTH_TYPE_HBA ? auth_hba_method(client, user) : auth_method_of(type);

	return method ? method->external : NULL;
}
