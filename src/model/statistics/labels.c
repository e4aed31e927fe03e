/* SPDX-License-Identifier: ISC */
#include "model/statistics/labels.h"

#include <string.h>

const char *const server_closing_labels[SERVER_CLOSINGS] = {
	[SERVER_CLOSED_LIFETIME] = "lifetime",
	[SERVER_CLOSED_IDLE] = "idle",
	[SERVER_CLOSED_UNCLEAN] = "unclean",
	[SERVER_CLOSED_ERROR] = "server_error",
	[SERVER_CLOSED_CLIENT_GONE] = "client_gone",
	[SERVER_CLOSED_RELOAD] = "reload",
	[SERVER_CLOSED_DNS] = "dns",
	[SERVER_CLOSED_ROLE] = "role",
	[SERVER_CLOSED_RECONNECT] = "reconnect",
	[SERVER_CLOSED_KILL] = "kill",
	[SERVER_CLOSED_CHECK_FAILED] = "check_failed",
	[SERVER_CLOSED_SHUTDOWN] = "shutdown",
	[SERVER_CLOSED_OTHER] = "other",
};

const char *const client_closing_labels[CLIENT_CLOSINGS] = {
	[CLIENT_CLOSED_QUIT] = "quit",
	[CLIENT_CLOSED_EOF] = "eof",
	[CLIENT_CLOSED_RESET] = "reset",
	[CLIENT_CLOSED_QUERY_TIMEOUT] = "query_timeout",
	[CLIENT_CLOSED_QUERY_WAIT_TIMEOUT] = "query_wait_timeout",
	[CLIENT_CLOSED_IDLE_TIMEOUT] = "idle_timeout",
	[CLIENT_CLOSED_IDLE_TX_TIMEOUT] = "idle_tx_timeout",
	[CLIENT_CLOSED_TX_TIMEOUT] = "tx_timeout",
	[CLIENT_CLOSED_LOGIN_TIMEOUT] = "login_timeout",
	[CLIENT_CLOSED_AUTH] = "auth",
	[CLIENT_CLOSED_PROTOCOL] = "protocol",
	[CLIENT_CLOSED_KILL] = "kill",
	[CLIENT_CLOSED_SHUTDOWN] = "shutdown",
	[CLIENT_CLOSED_OTHER] = "other",
};

const char *const client_rejection_labels[CLIENT_REJECTIONS] = {
	[CLIENT_REJECTED_MAX_CLIENT_CONN] = "max_client_conn",
	[CLIENT_REJECTED_ADDRESS_LIMIT] = "address_limit",
	[CLIENT_REJECTED_DB_LIMIT] = "db_limit",
	[CLIENT_REJECTED_USER_LIMIT] = "user_limit",
	[CLIENT_REJECTED_HBA] = "hba",
	[CLIENT_REJECTED_TLS_REQUIRED] = "tls_required",
	[CLIENT_REJECTED_FD_LIMIT] = "fd_limit",
	[CLIENT_REJECTED_DISABLED] = "disabled",
	[CLIENT_REJECTED_SHUTDOWN] = "shutdown",
	[CLIENT_REJECTED_PROTOCOL] = "protocol",
};

const char *const auth_failure_labels[AUTH_FAILURES] = {
	[AUTH_FAILED_PASSWORD] = "password",
	[AUTH_FAILED_NO_USER] = "no_user",
	[AUTH_FAILED_HBA] = "hba",
	[AUTH_FAILED_EXPIRED] = "expired",
	[AUTH_FAILED_METHOD] = "method",
	[AUTH_FAILED_MALFORMED] = "malformed",
};

const char *const protocol_side_labels[PROTOCOL_SIDES] = {
	[PROTOCOL_CLIENT] = "client",
	[PROTOCOL_SERVER] = "server",
};

const char *const protocol_error_labels[PROTOCOL_ERRORS] = {
	[PROTOCOL_ERROR_LENGTH] = "length",
	[PROTOCOL_ERROR_TYPE] = "type",
	[PROTOCOL_ERROR_ORDER] = "order",
	[PROTOCOL_ERROR_AUTH] = "auth",
	[PROTOCOL_ERROR_STUFFING] = "stuffing",
	[PROTOCOL_ERROR_OTHER] = "other",
};

const char *const cancel_outcome_labels[CANCEL_OUTCOMES] = {
	[CANCEL_FORWARDED] = "forwarded",
	[CANCEL_LATE] = "late",
	[CANCEL_UNKNOWN_KEY] = "unknown_key",
	[CANCEL_TIMEOUT] = "timeout",
	[CANCEL_FAILED] = "failed",
};

const char *const reset_outcome_labels[RESET_OUTCOMES] = {
	[RESET_OK] = "ok",
	[RESET_FAILED] = "failed",
};

const char *const unclean_release_labels[UNCLEAN_RELEASES] = {
	[UNCLEAN_OPEN_TX] = "open_tx",
	[UNCLEAN_COPY] = "copy",
	[UNCLEAN_PENDING] = "pending",
	[UNCLEAN_OUT_OF_SYNC] = "out_of_sync",
};

const char *const unsent_ending_labels[UNSENT_ENDINGS] = {
	[UNSENT_CANCELED] = "canceled",
	[UNSENT_QUEUE_FULL] = "queue_full",
	[UNSENT_QUERY_WAIT_TIMEOUT] = "query_wait_timeout",
	[UNSENT_QUERY_TIMEOUT] = "query_timeout",
	[UNSENT_SETTING_REFUSED] = "setting_refused",
};

const char *const connect_outcome_labels[CONNECT_OUTCOMES] = {
	[CONNECT_OK] = "ok",
	[CONNECT_REFUSED] = "refused",
	[CONNECT_TIMED_OUT] = "timeout",
	[CONNECT_AUTH] = "auth",
	[CONNECT_TLS] = "tls",
	[CONNECT_DNS] = "dns",
	[CONNECT_OTHER] = "other",
};

const char *const login_method_labels[LOGIN_METHODS] = {
	[LOGIN_TRUST] = "trust",
	[LOGIN_PLAIN] = "plain",
	[LOGIN_MD5] = "md5",
	[LOGIN_SCRAM] = "scram",
	[LOGIN_CERT] = "cert",
	[LOGIN_PAM] = "pam",
	[LOGIN_LDAP] = "ldap",
	[LOGIN_PEER] = "peer",
};

const char *const login_outcome_labels[LOGIN_OUTCOMES] = {
	[LOGIN_OK] = "ok",
	[LOGIN_DENIED] = "denied",
	[LOGIN_TIMEOUT] = "timeout",
	[LOGIN_CLOSED] = "closed",
};

const char *const reload_outcome_labels[RELOAD_OUTCOMES] = {
	[RELOAD_OK] = "ok",
	[RELOAD_ERROR] = "error",
};

unsigned label_find(
	const char *const *labels, unsigned count, const char *name, unsigned otherwise)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(labels[i], name) == 0)
			return i;
	}
	return otherwise;
}
