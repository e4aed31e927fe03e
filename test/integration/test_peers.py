# SPDX-License-Identifier: ISC
"""Several processes of one service: cancel requests reach the process that issued the key."""

import contextlib
import re
import signal
import socket
import threading

import pytest

from support import wire
from support.clients.raw import RawClient, cancel
from support.process import HOST, free_port, stays, wait_until

SLEEP = "SELECT pg_sleep(60)"
TTL = 3


def key_of(peer, ttl=TTL, secret=b"\x11\x22\x33\x44"):
    return bytes([0, peer & 0xFF, peer >> 8]) + secret + bytes([ttl])


@pytest.fixture
def new_group(new_pooler):
    """Processes with the ids 1, 2, ... that know each other; own=False leaves each out of its own
    list."""

    def make(count, settings=None, unix=False, start=True, shared=False, keys=""):
        port = free_port()
        group = []
        for number in range(count):
            pooler = new_pooler({"pool_mode": "transaction", "peer_id": number + 1, **(settings or {})}, start=False)
            if shared:
                pooler.port = port
                pooler.settings["so_reuseport"] = 1
                pooler.write_config()
            group.append(pooler)
        for pooler in group:
            lines = [
                f"{number + 1} = host={other.folder if unix else HOST} port={other.port} {keys}"
                for number, other in enumerate(group)
            ]
            set_peers(pooler, *lines)
        for pooler in group:
            if start:
                pooler.start()
        return group

    return make


def set_peers(pooler, *lines):
    pooler.peers = lines
    pooler.write_config()


def run_sleep(pooler, client, mark=0):
    """Start a query and wait until it runs."""
    sql = f"{SLEEP}, {mark}"
    client.send(wire.query(sql))
    wait_until(lambda: pooler.cluster.backends(state="active", query=sql))


@contextlib.contextmanager
def mute_peer():
    """A process that accepts connections, and sends and does nothing."""
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen(64)
        accepted = []
        stop = threading.Event()

        def accept():
            while not stop.is_set():
                with contextlib.suppress(OSError):
                    accepted.append(listener.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listener.getsockname()[1], accepted
        finally:
            stop.set()
            with contextlib.suppress(OSError), socket.create_connection(listener.getsockname()):
                pass
            thread.join()
            for each in accepted:
                each.close()


# Forwarding


@pytest.mark.setting("peer_id")
@pytest.mark.parametrize("unix", [False, True])
def test_a_cancel_reaches_the_process_that_issued_the_key(new_group, unix):
    one, two, three = new_group(3, unix=unix)
    client, bystander = one.client(), two.client()
    run_sleep(two, bystander, "'bystander'")
    for other in (two, three):
        run_sleep(one, client, other.port)
        cancel(other.address, client.key)
        assert client.result().error.sqlstate == "57014"
        assert client.value("SELECT 1") == "1"
        pattern = r"C-0x[0-9a-f]+: peer-1@127\.0\.0\.1:\d+ closing because: successfully sent"
        other.wait_log(pattern)
        at = r"unix\S*" if unix else rf"127\.0\.0\.1:{one.port}"
        assert other.lines(rf"S-0x[0-9a-f]+: peer-1@{at} new connection to server")
    assert bystander.silent()
    cancel(three.address, bystander.key)
    assert bystander.result().error.sqlstate == "57014"


def test_three_processes_on_one_port(new_group):
    group = new_group(3, unix=True, shared=True)
    clients = [group[0].client() for _ in range(12)]
    assert len({client.key[1] for client in clients}) > 1  # the kernel has spread them
    for number, client in enumerate(clients):
        run_sleep(group[0], client, number)
        cancel(group[0].address, client.key)
        assert client.result().error.sqlstate == "57014"
    group[0].close_clients()
    # Some of these requests came to another process than the one that issued the key.
    assert any(pooler.lines(r"peer-\d@.* successfully sent cancel request") for pooler in group)


def test_a_killed_process_of_three_affects_only_its_own_clients(new_group):  # F77
    group = new_group(3, {"cancel_wait_timeout": 1})
    client = group[0].client()
    lost = group[2].client().key
    group[2].signal(signal.SIGKILL)
    group[2].wait_exit()
    group[2].process = None
    run_sleep(group[0], client)
    with RawClient(group[1].address) as orphan:
        orphan.send(wire.cancel_request(lost))
        cancel(group[1].address, client.key)
        assert client.result().error.sqlstate == "57014"
        orphan.closed()
    group[1].wait_log(r"peer-3@.* closing because: cancel_wait_timeout")
    wait_until(lambda: not any(
        int(row["cl_waiting_cancel_req"]) for row in group[1].show("PEER_POOLS")))


def test_a_finished_query_is_no_target_of_a_forwarded_cancel(new_group):
    one, two = new_group(2)
    client = one.client()
    assert client.value("SELECT 1") == "1"
    cancel(two.address, client.key)
    one.wait_log("cancel request for idle client")
    assert client.value("SELECT 2") == "2"


def test_a_pause_does_not_delay_requests_for_other_processes(new_group):
    one, two = new_group(2)
    client = one.client()
    run_sleep(one, client)
    two.command("PAUSE")
    cancel(two.address, client.key)
    assert client.result().error.sqlstate == "57014"


# Keys


def test_keys_name_the_process_that_issued_them(new_pooler):
    pooler = new_pooler({"peer_id": 0x1234})
    keys = [pooler.client().key for _ in range(40)]
    assert {(key[1], key[2], key[7] & 3, key[0] & 0x80) for key in keys} == {(0x34, 0x12, 3, 0)}
    assert len({key[3:7] for key in keys}) == 40
    # Also where a longer key was asked for: other processes may forward only these.
    with pooler.raw() as client:
        client.send_startup(protocol=(3 << 16) | 2).finish_login("app")
        assert len(client.key) == 8


def test_keys_without_peers_are_random_throughout(pooler):
    keys = [pooler.client().key for _ in range(40)]
    for place in (1, 2):
        assert len({key[place] for key in keys}) > 10
    assert len({key[7] & 3 for key in keys}) > 1


def test_a_key_is_recognised_with_any_number_of_hops_left(new_pooler):
    pooler = new_pooler({"peer_id": 7})
    client = pooler.client()
    for left in range(4):
        run_sleep(pooler, client, left)
        cancel(pooler.address, client.key[:7] + bytes([client.key[7] & ~3 | left]))
        assert client.result().error.sqlstate == "57014"


def test_a_request_that_goes_in_circles_ends(new_group):
    one, two = new_group(2, start=False)
    set_peers(one, f"9 = host={HOST} port={two.port}")
    set_peers(two, f"9 = host={HOST} port={one.port}")
    one.start(), two.start()
    cancel(one.address, key_of(9))
    two.wait_log("failed to forward cancel request because its TTL was exhausted")
    assert not one.lines("TTL was exhausted")
    sent = sum(len(each.lines(r"C-.*peer-9@.*successfully sent")) for each in (one, two))
    assert sent == 3


def test_a_request_without_hops_left_is_not_forwarded(new_group):
    one, two = new_group(2)
    client = two.client()
    run_sleep(two, client)
    cancel(one.address, client.key[:7] + bytes([client.key[7] & ~3]))
    one.wait_log("failed to forward cancel request because its TTL was exhausted")
    assert client.silent()
    cancel(two.address, client.key)


@pytest.mark.parametrize("peer", [0, 3, 65535])
def test_an_unknown_peer_is_only_logged(new_group, peer):
    one, _ = new_group(2)
    with RawClient(one.address) as client:
        client.send(wire.cancel_request(key_of(peer)))
        assert client.read_all() == []
    one.wait_log("could not find peer to forward request to")
    assert one.show("PEER_POOLS") == []


def test_a_key_of_this_process_that_was_never_issued(new_group):
    one, _ = new_group(2)
    cancel(one.address, key_of(1))
    one.wait_log("failed cancel request")


@pytest.mark.parametrize("length", [4, 12, 21, 256])
def test_keys_of_other_lengths_are_not_forwarded(new_group, length):
    one, two = new_group(2)
    with RawClient(one.address) as client:
        client.send(wire.cancel_request((key_of(2) + b"x" * 256)[:length]))
        assert client.read_all() == []
    if length == 12:
        two.wait_log("failed cancel request")
    else:
        stays(lambda: not two.lines("cancel request"))


# SHOW and limits


def test_the_console_shows_peers_and_requests_to_them(new_group):
    (one,) = new_group(1, {"default_pool_size": 33}, start=False)
    with mute_peer() as (port, accepted):
        set_peers(one, f"2 = host={HOST} port={port} pool_size=2", "1 = host=self", "30 = host=/x")
        one.start()
        assert one.show("PEERS") == [
            {"peer_id": "1", "host": "self", "port": "6432", "pool_size": "33"},
            {"peer_id": "2", "host": HOST, "port": str(port), "pool_size": "2"},
            {"peer_id": "30", "host": "/x", "port": "6432", "pool_size": "33"},
        ]
        assert one.show("PEER_POOLS") == []
        askers = [one.raw().send(wire.cancel_request(key_of(2))) for _ in range(5)]
        expected = {
            "peer_id": "2", "cl_active_cancel_req": "2", "cl_waiting_cancel_req": "3",
            "sv_active_cancel": "2", "sv_login": "0",
        }
        wait_until(lambda: one.show("PEER_POOLS") == [expected])
        wait_until(lambda: len(accepted) == 2)
        for sock in accepted:
            assert sock.recv(64) == wire.cancel_request(key_of(2, TTL - 1))
        assert {item["list"]: item["items"] for item in one.show("LISTS")}["peer_pools"] == "1"
        rows = one.show("CLIENTS", database="(nodb)")
        assert sorted(row["state"] for row in rows) == (
            ["active_cancel_req"] * 2 + ["waiting_cancel_req"] * 3)
        servers = one.show("SERVERS")
        assert [row["state"] for row in servers] == ["active_cancel"] * 2
        assert {row["database"] for row in servers} == {"(nodb)"}
        waiting = [row for row in rows if row["state"] == "waiting_cancel_req"]
        one.command(f"KILL_CLIENT {waiting[0]['id']}")
        wait_until(lambda: one.show("PEER_POOLS")[0]["cl_waiting_cancel_req"] == "2")
        # The peer closes its two connections: the next two requests are sent.
        for sock in list(accepted):
            sock.close()
        wait_until(lambda: len(accepted) == 4)
        assert not one.show("POOLS", database="2")
        for asker in askers:
            asker.close()


def test_a_peer_that_hangs_keeps_no_request_for_ever(new_group):
    (one,) = new_group(1, {"cancel_wait_timeout": 1}, start=False)
    with mute_peer() as (port, _):
        set_peers(one, f"2 = host={HOST} port={port}")
        one.start()
        cancel(one.address, key_of(2))
        one.wait_log(r"peer-2@.* closing because: cancel_wait_timeout")
        wait_until(lambda: not one.show("SERVERS"))


# Reload


def test_a_peer_that_is_removed_drops_its_requests(new_group):
    (one,) = new_group(1, start=False)
    with mute_peer() as (port, accepted):
        set_peers(one, f"2 = host={HOST} port={port} pool_size=1")
        one.start()
        askers = [one.raw().send(wire.cancel_request(key_of(2))) for _ in range(3)]
        wait_until(lambda: one.show("PEER_POOLS", cl_waiting_cancel_req="2"))
        set_peers(one)
        one.reload()
        for asker in askers:
            assert asker.read_all() == []
        assert one.show("PEER_POOLS") == [] and one.show("SERVERS") == []
        assert len(one.lines("peer-2@.*closing because: peer removed")) == 4
    one.client().query("SELECT 1")


def test_a_peer_may_change_its_address(new_group):
    one, two = new_group(2, start=False)
    one.settings["server_login_retry"] = "0.1"
    set_peers(one, f"2 = host={HOST} port=1")
    one.start(), two.start()
    client = two.client()
    run_sleep(two, client)
    with RawClient(one.address) as asker:
        asker.send(wire.cancel_request(client.key))
        one.wait_log("peer-2@.*failed to connect")
        set_peers(one, f"2 = host={HOST} port={two.port}")
        one.reload()
        assert client.result().error.sqlstate == "57014"
        asker.closed()


def test_a_peer_by_name_is_looked_up(new_group):
    one, two = new_group(2, start=False)
    set_peers(one, f"2 = host=localhost port={two.port}")
    one.start(), two.start()
    client = two.client()
    run_sleep(two, client)
    cancel(one.address, client.key)
    assert client.result().error.sqlstate == "57014"


def test_a_shutdown_that_waits_for_servers_waits_for_peers_too(new_group):
    (one,) = new_group(1, {"cancel_wait_timeout": 60}, start=False)
    with mute_peer() as (port, accepted):
        set_peers(one, f"2 = host={HOST} port={port}")
        one.start()
        one.raw().send(wire.cancel_request(key_of(2)))
        wait_until(lambda: one.show("PEER_POOLS", sv_active_cancel="1"))
        one.command("SHUTDOWN WAIT_FOR_SERVERS")
        stays(one.running)
        wait_until(lambda: accepted)
        accepted[0].close()
        assert one.wait_exit() == 0
    assert re.search("server connections dropped, exiting", one.log())
