# SPDX-License-Identifier: ISC
"""The pages doc/migrating*.md, with the files and commands that they print."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess

import psycopg
import pytest

from support.documents import Document
from support.process import (
    HOST,
    as_service,
    drop_folder,
    has_ended,
    free_port,
    make_folder,
    own,
    run,
    wait_until,
)
from support.servers.cluster import HARNESS, program
from support.servers.pooler import binary

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
SECRETS = "*:*:*:app:secret of app\n*:*:*:admin:secret of admin\n"


@pytest.fixture(scope="module")
def stage(replicas):
    """A primary and a standby with the role and the database of the pages."""
    primary = replicas.settle()[0]
    primary.ask("postgres", "ALTER ROLE app PASSWORD 'secret of app'")
    primary.ask("postgres", "CREATE DATABASE app OWNER app")
    yield replicas
    primary = replicas.settle()[0]
    primary.ask("postgres", "ALTER ROLE app PASSWORD NULL")
    primary.ask("postgres", "DROP DATABASE app WITH (FORCE)")


def accepts(port):
    """Whether a process listens there: a command that starts one does not wait for that."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port)):
        return True
    return False


class Move:
    """One page, on a machine with a folder of its own in place of /etc and /run."""

    def __init__(self, page, replicas, old_port="6432", new_port="6433"):
        primary, standby = replicas.settle()
        self.document = Document(page)
        self.folder = make_folder("pgusher-move-")
        self.port, self.old_port = free_port(), free_port()
        self.pidfile = os.path.join(self.folder, "run/pgusher/pgusher.pid")
        self.replaced = {
            "10.0.0.11": primary.host,
            "10.0.0.12": standby.host,
            "5432": primary.port,
            new_port: self.port,
            old_port: self.old_port,
            "user=postgres": f"user={HARNESS}",
            "runuser -u postgres -- ": "",
            "install -d -o postgres -g postgres": "install -d",
            "chown postgres: ": "ls ",
            " /etc/": f" {self.folder}/etc/",
            "\t/etc/": f"\t{self.folder}/etc/",
            "=/etc/": f"={self.folder}/etc/",
            ">/etc/": f">{self.folder}/etc/",
            " /run/": f" {self.folder}/run/",
            "=/run/": f"={self.folder}/run/",
            '"/run/': f'"{self.folder}/run/',
            "/var/run/postgresql": f"{self.folder}/run",
            "/var/log": f"{self.folder}/log",
        }
        for name in ("bin", "etc/pgusher", "run", "run/pgusher", "log", "log/postgresql"):
            path = os.path.join(self.folder, name)
            os.makedirs(path)
            own(path)
        own(os.path.join(self.folder, "etc"))
        os.symlink(binary(), os.path.join(self.folder, "bin/pgusher"))
        self.passfile = self.write("pgpass", SECRETS)
        os.chmod(self.passfile, 0o600)
        self._write_files()

    def write(self, name, text):
        """Write a file into the folder; returns its path."""
        path = os.path.join(self.folder, name)
        if not os.path.isdir(os.path.dirname(path)):
            os.makedirs(os.path.dirname(path))
            own(os.path.dirname(path))
        with open(path, "w") as file:
            file.write(text)
        own(path)
        return path

    def _write_files(self):
        """Write each file that the page prints."""
        for name in self.document.blocks:
            if name.startswith("/etc/") and " " not in name:
                self.write(name[1:], self.document.text(name, self.replaced))

    def type(self, block, expected=0):
        """Run the commands of this block; returns what they print, on stdout and on stderr."""
        folders = f"{self.folder}/bin:{os.path.dirname(program('psql'))}:/usr/sbin:/usr/bin:/sbin:/bin"
        done = run(
            ["sh", "-e", "-c", self.document.text(block, self.replaced)],
            check=False,
            env={"PATH": folders, "PGPASSFILE": self.passfile, "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == expected, done.stdout + done.stderr
        if block.startswith("start"):
            wait_until(lambda: accepts(self.port), 20, "pgusher to listen")
        return done.stdout, done.stderr

    def convert(self):
        """Run the conversion: its status is the one, and its list the one, that the page prints."""
        (printed, *_) = (
            text for text in self.document.blocks.values()
            if "not converted: " in text or ": note: " in text)
        expected = 2 if "not converted: " in printed else 0
        said = self.type("convert", expected)[1].replace(self.folder, "")
        written = [line for line in said.splitlines() if line.startswith("written: ")]
        listed = [line for line in said.splitlines() if line not in written]
        assert listed == printed.splitlines()
        for line in written:
            path = self.folder + line.removeprefix("written: ")
            assert os.stat(path).st_mode & 0o777 == 0o600

    def connect(self, dbname="app", port=None):
        """A connection of the application."""
        return psycopg.connect(
            host=HOST,
            port=port or self.port,
            user="app",
            password="secret of app",
            dbname=dbname,
            autocommit=True,
        )

    def pid(self):
        """The process number of the pooler, which writes the file after it has made it."""
        def read():
            with open(self.pidfile) as file:
                return file.read()

        return int(wait_until(read, 10, f"a number in {self.pidfile}"))

    def go_back(self):
        """Run the last commands of the page, after which pgusher ends."""
        pid = self.pid()
        self.type("go back")
        wait_until(lambda: has_ended(pid), 20, "pgusher to end")

    def destroy(self):
        """End what still runs, and remove all."""
        for path in (self.pidfile, os.path.join(self.folder, "run/pgbouncer.pid")):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError, ValueError):
                with open(path) as file:
                    os.kill(int(file.read()), signal.SIGQUIT)
        drop_folder(self.folder)


@pytest.fixture
def moving(stage):
    """Make a machine for a page."""
    with contextlib.ExitStack() as stack:

        def make(page, **ports):
            move = Move(page, stage, **ports)
            stack.callback(move.destroy)
            return move

        yield make


def test_from_odyssey(moving):
    move = moving("migrating-odyssey.md")
    move.convert()
    move.type("start beside")
    said = move.type("try it")[0]
    assert " app\n" in said and "pool_mode" in said
    move.go_back()


def test_from_pgcat(moving):
    move = moving("migrating-pgcat.md")
    move.convert()
    move.type("start beside")
    rows = [line.strip() for line in move.type("try it")[0].splitlines()]
    assert [row for row in rows if row in {"t", "f"}] == ["f", "t"]
    move.go_back()


def test_from_pgagroal(moving):
    move = moving("migrating-pgagroal.md")
    move.convert()
    move.type("fill the auth_file")
    move.type("start beside")
    assert " app\n" in move.type("try it")[0]
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        psycopg.connect(host=HOST, port=move.port, user="app", password="x", dbname="app")
    move.go_back()


def test_from_pgpool(moving):
    move = moving("migrating-pgpool.md", new_port="9998")
    move.type("convert the passwords")
    move.type("start beside")
    rows = [line.strip() for line in move.type("try it")[0].splitlines()]
    assert [row for row in rows if row in {"app", "t", "f"}] == ["app", "t"]
    move.go_back()


def test_from_rds_proxy(moving):
    move = moving("migrating-rds-proxy.md", old_port="6433", new_port="6432")
    move.type("start")
    rows = [line.strip() for line in move.type("try it")[0].splitlines()]
    assert [row for row in rows if row in {"t", "f"}] == ["f", "t"]
    move.go_back()


@pytest.mark.skipif(not PGBOUNCER, reason="no pgbouncer to move from")
def test_from_pgbouncer(moving):
    move = moving("migrating-pgbouncer.md", old_port="6433", new_port="6432")
    move.pidfile = os.path.join(move.folder, "run/pgbouncer.pid")
    ini = os.path.join(move.folder, "etc/pgbouncer/pgbouncer.ini")
    entries = move.write("entries.ini", move.document.blocks["[databases]"] + "[pgbouncer]\n")
    run([binary(), "--check", entries])
    said, listed = move.type("list what behaves otherwise")
    assert "pool_mode = transaction (default: session)" in said
    assert "note: server_lifetime: " in listed
    run([PGBOUNCER, "-d", ini])
    wait_until(lambda: os.path.exists(move.pidfile), 10, "pgbouncer to start")
    old = move.pid()
    with move.connect() as client:
        client.execute("BEGIN")
        move.type("take over")
        wait_until(lambda: has_ended(old), 10, "pgbouncer to end")
        assert client.execute("SELECT 1").fetchone() == (1,)
        client.execute("COMMIT")
    wait_until(lambda: move.pid() != old, 10, "pgusher to write its pidfile")
    move.type("go back")
    wait_until(lambda: os.path.exists(move.pidfile), 10, "pgbouncer to start")
    with move.connect() as client:
        assert client.execute("SELECT 1").fetchone() == (1,)


# --- switching in the kernel ------------------------------------------------------------------


class Machine:
    """A network of its own, in which the ports of the page are free. Needs root."""

    def __init__(self, folder):
        self._holder = subprocess.Popen(
            as_service(["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 300"], True),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.folder, self.poolers = folder, []
        if self._holder.stdout.readline() != b"up\n":
            self.destroy()
            pytest.skip("no network namespaces")

    def _inside(self, arguments):
        return ["nsenter", "-t", str(self._holder.pid), "-n", *arguments]

    def type(self, commands):
        """Run commands as root."""
        return run(self._inside(["sh", "-e", "-c", commands]), as_root=True, check=False)

    def start(self, name, port, cluster, user):
        """Start a pooler that logs in to servers as this user."""
        ini = os.path.join(self.folder, f"{name}.ini")
        pidfile = os.path.join(self.folder, f"{name}.pid")
        with open(ini, "w") as file:
            file.write(
                f"[databases]\nmain = host={cluster.socket_folder} port={cluster.port} user={user}\n"
                f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nauth_type = any\n"
                f"unix_socket_dir =\npidfile = {pidfile}\n"
            )
        process = subprocess.Popen(
            self._inside(as_service([binary(), "-q", ini])), stdin=subprocess.DEVNULL
        )
        self.poolers.append(process)
        wait_until(lambda: os.path.exists(pidfile), 20, "the pooler to start")
        return process, pidfile

    def client(self):
        """A session of psql."""
        process = subprocess.Popen(
            self._inside([program("psql"), "-XAtq", "-h", "127.0.0.1", "-p", "6432", "-U", "app", "main"]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.poolers.append(process)
        return process

    def destroy(self):
        """End all processes."""
        for process in [*self.poolers, self._holder]:
            process.kill()
            process.wait()


def server_user(client):
    """By which pooler this session goes: each has a user of its own."""
    client.stdin.write("SELECT current_user;\n")
    client.stdin.flush()
    return client.stdout.readline().strip()


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("nft"), reason="needs root and nft")
def test_new_connections_are_redirected_and_open_ones_stay(cluster, folder):
    document = Document("migrating.md")
    machine = Machine(folder)
    try:
        machine.start("old", 6432, cluster, "alice")
        _, pidfile = machine.start("new", 6433, cluster, "bob")
        before = machine.client()
        assert server_user(before) == "alice"
        done = machine.type(document.blocks["redirect new connections"])
        if "not supported" in done.stderr:
            pytest.skip("a kernel without nftables")
        assert done.returncode == 0, done.stderr
        after = machine.client()
        assert (server_user(before), server_user(after)) == ("alice", "bob")
        done = machine.type(document.text("go back", {"/run/pgusher/pgusher.pid": pidfile}))
        assert done.returncode == 0, done.stderr
        again = machine.client()
        assert [server_user(each) for each in (before, after, again)] == ["alice", "bob", "alice"]
        after.stdin.close()
        machine.poolers[1].wait(20)
    finally:
        machine.destroy()
