/* SPDX-License-Identifier: ISC */
/*
 * Checks of what cannot be: a failed one ends the process.
 *
 * For start-up and for states that no peer can lead to. On a path that a connection can reach,
 * close that connection instead.
 */
#ifndef PGUSHER_BASE_CHECK_H
#define PGUSHER_BASE_CHECK_H

/* Always compiled in. A failure logs `@file:line in function f(): check failed: condition`. */
#define CHECK(condition)                                                                       \
	((condition) ? (void)0 : check_failed(__FILE__, __LINE__, __func__, #condition))

/* Log and abort(); use CHECK(). */
_Noreturn void check_failed(
	const char *file, int line, const char *function, const char *condition);

#endif
