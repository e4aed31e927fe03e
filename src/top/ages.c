/* SPDX-License-Identifier: ISC */
#include "top/ages.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

double ages_time(const char *text)
{
	struct tm broken = {0};

	if (!text ||
		sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d", &broken.tm_year, &broken.tm_mon,
			&broken.tm_mday, &broken.tm_hour, &broken.tm_min, &broken.tm_sec) != 6)
		return AGES_UNKNOWN;
	broken.tm_year -= 1900;
	broken.tm_mon--;
	/* Both times of a difference are local: as if they were UTC, it is right. */
	return (double)timegm(&broken);
}

double ages_now(const struct table *clients)
{
	const size_t column = table_column(clients, "request_time");
	double now = AGES_UNKNOWN;

	for (size_t row = 0; row < clients->row_count; row++) {
		const double time = ages_time(table_text(clients, row, column));

		if (time > now)
			now = time;
	}
	return now;
}

double ages_of(const struct table *table, size_t row, size_t column, double now)
{
	const double time = ages_time(table_text(table, row, column));

	if (time < 0 || now < 0)
		return AGES_UNKNOWN;
	return time < now ? now - time : 0;
}

double ages_wait(const struct table *table, size_t row, size_t seconds, size_t microseconds)
{
	return table_number(table, row, seconds, 0) +
		table_number(table, row, microseconds, 0) / USEC_PER_SEC;
}
