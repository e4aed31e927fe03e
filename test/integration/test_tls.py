# SPDX-License-Identifier: ISC
"""TLS: with clients in every mode, with servers in every mode, certificates, channel binding."""

import contextlib
import os
import socket
import ssl
import struct
import subprocess

import psycopg
import pytest

from support import wire
from support.clients.raw import Closed, ServerError, cancel
from support.clients.unread import unread_by_peer
from support.process import HOST, own, run, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import Cluster, program
from support.servers.fake_server import PARAMETERS

STARTUP = wire.startup({"user": "app", "database": "main"})


@pytest.fixture(scope="session")
def authority():
    """The authority that all in these tests trust."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="session")
def unknown_authority():
    """An authority that is not trusted."""
    made = Authority("Stranger")
    yield made
    made.destroy()


@pytest.fixture(scope="session")
def ours(authority):
    """The daemon's certificate and key."""
    return authority.issue("pooler", "DNS:pooler.example.com,IP:127.0.0.1")


@pytest.fixture
def tls_pooler(new_pooler, authority, ours):
    """Make a daemon that offers TLS to clients: tls_pooler(mode, settings)."""

    def make(mode="require", settings=None, **options):
        return new_pooler(
            {
                "pool_mode": "transaction",
                "client_tls_sslmode": mode,
                "client_tls_cert_file": ours[0],
                "client_tls_key_file": ours[1],
                "client_tls_ca_file": authority.certificate,
                **(settings or {}),
            },
            **options,
        )

    return make


def context_for(authority, pair=None, alpn=None, version=None):
    """The client's settings of TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    if pair:
        context.load_cert_chain(*pair)
    if alpn:
        context.set_alpn_protocols(alpn)
    if version:
        context.minimum_version = context.maximum_version = version
    return context


def encrypt(client, context):
    """Start TLS on this connection."""
    client.socket = context.wrap_socket(client.socket, server_hostname=HOST)
    return client


def ask(client):
    """Send an SSLRequest; returns the one byte of the answer."""
    client.send(wire.ssl_request())
    return client.read_bytes(1)


def tls_client(pooler, authority, pair=None, **options):
    """A raw client behind a handshake."""
    client = pooler.raw()
    assert ask(client) == b"S"
    return encrypt(client, context_for(authority, pair, **options))


def waiting_logins(pooler):
    """Clients that have not logged in yet."""
    return [row for row in pooler.show("LISTS", list="login_clients") if row["items"] != "0"]


# --- modes of clients -------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
@pytest.mark.parametrize("kind", ["clear", "no certificate", "known", "strange"])
def test_modes_of_clients(tls_pooler, authority, unknown_authority, mode, kind):
    # setting: client_tls_sslmode client_tls_cert_file client_tls_key_file client_tls_ca_file
    pooler = tls_pooler(mode)
    if kind == "clear":
        if mode in ("disable", "allow", "prefer"):
            assert pooler.client().value("SELECT 1") == "1"
        else:
            pooler.refused().is_("FATAL", "28000", "SSL required")
        assert pooler.client(unix=True).value("SELECT 1") == "1"
        return
    if mode == "disable":
        assert ask(pooler.raw()) == b"N"
        return
    pair = {"no certificate": None, "known": authority, "strange": unknown_authority}[kind]
    pair = pair and pair.issue("app")
    good = kind == "known" or (kind == "no certificate" and not mode.startswith("verify"))
    if good:
        client = tls_client(pooler, authority, pair).login("app", "main")
        assert client.value("SELECT 1") == "1"
        assert client.socket.version() == "TLSv1.3"
        return
    with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
        tls_client(pooler, authority, pair).login("app", "main")
    pooler.wait_log("WARNING .*TLS handshake error: ")


def test_without_authorities_no_certificate_is_asked_for(tls_pooler, authority, unknown_authority):
    pooler = tls_pooler("require", {"client_tls_ca_file": ""})
    client = tls_client(pooler, authority, unknown_authority.issue("app")).login("app", "main")
    assert client.value("SELECT 1") == "1"
    demanding = tls_pooler("verify-ca", {"client_tls_ca_file": ""})
    with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
        tls_client(demanding, authority, unknown_authority.issue("app")).login("app", "main")


def test_encryption_is_shown_in_show_and_log(tls_pooler, authority):
    pooler = tls_pooler("allow")
    tls_client(pooler, authority).login("app", "main").value("SELECT 1")
    pooler.client("alice").value("SELECT 1")
    shown = {row["user"]: row["tls"] for row in pooler.show("CLIENTS") if row["database"] == "main"}
    assert shown == {"app": "TLSv1.3/TLS_AES_128_GCM_SHA256", "alice": ""}
    pooler.wait_log("login attempt: db=main user=app tls=TLSv1.3/TLS_AES_128_GCM_SHA256 replication=no")
    pooler.wait_log("login attempt: db=main user=alice tls=no replication=no")


def test_request_inside_of_tls_ends_the_connection(tls_pooler, authority):
    pooler = tls_pooler()
    client = tls_client(pooler, authority)
    client.send(wire.ssl_request())
    client.closed()


@pytest.mark.parametrize("request_code", [wire.SSL_REQUEST, wire.GSSENC_REQUEST])
def test_bytes_sent_with_a_request_are_never_read(tls_pooler, request_code):  # CVE-2021-3935
    pooler = tls_pooler("allow")
    client = pooler.raw()
    client.send(wire.untyped(request_code), STARTUP)
    with pytest.raises((ServerError, Closed)) as error:
        client.finish_login("app")
    if error.type is ServerError:
        what = "SSL request" if request_code == wire.SSL_REQUEST else "GSSAPI encryption request"
        error.value.is_("FATAL", "08P01", f"received unencrypted data after {what}")
    assert not pooler.lines("login attempt")


def test_request_may_follow_a_refused_one(tls_pooler, authority):
    pooler = tls_pooler()
    client = pooler.raw()
    client.send(wire.gssenc_request())
    assert client.read_bytes(1) == b"N"
    assert ask(client) == b"S"
    assert encrypt(client, context_for(authority)).login("app", "main").value("SELECT 1") == "1"


def test_cancel_request_needs_no_tls(tls_pooler, authority, cluster):
    pooler = tls_pooler("require")
    client = tls_client(pooler, authority).login("app", "main")
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(wait_event="PgSleep"), 10, "the query to run")
    cancel(pooler.address, client.key)
    result = client.result()
    result.error.is_("ERROR", "57014", "canceling statement due to user request")


# --- direct TLS -------------------------------------------------------------------------------


@pytest.mark.parametrize("alpn", [["postgresql"], None, ["http/1.1", "postgresql"]])
def test_direct_tls(tls_pooler, authority, alpn):
    client = encrypt(tls_pooler().raw(), context_for(authority, alpn=alpn))
    assert client.login("app", "main").value("SELECT 1") == "1"
    assert client.socket.selected_alpn_protocol() == (alpn and "postgresql")


def test_direct_tls_with_another_protocol_is_refused(tls_pooler, authority):
    pooler = tls_pooler()
    with pytest.raises(ssl.SSLError, match="no application protocol"):
        encrypt(pooler.raw(), context_for(authority, alpn=["http/1.1"]))
    assert tls_client(pooler, authority).login("app", "main").value("SELECT 1") == "1"


def test_direct_tls_without_tls_is_garbage(tls_pooler, authority):
    pooler = tls_pooler("disable")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        encrypt(pooler.raw(), context_for(authority))


# --- failing handshakes -----------------------------------------------------------------------


def test_handshakes_that_never_end_are_dropped_in_time(tls_pooler, authority):
    pooler = tls_pooler(settings={"client_login_timeout": 1})
    silent = [pooler.raw() for _ in range(40)]
    for client in silent:
        assert ask(client) == b"S"
    for client in silent[::2]:
        client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
    assert tls_client(pooler, authority).login("app", "main").value("SELECT 1") == "1"
    for client in silent:
        client.closed(timeout=5)
    wait_until(lambda: not waiting_logins(pooler), 5, "logins to go")


def test_client_hello_of_64_kilobytes_is_refused(tls_pooler, authority):
    pooler = tls_pooler()
    client = pooler.raw()
    assert ask(client) == b"S"
    hello = b"\x01\x00\xff\xfc\x03\x03" + bytes(65530)
    with contextlib.suppress(ConnectionError):
        for at in range(0, len(hello), 16384):
            part = hello[at : at + 16384]
            client.send(b"\x16\x03\x01" + struct.pack("!H", len(part)), part)
    with contextlib.suppress(ConnectionError, AssertionError):
        client.read_all()
    assert tls_client(pooler, authority).login("app", "main").value("SELECT 1") == "1"


def test_handshake_may_come_byte_by_byte(tls_pooler, authority):
    pooler = tls_pooler()
    client = pooler.raw()
    assert ask(client) == b"S"
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context_for(authority).wrap_bio(incoming, outgoing, server_hostname=HOST)
    while True:
        with contextlib.suppress(ssl.SSLWantReadError):
            tls.do_handshake()
            break
        for byte in outgoing.read():
            client.send(bytes([byte]))
        incoming.write(client.socket.recv(65536))
    tls.write(STARTUP)
    for byte in outgoing.read():
        client.send(bytes([byte]))
    data = b""
    while not data.endswith(wire.ready()):
        incoming.write(client.socket.recv(65536))
        with contextlib.suppress(ssl.SSLWantReadError):
            data += tls.read(65536)
    assert data.startswith(wire.authentication(0))


@pytest.mark.parametrize("how", ["reset", "close"])
def test_clients_that_disconnect_in_the_handshake_leave_nothing(tls_pooler, authority, how):
    pooler = tls_pooler()
    for _ in range(20):
        client = pooler.raw()
        assert ask(client) == b"S"
        client.send(b"\x16\x03\x01\x02\x00\x01\x00")
        getattr(client, how)()
    wait_until(lambda: not waiting_logins(pooler), 5, "logins to go")
    assert not pooler.lines("WARNING|ERROR")


def test_client_that_closes_without_close_notify_is_not_logged(tls_pooler, authority):
    pooler = tls_pooler()
    client = tls_client(pooler, authority).login("app", "main")
    client.value("SELECT 1")
    client.send(wire.terminate())
    client.close()
    wait_until(lambda: not pooler.clients(), 5, "the client to go")
    assert not pooler.lines("WARNING|ERROR")


def test_no_renegotiation(tls_pooler):
    pooler = tls_pooler()
    done = subprocess.run(
        ["openssl", "s_client", "-starttls", "postgres", "-tls1_2", "-connect"]
        + [f"{HOST}:{pooler.port}"],
        input="R\n",
        capture_output=True,
        text=True,
        timeout=20,
    )
    assert "RENEGOTIATING" in done.stdout + done.stderr
    assert "no renegotiation" in done.stdout + done.stderr or done.returncode != 0


def test_no_session_tickets(tls_pooler, authority):
    client = tls_client(tls_pooler(), authority).login("app", "main")
    client.value("SELECT 1")
    assert not client.socket.session.has_ticket


# --- traffic ----------------------------------------------------------------------------------


def test_large_answers_and_queries(tls_pooler, authority):
    pooler = tls_pooler()
    client = tls_client(pooler, authority).login("app", "main")
    result = client.query("SELECT repeat('x', 1000) || i FROM generate_series(1, 20000) i")
    assert len(result.rows) == 20000 and result.rows[-1][0].endswith("x20000")
    assert client.value("SELECT length('" + "y" * 5_000_000 + "')") == "5000000"
    assert client.value("SELECT 1") == "1"


def test_slow_reader_blocks_no_other_client(tls_pooler, authority):
    pooler = tls_pooler()
    slow = tls_client(pooler, authority).login("app", "main")
    slow.send(wire.query("SELECT repeat('x', 1000) || i FROM generate_series(1, 60000) i"))
    other = tls_client(pooler, authority).login("app", "main")
    assert other.value("SELECT 1") == "1"
    result = slow.result()
    assert len(result.rows) == 60000


def test_pgbench_over_tls(tls_pooler, cluster, authority):
    pooler = tls_pooler(settings={"default_pool_size": 5})
    script = pooler.write("script.sql", "SELECT repeat('x', 500);\n")
    done = run(
        [program("pgbench"), "-h", HOST, "-p", str(pooler.port), "-U", "app", "-n", "-f", script]
        + ["-c", "20", "-t", "50", "-M", "extended", "main"],
        env={
            **os.environ,
            "HOME": pooler.folder,
            "PGSSLMODE": "verify-full",
            "PGSSLROOTCERT": authority.certificate,
        },
    )
    assert "number of transactions actually processed: 1000/1000" in done.stdout


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, cipher",
    [
        # setting: client_tls_protocols client_tls_ciphers client_tls13_ciphers
        ({"client_tls_protocols": "tlsv1.2"}, None),
        (
            {"client_tls_protocols": "tlsv1.2", "client_tls_ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384"},
            "ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
        ({"client_tls13_ciphers": "TLS_CHACHA20_POLY1305_SHA256"}, "TLS_CHACHA20_POLY1305_SHA256"),
        # setting: client_tls_ecdhcurve client_tls_dheparams
        ({"client_tls_ecdhcurve": "secp384r1", "client_tls_dheparams": "none"}, None),
    ],
)
def test_versions_ciphers_curves(tls_pooler, authority, settings, cipher):
    client = tls_client(tls_pooler(settings=settings), authority).login("app", "main")
    assert client.value("SELECT 1") == "1"
    if cipher:
        assert client.socket.cipher()[0] == cipher
    if "client_tls_protocols" in settings:
        assert client.socket.version() == "TLSv1.2"


def test_curve_that_the_client_does_not_know(tls_pooler, authority):
    pooler = tls_pooler(settings={"client_tls_ecdhcurve": "secp521r1"})
    context = context_for(authority)
    context.set_ecdh_curve("prime256v1")
    client = pooler.raw()
    assert ask(client) == b"S"
    with pytest.raises(ssl.SSLError):
        encrypt(client, context)


def test_version_that_is_too_old(tls_pooler, authority):
    pooler = tls_pooler(settings={"client_tls_protocols": "tlsv1.3"})
    with pytest.raises(ssl.SSLError):
        tls_client(pooler, authority, version=ssl.TLSVersion.TLSv1_2)


@pytest.mark.parametrize(
    "settings, text",
    [
        ({"client_tls_protocols": "legacy"}, "invalid client_tls_protocols: legacy"),
        ({"client_tls_ciphers": "NONE-SUCH"}, "invalid client_tls_ciphers: NONE-SUCH"),
        ({"client_tls13_ciphers": "NONE"}, "failed to set the TLSv1.3 cipher suites"),
        ({"client_tls_ecdhcurve": "round"}, "invalid client_tls_ecdhecurve: round"),
        ({"client_tls_dheparams": "legacy"}, "invalid client_tls_dheparams: legacy"),
        (
            {"client_tls_key_file": ""},
            "To allow TLS connections from clients, client_tls_key_file and "
            "client_tls_cert_file must be set.",
        ),
        ({"client_tls_ca_file": "/nonexistent"}, "TLS setup failed: failed to load CA: "),
        (
            {"client_tls_cert_file": "/nonexistent"},
            'TLS setup failed: failed to load certificate file "/nonexistent": No such file',
        ),
        (
            {"client_tls_key_file": "/nonexistent"},
            'TLS setup failed: failed to load private key file "/nonexistent": No such file',
        ),
        # setting: client_tls_crl_file
        ({"client_tls_crl_file": "/nonexistent"}, "TLS setup failed: failed to load CRL file"),
        (
            {"client_tls_sslmode": "verify-full", "client_tls_ca_file": ""},
            "client_tls_sslmode requires client_tls_ca_file",
        ),
        (
            {"auth_type": "cert"},
            "auth_type=cert requires client_tls_sslmode=SSLMODE_VERIFY_FULL",
        ),
        (
            {"auth_type": "cert", "client_tls_sslmode": "verify-full", "client_tls_ca_file": ""},
            "auth_type=cert requires client_tls_ca_file",
        ),
        # setting: server_tls_protocols server_tls_ciphers server_tls13_ciphers
        ({"server_tls_protocols": "tlsv9"}, "invalid server_tls_protocols: tlsv9"),
        ({"server_tls_ciphers": "NONE-SUCH"}, "invalid server_tls_ciphers: NONE-SUCH"),
        ({"server_tls13_ciphers": "NONE"}, "failed to set the TLSv1.3 cipher suites"),
    ],
)
def test_mistakes_are_fatal_and_named(tls_pooler, settings, text):
    pooler = tls_pooler(settings=settings, start=False)
    assert pooler.run_to_end() == 1
    assert text in pooler.log()
    pooler.allow("FATAL TLS setup failed")
    assert pooler.lines("FATAL TLS setup failed")
    checked = pooler.run_to_end("--check", stdout=open(pooler.path("out"), "wb"))
    assert checked == 1
    with open(pooler.path("out")) as file:
        assert text in file.read()


def test_key_of_another_certificate(tls_pooler, authority):
    pooler = tls_pooler(settings={"client_tls_key_file": authority.issue("x")[1]}, start=False)
    assert pooler.run_to_end() == 1
    assert pooler.lines("ERROR TLS setup failed: private/public key mismatch")
    pooler.allow("FATAL TLS setup failed")


def test_revoked_clients(tls_pooler, authority):
    good, bad = authority.issue("app"), authority.issue("app")
    pooler = tls_pooler("verify-ca", {"client_tls_crl_file": authority.revoke(bad[0])})
    assert tls_client(pooler, authority, good).login("app", "main").value("SELECT 1") == "1"
    with pytest.raises((ssl.SSLError, ConnectionError, Closed)):
        tls_client(pooler, authority, bad).login("app", "main")
    pooler.wait_log("TLS handshake error: certificate verify failed: certificate revoked")


# --- RELOAD and SET ---------------------------------------------------------------------------


def subject(client):
    """The common name of the certificate that the daemon shows to this client."""
    return dict(pair[0] for pair in client.socket.getpeercert()["subject"])["commonName"]


def test_reload_uses_new_certificates_and_closes_no_client(tls_pooler, authority, new_pooler):
    pooler = tls_pooler()
    pair = [pooler.write(name, open(path).read()) for name, path in zip(("crt", "key"), authority.issue("first", "IP:127.0.0.1"))]
    pooler.settings.update(client_tls_cert_file=pair[0], client_tls_key_file=pair[1])
    pooler.write_config()
    pooler.command("RELOAD")
    old = tls_client(pooler, authority).login("app", "main")
    assert subject(old) == "first"
    # The same names, other contents: read again without a changed setting.
    for name, path in zip(("crt", "key"), authority.issue("second", "IP:127.0.0.1")):
        pooler.write(name, open(path).read())
    pooler.command("RELOAD")
    assert old.value("SELECT 1") == "1"
    assert subject(tls_client(pooler, authority)) == "second"
    # A broken file is refused and reported, and the former one remains in force.
    pooler.write("crt", "-----BEGIN NOTHING-----\n")
    with pytest.raises(ServerError) as error:
        pooler.command("RELOAD")
    error.value.is_("ERROR", "F0000", "RELOAD failed, see logs for additional details")
    pooler.wait_log("ERROR TLS setup failed: failed to load certificate file")
    pooler.wait_log("TLS configuration could not be reloaded, keeping old configuration")
    assert old.value("SELECT 1") == "1"
    assert subject(tls_client(pooler, authority)) == "second"


def test_certificates_replaced_under_load(tls_pooler, authority):
    pooler = tls_pooler(settings={"default_pool_size": 3})
    pairs = [authority.issue(f"n{i}", "IP:127.0.0.1") for i in range(2)]
    env = {**os.environ, "PGSSLMODE": "verify-full", "PGSSLROOTCERT": authority.certificate}
    script = pooler.write("script.sql", "SELECT 1;\n")
    load = subprocess.Popen(
        [program("pgbench"), "-h", HOST, "-p", str(pooler.port), "-U", "app", "-n", "-f", script]
        + ["-c", "8", "-C", "-T", "3", "main"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    swaps = 0
    while load.poll() is None:
        crt, key = pairs[swaps % 2]
        pooler.settings.update(client_tls_cert_file=crt, client_tls_key_file=key)
        pooler.write_config()
        pooler.command("RELOAD")
        swaps += 1
    assert load.returncode == 0, load.stdout.read()
    assert "number of failed transactions: 0" in load.stdout.read()
    assert swaps >= 4


def test_set_reports_settings_that_cannot_be_applied(tls_pooler, authority):
    pooler = tls_pooler()
    other = authority.issue("other", "IP:127.0.0.1")
    result = pooler.command(f"SET client_tls_key_file = '{other[1]}'")
    assert [notice["M"] for notice in result.notices] == [
        "TLS settings could not be applied, still using old configuration"
    ]
    assert subject(tls_client(pooler, authority)) == "pooler"
    # The setting keeps its value, and the one that completes the pair applies both.
    result = pooler.command(f"SET client_tls_cert_file = '{other[0]}'")
    assert not result.notices
    assert subject(tls_client(pooler, authority)) == "other"


def test_set_of_the_mode(tls_pooler, authority):
    pooler = tls_pooler("disable")
    assert ask(pooler.raw()) == b"N"
    pooler.command("SET client_tls_sslmode = 'require'")
    assert tls_client(pooler, authority).login("app", "main").value("SELECT 1") == "1"
    pooler.refused().is_("FATAL", "28000", "SSL required")


# --- authentication ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, names, good",
    [
        ("app", "", True),
        ("App", "", False),
        ("other", "DNS:app", True),
        ("other", "DNS:APP", False),
        ("other", "DNS:*.app", False),
        ("ap", "", False),
        ("", "", False),
    ],
)
def test_certificates_name_their_users(tls_pooler, authority, name, names, good):
    # setting: auth_type
    pooler = tls_pooler("verify-full", {"auth_type": "cert"})
    client = tls_client(pooler, authority, authority.issue(name, names))
    if good:
        assert client.login("app", "main").value("SELECT 1") == "1"
        return
    with pytest.raises(ServerError) as error:
        client.login("app", "main")
    error.value.is_("FATAL", "28000", "certificate authentication failed")


def test_certificate_of_an_unknown_user(tls_pooler, authority):
    pooler = tls_pooler("verify-full", {"auth_type": "cert"})
    with pytest.raises(ServerError) as error:
        tls_client(pooler, authority, authority.issue("ghost")).login("ghost", "main")
    error.value.is_("FATAL", "28000", "certificate authentication failed")
    pooler.wait_log("no such user: ghost")


def test_certificate_of_a_user_that_is_looked_up_and_has_no_secret(tls_pooler, authority):
    settings = {"auth_user": "app", "auth_query": "SELECT $1::text, NULL WHERE $1::text = 'bob'"}
    pooler = tls_pooler("verify-full", {"auth_type": "cert", **settings}, auth={"bob": None})
    client = tls_client(pooler, authority, authority.issue("bob")).login("bob", "main")
    assert client.value("SELECT current_user") == "bob"
    with pytest.raises(ServerError) as error:
        tls_client(pooler, authority, authority.issue("alice")).login("bob", "main")
    error.value.is_("FATAL", "28000", "certificate authentication failed")
    with pytest.raises(ServerError) as error:
        tls_client(pooler, authority, authority.issue("ghost")).login("ghost", "main")
    error.value.is_("FATAL", "28000", "no such user")


def test_certificate_over_a_unix_socket(tls_pooler, authority):
    pooler = tls_pooler("verify-full", {"auth_type": "cert"})
    pooler.refused(unix=True).is_("FATAL", "28000", "certificate authentication failed")
    pooler.wait_log("TLS connection required")


@pytest.mark.parametrize("binding", ["require", "prefer", "disable"])
def test_scram_with_channel_binding(tls_pooler, cluster, binding):
    pooler = tls_pooler(
        settings={"auth_type": "scram-sha-256"},
        auth={"scram_login": cluster.secret("scram_login"), "app": "plain"},
    )
    for user, password in (("scram_login", "scram secret"), ("app", "plain")):
        with pooler.connect(
            user=user, password=password, sslmode="require", channel_binding=binding
        ) as connection:
            assert connection.execute("SELECT 1").fetchone()[0] == 1


def test_channel_binding_is_not_available_without_tls(new_pooler):
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"app": "plain"})
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        pooler.connect(password="plain", sslmode="disable", channel_binding="require")


def test_client_that_was_offered_no_binding_and_uses_it_is_refused(tls_pooler, authority):
    pooler = tls_pooler(settings={"auth_type": "scram-sha-256"}, auth={"app": "plain"})
    client = tls_client(pooler, authority)
    client.send(STARTUP)
    kind, body = client.read()
    assert kind == "R" and body[4:] == b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"
    first = b"y,,n=,r=abcdefghijklmnop"
    client.send(wire.message("p", b"SCRAM-SHA-256\0" + struct.pack("!I", len(first)) + first))
    with pytest.raises(ServerError) as error:
        client.finish_login("app")
    error.value.is_("FATAL", "28P01", "SASL authentication failed")


# --- towards servers --------------------------------------------------------------------------


@pytest.fixture(scope="session")
def tls_cluster(authority):
    """A PostgreSQL with TLS, known as 127.0.0.1 and localhost.example.com."""
    crt, key = authority.issue("db.example.com", "DNS:db.example.com,IP:127.0.0.1")
    made = Cluster(
        {
            "ssl": "on",
            "ssl_cert_file": f"'{crt}'",
            "ssl_key_file": f"'{key}'",
            "ssl_ca_file": f"'{authority.certificate}'",
        }
    )
    hba = os.path.join(made.data, "pg_hba.conf")
    with open(hba) as file:
        rules = file.read()
    with open(hba, "w") as file:
        file.write("hostssl all carol 127.0.0.1/32 trust clientcert=verify-full\n")
        file.write("host all carol 127.0.0.1/32 reject\n")
        file.write(rules)
    own(hba)
    made.sql("SELECT pg_reload_conf()")
    yield made
    made.destroy()


def encrypted(pooler, user="app"):
    """Whether the server connection that this query runs on is encrypted."""
    client = pooler.client(user)
    return client.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == "t"


@pytest.mark.parametrize("length", [60_000, 70_000, 90_000, 130_000, 200_000])
def test_a_long_statement_arrives_in_parts(tls_pooler, authority, tls_cluster, length):
    pooler = tls_pooler(
        settings={"server_tls_sslmode": "require"},
        databases={"main": f"host={HOST} port={tls_cluster.port}"},
    )
    sql = f"SELECT length('{'x' * length}')"
    for cut in (length // 2, 65_600, length - 10):
        client = tls_client(pooler, authority).login("app", "main")
        message = wire.parse(sql, "long") + wire.bind((), "long") + wire.execute() + wire.sync()
        client.send(message[:cut])
        wait_until(lambda: unread_by_peer(client.socket) == 0, 5, "the first part to be received")
        client.send(message[cut:])
        assert client.result().rows == [(str(length),)]


def test_suspend_with_a_part_of_a_message(tls_pooler, authority):
    pooler = tls_pooler()
    client = tls_client(pooler, authority).login("app", "main")
    message = wire.query("SELECT 1")
    client.send(message[:7])
    wait_until(lambda: unread_by_peer(client.socket) == 0, 5, "the part to be received")
    console = pooler.console()
    console.send(wire.query("SUSPEND"))
    client.send(message[7:] + wire.query("SELECT 2"))
    assert console.result().tag == "SUSPEND"
    console.query("RESUME")
    assert client.result().rows == [("1",)]
    assert client.result().rows == [("2",)]


def test_a_cancel_request_reaches_a_server_by_tls(tls_pooler, authority, tls_cluster):
    pooler = tls_pooler(
        settings={"server_tls_sslmode": "require"},
        databases={"main": f"host={HOST} port={tls_cluster.port}"},
    )
    client = tls_client(pooler, authority).login("app", "main")
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: tls_cluster.backends(wait_event="PgSleep"), 10, "the query to run")
    cancel(pooler.address, client.key)
    client.result().error.is_("ERROR", "57014", "canceling statement due to user request")


def server_pooler(new_pooler, cluster, mode, **settings):
    """A daemon before that cluster with this server_tls_sslmode."""
    return new_pooler(
        {
            "pool_mode": "transaction",
            "server_login_retry": "0.2",
            "query_wait_timeout": 2,
            "server_tls_sslmode": mode,
            **settings,
        },
        cluster=cluster,
    )


@pytest.mark.parametrize("mode", [None, "disable", "allow", "prefer", "require", "verify-ca", "verify-full"])
def test_modes_of_servers(new_pooler, cluster, tls_cluster, authority, mode):
    # setting: server_tls_sslmode server_tls_ca_file
    settings = {"server_tls_ca_file": authority.certificate}
    pooler = server_pooler(new_pooler, tls_cluster, mode, **settings)
    assert encrypted(pooler) == (mode != "disable")
    (shown,) = [row["tls"] for row in pooler.show("SERVERS")]
    assert shown.startswith("TLSv1.3/TLS_") if mode != "disable" else shown == ""
    clear = server_pooler(new_pooler, cluster, mode, **settings)
    if mode in (None, "disable", "allow", "prefer"):
        assert not encrypted(clear)
    else:
        assert clear.refused().text in ("query_wait_timeout", "client_login_timeout (server down)")
        clear.wait_log("closing because: server refused SSL")


def test_unix_sockets_are_never_encrypted(new_pooler, tls_cluster):
    pooler = new_pooler(
        {"server_tls_sslmode": "verify-full"},
        databases={"main": {"host": tls_cluster.socket_folder, "port": tls_cluster.port}},
        cluster=tls_cluster,
    )
    assert not encrypted(pooler)


@pytest.mark.parametrize("mode", ["require", "verify-ca", "verify-full"])
def test_server_of_an_unknown_authority(new_pooler, tls_cluster, unknown_authority, mode):
    pooler = server_pooler(
        new_pooler, tls_cluster, mode, server_tls_ca_file=unknown_authority.certificate
    )
    if mode == "require":
        assert encrypted(pooler)
        return
    assert pooler.refused().text == "query_wait_timeout"
    pooler.wait_log("WARNING .*TLS handshake error: certificate verify failed")
    assert not tls_cluster.backends(usename="app")


@pytest.mark.parametrize(
    "host, mode, good",
    [("127.0.0.1", "verify-full", True), ("localhost", "verify-full", False), ("localhost", "verify-ca", True)],
)
def test_name_of_the_server_is_checked(new_pooler, tls_cluster, authority, host, mode, good):
    pooler = new_pooler(
        {
            "server_tls_sslmode": mode,
            "server_tls_ca_file": authority.certificate,
            "query_wait_timeout": 2,
            "server_login_retry": "0.2",
        },
        databases={"main": {"host": host, "port": tls_cluster.port}},
        cluster=tls_cluster,
    )
    if good:
        assert encrypted(pooler)
        return
    assert pooler.refused().text == "query_wait_timeout"
    pooler.wait_log("TLS handshake error: name `localhost' not present in server certificate")


def test_certificate_that_the_pooler_shows_to_servers(new_pooler, tls_cluster, authority):
    # setting: server_tls_cert_file server_tls_key_file
    crt, key = authority.issue("carol")
    pooler = server_pooler(
        new_pooler, tls_cluster, "require", server_tls_cert_file=crt, server_tls_key_file=key
    )
    assert encrypted(pooler, "carol")
    other = server_pooler(new_pooler, tls_cluster, "require")
    assert "client certificate" in other.refused("carol").text


def test_revoked_server(new_pooler, tls_cluster, authority):
    # setting: server_tls_crl_file
    mine = Authority("Own CA")
    try:
        crt, key = mine.issue("db", "IP:127.0.0.1")
        cluster = Cluster({"ssl": "on", "ssl_cert_file": f"'{crt}'", "ssl_key_file": f"'{key}'"})
        try:
            settings = {"server_tls_ca_file": mine.certificate}
            empty = mine.revoke()
            good = server_pooler(
                new_pooler, cluster, "verify-full", server_tls_crl_file=empty, **settings
            )
            assert encrypted(good)
            mine.revoke(crt)
            bad = server_pooler(
                new_pooler, cluster, "verify-full", server_tls_crl_file=empty, **settings
            )
            assert bad.refused().text == "query_wait_timeout"
            bad.wait_log("TLS handshake error: certificate verify failed: certificate revoked")
        finally:
            cluster.destroy()
    finally:
        mine.destroy()


@pytest.mark.parametrize(
    "settings, shown",
    [
        ({"server_tls_protocols": "tlsv1.2", "server_tls_ciphers": "ECDHE-ECDSA-AES256-GCM-SHA384"},
         "TLSv1.2/ECDHE-ECDSA-AES256-GCM-SHA384"),
        ({"server_tls13_ciphers": "TLS_CHACHA20_POLY1305_SHA256"}, "TLSv1.3/TLS_CHACHA20_POLY1305_SHA256"),
    ],
)  # fmt: skip
def test_versions_and_ciphers_towards_servers(new_pooler, tls_cluster, settings, shown):
    pooler = server_pooler(new_pooler, tls_cluster, "require", **settings)
    assert encrypted(pooler)
    assert [row["tls"] for row in pooler.show("SERVERS")] == [shown]


def test_scram_towards_a_server_uses_channel_binding(new_pooler, tls_cluster):
    tls_cluster.sql("SET password_encryption = 'scram-sha-256'")
    pooler = new_pooler(
        {"server_tls_sslmode": "require", "auth_type": "scram-sha-256"},
        auth={"scram_login": tls_cluster.secret("scram_login")},
        cluster=tls_cluster,
    )
    client = pooler.client("scram_login", password="scram secret")
    assert client.value("SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()") == "t"


def test_large_data_through_tls_on_both_sides(tls_pooler, tls_cluster, authority):
    pooler = tls_pooler(settings={"server_tls_sslmode": "require"}, cluster=tls_cluster)
    client = tls_client(pooler, authority).login("app", "main")
    result = client.query("SELECT repeat('x', 1000) || i FROM generate_series(1, 20000) i")
    assert len(result.rows) == 20000 and result.rows[-1][0].endswith("x20000")
    assert client.value("SELECT length('" + "y" * 5_000_000 + "')") == "5000000"
    assert [row["tls"] != "" for row in pooler.show("SERVERS")] == [True]


@pytest.mark.parametrize(
    "answer, reason",
    [
        (b"S" + wire.error("57000", "gotcha", "FATAL"), "received unencrypted data after SSL response"),
        (b"X", "bad sslreq answer"),
        (b"NN", "bad sslreq answer"),
        (b"N", "server refused SSL"),
        (b"Sgarbage" * 10, "received unencrypted data after SSL response"),
    ],
)
def test_unexpected_answers_to_the_request(new_pooler, new_server, answer, reason):
    def script(connection):
        connection.read_bytes(8)
        connection.send(answer)
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"server_tls_sslmode": "require", "query_wait_timeout": 1},
        databases={"main": {"host": HOST, "port": server.port}},
    )
    assert pooler.refused().text == "query_wait_timeout"
    pooler.wait_log(f"closing because: {reason}")


def test_server_that_accepts_tls_and_then_sends_nonsense(new_pooler, new_server):
    def script(connection):
        connection.read_bytes(8)
        connection.send(b"S")
        connection.read_bytes(5)
        connection.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler(
        {"server_tls_sslmode": "prefer", "query_wait_timeout": 1},
        databases={"main": {"host": HOST, "port": server.port}},
    )
    assert pooler.refused().text == "query_wait_timeout"
    pooler.wait_log("WARNING .*TLS handshake error: ")


def test_direct_negotiation_with_servers(new_pooler, authority):
    # setting: server_tls_negotiation
    crt, key = authority.issue("db", "IP:127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    context.set_alpn_protocols(["postgresql"])
    listener = socket.create_server((HOST, 0))
    pooler = new_pooler(
        {
            "server_tls_sslmode": "verify-full",
            "server_tls_ca_file": authority.certificate,
            "server_tls_negotiation": "direct",
        },
        databases={"main": {"host": HOST, "port": listener.getsockname()[1]}},
    )
    waiting = pooler.raw().send(STARTUP)
    with contextlib.closing(listener):
        plain, _ = listener.accept()
        plain.settimeout(10)
        server = context.wrap_socket(plain, server_side=True)
        assert server.selected_alpn_protocol() == "postgresql"
        length, version = struct.unpack("!II", server.recv(8))
        assert version == wire.PROTOCOL_3_0
        server.recv(length - 8)
        server.sendall(
            wire.authentication(0)
            + b"".join(wire.parameter_status(*each) for each in PARAMETERS)
            + wire.backend_key(1, b"1234")
            + wire.ready()
        )
        waiting.finish_login("app")
        server.close()


def test_name_is_always_sent(new_pooler, authority):
    names = []
    crt, key = authority.issue("db")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(crt, key)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    listener = socket.create_server((HOST, 0))
    pooler = new_pooler(
        {"server_tls_sslmode": "prefer", "server_tls_negotiation": "direct"},
        databases={"main": {"host": "localhost", "port": listener.getsockname()[1]}},
    )
    pooler.raw().send(STARTUP)
    with contextlib.closing(listener):
        plain, _ = listener.accept()
        plain.settimeout(10)
        context.wrap_socket(plain, server_side=True).close()
    assert names == ["localhost"]


def test_changed_settings_retire_servers_and_unchanged_ones_do_not(
    new_pooler, tls_cluster, authority
):
    pooler = server_pooler(new_pooler, tls_cluster, "require")
    client = pooler.client()
    pid = client.value("SELECT pg_backend_pid()")
    pooler.command("RELOAD")
    assert client.value("SELECT pg_backend_pid()") == pid
    pooler.settings["server_tls13_ciphers"] = "TLS_AES_256_GCM_SHA384"
    pooler.write_config()
    pooler.command("RELOAD")
    assert client.value("SELECT pg_backend_pid()") == pid
    client.query("BEGIN")
    pooler.settings["server_tls_ca_file"] = authority.certificate
    pooler.write_config()
    pooler.command("RELOAD")
    assert client.value("SELECT pg_backend_pid()") == pid, "never in a transaction"
    client.query("COMMIT")
    assert client.value("SELECT pg_backend_pid()") != pid
    assert [row["tls"] for row in pooler.show("SERVERS")] == ["TLSv1.3/TLS_AES_256_GCM_SHA384"]


def test_missing_file_for_servers_is_reported_when_it_is_needed(new_pooler, tls_cluster, authority):
    pooler = server_pooler(
        new_pooler, tls_cluster, "verify-ca", server_tls_ca_file="/nonexistent/ca"
    )
    pooler.wait_log("ERROR TLS setup failed: failed to load CA: /nonexistent/ca")
    assert pooler.refused().text == "query_wait_timeout"
    pooler.settings["server_tls_ca_file"] = authority.certificate
    pooler.write_config()
    pooler.command("RELOAD")
    assert encrypted(pooler)


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_direct_negotiation_with_postgresql_17_and_later(new_pooler, tls_cluster, authority, mode):
    # setting: server_tls_negotiation
    pooler = server_pooler(
        new_pooler, tls_cluster, mode,
        server_tls_ca_file=authority.certificate, server_tls_negotiation="direct",
    )  # fmt: skip
    if int(tls_cluster.value("SHOW server_version_num")) >= 170000:
        assert encrypted(pooler)
    else:
        assert pooler.refused().text == "query_wait_timeout", "an older one does not know it"
