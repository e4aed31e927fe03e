# SPDX-License-Identifier: ISC
"""libpq 18: direct TLS, protocol 3.2, required channel binding."""

import pytest

from support.clients.libpq import Libpq, Refused, version
from support.process import HOST, wait_until
from support.servers.certificates import Authority

pytestmark = pytest.mark.skipif(
    version() < 180000, reason="no libpq of PostgreSQL 18 (PGUSHER_TEST_LIBPQ)"
)

SLEEP = "SELECT pg_sleep(30)"
PASSWORD = "app's secret"


@pytest.fixture(scope="module")
def authority():
    """The authority that issued the daemon's certificate."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture
def tls_pooler(new_pooler, authority):
    """Make a daemon that offers TLS: tls_pooler(auth_type)."""
    certificate, key = authority.issue("pooler", "IP:127.0.0.1")

    def make(auth_type="trust", mode="require"):
        return new_pooler(
            {
                "pool_mode": "transaction",
                "auth_type": auth_type,
                "client_tls_sslmode": mode,
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            },
            auth={"app": PASSWORD, "admin": PASSWORD},
        )

    return make


@pytest.fixture
def connect(authority):
    """Connect to a daemon: connect(pooler, sslnegotiation="direct")."""

    def make(pooler, **parameters):
        given = {"user": "app", "dbname": "main", "connect_timeout": 15, **parameters}
        if given.get("sslmode") == "verify-full":
            given["sslrootcert"] = authority.certificate
        return pooler.keep(Libpq(host=HOST, port=pooler.port, **given))

    return make


def tls_of(pooler):
    """What SHOW CLIENTS has about the encryption of the only client."""
    (row,) = pooler.clients()
    return row["tls"]


# --- direct TLS -------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["require", "verify-full"])
def test_direct_tls(tls_pooler, connect, mode):
    pooler = tls_pooler()
    client = connect(pooler, sslmode=mode, sslnegotiation="direct")
    assert client.ask("SELECT 'direct'") == ["direct"]
    assert tls_of(pooler).startswith("TLSv1.3/")


def test_direct_tls_is_refused_without_tls(new_pooler, connect):
    pooler = new_pooler({"pool_mode": "transaction"})
    with pytest.raises(Refused, match="SSL|closed"):
        connect(pooler, sslmode="require", sslnegotiation="direct")
    assert connect(pooler, sslmode="disable").ask("SELECT 1") == ["1"]


def test_a_cancel_of_a_direct_client(tls_pooler, connect):
    pooler = tls_pooler()
    client = connect(pooler, sslmode="verify-full", sslnegotiation="direct")
    assert cancelled(pooler, client) == "57014"
    assert client.ask("SELECT 'goes on'") == ["goes on"]


def cancelled(pooler, client):
    """How a query ends that is cancelled while it runs."""
    client.ask(f"begin {SLEEP}")
    wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
    return client.ask("cancel")


# --- channel binding --------------------------------------------------------------------------


@pytest.mark.parametrize("negotiation", ["postgres", "direct"])
def test_required_channel_binding_is_used(tls_pooler, connect, negotiation):
    pooler = tls_pooler("scram-sha-256")
    options = {"sslmode": "verify-full", "sslnegotiation": negotiation}
    client = connect(
        pooler, password=PASSWORD, channel_binding="require", require_auth="scram-sha-256", **options
    )
    assert client.ask("SELECT 'bound'") == ["bound"]
    with pytest.raises(Refused, match="password authentication failed|SASL authentication failed"):
        connect(pooler, password="wrong", channel_binding="require", **options)


@pytest.mark.parametrize("auth_type", ["trust", "plain", "md5"])
def test_required_channel_binding_fails_where_it_is_not_offered(tls_pooler, connect, auth_type):
    pooler = tls_pooler(auth_type)
    options = {"sslmode": "require", "password": PASSWORD}
    with pytest.raises(Refused, match="channel binding required"):
        connect(pooler, channel_binding="require", **options)
    assert connect(pooler, **options).ask("SELECT 1") == ["1"]


def test_channel_binding_needs_tls(tls_pooler, connect):
    pooler = tls_pooler("scram-sha-256", "allow")
    options = {"sslmode": "disable", "password": PASSWORD}
    with pytest.raises(Refused, match="channel binding"):
        connect(pooler, channel_binding="require", **options)
    assert connect(pooler, **options).ask("SELECT 1") == ["1"]


# --- protocol 3.2 -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, spoken",
    [
        ({}, 30000),
        ({"max_protocol_version": "3.0"}, 30000),
        ({"max_protocol_version": "latest"}, 30002),
        ({"min_protocol_version": "3.2", "max_protocol_version": "3.2"}, 30002),
    ],
)
def test_the_protocol_version_that_is_negotiated(pooler, connect, options, spoken):
    client = connect(pooler, **options)
    assert client.protocol == spoken
    assert client.ask("SELECT 'well'") == ["well"]


@pytest.mark.parametrize("asked", ["3.0", "latest"])
@pytest.mark.parametrize("negotiation", [None, "postgres", "direct"])
def test_a_cancel_with_the_key_of_each_protocol(tls_pooler, connect, asked, negotiation):
    pooler = tls_pooler(mode="allow")
    options = {"sslmode": "disable"}
    if negotiation:
        options = {"sslmode": "require", "sslnegotiation": negotiation}
    client, other = (connect(pooler, max_protocol_version=asked, **options) for _ in "ab")
    other.ask(f"begin {SLEEP}, 'other'")
    wait_until(lambda: pooler.cluster.backends(state="active", query=f"{SLEEP}, 'other'"))
    assert cancelled(pooler, client) == "57014"
    assert client.ask("SELECT 'goes on'") == ["goes on"]
    assert pooler.cluster.backends(state="active", query=f"{SLEEP}, 'other'")
    assert other.ask("cancel") == "57014"


def test_the_console_supports_protocol_3_2_too(pooler, connect):
    client = connect(pooler, user="admin", dbname="pgbouncer", max_protocol_version="latest")
    assert client.protocol == 30002
    assert client.ask("SHOW VERSION")[0].startswith("PgBouncer ")


def test_everything_at_once(tls_pooler, connect):
    pooler = tls_pooler("scram-sha-256")
    client = connect(
        pooler,
        sslmode="verify-full",
        sslnegotiation="direct",
        channel_binding="require",
        require_auth="scram-sha-256",
        min_protocol_version="3.2",
        max_protocol_version="latest",
        password=PASSWORD,
    )
    assert client.protocol == 30002
    assert client.ask("SELECT count(*) FROM generate_series(1, 100000)") == ["100000"]
    assert cancelled(pooler, client) == "57014"
