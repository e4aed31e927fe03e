/* SPDX-License-Identifier: ISC */
#include "model/statistics/reason_facts.h"

#include <stdint.h>

#include "base/check.h"

/* Of a set's word the enumerator plus one, so that 0 means: the row does not have that fact. */
struct facts {
	uint8_t client;
	uint8_t rejected;
	uint8_t server;
	uint8_t protocol;
	uint8_t auth;
	uint8_t cancel;
	uint8_t connect;
	uint8_t unsent;
	bool broken;
	bool no_login_failure;
};

#define CLIENT(word) .client = CLIENT_CLOSED_##word + 1
#define REJECTED(word) .rejected = CLIENT_REJECTED_##word + 1
#define SERVER(word) .server = SERVER_CLOSED_##word + 1
#define PROTOCOL(word) .protocol = PROTOCOL_ERROR_##word + 1
#define AUTH(word) .auth = AUTH_FAILED_##word + 1
#define CANCEL(word) .cancel = CANCEL_##word + 1
#define CONNECT(word) .connect = CONNECT_##word + 1
#define UNSENT(word) .unsent = UNSENT_##word + 1
#define BROKEN .broken = true
#define NO_LOGIN_FAILURE .no_login_failure = true

#define REASON(name, text, sqlstate, level, ...) [REASON_##name] = {__VA_ARGS__},
static const struct facts rows[REASON_COUNT] = {
#include "base/reasons.def"
};
#undef REASON

static const struct facts *facts_of(enum reason reason)
{
	CHECK((unsigned int)reason < REASON_COUNT);
	return &rows[reason];
}

static unsigned word_or(uint8_t fact, unsigned otherwise)
{
	return fact > 0 ? fact - 1U : otherwise;
}

enum client_closing reason_client_closed(enum reason reason)
{
	return (enum client_closing)word_or(facts_of(reason)->client, CLIENT_CLOSED_OTHER);
}

enum server_closing reason_server_closed(enum reason reason)
{
	return (enum server_closing)word_or(facts_of(reason)->server, SERVER_CLOSED_OTHER);
}

enum client_rejection reason_client_rejected(enum reason reason)
{
	const struct facts *facts = facts_of(reason);
	const enum client_closing closing = reason_client_closed(reason);

	if (closing == CLIENT_CLOSED_PROTOCOL)
		return CLIENT_REJECTED_PROTOCOL;
	if (closing == CLIENT_CLOSED_SHUTDOWN)
		return CLIENT_REJECTED_SHUTDOWN;
	return (enum client_rejection)word_or(facts->rejected, CLIENT_REJECTIONS);
}

enum auth_failure reason_auth_failed(enum reason reason)
{
	return (enum auth_failure)word_or(facts_of(reason)->auth, AUTH_FAILURES);
}

enum protocol_error reason_protocol_error(enum reason reason, enum protocol_side side)
{
	const uint8_t kind = facts_of(reason)->protocol;

	if (side == PROTOCOL_SERVER)
		return (enum protocol_error)word_or(kind, PROTOCOL_ERRORS);
	if (reason_client_closed(reason) != CLIENT_CLOSED_PROTOCOL)
		return PROTOCOL_ERRORS;
	return (enum protocol_error)word_or(kind, PROTOCOL_ERROR_OTHER);
}

enum cancel_outcome reason_cancel_outcome(enum reason reason)
{
	return (enum cancel_outcome)word_or(facts_of(reason)->cancel, CANCEL_OUTCOMES);
}

enum connect_outcome reason_connect_outcome(enum reason reason)
{
	return (enum connect_outcome)word_or(facts_of(reason)->connect, CONNECT_OTHER);
}

enum unsent_ending reason_unsent_ending(enum reason reason)
{
	CHECK(facts_of(reason)->unsent > 0);
	return (enum unsent_ending)(facts_of(reason)->unsent - 1);
}

bool reason_is_server_error(enum reason reason)
{
	if (facts_of(reason)->server == 0)
		return false;
	switch (reason_server_closed(reason)) {
	case SERVER_CLOSED_UNCLEAN:
	case SERVER_CLOSED_ERROR:
	case SERVER_CLOSED_DNS:
	case SERVER_CLOSED_CHECK_FAILED:
	case SERVER_CLOSED_OTHER:
		return true;
	case SERVER_CLOSED_LIFETIME:
	case SERVER_CLOSED_IDLE:
	case SERVER_CLOSED_CLIENT_GONE:
	case SERVER_CLOSED_RELOAD:
	case SERVER_CLOSED_ROLE:
	case SERVER_CLOSED_RECONNECT:
	case SERVER_CLOSED_KILL:
	case SERVER_CLOSED_SHUTDOWN:
	case SERVER_CLOSINGS:
		break;
	}
	return false;
}

bool reason_fails_login(enum reason reason)
{
	return !facts_of(reason)->no_login_failure;
}

bool reason_breaks_connection(enum reason reason)
{
	return facts_of(reason)->broken;
}
