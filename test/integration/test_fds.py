# SPDX-License-Identifier: ISC
"""SHOW FDS, and a PgBouncer that takes over from pgusher by it."""

import base64
import contextlib
import os
import shutil
import signal
import socket
import struct
import subprocess

import pytest
from support import wire
from support.clients.raw import RawClient, ServerError
from support.process import HOST, as_service, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program
from support.servers.pooler import is_sanitized

PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
needs_pgbouncer = pytest.mark.skipif(not PGBOUNCER, reason="no PgBouncer installed")

COLUMNS = [
    ("fd", 23),
    ("task", 25),
    ("user", 25),
    ("database", 25),
    ("addr", 25),
    ("port", 23),
    ("cancel", 20),
    ("link", 23),
    ("client_encoding", 25),
    ("std_strings", 25),
    ("datestyle", 25),
    ("timezone", 25),
    ("password", 25),
    ("scram_client_key", 17),
    ("scram_server_key", 17),
]


def receive(client, timeout=10):
    """All messages of one answer, each with the descriptors that came with it."""
    client.socket.settimeout(timeout)
    found = []
    while not found or found[-1][0].type != "Z":
        data, descriptors, _, _ = socket.recv_fds(client.socket, 65536, 8)
        messages, rest = wire.split(data)
        assert not rest and data, "a message was cut"
        found += [(message, []) for message in messages[:-1]]
        found.append((messages[-1], list(descriptors)))
        if descriptors:
            kinds = "".join(message.type for message in messages)
            assert kinds in ("D", "TD"), "a row goes with its own descriptor"
    return found


def fds(pooler, **where):
    return [row for row in pooler.show("FDS") if all(row[k] == str(v) for k, v in where.items())]


def key_number(client):
    """A client's cancel key as the column has it."""
    return struct.unpack("!q", client.key[:8])[0]


def test_columns(pooler):
    result = pooler.command("SHOW FDS")
    assert [(column.name, column.type) for column in result.columns] == COLUMNS
    assert result.tag == "SHOW"


def test_stats_user_sees_no_descriptors(pooler):
    with pytest.raises(ServerError) as caught:
        pooler.console("stats").query("SHOW FDS")
    assert caught.value.text == "admin access needed"


def test_listeners_come_first(pooler):
    rows = pooler.show("FDS")
    assert [(row["task"], row["addr"], row["port"]) for row in rows[:2]] == [
        ("pooler", HOST, str(pooler.port)),
        ("pooler", "unix", str(pooler.port)),
    ]
    assert len(rows) == 2, "consoles have no row"
    for row in rows:
        assert (row["cancel"], row["link"]) == ("0", "0")
        assert all(row[name] is None for name in ("user", "database", "client_encoding"))
        assert all(row[name] is None for name, _ in COLUMNS[9:])


def test_rows_of_a_pair_name_each_other(pooler, cluster):
    client = pooler.client(client_encoding="latin1", TimeZone="Asia/Tokyo")
    client.query("BEGIN")
    idle = pooler.client()
    login = pooler.raw()
    login.send(b"\0")
    wait_until(lambda: pooler.show("LISTS", list="login_clients", items=1))
    tasks = [row["task"] for row in pooler.show("FDS")]
    assert tasks == ["pooler", "pooler", "client", "client", "client", "server"]
    assert fds(pooler, user="(nouser)")[0]["database"] == "(nodb)"
    row, other = fds(pooler, task="client", user="app")
    (server,) = fds(pooler, task="server")
    assert (row["link"], server["link"]) == (server["fd"], row["fd"])
    assert other["link"] == "0"
    assert row["cancel"] == str(key_number(client))
    assert other["cancel"] == str(key_number(idle))
    assert (row["user"], row["database"], row["addr"]) == ("app", "main", HOST)
    assert row["port"] == str(client.socket.getsockname()[1])
    assert server["port"] == str(cluster.port)
    assert (row["client_encoding"], row["timezone"]) == ("LATIN1", "Asia/Tokyo")
    assert (server["client_encoding"], server["timezone"]) == ("LATIN1", "Asia/Tokyo")
    assert (row["std_strings"], row["datestyle"]) == ("on", "ISO, MDY")
    for each in (row, server):
        assert each["password"] is each["scram_client_key"] is each["scram_server_key"] is None
    client.query("ROLLBACK")
    assert [row["link"] for row in fds(pooler, task="server")] == ["0"]


def test_keys_of_scram_clients_are_shown(new_pooler, cluster):
    secret = cluster.secret("scram_login")
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"scram_login": secret, "admin": "x"},
    )
    pooler.use_console("admin", "x")
    client = pooler.client("scram_login", password="scram secret")
    client.query("SELECT 1")
    client_row, server_row = fds(pooler, user="scram_login")
    assert client_row["password"] is None
    for row in (client_row, server_row):
        assert len(row["scram_client_key"]) == len(row["scram_server_key"]) == 2 + 64
        assert row["scram_client_key"].startswith("\\x")
    stored = secret.split("$")[2].split(":")
    assert bytes.fromhex(client_row["scram_server_key"][2:]) == base64.b64decode(stored[1])


def holds(pid, text):
    """Whether the memory of a process has these bytes anywhere."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            area, rights = line.split()[:2]
            begin, end = (int(number, 16) for number in area.split("-"))
            if rights.startswith("rw") and "[v" not in line:
                memory.seek(begin)
                with contextlib.suppress(OSError):
                    if text in memory.read(end - begin):
                        return True
    return False


@pytest.mark.skipif(os.getuid() != 0, reason="reads memory that is not its own")
def test_keys_that_were_shown_are_not_kept_as_text(new_pooler, cluster):
    if is_sanitized():
        pytest.skip("its memory is too large to be read")
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"scram_login": cluster.secret("scram_login"), "admin": "x"},
    )
    pooler.use_console("admin", "x")
    client = pooler.client("scram_login", password="scram secret")
    client.query("SELECT 1")
    key = fds(pooler, user="scram_login")[0]["scram_client_key"][2:].encode()
    console = pooler.client("admin", "pgbouncer", password="x")
    for sql in ("SHOW FDS", "SHOW FDS ORDER BY fd"):
        console.query(sql)
        # The answer arrives here before the daemon wipes it; no later message could overwrite it.
        wait_until(lambda: not holds(pooler.process.pid, key), what=sql)
    console.send(
        wire.message("P", wire.text("") + wire.text("SHOW FDS") + bytes(2))
        + wire.message("B", wire.text("") + wire.text("") + bytes(6))
        + wire.message("E", wire.text("") + bytes(4))
        + wire.message("S", b"")
    )
    assert console.result().rows
    wait_until(lambda: not holds(pooler.process.pid, key))


def test_a_secret_that_was_looked_up_is_shown(new_pooler, cluster):
    pooler = new_pooler(
        {"auth_type": "md5", "auth_user": "harness", "pool_mode": "transaction"},
        auth={"harness": "", "admin": "x", "app": None},
    )
    pooler.use_console("admin", "x")
    pooler.client("md5_login", password="md5 secret").query("SELECT 1")
    assert {row["password"] for row in fds(pooler, user="md5_login")} == {
        cluster.secret("md5_login")
    }


def test_tls_clients_are_left_out(new_pooler):
    authority = Authority()
    try:
        certificate, key = authority.issue("localhost", "DNS:localhost")
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "client_tls_sslmode": "allow",
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            }
        )
        hidden = pooler.connect(sslmode="require")
        hidden.execute("BEGIN")
        plain = pooler.client()
        plain.query("BEGIN")
        assert len(pooler.servers()) == 2
        rows = [row for row in pooler.show("FDS") if row["task"] != "pooler"]
        assert [row["task"] for row in rows] == ["client", "server"]
        assert rows[0]["cancel"] == str(key_number(plain))
        hidden.close()
    finally:
        authority.destroy()


def test_local_superuser_gets_the_descriptors(pooler):
    client = pooler.client()
    client.query("BEGIN")
    console = pooler.superuser()
    console.send(wire.query("SHOW FDS;"))
    found = receive(console)
    rows = [(wire.read_row(message.body), got) for message, got in found if message.type == "D"]
    assert [message.type for message, _ in found] == ["T"] + ["D"] * 4 + ["C", "Z"]
    assert all(len(got) == 1 for _, got in rows)
    assert not any(got for message, got in found if message.type != "D")
    theirs = {row[1]: got[0] for row, got in rows if row[1] != "pooler"}
    with socket.socket(fileno=theirs["client"]) as copy:
        assert copy.getpeername() == client.socket.getsockname()
    os.close(theirs["server"])
    for row, got in rows[:2]:
        with socket.socket(fileno=got[0]) as copy:
            assert copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    # The console works as before.
    assert console.query("SHOW VERSION").rows
    assert client.query("COMMIT").tag == "COMMIT"


def test_other_users_get_no_descriptors(pooler):
    for console in (pooler.console(unix=True), pooler.console()):
        console.send(wire.query("SHOW FDS"))
        assert not any(got for _, got in receive(console))


def test_a_console_that_does_not_read_delays_no_client(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 1000})
    clients = [pooler.client() for _ in range(600)]
    console = pooler.superuser()
    console.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    console.send(wire.query("SHOW FDS"))
    pooler.admin("SHOW LISTS")
    assert clients[0].value("SELECT 1") == "1"
    found = receive(console)
    for _, got in found:
        for each in got:
            os.close(each)
    assert len(found) == 600 + 2 + 1 + 3
    assert console.value("SHOW VERSION").startswith("PgBouncer")


def test_a_console_that_disconnects_in_the_middle_affects_no_client(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 1000})
    clients = [pooler.client() for _ in range(600)]
    before = pooler.descriptors()
    console = pooler.superuser()
    console.send(wire.query("SHOW FDS"))
    pooler.admin("SHOW LISTS")
    console.close()
    wait_until(lambda: pooler.descriptors() <= before + 1)
    assert clients[0].value("SELECT 1") == "1"


def end_pgbouncer(pooler):
    """End a PgBouncer. PgBouncer 1.18 exits with an error when it is ended: often for what it has to say
    of a client that is just leaving.
    """
    pooler.allow(r"disconnect_client\(\): bad client state")
    pooler.close_clients()
    pooler.signal(signal.SIGTERM)
    pooler.wait_exit()


# --- a PgBouncer takes over ---------------------------------------------------------------------


@needs_pgbouncer
def test_pgbouncer_takes_over(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "server_tls_sslmode": "disable"}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    idle = pooler.client(TimeZone="Asia/Tokyo")
    idle.query("SELECT 1")
    busy = pooler.client()
    busy.query("BEGIN")
    running = pooler.client()
    running.send(wire.query("SELECT 'ran' FROM pg_sleep(0.5)"))
    wait_until(lambda: cluster.backends(state="active"))
    backend = busy.value("SELECT pg_backend_pid()")
    pooler.take_over(program=PGBOUNCER)
    assert idle.value("SHOW TimeZone") == "Asia/Tokyo"
    assert busy.value("SELECT pg_backend_pid()") == backend
    busy.query("COMMIT")
    assert running.result().value == "ran"
    with RawClient(pooler.address) as asker:
        busy.send(wire.query("SELECT pg_sleep(30)"))
        wait_until(lambda: cluster.backends(state="active"))
        asker.send(wire.cancel_request(busy.key))
        assert busy.result().error.sqlstate == "57014"
    end_pgbouncer(pooler)


@needs_pgbouncer
def test_pgbouncer_takes_over_under_load(new_pooler, cluster):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 5,
            "server_tls_sslmode": "disable",
        }
    )
    script = pooler.write("script", "BEGIN;\nSELECT 1;\nSELECT repeat('x', 20000);\nCOMMIT;\n")
    bench = subprocess.Popen(
        as_service(
            [program("pgbench"), "-n", "-c", "20", "-T", "3", "-f", script]
            + ["-h", HOST, "-p", str(pooler.port), "-U", "app", "main"]
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
    )
    wait_until(lambda: len(pooler.clients()) == 20)
    pooler.close_console()
    pooler.take_over(program=PGBOUNCER)
    out, _ = bench.communicate(timeout=30)
    end_pgbouncer(pooler)
    assert bench.returncode == 0, out
    assert "number of failed transactions: 0 " in out
