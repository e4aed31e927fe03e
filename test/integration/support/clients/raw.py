# SPDX-License-Identifier: ISC
"""A client that sends and reads the protocol byte by byte, right or wrong as a test needs it."""

import contextlib
import select
import socket
import struct
import time

from support import wire
from support.passwords import ScramClient, md5_answer, md5_secret
from support.process import PATIENCE

TIMEOUT = 15.0 * PATIENCE


class Closed(Exception):
    """The other side closed or reset the connection between two messages."""


class ServerError(Exception):
    """An ErrorResponse."""

    def __init__(self, body):
        self.fields = wire.read_fields(body)
        super().__init__(str(self))

    severity = property(lambda self: self.fields.get("S"))
    sqlstate = property(lambda self: self.fields.get("C"))
    text = property(lambda self: self.fields.get("M"))

    def __str__(self):
        return f"{self.severity} {self.sqlstate}: {self.text}"

    def is_(self, severity, sqlstate, text):
        """Compare all parts of the pooler's own error; a failing assert shows the difference."""
        assert (self.severity, self.sqlstate, self.text) == (severity, sqlstate, text)
        return True


class Result:
    """Everything up to one ReadyForQuery."""

    def __init__(self, messages):
        self.messages = messages
        self.types = "".join(message.type for message in messages)
        self.columns = []
        self.rows = []
        self.tags = []
        self.notices = []
        self.parameters = []
        self.notifications = []
        self.error = None
        self.status = None
        for kind, body in messages:
            if kind == "T":
                self.columns = wire.read_columns(body)
            elif kind == "D":
                self.rows.append(wire.read_row(body))
            elif kind == "C":
                self.tags.append(body[:-1].decode())
            elif kind == "N":
                self.notices.append(wire.read_fields(body))
            elif kind == "S":
                self.parameters.append(wire.read_pairs(body)[0])
            elif kind == "A":
                self.notifications.append(body)
            elif kind == "E":
                self.error = ServerError(body)
            elif kind == "Z":
                self.status = chr(body[0])

    names = property(lambda self: [column.name for column in self.columns])
    tag = property(lambda self: self.tags[-1] if self.tags else None)
    value = property(lambda self: self.rows[0][0] if self.rows else None)

    def dicts(self):
        """The rows as dicts."""
        return [dict(zip(self.names, row)) for row in self.rows]


class RawClient:
    """One connection. It sends and reads only in calls of its methods."""

    def __init__(self, address, timeout=TIMEOUT, options=(), source=None):
        """address is (host, port) or the path of a Unix socket; options are the socket's own;
        source is the host to connect from."""
        self.address = address
        self.timeout = timeout
        if isinstance(address, str):
            self.socket = socket.socket(socket.AF_UNIX)
        else:
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            self.socket = socket.socket(family)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in options:
            self.socket.setsockopt(*option)
        if source:
            self.socket.bind((source, 0))
        self.socket.settimeout(timeout)
        self.socket.connect(address)
        self.buffer = b""
        self.parameters = {}
        self.welcome = []
        self.key = None
        self.status = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # Bytes

    def send(self, *parts):
        """Send bytes as they are, in one write."""
        self.socket.sendall(b"".join(parts))
        return self

    def _receive(self, deadline):
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("nothing was received in time")
        self.socket.settimeout(left)
        try:
            data = self.socket.recv(262144)
        except socket.timeout:
            raise TimeoutError("nothing was received in time") from None
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        finally:
            self.socket.settimeout(self.timeout)
        if not data:
            if self.buffer:
                raise AssertionError(f"closed in the middle of a message: {self.buffer[:40]!r}")
            raise Closed()
        self.buffer += data

    def read_bytes(self, count, timeout=None):
        """Exactly count bytes."""
        deadline = time.monotonic() + (timeout or self.timeout)
        while len(self.buffer) < count:
            self._receive(deadline)
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def read(self, timeout=None):
        """The next message; Closed at the end, TimeoutError when none comes in time."""
        deadline = time.monotonic() + (timeout or self.timeout)
        while len(self.buffer) < 5:
            self._receive(deadline)
        (length,) = struct.unpack_from("!I", self.buffer, 1)
        if len(self.buffer) < 1 + length:
            parts = [self.buffer]
            have = len(self.buffer)
            while have < 1 + length:
                self.buffer = b""
                try:
                    self._receive(deadline)
                except Closed:
                    raise AssertionError("closed in the middle of a message") from None
                parts.append(self.buffer)
                have += len(self.buffer)
            self.buffer = b"".join(parts)
        found = wire.Message(chr(self.buffer[0]), self.buffer[5:1 + length])
        self.buffer = self.buffer[1 + length:]
        if found.type == "S":
            name, value = wire.read_pairs(found.body)[0]
            self.parameters[name] = value
        elif found.type == "Z":
            self.status = chr(found.body[0])
        return found

    def read_until(self, types, timeout=None):
        """All messages up to the first of one of these types, that one included."""
        deadline = time.monotonic() + (timeout or self.timeout)
        found = []
        while not found or found[-1].type not in types:
            found.append(self.read(max(0.001, deadline - time.monotonic())))
        return found

    def read_all(self, timeout=None):
        """All messages until the other side closes."""
        deadline = time.monotonic() + (timeout or self.timeout)
        found = []
        while True:
            try:
                found.append(self.read(max(0.001, deadline - time.monotonic())))
            except Closed:
                return found

    def silent(self, seconds=0.3):
        """Whether nothing comes, and the connection stays open, for a while."""
        if self.buffer:
            return False
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(seconds * 1000)

    def close(self):
        """Close without Terminate."""
        self.socket.close()

    def reset(self):
        """Close so that the other side sees a reset."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def shut_down_write(self):
        """Close our direction only."""
        self.socket.shutdown(socket.SHUT_WR)

    def leave(self):
        """Send Terminate and wait for the close: the next client finds the place free."""
        with contextlib.suppress(OSError):
            self.send(wire.terminate())
            self.shut_down_write()
            self.socket.settimeout(5)
            while self.socket.recv(65536):
                pass
        self.close()

    # Login

    def send_startup(self, user="app", database="main", protocol=wire.PROTOCOL_3_0, **parameters):
        """Send the StartupMessage; a parameter that is None is left out."""
        given = {"user": user, "database": database, **parameters}
        pairs = {name: value for name, value in given.items() if value is not None}
        return self.send(wire.startup(pairs, protocol))

    def login(self, user="app", database="main", password=None, scram_keys=None, **parameters):
        """Log in with the method that the server asks for; ServerError when refused."""
        self.send_startup(user, database, **parameters)
        return self.finish_login(user, password)

    def finish_login(self, user, password=None):
        """Answer authentication requests until ReadyForQuery."""
        scram = None
        self.welcome = []
        while True:
            found = self.read()
            self.welcome.append(found)
            kind, body = found
            if kind == "E":
                raise ServerError(body)
            if kind == "Z":
                return self
            if kind == "K":
                self.key = body
            if kind != "R":
                continue
            (code,) = struct.unpack_from("!I", body)
            if code == 0:
                continue
            if password is None:
                raise AssertionError(f"asked for a password (method {code})")
            if code == 3:
                self.send(wire.password(password))
            elif code == 5:
                self.send(wire.password(md5_answer(md5_secret(password, user), body[4:8])))
            elif code == 10:
                scram = ScramClient(password)
                self.send_sasl_first(scram.first())
            elif code == 11:
                self.send_sasl(scram.final(body[4:].decode()))
            elif code == 12:
                scram.check(body[4:].decode())
            else:
                raise AssertionError(f"unknown method {code}")

    def send_sasl_first(self, first, mechanism="SCRAM-SHA-256"):
        """SASLInitialResponse."""
        data = first if isinstance(first, bytes) else first.encode()
        body = wire.text(mechanism) + struct.pack("!i", len(data)) + data
        return self.send(wire.message("p", body))

    def send_sasl(self, answer):
        """SASLResponse."""
        return self.send(
            wire.message("p", answer if isinstance(answer, bytes) else answer.encode())
        )

    def methods(self):
        """The codes of the Authentication messages received in the last login."""
        return [
            struct.unpack_from("!I", found.body)[0]
            for found in self.welcome
            if found.type == "R"
        ]

    # Work

    def result(self, timeout=None):
        """Everything up to the next ReadyForQuery, errors included."""
        return Result(self.read_until("Z", timeout))

    def query(self, sql, timeout=None):
        """Run a simple query; ServerError when it fails."""
        self.send(wire.query(sql))
        return self.checked(timeout)

    def checked(self, timeout=None):
        """The next result; ServerError when it holds an error, also one that closes."""
        found = []
        deadline = time.monotonic() + (timeout or self.timeout)
        while not found or found[-1].type != "Z":
            try:
                found.append(self.read(max(0.001, deadline - time.monotonic())))
            except Closed:
                errors = [each for each in found if each.type == "E"]
                if errors:
                    raise ServerError(errors[-1].body) from None
                raise
        result = Result(found)
        if result.error:
            raise result.error
        return result

    def value(self, sql):
        """The first value of a simple query."""
        return self.query(sql).value

    def extended(self, sql, values=()):
        """Run a query by the extended protocol, one batch."""
        self.send(wire.extended(sql, values), wire.sync())
        return self.checked()

    def error(self, timeout=None):
        """Read until an ErrorResponse and return it."""
        return ServerError(self.read_until("E", timeout)[-1].body)

    def fatal(self, timeout=None):
        """The last error before the other side closes; asserts that it does close."""
        errors = [found for found in self.read_all(timeout) if found.type == "E"]
        assert errors, "closed without an error"
        return ServerError(errors[-1].body)

    def closed(self, timeout=None):
        """Assert that the other side closes without another message."""
        assert self.read_all(timeout) == []
        return True


def cancel(address, key):
    """Send a CancelRequest and wait until the other side has closed."""
    with RawClient(address) as client:
        client.send(wire.cancel_request(key))
        client.closed()
