# SPDX-License-Identifier: ISC
"""Patroni with etcd, as Debian packages them: nodes at loopback addresses of their own."""

import contextlib
import glob
import http.client
import json
import os
import shutil
import signal
import subprocess

import psycopg

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

NAMES = ("one", "two", "three")
ADDRESSES = ("127.0.1.11", "127.0.1.12", "127.0.1.13")
# Those of the document.
PRINTED = ("10.0.0.11", "10.0.0.12", "10.0.0.13")


def is_installed():
    """Whether all programs are here."""
    return all(shutil.which(name) for name in ("patroni", "patronictl", "etcd"))


def has_ended(process):
    return process is None or process.poll() is not None


class Etcd:
    """One etcd, with its data in a temporary folder."""

    def __init__(self):
        self.folder = make_folder("pgusher-etcd-")
        self.port, peer_port = free_port(), free_port()
        clients, peers = f"http://{HOST}:{self.port}", f"http://{HOST}:{peer_port}"
        self.process = _spawn(
            ["etcd", "--name", "etcd", "--data-dir", os.path.join(self.folder, "data")]
            + ["--listen-client-urls", clients, "--advertise-client-urls", clients]
            + ["--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers]
            + ["--initial-cluster", f"etcd={peers}", "--unsafe-no-fsync"],
            os.path.join(self.folder, "log"),
        )
        wait_until(self._answers, 20, "etcd to answer")

    def _answers(self):
        return not has_ended(self.process) and _get(HOST, self.port, "/health")[0] == 200

    def destroy(self):
        """End it and remove its files."""
        self.process.kill()
        self.process.wait()
        drop_folder(self.folder)


class Node:
    """One machine: Patroni and its PostgreSQL."""

    def __init__(self, group, name, address):
        self.group, self.name, self.host = group, name, address
        self.port = group.port
        self.folder = make_folder("pgusher-patroni-")
        self.config = os.path.join(self.folder, "patroni.yml")
        self.data = os.path.join(self.folder, "data")
        text = group.document.text("/etc/patroni/config.yml", self._replaced())
        with open(self.config, "w") as file:
            file.write(text)
        os.chmod(self.config, 0o600)
        own(self.config)
        self.process = None

    def _replaced(self):
        group = self.group
        etcd = f"{HOST}:{group.etcd.port}"
        return {
            f"{PRINTED[0]}:2379": etcd,
            "name: one": f"name: {self.name}",
            PRINTED[0]: self.host,
            ":5432": f":{group.port}",
            ":8008": f":{group.rest_port}",
            "10.0.0.0/24": "127.0.0.0/8",
            "local all postgres peer": "local all postgres trust",
            "/var/lib/postgresql/15/app": self.data,
            "/var/lib/postgresql/pgpass": os.path.join(self.folder, "pgpass"),
            "/var/run/postgresql": self.folder,
            "/usr/lib/postgresql/15/bin": os.path.dirname(program("postgres")),
        }

    def start(self):
        """Start Patroni, which starts PostgreSQL."""
        self.process = _spawn(["patroni", self.config], self.path("log"))

    def path(self, name):
        """A path in the node's folder."""
        return os.path.join(self.folder, name)

    def role(self):
        """What Patroni says of it: primary, sync_standby, replica; None while it does not run."""
        status, answer = _get(self.host, self.group.rest_port, "/patroni")
        if status is None or answer.get("state") != "running":
            return None
        if answer.get("sync_standby"):
            return "sync_standby"
        # Version 4 says primary.
        return "primary" if answer["role"] == "master" else answer["role"]

    def kill(self):
        """End Patroni and PostgreSQL with SIGKILL, as if the machine had died."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for pid in self._postgres():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self._postgres(), 10, f"PostgreSQL of {self.name} to end")

    def _postgres(self):
        """The postmaster and its children."""
        try:
            with open(os.path.join(self.data, "postmaster.pid")) as file:
                parent = int(file.readline())
            with open(f"/proc/{parent}/task/{parent}/children") as file:
                return [parent, *map(int, file.read().split())]
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return []

    def ask(self, database, sql, parameters=None):
        """Run SQL as superuser; rows as dicts."""
        with psycopg.connect(
            host=self.folder,
            port=self.port,
            user="postgres",
            dbname=database,
            autocommit=True,
            row_factory=psycopg.rows.dict_row,
        ) as connection:
            cursor = connection.execute(sql, parameters)
            return cursor.fetchall() if cursor.description else []

    def destroy(self):
        """End all and remove the files."""
        if not has_ended(self.process):
            self.kill()
        drop_folder(self.folder)


class PatroniGroup:
    """An etcd and some nodes with the configuration that a document prints."""

    def __init__(self, document, count=3):
        self.document = document
        self.port, self.rest_port = free_port(), free_port()
        self.nodes = []
        self.etcd = Etcd()
        try:
            for name, address in zip(NAMES[:count], ADDRESSES):
                self.nodes.append(Node(self, name, address))
            self.nodes[0].start()
            wait_until(lambda: self.primary, 60, "Patroni to make the first node", interval=0.1)
            for node in self.nodes[1:]:
                node.start()
            self.wait_whole()
        except BaseException:
            self.destroy()
            raise

    @property
    def primary(self):
        """The node that leads; None if there is none."""
        return next((node for node in self.nodes if node.role() == "primary"), None)

    def synchronous_standby(self):
        """The node that has each acknowledged row; None if there is none yet."""
        return next((node for node in self.nodes if node.role() == "sync_standby"), None)

    def wait_whole(self):
        """Wait until all nodes run, and one of them is a synchronous standby."""
        wait_until(
            lambda: self.primary
            and self.synchronous_standby()
            and all(node.role() for node in self.nodes),
            90,
            "all nodes to run",
            interval=0.1,
        )

    def control(self, *arguments):
        """Run patronictl; what it prints."""
        command = ["patronictl", "-c", self.nodes[0].config, *arguments]
        return run(command, env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": self.etcd.folder}).stdout

    def replaced(self):
        """What is replaced in the document's other files, to reach these nodes."""
        return {**dict(zip(PRINTED, ADDRESSES)), "port=5432": f"port={self.port}"}

    def logs(self):
        """The last lines of each node."""
        found = ""
        for node in self.nodes:
            for path in glob.glob(node.path("log")):
                with open(path, errors="replace") as file:
                    found += f"--- {node.name}\n" + "".join(file.readlines()[-30:])
        return found

    def destroy(self):
        """End all and remove the files."""
        for node in self.nodes:
            node.destroy()
        self.etcd.destroy()


def _spawn(command, log_path):
    path = shutil.which(command[0])
    with open(log_path, "ab") as log:
        return subprocess.Popen(
            as_service([path, *command[1:]], death_signal=signal.SIGTERM),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            env={**os.environ, "LC_ALL": "C.UTF-8", "PYTHONWARNINGS": "ignore"},
        )


def _get(host, port, path):
    """The status and the JSON of a page; (None, {}) when there is no answer."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    except (OSError, ValueError, http.client.HTTPException):
        return None, {}
    finally:
        connection.close()
