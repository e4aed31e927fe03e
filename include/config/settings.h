/* SPDX-License-Identifier: ISC */
/*
 * The settings of the main section: a struct, its parser, its defaults and SHOW CONFIG, all made
 * from the rows of settings.def.
 *
 * Times are usec_t, except those that are whole numbers by their nature and keep their unit:
 * stats_period, query_wait_notify, tcp_keepidle and tcp_keepintvl are seconds, tcp_user_timeout
 * is milliseconds. Counts and limits are never negative: a negative number is read as 0. Texts
 * are owned by the struct; NULL means not set.
 *
 * A new setting is one row; a new type of value is one row of the table of kinds in settings.c.
 */
#ifndef PGUSHER_CONFIG_SETTINGS_H
#define PGUSHER_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/log.h"

enum pool_mode {
	POOL_MODE_INHERIT, /* of databases and users only: nothing said */
	POOL_MODE_SESSION,
	POOL_MODE_TRANSACTION,
	POOL_MODE_STATEMENT,
};

enum auth_type {
	AUTH_TYPE_ANY,
	AUTH_TYPE_TRUST,
	AUTH_TYPE_PLAIN,
	AUTH_TYPE_MD5,
	AUTH_TYPE_SCRAM_SHA_256,
	AUTH_TYPE_CERT,
	AUTH_TYPE_HBA,
	AUTH_TYPE_LDAP,
	AUTH_TYPE_PAM,
};

enum tls_mode {
	TLS_MODE_DISABLE,
	TLS_MODE_ALLOW,
	TLS_MODE_PREFER,
	TLS_MODE_REQUIRE,
	TLS_MODE_VERIFY_CA,
	TLS_MODE_VERIFY_FULL,
};

/* Who says first that TLS is spoken. */
enum tls_negotiation { TLS_NEGOTIATION_POSTGRES, TLS_NEGOTIATION_DIRECT };

/* What happens to startup parameters that are neither special, tracked nor ignored. */
enum startup_policy { STARTUP_FOLLOW, STARTUP_STRICT };

/* The types of values: what is written, and what the field is. */
#define SETTING_TYPE_INTEGER int /* a C integer */
#define SETTING_TYPE_COUNT int /* the same, negative ones count as 0 */
#define SETTING_TYPE_BOOLEAN bool /* a C integer: 0 or not */
#define SETTING_TYPE_BYTES int /* a C integer, or with B, kB, MB, GB */
#define SETTING_TYPE_METRICS_PORT int /* a C integer, `off`, or `on` */
#define SETTING_TYPE_UNSIGNED uint32_t /* the same */
#define SETTING_TYPE_DURATION usec_t /* decimal seconds, or with us, ms, s, min, h, d */
#define SETTING_TYPE_WHOLE_SECONDS int /* a C integer of seconds, or with a unit */
#define SETTING_TYPE_WHOLE_MILLISECONDS int /* a C integer of milliseconds, or with a unit */
#define SETTING_TYPE_STRING char *
#define SETTING_TYPE_LDAP_OPTIONS char * /* shown only if there is no password in it */
#define SETTING_TYPE_DATABASE_NAME char * /* any but the console's */
#define SETTING_TYPE_POOL_MODE enum pool_mode
#define SETTING_TYPE_AUTH_TYPE enum auth_type
#define SETTING_TYPE_TLS_MODE enum tls_mode
#define SETTING_TYPE_TLS_NEGOTIATION enum tls_negotiation
#define SETTING_TYPE_STARTUP_POLICY enum startup_policy
#define SETTING_TYPE_LOG_FORMAT enum log_format

struct settings {
#define SETTING(name, KIND, DEFAULT, RANGE, WHEN, DOC) SETTING_TYPE_##KIND name;
#include "config/settings.def"
#undef SETTING
};

/* When a changed value is taken over. */
enum setting_when {
	SETTING_LIVE, /* at once */
	SETTING_NEW_LINKS, /* by connections, logins and handshakes that start afterwards */
	SETTING_RESTART, /* at the next start; until then a new value is checked and left alone */
};

struct setting_kind;

struct setting_row {
	const char *name;
	const struct setting_kind *kind;
	size_t offset; /* of the field in struct settings */
	const char *default_text; /* for SHOW CONFIG; NULL: none, a reload keeps the value */
	long long least, most; /* range of numbers, in the unit of a plain number */
	enum setting_when when;
	const char *doc; /* sentences for the reference page */
};

/* The name that is most like this one, for a hint at a misspelt one; NULL: none is. */
const char *settings_nearest(const char *name);

/* All rows in byte order of names, as SHOW CONFIG lists them. */
const struct setting_row *settings_rows(size_t *count);

/* What may be written as its value, for people: `a whole number from 0 to 65535`. */
void settings_allowed(const struct setting_row *row, char *out, size_t size);

/* The row with exactly that name; NULL: there is no such setting. */
const struct setting_row *settings_find(const char *name);

/*
 * Put in the defaults; what is in the struct is not looked at. False without memory: then it is
 * still fit for settings_free().
 */
bool settings_defaults(struct settings *settings);

/*
 * Set one from the text of a file or of the console's SET. False, and nothing changed: there is
 * no such setting, or the value is not allowed; `why` then says what is.
 */
bool settings_set(
	struct settings *settings, const char *name, const char *value, char *why, size_t size);

/* Copy one setting from one set into another; false without memory. */
bool settings_take(
	struct settings *to, const struct settings *from, const struct setting_row *row);

/* A second set with texts of its own, over whatever was in `to`. False as settings_defaults(). */
bool settings_copy(struct settings *to, const struct settings *from);

/* Wipe and free the texts. */
void settings_free(struct settings *settings);

/*
 * The value as SHOW CONFIG has it: numbers in decimal, times in seconds, words. Returns `out`, or
 * a text of the settings, or NULL for one that is not set. 32 bytes are enough for what is
 * written to `out`.
 */
const char *settings_render(
	const struct setting_row *row, const struct settings *settings, char *out, size_t size);

/* May it be changed while running (SHOW CONFIG, `changeable`)? */
bool settings_is_changeable(const struct setting_row *row);

/* The words for the values of the enums. */
const char *pool_mode_name(enum pool_mode mode);
const char *auth_type_name(enum auth_type type);

/* The mode of that name, whatever its case; POOL_MODE_INHERIT is none of them. */
bool pool_mode_of(const char *name, enum pool_mode *out);

#endif
