/* SPDX-License-Identifier: ISC */
#include "session/notify/unlisten.h"

#include <string.h>
#include <strings.h>

#include "wire/sql_scanner.h"

/* Memory for the names of one transaction. Beyond it they are not noted. */
enum { NAMES_MAX = 64 * 1024 };

/* --- words -------------------------------------------------------------------------------- */

/* Most texts do not have the word. */
static bool has_word(const char *text, size_t length)
{
	static const char word[] = "unlisten";
	enum { SIZE = sizeof(word) - 1 };

	for (const char *end = text + length; (size_t)(end - text) >= SIZE; text++) {
		if ((*text | 0x20) == 'u' && strncasecmp(text, word, SIZE) == 0)
			return true;
	}
	return false;
}

/* Behind UNLISTEN: a name, or `*` for all. */
static void note_target(
	struct channel_listener *listener, enum sql_token kind, const struct buffer *token)
{
	if (kind == SQL_SYMBOL && token->data[0] == '*')
		listener->unlistens_all = true;
	else if ((kind == SQL_WORD || kind == SQL_NAME) && token->length > 1 &&
		listener->unlistens.length + token->length < NAMES_MAX) {
		/* PostgreSQL cuts names. */
		const size_t most = CHANNEL_NAME_SIZE - 1;

		buffer_append(&listener->unlistens, token->data,
			token->length - 1 < most ? token->length - 1 : most);
		buffer_append(&listener->unlistens, "", 1);
	}
}

void unlisten_note_text(struct client_link *client, const char *text, size_t length)
{
	struct channel_listener *listener = client->listener;
	struct sql_scanner scanner;
	struct buffer token = {0};
	enum sql_token kind;
	bool behind = false;

	if (!listener || !has_word(text, length))
		return;
	sql_scanner_init(&scanner, text, length, false);
	while ((kind = sql_scanner_next(&scanner, &token)) != SQL_END && !token.failed) {
		if (behind)
			note_target(listener, kind, &token);
		behind = kind == SQL_WORD && strcmp((const char *)token.data, "unlisten") == 0;
		if (kind == SQL_UNKNOWN && scanner.at < scanner.end)
			scanner.at++;
	}
	buffer_free(&token);
}

/* --- what counts -------------------------------------------------------------------------- */

static void forget(struct channel_listener *listener)
{
	buffer_free(&listener->unlistens);
	listener->unlistens_all = listener->unlistened = false;
}

void unlisten_note_tag(struct server_link *server, struct client_link *client, const char *tag)
{
	struct channel_listener *listener = client->listener;

	if (!listener)
		return;
	if (strcmp(tag, "DISCARD ALL") == 0) {
		channels_unsubscribe_all(client);
	} else if (strcmp(tag, "UNLISTEN") == 0) {
		listener->unlistened = true;
		server->owes_messages = true;
	} else if (strcmp(tag, "ROLLBACK") == 0) {
		forget(listener);
	}
}

void unlisten_undo(struct client_link *client)
{
	if (client->listener)
		forget(client->listener);
}

void unlisten_apply(struct client_link *client)
{
	struct channel_listener *listener = client->listener;
	const char *name, *end;

	if (!listener || !listener->unlistened)
		return;
	if (listener->unlistens_all)
		channels_unsubscribe_all(client);
	name = (const char *)listener->unlistens.data;
	end = name + listener->unlistens.length;
	for (; name < end; name += strlen(name) + 1) {
		struct subscription *subscription = channels_subscription(client, name);

		if (subscription)
			channels_unsubscribe(subscription);
	}
	forget(listener);
}
