/* SPDX-License-Identifier: ISC */
#include "base/log_repeats.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

enum {
	KIND_SIZE = 96,
	SLOTS = 128,
	/* Number of slots in which a line may be counted; the one idle longest is reused. */
	PLACES = 8,
	/* A kind as a whole has the limit of this many peers. */
	PEERS = 20,
};

/*
 * Counts similar lines of the present second. An empty `about`: counts all lines of the kind.
 */
struct slot {
	bool used;
	char kind[KIND_SIZE];
	usec_t began; /* start of the second */
	unsigned written;
	struct log_left_out left_out;
};

/* The time, and the callback that reports suppressed lines. */
struct reporting {
	usec_t now;
	log_repeats_report *report;
	void *context;
};

static struct slot slots[SLOTS];
static unsigned unreported; /* slots with suppressed lines that are not reported yet */

/*
 * FNV-1a. A peer that causes hash collisions only makes the log suppress or write one more of
 * its own lines.
 */
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
	return slot->left_out.about[0] == '\0';
}

/* The report counts as one line of the second that begins. */
static void report_slot(struct slot *slot, const struct reporting *reporting)
{
	slot->began = reporting->now;
	slot->written = 0;
	if (slot->left_out.count == 0)
		return;
	reporting->report(&slot->left_out, reporting->context);
	slot->left_out.count = 0;
	slot->written = 1;
	unreported--;
}

/*
 * Whether `slot` should be reused rather than `other`. Slots of a whole kind are reused last.
 */
static bool is_reused_before(const struct slot *slot, const struct slot *other)
{
	if (!slot->used || !other->used)
		return other->used;
	if (is_of_kind(slot) != is_of_kind(other))
		return is_of_kind(other);
	return slot->began < other->began;
}

/* Returns the slot of these lines; reuses another slot if they have none. */
static struct slot *find_slot(
	const struct log_likeness *likeness, const struct reporting *reporting)
{
	const uint32_t hash =
		hash_text(hash_text(2166136261U, likeness->kind), likeness->about);
	struct slot *reused = NULL;

	for (unsigned i = 0; i < PLACES; i++) {
		struct slot *slot = &slots[(hash + i) % SLOTS];

		if (slot->used && strcmp(slot->kind, likeness->kind) == 0 &&
			strcmp(slot->left_out.about, likeness->about) == 0)
			return slot;
		if (!reused || is_reused_before(slot, reused))
			reused = slot;
	}
	report_slot(reused, reporting);
	memset(reused, 0, sizeof(*reused));
	(void)text_copy(reused->kind, sizeof(reused->kind), likeness->kind);
	(void)text_copy(
		reused->left_out.about, sizeof(reused->left_out.about), likeness->about);
	return reused;
}

/* Returns the slot, reset if its second is over. */
static struct slot *open_slot(
	const struct log_likeness *likeness, const struct reporting *reporting)
{
	struct slot *slot = find_slot(likeness, reporting);

	if (!slot->used || is_over(slot, reporting->now))
		report_slot(slot, reporting);
	slot->used = true;
	return slot;
}

static void suppress(struct slot *slot, enum log_level level, const char *text)
{
	const size_t kept = text_utf8_cut(text, strlen(text), LOG_REPEATS_TEXT_SIZE - 1);

	if (slot->left_out.count++ == 0)
		unreported++;
	slot->left_out.level = level;
	memcpy(slot->left_out.text, text, kept);
	slot->left_out.text[kept] = '\0';
}

/* Returns whether one more similar line is allowed; counts it as suppressed if not. */
static bool is_allowed(const struct log_likeness *likeness, unsigned allowed,
	enum log_level level, const char *text, const struct reporting *reporting)
{
	struct slot *slot = open_slot(likeness, reporting);

	if (slot->written < allowed)
		return true;
	suppress(slot, level, text);
	return false;
}

static void count(const struct log_likeness *likeness, const struct reporting *reporting)
{
	open_slot(likeness, reporting)->written++;
}

bool log_repeats_allow(const struct log_likeness *likeness, enum log_level level,
	const char *text, int allowed, usec_t now, log_repeats_report *report, void *context)
{
	char kind[KIND_SIZE], about[LOG_REPEATS_ABOUT_SIZE];
	const struct log_likeness one = {.kind = kind, .about = about};
	const struct log_likeness all = {.kind = kind, .about = ""};
	const struct reporting reporting = {now, report, context};
	const unsigned most = (unsigned)allowed;

	(void)text_copy(kind, sizeof(kind), likeness->kind);
	(void)text_copy(about, sizeof(about), likeness->about);
	/*
	 * Check the kind's limit first: lines beyond it are counted for the kind only, since
	 * one report for each peer would flood the log.
	 */
	if (!is_allowed(&all, PEERS * most, level, text, &reporting) ||
		!is_allowed(&one, most, level, text, &reporting))
		return false;
	count(&all, &reporting);
	if (about[0] != '\0')
		count(&one, &reporting);
	return true;
}

void log_repeats_flush(usec_t now, log_repeats_report *report, void *context)
{
	const struct reporting reporting = {now, report, context};

	for (unsigned i = 0; i < SLOTS && unreported > 0; i++) {
		if (slots[i].left_out.count > 0 && is_over(&slots[i], now))
			report_slot(&slots[i], &reporting);
	}
}
