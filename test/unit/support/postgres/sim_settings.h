/* SPDX-License-Identifier: ISC */
/*
 * The settings of one simulated PostgreSQL session (see sim_postgres), with the rules of
 * transactions: SET, SET LOCAL, RESET, and what COMMIT, ROLLBACK and savepoints make of them. And three
 * things that cannot follow a client to another session: a temporary table, a cursor WITH HOLD and an
 * advisory lock.
 */
#ifndef PGUSHER_TEST_SIM_SETTINGS_H
#define PGUSHER_TEST_SIM_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"

enum { SIM_VALUE = 32, SIM_SAVEPOINTS = 6 };

enum sim_setting {
	SIM_APPLICATION_NAME, /* the only one that is reported */
	SIM_WORK_MEM,
	SIM_STATEMENT_TIMEOUT,
	SIM_TENANT, /* app.tenant, which pg_settings does not show */
	SIM_SCHEMA, /* app.Schema, likewise */
	SIM_SEARCH_PATH,
	SIM_ROLE,
	SIM_SETTINGS,
};

/* The values at one moment. */
struct sim_values {
	char value[SIM_SETTINGS][SIM_VALUE]; /* in force */
	char kept[SIM_SETTINGS]
		 [SIM_VALUE]; /* what a COMMIT leaves: differs after a SET LOCAL */
	bool is_set[SIM_SETTINGS]; /* its source is the session */
	bool keeps_set[SIM_SETTINGS]; /* likewise after a COMMIT */
	bool table; /* there is a temporary table */
	bool cursor; /* and a cursor WITH HOLD */
	unsigned channels; /* on which the session listens: bits of sim_notes_bit() */
	unsigned notified; /* number of notifications of this transaction */
};

struct sim_settings {
	struct sim_values now;
	struct sim_values before; /* the transaction */
	struct {
		char name[8];
		struct sim_values values;
	} savepoints[SIM_SAVEPOINTS];
	unsigned depth; /* number of savepoints */
	bool lock; /* the session has an advisory lock, which no ROLLBACK undoes */
	char start[SIM_VALUE]; /* application_name after RESET */
	char reported[SIM_VALUE];
};

/* The name of a setting as clients write it, and its value in a new session. */
const char *sim_setting_name(enum sim_setting setting);

/* Starts a session with this application_name. */
void sim_settings_start(struct sim_settings *settings, const char *application_name);

/* The setting with this name, which may be in quotes and in any letter case. Fails if there is none. */
enum sim_setting sim_setting_of(const char *name, size_t length);

/* SET and SET LOCAL: the value is as in SQL, with its quotes or without. */
void sim_settings_set(struct sim_settings *settings, enum sim_setting setting,
	const char *value, size_t length, bool local);

/* RESET, and RESET ALL. DISCARD ALL does the latter too. */
void sim_settings_reset(struct sim_settings *settings, enum sim_setting setting);
void sim_settings_reset_all(struct sim_settings *settings);

/*
 * As the pooler's query after a RESET does: set this one, unless it was SET in the session. One that
 * pg_settings does not show must have its value after RESET.
 */
void sim_settings_restore(struct sim_settings *settings, const char *name, const char *value,
	const char *after_reset);

void sim_settings_commit(struct sim_settings *settings);
void sim_settings_rollback(struct sim_settings *settings);

/* Savepoints. These two return false if there is none with this name. */
bool sim_settings_save(struct sim_settings *settings, const char *name);
bool sim_settings_rollback_to(struct sim_settings *settings, const char *name);
bool sim_settings_release(struct sim_settings *settings, const char *name);

/* Closes the cursor, which no ROLLBACK undoes. */
void sim_settings_close_cursor(struct sim_settings *settings);

/* The session has no table, no cursor and no lock any more. */
void sim_settings_drop_objects(struct sim_settings *settings);

/* All values in one text, with the table, the cursor and the lock. */
void sim_settings_show(const struct sim_settings *settings, char *out, size_t size);

/*
 * The value as pg_settings shows it, without a unit. Returns false if it does not show the setting,
 * or as one that was not SET in the session.
 */
bool sim_settings_list(
	const struct sim_settings *settings, enum sim_setting setting, char *out, size_t size);

#endif
