# SPDX-License-Identifier: ISC
"""The first bytes of a connection, up to the welcome: negotiation, parameters, malformed input."""

import struct
import time

import pytest

from support import wire
from support.clients.raw import Closed, ServerError
from support.process import wait_until
from support.servers.pooler import is_sanitized

LAYOUT = "invalid startup packet layout: expected terminator as last byte"


def header_error(data):
    return "bad packet header: '" + data[:8].hex() + "'"


def nothing_left(console):
    """Only the console that sends this is connected, and no client is logging in."""
    items = dict(console.query("SHOW LISTS").rows)
    return (items["used_clients"], items["login_clients"]) == ("1", "0")


# Requests before the startup packet


def test_ssl_and_gss_requests_are_answered_each(pooler):  # F06
    client = pooler.raw()
    for _ in range(4):
        client.send(wire.ssl_request())
        assert client.read_bytes(1) == b"N"
    client.send(wire.gssenc_request())
    assert client.read_bytes(1) == b"N"
    client.send(wire.ssl_request())
    assert client.read_bytes(1) == b"N"
    assert client.login().value("SELECT 1") == "1"


def test_ssl_request_on_the_unix_socket_is_answered(pooler):
    client = pooler.raw(unix=True)
    client.send(wire.ssl_request())
    assert client.read_bytes(1) == b"N"
    assert client.login().value("SELECT 1") == "1"


@pytest.mark.parametrize(
    "request_, text",
    [
        (wire.ssl_request(), "received unencrypted data after SSL request"),
        (wire.gssenc_request(), "received unencrypted data after GSSAPI encryption request"),
    ],
)
def test_bytes_after_an_encryption_request_are_never_executed(pooler, request_, text):  # F31, CVE-2021-3935
    client = pooler.raw()
    client.send(request_, wire.startup({"user": "app", "database": "main"}))
    assert client.fatal().is_("FATAL", "08P01", text)
    assert not pooler.lines("login attempt: db=main")


@pytest.mark.parametrize("size", [0, 3, 7, 9, 100])
def test_cancel_request_of_a_wrong_size_is_closed_silently(pooler, size):
    client = pooler.raw()
    client.send(wire.cancel_request(b"\1" * size))
    assert client.closed()


def test_cancel_request_with_an_unknown_key_is_closed_silently(pooler):
    client = pooler.raw()
    client.send(wire.cancel_request(b"\1" * 8))
    assert client.closed()
    assert pooler.wait_log("failed cancel request")


# Versions


def test_protocol_2_is_refused_clearly(pooler):  # F04
    client = pooler.raw()
    client.send(wire.untyped(wire.PROTOCOL_2_0, b"\0" * 288))
    assert client.fatal().is_("FATAL", "0A000", "old V2 protocol not supported")


@pytest.mark.parametrize("code", [0x00010000, 0x00040000, 0x7FFFFFFF, 0, 80877105])
def test_unknown_codes_are_refused(pooler, code):  # F04
    packet = wire.startup({"user": "app", "database": "main"}, protocol=code)
    client = pooler.raw().send(packet)
    assert client.fatal().is_("FATAL", "08P01", header_error(packet))


def negotiation(client):
    """The newest minor and the unknown options of the NegotiateProtocolVersion messages."""
    found = []
    for kind, body in client.welcome:
        if kind == "v":
            newest, count = struct.unpack_from("!II", body)
            names = body[8:].split(b"\0")[:-1]
            assert len(names) == count
            found.append((newest, [name.decode() for name in names]))
    return found


def test_protocol_3_0_needs_no_negotiation(pooler):
    client = pooler.client()
    assert negotiation(client) == []
    assert len(client.key) == 8


@pytest.mark.parametrize(
    "asked, given",
    [(0x00030001, 0x00030000), (0x00030063, 0x00030002), (0x0003FFFF, 0x00030002)],
)
def test_other_minors_are_negotiated_once(pooler, asked, given):  # F04
    client = pooler.client(protocol=asked)
    assert negotiation(client) == [(given, [])]
    assert client.welcome[0].type == "v"
    assert client.value("SELECT 1") == "1"


def test_protocol_3_2_is_spoken_with_a_longer_key(pooler):  # F04
    client = pooler.client(protocol=wire.PROTOCOL_3_2)
    assert negotiation(client) == []
    assert 8 < len(client.key) <= 260
    client.send(wire.query("SELECT pg_sleep(20)"))
    # A cancel before the query has begun has no effect, as with PostgreSQL.
    wait_until(lambda: pooler.cluster.backends(state="active", query="SELECT pg_sleep(20)"))
    with pooler.raw() as canceler:
        canceler.send(wire.cancel_request(client.key)).closed()
    assert client.result().error.sqlstate == "57014"


def test_a_cut_long_key_cancels_nothing(pooler):
    client = pooler.client(protocol=wire.PROTOCOL_3_2)
    client.send(wire.query("SELECT pg_sleep(0.4)"))
    wait_until(lambda: pooler.pool()["sv_active"] == 1)
    for key in (client.key[:8], client.key[:-1], client.key + b"x"):
        with pooler.raw() as canceler:
            canceler.send(wire.cancel_request(key)).closed()
    assert client.result().error is None


def test_unknown_protocol_options_are_listed_in_order(pooler):
    client = pooler.client(**{"_pq_.b": "1", "_pq_.a": "2"})
    assert negotiation(client) == [(0x00030000, ["_pq_.b", "_pq_.a"])]
    assert client.value("SELECT 1") == "1"


def test_a_hundred_protocol_options_are_accepted(pooler):  # F03
    names = [f"_pq_.option_{number}" for number in range(100)]
    client = pooler.client(**{name: "x" * 50 for name in names})
    assert negotiation(client) == [(0x00030000, names)]
    assert client.value("SELECT 1") == "1"


def test_negotiation_comes_before_the_password_is_asked(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret"})
    client = pooler.client(password="secret", protocol=0x00030063)
    assert [message.type for message in client.welcome[:2]] == ["v", "R"]
    assert len(negotiation(client)) == 1


# The packet's form


def test_a_startup_packet_may_come_byte_by_byte(pooler):
    client = pooler.raw()
    packet = wire.startup({"user": "app", "database": "main"})
    for at in range(len(packet)):
        client.send(packet[at:at + 1])
    client.finish_login("app")
    assert client.value("SELECT 1") == "1"
    assert len(pooler.lines("login attempt")) == 1


def test_the_query_may_come_with_the_startup_packet(pooler):
    client = pooler.raw()
    client.send(wire.startup({"user": "app", "database": "main"}), wire.query("SELECT 42"))
    client.finish_login("app")
    assert client.result().value == "42"


@pytest.mark.parametrize("pkt_buf", [64, 4096])
def test_a_startup_packet_may_be_far_larger_than_the_buffer(new_pooler, pkt_buf):
    pooler = new_pooler({"pkt_buf": pkt_buf, "ignore_startup_parameters": "filler"})
    client = pooler.client(filler="x" * 60000, application_name="big")
    assert client.value("SHOW application_name") == "big"


def test_the_largest_startup_packet_is_accepted(new_pooler):
    pooler = new_pooler({"ignore_startup_parameters": "filler"})
    empty = wire.startup({"user": "app", "database": "main", "filler": ""})
    client = pooler.client(filler="x" * (65535 - len(empty)))
    assert client.value("SELECT 1") == "1"
    packet = wire.startup({"user": "app", "database": "main", "filler": "x" * 65536})
    client = pooler.raw().send(packet[:1000])
    assert client.fatal().is_("FATAL", "08P01", header_error(packet))


def test_database_defaults_to_the_user_name(new_pooler, cluster):
    pooler = new_pooler(databases={"app": {"dbname": "main"}})
    assert pooler.client(database=None).value("SELECT current_database()") == "main"
    assert pooler.client(database="").value("SELECT current_database()") == "main"


def test_the_last_of_a_repeated_parameter_counts(pooler):
    client = pooler.raw()
    pairs = [("user", "ghost"), ("database", "nowhere"), ("user", "app"), ("database", "main")]
    client.send(wire.startup(pairs)).finish_login("app")
    assert client.value("SELECT current_user") == "app"


@pytest.mark.parametrize("pairs", [[], [("database", "main")], [("user", "")], [("USER", "app")]])
def test_a_user_name_is_required(pooler, pairs):
    client = pooler.raw().send(wire.startup(pairs))
    assert client.fatal().severity == "FATAL"


def test_no_user_name_has_its_own_text(pooler):
    client = pooler.raw().send(wire.startup({"database": "main"}))
    assert client.fatal().is_("FATAL", "28000", "no username supplied")


def test_user_names_have_a_limit(new_pooler, cluster):
    name = "u" * 127
    pooler = new_pooler(databases={"main": {"user": "app"}}, auth={name: ""})
    assert pooler.client(name).value("SELECT 1") == "1"
    for length in (128, 5000, 60000):  # F03
        error = pooler.refused("u" * length)
        assert error.is_("FATAL", "28000", "username too long")


@pytest.mark.parametrize("length", [64, 1000, 9000, 60000])
@pytest.mark.parametrize("fallback", [False, True])
def test_long_database_names_are_refused_quietly(new_pooler, length, fallback):  # F03
    databases = {"main": {}, "*": {"dbname": "main"}} if fallback else {"main": {}}
    pooler = new_pooler(databases=databases)
    error = pooler.refused(database="d" * length)
    assert (error.severity, error.sqlstate) == ("FATAL", "3D000")
    assert error.text.startswith("no such database: " + "d" * 60)
    assert len(error.text.encode()) <= 127
    assert len(pooler.lines(f"too long db name: {length} bytes")) == int(fallback)
    assert not pooler.lines("registered new auto-database")
    assert pooler.client().value("SELECT 1") == "1"


BROKEN_BODIES = {
    "no terminator": b"user\0app\0database\0main\0",
    "value cut": b"user\0app\0database\0main",
    "name cut": b"user\0app\0data",
    "odd count": b"user\0app\0database\0\0",
    "name without value": b"user\0app\0database",
    "bytes behind": b"user\0app\0database\0main\0\0x",
    "zero behind": b"user\0app\0database\0main\0\0\0",
    "second list behind": b"user\0app\0\0database\0main\0\0",
    "no zero at all": b"x" * 50,
}


@pytest.mark.parametrize("name", BROKEN_BODIES)
def test_a_broken_layout_is_refused(pooler, name):  # F02
    client = pooler.raw().send(wire.untyped(wire.PROTOCOL_3_0, BROKEN_BODIES[name]))
    assert client.fatal().is_("FATAL", "08P01", LAYOUT)


@pytest.mark.parametrize("length", [0, 1, 3, 4, 7, 0x10000, 0x00FFFFFF])
def test_a_wrong_startup_length_is_refused(pooler, length):  # F02
    packet = struct.pack("!II", length, wire.PROTOCOL_3_0)
    client = pooler.raw().send(packet)
    assert client.fatal().is_("FATAL", "08P01", header_error(packet))


def test_a_packet_of_its_header_alone_is_refused(pooler):  # F02
    client = pooler.raw().send(struct.pack("!II", 8, wire.PROTOCOL_3_0))
    assert client.fatal().severity == "FATAL"


@pytest.mark.parametrize("length", [0, 3, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_wrong_length_of_a_message_before_startup_is_refused(pooler, length):  # F02
    packet = b"Q" + struct.pack("!I", length) + b"abcdefgh"
    client = pooler.raw().send(packet)
    errors = [ServerError(message.body) for message in client.read_all(timeout=2)]
    assert all(error.is_("FATAL", "08P01", header_error(packet)) for error in errors)


@pytest.mark.parametrize("length", [2**31 - 1, 2**32 - 1])
def test_a_startup_length_that_overflows_is_refused(pooler, length):  # F02
    packet = struct.pack("!II", length, wire.PROTOCOL_3_0)
    client = pooler.raw().send(packet)
    messages = client.read_all()
    assert [message.type for message in messages] in ([], ["E"])


# Foreign protocols: F01

FOREIGN = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "tls": bytes.fromhex("16030102000100 01fc0303".replace(" ", "")) + b"\x55" * 200,
    "ssh": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "smtp": b"EHLO localhost\r\n",
    "letters": b"hello, is a server here?",
    "ones": b"\xff" * 64,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_protocols_are_closed_at_once(pooler, name):  # F01
    client = pooler.raw().send(FOREIGN[name])
    messages = client.read_all(timeout=2)
    assert [message.type for message in messages] in ([], ["E"])
    assert pooler.client().value("SELECT 1") == "1"


def test_foreign_protocols_do_not_fill_the_log(pooler):  # F01
    began = time.monotonic()
    before = len(pooler.log().splitlines())
    for _ in range(100):
        for data in FOREIGN.values():
            with pooler.raw() as client:
                client.send(data)
                client.read_all(timeout=5)
    elapsed = time.monotonic() - began
    lines = pooler.log().splitlines()[before:]
    assert len(lines) <= 2 * (elapsed + 1), lines[:10]
    assert all(len(line) < 400 for line in lines)
    assert pooler.client().value("SELECT 1") == "1"


# Out of order: F05


@pytest.mark.parametrize("kind", "QSPBDECHFXdcf")
def test_messages_before_startup_are_refused(pooler, kind):  # F05
    client = pooler.raw().send(wire.message(kind, b"x\0"))
    assert client.closed()


@pytest.mark.parametrize("kind", "QSPBDECHFXdcf")
def test_messages_during_authentication_are_refused(new_pooler, kind):  # F05
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret"})
    client = pooler.raw().send_startup()
    assert client.read().type == "R"
    client.send(wire.message(kind, b"x\0"))
    assert client.closed()


def test_a_password_before_startup_is_refused(pooler):  # F05
    client = pooler.raw().send(wire.password("secret"))
    text = "client password pkt before startup packet"
    assert client.fatal().is_("FATAL", "08P01", text)


@pytest.mark.parametrize("request_", [wire.ssl_request(), wire.gssenc_request()])
def test_messages_after_an_encryption_request_are_refused(pooler, request_):  # F05
    client = pooler.raw().send(request_)
    assert client.read_bytes(1) == b"N"
    client.send(wire.password("secret"))
    assert client.fatal().text == "client password pkt before startup packet"


def test_a_second_startup_packet_is_refused(new_pooler):  # F05
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret"})
    client = pooler.raw().send_startup()
    assert client.read().type == "R"
    client.send_startup()
    assert client.fatal().is_("FATAL", "08P01", "client re-sent startup pkt")


# Floods and slowness


def test_malformed_startups_make_nothing_grow(pooler):  # F03
    packets = [
        wire.startup({"user": "u" * 5000}),
        wire.startup({"user": "app", "database": "d" * 9000}),
        wire.startup({"user": "app", "database": "main", "options": "x" * 9000}),
        wire.startup(
            {"user": "app", "database": "main"}
            | {f"unknown_{number}": "v" * 50 for number in range(150)}
        ),
        wire.untyped(wire.PROTOCOL_3_0, b"x" * 60000),
    ]

    def attempts(count):
        for _ in range(count):
            for packet in packets:
                with pooler.raw() as client:
                    client.send(packet)
                    client.read_all()

    attempts(20)
    memory, descriptors = pooler.memory(), pooler.descriptors()
    attempts(100)
    wait_until(lambda: pooler.descriptors() <= descriptors)
    if not is_sanitized():
        assert pooler.memory() - memory < 2_000_000
    assert pooler.client().value("SELECT 1") == "1"


@pytest.mark.setting("client_login_timeout")
def test_the_login_timeout_counts_from_accept(new_pooler):  # F09
    pooler = new_pooler({"client_login_timeout": 1})
    client = pooler.raw()
    packet = wire.startup({"user": "app", "database": "main", "options": " " * 500})
    began = time.monotonic()
    sent = 0
    while client.silent(0.05):
        client.send(packet[sent:sent + 1])
        sent += 1
        assert time.monotonic() - began < 5, "still there"
    assert client.fatal().is_("FATAL", "57014", "client_login_timeout")
    assert time.monotonic() - began > 0.9


@pytest.mark.parametrize("auth_type", ["trust", "plain", "md5", "scram-sha-256"])
def test_the_login_timeout_covers_authentication(new_pooler, auth_type):
    pooler = new_pooler(
        {"client_login_timeout": 0.5, "auth_type": auth_type},
        auth={"app": "secret", "admin": "secret"},
    )
    console = pooler.client("admin", "pgbouncer", "secret")
    client = pooler.raw()
    if auth_type == "trust":
        client.send(b"\0\0")
    else:
        client.send_startup()
        assert client.read().type == "R"
    assert client.fatal().is_("FATAL", "57014", "client_login_timeout")
    wait_until(lambda: nothing_left(console))


def vanish_points():
    """How far a client gets before it disconnects: F12."""
    packet = wire.startup({"user": "app", "database": "main"})
    yield "nothing", "md5", b"", False
    yield "one byte", "md5", packet[:1], False
    yield "half a header", "md5", packet[:6], False
    yield "header", "md5", packet[:8], False
    yield "half a packet", "md5", packet[:-5], False
    yield "ssl request", "md5", wire.ssl_request(), True
    yield "startup plain", "plain", packet, True
    yield "startup md5", "md5", packet, True
    yield "startup scram", "scram-sha-256", packet, True
    yield "trust", "trust", packet, False


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("point", vanish_points(), ids=lambda point: point[0])
def test_a_client_that_disconnects_in_login_leaves_nothing(new_pooler, point, reset):  # F12
    _, auth_type, data, answered = point
    secrets = {"app": "secret", "admin": "secret"}
    pooler = new_pooler({"auth_type": auth_type}, auth=secrets)
    console = pooler.client("admin", "pgbouncer", "secret")
    descriptors = pooler.descriptors()
    for _ in range(5):
        client = pooler.raw()
        client.send(data)
        if answered:
            client.read_bytes(1)
        client.reset() if reset else client.close()
    wait_until(lambda: nothing_left(console))
    if auth_type != "trust":
        wait_until(lambda: pooler.descriptors() <= descriptors)


def test_a_client_that_disconnects_in_the_scram_exchange_leaves_nothing(new_pooler):  # F12
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"app": "s", "admin": "s"})
    console = pooler.client("admin", "pgbouncer", "s")
    for _ in range(5):
        client = pooler.raw().send_startup()
        assert client.read().type == "R"
        client.send_sasl_first("n,,n=,r=abcdefghijklmnopqrstuvwx")
        assert client.read().type == "R"
        client.reset()
    wait_until(lambda: nothing_left(console))


def test_a_client_that_disconnects_while_it_waits_for_the_first_server(new_pooler, new_server):  # F12
    server = new_server(lambda connection: connection.wait_disconnected())
    pooler = new_pooler(databases={"main": server.target()})
    clients = [pooler.raw().send_startup() for _ in range(3)]
    pooler.wait_pool(cl_waiting=3, sv_login=1)
    for client in clients:
        client.reset()
    pooler.wait_pool(cl_waiting=0, cl_active=0)


def test_aborted_logins_are_not_logged(pooler):
    before = len(pooler.log().splitlines())
    for data in (b"", b"\0\0", wire.startup({"user": "app", "database": "main"})[:12]):
        pooler.raw().send(data).close()
    pooler.client().query("SELECT 1")
    lines = pooler.log().splitlines()[before:]
    assert not [line for line in lines if "closing because" in line and "(nouser)" in line]


# The welcome


def test_the_welcome_is_in_order(new_pooler, new_server):
    parameters = [
        ("server_version", "15.0"),
        ("TimeZone", "UTC"),
        ("in_hot_standby", "off"),
        ("IntervalStyle", "postgres"),
        ("client_encoding", "UTF8"),
        ("made_up", "yes"),
        ("application_name", ""),
        ("DateStyle", "ISO, MDY"),
        ("standard_conforming_strings", "on"),
    ]

    def script(connection):
        connection.login(parameters=parameters)
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(databases={"main": server.target()})
    for _ in range(2):
        client = pooler.client(application_name="mine", datestyle="German")
        kinds = "".join(message.type for message in client.welcome)
        assert kinds == "RSSSSSSSSSKZ"
        pairs = [wire.read_pairs(m.body)[0] for m in client.welcome if m.type == "S"]
        assert pairs == [
            ("server_version", "15.0"),
            ("in_hot_standby", "off"),
            ("made_up", "yes"),
            ("DateStyle", "German"),
            ("client_encoding", "UTF8"),
            ("TimeZone", "UTC"),
            ("standard_conforming_strings", "on"),
            ("application_name", "mine"),
            ("IntervalStyle", "postgres"),
        ]
        assert client.status == "I"


def test_keys_are_issued_by_the_pooler_and_never_negative(pooler):
    keys = [pooler.client().key for _ in range(30)]
    assert len(set(keys)) == 30
    assert all(len(key) == 8 and key[0] < 128 for key in keys)
    assert len({key[0] for key in keys}) > 5 and len({key[7] for key in keys}) > 5


def test_the_first_server_login_of_a_pool_serves_all_waiting_clients(new_pooler, new_server):
    def script(connection):
        connection.accept_startup()
        connection.server.gate.wait(10)
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    clients = [pooler.raw().send_startup() for _ in range(5)]
    pooler.wait_pool(cl_waiting=5, sv_login=1)
    assert all(client.silent(0.02) for client in clients)
    server.gate.set()
    for client in clients:
        client.finish_login("app")
    assert server.count == 1
    # Waiting for the welcome does not count as using a server.
    pooler.wait_pool(cl_active=5, cl_waiting=0, sv_idle=1, sv_active=0)
    assert pooler.stats()["server_assignment_count"] == 0


def test_a_known_pool_sends_the_welcome_without_a_server(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    pooler.client()
    (connection,) = server.connections
    connection.close()
    pooler.wait_pool(sv_idle=0)
    pooler.client()
    assert server.count == 1


def test_later_reports_of_servers_do_not_change_the_welcome(pooler):
    client = pooler.client()
    client.query("SET TimeZone = 'Asia/Tokyo'")
    new_client = pooler.client()
    assert new_client.parameters["TimeZone"] == "UTC"
    assert new_client.value("SHOW TimeZone") == "UTC"
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"


def test_login_attempts_are_logged_once(new_pooler):
    pooler = new_pooler()
    client = pooler.client(application_name="x")
    port = client.socket.getsockname()[1]
    (line,) = pooler.lines("login attempt")
    assert line.endswith(
        f": main/app@127.0.0.1:{port} login attempt: db=main user=app tls=no replication=no"
    )


@pytest.mark.setting("log_connections", "log_disconnections", "log_pooler_errors")
@pytest.mark.parametrize("setting", ["log_connections", "log_disconnections", "log_pooler_errors"])
def test_log_lines_can_be_switched_off(new_pooler, setting):
    pooler = new_pooler({setting: 0})
    client = pooler.client()
    client.query("SELECT 1")
    client.leave()
    pooler.refused("ghost")
    seen = {
        "log_connections": "login attempt|new connection to server",
        "log_disconnections": "closing because",
        "log_pooler_errors": "pooler error",
    }
    pooler.wait_pool(sv_idle=1)
    for name, pattern in seen.items():
        if name == setting:
            assert not pooler.lines(pattern)
        else:
            assert pooler.wait_log(pattern)


def test_a_flood_of_incomplete_logins_ends_by_itself(new_pooler):
    pooler = new_pooler({"client_login_timeout": 1, "max_client_conn": 1000})
    client = pooler.client()
    descriptors = pooler.descriptors()
    packet = wire.startup({"user": "app", "database": "main"})
    for number in range(300):
        pooler.raw().send(packet[: number % (len(packet) - 1)])
    assert client.value("SELECT 1") == "1"
    new_client = pooler.client()
    assert new_client.value("SELECT 1") == "1"
    new_client.leave()
    wait_until(lambda: pooler.descriptors() <= descriptors + 2, 10)
    assert client.value("SELECT 1") == "1"


def test_errors_and_ends_of_login_log_their_lines_and_nothing_else(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret"})
    pooler.refused(password="wrong")
    (error,) = pooler.wait_log("pooler error")
    assert " WARNING " in error and error.endswith("pooler error: password authentication failed")
    (closing,) = pooler.wait_log("closing because")
    assert closing.endswith("closing because: password authentication failed (age=0s)")


def test_nothing_is_received_before_the_client_sends(pooler):
    client = pooler.raw()
    assert client.silent(0.2)
    with pytest.raises((Closed, ServerError, TimeoutError)):
        client.send(b"\0\0\0\4").read(timeout=0.3)
