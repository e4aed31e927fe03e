# SPDX-License-Identifier: ISC
"""Queues of pools: their bound, and waits that end without the connection."""

import os
import re

import psycopg
import pytest
from psycopg import pq

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import cancel
from support.process import HOST, free_port, run, wait_until
from support.servers.cluster import program

ONE = {"pool_mode": "transaction", "default_pool_size": 1}
BOUNDED = {**ONE, "max_pool_waiters": 1}
PATIENT = {**ONE, "query_wait_timeout": 0.3, "query_wait_timeout_action": "error"}

FULL = ("ERROR", "53300", "too many clients wait for a server (max_pool_waiters)")
WAITED = ("ERROR", "57014", "query_wait_timeout")


def holder_of(pooler, **options):
    """A client that keeps the only server, in a transaction."""
    client = pooler.client(**options)
    client.query("BEGIN")
    return client


def fill(pooler, count=1):
    """Keep the only server, and let clients wait: returns its client, and those."""
    holder, waiting = holder_of(pooler), [pooler.client() for _ in range(count)]
    for client in waiting:
        client.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=count)
    return holder, waiting


def drain(holder, waiting):
    """Let the holder end its transaction, and all that wait be served."""
    holder.query("COMMIT")
    for client in waiting:
        assert client.checked().value == "waited"


def answers(client, *parts):
    """Send the parts, and return the error and the types of all messages up to ReadyForQuery."""
    client.send(*parts)
    result = client.result()
    return result.error, result.types


def queue(pooler, database="main", user="app"):
    """The row of SHOW STATS_QUEUES."""
    (row,) = pooler.show("STATS_QUEUES", database=database, user=user)
    return {key: int(value) for key, value in row.items() if value.isdigit()}


# The bound of a queue


@pytest.mark.setting("max_pool_waiters")
def test_one_too_many_gets_an_error_at_once_and_stays(new_pooler):
    pooler = new_pooler(BOUNDED)
    client = pooler.client()
    holder, waiting = fill(pooler)
    for query in (
        [wire.query("SELECT 1")],
        [wire.extended("SELECT 1"), wire.sync()],
        [wire.parse("SELECT 1", "named"), wire.describe("S", "named"), wire.sync()],
        [wire.close("P", "never"), wire.execute(), wire.sync()],
        [wire.function_call(1598, [])],
        [wire.query("COPY x FROM STDIN")],
    ):
        error, types = answers(client, *query)
        assert error.is_(*FULL)
        assert types == "EZ"
        assert client.status == "I"
    assert answers(client, wire.sync()) == (None, "Z")
    assert answers(client, wire.flush(), wire.copy_data(b"1\n"), wire.copy_done(), wire.sync()) == (None, "Z")
    pooler.wait_pool(cl_waiting=1, cl_active=2)
    assert pooler.wait_log(r"C-.* pooler error: too many clients wait for a server")
    drain(holder, waiting)
    assert client.value("SELECT 'goes on'") == "goes on"


def test_batches_of_a_pipeline_are_refused_one_by_one(new_pooler):
    pooler = new_pooler(BOUNDED)
    client = pooler.client()
    holder, waiting = fill(pooler)
    batch = wire.extended("SELECT 1") + wire.sync()
    client.send(batch, wire.query("SELECT 2"), wire.sync(), batch, wire.extended("SELECT 3"))
    for types in ("EZ", "EZ", "Z", "EZ"):
        assert client.result().types == types
    assert client.error().is_(*FULL)
    drain(holder, waiting)
    # The batch that has no Sync yet has failed: a server that is free now gets none of it.
    client.send(wire.query("SELECT 'skipped'"), wire.flush(), wire.sync())
    assert client.result().types == "Z"
    assert client.value("SELECT 'served'") == "served"


def test_megabytes_of_a_refused_query_are_dropped(new_pooler):
    pooler = new_pooler(BOUNDED)
    holder, waiting = fill(pooler)
    client = pooler.client()
    long = wire.query("SELECT '" + "x" * 8_000_000 + "'")
    client.send(long[:5_000_000])
    assert client.result().error.is_(*FULL)
    client.send(long[5_000_000:], wire.query("SELECT 2"))
    assert client.result().error.is_(*FULL)
    client.send(wire.parse(long[5:-1].decode()), wire.bind(), long, wire.execute())
    assert client.error().is_(*FULL)
    drain(holder, waiting)
    client.send(wire.sync())
    assert client.result().types == "Z"
    assert client.value("SELECT 'served'") == "served"


def test_a_dropped_parse_is_not_noted(new_pooler):
    pooler = new_pooler(BOUNDED)
    client = pooler.client()
    holder, waiting = fill(pooler)
    error, _ = answers(client, wire.parse("SELECT 'lost'", "name"), wire.sync())
    assert error.is_(*FULL)
    drain(holder, waiting)
    error, _ = answers(client, wire.bind(statement="name"), wire.execute(), wire.sync())
    assert error.sqlstate == "26000"
    error, types = answers(
        client, wire.parse("SELECT 'kept'", "name"), wire.bind(statement="name"), wire.execute(), wire.sync()
    )
    assert (error, types) == (None, "12DCZ")


@pytest.mark.setting("databases.max_pool_waiters", "users.max_pool_waiters")
def test_the_users_bound_wins_over_the_databases(new_pooler):
    pooler = new_pooler(
        {**ONE, "max_pool_waiters": 3},
        databases={"main": {}, "narrow": {"dbname": "main", "max_pool_waiters": 1}},
        users={"bob": {"max_pool_waiters": 2}},
    )
    for database, user, room in (
        ("main", "app", 3),
        ("narrow", "app", 1),
        ("main", "bob", 2),
        ("narrow", "bob", 2),
    ):
        holder_of(pooler, database=database, user=user)
        for number in range(room):
            pooler.client(database=database, user=user).send(wire.query("SELECT 1"))
            pooler.wait_pool(database, user, cl_waiting=number + 1)
        one_more = pooler.client(database=database, user=user)
        assert answers(one_more, wire.query("SELECT 1"))[0].is_(*FULL)
        assert queue(pooler, database, user)["max_pool_waiters"] == room


def test_the_bound_holds_in_a_pause_and_changes_at_a_reload(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_pool_waiters": 1})
    clients = [pooler.client() for _ in range(4)]
    pooler.command("PAUSE")
    clients[0].send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    assert answers(clients[1], wire.query("SELECT 1"))[0].is_(*FULL)
    pooler.settings["max_pool_waiters"] = 2
    pooler.reload()
    clients[1].send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=2)
    pooler.command("SET max_pool_waiters = 1")
    assert answers(clients[2], wire.query("SELECT 1"))[0].is_(*FULL)
    pooler.wait_pool(cl_waiting=2)
    pooler.command("RESUME")
    assert [client.checked().value for client in clients[:2]] == ["waited"] * 2


def test_a_pool_that_may_grow_refuses_no_burst(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 8, "max_pool_waiters": 1})
    clients = [pooler.client() for _ in range(8)]
    for client in clients:
        client.send(wire.query("SELECT 'served', pg_sleep(0.2)"))
    assert [client.checked().value for client in clients] == ["served"] * 8
    assert queue(pooler)["queue_full"] == 0


def test_the_first_query_of_a_session_is_refused(new_pooler):
    pooler = new_pooler({**BOUNDED, "pool_mode": "session"})
    holder, waiting, client = pooler.client(), pooler.client(), pooler.client()
    holder.query("SELECT 1")
    waiting.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    assert answers(client, wire.extended("SELECT 1"), wire.sync())[0].is_(*FULL)
    holder.leave()
    assert waiting.checked().value == "waited"
    waiting.leave()
    assert client.value("SELECT 'served'") == "served"


def test_a_login_does_not_count_and_is_not_refused(new_pooler):
    pooler = new_pooler(BOUNDED)
    pooler.command("PAUSE")
    logins = [pooler.raw().send_startup() for _ in range(5)]
    pooler.wait_pool(cl_waiting=5)
    pooler.command("RESUME")
    for client in logins:
        client.finish_login("app")
    holder, waiting = fill(pooler)
    assert answers(logins[0], wire.query("SELECT 1"))[0].is_(*FULL)
    drain(holder, waiting)


# The end of a wait


@pytest.mark.setting("query_wait_timeout_action")
def test_a_wait_ends_without_the_connection(new_pooler):
    pooler = new_pooler(PATIENT)
    holder, client = holder_of(pooler), pooler.client()
    for query in (
        [wire.query("SELECT 1")],
        [wire.extended("SELECT 1"), wire.sync()],
        [wire.parse("SELECT 1", "name"), wire.bind(statement="name"), wire.flush(), wire.sync()],
        [wire.function_call(1598, [])],
    ):
        error, types = answers(client, *query)
        assert error.is_(*WAITED)
        assert types == "EZ"
        assert client.status == "I"
    assert answers(client, wire.sync()) == (None, "Z")
    assert queue(pooler)["query_wait_timeout"] == 4
    assert not pooler.lines("closing because: query_wait_timeout")
    assert pooler.wait_log(r"C-.* pooler error: query_wait_timeout")
    holder.query("COMMIT")
    assert client.value("SELECT 'goes on'") == "goes on"


def test_each_batch_of_a_pipeline_waits_for_itself(new_pooler):
    pooler = new_pooler(PATIENT)
    holder, client = holder_of(pooler), pooler.client()
    client.send((wire.extended("SELECT 'first'") + wire.sync()) * 2, wire.query("SELECT 'last'"))
    assert client.result().error.is_(*WAITED)
    assert client.result().error.is_(*WAITED)
    pooler.command("SET query_wait_timeout = 60")
    holder.query("COMMIT")
    assert client.result().types in ("EZ", "TDCZ")
    assert client.value("SELECT 'goes on'") == "goes on"


def test_the_rest_of_a_batch_may_come_after_its_wait(new_pooler):
    pooler = new_pooler(PATIENT)
    holder, client = holder_of(pooler), pooler.client()
    long = wire.parse("SELECT '" + "x" * 3_000_000 + "'", "name")
    client.send(long[:100_000])
    assert client.error().is_(*WAITED)
    holder.query("COMMIT")
    client.send(long[100_000:], wire.bind(statement="name"), wire.execute(), wire.sync())
    assert client.result().types == "Z"
    assert client.value("SELECT 'goes on'") == "goes on"


@pytest.mark.setting("databases.query_wait_timeout_action", "users.query_wait_timeout_action")
def test_the_users_action_wins_over_the_databases(new_pooler):
    pooler = new_pooler(
        PATIENT,
        databases={
            "main": {},
            "closing": {"dbname": "main", "query_wait_timeout_action": "disconnect"},
        },
        users={"bob": {"query_wait_timeout_action": "error"}},
    )
    for database, user, severity in (
        ("main", "app", "ERROR"),
        ("closing", "app", "FATAL"),
        ("closing", "bob", "ERROR"),
    ):
        holder_of(pooler, database=database, user=user)
        client = pooler.client(database=database, user=user)
        client.send(wire.query("SELECT 1"))
        assert client.error().is_(severity, "57014", "query_wait_timeout")
        if severity == "FATAL":
            client.closed()


def test_query_timeout_of_a_waiting_client_ends_its_query(new_pooler):
    pooler = new_pooler({**PATIENT, "query_wait_timeout": 60})
    holder, client = holder_of(pooler), pooler.client()
    pooler.command("SET query_timeout = '0.3'")
    error, types = answers(client, wire.query("SELECT 1"))
    assert error.is_("ERROR", "57014", "query_timeout")
    assert types == "EZ"
    pooler.command("SET query_timeout = 0")
    holder.query("COMMIT")
    assert client.value("SELECT 'goes on'") == "goes on"


def test_a_waiting_client_can_still_be_cancelled(new_pooler):
    pooler = new_pooler({**BOUNDED, **PATIENT, "query_wait_timeout": 60})
    holder, (client,) = fill(pooler)
    other = pooler.client()
    assert answers(other, wire.query("SELECT 1"))[0].is_(*FULL)
    cancel(pooler.address, client.key)
    assert client.result().error.is_("ERROR", "57014", "canceling statement due to user request")
    other.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    assert answers(client, wire.query("SELECT 1"))[0].is_(*FULL)
    assert queue(pooler)["canceled"] == 1
    drain(holder, [other])


# Both, and everything else


def test_what_was_refused_is_counted(new_pooler):
    port = free_port()
    pooler = new_pooler({**BOUNDED, "metrics_port": port})
    holder, waiting = fill(pooler)
    client = pooler.client()
    for _ in range(3):
        answers(client, wire.query("SELECT 1"))
    assert pooler.command("SHOW STATS_QUEUES").names == [
        "database", "user", "waiting", "max_pool_waiters",
        "queue_full", "query_wait_timeout", "query_timeout", "canceled",
    ]  # fmt: skip
    assert queue(pooler) == {
        "waiting": 1, "max_pool_waiters": 1,
        "queue_full": 3, "query_wait_timeout": 0, "query_timeout": 0, "canceled": 0,
    }  # fmt: skip
    pool = {"database": "main", "user": "app"}
    page = scrape(port)
    assert page.value("pgusher_query_unsent_total", reason="queue_full", **pool) == 3
    assert page.value("pgusher_pool_waiters_limit", **pool) == 1
    drain(holder, waiting)


def test_a_takeover_finds_queues_and_dropped_batches_as_they_were(new_pooler):
    pooler = new_pooler({**BOUNDED, "max_client_conn": 50}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.settings["server_tls_sslmode"] = "disable"
    pooler.write_config()
    pooler.start()
    holder, waiting = fill(pooler)
    midway, within = pooler.client(), pooler.client()
    midway.send(wire.extended("SELECT 'never'"))
    assert midway.error().is_(*FULL)
    long = wire.parse("SELECT '" + "x" * 100_000 + "'")
    within.send(long[:50_000])
    assert within.error().is_(*FULL)
    within.send(long[50_000:60_000])
    pooler.close_console()
    # The rest of a message is awaited before the old process stops.
    within.send(long[60_000:])
    pooler.take_over()
    assert queue(pooler)["queue_full"] == 2
    assert queue(pooler)["waiting"] == 1
    assert answers(pooler.client(), wire.query("SELECT 1"))[0].is_(*FULL)
    for client in (midway, within):
        client.send(wire.query("SELECT 'skipped'"), wire.sync())
        assert client.result().types == "Z"
        assert answers(client, wire.query("SELECT 1"))[0].is_(*FULL)
    drain(holder, waiting)
    for client in (midway, within):
        assert client.value("SELECT 'goes on'") == "goes on"


def test_a_wait_ends_in_the_process_that_took_over(new_pooler):
    pooler = new_pooler({**PATIENT, "query_wait_timeout": 60}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.settings["server_tls_sslmode"] = "disable"
    pooler.write_config()
    pooler.start()
    holder, (client,) = fill(pooler)
    pooler.settings["query_wait_timeout"] = 0.5
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()
    assert client.result().error.is_(*WAITED)
    holder.query("COMMIT")
    assert client.value("SELECT 'goes on'") == "goes on"


# Drivers


@pytest.mark.parametrize("threshold", [None, 0])
def test_psycopg_goes_on_after_each_refusal(new_pooler, threshold):
    pooler = new_pooler(BOUNDED)
    connection = pooler.connect(prepare_threshold=threshold)
    holder, waiting = fill(pooler)
    for _ in range(3):
        with pytest.raises(psycopg.errors.TooManyConnections, match="max_pool_waiters"):
            connection.execute("SELECT %s::int", [1])
        assert connection.info.transaction_status == pq.TransactionStatus.IDLE
    drain(holder, waiting)
    for number in range(3):
        assert connection.execute("SELECT %s::int", [number]).fetchone() == (number,)


def test_psycopg_goes_on_after_a_wait(new_pooler):
    pooler = new_pooler(PATIENT)
    connection, holder = pooler.connect(prepare_threshold=0), holder_of(pooler)
    for _ in range(2):
        with pytest.raises(psycopg.errors.QueryCanceled, match="query_wait_timeout"):
            connection.execute("SELECT %s::int", [1])
    holder.query("COMMIT")
    assert connection.execute("SELECT %s::int", [1]).fetchone() == (1,)


def test_psycopg_in_pipeline_mode(new_pooler):
    pooler = new_pooler(BOUNDED)
    # Without prepared statements: psycopg takes one for prepared whose Parse was skipped after an
    # error, with PostgreSQL itself too.
    connection = pooler.connect(prepare_threshold=None)
    holder, waiting = fill(pooler)
    for _ in range(3):
        with pytest.raises(psycopg.errors.TooManyConnections), connection.pipeline():
            for number in range(5):
                connection.execute("SELECT %s::int", [number])
        assert connection.info.transaction_status == pq.TransactionStatus.IDLE
    # It ends with a Sync, which is no query that could be refused.
    with connection.pipeline():
        pass
    drain(holder, waiting)
    with connection.pipeline():
        cursors = [connection.execute("SELECT %s::int", [number]) for number in range(5)]
        assert [cursor.fetchone()[0] for cursor in cursors] == list(range(5))


def test_each_sync_of_a_libpq_pipeline_has_its_result(new_pooler):
    pooler = new_pooler(BOUNDED)
    connection = pooler.connect().pgconn
    holder, waiting = fill(pooler)
    connection.enter_pipeline_mode()
    for statements in (2, 1, 0):
        for _ in range(statements):
            connection.send_query_params(b"SELECT 1", [])
        connection.pipeline_sync()
    found = []
    while found.count("PIPELINE_SYNC") < 3:
        result = connection.get_result()
        if result is not None:
            found.append(pq.ExecStatus(result.status).name)
    assert found == [
        "FATAL_ERROR", "PIPELINE_ABORTED", "PIPELINE_SYNC",
        "FATAL_ERROR", "PIPELINE_SYNC",
        "PIPELINE_SYNC",
    ]  # fmt: skip
    connection.exit_pipeline_mode()
    drain(holder, waiting)
    assert connection.exec_(b"SELECT 1").status == pq.ExecStatus.TUPLES_OK


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_pgbench_within_the_bound_and_beyond(new_pooler, protocol):
    """Of twelve clients of a pool of two at least two and those in the queue go on to the end."""
    pooler = new_pooler({**ONE, "default_pool_size": 2, "max_pool_waiters": 10})
    script = pooler.path("select.sql")
    with open(script, "w", encoding="ascii") as file:
        file.write("SELECT 1;\n")
    os.chmod(script, 0o644)

    def bench():
        return run(
            [program("pgbench"), "-h", HOST, "-p", str(pooler.port), "-U", "app", "-n", "-f", script]
            + ["-M", protocol, "-c", "12", "-t", "300", "main"],
            check=False,
        )

    done = bench()
    assert done.returncode == 0, done.stderr
    assert "transactions actually processed: 3600/3600" in done.stdout
    assert queue(pooler)["queue_full"] == 0
    pooler.command("SET max_pool_waiters = 3")
    done = bench()
    lost = re.findall(r"client \d+ .*aborted.*max_pool_waiters", done.stderr.replace("\n", " | "))
    refused = queue(pooler)["queue_full"]
    assert 1 <= refused <= 12 - 2 - 3, done.stderr
    assert lost
    processed = int(re.search(r"processed: (\d+)/3600", done.stdout).group(1))
    assert processed >= (2 + 3) * 300
    wait_until(lambda: queue(pooler)["waiting"] == 0)
