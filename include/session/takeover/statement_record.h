/* SPDX-License-Identifier: ISC */
/*
 * The prepared statements of a client and of a server, as fields of their records (see
 * takeover/link_record). A statement is identified by its number; its text is a record of the
 * inventory, written once and before the links that use it. takeover/adoption_statements reads
 * the fields.
 *
 * The batch that was kept for a replay is not written: if a cached plan turns out to be out of
 * date in the next process, the client gets the error.
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

/* How an operation refers to a client's name. Never change or reuse a number. */
enum statement_record_reference {
	STATEMENT_RECORD_NONE = 0, /* it concerns no name */
	STATEMENT_RECORD_LISTED = 1, /* the name follows, which is in the client's table */
	STATEMENT_RECORD_UNLISTED = 2, /* name, number and bits follow */
	STATEMENT_RECORD_EARLIER = 3, /* the name of an earlier operation; its index follows */
};

/* The fields point into the bytes of the record. */
struct statement_record {
	struct tagged_field names; /* of a client: name, number, bits */
	struct tagged_field closed; /* numbers, the one closed last at the end */
	/* Of a server: number, generation, batch, bits; the one used last at the end. */
	struct tagged_field entries;
	struct tagged_field operations;
	uint64_t unnamed; /* of the unnamed statement, of either kind; 0: none */
	uint64_t batch, unnamed_batch;
};

/* Append the fields of a client, or of a server. When out of memory, out->failed is set. */
void statement_record_write_client(struct buffer *out, const struct client_link *client);
void statement_record_write_server(struct buffer *out, const struct server_link *server);

/* Take over one field. Returns false when it is not one of these fields. */
bool statement_record_read(struct statement_record *out, const struct tagged_field *field);

#endif
