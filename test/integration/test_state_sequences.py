# SPDX-License-Identifier: ISC
"""Sequences of statements that could hide what they do to a session: what PostgreSQL itself makes of
each is what its client must see, on any server, and a new session is what any other client sees.
"""

import contextlib

import pytest

from support import wire
from support.clients.raw import RawClient
from support.session_state import places
from support.session_state.kinds import SUPERUSER

NAMES = ("role", "app.tenant", "app.note", "search_path", "work_mem", "TimeZone", "DateStyle",
         "default_transaction_isolation", "default_transaction_read_only", "session_authorization",
         "statement_timeout", "application_name")

# All that a session holds, in one text.
LOOK = (
    "SELECT string_agg(regexp_replace(what, 'pg_temp_[0-9]+', 'pg_temp'), ' ' ORDER BY what) FROM ("
    f"SELECT n || '=' || coalesce(current_setting(n, true), '') FROM unnest(ARRAY{list(NAMES)}) n"
    " UNION ALL SELECT name || '=' || setting FROM pg_settings WHERE source = 'session'"
    f" AND setting IS DISTINCT FROM reset_val AND name <> ALL (ARRAY{list(NAMES)})"
    " UNION ALL SELECT 'user ' || session_user || ' ' || current_user"
    " UNION ALL SELECT 'object ' || pg_describe_object(classid, objid, objsubid) FROM pg_depend"
    " WHERE refclassid = 'pg_namespace'::regclass AND refobjid = pg_my_temp_schema()"
    " UNION ALL SELECT 'lock ' || objid FROM pg_locks"
    " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    " UNION ALL SELECT 'cursor ' || name FROM pg_cursors WHERE is_holdable"
    ") all_of_it (what)"
)

SET = "SET app.tenant = 'red'"
CONFIG = "SELECT set_config('app.tenant', 'red', false)"
SEQUENCES = {
    # Ends of transactions.
    "ROLLBACK AND CHAIN": ["BEGIN", SET, "ROLLBACK AND CHAIN", "SET app.note = 'two'", "COMMIT"],
    "COMMIT AND CHAIN": ["BEGIN", SET, "COMMIT AND CHAIN", "SET app.note = 'two'", "ROLLBACK"],
    "COMMIT AND CHAIN, then an error": ["BEGIN", SET, "COMMIT AND CHAIN", "SET app.note = 'two'",
                                        "SELECT 1/0", "COMMIT"],
    "ABORT": ["BEGIN", SET, "ABORT"],
    "END": ["BEGIN", SET, "END"],
    "START TRANSACTION READ ONLY": ["START TRANSACTION READ ONLY", SET, "COMMIT WORK"],
    "a COMMIT that rolls back": ["BEGIN", SET, "SELECT 1/0", "COMMIT"],
    "PREPARE TRANSACTION": ["BEGIN", SET, "PREPARE TRANSACTION 'p'", "ROLLBACK PREPARED 'p'"],
    "PREPARE TRANSACTION, COMMIT PREPARED": ["BEGIN", "SET LOCAL app.tenant = 'red'", "SET app.note = 'two'",
                                             "PREPARE TRANSACTION 'p'", "COMMIT PREPARED 'p'"],
    # Savepoints.
    "characteristics behind savepoints": [
        "BEGIN", "SAVEPOINT a", "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SAVEPOINT b", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "ROLLBACK TO b", "RELEASE a",
        "COMMIT"],
    "a cursor and a savepoint": ["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1", "SAVEPOINT a",
                                 "DECLARE d CURSOR WITH HOLD FOR SELECT 1", "ROLLBACK TO a", "COMMIT"],
    "a cursor in a failed transaction": ["BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT 1",
                                         "SELECT 1/0", "COMMIT"],
    "a cursor without hold": ["BEGIN", "DECLARE c CURSOR FOR SELECT 1", "FETCH c", "COMMIT"],
    "a table and a savepoint": ["BEGIN", "CREATE TEMP TABLE t (a int)", "SAVEPOINT a", "DROP TABLE t",
                                "ROLLBACK TO a", "COMMIT"],
    "SET ROLE behind a savepoint": ["BEGIN", "SAVEPOINT a", "SET ROLE tenant_one", "ROLLBACK TO a",
                                    SET, "COMMIT"],
    # Several statements in one query.
    "BEGIN; SET; COMMIT; SET": [f"BEGIN; {SET}; COMMIT; SET app.note = 'two'"],
    "SET; COMMIT; SET; an error": [f"{SET}; COMMIT; SET app.note = 'two'; SELECT 1/0"],
    "SET; ROLLBACK; SET": [f"{SET}; ROLLBACK; SET app.note = 'two'"],
    "BEGIN; SET; an error": [f"BEGIN; {SET}; SELECT 1/0; COMMIT", "ROLLBACK"],
    "a block that ends in the middle": ["BEGIN", f"{SET}; COMMIT; CREATE TEMP TABLE t (a int); SELECT 1/0"],
    "a table, and a lock in a failed query": ["CREATE TEMP TABLE t (a int); SELECT pg_advisory_lock(5); SELECT 1/0"],
    # Functions.
    '"set_config"': ["SELECT \"set_config\"('app.tenant', 'red', false)"],
    'pg_catalog."set_config"': ["SELECT pg_catalog . \"set_config\" ('app.tenant', 'red', false)"],
    "EXPLAIN ANALYZE": [f"EXPLAIN (ANALYZE, COSTS OFF) {CONFIG}"],
    "a cursor over set_config": ["BEGIN", f"DECLARE c CURSOR FOR {CONFIG}", "FETCH c", "COMMIT"],
    "a cursor over set_config that is not read": ["BEGIN", f"DECLARE c CURSOR FOR {CONFIG}", "COMMIT"],
    "COPY from set_config": [f"COPY ({CONFIG}) TO STDOUT"],
    "COPY with an error": [f"COPY (SELECT set_config('app.tenant', 'red', false), 1/0) TO STDOUT"],
    "set_config of a role": ["SELECT set_config('role', 'tenant_one', false)"],
    "set_config of search_path": ["SELECT set_config('search_path', 'pg_temp, public', false)",
                                  "CREATE TABLE t (a int)"],
    "a procedure that commits": [
        "CREATE OR REPLACE PROCEDURE pg_temp.p() LANGUAGE plpgsql AS $$ BEGIN"
        " PERFORM set_config('app.tenant', 'red', false); COMMIT;"
        " PERFORM set_config('app.note', 'two', false); ROLLBACK; END $$", "CALL pg_temp.p()"],
    "DO that commits": ["DO $$ BEGIN SET app.tenant = 'red'; COMMIT; SET app.note = 'two'; ROLLBACK; END $$"],
    "DO with an error that it catches": [
        "DO $$ BEGIN BEGIN SET app.tenant = 'red'; PERFORM 1/0; EXCEPTION WHEN OTHERS THEN"
        " SET app.note = 'two'; END; END $$"],
    "DO that takes a lock and fails": ["DO $$ BEGIN PERFORM pg_advisory_lock(5); PERFORM 1/0; END $$"],
    "a view over set_config": [f"CREATE TEMP VIEW v AS {CONFIG}", "SELECT * FROM v"],
    "CREATE TABLE AS set_config": [f"CREATE TEMP TABLE t AS {CONFIG}"],
    "a temporary function": ["CREATE FUNCTION pg_temp.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
                             "SELECT pg_temp.f()"],
    "pg_advisory_lock in a WITH": ["WITH l AS MATERIALIZED (SELECT pg_advisory_lock(5)) SELECT * FROM l"],
    "a lock of a failed statement": ["SELECT pg_advisory_lock(5), 1/0"],
    "a lock in a COPY": ["COPY (SELECT pg_advisory_lock(5)) TO STDOUT"],
    # Settings that are set otherwise.
    "SET FROM CURRENT": ["SET work_mem = '77MB'",
                         "CREATE FUNCTION pg_temp.f() RETURNS text LANGUAGE sql SET work_mem FROM CURRENT"
                         " AS $$ SELECT current_setting('work_mem') $$", "SELECT pg_temp.f()"],
    "UPDATE pg_settings": ["UPDATE pg_settings SET setting = '77MB' WHERE name = 'work_mem'"],
    "UPDATE pg_settings in WITH": [
        "WITH u AS (UPDATE pg_settings SET setting = '77MB' WHERE name = 'work_mem' RETURNING 1) SELECT 1"],
    "UPDATE by EXPLAIN ANALYZE": [
        "EXPLAIN (ANALYZE, COSTS OFF) UPDATE pg_settings SET setting = '77MB' WHERE name = 'work_mem'"],
    "UPDATE PG_SETTINGS": ["UPDATE PG_SETTINGS SET setting = '77MB' WHERE name = 'work_mem'"],
    "WITH and UPDATE of pg_settings": [
        "WITH w AS (SELECT '77MB'::text AS v) UPDATE pg_catalog.Pg_Settings SET setting = w.v FROM w"
        " WHERE name = 'work_mem'"],
    "UPDATE of pg_settings behind PREPARE": [
        "PREPARE u AS UPDATE pg_settings SET setting = '77MB' WHERE name = 'work_mem'", "EXECUTE u"],
    "set_config behind PREPARE": [f"PREPARE u AS {CONFIG}", "EXECUTE u"],
    "set_config behind EXPLAIN EXECUTE": [f"PREPARE u AS {CONFIG}", "EXPLAIN (ANALYZE) EXECUTE u"],
    "set_config with the arguments of EXECUTE": [
        "PREPARE u (text, text) AS SELECT set_config($1, $2, false)", "EXECUTE u ('app.tenant', 'red')"],
    "SET and pg_reload_conf": [SET, "SELECT pg_reload_conf()"],
    "SET TIME ZONE LOCAL": ["SET TIME ZONE 'Asia/Tokyo'", "SET TIME ZONE LOCAL"],
    "SET SESSION AUTHORIZATION, RESET": ["SET SESSION AUTHORIZATION tenant_one",
                                         "RESET SESSION AUTHORIZATION"],
    "SET ROLE, SET SESSION AUTHORIZATION DEFAULT": ["SET ROLE tenant_one",
                                                    "SET SESSION AUTHORIZATION DEFAULT"],
    "DISCARD PLANS": [SET, "CREATE TEMP TABLE t (a int)", "DISCARD PLANS"],
    "DISCARD SEQUENCES": [SET, "CREATE TEMP SEQUENCE s", "SELECT nextval('s')", "DISCARD SEQUENCES"],
    "DISCARD TEMP": [SET, "CREATE TEMP TABLE t (a int)", "DISCARD TEMP"],
    "DISCARD TEMP in a script": [SET, "CREATE TEMP TABLE t (a int)", "SELECT 1; DISCARD TEMP"],
    "ALTER TABLE SET SCHEMA pg_temp": ["CREATE TEMP TABLE t (a int)", "ALTER TABLE t RENAME TO u"],
    "DROP SCHEMA": ["CREATE TEMP TABLE t (a int)", "DROP OWNED BY CURRENT_USER"],
    "IMPORT by pg_temp": ["SELECT 1 AS a INTO pg_temp.t"],
}


# The name of a custom setting that an expression makes is not followed, and reaches no other client.
HIDDEN_NAMES = [
    "SELECT set_config('app.' || 'tenant', 'red', false)",
    "SELECT set_config(n, 'red', false) FROM (SELECT 'app.' || 'tenant') AS names (n)",
    "SELECT set_config(E'app\\x2etenant', 'red', false)",
    "SELECT set_config($$app.tenant$$, 'red', false)",
    "SELECT set_config('app.'\n'tenant', 'red', false)",
    "SELECT set_config(('app.' || 'tenant')::text, 'red', false)",
    "SELECT set_config(lower('APP.TENANT'), 'red', false)",
    "SELECT set_config(concat('app', '.tenant')::text, 'red', false)",
    "DO $$ BEGIN PERFORM set_config('app.' || 'tenant', 'red', false); END $$",
]
SPACED_NAMES = ["SET app . tenant = 'red'", "SET app./**/tenant = 'red'", "SET \"app\" . \"tenant\" = 'red'",
                "SET app .tenant TO 'red'", "SET SESSION app. tenant TO 'red'"]


def simple(client, statements):
    for each in statements:
        client.send(wire.query(each))
        yield client.result()


def at_once(client, statements):
    client.send(b"".join(wire.query(each) for each in statements))
    for _ in statements:
        yield client.result()


def extended(client, statements):
    for each in statements:
        if ";" in each and not each.startswith(("DO", "CREATE")):
            client.send(wire.query(each))  # a Parse has one statement
        else:
            client.send(wire.extended(each) + wire.sync())
        yield client.result()


def flushed(client, statements):
    """Each message of the extended protocol for itself, and a Flush before the Sync."""
    for each in statements:
        if ";" in each and not each.startswith(("DO", "CREATE")):
            client.send(wire.query(each))
        else:
            client.send(wire.parse(each), wire.bind(), wire.execute("", 1), wire.flush())
            client.send(wire.sync())
        yield client.result()


WAYS = {each.__name__: each for each in (simple, at_once, extended, flushed)}


def outcomes(client, way, statements):
    """The SQLSTATEs and tags of a sequence, and what the client sees behind it."""
    found = [result.error.sqlstate if result.error else result.tag
             for result in WAYS[way](client, statements)]
    if client.status != "I":
        client.query("ROLLBACK")
    return found, client.value(LOOK)


@pytest.fixture(scope="module")
def place(state_stage):
    """A pooler of three servers, of which two may be pinned."""
    with places.pooler(state_stage, "transaction", default_pool_size=3, max_pinned=2) as found:
        yield found


def user_of(statements):
    return SUPERUSER if any("AUTHORIZATION" in each or "reload" in each for each in statements) else "app"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SEQUENCES)
def test_a_sequence_does_what_it_does_to_postgresql(state_stage, place, name, way):
    statements = SEQUENCES[name]
    user = user_of(statements)
    with contextlib.ExitStack() as stack:
        def opened(client):
            return stack.enter_context(contextlib.closing(client))

        direct = (state_stage.host, state_stage.port)
        new = opened(RawClient(direct).login(user)).value(LOOK)
        with contextlib.closing(RawClient(direct).login(user)) as session:
            expected = outcomes(session, way, statements)
        client, *others = [opened(place.client(user)) for _ in range(3)]
        assert outcomes(client, way, statements) == expected
        for each in others:
            each.query("BEGIN")
            assert each.value(LOOK) == new
        assert client.value(LOOK) == expected[1]
        for each in others:
            each.query("ROLLBACK")
        client.reset()
        for _ in range(3):
            others.append(opened(place.client(user)))
        for each in others[2:]:
            each.query("BEGIN")
            assert each.value(LOOK) == new


@pytest.mark.parametrize("way", ["simple", "extended"])
@pytest.mark.parametrize("sql", HIDDEN_NAMES + SPACED_NAMES)
def test_a_hidden_name_reaches_no_other_client(place, sql, way):
    with contextlib.ExitStack() as stack:
        client, *others = [
            stack.enter_context(contextlib.closing(place.client())) for _ in range(4)
        ]
        new = others[0].value(LOOK)
        for result in WAYS[way](client, [sql]):
            assert result.error is None
        for each in others:
            each.query("BEGIN")
            assert each.value(LOOK) == new
