/* SPDX-License-Identifier: ISC */
/*
 * What a client and a server know of prepared statements, as fields of their records: see
 * session/takeover/link_record. Statements are named by their numbers; their texts are records of the
 * inventory, each told once and before those who have it. session/takeover/adoption_statements reads it.
 *
 * The batch that a server may have to be sent again is not written down: a plan that turns out to
 * be out of date in the next process is told to the client.
 */
#ifndef PGUSHER_SESSION_TAKEOVER_STATEMENT_RECORD_H
#define PGUSHER_SESSION_TAKEOVER_STATEMENT_RECORD_H

#include "model/client_link.h"
#include "model/server_link.h"
#include "wire/tagged.h"

/* Bits of one name of a client. */
enum { STATEMENT_RECORD_CONFIRMED = 1 };

/* Bits of one statement of a server. */
enum { STATEMENT_RECORD_PRESENT = 1, STATEMENT_RECORD_EXPECTED = 2 };

/* How an operation tells whose name it is about. Numbers are for ever. */
enum statement_record_reference {
	STATEMENT_RECORD_NOBODY = 0,
	STATEMENT_RECORD_LISTED = 1, /* the name follows, by which its client finds it */
	STATEMENT_RECORD_UNLISTED = 2, /* name, number and bits follow */
	STATEMENT_RECORD_AGAIN = 3, /* that of an earlier operation, whose place follows */
};

/* Lent, as all of a record. */
struct statement_record {
	struct tagged_field names; /* of a client: name, number, bits */
	struct tagged_field closed; /* numbers, the one closed last at the end */
	struct tagged_field
		entries; /* of a server: number, generation, batch, bits; used last at
					the end */
	struct tagged_field operations;
	uint64_t unnamed; /* of the unnamed statement, of either kind; 0: none */
	uint64_t batch, unnamed_batch;
};

void statement_record_write_client(struct buffer *out, const struct client_link *client);
void statement_record_write_server(struct buffer *out, const struct server_link *server);

/* False: the field tells of something else. */
bool statement_record_read(struct statement_record *out, const struct tagged_field *field);

#endif
