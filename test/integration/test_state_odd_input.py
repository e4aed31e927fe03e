# SPDX-License-Identifier: ISC
"""Session state with bad input and in odd cases: nothing of it reaches another client."""

import contextlib
import os

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import wait_until
from support.servers.pooler import is_sanitized


# The size of a very long text.
LARGE = int(os.environ.get("PGUSHER_TEST_LARGE", 100_000_000))


def settings(servers):
    """The settings of a pooler with so many servers."""
    return {"pool_mode": "transaction", "default_pool_size": servers, "query_wait_notify": 0}


@pytest.fixture
def pair(state_stage, new_pooler):
    """Two clients that share one server."""
    pooler = new_pooler(settings(servers=1))
    return pooler.client(), pooler.client()


@pytest.fixture
def trio(state_stage, new_pooler):
    """Two clients on two servers, and a third one to hold the server that was used last."""
    pooler = new_pooler(settings(servers=2))
    return pooler.client(), pooler.client(), pooler.client()


@contextlib.contextmanager
def held(client):
    """While the client has the server that was used last: others get another one."""
    client.query("BEGIN")
    try:
        yield
    finally:
        client.query("ROLLBACK")


def current(client, name):
    return client.value(f"SELECT current_setting('{name}', true)") or ""


def assert_only(client, other, name, value, usual):
    """The client has this value, again and again, and the other one the usual one."""
    for _ in range(2):
        assert current(other, name) == usual
        assert current(client, name) == value


# --- texts that look like something else ------------------------------------------------------

NOT_SETS = [
    "SELECT 'SET work_mem = ''77MB'''",
    "SELECT '; SET work_mem = ''77MB''; --'",
    "SELECT $$; SET work_mem = '77MB'; $$",
    "SELECT $a$ $$ ; SET work_mem = '77MB'; $b$ $a$",
    "SELECT E'\\'; SET work_mem = \\'77MB\\'; --'",
    "SELECT U&'\\0027; SET work_mem = !0027' UESCAPE '!'",
    "SELECT '\\' AS \"'; SET work_mem = '77MB'; --\"",
    "SELECT 1 AS \"; SET work_mem = '77MB'; --\"",
    "SELECT 1 AS U&\"\\0022; SET work_mem = '77MB'; --\"",
    "SELECT 1 -- ; SET work_mem = '77MB';",
    "-- SET work_mem = '77MB'\nSELECT 1",
    "/* SET work_mem = '77MB'; /* */ SET work_mem = '78MB'; */ SELECT 1",
    "SELECT 'set_config(''work_mem'', ''77MB'', false)', 'pg_advisory_lock(1)', 'temp'",
    "UPDATE doors SET number = 77 WHERE number = 78",
    "SELECT 1 AS set, 2 AS reset, 3 AS temp, 4 AS hold",
    "SELECT current_setting('work_mem')",
]


@pytest.mark.parametrize("sql", NOT_SETS)
def test_a_text_that_only_looks_like_set_changes_nothing(pair, state_stage, sql):
    one, two = pair
    if sql.startswith("UPDATE"):
        state_stage.ask("main", "GRANT UPDATE, SELECT ON doors TO app")
    one.query(sql)
    one.extended(sql)
    for client in (two, one):
        assert current(client, "work_mem") == "4MB"


SETS = [
    # A SET behind what could be taken for a comment or a string that goes on.
    ("SELECT '\\'; SET app.tenant = 'red' --'", "red"),
    ("SELECT $1a$, 1, $1a$ FROM doors; SET app.tenant = 'red'", None),
    ("SELECT E'\\\\'; SET app.tenant = 'red' --'", "red"),
    ("SELECT e'\\''; SET app.tenant = 'red' --'", "red"),
    ("SELECT 1 AS a$b$; SET app.tenant = 'red'; SELECT 1 AS c$b$", "red"),
    ("/* /* */ */ SET app.tenant = 'red'", "red"),
    ("SELECT 1 /* ' */; SET app.tenant = 'red' /* ' */", "red"),
    ("SELECT 1 -- '\r; SET app.tenant = 'red'", "red"),
    ("SELECT 'a'\n'b; SET app.tenant = 1'; SET app.tenant = 'red'", "red"),
    ("SELECT U&'\\0027'; SET app.tenant = 'red' --'", "red"),
    ("\f\t SET app.tenant = 'red'", "red"),
    (";;; SET app.tenant = 'red';;", "red"),
    ("SET app.tenant = 'r'\n'ed'", "red"),
    ("SET app.tenant = E'r\\x65\\144'", "red"),
    ("SET \"app\".tenant TO U&'r!0065d' UESCAPE '!'", "red"),
]


@pytest.mark.parametrize("sql, value", SETS)
def test_a_set_in_any_disguise_is_seen(pair, sql, value):
    one, two = pair
    if value is None:
        with pytest.raises(ServerError):
            one.query(sql)
        value = ""
    else:
        one.query(sql)
    assert_only(one, two, "app.tenant", value, "")


BACKSLASHES = [
    ("SET app.tenant = 'a\\'b'", "a'b"),
    ("SET app.tenant = 'a\\\\b\\x41'", "a\\bA"),
    ("SELECT '\\'; SET app.tenant = 1; --', set_config('app.tenant', 'red\\'s', false)", "red's"),
    ("SELECT '\\''; SET app.tenant = 'red'", "red"),
]


@pytest.mark.parametrize("sql, value", BACKSLASHES)
def test_backslashes_count_where_strings_do_not_conform(pair, sql, value):
    one, two = pair
    one.query("SET standard_conforming_strings = off; SET backslash_quote = on")
    one.query("SET escape_string_warning = off")
    one.query(sql)
    assert_only(one, two, "app.tenant", value, "")
    assert current(one, "standard_conforming_strings") == "off"
    assert current(two, "standard_conforming_strings") == "on"


ENCODED = [
    # In these, a backslash is the second byte of a character.
    ("SJIS", "ソ表"),
    ("GBK", "誠乗"),
    ("BIG5", "功許"),
    ("UHC", "가"),
    ("LATIN1", "äÄ"),
    ("SQL_ASCII", "plain"),
]
HEX = "SELECT encode(convert_to(current_setting('app.tenant', true), 'UTF8'), 'hex')"


@pytest.mark.parametrize("way", ["SET app.tenant = '%s'", "SET app.tenant = $x$%s$x$",
                                 "SELECT set_config('app.tenant', '%s', false)"])
@pytest.mark.parametrize("encoding, value", ENCODED)
def test_values_in_an_encoding_of_the_client_follow_it(trio, encoding, value, way):
    one, two, _ = trio
    python = {"SQL_ASCII": "ascii", "UHC": "cp949", "BIG5": "cp950", "SJIS": "cp932"}
    one.query(f"SET client_encoding TO '{encoding}'")
    text = (way % value).encode(python.get(encoding, encoding))
    one.query(text)
    with held(two):
        assert current(two, "app.tenant") == ""
        assert one.value(HEX) == value.encode().hex()
    assert one.value(HEX) == value.encode().hex()
    assert current(one, "client_encoding") == encoding


# --- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 59])
def test_names_follow_up_to_the_limit(pair, length):
    one, two = pair
    name = "app." + "x" * length
    one.query(f"SET {name} = 'red'")
    assert_only(one, two, name, "red", "")


@pytest.mark.parametrize("sql, name", [
    (f"SET app.{'x' * 60} = 'red'", "app." + "x" * 60),
    (f"SET app.{'x' * 1000} = 'red'", "app." + "x" * 63),
    ("SET U&\"app\".U&\"ten\\0061nt\" = 'red'", "app.tenant"),
])
def test_names_that_are_not_known_reach_no_other_client(pair, sql, name):
    one, two = pair
    one.query(sql)
    assert current(two, name) == ""


@pytest.mark.parametrize("length", [1, 8000, 60_000, 70_000, 900_000])
def test_values_of_any_length_follow(pair, length):
    one, two = pair
    one.query(f"SET app.tenant = '{'x' * length}'")
    assert current(two, "app.tenant") == ""
    assert len(current(one, "app.tenant")) == length
    # The server is asked for all settings of the client.
    one.query("SELECT set_config('app.other', '\u00c4' || repeat('\U0001f600', 40000), false)")
    assert current(two, "app.other") == ""
    assert one.value("SELECT length(current_setting('app.other'))") == "40001"
    assert one.value("SELECT md5(current_setting('app.tenant')) = md5(repeat('x', %d))" % length) == "t"
    assert current(two, "app.tenant") == ""


def test_a_value_that_is_too_long_to_follow_closes_the_client(pair):
    one, two = pair
    one.query("SELECT set_config('app.tenant', repeat('x', 2000000), false)")
    assert current(two, "app.tenant") == ""
    assert one.fatal().is_("FATAL", "54000", "client has set more parameters than can follow it")
    one = two
    one.query(f"SET app.tenant = '{'x' * 1_200_000}'")
    assert one.fatal().sqlstate == "54000"


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("count", [50, 100, 900])
def test_any_number_of_settings_follows(pair, count, together):
    one, two = pair
    sets = [f"SET app.setting_{number} = '{number}'" for number in range(count)]
    names = [f"app.setting_{number}" for number in range(count)]
    look = "SELECT " + ", ".join(f"current_setting('{name}', true)" for name in names)
    for sql in ["; ".join(sets)] if together else sets:
        one.query(sql)
    for _ in range(2):
        assert not any(two.query(look).rows[0])
        assert one.query(look).rows[0] == tuple(map(str, range(count)))


def test_too_many_settings_close_the_client(pair):
    one, two = pair
    one.query("; ".join(f"SET app.setting_{number} = '{number}'" for number in range(1200)))
    assert one.fatal().sqlstate == "54000"
    assert current(two, "app.setting_1") == ""


def test_a_text_of_a_hundred_megabytes_hides_no_set(pair):
    one, two = pair
    one.timeout = 120
    hidden = "SELECT length('" + "x" * LARGE + "'); SET work_mem = '77MB'; SET app.tenant = 'red'"
    one.query(hidden)
    assert current(two, "work_mem") == "4MB"
    assert current(two, "app.tenant") == ""
    assert current(one, "work_mem") == "77MB"


def test_memory_stays_flat_over_thousands_of_values(state_stage, new_pooler):
    pooler = new_pooler(settings(servers=1))
    clients = [pooler.client() for _ in range(2)]

    def transactions(first, count, at_once=50):
        for number in range(first, first + count, at_once):
            values = range(number, number + at_once)
            for client in clients:
                client.send(*[wire.query(f"SET app.tenant = 'value {each}'") for each in values])
            for client in clients:
                for _ in values:
                    assert client.result().tag == "SET"

    transactions(0, 3000)
    before = pooler.memory()
    transactions(3000, 12000)
    assert current(clients[0], "app.tenant") == "value 14999"
    if not is_sanitized():
        assert pooler.memory() - before < 256 * 1024


SPELLINGS = [
    ("statement_timeout", "'2min'"),
    ("statement_timeout", "'120s'"),
    ("statement_timeout", "120000"),
    ("statement_timeout", "'0.25h'"),
    ("work_mem", "65536"),
    ("work_mem", "'0x10000'"),
    ("work_mem", "' 64 MB '"),
    ("work_mem", "1e5"),
    ("vacuum_cost_delay", "1.5"),
    ("vacuum_cost_delay", "'0.0015s'"),
    ("random_page_cost", "01.10"),
    ("geqo", "'OFF'"),
    ("geqo", "0"),
    ("geqo", "f"),
    ("extra_float_digits", "-3"),
    ("DateStyle", "german"),
    ("DateStyle", "sql, dmy"),
    ("IntervalStyle", "'ISO_8601'"),
    ("TimeZone", "'europe/paris'"),
    ("TimeZone", "-3.5"),
    ("TimeZone", "INTERVAL '+02:30' HOUR TO MINUTE"),
    ("client_min_messages", "'WARNING'"),
    ("search_path", "'a, b'"),
    ("search_path", "a, \"B c\", '$user', \"d\"\"e\""),
    ("search_path", "''"),
    ("search_path", "\"Ä\", ä"),
    ("default_transaction_isolation", "'repeatable read'"),
    ("app.tenant", "'it''s'"),
    ("app.tenant", "E'a\\\\b\\tc\\u00e4\\'d'"),
    ("app.tenant", "$a$ '\\ $$ $a$"),
    ("app.tenant", "U&'\\00e4'"),
    ("app.tenant", "'\\'"),
    ("app.tenant", "true"),
    ("app.tenant", "-0.5"),
    ("app.tenant", "'ünï 日本語 😀'"),
    ("app.tenant", "'line\nline\r\t'"),
]


@pytest.mark.parametrize("way", ["simple", "extended", "asked", "several"])
@pytest.mark.parametrize("name, value", SPELLINGS)
def test_values_follow_with_the_same_meaning(pair, state_stage, name, value, way):
    one, two = pair
    sql = f"SET TIME ZONE {value}" if name == "TimeZone" else f"SET {name} = {value}"
    look = f"SELECT current_setting('{name}', true)"
    with state_stage.connect("main") as direct:
        usual = direct.execute(look).fetchone()["current_setting"] or ""
        direct.execute(sql)
        wanted = direct.execute(look).fetchone()["current_setting"]
    if way == "simple":
        one.query(sql)
    elif way == "extended":
        one.send(wire.extended(sql) + wire.sync())
        one.checked()
    elif way == "asked":
        one.query("BEGIN")
        one.query("SAVEPOINT a")
        one.query(sql)
        one.query("RELEASE a")
        one.query("COMMIT")
    else:
        one.query(f"{sql}; SELECT 1")
    for _ in range(2):
        assert current(two, name) == usual
        assert current(one, name) == wanted


# --- roles and values that a server refuses ---------------------------------------------------


@pytest.fixture
def passing_role(state_stage):
    """A role that comes and goes."""
    state_stage.ask("main", "CREATE ROLE passing; GRANT passing TO app")
    state_stage.ask("main", "GRANT INSERT ON doors TO passing")
    yield "passing"
    if state_stage.sql("SELECT 1 FROM pg_roles WHERE rolname = 'passing'"):
        state_stage.ask("main", "DROP OWNED BY passing; DROP ROLE passing")


@pytest.mark.parametrize("ending, sqlstate", [
    ("DROP OWNED BY passing; DROP ROLE passing", "22023"),
    ("REVOKE passing FROM app", "42501"),
])
@pytest.mark.parametrize("sql", ["INSERT INTO doors VALUES (7777)", "BEGIN"])
def test_a_role_that_is_no_longer_permitted_is_an_error(
    trio, state_stage, passing_role, ending, sqlstate, sql
):
    one, two, _ = trio
    one.query("SET ROLE passing")
    two.query("BEGIN")
    two.query("SELECT 1")  # it has the server on which the role is set
    state_stage.ask("main", ending)
    with pytest.raises(ServerError) as refused:
        one.query(sql)
    assert refused.value.sqlstate == sqlstate
    two.query("ROLLBACK")
    assert two.value("SELECT current_user") == "app"
    state_stage.ask("main", "GRANT SELECT ON doors TO app")
    assert two.value("SELECT count(*) FROM doors WHERE number = 7777") == "0"
    if "DROP" in ending:
        state_stage.ask("main", "CREATE ROLE passing; GRANT SELECT ON doors TO passing")
    state_stage.ask("main", "GRANT passing TO app")
    assert one.value("SELECT current_user") == "passing"


def test_a_setting_of_a_library_follows_to_servers_with_and_without_it(trio):
    one, two, three = trio
    one.query("SET plpgsql.check_asserts = 'off'")
    with held(two):
        three.query("DO $$ BEGIN NULL; END $$")  # this server has the library, the other not
        assert current(one, "plpgsql.check_asserts") == "off"
    assert current(two, "plpgsql.check_asserts") in ("", "on")
    with held(three):
        assert current(one, "plpgsql.check_asserts") == "off"


def test_a_value_that_a_servers_library_refuses_is_an_error_there(trio):
    one, two, three = trio
    one.query("SET plpgsql.extra_errors = 'bogus'")
    with held(two):
        three.query("DO $$ BEGIN NULL; END $$")
        with pytest.raises(ServerError) as refused:
            one.query("SELECT 1")
        assert refused.value.sqlstate == "22023"
    assert two.value("SELECT 1") == "1"
    assert current(two, "plpgsql.extra_errors") in ("", "none")


# --- clients that try to fool the pooler's query ----------------------------------------------

FOOLISH = """
CREATE SCHEMA evil;
SET search_path = evil, pg_catalog;
CREATE TABLE pg_settings (name text, setting text, source text, reset_val text);
CREATE TABLE pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE false;
CREATE TABLE pg_cursors AS SELECT * FROM pg_catalog.pg_cursors WHERE false;
CREATE TABLE pg_class AS
	SELECT oid, relname, relnamespace, relkind FROM pg_catalog.pg_class WHERE false;
CREATE TABLE pg_depend AS SELECT * FROM pg_catalog.pg_depend WHERE false;
CREATE FUNCTION lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''fooled''';
CREATE FUNCTION current_setting(text) RETURNS text LANGUAGE sql AS 'SELECT ''fooled''';
CREATE FUNCTION current_setting(text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''fooled''';
CREATE FUNCTION pg_backend_pid() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION pg_my_temp_schema() RETURNS oid LANGUAGE sql AS 'SELECT 0::oid';
CREATE FUNCTION set_config(text, text, boolean) RETURNS text LANGUAGE sql AS 'SELECT ''fooled''';
CREATE FUNCTION never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION never(name, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE FUNCTION never(int, int) RETURNS boolean LANGUAGE sql AS 'SELECT false';
CREATE OPERATOR = (LEFTARG = text, RIGHTARG = text, FUNCTION = never);
CREATE OPERATOR = (LEFTARG = name, RIGHTARG = text, FUNCTION = never);
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = int, FUNCTION = never);
GRANT USAGE ON SCHEMA evil TO app;
GRANT SELECT ON ALL TABLES IN SCHEMA evil TO app;
"""


@pytest.fixture
def evil(state_stage):
    """A schema with objects named like those of pg_catalog."""
    state_stage.ask("main", "DROP SCHEMA IF EXISTS evil CASCADE")
    state_stage.ask("main", FOOLISH)
    yield "SET search_path = evil, pg_catalog"
    state_stage.ask("main", "DROP SCHEMA evil CASCADE")


def real(client, name):
    """A setting's value, whatever the search_path."""
    return client.value(f"SELECT pg_catalog.current_setting('{name}', true)") or ""


DO = "DO $$ BEGIN PERFORM pg_catalog.set_config('work_mem', '77MB', false); END $$"


def test_a_search_path_does_not_fool_the_query_for_settings(trio, evil):
    one, two, _ = trio
    one.query(evil)
    assert one.value("SELECT current_setting('work_mem')") == "fooled"
    one.query(DO)
    with held(two):
        assert real(two, "work_mem") == "4MB"
        assert real(one, "work_mem") == "77MB"
        assert real(one, "search_path") == "evil, pg_catalog"
    assert real(one, "work_mem") == "77MB"


@pytest.mark.parametrize("sql, look", [
    ("CREATE TEMP TABLE desk (a int)",
     "SELECT pg_catalog.to_regclass('pg_temp.desk') IS NOT NULL"),
    ("SELECT pg_catalog.pg_advisory_lock(4711)",
     "SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0 FROM pg_catalog.pg_locks l WHERE locktype"
     " OPERATOR(pg_catalog.=) 'advisory' AND l.pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()"),
    ("DECLARE shelf CURSOR WITH HOLD FOR SELECT 77",
     "SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0 FROM pg_catalog.pg_cursors"
     " WHERE is_holdable"),
])
def test_a_search_path_does_not_fool_the_query_for_other_state(trio, evil, sql, look):
    one, two, _ = trio
    one.query(evil)
    one.query(sql)
    assert two.value(look) == "f"
    assert one.value(look) == "t"
    one.leave()
    with held(two):
        assert two.value(look) == "f"


def test_temporary_objects_do_not_fool_the_query(trio):
    one, two, _ = trio
    one.query("CREATE TEMP TABLE pg_settings (name text, setting text, source text)")
    one.query("CREATE TEMP VIEW pg_locks AS SELECT 1 AS pid, 'x' AS locktype WHERE false")
    one.query("CREATE FUNCTION pg_temp.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''fooled'''")
    one.query(DO)
    assert real(two, "work_mem") == "4MB"
    assert real(one, "work_mem") == "77MB"
    one.query("DISCARD TEMP")
    with held(two):
        assert real(two, "work_mem") == "4MB"
        assert real(one, "work_mem") == "77MB"


ODD_SESSIONS = [
    "SET search_path = ''",
    "SET standard_conforming_strings = off",
    "SET client_encoding = SJIS",
    "SET transform_null_equals = on",
    "SET quote_all_identifiers = on",
    "SET default_transaction_read_only = on",
    "SET enable_indexscan = off",
    "SET client_min_messages = debug5",
    "SET DateStyle = German",
    "SET plan_cache_mode = force_generic_plan",
    "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE",
    "SET max_parallel_workers_per_gather = 4",
    "SET statement_timeout = '200ms'",
    "SET idle_in_transaction_session_timeout = 1",
    "SET lock_timeout = 1",
]


@pytest.mark.parametrize("sql", ODD_SESSIONS)
def test_the_query_works_in_an_odd_session(trio, sql):
    one, two, _ = trio
    one.query(sql)
    one.query(DO)
    with held(two):
        assert real(two, "work_mem") == "4MB"
        assert real(one, "work_mem") == "77MB"
    assert real(one, "work_mem") == "77MB"


SHORT_LIMITS = [
    "SET statement_timeout = 1",
    "SET statement_timeout = '1ms'; SELECT 1",
    "DO $$ BEGIN PERFORM set_config('statement_timeout', '1ms', false); END $$",
    "SELECT set_config('statement_timeout', '1', false), set_config('lock_timeout', '1', false)",
]


@pytest.mark.parametrize("sql", SHORT_LIMITS)
def test_a_client_with_a_short_time_limit_stays_connected(pair, sql):
    one, two = pair
    one.query(sql)
    asked = 0
    for number in range(10):
        # The limit is the client's own: it may end the client's statements, and no others.
        try:
            one.query(f"SELECT set_config('app.tenant', '{number}', false)")
            asked = number
        except ServerError as error:
            assert error.sqlstate == "57014"
        assert current(two, "statement_timeout") == "0"
        assert current(two, "app.tenant") == ""
    for _ in range(50):
        try:
            assert current(one, "statement_timeout") == "1ms"
            assert current(one, "app.tenant") == str(asked)
            break
        except ServerError as error:
            assert error.sqlstate == "57014"
    for _ in range(50):
        try:
            one.query("RESET ALL")
            break
        except ServerError as error:
            assert error.sqlstate == "57014"
    assert current(one, "statement_timeout") == "0"


def test_a_deferrable_session_does_not_wait_for_the_transactions_of_others(trio, state_stage):
    one, two, _ = trio
    one.query("SET SESSION CHARACTERISTICS AS TRANSACTION"
              " ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE")
    with state_stage.connect("main") as writer, writer.transaction():
        writer.execute("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        writer.execute("INSERT INTO doors VALUES (1)")
        # PostgreSQL lets a deferrable transaction wait for the writer, so this one is not.
        one.query("BEGIN TRANSACTION READ WRITE ISOLATION LEVEL READ COMMITTED")
        one.query(DO)
        one.query("COMMIT")
        assert real(two, "work_mem") == "4MB"
    assert real(one, "work_mem") == "77MB"


# --- clients that stay with their server ------------------------------------------------------


@pytest.mark.parametrize("sql", [
    "RESET ALL",
    "RESET search_path",
    "SET search_path TO DEFAULT",
    "DISCARD ALL",
])
def test_reset_of_a_pinned_client_goes_back_to_its_start(state_stage, new_pooler, sql):
    pooler = new_pooler(settings(servers=2))
    client = pooler.client(search_path="one, two")
    client.query("CREATE TEMP TABLE desk (a int)")
    assert current(client, "search_path") == "one, two"
    client.query(sql)
    for _ in range(2):
        assert current(client, "search_path") == "one, two"


@pytest.mark.parametrize("name, value", [("TimeZone", "Asia/Tokyo"), ("work_mem", "7MB")])
@pytest.mark.parametrize("script", [False, True])
def test_set_to_default_goes_back_to_the_start_of_the_client(state_stage, new_pooler, name, value, script):
    pooler = new_pooler(settings(servers=2))
    client = pooler.client(**{name.lower(): value})
    client.query(f"SET {name} = '{'UTC' if name == 'TimeZone' else '9MB'}'")
    client.query("SELECT 1; " * script + f"set {name} to default" + "; SELECT 2" * script)
    for _ in range(2):
        assert current(client, name) == value


@pytest.mark.parametrize("sql", [
    "SET TRANSACTION READ ONLY",
    "SET transaction_read_only = on",
    "SET transaction_isolation = 'serializable'",
    "SET seed = 0.5",
])
def test_what_is_of_a_transaction_does_not_follow(state_stage, new_pooler, sql):
    pooler = new_pooler(settings(servers=2))
    one, two = pooler.client(), pooler.client()
    for _ in range(2):
        one.query(sql)
        for client in (one, two):
            assert current(client, "transaction_read_only") == "off"
            assert current(client, "transaction_isolation") == "read committed"
    with held(two):
        assert current(one, "transaction_read_only") == "off"


@pytest.mark.parametrize("sql", [
    "RESET ALL", "RESET app.tenant", "SET app.tenant TO DEFAULT", "BEGIN; RESET app.tenant; COMMIT",
])
def test_reset_of_a_custom_setting_goes_back_to_the_start(trio, new_pooler, sql):
    pooler = new_pooler(settings(servers=1))
    one, two = pooler.client(options="-c app.tenant=red"), pooler.client()
    one.query("BEGIN")
    one.query("SET app.tenant = 'blue'")
    one.query("ROLLBACK")
    one.query("SELECT set_config('app.tenant', 'green', false)")
    one.query(sql)
    assert current(two, "app.tenant") == ""
    assert current(one, "app.tenant") == "red"
    # An empty value is a value, too.
    one.query("SELECT set_config('app.tenant', '', false)")
    assert current(two, "app.tenant") == ""
    assert current(one, "app.tenant") == ""


# --- clients that go --------------------------------------------------------------------------


def test_a_cleaned_server_gets_the_parameters_of_its_next_client(state_stage, new_pooler):
    pooler = new_pooler(settings(servers=1))
    for _ in range(3):
        client = pooler.client(search_path="one, two", application_name="worker")
        assert current(client, "search_path") == "one, two"
        client.query("CREATE TEMP TABLE desk (a int)")
        assert current(client, "search_path") == "one, two"
        assert current(client, "application_name") == "worker"
        client.close()
    other = pooler.client()
    assert current(other, "search_path") == '"$user", public'


def test_state_of_a_client_that_vanished_before_its_answer_reaches_no_other(pair, state_stage):
    one, two = pair
    one.send(wire.query("SELECT pg_sleep(0.2), set_config('app.tenant', 'red', false)"))
    wait_until(lambda: state_stage.backends(state="active"))
    one.reset()
    assert current(two, "app.tenant") == ""
