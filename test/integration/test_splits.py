# SPDX-License-Identifier: ISC
"""Messages of any length arrive in any parts, by TCP, TLS and Unix sockets, and each is answered.

A part is sent when the pooler has received the one before it, so the seed decides all that
happens. To run longer, or to repeat a failure with the seed that it printed:
PGUSHER_SPLITS_SECONDS, PGUSHER_SPLITS_SEED.
"""

import os
import random
import ssl
import time

import pytest

from support import wire
from support.clients.unread import unread_by_peer
from support.process import HOST, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import Cluster

SINK = "CREATE UNLOGGED TABLE split_sink (token text); GRANT ALL ON split_sink TO PUBLIC"
SUM = 177  # the oid of int4pl()

# Lengths at which something changes: buffers of the pooler, records of TLS, windows.
LENGTHS = (64, 100, 2048, 4096, 16384, 17408, 34816, 65536, 69632, 131072, 196608)

# pool_mode, pkt_buf, tcp_socket_buffer, max_prepared_statements
SETTINGS = [
    ("transaction", 4096, 0, 2),
    ("transaction", 100, 4096, 200),
    ("statement", 200_000, 0, 1),
    ("session", 4096, 16384, 200),
]


@pytest.fixture(scope="module")
def authority():
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def pair(authority):
    """A certificate and its key, for PostgreSQL and the daemon."""
    return authority.issue("any", f"IP:{HOST}")


@pytest.fixture(scope="module")
def tls_cluster(pair):
    made = Cluster({"ssl": "on", "ssl_cert_file": f"'{pair[0]}'", "ssl_key_file": f"'{pair[1]}'"})
    made.ask("main", SINK)
    yield made
    made.destroy()


class Talker:
    """A client that knows its statements, and the answers to what it sends."""

    def __init__(self, client, draw, number, mode):
        self.client, self.draw, self.number, self.mode = client, draw, number, mode
        self.tokens = 0
        self.unnamed = None
        self.names = {}
        self.may_fail = True

    def token(self):
        """A word that is in no other request."""
        self.tokens += 1
        return f"{self.number}.{self.tokens}"

    def length(self):
        """Mostly 0, else something near one of LENGTHS."""
        if self.draw.random() < 0.7:
            return 0
        return max(0, self.draw.choice(LENGTHS) + self.draw.randint(-20, 20))

    # What is sent: (data, types of the answer, rows)

    def simple(self):
        token = self.token()
        sql = f"/*{'x' * self.length()}*/SELECT '{token}'"
        self.unnamed = None
        return wire.query(sql), "TDCZ", [(token,)]

    def failing(self):
        self.unnamed = None
        return wire.query("SELECT 1 / 0"), "EZ", []

    def call(self):
        return wire.function_call(SUM, [self.tokens, 1]), "VZ", []

    def copy(self):
        self.unnamed = None
        data = wire.copy_data(f"{self.token()}{'x' * self.length()}\n".encode())
        return wire.query("COPY split_sink FROM STDIN") + data + wire.copy_done(), "GCZ", []

    def parse(self, name):
        token = self.token()
        if name:
            self.names[name] = token
        else:
            self.unnamed = token
        return wire.parse(f"/*{'z' * self.length()}*/SELECT '{token}/' || $1::text", name), "1", []

    def run(self, name, text):
        value = self.token() + "v" * self.length()
        described, types = (wire.describe(), "2TDC") if self.draw.random() < 0.5 else (b"", "2DC")
        data = wire.bind((value,), name) + described + wire.execute()
        return data, types, [(f"{text}/{value}",)]

    def close(self, name):
        del self.names[name]
        return wire.close("S", name), "3", []

    def batch_parts(self):
        """Messages of the extended protocol before their Sync."""
        for _ in range(self.draw.randint(1, 4)):
            name = self.draw.choice(("", "a", "b", "c"))
            if name in self.names and self.draw.random() < 0.3:
                yield self.close(name)
            if name not in self.names:
                yield self.parse(name)
            if self.draw.random() < 0.8:
                yield self.run(name, self.names[name] if name else self.unnamed)
            if self.draw.random() < 0.2:
                yield wire.flush(), "", []
        if self.unnamed is not None and self.draw.random() < 0.5:
            yield self.run("", self.unnamed)
        if self.may_fail and self.draw.random() < 0.2:
            yield wire.bind((), "unknown") + wire.parse("SELECT 'skipped'", "d"), "E", []

    def batch(self):
        data, types, rows = zip(*self.batch_parts(), (wire.sync(), "Z", []))
        return b"".join(data), "".join(types), sum(rows, [])

    def later(self):
        """A Bind of a statement from an earlier batch."""
        known = {**self.names, **({"": self.unnamed} if self.unnamed is not None else {})}
        if not known:
            return self.batch()
        data, types, rows = self.run(*self.draw.choice(sorted(known.items())))
        return data + wire.sync(), types + "Z", rows

    def requests(self):
        """Some requests in a pipeline, perhaps as a transaction block, which no error may end."""
        kinds = (self.simple, self.simple, self.call, self.copy, *(self.batch, self.later) * 4)
        block = self.mode != "statement" and self.draw.random() < 0.3
        self.may_fail = not block
        if block:
            self.unnamed = None
        else:
            kinds += (self.failing,)
        made = [self.draw.choice(kinds)() for _ in range(self.draw.randint(1, 3))]
        if block:
            self.unnamed = None
            return [(wire.query("BEGIN"), "CZ", []), *made, (wire.query("COMMIT"), "CZ", [])]
        return made

    # How it is sent

    def cuts(self, size):
        """Where to cut: anywhere, or near one of LENGTHS from the beginning or the end."""
        for _ in range(self.draw.randint(0, 3)):
            near = self.draw.choice((5, *LENGTHS)) + self.draw.randint(-6, 6)
            at = self.draw.choice((near, size - near, self.draw.randrange(size)))
            if 0 < at < size:
                yield at

    def talk(self):
        """Send requests in parts, and check their answers."""
        requests = self.requests()
        data = b"".join(request[0] for request in requests)
        cuts = sorted({0, *self.cuts(len(data)), len(data)})
        try:
            for start, end in zip(cuts, cuts[1:]):
                wait_until(
                    lambda: unread_by_peer(self.client.socket) == 0, 15, "the last part to be received",
                    interval=0.0005,
                )
                self.client.send(data[start:end])
            for _, types, rows in requests:
                result = self.client.result()
                assert (result.types, result.rows) == (types, rows)
        except Exception as error:
            said = [(request[0][:60], *request[1:]) for request in requests]
            raise AssertionError(f"client {self.number}, cut at {cuts}: {said}") from error


def encrypted(client, authority):
    """The same client behind a handshake of TLS."""
    client.send(wire.ssl_request())
    assert client.read_bytes(1) == b"S"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    client.socket = context.wrap_socket(client.socket, server_hostname=HOST)
    return client


@pytest.mark.once
@pytest.mark.parametrize("mode, pkt_buf, buffer, statements", SETTINGS)
def test_messages_arrive_in_any_parts(
    new_pooler, authority, pair, tls_cluster, mode, pkt_buf, buffer, statements
):
    pooler = new_pooler(
        {
            "pool_mode": mode,
            "pkt_buf": pkt_buf,
            "tcp_socket_buffer": buffer,
            "max_prepared_statements": statements,
            "default_pool_size": 3 if mode == "session" else 1,
            "client_tls_sslmode": "allow",
            "client_tls_cert_file": pair[0],
            "client_tls_key_file": pair[1],
            "server_tls_sslmode": "require",
        },
        databases={"main": f"host={HOST} port={tls_cluster.port}"},
    )
    seed = os.environ.get("PGUSHER_SPLITS_SEED", os.urandom(4).hex())
    until = time.monotonic() + float(os.environ.get("PGUSHER_SPLITS_SECONDS", 2))
    draw = random.Random(f"{seed}/{mode}/{pkt_buf}")
    clients = [pooler.raw(), encrypted(pooler.raw(), authority), pooler.raw(unix=True)]
    talkers = [
        Talker(client.login(), draw, number, mode) for number, client in enumerate(clients)
    ]
    try:
        while time.monotonic() < until:
            draw.choice(talkers).talk()
    except AssertionError as error:
        raise AssertionError(f"PGUSHER_SPLITS_SEED={seed}") from error
