# SPDX-License-Identifier: ISC
"""What eight writers notice when the primary moves: through pgusher, through Debian's PgBouncer with
the same list of hosts, through HAProxy with a role check, and by psycopg with that list.

PostgreSQL streams to a synchronous standby. Each cell of the table: errors of the writers (least to
most), how long after the promotion the last of them went on, and their worst gap, in seconds. Rows that
were acknowledged and are lost, or are there twice, are printed at the end of a row.
"""

import argparse
import contextlib
import http.server
import math
import os
import shutil
import subprocess
import sys
import threading
import time

import psycopg

import rig
from rig import DATABASE, HOST, OURS, THEIRS, USER
from support.clients.writers import TABLE, Writers
from support.process import as_service, drop_folder, free_port, make_folder, own, wait_until
from support.servers.pooler import publish_binary
from support.servers.replicas import BlackHole, Replicas

HAPROXY, DRIVER = "haproxy", "psycopg"
PAUSED = "PAUSE, switchover, RESUME"

# As Patroni's documentation has it, with a faster check: by default it is each 3 s.
HAPROXY_CONFIG = """
global
    maxconn 200
defaults
    mode tcp
    retries 2
    timeout client 30m
    timeout connect 4s
    timeout server 30m
    timeout check 5s
listen primary
    bind {host}:{port}
    option httpchk OPTIONS /primary
    http-check expect status 200
    default-server inter 1s fall 3 rise 2 on-marked-down shutdown-sessions
{servers}
"""


class RoleServer:
    """Answers whether a PostgreSQL is the primary and accepts writes, as Patroni's REST API does."""

    def __init__(self, member):
        self.member = member
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_OPTIONS(self):
                self.send_response(200 if outer.is_primary() else 503)
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer((member.host, free_port()), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    def is_primary(self):
        try:
            with psycopg.connect(
                host=self.member.host, port=self.member.port, user="harness", dbname="postgres",
                connect_timeout=2, autocommit=True,
            ) as connection:
                sql = "SELECT pg_is_in_recovery(), current_setting('default_transaction_read_only')"
                return connection.execute(sql).fetchone() == (False, "off")
        except psycopg.Error:
            return False

    def close(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Haproxy:
    """HAProxy that sends all connections to the primary."""

    def __init__(self, hosts, port, members):
        self.port = free_port()
        self.checks = [RoleServer(member) for member in members]
        ports = {check.member.host: check.port for check in self.checks}
        self.folder = make_folder("pgusher-haproxy-")
        path = os.path.join(self.folder, "haproxy.cfg")
        # A host without a server has no check that answers.
        lines = [
            f"    server host{n} {host}:{port} check port {ports.get(host, port)}"
            for n, host in enumerate(hosts)
        ]
        with open(path, "w") as file:
            file.write(HAPROXY_CONFIG.format(host=HOST, port=self.port, servers="\n".join(lines)))
        own(path)
        program = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin")
        self.process = subprocess.Popen(
            as_service([program, "-db", "-f", path]),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )

    def stop(self):
        self.process.terminate()
        self.process.wait()
        for check in self.checks:
            check.close()
        drop_folder(self.folder)


class Way:
    """One of the four ways to the primary."""

    def __init__(self, name, folder, hosts, port, members):
        self.name, self.hosts, self._port = name, hosts, port
        self.daemon = None
        joined = ",".join(hosts)
        if name in (OURS, THEIRS):
            role = " target_session_attrs=read-write" if name == OURS else ""
            self.daemon = rig.Daemon(
                name, folder, None, [f"{DATABASE} = host={joined} port={port}{role}"],
                server_login_retry=1, server_connect_timeout=2, default_pool_size=6,
            ).start()
        elif name == HAPROXY:
            self.daemon = Haproxy(hosts, port, members)

    def connect(self):
        """A client's connection."""
        options = {"host": HOST, "port": self.daemon.port} if self.daemon else {
            "host": ",".join(self.hosts), "port": self._port,
            "target_session_attrs": "read-write", "connect_timeout": 2,
        }  # fmt: skip
        return psycopg.connect(
            **{"connect_timeout": 10, **options}, user=USER, dbname=DATABASE, autocommit=True,
            prepare_threshold=None,
        )

    def console(self, command):
        """Run a command of the console, where there is one."""
        if self.name in (OURS, THEIRS):
            with psycopg.connect(
                host=HOST, port=self.daemon.port, user="admin", dbname="pgbouncer", autocommit=True
            ) as console:
                console.execute(command)

    def close(self):
        if self.daemon:
            self.daemon.stop()


class Figures:
    """What a scene has shown."""

    def __init__(self, writing, began, promoted, primary):
        each = writing.failures_of_each(began)
        ended = time.monotonic()
        self.resumed = writing.resumed_after(promoted) if promoted else None
        self.gap = writing.worst_gap(began, ended)
        writing.stop()
        self.errors = f"{min(each)}-{max(each)}" if min(each) < max(each) else str(each[0])
        self.lost, self.doubled = writing.lost_and_doubled(primary)
        self.states = {}
        for failure in writing.failures(began):
            self.states[failure.sqlstate] = self.states.get(failure.sqlstate, 0) + 1

    def cell(self):
        """The cell of the table."""
        resumed = ""
        if self.resumed is not None:
            resumed = f", on after {self.resumed:.2f}" if self.resumed < math.inf else ", one never"
        return f"{self.errors} errors{resumed}, gap {self.gap:.2f}"


class Scenes:
    """The scenes; each is a method that returns when the primary accepts writes and which it is."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.group = None

    def _watch(self, seconds=None):
        # The load runs; nothing is waited for.
        threading.Event().wait(seconds or self.seconds)

    def steady(self, way, primary, standby):
        """steady state"""
        self._watch()
        return None, primary

    def killed(self, way, primary, standby):
        """kill -9, promote"""
        primary.kill()
        promoted = standby.promote()
        self._watch()
        return promoted, standby

    def stopped(self, way, primary, standby):
        """stop, promote"""
        primary.stop()
        promoted = standby.promote()
        self._watch()
        return promoted, standby

    def planned(self, way, primary, standby):
        """PAUSE, switchover, RESUME"""
        way.console("PAUSE")
        primary.stop()
        promoted = standby.promote()
        primary.return_as_standby(standby)
        way.console("RESUME")
        self._watch()
        return promoted, standby

    def returned(self, way, primary, standby):
        """kill -9, promote, old primary back as standby"""
        primary.kill()
        promoted = standby.promote()
        self._watch(1)
        primary.rejoin(standby)
        self._watch()
        return promoted, standby

    def fenced(self, way, primary, standby):
        """default_transaction_read_only, promote"""
        primary.fence()
        promoted = standby.promote()
        self._watch()
        return promoted, standby

    def flapping(self, way, primary, standby):
        """kill -9 and promote, three times"""
        for _ in range(3):
            primary.kill()
            promoted = standby.promote()
            self._watch(1.5)
            primary.rejoin(standby)
            self.group.synchronize(standby)
            primary, standby = standby, primary
        self._watch()
        return promoted, primary


ALL = ["steady", "killed", "stopped", "planned", "returned", "fenced", "flapping"]
WAYS = [OURS, THEIRS, HAPROXY, DRIVER]


def play(scene, name, order, group, folder, scenes):
    """Play one scene with one of the ways; its Figures."""
    primary, standby = group.settle()
    hosts = [primary.host, standby.host]
    with contextlib.ExitStack() as stack:
        way = Way(name, folder, hosts[::order], group.port, [primary, standby])
        stack.callback(way.close)
        wait_until(lambda: serves(way), 20, f"{name} to serve", interval=0.1)
        writing = stack.enter_context(Writers(way.connect))
        threading.Event().wait(0.7)
        began = time.monotonic()
        promoted, primary = getattr(scenes, scene)(way, primary, standby)
        return Figures(writing, began, promoted, primary)


def serves(way):
    try:
        with way.connect() as connection:
            connection.execute("SELECT 1")
            return True
    except psycopg.Error:
        return False


def dead_first(name, group, folder):
    """100 connections, with a first host that drops packets: how many fail, and how long it takes."""
    primary, standby = group.settle()
    hole = BlackHole("127.0.1.200", group.port)
    with contextlib.ExitStack() as stack:
        stack.callback(hole.close)
        way = Way(name, folder, [hole.host, primary.host], group.port, [primary])
        stack.callback(way.close)
        if name == HAPROXY:
            # Its first checks.
            wait_until(lambda: serves(way), 20, f"{name} to serve", interval=0.1)
        failed, done = 0, 0
        began = time.monotonic()
        while done < 100 and time.monotonic() - began < 12:
            done += 1
            try:
                with way.connect() as connection:
                    connection.execute("INSERT INTO written (id) VALUES (-1)")
            except psycopg.Error:
                failed += 1
        took = time.monotonic() - began
    return f"{done - failed} of 100 served in {took:.1f} s, {failed} errors"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenes", nargs="*", metavar="SCENE", help=", ".join([*ALL, "dead"]))
    parser.add_argument("--only", nargs="*", choices=WAYS, default=WAYS, help="these ways")
    parser.add_argument("--seconds", type=float, default=4, help="after each event")
    parser.add_argument("--rounds", help="ignored: for the other scripts")
    options = parser.parse_args()
    chosen = options.scenes or [*ALL, "dead"]
    unknown = set(chosen) - {*ALL, "dead"}
    if unknown:
        parser.error(f"no such scene: {', '.join(sorted(unknown))}")
    ways = [way for way in options.only if way != THEIRS or rig.find_pgbouncer()]
    if not shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin"):
        ways = [way for way in ways if way != HAPROXY]
    scenes = Scenes(options.seconds)
    print("# The primary moves, eight writers\n")
    print(f"| scene | {' | '.join(ways)} | rows lost, doubled |")
    print("| --- |" + " --- |" * (len(ways) + 1))
    bad = 0
    with contextlib.ExitStack() as stack:
        folder = make_folder("pgusher-bench-")
        stack.callback(drop_folder, folder)
        publish_binary(folder)
        group = scenes.group = Replicas(2, TABLE)
        stack.callback(group.destroy)
        for scene in chosen:
            for order in (1, -1) if scene == "steady" else (1,):
                cells, rows = [], []
                for name in ways:
                    if scene == "dead":
                        cells.append(dead_first(name, group, folder))
                        continue
                    figures = play(scene, name, order, group, folder, scenes)
                    cells.append(figures.cell())
                    rows.append(f"{figures.lost}, {figures.doubled}")
                    if name == OURS:
                        bad += figures.lost + figures.doubled > 0
                    print(f"{scene} {name}: {figures.states}", file=sys.stderr)
                title = "dead first host" if scene == "dead" else getattr(scenes, scene).__doc__
                if scene == "steady":
                    title += ", primary first" if order == 1 else ", standby first"
                lost = " / ".join(rows) if len(set(rows)) > 1 else "".join(rows[:1])
                print(f"| {title} | {' | '.join(cells)} | {lost} |", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
