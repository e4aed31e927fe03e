# SPDX-License-Identifier: ISC
"""The conversations of test_differential: every part of the protocol after the login."""

import random
import struct

from support import wire
from support.differential.conversations import Conversation, Turn

INT4ABS, INT4DIV = 1251, 154  # functions of pg_proc
INT4, TEXT, BYTEA = 23, 25, 17

scripts = {}


def turn(*parts, until="Z", notify=None):
    """A turn: these messages, and the types that end their answers."""
    return Turn(b"".join(parts), until, notify)


def ask(*queries):
    """A turn for each simple query."""
    return [turn(wire.query(sql)) for sql in queries]


def script(name, *turns, **facts):
    """Add a conversation; a turn may be a list of them."""
    flat = []
    for each in turns:
        flat += each if isinstance(each, list) else [each]
    assert name not in scripts, name
    scripts[name] = Conversation(tuple(flat), **facts)


def batch(sql, values=(), **formats):
    """Parse, Bind, Describe, Execute, Sync."""
    return wire.parse(sql) + wire.bind(values, **formats) + wire.describe() + wire.execute() + wire.sync()


def in_transaction(*turns):
    """Between BEGIN and ROLLBACK."""
    return [*ask("BEGIN"), *turns, *ask("ROLLBACK")]


# --- simple queries ---------------------------------------------------------------------------

script(
    "simple queries",
    ask("SELECT 1", "SELECT 1 AS a, NULL AS b, 'ä€😀' AS c, 1.5, true, now() IS NULL"),
    ask("SELECT * FROM generate_series(1, 50)", "SELECT WHERE false", "SELECT"),
    ask("SHOW server_encoding", "EXPLAIN (COSTS OFF) SELECT 1", "VALUES (1, 'x'), (2, 'y')"),
)
script("empty queries", ask("", ";", " ; ; ", "-- nothing", "/* nothing */"))
script(
    "several statements",
    ask(
        "SELECT 1; SELECT 2; SELECT 3",
        "SELECT 1;; ;SELECT 2;",
        "BEGIN; SELECT 1; COMMIT; SELECT 2",
        "SELECT 1; BEGIN; SELECT 2; COMMIT; SELECT 3",
        "SELECT 1; ROLLBACK; SELECT 2",
    ),
)
script(
    "errors",
    ask("SELECT 1/0", "SELEC", "SELECT * FROM nowhere", "SELECT 'x'::int", "SELECT nothing()"),
    ask("SELECT 1; SELECT 1/0; SELECT 2", "SELECT 'again'"),
    ask("DO $$ BEGIN RAISE EXCEPTION 'own' USING DETAIL = 'd', HINT = 'h', ERRCODE = 'U0001',"
        " COLUMN = 'c', CONSTRAINT = 'n', DATATYPE = 't', TABLE = 'r', SCHEMA = 's'; END $$"),
)
script("an error behind rows", ask("SELECT 1 / (50 - i) FROM generate_series(1, 100) i", "SELECT 1"))
script(
    "transactions",
    ask("BEGIN", "SELECT 1", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK"),
    ask("BEGIN", "SELECT 1/0", "SELECT 1", "COMMIT", "SELECT 1"),
    ask("BEGIN", "SAVEPOINT a", "SELECT 1/0", "ROLLBACK TO a", "SELECT 1", "ROLLBACK"),
    ask("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY", "INSERT INTO talked VALUES (1)", "ROLLBACK"),
    ask("BEGIN; SELECT 1/0", "SELECT 1", "ROLLBACK AND CHAIN", "ROLLBACK"),
)
script(
    "notices",
    ask("DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; RAISE INFO 'three'; END $$"),
    ask("DROP TABLE IF EXISTS nowhere", "COMMIT", "DROP TABLE IF EXISTS nowhere; SELECT 1"),
    ask("SELECT set_config('my.own', 'x', true) FROM generate_series(1, 3)"),
    ask("DO $$ BEGIN FOR i IN 1..300 LOOP RAISE NOTICE '% %', i, repeat('n', i); END LOOP; END $$"),
)
script(
    "parameters that are reported",
    ask("SET application_name = 'new'", "SET TimeZone = 'europe/berlin'", "SET DateStyle = german"),
    ask("SELECT '2020-01-31'::date", "BEGIN", "SET LOCAL TimeZone = 'UTC'", "COMMIT"),
    ask("BEGIN; SET IntervalStyle = 'iso_8601'", "SELECT '1 day'::interval", "ROLLBACK"),
    ask("SET client_encoding = 'latin1'", "SELECT 'a'", "SET standard_conforming_strings = off"),
    ask("SET nothing = 1", "SET TimeZone = 'Moon/Crater'", "RESET application_name"),
    ask("SET application_name = 'a'; SET application_name = 'b'; SELECT 1"),
)
# The order of several reports depends on what the server has reported before.
script(
    "all parameters reset",
    ask("SET application_name = 'x'", "SET TimeZone = 'PST8PDT'", "RESET ALL"),
    again=False,
)
script(
    "parameters reported in a batch",
    turn(batch("SET application_name = 'x'"), batch("SHOW application_name"), until="ZZ"),
    turn(batch("SELECT set_config('TimeZone', 'PST8PDT', false)"), batch("RESET TimeZone"), until="ZZ"),
)
script("many rows", ask("SELECT i, repeat('x', i % 300) FROM generate_series(1, 6000) i"))
script("large rows", ask("SELECT repeat('x', 3000000), repeat('y', 100)", "SELECT repeat('z', 65536)"))
script("a large query", ask("SELECT length('" + "q" * 2_000_000 + "')", "SELECT 1"))
script("simple queries in one write", turn(*[wire.query(f"SELECT {i}") for i in range(50)], until="Z" * 50))
script(
    "a timeout",
    in_transaction(*ask("SET LOCAL statement_timeout = 20", "SELECT pg_sleep(10)", "SELECT 1")),
)
script(
    "statements and cursors of SQL",
    ask("PREPARE one AS SELECT $1::int + 1", "EXECUTE one(1)", "EXECUTE one('x')", "EXECUTE two"),
    ask("DEALLOCATE one", "DEALLOCATE one", "DEALLOCATE ALL", "PREPARE one AS SELECT 2", "DISCARD ALL"),
    ask("BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT generate_series(1, 5)", "COMMIT"),
    ask("FETCH 2 FROM c", "MOVE 1 IN c", "FETCH ALL FROM c", "CLOSE c", "FETCH 1 FROM c"),
    ask("CREATE TEMP TABLE own (n int)", "SELECT count(*) FROM own", "DISCARD TEMP"),
    anywhere=False,
)

# --- the extended protocol --------------------------------------------------------------------

script(
    "one batch",
    turn(batch("SELECT $1::int + $2::int", [3, 4])),
    turn(
        wire.parse("SELECT $1::int, $2, $3::bytea", types=(0, TEXT, BYTEA)),
        wire.describe("S"),
        wire.bind([5, None, b"\\x00ff"], result_formats=[1]),
        wire.describe(),
        wire.execute(),
        wire.sync(),
    ),
)
script(
    "descriptions",
    turn(wire.parse("SELECT $1 || 'x', $2::int4[], now() - $3"), wire.describe("S"), wire.sync()),
    turn(wire.parse("INSERT INTO talked VALUES ($1, $2)"), wire.describe("S"), wire.bind([1, "a"]),
        wire.describe(), wire.sync()),
    turn(wire.parse("INSERT INTO talked VALUES ($1) RETURNING *"), wire.describe("S"), wire.sync()),
    turn(wire.parse("SHOW TimeZone"), wire.describe("S"), wire.bind(), wire.describe(), wire.execute(),
        wire.sync()),
    turn(wire.parse("EXPLAIN SELECT 1"), wire.describe("S"), wire.sync()),
    turn(wire.parse("BEGIN"), wire.describe("S"), wire.bind(), wire.describe(), wire.sync()),
    turn(wire.parse("COPY talked TO STDOUT"), wire.describe("S"), wire.sync()),
    turn(wire.parse(""), wire.describe("S"), wire.bind(), wire.describe(), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT FROM talked"), wire.describe("S"), wire.sync()),
    turn(wire.describe("P"), wire.sync()),
)
script(
    "named statements",
    turn(wire.parse("SELECT $1::text", "one"), wire.describe("S", "one"), wire.sync()),
    turn(wire.bind(["a"], "one"), wire.execute(), wire.bind(["b"], "one"), wire.execute(), wire.sync()),
    turn(wire.bind(["c"], "one"), wire.describe(), wire.execute(), wire.flush(), until="C"),
    turn(wire.close("S", "one"), wire.flush(), until="3"),
    turn(wire.sync()),
    turn(wire.bind(["d"], "one"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 3", "one"), wire.bind((), "one"), wire.execute(), wire.sync()),
    turn(wire.close("S", "one"), wire.parse("SELECT 4", "one"), wire.bind((), "one"), wire.execute(),
        wire.sync()),
    turn(wire.parse("SELECT 5", "n" * 5000), wire.bind((), "n" * 5000), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT $1", "typed", (INT4,)), wire.describe("S", "typed"), wire.sync()),
    turn(wire.parse("", "empty"), wire.describe("S", "empty"), wire.bind((), "empty"), wire.execute(),
        wire.sync()),
    ask("DEALLOCATE ALL"),
    turn(wire.bind((), "one"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 6", "one"), wire.sync()),
    ask("DISCARD ALL"),
    turn(wire.describe("S", "one"), wire.sync()),
)
script(
    "named statements in transactions",
    turn(wire.parse("SELECT $1::int", "one"), wire.parse("SELECT 1 / $1::int", "two"), wire.sync()),
    in_transaction(
        turn(wire.bind([1], "one"), wire.execute(), wire.sync()),
        turn(wire.bind([0], "two"), wire.execute(), wire.sync()),
        turn(wire.bind([2], "one"), wire.execute(), wire.sync()),
    ),
    turn(wire.bind([3], "one"), wire.execute(), wire.sync()),
    in_transaction(turn(wire.bind((), "nothing"), wire.execute(), wire.sync()), *ask("SELECT 1")),
    turn(wire.parse("SELECT 'rolled back'", "three"), wire.sync()),
)
script(
    "named statements in pipelines",
    turn(*[
        wire.parse(f"SELECT {i}, $1::text", f"s{i}") + wire.bind(["x"], f"s{i}") + wire.describe()
        + wire.execute() for i in range(300)
    ], wire.sync()),
    turn(*[
        wire.bind(["y"], f"s{i * 7 % 300}") + wire.execute() + wire.sync() for i in range(300)
    ], until="Z" * 300),
    turn(*[
        wire.bind(["z"], f"s{i}") + wire.execute() + wire.bind(["n"], "s0" if i % 50 else "nothing")
        + wire.sync() for i in range(300)
    ], until="Z" * 300),
    turn(*[wire.close("S", f"s{i}") for i in range(300)], wire.sync()),
)
script(
    "errors of named statements",
    turn(wire.parse("SELEC", "bad"), wire.bind((), "bad"), wire.execute(), wire.sync()),
    turn(wire.bind((), "bad"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 6", "bad"), wire.bind((), "bad"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT $1::int", "one"), wire.bind(["x"], "one"), wire.execute(), wire.sync()),
    turn(wire.bind([1], "one"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 1/0", "two"), wire.bind((), "two"), wire.execute(), wire.parse("SELECT 3", "three"),
        wire.sync()),
    turn(wire.bind((), "three"), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 3", "three"), wire.bind((), "three"), wire.execute(), wire.sync()),
)
# A pooler closes a client that uses a name twice, as PgBouncer does.
script(
    "a name taken twice",
    turn(wire.parse("SELECT 1", "one"), wire.parse("SELECT 2", "one"), wire.sync()),
    turn(wire.bind((), "one"), wire.execute(), wire.sync()),
    anywhere=False,
)
script(
    "the unnamed statement outlives its batch",
    turn(wire.parse("SELECT 'mine'"), wire.sync()),
    turn(wire.describe("S"), wire.sync()),
    turn(wire.bind(), wire.describe(), wire.execute(), wire.sync()),
    turn(wire.bind(), wire.execute(), wire.sync()),
    ask("SELECT 'spoils it'"),
    turn(wire.bind(), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 'anew'"), wire.sync(), wire.bind(), wire.execute(), wire.sync(), until="ZZ"),
    turn(wire.parse("SELEC"), wire.sync()),
    turn(wire.bind(), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 'last'"), wire.sync()),
    turn(wire.close("S", ""), wire.sync()),
    turn(wire.bind(), wire.execute(), wire.sync()),
)
script(
    "unknown names",
    turn(wire.bind((), "nothing"), wire.execute(), wire.sync()),
    turn(wire.describe("S", "nothing"), wire.sync()),
    turn(wire.describe("P", "nothing"), wire.sync()),
    turn(wire.execute("nothing"), wire.sync()),
    turn(wire.close("S", "nothing"), wire.close("P", "nothing"), wire.close("P", ""), wire.sync()),
    turn(wire.bind((), "nothing"), wire.flush(), until="E"),
    turn(wire.execute(), wire.sync()),
    turn(batch("SELECT 1"), wire.bind((), "nothing"), wire.extended("SELECT 2"), wire.sync(), batch("SELECT 3"),
        until="ZZZ"),
)
script(
    "unknown portals",
    turn(wire.describe("P", "nothing"), wire.sync()),
    turn(wire.execute("nothing"), wire.sync()),
    turn(wire.close("P", "nothing"), wire.close("P", ""), wire.sync()),
    turn(wire.execute(), wire.sync()),
)
script(
    "portals with row limits",
    in_transaction(
        turn(wire.parse("SELECT generate_series(1, 7)"), wire.bind(portal="p"), wire.execute("p", 2),
            wire.sync()),
        turn(wire.execute("p", 2), wire.execute("p", 1), wire.sync()),
        turn(wire.describe("P", "p"), wire.execute("p", 0), wire.execute("p", 1), wire.sync()),
        turn(wire.close("P", "p"), wire.execute("p"), wire.sync()),
    ),
    turn(wire.parse("SELECT generate_series(1, 7)"), wire.bind(), wire.execute("", 3), wire.execute("", 3),
        wire.execute("", 3), wire.sync()),
    # A portal ends with its transaction.
    turn(wire.execute("", 1), wire.sync()),
)
script(
    "rows of an update in parts",
    in_transaction(
        turn(wire.parse("INSERT INTO talked SELECT i FROM generate_series(1, 5) i RETURNING number"),
            wire.bind(portal="p"), wire.execute("p", 2), wire.sync()),
        turn(wire.execute("p", 2), wire.sync()),
        turn(wire.execute("p", 2), wire.execute("p", 2), wire.sync()),
    ),
)
script(
    "several portals at once",
    in_transaction(
        turn(wire.parse("SELECT generate_series($1::int, 100)"), wire.bind([1], portal="a"),
            wire.bind([50], portal="b"), wire.execute("a", 2), wire.execute("b", 2), wire.sync()),
        turn(wire.execute("b", 1), wire.execute("a", 1), wire.close("P", "a"), wire.execute("b", 1),
            wire.sync()),
        turn(wire.bind([70], portal="b"), wire.sync()),
    ),
)
script(
    "flushes",
    turn(wire.parse("SELECT 1"), wire.flush(), until="1"),
    turn(wire.bind(), wire.flush(), until="2"),
    turn(wire.describe(), wire.flush(), wire.flush(), until="T"),
    turn(wire.execute(), wire.flush(), until="C"),
    turn(wire.flush(), until=""),
    turn(wire.sync()),
    turn(wire.parse("SELEC"), wire.flush(), until="E"),
    turn(wire.parse("SELECT 1"), wire.flush(), wire.query("SELECT 2"), wire.bind(), wire.flush(), wire.sync()),
    turn(wire.flush(), wire.flush(), wire.sync()),
    turn(wire.close("P", "nothing"), wire.flush(), until="3"),
    turn(wire.sync()),
)
script(
    "errors of a batch",
    turn(batch("SELEC"), batch("SELECT 2"), until="ZZ"),
    turn(wire.extended("SELECT 1"), wire.extended("SELECT 1/0"), wire.extended("SELECT 3"), wire.sync()),
    turn(wire.parse("SELECT $1::int"), wire.bind(["x"]), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT $1::int"), wire.bind(), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT $1::int"), wire.bind([1, 2]), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 1; SELECT 2"), wire.sync()),
    turn(wire.parse("SELECT $1", types=(999999,)), wire.sync()),
    turn(wire.parse("SELECT 1"), wire.bind(result_formats=[7]), wire.describe(), wire.execute(), wire.sync()),
    turn(wire.parse("SELECT 1"), wire.bind(result_formats=[0, 0, 0]), wire.execute(), wire.sync()),
    turn(wire.execute(), wire.query("SELECT 'skipped'"), wire.sync()),
    turn(batch("SELECT 'goes on'")),
)
# A pooler that tracks statements has to parse these, and closes a client that sends them broken.
script(
    "malformed requests",
    turn(wire.message("P", b"no end"), wire.sync()),
    turn(wire.message("P"), wire.sync()),
    turn(wire.message("B", b"\0\0\0\x05\0"), wire.sync()),
    turn(wire.message("B"), wire.sync()),
    turn(wire.message("D"), wire.sync()),
    turn(wire.message("D", b"X\0"), wire.sync()),
    turn(wire.message("C", b"X\0"), wire.sync()),
    ask("SELECT 'goes on'"),
    anywhere=False,
)
script(
    "malformed bodies",
    turn(wire.message("E"), wire.sync()),
    turn(wire.message("E", b"\0\0\0\0\0more"), wire.sync()),
    turn(wire.message("F", b"\xff" * 30)),
    turn(wire.message("F")),
    turn(wire.message("Q", b"SELECT 1")),
    turn(wire.message("Q")),
    turn(wire.message("Q", b"SELECT 1\0SELECT 2\0")),
    ask("SELECT 'goes on'"),
)
script(
    "transactions in batches",
    turn(*[wire.extended(sql) for sql in ("BEGIN", "SELECT 1", "COMMIT")], wire.sync()),
    turn(batch("BEGIN"), batch("SELECT 1/0"), batch("SELECT 1"), batch("ROLLBACK"), until="ZZZZ"),
    turn(*[wire.extended(sql) for sql in ("BEGIN", "SELECT 1/0", "ROLLBACK")], wire.sync()),
    ask("ROLLBACK"),
    turn(*[wire.extended(sql) for sql in ("SELECT 1", "BEGIN", "SELECT 2")], wire.sync()),
    turn(wire.query("COMMIT"), batch("SELECT 3"), wire.query("SELECT 4"), until="ZZZ"),
)
# Newer servers report a transaction block between the query and the Sync.
script(
    "a query inside of a batch",
    turn(wire.extended("SELECT 1"), wire.query("SELECT 2"), wire.extended("SELECT 3"), wire.sync(),
        until="ZZ"),
    turn(wire.extended("SELECT 1"), wire.function_call(INT4ABS, [-3]), wire.extended("SELECT 3"), wire.sync(),
        until="ZZ"),
    turn(wire.parse("SELECT 1"), wire.query("SELECT 1/0"), wire.bind(), wire.execute(), wire.sync(),
        until="ZZ"),
    single=False,
)
script(
    "an error at the end of a batch",
    # The commit checks the constraint: the error belongs to the Sync.
    turn(wire.extended("INSERT INTO talked_once VALUES (1), (1)"), wire.sync()),
    turn(wire.extended("INSERT INTO talked_once VALUES (1), (1)"), wire.sync(), batch("SELECT 1"), until="ZZ"),
    ask("INSERT INTO talked_once VALUES (2), (2)", "BEGIN", "INSERT INTO talked_once VALUES (3), (3)"),
    ask("COMMIT", "SELECT 1"),
    turn(batch("BEGIN"), batch("INSERT INTO talked_once VALUES (4), (4)"), batch("COMMIT"), batch("SELECT 1"),
        until="ZZZZ"),
    again=False,
)
script(
    "large parameters",
    turn(batch("SELECT length($1), $2::text", ["l" * 1_500_000, "m" * 5000])),
    turn(wire.parse("SELECT $1::bytea", types=(BYTEA,)), wire.message(
        "B", b"\0\0" + struct.pack("!HHHi", 1, 1, 1, 70000) + b"\0\xff" * 35000 + struct.pack("!HH", 1, 1)
    ), wire.execute(), wire.sync()),
)
script("a wide row", turn(batch("SELECT " + ", ".join(f"$1::int + {i} AS c{i}" for i in range(400)), [1])))

# --- pipelines --------------------------------------------------------------------------------


def pipeline(seed, count):
    """Batches of several requests, some of which fail, between them simple queries and Syncs."""
    random_ = random.Random(seed)
    parts, ends = [], 0
    for number in range(count):
        kind = random_.randrange(10)
        if kind < 5:
            parts.append(wire.extended(f"SELECT {number}, $1::text", ["v" * random_.randrange(60)]))
        elif kind == 5:
            parts.append(wire.extended("SELECT 1 / $1::int", [0]))
        elif kind == 6:
            parts.append(wire.parse("SELECT $1"))
        elif kind == 7:
            parts.append(wire.execute("missing"))
        elif kind == 8:
            parts.append(wire.sync() + wire.query(f"SELECT {number}"))
            ends += 2
        else:
            parts.append(wire.sync() + wire.query("SELECT 1/0") + wire.sync() * random_.randrange(3))
            ends += 2 + parts[-1].count(wire.sync()) - 1
        if random_.randrange(4) == 0:
            parts.append(wire.sync())
            ends += 1
        if random_.randrange(6) == 0:
            parts.append(wire.flush())
    parts.append(wire.sync())
    return turn(*parts, until="Z" * (ends + 1))


script("a short pipeline", pipeline(1, 40), pipeline(2, 40), pipeline(3, 40))
script("a long pipeline", pipeline(4, 4000))
script("a pipeline without an end", turn(*[wire.extended("SELECT 1")] * 4000, wire.sync()))
# More than may be outstanding at a time.
script("a pipeline longer than any memory of it", turn(
    wire.parse("SELECT 1"), *[wire.bind() + wire.execute()] * 10_000, wire.sync(),
    wire.close("P", "x") * 70_000, wire.sync(), until="ZZ",
), again=False)
script(
    "a pipeline with an error in its middle",
    turn(*[wire.extended("SELECT 1")] * 2000, wire.extended("SELECT 1/0"), *[wire.extended("SELECT 2")] * 9000,
        wire.sync(), batch("SELECT 'on'"), until="ZZ"),
)
script("a storm of syncs", turn(wire.sync() * 20000, until="Z" * 20000))
script("a storm of empty queries", turn(wire.query("") * 10000, until="Z" * 10000))
script("a storm of closes", turn(wire.close("P", "x") * 20000, wire.sync()))
script("a transaction in a pipeline", turn(
    batch("BEGIN"), *[batch("SELECT $1::int", [i]) for i in range(300)], batch("COMMIT"), batch("SELECT 1"),
    until="Z" * 303,
))

# --- function calls ---------------------------------------------------------------------------

script(
    "function calls",
    turn(wire.function_call(INT4ABS, [-42])),
    turn(wire.function_call(INT4DIV, [1, 0])),
    turn(wire.function_call(INT4ABS, [])),
    turn(wire.function_call(999999, [])),
    turn(wire.function_call(INT4ABS, ["x"])),
    in_transaction(turn(wire.function_call(INT4DIV, [1, 0])), turn(wire.function_call(INT4ABS, [1]))),
    turn(wire.function_call(INT4ABS, [-1]) * 200, until="Z" * 200),
)

# --- notifications ----------------------------------------------------------------------------

script(
    "notifications to oneself",
    ask("LISTEN news", "NOTIFY news", "NOTIFY news, 'with words'", "SELECT pg_notify('other', 'x')"),
    ask("BEGIN", "NOTIFY news, 'a'", "NOTIFY news, 'a'", "NOTIFY news, 'b'", "COMMIT"),
    ask("BEGIN", "NOTIFY news, 'never'", "ROLLBACK"),
    turn(batch("NOTIFY news, 'in a batch'")),
    ask("UNLISTEN *", "NOTIFY news"),
    anywhere=False,
    again=False,
)
script(
    "notifications of another client",
    ask("LISTEN news"),
    turn(until="A", notify="NOTIFY news, 'while idle'"),
    turn(until="AAA", notify="NOTIFY news, 'one'; NOTIFY news, 'two'; NOTIFY news, 'three'"),
    ask("BEGIN"),
    turn(until="", notify="NOTIFY news, 'while in a transaction'"),
    turn(wire.query("SELECT 1"), until="Z"),
    turn(wire.query("COMMIT"), until="AZ"),
    ask("UNLISTEN news", "SELECT 1"),
    anywhere=False,
    again=False,
)

# --- COPY -------------------------------------------------------------------------------------

COPY = "COPY talked FROM STDIN"
ROW, BAD = wire.copy_data(b"1\tone\n"), wire.copy_data(b"bad\tx\n")
BINARY = b"PGCOPY\n\xff\r\n\0" + struct.pack("!II", 0, 0)
TUPLE = struct.pack("!HiIi", 2, 4, 7, 3) + b"abc"
SEEN = "SELECT count(*), min(word), max(number) FROM talked"


def copy(sql=COPY):
    """Parse, Bind, Describe, Execute of a COPY."""
    return wire.extended(sql)


def begun(data, until="G"):
    """A turn in which a COPY begins."""
    return turn(data, until=until)


script(
    "copy in",
    in_transaction(
        begun(wire.query(COPY)), turn(ROW * 3, until=""), turn(wire.copy_done()),
        begun(wire.query(COPY)), turn(wire.copy_done()),
        begun(wire.query(COPY)), turn(wire.copy_data(b""), wire.copy_data(b"2\tt"), wire.copy_data(b"wo\n3\t"),
                                     wire.copy_data(b"\\N\n"), wire.copy_done()),
        begun(wire.query("COPY talked FROM STDIN (FORMAT csv, HEADER)")),
        turn(wire.copy_data(b"number,word\n5,\"a,b\"\n"), wire.copy_done()),
        begun(wire.query("COPY talked FROM STDIN (FORMAT binary)")),
        turn(wire.copy_data(BINARY), wire.copy_data(TUPLE), wire.copy_data(b"\xff\xff"), wire.copy_done()),
        *ask(SEEN),
    ),
)
script(
    "copy in by one write",
    in_transaction(
        turn(wire.query(COPY), ROW * 3, wire.copy_done(), wire.query(SEEN), until="ZZ"),
        turn(copy(), wire.sync(), ROW, wire.copy_done(), wire.sync(), batch(SEEN), until="ZZ"),
        turn(copy(), ROW, wire.copy_done(), wire.sync(), batch(SEEN), until="ZZ"),
        turn(copy(), wire.flush(), ROW, wire.flush(), wire.copy_done(), wire.flush(), wire.sync(), batch(SEEN),
            until="ZZ"),
        turn(copy(), ROW, wire.sync(), ROW, wire.sync(), wire.copy_done(), wire.sync(), wire.sync(),
            until="ZZ"),
        turn(copy(), wire.sync(), ROW, wire.copy_done(), copy(), wire.sync(), ROW * 2, wire.copy_done(),
            wire.sync()),
        *ask(SEEN),
    ),
)
script(
    "copy in by the extended protocol",
    in_transaction(
        begun(copy() + wire.flush()), turn(ROW, wire.copy_done(), wire.sync()),
        # As drivers do: a Sync with the Execute, one behind the CopyDone, one for the batch.
        begun(copy() + wire.sync()), turn(ROW, wire.copy_done(), wire.sync(), wire.sync(), until="ZZ"),
        begun(copy() + wire.flush()), turn(ROW, wire.copy_done(), wire.flush(), until="C"), turn(wire.sync()),
        begun(copy() + wire.sync()), turn(ROW, wire.copy_done(), wire.extended("SELECT 1"), wire.sync()),
        *ask(SEEN),
    ),
)
script(
    "several copies in one query",
    in_transaction(
        begun(wire.query(f"{COPY}; SELECT 1; {COPY}; SELECT 2")),
        turn(ROW, wire.copy_done(), until="G"), turn(ROW, wire.copy_done()),
        turn(wire.query(f"{COPY}; {COPY}"), ROW, wire.copy_done(), ROW, wire.copy_done()),
        turn(wire.query("COPY (SELECT 1) TO STDOUT; COPY (SELECT 2) TO STDOUT")),
        begun(wire.query(f"COPY (SELECT 1) TO STDOUT; {COPY}")), turn(ROW, wire.copy_done()),
        *ask(SEEN),
    ),
    begun(wire.query(f"BEGIN; {COPY}; ROLLBACK")), turn(ROW, wire.copy_done()),
)
script(
    "copy fail",
    begun(wire.query(COPY)), turn(ROW, wire.copy_fail("changed my mind")),
    begun(wire.query(COPY)), turn(wire.copy_fail(""), wire.query("SELECT 1"), until="ZZ"),
    begun(copy() + wire.sync()), turn(ROW, wire.copy_fail(), wire.sync()),
    begun(copy() + wire.flush()), turn(wire.copy_fail(), wire.flush(), until="E"), turn(wire.sync()),
    turn(wire.query(COPY), ROW, wire.copy_fail(), wire.query("SELECT 2"), until="ZZ"),
    begun(wire.query(f"{COPY}; SELECT 1")), turn(wire.copy_fail()),
    in_transaction(begun(wire.query(COPY)), turn(wire.copy_fail()), *ask("SELECT 1")),
    ask("SELECT 'goes on'"),
)
script(
    "errors of a copy",
    begun(wire.query(COPY)), turn(ROW * 5, BAD, ROW * 5, wire.copy_done()),
    ask("SELECT 1"),
    # The server refuses at once; the client has not received that and sends rows.
    begun(wire.query(COPY)), turn(BAD, until=""), turn(ROW * 10, until=""), turn(wire.copy_done()),
    ask("SELECT 2"),
    begun(wire.query(COPY)), turn(BAD), turn(ROW * 10, until=""), turn(wire.copy_done(), until=""),
    ask("SELECT 3"),
    begun(wire.query(COPY)), turn(BAD), turn(ROW, wire.copy_fail(), wire.query("SELECT 4")),
    turn(wire.query(COPY), BAD, wire.copy_done(), wire.query("SELECT 5"), until="ZZ"),
    begun(wire.query(f"{COPY}; {COPY}")), turn(BAD, wire.copy_done(), ROW, wire.copy_done()),
    ask("SELECT 6"),
    begun(wire.query("COPY talked FROM STDIN (FORMAT binary)")),
    turn(wire.copy_data(b"nonsense" * 5), wire.copy_done()),
    in_transaction(
        begun(wire.query(COPY)), turn(BAD, wire.copy_done()), *ask("SELECT 7"),
    ),
    in_transaction(
        begun(wire.query(COPY)), turn(BAD), turn(ROW, wire.copy_done(), until=""), *ask("SELECT 8"),
    ),
    ask(SEEN),
)
script(
    "errors of a copy by the extended protocol",
    begun(copy() + wire.sync()), turn(BAD, ROW * 5, wire.copy_done(), wire.sync()),
    begun(copy() + wire.sync()), turn(BAD, until="E"), turn(ROW, wire.copy_done(), wire.sync()),
    begun(copy() + wire.flush()), turn(BAD, until="E"), turn(ROW, wire.copy_fail(), wire.sync()),
    begun(copy() + wire.flush()), turn(BAD, until="E"), turn(wire.sync()), turn(ROW, wire.copy_done(), until=""),
    ask("SELECT 1"),
    turn(copy(), wire.sync(), BAD, wire.copy_done(), wire.sync(), batch("SELECT 2"), until="ZZ"),
    turn(copy(), BAD, wire.copy_done(), wire.extended("SELECT 'skipped'"), wire.sync(), batch("SELECT 3"),
        until="ZZ"),
    turn(copy(), BAD, ROW * 3000, wire.copy_done(), wire.sync()),
    in_transaction(begun(copy() + wire.sync()), turn(BAD, wire.copy_done(), wire.sync()), *ask("SELECT 4")),
)
script(
    "a copy that never begins",
    turn(wire.query("COPY nowhere FROM STDIN"), ROW, wire.copy_done(), wire.query("SELECT 1"), until="ZZ"),
    turn(wire.query("COPY nowhere FROM STDIN"), ROW * 2, wire.copy_fail(), wire.query("SELECT 2"), until="ZZ"),
    turn(copy("COPY nowhere FROM STDIN"), wire.sync(), ROW, wire.copy_done(), wire.sync(), batch("SELECT 3"),
        until="ZZZ"),
    turn(copy("COPY nowhere FROM STDIN"), ROW, wire.copy_done(), wire.sync(), batch("SELECT 4"), until="ZZ"),
    ask("SELECT 5"),
)
script(
    "copy data out of the blue",
    turn(ROW, wire.copy_done(), wire.query("SELECT 1")),
    turn(wire.copy_fail(), wire.copy_fail(), wire.copy_done(), wire.sync()),
    turn(ROW * 100, batch("SELECT 2")),
    turn(wire.extended("SELECT 3"), ROW, wire.copy_done(), wire.sync()),
    turn(wire.extended("SELECT 1/0"), ROW, wire.copy_done(), wire.sync()),
    turn(batch("SELECT 4"), ROW, wire.copy_fail(), batch("SELECT 5"), until="ZZ"),
    in_transaction(turn(ROW, wire.copy_done(), wire.query("SELECT 6"))),
    turn(wire.copy_data(b"x" * 300_000), wire.query("SELECT 7")),
)
script(
    "a query during a copy",
    begun(wire.query(COPY)), turn(ROW, wire.query("SELECT 1"), until="EE"),
    fatal=True,
)
script(
    "a batch during a copy",
    begun(copy() + wire.flush()), turn(ROW, copy(), until="EE"),
    fatal=True,
)
script(
    "the end of a backend",
    turn(wire.query("SELECT pg_terminate_backend(pg_backend_pid())"), until="E"),
    fatal=True,
)
script(
    "copy out",
    ask("COPY (SELECT i, repeat('x', i % 50) FROM generate_series(1, 3000) i) TO STDOUT"),
    ask("COPY (SELECT 1, 'a,b') TO STDOUT (FORMAT csv)", "COPY (SELECT 1, 'x') TO STDOUT (FORMAT binary)"),
    ask("COPY (SELECT WHERE false) TO STDOUT", "COPY nowhere TO STDOUT"),
    ask("COPY (SELECT 1 / (40 - i) FROM generate_series(1, 100) i) TO STDOUT"),
    ask("COPY (SELECT repeat('y', 1000000)) TO STDOUT"),
    turn(copy("COPY (SELECT 7) TO STDOUT"), wire.sync(), batch("SELECT 1"), until="ZZ"),
    turn(copy("COPY (SELECT 1/0) TO STDOUT"), wire.extended("SELECT 2"), wire.sync()),
    turn(copy("COPY (SELECT 8) TO STDOUT"), copy("COPY (SELECT 9) TO STDOUT"), wire.sync()),
    turn(wire.parse("COPY (SELECT 7) TO STDOUT"), wire.bind(), wire.execute("", 1), wire.sync()),
)
script(
    "a large copy in",
    in_transaction(
        begun(wire.query(COPY)),
        turn(wire.copy_data(b"1\t" + b"w" * 400_000 + b"\n"), *[wire.copy_data(b"2\tshort\n")] * 5000,
            *[wire.copy_data(b"3\t" + b"m" * 5000 + b"\n")] * 100, wire.copy_done()),
        *ask(SEEN.replace("min(word)", "max(length(word))")),
    ),
)
script(
    "copies in a pipeline",
    in_transaction(
        turn(*[wire.query(COPY) + ROW * 5 + wire.copy_done() for _ in range(100)], until="Z" * 100),
        turn(*[copy() + ROW * 5 + wire.copy_done() + wire.sync() for _ in range(100)], until="Z" * 100),
        *ask(SEEN),
    ),
    turn(*[wire.query(COPY) + BAD + ROW * 5 + wire.copy_done() + wire.query("SELECT 1") for _ in range(50)],
        until="Z" * 100),
    turn(*[copy() + wire.sync() + BAD + ROW + wire.copy_done() + wire.sync() for _ in range(50)],
        until="Z" * 50),
    ask(SEEN),
)
