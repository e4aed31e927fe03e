# SPDX-License-Identifier: ISC
"""A real overload: a pool of 5 for 200 clients, a transaction that its application has left open, more
prepared statements than servers keep, and a standby that lags."""

import contextlib
import os
import subprocess

from support.process import HOST, as_service, drop_folder, make_folder, own, wait_until
from support.servers.cluster import program

CLIENTS = 200
POOL_SIZE = 5
KEPT_STATEMENTS = 8
STATEMENTS = 12

# The application that leaves a transaction open, and the one that the others belong to.
HOLDER, CROWD = "billing", "storefront"

SCHEMA = """
    CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL);
    INSERT INTO accounts SELECT n, 0 FROM generate_series(1, 1000) n;
    GRANT ALL ON accounts TO PUBLIC;
"""

SETTINGS = {
    "pool_mode": "transaction",
    "default_pool_size": POOL_SIZE,
    "max_client_conn": 1000,
    "max_prepared_statements": KEPT_STATEMENTS,
    # No client leaves by itself, or the overload would end.
    "query_wait_timeout": 0,
    "log_statement_length": 200,
    "log_slow_rate": 1,
}


def databases(primary, standby):
    """The primary with more cores than the pool uses, and reads at the standby while it is fresh."""
    return {
        "shop": {"host": primary.host, "port": primary.port, "dbname": "main", "host_cores": 16},
        "reports": {
            "host": f"{primary.host},{standby.host}", "port": primary.port, "dbname": "main",
            "target_session_attrs": "prefer-standby", "max_standby_lag": "5s",
        },
    }


def script():
    """A transaction with a query that takes long and costs nothing, some short ones, and one write.

    Most of its time a query runs: on a busy machine too, where pgbench is slow to send the next one.
    """
    lines = [r"\set id random(1, 1000)", "BEGIN;", "SELECT pg_sleep(0.3);"]
    lines += [
        f"SELECT balance + {n} AS balance_{n} FROM accounts WHERE id = :id;"
        for n in range(STATEMENTS)
    ]
    return "\n".join([*lines, "UPDATE accounts SET balance = balance + 1 WHERE id = :id;", "END;"])


class Overload:
    """The clients. `pair` is the primary and its standby, the pooler has SETTINGS and databases()."""

    def __init__(self, pooler, pair):
        self.pooler = pooler
        self.primary, self.standby = pair
        self.folder = make_folder("pgusher-overload-")
        self.crowd = self.holder = self.reader = None

    def begin(self):
        """Begin everything, and wait until clients wait for servers."""
        # The lag counts from the last transaction that the standby has replayed.
        self.primary.ask("main", "UPDATE accounts SET balance = 0 WHERE id = 1")
        wait_until(lambda: self.standby.receives_from(self.primary), 10, "the standby")
        self.standby.pause_replay()
        self.holder = self._connect("shop", HOLDER)
        self.holder.execute("BEGIN")
        # A row that the crowd does not touch: it waits for servers, not for this lock.
        self.holder.execute("INSERT INTO accounts VALUES (0, 0)")
        self.reader = self._connect("reports", "reporting")
        self.reader.execute("SELECT count(*) FROM accounts")
        self._begin_crowd()
        wait_until(self._is_overloaded, 30, "the overload")

    def _connect(self, database, application):
        return self.pooler.connect(
            dbname=database, application_name=application, autocommit=True, prepare_threshold=None)

    def _begin_crowd(self):
        path = os.path.join(self.folder, "script.sql")
        with open(path, "w") as file:
            file.write(script())
        own(path)
        # A thread each: pgbench waits in its thread for the answer to Parse, and while it does none of
        # the other clients of that thread goes on, which may have the servers.
        with open(os.path.join(self.folder, "output"), "w") as output:
            self.crowd = subprocess.Popen(
                as_service(
                    [program("pgbench"), "-n", "-M", "prepared", "-c", str(CLIENTS), "-j", str(CLIENTS)]
                    + ["-T", "3600", "-f", path, "-h", HOST]
                    + ["-p", str(self.pooler.port), "-U", "app", "shop"]),
                env={**os.environ, "PGAPPNAME": CROWD},
                stdout=output, stderr=output)

    def _is_overloaded(self):
        assert self.crowd.poll() is None, self.output()
        (pool,) = self.pooler.show("POOLS", database="shop", user="app")
        return int(pool["cl_waiting"]) > CLIENTS / 2 and int(pool["sv_active"]) == POOL_SIZE

    def output(self):
        """What pgbench has written."""
        with open(os.path.join(self.folder, "output")) as file:
            return file.read()

    def read(self):
        """The reports go on: their pool learns of the standby."""
        self.reader.execute("SELECT count(*) FROM accounts")

    def end(self):
        """End all clients, and let the standby catch up."""
        if self.crowd:
            self.crowd.kill()
            self.crowd.wait()
        for connection in (self.holder, self.reader):
            if connection:
                with contextlib.suppress(Exception):
                    connection.close()
        self.standby.resume_replay()
        drop_folder(self.folder)
