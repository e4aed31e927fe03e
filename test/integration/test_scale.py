# SPDX-License-Identifier: ISC
"""Thousands of clients, users and databases: waiting, disconnected, or only configured."""

import os
import resource
import shutil
import subprocess
import time

import pytest

from support import wire
from support.clients.raw import RawClient, ServerError
from support.passwords import ScramClient
from support.process import HOST, PATIENCE, as_service, drop_folder, free_port, make_folder, run, wait_until
from support.servers.pooler import is_sanitized

# With sanitizers everything takes ten times as long, and memory figures are not the daemon's.
MANY = 1000 if is_sanitized() else 10_000
# A backlog that this machine's own connections cannot fill: a full one costs a second each.
CROWD = {
    "max_client_conn": 2 * MANY,
    "listen_backlog": 10_000,
    "log_connections": 0,
    "log_disconnections": 0,
}
HANGING_QUERY = "SELECT $1::text, $1::text FROM pg_sleep(600)"


@pytest.fixture(scope="module", autouse=True)
def many_descriptors():
    """Enough descriptors for so many clients here and in the daemon."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MANY + 1000
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"no more than {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_ten_thousand_lookups_take_neither_pool_nor_memory(new_pooler):  # F13
    settings = {"pool_mode": "transaction", "auth_query": HANGING_QUERY, "client_login_timeout": 0}
    pooler = new_pooler(
        {"auth_user": "app", **settings, **CROWD}, databases={"main": {"pool_size": 8}}
    )
    worker = pooler.client("app")

    def crowd():
        """So many logins wait while clients of the same pool work; returns the memory of each
        waiting login."""
        memory = pooler.memory()
        clients = [RawClient(pooler.address).send_startup(f"ghost{i}") for i in range(MANY)]
        pooler.wait_pool("main", "app", cl_waiting=MANY, timeout=30)
        taken = (pooler.memory() - memory) / MANY
        # A quarter of the pool runs lookups, the rest serves clients, and new clients can log in.
        others = [worker] + [pooler.client("app") for _ in range(5)]
        for client in others:
            client.query("BEGIN")
        row = pooler.pool("main", "app")
        assert (row["sv_active"], row["cl_waiting"]) == (8, MANY)
        for client in others:
            client.query("COMMIT")
        for client in clients + others[1:]:
            client.close()
        pooler.wait_pool("main", "app", cl_waiting=0, cl_active=1, timeout=30)
        return taken

    first = crowd()
    after_first = pooler.memory()
    second = crowd()
    if not is_sanitized():
        assert max(first, second) < 4096
        assert pooler.memory() - after_first < 1_000_000
    assert worker.value("SELECT 1") == "1"


@pytest.fixture(scope="module")
def quick_server():
    """The port of the benchmark's fake server, which uses almost no CPU time."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler to make the server with")
    folder = make_folder("pgusher-fake-")
    source = os.path.join(os.path.dirname(__file__), "..", "bench", "fake.c")
    path = os.path.join(folder, "fake")
    with open(source) as file:
        run([compiler, "-D_GNU_SOURCE", "-O1", "-xc", "-", "-o", path], stdin=file)
    port = free_port()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(as_service([path, str(port)]), **pipes) as process:
        assert process.stdout.readline() == b"ready\n"
        yield port
        process.stdin.close()
    drop_folder(folder)


def test_first_logins_of_thousands_of_users_are_all_served(new_pooler):
    """As after a restart: no keys are known yet, and all are needed at once."""
    names = [f"user{i}" for i in range(MANY // 5)]
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", **CROWD},
        databases={"main": {"user": "app"}},
        auth={name: f"{name}'s" for name in names},
    )
    clients = [RawClient(pooler.address).send_startup(name) for name in names]
    for name, client in zip(names, clients):
        client.read()
        client.scram = ScramClient(f"{name}'s")
        client.send_sasl_first(client.scram.first())
    for client in clients:
        found = client.read()
        assert found.type == "R", found
        client.challenge = found.body[4:].decode()
    # Every client was answered; some of them show that the keys are right.
    for name, client in zip(names[::100], clients[::100]):
        client.send_sasl(client.scram.final(client.challenge))
        client.scram.check(client.read().body[4:].decode())
        client.finish_login(name)
    for client in clients:
        client.close()


def test_thousands_of_passwords_for_a_scram_secret_are_all_checked(new_pooler, cluster):
    pooler = new_pooler(
        {"auth_type": "plain", **CROWD},
        databases={"main": {"user": "app"}},
        auth={"scram_login": cluster.secret("scram_login")},
    )
    clients = [RawClient(pooler.address).send_startup("scram_login") for _ in range(MANY // 6)]
    for client in clients:
        client.read()
    for client in clients:
        client.send(wire.password("scram secret"))
    for client in clients:
        client.finish_login("scram_login")
        client.close()


@pytest.mark.alone
def test_ten_thousand_databases_and_users_come_and_go(new_pooler, quick_server):  # F80
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "server_lifetime": 0,
            "server_tls_sslmode": "disable",
            **CROWD,
        },
        databases={"*": {"host": HOST, "port": quick_server}},
        auth={f"user{i}": "" for i in range(2 * MANY)},
    )

    def visit(numbers):
        """The daemon's memory and time for all of them."""
        began = pooler.loop_seconds()
        for number in numbers:
            client = RawClient(pooler.address).login(f"user{number}", f"base{number}")
            assert client.query("SELECT 1").rows
            client.close()
        return pooler.loop_seconds() - began

    def items(name):
        (row,) = pooler.show("LISTS", list=name)
        return int(row["items"])

    def visit_all(numbers):
        """Visit each once: memory grows, the time of a visit does not; then all is forgotten."""
        pooler.command("SET pool_idle_timeout = 0")
        pooler.command("SET autodb_idle_timeout = 0")
        tenth = MANY // 10
        times = [visit(numbers[at : at + tenth]) for at in range(0, MANY, tenth)]
        # A walk over all of them would take a hundred times as long. Other load takes some time
        # too.
        assert min(times[-3:]) < 5 * times[0], times
        assert items("pools") == 1 + MANY
        assert items("databases") >= MANY
        pooler.command("SET pool_idle_timeout = '0.1'")
        pooler.command("SET autodb_idle_timeout = '0.1'")
        wait_until(lambda: items("pools") == 1 and items("databases") < 10, 20, "all to go")
        return pooler.memory()

    # Later ones use the memory of earlier ones.
    first = visit_all(range(MANY))
    second = visit_all(range(MANY, 2 * MANY))
    if not is_sanitized():
        # Each thread allocates from memory of its own, and fills it unevenly.
        assert second - first < (1_000_000 if pooler.setting("workers") == "1" else 10_000_000)


def test_a_list_of_hosts_that_all_fail_at_once_stops_no_client(new_pooler, cluster):
    folders = [f"/nonexistent/{'x' * 200}{i}" for i in range(256)]
    keys = {"port": cluster.port, "dbname": "main", "load_balance_hosts": "disable"}
    pooler = new_pooler(
        {"query_wait_timeout": 8 * PATIENCE},
        databases={
            "dead": {"host": ",".join(folders), **keys},
            "last": {"host": ",".join(folders[1:] + [cluster.host]), **keys},
            "main": {},
        },
    )
    waiting = pooler.raw().send_startup(database="dead")
    used = pooler.loop_seconds()
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.loop_seconds() - used < PATIENCE
    assert pooler.client(database="last").value("SELECT 1") == "1"
    assert waiting.fatal().text == "query_wait_timeout"
    # A list that would take longer is refused at once.
    pooler.databases["dead"]["host"] += ",/nonexistent/one-more"
    pooler.write_config()
    with pytest.raises(ServerError, match="RELOAD failed"):
        pooler.command("RELOAD")
    assert pooler.lines("invalid host: 257 hosts are too many: allowed are 256")
    assert pooler.client(database="last").value("SELECT 1") == "1"
