# SPDX-License-Identifier: ISC
"""psycopg 3 with its defaults: it prepares statements at their fifth execution."""

import datetime
import decimal
import json
import threading
import uuid

import psycopg
from psycopg import errors
from psycopg.types.json import Jsonb

try:
    import psycopg_pool
except ImportError:
    psycopg_pool = None

from check import HEALS, CLIENTS, MODE, check, fails, finish

connections = [None] * CLIENTS


def connect(number):
    connection = connections[number] = psycopg.connect("", application_name=f"p {number}")
    assert connection.info.parameter_status("client_encoding") == "UTF8"
    with connection.transaction():
        connection.execute(f"CREATE TABLE item{number} (id int, name text)")
        row = connection.execute("SHOW application_name").fetchone()
        assert row == (f"p {number}",)


def settings(number):
    options = (
        f"-c search_path=own{number},public -c statement_timeout={41 + number}s"
        f" -c extra_float_digits=0 -c TimeZone=Etc/GMT+{number}"
    )
    with psycopg.connect("", options=options, autocommit=True) as connection:
        for _ in range(10):
            row = connection.execute(
                "SELECT replace(current_setting('search_path'), ' ', ''),"
                " current_setting('statement_timeout'),"
                " current_setting('extra_float_digits'), current_setting('TimeZone')"
            ).fetchone()
            assert row == (
                f"own{number},public", f"{41 + number}s", "0", f"Etc/GMT+{number}"
            ), row  # fmt: skip


def prepared(number):
    connection = connections[number]
    connection.autocommit = True
    for turn in range(15):
        row = connection.execute("SELECT %s::int * 1000 + %s", (number, turn)).fetchone()
        assert row == (number * 1000 + turn,)
        row = connection.execute(f"SELECT {number}, %s::text", (f"turn {turn}",)).fetchone()
        assert row == (number, f"turn {turn}")
    connection.autocommit = False


def many_prepared(number):
    """More than a connection keeps: psycopg deallocates the least recently used statement."""
    with psycopg.connect("", autocommit=True, prepare_threshold=0) as connection:
        connection.prepared_max = 5
        for turn in range(30):
            kind = turn % 12
            row = connection.execute(f"SELECT %s::int + {kind}", (number,)).fetchone()
            assert row == (number + kind,)


def transactions(number):
    connection = connections[number]
    for turn in range(10):
        with connection.transaction():
            connection.execute(f"INSERT INTO item{number} VALUES (%s, %s)", (turn, "kept"))
    for turn in range(10):
        with connection.transaction(force_rollback=True):
            connection.execute(f"INSERT INTO item{number} VALUES (%s, %s)", (turn, "dropped"))
    with connection.transaction():
        query = f"SELECT count(*), min(name) FROM item{number}"
        assert connection.execute(query).fetchone() == (10, "kept")


def errors_roll_back(number):
    connection = connections[number]
    for turn in range(8):
        with connection.transaction():
            with fails_in(errors.DivisionByZero):
                with connection.transaction():
                    connection.execute("SELECT 1 / %s::int", (0,))
            assert connection.execute("SELECT %s::int", (turn,)).fetchone() == (turn,)
        fails(errors.UndefinedTable, lambda: connection.execute("SELECT * FROM nowhere"))
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR
        fails(errors.InFailedSqlTransaction, lambda: connection.execute("SELECT 1"))
        connection.rollback()


class fails_in:
    """A block that has to end with this exception."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        assert kind is not None and issubclass(kind, self.kind), kind
        return True


def pipelines(number):
    connection = connections[number]
    connection.autocommit = True
    for turn in range(6):
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s::int", (i + number,)) for i in range(20)]
        assert [cursor.fetchone() for cursor in cursors] == [(i + number,) for i in range(20)]
    with fails_in(errors.DivisionByZero):
        with connection.pipeline() as pipeline:
            connection.execute("SELECT 1")
            connection.execute("SELECT 1 / %s::int", (0,))
            pipeline.sync()
    assert connection.execute("SELECT %s::int", (number,)).fetchone() == (number,)
    connection.autocommit = False


def many_rows(number):
    connection = connections[number]
    with connection.transaction(), connection.cursor() as cursor:
        rows = [(i, f"many {i}") for i in range(100, 400)]
        cursor.executemany(f"INSERT INTO item{number} VALUES (%s, %s)", rows)
        assert cursor.rowcount == 300
    with connection.transaction():
        cursor = connection.cursor()
        query = f"INSERT INTO item{number} VALUES (%s, %s) RETURNING id"
        cursor.executemany(query, [(i, "back") for i in range(500, 520)], returning=True)
        seen = []
        while True:
            seen.append(cursor.fetchone()[0])
            if not cursor.nextset():
                break
        assert seen == list(range(500, 520))


def copies(number):
    connection = connections[number]
    with connection.transaction(), connection.cursor() as cursor:
        with cursor.copy(f"COPY item{number} FROM STDIN") as copy:
            for i in range(1000, 3000):
                copy.write_row((i, f"copied {i}"))
    with connection.transaction(), connection.cursor() as cursor:
        with cursor.copy(f"COPY item{number} (id, name) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(["int4", "text"])
            copy.write_row((3000, "binary"))
    with connection.transaction(), connection.cursor() as cursor:
        query = f"COPY (SELECT id FROM item{number} WHERE id >= 1000 ORDER BY id) TO STDOUT"
        with cursor.copy(query) as copy:
            copy.set_types(["int4"])
            assert [row[0] for row in copy.rows()] == list(range(1000, 3001))

    def breaks():
        with connection.transaction(), connection.cursor() as cursor:
            with cursor.copy(f"COPY item{number} FROM STDIN") as copy:
                copy.write(b"1\tone\nnonsense\n")
                copy.write(b"2\ttwo\n" * 10000)

    fails(errors.InvalidTextRepresentation, breaks)

    def gives_up():
        with connection.transaction(), connection.cursor() as cursor:
            with cursor.copy(f"COPY item{number} FROM STDIN") as copy:
                copy.write_row((1, "one"))
                raise KeyError("of ours")

    fails((KeyError, errors.QueryCanceled), gives_up)
    with connection.transaction():
        query = f"SELECT count(*) FROM item{number} WHERE id IN (1, 2) AND name <> 'kept'"
        assert connection.execute(query).fetchone() == (0,)


def types(number):
    connection = connections[number]
    values = (
        number, 2**40 + number, decimal.Decimal("12345678901234567890.0987654321"), 1.5e-300,
        True, "ünïcödé \\ '", bytes(range(256)) * 50, datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 15, 123456), uuid.UUID(int=number + 1),
        [1, 2, number], None,
    )  # fmt: skip
    casts = "int8 int8 numeric float8 bool text bytea date timestamp uuid int8[] text".split()
    query = "SELECT " + ", ".join(f"%s::{cast}" for cast in casts)
    binary = query.replace("%s", "%b").replace("%b::text", "%s::text")
    with connection.transaction():
        for turn in range(7):
            assert connection.execute(query, values).fetchone() == values
            cursor = connection.cursor(binary=True)
            assert cursor.execute(binary, values).fetchone() == values
            thing = {"number": number, "turn": turn}
            row = connection.execute("SELECT %s::jsonb", (Jsonb(thing),)).fetchone()
            assert row == (thing,), json.dumps(row)


def cursors(number):
    connection = connections[number]
    with connection.transaction(), connection.cursor(name="walk") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT i + %s FROM generate_series(1, 100) AS i", (number,))
        assert [row[0] for row in cursor] == [i + number for i in range(1, 101)]
    with connection.transaction():
        stream = connection.cursor().stream("SELECT generate_series(1, %s::int)", (500,))
        assert sum(row[0] for row in stream) == 125250


def cancels(number):
    connection = connections[number]
    running = threading.Event()

    def cancel():
        running.wait()
        # The query may not have been sent yet: PostgreSQL ignores a request that comes too early.
        while not done.wait(0.2):
            connection.cancel()

    for _ in range(2):
        done = threading.Event()
        thread = threading.Thread(target=cancel)
        thread.start()
        running.set()
        fails(errors.QueryCanceled, lambda: connection.execute("SELECT pg_sleep(60)"))
        done.set()
        thread.join()
        connection.rollback()
        while True:
            # A late request may still hit this connection.
            try:
                assert connection.execute("SELECT %s::int", (number,)).fetchone() == (number,)
                break
            except errors.QueryCanceled:
                connection.rollback()
        connection.rollback()


def changed_tables(number):
    with psycopg.connect("", autocommit=True) as connection:
        connection.execute(f"CREATE TABLE change{number} (a int)")
        connection.execute(f"INSERT INTO change{number} VALUES (1)")
        query = f"SELECT * FROM change{number} WHERE a < %s"
        for turn in range(10):
            assert connection.execute(query, (2,)).fetchone() == (1,)
        with psycopg.connect("", autocommit=True) as other:
            other.execute(f"ALTER TABLE change{number} ADD COLUMN b text DEFAULT 'new'")
        if not HEALS:
            call = lambda: connection.execute(query, (2,))  # noqa: E731
            fails(errors.FeatureNotSupported, call)
            return
        for turn in range(10):
            assert connection.execute(query, (2,)).fetchone() == (1, "new")


def pools(number):
    """psycopg's own pool, if it is installed: it rolls back connections returned in a transaction."""
    options = {"application_name": f"pool {number}"}
    with psycopg_pool.ConnectionPool("", kwargs=options, min_size=1, max_size=3) as pool:
        for turn in range(8):
            with pool.connection() as connection:
                query = f"SELECT %s::int + {number}, current_setting('application_name')"
                row = connection.execute(query, (turn,)).fetchone()
                assert row == (turn + number, f"pool {number}")
        pool.check()


def notifications(number):
    with psycopg.connect("", autocommit=True) as connection:
        connection.execute(f"LISTEN news{number}")
        connections[number].execute("SELECT pg_notify(%s, %s)", (f"news{number}", "hello"))
        connections[number].commit()
        for notice in connection.notifies():
            assert notice.payload == "hello"
            break
        connection.execute("CREATE TEMP TABLE own (a int)")
        connection.execute("SELECT a FROM own")


def console(_):
    """It sends BEGIN before the first command, and COMMIT behind the block."""
    with psycopg.connect("") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
        assert connection.execute("SHOW DATABASES").fetchall()
        assert connection.execute("SELECT version()").fetchone()[0].startswith("PostgreSQL")
        fails(errors.ProtocolViolation, lambda: connection.execute("SELECT * FROM x"))
        for _ in range(8):  # prepared after five
            assert connection.execute("SHOW VERSION", binary=True).fetchone()
        connection.rollback()
        with connection.transaction():
            assert connection.execute("SHOW POOLS").fetchall()
    if psycopg_pool:
        check = getattr(psycopg_pool.ConnectionPool, "check_connection", None)
        options = {"check": check} if check else {}
        with psycopg_pool.ConnectionPool("", min_size=1, **options) as pool:
            for _ in range(3):
                with pool.connection() as connection:
                    assert connection.execute("SHOW POOLS").fetchall()


def closes(number):
    connections[number].close()


if MODE == "console":
    check("the console", console, 1)
    finish()

check("connects", connect)
check("startup parameters stay the client's own", settings)
check("statements are prepared after five executions", prepared)
# With a libpq before 17 psycopg sends DEALLOCATE in the extended protocol, else Close.
check("statements are closed past prepared_max", many_prepared)
check("transactions commit and roll back", transactions)
check("errors end their transaction only", errors_roll_back)
check("pipelines, with an error in the middle", pipelines)
check("executemany", many_rows)
check("COPY in and out, in binary, broken and given up", copies)
check("types in text and binary", types)
check("cursors of the server, and rows as they come", cursors)
check("cancels", cancels)
check("a changed table", changed_tables)
if psycopg_pool:
    check("pools", pools)
check("LISTEN and temporary tables", notifications)
check("closes", closes)
finish()
