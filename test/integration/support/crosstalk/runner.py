# SPDX-License-Identifier: ISC
"""Hundreds of clients who talk, fail, cancel and vanish at once, and know what each of them is to
hear to the last byte. Whoever hears anything else, or waits too long, ends the run with the seed
and the last that was said.

What each of them does is drawn by support.crosstalk.client.
"""

import asyncio
import collections
import os
import random
import time
from dataclasses import dataclass

from support import wire
from support.clients.async_client import Talker
from support.crosstalk import activities
from support.crosstalk.answer_check import Wrong
from support.crosstalk.client import DATABASE, USER, Client
from support.crosstalk.transfers import Ledger


def wish(name, default):
    """What the environment asks for: PGUSHER_CROSSTALK_name."""
    return type(default)(os.environ.get(f"PGUSHER_CROSSTALK_{name}", default))


@dataclass
class Mix:
    """What a run is made of."""

    address: tuple
    postgres: tuple  # where they are disturbed past the pooler; None: they are not
    mode: str
    seed: str
    clients: int = 200
    seconds: float = 8
    patience: float = 30
    prepared: bool = True  # names of statements outlive a server
    parted: bool = True  # so does the unnamed statement


class Run:
    """All clients of a run, who disturbs them, and what they share."""

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
            raise Wrong(f"was given a key that another had: {key}")
        self.keys.add(key)

    def missing(self):
        """The acts that nobody has come to."""
        return [act.__name__ for act in self.acts[0] if not self.counts[act.__name__]]

    async def disturb(self, action, pause):
        """Do something past the pooler now and then, as superuser."""
        draw = random.Random(f"{self.mix.seed}/{action.__name__}")
        talker = await Talker.connect(self.mix.postgres, self.mix.patience)
        try:
            await talker.login("harness", DATABASE)
            while True:
                await asyncio.sleep(draw.uniform(pause / 5, pause))
                await action(talker, draw)
        finally:
            talker.close()

    async def end_server(self, talker, draw):
        """End a server's process, in the ordinary way."""
        rows = await _ask(
            talker,
            f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}' AND query <> ''"
            " AND backend_type = 'client backend' ORDER BY pid",
        )
        if rows:
            self.counts["kills"] += 1
            (pid,) = draw.choice(rows)
            await _ask(talker, f"SELECT pg_terminate_backend({pid})")

    async def alter_table(self, talker, draw):
        """Give a table another shape."""
        self.counts["alterations"] += 1
        change = draw.choice(("int", "text", "bigint"))
        await _ask(talker, f"ALTER TABLE talk_shape ALTER one TYPE {change} USING '1'::{change}")

    async def work(self):
        """Let all of them live; the first that goes wrong ends it."""
        self.until = time.monotonic() + self.mix.seconds
        others = []
        if self.mix.postgres:
            others.append(asyncio.create_task(self.disturb(self.end_server, 0.6)))
            others.append(asyncio.create_task(self.disturb(self.alter_table, 2)))
        clients = [
            asyncio.create_task(Client(self, number).live()) for number in range(self.mix.clients)
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


async def _ask(talker, sql):
    """Rows of a query that must not fail."""
    talker.send(wire.query(sql))
    heard = await talker.result()
    if "E" in (each.type for each in heard):
        raise Wrong(f"{sql} was answered by {heard}")
    return [wire.read_row(each.body) for each in heard if each.type == "D"]


def run(mix):
    """Let a mix run; the Run tells what came of it."""
    found = Run(mix)
    asyncio.run(found.work())
    return found
