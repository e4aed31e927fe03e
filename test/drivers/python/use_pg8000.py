# SPDX-License-Identifier: ISC
"""pg8000 with its defaults: it prepares by name, or sends Parse and Sync, then Bind and Sync."""

import datetime
import decimal
import io
import os
import uuid

import pg8000

from check import CLIENTS, HEALS, MODE, check, fails, finish

try:
    from pg8000.exceptions import DatabaseError
except ImportError:
    DatabaseError = pg8000.ProgrammingError

connections = [None] * CLIENTS


def new_connection(**options):
    return pg8000.connect(
        user=os.environ["PGUSER"], password=os.environ["PGPASSWORD"], host=os.environ["PGHOST"],
        port=int(os.environ["PGPORT"]), database=os.environ["PGDATABASE"], **options
    )  # fmt: skip


def ask(connection, query, values=()):
    """All rows of a query."""
    cursor = connection.cursor()
    cursor.execute(query, values)
    return [tuple(row) for row in cursor.fetchall()] if cursor.description else None


def connect(number):
    connections[number] = connection = new_connection(application_name=f"pg8000 {number}")
    assert ask(connection, "SHOW application_name") == [(f"pg8000 {number}",)]
    ask(connection, f"CREATE TABLE item{number} (id int, name text)")
    connection.commit()


def prepared(number):
    connection = connections[number]
    connection.autocommit = True
    for turn in range(15):
        query = "SELECT CAST(%s AS int) * 1000 + CAST(%s AS int)"
        assert ask(connection, query, (number, turn)) == [(number * 1000 + turn,)]
        query = f"SELECT {number}, CAST(%s AS text)"
        assert ask(connection, query, (f"turn {turn}",)) == [(number, f"turn {turn}")]
    for kind in range(60):
        assert ask(connection, f"SELECT CAST(%s AS int) + {kind}", (number,)) == [(number + kind,)]
    connection.autocommit = False


def transactions(number):
    connection = connections[number]
    insert = f"INSERT INTO item{number} VALUES (%s, %s)"
    for turn in range(10):
        ask(connection, insert, (turn, "kept"))
        connection.commit()
        ask(connection, insert, (turn, "dropped"))
        connection.rollback()
        fails(DatabaseError, lambda: ask(connection, "SELECT 1 / CAST(%s AS int)", (0,)))
        connection.rollback()
        fails(DatabaseError, lambda: ask(connection, "SELECT * FROM nowhere"))
        connection.rollback()
    assert ask(connection, f"SELECT count(*), min(name) FROM item{number}") == [(10, "kept")]
    connection.rollback()


def many_rows(number):
    connection = connections[number]
    insert = f"INSERT INTO item{number} VALUES (%s, %s)"
    connection.cursor().executemany(insert, [(i, f"many {i}") for i in range(100, 200)])
    connection.commit()
    count = f"SELECT count(*) FROM item{number} WHERE id BETWEEN 100 AND 199"
    assert ask(connection, count) == [(100,)]
    connection.rollback()


def copies(number):
    connection = connections[number]
    lines = b"".join(b"%d\tcopied %d\n" % (i, i) for i in range(5000, 7000))
    cursor = connection.cursor()
    cursor.execute(f"COPY item{number} FROM STDIN", stream=io.BytesIO(lines))
    out = io.BytesIO()
    query = f"COPY (SELECT * FROM item{number} WHERE id >= 5000 ORDER BY id) TO STDOUT"
    cursor.execute(query, stream=out)
    assert out.getvalue() == lines
    connection.commit()
    broken = io.BytesIO(b"1\tone\nnonsense\n" + lines)
    copy = lambda: cursor.execute(f"COPY item{number} FROM STDIN", stream=broken)  # noqa: E731
    fails(DatabaseError, copy)
    connection.rollback()


def types(number):
    connection = connections[number]
    values = (
        number, 2**40 + number, decimal.Decimal("12345678901234567890.0987654321"), True,
        "ünïcödé \\ '", bytes(range(256)) * 50, datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 15, 123456), uuid.UUID(int=number + 1), None,
    )  # fmt: skip
    casts = "int8 int8 numeric bool text bytea date timestamp uuid text".split()
    query = "SELECT " + ", ".join(f"CAST(%s AS {cast})" for cast in casts)
    for _ in range(7):
        assert ask(connection, query, values) == [values]
    connection.rollback()


def changed_tables(number):
    connection = connections[number]
    connection.autocommit = True
    ask(connection, f"CREATE TABLE change{number} (a int)")
    ask(connection, f"INSERT INTO change{number} VALUES (1)")
    query = f"SELECT * FROM change{number} WHERE a < %s"
    for _ in range(3):
        assert ask(connection, query, (2,)) == [(1,)]
    ask(connection, f"ALTER TABLE change{number} ADD COLUMN b text DEFAULT 'new'")
    if HEALS or not pg8000_prepares():
        for _ in range(3):
            assert ask(connection, query, (2,)) == [(1, "new")]
    else:
        fails(DatabaseError, lambda: ask(connection, query, (2,)))
    connection.autocommit = False


def pg8000_prepares():
    """Before version 1.16 pg8000 kept statements by name, with their columns."""
    return not hasattr(pg8000, "exceptions")


def notifications(number):
    connection = new_connection()
    connection.autocommit = True
    ask(connection, f"LISTEN news{number}")
    ask(connections[number], f"NOTIFY news{number}, 'hello'")
    connections[number].commit()
    while not connection.notifications:
        ask(connection, "SELECT 1")
    assert connection.notifications[0][1:] == (f"news{number}", "hello")
    connection.close()


def console(_):
    connection = new_connection()
    assert ask(connection, "SELECT 1") == [(1,)]
    assert ask(connection, "SHOW POOLS")
    connection.commit()
    fails(DatabaseError, lambda: ask(connection, "SELECT * FROM x"))
    connection.rollback()
    connection.autocommit = True
    assert ask(connection, "SELECT version()")[0][0].startswith("PostgreSQL")
    connection.close()


def closes(number):
    connections[number].close()


if MODE == "console":
    check("the console", console, 1)
    finish()

check("connects", connect)
check("statements are prepared", prepared)
check("transactions commit and roll back", transactions)
check("executemany", many_rows)
check("COPY in and out, and broken", copies)
check("types", types)
check("a changed table", changed_tables)
check("LISTEN", notifications)
check("closes", closes)
finish()
