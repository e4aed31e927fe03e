# SPDX-License-Identifier: ISC
"""Clients that write rows, one after the other, and know which of them were acknowledged."""

import contextlib
import itertools
import math
import statistics
import threading
import time
from typing import NamedTuple

import psycopg

from support.process import WaitTimeout, wait_until

# No unique index: a row that is written twice must be found there twice.
TABLE = "CREATE TABLE IF NOT EXISTS written (id bigint NOT NULL); GRANT ALL ON written TO app"

_next_run = itertools.count(1)
RUN, WRITER = 10**10, 10**7  # id = run * RUN + writer * WRITER + number of the row


class Row(NamedTuple):
    """A row that was acknowledged."""

    number: int
    sent: float
    moment: float  # when the writer has read that


class Failure(NamedTuple):
    """An error that a client got."""

    moment: float
    sqlstate: str  # or "closed": libpq keeps none of an error with which a connection ends
    text: str
    step: str  # connect or write


def failure_of(error, step):
    """The Failure of an exception of psycopg."""
    text = " ".join(str(error).split())
    return Failure(time.monotonic(), error.sqlstate or "closed", text, step)


class Writer(threading.Thread):
    """One client: writes again after each error, and connects again if its connection is lost."""

    def __init__(self, connect, first_id, pace, ended):
        super().__init__(daemon=True)
        self.acknowledged = []
        self.failures = []
        self.reconnects = 0
        self._connect, self._next_id, self._pace, self._ended = connect, first_id, pace, ended

    def run(self):
        connection = None
        while not self._ended.wait(self._pace):
            step = "connect"
            try:
                if connection is None:
                    connection = self._connect()
                step = "write"
                self._write(connection)
            except psycopg.Error as error:
                self.failures.append(failure_of(error, step))
                if connection is not None and connection.closed:
                    connection = None
                    self.reconnects += 1
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _write(self, connection):
        number, sent = self._next_id, time.monotonic()
        # One that fails may have been written: its number is not used again.
        self._next_id += 1
        connection.execute(f"INSERT INTO written (id) VALUES ({number})")
        self.acknowledged.append(Row(number, sent, time.monotonic()))

    def moments(self, since=0.0):
        """When rows were acknowledged."""
        return [row.moment for row in list(self.acknowledged) if row.moment > since]


class Writers:
    """Some writers at once, in threads of this process."""

    def __init__(self, connect, count=8, pace=0.01):
        self.run_number = next(_next_run)
        self.began = time.monotonic()
        self._ended = threading.Event()
        self._writers = [
            Writer(connect, self.run_number * RUN + number * WRITER, pace, self._ended)
            for number in range(count)
        ]

    def __enter__(self):
        for writer in self._writers:
            writer.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        """End all, each after the row that it writes."""
        self._ended.set()
        for writer in self._writers:
            if writer.ident is not None:
                writer.join(60)
                assert not writer.is_alive(), "a writer still waits for an answer"

    def wait_written(self, since=0.0, rows=3, timeout=20):
        """Wait until each has got so many rows acknowledged since then."""
        try:
            wait_until(
                lambda: all(len(writer.moments(since)) >= rows for writer in self._writers), timeout
            )
        except WaitTimeout:
            raise AssertionError(f"not all write again: {self.summary()}") from None

    # --- questions ------------------------------------------------------------------------------

    def failures(self, since=0.0):
        """All errors."""
        return [
            failure
            for writer in self._writers
            for failure in list(writer.failures)
            if failure.moment > since
        ]

    def failures_of_each(self, since=0.0):
        """How many errors each writer got."""
        return [
            sum(1 for failure in list(writer.failures) if failure.moment > since)
            for writer in self._writers
        ]

    def reconnects(self):
        """How many connections were lost."""
        return sum(writer.reconnects for writer in self._writers)

    def rows(self):
        """How many rows were acknowledged."""
        return sum(len(writer.acknowledged) for writer in self._writers)

    def worst_gap(self, since, until=None):
        """The longest time that a writer was without an acknowledged row, in seconds."""
        until = until or time.monotonic()
        worst = 0.0
        for writer in self._writers:
            moments = [since, *(m for m in writer.moments(since) if m < until), until]
            worst = max(worst, *(b - a for a, b in itertools.pairwise(moments)))
        return worst

    def resumed_after(self, moment):
        """When the last of the writers had a row acknowledged after this moment, in seconds from it;
        infinite if one had none."""
        return max(min(writer.moments(moment), default=math.inf) - moment for writer in self._writers)

    def lost_and_doubled(self, primary, database="main", since=0.0):
        """How many rows that were sent since then, and acknowledged, are not at the primary, and how many
        rows are there twice."""
        low = self.run_number * RUN
        found = primary.ask(
            database,
            "SELECT id, count(*) AS n FROM written WHERE id >= %s AND id < %s GROUP BY id",
            [low, low + RUN],
        )
        there = {row["id"] for row in found}
        acknowledged = {
            row.number
            for writer in self._writers
            for row in writer.acknowledged
            if row.sent > since
        }
        assert acknowledged, "nothing was written"
        return len(acknowledged - there), sum(row["n"] - 1 for row in found)

    def summary(self):
        """Errors by SQLSTATE, for people."""
        counts = {}
        for failure in self.failures():
            key = f"{failure.sqlstate} at {failure.step}: {failure.text[:60]}"
            counts[key] = counts.get(key, 0) + 1
        each = self.failures_of_each()
        return (
            f"{self.rows()} rows, errors of a writer {min(each)} to {max(each)}"
            f" (median {statistics.median(each):g}), {self.reconnects()} reconnects, {counts}"
        )
