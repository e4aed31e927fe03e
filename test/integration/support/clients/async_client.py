# SPDX-License-Identifier: ISC
"""A client for hundreds at a time: raw messages, a history of them, a time limit for every wait.

It checks no answers; support.crosstalk.answer_check does that. RawClient is for tests with a few
connections and no event loop.
"""

import asyncio
import collections
import socket
import struct
import time

from support import wire

# How many sends and messages the history keeps, and how much of each it shows.
REMEMBERED = 80
SHOWN = 160

NO_LINGER = struct.pack("ii", 1, 0)


class Disconnected(Exception):
    """The other side has closed the connection, or reset it."""


class NothingReceived(AssertionError):
    """Nothing was received in time."""


class AsyncClient(asyncio.Protocol):
    """One connection of an event loop."""

    def __init__(self, patience):
        """patience is the time limit for a message, in seconds."""
        self.patience = patience
        self.history = collections.deque(maxlen=REMEMBERED)
        self.transport = None
        self.buffer = bytearray()
        self.messages = collections.deque()
        self.waiter = None
        self.lost = False
        self.key = None
        self.parameters = {}
        self.received = 0

    @classmethod
    async def connect(cls, address, patience):
        """Connect to (host, port); nothing is sent yet."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: cls(patience), *address)
        return connection

    # Callbacks of the event loop

    def connection_made(self, transport):
        self.transport = transport
        peer = transport.get_extra_info("socket")
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def data_received(self, data):
        self.buffer += data
        buffer, at = self.buffer, 0
        while len(buffer) - at >= 5:
            (length,) = struct.unpack_from("!I", buffer, at + 1)
            if len(buffer) - at < 1 + length:
                break
            self._take(wire.Message(chr(buffer[at]), bytes(buffer[at + 5:at + 1 + length])))
            at += 1 + length
        del buffer[:at]
        self._wake()

    def connection_lost(self, _):
        self.lost = True
        self._wake()

    def _take(self, message):
        self.history.append((time.monotonic(), "<", message))
        self.messages.append(message)
        self.received += 1

    def _wake(self):
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    # Messages

    def send(self, data):
        """Send bytes as they are."""
        self.history.append((time.monotonic(), ">", data))
        if not self.lost and not self.transport.is_closing():
            self.transport.write(data)

    async def read(self):
        """The next message; Disconnected at the end, NothingReceived when none comes in time."""
        while not self.messages:
            if self.lost:
                raise Disconnected("closed in the middle of a message" if self.buffer else "closed")
            await self._wait()
        message = self.messages.popleft()
        if message.type == "S":
            name, value = wire.read_pairs(message.body)[0]
            self.parameters[name] = value
        elif message.type == "K":
            self.key = message.body
        return message

    async def _wait(self):
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.patience):
                await self.waiter
        except TimeoutError:
            raise NothingReceived(f"nothing came for {self.patience} s") from None
        finally:
            self.waiter = None

    async def result(self):
        """All messages up to the next ReadyForQuery, or to a FATAL error, that one included."""
        found = []
        while not found or not (found[-1].type == "Z" or is_fatal(found[-1])):
            found.append(await self.read())
        return found

    async def login(self, user, database, **parameters):
        """Log in where no password is asked for; returns the messages of the server."""
        self.send(wire.startup({"user": user, "database": database, **parameters}))
        return await self.result()

    async def until_closed(self):
        """Wait until the other side has closed."""
        while not self.lost:
            await self._wait()

    def pause(self):
        """Stop reading: unread data stays in socket buffers."""
        if not self.lost:
            self.transport.pause_reading()

    def resume(self):
        """Read again."""
        if not self.lost:
            self.transport.resume_reading()

    # Disconnecting

    async def leave(self):
        """Send Terminate, and wait until the other side has closed."""
        self.send(wire.terminate())
        await self.until_closed()

    def close(self):
        """Close without Terminate."""
        if self.transport is not None:
            self.transport.abort()

    def reset(self):
        """Close so that the other side sees a reset."""
        if not self.lost:
            peer = self.transport.get_extra_info("socket")
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.close()

    # History

    def note(self, text):
        """Add an event to the history."""
        self.history.append((time.monotonic(), "!", text))

    def conversation(self):
        """The history, line by line."""
        began = self.history[0][0] if self.history else 0
        for at, direction, what in self.history:
            if direction == "!":
                yield f"{at - began:9.4f} ! {what}"
            elif direction == "<":
                yield f"{at - began:9.4f} < {what.type} {_show(what.body)}"
            else:
                whole, rest = wire.split(what) if what[:1] != b"\0" else ([], what)
                for message in whole:
                    yield f"{at - began:9.4f} > {message.type} {_show(message.body)}"
                if rest:
                    yield f"{at - began:9.4f} > {_show(rest)}"


def is_fatal(message):
    """Whether this message is an error that ends its connection."""
    return message.type == "E" and wire.read_fields(message.body).get("S") == "FATAL"


def _show(data):
    text = repr(data)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(data)} bytes)"


async def cancel(address, key, patience):
    """Send a CancelRequest and wait until the other side has closed."""
    connection = await AsyncClient.connect(address, patience)
    try:
        connection.send(wire.cancel_request(key))
        await connection.until_closed()
    finally:
        connection.close()
