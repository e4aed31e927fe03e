# SPDX-License-Identifier: ISC
"""The console for drivers and tools: the SQL that they send of their own accord, and hints.

test_drivers runs the drivers themselves.
"""

import re
import subprocess

import psycopg
import pytest

from support import wire
from support.process import HOST

TEXT, INT4, NAME, BOOL, VOID = 25, 23, 19, 16, 2278

VERSION = r"PostgreSQL 1\.\d+\.\d+/bouncer on PgBouncer 1\.\d+\.\d+ \(pgusher .*\)"

# What PostgreSQL would answer: columns, values, tag.
SELECTS = {
    "SELECT 1": ([("?column?", INT4)], ("1",)),
    "select 1 as ping;": ([("ping", INT4)], ("1",)),
    "SELECT 'x'": ([("?column?", TEXT)], ("x",)),
    "SELECT current_database()": ([("current_database", NAME)], ("pgbouncer",)),
    "SELECT pg_catalog.current_database()": ([("current_database", NAME)], ("pgbouncer",)),
    "select current_user": ([("current_user", NAME)], ("admin",)),
    "SELECT current_schema": ([("current_schema", NAME)], ("public",)),
    "SELECT current_schema(),session_user": (
        [("current_schema", NAME), ("session_user", NAME)],
        ("public", "admin"),
    ),
    "SELECT pg_is_in_recovery()": ([("pg_is_in_recovery", BOOL)], ("f",)),
    "SELECT pg_advisory_unlock_all()": ([("pg_advisory_unlock_all", VOID)], ("",)),
    "SELECT current_setting('server_version')": ([("current_setting", TEXT)], ("1.26.1/bouncer",)),
}

SHOWN = {
    "SHOW server_version": ("server_version", "1.26.1/bouncer"),
    "SHOW server_version_num": ("server_version_num", "12601"),
    "SHOW transaction_read_only": ("transaction_read_only", "off"),
    "show default_transaction_read_only;": ("default_transaction_read_only", "off"),
    "SHOW transaction_isolation": ("transaction_isolation", "read committed"),
    "SHOW TRANSACTION ISOLATION LEVEL": ("transaction_isolation", "read committed"),
    "SHOW search_path": ("search_path", '"$user", public'),
    "SHOW in_hot_standby": ("in_hot_standby", "off"),
    "SHOW extra_float_digits": ("extra_float_digits", "1"),
}

TAGS = {
    "SET extra_float_digits = 3": ("NC", "SET"),
    "SET application_name = 'DBeaver 25.0 - Main <pgbouncer>'": ("NC", "SET"),
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY": ("NC", "SET"),
    "SET statement_timeout TO '30s'": ("NC", "SET"),
    # Sequelize's, for the time zone that it is configured with.
    "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE": ("NC", "SET"),
    "RESET ALL": ("C", "RESET"),
    "DISCARD ALL": ("C", "DISCARD ALL"),
    "UNLISTEN *": ("C", "UNLISTEN"),
}


def ask(client, sql):
    """The result of a simple query, whether or not it is an error."""
    client.send(wire.query(sql))
    return client.result()


def exchange(client, *messages):
    client.send(*messages, wire.sync())
    return client.result()


def check(result, columns, row, tag):
    assert [(column.name, column.type) for column in result.columns] == columns
    assert (result.rows, result.tag) == ([row], tag)


@pytest.mark.parametrize("sql", SELECTS)
def test_select_of_a_session_is_answered(pooler, sql):
    columns, row = SELECTS[sql]
    client = pooler.console()
    result = client.query(sql)
    assert result.types == "TDCZ"
    check(result, columns, row, "SELECT 1")
    result = exchange(client, wire.parse(sql, "s"), wire.describe("S", "s"))
    assert result.types == "1tTZ"
    assert [(column.name, column.type) for column in result.columns] == columns
    result = exchange(client, wire.bind((), "s"), wire.describe(), wire.execute(), wire.execute())
    assert result.types == "2TDCCZ" and result.tags == ["SELECT 1", "SELECT 0"]
    assert result.rows == [row]


def test_version_has_the_form_of_postgresql(pooler):
    (row,) = pooler.command("SELECT version()").rows


    assert re.fullmatch(VERSION, row[0])


def test_binary_results_are_right(pooler):
    client = pooler.console()
    result = exchange(
        client, wire.parse("SELECT 7, pg_is_in_recovery(), current_user"),
        wire.bind((), "", "", (1,)), wire.execute(),
    )  # fmt: skip
    (row,) = [message.body for message in result.messages if message.type == "D"]
    assert row == b"\0\3" + b"\0\0\0\4\0\0\0\7" + b"\0\0\0\1\0" + b"\0\0\0\5admin"


@pytest.mark.parametrize("sql", SHOWN)
def test_show_of_a_parameter_is_answered(pooler, sql):
    name, value = SHOWN[sql]
    client = pooler.console("stats")
    for result in (client.query(sql), exchange(client, wire.extended(sql))):
        check(result, [(name, TEXT)], (value,), "SHOW")


@pytest.mark.parametrize("sql", TAGS)
def test_statements_without_effect_have_their_tags(pooler, sql):
    types, tag = TAGS[sql]
    client = pooler.console("stats")
    before = pooler.show("CONFIG")
    result = client.query(sql)
    assert (result.types, result.tag) == (types + "Z", tag)
    result = exchange(client, wire.extended(sql))
    assert (result.types, result.tag) == ("12n" + types + "Z", tag)
    assert pooler.show("CONFIG") == before


@pytest.mark.parametrize("sql", ["", ";", " ;\n", "-- ping", "/* ping */;"])
def test_an_empty_query_is_answered(pooler, sql):
    client = pooler.console()
    assert client.query(sql).types == "IZ"
    assert exchange(client, wire.extended(sql)).types == "12nIZ"
    assert client.query("SHOW STATE").tag == "SHOW"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 + 1",
        "SELECT version(), 1 FROM x",
        "SELECT pg_sleep(1)",
        "SHOW STATE; SHOW STATE",
        "BEGIN; SHOW STATE",
        "SELECT 1; RELOAD",
        "SET TRANSACTION",
        "SAVEPOINT a",
        "SHOW ALL",
        "SELECT d.oid FROM pg_catalog.pg_database d",
        "INSERT INTO x VALUES (1)",
    ],
)
def test_everything_else_stays_refused(pooler, sql):
    client = pooler.console()
    error = ask(client, sql).error
    assert error.is_("ERROR", "08P01", f"invalid command '{sql}', use SHOW HELP;")
    assert client.query("SHOW STATE").tag == "SHOW"


def test_parameters_that_only_a_server_sets_stay_refused(pooler):
    client = pooler.console()
    error = ask(client, "SET server_version = '15'").error
    assert error.is_("ERROR", "08P01", "SET failed")
    for sql in ("SET role = 'admin'", "SET SESSION AUTHORIZATION 'admin'"):
        assert ask(client, sql).error


# Transactions


def test_a_transaction_shows_in_the_status(pooler):
    client = pooler.console()
    for begin, end in (("BEGIN", "COMMIT"), ("START TRANSACTION READ ONLY", "ROLLBACK")):
        result = client.query(begin)
        assert (result.types, result.status) == ("CZ", "T")
        assert client.query("SHOW STATE").status == "T"
        # Commands are not undone, so an error does not end the transaction.
        assert ask(client, "SELECT x FROM y").status == "T"
        assert client.query("DISABLE main").status == "T"
        result = client.query(end)
        assert (result.types, result.tag, result.status) == ("CZ", end, "I")
        assert pooler.show("DATABASES", name="main")[0]["disabled"] == "1"


def test_a_transaction_shows_in_the_status_of_the_extended_protocol(pooler):
    client = pooler.console()
    assert exchange(client, wire.extended("BEGIN")).status == "T"
    assert exchange(client, wire.extended("SHOW STATE")).status == "T"
    assert exchange(client, wire.extended("NONSENSE")).status == "T"
    assert exchange(client, wire.extended("COMMIT")).status == "I"


def test_wrong_ends_of_transactions_are_warned_of(pooler):
    client = pooler.console()
    (notice,) = client.query("COMMIT").notices
    assert (notice["S"], notice["C"]) == ("WARNING", "25P01")
    client.query("BEGIN")
    result = client.query("BEGIN")
    assert (result.notices[0]["C"], result.status) == ("25001", "T")
    assert client.query("ROLLBACK").types == "CZ"


def test_a_status_reaches_the_answers_of_commands_that_wait(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    client = pooler.console()
    client.query("BEGIN")
    client.send(wire.query("PAUSE"))
    holder.query("COMMIT")
    result = client.result()
    assert (result.tag, result.status) == ("PAUSE", "T")
    pooler.command("RESUME")


def test_portals_live_until_their_transaction_ends(pooler):
    """Drivers fetch rows in portions inside transactions, with a Sync behind each."""
    client = pooler.console()
    whole = client.query("SHOW CONFIG").rows
    exchange(client, wire.extended("BEGIN"))
    bind = wire.bind((), "", "portal")
    rows = exchange(client, wire.parse("SHOW CONFIG"), bind, wire.execute("portal", 5)).rows
    assert len(rows) == 5
    while part := exchange(client, wire.execute("portal", 50)).rows:
        rows += part
    assert rows == whole
    exchange(client, wire.extended("COMMIT"))
    assert exchange(client, wire.execute("portal", 5)).error.sqlstate == "34000"
    # The same where simple queries begin and end the transaction.
    client.query("BEGIN")
    exchange(client, wire.parse("SHOW CONFIG", "s"), wire.bind((), "s", "portal"), wire.bind((), "s"))
    client.query("SHOW STATE")
    assert exchange(client, wire.execute("")).error.sqlstate == "34000"
    assert len(exchange(client, wire.execute("portal", 5)).rows) == 5
    client.query("ROLLBACK")
    assert exchange(client, wire.execute("portal", 5)).error.sqlstate == "34000"


def test_deallocate_works(pooler):
    client = pooler.console()
    exchange(client, wire.parse("SHOW STATE", "a"), wire.parse("SHOW STATE", "b"))
    assert client.query("DEALLOCATE a").tag == "DEALLOCATE"
    assert exchange(client, wire.bind((), "a")).error.sqlstate == "26000"
    error = ask(client, "DEALLOCATE a").error
    assert error.is_("ERROR", "26000", 'prepared statement "a" does not exist')
    assert exchange(client, wire.bind((), "b"), wire.execute()).tag == "SHOW"
    assert exchange(client, wire.extended("DEALLOCATE ALL")).tag == "DEALLOCATE ALL"
    assert exchange(client, wire.bind((), "b")).error.sqlstate == "26000"


def test_several_statements_need_a_simple_query(pooler):
    client = pooler.console()
    result = client.query("SET DateStyle=ISO; SELECT 1; SELECT version();")
    assert result.types == "NCTDCTDCZ"
    error = exchange(client, wire.parse("SELECT 1; SELECT 2")).error
    assert error.sqlstate == "42601"
    # An error ends the query; what comes before it has been done.
    assert ask(client, "BEGIN; DEALLOCATE x; SELECT 1").types == "CEZ"


# Hints


HINTS = {
    "SHOW POLS": "did you mean SHOW POOLS?",
    "show client;": "did you mean SHOW CLIENTS?",
    "SELECT stat": "did you mean SHOW STATE?",
    "SHOW POL WHERE user = 'x'": "did you mean SHOW POOLS?",
    "RELOD": "did you mean RELOAD?",
    "resme main": "did you mean RESUME main?",
    "POOLS": "did you mean SHOW POOLS?",
    "SHUTDOWN WAIT_FOR_CLIENT": "did you mean SHUTDOWN WAIT_FOR_CLIENTS?",
}


@pytest.mark.parametrize("sql", HINTS)
def test_a_misspelt_command_gets_a_hint(pooler, sql):
    client = pooler.console()
    for result in (ask(client, sql), exchange(client, wire.parse(sql))):
        assert result.error.is_("ERROR", "08P01", f"invalid command '{sql}', use SHOW HELP;")
        assert list(result.error.fields) == ["S", "C", "M", "H"]
        assert result.error.fields["H"] == HINTS[sql]


@pytest.mark.parametrize(
    "sql", ["SHOW NOTHING", "SHOW x", "NONSENSE", "SELECT foo", "RELOAD now", "SHOW", "HANDOVE 1"]
)
def test_other_words_get_no_hint(pooler, sql):
    error = ask(pooler.console(), sql).error
    assert list(error.fields) == ["S", "C", "M"]


def test_a_misspelt_setting_gets_a_hint(pooler):
    client = pooler.console()
    error = ask(client, "SET defalt_pool_size = 3").error
    assert error.is_("ERROR", "08P01", "SET failed")
    assert error.fields["H"] == "did you mean SET default_pool_size?"
    error = ask(client, "SET default_pool_size = many").error
    assert list(error.fields) == ["S", "C", "M"]


# Tools: what they send, by hand


def test_psql_commands_get_an_answer(pooler):
    done = pooler.psql("-c", r"\conninfo", "-c", "SHOW VERSION", user="admin", database="pgbouncer")
    assert 'You are connected to database "pgbouncer" as user "admin"' in done.stdout
    done = subprocess.run(
        ["psql", "-X", "-h", HOST, "-p", str(pooler.port), "-U", "admin", "-d", "pgbouncer",
         "-c", r"\l", "-c", "SHOW VERSION"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert "invalid command 'SELECT" in done.stderr and "PgBouncer 1." in done.stdout


DBEAVER = [
    "SET extra_float_digits = 3",
    "SET application_name = 'DBeaver 25.2.0 - Main <pgbouncer>'",
    "SELECT version()",
    "SELECT current_schema(),session_user",
    "SHOW search_path",
    "SHOW TRANSACTION ISOLATION LEVEL",
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE",
    "BEGIN",
    "SELECT 'ping'",
    "ROLLBACK",
    "",
]
DBEAVER_CATALOG = (
    "SELECT db.oid,db.* FROM pg_catalog.pg_database db"
    " WHERE 1=1 AND datallowconn AND NOT datistemplate OR db.datname = $1 ORDER BY db.datname"
)


def test_the_start_of_dbeaver_is_answered(pooler):
    client = pooler.console()
    for sql in DBEAVER:
        assert not exchange(client, wire.extended(sql)).error, sql
    error = exchange(client, wire.parse(DBEAVER_CATALOG, types=(1043,))).error
    assert error.sqlstate == "0A000"
    assert exchange(client, wire.extended("SHOW POOLS")).tag == "SHOW"


PGADMIN = """
SET DateStyle=ISO;
SET client_min_messages=notice;
SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output';
SET client_encoding='utf8';
"""
PGADMIN_CATALOG = """
SELECT
    db.oid as did, db.datname, db.datallowconn,
    pg_encoding_to_char(db.encoding) AS serverencoding
FROM
    pg_catalog.pg_database db
WHERE db.datname = current_database()"""


def test_the_start_of_pgadmin_is_answered(pooler):
    with psycopg.connect(
        host=HOST, port=pooler.port, user="admin", dbname="pgbouncer", autocommit=True
    ) as connection:
        cursor = connection.execute(PGADMIN)
        statuses = [cursor.statusmessage]
        while cursor.nextset():
            statuses.append(cursor.statusmessage)
        assert statuses == ["SET", "SET", "SELECT 1", "SET"]
        (version,) = connection.execute("SELECT version()").fetchone()
        assert version.startswith("PostgreSQL")
        with pytest.raises(psycopg.Error, match="invalid command"):
            connection.execute(PGADMIN_CATALOG)
        assert connection.execute("SHOW POOLS").fetchall()


def test_the_statements_of_npgsql_are_answered(pooler):
    """With `Server Compatibility Mode=NoTypeLoading`; otherwise it reads the catalog of types."""
    client = pooler.console()
    # Before the first command: the reset of its pool, and what TargetSessionAttributes asks.
    client.send(wire.query("DISCARD ALL"), wire.extended("SHOW POOLS"), wire.sync())
    assert client.result().tag == "DISCARD ALL"
    assert client.result().tag == "SHOW"
    result = client.query("select pg_is_in_recovery(); SHOW default_transaction_read_only")
    assert result.rows == [("f",), ("off",)]
    # A transaction begins in the same write as its first command.
    client.send(
        wire.query("BEGIN TRANSACTION ISOLATION LEVEL READ COMMITTED"),
        wire.extended("SHOW POOLS"), wire.sync(),
    )  # fmt: skip
    assert client.result().status == "T"
    assert client.result().status == "T"
    assert client.query("COMMIT").status == "I"


@pytest.mark.parametrize("kind", ["read-write", "primary", "prefer-standby"])
def test_libpq_finds_the_kind_of_server_it_wants(pooler, kind):
    with psycopg.connect(
        host=HOST, port=pooler.port, user="admin", dbname="pgbouncer",
        target_session_attrs=kind, connect_timeout=5,
    ) as connection:  # fmt: skip
        assert connection.execute("SHOW VERSION").fetchone()


def test_psycopg_works_without_autocommit(pooler):
    """It sends BEGIN before a command, and COMMIT if the status says that there is a transaction."""
    with psycopg.connect(host=HOST, port=pooler.port, user="admin", dbname="pgbouncer") as connection:
        status = connection.info.transaction_status
        assert status.name == "IDLE"
        assert connection.execute("SHOW DATABASES").fetchall()
        assert connection.info.transaction_status.name == "INTRANS"
        with pytest.raises(psycopg.Error, match="invalid command"):
            connection.execute("SELECT * FROM x")
        connection.rollback()
        assert connection.info.transaction_status.name == "IDLE"
        with connection.transaction():
            assert connection.execute("DISABLE main").statusmessage == "DISABLE"
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "1"


def test_startup_parameters_of_drivers_do_no_harm(pooler):
    """pgjdbc before 42.7.5 has extra_float_digits among them."""
    client = pooler.console(extra_float_digits="3", search_path="x", application_name="tool")
    assert client.query("SHOW extra_float_digits").rows == [("1",)]
