/* SPDX-License-Identifier: ISC */
/*
 * How the values of settings are parsed and printed; private to the files of config/settings.
 * settings_kinds.c has the keywords and the kinds of values, settings.c the rows.
 */
#ifndef PGUSHER_CONFIG_SETTINGS_PARTS_H
#define PGUSHER_CONFIG_SETTINGS_PARTS_H

#include "config/settings.h"

/* Keywords of an enum; the table ends with a NULL. */
struct setting_word {
	const char *text;
	unsigned value;
	bool absent; /* not supported by this build: treated as unknown */
};

/* A value being parsed: its setting, and the buffer for an error text. */
struct setting_request {
	const struct setting_row *row;
	const char *text;
	char *why;
	size_t size;
};

struct setting_kind {
	/* Set the field, or leave it unchanged and store the reason. */
	bool (*read)(const struct setting_request *request, void *field);
	const char *(*render)(const void *field, char *out, size_t size);
	const char *allowed; /* the allowed values, without the range; unused with keywords */
	bool takes_minus; /* without a range, -1 is allowed and read as 0 */
	enum setting_comment comment;
	const struct setting_word *words; /* NULL: none; else `render` is unused */
	bool is_text; /* the field is an owned text */
	size_t size;
};

/* --- src/config/settings_kinds.c ---------------------------------------------------------- */

/* Returns the keyword with this text, letter case ignored; NULL if unknown. */
const struct setting_word *setting_find_word(
	const struct setting_word *words, const char *text);

/* Returns the text of this value; NULL if no keyword has it. */
const char *setting_word_of(const struct setting_word *words, unsigned value);

/* The words of each such kind; the last one is NULL. */
extern const struct setting_word pool_mode_words[], auth_type_words[], tls_mode_words[],
	tls_negotiation_words[], startup_policy_words[], log_format_words[],
	wait_action_words[], session_state_words[], listen_mode_words[], compat_version_words[],
	target_session_words[], load_balance_words[], role_check_words[],
	proxy_protocol_words[];

extern const struct setting_kind setting_kind_INTEGER;
extern const struct setting_kind setting_kind_COUNT;
extern const struct setting_kind setting_kind_POOL_SIZE;
extern const struct setting_kind setting_kind_METRICS_PORT;
extern const struct setting_kind setting_kind_BOOLEAN;
extern const struct setting_kind setting_kind_BYTES;
extern const struct setting_kind setting_kind_UNSIGNED;
extern const struct setting_kind setting_kind_DURATION;
extern const struct setting_kind setting_kind_WHOLE_SECONDS;
extern const struct setting_kind setting_kind_WHOLE_MILLISECONDS;
extern const struct setting_kind setting_kind_LOG_DURATION;
extern const struct setting_kind setting_kind_STRING;
extern const struct setting_kind setting_kind_NAMES;
extern const struct setting_kind setting_kind_FREE_TEXT;
extern const struct setting_kind setting_kind_LDAP_OPTIONS;
extern const struct setting_kind setting_kind_PASSWORD;
extern const struct setting_kind setting_kind_NETWORKS;
extern const struct setting_kind setting_kind_PROXY_NETWORKS;
extern const struct setting_kind setting_kind_CORES;
extern const struct setting_kind setting_kind_SERVICE_NAME;
extern const struct setting_kind setting_kind_DATABASE_NAME;
extern const struct setting_kind setting_kind_POOL_MODE;
extern const struct setting_kind setting_kind_AUTH_TYPE;
extern const struct setting_kind setting_kind_TLS_MODE;
extern const struct setting_kind setting_kind_TLS_NEGOTIATION;
extern const struct setting_kind setting_kind_STARTUP_POLICY;
extern const struct setting_kind setting_kind_LOG_FORMAT;
extern const struct setting_kind setting_kind_WAIT_ACTION;
extern const struct setting_kind setting_kind_SESSION_STATE;
extern const struct setting_kind setting_kind_SHARE;
extern const struct setting_kind setting_kind_LISTEN_MODE;
extern const struct setting_kind setting_kind_PROXY_PROTOCOL;
extern const struct setting_kind setting_kind_PIN_CAUSES;
extern const struct setting_kind setting_kind_COMPAT_VERSION;
extern const struct setting_kind setting_kind_TARGET_SESSION;
extern const struct setting_kind setting_kind_LOAD_BALANCE;
extern const struct setting_kind setting_kind_ROLE_CHECK;
extern const struct setting_kind setting_kind_STANDBY_LAG;

#endif
