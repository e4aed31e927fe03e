# SPDX-License-Identifier: ISC
"""Several workers: what one of them learns of a host, the others know."""

import pytest

from support import wire
from support.clients.raw import ServerError
from support.clients.writers import TABLE
from support.process import wait_until
from support.servers.replicas import BlackHole

PLACE = "SELECT host(inet_server_addr())"
WRITE = "INSERT INTO written (id) VALUES (-1) RETURNING host(inet_server_addr())"
WORKER_OF = {"first": 1, "second": 2}


@pytest.fixture
def two(new_pooler):
    """Make a daemon with two databases, each of which has a worker of its own: two(first=..., second=...).

    Probes are rare, so that only servers of clients tell of hosts.
    """

    def make(settings=None, **databases):
        return new_pooler(
            {
                "workers": 3,
                "pool_mode": "transaction",
                "host_check_interval": "60",
                "server_connect_timeout": "2",
                **(settings or {}),
            },
            databases={name: {**keys, "worker": WORKER_OF[name]} for name, keys in databases.items()},
        )

    return make


def entry(*hosts, attrs=None, **keys):
    """A database with this list of members of a group, or addresses."""
    port = next(host.port for host in hosts if not isinstance(host, str))
    asked = {"target_session_attrs": attrs} if attrs else {}
    names = [host if isinstance(host, str) else host.host for host in hosts]
    return {"host": ",".join(names), "port": port, "dbname": "main", **asked, **keys}


def row_of(pooler, host):
    """The row of SHOW HOSTS."""
    (row,) = pooler.show("HOSTS", host=host if isinstance(host, str) else host.host)
    return row


def test_a_dead_host_costs_one_timeout_for_all_workers(two, pair):
    primary, _ = pair
    hole = BlackHole("127.0.1.201", primary.port)
    try:
        keys = {"attrs": "primary", "load_balance_hosts": "disable"}
        pooler = two(
            first=entry(hole.host, primary, **keys), second=entry(hole.host, primary, **keys),
            settings={"server_connect_timeout": "6"})
        assert pooler.client(database="first").value(PLACE) == primary.host
        # The host has just failed, by what the first worker says: the second one knows no timeout.
        assert pooler.client(database="second").value(PLACE) == primary.host
        assert len(pooler.lines(f"no answer from {hole.host}")) == 1
        assert not pooler.lines(f"second/app@{hole.host}:.*closing because")
        row = row_of(pooler, hole.host)
        assert (row["state"], row["failures"]) == ("down", "1")
    finally:
        hole.close()


def test_a_host_that_answers_one_worker_is_used_by_the_others(two, pair):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    pooler = two(
        first=entry(standby), second=entry(standby, primary, attrs="prefer-standby"),
        settings={"server_login_retry": "0.2", "pool_mode": "session"})
    held = []

    def place_of_new_server():
        held.append(pooler.client(database="second"))
        return held[-1].value(PLACE)

    standby.kill()
    assert place_of_new_server() == primary.host
    with pooler.raw() as waiting:
        waiting.send(wire.startup({"user": "app", "database": "first"}))
        # Each failure of the first worker makes the pause of the second one longer: 6 s or more now.
        wait_until(lambda: int(row_of(pooler, standby)["failures"]) >= 4, 20)
        assert place_of_new_server() == primary.host
        standby.start()
        waiting.read_until("Z")
    row = row_of(pooler, standby)
    assert (row["state"], row["failures"]) == ("up", "0")
    assert place_of_new_server() == standby.host


def test_a_promotion_that_one_worker_notices_moves_the_readers_of_another(two, pair):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    pooler = two(
        first=entry(standby, primary, load_balance_hosts="disable"),
        second=entry(standby, attrs="standby"))
    indifferent, reader = pooler.client(database="first"), pooler.client(database="second")
    assert indifferent.value(PLACE) == reader.value(PLACE) == standby.host
    wait_until(lambda: row_of(pooler, standby)["role"] == "standby", what="the role")
    standby.promote()
    assert indifferent.value(PLACE) == standby.host
    row = row_of(pooler, standby)
    assert (row["role"], row["told_by"]) == ("primary", "report")
    wait_until(
        lambda: all(server["state"] == "tested" for server in pooler.servers(database="second")),
        5, "the reader's server to go")


def test_a_refusal_to_write_at_one_worker_warns_the_others(two, pair):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    primary.sql(TABLE)
    keys = {"attrs": "read-write"}
    pooler = two(first=entry(primary, standby, **keys), second=entry(primary, standby, **keys))
    first, second = pooler.client(database="first"), pooler.client(database="second")
    assert first.value(WRITE) == second.value(WRITE) == primary.host
    first.query("BEGIN READ ONLY")
    primary.fence()
    with pytest.raises(ServerError, match="25006"):
        first.query(WRITE)
    # Its server is to be asked before it gets the query, which then waits for a host that accepts it.
    wait_until(lambda: "used" in {row["state"] for row in pooler.servers(database="second")})
    second.send(wire.query(WRITE))
    pooler.wait_pool("second", cl_waiting=1)
    primary.unfence()
    assert second.result().value == primary.host
