# SPDX-License-Identifier: ISC
"""The log of slow queries counts every byte of rows that clients get, however messages are sent."""

import random

import pytest

from support import wire


def piece(choice, number):
    """Some messages, and how many of them are answered with ReadyForQuery."""
    name = choice.choice("ab")
    kind = choice.randrange(9)
    if kind < 2:
        return [wire.bind(statement=name), wire.describe("P", "")][: kind + 1] + [wire.execute()], 0
    if kind == 2:
        return [wire.describe("S", name)], 0
    if kind == 3:
        return [wire.parse(f"SELECT {number}, repeat('y', {number * 40})"), wire.bind(), wire.execute()], 0
    if kind == 4:
        return [wire.sync()], 1
    sql = (
        f"SELECT {number}; SELECT repeat('z', {number}) FROM generate_series(1, {number * 4})",
        f"SELECT {number} / 0",
        f"COPY (SELECT 'abc' FROM generate_series(1, {number * 10})) TO STDOUT",
        # pgusher sets the startup parameters again, by a query of its own.
        f"SET timezone = 'Asia/Tokyo'; SELECT {number}; RESET ALL; SELECT 'after'",
    )[kind - 5]
    return [wire.sync(), wire.query(sql)], 2


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_all_bytes_of_pipelines_are_counted(new_pooler, mode):
    choice = random.Random(15)
    pooler = new_pooler({"pool_mode": mode, "log_min_duration": 0, "log_slow_rate": 0})
    clients = [pooler.client(timezone="Europe/Paris"), pooler.client(options="-c statement_timeout=50s")]
    for client in clients:
        client.send(*[wire.parse(f"SELECT '{name}', 1", name) + wire.sync() for name in "ab"])
        client.read_until("Z")
        client.read_until("Z")
    expected = 0
    for _ in range(20):
        client = choice.choice(clients)
        pieces = [piece(choice, choice.randrange(1, 700)) for _ in range(choice.randrange(1, 7))]
        data = b"".join(message for messages, _ in pieces for message in messages) + wire.sync()
        # Often in two parts.
        cut = choice.randrange(2 * len(data))
        client.send(data[:cut])
        pooler.show("LISTS")
        client.send(data[cut:])
        for _ in range(sum(answers for _, answers in pieces) + 1):
            expected += sum(5 + len(got.body) for got in client.read_until("Z") if got.type in "Dd")
    assert sum(int(row["bytes"]) for row in pooler.show("SLOW")) == expected > 100_000
