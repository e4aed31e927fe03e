/* SPDX-License-Identifier: ISC */
/*
 * A JSON document that is written once for all requests of a second: a piece in every turn of the
 * event loop, and only while requests wait for it. The finished document is kept for those that
 * come soon after, some seconds at most.
 */
#ifndef PGUSHER_ADMIN_PAGE_SHARED_DOCUMENT_H
#define PGUSHER_ADMIN_PAGE_SHARED_DOCUMENT_H

#include "base/buffer.h"
#include "model/registry.h"
#include "net/http/http.h"

/* How long a document is served after it was begun. */
#define SHARED_DOCUMENT_AGE USEC_PER_SEC

/* What writes it; `context` is the writer's. */
struct document_writer {
	/*
	 * Begin a document; `out` is empty, and stays where it is until the end. Returns false when
	 * out of memory; then end is not called.
	 */
	bool (*begin)(void *context, struct buffer *out);
	/* Write the next piece. Returns false when the document is complete. */
	bool (*write)(void *context);
	/* The document is complete, or given up. */
	void (*end)(void *context);
	void *context;
};

/* A finished document. */
struct document;

struct shared_document {
	struct process
		*process; /* its other workers do not run while the document is written */
	struct loop *loop;
	struct document_writer writer;
	struct loop_task writing; /* queued while requests wait */
	struct buffer out;
	bool is_writing;
	usec_t begun; /* the one that is being written */
	struct http_request *waiting[HTTP_REQUESTS];
	unsigned waiting_count;
	unsigned served_count; /* of those: they came before the document was begun */
	struct document *newest; /* a reference; NULL: none */
	struct deadline old; /* of the newest: it is freed */
	unsigned documents; /* finished, and not freed: readers may be slow */
};

void shared_document_init(struct shared_document *shared, struct registry *registry,
	const struct document_writer *writer);

/* Answer the request with a document that is not older than SHARED_DOCUMENT_AGE. */
void shared_document_answer(struct shared_document *shared, struct http_request *request);

/* Do not serve the present document, nor the one that is being written, to further requests. */
void shared_document_forget(struct shared_document *shared);

/* Refuse all requests that wait, and give up what is being written. */
void shared_document_stop(struct shared_document *shared);

#endif
