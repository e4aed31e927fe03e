# SPDX-License-Identifier: ISC
"""Databases whose host and port are the pooler's own: refused, with a text that says so."""

import errno
import socket
import struct

import pytest

from support.clients.raw import RawClient
from support.process import HOST, free_port
from support.servers.certificates import Authority

TEXT = "connection loop: host and port of the database lead back to this pooler"


def assert_refused(pooler, database, unix=False):
    """One server connection is made for it, and one client accepted, each time."""
    before = len(pooler.lines("login attempt"))
    error = pooler.refused(database=database, unix=unix)
    assert error.severity == "FATAL"
    assert TEXT in error.text
    assert len(pooler.lines("login attempt")) - before <= 3
    assert pooler.lines(f'ERROR C-.* connection loop: host and port of database "{database}" lead back to this process')


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("host", [HOST, "localhost", f"{HOST},{HOST}"])
def test_a_database_whose_host_is_the_pooler_is_refused(new_pooler, mode, host):
    pooler = new_pooler({"pool_mode": mode}, start=False)
    pooler.databases["loop"] = f"host={host} port={pooler.port} dbname=loop"
    pooler.write_config()
    pooler.allow("connection loop")
    pooler.allow("sbuf_connect failed")
    pooler.start()
    assert_refused(pooler, "loop")
    assert pooler.client().value("SELECT 1") == "1"
    assert int(pooler.show("LISTS", list="used_clients")[0]["items"]) <= 2


def test_automatic_databases_are_no_way_round(new_pooler):
    """Each name would be another pool."""
    pooler = new_pooler(start=False)
    pooler.databases["*"] = f"host={HOST} port={pooler.port}"
    pooler.write_config()
    pooler.allow("connection loop")
    pooler.start()
    for name in ("one", "two"):
        assert_refused(pooler, name)


def test_a_loop_is_recognized_whichever_workers_it_leads_through(new_pooler):
    """The server logs in at the home of its database; its other end asks for that of another worker."""
    names = [f"loop{number}" for number in range(3)]
    pooler = new_pooler({"workers": 3}, start=False)
    for number, name in enumerate(names):
        pooler.databases[name] = f"host={HOST} port={pooler.port} dbname={names[number - 1]}"
    pooler.write_config()
    pooler.allow("connection loop")
    pooler.start()
    for name in names:
        assert_refused(pooler, name)


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize("host", ["own folder", "none"])
def test_the_own_unix_socket_is_recognized(new_pooler, host, unix):
    pooler = new_pooler(start=False)
    place = f"host={pooler.folder} " if host == "own folder" else ""
    pooler.databases["loop"] = f"{place}port={pooler.port} dbname=loop"
    pooler.write_config()
    pooler.allow("connection loop")
    pooler.start()
    assert_refused(pooler, "loop", unix=unix)


def test_encryption_does_not_hide_it(new_pooler):
    authority = Authority()
    certificate, key = authority.issue("localhost")
    pooler = new_pooler(
        {
            "client_tls_sslmode": "require",
            "client_tls_cert_file": certificate,
            "client_tls_key_file": key,
            "server_tls_sslmode": "require",
        },
        start=False)
    pooler.databases["loop"] = f"host={HOST} port={pooler.port} dbname=loop"
    pooler.write_config()
    pooler.allow("connection loop")
    pooler.start()
    assert_refused(pooler, "loop", unix=True)


def test_a_pool_of_the_own_console_is_no_loop(new_pooler):
    pooler = new_pooler({"shutdown_timeout": 30}, start=False)
    pooler.databases["stats"] = f"host={HOST} port={pooler.port} dbname=pgbouncer"
    pooler.write_config()
    pooler.start()
    client = pooler.client(user=pooler.own_settings()["admin_users"], database="stats")
    assert "pgusher" in client.query("SHOW VERSION").value


def test_processes_that_share_a_port_go_round_once_at_most(new_pooler):
    """A connection that comes to the other process is not recognized, but waits for the first login."""
    port = free_port()
    group = []
    for _ in range(2):
        pooler = new_pooler(
            {"so_reuseport": 1, "server_connect_timeout": 1, "query_wait_timeout": 4}, start=False)
        pooler.port = port
        pooler.databases["loop"] = f"host={HOST} port={port} dbname=loop"
        pooler.write_config()
        pooler.allow("connection loop")
        pooler.start()
        group.append(pooler)
    # By the time limit of the login or of the wait, or because it came back to its own process.
    assert group[0].refused(database="loop").severity == "FATAL"
    for pooler in group:
        with RawClient(pooler.socket_path) as client:
            assert client.login().value("SELECT 1") == "1"
        assert len(pooler.lines("login attempt: db=loop")) < 9


# ip(7): the ports that the kernel may choose from for a connection.
IP_LOCAL_PORT_RANGE = 51


def client_from(pooler, port):
    """A client from a port that a connection to another address may have too."""
    option = (socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("=I", port << 16 | port))
    try:
        return RawClient(pooler.address, options=[option])
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise
        pytest.skip("this kernel cannot narrow the ports of a connection")


def test_a_client_with_the_port_of_a_server_connection_is_no_loop(new_pooler):
    """The kernel gives one port to connections to different addresses."""
    with socket.create_server((HOST, 0)) as silent:
        place = f"host={HOST} port={silent.getsockname()[1]}"
        pooler = new_pooler({"server_tls_sslmode": "disable"}, start=False)
        for name in ("one", "two"):
            pooler.databases[name] = f"{place} dbname={name}"
        pooler.write_config()
        pooler.allow("connection loop")
        pooler.start()
        waiting, ports, greetings, kept = [], [], [], []
        for name in ("one", "two"):
            waiting.append(pooler.raw().send_startup(database=name))
            connection, peer = silent.accept()
            kept.append(connection)
            ports.append(peer[1])
            greetings.append(connection.recv(1000))
        # Where clients and servers connect in turn, this may happen often.
        for port in ports:
            with client_from(pooler, port) as client:
                assert client.login().value("SELECT 1") == "1"
                client.reset()  # its port is free at once
        # A rule of the network that leads connections back shows by what the client says, and by the
        # second one within a second.
        with client_from(pooler, ports[0]) as first, client_from(pooler, ports[1]) as second:
            first.send(greetings[0])
            assert first.silent(0.1)
            second.send(greetings[1])
            assert TEXT in second.fatal().text
        for each in (*waiting, *kept):
            each.close()
