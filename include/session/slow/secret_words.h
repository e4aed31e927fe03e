/* SPDX-License-Identifier: ISC */
/*
 * Finds words in an SQL text behind which a secret may stand, so that logs can leave it out: as in
 * ALTER ROLE a PASSWORD 'b', CREATE SUBSCRIPTION ... CONNECTION 'password=b', dblink('... password=b').
 */
#ifndef PGUSHER_SESSION_SLOW_SECRET_WORDS_H
#define PGUSHER_SESSION_SLOW_SECRET_WORDS_H

#include <stddef.h>

/*
 * Returns how many bytes of the text may be shown: up to the end of the first such word (passw...,
 * secret, in any letter case), or all if there is none.
 */
size_t secret_words_safe_length(const char *text, size_t length);

#endif
