# SPDX-License-Identifier: ISC
"""More clients, servers and pools than file descriptors (RLIMIT_NOFILE)."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import ServerError
from support.process import free_port, run, wait_until
from support.servers.cluster import program

TEXT = "no more connections allowed (RLIMIT_NOFILE: the limit of {} open files is reached)"
SETTINGS = {"pool_mode": "transaction", "max_client_conn": 5000, "default_pool_size": 5}


@pytest.fixture
def new_limited(new_pooler):
    """Start a daemon with these limits, soft and hard."""

    def start(soft, hard, settings=None, **options):
        pooler = new_pooler({**SETTINGS, **(settings or {})}, start=False, **options)
        pooler.settings["pidfile"] = pooler.path("pid")
        pooler.write_config()
        return pooler.start(wrap=("prlimit", f"--nofile={soft}:{hard}"))

    return start


def limits(pooler):
    """The soft and the hard limit of the daemon."""
    with open(f"/proc/{pooler.process.pid}/limits") as file:
        return tuple(map(int, re.search(r"Max open files +(\d+) +(\d+)", file.read()).groups()))


def crowd(pooler, most=1000):
    """Log in until a client is refused; returns the clients, and the error or None."""
    clients = []
    for _ in range(most):
        client = pooler.raw().send_startup()
        try:
            client.finish_login("app")
        except ServerError as error:
            return clients, error
        clients.append(client)
    return clients, None


def assert_console_answers(pooler):
    """New consoles over TCP and over the Unix socket have their answer within a second."""
    for unix in (False, True):
        began = time.monotonic()
        console = pooler.console(unix=unix)
        assert console.value("SHOW VERSION")
        assert time.monotonic() - began < 1
        console.leave()


def test_the_soft_limit_is_raised_to_the_hard_one(new_limited):
    pooler = new_limited(64, 400)
    assert limits(pooler) == (400, 400)
    assert pooler.lines(r"kernel file descriptor limit: 400 \(hard: 400\); max_client_conn: 5000")
    clients, error = crowd(pooler, 200)
    assert len(clients) == 200 and error is None
    assert clients[-1].value("SELECT 1") == "1"


def test_a_client_without_a_descriptor_is_refused_and_the_rest_goes_on(new_limited):
    port = free_port()
    pooler = new_limited(200, 200, {"metrics_port": port})
    clients, error = crowd(pooler)
    assert error.text == TEXT.format(200) and error.sqlstate == "53300"
    assert len(clients) > 100
    # Servers for clients that are there, the console, the log, the configuration, metrics.
    for client in clients[:5]:
        client.query("BEGIN")
    assert pooler.pool()["sv_active"] == 5
    assert_console_answers(pooler)
    pooler.reload()
    pooler.signal(signal.SIGHUP)
    assert scrape(port).value("pgusher_client_rejected_total", reason="fd_limit") == 1
    # A cancel request.
    clients[0].send(wire.query("SELECT pg_sleep(60)"))
    pooler.raw().send(wire.cancel_request(clients[0].key))
    with pytest.raises(ServerError, match="57014"):
        clients[0].checked(10)
    for client in clients[10:20]:
        client.leave()
    wait_until(lambda: len(crowd(pooler, 1)[0]) == 1)


def test_pgbench_with_too_many_clients_ends_with_the_reason(new_limited):
    """It logs in with all clients before it begins: one without an answer would stop them all."""
    pooler = new_limited(256, 256)
    pooler.client().query("SELECT 1")
    script = pooler.write("script.sql", "SELECT 1;\n")
    began = time.monotonic()
    found = subprocess.run(
        [shutil.which("pgbench") or program("pgbench"), "-n", "-c", "300", "-j", "4", "-T", "5", "-f", script]
        + ["-h", "127.0.0.1", "-p", str(pooler.port), "-U", "app", "main"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert TEXT.format(256) in found.stderr
    assert time.monotonic() - began < 30
    assert_console_answers(pooler)


def test_silent_connections_lock_out_neither_clients_nor_the_console(new_limited):
    pooler = new_limited(150, 150)
    for _ in range(300):
        pooler.raw()
    pooler.wait_log("accepting no connections for now: all file descriptors are in use")
    assert pooler.client().value("SELECT 1") == "1"
    assert_console_answers(pooler)


def test_a_pool_gets_the_descriptor_of_an_idle_server_of_another(new_limited):
    databases = {f"db{number}": {"dbname": "main"} for number in range(8)}
    # Each further worker has descriptors of its own: event loop, timer, mail.
    more = 10 * (int(os.environ.get("PGUSHER_WORKERS") or 1) - 1)
    pooler = new_limited(50 + more, 50 + more, databases=databases)
    for name in databases:
        clients = [pooler.client(database=name) for _ in range(5)]
        for sql in ("BEGIN", "COMMIT"):
            for client in clients:
                assert client.query(sql).tag == sql
        for client in clients:
            client.leave()
    assert pooler.lines("closing because: evicted")
    assert not pooler.lines("Too many open files")


def test_a_limit_that_is_lowered_and_raised_is_followed(new_limited):
    """Also below what is in use: new clients get an answer, one at a time."""
    pooler = new_limited(300, 300)
    clients = [pooler.client() for _ in range(60)]
    prlimit = ["prlimit", f"--pid={pooler.process.pid}"]
    for left in (20, -30):
        limit = pooler.descriptors() + left
        run([*prlimit, f"--nofile={limit}:"])  # the soft one only
        pooler.wait_log(f"kernel file descriptor limit: {limit} now")
        more, error = crowd(pooler, 40)
        assert error.text == TEXT.format(limit)
        assert len(more) <= max(0, left)
        assert clients[0].value("SELECT 1") == "1"
        assert_console_answers(pooler)
    run([*prlimit, "--nofile=300:"])
    pooler.wait_log("kernel file descriptor limit: 300 now")
    assert len(crowd(pooler, 40)[0]) == 40


def test_a_takeover_works_without_descriptors_for_clients(new_limited):
    pooler = new_limited(200, 200, {"server_tls_sslmode": "disable"})
    clients, error = crowd(pooler)
    assert error.sqlstate == "53300"
    pooler.close_console()
    pooler.take_over(wrap=("prlimit", "--nofile=200:200"))
    assert clients[0].value("SELECT 1") == "1"
    assert pooler.refused().text == TEXT.format(200)
    assert_console_answers(pooler)
