/* SPDX-License-Identifier: ISC */
/*
 * The auth_hba_file: rules in the style of pg_hba.conf. The first rule that matches a
 * connection decides how its client authenticates.
 *
 *	local                        DATABASE  USER           METHOD  [map=NAME]
 *	host | hostssl | hostnossl   DATABASE  USER  ADDRESS  METHOD  [map=NAME]
 *
 * A quoted word is a name, never a keyword. Reference-counted and immutable; it holds a
 * reference to the maps that its rules name.
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
	struct network network; /* AF_UNSPEC: any address */
	struct ident_map map; /* for peer and cert; empty if not given */
	char *options; /* for ldap: the rest of the line, verbatim; NULL for other methods */
};

/* The properties of a connection that rules match on. */
struct hba_connection {
	const struct address *address; /* of the client */
	bool tls;
	bool physical_replication;
	const char *database; /* as requested by the client */
	const char *user;
};

struct hba;

/*
 * Read a file. A bad line, or a file that cannot be opened, is skipped and added to the
 * problems. Returns a reference owned by the caller; NULL when out of memory, which is added
 * as an error.
 */
struct hba *hba_load(const char *path, struct ident *ident, struct problems *problems);

/* Like hba_load(), for a text in memory; `name` is used in problems. */
struct hba *hba_parse(const char *name, const char *text, size_t length, struct ident *ident,
	struct problems *problems);

/* Add a reference; NULL is returned unchanged. */
struct hba *hba_ref(struct hba *hba);

/* Release a reference; the last one frees the rules. NULL is allowed. */
void hba_unref(struct hba *hba);

/*
 * The first rule that matches, valid as long as the reference; NULL if none matches or there
 * are no rules.
 */
const struct hba_rule *hba_find(const struct hba *hba, const struct hba_connection *connection);

/* Rule number `index` in the order of the file; NULL after the last. */
const struct hba_rule *hba_rule_at(const struct hba *hba, size_t index);

/* The keyword of a method. */
const char *hba_method_name(enum hba_method method);

#endif
