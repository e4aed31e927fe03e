# SPDX-License-Identifier: ISC
"""The set-ups of doc/high-availability.md, with the files and commands that it prints.

PGUSHER_TEST_PATRONI=1 runs those of Patroni too, which take a minute.
"""

import contextlib
import os
import re
import signal
import subprocess
import time

import psycopg
import pytest

from support.clients.writers import TABLE, Writers
from support.documents import Document
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
from support.servers.cluster import program
from support.servers.patroni import PatroniGroup, is_installed
from support.servers.pooler import Pooler
from support.servers.replicas import twin

DOCUMENT = Document("high-availability.md")
INI, USERS = "/etc/pgusher/pgusher.ini", "/etc/pgusher/userlist.txt"
SECRET, ADMIN_SECRET = "secret of app", "secret of admin"


class PrintedPooler(Pooler):
    """A daemon with the configuration that the document prints."""

    def __init__(self, replaced, entries=None):
        self._replaced, self._entries = replaced, entries
        super().__init__()

    def config_text(self):
        replaced = {
            **self._replaced,
            "listen_addr = 10.0.0.21": f"listen_addr = {HOST}",
            "listen_port = 6432": f"listen_port = {self.port}",
            "/run/pgusher": self.folder,
            USERS: self.auth_path,
        }
        text = DOCUMENT.text(INI, replaced)
        if self._entries:
            entries = DOCUMENT.text(self._entries, replaced)
            text = re.sub(r"(?m)^app = .*\napp_ro = .*\n", entries, text)
        return text

    def auth_text(self):
        return DOCUMENT.blocks[USERS]

    def writers(self):
        """Writers through the pool app."""
        return Writers(lambda: self.connect(dbname="app", password=SECRET))


def check_rows(writing, primary):
    """End the writers: each acknowledged row is there, and none twice."""
    writing.stop()
    print(writing.summary())
    assert writing.lost_and_doubled(primary, "app") == (0, 0)


# --- streaming replication by hand ------------------------------------------------------------


class Machine:
    """A host on which an operator types the commands of the document."""

    def __init__(self, number, port, pooler_port):
        self.printed, self.host = f"10.0.0.{number}", f"127.0.1.{number}"
        self.port = port
        self.folder = make_folder("pgusher-machine-")
        self.data = os.path.join(self.folder, "data")
        self.process = None
        self.replaced = {
            "10.0.0.0/24": "127.0.0.0/8",
            "10.0.0.11": "127.0.1.11",
            "10.0.0.12": "127.0.1.12",
            "10.0.0.21": HOST,
            "peer\n": "trust\n",
            ":5432:": f":{port}:",
            ":6432:": f":{pooler_port}:",
            "port=5432": f"port={port}",
            "port=6432": f"port={pooler_port}",
            "/var/lib/postgresql/15/main": self.data,
        }
        self.passfile = os.path.join(self.folder, "pgpass")
        self._write(self.passfile, "~/.pgpass, of the operators and of the user that runs PostgreSQL")
        os.chmod(self.passfile, 0o600)

    def _write(self, path, block, mode="w"):
        with open(path, mode) as file:
            file.write(DOCUMENT.text(block, self.replaced))
        own(path)

    def initialize(self):
        """Make the first primary."""
        run(
            [program("initdb"), "-D", self.data, "-U", "postgres", "--auth=trust", "--no-sync"]
            + ["--encoding=UTF8", "--locale=C.UTF-8"],
            timeout=120,
        )
        self._write(os.path.join(self.data, "postgresql.conf"), "postgresql.conf of 10.0.0.11", "a")
        self._write(os.path.join(self.data, "pg_hba.conf"), "pg_hba.conf of both")
        self.start()
        for statement in DOCUMENT.blocks["roles"].split(";\n"):
            if statement:
                self.ask("postgres", statement)
        self.ask("app", TABLE)

    def start(self):
        """Start the server, as a child: the kernel ends it with this process."""
        options = ["-F", "-k", self.folder, "-p", str(self.port), "-c", "shared_buffers=16MB"]
        with open(os.path.join(self.folder, "log"), "ab") as log:
            self.process = subprocess.Popen(
                as_service(
                    [program("postgres"), "-D", self.data, *options], death_signal=signal.SIGINT
                ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, "LC_ALL": "C.UTF-8", "PGPASSFILE": self.passfile},
            )
        wait_until(self._answers, 30, "PostgreSQL to start")

    def _answers(self):
        command = [program("psql"), "-X", "-h", self.folder, "-p", str(self.port), "-U", "postgres"]
        return run([*command, "-c", "SELECT 1"], check=False).returncode == 0

    def type(self, block):
        """Run the commands of this block. The last one may start the server, which start() does."""
        text = DOCUMENT.text(f"on {self.printed}: {block}", self.replaced)
        commands = re.sub(r"(?m)^pg_ctl .* start\n", "", text)
        folders = f"{os.path.dirname(program('pg_ctl'))}:{os.environ.get('PATH', '/usr/bin:/bin')}"
        run(
            ["sh", "-e", "-c", commands],
            env={**os.environ, "PATH": folders, "PGPASSFILE": self.passfile, "LC_ALL": "C.UTF-8"},
        )
        if commands != text:
            self.start()

    def ask(self, database, sql, parameters=()):
        """Run SQL as superuser; rows as dicts."""
        with psycopg.connect(
            host=self.folder,
            port=self.port,
            user="postgres",
            dbname=database,
            autocommit=True,
            row_factory=psycopg.rows.dict_row,
        ) as connection:
            cursor = connection.execute(sql, parameters or None)
            return cursor.fetchall() if cursor.description else []

    def kill(self):
        """End the postmaster; the other processes end when they notice it."""
        self.process.kill()
        self.process.wait()

    def wait_synchronous(self):
        """Wait until a standby confirms rows."""
        state = "SELECT 1 AS one FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
        wait_until(lambda: self.ask("postgres", state), 20, "the standby to confirm rows")

    def destroy(self):
        """End the server and remove all."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(30)
        drop_folder(self.folder)


@pytest.mark.alone
@pytest.mark.skipif(
    not (twin("pg_basebackup") and twin("pg_rewind")), reason="the client programs are of another version"
)
def test_streaming_replication_by_hand():
    port = free_port()
    with contextlib.ExitStack() as stack:
        ports = {"port=5432": f"port={port}", "10.0.0.11": "127.0.1.11", "10.0.0.12": "127.0.1.12"}
        pooler = PrintedPooler(ports, entries="the entries of pgusher.ini")
        stack.callback(pooler.destroy)
        one, two = (Machine(number, port, pooler.port) for number in (11, 12))
        operator = Machine(21, port, pooler.port)
        for machine in (operator, two, one):
            stack.callback(machine.destroy)
        one.initialize()
        two.type("make the standby")
        one.type("wait for the standby")
        one.wait_synchronous()
        pooler.start()
        with pooler.writers() as writing:
            stack.callback(writing.stop)
            writing.wait_written()
            one.kill()
            two.type("promote")
            writing.wait_written(time.monotonic())
            one.type("come back")
            two.type("wait for the standby")
            two.wait_synchronous()
            before = time.monotonic()
            operator.type("pause")
            two.type("stop")
            one.type("promote again")
            operator.type("resume")
            writing.wait_written(time.monotonic())
            assert not writing.failures(before), writing.summary()
            check_rows(writing, one)
        assert max(writing.failures_of_each()) <= 1, writing.summary()


# --- Patroni ----------------------------------------------------------------------------------

patroni = pytest.mark.skipif(
    os.environ.get("PGUSHER_TEST_PATRONI") != "1" or not is_installed(),
    reason="PGUSHER_TEST_PATRONI=1 runs it, with Debian's patroni and etcd-server",
)


@pytest.fixture(scope="module")
def group():
    """Three nodes, for all scenes."""
    nodes = PatroniGroup(DOCUMENT)
    try:
        for statement in DOCUMENT.blocks["the application's role and database"].split(";\n"):
            if statement:
                nodes.primary.ask("postgres", statement)
        nodes.primary.ask("app", TABLE)
        yield nodes
    finally:
        nodes.destroy()


@pytest.fixture
def patroni_pooler(group):
    """pgusher in front of them, as printed."""
    group.wait_whole()
    pooler = PrintedPooler(group.replaced())
    try:
        yield pooler.start()
    finally:
        pooler.destroy()


def end_scene(writing, group, errors):
    """Each has written to the new primary: count errors and rows."""
    since = time.monotonic()
    writing.wait_written(since, timeout=60)
    wait_until(lambda: group.primary, 30, "a primary")
    check_rows(writing, group.primary)
    print(f"worst gap of a writer: {writing.worst_gap(writing.began):.2f} s")
    assert max(writing.failures_of_each()) <= errors, writing.summary()


@patroni
def test_a_switchover_of_patroni_costs_a_writer_one_error_at_most(group, patroni_pooler):
    with patroni_pooler.writers() as writing:
        writing.wait_written()
        old, new = group.primary, group.synchronous_standby()
        group.control("switchover", "--leader", old.name, "--candidate", new.name, "--force")
        wait_until(lambda: group.primary is new, 30, "the switchover", interval=0.1)
        # The old primary comes back as a standby under the same load.
        group.wait_whole()
        end_scene(writing, group, 1)


@patroni
def test_a_switchover_of_patroni_between_pause_and_resume_costs_nothing(group, patroni_pooler):
    patroni_pooler.use_console("admin", ADMIN_SECRET)
    with patroni_pooler.writers() as writing:
        writing.wait_written()
        old, new = group.primary, group.synchronous_standby()
        patroni_pooler.command("PAUSE app")
        group.control("switchover", "--leader", old.name, "--candidate", new.name, "--force")
        wait_until(lambda: group.primary is new, 30, "the switchover", interval=0.1)
        patroni_pooler.command("RESUME app")
        end_scene(writing, group, 0)


@patroni
def test_a_failover_of_patroni_costs_a_writer_one_error_at_most(group, patroni_pooler):
    with patroni_pooler.writers() as writing:
        writing.wait_written()
        new = group.synchronous_standby()
        group.control("failover", "--candidate", new.name, "--force")
        wait_until(lambda: group.primary is new, 30, "the failover", interval=0.1)
        end_scene(writing, group, 1)


@patroni
def test_a_machine_that_dies_costs_a_writer_one_error_at_most(group, patroni_pooler):
    with patroni_pooler.writers() as writing:
        writing.wait_written()
        old = group.primary
        old.kill()
        wait_until(
            lambda: group.primary not in (None, old), 60, "Patroni to promote another", interval=0.1
        )
        end_scene(writing, group, 1)
    old.start()
