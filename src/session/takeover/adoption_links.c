/* SPDX-License-Identifier: ISC */
#include "session/takeover/adoption_links.h"

#include <stdlib.h>

#include "model/link_walk.h"
#include "session/takeover/adoption_facts.h"
#include "session/takeover/parameter_record.h"

bool adoption_links_fill(
	struct registry *registry, struct link *link, const struct link_record *record)
{
	link->kind = record->kind;
	link->id = record->id ? record->id : process_next_id(registry->process);
	if (link->id > registry->process->last_id)
		registry->process->last_id = link->id;
	link_walk_enroll(registry, link);
	link->remote = record->remote;
	link->connect_time = adoption_facts_moment(registry, record->age ? record->age : 1);
	link->request_time = adoption_facts_moment(registry, record->quiet ? record->quiet : 1);
	link->discarding = link_record_is_set(record, LINK_RECORD_DISCARDING);
	link->cut = link_record_is_set(record, LINK_RECORD_CUT);
	link->remaining = (uint32_t)record->remaining;
	link->parameters = parameter_record_read_set(
		registry->parameters, record->kind, &record->parameters, &record->followed);
	return record->remaining <= UINT32_MAX && link->parameters &&
		link_hold(link, record->held.at, record->held.length);
}

void adoption_links_drop(struct link *link)
{
	link_walk_strike(link_registry(link), link);
	stream_close(&link->stream);
	link_drop_held(link);
	parameters_unref(link->parameters);
}

static unsigned hash_of(const struct adoption *adoption, uint64_t handle)
{
	return (unsigned)keyed_hash_of(&adoption->registry->name_hash, &handle, sizeof(handle));
}

struct adopted_link *adoption_links_find(const struct adoption *adoption, uint64_t handle)
{
	struct adopted_link *found;

	HASH_FIND_BYHASHVALUE(by_handle, adoption->entries, &handle, sizeof(handle),
		hash_of(adoption, handle), found);
	return found;
}

bool adoption_links_add(
	struct adoption *adoption, struct link *link, const struct link_record *record)
{
	struct adopted_link *entry = calloc(1, sizeof(*entry));
	const bool is_known = adoption_links_find(adoption, record->handle) != NULL;

	if (!entry)
		return false;
	entry->handle = record->handle;
	entry->peer = record->peer;
	entry->link = link;
	entry->backlog = record->backlog;
	entry->operations = record->statements.operations;
	if (!is_known)
		HASH_ADD_KEYPTR_BYHASHVALUE(by_handle, adoption->entries, &entry->handle,
			sizeof(entry->handle), hash_of(adoption, entry->handle), entry);
	if (is_known || !entry->by_handle.tbl) {
		free(entry);
		return false;
	}
	return true;
}
