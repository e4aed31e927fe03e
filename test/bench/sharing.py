# SPDX-License-Identifier: ISC
"""How pools share a limit of server connections, compared with Debian's PgBouncer.

Waits for a place that becomes free, shares of users below max_db_connections, and the cost of a
transaction with many pools. A real PostgreSQL, but for the costs.
"""

import argparse
import sys
import threading
import time

import rig
from rig import HOST, OURS, THEIRS, Report, Rig, raise_descriptors
from support import wire
from support.clients.closed_loop import jain, median, run_clients
from support.clients.raw import RawClient
from support.clients.raw import cancel as cancel_query
from support.servers.cluster import Cluster

USERS = [f"user{number}" for number in range(60)]


def connect(daemon, user, database="main"):
    client = RawClient((HOST, daemon.port))
    client.login(user=user, database=database)
    return client


# Waits


def commit(holder, cluster):
    holder.query("COMMIT")


def vanish(holder, cluster):
    holder.close()


def terminate(holder, cluster):
    # On a connection that exists: the time of a login is no part of the wait.
    cluster.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE state = 'idle in transaction'")


def cancel(holder, cluster):
    cancel_query(holder.address, holder.key)


ENDINGS = {
    "its transaction ends": commit,
    "the client vanishes in its transaction": vanish,
    "its backend is terminated": terminate,
    "its query is cancelled": cancel,
}


def wait_of(daemon, cluster, holds, waits, end):
    """Seconds from the event that frees the only place to the answer of the waiting client."""
    holder, waiter = connect(daemon, *holds), connect(daemon, *waits)
    # A cancelled query outside of a transaction frees its server.
    holder.query("SELECT 1" if end is cancel else "BEGIN")
    answered = []

    def answer():
        waiter.query("SELECT 1")
        answered.append(time.monotonic())

    if end is cancel:
        holder.send(wire.query("SELECT pg_sleep(60)"))
    thread = threading.Thread(target=answer)
    thread.start()
    time.sleep(0.1)
    began = time.monotonic()
    end(holder, cluster)
    thread.join(30)
    for client in (holder, waiter):
        client.close()
    return answered[0] - began if answered else 30.0


def waits(bench, report, cluster, options):
    databases = [f"{name} = host={HOST} port={cluster.port} dbname=main" for name in ("main", "b")]
    for cap, holds, waits_for in (
        ("max_user_connections", ("app", "main"), ("app", "b")),
        ("max_db_connections", ("app", "main"), ("alice", "main")),
    ):
        with bench.running(OURS, THEIRS, databases=databases, auth=auth(), **{cap: 1}) as daemons:
            for name, end in ENDINGS.items():
                ours, theirs = (
                    [wait_of(each, cluster, holds, waits_for, end) for _ in range(options.rounds)]
                    for each in daemons
                )
                report.row(f"{cap}: {name}; median wait, ms", 1000 * median(ours), 10,
                           f"PgBouncer {1000 * median(theirs):.1f}")


# Shares


def auth():
    return [f'"{name}" ""' for name in (*USERS, "app", "alice")]


def counts(daemon, logins, seconds):
    return [each.done for each in run_clients((HOST, daemon.port), logins, seconds)]


def shares(bench, report, cluster, options):
    database = [f"main = host={HOST} port={cluster.port}"]

    def run(limit, logins):
        with bench.running(OURS, THEIRS, databases=database, auth=auth(),
                           max_db_connections=limit) as daemons:
            return [counts(each, logins, options.seconds) for each in daemons]

    def one(user, clients):
        return [(user, "main")] * clients

    ours, theirs = run(1, one("app", 3) + one("alice", 1))
    report.row("three clients of one user against one of another: its part",
               ours[3] / sum(ours), 0.2, f"{ours}; PgBouncer {theirs}", least=True)
    ours, theirs = run(5, [(user, "main") for user in USERS])
    report.row("60 users on 5 connections: not served", ours.count(0), 0,
               f"PgBouncer {theirs.count(0)}; queries {sum(ours)}, {sum(theirs)}")
    report.row("60 users on 5 connections: Jain's index", jain(ours), 0.9,
               f"PgBouncer {jain(theirs):.3f}", least=True)
    ours, theirs = run(4, one("app", 40) + [(user, "main") for user in USERS[:3]])
    report.row("40 clients of one user, 3 users with one: least part of these",
               min(ours[40:]) / sum(ours), 0.15,
               f"{ours[40:]} of {sum(ours)}; PgBouncer {theirs[40:]} of {sum(theirs)}", least=True)


def two_limits(bench, report, cluster, options):
    """A client whose database and user both have all their connections in use by others."""
    databases = [f"{name} = host={HOST} port={cluster.port} dbname=main" for name in ("main", "b")]
    logins = [("alice", "main")] * 2 + [("app", "b")] * 2 + [("app", "main")]
    with bench.running(OURS, THEIRS, databases=databases, auth=auth(),
                       max_db_connections=1, max_user_connections=1) as daemons:
        ours, theirs = (counts(each, logins, options.seconds) for each in daemons)
    report.row("a client that needs a place below two full limits: its part",
               ours[4] / sum(ours), 0.05, f"{ours}; PgBouncer {theirs}", least=True)


# Costs


def costs(bench, report, options):
    """CPU time of a transaction of 20 clients, without that of the time in which they do nothing,
    with so many other pools of the database."""
    values = {}
    for pools in (10, 4000):
        secrets = [f'"u{number}" ""' for number in range(pools)] + ['"app" ""']
        with bench.running(OURS, THEIRS, auth=secrets, max_db_connections=pools + 20,
                           max_client_conn=pools + 200) as daemons:
            for daemon in daemons:
                others = [connect(daemon, f"u{number}") for number in range(pools)]
                for other in others:
                    other.query("SELECT 1")
                before = daemon.cpu()
                time.sleep(options.seconds)
                upkeep, before = daemon.cpu() - before, daemon.cpu()
                done = sum(counts(daemon, [("app", "main")] * 20, options.seconds))
                values[daemon.name, pools] = (daemon.cpu() - before - upkeep) / done * 1e6
                for other in others:
                    other.close()
    report.row("CPU per transaction, 4,000 pools of a database / 10",
               values[OURS, 4000] / values[OURS, 10], 1.15,
               f"{values[OURS, 4000]:.1f} / {values[OURS, 10]:.1f} us; "
               f"PgBouncer {values[THEIRS, 4000]:.1f} / {values[THEIRS, 10]:.1f}")


def queues(bench, report, options):
    """CPU time of a query while so many users wait for one of 5 connections."""
    values = {}
    for users in (30, 3000):
        names = [f"u{number}" for number in range(users)]
        with bench.running(OURS, THEIRS, auth=[f'"{name}" ""' for name in names],
                           max_db_connections=5, query_wait_timeout=0,
                           max_client_conn=users + 200) as daemons:
            for daemon in daemons:
                before = daemon.cpu()
                done = sum(counts(daemon, [(name, "main") for name in names], options.seconds))
                values[daemon.name, users] = (daemon.cpu() - before) / max(done, 1) * 1e6
    report.row("CPU per query, 3,000 waiting users / 30",
               values[OURS, 3000] / values[OURS, 30], 3,
               f"{values[OURS, 3000]:.1f} / {values[OURS, 30]:.1f} us; "
               f"PgBouncer {values[THEIRS, 3000]:.1f} / {values[THEIRS, 30]:.1f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15, help="of each wait")
    parser.add_argument("--seconds", type=float, default=6, help="of each share")
    parser.add_argument("figures", nargs="*", help="waits, shares, costs, queues; default: all")
    options = parser.parse_args()
    wanted = options.figures or ["waits", "shares", "costs", "queues"]
    report = Report("Sharing a limit of connections, real PostgreSQL, beside Debian's PgBouncer")
    raise_descriptors(20000)
    with Rig() as bench:
        cluster = Cluster()
        try:
            cluster.ask("main", "".join(f"CREATE ROLE {name} LOGIN;" for name in USERS))
            if "waits" in wanted:
                waits(bench, report, cluster, options)
            if "shares" in wanted:
                shares(bench, report, cluster, options)
                two_limits(bench, report, cluster, options)
        finally:
            cluster.destroy()
        if "costs" in wanted:
            costs(bench, report, options)
        if "queues" in wanted:
            queues(bench, report, options)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
