# SPDX-License-Identifier: ISC
"""Clients that disconnect, flood, send small pieces or nonsense: no other client is affected."""

import random
import struct
import threading
import time

import pytest

from support import wire
from support.clients.raw import Closed, ServerError
from support.differential.scripts import scripts
from support.process import wait_until
from support.servers.pooler import is_sanitized


@pytest.fixture
def ledger(cluster):
    """A table; committed() returns what is in it."""
    with cluster.connect("main", "app") as connection:
        connection.execute("DROP TABLE IF EXISTS ledger")
        connection.execute("CREATE TABLE ledger (entry text)")

    def committed():
        return [row["entry"] for row in cluster.ask("main", "SELECT entry FROM ledger")]

    yield committed
    cluster.ask("main", "DROP TABLE ledger")


def healthy(pooler):
    """The daemon runs, a new client is served at once, and the pool comes to rest."""
    assert pooler.running()
    client = pooler.client()
    assert client.value("SELECT 'fresh'") == "fresh"
    client.leave()
    pooler.wait_pool(sv_active=0, cl_waiting=0, cl_active=0, timeout=6)
    return True


GOODBYES = {
    "terminate": lambda client: client.leave(),
    "close": lambda client: client.close(),
    "reset": lambda client: client.reset(),
}


# Disconnected in the middle of something: F19, F20


@pytest.mark.parametrize("how", GOODBYES)
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_disconnect_in_an_open_transaction(new_pooler, cluster, ledger, how, mode):  # F19
    pooler = new_pooler({"pool_mode": mode, "default_pool_size": 1})
    client = pooler.client()
    client.query("BEGIN")
    client.query("INSERT INTO ledger VALUES ('never')")
    GOODBYES[how](client)
    wait_until(
        lambda: not [row for row in cluster.backends() if row["state"].startswith("idle in")],
        3,
        "the transaction to end",
    )
    assert healthy(pooler)
    assert not pooler.lines("S-.* closing because: (?!successfully sent cancel request)")
    assert ledger() == []


@pytest.mark.parametrize("how", GOODBYES)
def test_disconnect_while_a_query_runs(one_server, cluster, ledger, how):  # F19
    client = one_server.client()
    client.query("BEGIN")
    client.query("INSERT INTO ledger VALUES ('never')")
    client.send(wire.query("SELECT pg_sleep(0.7)"))
    wait_until(lambda: cluster.backends(state="active"))
    GOODBYES[how](client)
    assert healthy(one_server)
    wait_until(lambda: len(cluster.backends()) == 1, 3)
    assert ledger() == []


@pytest.mark.parametrize("how", GOODBYES)
def test_disconnect_with_a_whole_commit_sent(one_server, ledger, how):
    """What was acknowledged is committed; what was not may or may not be, but never twice."""
    client = one_server.client()
    client.query("INSERT INTO ledger VALUES ('acknowledged')")
    client.send(wire.query("INSERT INTO ledger VALUES ('unknown')"))
    GOODBYES[how](client)
    assert healthy(one_server)
    assert ledger() in (["acknowledged"], ["acknowledged", "unknown"])


@pytest.mark.parametrize("how", GOODBYES)
def test_disconnect_in_copy_in(one_server, cluster, ledger, how):  # F20
    client = one_server.client()
    client.send(wire.query("COPY ledger FROM STDIN"))
    assert client.read().type == "G"
    client.send(wire.copy_data(b"never\n") * 100)
    GOODBYES[how](client)
    assert healthy(one_server)
    wait_until(lambda: len(cluster.backends()) == 1, 3)
    assert ledger() == []


@pytest.mark.parametrize("how", GOODBYES)
def test_disconnect_in_copy_out(one_server, cluster, how):  # F20
    client = one_server.client()
    client.send(wire.query("COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT"))
    assert client.read().type == "H"
    GOODBYES[how](client)
    assert healthy(one_server)
    wait_until(lambda: len(cluster.backends()) == 1, 3)


@pytest.mark.parametrize("how", GOODBYES)
@pytest.mark.parametrize("size", [100, 100_000])
def test_disconnect_in_half_a_message(one_server, ledger, how, size):  # F20
    client = one_server.client()
    client.query("BEGIN")
    message = wire.query("INSERT INTO ledger VALUES ('" + "n" * size + "')")
    client.send(message[:-10])
    GOODBYES[how](client)
    client = one_server.client()
    message = wire.query("INSERT INTO ledger VALUES ('" + "n" * size + "')")
    client.send(message[:-10])
    GOODBYES[how](client)
    assert healthy(one_server)
    assert ledger() == []


@pytest.mark.parametrize("how", GOODBYES)
@pytest.mark.parametrize("cut", ["parse", "bind", "flush", "execute"])
def test_disconnect_in_a_batch(one_server, ledger, how, cut):  # F23 in part
    client = one_server.client()
    parts = {
        "parse": wire.parse("INSERT INTO ledger VALUES ('never')"),
        "bind": wire.bind(),
        "execute": wire.execute(),
        "flush": wire.flush(),
    }
    data = parts["parse"]
    if cut != "parse":
        data += parts["bind"]
    if cut == "execute":
        data += parts["execute"]
    if cut in ("flush", "execute"):
        data += parts["flush"]
    client.send(data)
    if cut in ("flush", "execute"):
        client.read()
    GOODBYES[how](client)
    assert healthy(one_server)
    assert one_server.client().extended("INSERT INTO ledger VALUES ('next')").tag == "INSERT 0 1"
    assert ledger() == ["next"]


def test_disconnect_while_the_answer_is_being_sent(one_server, cluster):
    for _ in range(20):
        client = one_server.client()
        client.send(wire.query("SELECT generate_series(1, 1000)"))
        client.read_bytes(100)
        client.reset()
    assert healthy(one_server)


def test_leaving_the_queue(new_pooler):  # F29
    """20 clients have transactions, 40 wait, 20 of these disconnect: the rest are served in order."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 20, "max_client_conn": 200})
    holders = [pooler.client() for _ in range(20)]
    for client in holders:
        client.query("BEGIN")
    waiters = [pooler.client() for _ in range(40)]
    for number, client in enumerate(waiters):
        client.send(wire.query(f"SELECT {number}"))
    pooler.wait_pool(cl_waiting=40)
    for number in range(0, 40, 2):
        waiters[number].reset() if number % 4 else waiters[number].leave()
    pooler.wait_pool(cl_waiting=20)
    holders[0].query("COMMIT")
    for number in range(1, 40, 2):
        assert waiters[number].checked().value == str(number)
    for client in holders[1:]:
        client.query("COMMIT")
    pooler.wait_pool(sv_active=0, cl_waiting=0)


# Nonsense after login: F17, F18

NONSENSE = {
    "length zero": b"Q" + struct.pack("!I", 0),
    "length three": b"Q" + struct.pack("!I", 3),
    "length of two gigabytes and more": b"Q" + struct.pack("!I", 0x80000000),
    "largest length": b"Q" + struct.pack("!I", 0xFFFFFFFF),
    "late password": wire.password("secret"),
    "startup packet": wire.startup({"user": "app", "database": "main"}),
    "ssl request": wire.ssl_request(),
    "cancel request": wire.cancel_request(b"\1" * 8),
    "zeros": b"\0" * 64,
    "high bytes": b"\xff" * 64,
    "backend message": wire.ready(),
    "http": b"GET / HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_after_login_ends_that_client_only(one_server, name, in_transaction):  # F17
    other = one_server.client()
    other.query("SELECT 1")
    client = one_server.client()
    if in_transaction:
        client.query("BEGIN")
    client.send(NONSENSE[name])
    if name != "http":
        assert client.fatal(timeout=3).severity == "FATAL"
    client.close()
    assert other.value("SELECT 'untouched'") == "untouched"


MALFORMED = {
    "parse": wire.message("P", b"no end"),
    "empty parse": wire.message("P", b""),
    "bind": wire.message("B", b"\0\0\0\x05\0"),
    "describe": wire.message("D", b""),
    "execute": wire.message("E", b""),
    "close": wire.message("C", b"X\0"),
    "function call": wire.message("F", b"\xff" * 30),
    "empty function call": wire.message("F", b""),
    "query without end": wire.message("Q", b"SELECT 1"),
    "empty query message": wire.message("Q", b""),
    "copy fail without end": wire.message("f", b"x"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_bodies_are_answered_or_end_that_client_only(one_server, name):  # F17
    other = one_server.client()
    client = one_server.client()
    client.send(MALFORMED[name], wire.sync())
    try:
        while client.read(timeout=3).type != "Z":
            pass
    except (Closed, TimeoutError):
        pass
    client.close()
    assert other.value("SELECT 'untouched'") == "untouched"
    assert healthy_after(one_server, other)


def healthy_after(pooler, *clients):
    for client in clients:
        client.leave()
    return healthy(pooler)


def valid_sequences():
    """Byte sequences that are mutated."""
    extended = wire.extended("SELECT $1::text", ["value"]) + wire.sync()
    return [
        wire.query("SELECT 1") + wire.query("SELECT 2"),
        extended * 3,
        wire.query("BEGIN") + extended + wire.query("ROLLBACK"),
        wire.query("COPY (SELECT 1) TO STDOUT") + extended,
        wire.parse("SELECT 1", "name") + wire.describe("S", "name") + wire.close("S", "name")
        + wire.sync() + wire.flush(),
        wire.function_call(1397, [5]) + wire.sync() * 3,
        wire.copy_data(b"x") + wire.copy_done() + wire.query(""),
    ]


def whole_protocol():
    """The messages of each conversation of the differential test, long ones left out."""
    found = [b"".join(turn.data for turn in script.turns) for script in scripts.values()]
    return [data for data in found if len(data) < 20_000 and b"pg_sleep" not in data]


def mutate(random_, data):
    """A few bytes changed, doubled, dropped or cut."""
    data = bytearray(data)
    for _ in range(random_.randrange(1, 6)):
        at = random_.randrange(len(data))
        choice = random_.randrange(5)
        if choice == 0:
            data[at] = random_.randrange(256)
        elif choice == 1:
            data[at] ^= 1 << random_.randrange(8)
        elif choice == 2:
            del data[at:at + random_.randrange(1, 9)]
        elif choice == 3:
            data[at:at] = data[at:at + random_.randrange(1, 20)]
        else:
            data = data[: max(1, at)]
        if not data:
            data = bytearray(b"Q")
    return bytes(data)


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
@pytest.mark.parametrize("seed", range(3))
def test_mutations_of_valid_sequences(new_pooler, mode, seed):  # F18
    pooler = new_pooler({"pool_mode": mode, "default_pool_size": 3, "max_client_conn": 1000})
    random_ = random.Random(seed)
    steady = pooler.client()
    sequences = valid_sequences() + whole_protocol()
    for number in range(150):
        client = pooler.client()
        client.send(mutate(random_, random_.choice(sequences)))
        ending = random_.randrange(4)
        if ending == 0:
            client.reset()
        elif ending == 1:
            client.send(wire.sync())
            client.silent(0.005)
            client.close()
        elif ending == 2:
            client.leave()
        else:
            client.close()
        if number % 10 == 0:
            assert steady.value(f"SELECT {number}") == str(number)
    steady.leave()
    assert healthy(pooler)


def test_mutations_before_login(new_pooler):  # F18
    pooler = new_pooler({"max_client_conn": 1000})
    random_ = random.Random(7)
    sequences = [
        wire.startup({"user": "app", "database": "main", "application_name": "x"}),
        wire.ssl_request() + wire.startup({"user": "app", "database": "main"}),
        wire.startup({"user": "app", "options": "-c timezone=UTC"}, protocol=0x00030063),
        wire.cancel_request(b"12345678"),
    ]
    for _ in range(300):
        client = pooler.raw()
        client.send(mutate(random_, random_.choice(sequences)))
        client.close()
    assert pooler.client().value("SELECT 1") == "1"


# Answers reach their own client: F21


def test_no_client_sees_the_answer_of_another(new_pooler):  # F21
    """Clients with tokens of their own under disconnects, cancels and errors: each sees only its
    own."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 3, "max_client_conn": 200})
    stop = time.monotonic() + 4
    strays, done = [], []

    def work(name):
        random_ = random.Random(name)
        count = 0
        while time.monotonic() < stop:
            try:
                client = pooler.raw().login(application_name=f"token{name}")
                for _ in range(random_.randrange(1, 30)):
                    count += 1
                    token = f"token{name}-{count}"
                    kind = random_.randrange(6)
                    if kind == 0:
                        result = client.query(
                            f"BEGIN; SELECT '{token}', current_setting('application_name'); COMMIT"
                        )
                        seen = result.rows
                    elif kind == 1:
                        seen = client.extended("SELECT $1::text", [token]).rows
                    elif kind == 2:
                        client.send(wire.query(f"SELECT '{token}'::int"))
                        error = client.result().error
                        seen = [(error.text,)]
                    elif kind == 3:
                        result = client.query(f"DO $$ BEGIN RAISE NOTICE '{token}'; END $$")
                        seen = [(result.notices[0]["M"],)]
                    elif kind == 4:
                        client.send(wire.query(f"SELECT '{token}' FROM generate_series(1, 500)"))
                        if random_.randrange(2):
                            client.reset()
                            break
                        seen = client.checked().rows
                    else:
                        client.query("BEGIN")
                        seen = client.query(f"SELECT '{token}'").rows
                        if random_.randrange(3) == 0:
                            client.close()
                            break
                        client.query("COMMIT")
                    for row in seen:
                        if token not in row[0] or any(f"token{name}" not in each for each in row):
                            strays.append((token, row))
                else:
                    client.leave()
            except (Closed, ServerError, OSError) as fault:
                strays.append((name, repr(fault)))
        done.append(count)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert strays == []
    assert len(done) == 8 and min(done) > 10
    pooler.close_clients()
    assert healthy(pooler)


# Floods


def test_clients_that_come_and_go_make_nothing_grow(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "log_connections": 0, "log_disconnections": 0})

    def rounds(count):
        for _ in range(count):
            client = pooler.raw().login()
            client.query("SELECT 1")
            client.leave()

    rounds(200)
    memory, descriptors = pooler.memory(), pooler.descriptors()
    rounds(1000)
    wait_until(lambda: pooler.descriptors() <= descriptors)
    if not is_sanitized():
        assert pooler.memory() - memory < 1_000_000
    assert healthy(pooler)


def test_memory_is_released_after_a_crowd_of_clients(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 2000})
    first = pooler.client()
    first.query("SELECT 1")
    pooler.wait_pool(cl_active=1)
    base, descriptors = pooler.memory(), pooler.descriptors()
    crowd = [pooler.client(application_name="x" * 60) for _ in range(800)]
    for client in crowd:
        client.send(wire.query("SELECT '" + "y" * 3000 + "'")[:-1])
    for client in crowd:
        client.reset()
    pooler.wait_pool(cl_active=1)
    wait_until(lambda: pooler.descriptors() <= descriptors)
    if not is_sanitized():
        wait_until(lambda: pooler.memory() - base < 3_000_000, 5, "memory to come back")
    assert first.value("SELECT 1") == "1"
