/* SPDX-License-Identifier: ISC */
#include "model/shared/all_names.h"

#include <string.h>

#include "model/registry.h"

/* --- names -------------------------------------------------------------------------------- */

static const struct resolver *resolver_of(const struct name_walk *walk)
{
	return walk->process->registries[walk->number]->resolver;
}

static bool is_known_before(const struct process *process, unsigned number, const char *name)
{
	for (unsigned i = 0; i < number; i++) {
		const struct resolver *resolver = process->registries[i]->resolver;

		if (resolver && resolver_find(resolver, name))
			return true;
	}
	return false;
}

/* The next name of the worker, whether another one has it or not. */
static bool step(struct name_walk *walk)
{
	for (; walk->number < walk->process->workers; walk->number++) {
		const struct resolver *resolver = resolver_of(walk);

		walk->name = resolver ? resolver_next(resolver, walk->name) : NULL;
		if (walk->name)
			return true;
	}
	return false;
}

bool name_walk_next(struct name_walk *walk)
{
	while (step(walk)) {
		const struct resolver_row row = resolver_row_of(resolver_of(walk), walk->name);

		if (!is_known_before(walk->process, walk->number, row.name))
			return true;
	}
	return false;
}

struct resolver_row all_names_row(
	const struct name_walk *walk, const struct resolver_name **answer)
{
	struct resolver_row row = resolver_row_of(resolver_of(walk), walk->name);
	const struct registry *each;

	*answer = walk->name;
	EACH_REGISTRY (each, walk->process) {
		const struct resolver_name *name =
			each->resolver ? resolver_find(each->resolver, row.name) : NULL;
		struct resolver_row other;

		if (!name)
			continue;
		other = resolver_row_of(each->resolver, name);
		if (other.left <= row.left)
			continue;
		row = other;
		*answer = name;
	}
	return row;
}

/* --- zones -------------------------------------------------------------------------------- */

static const struct dns_zones *zones_of(const struct registry *registry)
{
	return registry->resolver ? resolver_zones(registry->resolver) : NULL;
}

static const struct dns_zone *find_zone(const struct registry *registry, const char *name)
{
	const struct dns_zones *zones = zones_of(registry);

	return zones ? dns_zones_find(zones, name, strlen(name)) : NULL;
}

static bool step_zone(struct name_walk *walk)
{
	for (; walk->number < walk->process->workers; walk->number++) {
		const struct dns_zones *zones =
			zones_of(walk->process->registries[walk->number]);

		walk->zone = zones ? dns_zones_next(zones, walk->zone) : NULL;
		if (walk->zone)
			return true;
	}
	return false;
}

bool zone_walk_next(struct name_walk *walk)
{
	while (step_zone(walk)) {
		const char *name = dns_zone_row_of(walk->zone).name;
		bool is_first = true;

		for (unsigned i = 0; i < walk->number && is_first; i++)
			is_first = !find_zone(walk->process->registries[i], name);
		if (is_first)
			return true;
	}
	return false;
}

/* The names of a zone, each once. */
static size_t count_names_in(const struct process *process, const char *zone)
{
	struct name_walk walk = {.process = process};
	size_t count = 0;

	while (name_walk_next(&walk)) {
		const char *dot =
			strchr(resolver_row_of(resolver_of(&walk), walk.name).name, '.');

		count += dot && strcmp(dot + 1, zone) == 0;
	}
	return count;
}

struct dns_zone_row all_zones_row(const struct name_walk *walk)
{
	struct dns_zone_row row = dns_zone_row_of(walk->zone);
	const struct registry *each;

	if (walk->process->workers < 2)
		return row;
	EACH_REGISTRY (each, walk->process) {
		const struct dns_zone *zone = find_zone(each, row.name);

		/* Serials increase. */
		if (zone && dns_zone_row_of(zone).serial > row.serial)
			row.serial = dns_zone_row_of(zone).serial;
	}
	row.names = count_names_in(walk->process, row.name);
	return row;
}

/* --- numbers ------------------------------------------------------------------------------ */

size_t all_names_count(const struct process *process)
{
	const struct registry *first = process->registries[0];
	struct name_walk walk = {.process = process, .number = 1};
	size_t count = first->resolver ? resolver_names(first->resolver) : 0;

	while (name_walk_next(&walk))
		count++;
	return count;
}

size_t all_zones_count(const struct process *process)
{
	const struct dns_zones *first = zones_of(process->registries[0]);
	struct name_walk walk = {.process = process, .number = 1};
	size_t count = first ? first->count : 0;

	while (zone_walk_next(&walk))
		count++;
	return count;
}

size_t all_names_in_flight(const struct process *process)
{
	const struct registry *each;
	size_t count = 0;

	EACH_REGISTRY (each, process)
		count += each->resolver ? resolver_in_flight(each->resolver) : 0;
	return count;
}

struct resolver_counts all_names_counts(const struct process *process)
{
	struct resolver_counts sum = {0};
	const struct registry *each;

	EACH_REGISTRY (each, process) {
		const struct resolver_counts *own = each->resolver
			? resolver_counts(each->resolver)
			: &(struct resolver_counts){0};

		sum.found += own->found;
		sum.unknown += own->unknown;
		sum.timeouts += own->timeouts;
		sum.errors += own->errors;
		sum.moves += own->moves;
	}
	return sum;
}
