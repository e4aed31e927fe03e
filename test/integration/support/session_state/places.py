# SPDX-License-Identifier: ISC
"""Where clients of the table connect to: a pooler with two servers for each user, or PostgreSQL."""

import contextlib
import itertools
import time

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.servers.pooler import Pooler
from support.session_state import kinds
from support.session_state.kinds import SUPERUSER, Heard

TIMEOUT = 30.0  # ends a test that hangs; a busy machine may take 10 s for an answer
PATIENCE = 5.0  # seconds
SERVERS = 2


def one_value(result):
    """The first value of a result; ERROR and the SQLSTATE if it failed, "" for NULL."""
    if result.error:
        return f"ERROR {result.error.sqlstate}"
    return result.value or ""


class Place:
    """An address, and the clients that stay connected to it."""

    def __init__(self, address, cluster, pool_mode="transaction"):
        self.address = address
        self.cluster = cluster
        self.pool_mode = pool_mode
        self._watchers = {}
        self._notifier = None
        self._witness = None
        self._channels = set()
        self._tokens = itertools.count()

    # Clients

    def client(self, user="app", **start):
        """A client that has logged in."""
        return RawClient(self.address, timeout=TIMEOUT).login(user, **start)

    def watchers(self, user):
        """As many clients as there are servers, which change nothing."""
        if user not in self._watchers:
            self._watchers[user] = [self.client(user) for _ in range(SERVERS)]
        return self._watchers[user]

    def blocks(self):
        """Whether transaction blocks are possible."""
        return self.pool_mode != "statement"

    def freshen(self):
        """Start anew after a failure: what the servers have then is unknown."""
        for each in itertools.chain(*self._watchers.values()):
            each.close()
        self._watchers.clear()

    def close(self):
        """Disconnect all."""
        self.freshen()
        for each in (self._notifier, self._witness):
            if each is not None:
                each.close()

    # What a client sees

    def look(self, client, what, expected=None):
        """What the client sees by a query, or hears."""
        if isinstance(what, Heard):
            return self._listen(client, what.channel, expected == "heard")
        client.send(wire.query(what))
        return one_value(client.result())

    def _listen(self, client, channel, patiently):
        """Whether the client hears what is sent to the channel: soon after another session has, with
        the answer to a query, or patiently after several: another backend has to get it first.
        """
        token = f"token {next(self._tokens)}"
        self._let_witness_hear(channel)
        self._notifier.query(f"NOTIFY {_quoted(channel)}, '{token}'")
        while token.encode() not in self._witness.read_until("A")[-1].body:
            pass
        tries, until = 0, time.monotonic() + (PATIENCE if patiently else 0)
        while tries < 2 or time.monotonic() < until:
            tries += 1
            client.send(wire.query("SELECT 1"))
            if any(token.encode() in each for each in client.result().notifications):
                return "heard"
        return "silent"

    def _let_witness_hear(self, channel):
        if self._witness is None:
            direct = (self.cluster.host, self.cluster.port)
            self._notifier, self._witness = (RawClient(direct).login(SUPERUSER) for _ in range(2))
        if channel not in self._channels:
            self._channels.add(channel)
            self._witness.query(f"LISTEN {_quoted(channel)}")


class PoolerPlace(Place):
    """A pooler with two servers for each user, of which the one used last is used first."""

    # The server of a client that has just left may still be pinned when the next one's is.
    SETTINGS = {"default_pool_size": SERVERS, "max_pinned": "100%", "query_wait_notify": 0,
                "session_functions_refresh": 60}

    def __init__(self, pooler, cluster, pool_mode="transaction"):
        super().__init__(pooler.address, cluster, pool_mode)
        self.pooler = pooler

    def freshen(self):
        super().freshen()
        with contextlib.suppress(ServerError, Closed, OSError):
            self.pooler.command("KILL main")
        with contextlib.suppress(ServerError, Closed, OSError):
            self.pooler.command("RESUME main")


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


@contextlib.contextmanager
def pooler(cluster, pool_mode, **settings):
    """A pooler for the table."""
    daemon = Pooler(
        {**PoolerPlace.SETTINGS, "pool_mode": pool_mode, **settings}, cluster=cluster,
        auth={SUPERUSER: ""},
    )
    try:
        place = PoolerPlace(daemon.start(), cluster, pool_mode)
        yield place
        place.close()
    finally:
        daemon.destroy()


@contextlib.contextmanager
def objects(cluster):
    """The cluster with what the kinds need in it."""
    cluster.ask("main", kinds.DROP_OBJECTS)
    cluster.ask("main", kinds.OBJECTS)
    try:
        yield cluster
    finally:
        cluster.clear()
        cluster.ask("main", kinds.DROP_OBJECTS)
