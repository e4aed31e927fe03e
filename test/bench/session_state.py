# SPDX-License-Identifier: ISC
"""What session state costs in transaction mode, with a server that uses almost no CPU time.

PgBouncer's figures, beside those of pgusher, are those of a pooler that lets such settings leak.
"""

import argparse
import statistics
import subprocess
import sys

import rig
from rig import OURS, POOL, THEIRS, Report, Rig, Trouble, in_turns, median_ratio, raise_descriptors

SETTING = "SET app.tenant = 'tenant %d'"
MANY = 1000
SETS = 100
IDLE = 5000


class Figures:
    """The figures, each a method."""

    def __init__(self, bench, report, options):
        self._bench = bench
        self._report = report
        self._options = options
        self._names = [OURS, THEIRS] if rig.find_pgbouncer() else [OURS]

    def _calls(self, daemon, *options):
        trace, done = rig.calls_of_transactions(
            daemon.pid, daemon.load(), self._bench.folder, *options
        )
        names = ", ".join(f"{name} {count / done:.2f}" for name, count in trace.by_name().items())
        return trace.count() / done, names

    def calls(self):
        """System calls per transaction at 50 clients"""
        possible, why = rig.can_trace()
        if not possible:
            self._report.skip("system calls per transaction", why)
            return
        cases = {
            "no state": ((), 4.3),
            "SET of the same value": (("-q", "SET app.tenant = 'red'"), 4.3),
            "SET of clients in 50 sets": (
                ("-q", "SET app.note = 'red'", "-s", SETTING, "-m", 50), 4.3
            ),
            "SELECT of clients in one set": (("-s", SETTING), 4.3),
            f"SELECT of clients in {POOL} sets": (("-s", SETTING, "-m", POOL), 4.3),
            "SELECT of clients in 50 sets": (("-s", SETTING, "-m", 50), 4.3),
        }
        with self._bench.running(*self._names) as daemons:
            for name, (options, bar) in cases.items():
                counts = [self._calls(each, "-c", 50, *options) for each in daemons]
                beside = "".join(f"; PgBouncer {calls:.2f}" for calls, _ in counts[1:])
                self._report.row(
                    f"system calls per transaction, {name}", counts[0][0], bar,
                    counts[0][1] + beside,
                )

    def sets(self):
        """1,000 clients in 100 different sets on 20 servers against one set"""
        def measure(case):
            daemon, count = case
            got = daemon.load().run(
                "transactions", "-c", MANY, "-t", self._options.seconds, "-w", 0.5,
                "-s", SETTING, "-m", count, timeout=120,
            )
            return got["cpu"] / got["done"] * 1e6, got["done"] / got["seconds"]

        with self._bench.running(*self._names) as daemons:
            cases = [(each, count) for each in daemons for count in (SETS, 1)]
            values = in_turns(cases, measure, self._options.rounds)
        cpu = [[value[0] for value in each] for each in values]
        rate = [[value[1] for value in each] for each in values]
        beside = ""
        if len(daemons) > 1:
            beside = f"; PgBouncer {statistics.median(cpu[3]):.1f} us"
        self._report.row(
            f"CPU per transaction, {SETS} sets / one", median_ratio(cpu[0], cpu[1]), 1.5,
            f"{statistics.median(cpu[0]):.1f} / {statistics.median(cpu[1]):.1f} us{beside}",
        )
        self._report.row(
            f"throughput, {SETS} sets / one", median_ratio(rate[0], rate[1]), 0.7,
            f"{statistics.median(rate[0]):.0f} / {statistics.median(rate[1]):.0f} a second",
            least=True,
        )

    def idle(self):
        """Memory of idle clients with state"""
        if not raise_descriptors(IDLE + 2000):
            self._report.skip("idle clients with state", "not enough descriptors (ulimit -n)")
            return
        each = {}
        for name in self._names:
            for case, options in {
                "none": (),
                "shared": ("-s", SETTING, "-m", SETS),
                "own": ("-s", SETTING, "-m", IDLE),
            }.items():
                with self._bench.running(name) as (daemon,):
                    daemon.load().run("transactions", "-c", 50, "-t", 0.3)
                    before = daemon.pss()
                    with daemon.load().idle(IDLE, *options) as grow:
                        grow(IDLE)
                        each[name, case] = (daemon.pss() - before) / IDLE
        theirs = f"PgBouncer {each[THEIRS, 'none']:.0f}" if len(self._names) > 1 else ""
        for case, words in (("shared", f"a setting, {SETS} sets"), ("own", "a setting of its own")):
            self._report.row(
                f"bytes more per idle client with {words}", each[OURS, case] - each[OURS, "none"],
                400, f"{each[OURS, case]:.0f} / {each[OURS, 'none']:.0f}; {theirs}",
            )


ALL = ["calls", "sets", "idle"]


def main():
    described = "\n".join(f"  {name:8} {getattr(Figures, name).__doc__}" for name in ALL)
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"figures:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="all, or those named")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    options = parser.parse_args()
    unknown = set(options.figures) - set(ALL)
    if unknown:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    if not rig.compiler():
        print("nothing was measured: a C compiler is needed\n0 passed, 0 failed")
        return 1
    report = Report("Session state in transaction mode")
    raise_descriptors(IDLE + 2000)
    with Rig() as bench:
        figures = Figures(bench, report, options)
        for name in options.figures or ALL:
            try:
                getattr(figures, name)()
            except (Trouble, AssertionError, OSError, subprocess.SubprocessError) as error:
                report.trouble(name, error)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
