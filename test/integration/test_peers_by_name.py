# SPDX-License-Identifier: ISC
"""Peers that are found by one name, as a headless service of Kubernetes has one."""

import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import threading

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError, cancel
from support.process import drop_folder, free_port, make_folder, stays, wait_until
from support.servers.cluster import program
from support.servers.name_servers import (
    A,
    Dnsmasq,
    FakeNames,
    addresses,
    question_of,
    reply,
    write_resolv_conf,
)

NAME = "pods.test"
CODE = 1234 << 16 | 5740
PODS = [f"127.0.2.{number}" for number in range(1, 5)]
SLEEP = "SELECT pg_sleep(60)"


@pytest.fixture
def names():
    server = Dnsmasq()
    yield server
    server.destroy()


@pytest.fixture
def folder():
    path = make_folder("pgusher-resolv-")
    yield path
    drop_folder(path)


@pytest.fixture
def new_pod(new_pooler, names, folder):
    """Make processes that share a port and a name, each with an address of its own."""
    port = free_port()
    path = os.path.join(folder, "resolv.conf")
    write_resolv_conf(path, names.address)

    def make(number, settings=None, start=True):
        pod = new_pooler(
            {
                "pool_mode": "transaction",
                "listen_addr": PODS[number],
                "peers": f"dns:{NAME}",
                "resolv_conf": path,
                "dns_max_ttl": 1,
                "dns_nxdomain_ttl": 1,
                **(settings or {}),
            },
            start=False)
        pod.place = (PODS[number], port)
        pod.port = port
        pod.write_config()
        if start:
            pod.start()
        return pod

    make.port = port
    return make


def peers(pod):
    """The peers that it knows: their addresses by id."""
    result = pod.superuser().query("SHOW PEERS")
    return {int(row["peer_id"]): row["host"] for row in result.dicts()}


def id_of(pod):
    """The peer_id in the keys that it issues."""
    with RawClient(pod.place) as client:
        key = client.login().key
    return key[1] | key[2] << 8


def knows(pod, *others):
    return peers(pod) == {id_of(other): other.place[0] for other in others}


def run_sleep(pod, client, mark):
    sql = f"{SLEEP}, {mark}"
    client.send(wire.query(sql))
    wait_until(lambda: pod.cluster.backends(state="active", query=sql))


@pytest.mark.setting("peers")
def test_processes_find_each_other_and_forward_cancel_requests(new_pod, names):
    names.set({NAME: PODS[:3]})
    pods = [new_pod(number) for number in range(3)]
    for pod in pods:
        wait_until(lambda: knows(pod, *(other for other in pods if other is not pod)))
        assert pod.lines("peers: this process has drawn peer_id")
        (row, *_) = pod.superuser().query("SHOW PEERS").dicts()
        assert (row["port"], row["pool_size"]) == (str(new_pod.port), "20")
    for number, pod in enumerate(pods):
        with RawClient(pods[0].place) as client:
            client.login()
            run_sleep(pods[0], client, number)
            cancel(pod.place, client.key)
            assert client.result().error.sqlstate == "57014"


def documented(number):
    """The lines of a sample of doc/high-availability.md, without comments."""
    with open(os.path.join(os.path.dirname(__file__), "../../doc/high-availability.md")) as file:
        section = file.read().split("## Two poolers and cancels")[1]
    block = re.findall(r"```ini\n(.*?)```", section, re.DOTALL)[number]
    return [line for line in block.splitlines() if line and line[0] != ";"]


def assert_cancels_across(one, two):
    with RawClient(one.place) as client:
        client.login()
        run_sleep(one, client, 9)
        cancel(two.place, client.key)
        assert client.result().error.sqlstate == "57014"


def test_the_documented_list_works(new_pod):
    lines = documented(0)
    at = lines.index("[peers]")
    assert lines[:at] == ["[pgbouncer]", "peer_id = 1"]
    pods = [new_pod(number, {"peer_id": number + 1, "peers": ""}, start=False) for number in range(2)]
    for pod in pods:
        pod.peers = [
            line.replace("10.0.0.21", PODS[0]).replace("10.0.0.22", PODS[1])
            + f" port={new_pod.port}"
            for line in lines[at + 1 :]
        ]
        pod.write_config()
        pod.start()
    assert_cancels_across(*pods)


def test_the_documented_name_works(new_pod, names):
    settings = dict(line.split(" = ") for line in documented(1)[1:])
    del settings["listen_addr"], settings["listen_port"]
    names.set({settings["peers"].removeprefix("dns:"): PODS[:2]})
    pods = [new_pod(number, settings) for number in range(2)]
    wait_until(lambda: knows(pods[0], pods[1]) and knows(pods[1], pods[0]))
    assert_cancels_across(*pods)


class Balancer:
    """Sends each connection to the next of these places."""

    def __init__(self, places):
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(16)
        self.port = self.listener.getsockname()[1]
        self.places = places
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        for number in range(1000):
            try:
                one = self.listener.accept()[0]
            except OSError:
                return
            other = socket.create_connection(self.places[number % len(self.places)])
            for pair in ((one, other), (other, one)):
                threading.Thread(target=self.copy, args=pair, daemon=True).start()

    @staticmethod
    def copy(source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


def test_psql_behind_a_load_balancer_cancels_its_query(new_pod, names):
    """Its cancel request comes to another process than its query."""
    names.set({NAME: PODS[:2]})
    pods = [new_pod(number) for number in range(2)]
    wait_until(lambda: knows(pods[0], pods[1]) and knows(pods[1], pods[0]))
    balancer = Balancer([pod.place for pod in pods])
    try:
        psql = subprocess.Popen(
            [program("psql"), "-X", f"host=127.0.0.1 port={balancer.port} user=app dbname=main sslmode=disable",
             "-c", f"{SLEEP}, 77"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: pods[0].cluster.backends(state="active", query=f"{SLEEP}, 77"))
        psql.send_signal(signal.SIGINT)
        assert "canceling statement due to user request" in psql.communicate(timeout=20)[1]
    finally:
        balancer.stop()
    assert pods[1].wait_log(r"peer-\d+@.* successfully sent cancel request")


def test_a_new_process_is_known_without_waiting_for_the_next_look_up(new_pod, names):
    names.set({NAME: PODS[:1]})
    slow = {"dns_max_ttl": 600}
    first = new_pod(0, slow)
    first.wait_log("peers: this process has drawn")
    names.set({NAME: PODS[:2]})
    second = new_pod(1, slow)
    wait_until(lambda: knows(second, first) and knows(first, second))


def test_a_process_that_leaves_the_name_is_forgotten_and_a_dead_name_server_is_not_believed(
        new_pod, names):
    names.set({NAME: PODS[:3]})
    pods = [new_pod(number) for number in range(3)]
    wait_until(lambda: knows(pods[0], pods[1], pods[2]))
    names.set({NAME: PODS[:2]})
    pods[0].wait_log(f"peers: {PODS[2]}:{new_pod.port} is not an address of {NAME} any more")
    assert knows(pods[0], pods[1])
    names.stop()
    pods[0].wait_log(f"peers: {NAME} has no addresses now, 1 peers are kept", timeout=40)
    assert knows(pods[0], pods[1])
    # Nor one that does not answer any more, as long as the name has its address.
    pods[1].signal(signal.SIGSTOP)
    stays(lambda: len(peers(pods[0])) == 1, 0.5)
    pods[1].signal(signal.SIGCONT)


class Answering:
    """A process at these addresses that answers whatever it is asked."""

    def __init__(self, answer, port, host="127.0.2.4"):
        self.answer = answer
        self.asked = []
        self.kept = []
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(128)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            with contextlib.suppress(OSError):
                self.asked.append((client.getsockname()[0], client.recv(100)))
                client.sendall(self.answer(client.getsockname()[0]))
                self.kept.append(client)

    def stop(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()
        for client in self.kept:
            client.close()


def answer(peer_id, code=CODE, length=12):
    return struct.pack("!III", length, code, peer_id)


@pytest.mark.parametrize(
    "bad",
    [
        answer(0), answer(16384), answer(70000), answer(7, code=CODE + 1), answer(7, length=13),
        b"E\0\0\0\x0aSFATAL\0\0" + b"x" * 100, b"N", b"",
    ],
    ids=["zero", "large", "huge", "code", "length", "postgres", "short", "silent"])
def test_an_odd_answer_is_no_peer_and_delays_no_other(new_pod, names, bad):
    names.set({NAME: [PODS[3], PODS[0], PODS[1]]})
    odd = Answering(lambda _: bad, new_pod.port)
    try:
        one, two = new_pod(0), new_pod(1)
        wait_until(lambda: knows(one, two) and len(odd.asked) > 3)
        assert knows(one, two)
        assert not one.lines("peers: 127.0.2.4")
    finally:
        odd.stop()


def test_a_process_draws_anew_if_another_one_has_its_id(new_pod, names):
    names.set({NAME: PODS[:1]})
    pod = new_pod(0)
    with RawClient(pod.place) as client:
        client.login()
        before = id_of(pod)
        run_sleep(pod, client, 1)
        other = Answering(lambda _: answer(before), new_pod.port)
        try:
            names.set({NAME: [PODS[0], PODS[3]]})
            pod.wait_log(f"WARNING peers: {PODS[3]}:{new_pod.port} has our peer_id {before} too")
            assert id_of(pod) != before
            wait_until(lambda: peers(pod) == {before: PODS[3]})
            # Keys of before are still known here.
            cancel(pod.place, client.key)
            assert client.result().error.sqlstate == "57014"
        finally:
            other.stop()


def test_a_configured_id_is_kept_and_so_is_a_configured_peer(new_pod, names):
    names.set({NAME: PODS[:2]})
    one, two = new_pod(0, {"peer_id": 5}), new_pod(1, {"peer_id": 6})
    wait_until(lambda: knows(one, two))
    assert (id_of(one), id_of(two)) == (5, 6)
    one.peers = ["6 = host=127.0.2.3 port=1"]
    one.write_config()
    one.superuser().query("RELOAD")
    assert peers(one) == {6: "127.0.2.3"}
    one.peers = []
    one.settings["peers"] = ""
    one.write_config()
    one.superuser().query("RELOAD")
    assert peers(one) == {}
    one.settings["peers"] = f"dns:{NAME}"
    one.write_config()
    one.superuser().query("RELOAD")
    wait_until(lambda: knows(one, two))


def test_a_hundred_addresses_are_bounded(new_pod, new_pooler):
    """At another port than the own one."""
    port = free_port()
    places = [f"127.0.3.{number}" for number in range(1, 101)]
    crowd = Answering(lambda place: answer(int(place.split(".")[-1])), port, host="0.0.0.0")
    server = FakeNames(
        lambda message, tcp: reply(
            message, addresses(*places) if tcp and question_of(message)[1] == A else (),
            truncated=not tcp))
    path = new_pooler(start=False).write("resolv.conf", "")
    write_resolv_conf(path, server.address)
    try:
        pod = new_pod(0, {"peers": f"dns:{NAME}:{port}", "resolv_conf": path})
        wait_until(lambda: len(peers(pod)) == 64)
        stays(lambda: len(peers(pod)) <= 64, 0.5)
        for number, place in peers(pod).items():
            assert place == f"127.0.3.{number}"
    finally:
        crowd.stop()
        server.stop()


def test_a_postgresql_behind_the_name_only_refuses(new_pod, names):
    names.set({NAME: ["127.0.0.1"]})
    pod = new_pod(0, start=False)
    pod.settings["peers"] = f"dns:{NAME}:{pod.cluster.port}"
    pod.write_config()
    pod.start()
    wait_until(lambda: "unsupported frontend protocol 1234.5740" in pod.cluster.log())
    assert peers(pod) == {}


def question(nonce=b"n" * 16, length=None):
    return struct.pack("!II", length or 8 + len(nonce), CODE) + nonce


def test_a_stranger_learns_the_id_and_nothing_else(new_pod, names):
    names.set({NAME: PODS[:1]})
    pod = new_pod(0)
    with RawClient(pod.place) as client:
        client.send(question() + b"more")
        assert client.read_bytes(12) == answer(id_of(pod))
        with pytest.raises((Closed, OSError)):
            client.read_bytes(1)
    for odd in (question(b"n" * 15), question(b"n" * 17), question(b"n" * 8000)):
        with RawClient(pod.place) as client:
            client.send(odd)
            with pytest.raises(ServerError, match="08P01"):
                raise client.fatal()
    assert id_of(pod)


def test_without_the_setting_the_question_is_refused(pooler):
    with pooler.raw() as client:
        client.send(question())
        assert client.fatal().sqlstate == "08P01"


@pytest.mark.parametrize("bad", ["pods", "dns:", "dns:a b", "dns:a:0", "dns:a:70000", "dns:a:b", "dns::5432"])
def test_other_forms_of_the_setting_are_mistakes(new_pooler, bad):
    pooler = new_pooler({"peers": bad}, start=False)
    pooler.allow(".")
    assert pooler.run_to_end() != 0
    assert pooler.lines("peers")


def test_a_takeover_keeps_the_id_that_was_drawn(new_pod, names):
    names.set({NAME: PODS[:2]})
    one, two = new_pod(0), new_pod(1)
    wait_until(lambda: knows(one, two) and knows(two, one))
    before = id_of(one)
    with RawClient(one.place) as client:
        client.login()
        old = one.take_over()
        assert old
        assert id_of(one) == before
        wait_until(lambda: knows(one, two) and knows(two, one))
        run_sleep(one, client, 3)
        cancel(two.place, client.key)
        assert client.result().error.sqlstate == "57014"
