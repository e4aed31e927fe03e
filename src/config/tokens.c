/* SPDX-License-Identifier: ISC */
#include "config/tokens.h"

#include <stdlib.h>
#include <string.h>

/* Blank within a line. Includes the carriage return of files from Windows. */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool ends_word(char c)
{
	return is_blank(c) || c == ',' || c == '#' || c == '"' || c == '\0';
}

bool tokens_begin(struct tokens *walk, const char *text, size_t length)
{
	const bool marked = length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0;

	*walk = (struct tokens){.size = length + 1, .scratch = malloc(length + 1)};
	walk->end = text + length;
	walk->behind = text + (marked ? 3 : 0);
	return walk->scratch != NULL;
}

bool tokens_next_line(struct tokens *walk)
{
	do {
		const char *feed;

		if (walk->line > 0)
			walk->behind = walk->line_end;
		if (walk->behind == walk->end)
			return false;
		walk->behind += walk->line > 0; /* skip the line feed */
		feed = memchr(walk->behind, '\n', (size_t)(walk->end - walk->behind));
		walk->line_end = feed ? feed : walk->end;
		walk->line++;
		tokens_next(walk);
	} while (walk->kind == TOKEN_END);
	return true;
}

/* Unquote a token into the scratch memory. */
static enum token_kind read_quoted(struct tokens *walk)
{
	const char *at = walk->behind + 1;
	char *out = walk->scratch;

	for (; at < walk->line_end && *at != '\0'; at++) {
		if (*at == '"') {
			if (at + 1 == walk->line_end || at[1] != '"')
				break;
			at++;
		}
		*out++ = *at;
	}
	*out = '\0';
	if (at == walk->line_end || *at == '\0')
		return TOKEN_BROKEN;
	walk->behind = at + 1;
	return TOKEN_QUOTED;
}

static enum token_kind read_bare(struct tokens *walk)
{
	const char *at = walk->behind;
	char *out = walk->scratch;

	while (at < walk->line_end && !ends_word(*at))
		*out++ = *at++;
	*out = '\0';
	walk->behind = at;
	return TOKEN_BARE;
}

static enum token_kind read_token(struct tokens *walk)
{
	while (walk->behind < walk->line_end && is_blank(*walk->behind))
		walk->behind++;
	if (walk->behind == walk->line_end || *walk->behind == '#')
		return TOKEN_END;
	switch (*walk->behind) {
	case '\0':
		return TOKEN_BROKEN;
	case ',':
		walk->behind++;
		return TOKEN_COMMA;
	case '"':
		return read_quoted(walk);
	default:
		return read_bare(walk);
	}
}

void tokens_next(struct tokens *walk)
{
	walk->scratch[0] = '\0';
	walk->text = walk->scratch;
	walk->kind = read_token(walk);
}

bool tokens_is_word(const struct tokens *walk, const char *word)
{
	return walk->kind == TOKEN_BARE && strcmp(walk->text, word) == 0;
}

const char *tokens_rest(const struct tokens *walk, size_t *length)
{
	const char *start = walk->behind, *end = walk->line_end;

	while (start < end && is_blank(*start))
		start++;
	while (end > start && is_blank(end[-1]))
		end--;
	*length = (size_t)(end - start);
	return start;
}

void tokens_end(struct tokens *walk)
{
	if (walk->scratch)
		explicit_bzero(walk->scratch, walk->size);
	free(walk->scratch);
	*walk = (struct tokens){0};
}
