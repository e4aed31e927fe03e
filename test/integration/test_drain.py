# SPDX-License-Identifier: ISC
"""SIGTERM drains: /readyz first, then no new logins, and idle clients leave one after another."""

import os
import random
import re
import select
import shutil
import signal
import subprocess
import threading

import psycopg
import pytest

from support import wire
from support.clients.metrics_page import ask
from support.clients.raw import Closed, RawClient, ServerError, cancel
from support.process import HOST, free_port, stays, wait_until
from support.servers.cluster import program

TOLD = ("FATAL", "57P01", "terminating connection due to administrator command")
REFUSED = ("FATAL", "57P03", "pooler is shutting down")


@pytest.fixture
def draining(new_pooler):
    """Make a daemon with a page for probes."""

    def make(settings=None, **more):
        port = free_port()
        pooler = new_pooler(
            {"pool_mode": "transaction", "metrics_port": port, **(settings or {})}, **more)
        pooler.metrics = port
        return pooler

    return make


def ready(pooler):
    answer = ask(pooler.metrics, "/readyz")
    return answer.status, answer.text.strip()


def terminate(pooler):
    pooler.command("SHOW VERSION")  # its connection stays for the commands that follow
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("got SIGTERM, shutting down, waiting for all clients disconnect")


def connects(pooler):
    try:
        RawClient(pooler.address).close()
    except OSError:
        return False
    return True


def row(pooler):
    (found,) = pooler.show("WAITS", command="SHUTDOWN WAIT_FOR_CLIENTS")
    return found


# The delay


@pytest.mark.setting("drain_delay")
def test_for_the_delay_all_goes_on_but_for_the_probe(draining):
    pooler = draining({"drain_delay": 1})
    idle = pooler.client()
    assert ready(pooler) == (200, "ready")
    terminate(pooler)
    assert ready(pooler) == (503, "shutting down")
    assert pooler.lines(r"draining: \d+ clients, all goes on for 1000 ms \(drain_delay\)")
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.client(unix=True).value("SELECT 2") == "2"
    assert idle.value("SELECT 3") == "3"
    assert re.fullmatch(
        r"\d clients and 1 console, none in a transaction; all goes on for 0 s more \(drain_delay\); "
        r"without a time limit \(shutdown_timeout = 0\)", row(pooler)["waits_for"])
    pooler.wait_log(r"draining: \d+ clients, no new logins, until the last client has left")
    # Not only a refused connection: a client learns why, and may try another host.
    assert pooler.refused().is_(*REFUSED)
    assert pooler.refused(unix=True).is_(*REFUSED)
    # Cancel requests reach their queries as before.
    sql = "SELECT pg_sleep(60), 'drain'"
    idle.send(wire.query(sql))
    wait_until(lambda: pooler.cluster.backends(state="active", query=sql))
    cancel(pooler.address, idle.key)
    assert idle.result().error.sqlstate == "57014"
    # Without shutdown_timeout no client is told to leave.
    assert idle.value("SELECT 4") == "4"
    assert re.fullmatch(
        r"\d clients and 1 console, none in a transaction; without a time limit "
        r"\(shutdown_timeout = 0\)", row(pooler)["waits_for"])
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def test_the_delay_is_kept_without_clients_too(draining):
    pooler = draining({"drain_delay": "700ms"})
    terminate(pooler)
    stays(pooler.running, 0.5)
    assert pooler.client().value("SELECT 1") == "1"
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def documented():
    """The settings that doc/high-availability.md has for a drain."""
    with open(os.path.join(os.path.dirname(__file__), "../../doc/high-availability.md")) as file:
        section = file.read().split("## Going away gracefully")[1]
    block = re.search(r"```ini\n\[pgbouncer\]\n(.*?)```", section, re.DOTALL).group(1)
    return dict(line.split(" = ") for line in block.splitlines() if not line.startswith(";"))


def test_the_documented_settings_are_accepted(draining):
    pooler = draining(documented())
    client = pooler.client()
    terminate(pooler)
    assert pooler.lines(r"all goes on for 5000 ms \(drain_delay\)")
    pooler.command("SET drain_delay = '1ms'")
    pooler.wait_log("idle clients are closed within 40 s")
    client.leave()
    assert pooler.wait_exit() == 0


@pytest.mark.parametrize("delay", ["0", "100ms"])
def test_libpq_goes_on_to_its_next_host(draining, new_pooler, delay):
    pooler, other = draining({"drain_delay": delay}), new_pooler()
    client = pooler.client()
    terminate(pooler)
    wait_until(lambda: not connects(pooler) if delay == "0" else pooler.lines("no new logins"))
    with psycopg.connect(
        f"host={HOST},{HOST} port={pooler.port},{other.port} user=app dbname=main"
    ) as connection:
        assert connection.info.port == other.port
    client.leave()


def test_without_a_delay_connections_are_refused_at_once(draining):
    pooler = draining({"shutdown_timeout": 30})
    busy = pooler.client()
    busy.query("BEGIN")
    terminate(pooler)
    wait_until(lambda: not connects(pooler))
    busy.query("COMMIT")


def test_the_delay_takes_half_of_the_timeout_at_most(draining):
    pooler = draining({"drain_delay": 60, "shutdown_timeout": 2})
    idle = pooler.client()
    terminate(pooler)
    assert pooler.lines(r"all goes on for 1000 ms \(drain_delay\)")
    assert idle.fatal().is_(*TOLD)
    assert pooler.wait_exit() == 0
    assert not pooler.lines("shutdown_timeout is over")


def test_the_delay_may_change_while_it_runs(draining):
    pooler = draining({"drain_delay": 60})
    client = pooler.client()
    terminate(pooler)
    assert pooler.client().value("SELECT 1") == "1"
    pooler.settings["drain_delay"] = "100ms"
    pooler.write_config()
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("draining: .* no new logins")
    assert pooler.refused().is_(*REFUSED)
    client.leave()
    pooler.close_clients()
    assert pooler.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_in_the_delay_ends_at_once(draining, number):
    pooler = draining({"drain_delay": 60})
    client = pooler.client()
    client.query("BEGIN")
    terminate(pooler)
    pooler.signal(number)
    assert pooler.wait_exit(3) == 0
    assert pooler.lines(f"got {number.name} while shutting down, fast exit")


def test_the_console_drains_too_and_may_go_over_to_the_servers(draining):
    pooler = draining({"drain_delay": 60})
    busy, idle = pooler.client(), pooler.client()
    busy.query("BEGIN")
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    assert len(pooler.wait_log("draining: 3 clients, all goes on")) == 1
    assert pooler.client().value("SELECT 1") == "1"
    pooler.command("SHUTDOWN WAIT_FOR_SERVERS")
    assert not connects(pooler)
    idle.send(wire.query("SELECT 1"))
    assert idle.fatal().text == "server shutting down"
    assert busy.query("COMMIT").tag == "COMMIT"
    assert pooler.wait_exit() == 0


def test_neither_suspend_nor_a_takeover_comes_between(draining):
    pooler = draining({"drain_delay": "500ms", "shutdown_timeout": 3})
    busy = pooler.client()
    busy.query("BEGIN")
    terminate(pooler)
    for _ in range(2):
        for sql in ("SUSPEND", "HANDOVER 1", "RESUME"):
            with pytest.raises(ServerError) as caught:
                pooler.superuser().query(sql)
            assert caught.value.text == "pooler is shutting down"
        pooler.wait_log("draining: .* no new logins")
    busy.query("COMMIT")
    assert busy.fatal().is_(*TOLD)
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def test_a_pause_in_a_drain_holds_queries_and_not_the_end(draining):
    pooler = draining({"drain_delay": "500ms", "shutdown_timeout": 3})
    idle, waiter = pooler.client(), pooler.client()
    terminate(pooler)
    pooler.command("PAUSE")
    waiter.send(wire.query("SELECT 1"))
    assert idle.fatal().is_(*TOLD)
    # It is not idle: its query waits, until the time is over.
    assert waiter.fatal().is_("FATAL", "57P01", "server shutting down")
    assert pooler.wait_exit() == 0


def test_a_listener_that_processes_share_is_closed_after_the_delay(draining, new_pooler):
    port = free_port()
    pooler, other = (
        make({**settings, "so_reuseport": 1}, start=False)
        for make, settings in ((draining, {"drain_delay": "300ms"}), (new_pooler, {})))
    for each in (pooler, other):
        each.port = port
        each.write_config()
        each.start()
    client = pooler.client(unix=True)
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("draining: .* no new logins")
    for _ in range(20):
        assert RawClient((HOST, port)).login().value("SELECT 1") == "1"
    client.leave()
    assert pooler.wait_exit() == 0


@pytest.mark.setting("drain_accept")
def test_logins_may_be_served_until_the_end(draining):
    pooler = draining({"drain_accept": 1, "shutdown_timeout": 2})
    busy = pooler.client()
    busy.query("BEGIN")
    terminate(pooler)
    pooler.wait_log("draining: 2 clients, logins are still served, idle clients are closed within 2 s")
    assert ready(pooler) == (503, "shutting down")
    late = pooler.client()
    assert late.value("SELECT 1") == "1"
    assert late.fatal().is_(*TOLD)
    assert busy.fatal().is_("FATAL", "57P01", "server shutting down")
    assert pooler.wait_exit() == 0


# Clients leave


def moment(line):
    hours, minutes, seconds = line.split()[1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def test_idle_clients_leave_evenly_within_the_timeout(draining):
    pooler = draining({"shutdown_timeout": 5})
    clients = [pooler.client() for _ in range(40)]
    clients[7].query("SELECT 1")
    terminate(pooler)
    assert pooler.lines("draining: 41 clients, no new logins, idle clients are closed within 4 s")
    for client in clients:
        assert client.fatal().is_(*TOLD)
        client.closed()
    assert pooler.wait_exit() == 0
    assert pooler.lines("client connections dropped, exiting")
    told = [moment(line) for line in pooler.lines(f"closing because: {TOLD[2]}")]
    assert len(told) == 40
    # A second of the four has ten of them; a loaded machine doubles that.
    for began in told:
        assert sum(began <= other < began + 1 for other in told) <= 20
    assert told[-1] - told[0] > 2


def test_busy_clients_leave_after_their_transaction(draining):
    pooler = draining({"shutdown_timeout": 30, "default_pool_size": 2})
    idle, busy, batch = pooler.client(), pooler.client(), pooler.client()
    busy.query("BEGIN")
    batch.send(wire.parse("SELECT 5"), wire.flush())
    batch.read_until("1")
    terminate(pooler)
    pooler.command("SET shutdown_timeout = 3")
    assert idle.fatal().is_(*TOLD)
    wait_until(lambda: int(row(pooler)["clients"]) == 3)
    pooler.command("SET shutdown_timeout = 30")
    assert busy.value("SELECT 1") == "1"
    assert busy.query("COMMIT").tag == "COMMIT"
    assert busy.fatal().is_(*TOLD)
    batch.send(wire.bind(), wire.execute(), wire.sync())
    assert batch.result().types == "2DCZ"
    assert batch.fatal().is_(*TOLD)
    assert pooler.wait_exit() == 0


def test_in_session_mode_the_server_is_given_back(draining):
    pooler = draining({"pool_mode": "session", "shutdown_timeout": 2})
    idle, busy = pooler.client(), pooler.client()
    idle.query("SET search_path = pg_catalog")
    busy.query("BEGIN")
    terminate(pooler)
    pooler.command("SET shutdown_timeout = 30")
    pooler.command("SET shutdown_timeout = 3")
    assert idle.fatal().is_(*TOLD)
    assert busy.query("COMMIT").tag == "COMMIT"
    assert busy.fatal().is_(*TOLD)
    assert pooler.wait_exit() == 0
    assert not pooler.lines("shutdown_timeout is over")


def test_a_console_does_not_prolong_a_drain(draining):
    """Monitoring tools keep theirs open."""
    pooler = draining({"shutdown_timeout": 20})
    idle, console = pooler.client(), pooler.console()
    console.query("SHOW POOLS")
    pooler.signal(signal.SIGTERM)
    idle.close()
    assert pooler.wait_exit(5) == 0
    console.closed()


def test_waiting_clients_are_served_and_leave_then(draining):
    pooler = draining({"shutdown_timeout": 3, "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 7"))
    pooler.wait_pool(cl_waiting=1)
    terminate(pooler)
    pooler.command("SET shutdown_timeout = 30")
    holder.query("COMMIT")
    assert waiter.result().value == "7"
    pooler.command("SET shutdown_timeout = 3")
    for client in (holder, waiter):
        assert client.fatal().is_(*TOLD)
    assert pooler.wait_exit() == 0


# Nothing is lost


def count_rows(cluster):
    return cluster.ask("main", "SELECT count(*) AS rows FROM drained")[0]["rows"]


@pytest.fixture
def table(cluster):
    with cluster.connect("main") as connection:
        connection.execute("CREATE TABLE drained (client int, number int)")
        connection.execute("GRANT ALL ON drained TO PUBLIC")
    yield cluster
    with cluster.connect("main") as connection:
        connection.execute("DROP TABLE drained")


@pytest.mark.parametrize("mode", ["transaction", "session"])
@pytest.mark.parametrize("protocol", ["simple", "prepared"])
def test_pgbench_loses_nothing_in_a_drain(draining, table, mode, protocol):
    pooler = draining({"pool_mode": mode, "shutdown_timeout": 3})
    script = pooler.write(
        "script.sql",
        "BEGIN;\nINSERT INTO drained VALUES (:client_id, 1);\n"
        "INSERT INTO drained VALUES (:client_id, 2);\nEND;\n")
    pgbench = subprocess.Popen(
        [shutil.which("pgbench") or program("pgbench"), "-n", "-M", protocol, "-c", "10", "-j", "2",
         "-T", "30", "-f", script, "-h", HOST, "-p", str(pooler.port), "-U", "app", "main"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: count_rows(table) > 1000)
    terminate(pooler)
    out, errors = pgbench.communicate(timeout=60)
    assert pooler.wait_exit() == 0
    assert not pooler.lines("shutdown_timeout is over")
    assert errors.count(TOLD[2]) == 10
    assert "server shutting down" not in errors
    # Each client was told between two transactions, and not in the middle of one.
    assert not re.search(r"aborted in command [1-3] ", errors)
    done = int(re.search(r"actually processed: (\d+)", out).group(1))
    assert count_rows(table) == 2 * done


def insert_until_told(client, number, pause):
    """Returns how many rows the pooler has confirmed."""
    confirmed = 0
    while True:
        # The pooler may tell the client to leave while it is idle.
        select.select([client.socket], [], [], pause())
        try:
            client.send(wire.query(f"INSERT INTO drained VALUES ({number}, {confirmed})"))
            client.result()
        except ServerError as error:
            assert error.is_(*TOLD)
            return confirmed
        except (Closed, OSError):
            return confirmed
        confirmed += 1


def test_a_query_that_crosses_the_message_is_not_executed(draining, table):
    """The client has either its answer, or the row is not there."""
    pooler = draining({"shutdown_timeout": 3})
    chance = random.Random(5)
    confirmed = [0] * 30

    def work(number, client):
        confirmed[number] = insert_until_told(client, number, lambda: chance.uniform(0, 0.02))

    threads = [
        threading.Thread(target=work, args=(number, pooler.client())) for number in range(30)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: count_rows(table) > 300)
    terminate(pooler)
    for thread in threads:
        thread.join(30)
    assert pooler.wait_exit() == 0
    assert sum(confirmed) == count_rows(table)
