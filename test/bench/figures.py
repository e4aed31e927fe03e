# SPDX-License-Identifier: ISC
"""Speed and memory compared with Debian's PgBouncer, in one run on one machine.

Transaction mode, a pool of 20, and a server that uses almost no CPU time unless stated otherwise.
Ratios are pgusher's to PgBouncer's, the median of rounds that take turns. Arguments name the
figures to measure, all by default. PGUSHER_BENCH may name a folder with a poolbench.py, which is
then run and judged too.
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import time

import instructions
import rig
from rig import DATABASE, HOST, OURS, POOL, THEIRS, USER, Report, Rig, Trouble, median_ratio
from support.process import drop_folder, make_folder
from support.servers.cluster import Cluster

PASSWORD = "a secret"
PROTOCOLS = {"simple": [], "extended": ["-x"]}
MANY = 10_000


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


class Figures:
    """Each public method measures one group of figures; --list prints its docstring."""

    def __init__(self, bench, report, options):
        self._bench = bench
        self._report = report
        self._rounds = options.rounds
        self._seconds = options.seconds
        # For ratios close to their bar: the same time in all, in more and shorter rounds.
        self._many_rounds = 4 * options.rounds
        self._short = options.seconds / 3

    def _pair(self, **options):
        return self._bench.running(OURS, THEIRS, **options)

    def _cpu(self, daemons, mode, *options, per="done", scale=1e6, rounds=None, **load):
        """CPU time of each daemon per unit of work, a list of rounds for each."""

        def measure(daemon):
            got = daemon.load(**load).run(mode, *options)
            return got["cpu"] / got[per] * scale

        return rig.in_turns(daemons, measure, rounds or self._rounds)

    def transactions(self):
        """CPU per transaction, simple and extended, 50 to 1,000 clients"""
        ratios = []
        with self._pair() as daemons:
            for protocol, more in PROTOCOLS.items():
                for clients in (50, 200, 500, 1000):
                    window = ["-c", clients, "-t", self._seconds, "-w", 0.3, *more]
                    ours, theirs = self._cpu(daemons, "transactions", *window)
                    ratios.append(median_ratio(ours, theirs))
                    self._report.show(
                        f"CPU per transaction, {protocol}, {clients} clients",
                        ratios[-1],
                        _microseconds(ours, theirs),
                    )
        self._report.row(
            "CPU per transaction, geometric mean of these", geometric_mean(ratios), 0.88
        )

    def calls(self):
        """System calls per transaction at 50 clients"""
        possible, why = rig.can_trace()
        if not possible:
            self._report.skip("system calls per transaction", why)
            return
        with self._pair() as (ours, theirs):
            for protocol, more in PROTOCOLS.items():
                note = {}
                for daemon in (theirs, ours):
                    trace, done = rig.calls_of_transactions(
                        daemon.pid, daemon.load(), self._bench.folder, "-c", 50, *more
                    )
                    note[daemon.name] = trace.count() / done
                names = ", ".join(
                    f"{name} {count / done:.2f}" for name, count in trace.by_name().items()
                )
                where = f"transaction, {protocol}, 50 clients"
                note = f"{names}; PgBouncer {note[THEIRS]:.2f}"
                self._report.row(f"system calls per {where}", trace.count() / done, 4.2, note)
                self._report.row(f"epoll_ctl, {where}", trace.count("epoll_ctl"), 0)
                self._report.row(f"receives in vain, {where}", len(trace.vain_receives()), 0)

    def instructions(self):
        """User instructions per transaction, 10 clients, by callgrind"""
        problem = instructions.why_not()
        if problem:
            self._report.skip("user instructions per transaction", problem)
            return
        counts = []
        for program in (rig.binary(), rig.find_pgbouncer()):
            with instructions.counting(self._bench, program) as counter:
                counts.append([counter.per_transaction(each, 10)[0] for each in PROTOCOLS])
        for protocol, ours, theirs in zip(PROTOCOLS, *counts):
            show = self._report.row if protocol == "simple" else self._report.show
            bar = [0.70] if protocol == "simple" else []
            show(
                f"user instructions per transaction, {protocol}",
                ours / theirs,
                *bar,
                f"{ours:.0f} / {theirs:.0f}",
            )

    def idle(self):
        """Memory per idle client, and CPU with 10,000 of them"""
        if not rig.raise_descriptors(MANY + 2000):
            self._report.skip("10,000 idle clients", "not enough descriptors (ulimit -n)")
            return
        each, shares = {}, {}
        for name in (OURS, THEIRS):
            with self._bench.running(name) as (daemon,):
                # Everything that is initialised at first use exists then.
                daemon.load().run("transactions", "-c", 50, "-t", 0.5)
                before = daemon.pss()
                with daemon.load().idle(MANY) as grow:
                    grow(MANY)
                    each[name] = (daemon.pss() - before) / MANY
                    began, cpu = time.monotonic(), daemon.cpu()
                    time.sleep(15)
                    shares[name] = (daemon.cpu() - cpu) / (time.monotonic() - began)
        self._report.row(
            "memory per idle client, 10,000 of them",
            each[OURS] / each[THEIRS],
            0.60,
            f"{each[OURS]:.0f} / {each[THEIRS]:.0f} bytes",
        )
        self._report.row(
            "CPU with 10,000 idle clients",
            shares[OURS] / shares[THEIRS],
            1.0,
            f"{shares[OURS]:.5%} / {shares[THEIRS]:.5%} of a CPU",
        )

    def users(self):
        """Memory per configured user"""
        secrets = [f'"user{number}" "secret{number}"' for number in range(MANY)]
        entries = [f"user{number} = pool_mode=transaction" for number in range(MANY)]
        limited = [f"user{number} = max_user_connections=5" for number in range(MANY)]
        cases = {
            "auth_file": {"auth": secrets},
            "[users]": {"users": entries},
            "both": {"auth": secrets, "users": limited},
        }
        for name in (OURS, THEIRS):
            with self._bench.running(name) as (daemon,):
                before = daemon.pss()
            for case, options in cases.items():
                if name == THEIRS and "users" in options:
                    options = {**options, "users": limited}
                try:
                    with self._bench.running(name, **options) as (daemon,):
                        each = (daemon.pss() - before) / MANY
                except Trouble as trouble:
                    self._report.trouble(f"memory per user of {case}", trouble)
                    continue
                if name == OURS:
                    self._report.row(
                        f"bytes per user, 10,000 in {case}", each, 1024, _kilobytes(before)
                    )
                else:
                    self._report.show(f"the same, PgBouncer, 10,000 in {case}", each)

    def pools(self):
        """Memory per pool that has served no query"""
        count = 5000
        for name in (OURS, THEIRS):
            each = self._bytes_per_pool(name, count)
            if name == OURS:
                self._report.row(f"bytes per pool without a query, {count} of them", each, 4096)
            else:
                self._report.show("the same, PgBouncer", each)

    def _bytes_per_pool(self, name, count):
        """Users that log in, send no query and disconnect create pools; their servers close when
        idle."""
        if not rig.raise_descriptors(2 * count + 1000):
            raise Trouble("not enough descriptors (ulimit -n)")
        auth = [f'"user{number}" ""' for number in range(count)] + [f'"{USER}" ""']
        with self._bench.running(name, auth=auth, server_idle_timeout=1) as (daemon,):
            daemon.load().run("transactions", "-c", 50, "-t", 0.5)
            before = daemon.pss()
            with daemon.load(user="user%d").idle(count, "-q", "") as grow:
                grow(count)
            # The servers of the last pools close a second after they logged in.
            descriptors = f"/proc/{daemon.pid}/fd"
            rig.wait_until(lambda: len(os.listdir(descriptors)) < 50, 60, "servers to go")
            time.sleep(3)
            pools = _console_rows(daemon.port, "SHOW POOLS")
            if pools < count:
                raise Trouble(f"only {pools} pools were made")
            return (daemon.pss() - before) / count

    def burst(self):
        """Memory a minute after 1,000 busy clients have disconnected"""
        with self._bench.running(OURS, OURS) as (busy, quiet):
            for daemon in (busy, quiet):
                daemon.load().run("transactions", "-c", 1, "-n", 100)
            busy.load().run("transactions", "-c", 1000, "-t", 5)
            peak = rig.resident(busy.pid)
            time.sleep(60)
            after, never = busy.pss(), quiet.pss()
        allowed = max(never * 0.10, 1 << 20) / (1 << 20)
        self._report.row(
            "MB more than before, a minute after 1,000 busy clients",
            (after - never) / (1 << 20),
            allowed,
            f"{_kilobytes(after)} against {_kilobytes(never)}, {_kilobytes(peak)} at the time",
        )

    def bulk(self):
        """CPU per GB of rows and COPY"""
        size = 512 << 20
        cases = {
            "rows of 100 B": ["-q", f"SELECT bulk {size // 100} 100"],
            "rows of 1 kB": ["-q", f"SELECT bulk {size // 1000} 1000"],
            "rows of 64 kB": ["-q", f"SELECT bulk {size // 65536} 65536"],
            "COPY out, 100 B": ["-q", f"COPY bulk {size // 100} 100 TO STDOUT"],
            "COPY in, 8 kB": ["-q", "COPY sink FROM STDIN", "-b", size],
        }
        with self._pair() as daemons:
            for case, options in cases.items():
                rounds = min(3, self._rounds)
                ours, theirs = self._cpu(
                    daemons, "bulk", *options, per="bytes", scale=1e9, rounds=rounds
                )
                self._report.row(
                    f"CPU per GB, {case}",
                    median_ratio(ours, theirs),
                    0.45,
                    f"{min(ours):.2f} / {min(theirs):.2f} s",
                )

    def logins(self):
        """CPU per login, trust and md5"""
        for method in ("trust", "md5"):
            options = {"auth_type": method, "auth": [f'"{USER}" "{_md5_secret()}"']}
            with self._pair(**options) as daemons:
                window = ["-c", 8, "-t", self._short, "-w", 0.1]
                ours, theirs = self._cpu(
                    daemons, "logins", *window, rounds=self._many_rounds, password=PASSWORD
                )
            self._report.row(
                f"CPU per login, {method}",
                median_ratio(ours, theirs),
                0.85,
                _microseconds(ours, theirs),
            )

    def latency(self):
        """Added latency of a single client, p50"""
        for protocol, more in PROTOCOLS.items():
            with self._pair() as daemons:
                loads = [rig.Load(self._bench.load_program, self._bench.fake.port)]
                loads += [daemon.load() for daemon in daemons]
                direct, ours, theirs = rig.in_turns(
                    loads,
                    lambda load: load.run(
                        "transactions", "-c", 1, "-t", self._short, "-w", 0.1, *more
                    )["p50"],
                    self._many_rounds,
                )
            added = [[a - b for a, b in zip(each, direct)] for each in (ours, theirs)]
            self._report.row(
                f"added latency of one client, p50, {protocol}",
                median_ratio(*added),
                1.05,
                f"{min(ours):.1f} / {min(theirs):.1f} us, direct {min(direct):.1f}",
            )

    def waiting(self):
        """Fairness: 2,000 clients on a pool of 20, a real server that sleeps"""
        if not rig.raise_descriptors(6000):
            self._report.skip("2,000 waiting clients", "not enough descriptors (ulimit -n)")
            return
        cluster = Cluster()
        line = f"{DATABASE} = host={HOST} port={cluster.port}"
        window = ["-c", 2000, "-t", 4, "-w", 2, "-q", "SELECT pg_sleep(0.005)"]
        try:
            with self._pair(databases=[line]) as daemons:
                for daemon in daemons:
                    got = daemon.load().run("transactions", *window)
                    ratio = got["max"] / got["p50"]
                    note = f"p50 {got['p50'] / 1e3:.0f} ms, max {got['max'] / 1e3:.0f} ms"
                    if daemon.name == OURS:
                        self._report.row(
                            "2,000 waiting clients, longest wait / median", ratio, 1.2, note
                        )
                    else:
                        self._report.show("the same, PgBouncer", ratio, note)
        finally:
            cluster.destroy()


ALL = [name for name, value in vars(Figures).items() if callable(value) and name[0] != "_"]


def _md5_secret():
    return "md5" + hashlib.md5((PASSWORD + USER).encode()).hexdigest()


def _microseconds(ours, theirs):
    return f"{min(ours):.2f} / {min(theirs):.2f} us"


def _kilobytes(count):
    return f"{count / 1024:.0f} kB"


def _console_rows(port, command):
    """How many rows a console command returns."""
    environment = {**os.environ, "PGAPPNAME": "figures"}
    done = subprocess.run(
        ["psql", "-XAt", "-h", HOST, "-p", str(port), "-U", "admin", "-c", command, "pgbouncer"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    if done.returncode != 0:
        raise Trouble(done.stderr)
    return len(done.stdout.splitlines())


class PoolbenchFigures:
    """The same bars, judged by the results of a poolbench.py."""

    SUITES = "tx,latency,syscalls,memory,login,bulk,queue,instructions"

    def __init__(self, report, folder):
        self._report = report
        self._folder = folder
        self._rows = []

    def measure(self, more):
        """Run it. Poolers without prepared statements or TLS are not measured with them."""
        work = make_folder("pgusher-poolbench-")
        try:
            with open(os.path.join(self._folder, "targets.json")) as file:
                targets = json.load(file)["targets"]
            ours = next(each for each in targets if each["name"] == "ours")
            ours |= {"protocols": list(PROTOCOLS), "auth": ["trust", "md5"], "tls": False}
            with open(os.path.join(work, "ours.json"), "w") as file:
                json.dump({"targets": [ours]}, file)
            out = os.path.join(work, "out.json")
            subprocess.run(
                [sys.executable, os.path.join(self._folder, "poolbench.py")]
                + ["--targets", os.path.join(self._folder, "targets.json")]
                + ["--targets", os.path.join(work, "ours.json")]
                + ["--ours", rig.binary(), "--only", "direct,pgbouncer-debian,ours"]
                + ["--suites", self.SUITES, "--out", out, *more],
                check=True,
                timeout=3600,
            )
            with open(out) as file:
                self._rows = json.load(file)["rows"]
        finally:
            drop_folder(work)

    def _best(self, suite, target, key, **where):
        found = [
            row["got"][key]
            for row in self._rows
            if row["suite"] == suite
            and row["target"] == target
            and key in row["got"]
            and all(row["params"].get(name) == value for name, value in where.items())
        ]
        if not found:
            raise Trouble(f"poolbench has no {suite} {key} of {target} {where}")
        return min(found)

    def _ratio(self, suite, key, **where):
        ours = self._best(suite, "ours", key, **where)
        return ours / self._best(suite, "pgbouncer-debian", key, **where)

    def _params(self, suite):
        return [row["params"] for row in self._rows if row["suite"] == suite]

    def judge(self):
        """Report every figure of poolbench."""
        for name, bar, value in self._figures():
            try:
                self._report.row(f"poolbench: {name}", value(), bar)
            except Trouble as trouble:
                self._report.trouble(f"poolbench: {name}", trouble)

    def _figures(self):
        most = max((each["clients"] for each in self._params("memory")), default=MANY)
        clients = sorted({each["clients"] for each in self._params("tx") if each["clients"] >= 50})
        idle = {"tls": False, "clients": most}

        def transactions():
            return geometric_mean(
                [
                    self._ratio("tx", "cpu_us", protocol=protocol, clients=count)
                    for protocol in PROTOCOLS
                    for count in clients
                ]
            )

        def added_latency():
            where = {"backend": "fake", "protocol": "simple"}
            direct = self._best("latency", "direct", "p50_us", **where)
            ours, theirs = (
                self._best("latency", name, "p50_us", **where) - direct
                for name in ("ours", "pgbouncer-debian")
            )
            return ours / theirs

        yield "CPU per transaction, geometric mean", 0.88, transactions
        yield "system calls per transaction", 4.2, lambda: self._best(
            "syscalls", "ours", "syscalls", protocol="simple", clients=50
        )
        yield "user instructions per transaction", 0.70, lambda: self._ratio(
            "instructions", "instructions", protocol="simple"
        )
        yield f"memory per idle client, {most}", 0.60, lambda: self._ratio(
            "memory", "pss_per_client", **idle
        )
        yield f"CPU with {most} idle clients", 1.0, lambda: self._ratio(
            "memory", "idle_cpu_share", **idle
        )
        cases = dict.fromkeys(
            each["case"] for each in self._params("bulk") if each["backend"] == "fake"
        )
        for case in cases:
            yield f"CPU per GB, {case}", 0.45, lambda case=case: self._ratio(
                "bulk", "cpu_s_per_gb", backend="fake", case=case
            )
        for method in ("trust", "md5"):
            yield f"CPU per login, {method}", 0.85, lambda method=method: self._ratio(
                "login", "cpu_us", auth=method, tls=False
            )
        yield "added latency of one client, p50", 1.05, added_latency
        yield "waiting clients, longest wait / median", 1.2, lambda: self._best(
            "queue", "ours", "max_by_p50", backend="pg"
        )


def measure(bench, report, options):
    """Measure the chosen figures, one group after the other."""
    figures = Figures(bench, report, options)
    for name in options.figures or ALL:
        try:
            getattr(figures, name)()
        except (Trouble, AssertionError, OSError, subprocess.SubprocessError) as error:
            report.trouble(name, error)


def measure_poolbench(report, options):
    folder = os.environ.get("PGUSHER_BENCH")
    if not folder:
        report.skip("the same figures by poolbench.py", "PGUSHER_BENCH names no folder of it")
        return
    poolbench = PoolbenchFigures(report, folder)
    try:
        poolbench.measure(options.poolbench.split())
    except (OSError, KeyError, StopIteration, subprocess.SubprocessError) as error:
        report.trouble("poolbench.py", error)
        return
    poolbench.judge()


def main():
    described = "\n".join(f"  {name:13} {getattr(Figures, name).__doc__}" for name in ALL)
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"figures:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("figures", nargs="*", metavar="FIGURE", help="all, or those named")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement")
    parser.add_argument("--poolbench", default="", help="more options for poolbench.py")
    options = parser.parse_args()
    unknown = set(options.figures) - set(ALL)
    if unknown:
        parser.error(f"no such figure: {', '.join(sorted(unknown))}")
    theirs = rig.find_pgbouncer()
    if not theirs or not rig.compiler():
        print("nothing was measured: PgBouncer and a C compiler are needed for comparison")
        print("0 passed, 0 failed")
        return 1
    version = subprocess.run([theirs, "--version"], capture_output=True, text=True, check=False)
    report = Report(f"Ours / {version.stdout.splitlines()[0]}")
    with Rig() as bench:
        measure(bench, report, options)
    if not options.figures:
        measure_poolbench(report, options)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
