# SPDX-License-Identifier: ISC
"""The units of etc/ under a real systemd: reloads, upgrades without a cut, crashes, stops."""

import contextlib
import os
import re
import shutil
import subprocess

import pytest

from support import wire
from support.clients.raw import RawClient, cancel
from support.process import run, stays, wait_until
from support.servers.pooler import binary, is_sanitized
from support.servers.service_manager import ServiceManager

ETC = os.path.join(os.path.dirname(__file__), "..", "..", "etc")
UNITS = "/etc/systemd/system"
PROGRAM = "/usr/bin/pgusher"
CONFIG = "/etc/pgusher/pgusher.ini"
SOCKET = "/run/pgusher/.s.PGSQL.6432"

# Quicker than the unit's own times, which are for people.
QUICK = """[Service]
RestartSec=1
WatchdogSec=2
TimeoutAbortSec=1
StartLimitIntervalSec=0
"""

METRICS_SOCKET = """[Socket]
ListenStream=127.0.0.1:9127
FileDescriptorName=metrics
Service=pgusher.service
"""


def missing():
    """What keeps a systemd from running here; None: nothing."""
    if os.getuid() != 0:
        return "only root can make namespaces"
    for program in ("unshare", "nsenter", "ip", "systemctl"):
        if not shutil.which(program):
            return f"no {program} here"
    if "systemd: yes" not in run([binary(), "--version"]).stdout:
        return "built without libsystemd"
    return None


def configuration(**settings):
    lines = {
        "listen_addr": "127.0.0.1", "auth_type": "trust", "auth_file": "/etc/pgusher/userlist.txt",
        "admin_users": "app", "pool_mode": "transaction", "so_reuseport": 0, **settings}
    pairs = "".join(f"{name} = {value}\n" for name, value in lines.items() if value is not None)
    return f"[databases]\nmain = host=/srv port={{port}}\n[pgbouncer]\n{pairs}"


class Service:
    """The unit pgusher.service, and what a person can ask of it."""

    def __init__(self, manager, cluster):
        self.manager = manager
        self.cluster = cluster

    def configure(self, text):
        self.manager.place(CONFIG, text.format(port=self.cluster.port))

    def upgrade(self, content=None):
        """Replace the program, as a package's upgrade does."""
        self.manager.place(PROGRAM, content, source=None if content else binary(), mode=0o755)

    def systemctl(self, verb, unit="pgusher.service", check=True):
        done = self.manager.run("systemctl", verb, unit, check=False)
        assert done.returncode == 0 or not check, done.stderr + self.manager.journal(unit)
        return done

    def pid(self, unit="pgusher.service"):
        """Of the main process, as systemd sees it."""
        return self.manager.show(unit, "MainPID")

    def kill(self, number):
        """A signal to the main process, past systemd."""
        self.manager.run("kill", f"-{number}", self.pid())

    def psql(self, sql, *options, database="main", check=True):
        words = ["psql", "-XAtqh", "127.0.0.1", "-p", "6432", "-U", "app", *options, "-c", sql]
        return self.manager.run(*words, database, check=check)

    def setting(self, name):
        rows = self.psql("SHOW CONFIG", database="pgusher").stdout.splitlines()
        return {row.split("|")[0]: row.split("|")[1] for row in rows}[name]

    def is_ready(self):
        """As its metrics port says."""
        ask = "exec 3<>/dev/tcp/127.0.0.1/9127; printf 'GET /readyz HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
        return "200 OK" in self.manager.run("bash", "-c", ask).stdout

    def client(self):
        return RawClient(f"/proc/{self.manager.pid()}/root{SOCKET}").login("app", "main")

    def journal(self):
        return self.manager.journal("pgusher.service")

    @contextlib.contextmanager
    def load(self):
        """pgbench, each of whose transactions has to succeed; yields when it runs."""
        words = ["pgbench", "-h", "127.0.0.1", "-p", "6432", "-U", "app", "-n", "-c", "4", "-P", "1"]
        script = "/srv/load.sql"
        with open(f"{self.cluster.folder}/load.sql", "w") as file:
            file.write("BEGIN;\nSELECT 1;\nSELECT 2;\nEND;\n")
        process = subprocess.Popen(
            self.manager.command(*words, "-f", script, "-T", "600", "main"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            assert re.search(r"tps", process.stderr.readline())
            yield process
            assert re.search(r"tps", process.stderr.readline())
        finally:
            # Its child in the namespaces; pgbench itself reports at the end of its time only.
            alive = process.poll() is None
            self.manager.run("pkill", "-INT", "-x", "pgbench", check=False)
            rest = process.communicate(timeout=20)[1]
        assert alive and "aborted" not in rest and "ERROR" not in rest, rest


@pytest.fixture(scope="module")
def manager(shared_cluster):
    if reason := missing():
        pytest.skip(reason)
    manager = ServiceManager(shared_cluster.folder)
    manager.place(PROGRAM, source=binary(), mode=0o755)
    for name in ("pgusher.service", "pgusher@.service", "pgusher.socket"):
        manager.place(f"{UNITS}/{name}", source=os.path.join(ETC, name))
    for name in ("pgusher.service", "pgusher@.service"):
        manager.place(f"{UNITS}/{name}.d/quick.conf", QUICK)
        if is_sanitized():
            # The unit's filter does not allow the system calls that look for leaks.
            manager.place(
                f"{UNITS}/{name}.d/asan.conf",
                "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
    manager.place("/etc/pgusher/userlist.txt", '"app" ""\n')
    try:
        yield manager.boot()
    finally:
        manager.halt()


@pytest.fixture
def service(manager, cluster):
    service = Service(manager, cluster)
    service.configure(configuration())
    service.upgrade()
    service.systemctl("start")
    yield service
    for unit in ("pgusher*.socket", "pgusher.service", "pgusher@*.service"):
        manager.run("systemctl", "kill", "-s", "KILL", unit, check=False)
        manager.run("systemctl", "stop", unit, check=False)
    manager.run("systemctl", "reset-failed", check=False)


def test_a_start_serves(service):
    assert service.psql("SELECT 41 + 1").stdout == "42\n"
    assert service.manager.show("pgusher.service", "ActiveState") == "active"
    assert service.manager.show("pgusher.service", "SubState") == "running"


def test_a_reload_follows_the_configuration(service):
    before = service.pid()
    service.configure(configuration(query_wait_timeout=77))
    service.systemctl("reload")
    wait_until(lambda: service.setting("query_wait_timeout") == "77")
    assert service.pid() == before


def test_a_reload_with_mistakes_says_so_and_changes_nothing(service):
    before = service.pid()
    service.configure(configuration(query_wait_timeout="soon"))
    assert service.systemctl("reload", check=False).returncode != 0
    assert f"{CONFIG}:" in service.journal()
    assert "the configuration has mistakes: nothing was changed" in service.journal()
    assert service.pid() == before and service.setting("query_wait_timeout") == "120"


def test_a_reload_after_an_upgrade_starts_the_new_program_and_cuts_no_client(service):
    first = service.pid()
    client = service.client()
    client.query("BEGIN")
    with service.load():
        service.upgrade()
        service.systemctl("reload")
        second = service.pid()
        assert second != first
        service.upgrade()
        service.systemctl("reload")
        assert service.pid() != second
    assert client.value("SELECT 5") == "5"
    client.query("COMMIT")
    client.leave()
    assert service.manager.show("pgusher.service", "NRestarts") == "0"
    assert "not our child" not in service.journal()
    # The new process is the one that systemd watches and stops.
    service.systemctl("stop")
    assert service.manager.show("pgusher.service", "Result") == "success"
    assert service.psql("SELECT 1", check=False).returncode != 0


def test_the_watchdog_watches_the_new_program(service):
    for _ in range(2):
        service.upgrade()
        service.systemctl("reload")
    second = service.pid()
    stays(lambda: service.pid() == second, seconds=5)
    service.kill("STOP")
    wait_until(lambda: service.pid() not in ("0", second), 15)
    wait_until(lambda: service.psql("SELECT 1", check=False).returncode == 0)


def test_a_new_program_that_cannot_start_leaves_the_old_one(service):
    before = service.pid()
    client = service.client()
    service.upgrade("#!/bin/sh\nexit 1\n")
    assert service.systemctl("reload", check=False).returncode != 0
    assert service.pid() == before and client.value("SELECT 1") == "1"


def test_an_upgrade_with_mistakes_in_the_configuration_leaves_the_old_program(service):
    before = service.pid()
    client = service.client()
    service.configure(configuration(no_such=1))
    service.upgrade()
    assert service.systemctl("reload", check=False).returncode != 0
    assert service.pid() == before and client.value("SELECT 1") == "1"
    service.configure(configuration())
    service.systemctl("reload")
    assert service.pid() != before and client.value("SELECT 1") == "1"


def test_a_new_program_that_fails_to_take_over_leaves_the_old_one(service):
    before = service.pid()
    client = service.client()
    # Its Unix socket has another name, so there is no process to take over from.
    service.configure(configuration(listen_port=6433))
    service.upgrade()
    assert service.systemctl("reload", check=False).returncode != 0
    assert "the new program could not take over; the old one goes on" in service.journal()
    assert service.pid() == before and client.value("SELECT 1") == "1"


def test_without_a_unix_socket_a_reload_after_an_upgrade_only_reloads(service):
    service.configure(configuration(unix_socket_dir=""))
    service.systemctl("restart")
    before = service.pid()
    service.configure(configuration(unix_socket_dir="", query_wait_timeout=78))
    service.upgrade()
    service.systemctl("reload")
    assert "restart the service" in service.journal()
    wait_until(lambda: service.setting("query_wait_timeout") == "78")
    assert service.pid() == before


@pytest.fixture
def drop_in(service):
    """Add lines to [Service] of pgusher.service, until the end of the test."""
    place = f"{UNITS}/pgusher.service.d/test.conf"

    def add(lines):
        service.manager.place(place, f"[Service]\n{lines}\n")
        service.systemctl("daemon-reload", unit="--quiet")

    yield add
    service.manager.run("rm", "-f", place)
    service.systemctl("daemon-reload", unit="--quiet")


def test_a_new_program_that_cannot_notify_does_not_take_over(service, drop_in):
    drop_in("NotifyAccess=main")
    service.systemctl("restart")
    before = service.pid()
    client = service.client()
    service.configure(configuration(query_wait_timeout=79))
    service.upgrade()
    service.systemctl("reload")
    assert "NotifyAccess=all" in service.journal()
    wait_until(lambda: service.setting("query_wait_timeout") == "79")
    assert service.pid() == before and client.value("SELECT 1") == "1"


def test_a_new_program_does_not_take_over_from_another_service(service, drop_in):
    service.systemctl("stop")
    service.configure(configuration(so_reuseport=1))
    reload = f"/usr/bin/pgusher --reload=${{MAINPID}} --preset=unix_socket_dir=/run/pgusher/1 {CONFIG}"
    drop_in(f"ExecReload=\nExecReload={reload}")
    other = "pgusher@1.service"
    for _ in range(2):
        for unit in (other, "pgusher.service"):
            service.systemctl("start", unit=unit)
        before = service.pid(), service.pid(other)
        service.upgrade()
        assert service.systemctl("reload", check=False).returncode != 0
        assert "the process at the Unix socket is not the one to take over from" in service.journal()
        assert (service.pid(), service.pid(other)) == before
        assert service.client().value("SELECT 1") == "1"
        # Once more with a process that has taken over itself.
        service.systemctl("reload", unit=other)


@pytest.mark.parametrize("host", ["127.0.0.1", "/run/pgusher"])
def test_clients_wait_while_a_crashed_process_is_replaced(service, host):
    for round in range(3):
        if round == 2:
            service.upgrade()
            service.systemctl("reload")
        before = service.pid()
        service.kill("KILL")
        wait_until(lambda: service.pid() == "0")
        assert service.psql("SELECT 1", "-h", host).stdout == "1\n"
        assert service.pid() != before
    assert f"service manager has kept {'unix:' if host[0] == '/' else ''}{host}" in service.journal()


def test_after_a_crash_other_addresses_may_be_configured(service):
    service.configure(configuration(listen_port=6433))
    service.kill("KILL")
    wait_until(lambda: service.psql("SELECT 1", "-p", "6433", check=False).returncode == 0)
    assert "Connection refused" in service.psql("SELECT 1", check=False).stderr


def test_a_service_that_stops_refuses_clients_at_once(service):
    client = service.client()
    client.query("BEGIN")
    service.manager.run("systemctl", "stop", "--no-block", "pgusher.service")
    wait_until(lambda: "Connection refused" in service.psql("SELECT 1", check=False).stderr)
    assert client.value("SELECT 1") == "1"
    client.query("COMMIT")
    client.leave()
    wait_until(lambda: service.manager.show("pgusher.service", "ActiveState") == "inactive")


def test_an_upgrade_with_a_socket_unit_leaves_the_sockets_to_it(service):
    service.systemctl("stop")
    service.configure(configuration(unix_socket_dir="/run/postgresql"))
    service.manager.place(f"{UNITS}/pgusher-metrics.socket", METRICS_SOCKET)
    for unit in ("pgusher.socket", "pgusher-metrics.socket"):
        service.systemctl("start", unit=unit)
    assert service.psql("SELECT 1").stdout == "1\n"
    assert service.is_ready()
    first = service.pid()
    with service.load():
        service.upgrade()
        service.systemctl("reload")
    second = service.pid()
    assert second != first
    assert service.is_ready()
    assert service.pid() == second
    # The manager owns the sockets still: clients wait in them for the next process.
    service.systemctl("stop")
    for host in ("127.0.0.1", "/run/postgresql"):
        assert service.psql("SELECT 1", "-h", host).stdout == "1\n"


def test_processes_of_the_template_share_a_port(service):
    service.systemctl("stop")
    peers = "[peers]\n1 = host=/run/pgusher/1\n2 = host=/run/pgusher/2\n"
    service.configure(peers + configuration(so_reuseport=None))
    units = [f"pgusher@{number}.service" for number in (1, 2)]
    for unit in units:
        service.systemctl("start", unit=unit)
    first, second = (service.pid(unit) for unit in units)
    with service.load():
        service.upgrade()
        service.systemctl("reload", unit=units[0])
        service.systemctl("reload", unit=units[1])
    assert service.pid(units[0]) != first and service.pid(units[1]) != second
    # A cancel request that reaches the other process is forwarded.
    folder = f"/proc/{service.manager.pid()}/root/run/pgusher"
    with RawClient(f"{folder}/1/.s.PGSQL.6432").login("app", "main") as client:
        client.send(wire.query("SELECT pg_sleep(60)"))
        wait_until(lambda: service.cluster.backends(query="SELECT pg_sleep(60)"))
        cancel(f"{folder}/2/.s.PGSQL.6432", client.key)
        assert client.error().sqlstate == "57014"


@pytest.mark.skipif(not shutil.which("useradd"), reason="no useradd here")
@pytest.mark.skipif(
    is_sanitized(), reason="the sanitizer's crypt() cannot call that of a library loaded later")
def test_the_drop_in_lets_pam_read_the_passwords_of_the_system(service):
    run_there = service.manager.run
    run_there("sh", "-c", "id -u paul || { useradd paul && echo paul:secret | chpasswd; }")
    rules = "auth required pam_unix.so\naccount required pam_unix.so\n"
    service.manager.place("/etc/pam.d/pgbouncer", rules)
    text = configuration(auth_type="pam").replace("port={port}", "port={port} user=app")
    service.configure(text)
    target = "host=127.0.0.1 port=6432 user=paul password={} dbname=main"

    def login(password):
        words = ["psql", "-XAtqc", "SELECT 7", target.format(password)]
        return run_there(*words, check=False)

    service.systemctl("restart")
    assert login("secret").returncode != 0
    place = f"{UNITS}/pgusher.service.d/pam.conf"
    service.manager.place(place, source=os.path.join(ETC, "pgusher-pam.conf"))
    service.systemctl("daemon-reload", unit="--quiet")
    service.systemctl("restart")
    assert login("secret").stdout == "7\n"
    assert login("wrong").returncode != 0
    run_there("rm", place)
    service.systemctl("daemon-reload", unit="--quiet")
