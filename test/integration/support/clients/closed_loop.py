# SPDX-License-Identifier: ISC
"""Clients that each send a query as soon as the one before is answered, all in one thread."""

import selectors
import time

from support import wire
from support.clients.raw import RawClient

READY = b"Z\x00\x00\x00\x05I"


class LoopClient:
    """One client of the loop, and what it has had so far."""

    def __init__(self, client, query):
        self.client = client
        self.query = wire.query(query)
        self.done = 0
        self.waits = []  # seconds from each query to its answer
        self.error = None
        self._sent = 0
        self._tail = b""

    def send(self):
        self._sent = time.monotonic()
        self.client.socket.sendall(self.query)

    def receive(self):
        """Read what is there. Returns false once the connection is closed."""
        data = self.client.socket.recv(65536)
        self._tail = (self._tail + data)[-4096:]
        if self._tail.endswith(READY):
            self.waits.append(time.monotonic() - self._sent)
            self.done += 1
            self._tail = b""
            self.send()
        if not data:
            self.error = self._tail.decode(errors="replace") or "closed"
        return bool(data)


def median(values):
    """The median of these values; 0 if there are none."""
    return sorted(values)[len(values) // 2] if values else 0.0


def jain(counts):
    """Jain's index of fairness: 1 when all counts are equal, 1/n when only one is not 0."""
    squares = sum(each * each for each in counts)
    return sum(counts) ** 2 / (len(counts) * squares) if squares else 0.0


def run_clients(address, logins, seconds, query="SELECT 1"):
    """Run one client for each (user, database) for so long; returns them in this order.

    All have logged in before the first query is sent.
    """
    clients = []
    for user, database in logins:
        client = RawClient(address)
        client.login(user=user, database=database)
        clients.append(LoopClient(client, query))
    with selectors.DefaultSelector() as selector:
        for each in clients:
            selector.register(each.client.socket, selectors.EVENT_READ, each)
            each.send()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and selector.get_map():
            for key, _ in selector.select(left):
                if not key.data.receive():
                    selector.unregister(key.fileobj)
    for each in clients:
        each.client.close()
    return clients
