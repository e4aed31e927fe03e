# SPDX-License-Identifier: ISC
"""One client of the crosstalk test: it logs in, sends requests, cancels, disconnects, and returns.

What client 17 does in its conversation 42 depends on the seed, 17 and 42 alone: the same seed makes
the same choices again, whatever other clients and the clock do.
"""

import asyncio
import random

from support import wire
from support.clients.async_client import AsyncClient, Disconnected, NothingReceived, cancel, is_fatal
from support.crosstalk import activities, requests
from support.crosstalk.answer_check import AnswerCheck, WrongAnswer
from support.crosstalk.expected_answers import QUIET

USER, DATABASE = "app", "main"
ZONES = ("UTC", "Europe/Paris", "Asia/Tokyo", "America/Lima")

# PostgreSQL signals the process and then its group: one request may end two queries in a row.
SIGNALS = 2
# The errors of a client that loses its server: PostgreSQL's and the pooler's.
ENDED = ("57P01", "08006")
FORBIDDEN_BLOCK = "transaction blocks not allowed in statement pooling mode"


class Disconnects(Exception):
    """The client disconnects, as was chosen."""


class Ended(Exception):
    """The client was closed, as is allowed."""


class Client(AnswerCheck):
    """One of many clients: logs in, sends requests, disconnects and returns until the time is up."""

    def __init__(self, run, number):
        super().__init__(number)
        self.run = run
        self.mix = run.mix
        self.conversation = 0
        self.connection = None
        self.keys = []
        self.names = {}  # of prepared statements, with the column name that each text gives its answer
        self.marked = 0  # the login that has left state in its session
        self.cancelling = []
        self.begin_conversation()

    # Connections

    async def work(self):
        """Work until the run is over."""
        try:
            while self.run.goes_on():
                await self.use_connection()
        except (WrongAnswer, NothingReceived, Disconnected) as error:
            raise AssertionError(self.description(error)) from error
        finally:
            if self.connection:
                self.connection.close()

    async def use_connection(self):
        """Log in, send requests for a while, and disconnect in one way or another."""
        self.login_number += 1
        draw = random.Random(f"{self.mix.seed}/{self.number}/login/{self.login_number}")
        self.draw = draw
        try:
            await self.log_in(draw)
            for _ in range(draw.randint(1, 6 if self.mix.mode == "session" else 40)):
                if self.run.goes_on():
                    await self.converse()
            await self.connection.leave()
        except Disconnects:
            draw.choice((self.connection.close, self.connection.reset))()
            self.run.counts["vanished"] += 1
        except Ended:
            self.connection.close()
        await self.settle_cancels()

    async def log_in(self, draw):
        """Log in, with or without parameters; or disconnect before that is done."""
        self.connection = await AsyncClient.connect(self.mix.address, self.mix.patience)
        self.status = "I"
        self.names = {}
        given = {"application_name": f"{self.number}/{self.login_number}"}
        if draw.random() < 0.7:
            given["TimeZone"] = draw.choice(ZONES)
        quiet = self.draw_quiet(draw)
        if draw.random() < 0.3:
            given["options"] = " ".join(
                f"-c {name}={value}".replace(", ", ",\\ ") for name, value in quiet.items()
            )
        else:
            given.update(quiet)
        if draw.random() < 0.02:
            packet = wire.startup({"user": USER, "database": DATABASE, **given})
            self.connection.send(packet[:draw.randint(0, len(packet))])
            raise Disconnects
        received = await self.connection.login(USER, DATABASE, **given)
        if {each.type for each in received} != set("RSKZ"):
            raise WrongAnswer(f"a login was answered by {received}")
        self.parameters = {**QUIET, **quiet, **self.connection.parameters}
        for name in ("application_name", "TimeZone"):
            if self.parameters[name] != given.get(name, self.parameters[name]):
                raise WrongAnswer(f"got {name} {self.parameters[name]}, not {given[name]}")
        self.run.take_key(self.connection.key)
        self.keys = [*self.keys[-3:], self.connection.key]

    def draw_quiet(self, draw):
        """Choose values for parameters that no server reports."""
        quiet = {
            "search_path": f"schema{draw.randrange(4)}, public",
            "statement_timeout": f"{draw.randint(61, 64)}s",
            "work_mem": f"{draw.randint(5, 8)}MB",
        }
        return {name: value for name, value in quiet.items() if draw.random() < 0.3}

    # A conversation

    def begin_conversation(self):
        """Choose the disturbances of the next conversation."""
        self.conversation += 1
        self.draw = draw = random.Random(f"{self.mix.seed}/{self.number}/{self.conversation}")
        self.token = f"c{self.number}.{self.conversation}"
        self.tokens = 0
        self.act = None
        self.chops = draw.random() < 0.15
        self.bytes_left = draw.randint(0, 900) if draw.random() < 0.03 else None
        self.messages_left = draw.randint(0, 25) if draw.random() < 0.03 else None
        self.cancel_after = draw.uniform(0, draw.choice((0, 0.002, 0.02, 0.5)))
        self.cancel_when = draw.choice(("sent", "received")) if draw.random() < 0.1 else None
        self.cancels = 0

    async def converse(self):
        """Do one activity; its transaction is over when this returns."""
        self.begin_conversation()
        self.act = self.draw.choices(*self.run.acts)[0]
        self.run.counts[self.act.__name__] += 1
        await self.act(self)
        while self.status != "I":
            await self.ask(requests.rollback())
        await self.settle_cancels()

    def next_token(self):
        """A token that no other request has."""
        self.tokens += 1
        return f"{self.token}.{self.tokens}"

    def former_keys(self):
        """Keys of this client's former logins."""
        return [key for key in self.keys if key != self.connection.key]

    def ordinary(self):
        return requests.ordinary(self.next_token(), self.draw)

    def without_cancels(self):
        """Let no cancel request of this client hit this conversation."""
        self.cancel_when = None

    async def ask(self, *what):
        """Send requests and receive the answers; returns whether the last one succeeded."""
        await self.send(b"".join(request.data for request in what))
        for request in what:
            well = await self.receive(request)
        return well

    async def send(self, data):
        """Send, in pieces if that was chosen, and never more than was chosen."""
        for piece in self.pieces(data):
            if self.bytes_left is not None:
                piece, self.bytes_left = piece[:self.bytes_left], self.bytes_left - len(piece)
            self.connection.send(piece)
            if self.bytes_left is not None and self.bytes_left <= 0:
                raise Disconnects
            if self.chops:
                await asyncio.sleep(self.draw.uniform(0, 0.004))
        self.perhaps_cancel("sent")

    def pieces(self, data):
        if not self.chops or len(data) < 2:
            return [data]
        at = self.draw.randint(1, len(data) - 1)
        return [data[:at], data[at:]]

    async def read(self):
        """The next message, unless the client was chosen to disconnect before it."""
        if self.messages_left is not None:
            self.messages_left -= 1
            if self.messages_left < 0:
                raise Disconnects
        return await self.connection.read()

    async def receive(self, request, received=()):
        """Receive a request's answer up to its ReadyForQuery, and check it."""
        *received, ready = await self.receive_until("Z", request, received)
        well, canceled = self.check(request, received)
        self.check_status(request, chr(ready.body[0]), well, canceled)
        # PostgreSQL reports changes right before ReadyForQuery.
        self.parameters.update(self.connection.parameters)
        self.canceled = canceled
        self.run.counts["canceled"] += canceled
        self.perhaps_cancel("received")
        return well

    async def receive_until(self, types, request, received=()):
        """Receive a request's answer up to a message of one of these types, or an error."""
        received = list(received)
        while not received or received[-1].type not in types:
            await self.receive_one(request, received)
            if received[-1].type == "E" and "Z" not in types:
                break
        return received

    async def receive_one(self, request, received):
        """Add the next message to those received, unless it closes this client."""
        try:
            message = await self.read()
        except Disconnected as error:
            message, why = None, error
        else:
            if not is_fatal(message):
                received.append(message)
                return
            why = message
        self.check(request, received, cut=True)
        self.end(message, why)

    def end(self, fatal, error):
        """The client was closed: only allowed if its server was terminated."""
        said = wire.read_fields(fatal.body) if fatal else {"C": ENDED[0]}
        if self.act is activities.forbidden_block and said.get("M") == FORBIDDEN_BLOCK:
            raise Ended
        self.run.counts["ended"] += 1
        if said["C"] not in ENDED or self.run.counts["ended"] > self.run.counts["kills"]:
            raise WrongAnswer(f"was closed: {error}")
        raise Ended

    # Cancel requests

    def perhaps_cancel(self, when):
        """Cancel this conversation, if that was chosen for now."""
        if self.cancel_when == when:
            self.cancel_when = None
            self.cancel_soon(self.connection.key, self.cancel_after, hits=True)

    def cancel_soon(self, key, seconds, hits=False):
        """Send a cancel request after a while; one that hits may end the current request."""

        async def work():
            await asyncio.sleep(seconds)
            self.cancels += SIGNALS if hits else 0
            self.run.counts["cancels"] += 1
            connection.note(f"a cancel request{' of this client' if hits else ''}, key {key.hex()}")
            await cancel(self.mix.address, key, self.mix.patience)
            connection.note(f"the cancel request has ended: {key.hex()}")

        connection = self.connection
        self.cancelling.append(asyncio.create_task(work()))

    async def settle_cancels(self):
        """Wait until all cancel requests have ended: none may hit a later request."""
        while self.cancelling:
            await self.cancelling.pop()

    # Failures

    def description(self, error):
        """The error and the history of the connection."""
        act = self.act.__name__ if self.act else "login"
        lines = [
            f"{type(error).__name__}: {error}",
            f"client {self.number}, conversation {self.conversation} ({act}), mode {self.mix.mode},"
            f" seed {self.mix.seed}, status {self.status}",
        ]
        return "\n".join([*lines, *(self.connection.conversation() if self.connection else ())])
