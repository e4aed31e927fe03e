# SPDX-License-Identifier: ISC
"""The log: formats, repeated lines, destinations, and log analysers."""

import contextlib
import datetime
import fcntl
import gzip
import json
import os
import re
import shutil
import signal
import socket
import time

import pytest

from support import wire
from support.process import own, run, wait_until
from support.servers.cluster import HARNESS


def read(path):
    with open(path) as file:
        return file.read()


# JSON


def objects(pooler):
    """The lines of the log, each an object."""
    return [json.loads(line) for line in pooler.log().splitlines()]


@pytest.mark.setting("log_format")
def test_json_has_an_object_a_line_with_typed_fields(new_pooler, cluster):
    pooler = new_pooler({"log_format": "json"})
    client = pooler.client()
    port = client.socket.getsockname()[1]
    client.query("SELECT 1")
    handle = pooler.clients()[0]["ptr"]
    client.leave()
    pooler.wait_log('"message":"closing because: client close request')
    pooler.command("KILL main")
    pooler.wait_log('"side":"server".*"message":"closing because: ')
    lines = objects(pooler)
    for line in lines:
        assert list(line)[:3] == ["time", "pid", "level"] and list(line)[-1] == "message"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
        assert line["pid"] == pooler.process.pid
    (up,) = [line for line in lines if line["message"].startswith("process up: ")]
    assert list(up) == ["time", "pid", "level", "message"] and up["level"] == "LOG"
    (attempt,) = [line for line in lines if "login attempt: db=main" in line["message"]]
    expected = {
        "level": "LOG",
        "side": "client",
        "ptr": handle,
        "database": "main",
        "user": "app",
        "address": "127.0.0.1",
        "port": port,
        "tls": "no",
        "replication": "no",
        "message": "login attempt: db=main user=app tls=no replication=no",
    }
    assert expected.items() <= attempt.items()
    (closing,) = [line for line in lines if line.get("reason") == "client close request"]
    assert closing["ptr"] == handle and closing["age"] == 0
    assert closing["message"] == "closing because: client close request (age=0s)"
    (server,) = [line for line in lines if "new connection to server" in line["message"]]
    assert (server["side"], server["address"], server["port"]) == ("server", "127.0.0.1", cluster.port)


@pytest.mark.setting("log_format")
@pytest.mark.parametrize("how", ["SET", "RELOAD"])
def test_the_format_can_be_changed_while_it_runs(new_pooler, how):
    pooler = new_pooler()
    for word in ("json", "text", "json"):
        if how == "SET":
            pooler.command(f"SET log_format = '{word}'")
        else:
            pooler.settings["log_format"] = word
            pooler.reload()
        pooler.client("alice").leave()
        (line,) = pooler.wait_log("user=alice tls=no")[-1:]
        assert line.startswith("{") == (word == "json")


def test_json_is_utf_8_whatever_peers_send(new_pooler):
    pooler = new_pooler({"log_format": "json", "log_repeats": 0, "verbose": 2})
    names = ['"\\', "\x01\x1b[2J", "J\u00f6rg \U0001f418", "x" * 120, "\udcff\udcc0\udcaf", "a\nb\r\n{}", "\u2028"]
    for name in names:
        raw = pooler.raw()
        data = name.encode("utf-8", "surrogateescape")
        raw.send_startup(data, data)
        raw.read_all()
    pooler.wait_log("login attempt", len(names))
    with open(pooler.log_path, "rb") as file:
        lines = file.read().split(b"\n")
    assert lines.pop() == b""
    users = [json.loads(line.decode("utf-8"))["user"] for line in lines if b"login attempt" in line]
    assert users[:4] == names[:4]
    assert len(users) == len(names)


# Repeated lines


@pytest.mark.setting("log_repeats")
def test_unknown_users_are_logged_a_few_times_a_second(new_pooler):
    pooler = new_pooler({"log_repeats": 2})
    for number in range(40):
        pooler.refused(f"ghost{number}")
    pooler.wait_log("login attempt", 40)
    # Lines that scripts count are all logged.
    assert len(pooler.lines("closing because: ")) == 40
    kinds = ["no such user: ghost", 'pooler error: "trust" authentication failed']
    for kind in kinds:
        visible = wait_until(lambda kind=kind: whole_count(pooler, kind, 40), what=f"all of {kind}")
        assert len(visible) < 40
    pooler.command("SET log_repeats = 0")
    before = len(pooler.lines(r"\] LOG C-0x\w+: \S+ no such user"))
    for number in range(20):
        pooler.refused(f"other{number}")
    pooler.wait_log(r"\] LOG C-0x\w+: \S+ no such user", before + 20)


def whole_count(pooler, kind, expected):
    """The lines of this kind, when those written and those reported as suppressed are so many."""
    lines = pooler.lines(re.escape(kind))
    more = [re.search(r"\] \w+ (\d+) more like this \(", line) for line in lines]
    count = sum(int(found.group(1)) if found else 1 for found in more)
    assert count <= expected
    return lines if count == expected else None


# Destinations that accept nothing: F73


def serve(pooler, rounds):
    """Log in and out again so often, quickly: no client waits for the log."""
    for number in range(rounds):
        began = time.monotonic()
        client = pooler.client()
        assert client.value("SELECT 1") == "1"
        client.leave()
        assert time.monotonic() - began < 5, number


def test_a_full_pipe_on_stderr_delays_no_client(new_pooler):
    pooler = new_pooler(start=False)
    reader, writer = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, reader)
        try:
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4 * 4096)
            pooler.settings["logfile"] = pooler.log_path
            pooler.write_config()
            pooler.start(stderr=writer)
        finally:
            os.close(writer)
        serve(pooler, 150)
        visible = os.read(reader, 65536).decode()
        assert visible.count("\n") < len(pooler.log().splitlines())
        # Once there is room, the first line reports how many were lost; the file has them all.
        pooler.client("alice")
        pooler.wait_log("login attempt: db=main user=alice")
        visible += os.read(reader, 65536).decode()
        (lost,) = re.findall(r"WARNING log: (\d+) lines were lost here\n", visible)
        lines = pooler.log().splitlines()
        assert visible.splitlines()[-1] == lines[-1]
        assert visible.count("\n") - 1 + int(lost) == len(lines)


def test_a_reader_of_stderr_that_closes_ends_nothing(new_pooler):
    pooler = new_pooler(start=False)
    reader, writer = os.pipe()
    pooler.settings["logfile"] = pooler.log_path
    pooler.write_config()
    pooler.start(stderr=writer)
    os.close(writer)
    os.close(reader)
    serve(pooler, 3)
    assert pooler.lines("login attempt")


@pytest.mark.setting("logfile")
def test_a_full_disk_delays_no_client(new_pooler):
    pooler = new_pooler({"logfile": "/dev/full"})
    serve(pooler, 5)
    # The other destination works, and so does the file when there is room again.
    assert len(pooler.lines("login attempt: db=main user=app")) == 5
    pooler.settings["logfile"] = pooler.path("log")
    pooler.reload()
    pooler.client("alice")
    pooler.wait_log("user=alice")
    first, *_ = [text for text in read(pooler.path("log")).splitlines()]
    assert re.search(r"WARNING log: \d+ lines were lost here$", first)


def test_a_file_at_its_size_limit_ends_nothing(new_pooler):
    """The kernel sends SIGXFSZ with the error of such a write."""
    pooler = new_pooler(start=False)
    path = pooler.settings["logfile"] = pooler.path("log")
    pooler.write_config()
    pooler.start()
    limit = os.path.getsize(path) + 100
    limit_file_size(pooler, limit)
    serve(pooler, 5)
    assert os.path.getsize(path) <= limit
    limit_file_size(pooler, "unlimited")
    pooler.client("alice")
    wait_until(lambda: "user=alice" in read(path))
    # The line that the limit cut has lost its end; those behind it are counted.
    assert len(re.findall(r"WARNING log: \d+ lines were lost here\n", read(path))) == 1


def limit_file_size(pooler, limit):
    run(["prlimit", f"--pid={pooler.process.pid}", f"--fsize={limit}:"])


def test_a_log_folder_that_was_removed_delays_no_client(new_pooler):
    pooler = new_pooler(start=False)
    folder = pooler.path("logs")
    os.mkdir(folder)
    own(folder)
    pooler.settings["logfile"] = os.path.join(folder, "log")
    pooler.write_config()
    pooler.start()
    shutil.rmtree(folder)
    serve(pooler, 3)
    pooler.signal(signal.SIGHUP)
    pooler.wait_log(r"ERROR Cannot open logfile: '.*/logs/log': No such file or directory")
    serve(pooler, 3)
    os.mkdir(folder)
    own(folder)
    pooler.signal(signal.SIGHUP)
    wait_until(lambda: os.path.exists(os.path.join(folder, "log")))
    pooler.client("alice")
    wait_until(lambda: "user=alice" in read(os.path.join(folder, "log")))


def test_a_syslog_that_is_not_read_delays_no_client(new_pooler, library):
    pooler = new_pooler({"syslog": 1}, start=False)
    path = pooler.path("log.socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(path)
        syslog.setblocking(False)
        own(path)
        pooler.start(
            environment={
                "LD_PRELOAD": library,
                "PGUSHER_SYSLOG": path,
                "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0",
            }
        )
        with open("/proc/sys/net/unix/max_dgram_qlen") as file:
            room = int(file.read())
        serve(pooler, room // 3 + 20)
        taken = drain(syslog)
        pooler.client("alice")
        pooler.wait_log("user=alice")
        after = drain(syslog)
    (lost,) = re.findall(r"log: (\d+) lines were lost here$", after[0])
    # Each line was written, or is counted.
    assert len(taken) + int(lost) + len(after) - 1 == len(pooler.log().splitlines())


def drain(source):
    """The datagrams that wait there."""
    found = []
    with contextlib.suppress(BlockingIOError):
        while True:
            found.append(source.recv(65536).decode())
    return found


# Rotation


LOGROTATE = shutil.which("logrotate") or shutil.which("logrotate", path="/usr/sbin")


@pytest.mark.skipif(not LOGROTATE, reason="no logrotate")
@pytest.mark.parametrize("way", ["rename", "copytruncate"])
def test_logrotate(new_pooler, way):
    pooler = new_pooler(start=False)
    log = pooler.path("pgusher.log")
    pooler.settings.update(logfile=log, pidfile=pooler.path("pgusher.pid"))
    pooler.write_config()
    pooler.start()
    top = os.path.join(os.path.dirname(__file__), "..", "..", "etc", "pgusher.logrotate")
    text = read(top).replace("/var/log/pgusher/", pooler.folder + "/")
    text = text.replace("/run/pgusher/", pooler.folder + "/").replace("\tsu postgres postgres\n", "")
    if way == "copytruncate":
        text = re.sub(r"\tnocreate\n.*?endscript\n", "", text, flags=re.S)
        text = text.replace("\t#copytruncate", "\tcopytruncate")
    config = pooler.write("logrotate.conf", text)
    os.chmod(config, 0o644)
    for name in ("app", "alice", "bob"):
        pooler.client(name)
        wait_until(lambda name=name: f"user={name}" in read(log))
        run([LOGROTATE, "-f", "-s", pooler.path("state"), config])
        if way == "rename":
            wait_until(lambda: os.path.exists(log))
    pooler.client("carol")
    wait_until(lambda: "user=carol" in read(log))
    # Each line was written to one of the files, and truncation leaves no hole.
    assert "user=bob" not in read(log) and "\0" not in read(log)
    older = read(log + ".1")
    assert "user=bob" in older and "user=carol" not in older
    with gzip.open(log + ".2.gz", "rt") as file:
        assert "user=alice" in file.read()
    with gzip.open(log + ".3.gz", "rt") as file:
        assert "user=app" in file.read()


# Analysers


@pytest.mark.skipif(not shutil.which("pgbadger"), reason="no pgbadger")
def test_pgbadger_counts_what_happened(new_pooler):
    pooler = new_pooler({"stats_period": 1})
    long_ones = [pooler.client() for _ in range(3)]
    for client in long_ones:
        client.query("SELECT 1")
    for _ in range(4):
        pooler.client("alice").leave()
    for _ in range(5):
        pooler.refused(database="nowhere")
    pooler.refused("ghost")
    # pgBadger counts the age of sessions in whole seconds.
    pooler.wait_log("stats: ", 3)
    wait_until(lambda: all(age(row) >= 2 for row in pooler.clients()))
    for client in long_ones:
        client.leave()
    pooler.wait_log("closing because: client close request", 7)
    pooler.stop()
    out = pooler.path("report.json")
    with open(pooler.log_path) as file:
        # Its older versions, Debian's among them, do not know the unit.
        plain = pooler.write("plain.log", re.sub(r"\(age=(\d+)s\)", r"(age=\1)", file.read()))
    run(["pgbadger", "-q", "-x", "json", "-o", out, plain])
    with open(out) as file:
        found = json.load(file)
    attempts = [each for each in pooler.lines("login attempt: ")]
    users = {"app": 3 + 5, "alice": 4, "ghost": 1, "admin": 1}
    assert found["pgb_connection_info"]["count"] == len(attempts) == sum(users.values())
    assert found["pgb_connection_info"]["user"] == users
    assert found["pgb_connection_info"]["database"]["nowhere"] == 5
    sessions = found["pgb_session_info"]
    assert sessions["count"] == len(pooler.lines(r" LOG [CS]-0x.* \(age=\d+s\)$"))
    assert sessions["user"]["alice"]["count"] == 4 + len(pooler.lines("S-0x.*main/alice.*closing"))
    assert sessions["duration"] >= 3 * 2000
    assert found["pgb_overall_stat"]["errors_number"] == 6
    errors = found["pgb_error_info"]
    assert sum(error["count"] for error in errors.values()) == 6
    assert any("no such database: nowhere" in text for text in errors)


def age(row):
    """The seconds since a client of SHOW CLIENTS connected."""
    began = datetime.datetime.strptime(row["connect_time"][:19], "%Y-%m-%d %H:%M:%S")
    return (datetime.datetime.utcnow() - began).total_seconds()


# Secrets: F63


def test_no_secret_is_logged_or_shown_anywhere(new_pooler, cluster):  # F63
    names = ("client", "wrong", "forced", "admin", "looked-up", "directory")
    marks = {name: f"Marked-{name}-secret" for name in names}
    with cluster.connect("main") as database:
        database.execute("CREATE TABLE secrets AS SELECT 'carol' AS name, %s AS secret", [marks["looked-up"]])
    try:
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "auth_type": "plain",
                "verbose": 2,
                "log_repeats": 0,
                "auth_user": HARNESS,
                "auth_query": "SELECT name, secret FROM secrets WHERE name = $1",
                "auth_ldap_options": f"ldapbinddn=x ldapbindpasswd={marks['directory']}",
            },
            databases={
                "main": {"connect_query": "SELECT 'connected'"},
                "forced": {"dbname": "main", "user": "plain_login", "password": marks["forced"]},
            },
            auth={"app": marks["client"], "admin": marks["admin"], "carol": None},
        )
        visible = []
        for user, mark in (("app", "client"), ("carol", "looked-up")):
            visible.append(pooler.client(user, password=marks[mark]).query("SELECT 1").rows)
        visible += [pooler.refused(user, password=marks["wrong"]) for user in ("app", "ghost", "carol")]
        visible.append(pooler.refused(database="forced", password=marks["client"]))
        pooler.raw().send_startup("app").send(wire.password(marks["wrong"]), b"\xff" * 20).read_all()
        console = pooler.client("admin", "pgbouncer", marks["admin"])
        shown = topics(console)
        assert {"CONFIG", "USERS", "DATABASES", "SERVERS"} <= set(shown)
        visible += [console.query(f"SHOW {topic}").rows for topic in shown]
        everything = pooler.log() + str(visible)
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pooler.process.pid}/{name}", "rb") as file:
                everything += file.read().decode("latin1")
        assert "user=ghost" in everything and "main/carol" in everything
        for mark in marks.values():
            assert mark not in everything
    finally:
        cluster.ask("main", "DROP TABLE secrets")


def topics(console):
    """The topics of SHOW, without FDS, which only the local superuser may read."""
    console.send(wire.query("SHOW HELP"))
    (notice,) = console.result().notices
    words = re.search(r"SHOW ([A-Z_|\s]+)", notice["D"]).group(1)
    return sorted(set(re.findall(r"[A-Z_]+", words)) - {"FDS", "HELP", "SHOW", "SET"})
