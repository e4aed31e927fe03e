# SPDX-License-Identifier: ISC
"""Limits of connections that databases of several workers share: exact, and fair between workers."""

import threading
import time

import pytest

from support import wire
from support.clients.closed_loop import run_clients
from support.process import wait_until

WORKERS = 3
NAMES = [f"db{number}" for number in range(6)]


@pytest.fixture
def many(new_pooler):
    """Make a daemon with three workers and six databases, all of them the cluster's `main`."""

    def make(**settings):
        settings = {"pool_mode": "transaction", "workers": WORKERS, "default_pool_size": 10, **settings}
        return new_pooler(settings, databases={name: {"dbname": "main"} for name in NAMES})

    return make


def load(pooler, logins, seconds, query="SELECT 1"):
    """How many queries each client has had answered, and the most servers that there were meanwhile."""
    clients = []
    thread = threading.Thread(target=lambda: clients.extend(
        run_clients(("127.0.0.1", pooler.port), logins, seconds, query)))
    most = 0
    thread.start()
    # Not until the end: clients that leave during a query have cancel requests, to which no limit applies.
    end = time.monotonic() + 0.8 * seconds
    while time.monotonic() < end:
        most = max(most, len(pooler.show("SERVERS")))
    thread.join()
    return [client.done for client in clients], most


@pytest.mark.parametrize("limit", ["max_server_connections", "max_user_connections"])
@pytest.mark.parametrize("places", [1, 4])
def test_the_limit_holds_for_all_workers_and_all_clients_are_served(many, cluster, limit, places):
    pooler = many(**{limit: places})
    done, most = load(pooler, [("app", name) for name in NAMES] * 3, 3)
    assert most <= places
    assert min(done) > 0, done
    assert most == places


@pytest.mark.parametrize("limit", ["max_server_connections", "max_user_connections"])
def test_a_busy_database_does_not_keep_one_of_another_worker_out(many, cluster, limit):
    pooler = many(**{limit: 2})
    done, _ = load(pooler, [("app", NAMES[0])] * 12 + [("app", name) for name in NAMES[1:3]], 3)
    assert min(done[12:]) >= 0.05 * sum(done), done


def test_an_unused_server_of_another_worker_makes_room(many, cluster):
    pooler = many(max_user_connections=1)
    for name in NAMES * 2:
        assert pooler.client(database=name).query("SELECT 1").value == "1"
    assert len(pooler.show("SERVERS")) == 1
    assert pooler.show("USERS", name="app")[0]["current_connections"] == "1"


def test_a_place_of_another_worker_is_used_when_its_transaction_ends(many, cluster):
    pooler = many(max_server_connections=1)
    for holds, waits in zip(NAMES, NAMES[1:]):
        holder, waiter = pooler.client(database=holds), pooler.client(database=waits)
        holder.query("BEGIN")
        waiter.send(wire.query("SELECT 1"))
        wait_until(lambda database=waits: pooler.show("POOLS", database=database, cl_waiting="1"))
        holder.query("COMMIT")
        assert waiter.result().value == "1"
        holder.leave()
        waiter.leave()


def test_reload_raises_and_lowers_the_limit_for_all_workers(many, cluster):
    pooler = many(max_server_connections=1)
    # The first login of a pool waits for a server.
    for name in NAMES:
        pooler.client(database=name).query("SELECT 1")
    holder = pooler.client(database=NAMES[0])
    holder.query("BEGIN")
    waiters = [pooler.client(database=name) for name in NAMES[1:]]
    for waiter in waiters:
        waiter.send(wire.query("BEGIN"))
    pooler.command("SET max_server_connections = 6")
    for waiter in waiters:
        assert waiter.result().tag == "BEGIN"
    pooler.command("SET max_server_connections = 2")
    for waiter in waiters:
        waiter.query("COMMIT")
    holder.query("COMMIT")
    # Servers beyond the limit stay as long as their own pools use them. A place that changes its pool
    # costs a login, which takes long on a busy machine.
    done, most = load(pooler, [("app", name) for name in NAMES], 4)
    assert min(done) > 0
    assert most <= len(NAMES)


def test_clients_of_a_user_count_at_all_workers(many, cluster):
    pooler = many(max_user_client_connections=4)
    clients = [pooler.client(database=name) for name in NAMES[:4]]
    for name in NAMES:
        assert pooler.refused(database=name).sqlstate == "53300"
    assert pooler.show("USERS", name="app")[0]["current_client_connections"] == "4"
    clients.pop().leave()
    wait_until(lambda: pooler.show("USERS", name="app", current_client_connections="3"))
    assert pooler.client(database=NAMES[5]).query("SELECT 1").value == "1"
