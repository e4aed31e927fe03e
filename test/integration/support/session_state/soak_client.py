# SPDX-License-Identifier: ISC
"""One client of the soak: it logs in, runs transactions, leaves in some way, and logs in again."""

import asyncio
import collections
import copy
import random
import time

from support import wire
from support.clients import async_client
from support.clients.async_client import AsyncClient, Disconnected, is_fatal
from support.session_state import soak_acts
from support.session_state.soak_state import SCAN, USER, USUAL, Foreign, State, lost_names

DATABASE = "main"
LOST = "will not be there in the next transaction"

# A way to let a transaction fail: a statement, or a CopyFail, and its error.
FAILING = {"22012": "SELECT 1/0", "57014": "COPY doors FROM STDIN", "42601": "nonsense"}
# What a cancel request, a terminated server, or an operator does to a client.
TROUBLES = ("0A000", "57014", "57P01", "57P03", "08006", "08P01", "25P02")
ANYTHING = "any error"
# What follows when a server has lost what its client had.
MISSING = ("26000", "34000")


class Leaves(Exception):
    """The client disconnects."""


class Failed(Exception):
    """A transaction has failed by what troubles the client."""


class Ended(Exception):
    """The connection has ended by what troubles the client."""


class SoakClient:
    """One client; what it does depends on the seed and its number alone."""

    def __init__(self, run, number):
        self.run = run
        self.mix = run.mix
        self.number = number
        self.draw = random.Random(f"{run.mix.seed}/{number}")
        self.life = 0
        self.names = 0
        self.connection = None
        self.state = State()
        self.asked = dict(USUAL)
        self._begin()

    def _begin(self):
        """A new connection, or a session as at its start."""
        self.epoch = self.run.epoch
        self.owed = 0
        self.status = "I"
        self.unsure = False  # after a warning: what is still there?
        self.gone = {}  # what is gone, by family
        self.heard = set(self.state.channels)  # channels from which something may come
        self.tokens = set()  # what it has heard
        self.changed = False  # the last transaction may have made what pins

    def token(self):
        """A name that no other client has."""
        self.names += 1
        return f"c{self.number}_{self.names}"

    async def work(self):
        """Live until the run is over."""
        try:
            while self.run.goes_on():
                await self._live()
        except (Foreign, Disconnected, Failed, AssertionError) as error:
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
            *(f"{time.monotonic() - at:.4f} before: {act}" for at, act in self.run.acts[-6:]),
        ])

    def _count(self, what):
        self.run.counts[what] += 1

    # A life

    async def _live(self):
        try:
            await self._log_in()
            for _ in range(self.draw.randint(1, 30)):
                if not self.run.goes_on():
                    break
                await self._turn()
            await self.connection.leave()
        except Leaves as way:
            self._count(f"killed {way}")
            self.connection.reset()
        except (Ended, Disconnected, OSError) as error:
            if not self.mix.trouble:
                raise Foreign(f"was disconnected: {error}") from None
            self._count("disconnected")
            self.connection.close()

    async def _log_in(self):
        self.life += 1
        self.state = State()
        self._begin()
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
            if self.mix.trouble:
                raise Ended(str(received[-1]))
            raise AssertionError(f"was refused: {received[-1]}")

    async def _turn(self):
        """One transaction, or what else a client does between two."""
        if self.epoch != self.run.epoch or (self.unsure and self.mix.trouble):
            await self._start_anew()
        try:
            if self.changed and not self.mix.keeps_pinned:
                await self._settle()
            await self._transaction()
        except Failed:
            self._count("troubled")
            await self._start_anew()

    # Transactions

    async def _transaction(self):
        self._count("transactions")
        # Before an error and a ROLLBACK TO an UNLISTEN has no effect: see doc/differences.md.
        self.heard |= self.state.channels
        if self.state.channels and self.draw.random() < 0.15:
            return await self._hear_itself()
        if self.draw.random() < 0.05:
            return await self._notify_another()
        if self.draw.random() < 0.03:
            return await self._leave_while_asked()
        shape = self.draw.choice(
            ("autocommit", "COMMIT", "COMMIT", "ROLLBACK", "savepoint", "failed", "implicit"))
        if self.draw.random() < 0.02:
            shape = "cancelled"
        how = self.draw.choice(("simple", "extended", "pipelined", "script", "batch"))
        if shape == "autocommit":
            if self.draw.random() < 0.05:
                return await self._start_again()
            sql, after = self._act(self.state)
            await self._send([SCAN, *sql], how, self.state)
            self._become(after)
        elif shape == "implicit":
            await self._fail_at_the_end(how)
        else:
            await self._block(shape, how)

    async def _block(self, shape, how):
        """BEGIN, and what may end it."""
        statements, middle = ["BEGIN", SCAN], self.state
        for _ in range(self.draw.randint(0, 3)):
            sql, middle = self._act(middle)
            statements += sql
        if shape == "savepoint":
            sql, inner = self._act(middle)
            statements += ["SAVEPOINT a", *sql, "ROLLBACK TO a"]
            middle = middle.after_rollback_of(inner)
        if self.draw.random() < 0.1:
            await self._leave_within(statements, how, middle)
        if shape == "failed":
            await self._send(statements, how, self.state)
            await self._fail(middle)
            middle = self.state.after_rollback_of(middle)
            await self._send([self.draw.choice(("COMMIT", "ROLLBACK"))], "simple")
        elif shape == "cancelled":
            await self._send(statements, how, self.state)
            await self._cancel_itself()
            middle = self.state.after_rollback_of(middle)
            await self._send(["ROLLBACK"], "simple")
        elif shape == "ROLLBACK":
            await self._send([*statements, "ROLLBACK"], how, self.state)
            middle = self.state.after_rollback_of(middle)
        else:
            await self._send([*statements, "COMMIT"], how, self.state)
        self._become(middle)

    async def _fail_at_the_end(self, how):
        """Statements of one implicit transaction, of which the last one fails."""
        how = "batch" if how == "batch" else "script"
        sql, after = self._act(self.state)
        await self._send([SCAN, *sql, "SELECT 1/0"], how, self.state, fails="22012")
        self._become(self.state.after_rollback_of(after))

    async def _fail(self, state):
        """Let the transaction fail."""
        sqlstate = self.draw.choice(sorted(FAILING))
        if sqlstate == "57014" and state.settings["role"] != "none":
            sqlstate = "22012"  # only the user may write into the table
        if sqlstate == "57014":
            self.connection.send(wire.query(FAILING[sqlstate]) + wire.copy_data(b"1\n")
                                 + wire.copy_fail("enough"))
            self.owed += 1
            await self._receive(fails=sqlstate)
        else:
            await self._send([FAILING[sqlstate]], self.draw.choice(("simple", "extended")),
                             fails=sqlstate)

    async def _cancel_itself(self):
        """Run a statement for long, and cancel it."""
        self.connection.send(wire.query("SELECT pg_sleep(50)"))
        self.owed += 1
        answer = asyncio.ensure_future(self._receive(fails="57014"))
        try:
            while not answer.done():
                await async_client.cancel(self.mix.address, self.connection.key, self.mix.patience)
                await asyncio.wait([answer], timeout=0.2)
            await answer
        finally:
            answer.cancel()
        self._count("cancelled")

    async def _start_again(self):
        """Go back to the start of the session."""
        sql = self.draw.choice(("DISCARD ALL", "RESET ALL"))
        self._count(sql)
        await self._send([sql], "simple", self.state)
        role = self.state.settings["role"]
        if sql == "DISCARD ALL":
            self.state = State()
        self.state.settings = dict(self.asked)
        if sql == "RESET ALL":
            self.state.settings["role"] = role

    async def _start_anew(self):
        """After trouble, which may come again, it is unknown what was done."""
        while True:
            epoch = self.run.epoch  # what begins before a RELOAD is as before it
            try:
                while self.owed > 0:
                    await self._receive(may_fail=ANYTHING)
                await self._send(["ROLLBACK"], "simple")
                await self._send(["DISCARD ALL"], "simple")
                break
            except Failed:
                pass
        self.state = State(settings=dict(self.asked))
        self._begin()
        self.epoch = epoch

    # Leaving

    async def _leave_within(self, statements, how, state):
        """Disconnect in a transaction: before its answers, behind them, or in a COPY."""
        way = self.draw.choice(("unread", "read", "COPY in", "COPY out"))
        if way == "unread":
            self.connection.send(b"".join(wire.query(each) for each in statements))
            raise Leaves("in a transaction")
        await self._send(statements, how, self.state)
        if way == "COPY in" and state.settings["role"] == "none":
            self.connection.send(wire.query("COPY doors FROM STDIN") + wire.copy_data(b"1\n2"))
            raise Leaves("in a COPY")
        if way == "COPY out":
            self.connection.send(
                wire.query("COPY (SELECT generate_series(1, 100000)) TO STDOUT"))
            await self.connection.read()
            raise Leaves("in a COPY")
        raise Leaves("in a transaction")

    async def _leave_while_asked(self):
        """Change the session so that the server is asked, and disconnect before its answer."""
        sql, _ = self._act(self.state)
        group = "; ".join([*sql, "SELECT set_config('app.note', 'asked', false)"])
        self.connection.send(wire.query(group))
        self.owed += 1
        await self._receive()
        if self.draw.random() < 0.5:
            self.connection.send(wire.query("BEGIN"))
        raise Leaves("while the server was asked")

    # Notifications

    async def _hear_itself(self):
        """What the client tells its channel, it hears."""
        name, token = self.draw.choice(sorted(self.state.channels)), self.token()
        for _ in range(20 if self.mix.trouble else 1):
            await self._send([f"NOTIFY {name}, '{token}'"], "simple")
            if await self._hears(token):
                self._count("heard")
                return
            if self.unsure or self._may_see_anything():
                return  # the channel may be lost
        raise Foreign(f"did not hear {token} by {name}")

    async def _hears(self, token):
        """Whether it comes in time; in trouble it may be lost."""
        try:
            async with asyncio.timeout(1 if self.mix.trouble else self.mix.patience):
                while token not in self.tokens:
                    self._take(await self.connection.read())
        except TimeoutError:
            return False
        return True

    async def _notify_another(self):
        name = soak_acts.channel(
            self.draw.randrange(self.mix.clients), self.draw.randrange(soak_acts.CHANNELS))
        await self._send([f"NOTIFY {name}, '{self.token()}'"], "simple")

    # The state

    def _act(self, before):
        state = copy.deepcopy(before)
        family = self.draw.choice(self.mix.families)
        sql = soak_acts.act(self, family, state)
        self.run.counts[family] += bool(sql)
        self.changed |= family != "settings"
        self.heard |= state.channels
        return sql, state

    def _become(self, state):
        """The transaction has ended with this state, but for what was lost before."""
        for family, names in self.gone.items():
            getattr(state, family).difference_update(names)
        self.gone = {}
        self.state = state

    async def _settle(self):
        """Find out what is left where servers cannot always stay with their clients."""
        await self._send(["SELECT 1"], "simple")
        self.changed = False
        if not self.unsure:
            return
        self._count("settled")
        for names in (self.state.temporary, self.state.locks, self.state.cursors):
            names.clear()
        if self.state.channels:
            self.heard |= self.state.channels
            await self._send(["UNLISTEN *"], "simple")
            self.state.channels.clear()
        for name in sorted(self.state.prepared):
            if await self._send([f"EXECUTE {name}"], "simple", may_fail="26000"):
                self.state.prepared.remove(name)
        self.unsure = False

    # Sending, and what is received

    async def _send(self, statements, how, state=None, fails=None, may_fail=None):
        """Send statements; if the first of them is SCAN, or the one behind BEGIN, check this state.
        Returns whether one failed.
        """
        if how == "script":
            groups = [wire.query("; ".join(statements))]
        elif how == "batch":
            groups = [b"".join(wire.extended(each) for each in statements) + wire.sync()]
        elif how == "simple":
            groups = [wire.query(each) for each in statements]
        else:
            groups = [wire.extended(each) + wire.sync() for each in statements]
        if how == "pipelined":
            self.connection.send(b"".join(groups))
            self.owed += len(groups)
        rows, failed = [], False
        for group in groups:
            if how != "pipelined":
                self.connection.send(group)
                self.owed += 1
            found, error = await self._receive(fails, may_fail)
            rows += found
            failed |= error
        self._check(rows, state if SCAN in statements else None)
        return failed

    async def _receive(self, fails=None, may_fail=None):
        """The rows of one answer, and whether there was an error."""
        rows, error = [], None
        while True:
            message = await self.connection.read()
            if message.type == "Z":
                self.owed -= 1
                self.status = message.body.decode()
                break
            if message.type == "E":
                error = wire.read_fields(message.body)
                self._check_error(error, fails or may_fail)
                if is_fatal(message):
                    raise Ended(error["M"])
            elif message.type == "D":
                rows.append(wire.read_row(message.body))
            else:
                self._take(message)
        if fails and not error:
            raise Foreign(f"did not fail with {fails}")
        if error and error["C"] not in (fails, may_fail) and may_fail != ANYTHING:
            raise Failed(error["M"])
        return rows, error is not None

    def _check_error(self, error, expected):
        found = error["C"]
        if expected in (found, ANYTHING) or self._may_see_anything():
            return
        if self.mix.trouble and (found in TROUBLES or (found in MISSING and self.unsure)):
            return
        raise Foreign(f"{error['S']} {found}: {error['M']}")

    def _take(self, message):
        """What may come at any time."""
        if message.type == "N" and LOST in wire.read_fields(message.body)["M"]:
            self._count("warned")
            if self.mix.keeps_pinned and not self.mix.trouble:
                raise Foreign(f"was warned: {wire.read_fields(message.body)['M']}")
            self.unsure = True
        elif message.type == "A":
            name, payload = message.body[4:].split(b"\0")[:2]
            self.tokens.add(payload.decode())
            if name.decode() not in self.heard and not self._may_see_anything():
                raise Foreign(f"was notified by {name}, heard are {self.heard}")

    def _may_see_anything(self):
        """Whether an operator has allowed leaks since this client began."""
        return self.run.leaks or self.epoch != self.run.epoch

    def _check(self, rows, state):
        seen = collections.defaultdict(dict)
        for row in rows:
            if len(row) == 3 and row[0] == "executed":
                if row[1] != f"client {self.number}" and not self._may_see_anything():
                    raise Foreign(f"the statement of another client was executed: {row}")
            elif len(row) == 3:
                seen[row[0]][row[1]] = row[2] or ""
        if state is None or self._may_see_anything():
            return
        self._count("observations")
        self.gone = lost_names(seen, state, self.number)
        if self.gone and not self.unsure:
            raise Foreign(f"lost without a warning: {self.gone}")
