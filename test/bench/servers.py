# SPDX-License-Identifier: ISC
"""How fast pools get servers, compared with Debian's PgBouncer in the same run.

The logins of a real PostgreSQL take a second each (pre_auth_delay), as with a far server or a
slow directory. Times are in seconds.
"""

import argparse
import contextlib
import statistics
import sys
import threading
import time

import psycopg

import rig
from rig import HOST, OURS, THEIRS, USER, Report, Rig
from support.process import wait_until
from support.servers.cluster import Cluster

DATABASE = "main"
CLIENTS = 8
BOTH = [OURS, THEIRS]


def connect(port):
    return psycopg.connect(
        host=HOST, port=port, user=USER, dbname=DATABASE, autocommit=True, prepare_threshold=None
    )


def all_at_once(actions):
    """Run the actions in threads of their own; how long until the last has ended."""
    failures = []

    def run(action):
        try:
            action()
        except psycopg.Error as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(action,)) for action in actions]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise rig.Trouble(failures[0])
    return time.monotonic() - began


def cold_pool(bench, line, name):
    """Eight clients, connected before, each run a query of one second: when has the last ended?"""
    with contextlib.ExitStack() as stack:
        (daemon,) = stack.enter_context(
            bench.running(name, databases=[line], default_pool_size=CLIENTS)
        )
        clients = [stack.enter_context(connect(daemon.port)) for _ in range(CLIENTS)]
        return all_at_once(
            [lambda client=client: client.execute("SELECT pg_sleep(1)") for client in clients]
        )


def cold_start(bench, line, name):
    """The same, with the connections of the clients."""

    def session(port):
        with connect(port) as client:
            client.execute("SELECT pg_sleep(1)")

    with bench.running(name, databases=[line], default_pool_size=CLIENTS) as (daemon,):
        return all_at_once([lambda: session(daemon.port)] * CLIENTS)


def filling(bench, line, name, watcher):
    """From the connect of a client, which stays, until min_pool_size is reached."""
    servers = (
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE backend_type = 'client backend' AND state = 'idle'"
    )
    wait_until(lambda: watcher.execute(servers).fetchone()[0] == 0, 10, "no server")
    with contextlib.ExitStack() as stack:
        (daemon,) = stack.enter_context(
            bench.running(
                name, databases=[line], default_pool_size=CLIENTS, min_pool_size=CLIENTS
            )
        )
        began = time.monotonic()
        stack.enter_context(connect(daemon.port))
        wait_until(
            lambda: watcher.execute(servers).fetchone()[0] >= CLIENTS, 30, "the minimum", 0.02
        )
        return time.monotonic() - began


def reserve(bench, line, name):
    """How long a client waits for a server of the reserve, with a timeout of 50 ms."""
    with contextlib.ExitStack() as stack:
        (daemon,) = stack.enter_context(
            bench.running(
                name,
                databases=[line],
                default_pool_size=1,
                reserve_pool_size=1,
                reserve_pool_timeout=0.05,
            )
        )
        busy, waiting = [stack.enter_context(connect(daemon.port)) for _ in range(2)]
        busy.execute("BEGIN")
        began = time.monotonic()
        waiting.execute("SELECT 1")
        return time.monotonic() - began


def compare(report, name, bar, rounds, measure):
    try:
        ours, theirs = rig.in_turns(BOTH, measure, rounds)
    except (rig.Trouble, psycopg.Error) as trouble:
        report.trouble(name, trouble)
        return
    note = f"{THEIRS} {statistics.median(theirs):.3f}"
    report.row(name, statistics.median(ours), bar, note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", help="ignored: for the other scripts")
    options = parser.parse_args()
    rounds = options.rounds
    report = Report(f"Servers for pools, medians of {rounds} rounds")
    with contextlib.ExitStack() as stack:
        slow, fast = Cluster({"pre_auth_delay": "1"}), Cluster()
        stack.callback(slow.destroy)
        stack.callback(fast.destroy)
        bench = stack.enter_context(Rig())
        watcher = stack.enter_context(connect(slow.port))
        line = f"{DATABASE} = host={HOST} port={slow.port}"
        quick = f"{DATABASE} = host={HOST} port={fast.port}"
        compare(
            report, "8 queries of 1 s, pool of 8, logins of 1 s", 2.5, rounds,
            lambda name: cold_pool(bench, line, name),
        )
        compare(
            report, "the same with the connections of the clients", 3.5, rounds,
            lambda name: cold_start(bench, line, name),
        )
        compare(
            report, "min_pool_size = 8 reached, logins of 1 s", 3, rounds,
            lambda name: filling(bench, line, name, watcher),
        )
        compare(
            report, "reserve_pool_timeout = 0.05, logins of 10 ms", 0.1, rounds,
            lambda name: reserve(bench, quick, name),
        )
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
