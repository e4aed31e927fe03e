/* SPDX-License-Identifier: ISC */
/*
 * The certificate that the client has sent in the TLS handshake names its user. The certificate
 * is valid: an invalid one has ended the handshake.
 *
 * The user's name is compared byte for byte with the common name and the DNS names: with the
 * case-insensitive and wildcard rules of host names one user could log in as another.
 */
#include "net/tls.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"

static bool is_mapped(const char *name, const void *context)
{
	const struct client_link *client = context;

	return ident_map_allows(&client->login->rule->map, name, client->user->name);
}

/*
 * Is one of the certificate's names the user's name, or mapped to it by the rule's ident map?
 */
static bool names_user(const struct client_link *client)
{
	const struct stream *stream = &client->link.stream;
	const struct hba_rule *rule = client->login->rule;

	if (!rule || rule->map.count == 0)
		return tls_peer_is(stream, client->user->name);
	if (tls_peer_has_name(stream, is_mapped, client))
		return true;
	link_log_repeated(&client->link, LEVEL_LOG, "ident map: %s does not have a match",
		ident_map_name(&rule->map));
	return false;
}

/* Return why the certificate is refused, for the log only, or NULL when it is accepted. */
static const char *objection(const struct client_link *client)
{
	const struct stream *stream = &client->link.stream;

	if (!stream->tls)
		return "TLS connection required";
	if (!tls_has_peer_certificate(stream))
		return "TLS client certificate required";
	/* The system's certificate authorities issue certificates for any user name. */
	if (link_registry(&client->link)->process->settings->client_tls_ca_file[0] == '\0')
		return "client certificates need client_tls_ca_file";
	return names_user(client) ? NULL : "TLS certificate name mismatch";
}

static enum auth_result begin(struct client_link *client)
{
	const char *why = objection(client);

	if (why)
		link_log_repeated(&client->link, LEVEL_WARNING, "%s", why);
	return !why && exchange_is_known(client) ? AUTH_PASSED : exchange_refuse(client);
}

const struct auth_method auth_cert = {
	.name = "cert",
	.counted = LOGIN_CERT,
	.refusal = REASON_CERTIFICATE_AUTHENTICATION_FAILED,
	.begin = begin,
};
