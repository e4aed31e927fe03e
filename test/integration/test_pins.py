# SPDX-License-Identifier: ISC
"""What cannot follow a client keeps its server with it, until it is gone."""

import pytest

from support import wire


@pytest.fixture
def pool(new_pooler):
    """A pooler with one server, which may be pinned."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 2, "max_pinned": 1})


def extended(client, sql):
    client.send(wire.extended(sql) + wire.sync())
    return client.checked()


PINS = [
    # What makes the state, a query that sees it, what ends it.
    ("CREATE TEMP TABLE t (a int)", "SELECT count(*) FROM t", "DROP TABLE t"),
    ("CREATE TABLE pg_temp.t (a int)", "SELECT count(*) FROM t", "DROP TABLE t"),
    ("CREATE TEMP TABLE t AS SELECT 1", "SELECT count(*) - 1 FROM t", "DISCARD TEMP"),
    ("SELECT 1 AS a INTO TEMP t", "SELECT count(*) - 1 FROM t", "DROP TABLE t"),
    ("CREATE TEMP VIEW t AS SELECT 1", "SELECT count(*) - 1 FROM t", "DROP VIEW t"),
    ("CREATE TEMP SEQUENCE t", "SELECT nextval('t') * 0", "DROP SEQUENCE t"),
    ("SELECT pg_advisory_lock(7)", "SELECT count(*) - 1 FROM pg_locks WHERE locktype = 'advisory'"
     " AND pid = pg_backend_pid()", "SELECT pg_advisory_unlock(7)"),
    ("SELECT pg_try_advisory_lock(7, 8)", "SELECT count(*) - 1 FROM pg_locks WHERE locktype ="
     " 'advisory' AND pid = pg_backend_pid()", "SELECT pg_advisory_unlock_all()"),
    ("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 0", "FETCH ABSOLUTE 1 FROM c", "CLOSE c"),
    ("DO $$ BEGIN CREATE TEMP TABLE t (a int); END $$", "SELECT count(*) FROM t", "DROP TABLE t"),
]


@pytest.mark.parametrize("run", ["simple", "extended", "transaction"])
@pytest.mark.parametrize("make,see,end", PINS)
def test_state_that_cannot_follow_keeps_its_server(pool, run, make, see, end):
    one, two = pool.client(), pool.client()
    if run == "simple":
        one.query(make)
    elif run == "extended":
        extended(one, make)
    else:
        one.query("BEGIN")
        one.query(make)
        one.query("COMMIT")
    for _ in range(2):
        assert one.value(see) == "0"
        two.query("SELECT 1")
    assert len(pool.show("PINS")) == 1
    one.query(end)
    one.query("SELECT 1")
    assert pool.show("PINS") == []


@pytest.mark.parametrize("make,see,end", PINS)
def test_rolled_back_state_pins_nothing(pool, make, see, end):
    one = pool.client()
    one.query("BEGIN")
    one.query(make)
    one.query("ROLLBACK")
    one.query("SELECT 1")
    assert len(pool.show("PINS")) == ("advisory" in make)
