/* SPDX-License-Identifier: ISC */
/*
 * What a text may change beyond its own words, in pools where texts are watched (CLIENT_WATCHED): by
 * functions of the database, and of sequences if these are in pin_causes.
 */
#ifndef PGUSHER_MODEL_STATE_WATCHED_TEXT_H
#define PGUSHER_MODEL_STATE_WATCHED_TEXT_H

#include "model/pool.h"
#include "wire/session_topics.h"

/*
 * Returns the topics of this text for a client of the pool. What they are is the same for all pools of
 * the database, until session_functions.version changes.
 */
session_topics watched_text_topics(const struct pool *pool, const char *text, size_t length);

#endif
