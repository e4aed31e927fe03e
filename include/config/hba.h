/* SPDX-License-Identifier: ISC */
/*
 * The auth_hba_file: rules in the style of pg_hba.conf, of which the first that fits a
 * connection says how its client proves who it is.
 *
 *	local                        DATABASE  USER           METHOD  [map=NAME]
 *	host | hostssl | hostnossl   DATABASE  USER  ADDRESS  METHOD  [map=NAME]
 *
 * A quoted word is a name, never a keyword. Counted, never changed; it holds on to the maps that
 * its rules name.
 */
#ifndef PGUSHER_CONFIG_HBA_H
#define PGUSHER_CONFIG_HBA_H

#include "config/hba_names.h"
#include "config/ident.h"
#include "net/network.h"

enum hba_method {
	HBA_CERT,
	HBA_LDAP,
	HBA_MD5,
	HBA_PASSWORD,
	HBA_PEER,
	HBA_REJECT,
	HBA_SCRAM_SHA_256,
	HBA_TRUST,
};

enum hba_type { HBA_LOCAL, HBA_HOST, HBA_HOSTSSL, HBA_HOSTNOSSL };

struct hba_rule {
	enum hba_type type;
	enum hba_method method;
	unsigned line; /* in the file */
	struct hba_names databases, users;
	struct network network; /* AF_UNSPEC: every address */
	struct ident_map map; /* for peer and cert; empty: none */
	char *options; /* of ldap: the rest of the line as written; NULL for other methods */
};

/* What rules look at. */
struct hba_connection {
	const struct address *address; /* of the client */
	bool tls;
	bool physical_replication;
	const char *database; /* as the client calls it */
	const char *user;
};

struct hba;

/*
 * Read a file. A bad line, or a file that cannot be opened, is left out and is a problem. NULL
 * without memory, which is an error.
 */
struct hba *hba_load(const char *path, struct ident *ident, struct problems *problems);

/* The same for a text that is in memory already, here called `name`. */
struct hba *hba_parse(const char *name, const char *text, size_t length, struct ident *ident,
	struct problems *problems);

/* One more holder; NULL is passed through. */
struct hba *hba_ref(struct hba *hba);

/* One holder less; NULL is fine. */
void hba_unref(struct hba *hba);

/* The first rule that fits, lent; NULL: none, or no rules. */
const struct hba_rule *hba_find(const struct hba *hba, const struct hba_connection *connection);

/* Rule number `index` in the order of the file; NULL behind the last. */
const struct hba_rule *hba_rule_at(const struct hba *hba, size_t index);

/* The word for a method. */
const char *hba_method_name(enum hba_method method);

#endif
