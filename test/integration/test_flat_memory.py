# SPDX-License-Identifier: ISC
"""Messages far larger than the daemon's memory limits pass through it: rows, parameters, COPY."""

import hashlib
import os
import struct

import pytest

from support import wire
from support.process import wait_until
from support.servers.pooler import is_sanitized

# PostgreSQL's largest value is four times this, which would take too long here.
SIZE = int(os.environ.get("PGUSHER_TEST_LARGE", 256_000_000))
PIECE = 1_000_000
GROWTH = 4_000_000


class Watch:
    """Asserts at its end that the daemon's memory never grew by more than GROWTH."""

    def __init__(self, pooler):
        self._pooler = pooler

    def __enter__(self):
        client = self._pooler.client()
        client.query("SELECT 1")
        client.leave()
        with open(f"/proc/{self._pooler.process.pid}/clear_refs", "w") as file:
            file.write("5")  # resets the peak
        self._before = self._peak()
        return self

    def __exit__(self, kind, *_):
        if kind is None and not is_sanitized():
            assert self._peak() - self._before < GROWTH

    def _peak(self):
        with open(f"/proc/{self._pooler.process.pid}/status") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


@pytest.fixture
def watched(new_pooler):
    """A pooler of one server. Its peak of memory is checked when the test has passed."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    with Watch(pooler):
        yield pooler


@pytest.fixture
def client(watched):
    """A client with a long time limit."""
    client = watched.client()
    client.timeout = 120
    return client


def skip_message(client, kind):
    """Read one message of this kind without keeping its body: its length, and its digest."""
    head = client.read_bytes(5)
    assert head[:1] == kind.encode()
    length = left = struct.unpack("!I", head[1:])[0] - 4
    digest = hashlib.sha256()
    while left:
        piece = client.read_bytes(min(left, PIECE))
        digest.update(piece)
        left -= len(piece)
    return length, digest.hexdigest()


def digest_of(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def test_a_row_of_any_size_passes(client):
    client.send(wire.query(f"SELECT repeat('x', {SIZE})"))
    assert client.read().type == "T"
    length, digest = skip_message(client, "D")
    assert length == SIZE + 6
    head = struct.pack("!HI", 1, SIZE)
    assert digest == digest_of(head, *[b"x" * PIECE] * (SIZE // PIECE))
    assert client.checked().types == "CZ"


def test_a_parameter_of_any_size_passes(client):
    client.send(wire.parse("SELECT length($1), md5($1) = md5(repeat('p', length($1)))"))
    body = wire.text("") * 2 + struct.pack("!HHI", 0, 1, SIZE)
    head = b"B" + struct.pack("!I", 4 + len(body) + SIZE + 2) + body
    pieces = (b"p" * PIECE for _ in range(SIZE // PIECE))
    client.send(head)
    for piece in pieces:
        client.send(piece)
    client.send(struct.pack("!H", 0), wire.execute(), wire.sync())
    assert client.checked().rows == [(str(SIZE), "t")]
    client.leave()


@pytest.mark.parametrize("size", [100, 60_000, SIZE // 4])
def test_a_copy_in_of_any_size_passes(client, size):
    """In many small messages, in fewer large ones, and in four."""
    total = SIZE if size > 100 else SIZE // 20
    client.query("BEGIN")
    client.query("CREATE TEMP TABLE copied (data text) ON COMMIT DROP")
    client.send(wire.query("COPY copied FROM STDIN"))
    assert client.read().type == "G"
    line = b"c" * (size - 1) + b"\n"
    batch = wire.copy_data(line) * max(1, PIECE // size)
    for _ in range(total // size // max(1, PIECE // size)):
        client.send(batch)
    client.send(wire.copy_done())
    count = total // size // max(1, PIECE // size) * max(1, PIECE // size)
    assert client.checked().tag == f"COPY {count}"
    assert client.value("SELECT sum(length(data)) FROM copied") == str(count * (size - 1))
    client.query("ROLLBACK")


def test_a_copy_out_of_any_size_passes(client):
    rows = SIZE // 100_000
    client.send(wire.query(f"COPY (SELECT repeat('o', 99999) FROM generate_series(1, {rows})) TO STDOUT"))
    assert client.read().type == "H"
    expected = (100_000, digest_of(b"o" * 99999 + b"\n"))
    for _ in range(rows):
        assert skip_message(client, "d") == expected
    assert client.checked().types == "cCZ"


def test_an_unread_answer_waits_at_the_server_not_in_the_pooler(watched, client):
    """The client does not read: the rest of the answer stays at the server."""
    client.send(wire.query(f"SELECT repeat('w', 10000) FROM generate_series(1, {SIZE // 10000})"))
    assert client.read().type == "T"
    wait_until(lambda: watched.cluster.backends(wait_event="ClientWrite"), what="the server to wait")
    result = client.checked()
    assert len(result.rows) == SIZE // 10000
