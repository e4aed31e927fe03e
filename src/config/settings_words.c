/* SPDX-License-Identifier: ISC */
/* The words of settings that have words as values. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/settings_parts.h"

const struct setting_word pool_mode_words[] = {
	{"session", POOL_MODE_SESSION, false},
	{"transaction", POOL_MODE_TRANSACTION, false},
	{"statement", POOL_MODE_STATEMENT, false},
	{NULL, 0, false},
};

const struct setting_word auth_type_words[] = {
	{"any", AUTH_TYPE_ANY, false},
	{"trust", AUTH_TYPE_TRUST, false},
	{"plain", AUTH_TYPE_PLAIN, false},
	{"md5", AUTH_TYPE_MD5, false},
	{"scram-sha-256", AUTH_TYPE_SCRAM_SHA_256, false},
	{"cert", AUTH_TYPE_CERT, false},
	{"hba", AUTH_TYPE_HBA, false},
	{"ldap", AUTH_TYPE_LDAP, !HAVE_LDAP},
	{"pam", AUTH_TYPE_PAM, !HAVE_PAM},
	{NULL, 0, false},
};

const struct setting_word tls_mode_words[] = {
	{"disable", TLS_MODE_DISABLE, false},
	{"allow", TLS_MODE_ALLOW, false},
	{"prefer", TLS_MODE_PREFER, false},
	{"require", TLS_MODE_REQUIRE, false},
	{"verify-ca", TLS_MODE_VERIFY_CA, false},
	{"verify-full", TLS_MODE_VERIFY_FULL, false},
	{NULL, 0, false},
};

const struct setting_word tls_negotiation_words[] = {
	{"postgres", TLS_NEGOTIATION_POSTGRES, false},
	{"direct", TLS_NEGOTIATION_DIRECT, false},
	{NULL, 0, false},
};

const struct setting_word startup_policy_words[] = {
	{"follow", STARTUP_FOLLOW, false},
	{"strict", STARTUP_STRICT, false},
	{NULL, 0, false},
};

const struct setting_word log_format_words[] = {
	{"text", LOG_FORMAT_TEXT, false},
	{"json", LOG_FORMAT_JSON, false},
	{NULL, 0, false},
};

const struct setting_word wait_action_words[] = {
	{"disconnect", WAIT_ACTION_DISCONNECT, false},
	{"error", WAIT_ACTION_ERROR, false},
	{NULL, 0, false},
};

const struct setting_word session_state_words[] = {
	{"follow", SESSION_STATE_FOLLOW, false},
	{"error", SESSION_STATE_ERROR, false},
	{"warn", SESSION_STATE_WARN, false},
	{"ignore", SESSION_STATE_IGNORE, false},
	{NULL, 0, false},
};

const struct setting_word target_session_words[] = {
	{"any", TARGET_ANY, false},
	{"read-write", TARGET_READ_WRITE, false},
	{"read-only", TARGET_READ_ONLY, false},
	{"primary", TARGET_PRIMARY, false},
	{"standby", TARGET_STANDBY, false},
	{"prefer-standby", TARGET_PREFER_STANDBY, false},
	{NULL, 0, false},
};

const struct setting_word load_balance_words[] = {
	{"round-robin", LOAD_BALANCE_ROUND_ROBIN, false},
	{"disable", LOAD_BALANCE_DISABLE, false},
	{"random", LOAD_BALANCE_RANDOM, false},
	{"least-connections", LOAD_BALANCE_LEAST_CONNECTIONS, false},
	{NULL, 0, false},
};

const struct setting_word role_check_words[] = {
	{"login", ROLE_CHECK_LOGIN, false},
	{"always", ROLE_CHECK_ALWAYS, false},
	{NULL, 0, false},
};

const struct setting_word listen_mode_words[] = {
	{"shared", LISTEN_SHARED, false},
	{"pin", LISTEN_PIN, false},
	{"error", LISTEN_ERROR, false},
	{NULL, 0, false},
};

const struct setting_word proxy_protocol_words[] = {
	{"off", PROXY_PROTOCOL_OFF, false},
	{"optional", PROXY_PROTOCOL_OPTIONAL, false},
	{"required", PROXY_PROTOCOL_REQUIRED, false},
	{NULL, 0, false},
};

#define COMPAT_WORD(name, text, number) {text, name, false},
const struct setting_word compat_version_words[] = {
	COMPAT_VERSIONS_OF(COMPAT_WORD){NULL, 0, false},
};
#undef COMPAT_WORD

const struct setting_word *setting_find_word(const struct setting_word *words, const char *text)
{
	for (; words->text; words++) {
		if (!words->absent && strcasecmp(words->text, text) == 0)
			return words;
	}
	return NULL;
}

const char *setting_word_of(const struct setting_word *words, unsigned value)
{
	for (; words->text; words++) {
		if (words->value == value)
			return words->text;
	}
	return NULL;
}

const char *pool_mode_name(enum pool_mode mode)
{
	return setting_word_of(pool_mode_words, mode);
}

const char *auth_type_name(enum auth_type type)
{
	return setting_word_of(auth_type_words, type);
}

bool pool_mode_of(const char *name, enum pool_mode *out)
{
	const struct setting_word *word = setting_find_word(pool_mode_words, name);

	if (!word)
		return false;
	*out = word->value;
	return true;
}

bool wait_action_of(const char *name, enum wait_action *out)
{
	const struct setting_word *word = setting_find_word(wait_action_words, name);

	if (!word)
		return false;
	*out = word->value;
	return true;
}

bool session_state_of(const char *name, enum session_state *out)
{
	const struct setting_word *word = setting_find_word(session_state_words, name);

	if (!word)
		return false;
	*out = word->value;
	return true;
}

bool target_session_of(const char *name, enum target_session *out)
{
	const struct setting_word *word = setting_find_word(target_session_words, name);

	if (!word)
		return false;
	*out = word->value;
	return true;
}

bool load_balance_of(const char *name, enum load_balance *out)
{
	const struct setting_word *word = setting_find_word(load_balance_words, name);

	if (!word)
		return false;
	*out = word->value;
	return true;
}

const char *target_session_name(enum target_session target)
{
	return setting_word_of(target_session_words, target);
}

const char *load_balance_name(enum load_balance balance)
{
	return setting_word_of(load_balance_words, balance);
}
