/* SPDX-License-Identifier: ISC */
/*
 * The certificate that the client has shown in the TLS handshake names its user. That it is good
 * is known by now: a bad one has ended the handshake.
 *
 * Names are compared byte for byte with the common name and the DNS names: the case-insensitive
 * and wildcard rules of host names would let one user in as another.
 */
#include "net/tls.h"
#include "session/auth/exchange.h"
#include "session/auth/method.h"

static bool may_be(const char *name, const void *context)
{
	const struct client_link *client = context;

	return ident_map_allows(&client->login->rule->map, name, client->user->name);
}

/* One of the certificate's names must be the user's, or one that a map lets be the user. */
static bool names_user(const struct client_link *client)
{
	const struct stream *stream = &client->link.stream;
	const struct hba_rule *rule = client->login->rule;

	if (!rule || rule->map.count == 0)
		return tls_peer_is(stream, client->user->name);
	if (tls_peer_has_name(stream, may_be, client))
		return true;
	link_log_repeated(&client->link, LEVEL_LOG, "ident map: %s does not have a match",
		ident_map_name(&rule->map));
	return false;
}

/* Why not, for the log only; NULL: the certificate is the user's. */
static const char *objection(const struct client_link *client)
{
	const struct stream *stream = &client->link.stream;

	if (!stream->tls)
		return "TLS connection required";
	if (!tls_has_peer_certificate(stream))
		return "TLS client certificate required";
	/* With the system's authorities anybody could have one for any name. */
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
