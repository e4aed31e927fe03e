/* SPDX-License-Identifier: ISC */
#include "setup/convert/auth_rules.h"

#include <string.h>

#define CONSOLE "pgbouncer"

/* Words of auth_type, and of a file of rules; NULL: not possible there. */
static const struct {
	const char *type, *word;
} methods[] = {
	[AUTH_METHOD_TRUST] = {"trust", "trust"},
	[AUTH_METHOD_PASSWORD] = {"plain", "password"},
	[AUTH_METHOD_MD5] = {"md5", "md5"},
	[AUTH_METHOD_SCRAM] = {"scram-sha-256", "scram-sha-256"},
	[AUTH_METHOD_CERT] = {"cert", "cert"},
	[AUTH_METHOD_LDAP] = {"ldap", "ldap"},
	[AUTH_METHOD_PAM] = {"pam", NULL},
	[AUTH_METHOD_REJECT] = {NULL, "reject"},
};

void auth_rules_add(struct conversion *conversion, const struct auth_rule *rule)
{
	struct auth_rule *copy = NULL;

	if (conversion->rule_count < AUTH_RULES_MOST)
		copy = source_take(conversion->source, sizeof(*copy));
	if (!copy) {
		conversion->failed = true;
		return;
	}
	conversion->rule_count++;
	*copy = *rule;
	copy->next = NULL;
	if (conversion->last_rule)
		conversion->last_rule->next = copy;
	else
		conversion->rules = copy;
	conversion->last_rule = copy;
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* --- one method for all ------------------------------------------------------------------- */

static bool has_rule(
	const struct conversion *conversion, const char *database, const char *user)
{
	for (const struct auth_rule *rule = conversion->rules; rule; rule = rule->next) {
		if (is_same(rule->database, database) && is_same(rule->user, user))
			return true;
	}
	return false;
}

/* The console has users of its own (admin_users). */
static bool is_console(const struct auth_rule *rule)
{
	return rule->database && strcmp(rule->database, CONSOLE) == 0;
}

/* Whether the users of each database may use all databases. */
static bool users_are_everywhere(const struct conversion *conversion)
{
	enum { COMPARED_MOST = 200 };

	if (conversion->rule_count > COMPARED_MOST)
		return false;
	for (const struct auth_rule *a = conversion->rules; a; a = a->next) {
		for (const struct auth_rule *b = conversion->rules; b; b = b->next) {
			if (!is_console(a) && !is_console(b) &&
				!has_rule(conversion, b->database, a->user))
				return false;
		}
	}
	return true;
}

/* The rule that says it for all; NULL: rules differ. */
static const struct auth_rule *one_for_all(const struct conversion *conversion)
{
	const struct auth_rule *first = conversion->rules;

	for (const struct auth_rule *rule = first; rule; rule = rule->next) {
		if (rule->type || rule->address || rule->method != first->method ||
			!is_same(rule->options, first->options) || !methods[rule->method].type)
			return NULL;
	}
	return users_are_everywhere(conversion) ? first : NULL;
}

/* --- a file of rules ---------------------------------------------------------------------- */

static void write_name(struct buffer *out, const char *name)
{
	if (!name) {
		buffer_printf(out, " all");
		return;
	}
	buffer_append(out, " \"", 2);
	for (; *name != '\0'; name++)
		buffer_append(out, *name == '"' ? "\"\"" : name, *name == '"' ? 2 : 1);
	buffer_append(out, "\"", 1);
}

static void write_line(struct buffer *out, const struct auth_rule *rule, const char *type)
{
	buffer_printf(out, "%s", type);
	write_name(out, rule->database);
	write_name(out, rule->user);
	if (strcmp(type, "local") != 0)
		buffer_printf(out, " %s", rule->address ? rule->address : "all");
	buffer_printf(out, " %s", methods[rule->method].word);
	if (rule->options)
		buffer_printf(out, " %s", rule->options);
	buffer_append(out, "\n", 1);
}

static bool fits_line(const struct auth_rule *rule)
{
	return (!rule->database || !strpbrk(rule->database, "\r\n")) &&
		(!rule->user || !strpbrk(rule->user, "\r\n"));
}

static void write_rule(struct conversion *conversion, const struct auth_rule *rule)
{
	if (!methods[rule->method].word) {
		conversion_lose(conversion, rule->node,
			"no rule for it: %s counts for all users or for none here",
			methods[rule->method].type);
		return;
	}
	if (!fits_line(rule)) {
		conversion_lose(
			conversion, rule->node, "no rule for it: a name has a line end");
		return;
	}
	if (rule->type) {
		write_line(&conversion->hba, rule, rule->type);
		return;
	}
	if (!rule->address)
		write_line(&conversion->hba, rule, "local");
	write_line(&conversion->hba, rule, "host");
}

static unsigned weight_of(const struct auth_rule *rule)
{
	return (rule->database ? 0 : 4) + (rule->user ? 0 : 2) + (rule->address ? 0 : 1);
}

static void write_rules(struct conversion *conversion, bool by_weight)
{
	buffer_printf(&conversion->hba,
		"# The first rule that matches a connection decides: "
		"type, database, user, address, method\n");
	for (unsigned weight = 0; weight < (by_weight ? 8 : 1); weight++) {
		for (const struct auth_rule *rule = conversion->rules; rule;
			rule = rule->next) {
			if (!by_weight || weight_of(rule) == weight)
				write_rule(conversion, rule);
		}
	}
	if (conversion->hba.failed)
		conversion->failed = true;
}

void auth_rules_write(struct conversion *conversion, bool by_weight)
{
	const struct auth_rule *first = conversion->rules;
	const struct auth_rule *all = one_for_all(conversion);

	if (!first)
		return;
	if (!all) {
		write_rules(conversion, by_weight);
		conversion_set(conversion, first->node, "auth_type", "hba");
		conversion_set(
			conversion, first->node, "auth_hba_file", conversion->rules_path);
		return;
	}
	conversion_set(conversion, all->node, "auth_type", methods[all->method].type);
	if (all->options)
		conversion_set(conversion, all->node, "auth_ldap_options", all->options);
}
