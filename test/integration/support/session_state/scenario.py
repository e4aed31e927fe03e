# SPDX-License-Identifier: ISC
"""One row of the table: a kind of state, made by one protocol and with one end of its transaction.

What is checked, each by one look:

keep   the client that made the state sees it, on whatever server
leak   no other client sees it
gone   neither sees it once it was undone, or was ended, or its client has left
"""

import itertools

from support import wire
from support.clients.raw import Closed, ServerError
from support.process import WaitTimeout, wait_until
from support.session_state.kinds import Call

FAILING = "SELECT 1/0"
ENDINGS = {
    "autocommit": lambda make: make,
    "commit": lambda make: ["BEGIN", *make, "COMMIT"],
    "rollback": lambda make: ["BEGIN", *make, "ROLLBACK"],
    "savepoint rolled back": lambda make: ["BEGIN", "SAVEPOINT a", *make, "ROLLBACK TO a", "COMMIT"],
    "savepoint released": lambda make: ["BEGIN", "SAVEPOINT a", *make, "RELEASE a", "COMMIT"],
    "error in the block": lambda make: ["BEGIN", *make, FAILING, "COMMIT"],
    "error behind it": lambda make: [*make, FAILING],
}
UNDOING = ("rollback", "savepoint rolled back", "error in the block")
# One transaction without BEGIN, if no statement is one.
IMPLICIT = ("script", "batch")
_numbers = itertools.count()  # a statement's name is its own
FORGIVEN = ("22012", "25P02")  # the failing statement's, and of those behind it


# --- sending statements -----------------------------------------------------------------------


def encoded(statement, name=""):
    """A statement as messages of the extended protocol, without a Sync: its Parse, and the rest."""
    text, values = (statement, ()) if isinstance(statement, str) else statement
    rest = wire.bind(values, name) + wire.describe() + wire.execute()
    return wire.parse(text, name), rest


def simple(client, statements):
    """One Query after the other."""
    for each in statements:
        if isinstance(each, Call):
            client.send(wire.function_call(each.function, each.arguments))
        else:
            client.send(wire.query(each))
        yield client.result()


def script(client, statements):
    """All in one Query."""
    client.send(wire.query("; ".join(statements)))
    yield client.result()


def extended(client, statements):
    """One unnamed statement after the other."""
    for each in statements:
        client.send(*encoded(each), wire.sync())
        yield client.result()


def named(client, statements):
    """Named statements that are prepared before all of them are executed."""
    messages = [encoded(each, f"named_{next(_numbers)}") for each in statements]
    for part in (*(parse for parse, _ in messages), *(rest for _, rest in messages)):
        client.send(part, wire.sync())
        yield client.result()


def pipelined(client, statements):
    """All in one write, with a Sync behind each."""
    client.send(*[part for each in statements for part in (*encoded(each), wire.sync())])
    for _ in statements:
        yield client.result()


def batch(client, statements):
    """All in one write, with a Sync behind the last."""
    client.send(*[part for each in statements for part in encoded(each)], wire.sync())
    yield client.result()


SENDERS = {each.__name__: each for each in (simple, script, extended, named, pipelined, batch)}


# --- how a client leaves ----------------------------------------------------------------------


def leaves(client):
    client.leave()


def vanishes(client):
    client.reset()


def is_killed_in_a_transaction(client):
    client.query("BEGIN")
    client.query("SELECT 1")
    client.reset()


PARTINGS = (leaves, vanishes, is_killed_in_a_transaction)


class Scenario:
    """A kind, a protocol and an ending; run() returns what was wrong."""

    def __init__(self, place, kind, protocol, ending):
        self.place = place
        self.kind = kind
        self.protocol = protocol
        self.ending = ending
        self.checks = 0
        self.faults = []
        undone = ending in UNDOING or (ending == "error behind it" and protocol in IMPLICIT)
        self.stays = not undone or kind.kept
        # Each combination has one way to end the state and one to leave; together they have all.
        self.turn = list(SENDERS).index(protocol) + list(ENDINGS).index(ending)

    def check(self, category, where, client, what, expected):
        """Look once and compare."""
        self._compare(category, where, self.place.look(client, what, expected), expected)

    def _compare(self, category, where, seen, expected):
        self.checks += 1
        if seen != expected:
            self.faults.append(
                f"{category}: {self.kind.name} | {self.protocol} | {self.ending} | {where}:"
                f" {seen!r} instead of {expected!r}"
            )

    def run(self):
        """Do all of it; returns the faults."""
        client = None
        try:
            client = self.place.client(self.kind.user, **dict(self.kind.start))
            self._make(client)
            self._keeps(client)
            client = self._is_reset(client)
            self._parts(client)
        except (ServerError, Closed, OSError, AssertionError) as error:
            self.checks += 1
            self.faults.append(
                f"broken: {self.kind.name} | {self.protocol} | {self.ending}:"
                f" {type(error).__name__} {error}"
            )
        finally:
            if client is not None:
                client.close()
        if self.faults:
            self.place.freshen()
        return self.faults

    # The steps

    @property
    def after(self):
        """What the client sees when its transaction has ended."""
        return self.kind.made if self.stays else self.kind.usual

    def _make(self, client):
        statements = ENDINGS[self.ending](list(self.kind.make))
        at_once = self.protocol == "pipelined" and isinstance(self.kind.look, str)
        results = list(
            SENDERS[self.protocol](client, statements + [self.kind.look] * at_once)
        )
        if at_once:
            last = results.pop()
            value = f"ERROR {last.error.sqlstate}" if last.error else last.value or ""
            self._compare("keep" if self.stays else "gone", "in the same write", value, self.after)
        self._expect_no_error(results)
        if client.status != "I":
            client.query("ROLLBACK")

    def _expect_no_error(self, results):
        for each in results:
            forgiven = FORGIVEN if "error" in self.ending else ()
            if each.error and each.error.sqlstate not in forgiven:
                raise AssertionError(str(each.error))

    def _keeps(self, client):
        category = "keep" if self.stays else "gone"
        other, _ = self.place.watchers(self.kind.user)
        with self._holding(other, "leak", "another client, next", self.kind.none):
            self.check(category, "while another client has its server", client, self.kind.look,
                       self.after)
            if self.kind.outside and self.stays:
                sql, there, _ = self.kind.outside
                self.check(category, "seen by others", other, sql, there)
        self.check(category, "again", client, self.kind.look, self.after)

    def _holding(self, client, category, where, expected):
        return _Held(self, client, category, where, expected)

    def _is_reset(self, client):
        ends = [end for end in (self.kind.end, *((each,) for each in self.kind.ended_by)) if end]
        if not ends:
            return client
        way = ends[self.turn % len(ends)]
        # A lock beside a setting of the start is there, though the setting looks as usual.
        there = self.kind.made != self.kind.usual or self.kind.family == "locks"
        if self.stays and there or way != self.kind.end:
            for sql in way:
                client.query(sql)
        name = "; ".join(way)
        self.check("gone", f"after {name}", client, self.kind.look, self.kind.usual)
        self._nothing_is_left(f"after {name}")
        return client

    def _parts(self, client):
        """Make the state again and leave; then once more, within the transaction."""
        part = PARTINGS[self.turn % len(PARTINGS)]
        self._make(client)
        if not self.place.blocks():
            part = vanishes
        part(client)
        self._nothing_is_left(f"after its client {part.__name__.replace('_', ' ')}")
        if self.place.blocks() and self.turn % 2 == 0:
            client = self.place.client(self.kind.user, **dict(self.kind.start))
            list(SENDERS[self.protocol](client, ["BEGIN", *self.kind.make]))
            client.reset()
            self._nothing_is_left("after its client was killed in this transaction")

    def _nothing_is_left(self, when):
        one, two = self.place.watchers(self.kind.user)
        with self._holding(one, "gone", f"first server {when}", self.kind.none):
            with self._holding(two, "gone", f"second server {when}", self.kind.none):
                pass
        if self.kind.outside:
            sql, _, gone = self.kind.outside
            try:
                wait_until(lambda: self.place.look(one, sql) == gone, 3)
                self.checks += 1
            except WaitTimeout:
                self._compare("gone", f"seen by others {when}", "still there", gone)


class _Held:
    """A block in which a client stays on its server, after a first look."""

    def __init__(self, scenario, client, category, where, expected):
        self._scenario = scenario
        self._client = client
        self._look = (category, where, client, scenario.kind.look, expected)
        self._blocks = scenario.place.blocks()

    def __enter__(self):
        if self._blocks:
            self._client.query("BEGIN")
        self._scenario.check(*self._look)

    def __exit__(self, kind, *_):
        if self._blocks and kind is None:
            self._client.query("ROLLBACK")


# --- the table ------------------------------------------------------------------------------


def possible(kind, protocol, ending, place):
    """Whether a kind can be made in this way."""
    blocks = ending not in ("autocommit", "error behind it")
    return (
        protocol in kind.protocols
        and (place.blocks() or ending == "autocommit")
        and (blocks or not kind.in_block)
    )


def ways(kind, number, place, whole):
    """The protocols and endings for this kind, which is the table's number-th: all for a typical
    one, and some for each other, which are different for its neighbours."""
    protocols, ends = list(SENDERS), list(ENDINGS)
    chosen = [(protocol, ending) for protocol in protocols for ending in ends]
    chosen = [pair for pair in chosen if possible(kind, *pair, place)]
    if kind.typical or whole:
        return chosen
    step = len(chosen) // 3 + 1
    return chosen[:1] + chosen[1 + number % step::step]


def run(place, kind, number, whole=False, until_fault=False):
    """Make a kind in its ways: how many checks, and the faults."""
    checks, faults = 0, []
    for protocol, ending in ways(kind, number, place, whole):
        if faults and until_fault:
            break
        scenario = Scenario(place, kind, protocol, ending)
        faults += scenario.run()
        checks += scenario.checks
    return checks, faults
