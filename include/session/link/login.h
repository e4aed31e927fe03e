/* SPDX-License-Identifier: ISC */
/*
 * What the login of a client remembers from its startup message to its welcome, and the row that
 * describes the authentication method it uses. The client link owns its login (client.login).
 *
 * session/auth/client_login_state makes logins, session/lookup/login_end frees them.
 */
#ifndef PGUSHER_SESSION_LINK_LOGIN_H
#define PGUSHER_SESSION_LINK_LOGIN_H

#include "crypt/scram.h"
#include "model/registry.h"
#include "net/tls.h"

enum {
	/* Bytes of a password; a longer one is a wrong one. */
	CLIENT_PASSWORD_MAX = 65530,
	/* A message of a login that is longer than this is not even read. */
	CLIENT_LOGIN_MESSAGE_MAX = 128 * 1024,
	CLIENT_USER_NAME_MAX = 127,
};

enum auth_result {
	AUTH_PENDING, /* more messages, or a helper's answer, are needed */
	AUTH_PASSED,
	AUTH_REFUSED, /* login.refusal says why */
};

struct auth_method {
	const char *name;
	enum login_method counted; /* as what metrics have it; LOGIN_METHODS: not at all */
	enum reason refusal; /* what a client hears that failed */
	/*
	 * Name of the external method that checks the password, such as `LDAP`. Its users need
	 * not be known to pgusher. NULL: pgusher checks the password itself.
	 */
	const char *external;
	/* Load what the method needs of the system; false: `why` says what is missing. NULL: nothing. */
	bool (*load)(char *why, size_t size);
	/* Ask the client, or decide at once. */
	enum auth_result (*begin)(struct client_link *client);
	/* A password message has come: its whole body. NULL: none is ever asked for. */
	enum auth_result (*answer)(
		struct client_link *client, const uint8_t *body, size_t length);
};

struct derivation;

struct event;
struct external_auth;

struct lookup;

/*
 * How a login goes on after it has waited, for the modules below session/login. Each may close the
 * client.
 */
struct login_steps {
	/* An authentication method that was pending has its result. */
	void (*proceed)(struct client_link *client, enum auth_result result);
	/*
	 * An external authority has accepted this password: the client is a user from now on, and
	 * the password is used at servers. The result is for proceed().
	 */
	enum auth_result (*learn)(struct client_link *client, const char *password);
	/* A LOOKING_UP client is this user with this secret (empty: nothing proves it). */
	void (*found)(
		struct client_link *client, const char *user, struct credential *credential);
	/* The startup parameters of a LOOKING_UP client are good. */
	void (*checked)(struct client_link *client);
	/* The client may be read again; what it has sent meanwhile is handled now. */
	void (*resume)(struct client_link *client);
};

/* What a login needs to remember; lives from the startup packet to the welcome. */
struct login {
	const struct login_steps *steps;
	const struct auth_method *method;
	enum reason refusal;
	uint32_t version; /* of the protocol that is spoken */
	struct user *mock; /* owned: the client's user, if the name is unknown */
	struct credential
		*credential; /* counted: told to this login; NULL: the user's counts */
	struct lookup *lookup; /* that it waits for, LOOKING_UP; NULL: none */
	TAILQ_ENTRY(login) in_lookup;
	struct client_link *client; /* whose it is; set while in a look-up */
	usec_t queued_at; /* since when its look-up waits for a server; 0: it has one, or none is needed */
	usec_t queued; /* how long it has waited for servers in all */
	char *database_name; /* owned: as the client wrote it */
	struct hba *hba; /* counted: what `rule` stands in */
	const struct hba_rule *rule; /* that decides on this login; NULL: none does */
	uint8_t salt[4]; /* of an MD5 exchange */
	struct scram_server scram;
	uint8_t end_point[TLS_BINDING_MAX]; /* what a SCRAM exchange is bound to */
	size_t end_point_length; /* 0: nothing */
	struct scram_secret verifier; /* of a SCRAM exchange */
	struct external_auth *external_auth; /* a password that others look at; NULL: none */
	struct derivation *derivation; /* of its password, for nobody else; NULL: none */
	bool checked; /* the client's parameters are good: see session/lookup/startup_check */
	bool expired; /* the password was right, but too old */
	bool answered_first; /* the SCRAM exchange is past its first message */
	bool never; /* nothing that the client says can be right */
	bool deriving; /* a helper works on the verifier */
	usec_t not_before; /* what fails is not told earlier: see auth/scram */
	struct event *held_refusal; /* owned: when it is told; NULL: there is none */
	struct buffer final; /* a client-final-message that waits for the helper */
	/* The exchange's last word to a client that has passed: it leaves with what comes next. */
	struct buffer sasl_final;
	/* Names of settings that stood in `options` and are followed, each with its NUL. */
	struct buffer option_names;
};

#endif
