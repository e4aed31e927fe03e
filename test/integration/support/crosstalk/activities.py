# SPDX-License-Identifier: ISC
"""What a client of the crosstalk test does: a function for each activity, and a row of the table."""

import asyncio
from dataclasses import dataclass

from support import wire
from support.crosstalk import prepared_activities, requests
from support.crosstalk.answer_check import WrongAnswer
from support.crosstalk.expected_answers import BOUND, PARSED, Request, body, done, echo, row
from support.crosstalk.transfers import Transfer

MODES = ("session", "transaction", "statement")
ANY, BLOCKS, SESSION, POOLED = MODES, MODES[:2], MODES[:1], MODES[1:]


# --- requests ---------------------------------------------------------------------------------


async def single(client):
    """One request."""
    await client.ask(client.ordinary())


async def pipeline(client):
    """Requests that do not wait for each other."""
    await client.ask(*(client.ordinary() for _ in range(client.draw.randint(2, 15))))


async def overlapping(client):
    """The next batch is sent before the last is answered."""
    batches = [
        [client.ordinary() for _ in range(client.draw.randint(1, 6))]
        for _ in range(client.draw.randint(2, 5))
    ]
    due = []
    for batch in batches:
        await client.send(b"".join(request.data for request in batch))
        due += batch
        for _ in range(client.draw.randint(0, len(due))):
            await client.receive(due.pop(0))
    for request in due:
        await client.receive(request)


async def flushing(client):
    """Answers that are asked for by Flush, before the Sync."""
    token = client.next_token()
    execute = wire.bind([token]) + wire.execute()
    executed = [BOUND, row(token), done("SELECT 1")]
    request = Request(b"", [PARSED, *executed, *executed])
    label = client.draw.choice((token, "echo"))
    await client.send(wire.parse(echo(label, "$1::text")) + execute + wire.flush())
    received = await client.receive_until("C", request)
    await client.send(execute + wire.sync())
    await client.receive(request, received)


async def reading_slowly(client):
    """A large answer that is not read for a while."""
    request = requests.bulky(client.next_token(), client.draw)
    await client.send(request.data)
    client.connection.pause()
    await asyncio.sleep(client.draw.uniform(0, 0.05))
    client.connection.resume()
    await client.receive(request)


async def block(client):
    """A transaction block, step by step."""
    if not await client.ask(requests.begin()):
        return  # it was cancelled
    for _ in range(client.draw.randint(1, 5)):
        await client.ask(client.ordinary())
    await client.ask(client.draw.choice(requests.ENDINGS)())


async def blocks_at_once(client):
    """Transaction blocks in a pipeline. A cancelled BEGIN would leave the rest without a block."""
    client.without_cancels()
    batch = []
    for _ in range(client.draw.randint(1, 3)):
        batch.append(requests.begin())
        batch += [client.ordinary() for _ in range(client.draw.randint(1, 4))]
        batch.append(client.draw.choice(requests.ENDINGS)())
        batch += [client.ordinary() for _ in range(client.draw.randint(0, 2))]
    await client.ask(*batch)


async def transfer_at_once(client):
    """A money transfer in one request, which may fail at its end; others may be sent with it."""
    transfer = Transfer(client.next_token(), client.draw)
    fails = client.draw.random() < 0.2
    request = client.draw.choice((transfer.simple, transfer.batch))(fails)
    before = [client.ordinary() for _ in range(client.draw.choice((0, 0, 3)))]
    behind = [client.ordinary() for _ in range(client.draw.choice((0, 0, 3)))]
    client.run.ledger.start(transfer.token)
    await client.send(b"".join(each.data for each in [*before, request, *behind]))
    for each in [*before, request, *behind]:
        well = await client.receive(each)
        if each is request:
            client.run.ledger.settle(transfer.token, well)


async def transfer_in_block(client):
    """A money transfer in a transaction block, step by step or in a pipeline."""
    transfer = Transfer(client.next_token(), client.draw)
    steps = [requests.begin(), *transfer.steps(client.draw)]
    if client.draw.random() < 0.2:
        steps.insert(client.draw.randint(1, len(steps)), client.ordinary())
    steps.append(client.draw.choice(requests.ENDINGS)())
    client.run.ledger.start(transfer.token)
    if client.draw.random() < 0.4:
        client.without_cancels()
        well = await client.ask(*steps)
    else:
        for step in steps:
            well = await client.ask(step)
            if step is steps[0] and client.status == "I":
                break  # the BEGIN was cancelled
    committed = well and client.status == "I" and steps[-1].answer[-1] == done("COMMIT")
    client.run.ledger.settle(transfer.token, committed)


async def copy_rows(client):
    """Rows that are all committed in the end, or none of them."""
    token = client.next_token()
    lines = [f"{token}\t1\t2\t0\n".encode()] * client.draw.randint(1, 60)
    end = [done(f"COPY {len(lines)}")]
    request = requests.copy_in(lines, wire.copy_done(), end, client.draw)
    client.run.ledger.start(token, len(lines))
    client.run.ledger.settle(token, await client.ask(request))


async def copy_patiently(client):
    """Rows that are sent when the server has asked for them, with the Syncs of some drivers."""
    client.without_cancels()
    token = client.next_token()
    count = client.draw.randint(1, 20)
    start, begun, end = wire.query(requests.COPY_IN), [], wire.copy_done()
    if client.draw.random() < 0.5:
        start = wire.parse(requests.COPY_IN) + wire.bind() + wire.execute()
        start += client.draw.choice((wire.flush(), wire.sync()))
        begun, end = [PARSED, BOUND], end + wire.sync()
    request = Request(b"", [*begun, ("G", None), done(f"COPY {count}")])
    client.run.ledger.start(token, count)
    await client.send(start)
    received = await client.receive_until("G", request)
    for _ in range(count):
        await client.send(wire.copy_data(f"{token}\t1\t2\t0\n".encode()))
    await client.send(end)
    client.run.ledger.settle(token, await client.receive(request, received))


# --- cancel requests --------------------------------------------------------------------------


async def many_cancels(client):
    """Many cancel requests for one query, with the right key and with others."""
    client.without_cancels()
    own = client.connection.key
    forged = own[:4] + bytes(each ^ client.draw.randint(1, 255) for each in own[4:])
    others = [forged, *client.former_keys()]
    first = requests.simple(client.next_token())
    rest = [
        requests.slow(client.next_token(), client.draw) for _ in range(client.draw.randint(1, 3))
    ]
    await client.send(b"".join(request.data for request in [first, *rest]))
    await client.receive(first)  # now the client has a server
    for _ in range(client.draw.randint(1, 6)):
        key = own if client.draw.random() < 0.5 else client.draw.choice(others)
        client.cancel_soon(key, client.draw.uniform(0, 0.02), hits=key == own)
    for request in rest:
        await client.receive(request)


async def invalid_keys(client):
    """Cancel requests that must hit no query: outdated, cut and random keys."""
    client.without_cancels()
    drawn = bytes(client.draw.randrange(256) for _ in range(8))
    for key in [*client.former_keys(), drawn, client.connection.key[:4] + drawn[4:]]:
        client.cancel_soon(key, client.draw.uniform(0, 0.01))
    await client.ask(requests.slow(client.next_token(), client.draw), client.ordinary())


async def forbidden_block(client):
    """A transaction block in statement mode: it closes this client, and no other."""
    client.without_cancels()
    batch = [requests.begin(), client.ordinary()][:client.draw.randint(1, 2)]
    await client.send(b"".join(request.data for request in batch))
    await client.receive(Request(b"", batch[0].answer))
    raise WrongAnswer("was let into a transaction block")


# --- session state ----------------------------------------------------------------------------


async def listening(client):
    """Notifications of the client's own channel."""
    client.without_cancels()
    token, channel = client.next_token(), f"channel{client.number}"
    await client.ask(Request(wire.query(f"LISTEN {channel}"), [done("LISTEN")]))
    notify = Request(wire.query(f"NOTIFY {channel}, '{token}'"), [done("NOTIFY")])
    await client.send(notify.data)
    received = await client.receive_until("A", notify)  # before its own ReadyForQuery
    if wire.text(token) not in received[-1].body:
        raise WrongAnswer(f"received a notification {received[-1].body}")
    await client.receive(notify, received)


STATE_LEFT = """
SELECT coalesce(current_setting('talk.owner', true), '')
    || coalesce(to_regclass('pg_temp.mine')::text, '') AS left
"""


async def clean_session(client):
    """A new session has no state of another client's; leave some state of this one behind."""
    client.without_cancels()
    token = client.next_token()
    if client.login_number != client.marked:
        client.marked = client.login_number
        nothing = [("T", None), ("D", body(wire.data_row(""))), done("SELECT 1")]
        await client.ask(Request(wire.query(STATE_LEFT), nothing))
        create = wire.query("CREATE TEMP TABLE mine (token text)")
        await client.ask(Request(create, [done("CREATE TABLE")]))
    await client.ask(Request(wire.query(f"SET talk.owner = '{token}'"), [done("SET")]))
    shown = [("T", None), ("D", body(wire.data_row(token))), done("SHOW")]
    await client.ask(Request(wire.query("SHOW talk.owner"), shown))


# --- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Activity:
    """How often and in which modes an activity is chosen."""

    weight: int
    function: object
    modes: tuple = ANY
    needs: str = ""  # an attribute of Mix that must be true, except in session mode


ACTIVITIES = (
    Activity(20, single),
    Activity(15, pipeline),
    Activity(6, overlapping),
    Activity(5, flushing),
    Activity(2, reading_slowly),
    Activity(6, block, BLOCKS),
    Activity(4, blocks_at_once, BLOCKS),
    Activity(10, transfer_at_once),
    Activity(10, transfer_in_block, BLOCKS),
    Activity(4, copy_rows),
    Activity(4, copy_patiently),
    Activity(4, many_cancels),
    Activity(2, invalid_keys),
    Activity(1, forbidden_block, ("statement",)),
    Activity(20, prepared_activities.prepared, ANY, "prepared"),
    Activity(6, prepared_activities.prepared_and_disturbed, ANY, "prepared"),
    Activity(4, prepared_activities.prepared_in_block, BLOCKS, "prepared"),
    Activity(4, prepared_activities.prepared_and_flushed, ANY, "prepared"),
    Activity(4, prepared_activities.altered, POOLED, "prepared"),
    Activity(8, prepared_activities.parse_and_bind_later, ANY, "unnamed"),
    Activity(4, prepared_activities.parse_and_bind_in_block, BLOCKS),
    Activity(3, listening, SESSION),
    Activity(3, clean_session, SESSION),
)


def for_mix(mix):
    """The activities of a mix, and their weights."""
    mine = [
        act for act in ACTIVITIES
        if mix.mode in act.modes
        and (mix.mode == "session" or not act.needs or getattr(mix, act.needs))
    ]
    return [act.function for act in mine], [act.weight for act in mine]
