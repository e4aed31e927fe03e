/* SPDX-License-Identifier: ISC */
#include "admin/advice/findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* A sample counts for at most so long: the process may have been busy with something else. */
#define PASSED_MOST (3 * USEC_PER_SEC)

static const struct {
	enum advice_severity severity;
	const char *setting;
	int64_t least;
	usec_t appears, goes;
} rows[ADVICE_KINDS] = {
#define ADVICE(name, code, severity, setting, least, appears, goes)                            \
	[ADVICE_##name] = {ADVICE_##severity, setting, least, (appears)*USEC_PER_SEC,          \
		(goes)*USEC_PER_SEC},
#include "admin/advice/advice.def"
#undef ADVICE
};

int64_t findings_least(enum advice_kind kind)
{
	return rows[kind].least;
}

/* --- a sample ----------------------------------------------------------------------------- */

void findings_begin(struct findings *findings, usec_t now)
{
	const usec_t passed = findings->now > 0 ? now - findings->now : 0;

	findings->passed = passed < PASSED_MOST ? passed : PASSED_MOST;
	findings->now = now;
	for (unsigned i = 0; i < findings->count; i++)
		findings->all[i].notes = 0;
}

/* Copies, since a pool, a database or a user may be gone before its advice is. */
static void set_subject(struct advice *finding, const struct finding_subject *subject)
{
	const struct pool *pool = subject->pool;
	const char *database = subject->database ? subject->database->name : "";
	const char *user = subject->user ? subject->user->name : "";

	finding->pool = pool ? pool->number : 0;
	finding->other = subject->other;
	text_copy(finding->database, sizeof(finding->database), pool ? pool->label : database);
	text_copy(finding->user, sizeof(finding->user), pool ? pool->user->name : user);
}

static struct advice *find(
	struct findings *findings, enum advice_kind cause, const struct advice *like)
{
	for (unsigned i = 0; i < findings->count; i++) {
		struct advice *finding = &findings->all[i];

		if (finding->cause == cause && finding->pool == like->pool &&
			finding->other == like->other &&
			strcmp(finding->database, like->database) == 0 &&
			strcmp(finding->user, like->user) == 0)
			return finding;
	}
	return NULL;
}

/*
 * Clients choose how many pools there are, and databases by the one called *: a quarter of the places is for
 * what is not about one of them.
 */
static bool is_of_many(const struct advice *finding)
{
	return finding->database[0] != '\0';
}

enum {
	FINDINGS_OF_MANY = FINDINGS_MOST - FINDINGS_MOST / 4,
	ADVICE_OF_MANY = ADVICE_MOST - ADVICE_MOST / 4,
};

static bool has_place(const struct findings *findings, const struct advice *like)
{
	unsigned of_many = 0;

	for (unsigned i = 0; i < findings->count; i++)
		of_many += is_of_many(&findings->all[i]);
	return findings->count < FINDINGS_MOST &&
		(!is_of_many(like) || of_many < FINDINGS_OF_MANY);
}

/* The newest of the least severe findings that are about many, as this one; NULL: none is less severe. */
static struct advice *find_lesser(
	struct findings *findings, enum advice_severity severity, const struct advice *like)
{
	struct advice *found = NULL;

	for (unsigned i = 0; i < findings->count; i++) {
		struct advice *finding = &findings->all[i];

		if (finding->severity >= severity || is_of_many(finding) != is_of_many(like))
			continue;
		if (!found || finding->severity < found->severity ||
			(finding->severity == found->severity &&
				finding->since >= found->since))
			found = finding;
	}
	return found;
}

static struct advice *add(
	struct findings *findings, enum advice_kind cause, const struct advice *like)
{
	struct advice *finding = has_place(findings, like)
		? &findings->all[findings->count++]
		: find_lesser(findings, rows[cause].severity, like);

	if (!finding)
		return NULL;
	*finding = *like;
	finding->cause = cause;
	finding->since = findings->now;
	return finding;
}

void findings_show_as(struct advice *finding, enum advice_kind kind)
{
	finding->kind = kind;
	finding->severity = rows[kind].severity;
	finding->setting = rows[kind].setting;
}

struct advice *findings_note(struct findings *findings, enum advice_kind cause,
	const struct finding_subject *subject)
{
	struct advice like = {0}, *finding;

	set_subject(&like, subject);
	finding = find(findings, cause, &like);
	if (!finding)
		finding = add(findings, cause, &like);
	if (!finding)
		return NULL;
	if (finding->notes++ == 0)
		findings_show_as(finding, cause);
	finding->noted_at = findings->now;
	return finding;
}

/* --- the end of a sample ------------------------------------------------------------------ */

/*
 * The weight grows while the cause is there, until it is enough to be shown. Without the cause it
 * shrinks so fast that a full one is gone after the row's time. Returns whether anything is left.
 */
static bool weigh(const struct findings *findings, struct advice *finding)
{
	const usec_t appears = rows[finding->cause].appears, goes = rows[finding->cause].goes;

	if (finding->notes > 0) {
		finding->weight += findings->passed;
		if (finding->weight >= appears) {
			finding->weight = appears;
			finding->is_shown = true;
		}
		return true;
	}
	finding->weight -= findings->passed * appears / goes;
	return finding->weight > 0;
}

static int compare(const void *a, const void *b)
{
	const struct advice *one = *(struct advice *const *)a;
	const struct advice *other = *(struct advice *const *)b;

	if (one->severity != other->severity)
		return one->severity > other->severity ? -1 : 1;
	if (one->since != other->since)
		return one->since < other->since ? -1 : 1;
	/* Of the same moment: the order must be the same at each sample. */
	return one < other ? -1 : 1;
}

static void choose(struct findings *findings)
{
	struct advice *sorted[FINDINGS_MOST];
	unsigned count = 0, of_many = 0;

	for (unsigned i = 0; i < findings->count; i++) {
		if (findings->all[i].is_shown)
			sorted[count++] = &findings->all[i];
	}
	qsort(sorted, count, sizeof(sorted[0]), compare);
	findings->shown_count = 0;
	for (unsigned i = 0; i < count && findings->shown_count < ADVICE_MOST; i++) {
		if (is_of_many(sorted[i]) && of_many++ >= ADVICE_OF_MANY)
			continue;
		findings->shown[findings->shown_count++] = sorted[i];
	}
}

void findings_end(struct findings *findings)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < findings->count; i++) {
		struct advice *finding = &findings->all[i];

		if (!weigh(findings, finding))
			continue;
		if (kept != i)
			findings->all[kept] = *finding;
		kept++;
	}
	findings->count = kept;
	choose(findings);
}

/* --- figures and texts -------------------------------------------------------------------- */

void finding_set_name(struct advice *finding, const char *name)
{
	if (name)
		text_escape(finding->name, sizeof(finding->name), name, strlen(name));
	else
		finding->name[0] = '\0';
}

void finding_average(struct advice *finding, unsigned figure, int64_t value)
{
	int64_t *average = &finding->figures[figure];

	if (finding->weight == 0)
		*average = value * 1000;
	else
		*average += (value * 1000 - *average) / 10;
}

void finding_write_time(struct buffer *out, usec_t time)
{
	const long long seconds = time / USEC_PER_SEC;

	if (time < USEC_PER_SEC)
		buffer_printf(out, "%lld ms", (long long)(time / USEC_PER_MSEC));
	else if (seconds < 10)
		buffer_printf(out, "%.1f s", (double)time / USEC_PER_SEC);
	else if (seconds < 120)
		buffer_printf(out, "%lld s", seconds);
	else if (seconds < 120 * 60)
		buffer_printf(out, "%lld minutes", seconds / 60);
	else if (seconds < 48 * 3600)
		buffer_printf(out, "%lld hours", seconds / 3600);
	else
		buffer_printf(out, "%lld days", seconds / 86400);
}

void finding_write_waiting(struct buffer *out, int64_t clients)
{
	if (clients == 1)
		buffer_printf(out, "1 client waits");
	else
		buffer_printf(out, "%lld clients wait", (long long)clients);
}

void finding_write_average(struct buffer *out, int64_t thousandths)
{
	const long long tenths = (thousandths + 50) / 100;

	if (tenths % 10 == 0)
		buffer_printf(out, "%lld", tenths / 10);
	else
		buffer_printf(out, "%lld.%lld", tenths / 10, tenths % 10);
}
