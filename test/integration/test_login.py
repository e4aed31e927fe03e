# SPDX-License-Identifier: ISC
"""Logins: every method with every kind of secret, and how the pooler logs in to servers."""

import base64
import re
import statistics
import struct
import time

import pytest

from support import wire
from support.clients.raw import ServerError
from support.passwords import (
    ScramClient,
    ScramServer,
    encode,
    md5_answer,
    md5_secret,
    scram_secret,
)
from support.process import wait_until
from support.servers.cluster import PASSWORDS

PASSWORD = "Geheim 12'\""
SECRETS = {
    "clear": PASSWORD,
    "md5": md5_secret(PASSWORD, "app"),
    "scram": scram_secret(PASSWORD),
}

PASSWORD_FAILED = ("FATAL", "28P01", "password authentication failed")
SASL_FAILED = ("FATAL", "28P01", "SASL authentication failed")

# Method, kind of secret: the codes of the exchange (3 plain, 5 md5, 10-12 SASL) and the failure.
MATRIX = {
    ("plain", "clear"): ([3, 0], PASSWORD_FAILED),
    ("plain", "md5"): ([3, 0], PASSWORD_FAILED),
    ("plain", "scram"): ([3, 0], PASSWORD_FAILED),
    ("md5", "clear"): ([5, 0], PASSWORD_FAILED),
    ("md5", "md5"): ([5, 0], PASSWORD_FAILED),
    ("md5", "scram"): ([10, 11, 12, 0], SASL_FAILED),
    ("scram-sha-256", "clear"): ([10, 11, 12, 0], SASL_FAILED),
    ("scram-sha-256", "scram"): ([10, 11, 12, 0], SASL_FAILED),
}


# Methods towards clients


@pytest.mark.setting("auth_type")
@pytest.mark.parametrize("method, kind", MATRIX)
def test_the_right_password_is_accepted_by_its_exchange(new_pooler, method, kind):
    pooler = new_pooler({"auth_type": method}, auth={"app": SECRETS[kind]})
    for unix in (False, True):
        client = pooler.client(password=PASSWORD, unix=unix)
        assert client.methods() == MATRIX[method, kind][0]
        assert client.value("SELECT current_user") == "app"


@pytest.mark.parametrize("method, kind", MATRIX)
def test_the_wrong_password_is_refused_with_the_error_of_the_method(new_pooler, method, kind):
    pooler = new_pooler({"auth_type": method}, auth={"app": SECRETS[kind]})
    # The stored text itself is no password: F39.
    for wrong in ("wrong", PASSWORD + " ", PASSWORD.lower(), SECRETS["md5"], SECRETS["scram"]):
        error = pooler.refused(password=wrong)
        assert error.is_(*MATRIX[method, kind][1])
        assert list(error.fields) == ["S", "C", "M"]
    assert pooler.client(password=PASSWORD).value("SELECT 1") == "1"


def test_an_md5_secret_fails_a_scram_exchange_after_its_first_message(new_pooler):
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"app": SECRETS["md5"]})
    client = pooler.raw().send_startup()
    assert client.read().body == struct.pack("!I", 10) + b"SCRAM-SHA-256\0\0"
    client.send_sasl_first(ScramClient(PASSWORD).first())
    assert client.fatal().is_(*SASL_FAILED)


@pytest.mark.parametrize("method", ["plain", "md5", "scram-sha-256"])
def test_psycopg_logs_in(new_pooler, method):
    pooler = new_pooler({"auth_type": method}, auth={"app": PASSWORD})
    connection = pooler.connect(password=PASSWORD)
    assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.setting("auth_type")
def test_trust_needs_no_password_but_a_known_user(new_pooler):
    pooler = new_pooler({"auth_type": "trust"}, auth={"app": SECRETS["md5"]})
    assert pooler.client().methods() == [0]
    error = pooler.refused("ghost")
    assert error.is_("FATAL", "28000", '"trust" authentication failed')
    assert pooler.lines("no such user: ghost")


def test_a_name_of_users_alone_is_not_known(new_pooler):
    pooler = new_pooler(users={"ghost": {"pool_size": 3}})
    assert pooler.refused("ghost").text == '"trust" authentication failed'


@pytest.mark.setting("auth_type")
def test_any_accepts_every_user_as_the_forced_user(new_pooler):
    pooler = new_pooler(
        {"auth_type": "any"},
        databases={"main": {"user": "alice"}, "free": {"dbname": "main"}},
    )
    client = pooler.client("unknown")
    assert client.methods() == [0]
    assert client.value("SELECT current_user") == "alice"
    error = pooler.refused("app", "free")
    assert error.is_("FATAL", "08P01", "bouncer config error")
    assert pooler.lines("auth_type=any requires forced user")


def test_any_lets_every_user_read_the_console(new_pooler):
    pooler = new_pooler({"auth_type": "any"}, databases={"main": {"user": "app"}})
    assert pooler.console("any_name").query("SHOW STATE").rows
    with pytest.raises(ServerError, match="admin access needed"):
        pooler.console("any_name").query("PAUSE")
    assert pooler.console("admin").query("PAUSE").tag == "PAUSE"


@pytest.mark.parametrize("method", ["plain", "md5"])
def test_an_empty_password_is_refused_by_name(new_pooler, method):
    pooler = new_pooler({"auth_type": method}, auth={"app": PASSWORD})
    client = pooler.raw().send_startup()
    assert client.read().type == "R"
    client.send(wire.password(""))
    text = "empty password returned by client"
    assert client.fatal().is_("FATAL", "28P01", text)


EXCHANGES = {"plain": 3, "md5": 5, "scram-sha-256": 10}


@pytest.mark.parametrize("method", EXCHANGES)
def test_an_empty_secret_never_passes_a_password_method(new_pooler, method):
    pooler = new_pooler({"auth_type": method}, auth={"app": ""})
    for guess in ("", "app", "md5", md5_secret("", "app"), scram_secret("")):
        client = pooler.raw().send_startup()
        body = client.read().body
        # The exchange is that of a clear-text secret.
        assert struct.unpack_from("!I", body)[0] == EXCHANGES[method]
        if method == "plain":
            client.send(wire.password(guess))
        elif method == "md5":
            client.send(wire.password(md5_answer(md5_secret(guess, "app"), body[4:8])))
        else:
            scram = ScramClient(guess)
            client.send_sasl_first(scram.first())
            found = client.read()
            if found.type == "R":
                client.send_sasl(scram.final(found.body[4:].decode()))
                found = client.read()
            assert ServerError(found.body).is_(*SASL_FAILED)
            continue
        error = client.fatal()
        assert (error.severity, error.sqlstate) == ("FATAL", "28P01")


@pytest.mark.parametrize("length", [34, 36, 500])
def test_an_md5_answer_of_a_wrong_length_is_refused(new_pooler, length):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": PASSWORD})
    client = pooler.raw().send_startup()
    answer = md5_answer(md5_secret(PASSWORD, "app"), client.read().body[4:8])
    client.send(wire.password((answer + "0" * 500)[:length]))
    assert client.fatal().is_(*PASSWORD_FAILED)


def test_an_md5_answer_to_another_salt_is_refused(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": PASSWORD})
    first, second = pooler.raw().send_startup(), pooler.raw().send_startup()
    salts = [client.read().body[4:8] for client in (first, second)]
    assert salts[0] != salts[1]
    second.send(wire.password(md5_answer(md5_secret(PASSWORD, "app"), salts[0])))
    assert second.fatal().is_(*PASSWORD_FAILED)


@pytest.mark.parametrize("method", ["plain", "scram-sha-256"])
def test_long_passwords_work(new_pooler, method):
    password = "p" * 2000
    pooler = new_pooler({"auth_type": method}, auth={"app": password})
    assert pooler.client(password=password).value("SELECT 1") == "1"


@pytest.mark.parametrize("length", [70000, 120000])
def test_a_far_too_long_password_is_a_wrong_password(new_pooler, length):
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": PASSWORD})
    assert pooler.refused(password="p" * length).is_(*PASSWORD_FAILED)


@pytest.mark.parametrize("size", [200_000, 50_000_000, 2**31 - 10])
def test_a_password_message_has_a_limit(new_pooler, size):
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": PASSWORD})
    client = pooler.raw().send_startup()
    client.read()
    memory = pooler.memory()
    client.send(b"p" + struct.pack("!I", size) + b"x" * 1000)
    messages = client.read_all(timeout=5)
    assert [message.type for message in messages] in ([], ["E"])
    assert pooler.memory() - memory < 5_000_000


# Unknown users cannot be distinguished from known ones


UNKNOWN = {
    "trust": ("FATAL", "28000", '"trust" authentication failed'),
    "plain": PASSWORD_FAILED,
    "md5": PASSWORD_FAILED,
    "scram-sha-256": SASL_FAILED,
}


@pytest.mark.parametrize("method", UNKNOWN)
def test_unknown_users_go_through_the_same_exchange(new_pooler, method):
    pooler = new_pooler({"auth_type": method}, auth={"app": PASSWORD})
    for database in ("main", "nowhere"):
        error = pooler.refused("ghost", database, PASSWORD)
        assert error.is_(*UNKNOWN[method])
    assert "ghost" not in [row["name"] for row in user_rows(pooler)]


def user_rows(pooler):
    done = pooler.psql("-Atc", "SHOW USERS", user="pgbouncer", database="pgbouncer", unix=True)
    return [{"name": line.split("|")[0]} for line in done.stdout.splitlines()]


@pytest.mark.parametrize("method", ["plain", "md5", "scram-sha-256"])
def test_an_unknown_database_is_reported_only_after_the_password(new_pooler, method):
    pooler = new_pooler({"auth_type": method}, auth={"app": PASSWORD})
    assert pooler.refused("app", "nowhere", "wrong").is_(*UNKNOWN[method])
    error = pooler.refused("app", "nowhere", PASSWORD)
    assert error.is_("FATAL", "3D000", "no such database: nowhere")
    assert pooler.lines("login failed: db=nowhere user=app$")


@pytest.mark.setting("scram_iterations")
def test_the_mock_salt_of_a_name_stays_the_same(new_pooler):
    pooler = new_pooler({"auth_type": "scram-sha-256", "scram_iterations": 5000})

    def challenge(name):
        client = pooler.raw().send_startup(name)
        client.read()
        client.send_sasl_first(ScramClient("x").first())
        text = client.read().body[4:].decode()
        client.close()
        return dict(part.split("=", 1) for part in text.split(","))

    first, again, other = challenge("ghost"), challenge("ghost"), challenge("spook")
    assert first["s"] == again["s"] != other["s"]
    assert len(base64.b64decode(first["s"])) == 16
    assert first["i"] == "5000"
    assert first["r"] != again["r"]


def test_changed_iterations_do_not_reveal_which_users_exist(new_pooler):
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "scram_iterations": 5000},
        auth={"app": "one", "alice": "two", "admin": "a"},
    )
    console = pooler.client("admin", "pgbouncer", "a")

    def iterations(name):
        client = pooler.raw().send_startup(name)
        client.read()
        client.send_sasl_first(ScramClient("x").first())
        (count,) = re.findall(rb"i=(\d+)$", client.read().body)
        client.close()
        return int(count)

    assert iterations("app") == 5000
    begun = pooler.raw().send_startup("app")
    begun.read()
    scram = ScramClient("one")
    begun.send_sasl_first(scram.first())
    challenge = begun.read().body[4:].decode()
    # Known keys are derived anew: their old iteration count would reveal which users exist.
    console.query("SET scram_iterations = 6000")
    assert [iterations(name) for name in ("app", "alice", "ghost")] == [6000] * 3
    assert pooler.client(password="one").value("SELECT 1") == "1"
    # A client that got its challenge before is checked by that challenge.
    begun.send_sasl(scram.final(challenge))
    scram.check(begun.read().body[4:].decode())
    assert begun.finish_login("app").value("SELECT 1") == "1"


@pytest.mark.parametrize("size", [1, 16])
def test_logins_do_not_depend_on_the_packet_buffer(new_pooler, cluster, size):
    # setting: pkt_buf
    password = "long" * 800
    cluster.sql(f"ALTER ROLE plain_login PASSWORD '{password}'")
    try:
        for method in ("plain", "scram-sha-256"):
            pooler = new_pooler(
                {"auth_type": method, "pkt_buf": size}, auth={"plain_login": password}
            )
            client = pooler.client("plain_login", password=password, application_name="n" * 3000)
            assert client.value("SELECT repeat('x', 50000)") == "x" * 50000
            assert len(client.value("SELECT '" + "y" * 50000 + "'")) == 50000
    finally:
        cluster.sql("ALTER ROLE plain_login PASSWORD 'plain secret'")


@pytest.mark.alone
@pytest.mark.parametrize("method", ["md5", "scram-sha-256"])
def test_refusals_take_the_same_time(new_pooler, method):
    """Time does not distinguish a wrong password, an unknown user and an unknown database."""
    pooler = new_pooler({"auth_type": method, "scram_iterations": 4096}, auth={"app": PASSWORD})
    client_keys = {}

    def attempt(user, database):
        client = pooler.raw().send_startup(user, database)
        body = client.read().body
        if method == "md5":
            client.send(wire.password("md5" + "0" * 32))
            began = time.perf_counter()
        else:
            scram = ScramClient("wrong")
            client.send_sasl_first(scram.first())
            text = client.read().body[4:].decode()
            attributes = scram.challenge(text)
            # The proof is wrong anyway: deriving real keys would only slow the test down.
            proof = client_keys.setdefault(user, encode(b"\1" * 32))
            client.send_sasl(f"c=biws,r={attributes['r']},p={proof}")
            began = time.perf_counter()
        client.fatal()
        assert body
        return time.perf_counter() - began

    kinds = [("app", "main"), ("ghost", "main"), ("app", "nowhere")]
    times = {kind: [] for kind in kinds}
    for _ in range(60):
        for kind in kinds:
            times[kind].append(attempt(*kind))
    medians = [statistics.median(times[kind]) for kind in kinds]
    # Half of the median or 0.3 ms: more than the noise of a shared machine, far less than a
    # derivation.
    assert max(medians) - min(medians) < max(0.5 * min(medians), 0.0003), medians


# Wrong SCRAM messages of clients


def scram_start(pooler):
    client = pooler.raw().send_startup()
    assert struct.unpack_from("!I", client.read().body)[0] == 10
    return client


@pytest.fixture
def scram_pooler(new_pooler):
    return new_pooler({"auth_type": "scram-sha-256"}, auth={"app": SECRETS["scram"]})


NONCE = "rOprNGfwEbeRWgbNEkqO"

BAD_FIRSTS = {
    "empty": "",
    "no header": f"n=,r={NONCE}",
    "binding demanded": f"p=tls-server-end-point,,n=,r={NONCE}",
    "identity": f"n,a=other,n=,r={NONCE}",
    "mandatory extension": f"n,,m=x,n=,r={NONCE}",
    "unknown flag": f"z,,n=,r={NONCE}",
    "no user": f"n,,r={NONCE}",
    "no nonce": "n,,n=",
    "empty nonce": "n,,n=,r=",
    "nonce first": f"n,,r={NONCE},n=",
    "nonce twice": f"n,,n=,r={NONCE},r={NONCE}",
    "blank in nonce": "n,,n=,r=a b",
    "control in nonce": "n,,n=,r=a\x01b",
    "only commas": ",,,,,",
    "zero inside": f"n,,n=\0,r={NONCE}",
    "header cut": "n,",
    "nonce of 60 kB": "n,,n=,r=" + "x" * 60000,
}


@pytest.mark.parametrize("name", BAD_FIRSTS)
def test_a_wrong_first_message_is_refused(scram_pooler, name):  # F34
    client = scram_start(scram_pooler)
    client.send_sasl_first(BAD_FIRSTS[name])
    if name in ("nonce twice", "nonce of 60 kB"):
        # Optional extensions may follow and a nonce may be long: then the proof fails.
        found = client.read()
        if found.type == "R":
            client.send_sasl("c=biws,r=x,p=" + encode(b"\0" * 32))
            found = client.read()
        assert ServerError(found.body).is_(*SASL_FAILED)
    else:
        assert client.fatal().is_(*SASL_FAILED)


BAD_LENGTHS = {
    "minus one": 0xFFFFFFFF,
    "largest": 0x7FFFFFFF,
    "smallest": 0x80000000,
    "one more": +1,
    "one less": -1,
}


@pytest.mark.parametrize("with_data", [True, False])
@pytest.mark.parametrize("name", BAD_LENGTHS)
def test_a_wrong_inner_length_is_refused(scram_pooler, name, with_data):  # F34
    data = f"n,,n=,r={NONCE}".encode() if with_data else b""
    length = BAD_LENGTHS[name]
    if abs(length) == 1:
        length = (len(data) + length) & 0xFFFFFFFF
    client = scram_start(scram_pooler)
    client.send(wire.message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", length) + data))
    error = client.fatal(timeout=5)
    assert error.severity == "FATAL" and error.sqlstate in ("28P01", "08P01")


@pytest.mark.parametrize(
    "body", [b"", b"\0", b"SCRAM-SHA-256", b"SCRAM-SHA-256\0", b"SCRAM-SHA-256\0\0\0"]
)
def test_a_cut_first_message_is_refused(scram_pooler, body):
    client = scram_start(scram_pooler)
    client.send(wire.message("p", body))
    error = client.fatal(timeout=5)
    assert error.severity == "FATAL" and error.sqlstate in ("28P01", "08P01")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "", "PLAIN", "SCRAM-SHA-256-PLUS", "x" * 300])
def test_another_mechanism_is_refused(scram_pooler, mechanism):
    client = scram_start(scram_pooler)
    client.send_sasl_first(f"n,,n=,r={NONCE}", mechanism)
    text = "client selected an invalid SASL authentication mechanism"
    error = client.fatal()
    assert (error.severity, error.text) == ("FATAL", text)


def final_with(change):
    """A client-final-message from the right password, changed in one place."""

    def make(scram, server_first):
        attributes = scram.challenge(server_first)
        good = scram.final(server_first)
        bare, proof = good.rsplit(",p=", 1)
        return change(bare, proof, attributes["r"])

    return make


BAD_FINALS = {
    "empty": final_with(lambda bare, proof, nonce: ""),
    "no proof": final_with(lambda bare, proof, nonce: bare),
    "empty proof": final_with(lambda bare, proof, nonce: bare + ",p="),
    "short proof": final_with(lambda bare, proof, nonce: f"{bare},p={encode(b'x' * 31)}"),
    "long proof": final_with(lambda bare, proof, nonce: f"{bare},p={encode(b'x' * 33)}"),
    "proof not base64": final_with(lambda bare, proof, nonce: f"{bare},p=!{proof[1:]}"),
    "proof zero": final_with(lambda bare, proof, nonce: f"{bare},p={encode(bytes(32))}"),
    "something behind": final_with(lambda bare, proof, nonce: f"{bare},p={proof},x=y"),
    "no binding": final_with(lambda bare, proof, nonce: f"r={nonce},p={proof}"),
    "binding twice": final_with(lambda bare, proof, nonce: f"c=biws,{bare},p={proof}"),
    "other header": final_with(lambda bare, proof, nonce: f"c=eSws,r={nonce},p={proof}"),
    "nonce cut": final_with(lambda bare, proof, nonce: f"c=biws,r={nonce[:-1]},p={proof}"),
    "nonce longer": final_with(lambda bare, proof, nonce: f"c=biws,r={nonce}x,p={proof}"),
    "client nonce only": final_with(lambda bare, proof, nonce: f"c=biws,r={NONCE},p={proof}"),
    "nonce first": final_with(lambda bare, proof, nonce: f"r={nonce},c=biws,p={proof}"),
    "proof first": final_with(lambda bare, proof, nonce: f"p={proof},{bare}"),
    "zero inside": final_with(lambda bare, proof, nonce: f"{bare}\0,p={proof}"),
}


@pytest.mark.parametrize("name", BAD_FINALS)
def test_a_wrong_final_message_is_refused(scram_pooler, name):  # F34
    client = scram_start(scram_pooler)
    scram = ScramClient(PASSWORD)
    client.send_sasl_first(scram.first())
    server_first = client.read().body[4:].decode()
    client.send_sasl(BAD_FINALS[name](scram, server_first))
    error = client.fatal(timeout=5)
    if name == "empty":
        assert (error.severity, error.sqlstate) == ("FATAL", "28P01")
    else:
        assert error.is_(*SASL_FAILED)


@pytest.mark.parametrize("header", ["n,,", "y,,"])
def test_both_headers_without_binding_are_accepted(scram_pooler, header):
    client = scram_start(scram_pooler)
    scram = ScramClient(PASSWORD, header=header)
    client.send_sasl_first(scram.first())
    client.send_sasl(scram.final(client.read().body[4:].decode()))
    scram.check(client.read().body[4:].decode())
    client.finish_login("app")
    assert client.value("SELECT 1") == "1"


def test_the_name_inside_the_scram_message_is_not_looked_at(scram_pooler):
    client = scram_start(scram_pooler)
    scram = ScramClient(PASSWORD, user="another-user")
    client.send_sasl_first(scram.first())
    client.send_sasl(scram.final(client.read().body[4:].decode()))
    scram.check(client.read().body[4:].decode())
    assert client.finish_login("app").value("SELECT current_user") == "app"


def test_unknown_extensions_are_skipped(scram_pooler):
    client = scram_start(scram_pooler)
    scram = ScramClient(PASSWORD)
    scram.first_bare += ",x=unknown"
    client.send_sasl_first(scram.first())
    client.send_sasl(scram.final(client.read().body[4:].decode()))
    scram.check(client.read().body[4:].decode())


def test_the_servers_nonce_extends_ours_and_is_fresh(scram_pooler):
    nonces = set()
    for _ in range(5):
        client = scram_start(scram_pooler)
        client.send_sasl_first(f"n,,n=,r={NONCE}")
        attributes = dict(
            part.split("=", 1) for part in client.read().body[4:].decode().split(",")
        )
        assert attributes["r"].startswith(NONCE) and len(attributes["r"]) >= len(NONCE) + 24
        assert attributes["i"] == "4096"
        nonces.add(attributes["r"])
        client.close()
    assert len(nonces) == 5


def test_many_scram_logins_at_once_are_all_served(new_pooler):  # F10 in part
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "max_client_conn": 500, "pool_mode": "transaction"},
        auth={"app": PASSWORD},
    )
    steady = pooler.client(password=PASSWORD)
    clients = []
    for _ in range(60):
        client = pooler.raw().send_startup()
        client.scram = ScramClient(PASSWORD)
        client.send_sasl_first(client.scram.first())
        clients.append(client)
    assert steady.value("SELECT 1") == "1"
    for client in clients:
        assert client.read().body[:4] == struct.pack("!I", 10)
        client.send_sasl(client.scram.final(client.read().body[4:].decode()))
    for client in clients:
        client.scram.check(client.read().body[4:].decode())
        client.finish_login("app")


# The auth_file


def test_the_auth_file_has_the_known_format(new_pooler):
    text = (
        "; a comment\n"
        '\n   "app" "one" "historic third field" and more\n'
        '"al""ice" "two""quotes"\n'
        '"bob"\n"three"\n'
        '"carol" "first"\n"carol" "second"\n'
        '"slash" "back\\slash"\r\n'
        '"MD5UP" "MD5' + "0" * 32 + '"\n'
        '"short" "md5abc"\n'
        '"last" "line"'
    )
    pooler = new_pooler(
        {"auth_type": "plain"}, databases={"main": {"user": "app"}}, auth=text
    )
    for user, password in [
        ("app", "one"),
        ('al"ice', 'two"quotes'),
        ("bob", "three"),
        ("carol", "second"),
        ("slash", "back\\slash"),
        ("MD5UP", "MD5" + "0" * 32),
        ("short", "md5abc"),
        ("last", "line"),
    ]:
        assert pooler.client(user, password=password).value("SELECT 1") == "1"
    assert pooler.refused("carol", password="first").is_(*PASSWORD_FAILED)


def test_a_broken_line_ends_the_reading_of_the_file(new_pooler):
    pooler = new_pooler(
        {"auth_type": "plain"},
        databases={"main": {"user": "app"}},
        auth='"app" "one"\n# no comment\n"bob" "two"\n',
    )
    assert pooler.client(password="one")
    assert pooler.refused("bob", password="two").is_(*PASSWORD_FAILED)
    assert pooler.lines("broken auth file")


def test_a_missing_file_is_not_fatal(new_pooler):
    pooler = new_pooler({"auth_file": "/nonexistent/userlist.txt"})
    assert pooler.refused().text == '"trust" authentication failed'
    assert pooler.lines("could not open auth_file /nonexistent/userlist.txt: ")


@pytest.mark.setting("auth_file")
def test_reload_reads_a_changed_file(new_pooler):
    pooler = new_pooler(
        {"auth_type": "plain"}, auth={"app": "one", "bob": "x", "admin": "a", "alice": "s"}
    )
    console = pooler.client("admin", "pgbouncer", "a")
    old = pooler.client(password="one")
    pooler.auth = {"app": "two", "bob": None, "admin": "a", "carol": "new"}
    pooler.write_config()
    console.query("RELOAD")
    assert pooler.refused(password="one").is_(*PASSWORD_FAILED)
    assert pooler.client(password="two").value("SELECT 1") == "1"
    assert pooler.refused("bob", password="x").is_(*PASSWORD_FAILED)
    assert pooler.lines("no such user: bob")
    assert pooler.client("carol", password="new").value("SELECT 1") == "1"
    assert old.value("SELECT 1") == "1"


def test_keys_derived_from_a_removed_secret_are_forgotten(new_pooler):  # hazard D
    pooler = new_pooler(
        {"auth_type": "scram-sha-256"}, auth={"app": "one", "admin": "a"}
    )
    console = pooler.client("admin", "pgbouncer", "a")
    assert pooler.client(password="one")
    for secret, password, good in [
        (None, "one", False),
        ("two", "one", False),
        ("two", "two", True),
        (scram_secret("three"), "two", False),
        (scram_secret("three"), "three", True),
        (md5_secret("four", "app"), "three", False),
        ("five", "five", True),
    ]:
        pooler.auth = {"app": secret, "admin": "a"}
        pooler.write_config()
        console.query("RELOAD")
        if good:
            assert pooler.client(password=password)
        else:
            assert pooler.refused(password=password).is_(*SASL_FAILED)


# Logging in to servers


@pytest.mark.setting("databases.password")
@pytest.mark.parametrize("role", PASSWORDS)
@pytest.mark.parametrize("source", ["auth_file", "password key"])
def test_servers_are_logged_in_to_with_clear_text(new_pooler, role, source):
    if source == "auth_file":
        pooler = new_pooler(auth={role: PASSWORDS[role]})
        client = pooler.client(role)
    else:
        pooler = new_pooler(databases={"main": {"user": role, "password": PASSWORDS[role]}})
        client = pooler.client("app")
    assert client.value("SELECT current_user") == role


def test_a_forced_user_takes_its_password_from_the_auth_file(new_pooler):
    pooler = new_pooler(
        {"auth_type": "md5"},
        databases={"main": {"user": "scram_login"}},
        auth={"app": PASSWORD, "scram_login": PASSWORDS["scram_login"]},
    )
    client = pooler.client(password=PASSWORD)
    assert client.value("SELECT current_user") == "scram_login"


def test_an_md5_secret_logs_in_to_an_md5_server(new_pooler, cluster):
    pooler = new_pooler({"auth_type": "md5"}, auth={"md5_login": cluster.secret("md5_login")})
    client = pooler.client("md5_login", password=PASSWORDS["md5_login"])
    assert client.value("SELECT current_user") == "md5_login"


def test_a_scram_secret_logs_in_with_the_key_of_the_client(new_pooler, cluster):
    secret = cluster.secret("scram_login")
    assert secret.startswith("SCRAM-SHA-256$")
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"scram_login": secret, "admin": "a"},
    )
    client = pooler.client("scram_login", password=PASSWORDS["scram_login"])
    assert client.value("SELECT current_user") == "scram_login"
    # The key outlives the server connection that used it.
    pid = int(client.value("SELECT pg_backend_pid()"))
    cluster.terminate(pid)
    wait_until(lambda: pid not in [row["pid"] for row in cluster.backends()])
    console = pooler.client("admin", "pgbouncer", "a")
    wait_until(lambda: not console.query("SHOW SERVERS").rows)
    assert client.value("SELECT current_user") == "scram_login"


def test_an_md5_login_authenticates_a_scram_secret_just_as_well(new_pooler, cluster):
    pooler = new_pooler(
        {"auth_type": "md5"}, auth={"scram_login": cluster.secret("scram_login")}
    )
    client = pooler.client("scram_login", password=PASSWORDS["scram_login"])
    assert client.value("SELECT current_user") == "scram_login"


WRONG_KIND = ("FATAL", "28000", "server login failed: wrong password type")


@pytest.mark.parametrize(
    "role, secret",
    [
        ("md5_login", scram_secret("x")),
        ("scram_login", md5_secret("x", "scram_login")),
        ("scram_login", scram_secret("x")),
    ],
)
def test_a_secret_of_the_wrong_kind_is_refused_by_the_pooler(new_pooler, role, secret):
    pooler = new_pooler({"auth_type": "trust"}, auth={role: secret})
    assert pooler.refused(role).is_(*WRONG_KIND)
    assert pooler.lines("closing because: failed to answer authreq")
    assert pooler.lines("cannot do (MD5|SCRAM) authentication: ")


def test_a_hash_is_never_sent_as_a_clear_text_password(new_pooler, new_server):
    sent = []

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(3))
        sent.append(connection.read().body)

    server = new_server(script)
    for secret in (md5_secret("x", "app"), scram_secret("x")):
        pooler = new_pooler(databases={"main": server.target()}, auth={"app": secret})
        assert pooler.refused().is_(*WRONG_KIND)
    assert sent == []


def test_pass_through_keys_stay_with_their_user(new_pooler, cluster):  # hazard E
    """With a forced user the client's key is not used: the forced user's own password is."""
    pooler = new_pooler(
        {"auth_type": "scram-sha-256"},
        databases={"main": {"user": "scram_login"}},
        auth={
            "alice": scram_secret("a"),
            "bob": scram_secret("b"),
            "scram_login": PASSWORDS["scram_login"],
        },
    )
    for user, password in (("alice", "a"), ("bob", "b")):
        assert pooler.client(user, password=password).value("SELECT current_user") == "scram_login"


def test_keys_of_a_clear_text_secret_are_not_passed_through(new_pooler):
    pooler = new_pooler(
        {"auth_type": "scram-sha-256"}, auth={"scram_login": PASSWORDS["scram_login"]}
    )
    client = pooler.client("scram_login", password=PASSWORDS["scram_login"])
    assert client.value("SELECT current_user") == "scram_login"


def test_pass_through_to_a_server_with_another_secret_fails(new_pooler):
    secret = scram_secret(PASSWORDS["scram_login"], salt=b"another salt 123")
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"scram_login": secret})
    error = pooler.refused("scram_login", password=PASSWORDS["scram_login"])
    assert (error.severity, error.sqlstate) == ("FATAL", "28P01")
    assert "password authentication failed for user" in error.text


# Refusals by the server: F57


@pytest.mark.parametrize(
    "user, database, sqlstate, text",
    [
        ("nobody_here", "main", "28000", 'role "nobody_here" does not exist'),
        ("app", "missing", "3D000", 'database "missing" does not exist'),
        ("rejected_login", "main", "28000", "pg_hba.conf rejects connection"),
        ("plain_login", "main", "28P01", 'password authentication failed for user "plain_login"'),
    ],
)
def test_the_servers_own_refusal_reaches_the_client(new_pooler, user, database, sqlstate, text):
    pooler = new_pooler(
        databases={"main": {}, "missing": {}},
        auth={"nobody_here": "", "rejected_login": "", "plain_login": "not it"},
    )
    error = pooler.refused(user, database)
    assert (error.severity, error.sqlstate) == ("FATAL", sqlstate)
    assert error.text.startswith(text)
    assert pooler.lines(r"\] WARNING server login failed: FATAL " + text[:20])
    closing = pooler.wait_log("closing because: " + text[:20], 2)
    assert sorted(line.split(": ")[0].split()[-1][0] for line in closing) == ["C", "S"]


def test_one_refusal_answers_every_client_that_waits(new_pooler, new_server):  # F57
    def script(connection):
        connection.accept_startup()
        connection.server.gate.wait(10)
        connection.send(wire.error("53300", "sorry, too many clients already", "FATAL"))

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target()})
    clients = [pooler.raw().send_startup() for _ in range(5)]
    pooler.wait_pool(cl_waiting=5, sv_login=1)
    server.gate.set()
    for client in clients:
        error = client.fatal()
        assert error.is_("FATAL", "53300", "sorry, too many clients already")
    assert server.count == 1
    assert len(pooler.wait_log("closing because: sorry, too many clients already", 6)) == 6


def test_a_changed_password_is_reported_with_the_servers_error(new_pooler, cluster):  # F57
    pooler = new_pooler(
        {"server_login_retry": 0}, databases={"main": {"user": "plain_login", "password": "old"}}
    )
    assert pooler.refused().sqlstate == "28P01"
    pooler.databases["main"]["password"] = PASSWORDS["plain_login"]
    pooler.reload()
    assert pooler.client().value("SELECT 1") == "1"


def test_a_changed_password_does_not_affect_running_servers(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={"main": {"user": "plain_login", "password": PASSWORDS["plain_login"]}},
    )
    client = pooler.client()
    pid = client.value("SELECT pg_backend_pid()")
    pooler.databases["main"]["password"] = "changed"
    pooler.reload()
    assert client.value("SELECT pg_backend_pid()") == pid


# Server side exchanges with a scripted server


@pytest.mark.parametrize("method", ["plain", "md5", "scram"])
def test_every_server_exchange_is_right_to_the_byte(new_pooler, new_server, method):
    def script(connection):
        if connection.login(method, "s3cret"):
            connection.serve()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target(user="app", password="s3cret")})
    assert pooler.client().value("hello") == "hello"
    bad = new_pooler(databases={"main": server.target(user="app", password="wrong")})
    assert bad.refused().sqlstate == "28P01"


def test_a_server_that_cannot_prove_the_password_is_refused(new_pooler, new_server):
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, wire.text("SCRAM-SHA-256") + b"\0"))
        connection.read()
        first = connection.received[-1].body.split(b"\0", 1)[1][4:].decode()
        nonce = first.split("r=", 1)[1]
        connection.send(
            wire.authentication(11, f"r={nonce}abc,s={encode(b'salt' * 4)},i=4096".encode())
        )
        connection.read()
        connection.send(wire.authentication(12, b"v=" + encode(b"\2" * 32).encode()))
        connection.welcome()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target(user="app", password="s3cret")})
    error = pooler.refused()
    assert error.is_("FATAL", "28000", "server login failed: invalid server signature")


def test_a_server_with_only_unknown_mechanisms_is_refused(new_pooler, new_server):
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, wire.text("OTHER") + wire.text("MORE") + b"\0"))
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target(user="app", password="s3cret")})
    text = (
        "server login failed: none of the server's SASL authentication mechanisms are supported"
    )
    assert pooler.refused().is_("FATAL", "28000", text)


@pytest.mark.parametrize("code", [2, 4, 6, 7, 8, 9, 99])
def test_a_server_with_another_method_is_refused(new_pooler, new_server, code):
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(code, b"\0" * 4))
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"query_wait_timeout": 1}, databases={"main": server.target(user="app", password="x")}
    )
    error = pooler.refused()
    assert error.severity == "FATAL"
    assert pooler.lines(f"unknown/unsupported auth method: {code}")


def test_scram_answers_use_the_salt_and_count_of_the_server(new_pooler, new_server):
    """Any salt and count: the proof is computed from the server's values."""
    for salt, iterations in ((b"x", 1), (b"y" * 64, 10000)):
        accepted = []

        def script(connection):
            connection.accept_startup()
            scram = ScramServer("s3cret", salt, iterations)
            accepted.append(connection.exchange_scram(scram))
            connection.welcome()
            connection.serve()

        server = new_server(script)
        pooler = new_pooler(databases={"main": server.target(user="app", password="s3cret")})
        assert pooler.client().value("x") == "x"
        assert accepted == [True]
