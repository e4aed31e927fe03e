/* SPDX-License-Identifier: ISC */
/*
 * What the advisor has found: the causes that its rules note at each sample, and how long they have been
 * there. A finding is shown as advice when its cause has been there for some time, and stays until
 * the cause has been away for some time (the columns of advice.def): a cause that comes and goes does not
 * make advice that does.
 */
#ifndef PGUSHER_ADMIN_ADVICE_FINDINGS_H
#define PGUSHER_ADMIN_ADVICE_FINDINGS_H

#include "admin/advice/advice.h"

enum {
	/* Of more, the more severe ones are kept; pools and databases have three quarters of the places. */
	FINDINGS_MOST = 128,
	FINDING_FIGURES = 22,
	FINDING_NAME_SIZE = 200,
	/* config/user_config: USER_NAME_LIMIT; longer names of clients are cut. */
	FINDING_SUBJECT_SIZE = 136,
};

enum advice_kind {
#define ADVICE(name, ...) ADVICE_##name,
#include "admin/advice/advice.def"
#undef ADVICE
	ADVICE_KINDS
};

/* What a finding is about; all NULL: the process. */
struct finding_subject {
	struct pool *pool;
	struct database *database;
	struct user *user;
	const void *other; /* compared only: it may not exist any more */
};

struct advice {
	enum advice_kind cause; /* as it was noted */
	enum advice_kind kind; /* what it is shown as; set by the rule */
	enum advice_severity severity;
	const char *setting; /* NULL: none */
	uint64_t pool; /* its number; 0: not about one */
	/* Names, as clients send them; empty: not about one. */
	char database[FINDING_SUBJECT_SIZE], user[FINDING_SUBJECT_SIZE];
	const void *other;
	usec_t since; /* when the cause was noted first */
	usec_t noted_at; /* when it was noted last */
	usec_t weight; /* for how long it has been there, less the time without it */
	unsigned notes; /* in this sample */
	bool is_shown;
	/* For the sentence; what they are depends on the kind. */
	int64_t figures[FINDING_FIGURES];
	char name[FINDING_NAME_SIZE]; /* printable; empty: not known */
	char address[ADDRESS_TEXT_SIZE];
};

struct findings {
	struct advice all[FINDINGS_MOST];
	unsigned count;
	struct advice *shown[ADVICE_MOST]; /* the most severe first */
	unsigned shown_count;
	usec_t now; /* of this sample */
	usec_t passed; /* since the one before: what it counts for */
};

/* Returns the column `least` of the kind. */
int64_t findings_least(enum advice_kind kind);

/* Begin a sample, before the rules. */
void findings_begin(struct findings *findings, usec_t now);

/*
 * The cause is there. Returns its finding, with the figures of the last sample; `notes` is 1 if it was
 * not noted in this sample before, and `weight` is 0 if the cause is new. NULL: there are too many. The
 * kind, severity and setting are those of the cause's row until the caller changes them.
 */
struct advice *findings_note(struct findings *findings, enum advice_kind cause,
	const struct finding_subject *subject);

/* The finding is shown as another kind, with the severity and setting of that row. */
void findings_show_as(struct advice *finding, enum advice_kind kind);

/* End a sample: forget causes that are gone, and choose what is shown. */
void findings_end(struct findings *findings);

/* Set the name, or the address: bytes that are not printable UTF-8 become \xNN; NULL: none. */
void finding_set_name(struct advice *finding, const char *name);

/* Set one of the figures to its average over about ten samples; it is in thousandths. */
void finding_average(struct advice *finding, unsigned figure, int64_t value);

/* Append a time in words: `350 ms`, `4.2 s`, `34 s`, `12 minutes`, `5 hours`, `9 days`. */
void finding_write_time(struct buffer *out, usec_t time);

/* Append `1 client waits` or `5 clients wait`. */
void finding_write_waiting(struct buffer *out, int64_t clients);

/* Append thousandths with at most one digit after the point. */
void finding_write_average(struct buffer *out, int64_t thousandths);

#endif
