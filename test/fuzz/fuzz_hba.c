/* SPDX-License-Identifier: ISC */
/*
 * The HBA file, with any content: each rule is valid, a rule's own names match it or an
 * earlier rule, and every bad line is a problem with its line number.
 */
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/hba.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check_problems(const struct problems *problems)
{
	const struct problem *problem = NULL;
	unsigned line = 0;

	require(problems->errors == 0);
	while ((problem = problems_next(problems, problem)) != NULL) {
		require(problem->line >= line && problem->text[0] != '\0');
		require((problem->severity == PROBLEM_SKIPPED) == (problem->log[1] != NULL));
		line = problem->line;
	}
}

static void check_names(const struct hba_names *names)
{
	for (size_t i = 0; i < names->count; i++)
		require(hba_names_has(names, names->names[i]));
}

static const char *some_name(const struct hba_names *names)
{
	return names->count > 0 ? names->names[0] : "name";
}

/* An address of the rule's own network, or any. */
static struct address address_for(const struct hba_rule *rule)
{
	struct address address = {.family = AF_UNIX};

	if (rule->type == HBA_LOCAL)
		return address;
	address.family = rule->network.family == AF_UNSPEC ? AF_INET : rule->network.family;
	memcpy(address.bytes, rule->network.bytes, sizeof(address.bytes));
	return address;
}

static void check_finding(const struct hba *hba, const struct hba_rule *rule)
{
	const struct address address = address_for(rule);
	const struct hba_connection connection = {
		.address = &address,
		.tls = rule->type == HBA_HOSTSSL,
		.database = some_name(&rule->databases),
		.user = some_name(&rule->users),
	};
	const struct hba_rule *found = hba_find(hba, &connection);
	const bool listed = rule->databases.count > 0 && rule->users.count > 0;

	if (listed && (rule->type == HBA_LOCAL || !network_is_empty(&rule->network)))
		require(found && found->line <= rule->line);
}

static void check_rules(const struct hba *hba)
{
	const struct hba_rule *rule;
	unsigned line = 0;

	for (size_t i = 0; (rule = hba_rule_at(hba, i)) != NULL; i++) {
		require(rule->line > line);
		line = rule->line;
		require(hba_method_name(rule->method) != NULL);
		require((rule->method == HBA_LDAP) == (rule->options != NULL));
		check_names(&rule->databases);
		check_finding(hba, rule);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char maps[] = "m root all\n";
	struct problems problems = {0};
	struct ident *ident = ident_parse("ident", maps, sizeof(maps) - 1, &problems);
	struct hba *hba = hba_parse("hba", (const char *)data, size, ident, &problems);

	require(hba != NULL);
	ident_unref(ident);
	check_problems(&problems);
	check_rules(hba);
	hba_unref(hba);
	problems_free(&problems);
	return 0;
}
