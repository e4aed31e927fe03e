# SPDX-License-Identifier: ISC
"""Counters and times, compared with loads of known numbers."""

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.process import free_port, wait_until

NONE = {"query_count": 0, "xact_count": 0, "server_assignment_count": 0}


def counts(pooler):
    return pooler.stats()


def grown(pooler, before):
    """By how much the counters of `main` have grown."""
    return {
        key: value - before[key] for key, value in counts(pooler).items() if key != "database"
    }


def run(client, *steps):
    """Send each step in one write and read as many ReadyForQuery as it expects."""
    seen = 0
    for step, ready in steps:
        client.send(step)
        for _ in range(ready):
            seen += sum(5 + len(body) for _, body in client.result().messages)
    return sum(len(step) for step, _ in steps), seen


BATCH = wire.extended("SELECT 1") + wire.sync()
KNOWN_RUNS = {
    # name: (steps, queries, transactions, assignments)
    "a simple query": ([(wire.query("SELECT 1"), 1)], 1, 1, 1),
    "an extended query": ([(BATCH, 1)], 1, 1, 1),
    "a parse with a sync of its own": (
        [
            (wire.parse("SELECT 1") + wire.sync(), 1),
            (wire.bind() + wire.describe() + wire.execute() + wire.sync(), 1),
        ],
        2,
        2,
        2,
    ),
    "a pipeline of several syncs": ([(BATCH * 3, 3)], 1, 1, 1),
    "simple queries in one write": ([(wire.query("SELECT 1") * 4, 4)], 1, 1, 1),
    "an empty query": ([(wire.query(""), 1)], 1, 1, 1),
    "a lone sync": ([(wire.sync(), 1)], 1, 1, 1),
    "a transaction in three steps": (
        [(wire.query("BEGIN"), 1), (wire.query("SELECT 1"), 1), (wire.query("COMMIT"), 1)],
        3,
        1,
        1,
    ),
    "an error": ([(wire.query("SELECT 1/0"), 1)], 1, 1, 1),
    "an error in a transaction": (
        [(wire.query("BEGIN"), 1), (wire.query("SELECT 1/0"), 1), (wire.query("ROLLBACK"), 1)],
        3,
        1,
        1,
    ),
    "a function call": ([(wire.function_call(957, [-1]), 1)], 1, 1, 1),
    "a copy": (
        [
            (
                wire.query("CREATE TEMP TABLE counted (a int); COPY counted FROM STDIN")
                + wire.copy_data(b"1\n")
                + wire.copy_done(),
                1,
            )
        ],
        1,
        1,
        1,
    ),
    "several statements in one query": ([(wire.query("SELECT 1; SELECT 2"), 1)], 1, 1, 1),
}


@pytest.mark.parametrize("name", KNOWN_RUNS)
def test_a_known_run_is_counted_exactly(new_pooler, name):
    # Answers to the pooler's own questions count as bytes of the server, too.
    pooler = new_pooler({"pool_mode": "transaction", "session_state": "ignore"})
    steps, queries, transactions, assignments = KNOWN_RUNS[name]
    client = pooler.client()
    client.query("SELECT 0")
    before = counts(pooler)
    sent, seen = run(client, *steps)
    after = grown(pooler, before)
    assert after["query_count"] == queries
    assert after["xact_count"] == transactions
    assert after["server_assignment_count"] == assignments
    assert after["bytes_received"] == sent
    assert after["bytes_sent"] == seen
    assert after["wait_time"] == 0
    assert after["query_time"] <= after["xact_time"]
    for key in ("client_parse_count", "server_parse_count", "bind_count"):
        assert after[key] == 0


@pytest.mark.parametrize(
    "mode, assignments", [("session", 1), ("transaction", 3), ("statement", 3)]
)
def test_assignments_are_counted_by_session_or_transaction(
    new_pooler, mode, assignments
):
    pooler = new_pooler({"pool_mode": mode})
    with pooler.client() as first:
        first.query("SELECT 0")
    pooler.wait_pool(sv_idle=1, cl_active=0)
    client = pooler.client()
    before = counts(pooler)
    for _ in range(3):
        client.query("SELECT 1")
    after = grown(pooler, before)
    assert after["server_assignment_count"] == assignments
    assert after["query_count"] == after["xact_count"] == 3


def test_a_login_counts_only_its_wait_for_the_first_welcome(pooler):
    pooler.client()
    first = counts(pooler)
    assert {key: first[key] for key in NONE} == NONE
    assert first["bytes_received"] == 0
    assert first["wait_time"] > 0
    pooler.client()
    assert counts(pooler) == {**first, "client_login_count": first["client_login_count"] + 1}


def test_answers_that_are_not_passed_on_count_as_sent_by_servers(pooler):
    pooler.client().query("SELECT 0")
    other = pooler.client(TimeZone="Asia/Tokyo")
    before = counts(pooler)
    sent, seen = run(other, (wire.query("SELECT 1"), 1))
    after = grown(pooler, before)
    assert after["bytes_received"] == sent
    assert after["bytes_sent"] > seen
    assert after["query_count"] == after["xact_count"] == 1


def test_a_console_connection_counts_one_query_with_its_first_command(pooler):
    def totals(console):
        (row,) = [
            row
            for row in console.query("SHOW STATS_TOTALS").dicts()
            if row["database"] == "pgbouncer"
        ]
        return {key: int(value) for key, value in row.items() if key != "database"}

    first = pooler.console()
    seen = totals(first)
    assert (seen["query_count"], seen["xact_count"]) == (1, 1)
    first.query("SHOW VERSION")
    assert totals(first) == seen
    pooler.console()  # sends nothing, and counts nothing
    second = pooler.console()
    seen = totals(second)
    assert (seen["query_count"], seen["xact_count"]) == (2, 2)
    assert seen["client_login_count"] == 3
    assert not any(
        value for key, value in seen.items() if key not in (*NONE, "client_login_count")
    )


def test_waits_are_counted_when_a_server_is_assigned(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    before = counts(pooler)
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("SELECT pg_sleep(0.3)")
    waiting = grown(pooler, before)
    assert waiting["wait_time"] == 0 and waiting["server_assignment_count"] == 0
    assert waiting["query_count"] == 2 and waiting["xact_count"] == 1
    holder.query("COMMIT")
    waiter.result()
    after = grown(pooler, before)
    assert after["server_assignment_count"] == 1
    assert after["wait_time"] >= 300_000
    # The queries of the waiting client and of the other one both count.
    assert after["query_time"] >= after["wait_time"] + 300_000


def test_a_client_closed_while_waiting_adds_no_wait(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    before = counts(pooler)
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    waiter.close()
    pooler.wait_pool(cl_waiting=0)
    holder.query("COMMIT")
    after = grown(pooler, before)
    assert after["wait_time"] == 0
    assert after["server_assignment_count"] == 0


def test_show_totals_is_the_sum_of_all_databases(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"}, databases={"main": {}, "other": {"dbname": "main"}}
    )
    for database in ("main", "main", "other"):
        pooler.client(database=database).query("SELECT 1")
    rows = pooler.show("STATS_TOTALS")
    assert [row["database"] for row in rows] == ["main", "other", "pgbouncer"]
    totals = {row["name"]: int(row["value"]) for row in pooler.show("TOTALS")}
    assert totals["total_query_count"] == sum(int(row["query_count"]) for row in rows) == 4
    assert totals["total_client_bytes"] == sum(int(row["bytes_received"]) for row in rows)


# Latency


def latencies(pooler, **where):
    rows = pooler.show("STATS_LATENCY", **where)
    return {
        (row["user"], row["kind"]): {
            key: int(row[key]) for key in ("count", "p50", "p90", "p99", "max")
        }
        for row in rows
    }


def test_latency_has_a_row_for_each_kind_of_the_database_and_of_each_user(pooler):
    assert pooler.command("SHOW STATS_LATENCY").names == [
        "database", "user", "kind", "count", "p50", "p90", "p99", "max",
    ]  # fmt: skip
    assert pooler.show("STATS_LATENCY") == []
    pooler.client().query("SELECT 1")
    reported = latencies(pooler, database="main")
    assert list(reported) == [
        (user, kind)
        for user in (None, "app")
        for kind in ("query", "transaction", "wait")
    ]
    for kind in ("query", "transaction", "wait"):
        assert reported[None, kind] == reported["app", kind]
        assert reported["app", kind]["count"] == 1


@pytest.mark.alone
def test_percentiles_are_those_of_a_known_run(pooler):
    client = pooler.client()
    for _ in range(18):
        client.query("SELECT 1")
    client.query("SELECT pg_sleep(0.2)")
    client.query("SELECT pg_sleep(0.4)")
    reported = latencies(pooler)["app", "query"]
    assert reported["count"] == 20
    assert reported["p50"] < 100_000
    # A percentile may be off by an eighth of the value.
    assert reported["p90"] < 100_000
    assert 400_000 <= reported["max"] < 1_000_000
    assert reported["max"] * 7 / 8 <= reported["p99"] <= reported["max"]
    totals = pooler.stats()
    assert totals["query_time"] >= 600_000


def test_a_wait_does_not_count_as_query_time(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("SELECT pg_sleep(0.5)")
    holder.query("COMMIT")
    waiter.result()
    reported = latencies(pooler)
    assert reported["app", "wait"]["count"] == 2
    assert reported["app", "wait"]["p50"] == 0
    assert reported["app", "wait"]["max"] >= 500_000
    assert reported["app", "transaction"]["count"] == 2
    assert reported["app", "transaction"]["max"] >= 500_000
    # Four queries, one of which slept: the one that waited was as quick as the others.
    assert reported["app", "query"]["count"] == 4
    assert reported["app", "query"]["p50"] < 250_000


def test_latency_covers_the_last_periods(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "stats_period": 1})
    pooler.client().query("SELECT 1")
    assert latencies(pooler)["app", "query"]["count"] == 1
    wait_until(lambda: latencies(pooler)["app", "query"]["count"] == 0, 10)
    assert latencies(pooler)["app", "query"]["max"] == 0
    assert pooler.stats()["query_count"] == 1


# Errors


def errors(pooler):
    return {row["class"]: int(row["count"]) for row in pooler.show("STATS_ERRORS")}


def test_errors_are_counted_by_class_as_they_pass(pooler):
    assert pooler.show("STATS_ERRORS") == []
    client = pooler.client()
    made_up = "DO $$ BEGIN RAISE EXCEPTION 'ours' USING ERRCODE = 'ZZ001'; END $$"
    for sql in ("SELECT 1/0", "SELECT 1/0", "SELECT * FROM nowhere", made_up):
        client.send(wire.extended(sql), wire.sync())
        assert client.result().error
    client.query("SELECT 1")
    assert pooler.show("STATS_ERRORS") == [
        {"database": "main", "user": "app", "class": "22", "count": "2"},
        {"database": "main", "user": "app", "class": "42", "count": "1"},
        {"database": "main", "user": "app", "class": "XX", "count": "1"},
    ]


def test_an_own_error_does_not_count_as_a_servers(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "query_wait_timeout": 1,
            "startup_parameters": "strict",
        }
    )
    client = pooler.client()
    client.query("SELECT 1")
    pooler.refused(database="nowhere")
    other = pooler.client(TimeZone="Nowhere/Nothing")
    other.send(wire.query("SELECT 1"))
    assert other.fatal().text == "invalid server parameter"
    assert errors(pooler) == {}


# Figures that only metrics have


@pytest.fixture
def counted(new_pooler):
    """A daemon with metrics; clients log in by the rules of an HBA file."""
    pytest.importorskip("prometheus_client")
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "auth_type": "hba",
            "auth_hba_file": "hba.conf",
            "metrics_port": free_port(),
        },
        auth={"app": "secret", "plain": "secret", "evil": "secret"},
        start=False,
    )
    pooler.write(
        "hba.conf",
        "host pgbouncer admin all trust\nhost all evil all reject\n"
        "host all plain all password\nhost all app,ghost all scram-sha-256\n",
    )
    return pooler.start()


def page(pooler):
    return scrape(pooler.settings["metrics_port"])


def logins(pooler, **labels):
    return page(pooler).get("pgusher_client_login_seconds_count", **labels) or 0


def test_logins_are_counted_by_method_and_outcome(counted):
    counted.client(password="secret").close()
    assert logins(counted, method="scram", outcome="ok") == 1
    counted.refused(password="wrong")
    counted.refused(user="plain", password="wrong")
    counted.refused(user="ghost", password="wrong")
    counted.refused(user="evil")
    counted.refused(user="unknown")
    assert logins(counted, method="scram", outcome="denied") == 2
    assert logins(counted, method="plain", outcome="denied") == 1
    impatient = counted.raw()
    impatient.send_startup()
    impatient.read_until("R")
    impatient.close()
    wait_until(lambda: logins(counted, method="scram", outcome="closed") == 1, 10)
    reported = page(counted)
    failures = {
        labels["reason"]: value for labels, value in reported.series("pgusher_auth_failures_total")
    }
    assert failures == {
        "password": 2, "no_user": 1, "hba": 2, "expired": 0, "method": 0, "malformed": 0,
    }  # fmt: skip
    assert reported.value("pgusher_client_rejected_total", reason="hba") == 2
    # The clients of the console were trusted, and all their times were short.
    assert reported.value("pgusher_client_login_seconds_sum", method="scram", outcome="ok") < 5


def test_a_login_that_breaks_the_protocol_is_malformed(counted):
    client = counted.raw()
    client.send_startup()
    client.read_until("R")
    client.send(wire.query("SELECT 1"))
    assert client.read_all() == []
    reported = page(counted)
    assert reported.value("pgusher_auth_failures_total", reason="malformed") == 1
    assert reported.value("pgusher_protocol_errors_total", side="client", kind="order") == 1


def test_histograms_have_one_sample_for_each_event(counted):
    client = counted.client(password="secret")
    for _ in range(4):
        client.query("SELECT 1")
    client.query("BEGIN")
    client.query("SELECT pg_sleep(0.03)")
    reported = page(counted)
    labels = {"database": "main", "user": "app"}

    def seen(kind, what, **more):
        return reported.value(f"pgusher_{kind}_seconds_{what}", **labels, **more)

    assert seen("query_duration", "count") == 6
    assert seen("query_duration", "bucket", le="+Inf") == 6
    assert seen("query_duration", "bucket", le="0.025") <= 5
    assert 0.03 <= seen("query_duration", "sum") < 5
    assert seen("transaction_duration", "count") == 4
    assert seen("client_wait", "count") == 5
    assert reported.value("pgusher_oldest_transaction_seconds", **labels) >= 0.03
    assert reported.value("pgusher_server_connect_seconds_count", database="main", outcome="ok") == 1


def test_reloads_are_counted_by_outcome(counted):
    before = page(counted)
    assert before.value("pgusher_config_last_reload_successful") == 1
    counted.command("RELOAD")
    counted.write("pgusher.ini", "[pgbouncer]\nno such line\n")
    counted.console().send(wire.query("RELOAD")).result()
    reported = page(counted)
    assert reported.value("pgusher_reloads_total", outcome="ok") == 1
    assert reported.value("pgusher_reloads_total", outcome="error") == 1
    assert reported.value("pgusher_config_last_reload_successful") == 0
    when = "pgusher_config_last_reload_success_timestamp_seconds"
    assert reported.value(when) >= before.value(when)


def test_the_loop_reports_its_lag_and_its_load(counted):
    first = page(counted)
    client = counted.client(password="secret")
    for _ in range(50):
        client.query("SELECT 1")
    second = page(counted)
    for name in ("pgusher_loop_lag_seconds_count", "pgusher_loop_busy_seconds_total"):
        assert second.value(name) > first.value(name) > 0
    # Each query takes more than one turn of the loop.
    assert second.value("pgusher_loop_lag_seconds_count") >= 50
