# SPDX-License-Identifier: ISC
"""Attacks on logins: forged messages inside an exchange, floods, timing attacks, hostile servers.

test_startup and test_login test single wrong messages. This file tests the same messages inside TLS
and with channel binding, what other clients notice of an attack, and what an attacker can learn.
"""

import hashlib
import os
import random
import ssl
import statistics
import struct
import threading
import time

import pytest
from psycopg import sql

from support import wire
from support.clients.latency_probe import Probe, share
from support.clients.raw import Closed, RawClient, ServerError
from support.passwords import (
    ScramClient,
    ScramServer,
    encode,
    md5_secret,
    scram_secret,
)
from support.process import wait_until
from support.servers.certificates import Authority
from support.servers.cluster import PASSWORDS
from support.servers.fake_server import PARAMETERS
from support.servers.pooler import is_sanitized

PASSWORD = "Geheim 12'\""
SASL_FAILED = ("FATAL", "28P01", "SASL authentication failed")
PASSWORD_FAILED = ("FATAL", "28P01", "password authentication failed")
INVALID_MECHANISM = (
    "FATAL",
    "08P01",
    "client selected an invalid SASL authentication mechanism",
)
PLAIN_SCRAM = "SCRAM-SHA-256"
BOUND_SCRAM = "SCRAM-SHA-256-PLUS"
NONCE = "rOprNGfwEbeRWgbNEkqO"

# Added to time limits for a busy machine or a build with sanitizers.
PATIENCE = 10 if is_sanitized() else 1
MANY = 1000 if is_sanitized() else 10_000


def assert_unhurt(calm, stormy, limit=0.1, part=1):
    """Assert that no client waits longer than the limit, or than three times its wait without load.

    A long flood allows to compare a smaller part of the waits: the longest of thousands of waits
    may be due to other load of the machine.
    """
    allowed = PATIENCE * max(limit, 3 * share(calm, part))
    assert share(stormy, part) < allowed, f"{stormy[-5:]} against {calm[-5:]}"


# Inside of TLS


@pytest.fixture(scope="session")
def authority():
    """The authority that issued the daemon's certificate."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="session")
def ours(authority):
    """The daemon's certificate and key."""
    return authority.issue("pooler", "IP:127.0.0.1")


@pytest.fixture
def tls_pooler(new_pooler, ours):
    """A daemon that asks for SCRAM and offers TLS."""
    return new_pooler(
        {
            "auth_type": "scram-sha-256",
            "client_tls_sslmode": "allow",
            "client_tls_cert_file": ours[0],
            "client_tls_key_file": ours[1],
        },
        auth={"app": scram_secret(PASSWORD)},
    )


def encrypted(pooler, pair=None):
    """A client behind its handshake. It accepts any certificate: these tests are about the daemon."""
    client = pooler.raw()
    client.send(wire.ssl_request())
    assert client.read_bytes(1) == b"S"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if pair:
        context.load_cert_chain(*pair)
    client.socket = context.wrap_socket(client.socket)
    return client


def end_point(client):
    """RFC 5929 section 4: the digest of the certificate that this client was shown."""
    return hashlib.sha256(client.socket.getpeercert(True)).digest()


def ask_for_scram(client, mechanisms):
    """Send the startup packet; these mechanisms must be offered."""
    client.send_startup()
    body = client.read().body
    assert body == struct.pack("!I", 10) + b"".join(map(wire.text, mechanisms)) + b"\0"
    return client


def begin_bound(pooler):
    """A client to which both mechanisms were offered."""
    return ask_for_scram(encrypted(pooler), [BOUND_SCRAM, PLAIN_SCRAM])


BOUND = "p=tls-server-end-point,,"

# The message, and the mechanism that it names.
BOUND_FIRSTS = {
    "not bound after all": (f"n,,n=,r={NONCE}", BOUND_SCRAM),
    "claims that no binding was offered": (f"y,,n=,r={NONCE}", BOUND_SCRAM),
    "stripped of the binding on the way": (f"y,,n=,r={NONCE}", PLAIN_SCRAM),
    "bound by the other mechanism": (f"{BOUND}n=,r={NONCE}", PLAIN_SCRAM),
    "another binding": (f"p=tls-unique,,n=,r={NONCE}", BOUND_SCRAM),
    "no binding's name": (f"p=,,n=,r={NONCE}", BOUND_SCRAM),
    "name cut": (f"p=tls-server-end-poin,,n=,r={NONCE}", BOUND_SCRAM),
    "name longer": (f"p=tls-server-end-points,,n=,r={NONCE}", BOUND_SCRAM),
    "name in capitals": (f"p=TLS-SERVER-END-POINT,,n=,r={NONCE}", BOUND_SCRAM),
    "ends in the name": ("p=tls-server", BOUND_SCRAM),
    "ends behind the header": (BOUND, BOUND_SCRAM),
    "ends in the header": (BOUND[:-1], BOUND_SCRAM),
    "identity": (f"p=tls-server-end-point,a=other,n=,r={NONCE}", BOUND_SCRAM),
    "own identity": (f"p=tls-server-end-point,a=app,n=,r={NONCE}", BOUND_SCRAM),
    "mandatory extension": (f"{BOUND}m=x,n=,r={NONCE}", BOUND_SCRAM),
    "mandatory extension behind": (f"{BOUND}n=,r={NONCE},m=x", BOUND_SCRAM),
    "empty": ("", BOUND_SCRAM),
    "one comma": (",", BOUND_SCRAM),
    "only commas": ("," * 5000, BOUND_SCRAM),
    "no user": (f"{BOUND}r={NONCE}", BOUND_SCRAM),
    "no nonce": (f"{BOUND}n=", BOUND_SCRAM),
    "empty nonce": (f"{BOUND}n=,r=", BOUND_SCRAM),
    "nonce first": (f"{BOUND}r={NONCE},n=", BOUND_SCRAM),
    "nonce twice": (f"{BOUND}n=,r={NONCE},r={NONCE}", BOUND_SCRAM),
    "user twice": (f"{BOUND}n=,n=,r={NONCE}", BOUND_SCRAM),
    "proof already": (f"{BOUND}n=,r={NONCE},p={'A' * 43}=", BOUND_SCRAM),
    "extension without a value": (f"{BOUND}n=,r={NONCE},x=", BOUND_SCRAM),
    "extension without a name": (f"{BOUND}n=,r={NONCE},=y", BOUND_SCRAM),
    "comma behind": (f"{BOUND}n=,r={NONCE},", BOUND_SCRAM),
    "blank in nonce": (f"{BOUND}n=,r=a b", BOUND_SCRAM),
    "control in nonce": (f"{BOUND}n=,r=a\x7fb", BOUND_SCRAM),
    "not ASCII in nonce": (f"{BOUND}n=,r=a\u00e4b", BOUND_SCRAM),
    "zero inside": (f"{BOUND}n=\0,r={NONCE}", BOUND_SCRAM),
    "zero behind": (f"{BOUND}n=,r={NONCE}\0", BOUND_SCRAM),
    "nonce of 2 kB": (f"{BOUND}n=,r={'x' * 2048}", BOUND_SCRAM),
    "nonce of 60 kB": (f"{BOUND}n=,r={'x' * 60000}", BOUND_SCRAM),
    "user of 60 kB": (f"{BOUND}n={'x' * 60000},r={NONCE}", BOUND_SCRAM),
    "capitals": (f"{BOUND}N=,R={NONCE}", BOUND_SCRAM),
}


@pytest.mark.parametrize("name", BOUND_FIRSTS)
def test_a_wrong_first_message_is_refused_inside_tls(tls_pooler, name):  # F34
    message, mechanism = BOUND_FIRSTS[name]
    client = begin_bound(tls_pooler)
    client.send_sasl_first(message, mechanism)
    assert client.fatal(timeout=5).is_(*SASL_FAILED)


def test_wrong_lengths_are_refused_inside_tls(tls_pooler):  # F34, CVE-2026-6664
    """Lengths are compared with the rest of the message, never added to an offset: that would
    overflow."""
    for data in (b"", f"{BOUND}n=,r={NONCE}".encode()):
        for length in (2**32 - 1, 2**32 - 5, 2**31, 2**31 - 1, len(data) + 1, len(data) - 1):
            client = begin_bound(tls_pooler)
            inner = struct.pack("!I", length & 0xFFFFFFFF)
            client.send(wire.message("p", wire.text(BOUND_SCRAM) + inner + data))
            assert client.fatal(timeout=5).severity == "FATAL"


@pytest.mark.parametrize(
    "name", ["SCRAM-SHA-256-PLU", "SCRAM-SHA-256-PLUSX", "scram-sha-256-plus", "SCRAM-SHA-1-PLUS"]
)
def test_a_mechanism_whose_name_resembles_a_known_one_is_refused(tls_pooler, name):
    client = begin_bound(tls_pooler)
    client.send_sasl_first(f"{BOUND}n=,r={NONCE}", name)
    assert client.fatal().is_(*INVALID_MECHANISM)


def test_channel_binding_is_refused_without_tls(tls_pooler):
    """The same daemon offers channel binding inside TLS."""
    client = ask_for_scram(tls_pooler.raw(), [PLAIN_SCRAM])
    client.send_sasl_first(f"{BOUND}n=,r={NONCE}", BOUND_SCRAM)
    assert client.fatal().is_(*INVALID_MECHANISM)
    client = ask_for_scram(tls_pooler.raw(), [PLAIN_SCRAM])
    client.send_sasl_first(f"{BOUND}n=,r={NONCE}", PLAIN_SCRAM)
    assert client.fatal().is_(*SASL_FAILED)


def bound_answer(client, header=BOUND, bound_to=None):
    """Send the first message of a bound exchange. Returns the client's side of it with its
    challenge."""
    data = end_point(client) if bound_to is None else bound_to
    scram = ScramClient(PASSWORD, header, bound_to=data)
    client.send_sasl_first(scram.first(), BOUND_SCRAM)
    scram.challenge(client.read().body[4:].decode())
    return scram


def binding(header, data=b""):
    return encode(header.encode() + data)


# Wrong GS2 headers, binding data and nonces, each with a proof that is right for its message: a
# daemon that compares only proofs would accept all of these.
BOUND_FINALS = {
    "header alone": lambda data, nonce: f"c={binding(BOUND)},r={nonce}",
    "as if not bound": lambda data, nonce: f"c=biws,r={nonce}",
    "claims no binding": lambda data, nonce: f"c=eSws,r={nonce}",
    "another certificate": lambda data, nonce: f"c={binding(BOUND, os.urandom(32))},r={nonce}",
    "no certificate": lambda data, nonce: f"c={binding(BOUND, bytes(32))},r={nonce}",
    "digest cut": lambda data, nonce: f"c={binding(BOUND, data[:-1])},r={nonce}",
    "digest longer": lambda data, nonce: f"c={binding(BOUND, data + b'x')},r={nonce}",
    "digest twice": lambda data, nonce: f"c={binding(BOUND, data * 2)},r={nonce}",
    "digest in hex": lambda data, nonce: f"c={binding(BOUND, data.hex().encode())},r={nonce}",
    "digest without a header": lambda data, nonce: f"c={encode(data)},r={nonce}",
    "another kind": lambda data, nonce: f"c={binding('p=tls-unique,,', data)},r={nonce}",
    "of another client": lambda data, nonce: (
        f"c={binding('p=tls-server-end-point,a=bob,', data)},r={nonce}"
    ),
    "data of 5 kB": lambda data, nonce: f"c={binding(BOUND, bytes(5000))},r={nonce}",
    "empty binding": lambda data, nonce: f"c=,r={nonce}",
    "no binding": lambda data, nonce: f"r={nonce}",
    "binding not base64": lambda data, nonce: f"c=!!!!,r={nonce}",
    "padding left out": lambda data, nonce: f"c={binding(BOUND, data).rstrip('=')},r={nonce}",
    "binding twice": lambda data, nonce: (
        f"c={binding(BOUND, data)},c={binding(BOUND, data)},r={nonce}"
    ),
    "nonce first": lambda data, nonce: f"r={nonce},c={binding(BOUND, data)}",
    "nonce twice": lambda data, nonce: f"c={binding(BOUND, data)},r={nonce},r={nonce}",
    "nonce cut": lambda data, nonce: f"c={binding(BOUND, data)},r={nonce[:-1]}",
    "nonce longer": lambda data, nonce: f"c={binding(BOUND, data)},r={nonce}x",
    "nonce of its own": lambda data, nonce: f"c={binding(BOUND, data)},r={NONCE}",
    "empty nonce": lambda data, nonce: f"c={binding(BOUND, data)},r=",
    "no nonce": lambda data, nonce: f"c={binding(BOUND, data)}",
    "mandatory extension": lambda data, nonce: f"c={binding(BOUND, data)},r={nonce},m=x",
    "zero inside": lambda data, nonce: f"c={binding(BOUND, data)}\0,r={nonce}",
}


@pytest.mark.parametrize("name", BOUND_FINALS)
def test_a_wrong_final_message_is_refused_inside_tls(tls_pooler, name):  # F34
    client = begin_bound(tls_pooler)
    scram = bound_answer(client)
    nonce = scram.challenge(scram.server_first)["r"]
    client.send_sasl(scram.prove(BOUND_FINALS[name](end_point(client), nonce)))
    assert client.fatal(timeout=5).is_(*SASL_FAILED)


BOUND_PROOFS = {
    "none": lambda proof: "",
    "empty": lambda proof: ",p=",
    "zeros": lambda proof: f",p={encode(bytes(32))}",
    "of 31 bytes": lambda proof: f",p={encode(bytes(31))}",
    "of 33 bytes": lambda proof: f",p={encode(bytes(33))}",
    "of 6 kB": lambda proof: f",p={encode(bytes(6000))}",
    "of 60 kB": lambda proof: f",p={encode(bytes(60000))}",
    "not base64": lambda proof: f",p=!{proof[1:]}",
    "blank before": lambda proof: f",p= {proof}",
    "line feed behind": lambda proof: f",p={proof}\n",
    "zero behind": lambda proof: f",p={proof}\0",
    "comma behind": lambda proof: f",p={proof},",
    "extension behind": lambda proof: f",p={proof},x=y",
    "twice": lambda proof: f",p={proof},p={proof}",
    "padding left out": lambda proof: f",p={proof.rstrip('=')}",
    "capital": lambda proof: f",P={proof}",
    # The last base64 character has unused bits: another text that decodes to the same bytes is no
    # proof.
    "spelled otherwise": lambda proof: f",p={proof[:-2]}{chr(ord(proof[-2]) + 1)}=",
}


@pytest.mark.parametrize("name", BOUND_PROOFS)
def test_a_wrong_proof_is_refused_inside_tls(tls_pooler, name):  # F34
    client = begin_bound(tls_pooler)
    scram = bound_answer(client)
    bare, proof = scram.final(scram.server_first).rsplit(",p=", 1)
    client.send_sasl(bare + BOUND_PROOFS[name](proof))
    error = client.fatal(timeout=5)
    assert error.is_(*SASL_FAILED)


def test_the_right_proof_is_accepted_inside_tls(tls_pooler):
    """Shows that the tests above fail for their wrong proof and for no other reason."""
    client = begin_bound(tls_pooler)
    scram = bound_answer(client)
    client.send_sasl(scram.final(scram.server_first))
    scram.check(client.read().body[4:].decode())
    assert client.finish_login("app").value("SELECT current_user") == "app"


def test_a_man_in_the_middle_is_detected(tls_pooler):
    """The attacker relays the exchange of an honest client, but shows its own certificate."""
    client = begin_bound(tls_pooler)
    scram = bound_answer(client, bound_to=hashlib.sha256(b"its certificate").digest())
    client.send_sasl(scram.final(scram.server_first))
    assert client.fatal().is_(*SASL_FAILED)


def test_a_proof_is_refused_on_another_connection(tls_pooler):
    first, second = begin_bound(tls_pooler), begin_bound(tls_pooler)
    scram = bound_answer(first)
    final = scram.final(scram.server_first)
    bound_answer(second)
    second.send_sasl(final)
    assert second.fatal().is_(*SASL_FAILED)
    first.send_sasl(final)
    scram.check(first.read().body[4:].decode())
    assert first.finish_login("app").value("SELECT 1") == "1"


def test_any_first_message_is_answered_inside_tls(tls_pooler):  # CVE-2015-4054
    """A password message before the user is known led to a NULL pointer elsewhere."""
    for kind in map(chr, range(ord("!"), ord("~") + 1)):
        client = encrypted(tls_pooler)
        client.send(wire.message(kind, b"x\0"))
        messages = client.read_all(timeout=5)
        if kind == "p":
            text = "client password pkt before startup packet"
            assert ServerError(messages[-1].body).is_("FATAL", "08P01", text)
        else:
            assert [each.type for each in messages] in ([], ["E"]), kind
    client = encrypted(tls_pooler).login("app", "main", PASSWORD)
    assert client.value("SELECT 1") == "1"


@pytest.mark.parametrize("days", [1, -1])
def test_an_expired_certificate_of_a_client_is_refused(new_pooler, authority, ours, days):
    pooler = new_pooler(
        {
            "auth_type": "cert",
            "client_tls_sslmode": "verify-full",
            "client_tls_cert_file": ours[0],
            "client_tls_key_file": ours[1],
            "client_tls_ca_file": authority.certificate,
        },
    )
    pair = authority.issue("app", "", days)
    if days > 0:
        assert encrypted(pooler, pair).login("app", "main").value("SELECT 1") == "1"
        return
    with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
        encrypted(pooler, pair).login("app", "main")
    pooler.wait_log("TLS handshake error: .*certificate verify failed")


def test_failed_handshakes_leak_no_memory(tls_pooler):
    """Each failed handshake has an SSL, two buffers and an error queue to free."""

    def fail(count):
        for number in range(count):
            client = tls_pooler.raw()
            client.send(wire.ssl_request())
            client.read_bytes(1)
            junk = (b"\x16\x03\x01\x00\x05hello", b"GET / HTTP/1.1\r\n\r\n", b"\0" * 40)
            client.send(junk[number % 3])
            try:
                client.read_all(timeout=5)
            except AssertionError:  # the error inside TLS is no message
                pass
            client.close()
        wait_until(lambda: tls_pooler.descriptors() <= descriptors, 5, "handshakes to end")

    descriptors = tls_pooler.descriptors()
    fail(200)
    memory = tls_pooler.memory()
    fail(1500)
    if not is_sanitized():
        # An SSL takes some 14 kB: a leak in one of ten handshakes would show.
        assert tls_pooler.memory() - memory < 1_000_000


# Servers that send wrong data: F51, F52


FAILED_AUTHREQ = "failed to answer authreq"
NO_MECHANISM = (
    "server login failed: none of the server's SASL authentication mechanisms are supported"
)
NO_PROOF = "server login failed: invalid server signature"


def offer(connection, *mechanisms):
    """Let the pooler log in up to its first SCRAM message; returns the text behind the GS2 header."""
    connection.accept_startup()
    connection.send(wire.authentication(10, b"".join(map(wire.text, mechanisms)) + b"\0"))
    return connection.read().body.split(b"\0", 1)[1][4:].decode()


def nonce_of(first):
    return first.split("r=", 1)[1].split(",")[0]


def challenged(text):
    """A script that sends the challenge text(nonce of the pooler), and would then accept any proof."""

    def script(connection):
        nonce = nonce_of(offer(connection, PLAIN_SCRAM))
        got = text(nonce)
        connection.send(wire.authentication(11, got.encode()))
        connection.read()
        connection.server.answered = True
        connection.welcome()
        connection.serve()

    return script


SALT = encode(b"salt salt salt!!")

HOSTILE_CHALLENGES = {
    # Challenges that could overflow a buffer behind the pooler's nonce: CVE-2026-6665.
    "nonce of 3 kB": lambda nonce: f"r={nonce}{'n' * 3000},s={SALT},i=4096",
    "nonce of 5 kB": lambda nonce: f"r={nonce}{'n' * 5000},s={SALT},i=4096",
    "nonce of 60 kB": lambda nonce: f"r={nonce}{'n' * 60000},s={SALT},i=4096",
    "nonce of 1 MB": lambda nonce: f"r={nonce}{'n' * 1000000},s={SALT},i=4096",
    "our nonce and no more": lambda nonce: f"r={nonce},s={SALT},i=4096",
    "our nonce cut": lambda nonce: f"r={nonce[:-1]},s={SALT},i=4096",
    "our nonce behind": lambda nonce: f"r=x{nonce},s={SALT},i=4096",
    "blank in the nonce": lambda nonce: f"r={nonce} x,s={SALT},i=4096",
    "not ASCII in the nonce": lambda nonce: f"r={nonce}\u00e4,s={SALT},i=4096",
    "empty salt": lambda nonce: f"r={nonce}x,s=,i=4096",
    "salt not base64": lambda nonce: f"r={nonce}x,s=$$$$,i=4096",
    "salt without padding": lambda nonce: f"r={nonce}x,s=c2FsdA,i=4096",
    "salt of 60 kB": lambda nonce: f"r={nonce}x,s={encode(bytes(45000))},i=4096",
    "no iterations": lambda nonce: f"r={nonce}x,s={SALT},i=",
    "0 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=0",
    "-5 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=-5",
    "+5 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=+5",
    "blank before the iterations": lambda nonce: f"r={nonce}x,s={SALT},i= 4096",
    "iterations in hex": lambda nonce: f"r={nonce}x,s={SALT},i=0x10",
    "one iteration too many": lambda nonce: f"r={nonce}x,s={SALT},i=1000001",
    "10,000,000 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=10000000",
    "2^31 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=2147483648",
    "2^32 + 1 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=4294967297",
    "2^64 + 1 iterations": lambda nonce: f"r={nonce}x,s={SALT},i=18446744073709551617",
    "an error": lambda nonce: "e=other-error",
    "mandatory extension": lambda nonce: f"m=x,r={nonce}x,s={SALT},i=4096",
    "salt first": lambda nonce: f"s={SALT},r={nonce}x,i=4096",
    "salt twice": lambda nonce: f"r={nonce}x,s={SALT},s={SALT},i=4096",
    "iterations twice": lambda nonce: f"r={nonce}x,s={SALT},i=4096,i=1",
    "zero byte": lambda nonce: f"r={nonce}x,s={SALT},i=4096\0",
    "nothing": lambda nonce: "",
    "only commas": lambda nonce: "," * 5000,
}


TOO_MANY_ITERATIONS = "server login failed: the server demands too many SCRAM iterations"
CHALLENGE_FAILURES = {
    # The pooler does not read a message to its end when no login could hold it.
    "nonce of 1 MB": "bad pkt header",
    "one iteration too many": TOO_MANY_ITERATIONS,
    "10,000,000 iterations": TOO_MANY_ITERATIONS,
    "2^31 iterations": TOO_MANY_ITERATIONS,
}


@pytest.mark.parametrize("name", HOSTILE_CHALLENGES)
def test_a_hostile_challenge_is_not_answered(new_pooler, new_server, name):  # F51, F52
    server = new_server(challenged(HOSTILE_CHALLENGES[name]))
    server.answered = False
    pooler = new_pooler(
        {"server_login_retry": 30},
        databases={"main": server.target(user="app", password="x"), "other": {}},
    )
    neighbour = pooler.client(database="other")
    pooler.command("SET query_wait_timeout = '0.3'")
    client = pooler.raw().send_startup()
    reason = CHALLENGE_FAILURES.get(name, FAILED_AUTHREQ)
    pooler.wait_log(f"closing because: {reason}")
    assert client.fatal().severity == "FATAL"
    assert neighbour.value("SELECT 1") == "1"
    server.wait_all_ended()
    assert not server.answered


def scram_server(connection, password, mechanisms=(PLAIN_SCRAM,), **options):
    """An exchange up to the pooler's proof. Returns the server's last message, None if the proof is
    wrong."""
    nonce = options.pop("nonce", None)
    scram = ScramServer(password, **options)
    first = scram.first("n,," + offer(connection, *mechanisms).split(",,", 1)[1], nonce)
    connection.send(wire.authentication(11, first.encode()))
    return scram.final(connection.read().body.decode())


@pytest.mark.parametrize("length", [100, 500, 700, 990])
def test_long_nonces_of_honest_servers_are_accepted(
    new_pooler, new_server, length
):  # CVE-2026-6665
    def script(connection):
        final = scram_server(connection, "x", nonce="n" * length)
        connection.send(wire.authentication(12, final.encode()))
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target(user="app", password="x")})
    assert pooler.client().value("q") == "q"


OFFERS = {
    "nothing": [],
    "others only": ["OTHER", "SCRAM-SHA-1", "SCRAM-SHA-512"],
    "resembling": ["SCRAM-SHA-25", "SCRAM-SHA-256X", "scram-sha-256"],
    "a binding outside of TLS": [BOUND_SCRAM],
    "a thousand others": [f"OTHER-{number}" for number in range(1000)],
    "a name of 60 kB": ["X" * 60000],
}


@pytest.mark.parametrize("name", OFFERS)
def test_unknown_mechanisms_are_not_chosen(new_pooler, new_server, name):  # F51
    def script(connection):
        offer(connection, *OFFERS[name])
        connection.server.answered = True

    server = new_server(script)
    server.answered = False
    pooler = new_pooler(databases={"main": server.target(user="app", password="x"), "other": {}})
    neighbour = pooler.client(database="other")
    assert pooler.refused().is_("FATAL", "28000", NO_MECHANISM)
    assert neighbour.value("SELECT 1") == "1"
    server.wait_all_ended()
    assert not server.answered


def test_a_known_mechanism_is_chosen_among_unknown_ones(new_pooler, new_server):
    def script(connection):
        others = [f"OTHER-{number}" for number in range(100)]
        final = scram_server(connection, "x", (BOUND_SCRAM, *others, PLAIN_SCRAM))
        connection.send(wire.authentication(12, final.encode()))
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target(user="app", password="x")})
    assert pooler.client().value("q") == "q"


def send_wrong_signature(connection):
    scram_server(connection, "x")
    connection.send(wire.authentication(12, f"v={encode(bytes(32))}".encode()))


# How a server that does not know the password may claim a successful login.
IMPOSTORS = {
    "wrong signature": send_wrong_signature,
    "no signature": lambda connection: scram_server(connection, "x"),
    "welcome for the first message": lambda connection: offer(connection, PLAIN_SCRAM),
    "signature for the first message": lambda connection: connection.send(
        wire.authentication(12, f"v={encode(bytes(32))}".encode())
        if offer(connection, PLAIN_SCRAM)
        else b""
    ),
    "empty signature": lambda connection: connection.send(
        wire.authentication(12, b"v=" if scram_server(connection, "x") else b"")
    ),
    "error for a signature": lambda connection: connection.send(
        wire.authentication(12, b"e=x" if scram_server(connection, "x") else b"")
    ),
}


@pytest.mark.parametrize("name", IMPOSTORS)
def test_a_server_has_to_prove_that_it_knows_the_password(new_pooler, new_server, name):  # F51
    """A pooler that accepts AuthenticationOk at any time would send queries to any server."""

    def script(connection):
        IMPOSTORS[name](connection)
        connection.welcome()
        connection.server.queries.append(connection.read())

    server = new_server(script)
    server.queries = []
    pooler = new_pooler(databases={"main": server.target(user="app", password="x"), "other": {}})
    neighbour = pooler.client(database="other")
    client = pooler.raw().send_startup()
    client.send(wire.query("SELECT 'secret data'"))
    assert client.fatal().is_("FATAL", "28000", NO_PROOF)
    assert neighbour.value("SELECT 1") == "1"
    server.wait_all_ended()
    assert server.queries == []


STEPS = ["mechanisms", "challenge", "proof", "signature", "welcome"]


@pytest.mark.parametrize("end", ["close", "reset"])
@pytest.mark.parametrize("step", STEPS)
def test_a_server_may_close_at_each_step_of_its_exchange(new_pooler, new_server, step, end):  # F51
    def script(connection):
        if connection.number > 0:
            connection.login("scram", "x")
            connection.serve()
        if step == "mechanisms":
            connection.accept_startup()
            connection.send(wire.authentication(10, wire.text(PLAIN_SCRAM) + b"\0"))
        elif step == "challenge":
            offer(connection, PLAIN_SCRAM)
        else:
            final = scram_server(connection, "x")
            if step != "proof":
                connection.send(wire.authentication(12, final.encode()))
            if step == "welcome":
                connection.send(wire.authentication(0), wire.parameter_status(*PARAMETERS[0]))
        getattr(connection, end)()

    server = new_server(script)
    pooler = new_pooler(
        {"server_login_retry": 0.1},
        databases={"main": server.target(user="app", password="x"), "other": {}},
    )
    neighbour = pooler.client(database="other")
    # The waiting client is served by the next attempt, or gets an error and can connect again.
    client = pooler.raw().send_startup()
    try:
        client.finish_login("app")
    except ServerError:
        client = pooler.client()
    assert client.value("q") == "q"
    assert neighbour.value("SELECT 1") == "1"


@pytest.mark.parametrize("code", [7, 8, 99, 2**31, 2**32 - 1])
def test_authentication_requests_that_are_not_supported_are_refused(new_pooler, new_server, code):  # F51
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(code, b"data"))
        connection.read()
        connection.server.answered = True

    server = new_server(script)
    server.answered = False
    pooler = new_pooler(
        {"server_login_retry": 30},
        databases={"main": server.target(user="app", password="x"), "other": {}},
    )
    neighbour = pooler.client(database="other")
    pooler.command("SET query_wait_timeout = '0.3'")
    client = pooler.raw().send_startup()
    pooler.wait_log(f"unknown/unsupported auth method: {code}$")
    assert client.fatal().severity == "FATAL"
    assert neighbour.value("SELECT 1") == "1"
    server.wait_all_ended()
    assert not server.answered


@pytest.mark.alone
def test_a_million_iterations_stall_no_other_client(new_pooler, new_server):  # F52
    """Four servers ask for the largest count that is allowed, at the same time; the helper has two
    threads."""

    def script(connection):
        scram = ScramServer("x", iterations=1_000_000)
        connection.accept_startup()
        if connection.exchange_scram(scram):
            connection.welcome()
            connection.serve()

    ScramServer("x", iterations=1_000_000)  # the script computes this before the measurement starts
    server = new_server(script)
    slow = {f"slow{n}": server.target(user="app", password="x") for n in range(4)}
    pooler = new_pooler({"server_connect_timeout": 120}, databases={"other": {}, **slow})
    with Probe(pooler.address, "queries", database="other") as probe:
        calm = probe.lap(1)
        clients = [pooler.raw().send_startup(database=name) for name in slow]
        for client in clients:
            client.timeout = 120
            client.finish_login("app")
        stalled = probe.lap()
    assert_unhurt(calm, stalled)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
@pytest.mark.parametrize("days", [1, -1])
def test_an_expired_certificate_of_a_server_is_refused(
    new_pooler, new_server, authority, mode, days
):  # F53
    pair = authority.issue("db", "IP:127.0.0.1", days)

    def script(connection):
        connection.read_bytes(8)
        connection.send(b"S")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        try:
            connection.socket = context.wrap_socket(connection.socket, server_side=True)
        except OSError:
            return
        connection.login()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {
            "server_tls_sslmode": mode,
            "server_tls_ca_file": authority.certificate,
            "query_wait_timeout": 1,
        },
        databases={"main": server.target()},
    )
    # Without a check of the certificate its expiry does not matter either.
    if days > 0 or mode == "require":
        assert pooler.client().value("q") == "q"
    else:
        assert pooler.refused().text == "query_wait_timeout"
        pooler.wait_log("TLS handshake error: .*certificate verify failed")


# Floods of logins: F10, F11


def log_in_together(pooler, count, password=PASSWORD):
    """Make so many SCRAM logins in step: all of them reach each message at the same time."""
    clients = [pooler.raw() for _ in range(count)]
    for client in clients:
        client.send_startup()
    for client in clients:
        assert client.read().type == "R"
        client.scram = ScramClient(password)
        client.send_sasl_first(client.scram.first())
    for client in clients:
        client.send_sasl(client.scram.final(client.read().body[4:].decode()))
    for client in clients:
        client.scram.check(client.read().body[4:].decode())
        client.finish_login("app")
    return clients


def derivation_seconds():
    """The CPU seconds of one derivation with 4096 iterations on this machine."""
    times = []
    for number in range(9):
        began = time.process_time()
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt%d" % number, 4096)
        times.append(time.process_time() - began)
    return min(times)


@pytest.mark.alone
@pytest.mark.parametrize("kind", ["clear", "scram"])
def test_four_hundred_logins_at_once_are_served_and_delay_no_other_client(new_pooler, kind):  # F10
    """If the event loop derived a key for each login, every client would wait for all of them."""
    secret = PASSWORD if kind == "clear" else scram_secret(PASSWORD)
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction", "max_client_conn": 1000},
        auth={"app": secret, "bob": PASSWORD},
    )
    with Probe(pooler.address, "queries", "bob", password=PASSWORD) as probe:
        calm = probe.lap(1)
        began = time.monotonic()
        clients = log_in_together(pooler, 400)
        took = time.monotonic() - began
        stormy = probe.lap()
    assert took < 15 * PATIENCE
    assert_unhurt(calm, stormy)
    assert [client.status for client in clients] == ["I"] * 400
    assert clients[0].value("SELECT 1") == clients[399].value("SELECT 1") == "1"


@pytest.mark.alone
def test_a_key_is_derived_once_for_thousands_of_logins(new_pooler):  # F10
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"}, auth={"app": PASSWORD}
    )
    pooler.client(password=PASSWORD)
    with Probe(pooler.address, "queries", password=PASSWORD) as probe:
        calm = probe.lap(1)
        before = pooler.cpu_seconds()
        for _ in range(MANY):
            client = RawClient(pooler.address).login("app", "main", PASSWORD)
            client.send(wire.terminate())
            client.close()
        used = pooler.cpu_seconds() - before
        stormy = probe.lap()
    assert_unhurt(calm, stormy)
    # These include the probe's own queries.
    assert used < PATIENCE * MANY * derivation_seconds() * 0.5


ATTEMPTS = {"plain": 3, "md5": 5, "scram-sha-256": 10}


def attempt(address, method, user):
    """Make one login with a wrong password: the seconds of all of it, and of its last answer alone."""
    began = time.perf_counter()
    client = RawClient(address).send_startup(user)
    body = client.read().body
    assert struct.unpack_from("!I", body)[0] == ATTEMPTS[method]
    if method == "plain":
        answer = wire.password("a wrong password")
    elif method == "md5":
        answer = wire.password("md5" + "0" * 32)
    else:
        client.send_sasl_first(f"n,,n=,r={NONCE}")
        nonce = client.read().body[4:].decode().split(",")[0]
        # The proof is wrong anyway; deriving a key for it would only disturb the measurement.
        answer = wire.message("p", f"c=biws,{nonce},p={encode(bytes(32))}".encode())
    answered = time.perf_counter()
    client.send(answer)
    error = client.error()
    ended = time.perf_counter()
    client.close()
    assert error.is_(*(SASL_FAILED if method == "scram-sha-256" else PASSWORD_FAILED))
    return ended - began, ended - answered


@pytest.mark.alone
@pytest.mark.parametrize("method", ATTEMPTS)
def test_wrong_passwords_cost_only_the_clients_that_send_them(new_pooler, method):  # F10, F11
    pooler = new_pooler(
        {"auth_type": method, "pool_mode": "transaction", "log_repeats": 0},
        auth={"app": PASSWORD, "bob": "b"},
    )

    def guess(count):
        for number in range(count):
            attempt(pooler.address, method, ("app", f"ghost{number}")[number % 2])

    def storm():
        threads = [threading.Thread(target=guess, args=(MANY // 4,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    guess(200)
    with Probe(pooler.address, "logins", "bob", password="b") as good:
        with Probe(pooler.address, "queries", "bob", password="b") as steady:
            calm_logins, calm = good.lap(1), steady.lap(1)
            good.lap(), steady.lap()
            memory = pooler.memory()
            storm()
            logins, stormy = good.lap(), steady.lap()
    assert_unhurt(calm, stormy, part=0.995)
    assert share(logins, 0.99) < PATIENCE * max(0.1, 5 * share(calm_logins, 0.99))
    if not is_sanitized():
        assert pooler.memory() - memory < 1_000_000
    assert len(pooler.lines("no such user: ghost")) >= MANY // 2
    # SHOW has no trace of them: its only users are those of the files.
    local = pooler.psql("-Atc", "SHOW USERS", user="pgbouncer", database="pgbouncer", unix=True)
    assert "ghost" not in local.stdout and "bob|" in local.stdout


# Timing attacks: F11

TIMED = {
    "plain, clear": ("plain", PASSWORD),
    "plain, md5": ("plain", md5_secret(PASSWORD, "app")),
    # Checking a SCRAM exchange against a clear-text secret takes a derivation; for an unknown user
    # too.
    "plain, scram": ("plain", scram_secret(PASSWORD)),
    "md5, clear": ("md5", PASSWORD),
    "md5, md5": ("md5", md5_secret(PASSWORD, "app")),
    "scram, clear": ("scram-sha-256", PASSWORD),
    "scram, scram": ("scram-sha-256", scram_secret(PASSWORD)),
}


def medians_of(measure, kinds, rounds):
    """The median of each kind. The kinds are measured in turn, so that other load affects all of
    them."""
    times = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind in random.sample(kinds, len(kinds)):
            times[kind].append(measure(kind))
    # Both figures of an attempt: all of it, and its last answer alone.
    return [[statistics.median(column) for column in zip(*times[kind])] for kind in kinds]


def spread(medians):
    """How far apart the kinds are, for the figure that differs most: 1.2 is 20 %."""
    return max(max(column) / min(column) for column in zip(*medians))


@pytest.mark.alone
@pytest.mark.parametrize("name", TIMED)
def test_time_does_not_reveal_which_users_exist(new_pooler, name):  # F11
    method, secret = TIMED[name]
    pooler = new_pooler({"auth_type": method}, auth={"app": secret, "bob": ""})
    # A user with a secret, a user without one, an unknown user, and an unknown one of another
    # length.
    users = ["app", "bob", "ghost", "ghost" * 10]
    # Keys that are derived only once are derived here.
    medians_of(lambda user: attempt(pooler.address, method, user), users, 20)
    seen = []
    for rounds in (150, 300, 600, 1200):
        seen.append(medians_of(lambda user: attempt(pooler.address, method, user), users, rounds))
        if spread(seen[-1]) < 1.2:
            return
    raise AssertionError(f"distinguished by time: {seen}")


def test_the_first_attempt_does_not_reveal_which_users_exist(new_pooler):  # F11
    # The keys of a clear-text secret are derived at the first login of its user: one attempt each.
    method, seen = "scram-sha-256", []
    for count in (150, 300, 600):
        names = [f"user{number}" for number in range(count)]
        pooler = new_pooler({"auth_type": method}, auth={name: PASSWORD for name in names})
        attempt(pooler.address, method, "unknown")
        times = {"user": [], "ghost": []}
        for number in range(count):
            for kind in random.sample(list(times), 2):
                times[kind].append(attempt(pooler.address, method, f"{kind}{number}"))
        seen.append([[statistics.median(c) for c in zip(*times[kind])] for kind in times])
        if spread(seen[-1]) < 1.2:
            return
    raise AssertionError(f"distinguished by time: {seen}")


# Unusual characters in names and passwords


@pytest.fixture
def set_password(cluster):
    """Give scram_login another password for the duration of the test."""
    old = cluster.secret("scram_login")

    def change(password):
        cluster.sql("SET password_encryption = 'scram-sha-256'")
        cluster.sql(sql.SQL("ALTER ROLE scram_login PASSWORD {}").format(password))
        return cluster.secret("scram_login")

    yield change
    change(old)


NAMES = [
    "o'brien",
    'with "quotes"',
    '"',
    "with blank",
    " blank before",
    "blank behind ",
    "comma, and more",
    "semi;colon",
    "back\\slash",
    "back\\",
    "--dashes",
    "/* comment",
    "key=value",
    "$1",
    "%s%n%x",
    "; no comment",
    "UPPER",
    "tab\there",
    "\u00fcn\u00efc\u00f6d\u00e9",
    "\u65e5\u672c\u8a9e",
    "\U0001f418",
    "x" * 63,
]


@pytest.fixture
def odd_roles(cluster):
    """Roles with these names. The pooler that used them is stopped before they are dropped."""
    for name in NAMES:
        cluster.sql(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(name)))
    yield NAMES
    cluster.clear()
    for name in NAMES:
        cluster.sql(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.mark.parametrize("method", ATTEMPTS)
def test_names_of_any_characters_log_in(cluster, odd_roles, new_pooler, method):
    """As clients with each method, in SHOW, and as users of servers: the same name everywhere."""
    secrets = {name: f"{name}'s \"pass, word\" \\" for name in odd_roles}
    pooler = new_pooler({"auth_type": method}, auth={**secrets, "admin": "a"})
    console = pooler.client("admin", "pgbouncer", "a")
    for name, password in secrets.items():
        client = pooler.client(name, password=password)
        assert client.value("SELECT current_user") == name
        shown = console.query("SHOW CLIENTS").dicts()
        assert [row["user"] for row in shown if row["database"] == "main"] == [name]
        client.leave()
        # Another role's password, or the own one without its last character, is refused.
        for wrong in (password[:-1], password + " ", secrets[odd_roles[0]] + "x"):
            assert pooler.refused(name, password=wrong).sqlstate == "28P01"
    assert {row["name"] for row in console.query("SHOW USERS").dicts()} >= set(odd_roles)
    pooler.stop()


@pytest.mark.parametrize(
    "name",
    ["adm", "admin2", "ADMIN", "Admin", " admin", "admin ", "min", "admin,", "admin, root"]
    + [",", "admin\troot", "root,admin", "adm\u0131n", "admin\u200b", "stat", "stats,"],
)
def test_names_that_resemble_those_of_administrators_are_refused(new_pooler, name):  # hazard F
    """A search of the name in the text of the list would accept parts and sequences of its items."""
    pooler = new_pooler(
        {"admin_users": "admin, root", "stats_users": "stats"}, auth={name: "", "root": ""}
    )
    assert pooler.refused(name, "pgbouncer").is_("FATAL", "08P01", "not allowed")
    assert pooler.console("root").query("SHOW STATE").rows


# RFC 4013: passwords as typed, and other spellings that are equal.
PREPARED = {
    "soft hyphen": ("I\u00adX", "IX"),
    "no-break space": ("a\u00a0b", "a b"),
    "ideographic space": ("a\u3000b", "a b"),
    "zero width space": ("a\u200bb", "a b"),
    "word joiner": ("a\u2060b", "ab"),
    "variation selector": ("a\ufe0fb", "ab"),
    "roman numeral": ("\u2168", "IX"),
    "feminine ordinal": ("\u00aa", "a"),
    "decomposed": ("u\u0308ber", "\u00fcber"),
    "ligature": ("\ufb01sh", "fish"),
    "full width": ("\uff21\uff42", "Ab"),
    "right to left": ("\u05d0\u05d1", "\u05d0\u05d1"),
    "many of them": ("\u2168\u00ad" * 500, "IX" * 500),
    # A password that SASLprep refuses is used as it was typed.
    "both directions": ("\u0627\u0031", "\u0627\u0031"),
    "private use": ("a\u00adb\ue000", "a\u00adb\ue000"),
    "control": ("a\u00adb\u0081", "a\u00adb\u0081"),
    "unassigned": ("a\u00adb\u0221", "a\u00adb\u0221"),
    "nothing is left": ("\u00ad\u00ad", "\u00ad\u00ad"),
    "line feed": ("a\nb", "a\nb"),
}


@pytest.mark.parametrize("name", PREPARED)
def test_passwords_are_prepared_as_postgresql_does(new_pooler, set_password, name):
    typed, prepared = PREPARED[name]
    secret = set_password(typed)
    # A clear-text password against PostgreSQL's own secret, typed in either way.
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": secret})
    for password in {typed, prepared}:
        assert pooler.client(password=password).value("SELECT 1") == "1"
    assert pooler.refused(password=typed + "x").is_(*PASSWORD_FAILED)
    # A clear-text secret against a client's key, and against PostgreSQL as a server.
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"scram_login": typed})
    client = pooler.client("scram_login", password=prepared)
    assert client.value("SELECT current_user") == "scram_login"
    if typed != prepared:
        assert pooler.refused("scram_login", password=typed).is_(*SASL_FAILED)
    # libpq prepares the typed password itself.
    connection = pooler.connect(user="scram_login", password=typed)
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_passwords_that_are_not_utf_8_are_compared_byte_by_byte(new_pooler):
    raw = b"\xff\xc2 \xc2\xad\x80"
    for method, secret in (
        ("scram-sha-256", raw),
        ("plain", raw),
        ("plain", scram_secret(raw).encode()),
    ):
        pooler = new_pooler({"auth_type": method}, auth=b'"app" "' + secret + b'"\n')
        assert pooler.client(password=raw).value("SELECT 1") == "1"
        assert pooler.refused(password=raw[:-1]).sqlstate == "28P01"


@pytest.mark.parametrize("length", [1000, 1023, 1024, 2047, 2048, 10_000, 65_530])
@pytest.mark.parametrize("method", ["plain", "md5", "scram"])
def test_long_passwords_work_in_every_direction(new_pooler, new_server, method, length):
    """From the auth_file, from clients, to servers: a fixed buffer of 1024 bytes would cut them."""
    password = "".join(random.Random(length).choices("abc '\\;,=\u00fc", k=length))
    password = password.encode()[:length].decode(errors="ignore").ljust(length, "x")
    password = password[: length - len(password.encode()) + len(password)]
    assert len(password.encode()) == length

    def script(connection):
        if connection.login(method, password):
            connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"auth_type": {"scram": "scram-sha-256"}.get(method, method)},
        databases={"main": server.target()},
        auth={"app": password},
    )
    assert pooler.client(password=password).value("q") == "q"
    assert pooler.refused(password=password[:-1]).sqlstate == "28P01"
    if length > 1023:
        cut = password.encode()[:1023].decode(errors="ignore")
        assert pooler.refused(password=cut).sqlstate == "28P01"


def test_a_secret_beyond_the_limit_ends_the_reading_of_the_file(new_pooler):
    text = f'"app" "a"\n"alice" "{"x" * 65531}"\n"bob" "b"\n'
    pooler = new_pooler({"auth_type": "plain"}, auth=text)
    assert pooler.client(password="a").value("SELECT 1") == "1"
    assert pooler.lines("password too long in auth file")
    for user, password in (("alice", "x" * 65531), ("alice", "x" * 65530), ("bob", "b")):
        assert pooler.refused(user, password=password).is_(*PASSWORD_FAILED)


def test_long_passwords_log_in_to_postgresql(new_pooler, set_password):
    password = "long \u2168" * 300
    set_password(password)
    pooler = new_pooler(
        {"auth_type": "scram-sha-256"},
        databases={"main": {"user": "scram_login", "password": password}},
        auth={"app": password},
    )
    connection = pooler.connect(password=password)
    assert connection.execute("SELECT current_user").fetchone() == ("scram_login",)


# Which password logs in as which user: F39


RULES = {
    "app": ("md5", "app's"),
    "alice": ("scram-sha-256", "alice's"),
    "bob": ("password", "bob's"),
}


@pytest.mark.parametrize("kind", ["clear", "md5", "scram"])
def test_only_the_right_secret_is_accepted_whatever_the_rule(new_pooler, kind):  # F39
    """Rules of several methods beside each other: none accepts the secret of another method."""

    def stored(user, password):
        return {
            "clear": password,
            "md5": md5_secret(password, user),
            "scram": scram_secret(password),
        }[kind]

    pooler = new_pooler(
        {"auth_type": "hba", "auth_hba_file": "hba.conf"},
        auth={user: stored(user, password) for user, (_, password) in RULES.items()},
        start=False,
    )
    lines = [f"host all {user} 127.0.0.1/32 {method}\n" for user, (method, _) in RULES.items()]
    pooler.write("hba.conf", "".join(lines) + "host all stats 127.0.0.1/32 reject\n")
    pooler.start()
    for user, (method, password) in RULES.items():
        secret = stored(user, password)
        others = [each for name, (_, each) in RULES.items() if name != user]
        guesses = [*others, "", " ", user, password + " ", password.upper()]
        # With a clear-text secret the secret itself is the password.
        guesses += [secret] if secret != password else [md5_secret(password, user)]
        for guess in guesses:
            assert pooler.refused(user, password=guess).sqlstate == "28P01"
        if kind == "md5" and method == "scram-sha-256":
            assert pooler.refused(user, password=password).is_(*SASL_FAILED)
        else:
            assert pooler.client(user, password=password).value("SELECT current_user") == user
    assert pooler.refused("stats", password="").text == "login rejected"
    assert pooler.refused("carol", password="").text == "no authentication method is found"


# Floods of names: F81


@pytest.mark.alone
def test_many_names_cost_each_login_no_more(new_pooler):  # F81
    """Names that clients choose: of unknown users, of databases, of applications."""
    pooler = new_pooler({"log_connections": 0, "log_disconnections": 0})

    def timed(number):
        began = time.perf_counter()
        attempted = RawClient(pooler.address)
        attempted.send_startup(f"ghost{number}", f"nowhere{number}", application_name=f"g{number}")
        attempted.error()
        attempted.close()
        client = RawClient(pooler.address).login(application_name=f"application {number}")
        client.send(wire.terminate())
        client.close()
        return time.perf_counter() - began

    for number in range(MANY // 10):
        timed(-number)
    memory = pooler.memory()
    times = [timed(number) for number in range(MANY)]
    if not is_sanitized():
        assert pooler.memory() - memory < 1_000_000
    # The quickest tenth: other load of the machine only makes logins slower.
    first, last = sorted(times[: MANY // 10]), sorted(times[-MANY // 10 :])
    assert share(last, 0.1) < 2 * share(first, 0.1)


@pytest.mark.alone
def test_a_hundred_thousand_users_cost_each_login_no_more(new_pooler):  # F81
    def median(pooler):
        times = []
        for _ in range(500):
            began = time.perf_counter()
            client = RawClient(pooler.address).login("app", "main", PASSWORD)
            times.append(time.perf_counter() - began)
            client.close()
        return statistics.median(times)

    settings = {"auth_type": "md5", "log_connections": 0, "log_disconnections": 0}
    few = new_pooler(settings, auth={"app": PASSWORD})
    crowd = {f"user{number}": "x" for number in range(100_000)}
    many = new_pooler(settings, auth={**crowd, "app": PASSWORD})
    assert min(median(many) for _ in range(3)) < 2 * max(median(few) for _ in range(3))


# Secrets in output


TOPICS = (
    "CLIENTS CONFIG DATABASES LISTS MEM POOLS SERVERS SOCKETS STATE STATS TOTALS USERS VERSION"
).split()


def forms_of(secret):
    """The ways in which a secret may be written."""
    data = secret.encode()
    return [secret, encode(data)[: len(secret)], data.hex(), secret[::-1]]


@pytest.mark.parametrize("role", ["plain_login", "md5_login", "scram_login"])
@pytest.mark.parametrize("method", ATTEMPTS)
def test_no_secret_is_shown_anywhere(new_pooler, cluster, method, role):
    """With each exchange, at the highest verbosity, after success and after failure."""
    server_password = PASSWORDS[role]
    stored = scram_secret("Marked-Scram-Password")
    pooler = new_pooler(
        {"auth_type": method, "verbose": 3},
        databases={
            "main": {"user": role, "password": server_password},
            "wrong": {"dbname": "main", "user": role, "password": "Marked-Wrong-Password"},
        },
        auth={"app": "Marked-Clear-Password", "alice": stored, "admin": "Marked-Admin-Password"},
    )
    heard = []
    assert pooler.client(password="Marked-Clear-Password").value("SELECT 1") == "1"
    heard.append(str(pooler.refused(password="Marked-Typed-Password")))
    heard.append(str(pooler.refused("alice", password="Marked-Typed-Password")))
    heard.append(str(pooler.refused("ghost", password="Marked-Typed-Password")))
    heard.append(str(pooler.refused(database="wrong", password="Marked-Clear-Password")))
    assert pooler.client("alice", password="Marked-Scram-Password").value("SELECT 1") == "1"
    console = pooler.client("admin", "pgbouncer", "Marked-Admin-Password")
    for topic in TOPICS:
        heard.append(str(console.query(f"SHOW {topic}").rows))
    # A reload that finds mistakes names them without the rest of the line.
    pooler.write("userlist.txt", pooler.auth_text() + '"bob" Marked-Broken-Password\n')
    console.send(wire.query("RELOAD"))
    heard.append(str(console.result().messages))
    for name in ("cmdline", "environ"):
        with open(f"/proc/{pooler.process.pid}/{name}", "rb") as file:
            heard.append(file.read().decode("latin1"))
    everything = pooler.log() + "".join(heard)
    assert "login attempt" in everything and "broken auth file" in everything
    kinds = ("Clear", "Scram", "Admin", "Typed", "Wrong", "Broken")
    secrets = ["Marked-" + kind for kind in kinds] + [server_password]
    secrets += [md5_secret("Marked-Clear-Password", "app"), *stored.split("$")[2:]]
    for secret in secrets:
        for form in forms_of(secret):
            assert form not in everything, secret
