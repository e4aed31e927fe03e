/* SPDX-License-Identifier: ISC */
/*
 * One entry of [users]: sizes, limits and timeouts of that user. Immutable; owned by its
 * configuration. An entry here does not let the user log in.
 */
#ifndef PGUSHER_CONFIG_USER_CONFIG_H
#define PGUSHER_CONFIG_USER_CONFIG_H

#include "config/ini.h"
#include "config/settings.h"

struct entry_grammar;

enum { USER_NAME_LIMIT = 127 }; /* bytes */

struct user_config {
	const char *name;
	enum pool_mode pool_mode; /* POOL_MODE_INHERIT: inherit */

	/* As server user: apply to its pools. */
	int pool_size; /* -1: inherit; 0: no limit; POOL_SIZE_AUTO */
	int reserve_pool_size; /* -1: inherit; 0: none */
	int max_pool_waiters; /* -1: inherit; 0: no limit */
	int max_user_connections; /* 0: inherit */
	int pool_weight; /* 0: inherit */
	usec_t query_timeout, idle_transaction_timeout, transaction_timeout; /* 0: inherit */

	/* As login user: apply to its clients. */
	int max_user_client_connections; /* 0: inherit */
	usec_t client_idle_timeout; /* 0: inherit */
	usec_t query_wait_timeout; /* -1: inherit; 0: no limit */
	enum session_state session_state; /* SESSION_STATE_INHERIT: inherit */
	enum wait_action query_wait_timeout_action; /* WAIT_ACTION_INHERIT: inherit */
};

/*
 * Parse an entry. Returns NULL if it has mistakes (added to the problems) or when out of
 * memory. The caller frees it.
 */
struct user_config *user_config_parse(const struct ini_place *place, const char *name,
	const char *text, struct problems *problems);

/* Free; NULL is allowed. */
void user_config_free(struct user_config *config);

/* The keys of an entry. */
const struct entry_grammar *user_config_grammar(void);

#endif
