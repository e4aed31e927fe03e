# SPDX-License-Identifier: ISC
"""What cannot follow a client keeps its server with it, until it is gone."""

import pytest

from support import wire
from support.process import wait_until
from support.session_state.runs import RUNS


@pytest.fixture
def pool(new_pooler):
    """A pooler with one server, which may be pinned."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 2, "max_pinned": 1})


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
    ("CREATE -- a comment\n TEMP TABLE t AS SELECT 1", "SELECT count(*) - 1 FROM t", "DROP TABLE t"),
    ("DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 0", "FETCH ABSOLUTE 1 FROM c", "CLOSE c"),
    ("DO $$ BEGIN CREATE TEMP TABLE t (a int); END $$", "SELECT count(*) FROM t", "DROP TABLE t"),
]


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("make,see,end", PINS)
def test_state_that_cannot_follow_keeps_its_server(pool, run, make, see, end):
    one, two = pool.client(), pool.client()
    RUNS[run](one, make)
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


def objects(client):
    """What the session of this client's server has: temporary objects and advisory locks."""
    return client.value(
        "SELECT (SELECT count(*) FROM pg_class WHERE relnamespace = pg_my_temp_schema())"
        " + (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())"
        " + (SELECT count(*) FROM pg_cursors WHERE is_holdable)"
    )


@pytest.mark.parametrize("leave", ["leave", "close", "in a transaction"])
@pytest.mark.parametrize("make,see,end", PINS)
def test_what_a_client_leaves_reaches_no_other(new_pooler, leave, make, see, end):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "max_pinned": 1})
    one = pooler.client()
    one.query("CREATE TEMP TABLE first (a int)")
    one.query(make)
    if leave == "leave":
        one.leave()
    elif leave == "close":
        one.close()
    else:
        one.query("BEGIN")
        one.query("SELECT 1")
        one.close()
    assert objects(pooler.client()) == "0"
    assert pooler.show("PINS") == []


def warnings(client):
    """The texts of the WARNINGs that come with the next answer."""
    return [notice["M"] for notice in client.query("SELECT 1").notices]


@pytest.mark.setting("max_pinned")
def test_a_client_beyond_max_pinned_is_warned_and_its_server_reset(pool):
    one, two = pool.client(), pool.client()
    one.query("CREATE TEMP TABLE t (a int)")
    assert one.value("SELECT count(*) FROM t") == "0"
    two.query("CREATE TEMP TABLE t (a int)")
    assert warnings(two) == [
        "max_pinned is reached: temporary object will not be there in the next transaction"
    ]
    assert objects(two) == "0"
    assert len(pool.show("PINS")) == 1


@pytest.mark.setting("max_pinned")
@pytest.mark.parametrize("max_pinned, limit, pins", [("50%", 2, 1), (5, 2, 1), ("50%", 3, 1), (5, 3, 2)])
def test_pins_leave_room_below_a_limit_that_pools_share(new_pooler, max_pinned, limit, pins):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 10, "max_pinned": max_pinned,
         "query_wait_timeout": 5},
        databases={"main": {"max_db_connections": limit}})
    clients = [pooler.client(), pooler.client(), pooler.client(), pooler.client(user="bob")]
    for client in clients:
        client.query("CREATE TEMP TABLE t (a int)")
        client.query("SELECT 1")
    assert len(pooler.show("PINS")) == pins
    # A client of the other pool is served.
    assert pooler.client(user="bob").value("SELECT current_user") == "bob"
    for client in clients:
        client.query("DROP TABLE IF EXISTS t")
        client.query("SELECT 1")
    assert pooler.show("PINS") == []
    clients[3].query("CREATE TEMP TABLE t (a int)")
    clients[3].query("SELECT 1")
    assert len(pooler.show("PINS")) == 1


@pytest.mark.setting("max_pinned_time")
def test_a_pin_ends_after_max_pinned_time_in_use_or_not(new_pooler):
    pooler = new_pooler({
        "pool_mode": "transaction", "default_pool_size": 2, "max_pinned": 2, "max_pinned_time": 1,
    })
    one, two = pooler.client(), pooler.client()
    one.query("CREATE TEMP TABLE t (a int)")
    two.query("CREATE TEMP TABLE t (a int)")
    wait_until(lambda: (one.query("SELECT 1"), len(pooler.show("PINS")) == 0)[1])
    assert "max_pinned_time is reached" in warnings(two)[0]
    assert objects(two) == "0"


@pytest.mark.setting("session_state")
def test_with_warn_the_client_is_warned_and_nothing_is_pinned(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "session_state": "warn"})
    client = pooler.client()
    client.query("CREATE TEMP TABLE t (a int)")
    assert warnings(client) == [
        "session_state is warn: temporary object will not be there in the next transaction"
    ]
    assert pooler.show("PINS") == []
    pooler.allow("session_state is warn")


@pytest.mark.setting("session_state", "databases.session_state", "users.session_state")
def test_with_ignore_settings_stay_on_the_server(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "session_state": "follow"},
        databases={"main": {"session_state": "ignore"}, "other": {"dbname": "main"}},
    )
    one, two = pooler.client(), pooler.client()
    one.query("SET work_mem = '77MB'")
    assert two.value("SHOW work_mem") == "77MB"


def test_names_in_bound_values_follow(pool):
    one, two = pool.client(), pool.client()
    one.send(wire.parse("SELECT set_config($1, $2, false)", "s"), wire.sync())
    one.checked()
    for tenant in ("a", "b"):
        one.send(wire.bind(["app.tenant", tenant], "s"), wire.execute(), wire.sync())
        one.checked()
        two.query("SELECT 1")
        assert (two.value("SELECT current_setting('app.tenant', true)") or "") == ""
        assert one.value("SELECT current_setting('app.tenant', true)") == tenant


REFUSED = [make for make, _, _ in PINS if not make.startswith("DO")] + [
    "LISTEN c", "/* a */ LOAD 'plpgsql'", "LOAD E'plpgsql'",
    "PREPARE p AS SELECT 1", "-- a\nprepare p AS SELECT 1", "PREPARE transaction AS SELECT 1",
    "CREATE OR REPLACE TEMP VIEW t AS SELECT 1", "CREATE TABLE pg_temp.t AS SELECT 1",
    "CREATE TEMP TABLE t AS EXECUTE q", "CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "DECLARE c CURSOR WITH /* a */ HOLD FOR SELECT 0", "DECLARE c CURSOR WITH -- a\n HOLD FOR SELECT 0",
    "EXPLAIN ANALYZE SELECT pg_advisory_lock(7)", "COPY (SELECT pg_advisory_lock(7)) TO STDOUT",
    "WITH a AS (SELECT pg_advisory_lock_shared(7)) SELECT * FROM a",
]


def send_simple(client, sql):
    client.send(wire.query(sql))


def send_several(client, sql):
    client.send(wire.query(f"SELECT 1; {sql}"))


def send_extended(client, sql):
    client.send(wire.extended(sql) + wire.sync())


def send_named(client, sql):
    client.send(wire.parse(sql, "n"), wire.bind([], "n"), wire.execute(), wire.sync())


def send_flushed(client, sql):
    client.send(wire.parse(sql), wire.flush(), wire.bind(), wire.execute(), wire.flush(), wire.sync())


def send_in_a_batch(client, sql):
    client.send(wire.extended("SELECT 1") + wire.extended(sql) + wire.extended("SELECT 2") + wire.sync())


def send_pipelined(client, sql):
    client.send(wire.extended("SELECT 1") + wire.sync() + wire.extended(sql) + wire.sync())
    client.checked()


def send_in_pieces(client, sql):
    message = wire.extended(sql) + wire.sync()
    for at in range(0, len(message), 7):
        client.send(message[at:at + 7])


SENT = (send_simple, send_several, send_extended, send_named, send_flushed, send_in_a_batch,
        send_pipelined, send_in_pieces)


def refusing(new_pooler, **settings):
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "session_state": "error",
                       "listen": "pin", **settings})


def assert_refused(client, status="I"):
    result = client.result()
    result.error.is_("ERROR", "0A000", "session state cannot follow its client (session_state = error)")
    assert "session_state = follow" in result.error.fields["H"]
    assert result.status == status


@pytest.mark.parametrize("place", ["alone", "transaction"])
@pytest.mark.parametrize("send", SENT)
def test_with_error_the_statement_is_refused(new_pooler, send, place):
    client = refusing(new_pooler).client()
    for make in REFUSED:
        if send is send_simple and "prepare p" in make.lower():
            continue  # it follows its client
        if place == "transaction":
            client.query("BEGIN")
        send(client, make)
        assert_refused(client, "E" if place == "transaction" else "I")
        if place == "transaction":
            client.query("ROLLBACK")
        assert objects(client) == "0"
        assert client.value("SELECT count(*) FROM pg_prepared_statements WHERE from_sql") == "0"


def test_with_error_a_prepare_by_itself_follows(new_pooler):
    client = refusing(new_pooler).client()
    client.query("PREPARE p AS SELECT 1")
    client.query(" /* a */ prepare r AS SELECT 2;")
    for text in ("SELECT 1; EXECUTE p", "EXECUTE p; SELECT 1", "/* a */ execute p; EXECUTE r"):
        client.send(wire.query(text))
        assert_refused(client)
    assert (client.value("EXECUTE p"), client.value("EXECUTE r")) == ("1", "2")
    assert warnings(client) == []
    # It is no statement.
    for send in (send_simple, send_extended):
        client.query("BEGIN")
        send(client, "PREPARE TRANSACTION 'a'")
        assert client.result().error.sqlstate == "55000"  # max_prepared_transactions is 0
        client.query("ROLLBACK")
    client.query("DO $$ BEGIN PERFORM 1; EXECUTE 'SELECT 1'; END $$")


@pytest.mark.setting("max_prepared_statements")
def test_with_error_a_prepare_that_is_not_tracked_is_refused(new_pooler):
    client = refusing(new_pooler, max_prepared_statements=0).client()
    send_simple(client, "PREPARE p AS SELECT 1")
    assert_refused(client)


def test_with_error_what_a_function_leaves_is_reset(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "session_state": "error"})
    client = pooler.client()
    # Each loss is told, also after a DISCARD ALL: the error would come each time too.
    for _ in range(3):
        client.query("DO $$ BEGIN EXECUTE 'CREATE TE' || 'MP TABLE t (a int)'; END $$")
        assert warnings(client) == [
            "session_state is error: temporary object will not be there in the next transaction"
        ]
        assert objects(client) == "0"
        client.query("DISCARD ALL")
