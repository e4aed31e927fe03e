/* SPDX-License-Identifier: ISC */
/*
 * A first look at the bytes of a text: most texts have no sign of a word that wire/suspicion knows, and
 * are not read further. It is taken at every query, so it costs few instructions.
 */
#ifndef PGUSHER_WIRE_SUSPICION_SIGNS_H
#define PGUSHER_WIRE_SUSPICION_SIGNS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether pg_settings is anywhere in these bytes, in any letter case. */
bool suspicion_names_settings(const char *at, const char *end);

/*
 * Whether the text, which ends before `end`, may have suspicious words, or be a statement that
 * session/state/changes understands: it has several statements, or begins as SET or UNLISTEN does, or
 * with white space or a comment, or has one of the pairs dv (advisory), _c (set_config), mp (temp),
 * &" (U&"...").
 */
bool suspicion_may_be_in_any(const uint8_t *text, const uint8_t *end);

static inline bool suspicion_may_be_in(const uint8_t *text, const uint8_t *end)
{
	static const char select[4] = "sele";
	uint32_t first, letters;

	/* The shortest one that begins so is "SELECT;SET a.b=1", with its NUL. */
	if (end - text < 4 || end - text >= 17)
		return suspicion_may_be_in_any(text, end);
	memcpy(&first, text, sizeof(first));
	memcpy(&letters, select, sizeof(letters));
	return (first | 0x20202020) != letters && suspicion_may_be_in_any(text, end);
}

#endif
