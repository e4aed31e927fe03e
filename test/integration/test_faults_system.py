# SPDX-License-Identifier: ISC
"""System calls that fail now and then, and a clock that jumps: F71, F72."""

import os
import signal
import time

import pytest

from support import wire
from support.clients.raw import Closed, ServerError
from support.process import own, stays, stop_process, wait_until
from support.servers.pooler import is_sanitized


class Faulty:
    """A daemon with system calls that fail between begin() and end()."""

    def __init__(self, pooler, library, faults):
        self.pooler = pooler
        self.arm = pooler.path("arm")
        environment = {
            "LD_PRELOAD": library,
            "PGUSHER_FAULTS": faults,
            "PGUSHER_FAULTS_ARM": self.arm,
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
        }
        pooler.start(environment=environment)

    def begin(self):
        with open(self.arm, "w"):
            own(self.arm)

    def end(self):
        os.unlink(self.arm)


@pytest.fixture
def new_faulty(new_pooler, library):
    """Make a daemon with faulty calls: new_faulty("recv:EINTR:3")."""

    def make(faults, **settings):
        values = {"pool_mode": "transaction", "server_login_retry": 0.2, **settings}
        return Faulty(new_pooler(values, start=False), library, faults)

    return make


def work(pooler, timeout=15):
    """Some of everything that a client does."""
    client = pooler.raw()
    client.timeout = timeout
    try:
        client.login(application_name="worker", timezone="Asia/Tokyo")
        assert client.value("SHOW TimeZone") == "Asia/Tokyo"
        client.query("BEGIN")
        assert client.extended("SELECT $1::text", ["x" * 5000]).value == "x" * 5000
        client.query("COMMIT")
        assert client.value("SELECT length('" + "y" * 100000 + "')") == "100000"
        assert len(client.query("SELECT repeat('z', 200) FROM generate_series(1, 500)").rows) == 500
        client.send((wire.extended("SELECT 1") + wire.sync()) * 20)
        for _ in range(20):
            assert client.checked().value == "1"
        client.leave()
    finally:
        client.close()


def survive(pooler, rounds):
    """Work as far as possible, with new servers each time; the process must not end."""
    for _ in range(rounds):
        try:
            work(pooler, timeout=0.5)
        except (ServerError, Closed, TimeoutError, OSError, AssertionError):
            pass
        try:
            with pooler.raw() as console:
                console.timeout = 0.5
                console.login("admin", "pgbouncer")
                for sql in ("SHOW POOLS", "SHOW CLIENTS", "SHOW STATS", "RELOAD", "RECONNECT"):
                    console.query(sql)
        except (ServerError, Closed, TimeoutError, OSError, AssertionError):
            pass
        assert pooler.running(), pooler.log()[-3000:]


HARMLESS = [
    "recv:EINTR:3",
    "recv:EAGAIN:3",
    "sendmsg:EINTR:3,send:EINTR:3",
    "sendmsg:EAGAIN:3,send:EAGAIN:3",
    "epoll_wait:EINTR:2",
    "accept4:EINTR:2",
    "accept4:EAGAIN:2",
    "accept4:ECONNABORTED:2",
    "getrandom:EINTR:2",
    "recv:EINTR:5,sendmsg:EAGAIN:4,send:EAGAIN:4,epoll_wait:EINTR:3",
]


@pytest.mark.parametrize("faults", HARMLESS)
def test_calls_that_have_to_be_repeated_are_not_noticed(new_faulty, faults):  # F71
    faulty = new_faulty(faults)
    faulty.begin()
    for _ in range(8):
        work(faulty.pooler)
    faulty.end()
    assert not faulty.pooler.lines(" ERROR | WARNING ")


HARMFUL = [
    "recv:ECONNRESET:15",
    "recv:ENOBUFS:15",
    "recv:ENOMEM:15",
    "sendmsg:ENOBUFS:15,send:ENOBUFS:15",
    "sendmsg:EPIPE:15,send:EPIPE:15",
    "accept4:EMFILE:3",
    "accept4:ENFILE:2",
    "accept4:ENOBUFS:2",
    "accept4:ENOMEM:2",
    "socket:EMFILE:2",
    "socket:ENOBUFS:1",
    "connect:ECONNREFUSED:2",
    "connect:ENOBUFS:2",
    "connect:EINTR:2",
    "epoll_ctl:ENOMEM:4",
]

MEMORY = [
    f"{call}:ENOMEM:{every}" for call in ("malloc", "calloc", "realloc") for every in (1, 2, 3, 7, 23)
] + ["mmap:ENOMEM:1", "malloc:ENOMEM:11,calloc:ENOMEM:13,realloc:ENOMEM:5,mmap:ENOMEM:2"]


@pytest.mark.parametrize("faults", HARMFUL + MEMORY)
def test_calls_that_fail_end_connections_not_the_process(new_faulty, faults):  # F71
    if is_sanitized() and faults in MEMORY:
        pytest.skip("the sanitizer's own allocator cannot be made to fail")
    faulty = new_faulty(faults, client_login_timeout=3, query_wait_timeout=3)
    pooler = faulty.pooler
    survive(pooler, 2)
    descriptors = pooler.descriptors()
    faulty.begin()
    survive(pooler, 6)
    faulty.end()

    def well():
        try:
            work(pooler, timeout=2)
        except (ServerError, Closed, TimeoutError, OSError):
            return False
        return True

    # The listeners may pause for five seconds after accept() failed.
    wait_until(well, 8, "service to be back")
    pooler.wait_pool(cl_active=0, cl_waiting=0, sv_active=0)
    # The pool may have grown, and a console is open.
    wait_until(lambda: pooler.descriptors() <= descriptors + 6, 5, "descriptors to come back")


@pytest.mark.parametrize("shift", [3600, -3600, 400 * 86400])
def test_a_jump_of_the_clock_ends_no_client(new_faulty, shift):  # F72
    faulty = new_faulty(
        f"clock:{shift}:1",
        client_idle_timeout=30,
        idle_transaction_timeout=30,
        transaction_timeout=30,
        query_timeout=30,
        server_idle_timeout=30,
        server_lifetime=600,
    )
    pooler = faulty.pooler
    idle, holder, runner = pooler.client(), pooler.client(), pooler.client()
    idle.query("SELECT 1"), holder.query("BEGIN")
    runner.send(wire.query("SELECT pg_sleep(1), 'done'"))
    pooler.wait_pool(sv_active=2)
    servers = {row["remote_pid"] for row in pooler.servers()}
    faulty.begin()
    stays(lambda: len(pooler.clients()) == 3, 1)
    assert runner.checked().rows[0][1] == "done"
    assert holder.query("COMMIT").tag == "COMMIT"
    assert idle.value("SELECT 1") == "1"
    assert {row["remote_pid"] for row in pooler.servers()} >= servers
    faulty.end()
    assert idle.value("SELECT 1") == "1"
    assert not pooler.lines("S-.* closing because|timeout")


def test_a_limit_is_kept_while_the_clock_jumps(new_faulty):  # F72
    faulty = new_faulty("clock:-3600:1", client_idle_timeout=1)
    client = faulty.pooler.client()
    client.query("SELECT 1")
    began = time.monotonic()
    faulty.begin()
    assert client.fatal().text == "client_idle_timeout"
    assert 0.9 < time.monotonic() - began < 10
    faulty.end()


def test_a_stop_of_a_second_under_load_is_not_noticed(new_pooler):  # F72
    pooler = new_pooler({"pool_mode": "transaction", "query_timeout": 0.8, "client_idle_timeout": 0.8})
    clients = [pooler.client() for _ in range(10)]
    for client in clients:
        client.send(wire.query("SELECT 'kept'"))
    stop_process(pooler.process)
    for client in clients:
        client.send(wire.query("SELECT 'kept too'"))
    began = time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2)
    pooler.signal(signal.SIGCONT)
    for client in clients:
        assert client.checked().value == "kept"
        assert client.checked().value == "kept too"
