/* SPDX-License-Identifier: ISC */
/*
 * The settings of the main section: a struct, its parser, its defaults and SHOW CONFIG, all
 * generated from the rows of settings.def.
 *
 * Times are usec_t, except those that are whole numbers by nature and keep their unit:
 * stats_period, query_wait_notify, tcp_keepidle and tcp_keepintvl are seconds,
 * tcp_user_timeout is milliseconds. Counts and limits are never negative: -1 is read as 0. The struct owns its texts; NULL means not set.
 *
 * A new setting is one row; a new type of value is one row of the table of kinds in
 * settings_kinds.c.
 */
#ifndef PGUSHER_CONFIG_SETTINGS_H
#define PGUSHER_CONFIG_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compat.h"
#include "base/log.h"

enum pool_mode {
	POOL_MODE_INHERIT, /* in databases and users only: not given */
	POOL_MODE_SESSION,
	POOL_MODE_TRANSACTION,
	POOL_MODE_STATEMENT,
	POOL_MODES,
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

/* How TLS with a server starts: after an SSLRequest, or at once. */
enum tls_negotiation { TLS_NEGOTIATION_POSTGRES, TLS_NEGOTIATION_DIRECT };

/* Handling of startup parameters that are neither special, tracked nor ignored. */
enum startup_policy { STARTUP_FOLLOW, STARTUP_STRICT };

/* What happens to a client that has waited for a server for too long. */
enum wait_action {
	WAIT_ACTION_INHERIT, /* in databases and users only: not given */
	WAIT_ACTION_DISCONNECT, /* it is closed */
	WAIT_ACTION_ERROR, /* its query ends with an error */
};

/* What happens to session state of clients in transaction and statement mode. */
enum session_state {
	SESSION_STATE_INHERIT, /* in databases and users only: not given */
	SESSION_STATE_FOLLOW, /* settings follow; what cannot follow keeps its server */
	SESSION_STATE_ERROR, /* settings follow; statements that leave the rest are refused */
	SESSION_STATE_WARN, /* settings follow; of the rest the client is warned */
	SESSION_STATE_IGNORE, /* only parameters that servers report follow */
};

/* What a LISTEN does in transaction and statement mode. */
enum listen_mode {
	LISTEN_SHARED, /* one server of the pool listens for all clients */
	LISTEN_PIN, /* the server stays with its client */
	LISTEN_ERROR, /* it is refused */
};

/* target_session_attrs, with the words and the meaning of libpq. */
enum target_session {
	TARGET_INHERIT, /* in databases only: not given */
	TARGET_ANY,
	TARGET_READ_WRITE,
	TARGET_READ_ONLY,
	TARGET_PRIMARY,
	TARGET_STANDBY,
	TARGET_PREFER_STANDBY,
};

/* In which order the hosts of a list are tried. */
enum load_balance {
	LOAD_BALANCE_INHERIT, /* in databases only: not given */
	LOAD_BALANCE_DISABLE, /* the one that worked last, until it fails */
	LOAD_BALANCE_ROUND_ROBIN,
	LOAD_BALANCE_RANDOM,
	LOAD_BALANCE_LEAST_CONNECTIONS,
};

/* When a server is asked for its role. */
enum role_check { ROLE_CHECK_LOGIN, ROLE_CHECK_ALWAYS };

/* How far a standby may be behind: bytes, or microseconds as a negative number; 0: no limit. */
typedef int64_t standby_lag;

#define STANDBY_LAG_INHERIT INT64_MIN /* in databases only: not given */

/* Whether proxies send a PROXY header. */
enum proxy_protocol { PROXY_PROTOCOL_OFF, PROXY_PROTOCOL_OPTIONAL, PROXY_PROTOCOL_REQUIRED };

/* The values of pool_size that are no number. */
enum {
	POOL_SIZE_INHERIT = -1, /* in databases, users and peers only: not given */
	POOL_SIZE_AUTO = -2, /* computed: see model/host/sizing */
};

/* Types of values: the text that is allowed, and the type of the field. */
#define SETTING_TYPE_INTEGER int /* a C integer */
#define SETTING_TYPE_COUNT int /* a C integer; -1 counts as 0 */
#define SETTING_TYPE_POOL_SIZE int /* as COUNT, or `auto`: POOL_SIZE_AUTO */
#define SETTING_TYPE_BOOLEAN bool /* a C integer; true unless 0 */
#define SETTING_TYPE_BYTES int /* a C integer, optionally with B, kB, MB, GB */
#define SETTING_TYPE_METRICS_PORT int /* a C integer, `off`, or `on` */
#define SETTING_TYPE_UNSIGNED uint32_t /* a C integer, optionally with B, kB, MB, GB */
#define SETTING_TYPE_DURATION usec_t /* decimal seconds, or with us, ms, s, min, h, d */
#define SETTING_TYPE_WHOLE_SECONDS int /* a C integer of seconds, or with a unit */
#define SETTING_TYPE_WHOLE_MILLISECONDS int /* a C integer of milliseconds, or with a unit */
#define SETTING_TYPE_LOG_DURATION usec_t /* milliseconds, or with us, ms, ...; -1: off */
#define SETTING_TYPE_STRING char *
#define SETTING_TYPE_NAMES char * /* without ; and # */
#define SETTING_TYPE_FREE_TEXT char * /* SQL or a message, in which ; and # are usual */
#define SETTING_TYPE_LDAP_OPTIONS char * /* shown only if it contains no password */
#define SETTING_TYPE_PASSWORD char * /* never shown */
#define SETTING_TYPE_NETWORKS char * /* a list of networks and addresses */
#define SETTING_TYPE_PROXY_NETWORKS char * /* likewise, and `unix` */
#define SETTING_TYPE_CORES char * /* a list, which core_list_read() accepts; or empty */
#define SETTING_TYPE_SERVICE_NAME char * /* see net/service_name; or empty */
#define SETTING_TYPE_DATABASE_NAME char * /* any database except the console's */
#define SETTING_TYPE_POOL_MODE enum pool_mode
#define SETTING_TYPE_AUTH_TYPE enum auth_type
#define SETTING_TYPE_TLS_MODE enum tls_mode
#define SETTING_TYPE_TLS_NEGOTIATION enum tls_negotiation
#define SETTING_TYPE_STARTUP_POLICY enum startup_policy
#define SETTING_TYPE_LOG_FORMAT enum log_format
#define SETTING_TYPE_WAIT_ACTION enum wait_action
#define SETTING_TYPE_SESSION_STATE enum session_state
#define SETTING_TYPE_TARGET_SESSION enum target_session
#define SETTING_TYPE_LOAD_BALANCE enum load_balance
#define SETTING_TYPE_ROLE_CHECK enum role_check
#define SETTING_TYPE_STANDBY_LAG standby_lag /* a size or a duration, with its unit */
#define SETTING_TYPE_SHARE int /* a C integer; a percentage is its negative */
#define SETTING_TYPE_LISTEN_MODE enum listen_mode
#define SETTING_TYPE_PIN_CAUSES char * /* names of wire/pin_causes, separated by commas */
#define SETTING_TYPE_PROXY_PROTOCOL enum proxy_protocol
#define SETTING_TYPE_COMPAT_VERSION enum compat_version

/* Is it the word for POOL_SIZE_AUTO? */
bool pool_size_is_auto(const char *text);

/* Returns what to append to the error text about a value that may be meant for that word; "": nothing. */
const char *pool_size_hint(const char *text);

struct settings {
#define SETTING(name, KIND, DEFAULT, RANGE, WHEN, GROUP, DOC) SETTING_TYPE_##KIND name;
#include "config/settings.def"
#undef SETTING
};

/* What a ; or # in the value of a file means. */
enum setting_comment {
	SETTING_COMMENT_CUT, /* it starts a comment: a value cannot have one */
	SETTING_COMMENT_DOUBTED, /* behind a blank it is taken for a mistake, and obeyed */
	SETTING_COMMENT_NONE, /* it belongs to the value */
};

/* When a changed value takes effect. */
enum setting_when {
	SETTING_LIVE, /* immediately */
	SETTING_NEW_LINKS, /* for connections, logins and handshakes started afterwards */
	SETTING_RESTART, /* at the next start; until then a new value is checked and ignored */
};

/* Settings that are applied together: see settings.def. */
enum setting_group {
	SETTING_GROUP_NONE,
	SETTING_GROUP_LOG,
	SETTING_GROUP_TCP,
	SETTING_GROUP_TLS,
	SETTING_GROUP_SERVER_TLS,
};

struct setting_kind;

struct setting_row {
	const char *name;
	const struct setting_kind *kind;
	size_t offset; /* of the field in struct settings, in bytes */
	const char *default_text; /* as in SHOW CONFIG; NULL: none, a reload keeps the value */
	long long least, most; /* range of numbers, in the unit of a plain number */
	enum setting_when when;
	enum setting_group group;
	const char *doc; /* description for the manual page */
};

/* The existing name most similar to this one, for a hint; NULL if none is similar. */
const char *settings_nearest(const char *name);

/* All rows in byte order of names, as listed by SHOW CONFIG. Static memory. */
const struct setting_row *settings_rows(size_t *count);

/* Describe the allowed values in `out`: `a whole number from 0 to 65535`. */
void settings_allowed(const struct setting_row *row, char *out, size_t size);

/* The row with exactly this name; NULL if there is no such setting. */
const struct setting_row *settings_find(const char *name);

/*
 * Set all defaults; the former content of the struct is ignored, not freed. Returns false when
 * out of memory; the struct can be passed to settings_free() in either case.
 */
bool settings_defaults(struct settings *settings);

/*
 * Find the ; or # that starts, or seems to start, a comment behind the value of a setting. Returns
 * its place in bytes, and which of both it is in `kind`; the length of the value if there is none.
 */
size_t settings_find_comment(
	const struct setting_row *row, const char *value, enum setting_comment *kind);

/*
 * Set one value from the text of a file or of SET on the console. Returns false, with the
 * reason in `why`, and changes nothing if the setting does not exist or the value is not
 * allowed.
 */
bool settings_set(
	struct settings *settings, const char *name, const char *value, char *why, size_t size);

/* Copy one setting from one struct to another; false when out of memory. */
bool settings_copy_one(
	struct settings *to, const struct settings *from, const struct setting_row *row);

/*
 * Copy all settings, with texts of their own; the former content of `to` is ignored, not
 * freed. Returns false as settings_defaults().
 */
bool settings_copy(struct settings *to, const struct settings *from);

/*
 * Returns the name of the next setting that differs between two structs; NULL after the last
 * one. `*at` is 0 at first, and moves past it.
 */
const char *settings_next_difference(
	const struct settings *a, const struct settings *b, size_t *at);

/* Whether the value of any setting of the group differs between two structs. */
bool settings_group_differs(
	const struct settings *a, const struct settings *b, enum setting_group group);

/* Wipe and free the texts. */
void settings_free(struct settings *settings);

/*
 * Returns the value as in SHOW CONFIG: numbers in decimal, times in seconds, keywords. Returns
 * `out`, or a text owned by the settings, or NULL if not set. At most 32 bytes are written to
 * `out`.
 */
const char *settings_render(
	const struct setting_row *row, const struct settings *settings, char *out, size_t size);

/* Whether it can be changed at run time (column `changeable` of SHOW CONFIG). */
bool settings_is_changeable(const struct setting_row *row);

/* The keywords of enum values. */
const char *pool_mode_name(enum pool_mode mode);
const char *auth_type_name(enum auth_type type);

/* The mode of this name, letter case ignored. POOL_MODE_INHERIT has no name. */
bool pool_mode_of(const char *name, enum pool_mode *out);

/* Likewise the action of this name. */
bool wait_action_of(const char *name, enum wait_action *out);
bool session_state_of(const char *name, enum session_state *out);
bool target_session_of(const char *name, enum target_session *out);
bool load_balance_of(const char *name, enum load_balance *out);

/* The words of these values; NULL for INHERIT. */
const char *target_session_name(enum target_session target);
const char *load_balance_name(enum load_balance balance);

/* Parse a size or a duration, each with its unit, or 0. */
bool standby_lag_of(const char *text, standby_lag *out);

#endif
