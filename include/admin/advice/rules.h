/* SPDX-License-Identifier: ISC */
/*
 * The rules of the advisor: each looks at one object in a sample and notes what is wrong there. The file of
 * a rule has its sentences too.
 */
#ifndef PGUSHER_ADMIN_ADVICE_RULES_H
#define PGUSHER_ADMIN_ADVICE_RULES_H

#include "admin/advice/findings.h"
#include "model/statistics/labels.h"
#include "model/statistics/meter.h"

/* The counters of the process that rules look at. */
struct process_meters {
	struct meter rejected[CLIENT_REJECTIONS], auth_failures, log_lost;
};

struct advisor {
	struct registry *registry;
	struct findings findings;
	usec_t looked_at; /* the last sample; 0: none yet */
	usec_t turned_at, turned_before; /* the last two turns of all meters */
	bool turns; /* in this sample */
	struct process_meters meters;
	/* The sample in which prepared statements of each worker were counted; 0: none. */
	usec_t texts_at[WORKERS_MOST];
	int64_t texts[WORKERS_MOST];
	/* Of each worker: processor time at the last sample, and what part of a processor that was. */
	usec_t busy[WORKERS_MOST];
	int busy_percent[WORKERS_MOST];
	unsigned cores; /* of this machine; 0: not asked for yet */
};

/* --- measures: src/admin/advice/measures.c ------------------------------------------------ */

/* How long the meters have counted: half a minute to a minute. */
usec_t measures_window(const struct advisor *advisor);

/* Returns what the meter tells of the counter; turns it if that is due. */
uint64_t measures_growth(const struct advisor *advisor, struct meter *meter, uint64_t count);

/* Returns how often that is in 1,000 seconds; 0 while the time is too short to tell. */
int64_t measures_rate(const struct advisor *advisor, uint64_t growth);

/* Update advisor.busy and busy_percent. */
void measures_take_busy(struct advisor *advisor);

/* Returns the cores that this process may use. */
unsigned measures_own_cores(struct advisor *advisor);

/* Returns the cores of the machine of this server's host; 0: not known. */
unsigned measures_cores(struct advisor *advisor, const struct server_link *server);

/* --- rules, by the file that has them ----------------------------------------------------- */

void process_advice_look(struct advisor *advisor);
void host_advice_look(struct advisor *advisor, const struct host *known);
/* The hosts of a database with max_standby_lag. */
void host_advice_look_at_lag(struct advisor *advisor, struct pool *pool);
void database_advice_look(struct advisor *advisor, struct database *database);
void limit_advice_look(struct advisor *advisor, struct pool *pool);
void pool_advice_look(struct advisor *advisor, struct pool *pool);
/* A pool in which clients wait for servers, all of which are in use. */
void full_advice_look(struct advisor *advisor, struct pool *pool);
void transaction_advice_look(struct advisor *advisor, struct pool *pool);

/* --- sentences: append that of the finding if its kind is of this file, and return true --- */

bool process_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool host_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool database_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool limit_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool pool_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool full_advice_write(const struct advice *finding, bool with_names, struct buffer *out);
bool transaction_advice_write(
	const struct advice *finding, bool with_names, struct buffer *out);

/* ` by application 'Y' (10.0.0.1)`, or nothing. Sets these of a client. */
void transaction_advice_set_client(struct advice *finding, const struct client_link *client);
void transaction_advice_write_client(
	const struct advice *finding, bool with_names, struct buffer *out);

#endif
