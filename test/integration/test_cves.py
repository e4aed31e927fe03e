# SPDX-License-Identifier: ISC
"""Every CVE of PgBouncer since 1.25.2, tried on this daemon. Each test names its CVE.

CVE-2026-6668 needs a message of two gigabytes, which the daemon never makes:
test/unit/base/test_buffer.c shows that growth beyond that ends, and the test here that messages
with long names are whole.

Older ones are tested beside what they are about: CVE-2015-4054 in test_attacks, CVE-2015-6817,
CVE-2025-2291 and CVE-2025-12819 in test_auth_query, CVE-2021-3935 in test_startup and test_tls.
"""

import struct

import pytest

from support import wire
from support.clients.raw import Closed, ServerError
from support.passwords import ScramClient, ScramServer, encode, scram_secret
from support.process import wait_until
from support.servers.pooler import is_sanitized

PASSWORD = "known to the attacker"
ADMIN_PASSWORD = "known to the operator"
NONCE = "rOprNGfwEbeRWgbNEkqO"
ONLY_SETTINGS = (
    "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed"
)
MEGABYTE = 1024 * 1024


def still_serves(pooler, **login):
    """The event loop turns: a new client is served, and then the process sleeps."""
    client = pooler.client(**login)
    assert client.value("SELECT 'served'") == "served"
    client.leave()
    wait_until(pooler.sleeps, 5, "the process to sleep")


def ended(client):
    """The SQLSTATEs of the errors that this client got before it was closed; none was a login."""
    found = client.read_all()
    assert "Z" not in {message.type for message in found}
    return [ServerError(message.body).sqlstate for message in found if message.type == "E"]


# --- CVE-2026-107350 --------------------------------------------------------------------------


@pytest.fixture
def scram_pooler(new_pooler, cluster):
    """SCRAM for all: app and the administrator are in the auth_file, scram_login is looked up."""
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "auth_user": "harness", "pool_mode": "transaction"},
        databases={"main": {"auth_dbname": "main"}},
        auth={
            "app": scram_secret(PASSWORD),
            "admin": scram_secret(ADMIN_PASSWORD),
            "harness": "",
        },
    )
    pooler.use_console("admin", ADMIN_PASSWORD)
    return pooler


SECOND = {
    "an administrator of the console": {"user": "admin", "database": "pgbouncer"},
    "another user": {"user": "scram_login", "database": "main"},
    "the same user, another database": {"user": "app", "database": "main"},
}


@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("step", ["before the first answer", "before the proof", "before the look-up"])
@pytest.mark.parametrize("database", ["missing", "main"])
def test_cve_2026_107350_a_second_startup_message_changes_no_identity(
    scram_pooler, database, step, second
):
    """The attacker proves a password that it knows, and names another user in the middle."""
    again = wire.startup(SECOND[second])
    client = scram_pooler.raw()
    if step == "before the look-up":
        # Both arrive together, so that the second waits while the first user is looked up.
        client.send(wire.startup({"user": "scram_login", "database": database}), again)
        assert set(ended(client)) <= {"08P01", "28P01"}
        still_serves(scram_pooler, password=PASSWORD)
        return
    client.send_startup("app", database)
    assert client.read().body.startswith(struct.pack("!I", 10))
    scram = ScramClient(PASSWORD)
    first = wire.text("SCRAM-SHA-256") + struct.pack("!i", len(scram.first())) + scram.first().encode()
    try:
        if step == "before the first answer":
            client.send(again, wire.message("p", first))
        else:
            client.send(wire.message("p", first))
            challenge = client.read().body[4:].decode()
            client.send(again, wire.message("p", scram.final(challenge).encode()))
    except OSError:
        pass  # closed already
    assert set(ended(client)) <= {"08P01"}
    assert not [row for row in scram_pooler.clients() if row["user"] != "app"]
    still_serves(scram_pooler, password=PASSWORD)


# --- CVE-2026-107349 --------------------------------------------------------------------------

EMPTY_NAMES = ["-c=", "-c =", "-c =x", "--=", "--=x", "-c ''", "-c '' -c geqo=on", "-c \\=x"]
LISTS = ["extra_float_digits", "a,,b", ",", " , ", "work_mem,"]


@pytest.mark.parametrize("policy", ["follow", "strict"])
@pytest.mark.parametrize("ignored", LISTS)
def test_cve_2026_107349_an_option_without_a_name_is_refused(new_pooler, ignored, policy):
    """Nobody has logged in: an endless loop over the list would stop every client."""
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "ignore_startup_parameters": ignored,
            "startup_parameters": policy,
        }
    )
    for options in EMPTY_NAMES:
        assert pooler.refused(options=options).is_("FATAL", "08P01", ONLY_SETTINGS)
        with pytest.raises(ServerError):
            pooler.console(options=options)
    # An empty name outside of options ends the list too early.
    client = pooler.raw()
    client.send(wire.startup({"user": "app", "": "x", "database": "main"}))
    assert client.fatal().sqlstate == "08P01"
    still_serves(pooler)


# --- CVE-2026-107348 --------------------------------------------------------------------------

HUGE = [0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFB, 0xFFFFFFFF]


def header(kind, length):
    return kind.encode() + struct.pack("!I", length)


@pytest.fixture
def unlimited(new_pooler):
    """A daemon that takes messages of any length that a header can have."""
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 2, "max_packet_size": 4294967295}
    )


@pytest.mark.parametrize("length", HUGE)
def test_cve_2026_107348_a_huge_length_before_the_login_ends_the_client(new_pooler, length):
    pooler = new_pooler(
        {"max_packet_size": 4294967295, "auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"app": scram_secret(PASSWORD), "admin": scram_secret(ADMIN_PASSWORD)},
    )
    pooler.use_console("admin", ADMIN_PASSWORD)
    for first in (
        struct.pack("!I", length) + b"\0",  # five bytes
        struct.pack("!II", length, 196608) + b"user\0app\0",
        header("p", length),
        header("Q", length),
    ):
        client = pooler.raw()
        client.send(first)
        assert set(ended(client)) <= {"08P01"}
    # A password message in the middle of a login, and more bytes behind its header.
    for more in (b"", b"SCRAM-SHA-256\0", b"x" * 200_000):
        client = pooler.raw().send_startup()
        assert client.read().type == "R"
        try:
            client.send(header("p", length) + more)
        except OSError:
            pass
        assert set(ended(client)) <= {"08P01", "28P01"}
    still_serves(pooler, password=PASSWORD)


@pytest.mark.parametrize("kind", ["Q", "P", "B", "E", "d", "F", "X"])
def test_cve_2026_107348_a_huge_length_after_the_login_grows_nothing(unlimited, kind):
    """Whether the message is refused or passed on in pieces: memory does not follow its length."""
    still_serves(unlimited)
    before = unlimited.memory()
    for length in HUGE:
        client = unlimited.client()
        client.query("SELECT 1")
        try:
            client.send(header(kind, length), b"SELECT 1 --" + b" " * (2 * MEGABYTE))
            client.send(b" " * MEGABYTE)
        except OSError:
            pass  # closed already
        still_serves(unlimited)
        if not is_sanitized():
            assert unlimited.memory() < before + 24 * MEGABYTE
        client.close()
    wait_until(lambda: not unlimited.clients(), 5)
    still_serves(unlimited)


@pytest.mark.parametrize("logged_in", [False, True], ids=["in the login", "later"])
def test_cve_2026_107348_a_huge_length_of_a_server_grows_nothing(new_pooler, new_server, logged_in):
    cases = [(kind, length) for kind in "DTENSCRKZG" for length in (0x80000000, 0xFFFFFFFF)]

    def script(connection):
        kind, length = cases[connection.number % len(cases)]
        if logged_in:
            connection.login()
            connection.next_query()
        else:
            connection.accept_startup()
        connection.send(header(kind, length), b"\0" * MEGABYTE)
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_packet_size": 4294967295, "server_login_retry": 0},
        databases={"main": {}, "hostile": server.target(pool_size=1)},
    )
    still_serves(pooler)
    before = pooler.memory()
    for number in range(len(cases)):
        client = pooler.raw().send_startup(database="hostile")
        client.send(wire.query("SELECT 1"))
        server.wait_count(number + 1)
        still_serves(pooler)
        client.close()
        pooler.command("KILL hostile")
        pooler.command("RESUME hostile")
        server.wait_all_ended()
        if not is_sanitized():
            assert pooler.memory() < before + 24 * MEGABYTE, cases[number]
    still_serves(pooler)


# --- CVE-2026-6668 ----------------------------------------------------------------------------


def test_cve_2026_6668_messages_made_from_long_names_end(new_pooler, new_server):
    """What the daemon writes itself: errors that quote names, SETs, rows of SHOW, a welcome."""
    long = "n" * 60_000

    def script(connection):
        connection.login(
            parameters=[("server_version", "15.0"), ("client_encoding", "UTF8"),
                        ("application_name", ""), ("a_long_one", "v" * 50_000)]
        )
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_packet_size": 4294967295, "log_repeats": 0},
        databases={"main": server.target(), "other": {}},
    )
    # Errors.
    for given in (
        {"database": long}, {"user": long}, {"options": f"-c {long}=1"}, {"options": long},
        {long: "1"},
    ):
        assert pooler.refused(**given).severity == "FATAL"
    # A welcome, SETs and rows.
    clients = [pooler.client(application_name=long[:30_000], search_path=f"s{number}, {'p' * 30_000}")
               for number in range(8)]
    for client in clients * 2:
        client.query("SELECT 1")
        assert len(client.parameters["a_long_one"]) == 50_000
    clients[0].send(wire.parse("SELECT '" + "t" * 300_000 + "'", "named"), wire.sync())
    clients[0].result()
    for topic in ("CLIENTS", "SERVERS", "STATEMENTS", "POOLS", "STATS"):
        assert pooler.show(topic), topic
    # An error of the console that quotes the command.
    console = pooler.console()
    for command in ("X" * 900_000, "SHOW " + "x" * 900_000, "SET x = '" + "y" * 900_000 + "'"):
        console.send(wire.query(command))
        assert console.result().error
    still_serves(pooler, database="other")


# --- CVE-2026-6669 ----------------------------------------------------------------------------


@pytest.mark.parametrize("iterations", [1_000_001, 2**31 - 1, 2**32 - 1, 2**63])
def test_cve_2026_6669_a_server_may_not_ask_for_any_number_of_iterations(
    new_pooler, new_server, iterations
):
    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, wire.text("SCRAM-SHA-256") + b"\0"))
        nonce = connection.read().body.split(b"r=", 1)[1].decode()
        text = f"r={nonce}more,s={encode(b'salt salt salt!!')},i={iterations}"
        connection.send(wire.authentication(11, text.encode()))
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 30, "query_wait_timeout": 1},
        databases={"main": {}, "hostile": server.target(user="app", password="x")},
    )
    victims = [pooler.raw().send_startup(database="hostile") for _ in range(3)]
    still_serves(pooler)
    # The server is given up at once, not computed for or waited for until its login takes too long.
    server.wait_count(1)
    server.wait_all_ended(5)
    for victim in victims:
        assert victim.fatal(5).severity == "FATAL"
    still_serves(pooler)


# --- CVE-2026-19888 ---------------------------------------------------------------------------


def finals(nonce, proof):
    """Every client-final-message that lacks an attribute, has one twice or empty, or in another
    order."""
    c, r, p = "c=biws", f"r={nonce}", f"p={proof}"
    whole = [c, r, p]
    yield ""
    yield from (part[:2] for part in whole)
    for place, part in enumerate(whole):
        others = whole[:place] + whole[place + 1 :]
        yield ",".join(others)  # missing
        yield part  # alone
        yield ",".join(whole[:place] + [part, part] + whole[place + 1 :])  # doubled
        yield ",".join(whole[:place] + [part[:2]] + whole[place + 1 :])  # empty
        yield ",".join(whole[:place] + [part[:1]] + whole[place + 1 :])  # without =
        yield ",".join(whole[:place] + [""] + whole[place + 1 :])
    for order in ((c, p, r), (r, c, p), (r, p, c), (p, c, r), (p, r, c)):
        yield ",".join(order)
    yield from (",", ",,", ",,,", "=", "c", "c=,r=,p=", "\0", f"{c},{r},{p},")


@pytest.mark.parametrize("user", ["app", "unknown"])
def test_cve_2026_19888_a_final_message_without_an_attribute_is_refused(new_pooler, user):
    """Before any password is checked, so each message is sent with a right proof where it has one."""
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"app": scram_secret(PASSWORD), "admin": scram_secret(ADMIN_PASSWORD)},
    )
    count = len(list(finals("", "")))
    for number in range(count):
        client = pooler.raw().send_startup(user)
        client.read()
        scram = ScramClient(PASSWORD)
        client.send_sasl_first(scram.first())
        challenge = client.read().body[4:].decode()
        nonce = scram.challenge(challenge)["r"]
        proof = scram.final(challenge).rsplit(",p=", 1)[1]
        client.send_sasl(list(finals(nonce, proof))[number])
        error = client.fatal(10)
        assert (error.severity, error.sqlstate) == ("FATAL", "28P01"), number
    still_serves(pooler, password=PASSWORD)


# --- those of 1.25.2 --------------------------------------------------------------------------


@pytest.mark.parametrize("with_data", [True, False])
@pytest.mark.parametrize("length", [0xFFFFFFFE, 0x7FFFFFFF, 0x80000000, 1_000_000, "more", "less"])
def test_cve_2026_6664_a_wrong_length_inside_a_scram_message_is_refused(
    new_pooler, length, with_data
):
    """2^32 - 1 is the protocol's -1: no data. It is tested in test_login."""
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": "transaction"},
        auth={"app": scram_secret(PASSWORD)},
    )
    data = f"n,,n=,r={NONCE}".encode() if with_data else b""
    inner = {"more": len(data) + 1, "less": max(len(data) - 1, 1)}.get(length, length)
    client = pooler.raw().send_startup()
    client.read()
    client.send(wire.message("p", wire.text("SCRAM-SHA-256") + struct.pack("!I", inner) + data))
    assert client.fatal(5).severity == "FATAL"
    still_serves(pooler, password=PASSWORD)


@pytest.mark.parametrize("length", [100, 500, 5000, 60_000])
def test_cve_2026_6665_a_long_nonce_of_a_server_overflows_nothing(new_pooler, new_server, length):
    """The proof that answers it is built from the nonce: it is right, or the login fails."""

    def script(connection):
        connection.accept_startup()
        connection.send(wire.authentication(10, wire.text("SCRAM-SHA-256") + b"\0"))
        scram = ScramServer(PASSWORD)
        first = connection.read().body.split(b"\0", 1)[1][4:].decode()
        text = scram.first(first, "n" * length)
        connection.send(wire.authentication(11, text.encode()))
        final = scram.final(connection.read().body.decode())
        assert final, "a proof that is not right"
        connection.send(wire.authentication(12, final.encode()))
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "query_wait_timeout": 1},
        databases={"main": {}, "far": server.target(user="app", password=PASSWORD)},
    )
    if length <= 500:
        assert pooler.client(database="far").value("SELECT 1") == "SELECT 1"
    else:
        assert pooler.refused(database="far").severity == "FATAL"
    still_serves(pooler)


FIELDS = {"S": "FATAL", "V": "FATAL", "C": "XX001", "M": "broken"}


@pytest.mark.parametrize("when", ["login", "query", "reset"])
@pytest.mark.parametrize("lacks", ["C", "S", "M", "SC", "SVCM", "end"])
def test_cve_2026_6666_an_error_of_a_server_may_lack_any_field(new_pooler, new_server, lacks, when):
    body = wire.fields(**{name: text for name, text in FIELDS.items() if name not in lacks})
    broken = wire.message("E", body[:-1] if lacks == "end" else body)

    def script(connection):
        if when == "login":
            connection.accept_startup()
            connection.send(broken)
            connection.wait_disconnected()
        connection.login()
        connection.serve(
            lambda _, sql: broken + wire.ready()
            if (sql == "DISCARD ALL") == (when == "reset") else None
        )

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "session", "query_wait_timeout": 1},
        databases={"main": {}, "hostile": server.target()},
    )
    if when == "login":
        assert len(pooler.refused(database="hostile").sqlstate) == 5
    else:
        client = pooler.client(database="hostile")
        client.send(wire.query("SELECT 1"))
        if when == "query":
            assert client.read().type == "E"
        else:
            assert client.result().status == "I"
            client.leave()
    still_serves(pooler)


def test_cve_2026_6667_no_command_that_changes_something_is_open_to_stats_users(pooler):
    victim = pooler.client()
    victim.query("SELECT 1")
    (row,) = pooler.clients()
    commands = [
        f"KILL_CLIENT {row['id']}", f"KILL_CLIENT {row['ptr']}", "KILL", "KILL main", "PAUSE", "PAUSE main",
        "RESUME", "DISABLE main", "ENABLE main", "RECONNECT", "RELOAD", "SUSPEND", "SHUTDOWN",
        "SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN WAIT_FOR_SERVERS", "WAIT_CLOSE", "SET verbose = 1",
        "SHOW FDS", "HANDOVER",
    ]
    # All that the daemon lists, not only those that this test knows.
    words = {row["command"].split()[0] for row in pooler.show("COMMANDS") if row["rights"] == "admin"}
    assert words <= {command.split()[0] for command in commands}
    stats = pooler.console("stats")
    for command in commands:
        for send in (wire.query(command), wire.extended(command) + wire.sync()):
            stats.send(send)
            try:
                result = stats.result()
            except Closed:
                raise AssertionError(f"{command} ended the console") from None
            assert result.error and result.error.severity == "ERROR", command
    assert victim.value("SELECT 'alive'") == "alive"
    assert pooler.show("STATE")[0]["value"] == "yes"
    assert pooler.setting("verbose") == "0"
