/* SPDX-License-Identifier: ISC */
/*
 * Iterator over the `key=value` pairs of a connect string, the form of values in [databases],
 * [users] and [peers].
 *
 * Only spaces separate pairs. A value may be in single quotes, in which '' is one quote; any
 * character after the closing quote is taken as the separator. Empty values and keys are
 * malformed; an empty string has no pairs. A ; or # where a key would begin starts a comment,
 * because no key has one; in a value they mean themselves.
 */
#ifndef PGUSHER_CONFIG_CONNSTR_H
#define PGUSHER_CONFIG_CONNSTR_H

enum connstr_result { CONNSTR_PAIR, CONNSTR_END, CONNSTR_MALFORMED };

struct connstr {
	char *at; /* the text not read yet */
	const char *key, *value; /* of the last pair; they point into the text */
};

/*
 * Start a walk. The text is owned by the caller, is modified by the walk and must outlive it.
 */
void connstr_init(struct connstr *walk, char *text);

/* Read the next pair. The walk ends at CONNSTR_MALFORMED. */
enum connstr_result connstr_next(struct connstr *walk);

#endif
