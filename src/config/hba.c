/* SPDX-License-Identifier: ISC */
#include "config/hba.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/references.h"
#include "config/file.h"

struct hba {
	reference_count references;
	struct ident *ident; /* one reference */
	struct hba_rule *rules;
	size_t count, capacity;
};

static const char *const type_words[] = {
	[HBA_LOCAL] = "local",
	[HBA_HOST] = "host",
	[HBA_HOSTSSL] = "hostssl",
	[HBA_HOSTNOSSL] = "hostnossl",
};

static const char *const method_words[] = {
	[HBA_CERT] = "cert",
	[HBA_LDAP] = "ldap",
	[HBA_MD5] = "md5",
	[HBA_PASSWORD] = "password",
	[HBA_PEER] = "peer",
	[HBA_REJECT] = "reject",
	[HBA_SCRAM_SHA_256] = "scram-sha-256",
	[HBA_TRUST] = "trust",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

const char *hba_method_name(enum hba_method method)
{
	return method_words[method];
}

static void free_rule(struct hba_rule *rule)
{
	hba_names_free(&rule->databases);
	hba_names_free(&rule->users);
	/* The options may contain the password for the LDAP server. */
	if (rule->options)
		explicit_bzero(rule->options, strlen(rule->options));
	free(rule->options);
}

/* --- reading ------------------------------------------------------------------------------ */

struct reading {
	const char *name; /* the name of the file */
	struct hba *hba;
	struct tokens tokens;
	struct hba_names_reader names;
	struct problems *problems;
	bool no_memory;
};

/*
 * Skip the present line. `text` is logged before the line that every bad line gets; `hint` is
 * appended in the output of --check.
 */
static bool refuse(struct reading *reading, const char *hint, const char *text, ...)
	__attribute__((format(printf, 3, 4)));
static bool refuse(struct reading *reading, const char *hint, const char *text, ...)
{
	const unsigned line = reading->tokens.line;
	va_list arguments;
	char why[512];

	va_start(arguments, text);
	vsnprintf(why, sizeof(why), text, arguments);
	va_end(arguments);
	problems_add(
		reading->problems, PROBLEM_SKIPPED, reading->name, line, "%s%s", why, hint);
	problems_log_as(reading->problems, "hba line %u: %s", line, why);
	problems_log_as(reading->problems, "could not parse hba config line %u", line);
	return false;
}

/* Index of the present token among the words; -1 if it is none of them. */
static int find_word(const struct tokens *tokens, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (tokens_is_word(tokens, words[i]))
			return (int)i;
	}
	return -1;
}

static bool read_type(struct reading *reading, struct hba_rule *rule)
{
	const int type = find_word(&reading->tokens, type_words, COUNT(type_words));

	if (type < 0)
		return refuse(reading, ": allowed is local, host, hostssl, hostnossl",
			"unknown type");
	rule->type = (enum hba_type)type;
	tokens_next(&reading->tokens);
	return true;
}

static bool read_names(struct reading *reading, const char *what, struct hba_names *out)
{
	if (hba_names_read(&reading->names, &reading->tokens, out))
		return true;
	reading->no_memory = reading->names.no_memory;
	return refuse(reading, "", "%s: %s", what, reading->names.why);
}

static bool refuse_address(struct reading *reading)
{
	return refuse(
		reading, ": allowed is all, ADDRESS/BITS, or ADDRESS MASK", "bad address");
}

/* An address without bits, followed by the mask as a token. */
static bool read_masked(struct reading *reading, struct hba_rule *rule)
{
	char address[INET6_ADDRSTRLEN + 1];
	const size_t length = strlen(reading->tokens.text);

	if (length >= sizeof(address))
		return refuse_address(reading);
	memcpy(address, reading->tokens.text, length + 1);
	tokens_next(&reading->tokens);
	if (reading->tokens.kind != TOKEN_BARE ||
		!network_parse_masked(address, reading->tokens.text, &rule->network))
		return refuse_address(reading);
	return true;
}

/* Such a rule matches no connection; it is kept, as in PgBouncer. */
static void warn_of_empty_network(struct reading *reading, const struct network *network)
{
	char text[ADDRESS_TEXT_SIZE];

	network_text(network, text);
	problems_add(reading->problems, PROBLEM_WARNING, reading->name, reading->tokens.line,
		"address does not match mask, so that this rule never matches: %s", text);
	problems_log_as(reading->problems, "address does not match mask in %s line #%u: %s",
		reading->name, reading->tokens.line, text);
}

static bool read_address(struct reading *reading, struct hba_rule *rule)
{
	const struct tokens *tokens = &reading->tokens;

	if (tokens->kind != TOKEN_BARE)
		return refuse_address(reading);
	if (!tokens_is_word(tokens, "all")) {
		if (!strchr(tokens->text, '/')) {
			if (!read_masked(reading, rule))
				return false;
		} else if (!network_parse(tokens->text, &rule->network)) {
			return refuse_address(reading);
		}
		if (network_is_empty(&rule->network))
			warn_of_empty_network(reading, &rule->network);
	}
	tokens_next(&reading->tokens);
	return true;
}

static bool read_map(struct reading *reading, struct hba_rule *rule)
{
	const char *text = reading->tokens.text;

	if (reading->tokens.kind != TOKEN_BARE || strncmp(text, "map=", 4) != 0 ||
		text[4] == '\0')
		return refuse(reading, "",
			"Ident map %s is malformed. It is not in map=value format.", text);
	rule->map = ident_find_map(reading->hba->ident, text + 4);
	if (rule->map.count == 0)
		return refuse(reading, "", "Ident map %s is not found in ident config file",
			text + 4);
	tokens_next(&reading->tokens);
	if (reading->tokens.kind != TOKEN_END)
		return refuse(
			reading, ": nothing may follow map=NAME", "unsupported parameters");
	return true;
}

static bool read_raw_options(struct reading *reading, struct hba_rule *rule)
{
	size_t length;
	const char *rest = tokens_rest(&reading->tokens, &length);

	rule->options = strndup(rest, length);
	reading->no_memory = !rule->options;
	return rule->options != NULL;
}

static bool read_method(struct reading *reading, struct hba_rule *rule)
{
	const int method = find_word(&reading->tokens, method_words, COUNT(method_words));

	if (method < 0)
		return refuse(reading,
			": allowed is cert, ldap, md5, password, peer, reject, scram-sha-256, trust",
			"unsupported method: buf=%s", reading->tokens.text);
	rule->method = (enum hba_method)method;
	if (rule->method == HBA_LDAP)
		return read_raw_options(reading, rule);
	tokens_next(&reading->tokens);
	return reading->tokens.kind == TOKEN_END || read_map(reading, rule);
}

static bool read_rule(struct reading *reading, struct hba_rule *rule)
{
	rule->line = reading->tokens.line;
	return read_type(reading, rule) && read_names(reading, "database", &rule->databases) &&
		read_names(reading, "user", &rule->users) &&
		(rule->type == HBA_LOCAL || read_address(reading, rule)) &&
		read_method(reading, rule);
}

/* Takes ownership of the rule's content, unless it returns false: out of memory. */
static bool add_rule(struct hba *hba, const struct hba_rule *rule)
{
	if (hba->count == hba->capacity) {
		const size_t capacity = hba->capacity ? hba->capacity * 2 : 16;
		struct hba_rule *rules = realloc(hba->rules, capacity * sizeof(*rules));

		if (!rules)
			return false;
		hba->rules = rules;
		hba->capacity = capacity;
	}
	hba->rules[hba->count++] = *rule;
	return true;
}

static void read_rules(struct reading *reading)
{
	while (!reading->no_memory && tokens_next_line(&reading->tokens)) {
		struct hba_rule rule = {.network.family = AF_UNSPEC};

		if (read_rule(reading, &rule)) {
			if (add_rule(reading->hba, &rule))
				continue;
			reading->no_memory = true;
		}
		free_rule(&rule);
	}
}

struct hba *hba_parse(const char *name, const char *text, size_t length, struct ident *ident,
	struct problems *problems)
{
	struct reading reading = {
		.name = name,
		.names = {.file = name, .files = problems->files},
		.problems = problems,
	};
	struct hba *hba = reading.hba = calloc(1, sizeof(*hba));

	if (hba && tokens_begin(&reading.tokens, text, length)) {
		hba->references = 1;
		hba->ident = ident_ref(ident);
		read_rules(&reading);
		tokens_end(&reading.tokens);
		if (!reading.no_memory)
			return hba;
		hba_unref(hba);
	} else {
		free(hba);
	}
	problems_add(problems, PROBLEM_ERROR, name, 0, "out of memory");
	return NULL;
}

static void report_missing_file(const char *path, struct problems *problems)
{
	const char *why = strerror(errno);

	if (*path)
		problems_add(problems, PROBLEM_SKIPPED, path, 0,
			"could not open hba config file %s: %s", path, why);
	else
		problems_add(problems, PROBLEM_SKIPPED, "auth_hba_file", 0,
			"without this file auth_type hba refuses every login");
	problems_log_as(problems, "could not open hba config file %s: %s", path, why);
}

struct hba *hba_load(const char *path, struct ident *ident, struct problems *problems)
{
	struct file_text file;
	struct hba *hba;

	file_list_note(problems->files, path);
	if (!file_read(path, HBA_FILE_LIMIT, &file)) {
		report_missing_file(path, problems);
		return hba_parse(path, "", 0, ident, problems);
	}
	hba = hba_parse(path, file.text, file.length, ident, problems);
	file_text_free(&file);
	return hba;
}

struct hba *hba_ref(struct hba *hba)
{
	if (hba)
		reference_take(&hba->references);
	return hba;
}

void hba_unref(struct hba *hba)
{
	if (!hba || !reference_drop(&hba->references))
		return;
	for (size_t i = 0; i < hba->count; i++)
		free_rule(&hba->rules[i]);
	free(hba->rules);
	ident_unref(hba->ident);
	free(hba);
}

/* --- matching ----------------------------------------------------------------------------- */

static bool fits_type(enum hba_type type, const struct hba_connection *connection)
{
	const bool local = connection->address->family == AF_UNIX;

	switch (type) {
	case HBA_LOCAL:
		return local;
	case HBA_HOST:
		return !local;
	case HBA_HOSTSSL:
		return !local && connection->tls;
	case HBA_HOSTNOSSL:
		return !local && !connection->tls;
	}
	return false;
}

static bool fits_address(const struct hba_rule *rule, const struct hba_connection *connection)
{
	return rule->network.family == AF_UNSPEC ||
		network_has(&rule->network, connection->address);
}

static bool fits_names(const struct hba_names *names, const char *name,
	const struct hba_connection *connection)
{
	if (names->keywords & HBA_ALL)
		return true;
	if ((names->keywords & HBA_SAMEUSER) &&
		strcmp(connection->database, connection->user) == 0)
		return true;
	return hba_names_has(names, name);
}

/* Physical replication has no database: only the keyword `replication` matches it. */
static bool fits_database(const struct hba_rule *rule, const struct hba_connection *connection)
{
	if (connection->physical_replication)
		return (rule->databases.keywords & HBA_REPLICATION) != 0;
	return fits_names(&rule->databases, connection->database, connection);
}

static bool fits_user(const struct hba_rule *rule, const struct hba_connection *connection)
{
	if (connection->physical_replication && (rule->users.keywords & HBA_REPLICATION))
		return true;
	return fits_names(&rule->users, connection->user, connection);
}

const struct hba_rule *hba_find(const struct hba *hba, const struct hba_connection *connection)
{
	for (size_t i = 0; hba && i < hba->count; i++) {
		const struct hba_rule *rule = &hba->rules[i];

		if (fits_type(rule->type, connection) && fits_address(rule, connection) &&
			fits_database(rule, connection) && fits_user(rule, connection))
			return rule;
	}
	return NULL;
}

const struct hba_rule *hba_rule_at(const struct hba *hba, size_t index)
{
	return hba && index < hba->count ? &hba->rules[index] : NULL;
}
