/* SPDX-License-Identifier: ISC */
/*
 * The ways in which a client may prove who it is: one file each, exporting one row.
 *
 * A method may need no message, one or several, and may wait for a helper thread: then it
 * answers AUTH_PENDING and calls client_login_proceed() when it knows.
 */
#ifndef PGUSHER_SESSION_AUTH_METHOD_H
#define PGUSHER_SESSION_AUTH_METHOD_H

#include "crypt/scram.h"
#include "model/registry.h"
#include "net/tls.h"

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
	 * Who judges the password instead of us: `LDAP`. It also knows the users, so that none is
	 * looked for in our files. NULL: nobody.
	 */
	const char *authority;
	/* Load what the method needs of the system; false: `why` says what is missing. NULL: nothing. */
	bool (*load)(char *why, size_t size);
	/* Ask the client, or decide at once. */
	enum auth_result (*begin)(struct client_link *client);
	/* A password message has come: its whole body. NULL: none is ever asked for. */
	enum auth_result (*answer)(
		struct client_link *client, const uint8_t *body, size_t length);
};

extern const struct auth_method auth_any, auth_trust, auth_plain, auth_md5, auth_scram,
	auth_cert, auth_hba, auth_peer, auth_ldap, auth_pam;

struct derivation;

struct event;
struct external_auth;

struct lookup;

/* What a login needs to remember; lives from the startup packet to the welcome. */
struct login {
	const struct auth_method *method;
	enum reason refusal;
	uint32_t version; /* of the protocol that is spoken */
	struct user *mock; /* owned: the client's user, if the name is unknown */
	struct credential
		*credential; /* counted: told to this login; NULL: the user's counts */
	struct lookup *lookup; /* that it waits for, LOOKING_UP; NULL: none */
	TAILQ_ENTRY(login) in_lookup;
	struct client_link *client; /* whose it is; set while in a look-up */
	usec_t queued_at, queued; /* since when, and how long in all, it waits for a server */
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

/* The method that an auth_type names. */
const struct auth_method *auth_method_of(enum auth_type type);

/*
 * Load what the methods need that this configuration names. False: it cannot be put in force, and
 * `why` says what is missing.
 */
bool auth_load(const struct snapshot *config, char *why, size_t size);

/*
 * The method that the HBA file has for this client as this user, who may not be the one in the
 * end. NULL: no rule fits, or none of ours.
 */
const struct auth_method *auth_hba_method(const struct client_link *client, const char *user);

/* The method of a rule by its number in the file; NULL behind the last. */
const struct auth_method *auth_hba_method_at(const struct hba *hba, size_t index);

/*
 * The authority of the method by which a client of this name will have to prove itself. NULL: it
 * is one of ours.
 */
const char *auth_authority(const struct client_link *client, const char *user);

/* Is this the body of a message with one password, not too long? */
bool auth_is_password(const uint8_t *body, size_t length);

/* Send an authentication request. False: the client was closed. */
bool auth_ask(struct client_link *client, unsigned request, const void *data, size_t length);

/* Is there such a user, be it one without a secret? */
bool auth_is_known(const struct client_link *client);

/* The secret to check the client against; NULL for unknown users and those without one. */
const char *auth_secret(const struct client_link *client);

/* The keys that belong to that secret, made if need be and lent; NULL when there is no memory. */
struct user_keys *auth_keys(struct client_link *client);

/* Compare in constant time, whatever the lengths. */
bool auth_equal(const char *a, const char *b);

/* Refuse for the method's own reason. */
enum auth_result auth_refuse(struct client_link *client);

#endif
