# SPDX-License-Identifier: ISC
"""Many clients on few servers, each with state of its own, which looks for what is not its own.

Each client knows what its session must hold. Every transaction begins with one query that lists what
the server's session holds: settings, user, temporary objects, locks, cursors, prepared statements,
channels. What client 17 does depends on the seed and 17 alone.
"""

import asyncio
import collections
import time
from dataclasses import dataclass

from support.session_state.soak_acts import FAMILIES
from support.session_state.soak_client import SoakClient


@dataclass
class Mix:
    """The settings of a run."""

    address: tuple
    seed: str
    clients: int = 20
    seconds: float = 5
    patience: float = 30
    families: tuple = FAMILIES
    keeps_pinned: bool = False  # there are servers enough for all that is pinned
    trouble: object = None  # a coroutine function that troubles the clients of a Run


class Run:
    """All clients, and what they have counted."""

    def __init__(self, mix):
        self.mix = mix
        self.counts = collections.Counter()
        self.until = None
        self.leaks = False  # the operator has allowed leaks
        self.epoch = 0  # how often it did
        self.acts = []  # what it did, and when

    async def work(self):
        """Let all clients work; the first failure ends the run."""
        self.until = time.monotonic() + self.mix.seconds
        self.clients = [SoakClient(self, number) for number in range(self.mix.clients)]
        tasks = [asyncio.create_task(each.work()) for each in self.clients]
        if self.mix.trouble:
            tasks.append(asyncio.create_task(self.mix.trouble(self)))
        try:
            for each in asyncio.as_completed(tasks):
                await each
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def goes_on(self):
        """Whether there is time for more."""
        return time.monotonic() < self.until


def run(mix):
    """Run a mix; returns how often each thing was done. Foreign, with the seed, if one failed."""
    found = Run(mix)
    asyncio.run(found.work())
    return found.counts
