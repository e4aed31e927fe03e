# SPDX-License-Identifier: ISC
"""Expensive SCRAM secrets: neither a role that gave itself one, nor a server that demands many
iterations, delays the logins of others or the end of the process."""

import hashlib
import os
import select
import signal
import time

import pytest

from support import wire
from support.clients.raw import RawClient
from support.passwords import encode, scram_secret
from support.process import wait_until
from support.servers.pooler import is_sanitized

PASSWORD = "Geheim"
PASSWORD_FAILED = ("FATAL", "28P01", "password authentication failed")
TOO_MANY = 30_000_000
MOST = 1_000_000
CROWD = 30
PATIENCE = 10 if is_sanitized() else 1


def costly_secret(iterations):
    """A SCRAM secret with keys that no password has."""
    keys = f"{encode(b'stored key'.ljust(32))}:{encode(b'server key'.ljust(32))}"
    return f"SCRAM-SHA-256${iterations}:{encode(b'0123456789abcdef')}${keys}"


@pytest.fixture
def costly(cluster):
    """Roles that are looked up; each one may give itself any secret."""
    cluster.sql(
        "CREATE ROLE asker LOGIN SUPERUSER; CREATE ROLE excessive LOGIN;"
        "CREATE ROLE expensive LOGIN;"
        f"CREATE ROLE honest LOGIN PASSWORD '{scram_secret(PASSWORD)}';"
        # ALTER ROLE would check whether the password is empty: PostgreSQL runs all iterations.
        f"UPDATE pg_authid SET rolpassword = '{costly_secret(TOO_MANY)}'"
        " WHERE rolname = 'excessive';"
        f"UPDATE pg_authid SET rolpassword = '{costly_secret(MOST)}' WHERE rolname = 'expensive'"
    )
    yield cluster
    cluster.clear()
    cluster.sql("DROP ROLE asker; DROP ROLE excessive; DROP ROLE expensive; DROP ROLE honest")


@pytest.fixture
def asking(costly, new_pooler):
    """Make a daemon with clear-text passwords, by auth_type or by an HBA rule."""

    def make(method="plain", **settings):
        settings = {"auth_user": "asker", "max_client_conn": 1000, **settings}
        settings.update(
            {"auth_type": "plain"}
            if method == "plain"
            else {"auth_type": "hba", "auth_hba_file": "hba.conf"}
        )
        secrets = {"asker": "x", "bob": scram_secret(PASSWORD), "admin": "x"}
        pooler = new_pooler(
            settings, auth=secrets, start=False, databases={"main": {}, "forced": {"dbname": "main", "user": "app"}}
        )
        pooler.write("hba.conf", "host all all all password\nlocal all all password\n")
        pooler.start()
        pooler.use_console("admin", "x")
        return pooler

    return make


def guess(pooler, user):
    """Send a wrong password; the client waits for its refusal."""
    client = pooler.raw().send_startup(user)
    assert client.read().type == "R"
    return client.send(wire.password("a wrong password"))


def log_in(pooler, user, database):
    """Log in with the right password: the seconds that it took."""
    began = time.monotonic()
    pooler.raw().login(user, database, PASSWORD).close()
    return time.monotonic() - began


def unanswered(clients):
    """How many of the clients have got no answer yet."""
    return len(clients) - len(select.select([each.socket for each in clients], [], [], 0)[0])


@pytest.mark.alone
@pytest.mark.parametrize("method", ["plain", "HBA password"])
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGQUIT", "-R"])
def test_wrong_passwords_for_an_excessive_secret_hold_up_nothing(asking, method, ending):
    """Each check of this secret would take ten seconds and more of a thread."""
    pooler = asking(method)
    attackers = [guess(pooler, "excessive") for _ in range(10)]
    assert log_in(pooler, "bob", "forced") < 3 * PATIENCE
    assert log_in(pooler, "honest", "main") < 3 * PATIENCE
    for client in attackers:
        assert client.fatal(3 * PATIENCE).is_(*PASSWORD_FAILED)
    assert pooler.lines(
        "excessive@.*the SCRAM secret of this user is not used: it has 30000000 iterations, "
        "more than 1000000"
    )
    pooler.close_clients()
    began = time.monotonic()
    if ending == "-R":
        pooler.take_over()
        assert time.monotonic() - began < 3 * PATIENCE
    else:
        pooler.signal(getattr(signal, ending))
        assert pooler.wait_exit() == 0
        assert time.monotonic() - began < 1 * PATIENCE


@pytest.mark.alone
def test_many_checks_of_an_expensive_secret_hold_up_no_other_login(asking):
    """All come from the same address. The others do not wait for all of them, but only for turns."""
    pooler = asking()
    attackers = [guess(pooler, "expensive") for _ in range(CROWD)]
    for _ in range(3):
        log_in(pooler, "bob", "forced")
        log_in(pooler, "honest", "main")
    assert unanswered(attackers) > CROWD / 2
    for client in attackers:
        assert client.fatal(60 * PATIENCE).is_(*PASSWORD_FAILED)


def expensive_seconds():
    """The CPU seconds of one check of the expensive secret on this machine, about."""
    began = time.process_time()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", MOST // 10)
    return (time.process_time() - began) * 10


@pytest.mark.alone
def test_checks_end_when_their_clients_have_left(asking):
    pooler = asking()
    log_in(pooler, "bob", "forced")
    before = pooler.cpu_seconds()
    for client in [guess(pooler, "expensive") for _ in range(CROWD)]:
        client.close()
    wait_until(lambda: not pooler.clients(), 60, "the clients to be closed")
    # Checks that go on would have their turns between those of this login.
    log_in(pooler, "bob", "forced")
    wait_until(lambda: pauses(pooler), 60, "the threads to sleep")
    assert pooler.cpu_seconds() - before < CROWD / 4 * expensive_seconds()


def pauses(pooler):
    """Whether the threads use no processor for a moment."""
    before = pooler.cpu_seconds()
    time.sleep(0.1)
    return pooler.cpu_seconds() == before


@pytest.mark.alone
@pytest.mark.parametrize("ending", ["SIGTERM", "SIGQUIT", "-R"])
def test_the_end_of_the_process_waits_for_no_derivation(asking, ending):
    pooler = asking()
    attackers = [guess(pooler, "expensive") for _ in range(CROWD)]
    began = time.monotonic()
    if ending != "SIGQUIT":
        for client in attackers:
            client.close()
    if ending == "-R":
        pooler.take_over()
        assert time.monotonic() - began < 3 * PATIENCE
    else:
        pooler.close_console()
        pooler.signal(getattr(signal, ending))
        assert pooler.wait_exit() == 0
        assert time.monotonic() - began < 1 * PATIENCE


@pytest.mark.alone
def test_servers_that_demand_many_iterations_hold_up_no_client(asking, new_server):
    """Each of their logins begins with a new salt."""

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, b"SCRAM-SHA-256\0\0"))
        first = connection.read().body.split(b"\0", 1)[1][4:].decode()
        nonce = first.split("r=", 1)[1].split(",")[0]
        salt = encode(os.urandom(16))
        text = f"r={nonce}x,s={salt},i={MOST}"
        connection.send(wire.authentication(11, text.encode()))
        connection.read()
        server.answered += 1
        connection.wait_disconnected()

    server = new_server(script)
    server.answered = 0
    pooler = asking()
    entries = {f"slow{n}": server.target(user="app", password="x") for n in range(CROWD)}
    pooler.databases.update(entries)
    pooler.write_config()
    pooler.reload()
    waiting = [pooler.raw() for _ in entries]
    for client, name in zip(waiting, entries):
        client.send_startup("bob", name)
        assert client.read().type == "R"
        client.send(wire.password(PASSWORD))
    server.wait_count(CROWD)
    for _ in range(3):
        log_in(pooler, "bob", "forced")
    assert server.answered < CROWD / 2


def test_a_secret_with_too_many_iterations_in_auth_file_is_reported(new_pooler):
    pooler = new_pooler(
        {"auth_type": "scram-sha-256"}, auth={"app": "x", "costly": costly_secret(TOO_MANY)}
    )
    assert pooler.lines(
        "WARNING SCRAM secret in auth file with 30000000 iterations; "
        "more than 1000000 are not allowed"
    )
    assert pooler.client(password="x").value("SELECT 1") == "1"
    client = RawClient(pooler.address).send_startup("costly")
    assert client.read().type == "R"
    client.send_sasl_first("n,,n=,r=rOprNGfwEbeRWgbNEkqO")
    # The exchange is that of an unknown user.
    assert ",i=4096" in client.read().body[4:].decode()
    client.close()
