# SPDX-License-Identifier: ISC
"""Whole conversations, message by message, that a server and a pooler must answer alike.

A conversation is a list of turns. In a turn bytes are sent, while answers are read until the last
of them has come; types of messages tell which one that is, so that nothing depends on time.
Everything after the login is kept, byte for byte.
"""

import contextlib
import random
import socket
import struct
import threading
from typing import NamedTuple

from support import wire
from support.clients.raw import Closed, RawClient

# Tables that the conversations use, created once, so that both sides report the same ones.
SETUP = """
CREATE TABLE IF NOT EXISTS talked (number int, word text);
CREATE TABLE IF NOT EXISTS talked_once (number int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED);
GRANT ALL ON talked, talked_once TO app;
"""


class Turn(NamedTuple):
    """Send this, and read until these types of messages have come, in this order.

    Each letter of `until` is a message to wait for; what comes between is kept too. `notify` is SQL
    that another client runs when everything was sent.
    """

    data: bytes
    until: str = "Z"
    notify: str = None


class Conversation(NamedTuple):
    """Turns, and where they are allowed.

    anywhere  in transaction mode too, where a client keeps a server for a transaction only
    again     by several clients at once
    single    none of it is a transaction block that does not begin with BEGIN
    fatal     the server closes the connection in the end
    """

    turns: tuple
    anywhere: bool = True
    again: bool = True
    single: bool = True
    fatal: bool = False
    protocol: int = wire.PROTOCOL_3_0
    startup: dict = {}

    def has(self, sql):
        """Whether any message holds this."""
        return any(sql.encode() in turn.data for turn in self.turns)


# --- ways to send and receive -----------------------------------------------------------------


class Plain:
    """As fast as possible."""

    options = ()

    def pieces(self, data):
        """The pieces that are written at once."""
        yield data

    def receive_size(self):
        """How much is read at once."""
        return 1 << 18


class Cut(Plain):
    """The client's bytes are written in pieces of random sizes."""

    def __init__(self, seed, smallest=1, largest=40):
        self._random = random.Random(seed)
        self._sizes = (smallest, largest)

    def pieces(self, data):
        """Small pieces first, larger ones later: a long message would take too long in small ones."""
        at, count = 0, 0
        while at < len(data):
            smallest, largest = self._sizes
            size = self._random.randint(smallest, largest << min(count // 100, 10))
            yield data[at:at + size]
            at += size
            count += 1


class Slow(Plain):
    """Answers are read in small pieces, so that they queue up on the other side."""

    # Small segments: with large ones a small window makes either side wait for its timers.
    options = (
        (socket.SOL_SOCKET, socket.SO_RCVBUF, 8192),
        (socket.IPPROTO_TCP, socket.TCP_MAXSEG, 600),
    )

    def __init__(self, seed):
        self._random = random.Random(seed)

    def receive_size(self):
        """A few bytes."""
        return self._random.randint(1, 700)


# --- running a conversation -------------------------------------------------------------------


class Reader:
    """Reads messages from a connection, and keeps them unchanged."""

    def __init__(self, sock, way, already=b""):
        self._socket = sock
        self._way = way
        self._buffer = already
        self._awaited = 0  # how many of the messages were read for their type
        self.messages = []

    def read_until(self, until):
        """Read until messages of these types have come in this order."""
        for letter in until:
            while self._next_type() != letter:
                pass

    def read_to_end(self):
        """Read until the other side has closed."""
        with contextlib.suppress(Closed):
            while True:
                self._next_type()
        assert not self._buffer, f"closed in the middle of a message: {self._buffer[:40]!r}"

    def _next_type(self):
        while self._awaited == len(self.messages):
            wanted = self._split()
            if self._awaited == len(self.messages):
                self._receive(wanted)
        self._awaited += 1
        return self.messages[self._awaited - 1][0]

    def _split(self):
        """Split the buffer into messages; returns how many bytes the next one has, if that is known.
        There may be tens of thousands."""
        buffer, at, keep = self._buffer, 0, self.messages.append
        size, wanted = len(buffer), 0
        while size - at >= 5:
            (length,) = struct.unpack_from("!I", buffer, at + 1)
            wanted = 1 + length
            if size - at < wanted:
                break
            keep((chr(buffer[at]), bytes(buffer[at + 5:at + wanted])))
            at, wanted = at + wanted, 0
        del buffer[:at]
        return wanted

    def _receive(self, enough):
        size = self._way.receive_size()
        # The rest of a long message in larger pieces, or it would take too long.
        if enough > 100_000:
            size *= 20
        try:
            data = self._socket.recv(size)
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        if not data:
            raise Closed()
        self._buffer += data


class Transcript:
    """The messages received in a conversation: the login, and everything after it."""

    def __init__(self, welcome, messages):
        self.welcome = welcome
        self.messages = messages

    def login(self):
        """The login without its secrets; each side may order parameters differently."""
        plain = [
            ("K", len(body)) if kind == "K" else (kind, body)
            for kind, body in self.welcome
            if kind != "S"
        ]
        return plain, sorted(body for kind, body in self.welcome if kind == "S")

    def after_login(self):
        """Everything after the login, without the process numbers in notifications, which differ."""
        return [
            (kind, b"...." + body[4:]) if kind == "A" else (kind, body)
            for kind, body in self.messages
        ]


def run_conversation(address, conversation, way, notify, user="app", database="main"):
    """Run the conversation and return the Transcript; notify(sql) runs SQL as another client."""
    with RawClient(address, timeout=30, options=way.options) as client:
        client.send_startup(user, database, conversation.protocol, **conversation.startup)
        client.finish_login(user)
        client.socket.settimeout(30)
        reader = Reader(client.socket, way, bytearray(client.buffer))
        for turn in conversation.turns:
            _take_turn(client.socket, reader, turn, way, notify)
        if not conversation.fatal:
            client.socket.sendall(wire.terminate())
        reader.read_to_end()
        return Transcript(client.welcome, reader.messages)


def _take_turn(sock, reader, turn, way, notify):
    faults = []

    def send_turn():
        try:
            for piece in way.pieces(turn.data):
                sock.sendall(piece)
            if turn.notify:
                notify(turn.notify)
        except OSError as fault:
            faults.append(fault)

    # Answers that come before everything was sent must be read, or both sides would wait for ever.
    sender = threading.Thread(target=send_turn)
    sender.start()
    try:
        reader.read_until(turn.until)
    except TimeoutError:
        tail = reader.messages[-5:]
        raise AssertionError(f"waited for {turn.until[:20]!r}, after_login at last {tail}") from None
    finally:
        sender.join(30)
    assert not faults, faults
