# SPDX-License-Identifier: ISC
"""Servers that crash, hang, refuse, flood or send nonsense: the pooler serves on and recovers."""

import os
import random
import signal
import struct
import threading
import time

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.passwords import ScramServer, encode
from support.process import wait_until
from support.servers.fake_server import PARAMETERS
from support.servers.pooler import is_sanitized

CRASHED = ("FATAL", "08006", "server conn crashed?")

# A database with a long wait limit, beside one that refuses clients soon.
PATIENT = {"query_wait_timeout": 20}


def served(pooler, **login):
    """Whether a new client gets an answer now."""
    try:
        client = pooler.client(**login)
        good = client.value("SELECT 'well'") == "well"
        client.leave()
        return good
    except (ServerError, Closed, OSError, TimeoutError):
        return False


def recovers(pooler, timeout, **login):
    """A new client is served within this time."""
    return wait_until(lambda: served(pooler, **login), timeout, "recovery", interval=0.05)


class Load:
    """Clients that send queries without end and reconnect after errors, which are kept."""

    def __init__(self, pooler, count=6, sql="SELECT 1"):
        self.pooler = pooler
        self.sql = sql
        self.stop_now = threading.Event()
        self.errors = []
        self.answers = 0
        self.threads = [threading.Thread(target=self._work) for _ in range(count)]
        pooler.keep(self)
        for thread in self.threads:
            thread.start()

    def _work(self):
        while not self.stop_now.is_set():
            try:
                with RawClient(self.pooler.address) as client:
                    client.login()
                    while not self.stop_now.is_set():
                        client.query("BEGIN")
                        client.query(self.sql)
                        client.query("COMMIT")
                        self.answers += 1
                    client.leave()
            except (ServerError, Closed, OSError, AssertionError) as fault:
                self.errors.append(fault)

    def close(self):
        """End it when the test ends, with or without a failure."""
        self.stop()

    def stop(self):
        """End it; returns the errors."""
        self.stop_now.set()
        for thread in self.threads:
            thread.join(30)
            assert not thread.is_alive()
        return self.errors


# Terminated backends


def test_the_end_of_an_idle_server_is_not_noticed(pooler, cluster):  # F44
    client = pooler.client()
    for _ in range(5):
        pid = int(client.value("SELECT pg_backend_pid()"))
        cluster.terminate(pid)
        pooler.wait_pool(sv_idle=0)
        assert client.value("SELECT 1") == "1"
    assert len(pooler.lines(r"S-.* closing because: server conn crashed\? \(age=")) == 5


def test_the_end_of_a_server_in_use_is_reported_by_server_and_pooler(pooler, cluster):
    client, other = pooler.client(), pooler.client()
    client.query("BEGIN")
    pid = int(client.value("SELECT pg_backend_pid()"))
    cluster.terminate(pid)
    errors = [ServerError(m.body) for m in client.read_all() if m.type == "E"]
    assert [(e.severity, e.sqlstate) for e in errors] == [("FATAL", "57P01"), ("FATAL", "08006")]
    assert errors[1].is_(*CRASHED)
    assert len(pooler.wait_log(r"closing because: server conn crashed\?", 2)) == 2
    assert other.value("SELECT 1") == "1"


def test_terminating_backends_under_load(pooler, cluster):  # F44
    load = Load(pooler)
    random_ = random.Random(1)
    for _ in range(12):
        asked = load.answers
        # Not during a login: that makes the pool refuse logins for server_login_retry.
        rows = [row for row in cluster.backends() if row["state"] not in (None, "starting")]
        for row in random_.sample(rows, min(3, len(rows))):
            cluster.terminate(row["pid"])
        wait_until(lambda: load.answers >= asked + 30, 5, "the load to go on")
    errors = load.stop()
    assert {(error.severity, error.sqlstate) for error in errors} <= {
        ("FATAL", "57P01"),
        ("FATAL", "08006"),
    }
    assert recovers(pooler, 2)
    pooler.wait_pool(sv_active=0, cl_waiting=0)


def test_a_killed_backend_affects_only_clients_with_servers(new_pooler, private_cluster):  # F43
    """PostgreSQL closes all connections and recovers."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 1}, cluster=private_cluster
    )
    client, idle = pooler.client(), pooler.client()
    idle.query("SELECT 1")
    client.query("BEGIN")
    pid = int(client.value("SELECT pg_backend_pid()"))
    os.kill(pid, signal.SIGKILL)
    assert client.fatal().is_(*CRASHED)
    assert recovers(pooler, 10)
    # A client without a server is not affected.
    assert wait_until(lambda: try_query(idle), 5)


def try_query(client):
    try:
        return client.value("SELECT 1") == "1"
    except ServerError as error:
        assert "server login has been failing" not in error.text
        return False


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_under_load(new_pooler, private_cluster, mode):  # F45
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 0.5, "query_wait_timeout": 20},
        cluster=private_cluster,
    )
    load = Load(pooler)
    wait_until(lambda: load.answers > 50)
    private_cluster.restart(mode)
    assert recovers(pooler, 5)
    asked = load.answers
    wait_until(lambda: load.answers > asked + 50, 5, "the load to come back")
    for error in load.stop():
        assert isinstance(error, ServerError), error
        assert error.severity == "FATAL" and error.sqlstate in ("57P01", "57P02", "57P03", "08006")
    pooler.wait_pool(sv_active=0, cl_waiting=0)


def test_a_stopped_backend_delays_no_other_client(new_pooler, cluster):  # F46
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 3})
    client, other = pooler.client(), pooler.client()
    pid = None
    client.query("BEGIN")
    pid = int(client.value("SELECT pg_backend_pid()"))
    os.kill(pid, signal.SIGSTOP)
    try:
        client.send(wire.query("SELECT 'late'"))
        for number in range(20):
            assert other.value(f"SELECT {number}") == str(number)
        assert served(pooler)
        assert client.silent(0.1)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert client.checked().value == "late"
    client.query("COMMIT")
    pooler.wait_pool(sv_active=0)


def test_a_silent_connection_that_is_reset(new_pooler, new_relay, cluster):  # F47
    relay = new_relay(cluster.port)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 0.5},
        databases={"main": {"host": relay.host, "port": relay.port}, "other": {}},
    )
    client, neighbour = pooler.client(), pooler.client(database="other")
    client.query("SELECT 1")
    relay.set_mode("hold")
    client.send(wire.query("SELECT 'lost'"))
    for number in range(10):
        assert neighbour.value(f"SELECT {number}") == str(number)
    assert client.silent(0.5)
    relay.set_mode("reset")
    assert client.fatal().is_(*CRASHED)
    assert neighbour.value("SELECT 1") == "1"
    relay.set_mode("pass")
    assert recovers(pooler, 5)


def test_a_server_that_cannot_be_reached(new_pooler, new_relay, cluster):
    """A refused connection ends no waiting client; the time limits do that."""
    relay = new_relay(cluster.port)
    relay.set_mode("reset")
    pooler = new_pooler(
        {"server_login_retry": 0.3, "query_wait_timeout": 10},
        databases={"main": {"host": relay.host, "port": relay.port}},
    )
    client = pooler.raw().send_startup()
    wait_until(lambda: relay.accepted >= 3)
    assert client.silent(0.1)
    relay.set_mode("pass")
    client.finish_login("app")
    assert client.value("SELECT 1") == "1"


def test_a_database_whose_server_is_down_from_the_start(new_pooler):
    pooler = new_pooler(
        {"client_login_timeout": 1, "server_login_retry": 0.3},
        databases={"main": {"host": "127.0.0.1", "port": 1}, "other": {}},
    )
    client = pooler.raw().send_startup()
    assert pooler.client(database="other").value("SELECT 1") == "1"
    assert client.fatal().is_("FATAL", "57P03", "client_login_timeout (server down)")
    assert pooler.wait_log("S-.* closing because: connect failed")


# Refusals: F57


def test_no_connection_slots_left(new_pooler, cluster):  # F57
    """The server's own error; the pool's servers serve on; no storm of attempts."""
    cluster.sql("ALTER ROLE carol CONNECTION LIMIT 2")
    try:
        pooler = new_pooler({"pool_mode": "transaction", "server_login_retry": 1})
        first, second, third = (pooler.client("carol") for _ in range(3))
        first.query("BEGIN"), second.query("BEGIN")
        third.send(wire.query("SELECT 'waited'"))
        pooler.wait_log("WARNING server login failed: FATAL too many connections for role")
        # With servers in the pool the third client keeps waiting, and gets the first server that is
        # free.
        assert third.silent(0.5)
        assert len(pooler.lines("server login failed")) <= 2
        first.query("COMMIT")
        assert third.checked().value == "waited"
    finally:
        cluster.sql("ALTER ROLE carol CONNECTION LIMIT -1")


def test_no_connection_slots_at_all(new_pooler, cluster):  # F57
    cluster.sql("ALTER ROLE carol CONNECTION LIMIT 0")
    try:
        pooler = new_pooler({"server_login_retry": 1})
        error = pooler.refused("carol")
        assert error.is_("FATAL", "53300", 'too many connections for role "carol"')
    finally:
        cluster.sql("ALTER ROLE carol CONNECTION LIMIT -1")
    assert recovers(pooler, 4, user="carol")


# Nonsense in the login: F48, F50, F54

INCOMPLETE_ERRORS = {
    "no sqlstate": (wire.message("E", wire.fields(S="FATAL", M="no code")), "no code"),
    "no text": (wire.message("E", wire.fields(S="FATAL", C="XX001")), None),
    "no severity": (wire.message("E", wire.fields(C="XX001", M="no severity")), "no severity"),
    "no fields": (wire.message("E", b"\0"), None),
    "no body": (wire.message("E", b""), None),
    "no end": (wire.message("E", b"SFATAL\0CXX001\0Mno end"), None),
    "field without end": (wire.message("E", b"SFATAL\0M"), None),
    "very long": (
        wire.message("E", wire.fields(S="FATAL", C="XX001", M="long " * 5000)), "long long"
    ),
}


@pytest.mark.parametrize("name", INCOMPLETE_ERRORS)
def test_an_incomplete_error_in_the_login_reaches_the_client(new_pooler, new_server, name):  # F48
    packet, text = INCOMPLETE_ERRORS[name]

    def script(connection):
        connection.accept_startup()
        connection.send(packet)
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler({"query_wait_timeout": 5}, databases={"main": server.target()})
    error = pooler.refused()
    assert error.severity == "FATAL"
    assert error.sqlstate and len(error.sqlstate) == 5
    if text:
        assert error.text.startswith(text)
    assert len(error.text.encode()) <= 127
    server.wait_all_ended()


@pytest.mark.parametrize("name", INCOMPLETE_ERRORS)
def test_an_incomplete_error_after_the_login_affects_no_other_client(new_pooler, new_server, name):  # F48
    packet, _ = INCOMPLETE_ERRORS[name]

    def answer(connection, sql):
        return packet + wire.ready() if sql == "bad" else None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.send(wire.query("bad"))
    assert client.read().type == "E"
    assert other.value("good") == "good"


LOGIN_NONSENSE = {
    "ready before authentication": wire.ready(),
    "key before authentication": wire.backend_key(1, b"abcd"),
    "row": wire.data_row("x"),
    "error with a wrong length": b"E" + struct.pack("!I", 3),
    "length of two gigabytes": b"R" + struct.pack("!I", 0x7FFFFFFF) + b"x" * 100,
    "length that overflows": b"R" + struct.pack("!I", 0xFFFFFFFF),
    "unknown type": wire.message("~", b"x"),
    "authentication without a code": wire.message("R", b""),
    "half an authentication code": wire.message("R", b"\0\0"),
    "md5 without salt": wire.message("R", struct.pack("!I", 5)),
    "sasl without a list": wire.message("R", struct.pack("!I", 10)),
    "sasl list without an end": wire.message("R", struct.pack("!I", 10) + b"SCRAM-SHA-256"),
    "sasl continue out of the blue": wire.authentication(11, b"r=x,s=eA==,i=1"),
    "negotiation": wire.message("v", struct.pack("!II", 0x30000, 0)),
    "copy": wire.message("G", b"\0\0\0"),
    "text": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "zeros": b"\0" * 50,
    "startup packet": wire.startup({"user": "x"}),
}


@pytest.mark.parametrize("name", LOGIN_NONSENSE)
def test_nonsense_in_the_login_ends_that_server(new_pooler, new_server, name):  # F49, F50
    def script(connection):
        connection.accept_startup()
        connection.send(LOGIN_NONSENSE[name])
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"query_wait_timeout": 0.3, "server_login_retry": 10, "server_connect_timeout": 1},
        databases={"main": server.target(user="app", password="x"), "other": PATIENT},
    )
    memory = pooler.memory()
    error = pooler.refused()
    assert error.severity == "FATAL"
    server.wait_count(1)
    server.wait_all_ended()
    assert pooler.client(database="other").value("SELECT 1") == "1"
    if not is_sanitized():
        assert pooler.memory() - memory < 3_000_000


AFTER_OK = {
    "broken parameter": wire.message("S", b"name"),
    "parameter without a value": wire.message("S", b"name\0"),
    "empty parameter": wire.message("S", b""),
    "key without a body": wire.message("K", b""),
    "key of three bytes": wire.message("K", b"abc"),
    "key of 300 bytes": wire.backend_key(1, b"k" * 300),
    "ready without a status": wire.message("Z", b""),
    "ready with an unknown status": wire.ready("?"),
    "ready in a transaction": wire.ready("T"),
    "second authentication": wire.authentication(3),
}


@pytest.mark.parametrize("name", AFTER_OK)
def test_nonsense_behind_authentication_ends_that_server(new_pooler, new_server, name):  # F49, F50
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(0), AFTER_OK[name])
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"query_wait_timeout": 0.3, "server_login_retry": 10, "server_connect_timeout": 1},
        databases={"main": server.target(), "other": PATIENT},
    )
    assert pooler.refused().severity == "FATAL"
    server.wait_count(1)
    server.wait_all_ended()
    assert pooler.client(database="other").value("SELECT 1") == "1"


@pytest.mark.parametrize("flood", ["parameters", "one parameter", "long values", "notices"])
def test_a_flood_in_the_login_is_bounded(new_pooler, new_server, flood):  # F54
    parts = {
        "parameters": [wire.parameter_status(f"name{n}", "value" * 4) for n in range(20000)],
        "one parameter": [wire.parameter_status("same", f"value{n}") for n in range(20000)],
        "long values": [wire.parameter_status(f"name{n}", "v" * 60000) for n in range(50)],
        "notices": [wire.notice("hello " * 10)] * 100000,
    }[flood]

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(0))
        connection.send(b"".join(parts))
        connection.send(
            *[wire.parameter_status(*pair) for pair in PARAMETERS],
            wire.backend_key(1, b"abcd"), wire.ready(),
        )
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"query_wait_timeout": 3, "server_login_retry": 10},
        databases={"main": server.target(), "other": {}},
    )
    neighbour = pooler.client(database="other")
    memory = pooler.memory()
    client = pooler.raw().send_startup()
    worst = 0
    began = time.monotonic()
    while time.monotonic() - began < 0.5:
        asked = pooler.loop_seconds()
        assert neighbour.value("SELECT 1") == "1"
        worst = max(worst, pooler.loop_seconds() - asked)
    assert worst < 0.5
    if flood in ("parameters", "long values"):
        assert client.fatal().severity == "FATAL"
    else:
        # Bounded without a limit: each replaces the one before, or is dropped.
        try:
            client.finish_login("app")
        except ServerError as error:
            assert error.severity == "FATAL"
    if not is_sanitized():
        assert pooler.memory() - memory < 3_000_000


# Hostile SCRAM: F51, F52


def scram_with(first):
    """A script that sends the server-first-message made by first(client_first)."""

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, wire.text("SCRAM-SHA-256") + b"\0"))
        body = connection.read().body
        client_first = body.split(b"\0", 1)[1][4:].decode()
        nonce = client_first.split("r=", 1)[1].split(",")[0]
        connection.send(wire.authentication(11, first(nonce)))
        connection.wait_disconnected()

    return script


SALT = encode(b"salt salt salt!!")

HOSTILE_FIRSTS = {
    "empty": lambda nonce: b"",
    "own nonce": lambda nonce: f"r=other,s={SALT},i=4096".encode(),
    "nonce not longer": lambda nonce: f"r={nonce},s={SALT},i=4096".encode(),
    "nonce of 3 kB": lambda nonce: f"r={nonce}{'n' * 3000},s={SALT},i=4096".encode(),
    "nonce of 60 kB": lambda nonce: f"r={nonce}{'n' * 60000},s={SALT},i=4096".encode(),
    "no salt": lambda nonce: f"r={nonce}x,i=4096".encode(),
    "empty salt": lambda nonce: f"r={nonce}x,s=,i=4096".encode(),
    "salt not base64": lambda nonce: f"r={nonce}x,s=!!!!,i=4096".encode(),
    "no iterations": lambda nonce: f"r={nonce}x,s={SALT}".encode(),
    "zero iterations": lambda nonce: f"r={nonce}x,s={SALT},i=0".encode(),
    "negative iterations": lambda nonce: f"r={nonce}x,s={SALT},i=-5".encode(),
    "ten million iterations": lambda nonce: f"r={nonce}x,s={SALT},i=10000000".encode(),
    "iterations that overflow": lambda nonce: f"r={nonce}x,s={SALT},i=99999999999999999999".encode(),
    "iterations not a number": lambda nonce: f"r={nonce}x,s={SALT},i=4096x".encode(),
    "zero byte": lambda nonce: f"r={nonce}x\0,s={SALT},i=4096".encode(),
}


@pytest.mark.parametrize("name", HOSTILE_FIRSTS)
def test_a_hostile_challenge_ends_that_server(new_pooler, new_server, name):  # F51, F52
    server = new_server(scram_with(HOSTILE_FIRSTS[name]))
    pooler = new_pooler(
        {"query_wait_timeout": 0.3, "server_login_retry": 10},
        databases={"main": server.target(user="app", password="x"), "other": PATIENT},
    )
    neighbour = pooler.client(database="other")
    client = pooler.raw().send_startup()
    used = pooler.loop_seconds()
    assert neighbour.value("SELECT 1") == "1"
    assert pooler.loop_seconds() - used < 1
    assert client.fatal().severity == "FATAL"
    server.wait_count(1)
    server.wait_all_ended()


def test_a_slow_derivation_delays_no_client(new_pooler, new_server):  # F52
    """A million iterations are allowed, and a helper thread computes them."""

    def script(connection):
        connection.accept_startup()
        scram = ScramServer("x", iterations=1_000_000)
        if connection.exchange_scram(scram):
            connection.welcome()
            connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"server_connect_timeout": 60},
        databases={"main": server.target(user="app", password="x"), "other": {}},
    )
    neighbour = pooler.client(database="other")
    client = pooler.raw().send_startup()
    server.wait_count(1)
    worst = 0
    while client.silent(0):
        asked = pooler.loop_seconds()
        assert neighbour.value("SELECT 1") == "1"
        worst = max(worst, pooler.loop_seconds() - asked)
    client.timeout = 60
    client.finish_login("app")
    # A part of a million iterations, on a very slow machine.
    assert worst < 0.1
    assert client.value("q") == "q"


# Nonsense in use: F49

IN_USE = {
    "length zero": (b"T" + struct.pack("!I", 0), "bad pkt header"),
    "length that overflows": (b"D" + struct.pack("!I", 0xFFFFFFFF), "bad pkt header"),
    "unknown type": (wire.message("~", b"x"), "unknown pkt"),
    "frontend type": (wire.message("Q", b"SELECT 1\0"), "unknown pkt"),
    "type zero": (b"\0" * 20, None),
    "broken parameter": (wire.message("S", b"name"), "broken ParameterStatus packet"),
    "parameter of 100 kB cut": (
        b"S" + struct.pack("!I", 100004) + b"x" * 100000, "broken ParameterStatus packet"
    ),
    "ready without a status": (wire.message("Z", b""), None),
}


@pytest.mark.parametrize("name", IN_USE)
def test_nonsense_in_use_ends_the_pair(new_pooler, new_server, name):  # F49
    packet, reason = IN_USE[name]

    def answer(connection, sql):
        return packet if sql == "bad" else None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.query("good")
    client.send(wire.query("bad"))
    error = client.fatal(timeout=3)
    assert error.severity == "FATAL"
    if reason:
        assert error.text == reason
        assert pooler.wait_log(f"S-.* closing because: {reason}")
    wait_until(lambda: server.connections[0].ended.is_set())
    assert other.value("good") == "good"


def test_a_row_of_a_gigabyte_that_never_comes(new_pooler, new_server):  # F49
    def answer(connection, sql):
        if sql == "bad":
            return b"D" + struct.pack("!I", 1 << 30) + b"x" * 1000
        return None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.query("good")
    memory = pooler.memory()
    client.send(wire.query("bad"))
    client.read_bytes(1000)
    assert other.value("good") == "good"
    assert pooler.memory() - memory < 3_000_000
    client.close()
    wait_until(lambda: server.connections[0].ended.is_set())


@pytest.mark.parametrize("kind", ["G", "W", "H"])
def test_a_copy_that_no_client_asked_for(new_pooler, new_server, kind):  # F49
    def answer(connection, sql):
        if sql == "bad":
            return wire.message(kind, b"\0\0\0") + wire.command_complete("COPY 0") + wire.ready()
        return None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.send(wire.query("bad"))
    client.silent(0.1)
    client.close()
    assert other.value("good") == "good"
    pooler.wait_pool(sv_active=0)


UNASKED = {
    "row": wire.data_row("stray"),
    "error": wire.error("57P01", "going away", "FATAL"),
    "notice": wire.notice("by the way"),
    "ready": wire.ready(),
    "row description": wire.row_description("stray"),
    "nonsense": wire.message("~", b"x"),
    "parameter": wire.parameter_status("TimeZone", "Mars"),
}


@pytest.mark.parametrize("name", UNASKED)
def test_messages_of_an_idle_server_reach_no_client(new_pooler, new_server, name):  # F49
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    assert client.value("one") == "one"
    server.connections[0].send(UNASKED[name])
    client.silent(0.1)
    result = client.query("two")
    assert result.types == "TDCZ" and result.value == "two"
    if name not in ("ready",):
        assert server.count == 2, "the server that spoke out of turn was used again"


def test_a_notification_to_an_idle_server_does_not_make_it_dirty(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    client.query("one")
    server.connections[0].send(wire.message("A", struct.pack("!I", 1) + b"news\0\0"))
    client.silent(0.1)
    assert client.query("two").value == "two"
    assert server.count == 1


@pytest.mark.parametrize("seed", range(3))
def test_mutated_bytes_from_the_server(new_pooler, new_relay, cluster, seed):  # F55
    relay = new_relay(cluster.port)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 0, "server_connect_timeout": 2},
        databases={"main": {"host": relay.host, "port": relay.port}, "other": {}},
    )
    neighbour = pooler.client(database="other")
    random_ = random.Random(seed)

    def mutate(data, toward_server):
        if toward_server or random_.random() > 0.15:
            return data
        data = bytearray(data)
        for _ in range(random_.randrange(1, 4)):
            at = random_.randrange(len(data))
            if random_.random() < 0.5 or len(data) == 1:
                data[at] = random_.randrange(256)
            else:
                del data[at:at + random_.randrange(1, min(5, len(data)))]
        return bytes(data)

    relay.mutate = mutate
    until = time.monotonic() + 2.5
    count = 0
    while time.monotonic() < until:
        client = pooler.raw()
        client.timeout = 0.3
        try:
            client.login()
            for _ in range(20):
                client.query("SELECT 'x', i FROM generate_series(1, 20) i")
        except (ServerError, Closed, TimeoutError, OSError, AssertionError, ValueError, IndexError,
                struct.error, UnicodeDecodeError):
            pass
        client.close()
        count += 1
        assert neighbour.value(f"SELECT {count}") == str(count)
    relay.mutate = None
    relay.set_mode("reset")
    relay.set_mode("pass")
    # Values read from mutated bytes are freed with the servers.
    pooler.command("RECONNECT")
    assert recovers(pooler, 5)
    neighbour.leave()


# Disconnects at every place


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("after", ["nothing", "startup", "ok", "half a welcome", "welcome"])
def test_a_server_that_disconnects_in_each_state_of_its_login(new_pooler, new_server, after, end):
    def script(connection):
        if connection.number < 2:
            if after != "nothing":
                connection.accept_startup()
            if after in ("ok", "half a welcome"):
                connection.send(wire.authentication(0))
            if after == "half a welcome":
                connection.send(wire.parameter_status("TimeZone", "UTC"), b"S\0\0")
            if after == "welcome":
                connection.welcome()
            if end == "reset":
                connection.reset()
            return
        connection.login()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"server_login_retry": 0.2, "pool_mode": "transaction"}, databases={"main": server.target()}
    )
    client = pooler.client()
    assert wait_until(lambda: try_again(pooler, client), 5)
    assert server.count >= 2


def try_again(pooler, client):
    try:
        return pooler.client().value("q") == "q"
    except (ServerError, Closed):
        return False


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize(
    "after", ["nothing", "half a message", "row", "half an end", "complete"]
)
def test_a_server_that_disconnects_in_the_middle_of_an_answer(new_pooler, new_server, after, end):
    answer = wire.row_description("a") + wire.data_row("x") + wire.command_complete("SELECT 1")
    parts = {
        "nothing": b"",
        "half a message": answer[: -len(wire.command_complete("SELECT 1")) - 3],
        "half an end": answer[:-3],
        "row": answer[: -len(wire.command_complete("SELECT 1"))],
        "complete": answer,
    }

    def script(connection):
        connection.login()
        while True:
            sql = connection.next_query()
            if sql == "die":
                connection.send(parts[after])
                if end == "reset":
                    connection.reset()
                return
            connection.send(wire.one_row(sql))

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.query("q")
    client.send(wire.query("die"))
    if after == "half a message":
        # The part that came is passed on; no error can be inserted into a message.
        data = b""
        while True:
            try:
                data += client.read_bytes(1)
            except (Closed, AssertionError):
                break
        assert data.startswith(parts[after]) or end == "reset"
    else:
        assert client.fatal().is_(*CRASHED)
    assert other.value("q") == "q"
    assert len(pooler.wait_log(r"closing because: server conn crashed\?", 2)) == 2


def test_servers_that_come_and_go_make_nothing_grow(new_pooler, new_server):
    def script(connection):
        connection.login()
        connection.send(wire.one_row(connection.next_query()))
        if connection.number % 2:
            connection.reset()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "log_connections": 0, "log_disconnections": 0},
        databases={"main": server.target()},
    )
    client = pooler.client()

    def rounds(count):
        for _ in range(count):
            ended = server.count
            assert client.value("q") == "q"
            wait_until(lambda: not server.open and ended <= server.count)
            pooler.wait_pool(sv_idle=0)

    rounds(20)
    memory, descriptors = pooler.memory(), pooler.descriptors()
    rounds(100)
    assert pooler.descriptors() <= descriptors
    if not is_sanitized():
        assert pooler.memory() - memory < 500_000
