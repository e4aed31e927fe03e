# SPDX-License-Identifier: ISC
"""The crosstalk test: hundreds of clients send requests, fail, cancel and disconnect at once.

Each knows the answers that it must receive, to the last byte. A client that receives anything else,
or waits too long, ends the run with the seed and the history of its connection.
support.crosstalk.client chooses what each client does.
"""

import asyncio
import collections
import os
import random
import time
from dataclasses import dataclass

from support import wire
from support.clients.async_client import AsyncClient
from support.crosstalk import activities
from support.crosstalk.answer_check import WrongAnswer
from support.crosstalk.client import DATABASE, USER, Client
from support.crosstalk.transfers import Ledger


def environment_value(name, default):
    """The value of PGUSHER_CROSSTALK_name in the environment."""
    return type(default)(os.environ.get(f"PGUSHER_CROSSTALK_{name}", default))


@dataclass
class Mix:
    """The settings of a run."""

    address: tuple
    postgres: tuple  # to terminate its backends directly; None: do not
    mode: str
    seed: str
    clients: int = 200
    seconds: float = 8
    patience: float = 30
    prepared: bool = True  # named statements follow the client to another server
    unnamed: bool = True  # so does the unnamed statement


class Run:
    """All clients of a run, what disturbs them, and what they share."""

    def __init__(self, mix):
        self.mix = mix
        self.ledger = Ledger()
        self.counts = collections.Counter()
        self.keys = set()
        self.acts = activities.for_mix(mix)
        self.until = None

    def goes_on(self):
        return time.monotonic() < self.until

    def take_key(self, key):
        if key in self.keys:
            raise WrongAnswer(f"was given a key that another had: {key}")
        self.keys.add(key)

    def missing(self):
        """The activities that no client has done."""
        return [act.__name__ for act in self.acts[0] if not self.counts[act.__name__]]

    async def disturb(self, action, pause):
        """Do something on PostgreSQL directly now and then, as superuser."""
        draw = random.Random(f"{self.mix.seed}/{action.__name__}")
        connection = await AsyncClient.connect(self.mix.postgres, self.mix.patience)
        try:
            await connection.login("harness", DATABASE)
            while True:
                await asyncio.sleep(draw.uniform(pause / 5, pause))
                await action(connection, draw)
        finally:
            connection.close()

    async def end_server(self, connection, draw):
        """Terminate a server's backend."""
        rows = await _ask(
            connection,
            f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}' AND query <> ''"
            " AND backend_type = 'client backend' ORDER BY pid",
        )
        if rows:
            self.counts["kills"] += 1
            (pid,) = draw.choice(rows)
            await _ask(connection, f"SELECT pg_terminate_backend({pid})")

    async def alter_table(self, connection, draw):
        """Change the columns of a table."""
        self.counts["alterations"] += 1
        change = draw.choice(("int", "text", "bigint"))
        await _ask(connection, f"ALTER TABLE talk_shape ALTER one TYPE {change} USING '1'::{change}")

    async def work(self):
        """Let all clients work; the first failure ends the run."""
        self.until = time.monotonic() + self.mix.seconds
        others = []
        if self.mix.postgres:
            others.append(asyncio.create_task(self.disturb(self.end_server, 0.6)))
            others.append(asyncio.create_task(self.disturb(self.alter_table, 2)))
        clients = [
            asyncio.create_task(Client(self, number).work()) for number in range(self.mix.clients)
        ]
        waiting = set(clients)
        try:
            while waiting:
                finished, waiting = await asyncio.wait(
                    waiting | set(others), return_when=asyncio.FIRST_COMPLETED
                )
                waiting -= set(others)
                for task in finished:
                    task.result()
        finally:
            for task in [*clients, *others]:
                task.cancel()
            await asyncio.gather(*clients, *others, return_exceptions=True)


async def _ask(connection, sql):
    """Rows of a query that must not fail."""
    connection.send(wire.query(sql))
    received = await connection.result()
    if "E" in (each.type for each in received):
        raise WrongAnswer(f"{sql} was answered by {received}")
    return [wire.read_row(each.body) for each in received if each.type == "D"]


def run(mix):
    """Run a mix; returns the Run with its counts and its ledger."""
    found = Run(mix)
    asyncio.run(found.work())
    return found
