# SPDX-License-Identifier: ISC
"""The extended protocol on the console: raw messages, and drivers that use no other."""

import asyncio
import glob
import os
import shutil
import struct
import subprocess

import psycopg
import pytest

from support import wire
from support.clients.driver_programs import kit_folder
from support.clients.raw import cancel
from support.process import HOST, wait_until
from support.servers.cluster import program


def exchange(client, *messages):
    """Send messages and a Sync; the result up to ReadyForQuery."""
    client.send(*messages, wire.sync())
    return client.result()


def texts(result):
    return [row[0] for row in result.rows]


# Messages


def test_a_batch_is_answered_in_order(pooler):
    client = pooler.console()
    result = exchange(client, wire.parse("SHOW STATE"), wire.bind(), wire.describe(), wire.execute())
    assert result.types == "12TDDDCZ" and result.status == "I"
    assert (result.names, result.tag) == (["key", "value"], "SHOW")
    assert result.rows == [("active", "yes"), ("paused", "no"), ("suspended", "no")]


def test_statements_and_portals_have_names(pooler):
    client = pooler.console()
    result = exchange(
        client,
        wire.parse("SHOW VERSION", "v"),
        wire.parse("SHOW STATE", "s"),
        wire.bind((), "v", "one"),
        wire.bind((), "s", "two"),
        wire.execute("two"),
        wire.execute("one"),
    )
    assert result.types == "1122DDDCDCZ"
    assert texts(result)[:3] == ["active", "paused", "suspended"]
    # Statements remain, portals end at Sync.
    result = exchange(client, wire.bind((), "v"), wire.execute())
    assert result.types == "2DCZ" and texts(result)[0].startswith("PgBouncer 1.26.1")
    result = exchange(client, wire.execute("one"))
    assert result.error.is_("ERROR", "34000", 'portal "one" does not exist')


def test_unnamed_statements_and_portals_are_replaced(pooler):
    client = pooler.console()
    result = exchange(
        client,
        wire.parse("SHOW VERSION"),
        wire.parse("SHOW STATE"),
        wire.bind(),
        wire.bind(),
        wire.execute(),
    )
    assert result.types == "1122DDDCZ"
    # A simple query ends the unnamed statement, as it does in PostgreSQL.
    client.query("SHOW VERSION")
    result = exchange(client, wire.bind())
    assert result.error.is_("ERROR", "26000", "unnamed prepared statement does not exist")


@pytest.mark.parametrize(
    "sql, types",
    [
        ("SHOW POOLS", [25, 25] + [23] * 13 + [25, 25]),
        ("SHOW DATABASES WHERE name = main", [25, 25, 23, 25, 25] + [23] * 4 + [25, 25] + [23] * 6),
        ("select stats_totals limit 1", [25] + [1700] * 12),
        ("SHOW timezone", [25]),
        ("SHOW HELP", None),
        ("PAUSE nowhere", None),
        ("SET verbose = 0", None),
        ("SHUTDOWN", None),
    ],
)
def test_describe_comes_before_execute(pooler, sql, types):
    client = pooler.console()
    result = exchange(client, wire.parse(sql, "s"), wire.describe("S", "s"))
    assert result.messages[1] == ("t", b"\0\0")
    assert result.types == ("1tnZ" if types is None else "1tTZ")
    assert [column.type for column in result.columns] == (types or [])
    assert {column.format for column in result.columns} <= {0}
    result = exchange(client, wire.bind((), "s", "p", (1,)), wire.describe("P", "p"))
    assert result.types == ("2nZ" if types is None else "2TZ")
    assert {column.format for column in result.columns} <= {1}
    assert pooler.running()


def test_a_command_runs_at_execute_and_once(pooler):
    client = pooler.console()
    exchange(client, wire.parse("DISABLE main", "d"), wire.bind((), "d"), wire.describe())
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "0"
    result = exchange(client, wire.bind((), "d"), wire.execute(), wire.execute())
    assert result.types == "2CEZ" and result.tag == "DISABLE"
    assert result.error.is_("ERROR", "55000", 'portal "" cannot be run')
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "1"
    assert len(pooler.lines("DISABLE 'main' command issued")) == 1


def test_the_first_execute_counts_as_a_query(pooler):
    def count():
        (row,) = pooler.show("STATS_TOTALS", database="pgbouncer")
        return int(row["query_count"]), int(row["xact_count"])

    client = pooler.console()
    queries, transactions = count()
    exchange(client, wire.parse("SHOW VERSION", "v"), wire.describe("S", "v"))
    assert count() == (queries, transactions)
    for _ in range(3):
        exchange(client, wire.bind((), "v"), wire.execute())
        assert count() == (queries + 1, transactions + 1)


def test_notices_come_through(pooler):
    client = pooler.console()
    result = exchange(client, *[wire.parse("SHOW HELP"), wire.bind(), wire.execute()])
    assert result.types == "12NCZ" and result.notices[0]["M"] == "Console usage"
    result = exchange(client, wire.extended("SET datestyle TO 'x'"))
    assert result.types == "12nNCZ" and result.notices[0]["M"] == "SET ignored"


def test_rows_may_be_fetched_in_portions(pooler):
    client = pooler.console()
    whole = client.query("SHOW CONFIG").rows
    found, limit = [], 7
    client.send(wire.parse("SHOW CONFIG"), wire.bind(), wire.execute("", limit), wire.flush())
    kinds = client.read_until("s")
    assert [message.type for message in kinds] == ["1", "2"] + ["D"] * limit + ["s"]
    found += [wire.read_row(message.body) for message in kinds if message.type == "D"]
    while kinds[-1].type == "s":
        client.send(wire.execute("", limit), wire.flush())
        kinds = client.read_until("sC")
        found += [wire.read_row(message.body) for message in kinds if message.type == "D"]
    assert found == whole and kinds[-1].body == b"SHOW\0"
    result = exchange(client, wire.execute("", 0))
    assert result.types == "CZ"


def test_a_fetch_of_exactly_all_rows_suspends_the_portal(pooler):
    """As in PostgreSQL: the end of the rows is noticed by the next fetch only."""
    client = pooler.console()
    result = exchange(
        client, wire.parse("SHOW STATE"), wire.bind(), wire.execute("", 3), wire.execute("", 3)
    )
    assert result.types == "12DDDsCZ"
    result = exchange(client, wire.bind(), wire.execute("", 0x80000000))
    assert result.types == "2DDDCZ"


def test_binary_results_are_right(pooler):
    client = pooler.console()
    result = exchange(
        client,
        wire.parse("SHOW DATABASES WHERE name = main"),
        wire.bind((), "", "", (1,)),
        wire.describe(),
        wire.execute(),
    )
    assert {column.format for column in result.columns} == {1}
    (row,) = [message.body for message in result.messages if message.type == "D"]
    values = dict(zip(result.names, raw_row(row)))
    assert values["name"] == b"main" and values["pool_mode"] is None
    assert struct.unpack("!i", values["port"]) == (pooler.cluster.port,)
    # One format for each column, text and binary mixed.
    result = exchange(
        client, wire.parse("SHOW LISTS LIMIT 1"), wire.bind((), "", "", (0, 1)), wire.execute()
    )
    (row,) = [message.body for message in result.messages if message.type == "D"]
    assert raw_row(row) == [b"databases", struct.pack("!i", 2)]


def raw_row(body):
    """The values of a DataRow as they came."""
    (count,) = struct.unpack_from("!H", body)
    at, values = 2, []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        values.append(None if length < 0 else body[at : at + length])
        at += max(length, 0)
    return values


# Errors

NAME = "n" * 300


@pytest.mark.parametrize(
    "messages, sqlstate, text",
    [
        ((wire.parse("SELECT 1 + 1"),), "08P01", "invalid command 'SELECT 1 + 1', use SHOW HELP;"),
        ((wire.parse("SHOW POOLS WHERE x = 1"),), "42703", 'SHOW POOLS: column "x" does not exist'),
        (
            (wire.parse("SHOW POOLS WHERE database = $1"),),
            "0A000",
            "SHOW POOLS: parameters are not supported, write the value itself",
        ),
        (
            (wire.parse("SHOW POOLS", types=(23,)),),
            "0A000",
            "parameters are not supported by the admin console",
        ),
        (
            (wire.parse("SHOW POOLS"), wire.bind(("x",))),
            "08P01",
            'bind message supplies 1 parameters, but prepared statement "" requires 0',
        ),
        (
            (wire.parse("SHOW POOLS", "s"), wire.parse("SHOW STATE", "s")),
            "42P05",
            'prepared statement "s" already exists',
        ),
        (
            (wire.parse("SHOW STATE"), wire.bind((), "", "p"), wire.bind((), "", "p")),
            "42P03",
            'cursor "p" already exists',
        ),
        ((wire.bind((), "s"),), "26000", 'prepared statement "s" does not exist'),
        ((wire.describe("S", "s"),), "26000", 'prepared statement "s" does not exist'),
        ((wire.describe("P", "p"),), "34000", 'portal "p" does not exist'),
        ((wire.execute("p"),), "34000", 'portal "p" does not exist'),
        ((wire.describe("x", ""),), "08P01", "invalid DESCRIBE message subtype 120"),
        ((wire.close("x", ""),), "08P01", "invalid CLOSE message subtype 120"),
        (
            (wire.parse("SHOW STATE"), wire.bind((), "", "", (2,))),
            "22023",
            "unsupported format code: 2",
        ),
        (
            (wire.parse("SHOW STATE"), wire.bind((), "", "", (0, 0, 0))),
            "08P01",
            "bind message has 3 result formats but query has 2 columns",
        ),
        ((wire.parse("SHOW STATE", NAME),), "54000", "too many or too long prepared statements"),
        (
            (wire.parse("SHOW STATE"), wire.bind((), "", NAME)),
            "54000",
            "too many portals, or too long a name",
        ),
        ((wire.message("P", b"no end"),), "08P01", "invalid message format"),
        ((wire.message("B", b"\0\0\0\0\0\1\xff\xff\xff\xf0\0\0"),), "08P01", "invalid message format"),
        ((wire.message("D", b""),), "08P01", "invalid message format"),
        ((wire.message("E", b"\0"),), "08P01", "invalid message format"),
        ((wire.message("C", b"S"),), "08P01", "invalid message format"),
    ],
)
def test_errors_skip_to_sync(pooler, messages, sqlstate, text):
    client = pooler.console()
    victim = wire.parse("DISABLE main") + wire.bind() + wire.execute()
    result = exchange(client, *messages, victim, wire.query("DISABLE main"), wire.flush())
    assert result.types.lstrip("12") == "EZ" and result.status == "I"
    assert result.error.is_("ERROR", sqlstate, text)
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "0"
    assert exchange(client, wire.extended("SHOW VERSION")).types == "12TDCZ"


def test_an_error_of_a_command_skips_too(pooler):
    client = pooler.console("stats")
    result = exchange(client, wire.extended("DISABLE main"), wire.extended("SHOW STATE"))
    assert result.types == "12nEZ"
    assert result.error.is_("ERROR", "08P01", "admin access needed")


def test_statements_and_portals_are_bounded(pooler):
    client = pooler.console()
    for first in range(0, 1024, 64):
        exchange(client, *[wire.parse("SHOW STATE", str(each)) for each in range(first, first + 64)])
    result = exchange(client, wire.parse("SHOW STATE", "more"))
    assert result.error.is_("ERROR", "54000", "too many or too long prepared statements")
    # Closing a statement makes room, even one that does not exist.
    result = exchange(
        client, wire.close("S", "7"), wire.close("S", "unknown"), wire.parse("SHOW STATE", "more")
    )
    assert result.types == "331Z"
    portals = [wire.bind((), "1", str(each)) for each in range(64)]
    result = exchange(client, *portals, wire.close("P", "9"), wire.bind((), "1"))
    assert result.types == "2" * 64 + "32Z"
    result = exchange(client, *portals, wire.bind((), "1"))
    assert result.error.is_("ERROR", "54000", "too many portals, or too long a name")
    long = "SHOW STATE" + " " * 700_000
    assert exchange(client, wire.close("S", "8"), wire.parse(long, "long")).types == "31Z"
    result = exchange(client, wire.close("S", "9"), wire.parse(long, "long2"))
    assert result.error.sqlstate == "54000"


def test_messages_in_small_pieces_are_put_together(pooler):
    client = pooler.console()
    data = wire.parse("SHOW VERSION") + wire.bind() + wire.execute() + wire.sync()
    for at in range(len(data)):
        client.send(data[at : at + 1])
    assert client.result().types == "12DCZ"


def test_other_messages_still_end_the_session(pooler):
    for message in (wire.function_call(1, []), wire.copy_data(b"x"), wire.copy_done()):
        client = pooler.console()
        client.send(wire.parse("SHOW VERSION"), message)
        found = client.read_all()
        assert [each.type for each in found] == ["1", "E", "Z", "E"]
        fields = wire.read_fields(found[1].body)
        assert fields["M"] == f"unsupported packet type for admin console: {message[0]}"


# Commands that wait


def test_what_follows_a_waiting_command_waits(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    client = pooler.console()
    client.send(wire.extended("PAUSE"), wire.extended("SHOW STATE"), wire.sync())
    assert [each.type for each in client.read_until("n")] == ["1", "2", "n"]
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    holder.query("COMMIT")
    result = client.result()
    assert result.types.lstrip("N") == "C12TDDDCZ" and result.tags == ["PAUSE", "SHOW"]
    assert result.rows[1] == ("paused", "yes")
    pooler.command("RESUME")


def test_a_pause_that_fails_skips_to_sync(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    client = pooler.console()
    client.send(wire.extended("PAUSE"), wire.extended("DISABLE main"), wire.sync())
    client.read_until("n")
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    pooler.command("RESUME")
    result = client.result()
    assert result.types.lstrip("N") == "EZ"
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "0"
    assert exchange(client, wire.extended("SHOW VERSION")).types == "12TDCZ"


def test_a_waiting_command_can_be_canceled(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    client = pooler.console()
    client.send(wire.extended("PAUSE"), wire.sync())
    client.read_until("n")
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    cancel(pooler.address, client.key)
    assert client.result().types.lstrip("N") == "EZ"
    assert pooler.show("STATE", key="active", value="yes")


def test_a_waiting_console_may_disconnect(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    client = pooler.console()
    client.send(wire.extended("PAUSE"), wire.extended("SHOW STATE"), wire.sync())
    client.read_until("n")
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    client.reset()
    wait_until(lambda: len(pooler.show("CLIENTS", database="pgbouncer")) == 1)
    pooler.command("RESUME")
    holder.query("COMMIT")


def test_a_console_may_kill_itself(pooler):
    client = pooler.console()
    (row,) = [
        row
        for row in exchange(client, wire.extended("SHOW CLIENTS")).dicts()
        if row["port"] == str(client.socket.getsockname()[1])
    ]
    client.send(wire.extended(f"KILL_CLIENT {row['id']}"), wire.extended("SHOW STATE"), wire.sync())
    assert client.fatal().text == "admin forced disconnect"


def test_shutdown_ends_without_an_answer(pooler):
    client = pooler.console()
    client.send(wire.extended("SHUTDOWN"), wire.sync())
    assert {message.type for message in client.read_all()} <= {"1", "2", "n", "E"}
    assert pooler.wait_exit() == 0


# Drivers


def test_psycopg_uses_the_extended_protocol(pooler):
    with psycopg.connect(
        host=HOST, port=pooler.port, user="admin", dbname="pgbouncer", autocommit=True
    ) as connection:
        for prepare in (True, False):
            for binary in (True, False):
                cursor = connection.cursor(binary=binary)
                cursor.execute("SHOW DATABASES WHERE name = 'main'", prepare=prepare)
                (row,) = cursor.fetchall()
                assert row[0] == "main" and row[2] == pooler.cluster.port
                cursor.execute("SHOW STATS_TOTALS", prepare=prepare)
                assert {row[0] for row in cursor.fetchall()} == {"pgbouncer"}
        with pytest.raises(psycopg.errors.ProtocolViolation, match="invalid command"):
            connection.execute("SELECT x", prepare=True)
        with pytest.raises(psycopg.Error, match="not supported"):
            connection.execute("SHOW POOLS WHERE database = %s", ("main",))
        connection.prepare_threshold = 1
        for _ in range(4):
            assert connection.execute("DISABLE main").statusmessage == "DISABLE"
            assert connection.execute("ENABLE main").statusmessage == "ENABLE"
        assert connection.execute("SHOW VERSION").fetchone()[0].startswith("PgBouncer")


def test_asyncpg(pooler):
    asyncpg = pytest.importorskip("asyncpg")

    async def use():
        connection = await asyncpg.connect(
            host=HOST, port=pooler.port, user="admin", database="pgbouncer", timeout=10
        )
        rows = await connection.fetch("SHOW DATABASES WHERE name = main")
        assert rows[0]["name"] == "main" and rows[0]["port"] == pooler.cluster.port
        totals = await connection.fetch("SHOW TOTALS")
        assert int(totals[0]["value"]) == 0
        assert await connection.execute("DISABLE main") == "DISABLE"
        statement = await connection.prepare("SHOW CONFIG")
        assert [each.name for each in statement.get_attributes()][:2] == ["key", "value"]
        assert len(await statement.fetch()) > 50
        with pytest.raises(asyncpg.PostgresError, match="invalid command"):
            await connection.fetch("SELECT x")
        assert (await connection.fetchval("SHOW STATE")) == "active"
        await connection.close()

    asyncio.run(use())


def test_pg8000(pooler):
    pg8000 = pytest.importorskip("pg8000")
    connection = pg8000.connect(user="admin", host=HOST, port=pooler.port, database="pgbouncer")
    connection.autocommit = True
    cursor = connection.cursor()
    for _ in range(3):
        cursor.execute("SHOW DATABASES WHERE name = main")
        (row,) = cursor.fetchall()
        assert row[0] == "main" and row[2] == pooler.cluster.port
        cursor.execute("SHOW STATE")
        assert [list(row) for row in cursor.fetchall()][0] == ["active", "yes"]
    with pytest.raises(pg8000.Error, match="invalid command"):
        cursor.execute("SELECT x")
    cursor.execute("SHOW TOTALS LIMIT 1")
    assert int(cursor.fetchall()[0][1]) == 0
    connection.close()


PGJDBC = "/usr/share/java/postgresql.jar"


def kit_pgjdbc():
    """The path of the package of test/drivers. Skips the test if it was not built."""
    (path,) = glob.glob(os.path.join(kit_folder("java"), "packages", "postgresql-*.jar"))
    return path


def test_pgjdbc(new_pooler):
    java = shutil.which("java")
    if not java:
        pytest.skip("no Java")
    path = PGJDBC if os.path.exists(PGJDBC) else kit_pgjdbc()
    pooler = new_pooler()
    source = os.path.join(os.path.dirname(__file__), "support", "clients", "ConsoleClient.java")
    done = subprocess.run(
        [java, "-cp", path, source, f"{HOST}:{pooler.port}"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [f"main {pooler.cluster.port}"] * 6 + [
        f"rows {len(pooler.show('TOTALS'))}",
        "08P01 ERROR: invalid command 'SELECT x', use SHOW HELP;",
    ], done.stderr
    assert pooler.show("DATABASES", name="main")[0]["disabled"] == "1"


def test_pgbench_prepares_on_the_console(pooler):
    """With libpq's PQprepare and PQexecPrepared."""
    pgbench = shutil.which("pgbench") or program("pgbench")
    script = pooler.write("show.sql", "SHOW POOLS;\nSHOW STATS;\n")
    out = subprocess.run(
        [pgbench, "-n", "-M", "prepared", "-t", "20", "-c", "3", "-f", script]
        + ["-h", HOST, "-p", str(pooler.port), "-U", "admin", "pgbouncer"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "number of transactions actually processed: 60/60" in out.stdout, out.stderr
