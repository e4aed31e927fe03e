# SPDX-License-Identifier: ISC
"""Former bugs. Each test describes what happened."""

import signal
import socket
import struct
import time

import pytest

from support import wire
from support.passwords import ScramClient
from support.process import HOST, run, stop_process, wait_until
from support.servers.fake_server import FakeConnection, simple_answer


def running(pooler, client, sql="SELECT pg_sleep(20)"):
    """Start a query and wait until it runs."""
    client.send(wire.query(sql))
    wait_until(lambda: pooler.cluster.backends(state="active", query=sql))
    return client


# Clients that disconnect after half a message


@pytest.mark.parametrize("size", [1, 9000])
@pytest.mark.parametrize("linked", [False, True])
def test_a_flush_with_a_body_ends_that_client_only(new_pooler, linked, size):
    """The next client got its error, and its own requests were skipped up to a Sync."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    other, client = pooler.client(), pooler.client()
    other.query("SELECT 1")
    if linked:
        client.query("BEGIN")
    # A long message is forwarded before it is whole.
    client.send(wire.message("H", b"x" * size)[:5005])
    assert client.fatal().sqlstate == "08P01"
    assert other.extended("SELECT 'mine'").value == "mine"


def test_half_a_copy_data_is_not_released_to_the_pool(new_pooler):
    """In session mode the reset query was taken for the rest, and the server was kept for ever."""
    pooler = new_pooler({"pool_mode": "session", "default_pool_size": 1})
    client = pooler.client()
    client.query("SELECT 1")
    client.send(b"d", struct.pack("!I", 100000), b"x" * 5000)
    time.sleep(0.2)
    client.close()
    pooler.wait_log("closing because: client disconnect before everything was sent to the server")
    assert pooler.client().value("SELECT 'mine'") == "mine"


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_disconnect_before_the_answer_was_read(new_pooler, new_server, mode):
    """The server had been paused for the slow reader, and was released while paused."""

    def answer(_, sql):
        return wire.one_row("x" * int(sql)) if sql.isdigit() else None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": mode, "default_pool_size": 1}, databases={"main": server.target()}
    )
    # One of these fits except for a part of what arrived with the server's last bytes.
    for size in range(100000, 500000, 20000):
        client = pooler.client(unix=True)
        client.send(wire.query(str(size)))
        time.sleep(0.05)
        client.send(wire.terminate())
        with pooler.client() as other:
            assert other.query("mine", 5).value == "mine"


def test_the_rest_of_a_late_copy_data_is_not_taken_for_messages(new_pooler, new_server):
    """A closed server read nothing; for the next server the run began in the middle of the message."""

    def script(connection):
        connection.login()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_round_robin": 0}, databases={"main": server.target()}
    )
    first, second = pooler.client(), pooler.client()
    first.query("one")
    # Late CopyData, which no server needs, with something like a message in it.
    inside = wire.query("smuggled")
    data = b"x" * 5000 + inside
    second.send(wire.copy_data(data)[:5005])
    time.sleep(0.2)
    stop_process(pooler.process)
    second.send(inside, wire.query("honest"))
    time.sleep(0.2)
    server.connections[0].reset()
    time.sleep(0.2)
    pooler.signal(signal.SIGCONT)
    assert second.checked(5).value == "honest"
    output = [body for each in server.connections for _, body in each.received]
    assert wire.text("smuggled") not in output


# Cancel requests


def test_a_cancel_request_in_a_login_ends_that_client_only(new_pooler):
    """The daemon ended: in a login there is no step to a cancel request."""
    pooler = new_pooler({"pool_mode": "transaction", "auth_type": "md5"}, auth={"app": "secret"})
    client = running(pooler, pooler.client(password="secret"))
    intruder = pooler.raw().send_startup()
    intruder.read_until("R")
    intruder.send(wire.cancel_request(client.key))
    intruder.closed()
    assert pooler.client(password="secret").value("SELECT 1") == "1"
    client.close()


def test_a_cancel_request_is_sent_although_its_client_has_closed(new_pooler, new_server):
    """Several drivers close as soon as they have sent it: the request was dropped."""

    def script(connection):
        if connection.number == 1:
            # A slow login: it is the only connection attempt at a time.
            connection.accept_startup()
            connection.server.gate.wait(10)
            connection.welcome()
            connection.serve()
        connection.login()
        connection.serve(lambda _, sql: b"" if sql == "slow" else None)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction", "server_login_concurrency": 1},
                        databases={"main": server.target()})
    client, waiter = pooler.client(), pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    waiter.send(wire.query("quick"))
    pooler.wait_pool(cl_waiting=1, sv_login=1)
    pooler.raw().send(wire.cancel_request(client.key)).close()
    pooler.wait_pool(cl_waiting_cancel_req=1)
    time.sleep(0.3)
    server.gate.set()
    wait_until(lambda: server.cancels)
    pooler.wait_pool(cl_waiting_cancel_req=0, cl_active_cancel_req=0)


def test_a_connection_for_a_cancel_that_came_too_late_is_closed(new_pooler):
    """It logged in instead: one server more than the pool may have."""
    listener = socket.create_server((HOST, 0), backlog=0)
    listener.settimeout(10)
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"host": HOST, "port": listener.getsockname()[1]}},
    )
    client = pooler.raw().send_startup()
    server = FakeConnection(None, listener.accept()[0], 0)
    server.login()
    client.finish_login("app").send(wire.query("slow"))
    assert server.next_query() == "slow"
    # The backlog of the listener is full: a new connection gets no answer at once.
    first_connection = socket.create_connection(listener.getsockname())
    asker = pooler.raw().send(wire.cancel_request(client.key))
    pooler.wait_pool(cl_waiting_cancel_req=1, sv_login=1)
    server.send(wire.one_row("slow"))
    assert client.checked().value == "slow"
    assert asker.closed()
    listener.accept()[0].close()
    first_connection.close()
    late = listener.accept()[0]
    late.settimeout(5)
    assert late.recv(100) == b""
    late.close()
    pooler.wait_pool(sv_login=0, sv_idle=1)
    server.close()
    listener.close()


def test_a_server_without_a_key_cannot_be_cancelled(new_pooler, new_server):
    """Connections for the request were opened as fast as possible."""

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(0), wire.parameter_status("server_version", "15.0"))
        connection.send(wire.ready())
        connection.next_query()
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target()})
    client = pooler.client().send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    assert pooler.raw().send(wire.cancel_request(client.key)).closed(3)
    assert server.count == 1


# Long pipelines


def test_a_long_batch_after_an_error_reaches_its_sync(pooler):
    """No message of it is answered before the Sync, for which there was no room any more."""
    client = pooler.client()
    batch = wire.bind() + wire.execute()
    count = 50000
    client.send(wire.parse("SELECT 1/0") + batch, wire.flush())
    assert client.error().sqlstate == "22012"
    client.send(batch * count, wire.sync())
    assert client.result().status == "I"
    assert client.value("SELECT 'goes on'") == "goes on"


def test_a_long_batch_around_an_error_reaches_its_sync(pooler):
    client = pooler.client()
    batch = wire.bind() + wire.execute()
    client.send(wire.parse("SELECT 1/0"), batch * 50000, wire.sync(), wire.query("SELECT 'next'"))
    assert client.result().error.sqlstate == "22012"
    assert client.checked().value == "next"


# Servers that close


@pytest.mark.parametrize("says", [True, False])
def test_an_idle_server_closed_by_a_set_is_replaced_without_an_error(new_pooler, new_server, says):
    """If it sends an error: else it may have received the client's query as well."""
    words = wire.error("57P01", "terminated", "FATAL") if says else b""

    def script(connection):
        connection.login()
        while True:
            sql = connection.next_query()
            if "SET " in sql and connection.number == 0:
                connection.send(words)
                return
            connection.send(simple_answer(sql))

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    pooler.client().query("one")
    client = pooler.client(application_name="other")
    client.send(wire.query("mine"))
    if says:
        assert client.checked().value == "mine"
        assert server.count == 2
    else:
        assert client.fatal().is_("FATAL", "08006", "server conn crashed?")


def test_a_server_that_always_closes_at_a_set_is_reported(new_pooler, new_server):
    def script(connection):
        connection.login()
        connection.serve(lambda _, sql: wire.error("57P01", "no") if "SET " in sql else None)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client(application_name="other")
    error = client.send(wire.query("mine")).fatal()
    assert error.is_("FATAL", "08006", "server conn crashed?")


# Waiting


def test_a_failing_pool_refuses_though_other_clients_wait(new_pooler, private_cluster):
    """A client that came behind a client that was queued in time was queued too."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 30}, cluster=private_cluster
    )
    first, second = pooler.client(), pooler.client()
    first.query("SELECT 1")
    private_cluster.stop("immediate")
    pooler.wait_pool(sv_idle=0)
    first.send(wire.query("SELECT 1"))
    pooler.wait_log("closing because: connect failed")
    pooler.wait_pool(cl_waiting=1)
    error = second.send(wire.query("SELECT 1")).fatal(3)
    assert error.sqlstate == "08006"
    assert error.text.startswith("server login has been failing, cached error: connect failed")
    assert first.silent()


# Logins


def test_a_secret_that_changes_while_its_keys_are_derived_refuses_all(new_pooler):
    """Only the first client that had asked for them was refused, the others were never answered."""
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "scram_iterations": 300000}, auth={"app": "old"}
    )
    clients = [pooler.raw().send_startup() for _ in range(3)]
    for client in clients:
        client.read()
        client.send_sasl_first(ScramClient("old").first())
        client.read()
    pooler.auth = {"app": "new"}
    pooler.write_config()
    pooler.signal(signal.SIGHUP)
    for client in clients:
        assert client.fatal().text == "SASL authentication failed"


def test_a_lack_of_descriptors_is_no_failure_of_the_server(new_pooler):
    """The pool paused for server_login_retry, and refused its clients, long after it was over."""
    pooler = new_pooler({"pool_mode": "transaction", "server_login_retry": 30})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("RECONNECT")
    pooler.wait_pool(sv_idle=0, sv_active=0)
    limit_descriptors(pooler, 3)
    client.send(wire.query("SELECT 'late'"))
    pooler.wait_log("Too many open files")
    assert client.silent(0.5)
    limit_descriptors(pooler, 1000)
    assert client.checked(3).value == "late"


def limit_descriptors(pooler, limit):
    """Let the daemon open no more descriptors than this."""
    run(["prlimit", f"--pid={pooler.process.pid}", f"--nofile={limit}:"])


# More connections than descriptors


def test_connections_that_never_log_in_are_dropped_for_new_ones(new_pooler):
    """Only connections that had sent nothing at all were."""
    pooler = new_pooler({"max_client_conn": 30, "auth_type": "md5"}, auth={"app": "secret"})
    crowd = [pooler.raw().send_startup() for _ in range(30)]
    crowd[-1].read_until("R")
    assert pooler.refused(password="secret").sqlstate == "53300"
    time.sleep(2.2)
    assert pooler.client(password="secret").value("SELECT 1") == "1"
