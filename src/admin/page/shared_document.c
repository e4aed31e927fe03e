/* SPDX-License-Identifier: ISC */
#include "admin/page/shared_document.h"

#include <stdlib.h>
#include <string.h>

/* Documents that slow readers may keep; beyond that requests get the newest. */
enum { DOCUMENTS_MOST = 4 };

/* How long the newest one is kept: for requests that come while slow readers have all others. */
#define DOCUMENT_KEPT (10 * USEC_PER_SEC)

struct document {
	struct shared_document *shared;
	struct buffer text;
	usec_t begun;
	unsigned holders; /* requests that it is sent to, and shared->newest */
};

static void release(void *owner)
{
	struct document *document = owner;

	if (--document->holders > 0)
		return;
	document->shared->documents--;
	buffer_free(&document->text);
	free(document);
}

static void forget_newest(struct shared_document *shared)
{
	struct document *document = shared->newest;

	wheel_remove(&shared->loop->wheel, &shared->old);
	shared->newest = NULL;
	if (document)
		release(document);
}

/* No browser asks: give the memory back. */
static void on_old(struct deadline *deadline)
{
	forget_newest((struct shared_document *)((char *)deadline -
		offsetof(struct shared_document, old)));
}

void shared_document_init(struct shared_document *shared, struct registry *registry,
	const struct document_writer *writer)
{
	*shared = (struct shared_document){
		.process = registry->process,
		.loop = registry->loop,
		.writer = *writer,
		.old.expire = on_old,
	};
}

static void send_document(struct http_request *request, struct document *document)
{
	const struct http_answer answer = {
		.code = 200,
		.type = "application/json",
		.body = (const char *)document->text.data,
		.length = document->text.length,
		.release = release,
		.owner = document,
	};

	document->holders++;
	http_reply(request, &answer);
}

static void refuse(struct http_request *request, const char *why)
{
	http_reply_text(request, 503, "text/plain; charset=utf-8", why);
}

/* Make the document of what was written the newest. Returns NULL when out of memory. */
static struct document *finish(struct shared_document *shared)
{
	struct document *document = shared->out.failed ? NULL : malloc(sizeof(*document));

	forget_newest(shared);
	if (document) {
		*document = (struct document){
			.shared = shared,
			.text = shared->out,
			.begun = shared->begun,
			.holders = 1,
		};
		shared->out = (struct buffer){0};
		shared->documents++;
		shared->newest = document;
		wheel_set(&shared->loop->wheel, &shared->old, document->begun + DOCUMENT_KEPT);
	}
	buffer_free(&shared->out);
	return document;
}

static void end_writing(struct shared_document *shared)
{
	shared->writer.end(shared->writer.context);
	shared->is_writing = false;
}

/* Answer the requests that the document was written for; NULL: out of memory. */
static void serve(struct shared_document *shared, struct document *document)
{
	const unsigned count = shared->served_count;

	shared->served_count = 0;
	for (unsigned i = 0; i < count; i++) {
		if (document)
			send_document(shared->waiting[i], document);
		else
			refuse(shared->waiting[i], "out of memory\n");
	}
	shared->waiting_count -= count;
	memmove(shared->waiting, shared->waiting + count,
		shared->waiting_count * sizeof(shared->waiting[0]));
}

static void begin(struct shared_document *shared)
{
	shared->served_count = shared->waiting_count;
	shared->begun = loop_now(shared->loop);
	buffer_free(&shared->out);
	shared->is_writing = shared->writer.begin(shared->writer.context, &shared->out);
	if (!shared->is_writing)
		serve(shared, NULL);
}

static void on_turn(struct loop_task *task)
{
	struct shared_document *shared = (struct shared_document *)((char *)task -
		offsetof(struct shared_document, writing));

	process_stop_others(shared->process);
	if (!shared->is_writing) {
		begin(shared);
	} else if (!shared->writer.write(shared->writer.context)) {
		end_writing(shared);
		serve(shared, finish(shared));
	}
	process_let_others_run(shared->process);
	if (shared->waiting_count > 0)
		loop_defer_work(shared->loop, &shared->writing, on_turn);
}

void shared_document_answer(struct shared_document *shared, struct http_request *request)
{
	if (shared->newest &&
		loop_now(shared->loop) - shared->newest->begun < SHARED_DOCUMENT_AGE) {
		send_document(request, shared->newest);
		return;
	}
	if (shared->documents > DOCUMENTS_MOST) {
		if (shared->newest)
			send_document(request, shared->newest);
		else
			refuse(request, "too many slow readers\n");
		return;
	}
	/* There is room in the queue: net/http/http refuses more than HTTP_REQUESTS requests. */
	shared->waiting[shared->waiting_count++] = request;
	loop_defer_work(shared->loop, &shared->writing, on_turn);
}

void shared_document_forget(struct shared_document *shared)
{
	forget_newest(shared);
	if (shared->is_writing)
		end_writing(shared);
	shared->served_count = 0;
}

void shared_document_stop(struct shared_document *shared)
{
	loop_forget(shared->loop, &shared->writing);
	shared_document_forget(shared);
	buffer_free(&shared->out);
	for (unsigned i = 0; i < shared->waiting_count; i++)
		refuse(shared->waiting[i], "closing\n");
	shared->waiting_count = 0;
}
