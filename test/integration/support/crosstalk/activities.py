# SPDX-License-Identifier: ISC
"""What a client of the crosstalk test does: a function for each activity, and a row of the table."""

import asyncio
from dataclasses import dataclass

from support import wire
from support.crosstalk import prepared_activities, requests
from support.crosstalk.answer_check import Wrong
from support.crosstalk.expected_answers import BOUND, PARSED, Phrase, body, done, echo, row
from support.crosstalk.transfers import Transfer

MODES = ("session", "transaction", "statement")
ANY, BLOCKS, SESSION, POOLED = MODES, MODES[:2], MODES[:1], MODES[1:]


# --- requests ---------------------------------------------------------------------------------


async def single(client):
    """One request."""
    await client.say(client.ordinary())


async def pipeline(client):
    """Requests that do not wait for each other."""
    await client.say(*(client.ordinary() for _ in range(client.draw.randint(2, 15))))


async def overlapping(client):
    """The next batch is sent before the last is answered."""
    batches = [
        [client.ordinary() for _ in range(client.draw.randint(1, 6))]
        for _ in range(client.draw.randint(2, 5))
    ]
    due = []
    for batch in batches:
        await client.send(b"".join(phrase.data for phrase in batch))
        due += batch
        for _ in range(client.draw.randint(0, len(due))):
            await client.hear(due.pop(0))
    for phrase in due:
        await client.hear(phrase)


async def flushing(client):
    """Answers that are asked for by Flush, before the Sync."""
    token = client.next_token()
    execute = wire.bind([token]) + wire.execute()
    executed = [BOUND, row(token), done("SELECT 1")]
    phrase = Phrase(b"", [PARSED, *executed, *executed])
    label = client.draw.choice((token, "echo"))
    await client.send(wire.parse(echo(label, "$1::text")) + execute + wire.flush())
    heard = await client.hear_until("C", phrase)
    await client.send(execute + wire.sync())
    await client.hear(phrase, heard)


async def reading_slowly(client):
    """A large answer that is not read for a while."""
    phrase = requests.bulky(client.next_token(), client.draw)
    await client.send(phrase.data)
    client.talker.pause()
    await asyncio.sleep(client.draw.uniform(0, 0.05))
    client.talker.resume()
    await client.hear(phrase)


async def block(client):
    """A transaction block, step by step."""
    if not await client.say(requests.begin()):
        return  # it was cancelled
    for _ in range(client.draw.randint(1, 5)):
        await client.say(client.ordinary())
    await client.say(client.draw.choice(requests.ENDINGS)())


async def blocks_at_once(client):
    """Transaction blocks in a pipeline. A cancelled BEGIN would leave the rest without a block."""
    client.undisturbed()
    batch = []
    for _ in range(client.draw.randint(1, 3)):
        batch.append(requests.begin())
        batch += [client.ordinary() for _ in range(client.draw.randint(1, 4))]
        batch.append(client.draw.choice(requests.ENDINGS)())
        batch += [client.ordinary() for _ in range(client.draw.randint(0, 2))]
    await client.say(*batch)


async def transfer_at_once(client):
    """A money transfer in one request, which may fail at its end; others may be sent with it."""
    transfer = Transfer(client.next_token(), client.draw)
    fails = client.draw.random() < 0.2
    phrase = client.draw.choice((transfer.simple, transfer.batch))(fails)
    before = [client.ordinary() for _ in range(client.draw.choice((0, 0, 3)))]
    behind = [client.ordinary() for _ in range(client.draw.choice((0, 0, 3)))]
    client.run.ledger.start(transfer.token)
    await client.send(b"".join(each.data for each in [*before, phrase, *behind]))
    for each in [*before, phrase, *behind]:
        well = await client.hear(each)
        if each is phrase:
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
        client.undisturbed()
        well = await client.say(*steps)
    else:
        for step in steps:
            well = await client.say(step)
            if step is steps[0] and client.status == "I":
                break  # the BEGIN was cancelled
    committed = well and client.status == "I" and steps[-1].answer[-1] == done("COMMIT")
    client.run.ledger.settle(transfer.token, committed)


async def copy_rows(client):
    """Rows that are all committed in the end, or none of them."""
    token = client.next_token()
    lines = [f"{token}\t1\t2\t0\n".encode()] * client.draw.randint(1, 60)
    end = [done(f"COPY {len(lines)}")]
    phrase = requests.copy_in(lines, wire.copy_done(), end, client.draw)
    client.run.ledger.start(token, len(lines))
    client.run.ledger.settle(token, await client.say(phrase))


async def copy_patiently(client):
    """Rows that are sent when the server has asked for them, with the Syncs of some drivers."""
    client.undisturbed()
    token = client.next_token()
    count = client.draw.randint(1, 20)
    start, begun, end = wire.query(requests.COPY_IN), [], wire.copy_done()
    if client.draw.random() < 0.5:
        start = wire.parse(requests.COPY_IN) + wire.bind() + wire.execute()
        start += client.draw.choice((wire.flush(), wire.sync()))
        begun, end = [PARSED, BOUND], end + wire.sync()
    phrase = Phrase(b"", [*begun, ("G", None), done(f"COPY {count}")])
    client.run.ledger.start(token, count)
    await client.send(start)
    heard = await client.hear_until("G", phrase)
    for _ in range(count):
        await client.send(wire.copy_data(f"{token}\t1\t2\t0\n".encode()))
    await client.send(end)
    client.run.ledger.settle(token, await client.hear(phrase, heard))


# --- cancel requests --------------------------------------------------------------------------


async def cancel_storm(client):
    """Many cancel requests for one query, with the right key and with others."""
    client.undisturbed()
    own = client.talker.key
    forged = own[:4] + bytes(each ^ client.draw.randint(1, 255) for each in own[4:])
    others = [forged, *client.former_keys()]
    first = requests.simple(client.next_token())
    rest = [
        requests.slow(client.next_token(), client.draw) for _ in range(client.draw.randint(1, 3))
    ]
    await client.send(b"".join(phrase.data for phrase in [first, *rest]))
    await client.hear(first)  # now the client has a server
    for _ in range(client.draw.randint(1, 6)):
        key = own if client.draw.random() < 0.5 else client.draw.choice(others)
        client.cancel_soon(key, client.draw.uniform(0, 0.02), hits=key == own)
    for phrase in rest:
        await client.hear(phrase)


async def strange_keys(client):
    """Cancel requests that must hit no query: outdated, cut and random keys."""
    client.undisturbed()
    drawn = bytes(client.draw.randrange(256) for _ in range(8))
    for key in [*client.former_keys(), drawn, client.talker.key[:4] + drawn[4:]]:
        client.cancel_soon(key, client.draw.uniform(0, 0.01))
    await client.say(requests.slow(client.next_token(), client.draw), client.ordinary())


async def trespass(client):
    """A transaction block in statement mode: it closes this client, and no other."""
    client.undisturbed()
    batch = [requests.begin(), client.ordinary()][:client.draw.randint(1, 2)]
    await client.send(b"".join(phrase.data for phrase in batch))
    await client.hear(Phrase(b"", batch[0].answer))
    raise Wrong("was let into a transaction block")


# --- session state ----------------------------------------------------------------------------


async def listening(client):
    """Notifications of the client's own channel."""
    client.undisturbed()
    token, channel = client.next_token(), f"channel{client.number}"
    await client.say(Phrase(wire.query(f"LISTEN {channel}"), [done("LISTEN")]))
    notify = Phrase(wire.query(f"NOTIFY {channel}, '{token}'"), [done("NOTIFY")])
    await client.send(notify.data)
    heard = await client.hear_until("A", notify)  # before its own ReadyForQuery
    if wire.text(token) not in heard[-1].body:
        raise Wrong(f"heard a notification {heard[-1].body}")
    await client.hear(notify, heard)


LEFT_BEHIND = """
SELECT coalesce(current_setting('talk.owner', true), '')
    || coalesce(to_regclass('pg_temp.mine')::text, '') AS left
"""


async def finding_nothing(client):
    """A new session has no state of another client's; leave some state of this one behind."""
    client.undisturbed()
    token = client.next_token()
    if client.login_number != client.marked:
        client.marked = client.login_number
        nothing = [("T", None), ("D", body(wire.data_row(""))), done("SELECT 1")]
        await client.say(Phrase(wire.query(LEFT_BEHIND), nothing))
        create = wire.query("CREATE TEMP TABLE mine (token text)")
        await client.say(Phrase(create, [done("CREATE TABLE")]))
    await client.say(Phrase(wire.query(f"SET talk.owner = '{token}'"), [done("SET")]))
    shown = [("T", None), ("D", body(wire.data_row(token))), done("SHOW")]
    await client.say(Phrase(wire.query("SHOW talk.owner"), shown))


# --- the table --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Act:
    """How often and in which modes an activity is chosen."""

    weight: int
    function: object
    modes: tuple = ANY
    needs: str = ""  # an attribute of Mix that must be true, except in session mode


ACTS = (
    Act(20, single),
    Act(15, pipeline),
    Act(6, overlapping),
    Act(5, flushing),
    Act(2, reading_slowly),
    Act(6, block, BLOCKS),
    Act(4, blocks_at_once, BLOCKS),
    Act(10, transfer_at_once),
    Act(10, transfer_in_block, BLOCKS),
    Act(4, copy_rows),
    Act(4, copy_patiently),
    Act(4, cancel_storm),
    Act(2, strange_keys),
    Act(1, trespass, ("statement",)),
    Act(20, prepared_activities.prepared, ANY, "prepared"),
    Act(6, prepared_activities.prepared_and_disturbed, ANY, "prepared"),
    Act(4, prepared_activities.prepared_in_block, BLOCKS, "prepared"),
    Act(4, prepared_activities.prepared_and_flushed, ANY, "prepared"),
    Act(4, prepared_activities.altered, POOLED, "prepared"),
    Act(8, prepared_activities.parse_and_bind_later, ANY, "parted"),
    Act(4, prepared_activities.parse_and_bind_in_block, BLOCKS),
    Act(3, listening, SESSION),
    Act(3, finding_nothing, SESSION),
)


def for_mix(mix):
    """The activities of a mix, and their weights."""
    mine = [
        act for act in ACTS
        if mix.mode in act.modes
        and (mix.mode == "session" or not act.needs or getattr(mix, act.needs))
    ]
    return [act.function for act in mine], [act.weight for act in mine]
