/* SPDX-License-Identifier: ISC */
/*
 * The state of a client's login, from its startup message to its welcome, and the row of the
 * authentication method that it uses. The client link owns its login (client.login).
 *
 * auth/client_login_state makes logins, lookup/login_end frees them.
 */
#ifndef PGUSHER_SESSION_LINK_LOGIN_H
#define PGUSHER_SESSION_LINK_LOGIN_H

#include <stddef.h>

#include "crypt/scram.h"
#include "model/registry.h"
#include "net/tls.h"
#include "session/link/asker.h"

enum {
	/* Maximum length of a password in bytes; a longer one is refused as wrong. */
	CLIENT_PASSWORD_MAX = 65530,
	/* A login message that is longer than this closes the client without being read. */
	CLIENT_LOGIN_MESSAGE_MAX = 128 * 1024,
	CLIENT_USER_NAME_MAX = 127,
};

enum auth_result {
	AUTH_PENDING, /* another message, or the result of a helper thread, is needed */
	AUTH_PASSED,
	AUTH_REFUSED, /* login.refusal has the reason */
};

struct auth_method {
	const char *name;
	enum login_method counted; /* its label in metrics; LOGIN_METHODS: not counted */
	enum reason refusal; /* sent to a client that failed */
	/*
	 * Name of the external method that checks the password, such as `LDAP`. Its users need
	 * not be known to pgusher. NULL: pgusher checks the password itself.
	 */
	const char *external;
	/*
	 * Load the libraries of the method. Returns false when one is missing; `why` names it
	 * then. NULL: the method needs none.
	 */
	bool (*load)(char *why, size_t size);
	/* Send the client an authentication request, or decide at once. */
	enum auth_result (*begin)(struct client_link *client);
	/* The client has sent a password message with this body. NULL: it sends none. */
	enum auth_result (*answer)(
		struct client_link *client, const uint8_t *body, size_t length);
};

struct derivation;
struct event;
struct external_auth;
struct name_lookup;
struct remote_question;

/*
 * How a login continues after a wait: functions of session/login for the modules below it. Each
 * may close the client.
 */
struct login_steps {
	/* An authentication method that returned AUTH_PENDING has its result. */
	void (*proceed)(struct client_link *client, enum auth_result result);
	/*
	 * An external method has accepted this password: a user with it is set for the client,
	 * and servers are logged in with it. The result is for proceed().
	 */
	enum auth_result (*accept_password)(struct client_link *client, const char *password);
	/* A LOOKING_UP client is this user with this secret (empty: no password is correct). */
	void (*found)(
		struct client_link *client, const char *user, struct credential *credential);
	/* A server has accepted the startup parameters of a LOOKING_UP client. */
	void (*checked)(struct client_link *client);
	/* Read the client again, and handle what it has sent meanwhile. */
	void (*resume)(struct client_link *client);
};

/* The state of one login, from the startup message to the welcome. */
struct login {
	const struct login_steps *steps;
	const struct auth_method *method;
	enum reason refusal;
	uint32_t version; /* of the protocol, as in the startup message */
	struct deadline delayed; /* when it begins, if delayed_user is set */
	char *delayed_user; /* owned: the user that logs in then; NULL: it is not delayed */
	struct user *mock; /* owned: the client's user if its name is unknown; or NULL */
	/* A reference: the secret of this login, from a look-up; NULL: the user's is used. */
	struct credential *credential;
	struct asker asker; /* LOOKING_UP: it waits for a look-up of this worker */
	/* LOOKING_UP: it waits for a look-up of another worker, in place of one here; or NULL. */
	struct remote_question *remote;
	struct client_link *client; /* the client of this login */
	char *database_name; /* owned: as in the startup message */
	struct hba *hba; /* a reference: the file that `rule` is in */
	const struct hba_rule *rule; /* the HBA rule for this login; NULL: none */
	uint8_t salt[4]; /* of an MD5 exchange */
	struct scram_server scram;
	uint8_t end_point[TLS_BINDING_MAX]; /* channel binding data of a SCRAM exchange */
	size_t end_point_length; /* 0: no channel binding */
	struct scram_secret verifier; /* of a SCRAM exchange */
	struct external_auth *external_auth; /* its request to an external method; NULL: none */
	struct name_lookup *name_lookup; /* of its system user: see auth/peer; NULL: none */
	struct derivation *derivation; /* of this client's password only; NULL: none */
	bool counted; /* as a successful login, in the totals of its pool */
	/* The keys, not its own, whose verifier it waits for, in keys->waiting; NULL: none. */
	struct user_keys *awaited;
	TAILQ_ENTRY(login) in_awaited;
	bool checked; /* the client's parameters are correct: see lookup/startup_check */
	bool expired; /* the password was right, but has expired */
	bool answered_first; /* the client-first-message of SCRAM was handled */
	bool always_refused; /* there is no secret: refuse any answer of the client */
	usec_t not_before; /* a refusal is not sent before this time: see auth/scram */
	struct event *held_refusal; /* owned: timer that sends the refusal; NULL: none */
	struct buffer final; /* a client-final-message that waits for the helper thread */
	/* AuthenticationSASLFinal of a client that has passed, sent with the next message. */
	struct buffer sasl_final;
	enum target_session asked_role; /* TARGET_INHERIT: that of the database */
	/* Names of followed parameters that came in `options`, each with its NUL. */
	struct buffer option_names;
};

/* Returns the login that this asker is part of. */
static inline struct login *login_of(struct asker *asker)
{
	return (struct login *)((char *)asker - offsetof(struct login, asker));
}

#endif
