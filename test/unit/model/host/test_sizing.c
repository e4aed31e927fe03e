/* SPDX-License-Identifier: ISC */
/* The formula of pool_size = auto, as a table, and its words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/host/sizing.h"

/* One pool on a host with 8 cores, PostgreSQL's own settings, and nothing else. */
#define USUAL                                                                                  \
	.max_connections = 100, .reserved = 3, .cores = 8, .cores_from = CORES_CONFIGURED,     \
	.pools = 1, .processes = 1, .most = 100

struct example {
	struct sizing_facts facts;
	int size;
	enum sizing_bound bound;
	const char *why;
};

#pragma GCC diagnostic ignored "-Woverride-init"

static const struct example examples[] = {
	/* Cores. */
	{{USUAL}, 32, SIZED_BY_CORES, "8 cores (host_cores) * 4 = 32"},
	{{USUAL, .cores = 1}, 4, SIZED_BY_CORES, "1 cores (host_cores) * 4 = 4"},
	{{USUAL, .pools = 2}, 16, SIZED_BY_CORES, "8 cores (host_cores) * 4 / 2 pools = 16"},
	{{USUAL, .processes = 2}, 16, SIZED_BY_CORES,
		"8 cores (host_cores) * 4 / 2 processes = 16"},
	{{USUAL, .pools = 3, .processes = 2}, 5, SIZED_BY_CORES,
		"8 cores (host_cores) * 4 / 3 pools / 2 processes = 5"},
	{{USUAL, .max_connections = 0}, 32, SIZED_BY_CORES, "8 cores (host_cores) * 4 = 32"},
	{{USUAL, .reserve = 5}, 32, SIZED_BY_CORES, "8 cores (host_cores) * 4 = 32"},
	{{USUAL, .cores_from = CORES_OF_PROCESS}, 32, SIZED_BY_CORES,
		"8 cores (this machine) * 4 = 32"},
	{{USUAL, .cores_from = CORES_OF_SERVER}, 32, SIZED_BY_CORES,
		"8 cores (server) * 4 = 32"},

	/* Connections: 87 of 100 are for pools. */
	{{USUAL, .cores = 22, .most = 200}, 87, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 0 of other pools) = 87"},
	{{USUAL, .cores = 22, .most = 200, .reserved = 13}, 77, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 13 reserved - 10 for others - 0 of other pools) = 77"},
	{{USUAL, .fixed = 60}, 27, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 60 of other pools) = 27"},
	{{USUAL, .fixed = 60, .reserve = 5}, 22, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 60 of other pools) - 5 "
		"reserve_pool_size = 22"},
	{{USUAL, .fixed = 60, .pools = 2}, 13, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 60 of other pools) / 2 pools "
		"= 13"},
	{{USUAL, .fixed = 60, .pools = 2, .processes = 2}, 6, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 60 of other pools) / 2 pools "
		"/ 2 processes = 6"},

	/* Without cores: a quarter of those. */
	{{USUAL, .cores = 0}, 21, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 0 of other pools) / 4 (cores "
		"not known) = 21"},
	{{USUAL, .cores = 0, .pools = 3}, 7, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 3 reserved - 10 for others - 0 of other pools) / 4 (cores "
		"not known) / 3 pools = 7"},
	{{USUAL, .cores = 0, .max_connections = 262143}, 100, SIZED_BY_MOST,
		"(262143 max_connections - 3 reserved - 26214 for others - 0 of other pools) / 4 "
		"(cores not known) = 58981; auto_pool_max 100"},

	/* Nothing known. */
	{{USUAL, .cores = 0, .max_connections = 0}, 20, SIZED_BY_NOTHING,
		"the server tells nothing: 20"},
	{{USUAL, .cores = 0, .max_connections = 0, .most = 8}, 8, SIZED_BY_MOST,
		"the server tells nothing: 20; auto_pool_max 8"},

	/* At least four. */
	{{USUAL, .pools = 20}, 4, SIZED_BY_LEAST,
		"8 cores (host_cores) * 4 / 20 pools = 1; at least 4"},
	{{USUAL, .fixed = 1000}, 4, SIZED_BY_LEAST,
		"(100 max_connections - 3 reserved - 10 for others - 1000 of other pools) = 0; at "
		"least 4"},
	{{USUAL, .pools = 8}, 4, SIZED_BY_CORES, "8 cores (host_cores) * 4 / 8 pools = 4"},

	/* At most auto_pool_max. */
	{{USUAL, .most = 31}, 31, SIZED_BY_MOST,
		"8 cores (host_cores) * 4 = 32; auto_pool_max 31"},
	{{USUAL, .most = 32}, 32, SIZED_BY_CORES, "8 cores (host_cores) * 4 = 32"},

	/* What the server allows at all goes before the four. */
	{{USUAL, .max_connections = 5}, 2, SIZED_BY_CONNECTIONS,
		"(5 max_connections - 3 reserved - 0 for others - 0 of other pools) = 2"},
	{{USUAL, .max_connections = 3}, 1, SIZED_BY_CONNECTIONS,
		"(3 max_connections - 3 reserved - 0 for others - 0 of other pools) = 0; "
		"max_connections has no more than 1"},
	{{USUAL, .reserved = 1000}, 1, SIZED_BY_CONNECTIONS,
		"(100 max_connections - 1000 reserved - 10 for others - 0 of other pools) = 0; "
		"max_connections has no more than 1"},
	{{USUAL, .role_limit = 3}, 3, SIZED_BY_ROLE,
		"8 cores (host_cores) * 4 = 32; CONNECTION LIMIT of the role 3"},
	{{USUAL, .role_limit = 32}, 32, SIZED_BY_CORES, "8 cores (host_cores) * 4 = 32"},
	{{USUAL, .database_limit = 2}, 2, SIZED_BY_DATABASE,
		"8 cores (host_cores) * 4 = 32; CONNECTION LIMIT of the database 2"},
	{{USUAL, .cap = 6}, 6, SIZED_BY_CAP,
		"8 cores (host_cores) * 4 = 32; max_db_connections, max_user_connections or "
		"max_server_connections 6"},
	{{USUAL, .refused_at = 9}, 9, SIZED_BY_REFUSAL,
		"8 cores (host_cores) * 4 = 32; the server accepts no more now than 9"},
	{{USUAL, .role_limit = 7, .database_limit = 6, .cap = 5, .refused_at = 3}, 3,
		SIZED_BY_REFUSAL,
		"8 cores (host_cores) * 4 = 32; the server accepts no more now than 3"},

	/* The largest numbers there are do not overflow. */
	{{USUAL, .cores = 65536, .max_connections = 262143, .most = INT32_MAX}, 235926,
		SIZED_BY_CONNECTIONS,
		"(262143 max_connections - 3 reserved - 26214 for others - 0 of other pools) = "
		"235926"},
};

static void test_formula(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
		const struct sizing sizing = sizing_compute(&examples[i].facts);
		struct buffer why = {0};

		sizing_explain(&sizing, &examples[i].facts, &why);
		buffer_append(&why, "", 1);
		assert_string_equal((const char *)why.data, examples[i].why);
		assert_int_equal(sizing.size, examples[i].size);
		assert_int_equal(sizing.bound, examples[i].bound);
		buffer_free(&why);
	}
}

static void test_more_pools_never_have_more_than_fewer(void **state)
{
	struct sizing_facts facts = {USUAL, .cores = 64, .most = 100};
	int before = INT32_MAX;

	(void)state;
	for (facts.pools = 1; facts.pools < 200; facts.pools++) {
		const struct sizing sizing = sizing_compute(&facts);

		assert_true(sizing.size <= before);
		assert_true(sizing.size >= SIZING_LEAST);
		if (sizing.bound != SIZED_BY_LEAST)
			assert_true((unsigned)sizing.size * facts.pools <= 87);
		before = sizing.size;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formula),
		cmocka_unit_test(test_more_pools_never_have_more_than_fewer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
