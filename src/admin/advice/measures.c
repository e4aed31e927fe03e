/* SPDX-License-Identifier: ISC */
#include "admin/advice/rules.h"
#include "base/cores.h"
#include "session/server/host_capacity.h"

/* A rate over less time than this tells nothing. */
#define WINDOW_LEAST (5 * USEC_PER_SEC)

/* --- meters ------------------------------------------------------------------------------- */

usec_t measures_window(const struct advisor *advisor)
{
	return advisor->findings.now - advisor->turned_before;
}

uint64_t measures_growth(const struct advisor *advisor, struct meter *meter, uint64_t count)
{
	const uint64_t growth = meter_look(meter, count);

	if (advisor->turns)
		meter_turn(meter, count);
	return growth;
}

int64_t measures_rate(const struct advisor *advisor, uint64_t growth)
{
	const usec_t window = measures_window(advisor);

	return window < WINDOW_LEAST
		? 0
		: (int64_t)(growth * 1000 * (uint64_t)USEC_PER_SEC / (uint64_t)window);
}

/* --- processor time ----------------------------------------------------------------------- */

enum { PERCENT = 100 };

void measures_take_busy(struct advisor *advisor)
{
	const usec_t passed = advisor->findings.now - advisor->looked_at;
	const struct registry *each;

	EACH_REGISTRY (each, advisor->registry->process) {
		const unsigned i = each->number;
		struct crew_figures figures;

		crew_figures(each->loop, &figures);
		advisor->busy_percent[i] = (int)((figures.busy - advisor->busy[i]) * PERCENT /
			(passed > 0 ? passed : 1));
		advisor->busy[i] = figures.busy;
		if (advisor->looked_at == 0)
			advisor->busy_percent[i] = 0;
	}
}

/* --- cores -------------------------------------------------------------------------------- */

unsigned measures_own_cores(struct advisor *advisor)
{
	if (advisor->cores == 0)
		advisor->cores = cores_available();
	return advisor->cores;
}

unsigned measures_cores(struct advisor *advisor, const struct server_link *server)
{
	const int configured = server->link.pool->database->config->host_cores;
	const struct host *host = server->at;

	if (configured > 0)
		return configured < CORES_MOST ? (unsigned)configured : CORES_MOST;
	if (host && host->capacity.cores > 0)
		return host->capacity.cores;
	return host_capacity_is_here(server) ? measures_own_cores(advisor) : 0;
}
