# SPDX-License-Identifier: ISC
"""What does not depend on the machine's speed: system calls, wake-ups and bytes."""

import os
import resource
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))

import rig

from support.process import HOST, drop_folder, make_folder, wait_until
from support.servers.pooler import is_sanitized

CLIENTS = 2000
USERS = 5000


@pytest.fixture(scope="module", autouse=True)
def many_descriptors():
    """Enough descriptors for all clients here and in the daemon."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not rig.raise_descriptors(CLIENTS + 1000):
        pytest.skip("not enough descriptors (ulimit -n)")
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture(scope="module")
def tools():
    """The folder with the load generator and the running fake server."""
    if not rig.compiler():
        pytest.skip("no C compiler to make the clients with")
    with rig.Rig() as made:
        yield made


@pytest.fixture(scope="module")
def strace():
    """Skip the test if strace cannot be used."""
    possible, why = rig.can_trace()
    if not possible:
        pytest.skip(why)


@pytest.fixture
def new_counted(new_pooler, tools):
    """Make a daemon before the fake server, with its clients."""

    def make(settings=None, **options):
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "workers": 1,  # the counts are those of one event loop, with one set of buffers
                "default_pool_size": rig.POOL,
                "max_client_conn": CLIENTS + 500,
                "listen_backlog": 1024,
                "log_connections": 0,
                "log_disconnections": 0,
                **(settings or {}),
            },
            databases={"main": f"host={HOST} port={tools.fake.port}"},
            **options,
        )
        return pooler, rig.Load(tools.load_program, pooler.port, pooler.process.pid)

    return make


@pytest.fixture
def bytes_matter():
    if is_sanitized():
        pytest.skip("a sanitizer takes more memory than what is measured")


def memory(pooler):
    return rig.settled(pooler.process.pid, "Anonymous", quiet=0.4)


def pause(seconds):
    """Let time pass in which nothing may happen."""
    deadline = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= deadline, seconds + 10)


def warm(load):
    """Make the daemon initialise everything that it initialises at first use."""
    load.run("transactions", "-c", 50, "-n", 2000)


@pytest.mark.alone
@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_a_transaction_costs_two_receives_and_two_sends(new_counted, tools, strace, protocol):
    pooler, load = new_counted()
    more = {"simple": [], "extended": ["-x"], "prepared": ["-X"]}[protocol]
    per = {}
    for _ in range(3):
        trace, done = rig.calls_of_transactions(
            pooler.process.pid, load, tools.folder, "-c", 50, *more
        )
        per = {name: count / done for name, count in trace.by_name().items()}
        # A transaction at either end of the window may be counted only in part.
        margin = 50 / done
        assert trace.count("epoll_ctl") == 0, per
        assert not trace.vain_receives(), per
        receives = trace.count("recvfrom", "recvmsg", "read", "readv") / done
        sends = trace.count("sendto", "sendmsg", "write", "writev") / done
        assert abs(receives - 2) <= margin and abs(sends - 2) <= margin, per
        # No lock and no wake-up of another thread; the rest are ticks, which take two calls.
        assert trace.count("futex") == 0 and trace.count("eventfd2") == 0, per
        # How many events a wait returns depends on other load of the machine.
        if trace.count() / done <= 4.2:
            break
    assert trace.count() / done <= 4.2, per


def test_idle_clients_cause_no_wakeups(new_counted, tools, strace):
    pooler, load = new_counted({"stats_period": 3600})
    warm(load)

    def calls(seconds=4):
        with rig.traced(pooler.process.pid, tools.folder) as result:
            pause(seconds)
        return result().by_name()

    without = calls()
    with load.idle(CLIENTS) as grow:
        grow(CLIENTS)
        pause(1)
        idle = calls()
    assert sum(idle.values()) <= sum(without.values()) + 3, (without, idle)


def test_one_thread_serves_all(new_counted):
    pooler, load = new_counted()
    warm(load)
    with load.idle(CLIENTS) as grow:
        grow(CLIENTS)
        load.run("transactions", "-c", 50, "-n", 2000)
        assert len(os.listdir(f"/proc/{pooler.process.pid}/task")) == 1


@pytest.mark.skipif(sys.maxsize < 2**32 or os.uname().machine != "x86_64", reason="sizes of x86-64")
def test_objects_of_links_are_not_larger_than_before(new_counted):
    """A byte more for each client is paid for by every process with ten thousand of them."""
    pooler, _ = new_counted()
    sizes = {row["name"]: int(row["size"]) for row in pooler.show("MEM")}
    most = {"client_cache": 520, "server_cache": 928, "held_cache": 256, "backlog_cache": 168}
    assert {name: size for name, size in sizes.items() if size > most.get(name, size)} == {}
    assert most.keys() <= sizes.keys()


def test_an_idle_client_takes_less_than_620_bytes(new_counted, bytes_matter):
    pooler, load = new_counted()
    warm(load)
    before = memory(pooler)
    with load.idle(CLIENTS) as grow:
        grow(CLIENTS)
        each = (memory(pooler) - before) / CLIENTS
    assert each < 620
    wait_until(lambda: memory(pooler) - before < 200 * CLIENTS, 60, "their memory to come back")


@pytest.mark.parametrize("where", ["auth_file", "users", "both"])
def test_a_configured_user_takes_less_than_a_kilobyte(new_counted, bytes_matter, where):
    pooler, _ = new_counted()
    before = memory(pooler)
    names = [f"user{number}" for number in range(USERS)]
    options = {}
    if where != "users":
        options["auth"] = {name: f"secret of {name}" for name in names}
    if where != "auth_file":
        options["users"] = {name: {"max_user_connections": 5} for name in names}
    pooler, _ = new_counted(**options)
    assert int(pooler.show("LISTS", list="users")[0]["items"]) >= USERS
    assert (memory(pooler) - before) / USERS < 1024


def test_a_pool_without_a_query_takes_less_than_four_kilobytes(new_counted, tools, bytes_matter):
    count = 1000
    names = {f"user{number}": "" for number in range(count)}
    pooler, load = new_counted({"server_idle_timeout": 1}, auth=names)
    warm(load)
    before = memory(pooler)
    many = rig.Load(tools.load_program, pooler.port, user="user%d")
    with many.idle(count, "-q", "") as grow:
        grow(count)
    wait_until(lambda: not pooler.servers(), 30, "the servers to go")
    assert len(pooler.show("POOLS")) >= count
    assert (memory(pooler) - before) / count < 4096
