# SPDX-License-Identifier: ISC
"""-R: what a new process accepts from an old one, and what it must not lose."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time

import pytest
from support import wire
from support.clients.metrics_page import scrape_in_time
from support.process import free_port, own, service_user, wait_until

WELCOME = wire.message("R", struct.pack("!I", 0)) + wire.message("Z", b"I")
END = wire.message("C", wire.text("HANDOVER")) + wire.message("Z", b"I")


class OldProcess:
    """Accepts every login, and has one answer to the first command; then it sends nothing more."""

    def __init__(self, pooler, uid, answer=None, descriptors=()):
        self.answer = answer
        self.descriptors = descriptors
        self.commands = b""
        self.logins = 0
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(pooler.socket_path)
        os.chmod(pooler.socket_path, 0o777)
        if os.getuid() == 0:
            os.seteuid(uid)
        try:
            self.server.listen()
        finally:
            if os.getuid() == 0:
                os.seteuid(0)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                with connection:
                    self.serve(connection)

    def serve(self, connection):
        if not connection.recv(4096):
            return  # a check whether a process listens
        self.logins += 1
        connection.sendall(WELCOME)
        self.commands += connection.recv(4096)
        if self.answer is None:
            connection.recv(4096)
        elif self.descriptors:
            socket.send_fds(connection, [self.answer], self.descriptors)
        else:
            connection.sendall(self.answer)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(4096):
            pass

    def close(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.thread.join(5)


@pytest.fixture
def pooler(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    return pooler


def own_uid():
    return service_user().pw_uid if service_user() else os.getuid()


def refused(pooler, old, text):
    """The new process ends with this line, and has changed nothing."""
    pooler.allow(text)
    with contextlib.closing(old):
        assert pooler.run_to_end("-R") == 1
    assert pooler.lines(f"FATAL.*{text}"), pooler.log()
    assert not os.path.exists(pooler.path("pid"))
    assert os.path.exists(pooler.socket_path)


def test_signal_ends_it(pooler):
    old = OldProcess(pooler, own_uid())
    pooler.allow("takeover was in progress, going down immediately")
    for number in (signal.SIGTERM, signal.SIGINT):
        old.commands = b""
        pooler.spawn("-R")
        wait_until(lambda: b"HANDOVER" in old.commands)
        pooler.signal(number)
        assert pooler.wait_exit() == 1
    old.close()
    assert len(pooler.lines("FATAL takeover was in progress, going down immediately")) == 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root can listen as another user")
def test_socket_of_another_user(pooler):
    """In a folder that is writable for all any user could offer sockets, and receive passwords by
    them."""
    old = OldProcess(pooler, 65534, END)
    refused(pooler, old, "the old process runs as another user")
    assert old.logins == 0, "it received nothing"


def field(tag, value):
    return struct.pack("!HI", tag, len(value)) + value


@pytest.mark.parametrize(
    "answer, text",
    [
        (wire.message("D") + END, "another protocol"),
        (wire.message("D", b"\0\0") + END, "another protocol"),
        (wire.message("d") + END, "another protocol"),
        (b"d\xff\xff\xff\xff", "another protocol"),
        (b"d\x7f\xff\xff\xffB", "another protocol"),
        (wire.message("d", b"B" + field(4, b"main\0")), "the old process has closed the connection"),
        (wire.message("d", b"C") + END, "sent a message without its descriptor"),
        (wire.message("d", b"L") + END, "sent a message without its descriptor"),
        (wire.message("d", b"B" + field(4, b"main\0")[:-1]) + END, "cannot rebuild"),
        (wire.message("d", b"Q\0") + END, "cannot rebuild"),
    ],
    ids=["row", "short-row", "no-kind", "length-negative", "length-huge", "cut", "no-client",
         "no-listener", "field-cut", "no-field"],
)
def test_malformed_answer(pooler, answer, text):
    refused(pooler, OldProcess(pooler, own_uid(), answer), text)


def test_record_without_a_state(pooler):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        answer = wire.message("d", b"S" + field(1, struct.pack("!Q", 7))) + END
        old = OldProcess(pooler, own_uid(), answer, [theirs.fileno()])
        refused(pooler, old, "cannot rebuild")
        theirs.close()
        assert ours.recv(1) == b"", "the new process has kept it"


def test_descriptor_that_is_no_listener(pooler):
    """The old process keeps its file, which the new one had already found."""
    old = OldProcess(pooler, own_uid())
    reading, writing = os.pipe()
    old.answer = 2 * wire.message("d", b"L") + END
    old.descriptors = [old.server.fileno(), reading]
    refused(pooler, old, "is no stream socket that listens")
    os.close(reading)
    os.close(writing)


# --- what must not be lost ----------------------------------------------------------------------


@pytest.fixture
def make(new_pooler):
    def start(**settings):
        pooler = new_pooler({"pool_mode": "transaction", **settings}, start=False)
        pooler.settings["pidfile"] = pooler.path("pid")
        pooler.settings["server_tls_sslmode"] = "disable"
        pooler.write_config()
        return pooler.start()

    return start


def test_pidfile_that_cannot_be_written_closes_no_client(make):
    pooler = make()
    client = pooler.client()
    client.query("BEGIN")
    pooler.settings["pidfile"] = pooler.path("missing/pid")
    pooler.write_config()
    pooler.allow("could not open pidfile")
    pooler.close_console()
    pooler.take_over()
    pooler.wait_log("could not open pidfile '.*/missing/pid'")
    assert client.query("COMMIT").tag == "COMMIT"


def test_pidfile_that_stays_delays_no_client(new_pooler):
    """The old process cannot unlink it, in a folder without write permission."""
    pooler = new_pooler({"pool_mode": "transaction", "metrics_port": free_port()}, start=False)
    folder = pooler.path("unwritable")
    os.mkdir(folder)
    own(folder)
    pooler.settings["pidfile"] = os.path.join(folder, "pid")
    pooler.settings["server_tls_sslmode"] = "disable"
    pooler.write_config()
    pooler.start()
    client = pooler.client()
    client.query("BEGIN")
    pooler.allow("pidfile")
    pooler.close_console()
    os.chmod(folder, 0o555)
    try:
        began = time.monotonic()
        pooler.take_over()
        assert client.query("COMMIT").tag == "COMMIT"
        assert pooler.client().value("SELECT 1") == "1"
        assert time.monotonic() - began < 5
        pooler.wait_log("waiting for old pidfile to go away")
        pooler.wait_log("serving metrics", count=2)
        # It still waits when it ends, or is taken over itself.
        pooler.close_console()
        pooler.take_over()
        assert client.value("SELECT 1") == "1"
    finally:
        os.chmod(folder, 0o755)


def test_servers_of_another_address_are_retired(make):
    pooler = make()
    busy, idle = pooler.client(), pooler.client()
    busy.query("BEGIN")
    backend = busy.value("SELECT pg_backend_pid()")
    spare = idle.value("SELECT pg_backend_pid()")
    pooler.databases["main"] = {"host": "127.0.0.1,127.0.0.1", "port": pooler.cluster.port}
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()
    assert idle.value("SELECT pg_backend_pid()") not in (backend, spare)
    assert busy.value("SELECT pg_backend_pid()") == backend, "not within a transaction"
    busy.query("COMMIT")
    assert busy.value("SELECT pg_backend_pid()") not in (backend, spare)


def test_servers_of_the_same_address_stay(make):
    pooler = make()
    client = pooler.client()
    backend = client.value("SELECT pg_backend_pid()")
    pooler.settings["max_client_conn"] = 77
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()
    assert client.value("SELECT pg_backend_pid()") == backend


def test_the_reason_to_close_a_server_is_kept(make):
    metrics = free_port()
    pooler = make(metrics_port=metrics)
    client = pooler.client()
    client.query("BEGIN")
    pooler.command("RECONNECT main")
    pooler.close_console()
    pooler.take_over()
    client.query("COMMIT")
    pooler.wait_pool(sv_idle=0, sv_active=0)
    count = scrape_in_time(metrics).value("pgusher_server_closed_total", reason="reconnect", database="main")
    assert count == 1
