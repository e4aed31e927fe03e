# SPDX-License-Identifier: ISC
"""Limits of server connections that several pools share: who gets a place, and when."""

import contextlib
import threading

import pytest

from support import wire
from support.clients.closed_loop import jain, run_clients
from support.clients.raw import cancel
from support.process import wait_until

USERS = [f"shared{number}" for number in range(20)]


@pytest.fixture
def users(cluster):
    """Roles of their own, each a pool."""
    cluster.ask("main", "".join(f"CREATE ROLE {name} LOGIN;" for name in USERS))
    yield USERS
    cluster.clear()
    cluster.ask("main", "".join(f"DROP ROLE {name};" for name in USERS))


def make(new_pooler, **settings):
    databases = {"main": {}, "second": {"dbname": "main"}}
    auth = {name: "" for name in USERS}
    # The janitor must not be what helps: its own limits are far away.
    return new_pooler({"pool_mode": "transaction", **settings}, databases=databases, auth=auth)


# A place that becomes free


def commit(holder, cluster):
    holder.query("COMMIT")


def vanish(holder, cluster):
    holder.close()


def terminate(holder, cluster):
    cluster.ask("main", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE state = 'idle in transaction'")


def cancel_query(holder, cluster):
    holder.query("COMMIT")
    holder.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(query="SELECT pg_sleep(60)", state="active"))
    cancel(holder.address, holder.key)


@pytest.mark.parametrize("end", [commit, vanish, terminate, cancel_query])
@pytest.mark.parametrize("limit, holds, waits", [
    ("max_user_connections", ("app", "main"), ("app", "second")),
    ("max_db_connections", ("app", "main"), ("alice", "main")),
    ("max_server_connections", ("app", "main"), ("alice", "second")),
])
def test_a_place_that_becomes_free_is_used_without_the_janitor(
        new_pooler, cluster, limit, holds, waits, end):
    pooler = make(new_pooler, **{limit: 1, "verbose": 1})
    pooler.allow("terminating connection")
    holder, waiter = pooler.client(*holds), pooler.client(*waits)
    holder.query("BEGIN")
    if end is cancel_query:
        # The waiter may have its turn between COMMIT and the query that is cancelled.
        end(holder, cluster)
    waiter.send(wire.query("SELECT 1"))
    wait_until(lambda: pooler.show("POOLS", user=waits[0], database=waits[1], cl_waiting="1")
               or not waiter.silent(0))
    if end is not cancel_query:
        end(holder, cluster)
    assert waiter.result().value == "1"


def test_a_busy_user_does_not_keep_another_out(new_pooler, cluster):
    pooler = make(new_pooler, max_db_connections=1)
    clients = run_clients(("127.0.0.1", pooler.port),
                          [("app", "main")] * 3 + [("alice", "main")], 1.5)
    done = [each.done for each in clients]
    assert done[3] >= 0.2 * sum(done), done


def test_a_client_that_needs_places_below_two_full_limits_is_served(new_pooler, cluster):
    pooler = make(new_pooler, max_db_connections=1, max_user_connections=1)
    clients = run_clients(
        ("127.0.0.1", pooler.port),
        [("alice", "main")] * 2 + [("app", "second")] * 2 + [("app", "main")], 3,
        "SELECT pg_sleep(0.02)")
    done = [each.done for each in clients]
    assert done[4] >= 0.1 * sum(done), done


@pytest.mark.alone
def test_users_with_one_client_have_their_share_beside_one_with_many(users, new_pooler, cluster):
    pooler = make(new_pooler, max_db_connections=4, max_client_conn=100)
    clients = run_clients(("127.0.0.1", pooler.port),
                          [("app", "main")] * 40 + [(name, "main") for name in users[:3]], 3)
    done = [each.done for each in clients]
    assert min(done[40:]) >= 0.15 * sum(done), (done[40:], sum(done))


@pytest.mark.alone
def test_many_users_share_few_connections_fairly(users, new_pooler, cluster):
    pooler = make(new_pooler, max_db_connections=3, max_client_conn=100)
    clients = run_clients(("127.0.0.1", pooler.port), [(name, "main") for name in users], 4)
    done = [each.done for each in clients]
    assert min(done) > 0 and jain(done) >= 0.7, done


def test_min_pool_size_is_kept_below_a_shared_limit(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_user_connections": 3},
        databases={"main": {}, "kept": {"dbname": "main", "min_pool_size": 2, "user": "app"}})
    wait_until(lambda: pooler.show("POOLS", database="kept", sv_idle="2"))
    with contextlib.ExitStack() as stack:
        others = [stack.enter_context(pooler.client("app", "main")) for _ in range(4)]
        for other in others[:1]:
            other.query("BEGIN")
        for other in others[1:]:
            other.send(wire.query("SELECT 1"))
        wait_until(lambda: pooler.show("POOLS", database="main", cl_waiting="3"))
        for _ in range(3):
            assert pooler.show("POOLS", database="kept", sv_idle="2")
        others[0].query("COMMIT")
        for other in others[1:]:
            assert other.result().value == "1"


@pytest.mark.setting("databases.pool_weight", "users.pool_weight")
@pytest.mark.parametrize("users, heavy_user", [({}, "app"), ({"alice": {"pool_weight": 3}}, "alice")])
def test_pool_weight_sets_the_share(new_pooler, cluster, users, heavy_user):
    weight = {} if users else {"pool_weight": 3}
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_server_connections": 4, "default_pool_size": 10},
        databases={"main": {}, "heavy": {"dbname": "main", **weight}}, users=users)
    stop = threading.Event()

    def servers(name):
        return sum(int(row["sv_active"]) + int(row["sv_idle"]) + int(row["sv_login"])
                   for row in pooler.show("POOLS", database=name))

    def load():
        while not stop.is_set():
            run_clients(("127.0.0.1", pooler.port),
                        [("app", "main")] * 8 + [(heavy_user, "heavy")] * 8, 0.5)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        wait_until(lambda: (servers("main"), servers("heavy")) == (1, 3))
    finally:
        stop.set()
        thread.join()


@pytest.mark.setting("max_server_connections")
def test_the_limit_of_the_process_holds(new_pooler, cluster):
    pooler = make(new_pooler, max_server_connections=2, default_pool_size=10)
    run_clients(("127.0.0.1", pooler.port),
                [("app", "main")] * 4 + [("alice", "second")] * 4 + [("bob", "main")] * 4, 0.5)
    # Connections with cancel requests, for clients that left during a query, are beyond limits.
    servers = [row for row in pooler.show("SERVERS") if row["state"] != "active_cancel"]
    assert len(servers) <= 2
    pooler.command("SET max_server_connections = 4")
    with contextlib.ExitStack() as stack:
        for number in range(6):
            client = stack.enter_context(pooler.client("app", ("main", "second")[number % 2]))
            client.send(wire.query("SELECT pg_sleep(30)"))
        wait_until(lambda: len(pooler.show("SERVERS", state="active")) == 4)
