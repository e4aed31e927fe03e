/* SPDX-License-Identifier: ISC */
/*
 * Which users may log in to what, and how: collected from the other pooler's configuration, and written as
 * one auth_type where that says the same, else as a file of rules (auth_hba_file).
 */
#ifndef PGUSHER_SETUP_CONVERT_AUTH_RULES_H
#define PGUSHER_SETUP_CONVERT_AUTH_RULES_H

#include "setup/convert/conversion.h"

enum auth_method {
	AUTH_METHOD_TRUST,
	AUTH_METHOD_PASSWORD,
	AUTH_METHOD_MD5,
	AUTH_METHOD_SCRAM,
	AUTH_METHOD_CERT,
	AUTH_METHOD_LDAP,
	AUTH_METHOD_PAM,
	AUTH_METHOD_REJECT,
};

enum { AUTH_RULES_MOST = 10000 };

struct auth_rule {
	const struct source_node *node; /* its place */
	/* `local`, `host`, `hostssl`, `hostnossl`; NULL: all connections */
	const char *type;
	const char *database, *user; /* NULL: all */
	const char *address; /* NULL: all */
	enum auth_method method;
	const char *options; /* of LDAP; NULL: none */
	struct auth_rule *next;
};

/* Add a copy of a rule; its texts live as long as the source. */
void auth_rules_add(struct conversion *conversion, const struct auth_rule *rule);

/*
 * Put the rules into the draft, as auth_type or as auth_hba_file with `rules_path` of the
 * conversion, and fill `hba`. The order of the rules is kept, or with `by_weight` those for one
 * database come before those for all, and those for one user before those for all: for poolers
 * that look for the nearest rule, not for the first.
 */
void auth_rules_write(struct conversion *conversion, bool by_weight);

#endif
