# SPDX-License-Identifier: ISC
"""PREPARE and EXECUTE as SQL in transaction and statement mode: what is prepared follows its client,
reaches no other, and answers and errors are those of PostgreSQL itself."""

import contextlib

import pytest

from support import wire
from support.clients.raw import Closed, RawClient
from support.process import wait_until

# Without pins a statement that does not follow is lost, with a WARNING.
SETTINGS = {"pool_mode": "transaction", "default_pool_size": 2, "max_pinned": 0}
PINNING = {**SETTINGS, "default_pool_size": 3, "max_pinned": 1}

# Scenes with texts that are left to a server, which then stays with the client.
PINNED = ("left to the server", "several at once", "handed over", "in a function")


@pytest.fixture
def table(cluster):
    with cluster.connect("main", "app") as connection:
        connection.execute(
            "CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'one'), (2, 'two')"
        )
    yield
    cluster.ask("main", "DROP TABLE IF EXISTS t, copied")


def direct(cluster):
    """A client of PostgreSQL itself."""
    return RawClient(("127.0.0.1", cluster.port)).login()


class Moved:
    """A client that gets the other one of two servers for each transaction."""

    def __init__(self, pooler):
        self.client = pooler.client()
        self.holder = pooler.client()

    def move(self):
        if self.client.status != "I":
            return
        if self.holder.status == "I":
            self.holder.query("BEGIN")
        else:
            self.holder.query("COMMIT")

    def send(self, data):
        self.move()
        return self.client.send(data)

    def result(self):
        return self.client.result()


# Where in the source of PostgreSQL the error was found is of no interest.
SOURCE = "FLR"


def seen(result):
    """What a client gets, to be compared."""
    error = result.error and {
        key: value for key, value in result.error.fields.items() if key not in SOURCE
    }
    notices = [(each["C"], each["M"]) for each in result.notices]
    return result.types, result.names, result.rows, result.tags, error, notices, result.status


def play(client, steps):
    """Send each step, a Query or messages, and read its answer."""
    for step in steps:
        client.send(step if isinstance(step, bytes) else wire.query(step))
        yield step, seen(client.result())


def without_position(answers):
    for _, (_, _, _, _, error, _, _) in answers:
        if error:
            error.pop("P", None)
    return answers


def compare(cluster, pooler, steps, change=list):
    """The same steps directly and through the pooler, where each transaction has another server."""
    plain = direct(cluster)
    moved = Moved(pooler)
    try:
        expected = change(list(play(plain, steps)))
        cluster.ask("main", "DROP TABLE IF EXISTS copied; DELETE FROM t WHERE b = 'new'")
        assert change(list(play(moved, steps))) == expected
    finally:
        plain.close()


LONG = "n" * 63
SYNC = wire.sync()

SCENES = {
    "life": [
        "PREPARE q AS SELECT 1", "EXECUTE q", "EXECUTE q;", "DEALLOCATE q", "EXECUTE q",
        "DEALLOCATE q", "PREPARE q AS SELECT 2", "EXECUTE q", "DEALLOCATE PREPARE q",
        "EXECUTE q",
    ],
    "arguments": [
        "PREPARE q (int, numeric(10, 2), text[]) AS SELECT $1 + 1, $2, $3[1]",
        "EXECUTE q (1, 2.5, '{a,b}')", "EXECUTE q(2+3, 7, ARRAY['x''y', 'z'])",
        "EXECUTE q (1)", "EXECUTE q", "EXECUTE q ('x', 1, '{}')",
        "EXECUTE q (1, 2, 'no array')", "EXECUTE q (1, 2, nothing)",
        "EXECUTE q (1, 2, '{}'::nothing)", "EXECUTE q (1, 2, '{}') x",
        "EXECUTE q (1, 2, (SELECT '{}'::text[]))",
    ],
    "taken": [
        "PREPARE q AS SELECT 1", "PREPARE q AS SELECT 2", "EXECUTE q",
        "PREPARE q AS SELEKT 2", "PREPARE q AS SELECT * FROM nothing", "EXECUTE q",
        "BEGIN", "PREPARE q AS SELECT 3", "EXECUTE q", "ROLLBACK", "EXECUTE q",
        "PREPARE q (nothing) AS SELECT 1", "PREPARE r AS SELECT 3", "EXECUTE r",
    ],
    "unknown": [
        "EXECUTE q", "DEALLOCATE q", "EXPLAIN EXECUTE q", "CREATE TABLE copied AS EXECUTE q",
        "BEGIN", "EXECUTE q", "COMMIT",
    ],
    "broken": [
        "PREPARE q AS SELEKT 1", "PREPARE q AS SELECT * FROM nothing", "EXECUTE q",
        "PREPARE q AS SELECT nothing FROM t", "PREPARE /* ä */ \"ä ö\" AS SELECT nothing",
        "  PREPARE\n\tq AS SELECT 'ä', nothing", "PREPARE q AS CREATE TABLE u (a int)",
        "PREPARE q", "PREPARE q AS", "PREPARE AS SELECT 1", "PREPARE \"\" AS SELECT 1",
        "PREPARE select AS SELECT 1", "PREPARE left AS SELECT 1", "PREPARE 1 AS SELECT 1",
        "PREPARE q (int AS SELECT $1", "PREPARE q (int) AS SELECT $2", "EXECUTE q (1)",
        "PREPARE q AS SELECT $1 / 0 FROM t", "EXECUTE q (1)", "EXECUTE q (2147483648)",
        "PREPARE q AS SELECT 1 x x", "PREPARE x q AS SELECT 1",
    ],
    "committed": [
        "BEGIN", "PREPARE q AS SELECT count(*) FROM t", "EXECUTE q", "COMMIT", "EXECUTE q",
        "BEGIN", "DEALLOCATE q", "COMMIT", "EXECUTE q",
    ],
    "rolled back": [
        "BEGIN", "PREPARE q AS SELECT count(*) FROM t", "ROLLBACK", "EXECUTE q",
        "BEGIN", "DEALLOCATE q", "ROLLBACK", "EXECUTE q",
    ],
    "savepoint": [
        "BEGIN", "SAVEPOINT a", "PREPARE q AS SELECT 1", "SELECT 1 / 0", "EXECUTE q",
        "PREPARE r AS SELECT 2", "DEALLOCATE q", "ROLLBACK TO a", "EXECUTE q", "EXECUTE r",
        "ROLLBACK TO a", "PREPARE r AS SELECT 3", "EXECUTE r", "COMMIT", "EXECUTE q", "EXECUTE r",
    ],
    "failed": [
        "PREPARE q AS SELECT 1", "BEGIN", "SELECT 1 / 0", "PREPARE r AS SELECT 2", "EXECUTE q",
        "EXECUTE r", "PREPARE q AS SELECT 1", "DEALLOCATE q", "DEALLOCATE ALL", "ROLLBACK",
        "EXECUTE q", "EXECUTE r",
    ],
    "created": [
        "PREPARE q (int) AS SELECT a, b FROM t WHERE a > $1",
        "CREATE TABLE copied AS EXECUTE q (0)", "SELECT * FROM copied", "DROP TABLE copied",
        "create table if not exists copied (\"as\", x) with (fillfactor = 70) as execute q (1)"
        " with no data", "SELECT * FROM copied", "DROP TABLE copied",
        "CREATE UNLOGGED TABLE copied AS EXECUTE q (1)", "SELECT * FROM copied",
        "CREATE TABLE copied AS EXECUTE q (1)", "DROP TABLE copied",
        "CREATE TABLE copied (a int DEFAULT 1)", "DROP TABLE copied",
    ],
    "explained": [
        "PREPARE q (int) AS SELECT a FROM t WHERE a = $1",
        "EXPLAIN (COSTS off) EXECUTE q (1)", "EXPLAIN (ANALYZE, BUFFERS off, COSTS off, TIMING off, SUMMARY off)"
        " EXECUTE q (1)", "explain (costs off, format json) execute q (1)",
        "EXPLAIN (COSTS off, VERBOSE) CREATE TABLE copied AS EXECUTE q (1)",
        "EXPLAIN (COSTS off) EXECUTE q", "EXPLAIN (COSTS off) EXECUTE nothing",
    ],
    "spelling": [
        "/* a /* b */ ' */ prepare -- c\n Q /* d */ as select 1 -- e", "EXECUTE q", "EXECUTE \"q\"",
        "EXECUTE \"Q\"", "PREPARE \"Q\" AS SELECT 2", "EXECUTE \"Q\"", "execute/**/Q;",
        "PREPARE \"a\"\"b' c\"(int)AS SELECT $1", "EXECUTE \"a\"\"b' c\"(3)",
        "DEALLOCATE \"a\"\"b' c\"", "EXECUTE \"a\"\"b' c\"(3)",
        f"PREPARE {LONG} AS SELECT 4", f"EXECUTE {LONG}", f"DEALLOCATE {LONG}", f"EXECUTE {LONG}",
        "PREPARE \"Ärger\" AS SELECT 7", "EXECUTE \"Ärger\"", "EXECUTE \"Ärger\" (1)",
        "PREPARE int AS SELECT 9", "EXECUTE int",
        "PREPARE s AS SELECT $$;$$, 'a;b', E'\\';', $x$ $$ ; $x$", "EXECUTE s",
        "PREPARE d AS SELECT 10; ; ", "EXECUTE d ; ",
    ],
    "left to the server": [
        f"PREPARE {LONG}n AS SELECT 5", f"EXECUTE {LONG}n", f"EXECUTE {LONG}",
        f"DEALLOCATE {LONG}n", f"EXECUTE {LONG}",
        "PREPARE ärger AS SELECT 6", "EXECUTE ärger", "EXECUTE \"ärger\"", "DEALLOCATE ärger",
        "PREPARE u&\"\\0061\" AS SELECT 8", "EXECUTE a", "PREPARE a AS SELECT 9",
        "PREPARE b AS SELECT 10", "EXECUTE b", "DEALLOCATE a", "EXECUTE a", "EXECUTE b",
        "DEALLOCATE b", "PREPARE a AS SELECT 11", "EXECUTE a",
    ],
    "strings": [
        "SET standard_conforming_strings = off", "SET escape_string_warning = off",
        "PREPARE q AS SELECT 'a\\'; EXECUTE q; --'", "EXECUTE q", "SELECT 1", "EXECUTE q",
        "PREPARE r AS SELECT $1 || 'x\\\\'", "EXECUTE r ('\\'')", "EXECUTE r ('\\\\')",
    ],
    "all": [
        "PREPARE q AS SELECT 1", "PREPARE r AS SELECT 2", "DEALLOCATE ALL", "EXECUTE q",
        "EXECUTE r", "PREPARE q AS SELECT 3", "EXECUTE q", "DISCARD ALL", "EXECUTE q",
        "PREPARE q AS SELECT 4", "DEALLOCATE PREPARE ALL", "EXECUTE q", "PREPARE q AS SELECT 5",
        "DISCARD PLANS", "EXECUTE q",
    ],
    "changing": [
        "PREPARE i (int) AS INSERT INTO t VALUES ($1, 'new') RETURNING a, b", "BEGIN",
        "EXECUTE i (3)", "EXECUTE i (4)", "ROLLBACK", "EXECUTE i (5)",
        "PREPARE d AS DELETE FROM t WHERE b = 'new'", "EXECUTE d", "EXECUTE d",
        "PREPARE v AS VALUES (1), (2)", "EXECUTE v",
    ],
    "search_path": [
        "BEGIN", "SET LOCAL search_path = pg_catalog", "PREPARE q AS SELECT * FROM t", "ROLLBACK",
        "PREPARE q AS SELECT count(*) FROM t", "EXECUTE q", "SET search_path = pg_catalog",
        "EXECUTE q", "RESET search_path", "EXECUTE q",
    ],
    "several at once": [
        "PREPARE q AS SELECT 1; EXECUTE q; DEALLOCATE q", "EXECUTE q",
        "PREPARE q AS SELECT 2; SELECT 3", "EXECUTE q", "PREPARE q AS SELECT 4", "EXECUTE q",
        "DEALLOCATE q", "EXECUTE q", "PREPARE q AS SELECT 5", "EXECUTE q",
    ],
    "handed over": [
        "PREPARE q (int) AS SELECT $1", "PREPARE r AS SELECT 2", "PREPARE s AS SELECT 3",
        "BEGIN; EXECUTE q (1); COMMIT", "EXECUTE q (2)", "EXECUTE q (1), EXECUTE r",
        "EXECUTE q ('x'); EXECUTE r", "EXECUTE r; EXECUTE q (3, nothing)", "EXECUTE r",
        "EXECUTE q (1 ; 2)",
        "PREPARE q AS SELECT 4; SELECT 5", "SELECT 6; DEALLOCATE q", "EXECUTE q (1)",
        "DEALLOCATE PREPARE r; EXECUTE s", "EXECUTE r", "EXECUTE s", "DEALLOCATE s", "EXECUTE s",
        "PREPARE q AS SELECT 7", "EXECUTE q",
        "BEGIN", "SELECT 1 / 0", "EXECUTE q; ROLLBACK", "ROLLBACK; SELECT 8", "EXECUTE q",
    ],
    "in a function": [
        "PREPARE q AS INSERT INTO t VALUES (3, 'new')", "DO $$ BEGIN EXECUTE 'EXECUTE q'; END $$",
        "SELECT * FROM t", "EXECUTE q", "SELECT * FROM t",
        "DO $$ BEGIN EXECUTE 'PREPARE r AS SELECT 1'; END $$", "EXECUTE r",
    ],
    "protocol's names": [
        wire.parse("SELECT $1::int + 1", "q") + SYNC, "EXECUTE q (1)", "PREPARE q AS SELECT 2",
        "EXECUTE q (2)", "EXECUTE q", "EXPLAIN (COSTS off) EXECUTE q (2)", "DEALLOCATE q",
        "EXECUTE q (1)", wire.parse("SELECT 1", "") + SYNC, "EXECUTE q",
        wire.parse("SELECT 2", "r") + wire.bind((), "r") + wire.execute() + SYNC, "EXECUTE r",
        wire.close("S", "r") + SYNC, "EXECUTE r", "PREPARE r AS SELECT 3", "EXECUTE r",
    ],
    "used by the protocol": [
        "PREPARE q (int) AS SELECT $1 + 1, b FROM t WHERE a = $1",
        wire.describe("S", "q") + SYNC,
        wire.bind((1,), "q") + wire.describe() + wire.execute() + SYNC,
        wire.bind((2,), "q") + wire.execute() + SYNC,
        wire.bind(("x",), "q") + wire.execute() + SYNC,
        "EXECUTE q (2)",
        wire.parse("SELECT 7") + wire.bind() + wire.bind((1,), "q", "p") + wire.execute()
        + wire.execute("p") + SYNC,
        "BEGIN", wire.bind((1,), "q", "p") + SYNC, "EXECUTE q (2)", wire.execute("p") + SYNC,
        "COMMIT",
        wire.close("S", "q") + SYNC, "EXECUTE q (1)", "PREPARE q AS SELECT 5", "EXECUTE q",
    ],
}


@pytest.mark.parametrize("scene", SCENES)
def test_answers_are_those_of_postgresql(cluster, new_pooler, table, scene):
    compare(cluster, new_pooler(PINNING if scene in PINNED else SETTINGS), SCENES[scene])


def by_protocol(steps):
    """The same by messages of the extended protocol."""
    return [
        step if isinstance(step, bytes) else wire.extended(step) + SYNC for step in steps
    ]


@pytest.mark.parametrize("scene", SCENES)
def test_the_extended_protocol_has_the_same_answers(cluster, new_pooler, table, scene):
    compare(cluster, new_pooler(PINNING), by_protocol(SCENES[scene]))


def mixed(steps):
    """PREPARE as a Query, everything else by the extended protocol."""
    return [
        step if "PREPARE" in str(step).upper() else by_protocol([step])[0] for step in steps
    ]


@pytest.mark.parametrize("scene", sorted(set(SCENES) - set(PINNED)))
def test_both_protocols_have_the_same_names(cluster, new_pooler, table, scene):
    compare(cluster, new_pooler(SETTINGS), mixed(SCENES[scene]), without_position)


@pytest.mark.parametrize("scene", ["life", "taken", "protocol's names", "used by the protocol"])
def test_servers_may_keep_one_statement_only(cluster, new_pooler, table, scene):
    pooler = new_pooler({**SETTINGS, "max_prepared_statements": 1})
    compare(cluster, pooler, SCENES[scene])


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("change", [list, by_protocol])
def test_nothing_has_to_wait_for_an_answer(cluster, new_pooler, table, scene, change):
    """All messages at once, and then all answers."""
    steps = change(SCENES[scene])
    data = b"".join(each if isinstance(each, bytes) else wire.query(each) for each in steps)
    pooler = new_pooler(PINNING)
    answers = []
    for client in (direct(cluster), pooler.client()):
        cluster.ask("main", "DROP TABLE IF EXISTS copied; DELETE FROM t WHERE b = 'new'")
        client.send(data)
        answers.append([(step, seen(client.result())) for step in steps])
        client.leave()
    assert answers[1] == answers[0]


# Clients that share servers


@pytest.fixture
def one(new_pooler):
    """A pooler with one server for all, which cannot be pinned."""
    return new_pooler({**SETTINGS, "default_pool_size": 1})


def failed(client, sql):
    client.send(wire.query(sql))
    return client.result().error


def on_server(client):
    rows = client.query("SELECT name, from_sql FROM pg_prepared_statements ORDER BY 1").rows
    return [tuple(row) for row in rows]


def test_a_name_means_to_each_client_its_own_statement(one):
    first, second = one.client(), one.client()
    first.query("PREPARE q AS SELECT 'first'")
    assert failed(second, "EXECUTE q").sqlstate == "26000"
    assert failed(second, "DEALLOCATE q").sqlstate == "26000"
    second.query("PREPARE q AS SELECT 'second'")
    for _ in range(2):
        assert first.value("EXECUTE q") == "first"
        assert second.value("EXECUTE q") == "second"
    first.query("DEALLOCATE q")
    assert second.value("EXECUTE q") == "second"
    assert failed(first, "EXECUTE q").sqlstate == "26000"
    assert one.show("PINS") == []


def test_a_text_is_prepared_once_for_all(one):
    clients = [one.client() for _ in range(3)]
    for number, client in enumerate(clients):
        client.query(f"PREPARE q{number} (int) AS SELECT $1")
    assert [client.value(f"EXECUTE q{number} (7)") for number, client in enumerate(clients)] == (
        ["7"] * 3
    )
    assert on_server(clients[0]) == [("PGBOUNCER_1", "t")]
    row, = one.show("statements")
    assert row["query"] == "PREPARE (int) AS SELECT $1"
    assert (row["clients"], row["servers"]) == ("3", "1")


def test_types_are_those_of_the_clients_search_path(one, cluster):
    """Names of types are looked up once, by PREPARE."""
    cluster.ask("main", "CREATE SCHEMA a; CREATE SCHEMA b; CREATE TYPE a.mood AS ENUM ('good');"
                        "CREATE TYPE b.mood AS ENUM ('bad');"
                        "GRANT USAGE ON SCHEMA a, b TO PUBLIC")
    try:
        first, second = one.client(), one.client()
        for client, schema in ((first, "a"), (second, "b")):
            client.query(f"SET search_path = {schema}")
            client.query("PREPARE q (mood) AS SELECT $1")
        assert first.value("EXECUTE q ('good')") == "good"
        assert second.value("EXECUTE q ('bad')") == "bad"
    finally:
        cluster.ask("main", "DROP SCHEMA a CASCADE; DROP SCHEMA b CASCADE")


@pytest.mark.setting("max_prepared_statements")
def test_servers_forget_the_statements_used_longest_ago(new_pooler):
    pooler = new_pooler({**SETTINGS, "default_pool_size": 1, "max_prepared_statements": 2})
    client = pooler.client()
    for number in range(5):
        client.query(f"PREPARE q{number} AS SELECT {number}")
    assert len(on_server(client)) == 2
    for number in (4, 0, 3, 1, 2):
        assert client.value(f"EXECUTE q{number}") == str(number)
    assert on_server(client) == [("PGBOUNCER_2", "t"), ("PGBOUNCER_3", "t")]


def test_a_client_that_leaves_takes_its_names_along(one):
    first = one.client()
    first.query("PREPARE q AS SELECT 1")
    first.leave()
    client = one.client()
    assert failed(client, "EXECUTE q").sqlstate == "26000"
    client.query("PREPARE q AS SELECT 2")
    assert client.value("EXECUTE q") == "2"


@pytest.mark.parametrize("sql", ["EXECUTE q; SELECT pg_sleep(1)", "EXECUTE s"])
def test_a_client_that_vanishes_leaves_nothing(one, cluster, sql):
    first = one.client()
    first.query("PREPARE q AS SELECT 1")
    first.query("PREPARE s AS SELECT pg_sleep(1)")
    first.send(wire.query("PREPARE r AS SELECT 3"), wire.query(sql), wire.query("EXECUTE r"))
    wait_until(lambda: cluster.backends(state="active"))
    first.reset()
    client = one.client()
    assert failed(client, "EXECUTE r").sqlstate == "26000"
    client.query("PREPARE r AS SELECT 4")
    assert client.value("EXECUTE r") == "4"
    assert all(name.startswith("PGBOUNCER_") for name, _ in on_server(client))


def test_a_statement_that_another_client_lets_vanish_is_prepared_again(one):
    first, second = one.client(), one.client()
    first.query("PREPARE q AS SELECT 1")
    second.query("DEALLOCATE ALL")
    assert first.value("EXECUTE q") == "1"
    second.query("DISCARD ALL")
    assert first.value("EXECUTE q") == "1"
    second.query("DEALLOCATE \"PGBOUNCER_1\"")
    assert failed(first, "EXECUTE q").text == 'prepared statement "q" does not exist'
    assert first.value("EXECUTE q") == "1"


def test_a_foreign_statement_with_the_poolers_name_is_not_run(one):
    first, second = one.client(), one.client()
    second.query("PREPARE \"PGBOUNCER_2\" AS SELECT 'foreign'; SELECT 1")
    first.query("PREPARE q AS SELECT 1")
    first.query("PREPARE r AS SELECT 2")
    assert first.value("EXECUTE q") == "1"
    assert first.value("EXECUTE r") == "2"


# State that an EXECUTE leaves behind


@pytest.mark.parametrize("send", [wire.query, lambda sql: wire.extended(sql) + SYNC])
def test_what_an_execute_sets_follows_the_client(one, send):
    first, second = one.client(), one.client()
    first.query("PREPARE q (text) AS SELECT set_config('app.one', $1, false)")
    first.query("PREPARE r AS SELECT set_config($1, $2, false)")
    for sql in ("EXECUTE q ('x')", "EXECUTE r ('app.two', 'y')"):
        first.send(send(sql))
        assert first.result().error is None
    show = "SELECT current_setting('app.one', true), current_setting('app.two', true)"
    for _ in range(2):
        assert [each or "" for each in second.query(show).rows[0]] == ["", ""]
        assert list(first.query(show).rows[0]) == ["x", "y"]


def test_what_an_execute_locks_keeps_its_server(new_pooler):
    pooler = new_pooler(PINNING)
    client = pooler.client()
    client.query("PREPARE q (int) AS SELECT pg_advisory_lock($1)")
    client.query("EXECUTE q (1)")
    client.query("SELECT 1")
    assert len(pooler.show("PINS")) == 1
    client.query("SELECT pg_advisory_unlock(1)")
    client.query("SELECT 1")
    assert pooler.show("PINS") == []
    assert client.query("EXECUTE q (2)").error is None


# What a new server answers to the pooler's PREPARE


def test_an_error_of_the_poolers_prepare_reaches_the_client(new_pooler, cluster, table):
    moved = Moved(new_pooler(SETTINGS))
    moved.client.query("PREPARE q (int) AS SELECT a FROM t WHERE a = $1")
    cluster.ask("main", "ALTER TABLE t RENAME TO copied")
    for status in ("I", "T"):
        if status == "T":
            moved.move()
            moved.client.query("BEGIN")
        moved.send(wire.query("EXECUTE q (1)"))
        result = moved.result()
        assert result.types == "EZ"
        assert result.error.sqlstate == "42P01"
        assert result.error.text == 'relation "t" does not exist'
        assert result.status == ("E" if status == "T" else "I")
    moved.client.query("ROLLBACK")
    cluster.ask("main", "ALTER TABLE copied RENAME TO t")
    moved.move()
    assert moved.client.value("EXECUTE q (1)") == "1"
    # Several in flight, of which those that need it fail alone.
    moved.client.query("PREPARE r AS SELECT 'r'")
    cluster.ask("main", "ALTER TABLE t RENAME TO copied")
    moved.send(wire.query("EXECUTE q (1)") + wire.query("EXECUTE r") + wire.query("EXECUTE q (1)"))
    assert [moved.result().types for _ in range(3)] == ["EZ", "TDCZ", "EZ"]


def test_a_changed_table_is_an_error_until_the_statement_is_prepared_again(one, cluster, table):
    client = one.client()
    client.query("PREPARE q AS SELECT * FROM t")
    client.query("EXECUTE q")
    cluster.ask("main", "ALTER TABLE t ADD c int")
    error = failed(client, "EXECUTE q")
    assert (error.sqlstate, error.text) == ("0A000", "cached plan must not change result type")
    assert client.query("EXECUTE q").names == ["a", "b", "c"]


# Texts of any size, in any pieces, of any encoding


def test_texts_cut_anywhere_are_understood(one):
    client = one.client()
    data = (
        wire.query("/* c */ PREPARE q (int) AS SELECT $1") + wire.query("EXECUTE q (1)")
        + wire.query("EXPLAIN (COSTS off) EXECUTE q (2)") + wire.query("DEALLOCATE q")
    )
    for cut in range(1, len(data)):
        client.send(data[:cut])
        client.send(data[cut:])
        assert [client.result().error for _ in range(4)] == [None] * 4


@pytest.mark.parametrize("length", [4000, 5000, 70000, 3000000])
def test_texts_of_any_length(one, length):
    client, other = one.client(), one.client()
    long = "x" * length
    client.query(f"PREPARE q AS SELECT '{long}'")
    assert other.value("SELECT 1") == "1"
    assert client.value("EXECUTE q") == long
    client.query("PREPARE r (text) AS SELECT length($1)")
    client.query("BEGIN")
    for sql in (f"EXECUTE r ('{long}')", f"/* {'y' * 3000} */ EXECUTE r ('{long}')"):
        data = wire.query(sql)
        for cut in (0, 5, 6, 8, 20, 3020):
            client.send(data[:cut])
            client.send(data[cut:])
            assert client.result().value == str(length)
    client.query("COMMIT")
    assert one.show("PINS") == []


@pytest.mark.setting("max_prepared_memory")
def test_statements_beyond_the_memory_stay_on_their_server(new_pooler):
    pooler = new_pooler({**PINNING, "max_prepared_memory": 1000000})
    client, other = pooler.client(), pooler.client()
    long = "x" * 8000000
    before = pooler.memory()
    client.query(f"PREPARE q AS SELECT '{long}'")
    other.query("SELECT 1")
    assert client.value("EXECUTE q") == long
    assert pooler.memory() - before < 6000000
    assert len(pooler.show("PINS")) == 1
    client.query("DEALLOCATE q")
    client.query("SELECT 1")
    assert pooler.show("PINS") == []


@pytest.mark.parametrize("encoding", ["SJIS", "BIG5", "GBK", "GB18030"])
def test_an_encoding_with_backslashes_in_letters(new_pooler, encoding):
    pooler = new_pooler(PINNING)
    client = pooler.client(client_encoding=encoding)
    letter = {"SJIS": "表", "BIG5": "功", "GBK": "昞", "GB18030": "昞"}[encoding].encode(encoding)
    assert letter.endswith(b"\\")
    client.query("PREPARE ascii AS SELECT 1")
    other = pooler.client()
    other.query("SELECT 1")
    assert client.value("EXECUTE ascii") == "1"
    assert pooler.show("PINS") == []
    client.query("SET standard_conforming_strings = off")
    client.query(b"PREPARE \"" + letter + b"\" AS SELECT '" + letter + b"'")
    other.query("SELECT 1")
    client.query(b"EXECUTE \"" + letter + b"\"")
    assert len(pooler.show("PINS")) == 1


# Modes and settings


def test_statement_mode_has_them_too(new_pooler):
    pooler = new_pooler({**SETTINGS, "pool_mode": "statement"})
    moved = Moved.__new__(Moved)
    moved.client = pooler.client()
    moved.client.query("PREPARE q AS SELECT 1")
    assert moved.client.value("EXECUTE q") == "1"
    assert failed(moved.client, "PREPARE q AS SELECT 1").sqlstate == "42P05"
    moved.client.query("DEALLOCATE q")


@pytest.mark.setting("session_state")
def test_names_reach_the_server_where_state_is_ignored(new_pooler):
    pooler = new_pooler({**SETTINGS, "default_pool_size": 1, "session_state": "ignore"})
    first, second = pooler.client(), pooler.client()
    first.query("PREPARE q AS SELECT 'first'")
    assert on_server(second) == [("q", "t")]


def test_without_tracking_they_keep_their_server(new_pooler):
    pooler = new_pooler({**PINNING, "max_prepared_statements": 0})
    client, other = pooler.client(), pooler.client()
    client.query("PREPARE q AS SELECT 1")
    for _ in range(2):
        assert failed(other, "EXECUTE q").sqlstate == "26000"
        assert client.value("EXECUTE q") == "1"
    assert len(pooler.show("PINS")) == 1


def test_a_takeover_brings_them_along(new_pooler, cluster):
    pooler = new_pooler(
        {**SETTINGS, "default_pool_size": 1, "server_tls_sslmode": "disable"}, start=False
    )
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    client, other = pooler.client(), pooler.client()
    client.query("PREPARE q (int) AS SELECT $1 + 1")
    client.query("PREPARE s AS SELECT 'slept' FROM pg_sleep(1.5)")
    client.send(
        wire.query("PREPARE r AS SELECT 'r'"), wire.query("EXECUTE s"), wire.query("EXECUTE q (2)"),
        wire.query("PREPARE bad AS SELECT nothing"), wire.query("EXECUTE q ('x')"),
    )
    wait_until(lambda: cluster.backends(state="active"))
    pooler.take_over()
    assert cluster.backends(state="active"), "too slow to mean anything"
    results = [client.result() for _ in range(5)]
    assert [each.value for each in results[:3]] == [None, "slept", "3"]
    assert [each.error.sqlstate for each in results[3:]] == ["42703", "22P02"]
    other.query("DISCARD ALL")
    assert client.value("EXECUTE q (41)") == "42"
    assert client.value("EXECUTE r") == "r"
    assert failed(client, "PREPARE q AS SELECT 1").text == 'prepared statement "q" already exists'
    assert failed(client, "EXECUTE bad").sqlstate == "26000"
