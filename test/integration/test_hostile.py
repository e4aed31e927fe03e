# SPDX-License-Identifier: ISC
"""Clients and servers that mean harm behind the login: what they can make one process do."""

import pytest

from support import wire

MANY = 5000


@pytest.fixture
def one_server(new_pooler):
    """A pooler in transaction mode with a pool of one."""
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_client_conn": 10000}
    )


def test_answers_that_nobody_waits_for_any_more_go_nowhere(one_server):
    with one_server.raw().login() as client:
        client.send(wire.parse("SELECT 1", "known"), wire.sync())
        client.checked()
        again = wire.parse("SELECT 1", "other") + wire.close("S", "other")
        client.send(wire.query("SELECT pg_sleep(0.5)"), again * MANY, wire.sync())
        client.send(wire.terminate())
    with one_server.raw().login() as another:
        assert another.value("SELECT 7") == "7"


def test_thousands_who_give_their_server_back_at_once_are_served_in_turn(one_server):
    blocker = one_server.raw().login()
    blocker.query("BEGIN")
    waiters = [one_server.keep(one_server.raw().login()) for _ in range(4000)]
    for waiter in waiters:
        waiter.send(wire.flush())
    one_server.wait_pool(cl_waiting=len(waiters))
    blocker.query("COMMIT")
    assert waiters[-1].value("SELECT 7") == "7"
    one_server.wait_pool(cl_waiting=0)
