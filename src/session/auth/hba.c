/* SPDX-License-Identifier: ISC */
/*
 * Chooses one of the other methods by the HBA file: the method of the first rule that matches
 * the client's address, database, user and encryption.
 */
#include "session/auth/exchange.h"
#include "session/auth/method.h"

static enum auth_result reject(struct client_link *client)
{
	return exchange_refuse(client);
}

static const struct auth_method auth_reject = {
	.name = "reject",
	.counted = LOGIN_METHODS,
	.refusal = REASON_LOGIN_REJECTED,
	.begin = reject,
};

static const struct auth_method *const methods[] = {
	[HBA_CERT] = &auth_cert,
	[HBA_LDAP] = &auth_ldap,
	[HBA_MD5] = &auth_md5,
	[HBA_PASSWORD] = &auth_plain,
	[HBA_PEER] = &auth_peer,
	[HBA_REJECT] = &auth_reject,
	[HBA_SCRAM_SHA_256] = &auth_scram,
	[HBA_TRUST] = &auth_trust,
};

/* The console has one name in rules, whichever of its names the client has used. */
static const char *database_name(const struct client_link *client)
{
	return client->database && client->database->console ? client->database->name
							     : client->login->database_name;
}

static const struct hba_rule *find_rule(const struct client_link *client, const char *user)
{
	const struct hba_connection connection = {
		.address = &client->link.remote,
		.tls = client->link.stream.tls != NULL,
		.physical_replication = client->replication == REPLICATION_PHYSICAL,
		.database = database_name(client),
		.user = user,
	};

	return hba_find(
		snapshot_hba(link_registry(&client->link)->process->config), &connection);
}

const struct auth_method *auth_hba_method(const struct client_link *client, const char *user)
{
	const struct hba_rule *rule = find_rule(client, user);

	return rule ? methods[rule->method] : NULL;
}

const struct auth_method *auth_hba_method_at(const struct hba *hba, size_t index)
{
	const struct hba_rule *rule = hba_rule_at(hba, index);

	return rule ? methods[rule->method] : NULL;
}

static enum auth_result refuse_for(struct client_link *client, enum reason refusal)
{
	client->login->refusal = refusal;
	return AUTH_REFUSED;
}

static enum auth_result begin(struct client_link *client)
{
	struct login *login = client->login;

	login->rule = find_rule(client, client->user->name);
	if (!login->rule)
		return refuse_for(client, REASON_NO_AUTHENTICATION_METHOD);
	/* Keep the rules in force now: a reload may replace them before this login ends. */
	login->hba = hba_ref(snapshot_hba(link_registry(&client->link)->process->config));
	link_log(&client->link, LEVEL_DEBUG, "hba line %u decides: %s", login->rule->line,
		hba_method_name(login->rule->method));
	login->method = methods[login->rule->method];
	return login->method->begin(client);
}

const struct auth_method auth_hba = {
	.name = "hba",
	.counted = LOGIN_METHODS,
	.refusal = REASON_LOGIN_REJECTED,
	.begin = begin,
};
