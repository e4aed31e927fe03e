# SPDX-License-Identifier: ISC
"""SQLAlchemy with its defaults, on psycopg 2, psycopg 3, asyncpg or pg8000: argument.

Its dialects query the server's version and standard_conforming_strings when they connect, its pool
rolls back returned connections, and its asyncpg dialect keeps statements by name.
"""

import asyncio
import os
import sys

import sqlalchemy
from sqlalchemy import (
    JSON, Column, ForeignKey, Integer, MetaData, Numeric, String, Table, func, select, text,
)  # fmt: skip
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.orm import Session, declarative_base, relationship

from check import CLIENTS, MODE, check, check_async, fails, finish

DRIVER = sys.argv[1]
# pg8000 sends one row after the other, with three messages each; the others send pages of rows.
ROWS = 250 if DRIVER == "pg8000" else 2500
Base = declarative_base()
engines = [None] * CLIENTS


class Author(Base):
    __tablename__ = "author"
    id = Column(Integer, primary_key=True)
    name = Column(String(40), unique=True)
    details = Column(JSON)
    books = relationship("Book", back_populates="author", cascade="all, delete-orphan")


class Book(Base):
    __tablename__ = "book"
    id = Column(Integer, primary_key=True)
    title = Column(String(80))
    price = Column(Numeric(10, 2))
    author_id = Column(ForeignKey("author.id"))
    author = relationship("Author", back_populates="books")


def url():
    return URL.create(
        "postgresql+" + DRIVER, os.environ["PGUSER"], os.environ["PGPASSWORD"],
        os.environ["PGHOST"], int(os.environ["PGPORT"]), os.environ["PGDATABASE"],
    )  # fmt: skip


def connect(number):
    engines[number] = sqlalchemy.create_engine(url(), pool_pre_ping=True, pool_size=2)
    with engines[number].connect() as connection:
        assert connection.execute(text("SELECT 1")).scalar() == 1


def make_tables(_):
    Base.metadata.create_all(engines[0])
    assert sqlalchemy.inspect(engines[0]).get_table_names() == ["author", "book"]


def objects(number):
    with Session(engines[number]) as session:
        for turn in range(8):
            author = Author(name=f"author {number} {turn}", details={"turn": turn})
            author.books = [Book(title=f"book {i}", price=i) for i in range(5)]
            session.add(author)
            session.commit()
            session.refresh(author)
            assert author.details == {"turn": turn} and len(author.books) == 5
            author.books[0].price = 100
            del author.books[1]
            session.commit()
            query = select(func.count(Book.id), func.sum(Book.price)).where(Book.author == author)
            assert tuple(session.execute(query).one()) == (4, 109)
        query = select(Author).where(Author.name.like(f"author {number} %")).order_by(Author.id)
        names = [author.name for author in session.execute(query).scalars()]
        assert names == [f"author {number} {turn}" for turn in range(8)]


def failures(number):
    with Session(engines[number]) as session:
        for _ in range(8):
            with session.begin():
                try:
                    with session.begin_nested():
                        session.add(Author(name=f"author {number} 0"))
                        session.flush()
                except IntegrityError:
                    pass
                query = select(func.count(Author.id)).where(Author.name == f"author {number} 0")
                assert session.execute(query).scalar() == 1
            divide = text("SELECT 1 / CAST(:zero AS int)")
            fails(DBAPIError, lambda: session.execute(divide, {"zero": 0}))
            session.rollback()


def many_rows(number):
    table = Table(f"many{number}", MetaData(), Column("id", Integer), Column("word", String))
    with engines[number].begin() as connection:
        table.create(connection)
        connection.execute(table.insert(), [{"id": i, "word": f"w{i}"} for i in range(ROWS)])
        assert connection.execute(select(func.count()).select_from(table)).scalar() == ROWS
    with engines[number].connect().execution_options(stream_results=True) as connection:
        rows = connection.execute(select(table.c.id).order_by(table.c.id))
        assert [row.id for row in rows] == list(range(ROWS))


def isolation(number):
    engine = engines[number].execution_options(isolation_level="REPEATABLE READ")
    for turn in range(4):
        with engine.begin() as connection:
            level = connection.execute(text("SHOW transaction_isolation")).scalar()
            assert level == "repeatable read"
        with engines[number].connect() as connection:
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
            assert connection.execute(select(text(f"{turn} + 1"))).scalar() == turn + 1


def closes(number):
    engines[number].dispose()


async def main_async():
    """The asynchronous dialect: the same statements."""
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    shared = [create_async_engine(url(), pool_pre_ping=True) for _ in range(CLIENTS)]

    async def make(_):
        async with shared[0].begin() as connection:
            await connection.run_sync(Base.metadata.create_all)

    async def use(number):
        async with AsyncSession(shared[number], expire_on_commit=False) as session:
            for turn in range(8):
                author = Author(name=f"author {number} {turn}", details={"turn": turn})
                author.books = [Book(title=f"book {i}", price=i) for i in range(5)]
                session.add(author)
                await session.commit()
                query = select(func.count(Book.id), func.sum(Book.price))
                query = query.where(Book.author_id == author.id)
                assert tuple((await session.execute(query)).one()) == (5, 10)
                await session.commit()
                session.add(Author(name=author.name))
                try:
                    await session.commit()
                    raise AssertionError("two of one name")
                except IntegrityError:
                    await session.rollback()

    async def change(number):
        async with shared[number].connect() as connection:
            await connection.execute(text(f"CREATE TABLE change{number} (a int)"))
            await connection.execute(text(f"INSERT INTO change{number} VALUES (1)"))
            await connection.commit()
            query = text(f"SELECT * FROM change{number}")
            assert (await connection.execute(query)).all() == [(1,)]
            await connection.commit()
            await connection.execute(text(f"ALTER TABLE change{number} ADD COLUMN b int"))
            await connection.commit()
            try:
                # In a transaction the user gets the error, once.
                await connection.execute(query)
            except DBAPIError as failure:
                assert "InvalidCachedStatementError" in str(failure)
            await connection.rollback()
            assert (await connection.execute(query)).all() == [(1, None)]
            await connection.commit()

    async def end(number):
        await shared[number].dispose()

    await check_async("makes tables", make, 1)
    await check_async("objects and failures", use)
    # Alone, as in use_asyncpg.py.
    await check_async("a changed table", change, 1)
    await check_async("closes", end)


def console(_):
    """Where the driver looks up hstore in the catalog, it is told not to."""
    options = {"use_native_hstore": False} if DRIVER.startswith("psycopg") else {}
    engine = sqlalchemy.create_engine(url(), pool_pre_ping=True, **options)
    for _ in range(3):
        with engine.connect() as connection:
            assert connection.execute(text("SHOW POOLS")).fetchall()
            fails(DBAPIError, lambda: connection.execute(text("SELECT * FROM x")))
            assert connection.execute(text("SELECT 1")).scalar() == 1
    engine.dispose()


if MODE == "console":
    check("the console", console, 1)
    finish()
if DRIVER == "asyncpg":
    asyncio.run(main_async())
else:
    check("connects", connect)
    check("makes tables and looks at them", make_tables, 1)
    check("objects are kept and found", objects)
    check("savepoints and failures", failures)
    check("many rows at once, and streamed", many_rows)
    # pg8000 sets the level for a session, the others for a transaction.
    check("levels of isolation", isolation)
    check("closes", closes)
finish()
