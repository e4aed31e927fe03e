# SPDX-License-Identifier: ISC
"""Accounts, money transfers between them, and a ledger of the outcome of each.

Each transfer writes a row of the ledger with a token of its own. The table has no unique constraint
on the token, so that a request which is run twice shows.
"""

from support import wire
from support.crosstalk.expected_answers import BOUND, NO_DATA, PARSED, RAISED, Fault, Request, done
from support.crosstalk.requests import copy_in
from support.process import wait_until

ACCOUNTS = 40
START = 1000

TABLES = f"""
CREATE TABLE talk_account (number int PRIMARY KEY, balance bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO talk_account SELECT i, {START} FROM generate_series(1, {ACCOUNTS}) i;
CREATE TABLE talk_ledger (token text, source int, target int, amount int);
"""
START_AGAIN = f"TRUNCATE talk_ledger; UPDATE talk_account SET balance = {START};"
DROP_TABLES = "DROP TABLE IF EXISTS talk_account, talk_ledger;"

COMMITTED, REFUSED, UNKNOWN = "committed", "refused", "unknown"


class Transfer:
    """Money from one account to another. The lower account number is always locked first."""

    def __init__(self, token, draw):
        self.token = token
        self.source, self.target = sorted(draw.sample(range(1, ACCOUNTS + 1), 2))
        self.amount = draw.randint(-50, 50)

    @property
    def values(self):
        return (self.token, self.source, self.target, self.amount)

    def statements(self):
        """The three statements with what each answers, as SQL without parameters."""
        update = "UPDATE talk_account SET balance = balance {:+d} WHERE number = {}"
        token, source, target, amount = self.values
        insert = f"INSERT INTO talk_ledger VALUES ('{token}', {source}, {target}, {amount})"
        return (
            (update.format(-amount, source), "UPDATE 1"),
            (update.format(amount, target), "UPDATE 1"),
            (insert, "INSERT 0 1"),
        )

    def simple(self, fails=False):
        """All in one query: PostgreSQL makes one transaction of it."""
        statements = [sql for sql, _ in self.statements()]
        answer = [done(tag) for _, tag in self.statements()]
        if fails:
            statements.append(f"DO $$BEGIN PERFORM talk_fail('{self.token}'); END$$")
            answer.append(("E", Fault(RAISED, self.token)))
        return Request(wire.query(";".join(statements)), answer)

    def batch(self, fails=False):
        """All up to one Sync: one transaction too."""
        update = wire.parse("UPDATE talk_account SET balance = balance + $1 WHERE number = $2")
        token, source, target, amount = self.values
        data = update + wire.bind([-amount, source]) + wire.execute()
        data += wire.bind([amount, target]) + wire.execute()
        data += wire.parse("INSERT INTO talk_ledger VALUES ($1, $2, $3, $4)")
        data += wire.bind([token, source, target, amount]) + wire.describe() + wire.execute()
        updated = [BOUND, done("UPDATE 1")]
        answer = [PARSED, *updated, *updated, PARSED, BOUND, NO_DATA, done("INSERT 0 1")]
        if fails:
            data += wire.parse("SELECT talk_fail($1)") + wire.bind([token]) + wire.execute()
            answer += [PARSED, BOUND, ("E", Fault(RAISED, token))]
        return Request(data + wire.sync(), answer)

    def steps(self, draw):
        """The statements one by one, for a transaction block; COPY may write the ledger's row."""
        *updates, (insert, tag) = self.statements()
        steps = [Request(wire.query(sql), [done(tag)]) for sql, tag in updates]
        if draw.random() < 0.3:
            line = "\t".join(map(str, self.values)) + "\n"
            end = [done("COPY 1")]
            return steps + [copy_in([line.encode()], wire.copy_done(), end, draw)]
        return steps + [Request(wire.query(insert), [done(tag)])]


def _is_at_rest(cluster):
    return all(row["state"] == "idle" for row in cluster.backends())


class Ledger:
    """What clients know of their writes, to be compared with the tables in the end."""

    def __init__(self):
        self.fates = {}
        self.rows = {}

    def start(self, token, rows=1):
        """A write is about to be sent: from now on it may have happened."""
        self.fates[token] = UNKNOWN
        self.rows[token] = rows

    def settle(self, token, committed):
        """The server has reported its outcome."""
        self.fates[token] = COMMITTED if committed else REFUSED

    def count(self, fate):
        return sum(each == fate for each in self.fates.values())

    def faults(self, found):
        """The differences to the outcomes, given how often each token was found."""
        for token in found.keys() - self.fates.keys():
            yield f"{token} was written by no client"
        for token, fate in self.fates.items():
            count, rows = found.get(token, 0), self.rows[token]
            lawful = {COMMITTED: (rows,), REFUSED: (0,), UNKNOWN: (0, rows)}[fate]
            if count not in lawful:
                yield f"{token}, {fate}, is there {count} times, not {lawful}"

    def check(self, cluster, database):
        """Compare with the tables: tokens, and the sums of each account."""
        wait_until(lambda: _is_at_rest(cluster), 15, "all transactions to end")
        rows = cluster.ask(database, "SELECT token, count(*) FROM talk_ledger GROUP BY token")
        faults = list(self.faults({row["token"]: row["count"] for row in rows}))
        wrong = cluster.ask(
            database,
            f"SELECT number, balance, {START} + coalesce(sum(moved), 0) AS due FROM talk_account"
            " LEFT JOIN (SELECT source AS number, -amount AS moved FROM talk_ledger"
            "  UNION ALL SELECT target, amount FROM talk_ledger) moves USING (number)"
            f" GROUP BY number, balance HAVING balance <> {START} + coalesce(sum(moved), 0)",
        )
        for row in wrong:
            faults.append(f"account {row['number']} has {row['balance']}, not {row['due']}")
        assert not faults, "\n".join(faults[:20])
