# SPDX-License-Identifier: ISC
"""A PostgreSQL for the tests: created, started, queried, stopped and removed."""

import contextlib
import fcntl
import functools
import glob
import os
import re
import shutil
import signal
import subprocess
import tempfile

import psycopg
from psycopg.rows import dict_row

from support.process import (
    HOST,
    as_service,
    drop_folder,
    free_port,
    make_folder,
    own,
    run,
    wait_until,
)

HARNESS = "harness"
DATABASES = ("main", "other")

# The variable that names the folder which the processes of one run of pytest share.
SHARED_FOLDER = "PGUSHER_TEST_SHARED"

# The name of a role is its authentication method; other roles are trusted.
PASSWORDS = {
    "plain_login": "plain secret",
    "md5_login": "md5 secret",
    "scram_login": "scram secret",
}

ROLES = """
CREATE ROLE app LOGIN;
CREATE ROLE alice LOGIN;
CREATE ROLE bob LOGIN;
CREATE ROLE carol LOGIN;
CREATE ROLE rejected_login LOGIN;
CREATE ROLE expired_login LOGIN PASSWORD 'late' VALID UNTIL '2001-01-01';
SET password_encryption = 'scram-sha-256';
CREATE ROLE plain_login LOGIN PASSWORD 'plain secret';
CREATE ROLE scram_login LOGIN PASSWORD 'scram secret';
SET password_encryption = 'md5';
CREATE ROLE md5_login LOGIN PASSWORD 'md5 secret';
RESET password_encryption;
"""

HBA = """
{kind} all harness {address} trust
{kind} all plain_login {address} password
{kind} all md5_login {address} md5
{kind} all scram_login {address} scram-sha-256
{kind} all rejected_login {address} reject
{kind} all all {address} trust
"""


def program_folders():
    """The folders of PostgreSQL's programs: $PGUSHER_TEST_PGBIN, then those installed, newest
    first."""
    named = os.environ.get("PGUSHER_TEST_PGBIN")

    def version(path):
        return [int(part) for part in re.findall(r"\d+", path)]

    installed = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=version, reverse=True)
    return ([named] if named else []) + installed


def program(name):
    """The path of one of PostgreSQL's programs. A folder may have the server's programs only."""
    for folder in program_folders():
        path = os.path.join(folder, name)
        if os.path.exists(path):
            return path
    raise RuntimeError(f"no {name} of PostgreSQL found; set PGUSHER_TEST_PGBIN")


# The settings of every cluster: none of its data has to survive a crash.
SETTINGS = {
    "max_connections": 100,
    "superuser_reserved_connections": 3,
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "'32MB'",
    "max_wal_size": "'256MB'",
    "autovacuum": "off",
    "timezone": "'UTC'",
    "datestyle": "'ISO, MDY'",
    "log_line_prefix": "'%m [%p] %u@%d %a '",
    "log_timezone": "'UTC'",
    "log_checkpoints": "off",
}


def configure(data, settings):
    """Add these settings to those of the cluster with this data."""
    with open(os.path.join(data, "postgresql.conf"), "a") as file:
        file.writelines(f"{name} = {value}\n" for name, value in settings.items())


def make_data(data):
    """Create the data of a cluster with all roles and databases, without starting it."""
    run(
        [program("initdb"), "-D", data, "-U", HARNESS, "--auth=trust", "--no-sync"]
        + ["--no-instructions", "--encoding=UTF8", "--locale=C.UTF-8"],
        timeout=120,
    )
    configure(data, SETTINGS)
    with open(os.path.join(data, "pg_hba.conf"), "w") as file:
        file.write(HBA.format(kind="local", address=""))
        file.write(HBA.format(kind="host", address="127.0.0.1/32"))
    own(os.path.join(data, "pg_hba.conf"))
    with tempfile.TemporaryFile("w+") as script:
        script.write(ROLES + "".join(f"CREATE DATABASE {name} OWNER app;\n" for name in DATABASES))
        script.seek(0)
        done = run([program("postgres"), "--single", "-D", data, "postgres"], stdin=script)
    assert "ERROR" not in done.stderr, done.stderr


def copy_data(data):
    """Copy the data of this run's first cluster: that is faster than creating it again."""
    shared = os.environ.get(SHARED_FOLDER)
    if not shared:
        make_data(data)
        return
    original, ready = os.path.join(shared, "data"), os.path.join(shared, "ready")
    with open(os.path.join(shared, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(ready):
            shutil.rmtree(original, ignore_errors=True)
            make_data(original)
            open(ready, "w").close()
    run(["cp", "-a", "--reflink=auto", original, data])


class Cluster:
    """One PostgreSQL server. Tests that stop or break it take a private one."""

    def __init__(self, settings=None):
        self.folder = make_folder("pgusher-pg-")
        self.data = os.path.join(self.folder, "data")
        self.socket_folder = self.folder
        self.log_path = os.path.join(self.folder, "log")
        self.port = free_port()
        self.host = HOST
        self.process = None
        self._connection = None
        self._initialize(settings or {})

    def _initialize(self, settings):
        copy_data(self.data)
        own_settings = {
            "listen_addresses": f"'{self.host}'",
            "port": self.port,
            "unix_socket_directories": f"'{self.socket_folder}'",
        }
        configure(self.data, {**own_settings, **settings})
        self.start()

    # Start and stop

    def start(self, wait=True):
        """Start the server and wait until it accepts connections."""
        log = open(self.log_path, "ab")
        with log:
            self.process = subprocess.Popen(
                as_service(
                    [program("postgres"), "-D", self.data], death_signal=signal.SIGINT
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "LC_ALL": "C.UTF-8", "PGDATA": self.data},
            )
        if wait:
            self.wait_ready()

    def wait_ready(self):
        """Wait until the server accepts connections."""
        wait_until(self._try_connect, 60, "PostgreSQL to start")

    def _try_connect(self):
        if self.process.poll() is not None:
            raise AssertionError(f"PostgreSQL ended: {self.log()}")
        try:
            self._connection = self.connect()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, mode="fast"):
        """Stop the server: smart, fast or immediate."""
        self._disconnect()
        if self.process is None or self.process.poll() is not None:
            return
        signals = {
            "smart": signal.SIGTERM,
            "fast": signal.SIGINT,
            "immediate": signal.SIGQUIT,
        }
        self.process.send_signal(signals[mode])
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def restart(self, mode="fast"):
        """Stop and start the server."""
        self.stop(mode)
        self.start()

    def destroy(self):
        """Stop the server and remove its files."""
        self.stop("immediate")
        drop_folder(self.folder)

    def _disconnect(self):
        if self._connection is not None:
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    # Queries

    def log(self):
        """The server's log so far."""
        with open(self.log_path, errors="replace") as file:
            return file.read()

    def connect(self, database="postgres", user=HARNESS, **options):
        """A direct psycopg connection, past the pooler."""
        return psycopg.connect(
            host=self.socket_folder,
            port=self.port,
            dbname=database,
            user=user,
            application_name=HARNESS,
            autocommit=True,
            row_factory=dict_row,
            **options,
        )

    def sql(self, text, parameters=None):
        """Run SQL as superuser in the database postgres; rows as dicts, [] when there are none."""
        if self._connection is None or self._connection.closed:
            self._connection = self.connect()
        cursor = self._connection.execute(text, parameters)
        return cursor.fetchall() if cursor.description else []

    def value(self, text, parameters=None):
        """The first column of the first row."""
        return next(iter(self.sql(text, parameters)[0].values()))

    def ask(self, database, text, parameters=None):
        """Run SQL as superuser in another database."""
        with self.connect(database) as connection:
            cursor = connection.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []

    def secret(self, role):
        """The stored password of a role, as PostgreSQL keeps it."""
        return self.value("SELECT rolpassword FROM pg_authid WHERE rolname = %s", [role])

    def backends(self, **where):
        """The rows of pg_stat_activity of all client backends but the harness's own."""
        rows = self.sql(
            "SELECT * FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND usename IS DISTINCT FROM 'harness'"
            " ORDER BY backend_start"
        )
        return [row for row in rows if all(row[key] == value for key, value in where.items())]

    def terminate(self, pid):
        """Terminate one backend."""
        self.sql("SELECT pg_terminate_backend(%s)", [pid])

    def wait_quiet(self):
        """Wait until only the harness is connected."""
        wait_until(lambda: not self.backends(), 15, "backends to go")

    def clear(self):
        """Terminate what earlier tests left: a sleeping query does not notice that its client
        disconnected."""
        self.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND usename IS DISTINCT FROM 'harness'"
        )
        self.wait_quiet()


@functools.cache
def is_newer():
    """Whether the servers are newer than psql, pg_dump and other tools, which are Debian's."""
    said = [
        subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        for path in (program("postgres"), "/usr/bin/psql")
    ]
    server, tools = (int(re.search(r"(\d+)", words.split(")", 1)[-1]).group(1)) for words in said)
    return server > tools
