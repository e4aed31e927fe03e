/* SPDX-License-Identifier: ISC */
#include "session/parameters/welcome_message.h"

#include <strings.h>

#include "wire/frame.h"
#include "wire/message.h"
#include "wire/report.h"
#include "wire/writer.h"

/* Returns the next ParameterStatus of the head at or after `at`; NULL: there is none. */
static const uint8_t *next_report(const struct pool *pool, const uint8_t *at,
	struct frame *frame, const char **name, const char **value)
{
	const uint8_t *end = pool->welcome_head.data + pool->welcome_head.length;

	for (; at < end; at += frame->total) {
		if (frame_peek(at, (size_t)(end - at), UINT32_MAX, frame) != FRAME_WHOLE)
			break;
		if (frame->type == PQ_PARAMETER_STATUS &&
			report_parse_parameter(
				frame_body(at), frame_body_size(frame), name, value))
			return at;
	}
	return NULL;
}

const char *welcome_message_value(const struct pool *pool, const char *name)
{
	const uint8_t *at = pool->welcome_head.data;
	struct frame frame;
	const char *reported, *value;

	if (!pool->welcome)
		return NULL;
	while ((at = next_report(pool, at, &frame, &reported, &value)) != NULL) {
		if (strcasecmp(reported, name) == 0)
			return value;
		at += frame.total;
	}
	return NULL;
}

/* Append the head, with the client's followed parameters in place of the server's values. */
static void append_head(struct pool *pool, const struct parameters *given)
{
	const struct buffer *head = &pool->welcome_head;
	struct buffer *made = &pool->welcome_made;
	const uint8_t *from = head->data, *at = head->data;
	struct frame frame;
	const char *name, *usual;

	while (parameters_has_followed(given) &&
		(at = next_report(pool, at, &frame, &name, &usual)) != NULL) {
		const char *value = parameters_get_followed(given, name);

		if (value) {
			buffer_append(made, from, (size_t)(at - from));
			writer_parameter_status(made, name, value);
			from = at + frame.total;
		}
		at += frame.total;
	}
	buffer_append(made, from, head->length - (size_t)(from - head->data));
}

void welcome_message_drop(struct pool *pool)
{
	buffer_free(&pool->welcome_made);
	parameters_unref(pool->welcome_asked);
	parameters_unref(pool->welcome_kept);
	pool->welcome_asked = pool->welcome_kept = NULL;
}

bool welcome_message_make(struct pool *pool, struct parameters *asked)
{
	struct parameters *given;

	if (pool->welcome_asked == asked)
		return true;
	given = parameters_merge(pool->registry->parameters, pool->welcome, asked);
	if (!given)
		return false;
	parameters_unref(pool->welcome_asked);
	parameters_unref(pool->welcome_given);
	pool->welcome_asked = parameters_ref(asked);
	pool->welcome_given = given;
	buffer_clear(&pool->welcome_made);
	append_head(pool, given);
	parameters_report(given, &pool->welcome_made);
	if (!pool->welcome_made.failed)
		return true;
	welcome_message_drop(pool);
	return false;
}
