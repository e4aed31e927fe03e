# SPDX-License-Identifier: ISC
"""Several workers: threads with an event loop each, one set of databases, limits and commands."""

import os

import pytest

from support import wire
from support.clients.raw import cancel
from support.process import wait_until

WORKERS = 3
NAMES = [f"db{number}" for number in range(6)]
SLEEP = "SELECT pg_sleep(60)"


@pytest.fixture
def many(new_pooler):
    """Make a daemon with three workers and six databases, all of them the cluster's `main`."""

    def make(settings=None, **options):
        options.setdefault("databases", {name: {"dbname": "main"} for name in NAMES})
        return new_pooler(
            {"pool_mode": "transaction", "workers": WORKERS, **(settings or {})}, **options)

    return make


def threads(pooler):
    """The names of the daemon's threads that serve clients, besides the first one."""
    folder = f"/proc/{pooler.process.pid}/task"
    names = []
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/comm") as file:
            names.append(file.read().strip())
    return [name for name in names if name.startswith("pgusher-work")]


@pytest.mark.setting("workers")
def test_each_worker_has_a_thread_and_all_databases_are_served(many):
    pooler = many()
    assert len(threads(pooler)) == WORKERS - 1
    for name in NAMES:
        for _ in range(WORKERS):  # accepted by each worker
            assert pooler.client(database=name).query("SELECT 42").value == "42"
    assert sorted({row["database"] for row in pooler.show("POOLS")}) == [*NAMES, "pgbouncer"]


def test_one_worker_has_no_thread_of_its_own(new_pooler):
    assert threads(new_pooler({"workers": 1})) == []


def test_counts_of_all_workers_are_shown_together(many):
    pooler = many()
    clients = [pooler.client(database=name) for name in NAMES for _ in range(2)]
    for client in clients:
        client.query("SELECT 1")
    rows = {row["database"]: row for row in pooler.show("STATS_TOTALS")}
    assert [rows[name]["query_count"] for name in NAMES] == ["2"] * len(NAMES)
    assert len(pooler.show("CLIENTS", user="app")) == len(clients)
    assert len(pooler.show("SERVERS")) == len(NAMES)


def test_automatic_databases_have_one_home(many):
    pooler = many(databases={"*": {"dbname": "main"}})
    clients = [pooler.client(database=name) for name in NAMES for _ in range(4)]
    for client in clients:
        assert client.query("SELECT 1").value == "1"
    assert len(pooler.show("POOLS", user="app")) == len(NAMES)


@pytest.mark.parametrize("databases", [["main"], ["main", "*"]])
def test_the_console_is_at_the_first_worker_by_both_names(many, databases):
    pooler = many(databases={name: {} for name in databases})
    for name in ("pgbouncer", "pgusher"):
        for _ in range(WORKERS):  # accepted by each worker
            assert pooler.client("admin", name, unix=False).query("SHOW DATABASES").rows


def test_cancel_finds_its_query_at_any_worker(many):
    pooler = many()
    for name in NAMES:
        for _ in range(WORKERS):
            client = pooler.client(database=name)
            client.send(wire.query(SLEEP))
            # PostgreSQL drops a request for a query that it has not received yet.
            wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
            cancel(pooler.address, client.key)
            assert client.result().error.is_("ERROR", "57014", "canceling statement due to user request")
            client.close()


def test_commands_act_on_databases_of_all_workers(many):
    pooler = many()
    clients = {name: pooler.client(database=name) for name in NAMES}
    for client in clients.values():
        client.query("SELECT 1")
    pooler.command("PAUSE")
    assert all(row["paused"] == "0" for row in pooler.show("DATABASES"))
    for client in clients.values():
        client.send(wire.query("SELECT 'after'"))
    for name in NAMES:
        pooler.wait_pool(database=name, cl_waiting=1)
    assert pooler.show("SERVERS") == []
    pooler.command("RESUME")
    for client in clients.values():
        assert client.result().value == "after"
    for name in NAMES:
        pooler.command(f"KILL {name}")
        with pytest.raises(Exception):
            clients[name].query("SELECT 1")
        pooler.command(f"RESUME {name}")
        assert pooler.client(database=name).query("SELECT 1").value == "1"


def test_reload_changes_databases_of_all_workers(many):
    pooler = many()
    clients = {name: pooler.client(database=name) for name in NAMES}
    for client in clients.values():
        client.query("SELECT 1")
    gone = NAMES[:3]
    for name in gone:
        del pooler.databases[name]
    pooler.databases["new"] = {"dbname": "main"}
    pooler.write_config()
    pooler.command("RELOAD")
    for name in gone:
        with pytest.raises(Exception):
            clients[name].query("SELECT 1")
    for name in NAMES[3:]:
        assert clients[name].query("SELECT 1").value == "1"
    assert pooler.client(database="new").query("SELECT 1").value == "1"


def test_client_limit_holds_for_the_process(many):
    pooler = many({"max_client_conn": 9})
    clients = [pooler.client(database=NAMES[number % len(NAMES)]) for number in range(9)]
    assert pooler.refused(database=NAMES[0]).is_(
        "FATAL", "53300", "no more connections allowed (max_client_conn)")
    clients.pop().close()
    wait_until(lambda: len(pooler.show("CLIENTS", user="app")) == 8, 5, "the client to be gone")


def test_shutdown_waits_for_clients_of_all_workers(many):
    pooler = many()
    clients = [pooler.client(database=name) for name in NAMES]
    for client in clients:
        client.query("BEGIN")
    pooler.signal(15)
    pooler.wait_log("got SIGTERM")
    for client in clients:
        assert client.query("SELECT 1").value == "1"
        client.query("COMMIT")
        client.close()
    assert pooler.wait_exit() == 0
