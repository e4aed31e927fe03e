# SPDX-License-Identifier: ISC
"""The protocol after login: which messages pass, in what order, and when a server is released."""

import struct
import threading

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import stays, wait_until
from support.servers.pooler import is_sanitized

MEGABYTE = 1_000_000


def free_again(pooler):
    """The server is back in the pool, and the next client gets an answer."""
    pooler.wait_pool(sv_active=0, sv_idle=1)
    assert pooler.client().value("SELECT 'next'") == "next"
    return True


# Simple queries


def test_simple_queries_pass_unchanged(pooler, cluster):
    client = pooler.client()
    result = client.query("SELECT 1 AS a, NULL AS b, 'ä€😀' AS c")
    assert result.types == "TDCZ"
    assert (result.names, result.rows) == (["a", "b", "c"], [("1", None, "ä€😀")])
    assert (result.tag, result.status) == ("SELECT 1", "I")
    result = client.query("SELECT 1; SELECT 2; SELECT 3")
    assert (result.types, result.rows) == ("TDCTDCTDCZ", [("1",), ("2",), ("3",)])
    assert client.query("").types == "IZ"
    assert client.query(" ; ").types == "IZ"


def test_an_error_passes_with_all_its_fields(pooler):
    client = pooler.client()
    with pytest.raises(ServerError) as caught:
        client.query("SELECT 1/0")
    fields = caught.value.fields
    assert (fields["S"], fields["V"], fields["C"]) == ("ERROR", "ERROR", "22012")
    assert fields["M"] == "division by zero" and {"F", "L", "R"} <= set(fields)
    assert client.value("SELECT 1") == "1"


def test_many_rows_pass(pooler):
    client = pooler.client()
    result = client.query("SELECT i, repeat('x', 100) FROM generate_series(1, 20000) i")
    assert len(result.rows) == 20000
    assert [int(row[0]) for row in result.rows] == list(range(1, 20001))


def test_notices_pass_in_their_order(pooler):
    result = pooler.client().query("DO $$ BEGIN RAISE NOTICE 'hear, hear'; END $$")
    assert result.types == "NCZ"
    assert result.notices[0]["M"] == "hear, hear"


def test_parameter_changes_are_reported(session_pooler):
    result = session_pooler.client().query("SET application_name = 'new'")
    assert ("application_name", "new") in result.parameters


def test_notifications_reach_a_session(session_pooler, cluster):
    client = session_pooler.client()
    client.query("LISTEN news")
    cluster.ask("main", "SELECT pg_notify('news', 'it works')")
    found = client.read()
    assert found.type == "A"
    assert found.body[4:] == b"news\0it works\0"


# The extended protocol


def test_one_batch(pooler):
    client = pooler.client()
    client.send(
        wire.parse("SELECT $1::int + $2::int AS sum", types=(23, 23)),
        wire.describe("S"),
        wire.bind([3, 4]),
        wire.describe("P"),
        wire.execute(),
        wire.sync(),
    )
    result = client.checked()
    assert result.types == "1tT2TDCZ"
    assert result.rows == [("7",)]


def test_names_of_statements_pass_untouched(session_pooler):
    client = session_pooler.client()
    client.send(wire.parse("SELECT 'named'", "my statement"), wire.sync())
    client.checked()
    assert client.value("SELECT name FROM pg_prepared_statements") == "my statement"
    client.send(wire.bind(statement="my statement"), wire.execute(), wire.sync())
    assert client.checked().value == "named"
    client.send(wire.close("S", "my statement"), wire.sync())
    assert client.checked().types == "3Z"
    assert client.query("SELECT name FROM pg_prepared_statements").rows == []


def test_a_named_statement_inside_one_transaction(pooler):
    client = pooler.client()
    client.query("BEGIN")
    client.send(wire.parse("SELECT 'x'", "inside"), wire.sync())
    client.checked()
    client.send(wire.bind(statement="inside"), wire.execute(), wire.sync())
    assert client.checked().value == "x"
    client.send(wire.close("S", "inside"), wire.sync())
    client.checked()
    client.query("COMMIT")


def test_portals_are_fetched_in_parts(pooler):
    client = pooler.client()
    client.query("BEGIN")
    client.send(
        wire.parse("SELECT generate_series(1, 5)"),
        wire.bind(portal="cursor"),
        wire.execute("cursor", 2),
        wire.execute("cursor", 2),
        wire.flush(),
    )
    assert [m.type for m in client.read_until("s")] == ["1", "2", "D", "D", "s"]
    assert [m.type for m in client.read_until("s")] == ["D", "D", "s"]
    client.send(wire.execute("cursor", 2), wire.sync())
    assert client.checked().types == "DCZ"
    client.query("COMMIT")


def test_flush_brings_answers_before_the_sync(pooler):
    client = pooler.client()
    client.send(wire.parse("SELECT 1"), wire.flush())
    assert client.read().type == "1"
    client.send(wire.bind(), wire.flush())
    assert client.read().type == "2"
    client.send(wire.execute(), wire.flush())
    assert [m.type for m in client.read_until("C")] == ["D", "C"]
    client.send(wire.sync())
    assert client.checked().types == "Z"


def test_an_error_skips_to_the_sync(one_server):
    client = one_server.client()
    fails = "SELECT 1 / (random() * 0)::int"
    client.send(wire.extended(fails), wire.extended("SELECT 2"), wire.sync())
    result = client.result()
    assert result.types == "12TEZ" and result.error.sqlstate == "22012"
    assert client.extended("SELECT 3").value == "3"
    assert free_again(one_server)


def test_an_error_is_passed_before_the_sync_is_sent(pooler):
    client = pooler.client()
    client.send(wire.parse("SELEC"), wire.flush())
    assert client.error().sqlstate == "42601"
    client.send(wire.sync())
    assert client.checked().types == "Z"


def test_a_lone_sync_is_answered(one_server):
    client = one_server.client()
    client.send(wire.sync())
    assert client.checked().types == "Z"
    assert free_again(one_server)


def test_a_long_pipeline_is_answered_in_order(one_server):  # F24
    client = one_server.client()
    parts = []
    for number in range(30):
        sql = "SELECT 1/0" if number % 3 == 1 else f"SELECT {number}"
        parts.append(wire.extended(sql) + wire.extended("SELECT 'more'") + wire.sync())
    client.send(b"".join(parts))
    for number in range(30):
        result = client.result()
        if number % 3 == 1:
            assert result.error.sqlstate == "22012" and result.rows == []
        else:
            assert result.rows == [(str(number),), ("more",)]
    assert free_again(one_server)


def test_simple_queries_may_be_pipelined(one_server):
    client = one_server.client()
    client.send(b"".join(wire.query(f"SELECT {number}") for number in range(50)))
    assert [client.checked().value for _ in range(50)] == [str(n) for n in range(50)]
    assert free_again(one_server)


def test_thousands_of_syncs_are_answered_each(one_server):  # F17
    client = one_server.client()
    count = 3000
    sender = threading.Thread(target=client.send, args=(wire.sync() * count,))
    sender.start()
    messages = [client.read() for _ in range(count)]
    sender.join()
    assert {message.type for message in messages} == {"Z"}
    assert free_again(one_server)


def test_psycopg_pipelines_work(pooler):
    connection = pooler.connect()
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", [number]) for number in range(100)]
        assert [cursor.fetchone()[0] for cursor in cursors] == list(range(100))


def test_a_function_call_is_answered(one_server, cluster):
    client = one_server.client()
    oid = int(cluster.value("SELECT 'int4abs'::regproc::oid::int"))
    client.send(wire.function_call(oid, [-42]))
    messages = client.read_until("Z")
    assert [message.type for message in messages] == ["V", "Z"]
    assert messages[0].body == struct.pack("!i", 2) + b"42"
    client.send(wire.function_call(oid, []))
    assert client.result().error.severity == "ERROR"
    assert free_again(one_server)


# COPY


@pytest.fixture
def copy_table(cluster):
    """An empty table for COPY; count() returns the rows of the test."""
    with cluster.connect("main", "app") as connection:
        connection.execute("DROP TABLE IF EXISTS copied")
        connection.execute("CREATE TABLE copied (number int, word text)")

    def count():
        return cluster.ask("main", "SELECT count(*) AS n FROM copied")[0]["n"]

    yield count
    cluster.ask("main", "DROP TABLE copied")


COPY = "COPY copied FROM STDIN"


def start_copy(client, sql=COPY):
    client.send(wire.query(sql))
    assert client.read().type == "G"
    return client


def test_copy_in(one_server, copy_table):
    client = start_copy(one_server.client())
    for number in range(1000):
        client.send(wire.copy_data(f"{number}\tword\n".encode()))
    one_server.wait_pool(sv_active=1)
    client.send(wire.copy_done())
    assert client.checked().tag == "COPY 1000"
    assert copy_table() == 1000
    assert free_again(one_server)


def test_copy_in_by_the_extended_protocol(one_server, copy_table):
    client = one_server.client()
    client.send(wire.parse(COPY), wire.bind(), wire.execute(), wire.flush())
    assert [m.type for m in client.read_until("G")] == ["1", "2", "G"]
    client.send(wire.copy_data(b"1\tone\n"), wire.copy_done(), wire.sync())
    assert client.checked().tag == "COPY 1"
    assert copy_table() == 1
    assert free_again(one_server)


def test_a_sync_sent_with_the_execute_of_a_copy_gets_no_answer(one_server, copy_table):
    client = one_server.client()
    client.send(wire.parse(COPY), wire.bind(), wire.execute(), wire.sync())
    assert [m.type for m in client.read_until("G")] == ["1", "2", "G"]
    client.send(wire.copy_data(b"1\tone\n"), wire.copy_done(), wire.sync())
    assert client.checked().types == "CZ"
    client.send(wire.sync())
    assert client.checked().types == "Z"
    assert copy_table() == 1
    assert free_again(one_server)


def test_a_whole_copy_may_be_sent_ahead(one_server, copy_table):
    client = one_server.client()
    client.send(
        wire.parse(COPY), wire.bind(), wire.execute(), wire.sync(),
        wire.copy_data(b"1\tone\n"), wire.copy_done(), wire.sync(),
        wire.extended("SELECT 'after'"), wire.sync(),
    )
    assert [m.type for m in client.read_until("Z")] == ["1", "2", "G", "C", "Z"]
    assert client.checked().value == "after"
    assert copy_table() == 1
    assert free_again(one_server)


def test_a_simple_copy_may_be_sent_ahead(one_server, copy_table):
    client = one_server.client()
    client.send(
        wire.query(COPY), wire.copy_data(b"1\tone\n"), wire.copy_done(), wire.query("SELECT 'after'")
    )
    assert client.checked().types == "GCZ"
    assert client.checked().value == "after"
    assert free_again(one_server)


def test_copy_fail_ends_a_copy(one_server, copy_table):
    client = start_copy(one_server.client())
    client.send(wire.copy_data(b"1\tone\n"), wire.copy_fail("changed my mind"))
    error = client.result().error
    assert error.sqlstate == "57014" and "changed my mind" in error.text
    assert copy_table() == 0
    assert free_again(one_server)


def test_the_server_of_a_failed_copy_is_released_at_the_late_end(one_server, copy_table):  # F22
    client, other = one_server.client(), one_server.client()
    client.query("SELECT 1")
    start_copy(client)
    client.send(wire.copy_data(b"not a number\tx\n"))
    # The server stops at the error; the client may not have read it and still sends rows.
    assert client.result().error.sqlstate == "22P02"
    before = one_server.stats()["query_count"]
    for _ in range(10):
        client.send(wire.copy_data(b"1\tone\n"))
    client.send(wire.copy_done())
    assert other.value("SELECT 'served'") == "served"
    one_server.wait_pool(sv_active=0, sv_idle=1)
    # The late end does not count as a query.
    assert one_server.stats()["query_count"] == before + 1
    assert client.value("SELECT 'again'") == "again"
    assert copy_table() == 0
    assert free_again(one_server)


def test_a_failed_copy_that_goes_on_blocks_no_pool(one_server, copy_table):
    """The server says ReadyForQuery in the middle, and the client sends a megabyte more: PgBouncer
    1.25 kept that server."""
    client, other = one_server.client(), one_server.client()
    start_copy(client)
    client.send(wire.copy_data(b"not a number\tx\n"))
    assert client.result().error.sqlstate == "22P02"
    for _ in range(16):
        client.send(wire.copy_data(b"1\tone\n" * 8192))
        other.send(wire.query("SELECT 'served'"))
        client.send(wire.copy_data(b"2\ttwo\n"))
        assert other.checked(5).value == "served"
    client.send(wire.copy_done())
    assert client.value("SELECT 'again'") == "again"
    assert copy_table() == 0
    assert free_again(one_server)


def test_a_failed_copy_of_the_extended_protocol(one_server, copy_table):
    client = one_server.client()
    client.send(wire.parse(COPY), wire.bind(), wire.execute(), wire.sync())
    client.read_until("G")
    client.send(wire.copy_data(b"bad\tx\n"))
    assert client.error().sqlstate == "22P02"
    client.send(wire.copy_data(b"1\tone\n"), wire.copy_done(), wire.sync())
    assert client.checked().types == "Z"
    assert client.value("SELECT 1") == "1"
    assert free_again(one_server)


def test_a_copy_that_fails_in_a_transaction_keeps_its_server(one_server, copy_table):
    client, other = one_server.client(), one_server.client()
    client.query("BEGIN")
    start_copy(client)
    client.send(wire.copy_data(b"bad\tx\n"), wire.copy_done())
    assert client.result().status == "E"
    other.send(wire.query("SELECT 2"))
    assert other.silent(0.2)
    client.query("ROLLBACK")
    assert other.checked().value == "2"


def test_unexpected_copy_data_is_ignored(one_server):  # F17
    client, other = one_server.client(), one_server.client()
    client.query("SELECT 1")
    client.send(wire.copy_data(b"x"), wire.copy_done(), wire.copy_fail())
    assert other.value("SELECT 2") == "2"
    assert client.value("SELECT 3") == "3"
    assert free_again(one_server)


def test_copy_out(one_server):
    client = one_server.client()
    sql = "COPY (SELECT i FROM generate_series(1, 1000) i) TO STDOUT"
    client.send(wire.query(sql))
    messages = client.read_until("Z")
    assert "".join(m.type for m in messages) == "H" + "d" * 1000 + "cCZ"
    assert b"".join(m.body for m in messages if m.type == "d").split() == [
        str(number).encode() for number in range(1, 1001)
    ]
    assert free_again(one_server)


def test_copy_out_by_the_extended_protocol(one_server):
    client = one_server.client()
    client.send(wire.parse("COPY (SELECT 7) TO STDOUT"), wire.bind(), wire.execute(), wire.sync())
    assert [m.type for m in client.read_until("Z")] == list("12HdcCZ")
    assert free_again(one_server)


def test_psycopg_copies_both_ways(pooler, copy_table):
    connection = pooler.connect()
    with connection.cursor() as cursor:
        with cursor.copy(COPY) as copy:
            for number in range(5000):
                copy.write_row((number, "w" * 50))
        with cursor.copy("COPY copied TO STDOUT") as copy:
            assert sum(1 for _ in copy.rows()) == 5000


# Large messages


@pytest.mark.setting("pkt_buf")
@pytest.mark.parametrize("pkt_buf", [64, 1000, 4096])
@pytest.mark.parametrize("size", [40, 59, 60, 64, 990, 1000, 4090, 4096, 5000, 70000])
def test_messages_of_every_size_pass(new_pooler, pkt_buf, size):
    pooler = new_pooler({"pool_mode": "transaction", "pkt_buf": pkt_buf})
    client = pooler.client()
    sql = "SELECT '" + "x" * size + "'"
    assert client.value(sql) == "x" * size
    assert client.extended("SELECT $1::text", ["y" * size]).value == "y" * size
    client.send(wire.query(sql) * 5)
    assert [client.checked().value for _ in range(5)] == ["x" * size] * 5


def test_huge_messages_stream_through(one_server):  # F27
    client = one_server.client()
    client.query("SELECT 1")
    text = "x" * (24 * MEGABYTE)
    memory = one_server.memory()
    for _ in range(3):
        assert client.value(f"SELECT length('{text}')") == str(len(text))
    assert client.extended("SELECT length($1::text)", [text]).value == str(len(text))
    assert len(client.value(f"SELECT repeat('y', {len(text)})")) == len(text)
    if not is_sanitized():
        assert one_server.memory() - memory < 4 * MEGABYTE
    assert free_again(one_server)


@pytest.mark.setting("max_packet_size")
def test_a_message_over_max_packet_size_ends_the_client(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_packet_size": 10000})
    client = pooler.client()
    assert client.value("SELECT length('" + "x" * 9000 + "')") == "9000"
    packet = wire.query("SELECT '" + "x" * 10000 + "'")
    client.send(packet[:2000])
    assert client.fatal().is_("FATAL", "08P01", f"bad packet header: '{packet[:8].hex()}'")


@pytest.mark.setting("max_packet_size")
def test_a_message_over_max_packet_size_ends_the_server(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_packet_size": 10000})
    client = pooler.client()
    client.send(wire.query("SELECT repeat('x', 20000)"))
    error = client.fatal()
    assert (error.severity, error.sqlstate) == ("FATAL", "08P01")
    assert pooler.wait_log("closing because: bad pkt header")
    assert pooler.client().value("SELECT 1") == "1"


def test_a_slow_reader_blocks_its_server_and_fills_no_memory(new_pooler, cluster):  # F26
    pooler = new_pooler({"pool_mode": "transaction"})
    clients = [pooler.client() for _ in range(4)]
    for client in clients:
        client.query("SELECT 1")
    memory = pooler.memory()
    for client in clients:
        client.send(wire.query("SELECT repeat('x', 10000) FROM generate_series(1, 20000)"))
        client.read_bytes(100000)
    wait_until(
        lambda: len(cluster.backends(state="active", wait_event="ClientWrite")) == 4,
        what="the servers to be held up",
    )
    if not is_sanitized():
        assert pooler.memory() - memory < 20 * MEGABYTE
    assert pooler.client().value("SELECT 'others go on'") == "others go on"
    for client in clients:
        client.reset()
    wait_until(lambda: not cluster.backends(state="active"), 6, "the servers to be let go")


def test_a_slow_writer_keeps_no_server(new_pooler):  # F25
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    writers = [pooler.client() for _ in range(30)]
    message = wire.query("SELECT 'slow'")
    for at in range(len(message) - 1):
        for client in writers:
            client.send(message[at:at + 1])
        if at % 5 == 0:
            assert pooler.pool()["sv_active"] == 0
    assert pooler.client().value("SELECT 'fast'") == "fast"
    for client in writers:
        client.send(message[-1:])
    assert [client.checked().value for client in writers] == ["slow"] * 30


def test_a_cut_batch_is_sent_when_it_is_whole(one_server):  # F25
    client, other = one_server.client(), one_server.client()
    batch = wire.extended("SELECT 'late'") + wire.sync()
    client.send(batch[:10])
    assert other.value("SELECT 1") == "1"
    client.send(batch[10:])
    assert client.checked().value == "late"
    assert free_again(one_server)


def test_a_message_of_two_gigabytes_in_small_pieces_is_bounded(one_server):  # F27
    client = one_server.client()
    memory = one_server.memory()
    client.send(b"Q" + struct.pack("!I", 2**31 - 2) + b"SELECT '")
    for _ in range(20):
        client.send(b"x" * 50000)
    if not is_sanitized():
        assert one_server.memory() - memory < 5 * MEGABYTE
    client.reset()
    one_server.wait_pool(cl_active=0, sv_active=0)
    assert one_server.client().value("SELECT 1") == "1"


# Disconnects


def test_terminate_closes(pooler):
    client = pooler.client()
    client.send(wire.terminate())
    assert client.closed()
    assert pooler.wait_log(r"closing because: client close request \(age=\d+s\)$")


def test_a_close_without_terminate_is_noticed(pooler):
    pooler.client().close()
    assert pooler.wait_log(r"closing because: client unexpected eof \(age=\d+s\)$")


def test_half_close_after_sending_leaves_nothing(one_server):  # F28
    for sql in ("SELECT 1", "SELECT pg_sleep(0.2)", "BEGIN"):
        client = one_server.client()
        client.send(wire.query(sql))
        client.shut_down_write()
        messages = client.read_all()
        assert {message.type for message in messages} <= set("TDCZE")
    one_server.wait_pool(cl_active=0, cl_waiting=0, sv_active=0)
    assert one_server.client().value("SELECT 1") == "1"


def test_query_and_terminate_in_one_write_leave_nothing(one_server, cluster):
    client = one_server.client()
    one = client.value("SELECT pg_backend_pid()")
    client.send(wire.query("SELECT pg_sleep(30)"), wire.terminate())
    assert client.closed()
    assert one_server.client().value("SELECT pg_backend_pid()") == one


def test_a_client_that_read_everything_leaves_a_clean_server(one_server):
    pids = set()
    for _ in range(20):
        client = one_server.client()
        client.send(wire.extended("SELECT pg_backend_pid()"), wire.sync())
        pids.add(client.checked().value)
        client.leave()
    assert len(pids) == 1
    assert not one_server.lines("query in progress|queries in progress|not ready")


# Messages that are not allowed


@pytest.mark.parametrize("kind", ["y", "p", "~", "Z", "R", "T"])
def test_unknown_types_end_that_client(one_server, kind):  # F17
    other = one_server.client()
    client = one_server.client()
    client.send(wire.message(kind, b"x\0"))
    assert client.fatal().is_("FATAL", "08P01", "unknown pkt")
    code = ord(kind)
    assert one_server.wait_log(rf"unknown pkt from client: {code}/0x{code:x}")
    assert other.value("SELECT 1") == "1"


def test_a_startup_packet_after_login_ends_that_client(one_server):  # F05
    client = one_server.client().send_startup()
    assert client.fatal().severity == "FATAL"
    assert one_server.client().value("SELECT 1") == "1"


@pytest.mark.setting("disable_pqexec")
def test_disable_pqexec_refuses_simple_queries(new_pooler):
    pooler = new_pooler({"disable_pqexec": 1})
    client = pooler.client()
    assert client.extended("SELECT 1").value == "1"
    client.send(wire.query("SELECT 1"))
    assert client.fatal().is_("FATAL", "08P01", "PQexec disallowed")
    assert pooler.lines('client used "Query" packet type')


def test_bytes_in_pieces_give_the_same_answers(new_pooler, new_relay, cluster):
    """Both directions cut into single bytes: no answer may depend on packet boundaries."""
    pooler = new_pooler({"pool_mode": "transaction", "pkt_buf": 64})
    client = pooler.client()
    data = (
        wire.extended("SELECT 'a'") + wire.sync() + wire.query("SELECT 'b'")
        + wire.query("BEGIN") + wire.extended("SELECT 'c'") + wire.sync() + wire.query("COMMIT")
    )
    for at in range(len(data)):
        client.send(data[at:at + 1])
    assert [client.checked().value for _ in range(5)] == ["a", "b", None, "c", None]
    assert free_again(pooler)


def test_a_server_that_sends_single_bytes_is_understood(new_pooler, new_server):
    def script(connection):
        connection.login()
        while True:
            answer = wire.one_row(connection.next_query())
            for at in range(len(answer)):
                connection.send(answer[at:at + 1])

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    for number in range(10):
        assert client.value(f"query {number}") == f"query {number}"
    pooler.wait_pool(sv_idle=1)
    assert server.count == 1


def test_a_server_is_not_released_before_its_answer_is_delivered(new_pooler, new_server):
    """At the ReadyForQuery the client may not have been able to receive the rows."""
    big = "x" * (8 * MEGABYTE)

    def answer(connection, sql):
        return wire.one_row(big if sql == "big" else sql)

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1}, databases={"main": server.target()}
    )
    slow, other = pooler.client(), pooler.client()
    slow.send(wire.query("big"))
    slow.read_bytes(1000)
    other.send(wire.query("small"))
    assert other.silent(0.3)
    slow.read_bytes(len(wire.one_row(big)) - 1000)
    assert other.checked().value == "small"


def test_idle_clients_use_no_buffers(pooler):
    clients = [pooler.client() for _ in range(50)]
    clients[0].query("SELECT 1")
    stays(lambda: pooler.pool()["sv_active"] == 0, 0.1)
    assert pooler.pool()["cl_active"] == 50
