# SPDX-License-Identifier: ISC
"""The log of slow queries and SHOW SLOW: where the time of a query went, and what it was."""

import json
import re

import psycopg
import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import ServerError, cancel
from support.process import PATIENCE, free_port, stays, wait_until

ALL = {"log_min_duration": 0}
ONE = {"pool_mode": "transaction", "default_pool_size": 1}
# Parts of a second, in microseconds.
TENTH = 100_000
ZONES = ("Europe/Paris", "America/Lima")
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
NUMBERS = ("total_us", "queue_us", "server_us", "client_us", "rows", "bytes", "bytes_in", "text_bytes")


def slow(pooler, **where):
    """The rows of SHOW SLOW that match, latest first, with numbers."""
    return [
        {key: int(value) if key in NUMBERS else value for key, value in row.items()}
        for row in pooler.show("SLOW", **where)
    ]


def last(pooler, **where):
    """The last of them, as soon as there is one."""
    return wait_until(lambda: slow(pooler, **where), 10, f"a slow query with {where}")[0]


def lines(pooler, pattern=""):
    """The lines of the log."""
    return pooler.lines(rf"slow query: total=.*{pattern}")


def check_sum(row):
    """The parts are the whole."""
    assert row["queue_us"] + row["server_us"] + row["client_us"] == row["total_us"]


def rows_of(pooler, sql):
    """The rows with this text."""
    return [row for row in slow(pooler) if row["text"] == sql]


def fails(client, sql):
    """The query gets an error."""
    with pytest.raises(ServerError):
        client.query(sql)


def passes(seconds):
    """Time passes, in which nothing happens."""
    stays(lambda: True, seconds)


# Where the time went


@pytest.mark.setting("log_min_duration")
def test_time_at_the_server_is_the_servers(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "200ms"})
    client = pooler.client(application_name="batch job")
    client.query("SELECT 'fast'")
    client.query("SELECT pg_sleep(0.3), 'slow'")
    row = last(pooler)
    assert row["text"] == "SELECT pg_sleep(0.3), 'slow'"
    assert (row["database"], row["user"], row["application_name"]) == ("main", "app", "batch job")
    assert (row["client_addr"], row["cause"], row["rows"]) == ("127.0.0.1", "server", 1)
    assert 3 * TENTH <= row["server_us"] <= row["total_us"] < 20 * TENTH
    assert row["queue_us"] + row["client_us"] < TENTH
    assert (row["error"], row["ended"], row["traceparent"], row["parameters"]) == (None,) * 4
    # A DataRow: header, count, a column of no byte, one of four.
    assert row["bytes"] == 5 + 2 + 4 + 4 + 4
    assert row["bytes_in"] == 5 + len(row["text"]) + 1
    check_sum(row)
    (line,) = lines(pooler)
    assert " LOG C-0x" in line
    assert re.search(
        r": main/app@127\.0\.0\.1:\d+ slow query: total=\d+\.\d{3}ms queue=0\.000ms server=\d+\.\d{3}ms "
        r"client=0\.000ms cause=server rows=1 bytes=19 bytes_in=\d+ application=\"batch job\" "
        r"text=\"SELECT pg_sleep\(0\.3\), 'slow'\"$",
        line,
    )


def test_time_in_the_queue_is_ours(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "100ms"})
    holder, waiting = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiting.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("SELECT pg_sleep(0.3)")
    holder.query("COMMIT")
    assert waiting.checked().value == "waited"
    row = last(pooler, text="SELECT 'waited'")
    assert (row["cause"], row["setting"]) == ("queue", "pool_size")
    assert "cause=queue setting=pool_size rows=1 " in lines(pooler, "waited")[-1]
    assert 2 * TENTH < row["queue_us"] <= row["total_us"]
    assert row["server_us"] < 2 * TENTH
    check_sum(row)
    # The next query of the same transaction has not waited.
    waiting.query("BEGIN")
    waiting.query("SELECT pg_sleep(0.15)")
    assert last(pooler, text="SELECT pg_sleep(0.15)")["queue_us"] == 0


def test_time_of_a_client_that_does_not_read_is_the_clients(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "100ms"})
    client = pooler.client()
    sql = "SELECT repeat('x', 1000) FROM generate_series(1, 60000)"
    client.send(wire.query(sql))
    stays(lambda: slow(pooler) == [], 0.4 * PATIENCE)
    assert len(client.checked().rows) == 60000
    row = last(pooler)
    assert (row["text"], row["cause"], row["rows"]) == (sql, "client", 60000)
    assert row["client_us"] > 2 * TENTH
    assert row["bytes"] == 60000 * (5 + 2 + 4 + 1000)
    check_sum(row)


def test_a_small_answer_that_the_client_leaves_unread_ends_when_it_is_read(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "200ms", "tcp_socket_buffer": 4096})
    client = pooler.client()
    client.send(wire.query("SELECT repeat('x', 8000000)"))
    stays(lambda: slow(pooler) == [], 0.4)
    client.checked()
    row = last(pooler)
    assert row["client_us"] > 2 * TENTH


def test_time_until_a_client_sends_the_rest_is_the_clients(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "200ms"})
    client = pooler.client()
    client.send(wire.extended("SELECT 'piped'"), wire.flush())
    client.read_until("C")
    passes(0.3)
    client.send(wire.sync())
    client.read_until("Z")
    row = last(pooler)
    assert (row["text"], row["cause"], row["rows"]) == ("SELECT 'piped'", "client", 1)
    assert row["client_us"] > 2 * TENTH


# COPY


def test_copy_in_has_the_bytes_of_the_client_and_its_pauses(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "log_min_duration": "200ms"})
    client = pooler.client()
    client.query("CREATE TEMP TABLE copied (a text)")
    client.send(wire.query("COPY copied FROM STDIN"))
    client.read_until("G")
    client.send(wire.copy_data(b"one\n"))
    passes(0.3)
    client.send(wire.copy_data(b"two\n" * 1000), wire.copy_done())
    client.read_until("Z")
    row = last(pooler, text="COPY copied FROM STDIN")
    assert (row["cause"], row["rows"], row["bytes"]) == ("client", 1001, 0)
    assert row["bytes_in"] == 5 + len("COPY copied FROM STDIN") + 1 + (5 + 4) + (5 + 4000) + 5
    assert row["client_us"] > 2 * TENTH


def test_copy_in_of_many_runs_has_all_bytes(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.query("BEGIN; CREATE TEMP TABLE copied (a text)")
    sql = "COPY copied FROM STDIN"
    client.send(wire.query(sql))
    client.read_until("G")
    data = b"x" * 99_999 + b"\n"
    client.send(*[wire.copy_data(data) for _ in range(20)], wire.copy_done())
    client.read_until("Z")
    row = last(pooler, text=sql)
    assert (row["rows"], row["bytes_in"]) == (20, 5 + len(sql) + 1 + 20 * (5 + len(data)) + 5)


def test_copy_out_has_the_bytes_of_its_data(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    sql = "COPY (SELECT 'abc' FROM generate_series(1, 10)) TO STDOUT"
    client.query(sql)
    row = last(pooler, text=sql)
    assert (row["rows"], row["bytes"]) == (10, 10 * (5 + 4))


# What it was


@pytest.mark.parametrize("mode", ["transaction", "session", "statement"])
def test_every_query_has_its_text_in_each_mode(new_pooler, mode):
    pooler = new_pooler({**ALL, "pool_mode": mode, "log_slow_rate": 0})
    client = pooler.client()
    client.query("SELECT 1 AS simple")
    client.extended("SELECT $1::text AS unnamed", ["x"])
    client.send(wire.parse("SELECT 2 AS named", "first"), wire.sync())
    client.read_until("Z")
    client.send(wire.bind(statement="first"), wire.execute(), wire.sync())
    client.read_until("Z")
    client.query("SELECT 3; SELECT 4 FROM generate_series(1, 5)")
    found = slow(pooler)[::-1]
    assert [row["rows"] for row in found] == [1, 1, 0, 1, 6]
    assert [row["statement"] for row in found] == [None, None, "first", "first", None]
    # In session mode prepared statements are not followed.
    assert [row["text"] for row in found] == [
        "SELECT 1 AS simple",
        "SELECT $1::text AS unnamed",
        "SELECT 2 AS named",
        None if mode == "session" else "SELECT 2 AS named",
        "SELECT 3; SELECT 4 FROM generate_series(1, 5)",
    ]
    assert len(lines(pooler)) == 5
    for row in found:
        check_sum(row)


def test_a_pipeline_is_one_query_until_all_is_answered(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.send(*[wire.extended(f"SELECT {i}") + wire.sync() for i in range(3)])
    for _ in range(3):
        client.read_until("Z")
    client.query("SELECT 'next'")
    found = slow(pooler)
    assert [row["text"] for row in found] == ["SELECT 'next'", "SELECT 0"]
    assert found[1]["rows"] == 3


def test_a_statement_that_is_closed_behind_its_use_has_its_text(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.send(wire.parse("SELECT 'closed'", "first"), wire.sync())
    client.read_until("Z")
    client.send(
        wire.bind(statement="first"),
        wire.execute(),
        wire.close("S", "first"),
        wire.parse("SELECT 'other'", "first"),
        wire.sync(),
    )
    client.read_until("Z")
    assert [(row["text"], row["rows"]) for row in slow(pooler)] == [("SELECT 'closed'", 1), ("SELECT 'closed'", 0)]


def test_a_close_before_the_statement_is_not_the_text(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.query("BEGIN")
    client.send(wire.close("S", "none"), wire.parse("SELECT 'text'", "first"), wire.bind(statement="first"))
    client.send(wire.execute(), wire.sync())
    client.read_until("Z")
    row = last(pooler)
    assert (row["text"], row["statement"], row["rows"]) == ("SELECT 'text'", "first", 1)


@pytest.mark.setting("log_parameters")
def test_parameters_are_logged_only_if_wanted(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    sql = "SELECT $1::text, $2::text"
    client.extended(sql, ["secret one", None])
    assert last(pooler)["parameters"] is None
    pooler.command("SET log_parameters = 1")
    client.extended(sql, ["it\n\x01s", None])
    assert last(pooler)["parameters"] == "$1 = 'it\\x0a\\x01s', $2 = NULL"
    assert lines(pooler, r" parameters=\"\$1 = 'it\\x0a\\x01s', \$2 = NULL\" text=")
    client.extended(sql, ["y" * 1000, "z"])
    assert last(pooler)["parameters"] == f"$1 = '{'y' * 64}'..., $2 = 'z'"
    connection = pooler.connect()
    connection.execute("SELECT %b::int4, %s::text", [7, "x"])
    assert last(pooler)["parameters"].startswith("$1 = \\x")
    connection.execute("SELECT set_config('my.password', %s, true)", ["hidden"])
    assert "hidden" not in pooler.log()
    assert last(pooler)["text"] == "SELECT set_config('my.password <left out>"
    assert "secret one" not in pooler.log()


@pytest.mark.setting("log_statement_length")
def test_texts_are_cut_and_escaped(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "log_statement_length": 20})
    client = pooler.client()
    client.query("SELECT 1\n\t--\x1b[2J end\n")
    assert last(pooler)["text"] == "SELECT 1\\x0a\\x09--"
    assert lines(pooler, r" text_bytes=21 text=\"SELECT 1\\x0a\\x09--\"$")
    sql = f"SELECT length('{'é' * 1_000_000}')"
    assert client.query(sql).value == "1000000"
    row = last(pooler)
    assert row["text"] == "SELECT length('éé"
    assert row["text_bytes"] in (0, len(sql.encode()))
    assert row["bytes_in"] == len(sql.encode()) + 6
    client.send(wire.message("Q", b"SELECT '\xff\xfe'\0"))
    client.read_until("Z")
    row = last(pooler)
    assert (row["text"], row["error"]) == ("SELECT '\\xff\\xfe'", "22021")
    pooler.command("SET log_statement_length = 0")
    client.query(f"SELECT 'no text'/*traceparent='{TRACE}'*/")
    row = last(pooler)
    assert (row["text"], row["traceparent"]) == (None, TRACE)
    assert "no text" not in pooler.log()


def test_texts_with_a_password_end_before_it(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    fails(client, "ALTER ROLE nobody_at_all PASSWORD 'hunter2'")
    row = last(pooler)
    assert row["text"] == "ALTER ROLE nobody_at_all PASSWORD <left out>"
    assert row["error"] is not None
    assert "hunter2" not in pooler.log()


def test_a_trace_is_found_in_comments(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    comment = f"/*action='%2Fx',traceparent='{TRACE}',tracestate='a%3Db'*/"
    for sql in (
        f"SELECT 1 {comment}",
        f"{comment} SELECT 1;",
        f"SELECT '{'x' * 10_000}' {comment}",
    ):
        client.query(sql)
        assert last(pooler)["traceparent"] == TRACE, sql[:50]
        client.extended(sql)
        assert last(pooler)["traceparent"] == TRACE, sql[:50]
    for sql in (
        f"SELECT '/*traceparent=''{TRACE}''*/'",
        f"SELECT 1 /*traceparent='{TRACE.upper()}'*/",
        f"SELECT 1 /*traceparent='{TRACE}0'*/",
    ):
        client.query(sql)
        assert last(pooler)["traceparent"] is None, sql


# Without an answer


def test_errors_have_their_sqlstate(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    fails(client, "SELECT 1 / 0")
    row = last(pooler)
    assert (row["error"], row["ended"], row["rows"]) == ("22012", None, 0)
    client.query("SELECT 1")
    assert last(pooler)["error"] is None


def test_a_cancelled_query_is_an_error_of_the_server(new_pooler, cluster):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.send(wire.query("SELECT pg_sleep(60)"))
    # PostgreSQL drops a cancel request for a query that it has not read yet.
    wait_until(lambda: cluster.backends(state="active", query="SELECT pg_sleep(60)"))
    cancel(pooler.address, client.key)
    client.read_until("Z")
    row = last(pooler, text="SELECT pg_sleep(60)")
    assert (row["error"], row["cause"]) == ("57014", "server")


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"pool_mode": "session"}, "pool_mode"),
        ({"pool_mode": "transaction", "default_pool_size": 2, "max_db_connections": 1}, "max_db_connections"),
        ({"pool_mode": "transaction", "default_pool_size": 2, "max_user_connections": 1}, "max_user_connections"),
    ],
)
def test_what_made_a_query_wait_is_named(new_pooler, settings, setting):
    pooler = new_pooler({**ONE, "log_min_duration": 100, "query_wait_timeout": 0.3, **settings})
    holder, waiting = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiting.send(wire.query("SELECT 'waited'"))
    row = last(pooler)
    assert (row["cause"], row["setting"]) == ("queue", setting)
    pooler.allow("query_wait_timeout")


@pytest.mark.parametrize("action", ["error", "disconnect"])
def test_a_query_that_never_gets_a_server_is_slow_by_the_queue(new_pooler, action):
    pooler = new_pooler(
        {**ONE, "log_min_duration": 100, "query_wait_timeout": 0.3, "query_wait_timeout_action": action}
    )
    holder, waiting = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiting.send(wire.query("SELECT 'never'"))
    row = last(pooler)
    assert (row["text"], row["cause"], row["ended"]) == ("SELECT 'never'", "queue", "query_wait_timeout")
    assert row["setting"] == "idle_transaction_timeout"
    assert row["queue_us"] == row["total_us"] >= 2 * TENTH
    assert row["bytes_in"] == 5 + len("SELECT 'never'") + 1
    assert len(slow(pooler)) == 1
    pooler.allow("query_wait_timeout")


def test_a_client_that_vanishes_leaves_its_query_in_the_log(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "50ms"})
    client = pooler.client()
    client.send(wire.query("SELECT pg_sleep(60)"))
    pooler.wait_pool(sv_active=1)
    passes(0.1)
    client.reset()
    row = last(pooler)
    assert (row["text"], row["ended"]) == ("SELECT pg_sleep(60)", "client unexpected eof")
    # So does one that waits.
    holder, waiting = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiting.send(wire.query("SELECT 'gone'"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("SELECT pg_sleep(0.2)")
    waiting.reset()
    row = last(pooler, text="SELECT 'gone'")
    assert (row["cause"], row["ended"]) == ("queue", "client unexpected eof")


def test_a_server_that_dies_ends_the_query(new_pooler):
    pooler = new_pooler({**ONE, **ALL})
    client = pooler.client()
    client.send(wire.query("SELECT pg_terminate_backend(pg_backend_pid()), pg_sleep(5)"))
    client.read_all()
    row = last(pooler)
    assert row["error"] == "57P01" and row["ended"]


def test_idle_transactions_and_our_own_queries_are_no_queries(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "server_reset_query": "DISCARD ALL", "server_reset_query_always": 1})
    client = pooler.client()
    client.query("BEGIN")
    passes(0.3)
    client.query("COMMIT")
    pooler.client(timezone="Asia/Tokyo").query("SELECT 1")
    found = slow(pooler)
    assert [row["text"] for row in found] == ["SELECT 1", "COMMIT", "BEGIN"]
    assert max(row["total_us"] for row in found) < 2 * TENTH


def test_rows_of_our_own_queries_are_not_counted(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "log_slow_rate": 0})
    clients = [pooler.client(timezone=zone, options=f"-c statement_timeout={i + 50}s") for i, zone in enumerate(ZONES)]
    row_size = 5 + 2 + 4 + 4
    for _ in range(2):
        for client in clients:
            client.query("SELECT 'four'")
            assert (last(pooler)["rows"], last(pooler)["bytes"]) == (1, row_size)
            client.query("SET timezone = 'Asia/Tokyo'; SELECT 'four'; RESET ALL; SELECT 'four'")
            assert (last(pooler)["rows"], last(pooler)["bytes"]) == (2, 2 * row_size)
            client.query("BEGIN; RESET timezone; SELECT 'four'; COMMIT; SELECT 'four'")
            assert (last(pooler)["rows"], last(pooler)["bytes"]) == (2, 2 * row_size)
    assert len(slow(pooler)) == 12


# The log


def test_in_json_the_facts_are_members(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "log_format": "json"})
    client = pooler.client(application_name='a "b"')
    client.query(f"SELECT 'x\ny' /*traceparent='{TRACE}'*/")
    (line,) = pooler.wait_log("slow query: total")
    facts = json.loads(line)
    (row,) = slow(pooler)
    for part in ("total_us", "queue_us", "server_us", "client_us", "rows", "bytes", "bytes_in"):
        assert facts[part] == row[part], part
    assert (facts["database"], facts["user"], facts["address"]) == ("main", "app", "127.0.0.1")
    assert (facts["application"], facts["traceparent"], facts["cause"]) == ('a "b"', TRACE, row["cause"])
    assert facts["text"] == row["text"] == f"SELECT 'x\\x0ay' /*traceparent='{TRACE}'*/"
    assert facts["message"].startswith("slow query: total=") and "SELECT" not in facts["message"]


@pytest.mark.setting("log_slow_rate")
def test_above_a_rate_lines_are_left_out_and_counted(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "log_slow_rate": 3})
    client = pooler.client()
    for i in range(200):
        client.query(f"SELECT {i}")
    left_out = r"slow query: (\d+) more in the last second, not logged because of log_slow_rate = 3"

    def complete():
        told = sum(int(re.search(left_out, line)[1]) for line in pooler.lines(left_out))
        return told + len(lines(pooler)) == 200

    wait_until(complete, 10, "all queries to be logged or counted")
    seconds = len(pooler.lines(left_out))
    assert len(lines(pooler)) <= 3 * (seconds + 1)
    # The ring has them all, as far as it goes.
    assert [row["text"] for row in slow(pooler)] == [f"SELECT {i}" for i in range(199, 99, -1)]


def test_others_than_administrators_see_no_text(new_pooler):
    pooler = new_pooler({**ONE, **ALL, "log_parameters": 1})
    pooler.client().extended("SELECT $1::text AS private", ["value"])
    (row,) = slow(pooler)
    assert row["text"] and row["parameters"]
    (seen,) = pooler.console(user="stats").query("SHOW SLOW").dicts()
    assert (seen["text"], seen["parameters"]) == (None, None)
    assert seen["total_us"] == str(row["total_us"])


def test_queries_are_counted_by_their_cause(new_pooler):
    port = free_port()
    pooler = new_pooler({**ONE, **ALL, "metrics_port": port})
    client = pooler.client()
    for _ in range(3):
        client.query("SELECT pg_sleep(0.01)")
    page = scrape(port)
    assert page.value("pgusher_slow_queries_total", database="main", user="app", cause="server") == 3


# On, off and other limits


def test_a_reload_turns_the_log_on_and_off_while_queries_run(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 5})
    client, other = pooler.client(), pooler.client()
    client.send(wire.query("SELECT pg_sleep(0.4), 'before'"))
    pooler.wait_pool(sv_active=1)
    assert slow(pooler) == []
    pooler.settings["log_min_duration"] = "100ms"
    pooler.reload()
    client.read_until("Z")
    # It began before: its duration is known, its text is not.
    row = last(pooler)
    assert (row["text"], row["cause"], row["rows"]) == (None, "server", 1)
    assert row["total_us"] >= 4 * TENTH
    client.query("SELECT pg_sleep(0.2), 'on'")
    assert last(pooler)["text"] == "SELECT pg_sleep(0.2), 'on'"
    pooler.command("SET log_min_duration = '10s'")
    client.query("SELECT pg_sleep(0.2)")
    assert len(slow(pooler)) == 2
    client.send(wire.query("SELECT pg_sleep(0.3), 'off'"))
    other.query("BEGIN")
    pooler.wait_pool(sv_active=2)
    pooler.settings["log_min_duration"] = -1
    pooler.reload()
    client.read_until("Z")
    other.query("COMMIT")
    assert slow(pooler) == []
    pooler.command("SET log_min_duration = 0")
    client.query("SELECT 'on again'")
    assert [row["text"] for row in slow(pooler)] == ["SELECT 'on again'"]
    assert pooler.setting("log_min_duration") == "0"


def test_a_query_before_the_log_has_no_text_of_the_next(new_pooler):
    pooler = new_pooler(ONE)
    client = pooler.client()
    client.send(wire.query("SELECT pg_sleep(0.3)"))
    pooler.wait_pool(sv_active=1)
    pooler.command("SET log_min_duration = 0")
    client.send(wire.query("SELECT 'next'"))
    client.read_until("Z")
    client.read_until("Z")
    row = last(pooler)
    assert (row["text"], row["rows"]) == (None, 2)
    assert row["total_us"] >= 2 * TENTH


def test_a_query_that_is_taken_over_keeps_its_duration(new_pooler):
    pooler = new_pooler({**ONE, "log_min_duration": "100ms"})
    client = pooler.client()
    client.query("SELECT 1")
    client.send(wire.query("SELECT pg_sleep(1), 'taken over'"))
    stays(lambda: slow(pooler) == [], 0.6)
    pooler.close_console()
    pooler.take_over()
    client.read_until("Z")
    row = last(pooler)
    assert (row["text"], row["rows"]) == (None, 1)
    # The moment in which it is taken over is not counted.
    assert row["total_us"] >= 7 * TENTH


def test_the_log_changes_nothing_of_what_clients_get(new_pooler, cluster):
    """Each kind of message passes the rules that note it."""
    pooler = new_pooler({**ONE, **ALL, "log_parameters": 1, "log_slow_rate": 0})
    with pooler.connect(prepare_threshold=0) as connection:
        for i in range(3):
            assert connection.execute("SELECT %s::int + 1", [i]).fetchone() == (i + 1,)
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s::text", [str(i)]) for i in range(20)]
            assert [cursor.fetchone() for cursor in cursors] == [(str(i),) for i in range(20)]
        with connection.transaction(), connection.cursor(name="held") as cursor:
            cursor.execute("SELECT generate_series(1, 1000)")
            assert len(cursor.fetchall()) == 1000
        with connection.cursor() as cursor, cursor.copy("COPY (SELECT 1) TO STDOUT") as copy:
            assert b"".join(copy) == b"1\n"
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("SELECT 1 / %s", [0])
        assert connection.execute("SELECT 1").fetchone() == (1,)
    # Describe of a portal tells no statement.
    assert [row["bytes_in"] for row in slow(pooler) if not row["text"]] == [len(wire.describe("P", "held") + wire.sync())]
