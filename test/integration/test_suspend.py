# SPDX-License-Identifier: ISC
"""SUSPEND: every connection stops between two messages, and continues as if nothing had happened."""

import contextlib
import os
import signal
import subprocess
import threading
import time

import pytest
from support import wire
from support.clients.raw import ServerError
from support.process import HOST, as_service, stays, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program
from support.servers.fake_server import set_when_gate_opens

BIG = "SELECT repeat('x', 10000) FROM generate_series(1, 3000)"


def state(pooler):
    """The state in SHOW STATE."""
    (found,) = [row["key"] for row in pooler.show("STATE") if row["value"] == "yes"]
    return found


def begin(pooler):
    """Send SUSPEND on a console of its own, without waiting for the answer."""
    state(pooler)  # connects first, since no connection is accepted from now on
    console = pooler.console()
    console.send(wire.query("SUSPEND"))
    return console


def wait_suspending(pooler):
    wait_until(lambda: state(pooler) == "suspended")


def refused(pooler, sql):
    """The error that the console answers."""
    with pytest.raises(ServerError) as caught:
        pooler.command(sql)
    return caught.value


def test_nothing_is_read_until_resume(pooler):
    client = pooler.client()
    assert client.value("SELECT 1") == "1"
    assert state(pooler) == "active"
    assert pooler.command("SUSPEND").tag == "SUSPEND"
    assert state(pooler) == "suspended"
    client.send(wire.query("SELECT 2"))
    assert client.silent()
    assert pooler.command("RESUME").tag == "RESUME"
    assert client.result().value == "2"
    assert state(pooler) == "active"
    assert pooler.lines("SUSPEND command issued")


def test_running_query_does_not_delay_it(pooler, cluster):
    client = pooler.client()
    client.send(wire.query("SELECT 'slept' FROM pg_sleep(0.5)"))
    wait_until(lambda: cluster.backends(state="active"))
    assert pooler.command("SUSPEND", timeout=0.4).tag == "SUSPEND"
    wait_until(lambda: not cluster.backends(state="active"))
    assert client.silent()
    pooler.command("RESUME")
    assert client.result().value == "slept"


def test_transaction_goes_on_after_it(pooler):
    client = pooler.client()
    client.query("BEGIN")
    before = client.value("SELECT pg_backend_pid()")
    pooler.command("SUSPEND")
    client.send(wire.query("SELECT pg_backend_pid()"))
    assert client.silent()
    pooler.command("RESUME")
    assert client.result().value == before
    assert client.query("COMMIT").tag == "COMMIT"


def test_half_a_message_is_completed_and_no_byte_more_is_read(pooler):
    client = pooler.client()
    message = wire.query("SELECT 'whole'")
    client.send(message[:3])
    console = begin(pooler)
    wait_suspending(pooler)
    assert console.silent()
    client.send(message[3:] + wire.query("SELECT 'next'"))
    assert console.result().tag == "SUSPEND"
    # The answer may arrive before the server is at rest, but there is none to the next query.
    first = None if client.silent(0.1) else client.result()
    assert client.silent()
    console.query("RESUME")
    assert (first or client.result()).value == "whole"
    assert client.result().value == "next"


def test_waiting_client_is_served_first(one_server):
    holder, waiter = one_server.client(), one_server.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 'served'"))
    one_server.wait_pool(cl_waiting=1)
    console = begin(one_server)
    wait_suspending(one_server)
    assert console.silent()
    assert holder.query("COMMIT").tag == "COMMIT"
    holder.send(wire.query("SELECT 'later'"))
    assert console.result().tag == "SUSPEND"
    assert holder.silent()
    console.query("RESUME")
    assert waiter.result().value == "served"
    assert holder.result().value == "later"


@pytest.mark.setting("suspend_timeout")
def test_client_that_waits_too_long_is_closed(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "suspend_timeout": 0.3}
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    silent = pooler.raw()
    assert pooler.command("SUSPEND").tag == "SUSPEND"
    assert waiter.fatal().is_("FATAL", "57P01", "suspend_timeout")
    silent.close()
    pooler.command("RESUME")
    assert holder.query("COMMIT").tag == "COMMIT"
    assert pooler.lines("closing because: suspend_timeout")


def test_timeout_of_zero_waits_without_limit(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "suspend_timeout": 0})
    login = pooler.raw(unix=True)
    wait_until(lambda: pooler.show("LISTS", list="login_clients", items=1))
    console = begin(pooler)
    assert console.silent(0.5)
    assert login.silent(0.01)
    login.login()
    assert console.result().tag == "SUSPEND"
    console.query("RESUME")
    assert login.value("SELECT 1") == "1"


def test_message_that_stays_incomplete_closes_its_client(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "suspend_timeout": 0.3})
    other, client = pooler.client(), pooler.client()
    client.send(wire.query("SELECT 1")[:-2])
    wait_until(lambda: len(pooler.show("ACTIVE_SOCKETS", user="app")) == 1)
    assert pooler.command("SUSPEND").tag == "SUSPEND"
    assert client.fatal().text == "suspend_timeout"
    pooler.command("RESUME")
    assert other.value("SELECT 1") == "1"


def test_new_connections_wait_in_the_backlog(pooler):
    pooler.command("SUSPEND")
    with contextlib.ExitStack() as stack:
        early = [pooler.raw(), pooler.raw(unix=True)]
        for each in early:
            stack.enter_context(each)
            each.send_startup()
            assert each.silent(0.1)
        pooler.command("RESUME")
        for each in early:
            each.finish_login("app")
            assert each.value("SELECT 1") == "1"


def test_it_ends_with_the_last_console(pooler):
    client = pooler.client()
    first, second = pooler.console(), pooler.console()
    first.query("SUSPEND")
    client.send(wire.query("SELECT 1"))
    first.close()
    assert client.silent(0.4)
    assert second.query("SHOW STATE").dicts()[2] == {"key": "suspended", "value": "yes"}
    second.close()
    assert client.result().value == "1"
    assert pooler.lines("admin disappeared when suspended, doing RESUME")
    assert state(pooler) == "active"


def test_console_that_disconnects_early_ends_it_too(one_server):
    holder, waiter = one_server.client(), one_server.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    one_server.wait_pool(cl_waiting=1)
    console = begin(one_server)
    one_server.wait_log("SUSPEND command issued")
    console.close()
    one_server.close_console()
    one_server.wait_log("admin disappeared when suspended, doing RESUME")
    holder.query("COMMIT")
    assert waiter.result().value == "1"


def test_resume_answers_a_suspend_that_waits(one_server):
    holder, waiter = one_server.client(), one_server.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    one_server.wait_pool(cl_waiting=1)
    console = begin(one_server)
    wait_suspending(one_server)
    one_server.command("RESUME")
    assert console.result().error.text == "SUSPEND was ended by RESUME"
    holder.query("COMMIT")
    assert waiter.result().value == "1"


def test_sigusr2_resumes(pooler):
    client = pooler.client()
    pooler.command("SUSPEND")
    pooler.signal(signal.SIGUSR1)
    pooler.wait_log("got SIGUSR1, but already paused/suspended")
    pooler.signal(signal.SIGUSR2)
    pooler.wait_log("got SIGUSR2, continuing from SUSPEND")
    assert client.value("SELECT 1") == "1"


def test_cancel_of_the_console_resumes(pooler):
    asker = pooler.raw(unix=True)
    wait_until(lambda: pooler.show("LISTS", list="login_clients", items=1))
    console = begin(pooler)
    wait_suspending(pooler)
    asker.send(wire.cancel_request(console.key))
    assert console.result().error.text == "canceled"
    assert state(pooler) == "active"
    assert pooler.client().value("SELECT 1") == "1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_termination_signals_are_handled_at_once(new_pooler, number):
    pooler = new_pooler(start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    pooler.allow("suspend was in progress")
    pooler.command("SUSPEND")
    pooler.signal(number)
    assert pooler.wait_exit() == 1
    assert pooler.lines("FATAL suspend was in progress, going down immediately")
    assert os.path.exists(pooler.socket_path)
    assert not os.path.exists(pooler.path("pid"))


def test_refusals(pooler):
    pooler.command("PAUSE main")
    assert refused(pooler, "SUSPEND").text == "cannot suspend with paused databases"
    pooler.command("RESUME main")
    pooler.command("PAUSE")
    assert refused(pooler, "SUSPEND").text == "already suspended/paused"
    pooler.command("RESUME")
    pooler.command("SUSPEND")
    for sql in ("SUSPEND", "PAUSE", "PAUSE main", "KILL", "KILL main"):
        assert refused(pooler, sql).text == "already suspended/paused"
    pooler.command("RESUME")
    assert refused(pooler, "RESUME").text == "pooler is not paused/suspended"
    assert refused(pooler, "SUSPEND x").text.startswith("invalid command")


def test_nothing_times_out_while_suspended(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "client_idle_timeout": 0.3,
            "server_idle_timeout": 0.3,
            "stats_period": 1,
        }
    )
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("SUSPEND")
    stays(lambda: pooler.clients() and pooler.servers(), 1.0)
    pooler.command("RESUME")
    assert client.fatal().text == "client_idle_timeout"
    wait_until(lambda: not pooler.servers())


def test_server_that_waits_for_its_check_is_closed(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "server_check_delay": 0})
    client = pooler.client()
    client.query("SELECT 1")
    wait_until(lambda: pooler.servers(state="used"))
    pooler.command("SUSPEND")
    assert pooler.lines("closing because: close unsafe file descriptors on suspend")
    assert not pooler.servers()
    pooler.command("RESUME")
    assert client.value("SELECT 1") == "1"


def test_large_result_stops_between_two_rows(pooler):
    client = pooler.client()
    client.send(wire.query(BIG))
    assert client.read().type == "T"
    seen = [client.read()]
    console = begin(pooler)
    wait_suspending(pooler)
    while True:
        try:
            seen.append(client.read(0.5))
        except TimeoutError:
            break
    assert console.result().tag == "SUSPEND"
    assert not client.buffer, "it stopped within a message"
    pooler.command("RESUME")
    seen += client.read_until("Z")
    rows = [each.body for each in seen if each.type == "D"]
    assert len(rows) == 3000
    assert len(set(rows)) == 1


def test_copy_goes_on(pooler, cluster):
    client = pooler.client()
    client.query("BEGIN")
    client.query("CREATE TEMP TABLE t (a int) ON COMMIT DROP")
    client.send(wire.query("COPY t FROM STDIN"))
    client.read_until("G")
    client.send(wire.copy_data(b"1\n") * 1000)
    pooler.command("SUSPEND")
    client.send(wire.copy_data(b"2\n") * 1000 + wire.copy_done())
    assert client.silent(0.1)
    pooler.command("RESUME")
    assert client.result().tag == "COPY 2000"
    assert client.value("SELECT sum(a) FROM t") == "3000"
    client.query("COMMIT")


def test_tls_clients_stop_too(new_pooler):
    authority = Authority()
    try:
        certificate, key = authority.issue("localhost", "DNS:localhost")
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "client_tls_sslmode": "require",
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            }
        )
        console = pooler.console(unix=True)
        connection = pooler.connect(sslmode="require")
        connection.execute("BEGIN")
        console.query("SUSPEND")
        answers = []
        thread = threading.Thread(
            target=lambda: answers.append(
                connection.execute("SELECT repeat('x', 200000)").fetchone()[0]
            )
        )
        thread.start()
        stays(lambda: not answers, 0.3)
        console.query("RESUME")
        thread.join(10)
        assert answers == ["x" * 200000]
        connection.close()
    finally:
        authority.destroy()


def test_shutdown_while_suspended_keeps_the_files_of_the_other_process(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler(
        {"pool_mode": "transaction"}, databases={"main": {"host": HOST, "port": server.port}}
    )
    client = pooler.client()
    client.query("SELECT 1")
    (connection,) = server.connections
    pooler.command("SUSPEND")
    pooler._console.send(wire.query("SHUTDOWN"))
    assert pooler.wait_exit() == 0
    client.closed()
    connection.ended.wait(10)
    assert "X" not in [each.type for each in connection.received]
    assert os.path.exists(pooler.socket_path)


def test_shutdown_that_waits_ends_suspend(pooler):
    client = pooler.client()
    pooler.command("SUSPEND")
    client.send(wire.query("SELECT 1"))
    assert client.silent(0.1)
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    assert client.result().value == "1"
    assert refused(pooler, "SUSPEND").text == "pooler is shutting down"
    client.leave()
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def test_parameters_are_set_completely_first(new_pooler, new_server):
    """No message of the client is buffered, since its query was sent with the SETs: but the server
    is busy."""
    server = new_server(set_when_gate_opens)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client(application_name="mine")
    client.send(wire.query("first"))
    wait_until(lambda: server.connections and server.connections[0].received)
    console = pooler.console()
    console.send(wire.query("SUSPEND"))
    assert console.silent(0.2)
    server.gate.set()
    assert console.checked().tag == "SUSPEND"
    assert console.query("RESUME").tag == "RESUME"
    assert client.checked().value == "first"
    assert client.value("second") == "second"


def test_suspend_under_load_fails_no_transaction(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 3, "max_client_conn": 100}
    )
    script = pooler.write(
        "script", "BEGIN;\nSELECT 1;\nSELECT repeat('x', 20000);\nCOMMIT;\nSELECT 2;\n"
    )
    bench = subprocess.Popen(
        as_service(
            [program("pgbench"), "-n", "-c", "20", "-T", "3", "-f", script]
            + ["-h", HOST, "-p", str(pooler.port), "-U", "app", "main"]
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
    )
    wait_until(lambda: len(pooler.clients()) == 20)
    rounds = 0
    while bench.poll() is None and rounds < 15:
        begun = time.monotonic()
        assert pooler.command("SUSPEND").tag == "SUSPEND"
        assert time.monotonic() - begun < 8  # suspend_timeout is ten
        pooler.command("RESUME")
        rounds += 1
    out, _ = bench.communicate(timeout=30)
    assert bench.returncode == 0, out
    assert "number of failed transactions: 0 " in out
    assert rounds >= 3
