# SPDX-License-Identifier: ISC
"""What troubles the clients of a soak: servers that are terminated, cancel requests, an operator."""

import asyncio
import random
import time
from concurrent.futures import ThreadPoolExecutor

from support.clients import async_client
from support.session_state.soak_state import USER

# The kernel kills a daemon with the thread that has started it (PR_SET_PDEATHSIG): this one stays.
_starter = ThreadPoolExecutor(1)


class Trouble:
    """Acts at random moments, one after the other; call it with the Run."""

    def __init__(self, pooler, cluster, pause=0.15):
        self.pooler = pooler
        self.cluster = cluster
        self.pause = pause

    async def __call__(self, run):
        draw = random.Random(f"{run.mix.seed}/operator")
        acts = [
            self._terminate_server, self._cancel, self._cancel, self._cancel, self._stop_for_a_moment,
            self._reconnect, self._refuse_for_a_moment, self._allow_leaks, self._take_over,
        ]
        while run.goes_on():
            # Each at least once.
            draw.shuffle(acts)
            for each in acts:
                await asyncio.sleep(draw.random() * 2 * self.pause)
                if not run.goes_on():
                    return
                name = each.__name__[1:].replace("_", " ")
                run.counts[name] += 1
                run.acts.append((time.monotonic(), name))
                await each(run, draw)
                run.acts.append((time.monotonic(), "done"))

    async def _terminate_server(self, _, draw):
        rows = await self._sql(f"SELECT pid FROM pg_stat_activity WHERE usename = '{USER}'")
        if rows:
            pid = draw.choice(rows)["pid"]
            await self._sql(f"SELECT pg_terminate_backend({pid})")

    async def _cancel(self, run, draw):
        client = draw.choice(run.clients)
        if client.connection and client.connection.key:
            await async_client.cancel(run.mix.address, client.connection.key, run.mix.patience)

    async def _stop_for_a_moment(self, _, draw):
        await self._command("PAUSE main")
        await asyncio.sleep(draw.random() * self.pause)
        await self._command("RESUME main")

    async def _reconnect(self, *_):
        await self._command("RECONNECT main")

    async def _refuse_for_a_moment(self, _, draw):
        """Another setting under which nothing leaks; what was pinned is lost."""
        await self._set_session_state("error")
        await asyncio.sleep(draw.random() * 2 * self.pause)
        await self._set_session_state("follow")

    async def _allow_leaks(self, run, draw):
        """As with PgBouncer for a moment, or with warnings; nothing leaks afterwards."""
        run.leaks = True
        await self._set_session_state(draw.choice(("ignore", "warn")))
        await asyncio.sleep(draw.random() * 4 * self.pause)
        await self._set_session_state("follow")
        run.epoch += 1
        run.leaks = False

    async def _take_over(self, *_):
        self.pooler.close_console()
        await asyncio.get_running_loop().run_in_executor(_starter, self.pooler.take_over)

    async def _set_session_state(self, value):
        self.pooler.settings["session_state"] = value
        await asyncio.to_thread(self.pooler.reload)

    async def _command(self, sql):
        await asyncio.to_thread(self.pooler.command, sql, 30)

    async def _sql(self, sql):
        return await asyncio.to_thread(self.cluster.sql, sql)
