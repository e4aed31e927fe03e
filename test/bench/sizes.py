# SPDX-License-Identifier: ISC
"""Throughput against the size of the pool, for the table of doc/sizing.md.

pgbench runs with many more clients than servers, through a daemon in transaction mode, on a machine
that it shares with PostgreSQL. Prints transactions a second and the average latency, both medians.
"""

import argparse
import os
import re
import statistics
import sys
import tempfile

import rig
from rig import DATABASE, HOST, OURS, USER
from support.process import run
from support.servers.cluster import Cluster, program

SIZES = [1, 2, 4, 8, 16, 32, 64]

# A client that thinks for two milliseconds between two statements of a transaction, as one that is
# on another machine and computes something: its server is held meanwhile.
THINKING = """BEGIN;
SELECT abalance FROM pgbench_accounts WHERE aid = 1;
\\sleep 2 ms
SELECT abalance FROM pgbench_accounts WHERE aid = 2;
COMMIT;
"""


def pgbench(port, options, *arguments):
    """Transactions a second, and their average latency in milliseconds."""
    done = run(
        [program("pgbench"), "-n", "-h", HOST, "-p", str(port), "-U", USER]
        + ["-c", str(options.clients), "-T", str(options.seconds), *arguments, DATABASE],
        timeout=options.seconds + 60,
    ).stdout
    rate = float(re.search(r"tps = ([\d.]+)", done).group(1))
    latency = float(re.search(r"latency average = ([\d.]+)", done).group(1))
    return rate, latency


def measure(cluster, loads, options):
    """Print one row for each size."""
    found = {}
    with rig.Rig() as bench:
        for _ in range(options.rounds):
            for size in SIZES:
                database = f"{DATABASE} = host={HOST} port={cluster.port} pool_size={size}"
                settings = {"pool_mode": "transaction", "max_client_conn": 1000}
                with bench.running(OURS, databases=[database], **settings) as (daemon,):
                    for name, arguments in loads.items():
                        figure = pgbench(daemon.port, options, *arguments)
                        found.setdefault((size, name), []).append(figure)
    print(f"{os.cpu_count()} cores, {options.clients} clients; transactions/s (latency in ms)")
    print("| pool_size | " + " | ".join(loads) + " |")
    for size in SIZES:
        cells = []
        for name in loads:
            rates, latencies = zip(*found[size, name])
            cells.append(f"{statistics.median(rates):.0f} ({statistics.median(latencies):.1f})")
        print(f"| {size} | " + " | ".join(cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--clients", type=int, default=64)
    options = parser.parse_args()

    cluster = Cluster({"max_connections": 100})
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(THINKING)
        script.flush()
        os.chmod(script.name, 0o644)
        loads = {"read": ["-S"], "write": [], "thinking": ["-f", script.name]}
        try:
            run([program("pgbench"), "-i", "-q", "-s", "20", "-h", HOST, "-p", str(cluster.port)]
                + ["-U", USER, DATABASE], timeout=300)
            measure(cluster, loads, options)
        finally:
            cluster.destroy()
    return 0


if __name__ == "__main__":
    sys.exit(main())
