/* SPDX-License-Identifier: ISC */
/*
 * The labels of metrics about connections: for each metric an enum and an array with its words.
 * model/statistics/counters counts by them.
 */
#ifndef PGUSHER_MODEL_STATISTICS_LABELS_H
#define PGUSHER_MODEL_STATISTICS_LABELS_H

enum server_closing {
	SERVER_CLOSED_LIFETIME,
	SERVER_CLOSED_IDLE,
	SERVER_CLOSED_UNCLEAN,
	SERVER_CLOSED_ERROR,
	SERVER_CLOSED_CLIENT_GONE,
	SERVER_CLOSED_RELOAD,
	SERVER_CLOSED_DNS,
	SERVER_CLOSED_ROLE,
	SERVER_CLOSED_RECONNECT,
	SERVER_CLOSED_KILL,
	SERVER_CLOSED_CHECK_FAILED,
	SERVER_CLOSED_SHUTDOWN,
	SERVER_CLOSED_OTHER,
	SERVER_CLOSINGS,
};

enum client_closing {
	CLIENT_CLOSED_QUIT,
	CLIENT_CLOSED_EOF,
	CLIENT_CLOSED_RESET,
	CLIENT_CLOSED_QUERY_TIMEOUT,
	CLIENT_CLOSED_QUERY_WAIT_TIMEOUT,
	CLIENT_CLOSED_IDLE_TIMEOUT,
	CLIENT_CLOSED_IDLE_TX_TIMEOUT,
	CLIENT_CLOSED_TX_TIMEOUT,
	CLIENT_CLOSED_LOGIN_TIMEOUT,
	CLIENT_CLOSED_AUTH,
	CLIENT_CLOSED_PROTOCOL,
	CLIENT_CLOSED_KILL,
	CLIENT_CLOSED_SHUTDOWN,
	CLIENT_CLOSED_OTHER,
	CLIENT_CLOSINGS,
};

/* Clients that were rejected for a reason other than a failed authentication. */
enum client_rejection {
	CLIENT_REJECTED_MAX_CLIENT_CONN,
	CLIENT_REJECTED_ADDRESS_LIMIT,
	CLIENT_REJECTED_DB_LIMIT,
	CLIENT_REJECTED_USER_LIMIT,
	CLIENT_REJECTED_HBA,
	CLIENT_REJECTED_TLS_REQUIRED,
	CLIENT_REJECTED_FD_LIMIT,
	CLIENT_REJECTED_DISABLED,
	CLIENT_REJECTED_SHUTDOWN,
	CLIENT_REJECTED_PROTOCOL,
	CLIENT_REJECTIONS,
};

enum auth_failure {
	AUTH_FAILED_PASSWORD,
	AUTH_FAILED_NO_USER,
	AUTH_FAILED_HBA,
	AUTH_FAILED_EXPIRED,
	AUTH_FAILED_METHOD,
	AUTH_FAILED_MALFORMED,
	AUTH_FAILURES,
};

enum protocol_side { PROTOCOL_CLIENT, PROTOCOL_SERVER, PROTOCOL_SIDES };

enum protocol_error {
	PROTOCOL_ERROR_LENGTH,
	PROTOCOL_ERROR_TYPE,
	PROTOCOL_ERROR_ORDER,
	PROTOCOL_ERROR_AUTH,
	PROTOCOL_ERROR_STUFFING, /* plain bytes after a request for encryption */
	PROTOCOL_ERROR_OTHER,
	PROTOCOL_ERRORS,
};

enum cancel_outcome {
	CANCEL_FORWARDED,
	CANCEL_LATE, /* the query had ended already */
	CANCEL_UNKNOWN_KEY,
	CANCEL_TIMEOUT,
	CANCEL_FAILED,
	CANCEL_OUTCOMES,
};

enum reset_outcome { RESET_OK, RESET_FAILED, RESET_OUTCOMES };

/* Why a server could not be released without further steps. */
enum unclean_release {
	UNCLEAN_OPEN_TX,
	UNCLEAN_COPY,
	UNCLEAN_PENDING,
	UNCLEAN_OUT_OF_SYNC,
	UNCLEAN_RELEASES,
};

/* Why a query ended before a server received any of it, while its client stayed connected. */
enum unsent_ending {
	UNSENT_CANCELED,
	UNSENT_QUEUE_FULL,
	UNSENT_QUERY_WAIT_TIMEOUT,
	UNSENT_QUERY_TIMEOUT,
	UNSENT_SETTING_REFUSED,
	UNSENT_ENDINGS,
};

enum connect_outcome {
	CONNECT_OK,
	CONNECT_REFUSED,
	CONNECT_TIMED_OUT,
	CONNECT_AUTH,
	CONNECT_TLS,
	CONNECT_DNS,
	CONNECT_OTHER,
	CONNECT_OUTCOMES,
};

enum login_method {
	LOGIN_TRUST,
	LOGIN_PLAIN,
	LOGIN_MD5,
	LOGIN_SCRAM,
	LOGIN_CERT,
	LOGIN_PAM,
	LOGIN_LDAP,
	LOGIN_PEER,
	LOGIN_METHODS,
};

enum login_outcome { LOGIN_OK, LOGIN_DENIED, LOGIN_TIMEOUT, LOGIN_CLOSED, LOGIN_OUTCOMES };

enum reload_outcome { RELOAD_OK, RELOAD_ERROR, RELOAD_OUTCOMES };

/* The words of the labels. */
extern const char *const server_closing_labels[SERVER_CLOSINGS];
extern const char *const client_closing_labels[CLIENT_CLOSINGS];
extern const char *const client_rejection_labels[CLIENT_REJECTIONS];
extern const char *const auth_failure_labels[AUTH_FAILURES];
extern const char *const protocol_side_labels[PROTOCOL_SIDES];
extern const char *const protocol_error_labels[PROTOCOL_ERRORS];
extern const char *const cancel_outcome_labels[CANCEL_OUTCOMES];
extern const char *const reset_outcome_labels[RESET_OUTCOMES];
extern const char *const unclean_release_labels[UNCLEAN_RELEASES];
extern const char *const unsent_ending_labels[UNSENT_ENDINGS];
extern const char *const connect_outcome_labels[CONNECT_OUTCOMES];
extern const char *const login_method_labels[LOGIN_METHODS];
extern const char *const login_outcome_labels[LOGIN_OUTCOMES];
extern const char *const reload_outcome_labels[RELOAD_OUTCOMES];

/* Returns the index of a name among `count` labels; `otherwise` if it is not there. */
unsigned label_find(
	const char *const *labels, unsigned count, const char *name, unsigned otherwise);

#endif
