# SPDX-License-Identifier: ISC
"""A server that runs a script: for answers that PostgreSQL would not send.

A script is a function of one argument, the FakeConnection, run on a thread of its own for each
connection. When it returns, the connection is closed. Network errors end a script quietly; any
other exception is raised when the server stops.
"""

import contextlib
import socket
import struct
import threading

from support import wire
from support.passwords import ScramServer, md5_answer, md5_secret
from support.process import HOST, wait_until

PARAMETERS = (
    ("server_version", "15.0"),
    ("server_encoding", "UTF8"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("TimeZone", "UTC"),
    ("integer_datetimes", "on"),
    ("standard_conforming_strings", "on"),
    ("application_name", ""),
    ("IntervalStyle", "postgres"),
)


class Disconnected(Exception):
    """The pooler closed this connection."""


class FakeConnection:
    """One accepted connection, seen from the server."""

    def __init__(self, server, sock, number):
        self.server = server
        self.socket = sock
        self.number = number
        self.buffer = b""
        self.startup = None
        self.cancel_key = None
        self.received = []
        self.startup_values = None
        self.ended = threading.Event()

    # Bytes

    def send(self, *parts):
        """Send bytes as they are."""
        try:
            self.socket.sendall(b"".join(parts))
        except OSError:
            raise Disconnected() from None

    def read_bytes(self, count):
        """Exactly count bytes."""
        while len(self.buffer) < count:
            try:
                data = self.socket.recv(65536)
            except OSError:
                raise Disconnected() from None
            if not data:
                raise Disconnected()
            self.buffer += data
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read(self):
        """The next typed message."""
        head = self.read_bytes(5)
        (length,) = struct.unpack("!I", head[1:])
        found = wire.Message(chr(head[0]), self.read_bytes(length - 4))
        self.received.append(found)
        return found

    def reset(self):
        """Close with a reset."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self):
        """Close the connection."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def wait_disconnected(self):
        """Read until the pooler closes."""
        with contextlib.suppress(Disconnected):
            while True:
                self.read_bytes(1)

    # Login

    def accept_startup(self):
        """Read the StartupMessage; answer N to SSLRequest, keep a CancelRequest and close."""
        while True:
            length, code = struct.unpack("!II", self.read_bytes(8))
            body = self.read_bytes(length - 8)
            if code in (wire.SSL_REQUEST, wire.GSSENC_REQUEST):
                self.send(b"N")
            elif code == wire.CANCEL_REQUEST:
                self.cancel_key = body
                self.server.cancels.append(body)
                raise Disconnected()
            else:
                self.startup = dict(wire.read_pairs(body))
                return self.startup

    def login(self, method="trust", password=None, parameters=PARAMETERS, key=None):
        """Accept the pooler's login; returns whether its password was right."""
        startup = self.accept_startup()
        if method == "plain":
            self.send(wire.authentication(3))
            good = self.read().body == wire.text(password)
        elif method == "md5":
            self.send(wire.authentication(5, b"salt"))
            expected = md5_answer(md5_secret(password, startup["user"]), b"salt")
            good = self.read().body == wire.text(expected)
        elif method == "scram":
            good = self.exchange_scram(ScramServer(password))
        else:
            good = True
        if not good:
            self.send(wire.error("28P01", "password authentication failed", "FATAL"))
            return False
        self.welcome(parameters, key)
        return True

    def exchange_scram(self, server):
        """Run a SCRAM exchange; returns whether the pooler proved the password."""
        self.send(wire.authentication(10, wire.text("SCRAM-SHA-256") + b"\0"))
        first = self.read().body
        _, rest = first.split(b"\0", 1)
        self.send(wire.authentication(11, server.first(rest[4:].decode()).encode()))
        final = server.final(self.read().body.decode())
        if final is None:
            return False
        self.send(wire.authentication(12, final.encode()))
        return True

    def welcome(self, parameters=PARAMETERS, key=None):
        """AuthenticationOk up to ReadyForQuery."""
        pid = 1000 + self.number
        secret = struct.pack("!I", 0x5EC0 + self.number) if key is None else key
        self.send(
            wire.authentication(0),
            *[wire.parameter_status(name, value) for name, value in parameters],
            wire.backend_key(pid, secret),
            wire.ready(),
        )

    # Queries

    def next_query(self):
        """The SQL of the next simple query, or the message if it is another; Terminate closes."""
        found = self.read()
        if found.type == "X":
            raise Disconnected()
        if found.type == "Q":
            return found.body[:-1].decode()
        return found

    def serve(self, answer=None):
        """Answer queries until the pooler closes. answer(connection, sql) returns bytes or None."""
        while True:
            sql = self.next_query()
            said = self.answer_startup_check(sql)
            if said is None and answer:
                said = answer(self, sql)
            if said is None:
                said = simple_answer(sql)
            self.send(said)

    def answer_startup_check(self, found):
        """The answer to a message of the pooler's startup check, which accepts all values; None for
        others."""
        if isinstance(found, str):
            return None
        if found.type == "P" and b"pg_catalog.set_config(" in found.body:
            self.startup_values = []
        if self.startup_values is None:
            return None
        self.received.remove(found)
        if found.type == "B":
            self.startup_values = wire.read_bound(found.body)
        elif found.type == "E":
            values = self.startup_values[1::2] if len(self.startup_values) > 1 else self.startup_values
            names = ["left"] * len(values)
            self.send(
                wire.message("1"), wire.message("2"), wire.row_description(*names),
                wire.data_row(*values), wire.command_complete("SELECT 1"),
            )
        elif found.type == "S":
            self.startup_values = None
            return wire.ready()
        return b""


def simple_answer(sql):
    """A plausible answer to the pooler's own queries and to anything else."""
    if not isinstance(sql, str):
        return wire.ready() if sql.type == "S" else b""
    if not sql.strip():
        return wire.message("I") + wire.ready()
    if sql.upper().startswith("SET "):
        return wire.command_complete("SET") + wire.ready()
    if sql.upper().startswith("DISCARD"):
        return wire.command_complete("DISCARD ALL") + wire.ready()
    return wire.one_row(sql)


def answer_with_text(connection):
    """The default script: accept the login, answer every query with its own text."""
    connection.login()
    connection.serve()


def set_when_gate_opens(connection):
    """Answer the SETs of a client's parameters when the gate opens; then its query."""
    connection.login()
    while True:
        sql = connection.next_query()
        if sql.startswith("BEGIN;SET "):
            assert connection.server.gate.wait(20)
            connection.send(
                *(wire.command_complete(tag) for tag in ("BEGIN", "SET", "COMMIT")),
                wire.parameter_status("application_name", "mine"),
                wire.ready(),
            )
        else:
            connection.send(wire.one_row(sql))


class FakeServer:
    """Listens on a port of its own; counts and keeps its connections."""

    def __init__(self, script=answer_with_text, host=HOST):
        self.script = script
        self.connections = []
        self.cancels = []
        self.faults = []
        self.gate = threading.Event()
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, 0))
        self.listener.listen(256)
        self.host, self.port = self.listener.getsockname()
        self._stopped = False
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def target(self, **keys):
        """The keys of a [databases] entry for this server."""
        return {"host": self.host, "port": self.port, **keys}

    count = property(lambda self: len(self.connections))
    open = property(lambda self: [each for each in self.connections if not each.ended.is_set()])

    def _accept(self):
        while not self._stopped:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = FakeConnection(self, sock, len(self.connections))
            self.connections.append(connection)
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection):
        try:
            self.script(connection)
        except Disconnected:
            pass
        except Exception as fault:  # raised when the test stops the server
            if not self._stopped:
                self.faults.append(fault)
        finally:
            connection.close()
            connection.ended.set()

    def wait_count(self, count, timeout=10):
        """Wait until so many connections were accepted in all."""
        wait_until(lambda: self.count >= count, timeout, f"{count} connections")

    def wait_all_ended(self, timeout=10):
        """Wait until every connection so far has ended."""
        wait_until(lambda: not self.open, timeout, "connections to end")

    def stop(self):
        """Close everything; raises the first fault of a script."""
        self._stopped = True
        self.gate.set()
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.connections:
            connection.close()
        for connection in self.connections:
            connection.ended.wait(5)
        if self.faults:
            raise self.faults[0]
