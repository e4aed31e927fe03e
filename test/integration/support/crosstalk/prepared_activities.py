# SPDX-License-Identifier: ISC
"""Activities with prepared statements, named and unnamed."""

import asyncio

from support import wire
from support.crosstalk import requests
from support.crosstalk.expected_answers import (
    BOUND,
    CLOSED,
    DESCRIBED,
    PARSED,
    QUIET,
    Fault,
    Request,
    done,
    echo,
    head,
    row,
)

NAMES = [f"s{number}" for number in range(8)]


def prepare(client, name):
    """Parse under a name, with a text that many clients use or one of the client's own."""
    label = client.draw.choice((f"shared{client.draw.randrange(12)}", client.next_token()))
    client.names[name] = label
    described = client.draw.random() < 0.3
    data, answer = wire.parse(echo(label, "$1::text"), name), [PARSED]
    if described:
        data += wire.describe("S", name)
        answer += [DESCRIBED, head(label)]
    return data, answer


def use(client, name):
    """Bind and Execute by name."""
    token, label = client.next_token(), client.names[name]
    data = wire.bind([token], name) + wire.describe() + wire.execute()
    return data, [BOUND, head(label), row(token), done("SELECT 1")]


def forget(client, name):
    del client.names[name]
    return wire.close("S", name), [CLOSED]


def refuse(client, name):
    """A Parse that fails and leaves its name free; or the use of an unknown name."""
    if client.draw.random() < 0.5:
        token = client.next_token()
        fault = Fault("42703", f'column "{token}" does not exist')
        return wire.parse(f'SELECT "{token}"', name), [("E", fault)]
    return wire.bind(["never"], "never") + wire.execute(), [("E", Fault("26000", None))]


def named(client):
    """A request of one or more steps with named statements."""
    data, answer = b"", []
    for _ in range(client.draw.randint(1, 4)):
        name = client.draw.choice(NAMES)
        if name in client.names:
            step = forget if client.draw.random() < 0.2 else use
        else:
            step = refuse if client.draw.random() < 0.2 else prepare
        more = step(client, name)
        data, answer = data + more[0], answer + more[1]
        if answer[-1][0] == "E":
            data += skipped(client)
            break
    return Request(data + wire.sync(), answer)


def skipped(client):
    """Messages behind an error, which the server skips.

    No Close: a client that closes a name and uses it before the answer has arrived causes its own
    error.
    """
    names, data = dict(client.names), b""
    for _ in range(client.draw.randint(0, 3)):
        name = client.draw.choice(NAMES)
        data += (use if name in client.names else prepare)(client, name)[0]
    client.names = names
    return data


def wipe(client):
    """Close all names at once."""
    client.names.clear()
    sql = client.draw.choice(("DEALLOCATE ALL", "DISCARD ALL"))
    if any(client.parameters[name] != value for name, value in QUIET.items()):
        sql = "DEALLOCATE ALL"  # the other resets parameters that only the pooler knows
    return Request(wire.query(sql), [done(sql)])


async def prepared(client):
    """Statements by name: the same names as other clients with other texts, and the other way
    round."""
    client.without_cancels()
    batch = []
    for _ in range(client.draw.randint(1, 5)):
        batch.append((wipe if client.draw.random() < 0.03 else named)(client))
    together = client.draw.random() < 0.5
    for each in [batch] if together else [[request] for request in batch]:
        await client.ask(*each)


async def prepared_and_disturbed(client):
    """Statements by name and cancel requests; their effect is unknown, so all names are closed
    then."""
    for _ in range(client.draw.randint(1, 4)):
        await client.ask(named(client))
        while client.canceled:
            for name in NAMES:
                client.names.pop(name, None)
            data = b"".join(wire.close("S", name) for name in NAMES)
            await client.ask(Request(data + wire.sync(), [CLOSED] * len(NAMES)))


async def prepared_in_block(client):
    """Statements by name in a transaction; a rollback does not close them."""
    client.without_cancels()
    await client.ask(requests.begin())
    for _ in range(client.draw.randint(1, 5)):
        if client.status == "T":
            await client.ask(named(client) if client.draw.random() < 0.7 else client.ordinary())
    await client.ask(client.draw.choice(requests.ENDINGS)())


async def prepared_and_flushed(client):
    """Each answer is asked for with Flush, and received before the next step."""
    client.without_cancels()
    name = client.draw.choice(NAMES)
    closed = forget(client, name) if name in client.names else (b"", [])
    steps = [closed, prepare(client, name), use(client, name), use(client, name)]
    received, request = [], Request(b"", [])
    for data, answer in steps:
        request.answer.extend(answer)
        await client.send(data + wire.flush())
        while len(received) < len(request.answer) and "E" not in (each.type for each in received):
            await client.receive_one(request, received)
    await client.send(wire.sync())
    await client.receive(request, received)


async def altered(client):
    """A table changes its columns under prepared statements: the client does not notice.

    A batch in pieces would fail: it cannot be replayed when its first piece has failed.
    """
    client.without_cancels()
    client.chops = False
    for _ in range(client.draw.randint(1, 4)):
        data, answer = b"", []
        if "shape" in client.names and client.draw.random() < 0.2:
            data, answer = forget(client, "shape")
        if "shape" not in client.names:
            client.names["shape"] = None
            data += wire.parse("SELECT * FROM talk_shape", "shape")
            answer.append(PARSED)
        data += wire.bind((), "shape") + wire.describe() + wire.execute() + wire.sync()
        answer += [BOUND, ("T", None), ("D", None), done("SELECT 1")]
        await client.ask(Request(data, answer))


async def parse_and_bind_later(client):
    """The unnamed statement with a Sync between its Parse and its Bind, and perhaps some time."""
    client.without_cancels()
    label, token = client.next_token(), client.next_token()
    parse = wire.parse(echo(label, "$1::text")) + wire.describe("S") + wire.sync()
    await client.ask(Request(parse, [PARSED, DESCRIBED, head(label)]))
    await asyncio.sleep(client.draw.choice((0, client.draw.uniform(0, 0.01))))
    for _ in range(client.draw.randint(1, 3)):
        bind = wire.bind([token]) + wire.execute() + wire.sync()
        await client.ask(Request(bind, [BOUND, row(token), done("SELECT 1")]))


async def parse_and_bind_in_block(client):
    """The same in a transaction, which keeps its server."""
    client.without_cancels()
    await client.ask(requests.begin())
    await parse_and_bind_later(client)
    await client.ask(requests.commit())
