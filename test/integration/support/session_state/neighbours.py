# SPDX-License-Identifier: ISC
"""Clients that change nothing and look, from transaction to transaction, for state of others.

They use the pool of a program under test while that works, so that its servers change, and they find
what it leaves on them.
"""

import threading

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.session_state.soak_state import SCAN


class Neighbours:
    """A context: as many clients as asked for look until its end, which fails if one saw anything."""

    def __init__(self, count, pooler, direct, **login):
        """The address of the pooler, and of the PostgreSQL itself, which tells what is usual."""
        self._threads = [threading.Thread(target=self._look, args=(pooler,)) for _ in range(count)]
        self._login = login
        self._stop = threading.Event()
        self.looks = 0
        self.failures = []
        with RawClient(direct).login(**login) as client:
            self._usual = _seen(client.query(SCAN))

    def __enter__(self):
        for each in self._threads:
            each.start()
        return self

    def look_at_all(self, address, servers):
        """Look at this many servers at once, which is each of the pool's."""
        clients = [RawClient(address).login(**self._login) for _ in range(servers)]
        for each in clients:
            each.query("BEGIN")
            assert _seen(each.query(SCAN)) == self._usual
        for each in clients:
            each.leave()

    def __exit__(self, kind, *_):
        self._stop.set()
        for each in self._threads:
            each.join()
        if kind is None:
            assert not self.failures, self.failures
            assert self.looks, "no neighbour has looked"

    def _look(self, address):
        try:
            with RawClient(address, timeout=60).login(**self._login) as client:
                while not self._stop.wait(0.005) and not self.failures:
                    self._transaction(client)
                client.leave()
        except (AssertionError, ServerError, Closed, OSError) as error:
            self.failures.append(f"{type(error).__name__}: {error}")

    def _transaction(self, client):
        client.query("BEGIN")
        result = client.query(SCAN)
        client.query("COMMIT")
        seen = _seen(result)
        if seen != self._usual:
            self.failures.append(f"foreign: {sorted(seen - self._usual)}")
        if result.notifications:
            self.failures.append(f"a foreign notification: {result.notifications}")
        self.looks += 1


def _seen(result):
    """The rows of a scan that count. A pool's server may listen for all clients, and has what they
    prepared under names of the pooler. A custom parameter is empty, no longer NULL, on a server that
    has ever had a value for it.
    """
    rows = {tuple(value or "" for value in row) for row in result.rows}
    return {
        row for row in rows
        if row[0] != "channels" and row[:1] + (row[1][:10],) != ("prepared", "PGBOUNCER_")
    }  # fmt: skip
