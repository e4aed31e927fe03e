# SPDX-License-Identifier: ISC
"""Functions that change the session, called where no word and no tag tells of it: by a plain SELECT or
INSERT. The pooler knows them from the catalog.
"""

import contextlib

import pytest

from support import wire
from support.clients.raw import RawClient
from support.process import wait_until
from support.servers.pooler import Pooler
from support.session_state.kinds import SUPERUSER

TENANT = "SELECT current_setting('app.tenant', true)"

OBJECTS = """
CREATE SCHEMA made;
GRANT ALL ON SCHEMA made TO app;
CREATE FUNCTION made.enter(name text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config('app.tenant', name, false); RETURN name; END $$;
CREATE FUNCTION made.enter_by_set() RETURNS int LANGUAGE plpgsql AS $$
    BEGIN -- a comment
        SET app.tenant = 'red'; RETURN 1; END $$;
CREATE FUNCTION made.enter_by_format(name text) RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE format('SET app.tenant = %L', name); RETURN 1; END $$;
CREATE FUNCTION made.enter_by_sql() RETURNS void LANGUAGE sql AS $$ SET app.tenant = 'red' $$;
CREATE FUNCTION made.calls() RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE FUNCTION made.calls_that() RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN RETURN made.CALLS(); END $$;
CREATE FUNCTION made.body() RETURNS text LANGUAGE sql BEGIN ATOMIC; SELECT made.calls(); END;
CREATE FUNCTION made.body_of_its_own() RETURNS text LANGUAGE sql
    BEGIN ATOMIC; SELECT set_config('app.tenant', 'red', false); END;
CREATE FUNCTION made."Über, Tür"() RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE FUNCTION made."Enter"() RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE VIEW made.gate AS SELECT made.enter('red');
CREATE VIEW made.gates AS SELECT * FROM made.gate;
CREATE TABLE made.by_default (tenant text DEFAULT made.enter('red'), a int);
CREATE TABLE made.by_check (a int CHECK (made.enter('red') = 'red'));
CREATE TABLE made.by_rule (a int);
CREATE RULE enters AS ON INSERT TO made.by_rule DO ALSO SELECT made.enter('red');
CREATE TABLE made.parts (a int) PARTITION BY LIST (a);
CREATE TABLE made.first PARTITION OF made.parts FOR VALUES IN (1);
CREATE FUNCTION made.enter_by_trigger() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM made.enter('red'); RETURN NEW; END $$;
CREATE TRIGGER enters BEFORE INSERT ON made.first
    FOR EACH ROW EXECUTE FUNCTION made.enter_by_trigger();
CREATE TABLE made.keys (a int PRIMARY KEY);
CREATE TABLE made.uses (a int REFERENCES made.keys ON DELETE CASCADE);
CREATE FUNCTION made.enter_and_go_on() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM made.enter('red'); RETURN OLD; END $$;
CREATE TRIGGER enters BEFORE DELETE ON made.uses
    FOR EACH ROW EXECUTE FUNCTION made.enter_and_go_on();
INSERT INTO made.keys VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9);
INSERT INTO made.uses SELECT * FROM made.keys;
CREATE DOMAIN made.colour AS text CHECK (made.enter('red') = 'red');
CREATE TABLE made.by_domain (a made.colour);
CREATE FUNCTION made.add(a text, b int) RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE OPERATOR made.@@@@ (LEFTARG = text, RIGHTARG = int, FUNCTION = made.add);
CREATE TYPE made.pass AS (a int);
CREATE FUNCTION made.to_text(made.pass) RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE CAST (made.pass AS text) WITH FUNCTION made.to_text(made.pass);
CREATE FUNCTION made.sums(text, int) RETURNS text LANGUAGE sql AS $$ SELECT made.enter('red') $$;
CREATE AGGREGATE made.total(int) (SFUNC = made.sums, STYPE = text);
CREATE FUNCTION made.local(name text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN PERFORM set_config('app.tenant', lower(name), true); RETURN name; END $$;
CREATE TABLE made.plain (a int);
CREATE FUNCTION made.updates() RETURNS int LANGUAGE plpgsql AS
    $$ BEGIN UPDATE made.plain SET a = a; RETURN 1; END $$;
GRANT ALL ON ALL TABLES IN SCHEMA made TO app;
"""

WAYS = [
    "SELECT made.enter('red')",
    'SELECT MADE."enter"(\'red\')',
    "SELECT made/**/.Enter/**/('red')",
    "SELECT made.enter_by_set()",
    "SELECT made.enter_by_format('red')",
    "SELECT made.enter_by_sql()",
    "SELECT made.calls()",
    "SELECT made.calls_that()",
    "SELECT made.body()",
    "SELECT made.body_of_its_own()",
    'SELECT made."Über, Tür"()',
    'SELECT made."Enter"()',
    'SELECT made.U&"en\\0074er"(\'red\')',
    "SELECT * FROM made.gate",
    "TABLE made.gates",
    "INSERT INTO made.by_default (a) VALUES (1)",
    "INSERT INTO made.by_check VALUES (1)",
    "INSERT INTO made.by_rule VALUES (1)",
    "INSERT INTO made.parts VALUES (1)",
    "DELETE FROM made.keys WHERE a = (SELECT min(a) FROM made.keys)",
    "INSERT INTO made.by_domain VALUES ('blue')",
    "SELECT 'blue'::made.colour",
    "SELECT 'a'::text OPERATOR(made.@@@@) 1",
    "SELECT ROW(1)::made.pass::text",
    "SELECT made.total(1)",
    "COPY (SELECT made.calls()) TO STDOUT",
    "EXPLAIN ANALYZE SELECT made.calls()",
    "WITH one AS (SELECT made.calls()) SELECT * FROM one",
]


@contextlib.contextmanager
def changed(cluster, change, back):
    """While the database is changed by SQL; other SQL changes it back."""
    cluster.ask("main", change)
    try:
        yield
    finally:
        cluster.clear()
        cluster.ask("main", back)


@contextlib.contextmanager
def running(cluster, **settings):
    """A pooler with one server, and no refresh while a test lasts."""
    base = {"pool_mode": "transaction", "default_pool_size": 1, "max_pinned": 1,
            "session_functions_refresh": 3600}
    pooler = Pooler({**base, **settings}, cluster=cluster, auth={SUPERUSER: ""})
    try:
        pooler.start()
        yield pooler
    finally:
        pooler.destroy()


def client(pooler, user="app"):
    return RawClient(pooler.address, timeout=10).login(user)


@pytest.fixture(scope="module")
def stage(shared_cluster):
    shared_cluster.clear()
    shared_cluster.ask("main", "DROP SCHEMA IF EXISTS made CASCADE")
    with changed(shared_cluster, OBJECTS, "DROP SCHEMA made CASCADE"):
        yield shared_cluster


@pytest.fixture(scope="module")
def pooler(stage):
    with running(stage) as pooler:
        yield pooler


def value(one, sql=TENANT):
    return one.query(sql).value or ""


@pytest.mark.parametrize("sql", WAYS)
@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_what_calls_such_a_function_follows_its_client(pooler, sql, protocol):
    with client(pooler) as first, client(pooler) as second:
        if protocol == "simple":
            first.query(sql)
        else:
            first.extended(sql)
        assert value(second) == "", "reaches another client"
        assert value(first) == "red", "is lost"
        assert value(second) == ""


def logged(cluster):
    """Have the cluster's log tell what pools of the user app run."""
    role = "ALTER ROLE app"
    return changed(cluster, f"{role} SET log_statement = 'all'", f"{role} RESET log_statement")


def questions(cluster):
    """How many questions the cluster's log has."""
    return cluster.log().count("UNION ALL SELECT 'S', 'role'")


def readings(cluster):
    """How often a pool of the user app has read the functions, according to the cluster's log."""
    return cluster.log().count("WITH RECURSIVE print AS")


@pytest.mark.parametrize("sql, asked", [
    ("SELECT made.local('red')", 0), ("SELECT made.updates()", 0), ("SELECT made.calls()", 1),
])
def test_functions_that_change_no_session_are_not_asked_for(stage, sql, asked):
    with logged(stage), running(stage) as pooler, client(pooler) as one:
        one.query("SELECT 1")
        before = questions(stage)
        one.query(sql)
        one.query("SELECT 1")
        assert questions(stage) == before + asked


@pytest.mark.setting("session_functions_refresh")
@pytest.mark.parametrize("seconds", [0, 3600])
def test_functions_are_read_once_for_all_logins_and_pools_of_a_database(stage, seconds):
    with logged(stage), running(stage, session_functions_refresh=seconds) as pooler:
        before = readings(stage)
        with client(pooler) as one, client(pooler) as two, client(pooler, SUPERUSER) as three:
            for each in (one, two, three, one):
                each.query("SELECT 1")
        assert readings(stage) == before + (1 if seconds else 0)


def test_function_that_a_client_creates_is_known_to_all(stage):
    with running(stage, default_pool_size=2) as pooler:
        with client(pooler) as first, client(pooler) as second:
            first.query("SELECT 1")
            second.query("SELECT 1")
            first.query("BEGIN")
            first.query("CREATE FUNCTION made.later() RETURNS void LANGUAGE sql AS "
                        "$$ SET app.tenant = 'red' $$")
            first.query("COMMIT")
            second.query("SELECT made.later()")
            assert value(first) == ""
            assert value(second) == "red"
            first.query("DROP FUNCTION made.later()")


def test_function_that_is_called_in_the_transaction_that_creates_it(stage):
    with running(stage) as pooler, client(pooler) as first, client(pooler) as second:
        first.query("BEGIN")
        first.query("CREATE FUNCTION made.now() RETURNS void LANGUAGE sql AS "
                    "$$ SET app.tenant = 'red' $$")
        first.query("SELECT made.now()")
        first.query("DROP FUNCTION made.now()")
        first.query("COMMIT")
        assert value(second) == ""
        assert value(first) == "red"


def test_view_that_a_client_creates_is_known_to_all(stage):
    with running(stage, default_pool_size=2) as pooler:
        with client(pooler) as first, client(pooler) as second:
            first.query("CREATE VIEW made.later_view AS SELECT made.enter('red')")
            second.query("SELECT * FROM made.later_view")
            assert value(first) == ""
            assert value(second) == "red"
            first.query("DROP VIEW made.later_view")


def test_function_created_beside_the_pooler_is_found_by_a_refresh(stage):
    with running(stage, session_functions_refresh=1) as pooler:
        with client(pooler) as first, client(pooler) as second:
            first.query("SELECT 1")
            stage.ask("main", "CREATE FUNCTION made.beside() RETURNS void LANGUAGE sql AS "
                              "$$ SET app.tenant = 'red' $$")

            def follows():
                pooler.command("RECONNECT")  # what has leaked meanwhile
                first.query("SELECT made.beside()")
                return value(second) == "" and value(first) == "red"

            wait_until(follows, 20, "the function to be known", interval=0.1)
            stage.ask("main", "DROP FUNCTION made.beside()")


def test_statement_that_was_prepared_before_its_function_was_replaced(stage):
    with running(stage) as pooler, client(pooler) as first, client(pooler) as second:
        first.query("CREATE FUNCTION made.changed() RETURNS void LANGUAGE sql AS $$ SELECT 1 $$")
        first.send(wire.parse("SELECT made.changed()", "one"), wire.sync())
        first.checked()
        first.query("CREATE OR REPLACE FUNCTION made.changed() RETURNS void LANGUAGE sql AS "
                    "$$ SET app.tenant = 'red' $$")
        first.send(wire.bind(statement="one"), wire.execute(), wire.sync())
        first.checked()
        assert value(second) == ""
        assert value(first) == "red"
        first.query("DROP FUNCTION made.changed()")


def test_plan_that_is_out_of_date_is_made_again(stage):
    with running(stage) as pooler, client(pooler) as one, client(pooler) as other:
        one.query("CREATE TABLE made.grows AS SELECT 1 AS a")
        one.send(wire.parse("SELECT * FROM made.grows", "one"), wire.sync())
        one.checked()
        one.extended("SELECT 1")
        other.query("ALTER TABLE made.grows ADD b int")
        one.send(wire.bind(statement="one"), wire.describe(), wire.execute(), wire.sync())
        assert len(one.checked().rows[0]) == 2
        other.query("DROP TABLE made.grows")


def test_user_that_may_not_read_the_catalog_can_log_in(stage):
    functions = "SELECT ON pg_catalog.pg_proc"
    without_rights = changed(stage, f"REVOKE {functions} FROM PUBLIC", f"GRANT {functions} TO PUBLIC")
    with without_rights, running(stage) as pooler, client(pooler) as one:
        assert value(one, "SELECT 1") == "1"
        pooler.wait_log("cannot read functions: permission denied")


def test_client_does_not_fool_the_reading_of_functions(stage):
    """By a search_path, a temporary table or a time limit that its server still has."""
    with running(stage) as pooler, client(pooler) as first, client(pooler) as second:
        first.query("CREATE FUNCTION made.lower(text) RETURNS text LANGUAGE sql AS "
                    "$$ SELECT 'nothing'::text $$")
        first.query("SET search_path = made, pg_catalog")
        first.query("SET standard_conforming_strings = off")
        first.query("CREATE TEMP TABLE pg_proc (a int)")
        first.query("CREATE FUNCTION made.fooled() RETURNS void LANGUAGE sql AS "
                    "$$ SET app.tenant = 'red' $$")
        first.query("DROP TABLE pg_temp.pg_proc")
        first.query("SELECT made.fooled()")
        assert value(second) == ""
        assert value(first) == "red"
        first.query("DROP FUNCTION made.fooled(), made.lower(text)")
