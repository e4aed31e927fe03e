# SPDX-License-Identifier: ISC
"""What SHOW, the metrics and the page say of several workers: sums, and each thing once."""

import itertools

import pytest

from support.clients.metrics_page import scrape
from support.clients.page_client import state_of
from support.process import HOST, free_port, wait_until

WORKERS = 3
NAMES = [f"db{number}" for number in range(6)]  # two for each worker
NUMBERS = ("databases", "pools", "clients", "logins", "servers", "moved_in", "moved_out", "dealt")


@pytest.fixture
def many(new_pooler, cluster):
    """Make a daemon with three workers and six databases, all of them the cluster's `main`."""

    def make(settings=None, keys=None, **options):
        entry = {"host": HOST, "port": cluster.port, "dbname": "main", **(keys or {})}
        options.setdefault("databases", {name: entry for name in NAMES})
        port = free_port()
        pooler = new_pooler(
            {"pool_mode": "transaction", "workers": WORKERS, "metrics_port": port, **(settings or {})},
            **options)
        pooler.metrics = port
        return pooler

    return make


@pytest.fixture
def page():
    """Skip the test if pages of metrics cannot be parsed."""
    pytest.importorskip("prometheus_client")


def use(pooler, count=2, **options):
    """So many clients of each database, each with a query behind it."""
    clients = [pooler.client(database=name, **options) for name in NAMES for _ in range(count)]
    for client in clients:
        client.query("SELECT 1")
    return clients


def workers(pooler):
    """The rows of SHOW WORKERS with their numbers."""
    return [
        {key: value if value is None or key == "names" else int(value) for key, value in row.items()}
        for row in pooler.show("WORKERS")
    ]


def sums(pooler):
    """What the rows come to."""
    rows = workers(pooler)
    return {key: sum(row[key] for row in rows) for key in NUMBERS}


def lists(pooler):
    """SHOW LISTS."""
    return {row["list"]: int(row["items"]) for row in pooler.show("LISTS")}


# SHOW WORKERS


def test_show_workers_tells_what_is_where(many):
    pooler = many()
    pooler.show("VERSION")  # the console is connected
    before = sums(pooler)
    use(pooler)
    after = sums(pooler)
    assert after["databases"] == after["pools"] == after["servers"] == len(NAMES)
    assert after["clients"] == 2 * len(NAMES) + 1
    assert after["dealt"] - before["dealt"] == 2 * len(NAMES)
    assert after["moved_in"] == after["moved_out"] > before["moved_in"]
    rows = workers(pooler)
    assert [row["worker"] for row in rows] == list(range(WORKERS))
    assert [row["databases"] for row in rows] == [2] * WORKERS
    assert [row["clients"] - (row["worker"] == 0) for row in rows] == [4] * WORKERS
    assert rows[0]["thread"] == pooler.process.pid
    assert len({row["thread"] for row in rows}) == WORKERS
    assert all(row["turns"] > 0 and row["mails"] > 0 for row in rows)
    assert rows[0]["stops"] == rows[0]["stop_us"] == 0
    assert all(row["stops"] > 0 and row["stop_us"] > 0 for row in rows[1:])
    assert all(0 <= row["busy_average"] <= 100 for row in rows)
    busy = wait_until(lambda: [row["busy"] for row in workers(pooler) if row["busy"] is not None])
    assert len(busy) == WORKERS
    names = [row["names"].split(", ") for row in rows]
    assert sorted(itertools.chain(*names)) == sorted(NAMES)
    assert all(len(each) == 2 for each in names)


def test_the_names_of_many_databases_are_cut(new_pooler):
    pooler = new_pooler({"workers": 2}, databases={"*": {"worker": 1, "dbname": "main"}, "quiet": {"worker": 0}})
    names = [f"a_name_of_many_bytes_{number}" for number in range(50)]
    for name in names:
        pooler.client(database=name)
    first, second = workers(pooler)
    assert first["names"] == "quiet"
    listed = second["names"].split(", ")
    assert listed[-1] == "..." and listed[:-1] == names[: len(listed) - 1]
    assert 1000 <= len(second["names"]) < 1000 + 100


def test_one_worker_is_one_row(new_pooler):
    pooler = new_pooler({"workers": 1})
    pooler.client().query("SELECT 1")
    (row,) = workers(pooler)
    assert (row["worker"], row["databases"], row["clients"], row["servers"]) == (0, 1, 2, 1)
    assert row["thread"] == pooler.process.pid
    assert row["turns"] > 0 and row["dealt"] >= 2
    for name in ("moved_in", "moved_out", "mails", "wake_ups", "stops", "stop_us"):
        assert row[name] == 0


def test_metrics_have_each_worker(many, page):
    pooler = many()
    use(pooler)
    assert len(pooler.show("CLIENTS", database="pgbouncer")) == 1  # at the first worker
    found = scrape(pooler.metrics)
    for name in ("turns", "busy_seconds", "stops", "wake_ups", "mails"):
        assert len(found.series(f"pgusher_worker_{name}_total")) == WORKERS
    for number in range(WORKERS):
        assert found.value("pgusher_worker_clients", worker=str(number)) == 4 + (number == 0)
        assert found.value("pgusher_worker_servers", worker=str(number)) == 2
    moves = "pgusher_worker_moves_total"
    assert found.total(moves, direction="in") == found.total(moves, direction="out") > 0


def test_metrics_of_one_worker(new_pooler, page):
    port = free_port()
    pooler = new_pooler({"workers": 1, "metrics_port": port})
    pooler.client().query("SELECT 1")
    found = scrape(port)
    assert found.value("pgusher_worker_clients", worker="0") >= 1
    assert found.value("pgusher_worker_moves_total", worker="0", direction="in") == 0


# Sums


def test_lists_and_memory_are_of_all_workers(many):
    pooler = many()
    use(pooler)
    silent = [pooler.raw() for _ in range(WORKERS)]
    for client in silent:
        client.send(b"\0\0\0\x40")  # the length of a message that never comes
    wait_until(lambda: lists(pooler)["login_clients"] == WORKERS, 5, "a login at each worker")
    assert len([row for row in pooler.show("SOCKETS") if row["state"] == "cl_login"]) == WORKERS
    assert sums(pooler)["logins"] == WORKERS
    found = lists(pooler)
    assert found["used_clients"] == 2 * len(NAMES) + WORKERS + 1
    assert found["used_servers"] == len(NAMES)
    assert (found["databases"], found["pools"]) == (len(NAMES) + 1, len(NAMES) + 1)
    memory = {row["name"]: row for row in pooler.show("MEM")}
    assert len(memory) == len(pooler.show("MEM"))
    assert int(memory["client_cache"]["used"]) == found["used_clients"]
    assert int(memory["server_cache"]["used"]) == found["used_servers"]


def test_each_user_is_one_row(many, cluster):
    entry = {"host": HOST, "port": cluster.port, "dbname": "main"}
    databases = {name: dict(entry) for name in NAMES}
    # Only the workers of these databases know the user: it is in no file.
    for name in NAMES[1:3]:
        databases[name]["user"] = "elsewhere"
    pooler = many(databases=databases)
    clients = [pooler.client(database=name) for name in (NAMES[0], *NAMES[3:]) for _ in range(3)]
    for client in clients:
        client.query("SELECT 1")
    rows = pooler.show("USERS")
    names = [row["name"] for row in rows]
    assert names == sorted(set(names))
    assert "elsewhere" in names
    assert lists(pooler)["users"] == len(names)
    (app,) = [row for row in rows if row["name"] == "app"]
    assert (app["current_client_connections"], app["current_connections"]) == ("12", "4")


def test_each_host_is_one_row(many):
    pooler = many()
    use(pooler)
    (row,) = pooler.show("HOSTS")
    assert (row["host"], row["connections"], row["state"]) == (HOST, str(len(NAMES)), "up")
    state = state_of(pooler)
    (host,) = state["hosts"]
    assert host["connections"] == len(NAMES)
    assert {pool["host"] for pool in state["pools"]} == {host["id"]}


def test_a_host_is_down_for_all_workers(many):
    port = free_port()
    pooler = many(keys={"port": port})
    for name in NAMES:
        pooler.raw().send_startup("app", name)

    def failures():
        rows = pooler.show("HOSTS")
        return rows and rows[0]["failures"] != "0"

    wait_until(failures, 10, "a login that fails")
    (row,) = pooler.show("HOSTS")
    assert (row["port"], row["state"]) == (str(port), "down")
    assert row["last_error"]
    pooler.allow(".*")


def test_each_name_is_one_row(many):
    pooler = many(keys={"host": "localhost"})
    use(pooler)
    (row,) = pooler.show("DNS_HOSTS")
    assert row["hostname"] == "localhost" and HOST in row["addrs"]
    assert lists(pooler)["dns_names"] == 1


def test_counters_are_those_of_all_workers(many, page):
    pooler = many({"auth_type": "scram-sha-256"}, auth={"app": "right", "admin": "secret"})
    pooler.use_console("admin", "secret")
    use(pooler, password="right")
    before = scrape(pooler.metrics)
    for name in NAMES:
        pooler.refused(database=name, password="wrong")
    for number in range(WORKERS):
        pooler.refused(database=f"nowhere{number}", password="right")
    found = scrape(pooler.metrics)

    def grown(name, **labels):
        return found.total(name, **labels) - before.total(name, **labels)

    assert grown("pgusher_auth_failures_total") == len(NAMES)
    assert grown("pgusher_client_login_seconds_count", outcome="denied") >= len(NAMES)
    assert grown("pgbouncer_errors_count", errmsg="no such database: ...") == WORKERS
    assert found.value("pgusher_client_current", scope="user", name="app") == 2 * len(NAMES)
    assert found.value("pgusher_client_current", scope="global", name="") == 2 * len(NAMES) + 1  # the console
    assert found.value("pgbouncer_used_servers") == len(NAMES)
    assert found.value("pgusher_host_connections", host=HOST, address="", port=str(pooler.cluster.port)) == len(NAMES)
    (own,) = [value for _, value in found.series("pgusher_loop_busy_seconds_total")]
    assert abs(own - found.total("pgusher_worker_busy_seconds_total")) < 0.1
    assert state_of(pooler)["process"]["logins"] == 0


def test_statistics_are_those_of_all_workers(many, page):
    pooler = many()
    use(pooler, 3)
    found = scrape(pooler.metrics)
    assert found.total("pgbouncer_stats_totals_queries_pooled_total") == 3 * len(NAMES)
    totals = {row["name"]: int(row["value"]) for row in pooler.show("TOTALS")}
    assert totals["total_server_assignment_count"] == 3 * len(NAMES)


# Merged lists


@pytest.mark.setting("log_min_duration")
def test_slow_queries_of_all_workers_are_in_one_order(many):
    pooler = many({"log_min_duration": 0})
    clients = [pooler.client(database=name) for name in NAMES]
    texts = [f"SELECT {number}" for number in range(3 * len(NAMES))]
    for number, text in enumerate(texts):
        clients[number % len(NAMES)].query(text)
    wait_until(lambda: len(pooler.show("SLOW")) == len(texts))
    rows = pooler.show("SLOW")
    # Each worker knows the time by its own turns: of two queries in a moment either may come first.
    assert sorted(row["text"] for row in rows) == sorted(texts)
    assert [row["at"] for row in rows] == sorted((row["at"] for row in rows), reverse=True)
    assert [int(row["id"]) for row in rows] == list(range(len(texts), 0, -1))
    assert sum(group["count"] for group in state_of(pooler)["slow"]) >= len(NAMES)


def test_statements_of_all_workers_are_in_the_order_of_their_ids(many):
    pooler = many()
    for name in NAMES:
        with pooler.connect(dbname=name) as client:
            client.prepare_threshold = 0
            client.execute("SELECT 1")
            client.execute(f"SELECT '{name}'")
            rows = pooler.show("STATEMENTS")
            assert {"SELECT 1", f"SELECT '{name}'"} <= {row["query"] for row in rows}
    rows = pooler.show("STATEMENTS")
    ids = [int(row["id"]) for row in rows]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    own = [row["query"] for row in rows if row["query"].startswith("SELECT 'db")]
    assert own == [f"SELECT '{name}'" for name in NAMES]


def test_application_names_are_those_of_clients_at_any_worker(many):
    pooler = many({"track_extra_parameters": "search_path"})
    for name in NAMES:
        pooler.client(database=name, application_name=f"of {name}").query("SELECT 1")
    found = {row["database"]: row["application_name"] for row in pooler.show("CLIENTS", user="app")}
    assert found == {name: f"of {name}" for name in NAMES}


# pool_size = auto


def test_automatic_sizes_count_the_pools_of_all_workers(many):
    pooler = many({"default_pool_size": "auto"}, keys={"host_cores": 12})
    use(pooler, 1)

    def sizes():
        rows = pooler.show("SIZING")
        return {(row["sharing_pools"], row["pool_size"]) for row in rows}, len(rows)

    # Twelve cores are 48 servers, of six pools.
    wait_until(lambda: sizes() == ({("6", "8")}, len(NAMES)), 10, "the sizes of six pools")
