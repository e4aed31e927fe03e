# SPDX-License-Identifier: ISC
"""Commands that wait: SHOW WAITS, what the waiting console receives, and that nothing gets stuck."""

import contextlib
import random
import re
import signal
import threading
import time

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.process import wait_until


def waits(pooler, **where):
    return pooler.show("WAITS", **where)


def hold(pooler, **options):
    client = pooler.client(**options)
    client.query("BEGIN")
    return client


def client_id(pooler, **where):
    (row,) = pooler.clients(type="C", **where)
    return row["id"]


# What is shown


def test_show_waits_is_empty_at_rest(pooler):
    assert waits(pooler) == []
    pooler.command("PAUSE")
    assert waits(pooler) == []  # it is complete, and waits for nothing


def test_a_waiting_pause_is_a_row_that_names_the_client_it_waits_for(pooler):
    holder, other = hold(pooler), hold(pooler)
    identity = client_id(pooler, database="main", state="active", port=str(
        holder.socket.getsockname()[1]))
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    wait_until(lambda: waits(pooler))
    (row,) = waits(pooler)
    assert (row["command"], row["database"], row["servers"]) == ("PAUSE", None, "2")
    assert row["id"] in {each["id"] for each in pooler.show("CLIENTS", database="pgbouncer")}
    assert row["waits_for"].startswith("2 of 2 servers are still in use, 2 in a transaction; ")
    assert f"(client {identity} of main/app at 127.0.0.1:" in row["waits_for"]
    other.query("COMMIT")
    wait_until(lambda: waits(pooler, servers="1"))
    assert waits(pooler)[0]["waits_for"].startswith("1 of 2 servers is still in use, 1 in a ")
    holder.query("COMMIT")
    assert console.result().tag == "PAUSE"
    assert waits(pooler) == []


def test_a_pause_without_a_console_is_a_row_too(pooler):
    holder = hold(pooler)
    pooler.signal(signal.SIGUSR1)
    wait_until(lambda: waits(pooler))
    (row,) = waits(pooler)
    assert (row["command"], row["database"], row["id"]) == ("PAUSE", None, None)
    holder.query("COMMIT")
    wait_until(lambda: not waits(pooler))


def test_a_pause_whose_console_has_disconnected_is_a_row_too(pooler):
    holder = hold(pooler)
    console = pooler.console()
    console.send(wire.query("PAUSE main"))
    wait_until(lambda: waits(pooler, database="main"))
    console.leave()
    (row,) = waits(pooler)
    assert (row["command"], row["database"], row["id"], row["servers"]) == (
        "PAUSE", "main", None, "1")
    holder.query("COMMIT")
    wait_until(lambda: not waits(pooler))


def test_wait_close_is_a_row(pooler):
    holder = hold(pooler)
    pooler.command("RECONNECT")
    console = pooler.console()
    console.send(wire.query("WAIT_CLOSE main"))
    wait_until(lambda: waits(pooler))
    (row,) = waits(pooler)
    assert (row["command"], row["database"], row["servers"]) == ("WAIT_CLOSE", "main", "1")
    assert row["waits_for"].startswith("1 of 1 old server is not closed yet, 1 in a transaction; ")
    holder.query("COMMIT")
    assert console.result().tag == "WAIT_CLOSE"


@pytest.mark.parametrize("mode", ["WAIT_FOR_SERVERS", "WAIT_FOR_CLIENTS"])
def test_a_shutdown_is_a_row(pooler, mode):
    holder = hold(pooler)
    pooler.command(f"SHUTDOWN {mode}")
    (row,) = waits(pooler)
    assert (row["command"], row["id"]) == (f"SHUTDOWN {mode}", None)
    if mode == "WAIT_FOR_SERVERS":
        assert row["servers"] == "1"
    else:
        assert int(row["clients"]) >= 2
    holder.leave()
    pooler.close_clients()
    pooler.wait_exit()


def test_a_waiting_console_gets_a_notice_every_few_seconds(pooler):
    holder = hold(pooler)
    console = pooler.console()
    began = time.monotonic()
    console.send(wire.query("PAUSE"))
    first = console.read_until("N")[-1]
    notice = wire.read_fields(first.body)
    assert (notice["S"], notice["C"]) == ("NOTICE", "00000")
    assert re.match(
        r"PAUSE has waited 3 s: 1 of 1 server is still in use, 1 in a transaction; the oldest "
        r"transaction is open for 3 s \(client \d+ of main/app at 127\.0\.0\.1:\d+, idle in "
        r"transaction\)$", notice["M"])
    assert 2.5 < time.monotonic() - began < 10
    console.read_until("N")
    assert 5 < time.monotonic() - began < 20
    holder.query("COMMIT")
    assert console.result().tag == "PAUSE"


# Nothing is ever stuck: F66, F67


def test_two_operators_at_once(pooler):
    holder = hold(pooler)
    one, two = pooler.console(), pooler.console()
    one.send(wire.query("PAUSE main"))
    wait_until(lambda: waits(pooler, database="main"))
    two.send(wire.query("PAUSE"))
    wait_until(lambda: len(waits(pooler)) == 2)
    with pytest.raises(ServerError, match="already suspended/paused"):
        pooler.command("PAUSE main")
    pooler.command("RESUME main")
    assert one.result().error.text == "PAUSE was ended by RESUME"
    assert len(waits(pooler)) == 1
    holder.query("COMMIT")
    assert two.result().tag == "PAUSE"
    other = pooler.client()
    other.send(wire.query("SELECT 5"))
    assert other.silent()
    pooler.command("RESUME")
    assert other.result().value == "5"


def test_kill_ends_what_a_pause_of_the_database_waits_for(pooler):
    holder = hold(pooler)
    console = pooler.console()
    console.send(wire.query("PAUSE main"))
    wait_until(lambda: waits(pooler))
    pooler.command("KILL main")
    assert holder.fatal().text == "database removed"
    assert console.result().tag == "PAUSE"
    pooler.command("RESUME main")
    assert pooler.client().value("SELECT 1") == "1"


def mix(pooler, seed, seconds):
    """Commands of every kind in a random order, from consoles that come and go."""
    draw = random.Random(seed)
    commands = [
        "PAUSE", "RESUME", "PAUSE main", "RESUME main", "RECONNECT", "RECONNECT main",
        "WAIT_CLOSE", "DISABLE main", "ENABLE main", "RELOAD",
    ]
    open_consoles = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if len(open_consoles) < 4:
            open_consoles.append(pooler.console())
        console = draw.choice(open_consoles)
        console.send(wire.query(draw.choice(commands)))
        if draw.random() < 0.3:
            open_consoles.remove(console)
            draw.choice([console.close, console.reset, console.leave])()
        pooler.admin("SHOW WAITS")
    for console in open_consoles:
        console.close()


def settle(pooler):
    """Undo whatever the mix has left."""
    for command in ("RESUME", "RESUME main", "ENABLE main"):
        with contextlib.suppress(ServerError):
            pooler.command(command)


@pytest.mark.parametrize("seed", range(3))
def test_no_mix_of_commands_leaves_anything_stuck(pooler, seed):
    stop = threading.Event()
    done = []

    def work():
        while not stop.is_set():
            with contextlib.suppress(ServerError, Closed, OSError, TimeoutError):
                with RawClient(pooler.address) as client:
                    client.login()
                    while not stop.is_set():
                        client.query("BEGIN")
                        client.query("SELECT 1")
                        client.query("COMMIT")
                        done.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        mix(pooler, seed, 3)
        settle(pooler)
        count = len(done)
        wait_until(lambda: len(done) > count + 20)
        assert waits(pooler) == []
        assert pooler.show("STATE", key="active", value="yes")
    finally:
        stop.set()
        settle(pooler)
        for thread in threads:
            thread.join()


def test_pause_and_resume_in_a_loop_fail_no_client(pooler):  # F66
    stop = threading.Event()
    failures, done = [], []

    def work():
        try:
            with RawClient(pooler.address) as client:
                client.login()
                while not stop.is_set():
                    client.query("BEGIN")
                    client.query("SELECT 1")
                    client.query("COMMIT")
                    done.append(1)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(10)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert pooler.command("PAUSE").tag == "PAUSE"
        assert pooler.command("RESUME").tag == "RESUME"
        count = len(done)
        wait_until(lambda: len(done) > count)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
