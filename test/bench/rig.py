# SPDX-License-Identifier: ISC
"""What the measurements share: tools, daemons, their costs, and the report."""

import contextlib
import json
import os
import re
import resource
import select
import shutil
import signal
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from support.process import HOST, as_service, drop_folder, free_port, make_folder, own, wait_until
from support.servers.pooler import binary, publish_binary

USER = "app"
DATABASE = "main"
POOL = 20
OURS = "pgusher"
THEIRS = "pgbouncer"


class Trouble(Exception):
    """A figure that could not be measured."""


def raise_descriptors(wanted):
    """Raise the limit of descriptors for this process and its children; false if the kernel
    refuses."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        if os.geteuid() != 0:
            return False
        hard = wanted
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return False
    return True


# Tools


def compiler():
    """The path of a C compiler, or None."""
    return next(filter(None, (shutil.which(name) for name in ("cc", "gcc", "clang"))), None)


def compile_tool(name, folder, *options):
    """Compile a program of this folder; returns its path."""
    path = os.path.join(folder, name)
    command = [compiler(), "-O2", "-D_GNU_SOURCE", "-std=gnu17", *options, "-o", path]
    done = subprocess.run(
        command + [os.path.join(HERE, name + ".c"), "-lssl", "-lcrypto"], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise Trouble(f"cannot compile {name}.c: {done.stderr[-1000:]}")
    return path


class FakeServer:
    """The server that uses almost no CPU time."""

    def __init__(self, program):
        self.port = free_port()
        self._process = subprocess.Popen(
            [program, str(self.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.pid = self._process.pid
        if self._process.stdout.readline() != b"ready\n":
            raise Trouble("the fake server did not start")

    def stop(self):
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Load:
    """The load generator, with the address and the process or processes to measure."""

    def __init__(self, program, port, pid=0, user=USER, database=DATABASE, password=""):
        self._command = [program]
        self._where = ["-p", str(port), "-u", user, "-d", database, "-W", password]
        for each in pid if isinstance(pid, list) else [pid]:
            self._where += ["-P", str(each)]

    def _arguments(self, mode, options):
        return self._command + [mode, *self._where, *map(str, options)]

    def run(self, mode, *options, timeout=300, started=lambda pid: None):
        """Run it to its end; its result. Errors of clients are an error here. `started` is told the
        number of its process."""
        with subprocess.Popen(
            self._arguments(mode, options),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            started(process.pid)
            try:
                printed, errors = process.communicate(timeout=timeout)
            except BaseException:
                process.kill()
                raise
        if process.returncode != 0:
            raise Trouble(f"load ended with {process.returncode}: {errors[-500:]}")
        got = json.loads(printed.splitlines()[-1])
        if got["errors"] or not got["done"]:
            raise Trouble(f"{got['errors']} errors, {got['done']} done: {got['said']}")
        return got

    @contextlib.contextmanager
    def idle(self, most, *options):
        """Clients that log in, send a query and stay; yields grow(count), which returns when they
        do."""
        process = subprocess.Popen(
            self._arguments("idle", ["-c", most, *options]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

        def grow(count, timeout=180):
            process.stdin.write(f"{count}\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], timeout)[0]:
                raise Trouble(f"{count} clients did not get in within {timeout} s")
            printed = process.stdout.readline().strip()
            if printed != str(count):
                raise Trouble(f"{count} clients did not get in: {printed}")

        try:
            yield grow
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)
            process.kill()
            process.wait()
            process.stdout.close()


# Costs of a process


def cpu_seconds(pid):
    """CPU time of a process so far, of all its threads, exact to the nanosecond."""
    return time.clock_gettime(((~pid) << 3) | 2)


def resident(pid, kind="Pss"):
    """Resident memory of a process in bytes.

    Pss: with its share of pages of several processes, so that it changes when others start or end.

    Anonymous: its own memory.
    """
    with open(f"/proc/{pid}/smaps_rollup") as file:
        found = re.search(rf"^{kind}:\s+(\d+) kB", file.read(), re.MULTILINE)
    return int(found.group(1)) * 1024


def settled(pid, kind="Pss", quiet=1.0, most=12):
    """Resident memory once it has stayed the same for a while, or at the end of a time limit."""
    began = since = time.monotonic()
    last = resident(pid, kind)
    while time.monotonic() - since < quiet and time.monotonic() - began < most:
        time.sleep(0.05)
        now = resident(pid, kind)
        if abs(now - last) > 8192:
            last, since = now, time.monotonic()
    return resident(pid, kind)


# System calls


class Trace:
    """The output of strace: a (time, name, text) for each call that began."""

    LINE = re.compile(r"^(?:\d+ +)?(\d+\.\d+) (\w+)\((.*)$")

    def __init__(self, text):
        self.calls = []
        for line in text.splitlines():
            found = self.LINE.match(line)
            if found:
                self.calls.append((float(found.group(1)), found.group(2), found.group(3)))

    def between(self, began, ended):
        """The calls that began between two times of the wall clock."""
        trace = Trace("")
        trace.calls = [call for call in self.calls if began <= call[0] < ended]
        return trace

    def count(self, *names):
        """How many calls, of these names if any are given."""
        return sum(1 for _, name, _ in self.calls if not names or name in names)

    def by_name(self):
        """How many calls of each name, the most frequent first."""
        counts = {}
        for _, name, _ in self.calls:
            counts[name] = counts.get(name, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: -pair[1]))

    def vain_receives(self):
        """The receives without data."""
        names = ("read", "readv", "recv", "recvfrom", "recvmsg")
        return [call for call in self.calls if call[1] in names and "EAGAIN" in call[2]]


@contextlib.contextmanager
def traced(pid, folder):
    """Trace a process in this block; yields a function that returns the Trace after the block."""
    path = os.path.join(folder, f"trace.{pid}.{time.monotonic_ns()}")
    strace = subprocess.Popen(
        ["strace", "-f", "-ttt", "-s", "0", "-o", path, "-p", str(pid)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )

    def result():
        with open(path) as file:
            return Trace(file.read())

    try:
        printed = strace.stderr.readline()
        if "attached" not in printed:
            raise Trouble(f"cannot trace: {printed.strip()}")
        yield result
    finally:
        if strace.poll() is None:
            strace.send_signal(signal.SIGINT)
        strace.stderr.read()
        strace.wait(20)
        strace.stderr.close()


def can_trace():
    """Whether strace can trace child processes; else the reason."""
    if not shutil.which("strace"):
        return False, "strace is not installed"
    child = subprocess.Popen(as_service(["sleep", "60"]), stdin=subprocess.DEVNULL)
    folder = make_folder("pgusher-trace-")
    try:
        with traced(child.pid, folder):
            return True, ""
    except Trouble as trouble:
        return False, str(trouble)
    finally:
        child.kill()
        child.wait()
        drop_folder(folder)


def calls_of_transactions(pid, load, folder, *options, least=4000):
    """Trace a part of a steady load; returns the Trace and the number of transactions in it."""
    for seconds in (1.5, 4, 12):
        with traced(pid, folder) as result:
            got = load.run("transactions", "-t", seconds, "-w", 0.5, *options)
        if got["done"] >= least:
            break
    return result().between(got["began"], got["ended"]), got["done"]


# Daemons


class Daemon:
    """pgusher or PgBouncer with a configuration that both understand."""

    def __init__(
        self, name, folder, load_program, databases, auth=None, users=None, program=None, port=None,
        **settings
    ):
        self.name = name
        self._program = program
        self._number = free_port()
        self.folder = folder
        self.port = port or self._number
        self._load_program = load_program
        self.process = None
        values = {
            "listen_addr": HOST,
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "trust",
            "auth_file": self._path("userlist"),
            "admin_users": "admin",
            "pool_mode": "transaction",
            "default_pool_size": POOL,
            "max_client_conn": 12000,
            "listen_backlog": 1024,
            "log_connections": 0,
            "log_disconnections": 0,
            "log_stats": 0,
            **settings,
        }
        lines = ["[databases]", *databases]
        if users:
            lines += ["[users]", *users]
        lines += ["[pgbouncer]", *(f"{key} = {value}" for key, value in values.items())]
        self._write("ini", lines)
        secrets = auth if auth is not None else [f'"{USER}" ""']
        self._write("userlist", ['"admin" ""', *secrets])

    def _path(self, kind):
        return os.path.join(self.folder, f"{self.name}.{self._number}.{kind}")

    def _write(self, kind, lines):
        with open(self._path(kind), "w") as file:
            file.write("\n".join(lines) + "\n")
        own(self._path(kind))

    def program(self):
        if self._program:
            return self._program
        return binary() if self.name == OURS else find_pgbouncer()

    def start(self, prefix=(), timeout=20, environment=None):
        """Start, with another program around it if given, and wait until it serves."""
        with open(self._path("log"), "wb") as log:
            own(self._path("log"))
            self.process = subprocess.Popen(
                as_service([*prefix, self.program(), self._path("ini")]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **(environment or {})},
            )
        wait_until(self._is_up, timeout, f"{self.name} to serve", interval=0.05)
        return self

    def _is_up(self):
        if self.process.poll() is not None:
            raise Trouble(f"{self.name} ended: {self.log()[-500:]}")
        return f":{self.port}" in self.log() and "listening on" in self.log()

    def log(self):
        with open(self._path("log"), errors="replace") as file:
            return file.read()

    def stop(self):
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(5)
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    def load(self, **options):
        """A load generator for it."""
        return Load(self._load_program, self.port, self.pid, **options)

    def cpu(self):
        return cpu_seconds(self.pid)

    def pss(self):
        return settled(self.pid)


def find_pgbouncer():
    """The path of PgBouncer's program, or None."""
    return shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


class Rig:
    """The folder, the tools and all processes; everything ends with the with-block."""

    def __init__(self):
        self._stack = contextlib.ExitStack()

    def __enter__(self):
        self.folder = make_folder("pgusher-bench-")
        self._stack.callback(drop_folder, self.folder)
        try:
            publish_binary(self.folder)
            self.load_program = compile_tool("load", self.folder)
            self.fake = FakeServer(compile_tool("fake", self.folder))
        except BaseException:
            self._stack.close()
            raise
        self._stack.callback(self.fake.stop)
        return self

    def __exit__(self, *what):
        self._stack.close()

    def fake_database(self, name=DATABASE, more=""):
        """The line of a database on the fake server."""
        return f"{name} = host={HOST} port={self.fake.port} {more}"

    def daemon(self, name, databases=None, **options):
        """A daemon that is not started."""
        databases = [self.fake_database()] if databases is None else databases
        return Daemon(name, self.folder, self.load_program, databases, **options)

    @contextlib.contextmanager
    def running(self, *names, prefix=(), timeout=20, environment=None, **options):
        """Daemons of these names with the same options, started."""
        daemons = [self.daemon(name, **options) for name in names]
        try:
            yield [daemon.start(prefix, timeout, environment) for daemon in daemons]
        finally:
            for daemon in daemons:
                daemon.stop()


# Results


def in_turns(things, measure, rounds):
    """Measure each thing once a round, in changing order; a list of values for each."""
    values = [[] for _ in things]
    for turn in range(rounds):
        order = range(len(things)) if turn % 2 == 0 else reversed(range(len(things)))
        for index in order:
            values[index].append(measure(things[index]))
    return values


def median_ratio(ours, theirs):
    """The median of the rounds' ratios: a disturbance of one round affects both of its values."""
    return statistics.median(one / other for one, other in zip(ours, theirs))


class Report:
    """Rows of a table, and the line at its end."""

    def __init__(self, title):
        self.passed = self.failed = 0
        self._began = time.monotonic()
        print(f"{title}; load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} CPUs")
        print(f"{'':4} {'figure':58} {'value':>9}  bar")

    def row(self, name, value, bar, note="", least=False):
        """One figure: the bar is its maximum or its minimum."""
        good = value >= bar if least else value <= bar
        self.passed += good
        self.failed += not good
        sign = ">=" if least else "<="
        word = "ok" if good else "MISS"
        print(f"{word:4} {name:58} {value:9.3f}  {sign} {bar:<7g} {note}".rstrip(), flush=True)

    def trouble(self, name, error):
        """A figure that could not be measured counts as a miss."""
        self.failed += 1
        print(f"MISS {name:58} {'-':>9}  {error}", flush=True)

    def show(self, name, value, note=""):
        """A figure without a bar."""
        print(f"     {name:58} {value:9.3f}  {note}".rstrip(), flush=True)

    def skip(self, name, why):
        """A figure that was left out."""
        print(f"skip {name:58} {'':>9}  {why}", flush=True)

    def close(self):
        """Print the result; returns the exit status."""
        seconds = time.monotonic() - self._began
        print(f"took {seconds:.0f} s; load average {os.getloadavg()[0]:.2f}")
        print(f"{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or not self.passed else 0
