# SPDX-License-Identifier: ISC
"""Limits per client address: connections, and the delay of logins after failed ones."""

import time

import pytest

from support import wire
from support.clients.raw import RawClient
from support.process import wait_until
from support.servers.pooler import is_sanitized

LIMIT = ("FATAL", "53300", "client connections exceeded (max_client_conn_per_address)")
FAILED = ("FATAL", "28P01", "password authentication failed")
PATIENCE = 10 if is_sanitized() else 1


@pytest.fixture
def make(new_pooler):
    """Make a daemon that listens on all addresses of the loopback; its console is a Unix socket."""

    def make_it(settings, **options):
        pooler = new_pooler(
            {"listen_addr": "*", "pool_mode": "transaction", **settings}, **options
        )
        pooler._console = pooler.keep(pooler.superuser())
        return pooler

    return make_it


def connect(pooler, host):
    """A connection from 127.0.0.1 to 127.0.0.1, or from ::1 to ::1."""
    return pooler.raw(address=(host, pooler.port))


@pytest.mark.setting("max_client_conn_per_address")
def test_connections_of_an_address_are_limited(make):
    pooler = make({"max_client_conn_per_address": 2})
    clients = [connect(pooler, "127.0.0.1").login() for _ in range(2)]
    assert connect(pooler, "127.0.0.1").send_startup().fatal().is_(*LIMIT)
    # Before authentication, and whatever the database.
    assert connect(pooler, "127.0.0.1").send_startup("ghost", "nowhere").fatal().is_(*LIMIT)
    assert connect(pooler, "127.0.0.1").send_startup("x", "pgbouncer").fatal().is_(*LIMIT)
    # Unix sockets have no address; another address has a count of its own.
    for _ in range(3):
        assert pooler.client(unix=True).value("SELECT 1") == "1"
    connect(pooler, "::1").login()
    clients.pop().send(wire.terminate())
    wait_until(lambda: len(pooler.clients(addr="127.0.0.1")) == 1, 10, "the client to leave")
    connect(pooler, "127.0.0.1").login()


@pytest.mark.setting("max_client_conn_per_address", "per_address_exempt")
def test_the_limit_follows_its_settings(make):
    pooler = make({})
    clients = [connect(pooler, "127.0.0.1").login() for _ in range(3)]
    pooler.command("SET max_client_conn_per_address = 3")
    assert connect(pooler, "127.0.0.1").send_startup().fatal().is_(*LIMIT)
    pooler.command("SET per_address_exempt = '127.0.0.0/8, ::1'")
    extra = [connect(pooler, host).login() for host in ["127.0.0.1"] * 2 + ["::1"] * 4]
    pooler.command("SET per_address_exempt = '::1'")
    assert connect(pooler, "127.0.0.1").send_startup().fatal().is_(*LIMIT)
    # Clients that were connected before stay.
    for client in clients + extra:
        assert client.query("SELECT 1").value == "1"
    assert pooler.setting("per_address_exempt") == "::1"


def test_the_counts_are_right_after_a_takeover(make):
    pooler = make({"max_client_conn_per_address": 3})
    clients = [connect(pooler, "127.0.0.1").login() for _ in range(3)]
    pooler.take_over()
    pooler._console = pooler.superuser()
    assert connect(pooler, "127.0.0.1").send_startup().fatal().is_(*LIMIT)
    clients.pop().send(wire.terminate())
    wait_until(lambda: len(pooler.clients(addr="127.0.0.1")) == 2, 10, "the client to leave")
    connect(pooler, "127.0.0.1").login()
    assert connect(pooler, "127.0.0.1").send_startup().fatal().is_(*LIMIT)


def fail(pooler, user, host="127.0.0.1"):
    """Make a login with a wrong password; the seconds until the password was asked for."""
    began = time.monotonic()
    client = connect(pooler, host).send_startup(user)
    assert client.read().type == "R"
    took = time.monotonic() - began
    client.send(wire.password("wrong"))
    assert client.fatal().is_(*FAILED)
    return took


@pytest.mark.alone
@pytest.mark.setting("auth_failure_delay")
def test_failed_logins_delay_the_next_ones_of_their_address(make):
    pooler = make({"auth_type": "plain", "auth_failure_delay": 0.4}, auth={"app": "x"})
    # The time does not depend on whether the user exists.
    times = [fail(pooler, user) for user in ("app", "ghost", "app", "ghost")]
    for number, (expected, took) in enumerate(zip((0, 0.4, 0.8, 1.6), times)):
        assert expected <= took < expected + 0.5 * PATIENCE, number
    # Not those of others.
    began = time.monotonic()
    connect(pooler, "::1").login(password="x").close()
    pooler.client(password="x", unix=True).leave()
    assert time.monotonic() - began < 0.5 * PATIENCE
    # The right password is accepted, only later; meanwhile nothing is held.
    client = connect(pooler, "127.0.0.1").send_startup()
    pooler.wait_log("login waits for 3.2 s, since logins from its address have failed")
    assert client.read(10).type == "R"
    assert time.monotonic() - began > 3
    client.send(wire.password("x"))
    client.read_until("Z")


def test_a_client_may_leave_or_be_closed_during_its_delay(make):
    pooler = make(
        {"auth_type": "plain", "auth_failure_delay": 20, "client_login_timeout": 60},
        auth={"app": "x"},
    )
    fail(pooler, "app")
    left = connect(pooler, "127.0.0.1").send_startup()
    hasty = connect(pooler, "127.0.0.1").send_startup()
    hasty.send(wire.password("x"))  # it was not asked for
    hasty.closed()
    waiting = connect(pooler, "127.0.0.1").send_startup()
    pooler.wait_log("login waits for 20.0 s", count=3)
    left.close()
    pooler.command("SET auth_failure_delay = 0")
    # Those that come now do not wait.
    connect(pooler, "127.0.0.1").login(password="x")
    waiting.close()


@pytest.fixture
def many(make):
    """Make a daemon with three workers, each with a database of its own."""

    def make_it(settings, **options):
        databases = {name: {"dbname": "main"} for name in ("one", "two", "three")}
        return make({"workers": 3, **settings}, databases=databases, **options)

    return make_it


@pytest.mark.setting("max_client_conn_per_address", "workers")
def test_the_limit_holds_for_the_clients_of_all_workers(many):
    pooler = many({"max_client_conn_per_address": 3})
    clients = [connect(pooler, "127.0.0.1").login("app", name) for name in ("one", "two", "three")]
    for name in ("one", "two", "three"):
        assert connect(pooler, "127.0.0.1").send_startup("app", name).fatal().is_(*LIMIT)
    clients.pop().send(wire.terminate())
    wait_until(lambda: len(pooler.clients(addr="127.0.0.1")) == 2, 10, "the client to leave")
    connect(pooler, "127.0.0.1").login("app", "one")


@pytest.mark.setting("max_client_conn_per_address", "workers")
def test_no_silent_client_is_closed_for_one_that_is_refused(many):
    """Wherever it is: an address at its limit does not push out the logins of others."""
    pooler = many({"max_client_conn_per_address": 2, "max_client_conn": 8})
    clients = [connect(pooler, "127.0.0.1").login("app", "one") for _ in range(2)]
    silent = [pooler.raw(unix=True) for _ in range(6)]
    # Half a second is theirs; from then on they may be closed.
    assert silent[-1].silent(0.6)
    for name in ("one", "two", "three"):
        assert connect(pooler, "127.0.0.1").send_startup("app", name).fatal().is_(*LIMIT)
        assert len(pooler.show("SOCKETS", state="cl_login")) == len(silent)
    # The console has no limit.
    with pooler.superuser() as console:
        console.query("SHOW VERSION")
    assert len(pooler.show("SOCKETS", state="cl_login")) == len(silent)
    assert clients[0].value("SELECT 1") == "1"


@pytest.mark.setting("auth_failure_delay", "workers")
def test_failed_logins_delay_logins_at_all_workers(many):
    pooler = many({"auth_type": "plain", "auth_failure_delay": 0.2}, auth={"app": "x"})
    for count, name in enumerate(("one", "two", "three", "one")):
        client = connect(pooler, "127.0.0.1").send_startup("app", name)
        assert client.read(10).type == "R"
        client.send(wire.password("wrong"))
        assert client.fatal().is_(*FAILED)
        if count > 0:
            pooler.wait_log(f"login waits for {0.2 * 2 ** (count - 1):.1f} s")


def test_wrong_values_of_the_exempt_networks_are_refused(make):
    pooler = make({})
    for value in ("localhost", "10.0.0.1/8", "10.0.0.0/33", "1.2.3", "10.0.0.0/8;::1"):
        with pytest.raises(Exception):
            pooler.command(f"SET per_address_exempt = '{value}'")
    assert pooler.setting("per_address_exempt") == ""
