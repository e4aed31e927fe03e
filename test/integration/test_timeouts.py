# SPDX-License-Identifier: ISC
"""Every time limit: which connections it ends, when, with which text, and which it does not."""

import contextlib
import socket
import time

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import stays, wait_until


# An allowance for busy machines; the unit tests of the clock are exact.
HICCUP = 5


def since(began):
    return time.monotonic() - began


def ends_within(client, error, least, most):
    """The client is ended with this error, so many seconds from now, or a little later."""
    began = time.monotonic()
    found = client.fatal(timeout=most + HICCUP)
    assert found.is_(*error)
    assert least - 0.05 <= since(began), since(began)
    return True


# Clients


@pytest.mark.setting("query_wait_timeout")
def test_query_wait_timeout(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "query_wait_timeout": 1}
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    assert ends_within(waiter, ("FATAL", "57014", "query_wait_timeout"), 1, 2)
    assert holder.value("SELECT 1") == "1"
    assert pooler.wait_log(r"C-.* closing because: query_wait_timeout \(age=")
    pooler.wait_pool(cl_waiting=0)


def test_query_wait_timeout_zero_waits_without_limit(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "query_wait_timeout": 0}
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    assert waiter.silent(1.5)
    holder.query("COMMIT")
    assert waiter.checked().value == "1"


def test_query_wait_timeout_runs_during_pause(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "query_wait_timeout": 0.5})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("PAUSE")
    client.send(wire.query("SELECT 1"))
    assert ends_within(client, ("FATAL", "57014", "query_wait_timeout"), 0.5, 1.5)
    pooler.command("RESUME")


def test_query_wait_timeout_of_a_login_that_waits(new_pooler, new_server):
    server = new_server(lambda connection: connection.wait_disconnected())
    pooler = new_pooler({"query_wait_timeout": 0.5}, databases={"main": server.target()})
    client = pooler.raw().send_startup()
    assert ends_within(client, ("FATAL", "57014", "query_wait_timeout"), 0.4, 1.5)


def test_query_timeout_while_waiting(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "query_wait_timeout": 0.5}
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    pooler.command("SET query_timeout = '0.5'")
    # Both limits are exceeded at the same tick: this one is checked first.
    waiter.send(wire.query("SELECT 1"))
    assert ends_within(waiter, ("FATAL", "57014", "query_timeout"), 0.5, 1.5)


@pytest.mark.setting("query_timeout")
def test_query_timeout_while_running(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "query_timeout": 0.7})
    client, other = pooler.client(), pooler.client()
    client.send(wire.query("SELECT pg_sleep(30)"))
    assert ends_within(client, ("FATAL", "57014", "query timeout"), 0.7, 1.7)
    assert pooler.wait_log("C-.* closing because: query timeout")
    wait_until(lambda: not cluster.backends(state="active"), 3, "the query to be cancelled")
    assert other.value("SELECT 1") == "1"
    assert not pooler.lines("S-.* closing because: (?!successfully sent cancel request)")


def test_query_timeout_leaves_an_idle_transaction_alone(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "query_timeout": 0.5})
    client = pooler.client()
    client.query("BEGIN")
    assert client.silent(1.3)
    # The clock of the next query starts with it.
    assert client.value("SELECT 'after'") == "after"
    assert client.silent(0.8)
    assert client.query("COMMIT").tag == "COMMIT"


def test_query_timeout_counts_from_the_querys_start(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "query_timeout": 1})
    client = pooler.client()
    client.query("BEGIN")
    client.send(wire.extended("SELECT pg_sleep(30)"), wire.flush())
    began = time.monotonic()
    # Further messages of the client do not restart the clock.
    while client.silent(0.2):
        client.send(wire.flush())
        assert since(began) < 2 + HICCUP
    assert client.fatal().is_("FATAL", "57014", "query timeout")


@pytest.mark.setting("users.query_timeout")
def test_the_users_query_timeout_works_alone(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, users={"alice": {"query_timeout": 1}})
    alice, app = pooler.client("alice"), pooler.client()
    alice.send(wire.query("SELECT pg_sleep(30)"))
    app.send(wire.query("SELECT pg_sleep(2.2)"))
    assert alice.fatal().is_("FATAL", "57014", "query timeout")
    assert app.result().error is None


@pytest.mark.setting("client_idle_timeout")
def test_client_idle_timeout(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "client_idle_timeout": 0.7})
    client, holder = pooler.client(), pooler.client()
    client.query("SELECT 1")
    holder.query("BEGIN")
    assert ends_within(client, ("FATAL", "57P05", "client_idle_timeout"), 0.6, 1.7)
    # Not for a client with a server, nor for the console.
    assert holder.value("SELECT 1") == "1"
    assert pooler.show("STATE")


def test_client_idle_timeout_in_session_mode_ends_with_the_first_query(new_pooler):
    pooler = new_pooler({"pool_mode": "session", "client_idle_timeout": 0.5})
    silent, linked = pooler.client(), pooler.client()
    linked.query("SELECT 1")
    assert silent.fatal().is_("FATAL", "57P05", "client_idle_timeout")
    assert linked.silent(1)
    assert linked.value("SELECT 1") == "1"


@pytest.mark.setting("users.client_idle_timeout")
def test_the_users_client_idle_timeout_is_the_users_alone(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, users={"alice": {"client_idle_timeout": 1}})
    alice, app = pooler.client("alice"), pooler.client()
    assert alice.fatal().text == "client_idle_timeout"
    assert app.silent(0.5)
    assert app.value("SELECT 1") == "1"


@pytest.mark.setting("idle_transaction_timeout")
def test_idle_transaction_timeout(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "idle_transaction_timeout": 0.7})
    client, busy, idle = pooler.client(), pooler.client(), pooler.client()
    idle.query("SELECT 1")
    client.query("BEGIN")
    busy.query("BEGIN")
    busy.send(wire.query("SELECT pg_sleep(1.5)"))
    assert ends_within(client, ("FATAL", "08P01", "idle transaction timeout"), 0.6, 1.7)
    # A query that runs is not idle, and an idle client has no transaction.
    assert busy.result().error is None
    assert idle.value("SELECT 1") == "1"
    assert pooler.lines("C-.* closing because: idle transaction timeout")


@pytest.mark.setting("users.idle_transaction_timeout")
def test_the_users_idle_transaction_timeout(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"}, users={"alice": {"idle_transaction_timeout": 1}}
    )
    alice, app = pooler.client("alice"), pooler.client()
    alice.query("BEGIN"), app.query("BEGIN")
    assert alice.fatal().text == "idle transaction timeout"
    assert app.silent(0.5)


@pytest.mark.setting("transaction_timeout")
def test_transaction_timeout(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "transaction_timeout": 1})
    client, other = pooler.client(), pooler.client()
    client.query("BEGIN")
    began = time.monotonic()
    while client.silent(0.2):
        client.query("SELECT 1")
        assert other.value("SELECT 1") == "1"
        assert since(began) < 2 + HICCUP
    assert client.fatal().is_("FATAL", "08P01", "transaction timeout")
    assert since(began) > 0.9
    assert other.value("SELECT 1") == "1"


@pytest.mark.setting("users.transaction_timeout")
def test_the_users_transaction_timeout(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, users={"alice": {"transaction_timeout": 1}})
    alice, app = pooler.client("alice"), pooler.client()
    alice.query("BEGIN"), app.query("BEGIN")
    assert alice.fatal().text == "transaction timeout"
    assert app.silent(0.5)


@pytest.mark.setting("query_wait_notify")
def test_query_wait_notify(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "query_wait_notify": 1}
    )
    holder, waiter = pooler.client(), pooler.client()
    for _ in range(2):
        holder.query("BEGIN")
        waiter.send(wire.query("SELECT 1"))
        began = time.monotonic()
        found = waiter.read(timeout=2 + HICCUP)
        assert found.type == "N" and since(began) > 1
        assert wire.read_fields(found.body) == {
            "S": "NOTICE",
            "C": "00000",
            "M": "No server connection available in postgres backend, client being queued",
        }
        # Once in each wait.
        assert waiter.silent(1.5)
        holder.query("COMMIT")
        assert waiter.checked().value == "1"


def test_query_wait_notify_is_not_for_clients_without_a_welcome(new_pooler, new_server):
    server = new_server(lambda connection: connection.wait_disconnected())
    pooler = new_pooler({"query_wait_notify": 1}, databases={"main": server.target()})
    client = pooler.raw().send_startup()
    assert client.silent(3)


# Logging in


def test_client_login_timeout_while_the_server_is_down(new_pooler, new_server):
    server = new_server(lambda connection: connection.wait_disconnected())
    pooler = new_pooler({"client_login_timeout": 1}, databases={"main": server.target()})
    client = pooler.raw().send_startup()
    error = ("FATAL", "57P03", "client_login_timeout (server down)")
    assert ends_within(client, error, 1, 2)


def test_client_login_timeout_is_not_for_those_logged_in(new_pooler):
    pooler = new_pooler({"client_login_timeout": 0.5, "pool_mode": "transaction"})
    client = pooler.client()
    assert client.silent(1.2)
    assert client.value("SELECT 1") == "1"


# Servers


@pytest.mark.setting("server_connect_timeout")
def test_server_connect_timeout_in_the_login(new_pooler, new_server):  # F56
    server = new_server(lambda connection: connection.wait_disconnected())
    pooler = new_pooler(
        {"server_connect_timeout": 0.7, "server_login_retry": 1, "client_login_timeout": 4},
        databases={"main": server.target()},
    )
    client = pooler.raw().send_startup()
    assert pooler.wait_log("S-.* closing because: connect timeout")
    # The client stays queued, and another attempt is made after the retry time.
    server.wait_count(2)
    assert client.fatal().text == "client_login_timeout (server down)"


@pytest.fixture
def deaf_port():
    """A TCP port where connections are never established: the queue of the socket is full."""
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            fill = stack.enter_context(socket.socket())
            fill.setblocking(False)
            fill.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def test_server_connect_timeout_before_tcp_is_up(new_pooler, deaf_port):
    """PgBouncer's text for it is that of a refused connection."""
    pooler = new_pooler(
        {"server_connect_timeout": 0.7, "query_wait_timeout": 2},
        databases={"main": {"host": "127.0.0.1", "port": deaf_port}},
    )
    client = pooler.raw().send_startup()
    assert pooler.wait_log("S-.* closing because: connect failed")
    assert client.fatal().text == "query_wait_timeout"
    assert not pooler.lines("connect timeout")


def test_server_connect_timeout_after_authentication(new_pooler, new_server):  # F56
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(0))
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"server_connect_timeout": 0.7, "query_wait_timeout": 2}, databases={"main": server.target()}
    )
    client = pooler.raw().send_startup()
    assert pooler.wait_log("closing because: connect timeout")
    assert client.fatal().text == "query_wait_timeout"
    server.wait_all_ended()


def test_server_connect_timeout_covers_connect_query(new_pooler):
    pooler = new_pooler(
        {"server_connect_timeout": 0.7, "query_wait_timeout": 2},
        databases={"main": {"connect_query": "SELECT pg_sleep(30)"}},
    )
    client = pooler.raw().send_startup()
    assert pooler.wait_log("closing because: connect timeout")
    assert client.fatal().text == "query_wait_timeout"


def test_server_connect_timeout_keeps_fractions(new_pooler, cluster):
    pooler = new_pooler({"server_connect_timeout": 0.9})
    assert pooler.client().value("SELECT 1") == "1"


def test_server_connect_timeout_zero_is_no_limit(new_pooler, new_server):
    def script(connection):
        connection.accept_startup()
        connection.server.gate.wait(10)
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler({"server_connect_timeout": 0}, databases={"main": server.target()})
    client = pooler.raw().send_startup()
    assert client.silent(1.5)
    server.gate.set()
    client.finish_login("app")
    assert server.count == 1


@pytest.mark.setting("server_login_retry")
def test_server_login_retry_spaces_attempts(new_pooler, new_server):
    server = new_server(lambda connection: connection.reset())
    pooler = new_pooler(
        {"server_login_retry": 1, "client_login_timeout": 3.5}, databases={"main": server.target()}
    )
    client = pooler.raw().send_startup()
    assert client.fatal().text == "client_login_timeout (server down)"
    assert 3 <= server.count <= 5


def test_a_client_gets_an_error_at_once_while_attempts_fail(new_pooler, new_server):
    bad = []

    def script(connection):
        if bad:
            connection.accept_startup()
            connection.send(wire.error("57014", "out of everything", "FATAL"))
            return
        connection.login()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 1}, databases={"main": server.target()}
    )
    one, two = pooler.client(), pooler.client()
    bad.append(True)
    server.connections[0].close()
    pooler.wait_pool(sv_idle=0)
    one.send(wire.query("q"))
    # This one was queued when the attempt failed: it gets the server's own error.
    assert one.fatal().is_("FATAL", "57014", "out of everything")
    count = server.count
    two.send(wire.query("q"))
    text = "server login has been failing, cached error: out of everything (server_login_retry)"
    assert two.fatal().is_("FATAL", "08006", text)
    assert server.count == count
    bad.clear()

    def served():
        try:
            return pooler.client().value("q") == "q"
        except ServerError as error:
            assert error.text == text
            return False

    wait_until(served, 5, interval=0.1)


def test_starting_up_is_retried_and_not_reported(new_pooler, new_server):  # F45
    """Clients wait while the server answers 57P03."""

    def script(connection):
        connection.accept_startup()
        if not connection.server.gate.is_set():
            connection.send(wire.error("57P03", "the database system is starting up", "FATAL"))
            return
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler({"server_login_retry": 0.3}, databases={"main": server.target()})
    client = pooler.raw().send_startup()
    server.wait_count(3)
    assert client.silent(0.1)
    server.gate.set()
    client.finish_login("app")
    assert client.value("q") == "q"


# Many at once


@pytest.mark.alone
def test_many_deadlines_in_one_second(new_pooler):  # F30
    """Clients of four kinds time out together: each gets its own text, no client is delayed."""
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "max_client_conn": 1000,
            "query_wait_timeout": 1.5,
            "client_idle_timeout": 1.5,
        },
        databases={
            "main": {},
            "narrow": {"dbname": "main", "pool_size": 1},
            "holds": {"dbname": "main", "pool_size": 30},
        },
        users={
            "alice": {"idle_transaction_timeout": 1},
            "bob": {"transaction_timeout": 1},
            "carol": {"client_idle_timeout": 3600},
        },
    )
    observer = pooler.client("carol")
    holder = pooler.client("carol", "narrow")
    holder.query("BEGIN")
    kinds = {
        "query_wait_timeout": [pooler.client("carol", "narrow") for _ in range(80)],
        "idle transaction timeout": [pooler.client("alice", "holds") for _ in range(20)],
        "transaction timeout": [pooler.client("bob", "holds") for _ in range(20)],
        "client_idle_timeout": [pooler.client() for _ in range(80)],
    }
    for client in kinds["idle transaction timeout"] + kinds["transaction timeout"]:
        client.send(wire.query("BEGIN"))
    for client in kinds["query_wait_timeout"]:
        client.send(wire.query("SELECT 1"))
    worst = 0
    began = time.monotonic()
    while since(began) < 2.5:
        asked = pooler.loop_seconds()
        observer.query("SELECT 1")
        worst = max(worst, pooler.loop_seconds() - asked)
    codes = {
        "query_wait_timeout": "57014",
        "idle transaction timeout": "08P01",
        "transaction timeout": "08P01",
        "client_idle_timeout": "57P05",
    }
    for text, clients in kinds.items():
        for client in clients:
            assert client.fatal().is_("FATAL", codes[text], text)
    assert worst < 0.5
    assert holder.value("SELECT 1") == "1"


@pytest.mark.parametrize("setting", ["query_wait_timeout", "client_idle_timeout"])
def test_a_shorter_limit_applies_to_connected_clients(new_pooler, setting):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, client = pooler.client(), pooler.client()
    holder.query("BEGIN")
    if setting == "query_wait_timeout":
        client.send(wire.query("SELECT 1"))
        pooler.wait_pool(cl_waiting=1)
    pooler.command(f"SET {setting} = '0.3'")
    assert client.fatal(timeout=3).text == setting


def test_no_limit_means_none(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"})
    idle, holder = pooler.client(), pooler.client()
    holder.query("BEGIN")
    stays(lambda: len(pooler.clients()) == 2, 1)
    assert idle.value("SELECT 1") == holder.value("SELECT 1") == "1"


# query_wait_timeout of users and databases, as PgBouncer 1.26 has it


@pytest.fixture
def waiting(new_pooler):
    """Make a daemon with a pool of one, the only server taken; returns a client that waits."""

    def make(settings, user="app", **options):
        pooler = new_pooler(
            {"pool_mode": "transaction", "default_pool_size": 1, **settings}, **options
        )
        holder = pooler.client("carol")
        holder.query("BEGIN")
        client = pooler.client(user)
        client.send(wire.query("SELECT 'served'"))
        return client, holder

    return make


FORCED = {"main": {"user": "app"}}


@pytest.mark.parametrize("database", [{}, {"query_wait_timeout": 60}])
def test_a_users_query_wait_timeout_works_where_no_other_limit_is_set(waiting, database):
    """PgBouncer's source of July 2026 never looks at it then."""
    client, _ = waiting(
        {"query_timeout": 0, "query_wait_timeout": 0, "client_idle_timeout": 0},
        databases={"main": {"user": "app", **database}},
        users={"app": {"query_wait_timeout": 1}},
    )
    assert client.fatal(5).is_("FATAL", "57014", "query_wait_timeout")


@pytest.mark.parametrize("level", ["databases", "users"])
def test_a_query_wait_timeout_of_minus_one_inherits(waiting, level):
    """It is documented as not set; PgBouncer's source makes it practically for ever."""
    keys = {"query_wait_timeout": -1}
    client, _ = waiting(
        {"query_wait_timeout": 0.5},
        databases={"main": {"user": "app", **(keys if level == "databases" else {})}},
        users={"app": keys if level == "users" else {"query_timeout": 0}},
    )
    assert client.fatal(5).is_("FATAL", "57014", "query_wait_timeout")


def test_a_query_wait_timeout_of_zero_is_no_limit(waiting):
    client, holder = waiting(
        {"query_wait_timeout": 0.3},
        databases=FORCED,
        users={"app": {"query_wait_timeout": 0}},
    )
    assert client.silent(1)
    holder.query("COMMIT")
    assert client.checked().value == "served"
