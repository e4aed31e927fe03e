# SPDX-License-Identifier: ISC
"""-R: a new process continues with everything that the old one had, and no client notices."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading

import psycopg
import pytest
from support import wire
from support.clients.metrics_page import scrape_in_time
from support.clients.raw import Closed, RawClient, ServerError
from support.process import HOST, as_service, free_port, run, stays, stop_process, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program
from support.servers.fake_server import set_when_gate_opens

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
needs_pgbouncer = pytest.mark.skipif(not PGBOUNCER, reason="no PgBouncer installed")

BIG = "SELECT repeat('x', 10000) FROM generate_series(1, 3000)"


@pytest.fixture
def make(new_pooler):
    """A daemon with a pidfile, in transaction mode."""

    def start(settings=None, program=None, **options):
        pooler = new_pooler(
            {"pool_mode": "transaction", "max_client_conn": 500, **(settings or {})},
            start=False,
            **options,
        )
        pooler.settings["pidfile"] = pooler.path("pid")
        pooler.settings.setdefault("server_tls_sslmode", "disable")
        pooler.write_config()
        return pooler.start(program=program)

    return start


@pytest.fixture
def pooler(make):
    return make()


def pid_of(pooler):
    """The content of its pidfile; 0: there is none, or it is being written."""
    with contextlib.suppress(FileNotFoundError), open(pooler.path("pid")) as file:
        return int(file.read() or 0)
    return 0


def take_over(pooler, *options, **popen):
    """-R, and what must hold after each."""
    pooler.close_console()
    old = pooler.take_over(*options, **popen)
    wait_until(lambda: pid_of(pooler) == pooler.process.pid, what="the new process's pidfile")
    assert pooler.process.pid != old.pid
    assert os.path.exists(pooler.socket_path)
    return old


def ids(pooler):
    return sorted(int(row["id"]) for row in pooler.clients() + pooler.servers())


# --- one client, in the middle of something -----------------------------------------------------


def test_idle_client_and_server_continue(pooler):
    client = pooler.client(TimeZone="Asia/Tokyo", application_name="moves")
    backend = client.value("SELECT pg_backend_pid()")
    before = ids(pooler)
    take_over(pooler)
    assert ids(pooler) == before
    assert client.value("SELECT pg_backend_pid()") == backend
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"
    assert client.value("SHOW application_name") == "moves"
    fresh = pooler.client()
    assert fresh.value("SELECT 1") == "1"
    assert max(ids(pooler)) > max(before), "ids go on"


def test_new_listeners_are_the_old_ones(pooler):
    take_over(pooler)
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.client(unix=True).value("SELECT 1") == "1"
    assert len(pooler.lines("got pooler socket: ")) == 2
    for line in (
        "WARNING Online restart is deprecated, use so_reuseport instead",
        "LOG takeover_init: launching connection",
        "LOG disko over, going background",
        "LOG old process killed, resuming work",
    ):
        assert pooler.lines(line)


def test_transaction_continues(pooler):
    client = pooler.client()
    client.query("BEGIN")
    backend = client.value("SELECT pg_backend_pid()")
    take_over(pooler)
    assert client.value("SELECT pg_backend_pid()") == backend
    assert client.query("COMMIT").tag == "COMMIT"
    assert client.status == "I"


def test_running_query_is_answered_by_the_new_process(pooler, cluster):
    client = pooler.client()
    client.send(wire.query("SELECT 'slept' FROM pg_sleep(1.5)"))
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    assert cluster.backends(state="active"), "too slow to mean anything"
    assert client.result().value == "slept"
    # Its server is free as before.
    assert client.value("SELECT 1") == "1"
    assert len(pooler.servers()) == 1


def test_pipelined_queries_are_answered_to_the_last(pooler, cluster):
    client = pooler.client()
    client.send(
        wire.query("SELECT pg_sleep(1)"),
        *[wire.extended(f"SELECT {number}") + wire.sync() for number in range(40)],
    )
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    client.result()
    assert [client.result().value for _ in range(40)] == [str(number) for number in range(40)]
    assert client.value("SELECT 1") == "1"


def test_large_result_is_whole(pooler):
    client = pooler.client()
    client.send(wire.query(BIG))
    head = client.read_until("D")
    take_over(pooler)
    rest = client.read_until("Z")
    rows = [each.body for each in head + rest if each.type == "D"]
    assert len(rows) == 3000
    assert len(set(rows)) == 1


def test_copy_in_continues(pooler):
    client = pooler.client()
    client.query("BEGIN")
    client.query("CREATE TEMP TABLE t (a int) ON COMMIT DROP")
    client.send(wire.query("COPY t FROM STDIN"))
    client.read_until("G")
    client.send(wire.copy_data(b"1\n") * 1000)
    take_over(pooler)
    client.send(wire.copy_data(b"2\n") * 1000 + wire.copy_done())
    assert client.result().tag == "COPY 2000"
    assert client.value("SELECT sum(a) FROM t") == "3000"
    client.query("COMMIT")


def test_half_a_message_gets_its_other_half(pooler):
    client = pooler.client()
    message = wire.query("SELECT 'whole'")
    client.send(message[:9])
    wait_until(lambda: pooler.show("ACTIVE_SOCKETS", user="app"))
    take_over(pooler)
    client.send(message[9:])
    assert client.result().value == "whole"


def test_half_a_long_message_gets_its_other_half(pooler):
    client = pooler.client()
    message = wire.query("SELECT length('" + "x" * 300000 + "')")
    client.send(message[:150000])
    wait_until(lambda: pooler.servers(state="active"))
    take_over(pooler)
    client.send(message[150000:])
    assert client.result().value == "300000"


def test_queue_keeps_its_order_and_its_time(make):
    pooler = make({"default_pool_size": 1})
    holder = pooler.client()
    holder.query("BEGIN")
    waiters = []
    for number in range(3):
        waiter = pooler.client()
        waiter.send(wire.query(f"SELECT {number}, clock_timestamp()"))
        waiters.append(waiter)
        pooler.wait_pool(cl_waiting=number + 1)
    wait_until(lambda: pooler.pool()["maxwait_us"] > 300000)
    take_over(pooler)
    row = pooler.pool()
    assert row["cl_waiting"] == 3
    assert row["maxwait"] * 1000000 + row["maxwait_us"] > 300000
    holder.query("COMMIT")
    rows = [waiter.result().rows[0] for waiter in waiters]
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert sorted(row[1] for row in rows) == [row[1] for row in rows]


def test_slow_reader_loses_nothing(pooler):
    client = pooler.client()
    client.send(wire.query("SELECT repeat('x', 1000000) FROM generate_series(1, 20)"))
    wait_until(lambda: pooler.show("ACTIVE_SOCKETS", user="app", type="S"))
    take_over(pooler)
    rows = [each for each in client.read_until("Z", 30) if each.type == "D"]
    assert len(rows) == 20
    assert client.value("SELECT 1") == "1"


def test_silent_connection_may_still_log_in(pooler):
    with pooler.raw() as tcp, pooler.raw(unix=True) as local:
        wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) >= 1)
        take_over(pooler)
        assert tcp.login().value("SELECT 1") == "1"
        assert local.login().value("SELECT 1") == "1"
        # Each of them counts once.
        take_over(pooler)
        assert pooler.lines("taken over 2 clients and")
        assert not pooler.lines("cannot be handed over")
        assert tcp.value("SELECT 1") == local.value("SELECT 1") == "1"


def test_cancel_keys_stay_valid(pooler, cluster):
    client = pooler.client()
    client.query("SELECT 1")
    long_key = pooler.client(protocol=wire.PROTOCOL_3_2)
    assert len(long_key.key) > 8
    take_over(pooler)
    for each in (client, long_key):
        each.send(wire.query("SELECT pg_sleep(60)"))
        wait_until(lambda: cluster.backends(state="active"))
        with RawClient(pooler.address) as asker:
            asker.send(wire.cancel_request(each.key))
            assert each.result().error.sqlstate == "57014"
        wait_until(lambda: not cluster.backends(state="active"))


def test_running_query_can_be_canceled_afterwards(pooler, cluster):
    client = pooler.client()
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    with RawClient(pooler.address) as asker:
        asker.send(wire.cancel_request(client.key))
        assert client.result().error.sqlstate == "57014"


def test_session_continues(make):
    pooler = make({"pool_mode": "session"})
    client = pooler.client()
    client.query("SET work_mem = '7MB'")
    take_over(pooler)
    assert client.value("SHOW work_mem") == "7MB"
    client.leave()
    wait_until(lambda: pooler.servers(state="idle"))
    assert pooler.client().value("SHOW work_mem") != "7MB"


# --- what belongs to no client --------------------------------------------------------------------


def test_counters_and_averages_continue(pooler):
    client = pooler.client()
    for _ in range(7):
        client.query("SELECT 1")
    before = pooler.stats()
    take_over(pooler)
    assert pooler.stats() == before
    client.query("SELECT 1")
    assert pooler.stats()["query_count"] == before["query_count"] + 1


# Counters of the process itself start anew, as Prometheus expects of a restart.
OF_THE_PROCESS = (
    "process_cpu_seconds",
    "pgbouncer_process_cpu_seconds",
    "pgusher_loop_busy_seconds",
    "pgusher_accept_paused",
    "pgusher_log_messages",
    "pgusher_dns_lookups",
    "pgusher_dns_changes",
    "pgusher_http_requests",
    "pgusher_worker_turns",
    "pgusher_worker_busy_seconds",
    "pgusher_worker_stops",
    "pgusher_worker_wake_ups",
    "pgusher_worker_mails",
    "pgusher_worker_moves",
)


def counters_of(page):
    """Counters that must never decrease, by name and labels."""
    return {
        (name, labels): value
        for family, kind in page.types.items()
        if kind in ("counter", "histogram") and family not in OF_THE_PROCESS
        for (name, labels), value in page.values.items()
        if name in (family, f"{family}_total", f"{family}_bucket", f"{family}_sum", f"{family}_count")
    }


def test_times_and_error_counters_continue(make):
    port = free_port()
    pooler = make({"metrics_port": port})
    client = pooler.client()
    for _ in range(3):
        with pytest.raises(ServerError):
            client.query("SELECT 1 / 0")
    client.query("SELECT pg_sleep(0.3)")
    with pytest.raises(ServerError):
        pooler.client(database="nowhere")

    def shown():
        return [
            [row for row in pooler.show(topic) if row["database"] == "main"]
            for topic in ("STATS_LATENCY", "STATS_ERRORS")
        ]

    before, page = shown(), counters_of(scrape_in_time(port))
    assert before[0] and [(row["class"], row["count"]) for row in before[1]] == [("22", "3")]
    for _ in range(2):
        take_over(pooler)
        assert shown() == before
        after = counters_of(scrape_in_time(port))
        assert {key for key in page if after.get(key, -1) < page[key]} == set()
        page = after
    # And they count on.
    client.query("SELECT pg_sleep(0.3)")
    times = {row["kind"]: row for row in shown()[0] if row["user"] == "app"}
    was = {row["kind"]: row for row in before[0] if row["user"] == "app"}
    assert int(times["query"]["count"]) == int(was["query"]["count"]) + 1
    assert int(times["query"]["max"]) >= int(was["query"]["max"]) >= 300000


def test_pause_and_disable_remain(make):
    pooler = make(databases={"main": {}, "second": {"dbname": "main"}})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("DISABLE second")
    pooler.command("PAUSE")
    client.send(wire.query("SELECT 2"))
    pooler.wait_pool(cl_waiting=1)
    take_over(pooler)
    assert pooler.show("STATE", key="paused")[0]["value"] == "yes"
    assert pooler.show("DATABASES", name="second")[0]["disabled"] == "1"
    assert client.silent()
    pooler.command("RESUME")
    assert client.result().value == "2"


def test_paused_database_remains_paused(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("PAUSE main")
    waiting = pooler.client()
    waiting.send(wire.query("SELECT 2"))
    take_over(pooler)
    assert pooler.show("DATABASES", name="main")[0]["paused"] == "1"
    fresh = pooler.client()
    pooler.command("RESUME main")
    assert waiting.result().value == "2"
    assert fresh.value("SELECT 1") == "1"


def test_keys_of_scram_clients_log_in_to_servers(make, cluster):
    pooler = make(
        {"auth_type": "scram-sha-256"},
        auth={"scram_login": cluster.secret("scram_login"), "admin": "x"},
    )
    pooler.use_console("admin", "x")
    client = pooler.client("scram_login", password="scram secret")
    first = client.value("SELECT pg_backend_pid()")
    take_over(pooler)
    cluster.terminate(int(first))
    cluster.wait_quiet()
    pooler.use_console("admin", "x")
    wait_until(lambda: not pooler.servers())
    assert client.value("SELECT pg_backend_pid()") != first


def test_secrets_that_were_looked_up_log_in_to_servers(make, cluster):
    pooler = make(
        {"auth_type": "md5", "auth_user": "harness"},
        auth={"harness": "", "admin": "x", "app": None},
    )
    client = pooler.client("md5_login", password="md5 secret")
    first = client.value("SELECT pg_backend_pid()")
    take_over(pooler)
    cluster.terminate(int(first))
    wait_until(lambda: not cluster.backends(pid=int(first)))
    assert client.value("SELECT pg_backend_pid()") != first


# --- starting -------------------------------------------------------------------------------------


def test_without_an_old_process_it_is_an_ordinary_start(make, new_pooler):
    pooler = new_pooler(start=False)
    pooler.start("-R")
    assert pooler.lines("LOG old process not found, try to continue normally")
    assert pooler.client().value("SELECT 1") == "1"


def test_abstract_socket_is_not_looked_for(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["unix_socket_dir"] = "@" + pooler.folder
    pooler.write_config()
    pooler.start("-R")
    assert pooler.lines("LOG old process not found, try to continue normally")


def test_it_cannot_be_used_with_a_service_manager(new_pooler):
    pooler = new_pooler(start=False)
    pooler.allow("cannot reboot under service manager")
    with socket.create_server((HOST, 0)) as listener:
        os.set_inheritable(listener.fileno(), True)
        command = (
            'exec 3<&{0}; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'.format(listener.fileno())
        )
        code = pooler.run_to_end(
            "-R",
            wrap=["bash", "-c", command, "x"],
            pass_fds=[listener.fileno()],
        )
    assert code == 1
    assert pooler.lines("FATAL cannot reboot under service manager")


def test_background(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.settings["logfile"] = pooler.path("log")
    pooler.write_config()
    old = pooler.process
    pooler.close_console()
    pooler.spawn("-d", "-R")
    assert pooler.process.wait(10) == 0
    assert old.wait(10) == 0
    wait_until(lambda: pid_of(pooler) not in (0, old.pid))
    pid = pid_of(pooler)
    assert client.value("SELECT 1") == "1"
    os.kill(pid, signal.SIGQUIT)
    wait_until(lambda: not os.path.exists(pooler.path("pid")))


# --- the new process fails ------------------------------------------------------------------------


def wait_going_on(pooler, client):
    assert client.value("SELECT 1") == "1"
    assert pooler.client().value("SELECT 1") == "1"
    wait_until(lambda: pid_of(pooler) == pooler.process.pid, what="the pidfile")


def test_new_process_that_ends_before_it_has_everything(make):
    pooler = make({"default_pool_size": 1, "suspend_timeout": 5})
    client = pooler.client()
    login = pooler.raw()
    console = pooler.superuser()
    login.send(wire.startup({"user": "nobody_knows"})[:9])
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) == 1)
    console.send(wire.query("HANDOVER 1"))
    pooler.wait_log("HANDOVER command issued")
    console.close()
    pooler.wait_log("the takeover has failed, going on")
    wait_going_on(pooler, client)


def test_new_process_that_ends_when_it_has_everything(pooler, cluster):
    client = pooler.client()
    client.send(wire.query("SELECT 'slept' FROM pg_sleep(0.5)"))
    idle = pooler.client()
    wait_until(lambda: cluster.backends(state="active"))
    console = pooler.superuser()
    console.send(wire.query("HANDOVER 1"))
    assert console.result().tag == "HANDOVER"
    idle.send(wire.query("SELECT 1"))
    assert idle.silent(0.2), "nothing moves"
    console.close()
    assert idle.result().value == "1"
    assert client.result().value == "slept"
    wait_going_on(pooler, client)


def test_new_process_that_ends_while_it_asks_the_old_one_to_end(pooler):
    client = pooler.client()
    console = pooler.superuser()
    console.send(wire.query("HANDOVER 1"))
    assert console.result().tag == "HANDOVER"
    stop_process(pooler.process)
    console.send(wire.query("HANDOVER COMMIT"))
    console.close()
    pooler.signal(signal.SIGCONT)
    pooler.wait_log("the takeover has failed, going on")
    wait_going_on(pooler, client)


def test_a_signal_cancels_it(pooler):
    client = pooler.client()
    console = pooler.superuser()
    console.send(wire.query("HANDOVER 1"))
    assert console.result().tag == "HANDOVER"
    pooler.signal(signal.SIGUSR2)
    pooler.wait_log("the takeover has failed, going on")
    with pytest.raises((Closed, AssertionError, ServerError, OSError)):
        console.query("HANDOVER COMMIT")
    wait_going_on(pooler, client)


def test_operators_can_use_the_console_while_it_is_prepared(make):
    pooler = make({"suspend_timeout": 30})
    client = pooler.client()
    login = pooler.raw()
    login.send(wire.startup({"user": "nobody_knows"})[:9])
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) == 1)
    console = pooler.superuser()
    console.send(wire.query("HANDOVER 1"))
    pooler.wait_log("HANDOVER command issued")
    with pytest.raises(ServerError) as caught:
        pooler.command("SUSPEND")
    assert caught.value.text == "a takeover is in progress"
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    pooler.wait_log("the takeover has failed, going on")
    with pytest.raises((Closed, OSError)):
        console.result()
    assert client.value("SELECT 1") == "1"
    for one in (client, login):
        one.close()
    pooler.close_console()
    assert pooler.wait_exit() == 0


def test_an_answer_in_progress_is_cut_and_delays_nothing(make):
    """Rows that a console does not read are not waited for; clients notice nothing."""
    pooler = make({"max_client_conn": 1000})
    clients = [pooler.client() for _ in range(300)]
    option = (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    console = pooler.keep(RawClient(pooler.address, options=[option])).login("admin", "pgbouncer")
    console.send(wire.query("SHOW SOCKETS") * 200)
    console.read_until("D")
    take_over(pooler)
    seen = b"".join(iter(lambda: console.socket.recv(1 << 20), b""))
    assert seen.count(b"SHOW\0") < 200
    assert [client.value("SELECT 1") for client in clients] == ["1"] * 300


def test_other_users_cannot_ask_for_it(pooler):
    for console in (pooler.console(unix=True), pooler.console()):
        for sql in ("HANDOVER 1", "HANDOVER COMMIT"):
            with pytest.raises(ServerError) as caught:
                console.query(sql)
            assert caught.value.text.startswith("invalid command")


def test_it_must_be_asked_for_in_order(pooler):
    console = pooler.superuser()
    with pytest.raises(ServerError) as caught:
        console.query("HANDOVER COMMIT")
    assert caught.value.text == "no takeover is in progress"
    with pytest.raises(ServerError) as caught:
        console.query("HANDOVER 99")
    assert caught.value.text.startswith("invalid command")


@pytest.mark.parametrize("line", ["takeover_init: launching", "HANDOVER finished", "disko over"])
def test_new_process_killed_during_takeover(pooler, line):
    """At whatever step, either the old process continues or the new one has everything."""
    client = pooler.client()
    client.query("BEGIN")
    client.query("CREATE TEMP TABLE t (a int) ON COMMIT DROP")
    old = pooler.process
    pooler.close_console()
    new = pooler.spawn("-R")
    wait_until(lambda: pooler.lines(line), interval=0.0005)
    new.kill()
    new.wait()
    try:
        rows = client.value("SELECT count(*) FROM t")
    except (Closed, OSError):  # the new process had the client already
        assert old.wait(10) == 0
        return
    pooler.process = old
    assert rows == "0"
    client.query("COMMIT")
    wait_going_on(pooler, client)


def test_old_process_that_hangs_is_not_waited_for_without_end(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.close_console()
    old = pooler.process
    old.send_signal(signal.SIGSTOP)
    pooler.allow("the old process does not answer")
    pooler.spawn("-R")
    assert pooler.process.wait(30) == 1
    assert pooler.lines("FATAL the old process does not answer")
    pooler.process = old
    old.send_signal(signal.SIGCONT)
    wait_going_on(pooler, client)


def test_old_process_that_hangs_in_the_middle_is_not_waited_for_without_end(make):
    pooler = make({"suspend_timeout": 1})
    client = pooler.client()
    client.query("SELECT 1")
    login = pooler.raw()
    login.send(wire.startup({"user": "nobody_knows"})[:9])  # it waits a second for the rest
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) == 1)
    pooler.close_console()
    old = pooler.process
    pooler.allow("the old process does not answer")
    pooler.spawn("-R")
    pooler.wait_log("HANDOVER command issued")
    old.send_signal(signal.SIGSTOP)
    assert pooler.process.wait(30) == 1
    assert pooler.lines("FATAL the old process does not answer")
    pooler.process = old
    old.send_signal(signal.SIGCONT)
    pooler.wait_log("the takeover has failed, going on")
    wait_going_on(pooler, client)


def test_new_process_with_a_broken_configuration(pooler):
    client = pooler.client()
    old = pooler.process
    pooler.allow("cannot load config file")
    good = pooler.config_text()
    pooler.write("pgusher.ini", good + "\nlisten_port = x\n")
    pooler.spawn("-R")
    assert pooler.process.wait(10) == 1
    pooler.process = old
    pooler.write("pgusher.ini", good)
    wait_going_on(pooler, client)


# --- TLS ------------------------------------------------------------------------------------------


@pytest.fixture
def authority():
    authority = Authority()
    yield authority
    authority.destroy()


def tls_settings(authority):
    certificate, key = authority.issue("localhost", "DNS:localhost")
    return {
        "client_tls_sslmode": "allow",
        "client_tls_cert_file": certificate,
        "client_tls_key_file": key,
    }


def test_encrypted_client_ends_its_transaction_in_the_old_process(make, authority):
    pooler = make(tls_settings(authority))
    plain = pooler.client()
    busy = pooler.connect(sslmode="require")
    idle = pooler.connect(sslmode="require")
    busy.execute("BEGIN")
    busy.execute("CREATE TEMP TABLE t (a int) ON COMMIT DROP")
    old, ups = pooler.process, len(pooler.lines("process up: "))
    pooler.close_console()
    pooler.spawn("-R")
    wait_until(lambda: len(pooler.lines("process up: ")) == ups + 1)
    assert plain.value("SELECT 1") == "1"
    wait_until(lambda: pid_of(pooler) == pooler.process.pid, what="the new process's pidfile")
    busy.execute("INSERT INTO t VALUES (1)")
    assert old.poll() is None
    assert busy.execute("SELECT sum(a) FROM t").fetchone() == (1,)
    busy.execute("COMMIT")
    assert old.wait(10) == 0
    for each in (busy, idle):
        with pytest.raises(psycopg.OperationalError):
            each.execute("SELECT 1")
    wait_until(lambda: pid_of(pooler) == pooler.process.pid, what="the pidfile")
    assert pooler.client(unix=True).value("SELECT 1") == "1"


def test_encrypted_client_that_waits_in_a_pause_gets_an_error(make, authority):
    """RESUME goes to the new process: in the old one the client would wait for ever."""
    pooler = make(tls_settings(authority))
    waits = pooler.connect(sslmode="require")
    pooler.command("PAUSE")
    shown = []

    def ask():
        try:
            waits.execute("SELECT 1")
        except psycopg.Error as error:
            shown.append(str(error))

    thread = threading.Thread(target=ask)
    thread.start()
    pooler.wait_pool(cl_waiting=1)
    take_over(pooler)
    thread.join(10)
    assert shown and "server shutting down" in shown[0], shown
    pooler.command("RESUME")
    assert pooler.client().value("SELECT 1") == "1"


def test_reload_of_the_old_process_does_not_affect_the_new_one(make, authority):
    port = free_port()
    pooler = make({**tls_settings(authority), "metrics_port": port})
    busy = pooler.connect(sslmode="require")
    busy.execute("BEGIN")
    old, ups = pooler.process, len(pooler.lines("process up: "))
    pooler.close_console()
    pooler.spawn("-R")
    wait_until(lambda: len(pooler.lines("process up: ")) == ups + 1)
    old.send_signal(signal.SIGHUP)
    pooler.wait_log("got SIGHUP, re-reading config")
    assert busy.execute("SELECT 1").fetchone() == (1,)
    assert not pooler.lines("cannot serve metrics")
    busy.execute("COMMIT")
    assert old.wait(10) == 0


def test_shutdown_timeout_closes_remaining_clients(make, authority):
    pooler = make({**tls_settings(authority), "shutdown_timeout": 1})
    busy = pooler.connect(sslmode="require")
    busy.execute("BEGIN")
    old, ups = pooler.process, len(pooler.lines("process up: "))
    pooler.close_console()
    pooler.spawn("-R")
    wait_until(lambda: len(pooler.lines("process up: ")) == ups + 1)
    assert old.wait(10) == 0
    assert pooler.client().value("SELECT 1") == "1"


# --- load -----------------------------------------------------------------------------------------


class Bench:
    """pgbench, working on a table of its own until it is checked, or for a minute."""

    def __init__(self, pooler, cluster, clients=50, options=()):
        self.cluster = cluster
        cluster.ask("main", "DROP TABLE IF EXISTS done; CREATE TABLE done (client int)")
        cluster.ask("main", "GRANT ALL ON done TO app")
        script = pooler.write(
            "script",
            "BEGIN;\nINSERT INTO done VALUES (:client_id);\nSELECT repeat('x', 5000);\n"
            "COMMIT;\nSELECT 1;\n",
        )
        self.process = subprocess.Popen(
            as_service(
                [program("pgbench"), "-n", "-c", str(clients), "-T", "60", "-f", script]
                + ["-h", HOST, "-p", str(pooler.port), "-U", "app", *options, "main"]
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd="/",
        )
        wait_until(lambda: len(pooler.clients()) >= clients)
        self._goes_on()

    def _done(self):
        return self.cluster.ask("main", "SELECT count(*) FROM done")[0]["count"]

    def _goes_on(self):
        before = self._done()
        wait_until(lambda: self._done() > before + 200, 30, "transactions")

    def check(self):
        """The process that serves now serves its clients too; no transaction has failed, and all that
        pgbench counts are there."""
        self._goes_on()
        self.process.send_signal(signal.SIGALRM)  # as when the time of -T is over
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out
        assert "number of failed transactions: 0 " in out
        (line,) = [each for each in out.splitlines() if "transactions actually processed" in each]
        assert int(line.split(":")[1].split("/")[0]) == self._done()


def test_five_restarts_in_a_row_under_load(make, cluster):
    pooler = make({"default_pool_size": 10})
    bench = Bench(pooler, cluster)
    for number in range(5):
        take_over(pooler)
        pooler.command("RELOAD")
        pooler.command("RELOAD")
        if number % 2 == 0:
            pooler.command("PAUSE")
            pooler.command("RESUME")
    bench.check()


def test_restarts_with_sessions_under_load(make, cluster):
    pooler = make({"pool_mode": "session", "default_pool_size": 30})
    bench = Bench(pooler, cluster, clients=20)
    for _ in range(3):
        take_over(pooler)
    bench.check()


# --- from an old PgBouncer --------------------------------------------------------------------------


@needs_pgbouncer
def test_from_pgbouncer(make, cluster):
    pooler = make(program=PGBOUNCER)
    idle = pooler.client(TimeZone="Asia/Tokyo")
    idle.query("SELECT 1")
    busy = pooler.client()
    busy.query("BEGIN")
    backend = busy.value("SELECT pg_backend_pid()")
    running = pooler.client()
    running.send(wire.query("SELECT 'ran' FROM pg_sleep(1)"))
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    for line in ("login OK, sending SUSPEND", "SUSPEND finished, sending SHOW FDS"):
        assert pooler.lines(line)
    assert pooler.lines("sending SHUTDOWN;")
    assert idle.value("SHOW TimeZone") == "Asia/Tokyo"
    assert busy.value("SELECT pg_backend_pid()") == backend
    assert busy.query("COMMIT").tag == "COMMIT"
    assert running.result().value == "ran"
    busy.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(state="active"))
    with RawClient(pooler.address) as asker:
        asker.send(wire.cancel_request(busy.key))
        assert busy.result().error.sqlstate == "57014"
    assert pooler.client().value("SELECT 1") == "1"


@needs_pgbouncer
def test_from_pgbouncer_under_load(make, cluster):
    # PgBouncer closes clients that wait when it is suspended: it gets more servers first.
    pooler = make({"default_pool_size": 4}, program=PGBOUNCER)
    bench = Bench(pooler, cluster, clients=20)
    assert pooler.pool("main", "app")["cl_waiting"]
    take_over(pooler)
    take_over(pooler)
    wait_until(lambda: len(pooler.show("SERVERS")) <= 4)
    bench.check()


@needs_pgbouncer
def test_keys_come_from_pgbouncer_too(make, cluster):
    pooler = make(
        {"auth_type": "scram-sha-256"},
        auth={"scram_login": cluster.secret("scram_login"), "admin": "x"},
        program=PGBOUNCER,
    )
    client = pooler.client("scram_login", password="scram secret")
    first = client.value("SELECT pg_backend_pid()")
    take_over(pooler)
    cluster.terminate(int(first))
    wait_until(lambda: not cluster.backends(pid=int(first)))
    assert client.value("SELECT pg_backend_pid()") != first


def fail_to_take_over(pooler, more=""):
    """A new process that has everything, and then finds that it cannot run in the background."""
    old = pooler.process
    pooler.close_console()
    pooler.allow("daemon needs pidfile")
    good = pooler.config_text()
    pooler.write("pgusher.ini", good + f"\npidfile =\n{more}\n")
    pooler.spawn("-R", "-d")
    assert pooler.process.wait(10) == 1
    assert pooler.lines("SHOW FDS finished")
    pooler.write("pgusher.ini", good)
    pooler.process = old


@needs_pgbouncer
def test_old_pgbouncer_continues_when_the_new_process_fails(make):
    pooler = make(program=PGBOUNCER)
    client = pooler.client()
    fail_to_take_over(pooler)
    assert client.value("SELECT 1") == "1"
    pooler.process.kill()  # its exit status after a signal is 1
    pooler.process.wait()


def pool_size_of(pooler):
    (row,) = pooler.show("CONFIG", key="default_pool_size")
    return row["value"]


@needs_pgbouncer
@pytest.mark.parametrize("new_size", ["1", "5", "auto"])
def test_old_pgbouncer_gets_its_pool_size_back_when_the_new_process_fails(make, new_size):
    pooler = make({"default_pool_size": 1}, program=PGBOUNCER)
    holder = pooler.client()
    holder.query("BEGIN")
    waiting = pooler.client()
    waiting.send(wire.query("SELECT 'waited'"))
    wait_until(lambda: pooler.pool()["cl_waiting"])
    fail_to_take_over(pooler, f"default_pool_size = {new_size}")
    assert waiting.result().value == "waited"
    assert pool_size_of(pooler) == "1"
    pooler.process.kill()
    pooler.process.wait()


@needs_pgbouncer
@pytest.mark.parametrize("size, while_waiting", [("1", "2"), ("0", "0")])
def test_old_pgbouncer_gets_its_pool_size_back_after_a_signal(make, size, while_waiting):
    # The server that one more client waits for is not to be had.
    pooler = make({"default_pool_size": size, "max_db_connections": 1}, program=PGBOUNCER)
    holder = pooler.client()
    holder.query("BEGIN")
    waiting = pooler.client()
    waiting.send(wire.query("SELECT 'waited'"))
    wait_until(lambda: pooler.pool()["cl_waiting"])
    old = pooler.process
    pooler.allow("takeover was in progress, going down immediately")
    pooler.spawn("-R")
    wait_until(lambda: pooler.lines("takeover_init: launching connection"))
    wait_until(lambda: pool_size_of(pooler) == while_waiting)
    pooler.process.terminate()
    assert pooler.process.wait(10) == 1
    pooler.process = old
    assert pool_size_of(pooler) == size
    holder.query("COMMIT")
    assert waiting.result().value == "waited"
    pooler.process.kill()
    pooler.process.wait()


# --- prepared statements --------------------------------------------------------------------------


def ask(client, *messages):
    """Send messages and a Sync; everything up to ReadyForQuery."""
    client.send(*messages, wire.sync())
    return client.result()


def prepare(client, name, sql):
    assert ask(client, wire.parse(sql, name)).types == "1Z"


def execute(client, name, values=()):
    result = ask(client, wire.bind(values, name), wire.execute())
    if result.error:
        raise result.error
    return result.value


def sleep(seconds):
    """Parse, Bind and Execute of a query that keeps the server busy."""
    return wire.extended(f"SELECT 'slept' FROM pg_sleep({seconds})")


def on_server(client):
    """What the server has, by its own pg_prepared_statements."""
    rows = client.query("SELECT name, statement FROM pg_prepared_statements ORDER BY 1").rows
    return [tuple(row) for row in rows]


def take_over_busy(pooler, cluster):
    """While a server is busy."""
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    assert cluster.backends(state="active"), "too slow to mean anything"


def test_prepared_statements_continue(make):
    pooler = make({"default_pool_size": 1})
    first, second = pooler.client(), pooler.client()
    prepare(first, "mine", "SELECT $1::int + 1")
    prepare(second, "mine", "SELECT 'of the second'")
    prepare(second, "x" * 300, "SELECT 'long'")
    before = on_server(first)
    assert len(before) == 3
    take_over(pooler)
    counted = pooler.stats()
    assert execute(first, "mine", [41]) == "42"
    assert execute(second, "mine") == "of the second"
    assert execute(second, "x" * 300) == "long"
    assert on_server(first) == before, "the server has what it had"
    after = pooler.stats()
    assert after["server_parse_count"] == counted["server_parse_count"]
    assert after["bind_count"] == counted["bind_count"] + 3
    prepare(first, "again", "SELECT 'of the second'")
    assert on_server(first) == before, "the same text is the same statement"


def test_names_in_use_remain_taken(make):
    pooler = make()
    client = pooler.client()
    prepare(client, "s", "SELECT 1")
    take_over(pooler)
    client.send(wire.parse("SELECT 2", "s"), wire.sync())
    client.fatal().is_("FATAL", "08P01", "prepared statement name is already in use")


def test_numbers_of_statements_are_never_used_again(make):
    pooler = make({"default_pool_size": 1})
    client = pooler.client()
    prepare(client, "a", "SELECT 'a'")
    prepare(client, "b", "SELECT 'b'")
    client.query("DEALLOCATE ALL")
    take_over(pooler)
    prepare(client, "c", "SELECT 'c'")
    assert on_server(client) == [("PGBOUNCER_3", "SELECT 'c'")]


def test_unnamed_statement_continues(make):
    pooler = make({"default_pool_size": 1})
    client, other = pooler.client(), pooler.client()
    assert ask(client, wire.parse("SELECT 'my own'")).types == "1Z"
    take_over(pooler)
    assert ask(other, wire.parse("SELECT 'of the other'")).types == "1Z"
    assert execute(client, "") == "my own"


@pytest.mark.parametrize("memory", [0, 200000])
def test_long_unnamed_statement_continues(make, memory):
    pooler = make({"default_pool_size": 1, "max_prepared_memory": memory})
    client, other = pooler.client(), pooler.client()
    text = "x" * 70000
    assert ask(client, wire.parse(f"SELECT '{text}'")).types == "1Z"
    take_over(pooler)
    other.send(wire.query("SELECT 'of the other'"))
    if memory == 0:
        assert other.result().value == "of the other"
    assert execute(client, "") == text
    if memory > 0:
        assert other.result().value == "of the other"


def test_statement_used_last_is_kept_longest(make):
    pooler = make({"default_pool_size": 1, "max_prepared_statements": 2})
    client = pooler.client()
    prepare(client, "a", "SELECT 'a'")
    prepare(client, "b", "SELECT 'b'")
    assert execute(client, "a") == "a"
    take_over(pooler)
    prepare(client, "c", "SELECT 'c'")
    assert [text for _, text in on_server(client)] == ["SELECT 'a'", "SELECT 'c'"]
    assert execute(client, "b") == "b"


def test_outdated_plans_are_known_after_a_takeover(make, cluster):
    """A client that prepares the same again gets a new plan on every server, also after a takeover."""
    pooler = make({"default_pool_size": 2})
    client, holder = pooler.client(), pooler.client()
    prepare(client, "a", "SELECT pg_backend_pid()")
    first = execute(client, "a")
    holder.query("BEGIN")
    second = execute(client, "a")
    assert first != second
    ask(client, wire.close("S", "a"))
    prepare(client, "a", "SELECT pg_backend_pid()")
    holder.query("COMMIT")
    take_over(pooler)
    parses = pooler.stats()["server_parse_count"]
    holder.query("BEGIN")
    assert execute(client, "a") in (first, second)
    prepare(holder, "b", "SELECT pg_backend_pid()")
    assert {execute(client, "a"), execute(holder, "b")} == {first, second}
    assert pooler.stats()["server_parse_count"] == parses + 1


def test_statement_closed_before_the_takeover_is_known(make):
    """Its client gets a new plan when it prepares the same text again."""
    pooler = make({"default_pool_size": 1})
    client = pooler.client()
    prepare(client, "a", "SELECT 1")
    ask(client, wire.close("S", "a"))
    take_over(pooler)
    parses = pooler.stats()["server_parse_count"]
    prepare(client, "a", "SELECT 1")
    assert pooler.stats()["server_parse_count"] == parses + 1


def test_parse_in_flight_is_answered_by_the_new_process(make, cluster):
    pooler = make({"default_pool_size": 1})
    client, other = pooler.client(), pooler.client()
    prepare(other, "known", "SELECT 'known'")
    client.send(
        sleep(1.5),
        wire.sync(),
        wire.parse("SELECT 'new'", "new"),
        wire.parse("SELECT 'known'", "shared"),  # the pooler answers this one, in its order
        wire.bind([], "new") + wire.execute(),
        wire.bind([], "shared") + wire.execute(),
        wire.close("S", "shared"),
        wire.sync(),
    )
    take_over_busy(pooler, cluster)
    assert client.result().value == "slept"
    result = client.result()
    assert result.types == "112DC2DC3Z"
    assert [row[0] for row in result.rows] == ["new", "known"]
    assert execute(client, "new") == "new"
    assert ask(client, wire.bind([], "shared")).error.sqlstate == "26000"
    prepare(client, "shared", "SELECT 'another'")
    assert execute(client, "shared") == "another"
    assert execute(other, "known") == "known"


def test_messages_that_fail_in_flight_are_undone_by_the_new_process(make, cluster):
    pooler = make({"default_pool_size": 1})
    client = pooler.client()
    prepare(client, "kept", "SELECT 'kept'")
    assert ask(client, wire.parse("SELECT 'my own'")).types == "1Z"
    client.send(
        wire.parse("SELECT pg_sleep(1.5)", "slow"),
        wire.bind([], "slow") + wire.execute(),
        wire.extended("SELECT 1/0"),
        wire.close("S", "kept"),
        wire.parse("SELECT 'never'", "never"),
        wire.parse("SELECT 'gone at once'", "gone"),
        wire.close("S", "gone"),
        wire.parse("SELECT 'never either'"),
        wire.sync(),
    )
    take_over_busy(pooler, cluster)
    assert client.result().error.sqlstate == "22012"
    assert execute(client, "kept") == "kept"
    for name in ("never", "gone"):
        assert ask(client, wire.bind([], name)).error.sqlstate == "26000"
        prepare(client, name, f"SELECT '{name}'")
        assert execute(client, name) == name
    assert [text for _, text in on_server(client)][:2] == [
        "SELECT 'kept'",
        "SELECT pg_sleep(1.5)",
    ]


def test_unknown_statement_in_flight_is_reported_by_the_new_process(make, cluster):
    pooler = make()
    client = pooler.client()
    client.send(
        sleep(1.5), wire.sync(), wire.bind([], "nothing"), wire.execute(), wire.sync()
    )
    take_over_busy(pooler, cluster)
    assert client.result().value == "slept"
    error = client.result().error
    assert (error.sqlstate, error.severity) == ("26000", "ERROR")
    assert "PGUSHER" not in error.text
    assert client.value("SELECT 1") == "1"


def test_unnamed_statement_that_is_cached_in_flight_is_answered(make, cluster):
    pooler = make({"default_pool_size": 1, "cache_unnamed": 1})
    client = pooler.client()
    messages = (wire.parse("SELECT 'slept' FROM pg_sleep($1)"), wire.bind([0]), wire.execute())
    for _ in range(4):
        assert ask(client, *messages).types == "12DCZ"
    assert len(on_server(client)) == 1
    client.send(messages[0], wire.bind([1.5]), wire.execute(), wire.sync())
    take_over_busy(pooler, cluster)
    assert client.result().value == "slept"


def test_messages_after_a_deallocate_all_in_flight_prepare_anew(make, cluster):
    pooler = make({"default_pool_size": 1})
    client = pooler.client()
    prepare(client, "s", "SELECT 'known'")
    client.send(wire.query("DEALLOCATE ALL; SELECT pg_sleep(1.5)"))
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    client.send(wire.parse("SELECT 'known'", "t"), wire.bind([], "t"), wire.execute(), wire.sync())
    assert cluster.backends(state="active"), "too slow to mean anything"
    assert client.result().tag == "SELECT 1"
    assert client.result().value == "known"


def test_long_pipelines_of_statements_are_answered_to_the_last(make, cluster):
    pooler = make({"default_pool_size": 1, "max_prepared_statements": 50})
    client = pooler.client()
    messages = [sleep(1.5), wire.sync()]
    for number in range(400):
        name = f"s{number}"
        messages += [
            wire.parse(f"SELECT {number}", name),
            wire.bind([], name) + wire.execute(),
            *([wire.close("S", name)] if number % 3 == 0 else []),
            *([wire.sync()] if number % 5 == 4 else []),
        ]
    client.send(*messages)
    take_over_busy(pooler, cluster)
    assert client.result().value == "slept"
    seen = [row[0] for _ in range(80) for row in client.result().rows]
    assert seen == [str(number) for number in range(400)]
    for number in range(400):
        if number % 3:
            assert execute(client, f"s{number}") == str(number)
        else:
            assert ask(client, wire.bind([], f"s{number}")).error.sqlstate == "26000"
    assert len(on_server(client)) == 50


STALE = wire.message(
    "E", wire.fields(S="ERROR", C="0A000", M="must not change", R="RevalidateCachedQuery")
)


def stale_once(connection):
    """The plan of the first Bind is outdated; its ReadyForQuery comes when the gate opens."""
    answers = {"P": "1", "B": "2", "C": "3", "D": "n", "E": None, "S": None}
    connection.login()
    stale = False
    while True:
        found = connection.read()
        if stale and found.type != "S":
            continue
        if found.type == "B" and not connection.server.gate.is_set():
            stale = True
            connection.send(STALE)
        elif found.type == "E":
            connection.send(wire.data_row("healed"), wire.command_complete("SELECT 1"))
        elif found.type == "S":
            if stale:
                assert connection.server.gate.wait(20)
            stale = False
            connection.send(wire.ready())
        elif found.type == "Q":
            connection.send(wire.command_complete("SET"), wire.ready())
        elif found.type in answers:
            connection.send(wire.message(answers[found.type]))
        else:
            return


def test_takeover_waits_for_a_batch_that_is_to_be_replayed(make, new_server):
    server = new_server(stale_once)
    pooler = make(databases={"main": server.target()})
    client = pooler.client()
    prepare(client, "s", "SELECT 1")
    client.send(wire.bind([], "s"), wire.execute(), wire.sync())
    wait_until(lambda: "B" in [each.type for one in server.connections for each in one.received])
    assert client.silent(0.2), "a replayed batch is not reported"
    pooler.close_console()
    old = pooler.process
    pooler.spawn("-R")
    pooler.wait_log("HANDOVER command issued")
    assert client.silent(0.3)
    assert not pooler.lines("HANDOVER finished")
    server.gate.set()
    result = client.result()
    assert (result.types, result.value) == ("2DCZ", "healed")
    assert old.wait(10) == 0
    assert execute(client, "s") == "healed"


@pytest.mark.parametrize("waits", [True, False])
def test_query_behind_parameter_sync_is_answered(make, new_server, waits):
    """The takeover waits for it, since only this process can answer it in every case; but not for
    ever."""
    server = new_server(set_when_gate_opens)
    settings = {} if waits else {"suspend_timeout": 1}
    pooler = make(settings, databases={"main": server.target()})
    client = pooler.client(application_name="mine")
    client.send(wire.query("first"))
    wait_until(lambda: server.connections and server.connections[0].received)
    pooler.close_console()
    old = pooler.process
    pooler.spawn("-R")
    pooler.wait_log("HANDOVER command issued")
    if waits:
        assert client.silent(0.3)
        assert not pooler.lines("HANDOVER finished")
        server.gate.set()
        assert client.checked().value == "first"
        assert old.wait(10) == 0
    else:
        assert old.wait(10) == 0
        server.gate.set()
        assert client.checked().value == "first"
    assert client.value("second") == "second"
    assert len(server.connections) == 1


def test_session_keeps_its_statements(make):
    pooler = make({"pool_mode": "session"})
    client = pooler.client()
    prepare(client, "s", "SELECT 'session'")
    take_over(pooler)
    assert execute(client, "s") == "session"


def test_texts_are_transferred_once(make):
    """However many clients and servers have them."""
    pooler = make({"default_pool_size": 5})
    clients = [pooler.client() for _ in range(100)]
    for client in clients:
        for number in range(10):
            prepare(client, f"s{number}", f"SELECT '{number}{'x' * 10000}'::text")
    console = pooler.superuser()
    console.send(wire.query("HANDOVER 1"))
    shown = [each.body for each in console.read_until("Z") if each.type == "d"]
    kinds = [body[:1] for body in shown]
    assert kinds.count(b"T") == 10
    assert kinds.count(b"C") == 100
    assert kinds.index(b"T") < kinds.index(b"C")
    assert sum(map(len, shown)) < 200000
    console.close()
    pooler.wait_log("the takeover has failed, going on")
    assert execute(clients[7], "s3").startswith("3xxx")


def test_statements_follow_through_five_restarts_under_load(make, cluster):
    pooler = make({"default_pool_size": 5})
    client = pooler.client()
    prepare(client, "s", "SELECT 'still here'")
    # A thread each: pgbench waits for the answer to a Parse without serving its other clients.
    bench = Bench(pooler, cluster, clients=20, options=["-M", "prepared", "-j", "20"])
    for _ in range(5):
        take_over(pooler)
        assert execute(client, "s") == "still here"
    bench.check()


@needs_pgbouncer
def test_statements_of_a_pgbouncer_do_not_clash_with_ours(make):
    """Its servers may have statements with numbers of its own, which it does not report."""
    pooler = make({"default_pool_size": 1}, program=PGBOUNCER)
    client, busy = pooler.client(), pooler.client()
    busy.query("BEGIN")
    for number in range(1, 4):
        busy.query(f"PREPARE \"PGBOUNCER_{number}\" AS SELECT 'not yours'")
    take_over(pooler)
    prepare(busy, "s", "SELECT 'mine'")
    assert execute(busy, "s") == "mine"
    assert len(on_server(busy)) == 4
    busy.query("COMMIT")
    prepare(client, "s", "SELECT 'mine too'")
    assert execute(client, "s") == "mine too"


# --- state of sessions --------------------------------------------------------------------------


SHOW = "SELECT current_setting('app.tenant', true), current_setting('work_mem')"


def settings_of(client):
    return [value or "" for value in client.query(SHOW).rows[0]]


def test_what_clients_have_set_follows_them_through_a_takeover(make):
    pooler = make({"default_pool_size": 1})
    one, two = pooler.client(), pooler.client()
    one.query("SET app.tenant = 'one'")
    one.query("DO $$ BEGIN PERFORM set_config('work_mem', '66MB', false); END $$")
    take_over(pooler)
    for _ in range(2):
        assert settings_of(two) == ["", "4MB"]
        assert settings_of(one) == ["one", "66MB"]
    # Its server is asked for the custom settings of which it had the names before.
    one.query("DO $$ BEGIN PERFORM set_config('app.' || 'tenant', 'uno', false); END $$")
    assert settings_of(two) == ["", "4MB"]
    assert settings_of(one) == ["uno", "66MB"]


@pytest.mark.parametrize("end, tenant, memory", [
    ("COMMIT", "new", "66MB"),
    ("ROLLBACK", "old", "4MB"),
])
def test_settings_of_a_transaction_follow_the_takeover(make, end, tenant, memory):
    pooler = make({"default_pool_size": 1})
    one, two = pooler.client(), pooler.client()
    one.query("SET app.tenant = 'old'")
    one.query("BEGIN")
    one.query("SET app.tenant = 'new'")
    one.query("SELECT set_config('work_mem', '66MB', false)")
    take_over(pooler)
    assert one.query(end).tag == end
    assert settings_of(two) == ["", "4MB"]
    assert settings_of(one) == [tenant, memory]


def test_a_set_in_flight_follows_the_takeover(make, cluster):
    pooler = make({"default_pool_size": 1})
    one, two = pooler.client(), pooler.client()
    one.send(
        wire.query("SELECT 'slept' FROM pg_sleep(1.5)"), wire.query("SET app.tenant = 'one'")
    )
    wait_until(lambda: cluster.backends(state="active"))
    take_over(pooler)
    assert cluster.backends(state="active"), "too slow to mean anything"
    assert one.result().value == "slept"
    assert one.result().tag == "SET"
    assert settings_of(two) == ["", "4MB"]
    assert settings_of(one) == ["one", "4MB"]


def test_a_pinned_server_stays_with_its_client(make):
    pooler = make({"default_pool_size": 2})
    one = pooler.client()
    one.query("CREATE TEMP TABLE mine (n int)")
    one.query("SELECT pg_advisory_lock(7)")
    backend = one.value("SELECT pg_backend_pid()")
    take_over(pooler)
    assert one.value("SELECT pg_backend_pid()") == backend
    assert one.value("SELECT count(*) FROM mine") == "0"
    assert len(pooler.show("PINS")) == 1
    one.query("DROP TABLE mine")
    one.query("SELECT pg_advisory_unlock(7)")
    wait_until(lambda: not pooler.show("PINS"))
    one.query("CREATE TEMP TABLE mine (n int)")
    take_over(pooler)
    one.close()
    wait_until(lambda: not pooler.show("PINS"))
    assert pooler.client().value("SELECT to_regclass('pg_temp.mine')") is None


def test_settings_of_a_client_with_a_pinned_server_are_set_after_a_takeover(make):
    pooler = make({"default_pool_size": 2})
    client = pooler.client()
    # What functions have SET is reset behind the question, since names may be missed there.
    client.query(
        "DO $$ BEGIN CREATE TEMP TABLE mine (n int);"
        " PERFORM set_config('work_mem', '66MB', false); END $$"
    )
    wait_until(lambda: pooler.show("PINS"))
    take_over(pooler)
    assert client.value("SHOW work_mem") == "66MB"
    assert client.value("SELECT count(*) FROM mine") == "0"


def asked_behind_a_gate(connection):
    """Answers a question only when the gate opens; its session has one setting then."""
    connection.login()
    while True:
        sql = connection.next_query()
        if "pg_settings" in sql:
            assert connection.server.gate.wait(20)
            connection.send(wire.data_row("S", "work_mem", "66MB"))
            connection.send(wire.command_complete("SELECT 1"), wire.ready())
        else:
            connection.send(wire.command_complete(sql.split()[0]), wire.ready())


@pytest.mark.parametrize("pins", [True, False])
def test_a_client_waits_for_the_process_that_asks_its_server(make, new_server, pins):
    """What the client did last counts for its next query, also while the takeover waits for another."""
    gate = new_server(asked_behind_a_gate)
    pooler = make({"default_pool_size": 2},
                  databases={"main": {"dbname": "main"}, "other": gate.target()})
    client, other = pooler.client(search_path="public, a"), pooler.client(database="other")
    if pins:
        client.query("CREATE TEMP TABLE mine (n int)")
    client.query("BEGIN")
    assert other.query("DO something").tag == "DO"
    wait_until(lambda: len(gate.connections[0].received) == 2)
    pooler.close_console()
    old = pooler.process
    pooler.spawn("-R")
    pooler.wait_log("HANDOVER command issued")
    client.query("RESET ALL")
    client.query("COMMIT")
    client.send(wire.query("SHOW search_path"))
    assert client.silent(0.2)
    gate.gate.set()
    assert client.result().value == "public, a"
    assert old.wait(10) == 0


@pytest.mark.parametrize("waits", [True, False])
def test_takeover_waits_for_the_answer_to_a_question(make, new_server, waits):
    """Only the old process can have it; but not for ever."""
    server = new_server(asked_behind_a_gate)
    pooler = make({} if waits else {"suspend_timeout": 1}, databases={"main": server.target()})
    client = pooler.client()
    assert client.query("DO something").tag == "DO"
    client.send(wire.query("SELECT"))
    wait_until(lambda: len(server.connections[0].received) == 2)
    pooler.close_console()
    old = pooler.process
    pooler.spawn("-R")
    pooler.wait_log("HANDOVER command issued")
    if waits:
        assert client.silent(0.3)
        assert not pooler.lines("HANDOVER finished")
        server.gate.set()
        assert client.result().tag == "SELECT"
        assert old.wait(10) == 0
        assert client.query("SELECT").tag == "SELECT"
    else:
        server.gate.set()
        assert old.wait(10) == 0
