/* SPDX-License-Identifier: ISC */
/*
 * Comments of SQL texts: the parser stays inside the bytes, and what it finds is a traceparent. So do
 * the parameters of a Bind and the words of secrets.
 */
#include <stdlib.h>
#include <string.h>

#include "session/slow/captured_text.h"
#include "session/slow/secret_words.h"
#include "wire/trace_comment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

static void check(const char *text, size_t length, bool is_end)
{
	char found[TRACE_PARENT_LENGTH + 1];

	memset(found, 'x', sizeof(found));
	if (!trace_comment_find(text, length, is_end, found)) {
		require(found[0] == 'x');
		return;
	}
	require(strlen(found) == TRACE_PARENT_LENGTH);
	require(trace_comment_is_parent(found, TRACE_PARENT_LENGTH));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char shown[SLOW_PARAMETERS_MAX + 1];
	/* A copy of the exact size, so that a sanitizer sees any byte read beyond. */
	char *text = malloc(size ? size : 1);

	if (!text)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	check(text, size, false);
	check(text, size, true);
	require(secret_words_safe_length(text, size) <= size);
	captured_text_parameters(shown, sizeof(shown), (const uint8_t *)text, size);
	require(strlen(shown) < sizeof(shown));
	free(text);
	return 0;
}
