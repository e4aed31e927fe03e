# SPDX-License-Identifier: ISC
"""psycopg 2 with its defaults: simple queries, and a pool that resets returned connections."""

import io
import select
import threading

import psycopg2
import psycopg2.extras
import psycopg2.pool
from psycopg2 import errors

from check import CLIENTS, MODE, check, fails, finish

connections = [None] * CLIENTS


def one(connection, query, values=()):
    """The only row of a query."""
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return cursor.fetchone()


def connect(number):
    connection = connections[number] = psycopg2.connect("", application_name=f"p2 {number}")
    assert one(connection, "SHOW application_name") == (f"p2 {number}",)
    connection.set_client_encoding("LATIN1")
    assert one(connection, "SELECT 'é'::text, octet_length('é')") == ("é", 2)
    connection.set_client_encoding("UTF8")
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE item{number} (id int, name text)")


def settings(number):
    options = f"-c search_path=own{number},public -c statement_timeout={41 + number}s -c jit=off"
    connection = psycopg2.connect("", options=options)
    connection.autocommit = True
    for _ in range(10):
        row = one(connection, "SELECT replace(current_setting('search_path'), ' ', ''),"
                  " current_setting('statement_timeout'), current_setting('jit')")  # fmt: skip
        assert row == (f"own{number},public", f"{41 + number}s", "off"), row
    connection.close()


def sessions(number):
    """set_session sends SET SESSION CHARACTERISTICS in autocommit only; else BEGIN has all of it."""
    connection = connections[number]
    connection.set_session(isolation_level="SERIALIZABLE", readonly=True, deferrable=True)
    assert one(connection, "SHOW transaction_isolation") == ("serializable",)
    fails(errors.ReadOnlySqlTransaction, lambda: one(connection, "CREATE TABLE no (a int)"))
    connection.rollback()
    connection.set_session(isolation_level="DEFAULT", readonly="DEFAULT", deferrable="DEFAULT")


def transactions(number):
    connection = connections[number]
    for turn in range(10):
        with connection, connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO item{number} VALUES (%s, %s)", (turn, "kept"))
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO item{number} VALUES (%s, %s)", (turn, "dropped"))
        connection.rollback()
        fails(errors.DivisionByZero, lambda: one(connection, "SELECT 1 / %s", (0,)))
        fails(errors.InFailedSqlTransaction, lambda: one(connection, "SELECT 1"))
        connection.rollback()
    assert one(connection, f"SELECT count(*), min(name) FROM item{number}") == (10, "kept")
    connection.rollback()


def many_rows(number):
    connection = connections[number]
    insert = f"INSERT INTO item{number} VALUES %s"
    with connection, connection.cursor() as cursor:
        rows = [(i, f"many {i}") for i in range(100, 1100)]
        psycopg2.extras.execute_values(cursor, insert, rows, page_size=100)
        psycopg2.extras.execute_batch(cursor, insert.replace("%s", "(%s, %s)"), rows)
        cursor.execute(f"SELECT count(*) FROM item{number} WHERE id >= 100; SELECT 5")
        assert cursor.fetchone() == (5,)
    assert one(connection, f"SELECT count(*) FROM item{number} WHERE id >= 100") == (2000,)
    connection.rollback()


def copies(number):
    connection = connections[number]
    lines = "".join(f"{i}\tcopied {i}\n" for i in range(5000, 7000))
    with connection, connection.cursor() as cursor:
        cursor.copy_from(io.StringIO(lines), f"item{number}")
        out = io.StringIO()
        query = f"COPY (SELECT * FROM item{number} WHERE id >= 5000 ORDER BY id) TO STDOUT"
        cursor.copy_expert(query, out)
        assert out.getvalue() == lines
        broken = io.StringIO("1\tone\nnonsense\n" + lines)
        copy = lambda: cursor.copy_from(broken, f"item{number}")  # noqa: E731
        fails(errors.InvalidTextRepresentation, copy)
        connection.rollback()


def cursors(number):
    connection = connections[number]
    with connection, connection.cursor("walk") as cursor:
        cursor.itersize = 7
        cursor.execute("SELECT i + %s FROM generate_series(1, 100) AS i", (number,))
        assert [row[0] for row in cursor] == [i + number for i in range(1, 101)]


def large_objects(number):
    connection = connections[number]
    with connection:
        thing = connection.lobject(mode="wb")
        thing.write(b"x" * 100000)
        thing.close()
        assert connection.lobject(thing.oid, "rb").read() == b"x" * 100000
        connection.lobject(thing.oid).unlink()


def cancels(number):
    connection = connections[number]
    done = threading.Event()

    def cancel():
        while not done.wait(0.2):
            connection.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    fails(errors.QueryCanceled, lambda: one(connection, "SELECT pg_sleep(60)"))
    done.set()
    thread.join()
    connection.rollback()
    assert one(connection, "SELECT %s", (number,)) == (number,)
    connection.rollback()


def pools(number):
    """Its pool resets a connection by RESET ALL and SET SESSION AUTHORIZATION DEFAULT."""
    pool = psycopg2.pool.ThreadedConnectionPool(1, 2, "", application_name=f"pool {number}")
    for turn in range(6):
        connection = pool.getconn()
        assert one(connection, "SELECT %s + 1", (turn,)) == (turn + 1,)
        connection.reset()
        assert one(connection, "SELECT %s + 2", (turn,)) == (turn + 2,)
        pool.putconn(connection)
    pool.closeall()


def notifications(number):
    connection = psycopg2.connect("")
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"LISTEN news{number}")
    with connections[number] as other, other.cursor() as cursor:
        cursor.execute(f"NOTIFY news{number}, 'hello'")
    assert select.select([connection], [], [], 20)[0]
    connection.poll()
    assert [notice.payload for notice in connection.notifies] == ["hello"]
    connection.close()


def console(_):
    connection = psycopg2.connect("")
    connection.set_client_encoding("UTF8")
    assert one(connection, "SELECT 1") == (1,)
    assert one(connection, "SHOW VERSION")[0].startswith("PgBouncer")
    assert one(connection, "SELECT version()")[0].startswith("PostgreSQL")
    fails(psycopg2.Error, lambda: one(connection, "SELECT * FROM x"))
    connection.rollback()
    connection.set_session(readonly=True, isolation_level="SERIALIZABLE")
    with connection:
        assert one(connection, "SHOW POOLS")
    connection.autocommit = True
    assert one(connection, "SHOW POOLS")
    connection.reset()
    connection.close()


def closes(number):
    connections[number].close()


if MODE == "console":
    check("the console", console, 1)
    finish()

check("connects, and changes its encoding", connect)
check("startup parameters stay the client's own", settings)
check("set_session", sessions)
check("transactions commit and roll back", transactions)
check("execute_values, execute_batch, and several statements at once", many_rows)
check("COPY in and out, and broken", copies)
check("cursors of the server", cursors)
check("large objects", large_objects)
check("cancels", cancels)
check("pools and their resets", pools)
check("LISTEN", notifications)
check("closes", closes)
finish()
