/* SPDX-License-Identifier: ISC */
#include "model/state/watched_text.h"

#include "wire/sequence_words.h"

session_topics watched_text_topics(const struct pool *pool, const char *text, size_t length)
{
	session_topics topics = 0;

	if (pool_watches_functions(pool))
		topics = session_functions_in(&pool->database->functions, text, length);
	if ((pool->pin_causes & TOPIC_SEQUENCES) && sequence_words_in(text, length))
		topics |= TOPIC_SEQUENCES;
	return topics;
}
