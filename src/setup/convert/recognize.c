/* SPDX-License-Identifier: ISC */
#include "setup/convert/recognize.h"

#include <string.h>

static const struct {
	const char *name, *file;
	enum pooler_kind kind;
} poolers[] = {
	{"odyssey", "odyssey.conf", POOLER_ODYSSEY},
	{"pgagroal", "pgagroal.conf", POOLER_PGAGROAL},
	{"pgbouncer", "pgbouncer.ini", POOLER_PGBOUNCER},
	{"pgcat", "pgcat.toml", POOLER_PGCAT},
};

/* What only the files of one pooler have at the begin of a line. */
static const struct {
	const char *start;
	enum pooler_kind kind;
} signs[] = {
	{"%include", POOLER_PGBOUNCER},
	{"[databases]", POOLER_PGBOUNCER},
	{"[general]", POOLER_PGCAT},
	{"[peers]", POOLER_PGBOUNCER},
	{"[pgagroal]", POOLER_PGAGROAL},
	{"[pgbouncer]", POOLER_PGBOUNCER},
	{"[pgusher]", POOLER_PGBOUNCER},
	{"[pools.", POOLER_PGCAT},
	{"[users]", POOLER_PGBOUNCER},
	{"daemonize ", POOLER_ODYSSEY},
	{"database \"", POOLER_ODYSSEY},
	{"database default", POOLER_ODYSSEY},
	{"include \"", POOLER_ODYSSEY},
	{"listen {", POOLER_ODYSSEY},
	{"storage \"", POOLER_ODYSSEY},
	{"workers ", POOLER_ODYSSEY},
};

enum pooler_kind recognize_name(const char *name)
{
	for (size_t i = 0; i < sizeof(poolers) / sizeof(poolers[0]); i++) {
		if (strcmp(poolers[i].name, name) == 0)
			return poolers[i].kind;
	}
	return POOLER_UNKNOWN;
}

static enum pooler_kind kind_of_line(const char *line, size_t length)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		const size_t size = strlen(signs[i].start);

		if (length >= size && memcmp(line, signs[i].start, size) == 0)
			return signs[i].kind;
	}
	return POOLER_UNKNOWN;
}

enum pooler_kind recognize_file(const char *path, const char *text, size_t length)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *end = text + length;
	enum pooler_kind kind = POOLER_UNKNOWN;

	while (text < end && kind == POOLER_UNKNOWN) {
		const char *next = memchr(text, '\n', (size_t)(end - text));

		while (text < end && (*text == ' ' || *text == '\t'))
			text++;
		kind = kind_of_line(text, (size_t)(end - text));
		text = next ? next + 1 : end;
	}
	for (size_t i = 0; kind == POOLER_UNKNOWN && i < sizeof(poolers) / sizeof(poolers[0]);
		i++) {
		if (strcmp(poolers[i].file, name) == 0)
			kind = poolers[i].kind;
	}
	return kind;
}
