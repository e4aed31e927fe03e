# SPDX-License-Identifier: ISC
"""Many clients on few servers, each with state of its own, which looks for what is not its own.

Each client knows what its session must hold. Every transaction begins with one query that lists what
the server's session holds: settings, user, temporary objects, locks, cursors, prepared statements,
channels. What client 17 does depends on the seed and 17 alone.
"""

import asyncio
import collections
import copy
import random
import time
from dataclasses import dataclass, field

from support import wire
from support.clients.async_client import AsyncClient, Disconnected, is_fatal

DATABASE = "main"
USER = "app"

# The settings that clients change, as the server shows them when no client did.
USUAL = {
    "work_mem": "4MB",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "search_path": '"$user", public',
    "random_page_cost": "4",
    "bytea_output": "hex",
    "app.tenant": "",
    "app.note": "",
    "role": "none",
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "application_name": "",
}
VALUES = {
    "work_mem": ["5MB", "6MB", "7MB", "9MB"],
    "statement_timeout": ["61s", "62s", "63s"],
    "lock_timeout": ["31s", "32s"],
    "search_path": ["public, a", '"B", public'],
    "random_page_cost": ["1.5", "2.5"],
    "bytea_output": ["escape"],
    "role": ["tenant_one", "tenant_two"],
    "timezone": ["Asia/Tokyo", "Europe/Berlin", "America/Lima"],
    "datestyle": ["German, DMY", "SQL, MDY"],
}
OWN = ("app.tenant", "app.note", "application_name")  # the value names the client

FAMILIES = ("settings", "temporary", "locks", "cursors", "prepared", "channels")
# What keeps the server with its client. Beyond max_pinned the server is cleaned instead.
PINNED = ("temporary", "locks", "cursors")

SCAN = (
    "SELECT 'setting', n, current_setting(n, true) FROM unnest(ARRAY["
    + ", ".join(f"'{name}'" for name in USUAL)
    + "]) n UNION ALL SELECT 'user', session_user, current_user"
    " UNION ALL SELECT 'unknown setting', name, setting FROM pg_settings WHERE source = 'session'"
    " AND setting IS DISTINCT FROM reset_val AND lower(name) <> ALL (ARRAY["
    + ", ".join(f"'{name}'" for name in USUAL)
    + "]) UNION ALL SELECT 'temporary', relname, '' FROM pg_class"
    " WHERE relnamespace = pg_my_temp_schema() AND relkind <> 'i'"
    " UNION ALL SELECT 'locks', objid::text, '' FROM pg_locks"
    " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    " UNION ALL SELECT 'cursors', name, '' FROM pg_cursors WHERE is_holdable"
    " UNION ALL SELECT 'prepared', name, '' FROM pg_prepared_statements WHERE from_sql"
    " UNION ALL SELECT 'channels', c, '' FROM pg_listening_channels() c"
)


class Foreign(AssertionError):
    """A client saw what is not its own, or did not see what is."""


class Leaves(Exception):
    """The client disconnects."""


@dataclass
class State:
    """What a session holds."""

    settings: dict = field(default_factory=lambda: dict(USUAL))
    temporary: set = field(default_factory=set)
    cursors: set = field(default_factory=set)
    channels: set = field(default_factory=set)
    # ROLLBACK does not undo these.
    locks: set = field(default_factory=set)
    prepared: set = field(default_factory=set)

    def after_rollback_of(self, other):
        """This state again, when a transaction that led to the other one is rolled back."""
        state = copy.deepcopy(self)
        state.locks, state.prepared = set(other.locks), set(other.prepared)
        state.cursors &= other.cursors  # what was closed stays closed
        return state


@dataclass
class Mix:
    """The settings of a run."""

    address: tuple
    seed: str
    clients: int = 20
    seconds: float = 5
    patience: float = 30
    families: tuple = FAMILIES
    keeps_pinned: bool = False  # there are servers enough for all that is pinned


class Run:
    """All clients, and what they have counted."""

    def __init__(self, mix):
        self.mix = mix
        self.counts = collections.Counter()
        self.until = None

    async def work(self):
        """Let all clients work; the first failure ends the run."""
        self.until = time.monotonic() + self.mix.seconds
        clients = [
            asyncio.create_task(Client(self, number).work()) for number in range(self.mix.clients)
        ]
        try:
            for each in asyncio.as_completed(clients):
                await each
        finally:
            for each in clients:
                each.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    def goes_on(self):
        return time.monotonic() < self.until


def run(mix):
    """Run a mix; returns how often each thing was done. Foreign, with the seed, if one failed."""
    found = Run(mix)
    asyncio.run(found.work())
    return found.counts


class Client:
    """One client: it logs in, runs transactions, leaves in some way, and logs in again."""

    def __init__(self, run, number):
        self.run = run
        self.mix = run.mix
        self.number = number
        self.draw = random.Random(f"{run.mix.seed}/{number}")
        self.life = 0
        self.names = 0
        self.connection = None
        self.state = State()

    async def work(self):
        try:
            while self.run.goes_on():
                await self._live()
        except (Foreign, Disconnected, AssertionError) as error:
            raise Foreign(self._description(error)) from None
        finally:
            if self.connection:
                self.connection.close()

    def _description(self, error):
        history = self.connection.conversation() if self.connection else ()
        return "\n".join([
            f"{type(error).__name__}: {error}",
            f"client {self.number}, login {self.life}, seed {self.mix.seed}",
            *history,
        ])

    async def _live(self):
        """One connection."""
        self.life += 1
        self.state = State()
        self.connection = await AsyncClient.connect(self.mix.address, self.mix.patience)
        asked = {}
        if self.draw.random() < 0.3:
            asked["search_path"] = "public, a"
        if self.draw.random() < 0.3:
            asked["application_name"] = f"start of {self.token()}"
        self.asked = {**USUAL, **asked}
        self.state.settings = dict(self.asked)
        received = await self.connection.login(USER, DATABASE, **asked)
        if is_fatal(received[-1]):
            raise AssertionError(f"was refused: {received[-1]}")
        try:
            for _ in range(self.draw.randint(1, 30)):
                if not self.run.goes_on():
                    break
                await self._transaction()
            await self.connection.leave()
        except Leaves:
            self.run.counts["killed in a transaction"] += 1
            self.connection.reset()

    def token(self):
        """A name that no other client has."""
        self.names += 1
        return f"c{self.number}_{self.names}"

    # Transactions

    async def _transaction(self):
        self.run.counts["transactions"] += 1
        shape = self.draw.choice(("autocommit", "COMMIT", "COMMIT", "ROLLBACK", "savepoint"))
        how = self.draw.choice(("simple", "extended", "pipelined", "script"))
        if shape == "autocommit":
            if self.draw.random() < 0.05:
                return await self._start_again()
            sql, after = self._act(self.state)
            # A script is one transaction, but its parts are statements that work in one.
            await self._send([SCAN, *sql], how, self.state)
            self.state = after
            return
        statements, middle = ["BEGIN", SCAN], self.state
        for _ in range(self.draw.randint(0, 3)):
            sql, middle = self._act(middle)
            statements += sql
        if shape == "savepoint":
            sql, inner = self._act(middle)
            statements += ["SAVEPOINT a", *sql, "ROLLBACK TO a"]
            middle = middle.after_rollback_of(inner)
        if self.draw.random() < 0.1:
            if self.draw.random() < 0.3:
                self.connection.send(b"".join(wire.query(each) for each in statements))
                raise Leaves
            await self._send(statements, how, self.state)
            raise Leaves
        undone = shape == "ROLLBACK"
        statements.append("ROLLBACK" if undone else "COMMIT")
        await self._send(statements, how, self.state)
        self.state = self.state.after_rollback_of(middle) if undone else middle

    async def _start_again(self):
        """Go back to the start of the session."""
        sql = self.draw.choice(("DISCARD ALL", "RESET ALL"))
        self.run.counts[sql] += 1
        await self._send([sql], "simple", self.state)
        role = self.state.settings["role"]
        if sql == "DISCARD ALL":
            self.state = State()
        self.state.settings = dict(self.asked)
        if sql == "RESET ALL":
            self.state.settings["role"] = role

    # What clients do: each returns statements, and the state behind them

    def _act(self, before):
        state = copy.deepcopy(before)
        family = self.draw.choice(self.mix.families)
        sql = getattr(self, "_do_" + family)(state)
        self.run.counts[family] += bool(sql)
        return sql, state

    def _do_settings(self, state):
        name = self.draw.choice(list(USUAL))
        way = self.draw.choice(("set", "set", "set_config", "do", "local", "reset"))
        value = f"{name} of {self.token()}" if name in OWN else self.draw.choice(VALUES[name])
        is_list = name in ("search_path", "datestyle")
        quoted = value if is_list else f"'{value}'"
        if name == "datestyle":
            quoted = ", ".join(f"'{part}'" for part in value.split(", "))
        if way == "local":
            # It has an end with the transaction only: here it is undone by the next SET.
            return [f"SET LOCAL {name} = {quoted}", self._set_again(state, name)]
        if way == "reset":
            state.settings[name] = USUAL["role"] if name == "role" else self.asked[name]
            return [f"RESET {name}"]
        state.settings[name] = value
        if way == "set":
            return [f"SET {name} = {quoted}"]
        call = f"set_config('{name}', '{value}', false)"
        return [f"SELECT {call}" if way == "set_config" else f"DO $$ BEGIN PERFORM {call}; END $$"]

    def _set_again(self, state, name):
        state.settings[name] = "none" if name == "role" else self.asked[name]
        return f"RESET {name}"

    def _do_temporary(self, state):
        if state.settings["role"] != "none":
            return []  # the table's owner would be the role
        if state.temporary and self.draw.random() < 0.6:
            name = self.draw.choice(sorted(state.temporary))
            state.temporary.remove(name)
            return [f"DROP TABLE IF EXISTS pg_temp.{name}"]
        name = f"t_{self.token()}"
        state.temporary.add(name)
        return [self.draw.choice((
            f"CREATE TEMP TABLE {name} AS SELECT 1 AS a", f"SELECT 1 AS a INTO TEMP {name}",
            f"CREATE TABLE pg_temp.{name} (a int)",
        ))]

    def _do_locks(self, state):
        if state.locks and self.draw.random() < 0.6:
            key = self.draw.choice(sorted(state.locks))
            state.locks.remove(key)
            return [f"SELECT pg_advisory_unlock({key})"]
        key = str(self.number * 1000 + self.draw.randrange(1000))
        if key in state.locks:
            return []
        state.locks.add(key)
        return [self.draw.choice((
            f"SELECT pg_advisory_lock({key})", f"SELECT pg_try_advisory_lock({key})",
            f"DO $$ BEGIN PERFORM pg_advisory_lock({key}); END $$",
        ))]

    def _do_cursors(self, state):
        if state.cursors and self.draw.random() < 0.6:
            state.cursors.clear()
            return ["CLOSE ALL"]
        name = f"h_{self.token()}"
        state.cursors.add(name)
        return [f"DECLARE {name} CURSOR WITH HOLD FOR SELECT 1"]

    def _do_prepared(self, state):
        if state.prepared and self.draw.random() < 0.3:
            name = self.draw.choice(sorted(state.prepared))
            state.prepared.remove(name)
            return [f"DEALLOCATE {name}"]
        if state.prepared and self.draw.random() < 0.6:
            name = self.draw.choice(sorted(state.prepared))
            return [f"EXECUTE {name}"]
        name = f"p{self.draw.randrange(3)}"  # every client has statements of these names
        if name in state.prepared:
            return [f"EXECUTE {name}"]
        state.prepared.add(name)
        return [f"PREPARE {name} AS SELECT 'executed', 'client {self.number}', '{name}'"]

    def _do_channels(self, state):
        if state.channels and self.draw.random() < 0.5:
            state.channels.clear()
            return ["UNLISTEN *"]
        name = f"n_{self.token()}"
        state.channels.add(name)
        return [f"LISTEN {name}"]

    # Sending, and what is received

    async def _send(self, statements, how, state):
        """Send statements, and check what the first scan among them shows against this state."""
        rows = []
        if how == "script" and "BEGIN" not in statements:
            how = "simple"  # SET LOCAL and the like need a transaction of their own
        if how == "script":
            groups = [[wire.query("; ".join(statements))]]
        elif how == "simple":
            groups = [[wire.query(each)] for each in statements]
        else:
            groups = [[wire.extended(each), wire.sync()] for each in statements]
        if how == "pipelined":
            self.connection.send(b"".join(part for group in groups for part in group))
        for group in groups:
            if how != "pipelined":
                self.connection.send(b"".join(group))
            rows += await self._receive()
        self._check(rows, state, SCAN in statements)

    async def _receive(self):
        rows = []
        for message in await self.connection.result():
            if message.type == "E":
                fields = wire.read_fields(message.body)
                raise Foreign(f"{fields['S']} {fields['C']}: {fields['M']}")
            if message.type == "D":
                rows.append(wire.read_row(message.body))
            elif message.type == "A" and f"c{self.number}_".encode() not in message.body:
                raise Foreign(f"was notified: {message.body}")
        return rows

    def _check(self, rows, state, scanned):
        seen = collections.defaultdict(dict)
        for row in rows:
            if len(row) == 3 and row[0] == "executed":
                if row[1] != f"client {self.number}":
                    raise Foreign(f"the statement of another client was executed: {row}")
            elif len(row) == 3:
                seen[row[0]][row[1]] = row[2] or ""
        if not scanned:
            return
        self.run.counts["observations"] += 1
        if seen["setting"] != state.settings:
            differences = {
                name: (value, state.settings[name])
                for name, value in seen["setting"].items() if value != state.settings[name]
            }
            others = {key: set(names) for key, names in seen.items() if key != "setting"}
            raise Foreign(f"settings (seen, expected): {differences}, and saw {others}")
        role = state.settings["role"]
        if seen["user"] != {USER: USER if role == "none" else role}:
            raise Foreign(f"user {dict(seen['user'])} with role {role}")
        if seen["unknown setting"]:
            raise Foreign(f"settings that no client set: {seen['unknown setting']}")
        for family in PINNED:
            self._check_names(family, set(seen[family]), getattr(state, family))
        foreign = {name for name in seen["channels"] if not name.startswith(f"n_c{self.number}_")}
        if foreign and "channels" not in self.mix.families:
            raise Foreign(f"channels {foreign}")
        foreign = {name for name in seen["prepared"] if len(name) == 2} - state.prepared
        if foreign:
            raise Foreign(f"prepared statements {foreign}")

    def _check_names(self, family, seen, own):
        if seen - own:
            raise Foreign(f"foreign {family}: {seen - own}")
        if own - seen:
            if self.mix.keeps_pinned:
                raise Foreign(f"lost {family}: {own - seen}")
            own &= seen
