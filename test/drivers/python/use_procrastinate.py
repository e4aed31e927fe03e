# SPDX-License-Identifier: ISC
"""Procrastinate with its defaults: LISTEN leads workers to jobs, locks of jobs are rows."""

import asyncio

import procrastinate

from check import check_async, finish

WORKERS = 2
JOBS = 40
TURNS = 4
done = []
now = []


def application():
    """An application of its own, with a pool of its own, as each process has."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(kwargs={}, max_size=4))

    @app.task(name="add")
    async def add(one, two):
        done.append((one, one + two))

    @app.task(name="in_turn", lock="turn")
    async def in_turn(number):
        now.append(number)
        assert len(now) == 1, now
        await asyncio.sleep(0)
        now.remove(number)
        done.append(("turn", number))

    return app, add, in_turn


async def applies_schema(_):
    app, *_ = application()
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def runs(_):
    """Workers poll so rarely that only a notification leads them to a job in time."""
    apps = [application() for _ in range(WORKERS)]
    sender, add, in_turn = application()
    workers = []
    async with sender.open_async():
        for app, *_ in apps:
            await app.open_async()
            workers.append(asyncio.create_task(app.run_worker_async(
                concurrency=3, fetch_job_polling_interval=3600, install_signal_handlers=False,
            )))  # fmt: skip
        for number in range(JOBS):
            await add.defer_async(one=number, two=1)
        for number in range(TURNS):
            await in_turn.defer_async(number=number)
        # A job that was sent before its worker listened is run with the next one.
        nudges = 0
        while len(done) < JOBS + TURNS + nudges:
            for worker in workers:
                assert not worker.done(), worker
            before = len(done)
            await asyncio.sleep(0.5 if before else 0.1)
            if len(done) == before:
                await add.defer_async(one=JOBS + nudges, two=1)
                nudges += 1
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for app, *_ in apps:
            await app.close_async()
        wanted = [(n, n + 1) for n in range(JOBS + nudges)] + [("turn", n) for n in range(TURNS)]
        assert sorted(done, key=str) == sorted(wanted, key=str)
        jobs = await sender.job_manager.list_jobs_async(status="succeeded")
        assert len(list(jobs)) == JOBS + TURNS + nudges


async def main():
    await check_async("applies its schema", applies_schema, 1)
    await check_async("runs jobs that notifications announce", runs, 1)
    finish()


asyncio.run(main())
