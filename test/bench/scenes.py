# SPDX-License-Identifier: ISC
"""Throughput scenes from users' reports: pgbench against a real PostgreSQL.

Each figure is the median of five rounds, taken in turns.
"""

import argparse
import re
import statistics
import sys

import rig
from rig import HOST, POOL, USER, Report, Rig, raise_descriptors
from support.process import run
from support.servers.cluster import Cluster, program

DATABASE = "main"
COUNTS = [10, 50, 100, 200, 500]


def pgbench(port, *options):
    """Run pgbench; transactions per second. A refused or failed client is an error."""
    done = run(
        [program("pgbench"), "-n", "-h", HOST, "-p", str(port), "-U", USER, *options, DATABASE],
        check=False,
        timeout=300,
    )
    output = done.stdout + done.stderr
    failed = re.search(r"number of failed transactions: (\d+)", output)
    refused = re.search(r".*(?:aborted|FATAL|ERROR|error:).*", output)
    if done.returncode != 0 or refused or (failed and failed.group(1) != "0"):
        raise rig.Trouble(refused.group(0) if refused else output[-500:])
    return float(re.search(r"^tps = ([\d.]+)", output, re.MULTILINE).group(1))


def many_clients(report, daemon, options):
    """10 to 500 clients with SELECT 1 on a pool of 20."""
    with open(f"{daemon.folder}/select.sql", "w") as file:
        file.write("SELECT 1;\n")

    def measure(count):
        return pgbench(
            daemon.port, "-c", str(count), "-j", "2", "-T", options.seconds, "-f", file.name
        )

    try:
        values = rig.in_turns(COUNTS, measure, options.rounds)
    except rig.Trouble as trouble:
        report.trouble("10 to 500 clients, SELECT 1: none refused", trouble)
        return
    rates = {count: statistics.median(each) for count, each in zip(COUNTS, values)}
    for count, each in zip(COUNTS, values):
        note = f"{min(each):.0f} to {max(each):.0f}"
        report.show(f"{count} clients, SELECT 1, transactions per second", rates[count], note)
    report.row("clients refused, of 10 to 500 at a time", 0, 0)
    report.row("throughput of 500 clients / of 100", rates[500] / rates[100], 0.85, least=True)


def connecting(report, daemon, cluster, options):
    """A connection for each transaction, direct and through the pool."""

    def measure(port):
        return pgbench(port, "-C", "-S", "-c", "20", "-j", "2", "-T", options.seconds)

    try:
        direct, pooled = rig.in_turns([cluster.port, daemon.port], measure, options.rounds)
    except rig.Trouble as trouble:
        report.trouble("pgbench -C -S -c 20", trouble)
        return
    report.row(
        "pgbench -C -S -c 20, through the pool / direct",
        statistics.median(pooled) / statistics.median(direct),
        1.8,
        f"{statistics.median(pooled):.0f} / {statistics.median(direct):.0f} a second",
        least=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", default="3", help="of each measurement")
    options = parser.parse_args()
    report = Report(f"Scenes, real PostgreSQL, pool of {POOL}, medians of {options.rounds} rounds")
    raise_descriptors(4096)
    cluster = Cluster()
    try:
        run(
            [program("pgbench"), "-i", "-q", "-s", "5", "-h", HOST, "-p", str(cluster.port)]
            + ["-U", USER, DATABASE]
        )
        line = f"{DATABASE} = host={HOST} port={cluster.port}"
        with Rig() as bench, bench.running(rig.OURS, databases=[line]) as (daemon,):
            many_clients(report, daemon, options)
            connecting(report, daemon, cluster, options)
    finally:
        cluster.destroy()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
