/* SPDX-License-Identifier: ISC */
/*
 * Settings that a client has SET by statements that pgusher understands. They follow the client
 * without a question to the server if nothing has undone them when the server is free again.
 */
#ifndef PGUSHER_SESSION_PARAMETERS_CHANGES_H
#define PGUSHER_SESSION_PARAMETERS_CHANGES_H

#include "session/relay/relay.h"

/*
 * Whether the text may change settings: it begins as SET or RESET do, or with white space or a
 * comment, or it has several statements, or a name with an underscore and a c (set_config).
 */
static inline bool changes_may_be_in(const uint8_t *text, const uint8_t *end)
{
	typedef uint8_t bytes __attribute__((vector_size(16), aligned(1)));
	typedef uint64_t words __attribute__((vector_size(16)));
	const uint8_t *at = text;

	if (end - text < 5)
		return false;
	if (((text[0] | 0x20) == 's' && (text[2] | 0x20) == 't') || (text[0] | 0x20) == 'r' ||
		text[0] <= '/')
		return true;
	end -= 2; /* a final semicolon, and the NUL */
	for (; end - at > 16; at += 16) {
		const bytes here = *(const bytes *)at, next = *(const bytes *)(at + 1);
		const words found =
			(words)((here == ';') | ((here == '_') & ((next | 0x20) == 'c')));

		if (found[0] | found[1])
			return true;
	}
	for (; at < end; at++) {
		if (*at == ';' || (*at == '_' && (at[1] | 0x20) == 'c'))
			return true;
	}
	return false;
}

/*
 * The client sends this text, which may change settings, to its server. Returns whether its effect
 * is known: then its request is to be marked with REQUEST_KNOWN.
 */
bool changes_note_text(struct relay_run *run, const char *text, size_t length);

/* An error, or a ROLLBACK, may have undone some changes: the server is to be asked. */
void changes_doubt(struct server_link *server);

/* The changes count: client and server have them. Returns false when out of memory. */
bool changes_take(struct server_link *server, struct client_link *client);

#endif
