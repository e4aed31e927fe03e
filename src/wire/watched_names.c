/* SPDX-License-Identifier: ISC */
#include "wire/watched_names.h"

#include <stdlib.h>
#include <string.h>

/* The first size of the table; it is doubled when it has as many names as buckets. */
enum { BUCKETS_LEAST = 64 };

/* FNV-1a. The names come from the operator, and from users with the right to create functions. */
#define HASH_START 2166136261u
#define HASH_PRIME 16777619u

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static unsigned add_to_hash(unsigned hash, char c)
{
	return (hash ^ (unsigned char)c) * HASH_PRIME;
}

static unsigned hash_of(const char *text, size_t length)
{
	unsigned hash = HASH_START;

	for (size_t i = 0; i < length; i++)
		hash = add_to_hash(hash, lower(text[i]));
	return hash;
}

static struct watched_name *name_at(const struct buffer *array, unsigned index)
{
	return (struct watched_name *)(void *)array->data + index;
}

static unsigned count_of(const struct buffer *array)
{
	return (unsigned)(array->length / sizeof(struct watched_name));
}

unsigned watched_names_count(const struct watched_names *names)
{
	return count_of(&names->words) + count_of(&names->parts);
}

/* --- adding ------------------------------------------------------------------------------- */

static void link_word(struct watched_names *names, unsigned index)
{
	struct watched_name *name = name_at(&names->words, index);
	const unsigned hash = hash_of(name->text, name->length);
	uint16_t *bucket = &names->buckets[hash & (names->bucket_count - 1)];

	name->next = *bucket;
	*bucket = (uint16_t)(index + 1);
}

/* Make the table larger if it has as many names as buckets. */
static bool have_buckets(struct watched_names *names)
{
	const unsigned count = count_of(&names->words);
	unsigned size = names->bucket_count ? 2 * names->bucket_count : BUCKETS_LEAST;
	uint16_t *buckets;

	if (count < names->bucket_count)
		return true;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets)
		return false;
	free(names->buckets);
	names->buckets = buckets;
	names->bucket_count = size;
	for (unsigned i = 0; i < count; i++)
		link_word(names, i);
	return true;
}

static bool is_word(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if (!is_in_word(name[i]))
			return false;
	}
	return true;
}

bool watched_names_add(struct watched_names *names, const char *name, size_t length,
	session_topics topics, bool anywhere)
{
	const bool word = !anywhere && is_word(name, length);
	struct buffer *array = word ? &names->words : &names->parts;
	struct watched_name entry = {.topics = topics, .length = (uint8_t)length};

	if (length == 0 || length > WATCHED_NAME_MAX ||
		watched_names_count(names) >= WATCHED_NAMES_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		entry.text[i] = lower(name[i]);
	if ((word && !have_buckets(names)) || !buffer_append(array, &entry, sizeof(entry)))
		return false;
	if (word)
		link_word(names, count_of(array) - 1);
	return true;
}

/* --- finding ------------------------------------------------------------------------------ */

static bool is_here(const char *text, const struct watched_name *name)
{
	for (unsigned i = 0; i < name->length; i++) {
		if (lower(text[i]) != name->text[i])
			return false;
	}
	return true;
}

static session_topics topics_of_word(
	const struct watched_names *names, const char *word, size_t length, unsigned hash)
{
	unsigned place = names->buckets[hash & (names->bucket_count - 1)];
	session_topics topics = 0;

	while (place > 0) {
		const struct watched_name *name = name_at(&names->words, place - 1);

		if (name->length == length && is_here(word, name))
			topics |= name->topics;
		place = name->next;
	}
	return topics;
}

static session_topics find_words(
	const struct watched_names *names, const char *at, const char *end)
{
	session_topics topics = 0;

	while (at < end) {
		const char *word = at;
		unsigned hash = HASH_START;
		size_t length;

		for (; at < end && is_in_word(*at); at++) {
			if (at - word < WATCHED_NAME_MAX)
				hash = add_to_hash(hash, lower(*at));
		}
		length = (size_t)(at - word);
		if (length > 0)
			topics |= topics_of_word(names, word,
				length < WATCHED_NAME_MAX ? length : WATCHED_NAME_MAX, hash);
		else
			at++;
	}
	return topics;
}

static bool has_part(const struct watched_name *part, const char *at, const char *end)
{
	for (; end - at >= part->length; at++) {
		if (lower(*at) == part->text[0] && is_here(at, part))
			return true;
	}
	return false;
}

session_topics watched_names_find(
	const struct watched_names *names, const char *text, size_t length)
{
	const char *end = text + strnlen(text, length);
	session_topics topics = 0;

	if (names->bucket_count > 0)
		topics = find_words(names, text, end);
	for (unsigned i = 0; i < count_of(&names->parts); i++) {
		const struct watched_name *part = name_at(&names->parts, i);

		if ((part->topics & ~topics) && has_part(part, text, end))
			topics |= part->topics;
	}
	return topics;
}

void watched_names_free(struct watched_names *names)
{
	buffer_free(&names->words);
	buffer_free(&names->parts);
	free(names->buckets);
	*names = (struct watched_names){0};
}
