# SPDX-License-Identifier: ISC
"""One daemon under test: its folder, its configuration, its process, and queries to it."""

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess

import psycopg
from psycopg.rows import dict_row

from support import process
from support.clients.raw import Closed, RawClient, ServerError
from support.process import (
    HOST, PATIENCE, as_daemon_user, as_service, drop_folder, free_port, make_folder, own, wait_until,
)

IN_THE_CLEAR = ("disable", "allow", "prefer")
ADMIN = "admin"
STATS = "stats"

# The line that the daemon logs when it serves.
UP = r"( LOG |\"message\":\")process up: "

# Lines that no daemon may ever write.
BAD_LINES = re.compile(
    r"AddressSanitizer|LeakSanitizer|WARNING: ThreadSanitizer|runtime error:|check failed|Assertion|"
    r"^\S+ \S+ \S+ \[\d+\] FATAL "
)

# ThreadSanitizer does not see the locks of the dynamic linker, which loads and unloads PAM's modules in
# the threads that ask PAM. libaudit builds its messages in one buffer of the process.
RACES_OF_LIBRARIES = "race:ld-linux\nrace:libaudit\n"


def binary():
    """The daemon's path: $PGUSHER_BIN or the one built in or beside the source tree."""
    named = os.environ.get("PGUSHER_BIN")
    top = os.path.abspath(os.path.join(os.path.dirname(__file__), *[".."] * 4))
    for path in [named] if named else [top + "/pgusher", top + "/build/pgusher"]:
        if os.access(path, os.X_OK):
            return path
    raise RuntimeError("no daemon to test; build it or set PGUSHER_BIN")


def publish_binary(folder):
    """Copy the daemon to this folder if the service user cannot run it where it is, and name the
    copy in $PGUSHER_BIN: a checkout or build folder may be one that only root can enter."""
    path = binary()
    if process.run(["test", "-x", path], check=False).returncode != 0:
        os.environ["PGUSHER_BIN"] = shutil.copy(path, folder)
        if os.path.exists(path + "-top"):
            shutil.copy(path + "-top", folder)


@functools.cache
def sanitizers(path):
    """Which sanitizers this program was built with: `asan`, `tsan`."""
    with open(path, "rb") as file:
        program = file.read()
    return {name for name in ("asan", "tsan") if f"__{name}_init".encode() in program}


def is_sanitized():
    """Whether it was built with AddressSanitizer or ThreadSanitizer: memory bounds mean nothing."""
    return bool(sanitizers(binary()))


def is_thread_sanitized():
    """Whether it was built with ThreadSanitizer, which makes it ten times as slow."""
    return "tsan" in sanitizers(binary())


class Pooler:
    """A daemon with a folder and ports of its own."""

    def __init__(self, settings=None, databases=None, users=None, auth=None, cluster=None):
        """Nothing is started yet.

        settings   of [pgbouncer]; None leaves one of the harness's own out
        databases  of [databases]: a dict of keys, or the text as it is; host and port
                   default to the cluster's
        users      of [users], likewise
        auth       the secrets of the auth_file by user name, or its text as it is
        """
        self.folder = make_folder("pgusher-")
        self.port = free_port()
        self.cluster = cluster
        self.process = None
        self.is_pgusher = True  # the program that was started last
        self.exit_code = None
        self.allowed = []
        self.settings = dict(settings or {})
        self.databases = {"main": {}} if databases is None else dict(databases)
        self.users = dict(users or {})
        self.auth = auth
        self.peers = []  # the lines of [peers]
        self._opened = []
        self._console = None
        self.log_path = self.path("stderr")
        self.config_path = self.path("pgusher.ini")
        self.auth_path = self.path("userlist.txt")
        self.write_config()

    # Files

    def path(self, name):
        """A path in the daemon's folder."""
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """Write a file into the daemon's folder, for the daemon to read; returns its path."""
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        own(path)
        return path

    def own_settings(self):
        """The settings of every configuration, unless a test overrides them."""
        settings = {
            "listen_addr": HOST,
            "listen_port": self.port,
            "unix_socket_dir": self.folder,
            "auth_type": "trust",
            "auth_file": self.auth_path,
            "admin_users": ADMIN,
            "stats_users": STATS,
            # Most tests count what servers get, or have fake ones, which have no catalog.
            "session_functions_refresh": 0,
        }
        # The suite runs with several workers too: PGUSHER_WORKERS=4.
        if self.is_pgusher and os.environ.get("PGUSHER_WORKERS"):
            settings["workers"] = os.environ["PGUSHER_WORKERS"]
        return settings

    def config_text(self):
        """The configuration file's text."""
        lines = ["[databases]"]
        for name, entry in self.databases.items():
            lines.append(f"{_quote_key(name)} = {self._database(entry)}")
        if self.users:
            lines += ["", "[users]"]
            for name, entry in self.users.items():
                lines.append(f"{_quote_key(name)} = {_join(entry)}")
        if self.peers:
            lines += ["", "[peers]", *self.peers]
        lines += ["", "[pgbouncer]"]
        for name, value in {**self.own_settings(), **self.settings}.items():
            if value is not None:
                lines.append(f"{name} = {value}")
        return "\n".join(lines) + "\n"

    def _database(self, entry):
        if isinstance(entry, str):
            return entry
        keys = dict(entry)
        if self.cluster and "host" not in keys:
            keys = {"host": self.cluster.host, "port": self.cluster.port, **keys}
        return _join(keys)

    def auth_text(self):
        """The auth_file's text."""
        if isinstance(self.auth, (str, bytes)):
            return self.auth
        secrets = {name: "" for name in (ADMIN, STATS, "app", "alice", "bob", "carol")}
        secrets.update(self.auth or {})
        return "".join(
            '"{}" "{}"\n'.format(name.replace('"', '""'), secret.replace('"', '""'))
            for name, secret in secrets.items()
            if secret is not None
        )

    def write_config(self):
        """Write the configuration and the auth_file anew from settings, databases, users, auth."""
        self.write("pgusher.ini", self.config_text())
        self.write("userlist.txt", self.auth_text())

    # Start and stop

    def _thread_sanitizer_options(self):
        if not is_thread_sanitized():
            return {}
        # A race is logged, and found by check_log(); the exit code tells of it too.
        path = self.write("suppressions", RACES_OF_LIBRARIES)
        more = os.environ.get("TSAN_OPTIONS", "")
        return {"TSAN_OPTIONS": f"halt_on_error=0 exitcode=66 suppressions={path} {more}"}

    def spawn(self, *options, as_root=False, config=True, wrap=(), **popen):
        """Start the process, by a program if `wrap` names one, without waiting for anything."""
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "TZ": "UTC",
            "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:handle_abort=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            **self._thread_sanitizer_options(),
            **popen.pop("environment", {}),
        }
        program = popen.pop("program", None) or binary()
        if self.is_pgusher != (program == binary()):
            self._change_program(program == binary())
        arguments = [*wrap, program, *options] + ([self.config_path] if config else [])
        with open(self.log_path, "ab") as log:
            own(self.log_path)
            self.process = subprocess.Popen(
                as_service(arguments, as_root),
                stdin=subprocess.DEVNULL,
                stdout=popen.pop("stdout", log),
                stderr=popen.pop("stderr", log),
                cwd=self.folder,
                env=environment,
                **popen,
            )
        self.exit_code = None
        return self.process

    def _change_program(self, is_pgusher):
        """PgBouncer does not know all settings. What a test has written itself stays."""
        is_own = False
        with contextlib.suppress(FileNotFoundError), open(self.config_path, encoding="utf-8") as file:
            is_own = file.read() == self.config_text()
        self.is_pgusher = is_pgusher
        self.settings.setdefault("session_functions_refresh", None)
        if is_own:
            self.write_config()

    def start(self, *options, **popen):
        """Start and wait until clients are accepted."""
        self.spawn(*options, **popen)
        self.wait_up()
        return self

    def take_over(self, *options, **popen):
        """Start a second process with -R and wait until it is up and the first one has gone."""
        old, ups = self.process, len(self.lines(UP))
        self.spawn("-R", *options, **popen)
        wait_until(lambda: self._is_up(ups), 30, "the new process to be up")
        assert old.wait(30) == 0
        return old

    def wait_up(self, before=0):
        """Wait until the daemon logs that it is up, as it did so often before; a connection would be
        counted by some tests."""
        wait_until(lambda: self._is_up(before), 30, "the daemon to be up")

    def _is_up(self, before):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}:\n{self.log()}")
        return len(self.lines(UP)) > before

    def run_to_end(self, *options, timeout=15, **popen):
        """Start a daemon that is expected to end by itself; returns its exit code."""
        self.spawn(*options, **popen)
        self.exit_code = self.process.wait(timeout * PATIENCE)
        return self.exit_code

    def signal(self, number):
        """Send a signal."""
        self.process.send_signal(number)

    def wait_exit(self, timeout=10):
        """Wait for the end; returns the exit code."""
        self.exit_code = self.process.wait(timeout)
        return self.exit_code

    def running(self):
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def close_clients(self):
        """Close every connection that tests opened through this object."""
        self._console = None
        while self._opened:
            with contextlib.suppress(Exception):
                self._opened.pop().close()

    def allow(self, pattern):
        """Accept a line of the log that would fail the test."""
        self.allowed.append(re.compile(pattern))

    def stop(self):
        """End the daemon with SIGTERM: once no client is connected it must exit by itself."""
        self.close_clients()
        if not self.running():
            return
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)
        try:
            self.wait_exit(60)  # a leak check with a million users takes long
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(
                f"all clients left, but the daemon stayed:\n{self.log()[-4000:]}"
            ) from None
        assert self.exit_code == 0, f"exit code {self.exit_code}\n{self.log()[-4000:]}"

    def check_log(self):
        """Assert that the daemon logged none of BAD_LINES."""
        bad = [
            line
            for line in self.log().splitlines()
            if BAD_LINES.search(line) and not any(each.search(line) for each in self.allowed)
        ]
        assert not bad, "\n".join(bad[:20])

    def destroy(self):
        """Stop, check and remove everything."""
        try:
            self.stop()
            self.check_log()
        finally:
            if self.running():
                self.process.kill()
                self.process.wait()
            drop_folder(self.folder)

    # Log

    def log(self):
        """What the daemon has written to stderr."""
        with contextlib.suppress(FileNotFoundError):
            with open(self.log_path, errors="replace") as file:
                return file.read()
        return ""

    def lines(self, pattern):
        """The lines of the log that match."""
        expression = re.compile(pattern)
        return [line for line in self.log().splitlines() if expression.search(line)]

    def wait_log(self, pattern, count=1, timeout=10):
        """Wait until so many lines match; returns them."""
        wait_until(
            lambda: len(self.lines(pattern)) >= count, timeout, f"{count} lines {pattern!r}"
        )
        return self.lines(pattern)

    # Clients

    def keep(self, thing):
        """Close this at the end of the test."""
        self._opened.append(thing)
        return thing

    @property
    def address(self):
        """The address for TCP clients."""
        return (HOST, self.port)

    @property
    def socket_path(self):
        """The path of the Unix socket."""
        return self.path(f".s.PGSQL.{self.port}")

    def raw(self, unix=False, address=None):
        """A connection that has not sent anything yet."""
        return self.keep(RawClient(address or (self.socket_path if unix else self.address)))

    def client(self, user="app", database="main", password=None, unix=False, **parameters):
        """A raw client that has logged in."""
        return self.raw(unix).login(user, database, password, **parameters)

    def refused(self, user="app", database="main", password=None, unix=False, **parameters):
        """The error that refuses this login; the daemon must close the connection after it."""
        client = self.raw(unix)
        try:
            client.login(user, database, password, **parameters)
        except ServerError as error:
            client.closed()
            return error
        raise AssertionError("was let in")

    def connect(self, user="app", dbname="main", **options):
        """A psycopg connection: autocommit, no prepared statements unless asked for."""
        options.setdefault("autocommit", True)
        options.setdefault("prepare_threshold", None)
        options.setdefault("host", HOST)
        options.setdefault("connect_timeout", 15)
        connection = psycopg.connect(port=self.port, user=user, dbname=dbname, **options)
        return self.keep(connection)

    def psql(self, *arguments, user="app", database="main", unix=False, **options):
        """Run psql as the daemon's own user."""
        return process.run(
            [shutil.which("psql"), "-X", "-h", self.folder if unix else HOST]
            + ["-p", str(self.port), "-U", user, "-d", database, *arguments],
            **options,
        )

    # Console

    def console(self, user=ADMIN, unix=None, **parameters):
        """A new raw client of the console; by the Unix socket where TCP takes TLS."""
        if unix is None:
            unix = self.settings.get("client_tls_sslmode", "disable") not in IN_THE_CLEAR
        return self.client(user, "pgbouncer", unix=unix, **parameters)

    def superuser(self):
        """A console of the local superuser."""
        with as_daemon_user():
            client = self.raw(unix=True)
        return client.login("pgbouncer", "pgbouncer")

    def use_console(self, user, password):
        """Run console commands as this user, where a password is asked for."""
        self._console = self.client(user, "pgbouncer", password)

    def close_console(self):
        """Close the console connection that is kept for commands."""
        if self._console is not None:
            self._console.close()
            self._console = None

    def command(self, sql, timeout=None):
        """Run a console command on one console connection kept for it; the raw Result."""
        if self._console is None:
            self._console = self.console()
        try:
            return self._console.query(sql, timeout)
        except (Closed, OSError):
            self._console = None
            raise

    def admin(self, sql):
        """Run a console command; its rows as dicts of text."""
        return self.command(sql).dicts()

    def show(self, topic, **where):
        """The rows of a SHOW that have these values."""
        rows = self.admin(f"SHOW {topic}")
        return [
            row for row in rows if all(row[key] == str(value) for key, value in where.items())
        ]

    def pool(self, database="main", user="app"):
        """The SHOW POOLS row of one pool, numbers as int; None when there is no such pool."""
        for row in self.show("POOLS", database=database, user=user):
            return {key: _number(value) for key, value in row.items()}
        return None

    def servers(self, **where):
        """The rows of SHOW SERVERS."""
        return self.show("SERVERS", **where)

    def clients(self, **where):
        """The rows of SHOW CLIENTS, the console's own left out."""
        return [
            row for row in self.show("CLIENTS", **where) if row["database"] != "pgbouncer"
        ]

    def setting(self, key):
        """A value of SHOW CONFIG."""
        return {row["key"]: row["value"] for row in self.show("CONFIG")}[key]

    def stats(self, database="main"):
        """The row of SHOW STATS_TOTALS of one database, as int."""
        (row,) = self.show("STATS_TOTALS", database=database)
        return {key: _number(value) for key, value in row.items()}

    def wait_pool(self, database="main", user="app", timeout=10, **expected):
        """Wait until the pool's row has these values; returns the row."""

        def matches():
            row = self.pool(database, user)
            seen.append(row)
            good = row and all(row[key] == value for key, value in expected.items())
            return row if good else None

        seen = []
        try:
            return wait_until(matches, timeout)
        except process.WaitTimeout:
            raise AssertionError(f"pool did not come to {expected}: {seen[-1]}") from None

    def reload(self):
        """Write the configuration anew and RELOAD."""
        self.write_config()
        self.command("RELOAD")

    # Resources

    def sleeps(self):
        """Whether the daemon's main thread sleeps."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "S"

    def descriptors(self):
        """How many descriptors the daemon has open."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory(self):
        """Resident memory in bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def loop_seconds(self):
        """The CPU seconds of the event loop's thread, without those of helper threads."""
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9

    def cpu_seconds(self):
        """CPU time used so far."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _quote_key(name):
    return name if re.fullmatch(r"[A-Za-z0-9_.*-]+", name) else f"'{name}'"


def _join(entry):
    if isinstance(entry, str):
        return entry
    return " ".join(f"{key}={_quote_value(value)}" for key, value in entry.items())


def _quote_value(value):
    text = str(value)
    if re.search(r"[\s']", text):
        return "'" + text.replace("'", "''") + "'"
    return text


def _number(value):
    with contextlib.suppress(TypeError, ValueError):
        return int(value)
    return value
