# SPDX-License-Identifier: ISC
"""Clients that disconnect in the middle of something: it is ended, and their server stays."""

import random
import threading
import time

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.process import wait_until
from support.servers.pooler import is_sanitized

ENDLESS = "SELECT repeat('x', 1000), generate_series(1, 1000000000)"
NEVER = "INSERT INTO ledger VALUES ('never')"
KEPT = r"S-.* closing because: (?!successfully sent|not sending cancel)"


@pytest.fixture
def ledger(cluster):
    """A table; what it returns lists the rows in it."""
    with cluster.connect("main", "app") as connection:
        connection.execute("DROP TABLE IF EXISTS ledger")
        connection.execute("CREATE TABLE ledger (entry text)")
    yield lambda: [row["entry"] for row in cluster.ask("main", "SELECT entry FROM ledger")]
    cluster.ask("main", "DROP TABLE ledger")


def pid(client):
    return client.value("SELECT pg_backend_pid()")


# What a client is in the middle of; each function returns when the client is there.


def in_a_transaction(client, _):
    client.query("BEGIN")
    client.query(NEVER)


def in_a_failed_transaction(client, _):
    client.query("BEGIN")
    client.query(NEVER)
    with pytest.raises(ServerError):
        client.query("SELECT 1/0")


def in_a_query(client, cluster):
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(state="active"))


def in_a_query_of_a_transaction(client, cluster):
    in_a_transaction(client, cluster)
    in_a_query(client, cluster)


def in_a_batch(client, cluster):
    client.send(wire.extended(NEVER), wire.extended("SELECT pg_sleep(60)"), wire.sync())
    wait_until(lambda: cluster.backends(state="active"))


def in_a_batch_without_sync(client, _):
    client.send(wire.extended(NEVER), wire.flush())
    client.read_until("C")


def in_a_failed_batch_without_sync(client, _):
    client.send(wire.extended(NEVER), wire.extended("SELECT 1/0"), wire.flush())
    client.read_until("E")


def in_a_pipeline(client, cluster):
    client.send(*[wire.query(f"SELECT pg_sleep(60 + {number})") for number in range(5)])
    wait_until(lambda: cluster.backends(state="active"))


def in_a_large_result(client, _):
    client.send(wire.query(ENDLESS))
    client.read_until("D")


def in_copy_in(client, _):
    client.send(wire.query("COPY ledger FROM STDIN"))
    client.read_until("G")
    client.send(wire.copy_data(b"never\n") * 1000)


def in_copy_in_of_a_batch(client, _):
    client.send(wire.extended("COPY ledger FROM STDIN"), wire.sync())
    client.read_until("G")
    client.send(wire.copy_data(b"never\n") * 1000)


def in_copy_out(client, _):
    client.send(wire.query(f"COPY ({ENDLESS}) TO STDOUT"))
    client.read_until("d")


MIDDLES = [
    in_a_transaction, in_a_failed_transaction, in_a_query, in_a_query_of_a_transaction, in_a_batch,
    in_a_batch_without_sync, in_a_failed_batch_without_sync, in_a_pipeline, in_a_large_result,
    in_copy_in, in_copy_in_of_a_batch, in_copy_out,
]


def kill(pooler, client):
    """By the operator; the client gets an error, behind what was on its way to it."""
    (row,) = pooler.clients(state="active")
    pooler.command(f"KILL_CLIENT {row['id']}")
    client.close()


WAYS = {
    "terminate": lambda pooler, client: client.send(wire.terminate()).close(),
    "close": lambda pooler, client: client.close(),
    "reset": lambda pooler, client: client.reset(),
    "kill": kill,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("middle", MIDDLES)
def test_work_of_a_disconnected_client_is_ended(new_pooler, cluster, ledger, middle, mode, way):
    """F19, F20, F23: nothing of it is committed, and the same server serves the next client."""
    pooler = new_pooler({"pool_mode": mode, "default_pool_size": 1})
    client, next_one = pooler.client(), None
    one = pid(client)
    middle(client, cluster)
    WAYS[way](pooler, client)
    began = time.monotonic()
    next_one = pooler.client()
    assert pid(next_one) == one
    # Two seconds are for what was sent before a Terminate; PostgreSQL runs each query of a
    # pipeline.
    assert time.monotonic() - began < 9
    assert next_one.value("SELECT count(*) FROM pg_stat_activity WHERE state <> 'idle'"
                          " AND pid <> pg_backend_pid() AND usename = 'app'") == "0"
    assert next_one.extended("INSERT INTO ledger VALUES ('next')").tag == "INSERT 0 1"
    assert ledger() == ["next"]
    assert not pooler.lines(KEPT)
    next_one.leave()
    pooler.wait_pool(sv_active=0, sv_idle=1, sv_being_canceled=0, sv_active_cancel=0)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_a_cancelled_query_ends_in_time(one_server, cluster, ledger, how):
    client = one_server.client()
    in_a_query_of_a_transaction(client, cluster)
    getattr(client, how)()
    wait_until(lambda: not [row for row in cluster.backends() if row["state"] != "idle"], 3)
    assert len(cluster.backends()) == 1
    assert ledger() == []


def test_messages_sent_before_a_terminate_are_run(one_server, ledger):
    client = one_server.client()
    client.send(
        wire.query("SELECT pg_sleep(0.3)"),
        wire.query("INSERT INTO ledger VALUES ('simple')"),
        wire.extended("INSERT INTO ledger VALUES ('batch')"), wire.sync(),
        wire.query("COPY ledger FROM STDIN"), wire.copy_data(b"copy\n"), wire.copy_done(),
        wire.terminate(),
    )
    assert client.closed()
    wait_until(lambda: ledger() == ["simple", "batch", "copy"], 5)
    assert not one_server.lines(KEPT)


def test_a_batch_without_sync_before_a_terminate_is_not_run(one_server, ledger):
    client = one_server.client()
    client.send(wire.extended(NEVER), wire.terminate())
    assert client.closed()
    one_server.wait_pool(sv_idle=1)
    assert ledger() == []


def test_a_session_that_was_drained_is_reset(session_pooler, cluster):
    pooler = session_pooler
    client = pooler.client()
    one = pid(client)
    client.query("CREATE TEMP TABLE leftover ()")
    client.query("SELECT pg_advisory_lock(4711)")
    client.query("SET work_mem = '7MB'")
    client.query("PREPARE mine AS SELECT 1")
    in_a_query(client, cluster)
    client.close()
    pooler.wait_pool(sv_idle=1)
    client = pooler.client()
    assert pid(client) == one
    assert client.value("SELECT to_regclass('leftover')") is None
    assert client.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"
    assert client.value("SHOW work_mem") != "7MB"
    assert client.value("SELECT count(*) FROM pg_prepared_statements") == "0"


def test_a_session_whose_reset_fails_is_not_kept(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "session", "server_reset_query": "SELECT 1/0"})
    client = pooler.client()
    one = pid(client)
    client.query("BEGIN")
    client.close()
    assert pooler.wait_log("S-.* closing because: reset query failed")
    wait_until(lambda: not cluster.backends(pid=int(one)))
    # After a session that left nothing open, such an error is ignored as before.
    client = pooler.client()
    two = pid(client)
    client.leave()
    assert pid(pooler.client()) == two


def test_cancels_limit_the_wait(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 10})
    clients = [pooler.client() for _ in range(10)]
    for client in clients:
        client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: len(cluster.backends(state="active")) == 10)
    waiters = [pooler.client() for _ in range(20)]
    for number, waiter in enumerate(waiters):
        waiter.send(wire.query(f"SELECT {number}"))
    pooler.wait_pool(cl_waiting=20)
    began = time.monotonic()
    for client in clients:
        client.close()
    for number, waiter in enumerate(waiters):
        assert waiter.checked().value == str(number)
    assert time.monotonic() - began < 8  # cancel_wait_timeout is ten
    pooler.wait_pool(sv_active=0, sv_idle=10, sv_being_canceled=0, sv_active_cancel=0)
    assert not pooler.lines(KEPT)


def test_slow_readers_of_large_results_are_closed(new_pooler, cluster):  # F26
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 8})
    clients = [pooler.client() for _ in range(8)]
    before = pooler.memory()
    for client in clients:
        client.send(wire.query("SELECT repeat('x', 1000), generate_series(1, 200000)"))
    for _ in range(10):
        for client in clients:
            client.read_bytes(4000)
    if not is_sanitized():
        assert pooler.memory() - before < 40e6
    for client in clients:
        client.reset()
    pooler.wait_pool(sv_active=0, sv_being_canceled=0, timeout=6)
    wait_until(lambda: not cluster.backends(state="active"), 6)
    assert pooler.client().value("SELECT 'fresh'") == "fresh"


# Servers that do not cooperate


@pytest.fixture
def deaf(new_server):
    """A server that answers nothing but `first`, and closes no connection of a cancel request."""

    def script(connection):
        if connection.number > 0:
            connection.read_bytes(16)
            connection.server.cancels.append(connection.number)
            connection.server.gate.wait(30)
            return
        connection.login()
        while True:
            sql = connection.next_query()
            if sql == "first":
                connection.send(wire.one_row(sql))

    return new_server(script)


def test_a_server_that_does_not_end_its_query_is_closed(new_pooler, deaf):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "cancel_wait_timeout": 1},
        databases={"main": deaf.target()},
    )
    client = pooler.client()
    client.query("first")
    client.send(wire.query("hangs"))
    pooler.wait_pool(sv_active=1)
    client.close()
    pooler.wait_pool(sv_active=0, sv_being_canceled=1, sv_active_cancel=1)
    (row,) = pooler.servers(state="being_canceled")
    assert row["link"] == ""
    assert pooler.wait_log("S-.* closing because: cancel_wait_timeout", 2)
    pooler.wait_pool(sv_being_canceled=0, sv_active_cancel=0)
    deaf.gate.set()


@pytest.mark.parametrize("command", ["PAUSE", "SUSPEND", "KILL", "SHUTDOWN", "SHUTDOWN WAIT_FOR_SERVERS"])
def test_no_command_hangs_because_of_such_a_server(new_pooler, deaf, command):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "cancel_wait_timeout": 2},
        databases={"main": deaf.target()},
    )
    client = pooler.client()
    client.query("first")
    client.send(wire.query("hangs"))
    pooler.wait_pool(sv_active=1)
    client.close()
    pooler.wait_pool(sv_being_canceled=1)
    if command.startswith("SHUTDOWN"):
        try:
            pooler.command(command, 8)
        except Closed:
            pass
        assert pooler.wait_exit(8) == 0
    else:
        assert pooler.command(command, 8).tag == command
        assert pooler.servers() == []
        if command != "KILL":
            pooler.command("RESUME")
    deaf.gate.set()


def test_a_takeover_does_not_hang_for_such_a_server(new_pooler, deaf):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 2, "cancel_wait_timeout": 2},
        databases={"main": deaf.target()}, start=False,
    )
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    client = pooler.client()
    client.query("first")
    client.send(wire.query("hangs"))
    pooler.wait_pool(sv_active=1)
    client.close()
    pooler.wait_pool(sv_being_canceled=1)
    idle = pooler.client()
    pooler.close_console()
    old = pooler.take_over()
    old.wait(15)
    assert pooler.running()
    idle.send(wire.query("anything"))
    pooler.wait_pool(cl_waiting=1)
    deaf.gate.set()


def test_cancels_that_no_server_accepts_are_dropped(new_pooler, new_server, new_relay):  # F37
    def script(connection):
        connection.login()
        while True:
            sql = connection.next_query()
            if sql == "slow":
                connection.server.gate.wait(30)
            connection.send(wire.one_row(sql))

    server = new_server(script)
    relay = new_relay(server.port)
    pooler = new_pooler(
        {"pool_mode": "transaction", "cancel_wait_timeout": 2, "max_client_conn": 500,
         "server_connect_timeout": 1},
        databases={"main": {"host": relay.host, "port": relay.port}},
    )
    client = pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    before = pooler.descriptors()
    relay.set_mode("hold")
    waiter = pooler.client()
    waiter.send(wire.query("quick"))
    pooler.wait_pool(sv_login=1)
    most = 0
    for number in range(3000):
        canceler = RawClient(pooler.address)
        canceler.send(wire.cancel_request(client.key))
        canceler.close()
        if number % 500 == 0:
            most = max(most, pooler.descriptors())
            # No other client notices.
            assert pooler.client().status == "I"
    # With several workers some of them are on their way to a worker.
    assert most < before + (400 if pooler.setting("workers") == "1" else 550)
    assert pooler.pool()["cl_waiting_cancel_req"] <= 100
    pooler.wait_pool(cl_waiting_cancel_req=0, timeout=10)
    relay.set_mode("pass")
    server.gate.set()
    assert client.checked().value == "slow"
    pooler.close_console()
    wait_until(lambda: pooler.descriptors() <= before + 15)


# Many at once


TALK = 6 if is_sanitized() else 4


def test_no_client_receives_answers_for_a_disconnected_client(new_pooler, cluster):  # F21, F23, F79 in part
    """Disconnecting, cancelling and honest clients over a few servers: each receives its own token
    only."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 4, "max_client_conn": 500})
    stop, faults, served = threading.Event(), [], []

    def guard(act):
        def work(seed):
            generator = random.Random(seed)
            try:
                while not stop.is_set():
                    act(generator)
            except Exception as fault:
                faults.append(f"{act.__name__} {seed}: {fault!r}")
                stop.set()
        return work

    def vanish(generator):
        client = pooler.client()
        token = f"gone{generator.random()}"
        generator.choice([
            lambda: client.send(wire.query(f"SELECT '{token}', pg_sleep(0.05)")),
            lambda: client.send(wire.query("BEGIN"), wire.query(f"SELECT '{token}'")),
            lambda: client.send(wire.extended(f"SELECT '{token}'"), wire.flush()),
            lambda: client.send(wire.parse(f"SELECT '{token}'", "named"), wire.sync()),
            lambda: client.send(*[wire.query(f"SELECT '{token}'")] * 20),
            lambda: client.send(wire.query(ENDLESS)),
            lambda: client.send(wire.query("COPY (SELECT 1) TO STDOUT; SELECT 1/0")),
            lambda: client.send(wire.query(f"SELECT '{token}")[:-3]),
        ])()
        time.sleep(generator.random() * 0.01)
        generator.choice([client.close, client.reset, lambda: client.send(wire.terminate()).close()])()

    def annoy(generator):
        with pooler.client() as client:
            client.send(wire.query("SELECT pg_sleep(0.01)"))
            with RawClient(pooler.address) as canceler:
                canceler.send(wire.cancel_request(client.key))
                canceler.closed()
            error = client.result().error
            assert error is None or error.sqlstate == "57014"

    def be_honest(generator):
        with pooler.client() as client:
            for _ in range(20):
                token = f"mine{generator.random()}"
                if generator.random() < 0.5:
                    assert client.value(f"SELECT '{token}'") == token
                else:
                    assert client.extended(f"SELECT '{token}'").value == token
                served.append(token)

    threads = [threading.Thread(target=guard(act), args=(number,)) for number, act in
               enumerate([vanish] * 6 + [annoy] * 3 + [be_honest] * 6)]
    for thread in threads:
        thread.start()
    stop.wait(TALK)
    stop.set()
    for thread in threads:
        thread.join(30)
    assert not faults
    assert len(served) > 20
    pooler.wait_pool(sv_active=0, sv_being_canceled=0, sv_active_cancel=0, cl_waiting=0, timeout=6)
    assert len(cluster.backends()) <= 4
    wait_until(lambda: not [row for row in cluster.backends() if row["state"] != "idle"], 6)
    assert pooler.client().value("SELECT 'fresh'") == "fresh"
