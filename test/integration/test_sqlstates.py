# SPDX-License-Identifier: ISC
"""The pooler's own errors, provoked: the text that tools match, PostgreSQL's code for it, nothing
else."""

import re

import pytest

from support import wire
from support.clients.raw import ServerError


def gone(client):
    """The messages until the other side closes."""
    return client.read_all()


def refused(**login):
    """A login that is refused."""
    return lambda pooler, _: gone(pooler.raw().send_startup(**login))


def client_sends(*parts):
    """A logged in client sends this."""
    return lambda pooler, _: gone(pooler.client().send(*parts))


def first(data):
    """The first bytes of a connection."""
    return lambda pooler, _: gone(pooler.raw().send(data))


def commanded(command):
    """An operator sends a command while a client waits for another's transaction to end."""

    def provoke(pooler, _):
        holder, waiter = pooler.client(), pooler.client()
        holder.query("BEGIN")
        waiter.send(wire.query("SELECT 1"))
        pooler.wait_pool(cl_waiting=1)
        pooler.command(command.format(waiter=pooler.clients(state="waiting")[0]["id"]))
        return gone(waiter)

    return provoke


def shut_down(pooler, _):
    waiter = pooler.client()
    pooler.client().query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    console = pooler.console()
    console.send(wire.query("SHUTDOWN WAIT_FOR_SERVERS"))
    try:
        return gone(waiter)
    finally:
        pooler.close_clients()
        pooler.wait_exit()


def shutting_down(pooler, _):
    pooler.client()
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    try:
        return gone(pooler.raw(unix=True).send_startup())
    finally:
        pooler.close_clients()
        pooler.wait_exit()


def limited(pooler, _):
    for _ in range(pooler.settings["max_client_conn"]):
        pooler.client()
    return gone(pooler.raw().send_startup())


def timed_out(pooler, _):
    pooler.client().query("BEGIN")
    return client_sends(wire.query("SELECT 1"))(pooler, _)


def idle(pooler, _):
    client = pooler.client()
    client.query("BEGIN")
    return gone(client)


def killed(pooler, cluster):
    client = pooler.client()
    client.query("BEGIN")
    cluster.terminate(int(client.value("SELECT pg_backend_pid()")))
    return gone(client)


def reconnected(pooler, _):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.command("RECONNECT")
    return gone(client)


def server_says(data):
    """The server answers a query with this."""

    def provoke(pooler, _):
        client = pooler.client(database="scripted")
        client.send(wire.query("odd"))
        return gone(client)

    provoke.data = data
    return provoke


def fails_later(pooler, cluster):
    """There is no server, none can be connected, and the pool knows it."""
    client, other = pooler.client(), pooler.client()
    client.query("SELECT 1")
    cluster.sql("ALTER ROLE app NOLOGIN")
    try:
        for row in cluster.backends(usename="app"):
            cluster.terminate(row["pid"])
        pooler.wait_pool(sv_idle=0)
        client.send(wire.query("SELECT 1"))
        gone(client)
        return gone(other.send(wire.query("SELECT 1")))
    finally:
        cluster.sql("ALTER ROLE app LOGIN")


TRANSACTION = {"pool_mode": "transaction"}
ONE = {**TRANSACTION, "default_pool_size": 1}
STATEMENT = {"pool_mode": "statement"}
LAYOUT = "invalid startup packet layout: expected terminator as last byte"
FAST = {"pool_mode": "session", "server_fast_close": 1}
MD5 = {"auth_type": "md5"}

# By text: the code, the settings that make the error possible, and what provokes it.
ERRORS = {
    '"trust" authentication failed': ("28000", {}, refused(user="ghost")),
    "no username supplied": ("28000", {}, refused(user=None)),
    "username too long": ("28000", {}, refused(user="u" * 128)),
    "no such database: nowhere": ("3D000", {}, refused(database="nowhere")),
    "no more connections allowed (max_client_conn)": ("53300", {"max_client_conn": 2}, limited),
    "old V2 protocol not supported": ("0A000", {}, refused(protocol=wire.PROTOCOL_2_0)),
    "not allowed": ("08P01", {}, refused(database="pgbouncer")),
    "unsupported startup parameter: nothing": (
        "08P01", {"startup_parameters": "strict"}, refused(nothing="x")
    ),
    LAYOUT: ("08P01", {}, first(wire.startup({"user": "app"}, terminator=b""))),
    "received unencrypted data after SSL request": ("08P01", {}, first(wire.ssl_request() + b"more")),
    "client password pkt before startup packet": ("08P01", {}, first(wire.password("x"))),
    "bad packet header: '5100000003'": ("08P01", {}, client_sends(b"Q\0\0\0\3")),
    "unknown pkt": ("08P01", {}, client_sends(wire.password("late"))),
    "PQexec disallowed": ("08P01", {"disable_pqexec": 1}, client_sends(wire.query("SELECT 1"))),
    "transaction blocks not allowed in statement pooling mode": (
        "08P01", STATEMENT, client_sends(wire.query("BEGIN"))
    ),
    "query_wait_timeout": ("57014", {**ONE, "query_wait_timeout": 0.2}, timed_out),
    "query_timeout": ("57014", {**ONE, "query_timeout": 0.2}, timed_out),
    "query timeout": ("57014", {"query_timeout": 0.2}, client_sends(wire.query("SELECT pg_sleep(9)"))),
    "client_idle_timeout": ("57P05", {**TRANSACTION, "client_idle_timeout": 0.2}, client_sends(wire.sync())),
    "idle transaction timeout": ("08P01", {"idle_transaction_timeout": 0.2}, idle),
    "transaction timeout": ("08P01", {"transaction_timeout": 0.2}, idle),
    "client_login_timeout": ("57014", {**MD5, "client_login_timeout": 0.3}, refused()),
    "admin forced disconnect": ("57P01", ONE, commanded("KILL_CLIENT {waiter}")),
    "database removed": ("57P01", ONE, commanded("KILL main")),
    "database configuration changed": ("57P01", FAST, reconnected),
    "server shutting down": ("57P01", ONE, shut_down),
    "pooler is shutting down": ("57P03", {}, shutting_down),
    "server conn crashed?": ("08006", {}, killed),
    'server login has been failing, cached error: role "app" is not permitted to log in'
    " (server_login_retry)": ("08006", ONE, fails_later),
    "bad pkt header": ("08P01", {}, server_says(b"T\0\0\0\0")),
    "unknown pkt ": ("08P01", {}, server_says(wire.message("~"))),
    "broken ParameterStatus packet": ("08P01", {}, server_says(wire.message("S", b"name"))),
}


@pytest.mark.parametrize("text", ERRORS)
def test_an_error_has_its_text_and_the_code_for_it(new_pooler, new_server, cluster, text):
    sqlstate, settings, provoke = ERRORS[text]

    def script(connection):
        connection.login()
        connection.serve(lambda *_: provoke.data)

    databases = {"main": {}, "scripted": new_server(script).target()}
    pooler = new_pooler(settings, databases=databases)
    messages = provoke(pooler, cluster)
    # The last message: no ReadyForQuery and no second error follows.
    assert messages[-1].type == "E"
    error = ServerError(messages[-1].body)
    assert list(error.fields.items()) == [("S", "FATAL"), ("C", sqlstate), ("M", text.strip())]
    assert pooler.lines(r"C-.* pooler error: " + re.escape(text.strip()))
