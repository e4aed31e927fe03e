/* SPDX-License-Identifier: ISC */
/*
 * Walks over the `key=value` pairs of a connect string, as values in [databases], [users] and
 * [peers] are.
 *
 * Only the space separates. A value may stand in single quotes, in which '' is one quote; the
 * character behind the closing quote is taken as the separator, whatever it is. Empty values
 * and keys are malformed; an empty string has no pairs.
 */
#ifndef PGUSHER_CONFIG_CONNSTR_H
#define PGUSHER_CONFIG_CONNSTR_H

enum connstr_result { CONNSTR_PAIR, CONNSTR_END, CONNSTR_MALFORMED };

struct connstr {
	char *at; /* what has not been read yet */
	const char *key, *value; /* of the last pair; they point into the text */
};

/* Start; the text is the caller's, is cut into pieces on the way and must outlive the walk. */
void connstr_init(struct connstr *walk, char *text);

/* Go to the next pair. After CONNSTR_MALFORMED the walk is over. */
enum connstr_result connstr_next(struct connstr *walk);

#endif
