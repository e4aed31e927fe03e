# SPDX-License-Identifier: ISC
"""One pgusher with several workers, beside several PgBouncers that share a port (so_reuseport).

Each has the same work: several databases, each with its own pool before the fake server, in transaction
mode. `even`: each database has as many clients; `skewed`: the first one has 70 % of them. Then
logins with TLS: connect, handshake, log in, SELECT 1, disconnect. Medians of rounds that take turns.

The load generator and the server need cores too: on a machine with few, --throttle gives each worker
or process a share of a core, by cgroups, so that its speed does not depend on the others'.
"""

import argparse
import contextlib
import os
import statistics
import sys
import threading
import time

import rig
from rig import HOST, OURS, THEIRS, Report, Rig, Trouble
from support.process import own, run, wait_until

SKEW = 70  # percent
PERIOD = 10_000  # microseconds


class Contender:
    """A pooler: one process with workers, or several processes that share a port."""

    def __init__(self, bench, name, count, databases, settings):
        self.title = f"pgusher, {count} worker{'s'[: count > 1]}"
        if name == THEIRS:
            self.title = f"PgBouncer, {count} process{'es' if count > 1 else ''}"
        self.is_ours = name == OURS
        self.count = count
        self._load_program = bench.load_program
        self._fake = bench.fake
        more = dict(settings)
        processes = 1
        if self.is_ours and count > 1:
            more["workers"] = count
        elif not self.is_ours:
            more["so_reuseport"] = 1
            processes = count
        self._daemons = [bench.daemon(name, databases, **more)]
        self.port = self._daemons[0].port
        for _ in range(processes - 1):
            self._daemons.append(bench.daemon(name, databases, port=self.port, **more))

    def start(self):
        for daemon in self._daemons:
            daemon.start()

    def stop(self):
        for daemon in self._daemons:
            daemon.stop()

    def refusal(self):
        """The line of the log that refuses the workers, or None."""
        lines = [line for line in self._daemons[0].log().splitlines() if "workers" in line]
        return lines[0] if lines else None

    @property
    def pids(self):
        return [daemon.pid for daemon in self._daemons]

    def threads(self):
        """The threads of all its processes, (pid, tid)."""
        return [(pid, int(tid)) for pid in self.pids for tid in os.listdir(f"/proc/{pid}/task")]

    def thread_seconds(self):
        """CPU time of each thread so far."""
        found = {}
        for pid, tid in self.threads():
            with open(f"/proc/{pid}/task/{tid}/schedstat") as file:
                found[tid] = int(file.read().split()[0]) / 1e9
        return found

    def memory(self):
        return sum(rig.resident(pid) for pid in self.pids)

    def servers(self):
        """Connections that the server has."""
        with open("/proc/net/tcp") as file:
            rows = [line.split() for line in list(file)[1:]]
        return sum(row[3] == "01" and row[1].endswith(f":{self._fake.port:04X}") for row in rows)

    def measure(self, mode, seconds, *options):
        """Run the load; its result, and what else was seen in the middle of it."""
        seen = {}

        def look():
            seen.update(memory=self.memory(), servers=self.servers())

        timer = threading.Timer(0.5 + seconds / 2, look)
        load = rig.Load(self._load_program, self.port, self.pids, database="main%d")
        before = self.thread_seconds()
        timer.start()
        try:
            got = load.run(mode, "-t", seconds, "-w", 0.5, *options)
        finally:
            timer.join()
        used = [now - before.get(tid, 0) for tid, now in self.thread_seconds().items()]
        # Of the workers: other threads use less than the least busy of them, or nothing.
        used = sorted(used, reverse=True)[: self.count]
        shares = [each / (seconds + 0.5) for each in used]
        per = got["cpu"] / got["done"] * 1e6
        return {**got, **seen, "rate": got["done"] / got["seconds"], "per": per, "shares": shares}


class Throttle:
    """A group of the kernel for each thread, with a share of a core; cgroups of version 1 or 2."""

    V1 = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
    V2 = "/sys/fs/cgroup"

    def __init__(self, share):
        self._quota = max(1000, int(share * PERIOD))
        self._made = []
        self._v1 = next((path for path in self.V1 if os.path.exists(f"{path}/tasks")), None)

    @staticmethod
    def _write(path, text):
        with open(path, "w") as file:
            file.write(str(text))

    def _make(self, path):
        os.mkdir(path)
        self._made.append(path)
        return path

    def apply(self, contender):
        """Throttle each thread; OSError where that is not permitted."""
        base = f"pgusher-bench-{os.getpid()}"
        if self._v1:
            for _, tid in contender.threads():
                group = self._make(f"{self._v1}/{base}-{tid}")
                self._write(f"{group}/cpu.cfs_period_us", PERIOD)
                self._write(f"{group}/cpu.cfs_quota_us", self._quota)
                self._write(f"{group}/tasks", tid)
            return
        self._write(f"{self.V2}/cgroup.subtree_control", "+cpu")
        for pid in contender.pids:
            parent = self._make(f"{self.V2}/{base}-{pid}")
            self._write(f"{parent}/cgroup.procs", pid)
            groups = []
            for tid in os.listdir(f"/proc/{pid}/task"):
                groups.append((tid, self._make(f"{parent}/{tid}")))
                self._write(f"{groups[-1][1]}/cgroup.type", "threaded")
            self._write(f"{parent}/cgroup.subtree_control", "+cpu")
            for tid, group in groups:
                self._write(f"{group}/cpu.max", f"{self._quota} {PERIOD}")
                self._write(f"{group}/cgroup.threads", tid)

    def remove(self):
        """After the processes have ended."""
        for path in reversed(self._made):
            with contextlib.suppress(OSError):
                wait_until(lambda path=path: not self._has_threads(path), 5)
                os.rmdir(path)
        self._made.clear()

    def _has_threads(self, path):
        with open(f"{path}/{'tasks' if self._v1 else 'cgroup.threads'}") as file:
            return bool(file.read().strip())


@contextlib.contextmanager
def started(contender, throttle):
    """A contender in this block, throttled if wished for; Trouble if it does not start."""
    try:
        contender.start()
        if throttle:
            throttle.apply(contender)
        yield contender
    finally:
        contender.stop()
        if throttle:
            throttle.remove()


class Scene:
    """The contenders of a run, those that start, and their tables."""

    def __init__(self, bench, options):
        self._bench = bench
        self._options = options
        self._throttle = None
        self._databases = [bench.fake_database(f"main{number}") for number in range(options.databases)]
        self._refused = set()

    def try_throttle(self):
        """Throttle from now on if the machine permits it."""
        if not self._options.throttle:
            print("Nothing is throttled (--throttle=SHARE).\n")
            return
        throttle = Throttle(self._options.throttle)
        trial = Contender(self._bench, OURS, 1, self._databases, {})
        try:
            with started(trial, throttle):
                pass
        except OSError as error:
            print(f"Nothing is throttled, the machine does not permit it: {error}\n")
            return
        self._throttle = throttle
        print(f"Each worker or process has {self._options.throttle:.0%} of a core.\n")

    def _rounds(self, names, measure, **settings):
        """Results of `measure(contender)` for each contender, a list each. One runs at a time: memory
        and CPU time of the others would disturb."""
        results = {}
        for turn in range(self._options.rounds):
            for name, count in names if turn % 2 == 0 else reversed(names):
                if (name, count) in self._refused:
                    continue
                contender = Contender(self._bench, name, count, self._databases, settings)
                try:
                    with started(contender, self._throttle):
                        results.setdefault((name, count), []).append(measure(contender))
                except Trouble:
                    refused = contender.refusal()
                    if not refused:
                        raise
                    self._refused.add((name, count))
                    print(f"{contender.title}: left out, the program refuses: {refused}\n")
        return {key: results[key] for key in names if key in results}

    def _title(self, key):
        return Contender(self._bench, *key, self._databases, {}).title

    def transactions(self, deal):
        """Throughput, fairness and memory with clients dealt evenly or not."""
        options = self._options
        counts = [int(count) for count in options.workers.split(",")]
        names = [(name, count) for count in counts for name in (OURS, THEIRS)]
        skew = ["-k", SKEW] if deal == "skewed" else []

        def measure(contender):
            return contender.measure(
                "transactions", options.seconds, "-c", options.clients, "-D", options.databases, *skew
            )

        results = self._rounds(names, measure, default_pool_size=options.pool)
        note = f"; {SKEW} % of the clients, and the times, are of one database" if skew else ""
        print(f"### {deal}: {options.clients} clients, {options.databases} databases{note}\n")
        print(
            "| pooler | transactions/s | CPU/transaction, us | p50, ms | p99, ms | p99/p50 | Jain, all |"
            " Jain, one database | memory, kB | servers | CPU of each thread |"
        )
        print("| --- |" + " ---: |" * 10)
        for key, got in results.items():
            rate, per, p50, p99, jain, least, memory, servers = (
                statistics.median(each[what] for each in got)
                for what in ("rate", "per", "p50", "p99", "jain", "jain_least", "memory", "servers")
            )
            shares = " ".join(f"{share:.0%}" for share in got[-1]["shares"])
            print(
                f"| {self._title(key)} | {rate:.0f} | {per:.2f} | {p50 / 1e3:.2f} | {p99 / 1e3:.2f} |"
                f" {p99 / p50:.2f} | {jain:.3f} | {least:.3f} | {memory / 1024:.0f} | {servers:.0f} |"
                f" {shares} |",
                flush=True,
            )
        print()
        return results

    def logins(self):
        """Logins by TLS per second, and their CPU time."""
        key, certificate = (os.path.join(self._bench.folder, f"tls.{end}") for end in ("key", "crt"))
        run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
            + ["-days", "2", "-keyout", key, "-out", certificate]
        )
        own(key)
        names = [(name, count) for count in (1, 2) for name in (OURS, THEIRS)]
        results = self._rounds(
            names,
            lambda contender: contender.measure(
                "logins", self._options.seconds, "-T", "-c", 16, "-D", self._options.databases
            ),
            client_tls_sslmode="require",
            client_tls_key_file=key,
            client_tls_cert_file=certificate,
        )
        print("### logins with TLS, 16 at a time, RSA of 2,048 bits\n")
        print("| pooler | logins/s | CPU/login, us | p99, ms | CPU of each thread | memory, kB |")
        print("| --- |" + " ---: |" * 5)
        for name, got in results.items():
            rate, per, p99, memory = (
                statistics.median(each[what] for each in got)
                for what in ("rate", "per", "p99", "memory")
            )
            shares = " ".join(f"{share:.0%}" for share in got[-1]["shares"])
            print(
                f"| {self._title(name)} | {rate:.0f} | {per:.1f} | {p99 / 1e3:.1f} | {shares} |"
                f" {memory / 1024:.0f} |",
                flush=True,
            )
        print()
        return results


def median(results, key, what):
    return statistics.median(each[what] for each in results[key])


def judge(report, even, skewed, logins, throttled):
    """The bars of the design, for the workers that there are."""
    for deal, results in (("even", even), ("skewed", skewed)):
        for name, count in results:
            if name != OURS:
                continue
            report.row(
                f"Jain's index of one database's clients, {deal}, workers = {count}",
                median(results, (name, count), "jain_least"), 0.99, least=True,
            )
            if count > 1:
                report.row(
                    f"CPU per transaction, {deal}, workers = {count} to 1",
                    median(results, (name, count), "per") / median(results, (OURS, 1), "per"), 1.15,
                )
            if count > 1 and throttled:
                report.row(
                    f"throughput, {deal}, workers = {count} to 1",
                    median(results, (name, count), "rate") / median(results, (OURS, 1), "rate"),
                    0.92 * count, least=True,
                )
    if (OURS, 2) not in logins:
        report.skip("logins with TLS, workers = 2 to 1", "the program has no workers")
        return
    ratio = median(logins, (OURS, 2), "rate") / median(logins, (OURS, 1), "rate")
    if throttled or os.cpu_count() >= 4:
        report.row("logins with TLS, workers = 2 to 1", ratio, 1.8, least=True)
    else:
        report.show("logins with TLS, workers = 2 to 1", ratio, "no core is left for the load")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--workers", default="1,2,4", help="how many (1,2,4)")
    parser.add_argument("--databases", type=int, default=4)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--pool", type=int, default=20, help="servers of each database")
    parser.add_argument("--throttle", type=float, default=0, metavar="SHARE", help="of a core (0.1)")
    options = parser.parse_args()
    if not rig.find_pgbouncer() or not rig.compiler():
        print("nothing was measured: PgBouncer and a C compiler are needed for comparison")
        print("0 passed, 0 failed")
        return 1
    rig.raise_descriptors(8 * options.clients + 4096)
    print(f"## Workers; {time.strftime('%Y-%m-%d %H:%M')}, {os.cpu_count()} CPUs\n")
    with Rig() as bench:
        scene = Scene(bench, options)
        scene.try_throttle()
        even, skewed = scene.transactions("even"), scene.transactions("skewed")
        logins = scene.logins()
    report = Report("Bars")
    judge(report, even, skewed, logins, scene._throttle)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
