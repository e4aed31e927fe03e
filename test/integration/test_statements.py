# SPDX-License-Identifier: ISC
"""Prepared statements in transaction and statement mode: they follow their client."""

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import wait_until

PREPARED = "SELECT name, statement FROM pg_prepared_statements ORDER BY name"


def ask(client, *messages):
    """Send messages and a Sync; everything up to ReadyForQuery."""
    client.send(*messages, wire.sync())
    return answered(client)


def answered(client):
    """Everything up to ReadyForQuery."""
    result = client.result()
    result.rows = [list(row) for row in result.rows]
    return result


def run(client, name, values=()):
    """Bind and execute a statement; its rows."""
    result = ask(client, wire.bind(values, name), wire.execute())
    if result.error:
        raise result.error
    return result.rows


def prepare(client, name, sql, types=()):
    result = ask(client, wire.parse(sql, name, types))
    if result.error:
        raise result.error
    assert result.types == "1Z"


@pytest.fixture
def one(new_pooler):
    """A pooler with one server for all."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 1})


@pytest.fixture
def shared_table(shared_cluster):
    """A table with one row."""
    shared_cluster.ask("main", "DROP TABLE IF EXISTS planned; CREATE TABLE planned AS SELECT 1 AS a")
    shared_cluster.ask("main", "GRANT ALL ON planned TO PUBLIC; ALTER TABLE planned OWNER TO app")
    yield "planned"
    shared_cluster.ask("main", "DROP TABLE planned")


def hold(pooler):
    """Take a server from the pool for a while."""
    client = pooler.client()
    client.query("BEGIN")
    return client


def prepared(client):
    """What the server has, by its own pg_prepared_statements."""
    return [tuple(row) for row in client.query(PREPARED).rows]


def counts(pooler):
    """Parse messages of clients, Parse messages to servers, and Bind messages."""
    row, = pooler.show("stats", database="main")
    names = ("client_parse", "server_parse", "bind")
    return tuple(int(row[f"total_{name}_count"]) for name in names)


# Following the client


@pytest.mark.setting("max_prepared_statements")
def test_a_statement_follows_its_client_to_another_server(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    client = pooler.client()
    prepare(client, "s", "SELECT $1::int + 1, pg_backend_pid()")
    (_, first), = run(client, "s", [1])
    other = hold(pooler)
    (value, second), = run(client, "s", [41])
    assert value == "42"
    assert first != second
    other.query("COMMIT")


def test_the_same_name_means_to_each_client_its_own_text(one):
    first, second = one.client(), one.client()
    prepare(first, "s", "SELECT 'first'")
    prepare(second, "s", "SELECT 'second'")
    for _ in range(3):
        assert run(first, "s") == [["first"]]
        assert run(second, "s") == [["second"]]


def test_the_same_text_is_prepared_once_for_all(one):
    clients = [one.client() for _ in range(5)]
    for number, client in enumerate(clients):
        prepare(client, f"name{number}", "SELECT 'shared'")
    for number, client in enumerate(clients):
        assert run(client, f"name{number}") == [["shared"]]
    assert prepared(clients[0]) == [("PGBOUNCER_1", "SELECT 'shared'")]
    assert counts(one) == (5, 1, 5)


def test_types_of_parameters_are_part_of_a_statement(one):
    client = one.client()
    prepare(client, "number", "SELECT pg_typeof($1)", [23])
    prepare(client, "text", "SELECT pg_typeof($1)", [25])
    assert run(client, "number", [1]) == [["integer"]]
    assert run(client, "text", [1]) == [["text"]]
    assert len(prepared(client)) == 2


def test_describe_prepares_the_statement_where_it_is_missing(one):
    first, second = one.client(), one.client()
    prepare(first, "s", "SELECT 1 AS a, 2 AS b")
    second.query("DISCARD ALL")
    result = ask(first, wire.describe("S", "s"))
    assert result.types == "tTZ"
    assert result.names == ["a", "b"]


@pytest.mark.parametrize("length", [1, 63, 64, 200, 5000, 70000, 200000])
def test_names_of_any_length(one, length):
    client, other = one.client(), one.client()
    name = "n" * length
    prepare(client, name, "SELECT 'mine'")
    other.query("DISCARD ALL")
    assert run(client, name) == [["mine"]]
    assert ask(client, wire.describe("S", name)).types == "tTZ"
    assert ask(client, wire.close("S", name)).types == "3Z"


@pytest.mark.parametrize("length", [100, 4090, 4096, 5000, 65000, 66000, 140000, 1000000])
def test_texts_of_any_length(one, length):
    client, other = one.client(), one.client()
    text = f"SELECT '{'x' * length}'::text"
    prepare(client, "long", text)
    other.query("DISCARD ALL")
    assert run(client, "long") == [["x" * length]]
    # In small pieces, behind another message.
    data = wire.query("SELECT 0") + wire.parse(text, "again") + wire.sync()
    for start in range(0, len(data), 30011):
        client.send(data[start : start + 30011])
    assert client.result().error is None
    assert client.result().types == "1Z"
    assert run(client, "again") == [["x" * length]]


def test_a_large_bind_passes(one):
    client, other = one.client(), one.client()
    prepare(client, "s", "SELECT length($1::text)")
    other.query("DISCARD ALL")
    for size in (4000, 4096, 70000, 3000000):
        assert run(client, "s", [b"y" * size]) == [[str(size)]]


# Messages that the pooler answers


def test_everything_in_one_packet(one):
    client = one.client()
    for _ in range(2):
        result = ask(
            client,
            wire.parse("SELECT $1::text", "s"),
            wire.bind(["x"], "s"),
            wire.describe(),
            wire.execute(),
            wire.close("S", "s"),
        )
        assert result.types == "12TDC3Z"
        assert result.rows == [["x"]]


def test_own_answers_are_sent_on_flush_and_before_the_servers(one):
    client, other = one.client(), one.client()
    prepare(other, "s", "SELECT 1")
    client.send(wire.parse("SELECT 1", "s"), wire.flush())
    assert client.read().type == "1"
    client.send(wire.close("S", "s"), wire.flush())
    assert client.read().type == "3"
    client.send(wire.sync())
    assert client.read().type == "Z"


def test_own_answers_keep_their_order(one):
    client, other = one.client(), one.client()
    prepare(other, "s", "SELECT 'a'")
    other.query("SELECT 1")
    result = ask(
        client,
        wire.parse("SELECT 'b'"),
        wire.bind(),
        wire.execute(),
        wire.parse("SELECT 'a'", "s"),
        wire.bind((), "s"),
        wire.execute(),
        wire.close("S", "nothing"),
        wire.close("S", "s"),
        wire.bind(),
        wire.execute(),
    )
    assert result.types == "12DC12DC332DCZ"
    assert result.rows == [["b"], ["a"], ["b"]]


def test_close_needs_no_server(one):
    busy = hold(one)
    client = one.client()
    client.send(wire.close("S", "nothing"))
    assert client.read().type == "3"
    one.wait_pool(cl_waiting=0)
    busy.query("COMMIT")


def test_a_closed_name_can_be_used_again(one):
    client = one.client()
    prepare(client, "s", "SELECT 'old'")
    assert ask(client, wire.close("S", "s")).types == "3Z"
    prepare(client, "s", "SELECT 'new'")
    assert run(client, "s") == [["new"]]


# Errors


@pytest.mark.parametrize("what", ["bind", "describe"])
def test_an_unknown_name_is_an_ordinary_error(one, what):
    client = one.client()
    message = wire.bind((), "never") if what == "bind" else wire.describe("S", "never")
    result = ask(client, message, wire.execute())
    assert result.types == "EZ"
    result.error.is_("ERROR", "26000", "prepared statement did not exist")
    assert result.status == "I"
    one.wait_log(r"prepared statement 'never' not found")
    client.query("BEGIN")
    assert ask(client, wire.parse("SELECT 1"), message, wire.execute()).status == "E"
    client.query("ROLLBACK")
    result = ask(client, wire.extended("SELECT 7"), message, wire.extended("SELECT 8"))
    assert result.types == "12TDCEZ"
    assert client.value("SELECT 5") == "5"


def test_a_name_parsed_and_closed_after_an_error_does_not_exist(one):
    client = one.client()
    result = ask(
        client,
        wire.extended("SELECT 1/0"),
        wire.parse("SELECT 1", "s"),
        wire.close("S", "s"),
    )
    assert result.error.sqlstate == "22012"
    assert ask(client, wire.bind([], "s")).error.sqlstate == "26000"
    prepare(client, "s", "SELECT 2")
    assert run(client, "s") == [["2"]]


def test_a_name_in_use_ends_the_session(one):
    client = one.client()
    prepare(client, "s", "SELECT 1")
    client.send(wire.parse("SELECT 2", "s"), wire.sync())
    client.fatal().is_("FATAL", "08P01", "prepared statement name is already in use")
    one.wait_log(r"prepared statement 's' was already prepared")


def test_a_parse_that_fails_leaves_no_name(one):
    client = one.client()
    result = ask(client, wire.parse("SELECT nonsense", "s"), wire.bind((), "s"), wire.execute())
    assert result.types == "EZ"
    assert result.error.sqlstate == "42703"
    prepare(client, "s", "SELECT 'good'")
    assert run(client, "s") == [["good"]]


def test_messages_that_an_error_skips_have_no_effect(one):
    client = one.client()
    prepare(client, "keep", "SELECT 'keep'")
    result = ask(
        client,
        wire.parse("SELECT 1/0", "division"),
        wire.bind((), "division"),
        wire.execute(),
        wire.parse("SELECT 'skipped'", "skipped"),
        wire.close("S", "keep"),
        wire.bind((), "skipped"),
        wire.execute(),
    )
    assert result.error.sqlstate == "22012"
    assert run(client, "keep") == [["keep"]]
    with pytest.raises(ServerError, match="did not exist"):
        run(client, "skipped")
    prepare(client, "skipped", "SELECT 'now'")
    assert run(client, "skipped") == [["now"]]


def test_a_pipeline_continues_after_a_parse_that_failed(one):
    client = one.client()
    client.send(
        wire.parse("SELECT * FROM later", "s"),
        wire.sync(),
        wire.query("CREATE TABLE later AS SELECT 'made' AS a"),
        wire.bind((), "s"),
        wire.execute(),
        wire.sync(),
    )
    assert client.result().error.sqlstate == "42P01"
    assert client.result().error is None
    assert answered(client).rows == [["made"]]
    client.query("DROP TABLE later")


def test_batches_that_do_not_wait_for_each_other(one):
    client = one.client()
    client.send(
        *[
            message
            for number in range(50)
            for message in (
                wire.parse(f"SELECT {number}/{number % 7}", f"s{number}"),
                wire.bind((), f"s{number}"),
                wire.execute(),
                wire.sync(),
            )
        ]
    )
    for number in range(50):
        result = answered(client)
        if number % 7 == 0:
            assert result.error.sqlstate == "22012"
        else:
            assert result.rows == [[str(number // (number % 7))]]
    for number in range(50):
        if number % 7:
            assert run(client, f"s{number}") == [[str(number // (number % 7))]]


@pytest.mark.parametrize(
    "message, text",
    [
        (wire.message("P", b"s\0SELECT 1\0\0\1"), "broken Parse packet"),
        (wire.message("P", b"s\0SELECT 1\0\0\0more"), "broken Parse packet"),
        (wire.message("P", b"nonsense"), "failed to parse packet"),
        (wire.message("B", b"\0name"), "broken Bind packet"),
        (wire.message("D", b"Sname"), "broken Describe packet"),
        (wire.message("C", b"Sname"), "broken Close packet"),
    ],
)
def test_broken_messages_are_refused(one, message, text):
    client = one.client()
    client.query("BEGIN")
    client.send(message, wire.sync())
    client.fatal().is_("FATAL", "08P01", text)


@pytest.mark.parametrize(
    "kind, length, text",
    [
        ("P", 4 << 20, "failed to parse packet"),
        ("B", 4 << 20, "broken Bind packet"),
        ("D", 10, "broken Describe packet"),
        ("C", 10, "broken Close packet"),
    ],
)
def test_a_name_without_an_end_is_not_buffered_for_ever(one, kind, length, text):
    client = one.client()
    client.query("BEGIN")
    header = kind.encode() + (1 << 30).to_bytes(4, "big")
    client.send(header + b"S" * (length - len(header)))
    client.fatal().is_("FATAL", "08P01", text)


# How many


@pytest.mark.setting("max_prepared_statements")
def test_least_recently_used_statements_are_closed(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_statements": 3}
    )
    client = pooler.client()
    for number in range(10):
        prepare(client, f"s{number}", f"SELECT {number}")
        assert run(client, "s0") == [["0"]]
    assert {text for _, text in prepared(client)} == {"SELECT 0", "SELECT 8", "SELECT 9"}
    for number in range(10):
        assert run(client, f"s{number}") == [[str(number)]]
    assert len(prepared(client)) == 3
    pooler.admin("SET max_prepared_statements = 1")
    assert run(client, "s0") == [["0"]]
    assert [text for _, text in prepared(client)] == ["SELECT 0"]


def test_one_batch_may_need_more_than_a_server_keeps(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_statements": 1}
    )
    client = pooler.client()
    messages = []
    for number in range(20):
        messages += [
            wire.parse(f"SELECT {number}", f"s{number}"),
            wire.bind((), f"s{number}", f"p{number}"),
        ]
    messages += [wire.execute(f"p{number}") for number in range(20)]
    result = ask(client, *messages)
    assert result.error is None
    assert result.rows == [[str(number)] for number in range(20)]
    assert len(prepared(client)) == 1


def test_an_error_undoes_later_evictions(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_statements": 2}
    )
    client = pooler.client()
    prepare(client, "a", "SELECT 'a'")
    prepare(client, "b", "SELECT 'b'")
    result = ask(
        client,
        wire.parse("SELECT 1/0"),
        wire.bind(),
        wire.execute(),
        wire.parse("SELECT 'c'", "c"),
        wire.parse("SELECT 'd'", "d"),
    )
    assert result.error.sqlstate == "22012"
    parses = counts(pooler)[1]
    assert run(client, "a") == [["a"]]
    assert run(client, "b") == [["b"]]
    assert counts(pooler)[1] == parses


@pytest.mark.setting("max_prepared_bytes")
def test_long_texts_are_closed_by_their_bytes(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_bytes": 250000}
    )
    client = pooler.client()
    for number in range(6):
        prepare(client, f"s{number}", f"SELECT {number}, '{'x' * 100000}'")
    assert len(prepared(client)) == 2
    for number in range(6):
        assert run(client, f"s{number}")[0][0] == str(number)


@pytest.mark.setting("max_prepared_memory")
def test_the_memory_of_statements_is_limited(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_memory": 400000}
    )
    client, other = pooler.client(), pooler.client()
    done = 0
    with pytest.raises(ServerError) as refused:
        for done in range(1000):
            prepare(client, f"s{done}", f"SELECT {done}, '{'x' * 1000}'")
    refused.value.is_("ERROR", "53400", "too many prepared statements (max_prepared_memory)")
    assert 50 < done < 100
    assert run(client, "s7")[0][0] == "7"
    # The client that prepares most does not get all of the rest.
    prepare(other, "s", "SELECT 'other'")
    assert run(other, "s") == [["other"]]
    ask(client, wire.close("S", "s7"), wire.close("S", "s8"))
    prepare(client, "again", "SELECT 'again'")
    result = ask(client, wire.parse(f"SELECT '{'y' * 300000}'", "huge"))
    assert result.error.sqlstate == "53400"
    assert run(client, "again") == [["again"]]


@pytest.mark.setting("max_prepared_memory")
def test_the_memory_of_statements_is_limited_for_all_workers_together(new_pooler, cluster):
    keys = {"host": cluster.host, "port": cluster.port, "dbname": "main"}
    pooler = new_pooler(
        {"workers": 2, "pool_mode": "transaction", "max_prepared_memory": 400000},
        databases={name: {**keys, "worker": number} for number, name in enumerate(("first", "second"))})
    # Each client may have a quarter.
    full = [pooler.client(database="first") for _ in range(4)]
    for number, client in enumerate(full):
        with pytest.raises(ServerError, match="max_prepared_memory"):
            for text in range(1000):
                prepare(client, f"s{text}", f"SELECT {number}, {text}, '{'x' * 1000}'")
    client = pooler.client(database="second")
    result = ask(client, wire.parse(f"SELECT '{'y' * 50000}'", "long"))
    assert result.error.is_("ERROR", "53400", "too many prepared statements (max_prepared_memory)")
    for each in full:
        each.close()
    pooler.wait_pool("first", cl_active=0, cl_waiting=0)
    prepare(client, "long", f"SELECT '{'y' * 50000}'")


@pytest.mark.setting("max_prepared_statements")
def test_without_tracking_names_reach_the_server(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "max_prepared_statements": 0}
    )
    client, other = pooler.client(), pooler.client()
    prepare(client, "raw", "SELECT 'raw'")
    assert prepared(other) == [("raw", "SELECT 'raw'")]
    assert run(other, "raw") == [["raw"]]


def test_in_session_mode_names_reach_the_server(session_pooler):
    client = session_pooler.client()
    prepare(client, "raw", "SELECT 'raw'")
    assert prepared(client) == [("raw", "SELECT 'raw'")]


# DEALLOCATE ALL and DISCARD ALL


@pytest.mark.parametrize("sql", ["DEALLOCATE ALL", "DISCARD ALL", "DEALLOCATE PREPARE ALL"])
def test_all_statements_can_be_closed(one, sql):
    client, other = one.client(), one.client()
    prepare(client, "s", "SELECT 'mine'")
    prepare(other, "t", "SELECT 'other'")
    client.query(sql)
    assert prepared(client) == []
    with pytest.raises(ServerError, match="did not exist"):
        run(client, "s")
    assert run(other, "t") == [["other"]]
    prepare(client, "s", "SELECT 'new'")
    assert run(client, "s") == [["new"]]


@pytest.mark.parametrize("sql", ["DISCARD ALL", " deallocate /* really */ all; SELECT 1"])
def test_messages_sent_after_it_prepare_their_statements_anew(one, sql):
    """The server has the statement when its Parse arrives at the pooler, and has it no more when
    the message arrives at the server."""
    client, other = one.client(), one.client()
    prepare(other, "t", "SELECT 'both'")
    batch = wire.parse("SELECT 'both'", "s") + wire.bind((), "s") + wire.execute() + wire.sync()
    client.send(wire.query(sql), batch, wire.query(sql), batch)
    for _ in range(2):
        assert client.checked().tags[0] in ("DEALLOCATE ALL", "DISCARD ALL")
        assert client.checked().value == "both"
    assert run(other, "t") == [["both"]]


def test_all_statements_can_be_closed_in_the_middle_of_a_batch(one):
    client = one.client()
    prepare(client, "old", "SELECT 'old'")
    result = ask(
        client,
        wire.parse("DEALLOCATE ALL"),
        wire.bind(),
        wire.execute(),
        wire.parse("SELECT 'new'", "new"),
        wire.bind((), "new"),
        wire.execute(),
    )
    assert result.error is None
    assert run(client, "new") == [["new"]]
    with pytest.raises(ServerError, match="did not exist"):
        run(client, "old")


@pytest.mark.parametrize(
    "sql, name",
    [
        ("DEALLOCATE s", "s"),
        ("deallocate PREPARE S ;", "s"),
        ('DEALLOCATE "Mixed ""Case"', 'Mixed "Case'),
    ],
)
def test_deallocate_in_sql_closes_the_clients_own_name(one, sql, name):
    client, other = one.client(), one.client()
    prepare(client, name, "SELECT 1")
    prepare(other, name, "SELECT 1")
    result = client.query(sql)
    assert result.types == "CZ"
    assert result.tags == ["DEALLOCATE"]
    with pytest.raises(ServerError, match="did not exist"):
        run(client, name)
    assert run(other, name) == [["1"]]


def test_deallocate_in_a_failed_transaction_is_not_done(one):
    client = one.client()
    prepare(client, "s", "SELECT 'kept'")
    client.query("BEGIN")
    client.send(wire.query("SELECT 1/0"))
    assert client.result().error
    client.send(wire.query("DEALLOCATE s"))
    assert client.result().error.sqlstate == "25P02"
    client.query("ROLLBACK")
    assert run(client, "s") == [["kept"]]


def test_a_reset_query_closes_statements_too(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "server_reset_query": "DISCARD ALL",
            "server_reset_query_always": 1,
        }
    )
    client = pooler.client()
    prepare(client, "s", "SELECT 'here'")
    for _ in range(3):
        assert run(client, "s") == [["here"]]


def test_a_statement_that_the_server_lost_is_prepared_again(one):
    client, other = one.client(), one.client()
    prepare(client, "s", "SELECT 'here'")
    (name, _), = prepared(other)
    other.query(f'DEALLOCATE "{name}"')
    assert run(client, "s") == [["here"]]


# The unnamed statement


def test_the_unnamed_statement_belongs_to_its_client(one):
    first, second = one.client(), one.client()
    assert ask(first, wire.parse("SELECT 'first'")).types == "1Z"
    assert ask(second, wire.parse("SELECT 'second'")).types == "1Z"
    for _ in range(2):
        assert run(first, "") == [["first"]]
        assert run(second, "") == [["second"]]
    assert ask(first, wire.describe("S", "")).types == "tTZ"
    assert prepared(first) == []


def test_the_unnamed_statement_of_one_batch_can_be_used_in_the_next(one):
    first, second = one.client(), one.client()
    assert ask(first, wire.extended("SELECT 'first'")).rows == [["first"]]
    assert ask(second, wire.extended("SELECT 'second'")).rows == [["second"]]
    assert run(first, "") == [["first"]]


def test_the_unnamed_statement_ends_as_with_postgresql(one):
    client, other = one.client(), one.client()
    ask(client, wire.parse("SELECT 'gone'"))
    client.query("SELECT 1")
    with pytest.raises(ServerError):
        run(client, "")
    ask(client, wire.parse("SELECT 'gone'"))
    assert ask(client, wire.parse("SELECT nonsense")).error.sqlstate == "42703"
    ask(other, wire.parse("SELECT 'foreign'"))
    with pytest.raises(ServerError):
        run(client, "")
    ask(client, wire.parse("SELECT 'kept'"))
    result = ask(client, wire.bind((), "never"), wire.parse("SELECT 'skipped'"))
    assert result.error.sqlstate == "26000"
    assert run(client, "") == [["kept"]]


def test_an_unnamed_parse_that_was_skipped_reveals_no_other_statement(one):
    client, other = one.client(), one.client()
    ask(other, wire.parse("SELECT 'foreign'"))
    client.send(
        wire.bind((), "never"),
        wire.parse("SELECT 'mine'"),
        wire.sync(),
        wire.bind(),
        wire.execute(),
        wire.sync(),
    )
    assert client.result().error.sqlstate == "26000"
    result = answered(client)
    assert result.rows in ([], [["mine"]])


def test_long_unnamed_statements_work_while_they_are_needed(one):
    client = one.client()
    for length in (4000, 60000, 70000, 1000000):
        result = ask(client, wire.extended(f"SELECT '{'x' * length}'"))
        assert result.rows == [["x" * length]]


LONG = "SELECT $1::text || '" + "x" * 70000 + "'"


def test_a_long_unnamed_statement_of_one_batch_can_be_used_in_the_next(one):
    first, second = one.client(), one.client()
    for client in (first, second):
        assert ask(client, wire.parse(LONG), wire.describe("S")).types == "1tTZ"
    for client, value in ((first, "a"), (second, "b"), (first, "c")):
        assert run(client, "", [value]) == [[value + "x" * 70000]]


def test_a_server_stays_for_the_bind_of_an_unnamed_statement_beyond_max_prepared_memory(
    new_pooler, cluster
):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "max_prepared_memory": 200000,
            "idle_transaction_timeout": 600,
        }
    )
    first, second = pooler.client(), pooler.client()
    assert ask(first, wire.parse(LONG), wire.describe("S")).types == "1tTZ"
    second.send(wire.query("SELECT 'waits'"))
    wait_until(lambda: pooler.pool()["cl_waiting"] == 1, 10, "the second to wait")
    assert run(first, "", ["a"]) == [["a" + "x" * 70000]]
    assert second.result().rows == [("waits",)]
    # The statement went with the server.
    with pytest.raises(ServerError, match="26000"):
        run(first, "", ["b"])
    # The client may go without having used it.
    assert ask(first, wire.parse(LONG)).types == "1Z"
    first.close()
    assert second.query("SELECT 'served'").value == "served"


def test_a_server_that_stays_for_a_bind_is_under_idle_transaction_timeout(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "max_prepared_memory": 200000,
            "idle_transaction_timeout": 0.2,
        }
    )
    first, second = pooler.client(), pooler.client()
    assert ask(first, wire.parse(LONG)).types == "1Z"
    assert second.query("SELECT 'served'").value == "served"
    assert first.fatal().text == "idle transaction timeout"


# Outdated plans


@pytest.fixture
def table(one):
    client = one.client()
    client.query("DROP TABLE IF EXISTS changing; CREATE TABLE changing AS SELECT 1 AS a")
    yield "changing"
    one.client().query("DROP TABLE IF EXISTS changing")


def test_a_batch_with_an_outdated_plan_is_replayed(one, table):
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    assert run(client, "s") == [["1"]]
    for round_, column in enumerate("bcd"):
        other.query(f"ALTER TABLE {table} ADD COLUMN {column} int DEFAULT {round_}")
        assert len(run(client, "s")[0]) == round_ + 2


def test_a_batch_with_an_outdated_plan_is_replayed_as_a_whole(one, table):
    client, other, third = one.client(), one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    run(client, "s")
    other.query(f"ALTER TABLE {table} ADD COLUMN b int DEFAULT 2")
    result = ask(
        third,
        wire.parse(f"SELECT * FROM {table}", "mine"),
        wire.describe("S", "mine"),
        wire.bind((), "mine"),
        wire.describe("P"),
        wire.execute(),
        wire.parse("SELECT 3", "more"),
        wire.bind((), "more"),
        wire.execute(),
    )
    assert result.error is None
    assert result.types == "1tT2TDC12DCZ"
    assert result.rows == [["1", "2"], ["3"]]
    assert run(third, "more") == [["3"]]
    assert run(client, "s") == [["1", "2"]]


def change(client, table, column):
    """Make all plans of the table outdated."""
    client.query(f"ALTER TABLE {table} ADD COLUMN {column} int")


def batch_of(*values):
    """Bind of `s` with these, Execute and Sync."""
    return wire.bind(values, "s") + wire.execute() + wire.sync()


def unasked(sql):
    """A query without Describe and Sync."""
    return wire.parse(sql) + wire.bind() + wire.execute()


@pytest.mark.parametrize("size", [20_000, 60_000])
def test_a_batch_with_a_long_parameter_is_replayed(one, table, size):
    """The daemon reads it in several pieces."""
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT *, length($1::text) AS length FROM {table}")
    assert run(client, "s", ("x",)) == [["1", "1"]]
    for round_, column in enumerate("bcd"):
        change(other, table, column)
        client.send(batch_of("x" * size))
        result = answered(client)
        assert (result.error, result.rows[0][-1]) == (None, str(size))
        assert len(result.rows[0]) == 3 + round_


def test_a_batch_is_replayed_wherever_it_is_cut(one, table):
    """A slow client: the server has received the first piece before the second one comes."""
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT *, $1::text AS text FROM {table}")
    run(client, "s", ("x",))
    words = batch_of("slow")
    bind = len(wire.bind(("slow",), "s"))
    for cut in range(1, len(words)):
        change(other, table, f"column{cut}")
        parses = counts(one)[1]
        client.send(words[:cut])
        # The console command comes after the client's bytes.
        wait_until(lambda: counts(one)[1] == parses + (cut >= bind))
        client.send(words[cut:])
        result = answered(client)
        assert (result.error, result.rows[0][-1]) == (None, "slow")
        assert counts(one)[1] == parses + 1


def test_a_batch_is_replayed_after_other_batches(one, table):
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    run(client, "s")
    first = unasked("SELECT 'first'") + wire.sync()
    for round_, words in enumerate((first, wire.query("SELECT 'first'"))):
        change(other, table, f"column{round_}")
        client.send(words + batch_of())
        assert answered(client).rows == [["first"]]
        result = answered(client)
        assert (result.error, len(result.rows[0])) == (None, 2 + round_)


def test_an_outdated_plan_after_a_begin_is_reported(one, table):
    """The batch began a transaction, which its error has ended."""
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    run(client, "s")
    begin = unasked("BEGIN") + wire.sync()
    for round_, words in enumerate((begin, wire.query("BEGIN"))):
        change(other, table, f"column{round_}")
        client.send(words + batch_of())
        assert answered(client).status == "T"
        result = answered(client)
        assert (result.error.sqlstate, result.status) == ("0A000", "E")
        client.query("ROLLBACK")
        assert len(run(client, "s")[0]) == 2 + round_


def test_statements_before_an_outdated_plan_run_once(one, table):
    """A batch is one transaction: its error undoes what the client has seen the answers of."""
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    run(client, "s")
    change(other, table, "b")
    insert = unasked(f"INSERT INTO {table} VALUES (2)")
    client.send(insert + batch_of())
    result = answered(client)
    assert (result.types, result.error.sqlstate) == ("12CEZ", "0A000")
    assert run(client, "s") == [["1", None]]
    # The same with the answer of the INSERT sent on a Flush.
    change(other, table, "c")
    client.send(insert, wire.flush())
    assert "".join(client.read().type for _ in range(3)) == "12C"
    client.send(batch_of())
    assert answered(client).error.sqlstate == "0A000"
    assert run(client, "s") == [["1", None, None]]


def test_an_outdated_plan_in_a_transaction_is_an_error_once(one, table):
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    run(client, "s")
    other.query(f"ALTER TABLE {table} ADD COLUMN b int DEFAULT 2")
    client.query("BEGIN")
    result = ask(client, wire.bind((), "s"), wire.execute())
    assert result.error.sqlstate == "0A000"
    client.query("ROLLBACK")
    client.query("BEGIN")
    assert run(client, "s") == [["1", "2"]]
    client.query("COMMIT")


def test_an_outdated_plan_is_an_error_once_on_all_servers_together(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    client, other = pooler.client(), pooler.client()
    client.query("DROP TABLE IF EXISTS changing; CREATE TABLE changing AS SELECT 1 AS a")
    prepare(client, "s", "SELECT * FROM changing")
    prepare(other, "s", "SELECT * FROM changing")
    other.query("BEGIN")
    run(other, "s")
    run(client, "s")
    other.query("COMMIT")
    client.query("ALTER TABLE changing ADD COLUMN b int DEFAULT 2")
    client.query("BEGIN")
    assert ask(client, wire.bind((), "s"), wire.execute()).error.sqlstate == "0A000"
    other.query("BEGIN")
    assert run(other, "s") == [["1", "2"]]
    client.query("ROLLBACK")
    other.query("COMMIT")
    client.query("DROP TABLE changing")


def describe_statement(client, name):
    """Describe a statement; the number of its columns."""
    result = ask(client, wire.describe("S", name))
    assert result.error is None
    return len(result.columns)


def test_a_client_that_has_described_the_columns_gets_the_error(one, table):
    """A driver that has described a statement reads the rows by that description."""
    client, late, asks = one.client(), one.client(), one.client()
    text = f"SELECT * FROM {table}"
    for each in (client, late):
        prepare(each, "s", text)
        assert describe_statement(each, "s") == 1
        assert run(each, "s") == [["1"]]
    prepare(asks, "s", text)
    for _ in range(2):
        result = ask(asks, wire.bind((), "s"), wire.describe("P"), wire.execute())
        assert result.rows == [["1"]]
    asks.query(f"ALTER TABLE {table} ADD COLUMN b int DEFAULT 2")
    # The server described the first; after preparing anew the pooler describes the others the same
    # way.
    for each in (client, late):
        error = ask(each, wire.bind((), "s"), wire.execute()).error
        assert (error.sqlstate, error.text) == (
            "0A000", "cached plan must not change result type")
        assert error.fields["R"] == "RevalidateCachedQuery"
        prepare(each, "new", text)
        assert describe_statement(each, "new") == 2
        assert run(each, "new") == [["1", "2"]]
    # A client that sends Describe with each Bind never gets the error.
    result = ask(asks, wire.bind((), "s"), wire.describe("P"), wire.execute())
    assert (result.error, result.rows) == (None, [["1", "2"]])


@pytest.fixture
def mood(one):
    """The name of an enumerated type, and a function that drops and creates it again."""
    def create(client):
        client.query("DROP TYPE IF EXISTS mood; CREATE TYPE mood AS ENUM ('glad', 'sad')")

    with one.raw().login() as client:
        create(client)
        yield create
        client.query("DROP TYPE mood")


MOODS = (
    "SELECT $1::mood",
    "SELECT $1::text::mood",
    "SELECT $1::mood = ANY(enum_range(NULL::mood))",
    "SELECT ($1::mood[])[1]",
)


@pytest.mark.parametrize("text", MOODS)
def test_a_type_that_was_created_again_is_found(one, mood, text):
    """The text is the first client's, too, and the server has its plan with the type's former OID."""
    values = ["{glad}" if "[]" in text else "glad"]
    expected = [["t" if "ANY" in text else "glad"]]
    first, second, other = one.client(), one.client(), one.client()
    prepare(first, "s", text)
    assert run(first, "s", values) == expected
    mood(other)
    prepare(second, "s", text)
    assert describe_statement(second, "s") == 1
    assert run(second, "s", values) == expected


def test_a_batch_is_replayed_for_a_client_that_describes_each_time(one, table):
    client, other = one.client(), one.client()
    prepare(client, "s", f"SELECT * FROM {table}")
    assert describe_statement(client, "s") == 1
    other.query(f"ALTER TABLE {table} ADD COLUMN b int DEFAULT 2")
    result = ask(client, wire.bind((), "s"), wire.describe("P"), wire.execute())
    assert (result.error, result.rows) == (None, [["1", "2"]])


def test_a_client_that_prepares_again_gets_a_new_plan(one, table):
    client, other = one.client(), one.client()
    text = f"SELECT * FROM {table}"
    prepare(client, "s", text)
    prepare(other, "s", text)
    run(client, "s")
    other.query(f"ALTER TABLE {table} ADD COLUMN b int DEFAULT 2")
    client.query("BEGIN")
    ask(client, wire.close("S", "s"))
    prepare(client, "s", text)
    assert run(client, "s") == [["1", "2"]]
    client.query("COMMIT")
    other.query("BEGIN")
    assert run(other, "s") == [["1", "2"]]
    other.query(f"ALTER TABLE {table} ADD COLUMN c int DEFAULT 3")
    prepare(other, "another", text)
    assert run(other, "another") == [["1", "2", "3"]]
    other.query("COMMIT")


def test_other_errors_of_that_code_reach_the_client(one):
    client = one.client()
    result = ask(client, wire.extended("SELECT 1 FROM (VALUES (1)) t FOR UPDATE OF nothing"))
    assert result.error
    prepare(client, "s", "SELECT 1")
    result = client.query("SELECT 1")
    client.send(wire.query("CREATE TABLE x () PARTITION BY LIST (a), PARTITION BY LIST (b)"))
    assert client.result().error
    client.send(wire.query("DO $$ BEGIN RAISE EXCEPTION 'mine' USING ERRCODE = '0A000'; END $$"))
    error = client.result().error
    assert (error.sqlstate, error.text) == ("0A000", "mine")


# Statement mode


def test_statement_mode_has_prepared_statements_too(new_pooler):
    pooler = new_pooler({"pool_mode": "statement", "default_pool_size": 1})
    first, second = pooler.client(), pooler.client()
    prepare(first, "s", "SELECT 'first'")
    prepare(second, "s", "SELECT 'second'")
    assert run(first, "s") == [["first"]]
    assert run(second, "s") == [["second"]]


# Clients that come and go


def test_the_next_user_of_a_text_finds_it_after_the_first_has_left(one):
    for cut in range(4):
        client = one.client()
        messages = [
            wire.parse("SELECT 'shared'", "s"),
            wire.bind((), "s"),
            wire.execute(),
            wire.flush(),
        ]
        client.send(*messages[: cut + 1])
        if cut == 3:
            assert client.read().type == "1"
        client.reset()
        heir = one.client()
        prepare(heir, "mine", "SELECT 'shared'")
        assert run(heir, "mine") == [["shared"]]


def test_statements_are_freed_with_their_owners(one):
    for _ in range(3):
        client = one.client()
        for number in range(50):
            prepare(client, f"s{number}", f"SELECT {number}")
        client.leave()
    one.admin("RECONNECT")
    one.client().query("SELECT 1")

    def gone():
        client = one.client()
        prepare(client, "s", "SELECT 'last'")
        (name, _), = prepared(client)
        return name

    wait_until(lambda: gone().startswith("PGBOUNCER_"))


# SHOW


def statements(pooler, **where):
    """Rows of SHOW STATEMENTS, numbers as int."""
    return [
        {key: value if key in ("name", "query") else int(value) for key, value in row.items()}
        for row in pooler.show("STATEMENTS", **where)
    ]


def test_show_statements_lists_clients_and_servers_of_each(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    first, second = pooler.client(), pooler.client()
    assert statements(pooler) == []
    prepare(first, "a", "SELECT $1::int", [23])
    prepare(second, "b", "SELECT $1::int", [23])
    prepare(second, "c", "SELECT 'c'")
    run(first, "a", [1])
    holder = hold(pooler)
    run(second, "b", [2])  # on the other server
    holder.query("COMMIT")
    assert ask(first, wire.parse("SELECT 'unnamed'")).types == "1Z"
    one, other = statements(pooler)
    assert other["id"] == one["id"] + 1
    assert one["name"] == f"PGBOUNCER_{one['id']}"
    assert (one["clients"], one["servers"]) == (2, 2)
    assert (one["parses"], one["binds"], one["generation"]) == (2, 2, 0)
    assert (one["parameter_types"], one["query"]) == (1, "SELECT $1::int")
    assert (other["clients"], other["servers"]) == (1, 1)
    assert (other["parses"], other["binds"], other["parameter_types"]) == (1, 0, 0)
    assert other["query"] == "SELECT 'c'"
    assert 0 < other["size"] < one["size"]


def test_show_statements_follows_changes(one):
    client = one.client()
    text = f"SELECT '{'x' * 100000}'"
    prepare(client, "long", text)
    (row,) = statements(one)
    assert row["query"] == text
    prepare(client, "t", "SELECT 1")
    ask(client, wire.close("S", "t"))
    prepare(client, "t", "SELECT 1")
    assert statements(one, query="SELECT 1")[0]["generation"] == 1
    ask(client, wire.close("S", "t"))
    assert statements(one, query="SELECT 1")[0]["clients"] == 0
    client.query("DEALLOCATE ALL")
    assert statements(one) == []


def test_show_statements_can_be_searched_and_sorted(one):
    client = one.client()
    for number in range(5):
        prepare(client, f"s{number}", f"SELECT {number}")
    rows = one.command("SHOW STATEMENTS WHERE query <> 'SELECT 3' ORDER BY id DESC LIMIT 2").rows
    assert [row[-1] for row in rows] == ["SELECT 4", "SELECT 2"]


def test_texts_of_statements_need_admin_rights(one):
    """They may contain literals of any client."""
    prepare(one.client(), "s", "SELECT 'a secret'")
    console = one.console("stats")
    result = console.query("SHOW STATEMENTS")
    (row,) = result.rows
    assert result.dicts()[0]["query"] is None and result.dicts()[0]["parses"] == "1"
    for clause in ("WHERE query LIKE '%secret%'", "WHERE query IS NOT NULL"):
        assert console.query(f"SHOW STATEMENTS {clause}").rows == []
        assert len(one.command(f"SHOW STATEMENTS {clause}").rows) == 1
    console.send(wire.extended("SHOW STATEMENTS"), wire.sync())
    assert console.result().rows == [row]


def test_connections_show_how_many_statements_they_have(one):
    client = one.client()
    prepare(client, "a", "SELECT 1")
    prepare(client, "b", "SELECT 1")
    prepare(client, "c", "SELECT 2")
    (row,) = one.clients(user="app")
    assert row["prepared_statements"] == "3"
    (row,) = one.servers()
    assert row["prepared_statements"] == "2"
    (row,) = one.show("MEM", name="server_prepared_statement_cache")
    assert row["used"] == "2"
    client.query("DISCARD ALL")
    assert one.clients(user="app")[0]["prepared_statements"] == "0"
    assert one.servers()[0]["prepared_statements"] == "0"


def test_unnamed_statements_count_in_no_counter(one):
    client, other = one.client(), one.client()
    for each in (client, other):
        assert ask(each, wire.parse("SELECT 'unnamed'")).types == "1Z"
    for each in (client, other, client):
        assert run(each, "") == [["unnamed"]]
    assert counts(one) == (0, 0, 0)
    assert statements(one) == []


# DEALLOCATE by the extended protocol, as libpq's PQexecParams sends it


@pytest.mark.parametrize("sql", ["DEALLOCATE s", " deallocate PREPARE s;"])
def test_deallocate_by_the_extended_protocol_closes_the_clients_own_name(one, sql):
    client, other = one.client(), one.client()
    prepare(client, "s", "SELECT 1")
    prepare(other, "s", "SELECT 1")
    for before in ([], [wire.extended("SELECT 2")]):
        result = ask(client, *before, wire.extended(sql), wire.extended("SELECT 3"))
        assert result.error is None
        assert result.types.endswith("12nC12TDCZ")
        assert result.tags[-2] == "DEALLOCATE"
        with pytest.raises(ServerError, match="did not exist"):
            run(client, "s")
        assert run(other, "s") == [["1"]]
        prepare(client, "s", "SELECT 1")


def test_deallocate_that_an_error_skips_is_not_done(one):
    client = one.client()
    prepare(client, "s", "SELECT 'kept'")
    result = ask(client, wire.extended("SELECT 1/0"), wire.extended("DEALLOCATE s"))
    assert result.error.sqlstate == "22012"
    assert run(client, "s") == [["kept"]]
    client.query("BEGIN")
    client.send(wire.query("SELECT 1/0"))
    assert client.result().error
    assert ask(client, wire.extended("DEALLOCATE s")).error.sqlstate == "25P02"
    client.query("ROLLBACK")
    assert run(client, "s") == [["kept"]]


def test_deallocate_that_is_not_executed_closes_nothing(one):
    client = one.client()
    prepare(client, "s", "SELECT 'kept'")
    assert ask(client, wire.parse("DEALLOCATE s")).types == "1Z"
    assert ask(client, wire.extended("SELECT 1")).rows == [["1"]]
    assert run(client, "s") == [["kept"]]


@pytest.mark.parametrize("sql", ["DEALLOCATE ALL", "/* all */ discard all"])
def test_messages_sent_after_it_in_the_extended_protocol_prepare_anew(one, sql):
    client, other = one.client(), one.client()
    prepare(other, "t", "SELECT 'shared'")
    if "discard" in sql:
        client.send(wire.extended(sql), wire.sync())
    else:
        client.send(
            wire.extended(sql),
            wire.parse("SELECT 'shared'", "a"),
            wire.bind((), "a"),
            wire.execute(),
            wire.sync(),
        )
    client.send(
        wire.parse("SELECT 'shared'", "b"), wire.bind((), "b"), wire.execute(), wire.sync()
    )
    assert answered(client).error is None
    assert answered(client).rows == [["shared"]]


# ------------------------------------------------------------------------------------------------
# Unnamed statements that are planned once


@pytest.fixture
def caching(new_pooler):
    """A pooler with one server for all that plans repeated unnamed statements once."""
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "cache_unnamed": 1}
    )


def unnamed(client, sql, values=(), *more):
    """Parse, Bind and Execute of the unnamed statement in one batch."""
    return ask(client, wire.parse(sql), wire.bind(values), *more, wire.execute())


def repeat(client, sql, values=(), times=3):
    for _ in range(times):
        result = unnamed(client, sql, values, wire.describe())
        assert result.types == "12TDCZ", result.error
    return result.rows


@pytest.mark.setting("cache_unnamed")
def test_repeated_unnamed_statements_are_planned_once(caching):
    one, two = caching.client(), caching.client()
    sql = "SELECT $1::int + 1"
    assert repeat(one, sql, ["1"]) == [["2"]]
    assert [row[1] for row in prepared(one)] == [sql]
    parses = counts(caching)[1]
    assert repeat(one, sql, ["2"], 5) == [["3"]]
    assert repeat(two, sql, ["3"], 2) == [["4"]]
    assert counts(caching)[1] == parses
    # The text says what is meant, in whatever way it is used.
    assert ask(two, wire.parse(sql)).types == "1Z"
    assert run(one, "", ["5"]) == [["6"]]
    assert run(two, "", ["4"]) == [["5"]]
    described = ask(two, wire.parse(sql), wire.describe("S"))
    assert described.types == "1tTZ"
    assert ask(two, wire.parse(sql), wire.bind(["1", "2"])).error.sqlstate == "08P01"
    assert unnamed(two, sql, ["6"]).rows == [["7"]]


@pytest.mark.setting("cache_unnamed")
def test_unnamed_statements_are_sent_as_they_are_by_default(one):
    client = one.client()
    repeat(client, "SELECT 1", times=6)
    assert prepared(client) == []


@pytest.mark.setting("cache_unnamed")
@pytest.mark.parametrize("sql", [
    "SELECT 'a\\b'", "SELECT 'é'", "SELECT set_config('app.a', 'x', false)",
    "SHOW work_mem", "EXPLAIN SELECT 1", f"SELECT 1 /* {'x' * 70000} */",
])
def test_what_depends_on_the_session_is_not_cached(caching, sql):
    client = caching.client()
    for _ in range(4):
        assert unnamed(client, sql).error is None
    assert prepared(client) == []


@pytest.mark.setting("cache_unnamed")
def test_a_cached_plan_follows_the_schema(caching, shared_table):
    client = caching.client()
    sql = f"SELECT * FROM {shared_table}"
    for _ in range(3):
        assert unnamed(client, sql, (), wire.describe()).rows == [["1"]]
    assert len(prepared(client)) == 1
    client.query(f"ALTER TABLE {shared_table} ADD b text DEFAULT 'x'")
    assert unnamed(client, sql).rows == [["1", "x"]]
    assert unnamed(client, sql, (), wire.describe()).rows == [["1", "x"]]


@pytest.mark.setting("cache_unnamed")
def test_a_cached_plan_is_not_used_beside_a_temporary_table(new_pooler, shared_table):
    pooler = new_pooler({
        "pool_mode": "transaction", "default_pool_size": 1, "max_pinned": 1, "cache_unnamed": 1,
    })
    client = pooler.client()
    sql = f"SELECT * FROM {shared_table}"
    for _ in range(4):
        assert unnamed(client, sql).rows == [["1"]]
    client.query(f"CREATE TEMP TABLE {shared_table} AS SELECT 2 AS a")
    assert unnamed(client, sql).rows == [["2"]]
    client.query("BEGIN")
    assert unnamed(client, sql).rows == [["2"]]
    client.query(f"DROP TABLE pg_temp.{shared_table}; COMMIT")
    assert unnamed(client, sql).rows == [["1"]]


@pytest.mark.setting("cache_unnamed")
def test_a_cached_statement_fails_in_a_failed_transaction(caching):
    client = caching.client()
    repeat(client, "SELECT 1", times=4)
    client.query("BEGIN")
    assert unnamed(client, "SELECT 1/0").error.sqlstate == "22012"
    failed = unnamed(client, "SELECT 1")
    assert (failed.types, failed.error.sqlstate) == ("EZ", "25P02")
    client.query("ROLLBACK")
    # Of several batches in one write, and of one batch behind an error.
    client.send(
        wire.query("BEGIN"), wire.query("SELECT 1/0"),
        wire.parse("SELECT 1"), wire.bind(), wire.execute(), wire.sync(),
        wire.query("ROLLBACK"),
    )
    assert [answered(client).types for _ in range(4)] == ["CZ", "EZ", "EZ", "CZ"]
    skipped = ask(
        client, wire.parse("SELECT 1/0", "x"), wire.bind((), "x"), wire.execute(),
        wire.parse("SELECT 1"), wire.bind(), wire.execute(),
    )
    assert (skipped.types, skipped.error.sqlstate) == ("1EZ", "22012")
    assert unnamed(client, "SELECT 1").rows == [["1"]]


@pytest.mark.setting("cache_unnamed")
def test_the_unnamed_statement_before_a_skipped_one_is_still_there(caching):
    client = caching.client()
    for sql in ("SELECT 1", "SELECT 2"):
        repeat(client, sql, times=4)
    assert ask(client, wire.parse("SELECT 1")).types == "1Z"
    ask(client, wire.bind((), "none"), wire.parse("SELECT 2"))
    assert run(client, "") == [["1"]]
