/* SPDX-License-Identifier: ISC */
#include "base/log_repeats.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum {
	KIND_SIZE = 96,
	SLOTS = 128,
	/* How many places a line may have: then the one that has been quiet longest makes room. */
	PLACES = 8,
	/* So many peers may each have their full number of lines of one kind. */
	PEERS = 20,
};

/* Lines alike of the present second; about nobody in particular: all of their kind. */
struct slot {
	bool used;
	char kind[KIND_SIZE];
	usec_t began; /* the second */
	unsigned written;
	struct log_left_out left_out;
};

/* When it is, and who is told. */
struct telling {
	usec_t now;
	log_repeats_tell *tell;
	void *context;
};

static struct slot slots[SLOTS];
static unsigned untold; /* slots in which something was left out */

/* FNV-1a: who makes names collide gets lines of his own left out, or one more of them. */
static uint32_t hash_text(uint32_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619U;
	return hash ^ 0xff;
}

static bool is_over(const struct slot *slot, usec_t now)
{
	return now - slot->began >= USEC_PER_SEC || now < slot->began;
}

static bool is_of_kind(const struct slot *slot)
{
	return slot->left_out.who[0] == '\0';
}

/* Telling is a line too, of the second that begins. */
static void tell_slot(struct slot *slot, const struct telling *telling)
{
	slot->began = telling->now;
	slot->written = 0;
	if (slot->left_out.count == 0)
		return;
	telling->tell(&slot->left_out, telling->context);
	slot->left_out.count = 0;
	slot->written = 1;
	untold--;
}

/* Should this slot rather than that one make room? A kind as a whole stays to the last. */
static bool goes_before(const struct slot *slot, const struct slot *other)
{
	if (!slot->used || !other->used)
		return other->used;
	if (is_of_kind(slot) != is_of_kind(other))
		return is_of_kind(other);
	return slot->began < other->began;
}

/* The place of these lines, with room made for them. */
static struct slot *find_slot(
	const struct log_likeness *likeness, const struct telling *telling)
{
	const uint32_t hash = hash_text(hash_text(2166136261U, likeness->kind), likeness->who);
	struct slot *first = NULL;

	for (unsigned i = 0; i < PLACES; i++) {
		struct slot *slot = &slots[(hash + i) % SLOTS];

		if (slot->used && strcmp(slot->kind, likeness->kind) == 0 &&
			strcmp(slot->left_out.who, likeness->who) == 0)
			return slot;
		if (!first || goes_before(slot, first))
			first = slot;
	}
	tell_slot(first, telling);
	memset(first, 0, sizeof(*first));
	(void)text_copy(first->kind, sizeof(first->kind), likeness->kind);
	(void)text_copy(first->left_out.who, sizeof(first->left_out.who), likeness->who);
	return first;
}

/* The slot, in which the present second counts. */
static struct slot *open_slot(
	const struct log_likeness *likeness, const struct telling *telling)
{
	struct slot *slot = find_slot(likeness, telling);

	if (!slot->used || is_over(slot, telling->now))
		tell_slot(slot, telling);
	slot->used = true;
	return slot;
}

static void leave_out(struct slot *slot, enum log_level level, const char *text)
{
	const size_t kept = text_utf8_cut(text, strlen(text), LOG_REPEATS_TEXT_SIZE - 1);

	if (slot->left_out.count++ == 0)
		untold++;
	slot->left_out.level = level;
	memcpy(slot->left_out.text, text, kept);
	slot->left_out.text[kept] = '\0';
}

/* Is there room for one more line like this? If not it is left out. */
static bool has_room(const struct log_likeness *likeness, unsigned allowed,
	enum log_level level, const char *text, const struct telling *telling)
{
	struct slot *slot = open_slot(likeness, telling);

	if (slot->written < allowed)
		return true;
	leave_out(slot, level, text);
	return false;
}

static void count(const struct log_likeness *likeness, const struct telling *telling)
{
	open_slot(likeness, telling)->written++;
}

bool log_repeats_allow(const struct log_likeness *likeness, enum log_level level,
	const char *text, int allowed, usec_t now, log_repeats_tell *tell, void *context)
{
	char kind[KIND_SIZE], who[LOG_REPEATS_WHO_SIZE];
	const struct log_likeness one = {.kind = kind, .who = who};
	const struct log_likeness all = {.kind = kind, .who = ""};
	const struct telling telling = {now, tell, context};
	const unsigned most = (unsigned)allowed;

	(void)text_copy(kind, sizeof(kind), likeness->kind);
	(void)text_copy(who, sizeof(who), likeness->who);
	/* A line that its kind has no room for is no peer's: telling of each would be a flood. */
	if (!has_room(&all, PEERS * most, level, text, &telling) ||
		!has_room(&one, most, level, text, &telling))
		return false;
	count(&all, &telling);
	if (who[0] != '\0')
		count(&one, &telling);
	return true;
}

void log_repeats_flush(usec_t now, log_repeats_tell *tell, void *context)
{
	const struct telling telling = {now, tell, context};

	for (unsigned i = 0; i < SLOTS && untold > 0; i++) {
		if (slots[i].left_out.count > 0 && is_over(&slots[i], now))
			tell_slot(&slots[i], &telling);
	}
}
