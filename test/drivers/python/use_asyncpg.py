# SPDX-License-Identifier: ISC
"""asyncpg with its defaults: everything is prepared by name, its pool resets sessions."""

import asyncio
import datetime
import decimal
import io
import uuid

import asyncpg

from check import CLIENTS, HAS_SESSION, MODE, check_async, finish

connections = [None] * CLIENTS


async def connect(number):
    settings = {"application_name": f"asyncpg {number}"}
    connection = connections[number] = await asyncpg.connect(server_settings=settings)
    # It asks for 'utf-8', with the quotes.
    assert connection.get_settings().client_encoding in ("UTF8", "'utf-8'")
    await connection.execute(f"CREATE TABLE item{number} (id int, name text)")
    assert await connection.fetchval("SHOW application_name") == f"asyncpg {number}"


async def settings(number):
    wanted = {
        "search_path": f"own{number}, public",
        "statement_timeout": f"{41 + number}s",
        "jit": "off",
        "TimeZone": f"Etc/GMT+{number}",
    }
    connection = await asyncpg.connect(server_settings=wanted)
    for _ in range(10):
        for name, value in wanted.items():
            assert await connection.fetchval("SELECT current_setting($1)", name) == value
    await connection.close()


async def prepared(number):
    connection = connections[number]
    statement = await connection.prepare(f"SELECT $1::int + {number}, $2::text")
    for turn in range(15):
        assert await statement.fetchrow(turn, "x") == (turn + number, "x")
        assert await connection.fetchval("SELECT $1::int * 1000 + $2::int", number, turn) == (
            number * 1000 + turn
        )
        query = f"SELECT {number}, $1::text AS word"
        assert dict(await connection.fetchrow(query, f"turn {turn}"))["word"] == f"turn {turn}"
    assert [each.type.name for each in statement.get_attributes()] == ["int4", "text"]


async def many_prepared(number):
    """More than a connection's cache keeps: it closes the least recently used statements."""
    connection = await asyncpg.connect(statement_cache_size=5)
    for turn in range(40):
        kind = turn % 12
        assert await connection.fetchval(f"SELECT $1::int + {kind}", number) == number + kind
    await connection.close()


async def transactions(number):
    connection = connections[number]
    insert = f"INSERT INTO item{number} VALUES ($1, $2)"
    for turn in range(10):
        async with connection.transaction(isolation="repeatable_read"):
            await connection.execute(insert, turn, "kept")
    for turn in range(10):
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(insert, turn, "dropped")
        await transaction.rollback()
    row = await connection.fetchrow(f"SELECT count(*), min(name) FROM item{number}")
    assert row == (10, "kept")


async def fails(kind, awaitable):
    """The exception of this kind that it raises."""
    try:
        await awaitable
    except kind as failure:
        return failure
    raise AssertionError(f"no {kind} was raised")


async def errors_roll_back(number):
    connection = connections[number]
    for turn in range(8):
        async with connection.transaction():
            try:
                async with connection.transaction():
                    await connection.fetchval("SELECT 1 / $1::int", 0)
            except asyncpg.DivisionByZeroError:
                pass
            assert await connection.fetchval("SELECT $1::int", turn) == turn
        await fails(asyncpg.UndefinedTableError, connection.fetch("SELECT * FROM nowhere"))
        await fails(asyncpg.DivisionByZeroError, connection.fetchval("SELECT 1 / $1::int", 0))
        assert not connection.is_in_transaction()


async def many_rows(number):
    connection = connections[number]
    insert = f"INSERT INTO item{number} VALUES ($1, $2)"
    await connection.executemany(insert, [(i, f"many {i}") for i in range(100, 2000)])
    count = f"SELECT count(*) FROM item{number} WHERE id BETWEEN 100 AND 1999"
    assert await connection.fetchval(count) == 1900
    rows = [(i, f"bad {i}") for i in range(2000, 2100)] + [(2**31 - 1, "a\0b")]
    await fails(asyncpg.CharacterNotInRepertoireError, connection.executemany(insert, rows))
    assert await connection.fetchval(count) == 1900
    many = "CREATE TEMP TABLE short (a int) ON COMMIT DROP; INSERT INTO short VALUES (1); SELECT 2"
    assert await connection.execute(many) == "SELECT 1"


async def copies(number):
    connection = connections[number]
    table = f"item{number}"
    records = [(i, f"copied {i}") for i in range(5000, 7000)]
    assert await connection.copy_records_to_table(table, records=records) == "COPY 2000"
    out = io.BytesIO()
    query = f"SELECT id FROM {table} WHERE id >= $1 ORDER BY id"
    assert await connection.copy_from_query(query, 5000, output=out) == "COPY 2000"
    assert [int(line) for line in out.getvalue().split()] == list(range(5000, 7000))
    text = io.BytesIO(b"8000\tone\n8001\ttwo\n")
    assert await connection.copy_to_table(table, source=text) == "COPY 2"
    text = io.BytesIO(b"8000\tone\nnonsense\n" + b"8001\ttwo\n" * 10000)
    copying = connection.copy_to_table(table, source=text)
    await fails(asyncpg.InvalidTextRepresentationError, copying)

    async def breaks():
        yield b"8002\tthree\n"
        raise KeyError("of ours")

    await fails(KeyError, connection.copy_to_table(table, source=breaks()))
    assert await connection.fetchval(f"SELECT count(*) FROM {table} WHERE id >= 8000") == 2


async def types(number):
    """Everything is sent in binary."""
    connection = connections[number]
    values = (
        number, 2**40 + number, decimal.Decimal("12345678901234567890.0987654321"), 1.5e-300,
        True, "ünïcödé \\ '", bytes(range(256)) * 50, datetime.date(2024, 2, 29),
        datetime.datetime(2024, 2, 29, 12, 30, 15, 123456), uuid.UUID(int=number + 1),
        [1, 2, number], None, datetime.timedelta(days=1, seconds=2),
    )  # fmt: skip
    casts = "int8 int8 numeric float8 bool text bytea date timestamp uuid int8[] text interval"
    query = "SELECT " + ", ".join(f"${i}::{cast}" for i, cast in enumerate(casts.split(), 1))
    for _ in range(7):
        assert tuple(await connection.fetchrow(query, *values)) == values
    # asyncpg looks up the database's own types with a query, in the middle.
    await connection.execute(f"CREATE TYPE colour{number} AS ENUM ('red', 'green')")
    await connection.execute(f"CREATE TYPE pair{number} AS (a int, b colour{number})")
    row = await connection.fetchval(f"SELECT ROW($1::int, 'red')::pair{number}", number)
    assert tuple(row) == (number, "red")


async def cursors(number):
    connection = connections[number]
    async with connection.transaction():
        query = "SELECT i + $1 FROM generate_series(1, 100) AS i"
        seen = [row[0] async for row in connection.cursor(query, number, prefetch=7)]
        assert seen == [i + number for i in range(1, 101)]
        cursor = await connection.cursor("SELECT generate_series(1, 50)")
        assert len(await cursor.fetch(10)) == 10
        assert await cursor.forward(10) == 10
        assert (await cursor.fetchrow())[0] == 21


async def cancels(number):
    """A time limit, and a cancelled task: asyncpg sends a cancel request."""
    connection = connections[number]
    for _ in range(2):
        sleep = connection.fetch("SELECT pg_sleep(60)", timeout=0.5)
        await fails(asyncio.TimeoutError, sleep)
        assert await connection.fetchval("SELECT $1::int", number) == number
        task = asyncio.create_task(connection.fetch("SELECT pg_sleep(60), 1"))
        await asyncio.wait([task], timeout=0.5)
        task.cancel()
        await fails(asyncio.CancelledError, task)
        assert await connection.fetchval("SELECT $1::int", number) == number


async def changed_tables(number):
    connection = connections[number]
    await connection.execute(f"CREATE TABLE change{number} (a int)")
    await connection.execute(f"INSERT INTO change{number} VALUES (1)")
    query = f"SELECT * FROM change{number} WHERE a < $1"
    for _ in range(3):
        assert tuple(await connection.fetchrow(query, 2)) == (1,)
    await connection.execute(f"ALTER TABLE change{number} ADD COLUMN b text DEFAULT 'new'")
    for _ in range(3):
        assert tuple(await connection.fetchrow(query, 2)) == (1, "new")
    # Types created anew: the descriptions that asyncpg keeps are wrong, and it has to notice.
    await connection.execute(f"ALTER TABLE change{number} ALTER COLUMN a TYPE text")
    query = f"SELECT a FROM change{number}"
    assert await connection.fetchval(query) == "1"
    # In a transaction the user gets the error, and the next transaction succeeds.
    await connection.execute(f"ALTER TABLE change{number} ALTER COLUMN a TYPE varchar(7)")
    try:
        async with connection.transaction():
            assert await connection.fetchval(query) == "1"
    except asyncpg.FeatureNotSupportedError:
        pass
    async with connection.transaction():
        assert await connection.fetchval(query) == "1"


async def pools(number):
    """asyncpg's pool sends its reset query between two users, in one message."""
    settings = {"search_path": f"own{number}"}
    async with asyncpg.create_pool(min_size=1, max_size=2, server_settings=settings) as pool:
        for turn in range(6):
            async with pool.acquire() as connection:
                assert await connection.fetchval("SELECT $1::int + 1", turn) == turn + 1
                # Followed, and restored after the pool's RESET ALL, on the next server.
                path = await connection.fetchval("SHOW search_path")
                assert HAS_SESSION or path == f"own{number}"
        results = await asyncio.gather(
            *(pool.fetchval("SELECT $1::int", i + number) for i in range(10))
        )
        assert results == [i + number for i in range(10)]
        async with pool.acquire() as connection:
            await connection.reset()
            await connection.reload_schema_state()
            assert await connection.fetchval("SELECT $1::int + 1", number) == number + 1


async def notifications(number):
    connection = await asyncpg.connect()
    heard = asyncio.get_running_loop().create_future()

    def hear(_, __, channel, payload):
        heard.set_result((channel, payload))

    await connection.add_listener(f"news{number}", hear)
    await connections[number].execute("SELECT pg_notify($1, $2)", f"news{number}", "hello")
    assert await asyncio.wait_for(heard, 20) == (f"news{number}", "hello")
    await connection.remove_listener(f"news{number}", hear)
    await connection.execute("CREATE TEMP TABLE own (a int)")
    assert await connection.fetch("SELECT a FROM own") == []
    await connection.close()


async def closes(number):
    await connections[number].close()


async def console(_):
    async with asyncpg.create_pool(min_size=1, max_size=2) as pool:
        for _ in range(3):  # the pool resets a connection that is given back
            async with pool.acquire() as connection:
                assert await connection.fetchval("SELECT 1") == 1
                assert await connection.fetchval("SELECT current_user") == "admin"
                assert await connection.fetchval("SELECT pg_is_in_recovery()") is False
                assert await connection.fetch("SHOW POOLS")
                async with connection.transaction(isolation="serializable", readonly=True):
                    assert await connection.fetch("SHOW DATABASES")
                try:
                    await connection.fetch("SELECT * FROM x")
                except asyncpg.PostgresError as failure:
                    assert failure.sqlstate == "08P01"


async def main():
    if MODE == "console":
        await check_async("the console", console, 1)
        finish()
    await check_async("connects", connect)
    await check_async("startup parameters stay the client's own", settings)
    await check_async("statements are prepared by name", prepared)
    await check_async("statements are closed past the cache's size", many_prepared)
    await check_async("transactions commit and roll back", transactions)
    await check_async("errors end their transaction only", errors_roll_back)
    await check_async("executemany, broken in the middle", many_rows)
    await check_async("COPY in and out, in binary, broken and given up", copies)
    await check_async("types in binary", types)
    await check_async("cursors with row limits", cursors)
    await check_async("time limits and cancels", cancels)
    # Alone: a client that remembers columns is not notified of a change by a server that never had
    # the plan.
    await check_async("a changed table", changed_tables, 1)
    await check_async("pools and their resets", pools)
    await check_async("LISTEN and temporary tables", notifications)
    await check_async("closes", closes)
    finish()


asyncio.run(main())
