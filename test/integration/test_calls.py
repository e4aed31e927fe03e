# SPDX-License-Identifier: ISC
"""How many system calls the daemon makes: for a transaction, and while idle."""

import mmap
import os
import shutil
import signal
import struct
import subprocess
import time

import pytest

from support import wire
from support.process import (
    as_service,
    drop_folder,
    free_port,
    stop_process,
    make_folder,
    resume_process,
    run,
    wait_until,
)
from support.servers.pooler import is_sanitized

TOP = os.path.join(os.path.dirname(__file__), "..")

# In the order of the library's enum.
CALLS = (
    "recv send sendmsg accept4 socket connect epoll_wait epoll_ctl getrandom mmap read write"
    " recvmsg readv writev poll timerfd_settime"
).split()


@pytest.fixture(scope="module")
def programs():
    """The folder of the counting library, the load generator and the fake server, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    folder = make_folder("pgusher-calls-")
    flags = [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O2"]
    memory = ["-DWITHOUT_MEMORY"] if is_sanitized() else []
    jobs = [
        (["-shared", "-fPIC", *memory], "integration/support/compiled/failing_calls.c", "calls.so", ["-ldl"]),
        ([], "bench/load.c", "load", ["-lssl", "-lcrypto"]),
        ([], "bench/fake.c", "fake", []),
    ]
    for options, source, name, libraries in jobs:
        with open(os.path.join(TOP, source)) as file:
            path = os.path.join(folder, name)
            run([*flags, *options, "-xc", "-", "-o", path, *libraries], stdin=file)
    yield folder
    drop_folder(folder)


@pytest.fixture
def fake(programs):
    """A server that uses almost no CPU time: its process, and its `port`."""
    port = free_port()
    server = subprocess.Popen(
        as_service([os.path.join(programs, "fake"), str(port)]),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )
    assert server.stdout.readline().strip() == "ready"
    server.port = port
    yield server
    resume_process(server)
    server.communicate("")


class Counted:
    """A daemon with a counter for each system call."""

    def __init__(self, pooler, programs):
        self.pooler = pooler
        path = pooler.write("counts", b"\0" * 4096)
        with open(path, "r+b") as file:
            self._map = mmap.mmap(file.fileno(), 4096)
        environment = {
            "LD_PRELOAD": os.path.join(programs, "calls.so"),
            "PGUSHER_COUNTS": path,
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
        }
        pooler.start(environment=environment)
        pooler.show("STATE")

    def calls(self):
        """Calls so far by name, and how many of them ended with EAGAIN."""
        numbers = struct.unpack_from(f"={2 * len(CALLS)}Q", self._map)
        return dict(zip(CALLS, zip(numbers[::2], numbers[1::2])))

    def since(self, before):
        """Calls since an earlier sample and how many ended with EAGAIN, by name; only those that
        were made."""
        change = {}
        for name, (count, again) in self.calls().items():
            made = (count - before[name][0], again - before[name][1])
            if made != (0, 0):
                change[name] = made
        return change

    def transactions(self):
        """Transactions so far."""
        rows = self.pooler.show("STATS_TOTALS", database="main")
        return int(rows[0]["xact_count"]) if rows else 0

    def sample(self, load):
        """Transactions and calls so far, sampled while the load is stopped and no transaction is in
        flight."""
        stop_process(load)
        self.pooler.wait_pool(sv_active=0, cl_waiting=0)
        found = self.transactions(), self.calls()
        resume_process(load)
        return found


@pytest.fixture
def counted(new_pooler, programs, fake):
    """A daemon in transaction mode before the fake server, its calls counted."""
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 20,
            "max_client_conn": 1000,
            "log_connections": 0,
            "log_disconnections": 0,
            # The calls of one loop: each further one has its own deadlines and waits.
            "workers": 1,
        },
        databases={
            "main": {"host": "127.0.0.1", "port": fake.port}, "real": {"dbname": "main"},
        },
        start=False,
    )
    return Counted(pooler, programs)


@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_a_transaction_costs_hardly_more_than_its_two_messages(counted, programs, protocol):
    """50 clients on 20 servers: two receives and two sends, and few waits."""
    load = subprocess.Popen(
        as_service(
            [os.path.join(programs, "load"), "transactions", "-c", "50", "-t", "600", "-w", "0"]
            + ["-p", str(counted.pooler.port), "-u", "app", "-d", "main", "-q", "SELECT 1"]
            + (["-x"] if protocol == "extended" else [])
        ),
        stdout=subprocess.PIPE, text=True,
    )
    try:
        wait_until(lambda: counted.transactions() > 2000, 60, "the steady state")
        began, before = counted.sample(load)
        wait_until(lambda: counted.transactions() > began + 10000, 60, interval=0.3)
        ended, after = counted.sample(load)
    finally:
        load.kill()
        load.communicate()
    done = ended - began
    calls = {name: count - before[name][0] for name, (count, _) in after.items()}
    assert calls["epoll_ctl"] == 0, calls
    assert after["recv"][1] - before["recv"][1] <= done / 1000, (before, after)
    # How many events a wait returns depends on the machine, but each event is a message to receive
    # or a timer tick.
    waits = calls.pop("epoll_wait")
    assert waits <= calls["recv"] + done / 100, (waits, calls)
    # The console makes some of these calls.
    assert sum(calls.values()) <= 4.02 * done, (done, calls)


def unread(port):
    """How many connections to this port have unread data at the daemon's end."""
    with open("/proc/net/tcp") as file:
        rows = [line.split() for line in list(file)[1:]]
    return sum(
        int(remote.split(":")[1], 16) == port and int(queues.split(":")[1], 16) > 0
        for _, _, remote, _, queues, *_ in rows
    )


def test_messages_that_arrive_together_cost_one_wait(counted, fake):
    """20 requests that are all there, then 20 answers: one receive and one send each."""
    pooler = counted.pooler
    clients = [pooler.client().send(wire.extended("SELECT 1")) for _ in range(20)]
    pooler.wait_pool(sv_active=20)  # a batch without its Sync keeps its server
    for client in clients:
        client.send(wire.sync()).checked()
    wait_until(pooler.sleeps)  # the last answer may arrive before its send has been counted
    stop_process(pooler.process)
    stop_process(fake)
    before = counted.calls()
    for client in clients:
        client.send(wire.query("SELECT 1"))
    resume_process(pooler.process)
    wait_until(lambda: counted.since(before).get("send", (0, 0))[0] == 20, what="all to be sent")
    wait_until(pooler.sleeps)
    stop_process(pooler.process)
    resume_process(fake)
    wait_until(lambda: unread(fake.port) == 20, what="all answers")
    resume_process(pooler.process)
    for client in clients:
        assert client.result().types == "TDCZ"
    wait_until(pooler.sleeps)
    calls = counted.since(before)
    assert calls.pop("recv") == (40, 0), calls
    assert calls.pop("send") == (40, 0), calls
    # One wait for each half, one that each held server has ended, and some for ticks.
    assert calls.pop("epoll_wait")[0] <= 12, calls
    assert not {"epoll_ctl", "sendmsg", "recvmsg", "mmap"} & set(calls), calls


def calls_of_taking_turns(counted, *clients):
    """Calls per transaction while these clients send queries in turn, waits not counted."""
    rounds = 200
    for client in clients:
        client.value("SELECT 1")
    before = counted.calls()
    for _ in range(rounds):
        for client in clients:
            client.value("SELECT 1")
    calls = counted.since(before)
    # How many messages arrive together depends on the machine, and so does the number of ticks.
    made = sum(calls.get(name, (0, 0))[0] for name in ("recv", "send", "sendmsg", "epoll_ctl"))
    return made / (rounds * len(clients))


def test_different_parameters_cost_no_call(counted):
    """SETs are sent to a server in one write with the client's query."""
    counted.pooler.command("SET default_pool_size = 1")
    one, same, other = (counted.pooler.client(work_mem=size) for size in ("1MB", "1MB", "2MB"))
    like = calls_of_taking_turns(counted, one, same)
    unlike = calls_of_taking_turns(counted, one, other)
    assert unlike <= like + 0.05, (like, unlike)


def is_quiet(counted, seconds):
    """Whether hardly a call is made for so long; timers tick three times a second."""
    before, began = counted.calls(), time.monotonic()
    wait_until(lambda: time.monotonic() - began >= seconds)
    calls = counted.since(before)
    seconds = time.monotonic() - began  # longer on a busy machine
    print(seconds, calls)
    return sum(count for count, _ in calls.values()) <= 40 * seconds


SITUATIONS = ["idle", "waiting", "paused", "half a message", "server away", "blocked"]


@pytest.mark.parametrize("situation", SITUATIONS)
def test_an_idle_daemon_makes_no_calls(counted, situation):
    """No client is polled, whatever a hundred clients wait for."""
    pooler = counted.pooler
    if situation == "server away":
        pooler.databases["real"]["port"] = 1
        pooler.databases["real"]["host"] = "127.0.0.1"
        pooler.reload()
        clients = [pooler.raw().send_startup(database="real") for _ in range(100)]
        pooler.wait_pool("real", cl_waiting=100, sv_login=0)
    else:
        clients = [pooler.client(database="real") for _ in range(100)]
    if situation == "waiting":
        pooler.command("SET default_pool_size = 1")
        clients[0].query("BEGIN")
        for client in clients[1:]:
            client.send(wire.query("SELECT 1"))
        pooler.wait_pool("real", cl_waiting=99)
    elif situation == "paused":
        pooler.command("PAUSE")
        for client in clients:
            client.send(wire.query("SELECT 1"))
        pooler.wait_pool("real", cl_waiting=100)
    elif situation == "half a message":
        for client in clients:
            client.send(wire.query("SELECT 1")[:-1])
    elif situation == "blocked":
        for client in clients[:10]:
            client.send(wire.query("SELECT repeat('x', 10000) FROM generate_series(1, 10000)"))
        wait_until(
            lambda: len(pooler.cluster.backends(state="active", wait_event="ClientWrite")) == 10
        )
        # Each client was seen waiting once, and may have been served since.
        wait_until(lambda: is_quiet(counted, 0.3), 10, "all to be blocked")
    pooler.show("STATE")  # the daemon has read everything sent before when it answers this
    cpu = pooler.cpu_seconds()
    assert is_quiet(counted, 1.5)
    assert clients[-1].silent(0)
    assert pooler.cpu_seconds() - cpu <= 0.1


def test_a_login_costs_few_calls(counted):
    """From accept to close; the kernel takes nearly all of that time."""
    counted.pooler.client().query("SELECT 1")
    before = counted.calls()
    for _ in range(50):
        client = counted.pooler.raw().login()
        client.query("SELECT 1")
        client.leave()
    wait_until(lambda: len(counted.pooler.clients()) == 1)
    calls = counted.since(before)
    assert calls["accept4"][0] <= 110, calls
    assert calls["epoll_ctl"][0] <= 110, calls
