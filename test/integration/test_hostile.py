# SPDX-License-Identifier: ISC
"""Hostile clients and servers after the login: what they can make the process do."""

import contextlib

import pytest

from support import wire
from support.clients.latency_probe import Probe
from support.clients.raw import Closed
from support.process import wait_until
from support.servers.pooler import is_sanitized

MANY = 5000
NAMES = 30_000

# The longest that another client may wait, with an allowance for busy machines and sanitizers.
STALL = 5 if is_sanitized() else 0.5


@pytest.fixture
def one_server(new_pooler):
    """A pooler in transaction mode with a pool of one."""
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_client_conn": 10000}
    )


def test_answers_for_a_disconnected_client_go_nowhere(one_server):
    with one_server.raw().login() as client:
        client.send(wire.parse("SELECT 1", "known"), wire.sync())
        client.checked()
        again = wire.parse("SELECT 1", "other") + wire.close("S", "other")
        client.send(wire.query("SELECT pg_sleep(0.5)"), again * MANY, wire.sync())
        client.send(wire.terminate())
    with one_server.raw().login() as another:
        assert another.value("SELECT 7") == "7"


def test_thousands_of_simultaneous_releases_are_served_in_turn(one_server):
    blocker = one_server.raw().login()
    blocker.query("BEGIN")
    waiters = [one_server.keep(one_server.raw().login()) for _ in range(4000)]
    for waiter in waiters:
        waiter.send(wire.sync())
    one_server.wait_pool(cl_waiting=len(waiters))
    blocker.query("COMMIT")
    assert waiters[-1].checked().status == "I"
    assert waiters[-1].value("SELECT 7") == "7"
    one_server.wait_pool(cl_waiting=0)


# Work that grows with the square of what one client has sent


def prepare_names(pooler):
    """A client with very many names for one statement."""
    client = pooler.keep(pooler.raw().login())
    for start in range(0, NAMES, MANY):
        names = range(start, start + MANY)
        client.send(*[wire.parse("SELECT 7", f"n{number}") for number in names], wire.sync())
        client.checked()
    return client


def close_names():
    """Close all of those in one pipeline."""
    return b"".join(wire.close("S", f"n{number}") for number in range(NAMES))


def closes_that_are_skipped(pooler, _):
    client = prepare_names(pooler)
    client.send(wire.parse("nonsense"), close_names(), wire.sync())
    assert client.result().types == "EZ"
    for name in "n0", f"n{NAMES - 1}":
        client.send(wire.bind(statement=name), wire.execute(), wire.sync())
        assert client.checked().value == "7"


def closes_of_a_client_that_goes(pooler, cluster):
    client = prepare_names(pooler)
    client.send(wire.query("SELECT pg_sleep(60)"), close_names())
    wait_until(lambda: cluster.backends(state="active"))
    client.close()
    wait_until(lambda: not cluster.backends(state="active"))


def unnamed_statements_of_a_client_that_goes(pooler, cluster):
    client = pooler.raw().login()
    client.send(wire.query("SELECT pg_sleep(60)"), wire.parse("SELECT 7") * NAMES)
    wait_until(lambda: cluster.backends(state="active"))
    client.close()
    wait_until(lambda: not cluster.backends(state="active"))


def ends_of_the_unnamed_statement(pooler, _):
    client = pooler.keep(pooler.raw().login())
    again = [wire.parse("SELECT 7") * NAMES, wire.sync(), wire.close("S", "") * NAMES]
    client.send(wire.query("SELECT pg_sleep(0.5)"), *again, wire.sync())
    assert [client.result(60).error for _ in range(3)] == [None] * 3


def ends_of_all_statements(pooler, _):
    client = prepare_names(pooler)
    client.query("SELECT 7;" + "DEALLOCATE ALL;" * 20_000, 60)
    client.send(wire.bind(statement="n0"), wire.sync())
    assert client.result().error.sqlstate == "26000"


def ends_of_all_statements_before_others(pooler, _):
    client = pooler.keep(pooler.raw().login())
    later = [wire.parse(f"SELECT {number}", f"n{number}") for number in range(NAMES // 2)]
    client.send(wire.query("SELECT 7;" + "DEALLOCATE ALL;" * 20_000), *later, wire.sync())
    assert [client.result(60).error for _ in range(2)] == [None] * 2


@pytest.mark.alone
@pytest.mark.parametrize(
    "storm",
    [
        closes_that_are_skipped, closes_of_a_client_that_goes,
        unnamed_statements_of_a_client_that_goes, ends_of_the_unnamed_statement,
        ends_of_all_statements, ends_of_all_statements_before_others,
    ],
)
def test_no_client_waits_for_a_flood_of_statements(cluster, pooler, storm):  # F82
    with Probe(pooler.address, "queries") as others:
        others.lap(0.2)
        storm(pooler, cluster)
        assert others.lap()[-1] < STALL


# What clients leave behind on a server


def run(client, *parts):
    """Send one batch; the types of its answer, and its error code or value."""
    client.send(*parts, wire.sync())
    result = client.result()
    return result.types, result.value or result.error.sqlstate


GOOD = wire.bind(statement="s") + wire.execute()


def test_names_that_a_client_takes_by_sql_are_released(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "session_state": "ignore"}
    )
    thief, owner = (pooler.keep(pooler.raw().login()) for _ in range(2))
    for number in range(1, 4):
        thief.query(f"PREPARE \"PGBOUNCER_{number}\" AS SELECT 'stolen'")
    assert run(owner, wire.parse("SELECT 'good'", "s"), GOOD) == ("12DCZ", "good")
    owner.query("BEGIN")
    stolen = wire.parse("SELECT 'better'", "t"), wire.bind(statement="t"), wire.execute()
    assert run(owner, *stolen) == ("EZ", "42P05")
    owner.query("ROLLBACK")
    assert run(owner, *stolen) == ("12DCZ", "better")
    assert run(owner, GOOD) == ("2DCZ", "good")


def test_a_name_is_released_where_a_statement_follows_its_client(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 2, "session_state": "ignore"}
    )
    owner, thief, other = (pooler.keep(pooler.raw().login()) for _ in range(3))
    assert run(owner, wire.parse("SELECT 'good'", "s"), GOOD) == ("12DCZ", "good")
    owner.query("BEGIN")
    thief.query("PREPARE \"PGBOUNCER_1\" AS SELECT 'stolen'")
    owner.query("COMMIT")
    other.query("BEGIN")
    assert other.value("SELECT name FROM pg_prepared_statements WHERE NOT from_sql")
    for _ in range(2):
        assert run(owner, GOOD) == ("2DCZ", "good")


LETTERS = b"\x83\\"  # of Shift JIS: the second byte is that of a backslash


@pytest.mark.parametrize("value", [LETTERS + b"n", b"it's " + LETTERS + b" $q$", LETTERS + b"' x"])
def test_no_character_of_a_value_escapes_the_quote_that_follows(one_server, value):
    other = one_server.keep(one_server.raw().login())
    client = one_server.keep(one_server.raw())
    pairs = [b"user", b"app", b"database", b"main", b"client_encoding", b"SJIS", b"my.x", value]
    client.send(wire.untyped(wire.PROTOCOL_3_0, b"".join(each + b"\0" for each in pairs) + b"\0"))
    client.finish_login("app")
    for _ in range(2):
        other.query("SELECT 1")
        (row,) = [each.body for each in client.query("SHOW my.x").messages if each.type == "D"]
        assert row[6:] == value


# Memory


def test_incomplete_messages_take_no_more_memory_than_all_statements_may(new_pooler):  # F82
    most, size = 32 << 20, 6 << 20
    pooler = new_pooler({"pool_mode": "transaction", "max_prepared_memory": most})
    others = pooler.keep(pooler.raw().login())
    others.send(wire.parse("SELECT 7", "s"), wire.sync())
    others.checked()
    before = pooler.memory()
    long = wire.parse("SELECT '" + "x" * size + "'", "long")
    clients = [pooler.keep(pooler.raw().login()) for _ in range(40)]
    refused = []
    for client in clients:
        try:
            client.send(long[:-100_000])
        except OSError:
            refused.append(client)
    assert others.extended("SELECT 7").value == "7"
    # Sanitizers keep freed memory.
    assert is_sanitized() or pooler.memory() - before < 2 * most
    for client in set(clients) - set(refused):
        with contextlib.suppress(OSError):
            client.send(long[-100_000:], wire.sync())
        with contextlib.suppress(Closed):
            types = "".join(each.type for each in client.read_until("ZE"))
            assert types in ("1Z", "E")
            refused += [client] * (types == "E")
    assert 0 < len(refused) < len(clients)
    assert run(others, GOOD) == ("2DCZ", "7")
