# SPDX-License-Identifier: ISC
"""Which host of a list serves a client: roles that are asked for, load_balance_hosts, ports, watches.

What clients notice when hosts move is in test_failover.
"""

import contextlib
from collections import Counter

import psycopg
import pytest

from support.process import stays, wait_until
from support.servers.cluster import SHARED_FOLDER, Cluster

PLACE = "SELECT host(inet_server_addr())"


@pytest.fixture(scope="module")
def stranger():
    """A PostgreSQL with a system identifier of its own: other clusters are copies of one."""
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv(SHARED_FOLDER, raising=False)
        cluster = Cluster()
    yield cluster
    cluster.destroy()


@pytest.fixture
def routed(new_pooler, pair):
    """Make a daemon whose database has both hosts: routed(KEY=VALUE, settings={})."""

    def make(settings=None, hosts=None, **keys):
        hosts = hosts or ",".join(member.host for member in pair)
        entry = {"host": hosts, "port": pair[0].port, "dbname": "main", **keys}
        return new_pooler(
            {
                "pool_mode": "transaction",
                "default_pool_size": 8,
                "server_login_retry": "1",
                **(settings or {}),
            },
            databases={"main": entry},
        )

    return make


def place_of(client):
    """The address of the server that serves this client now."""
    return client.execute(PLACE).fetchone()[0]


@contextlib.contextmanager
def held(pooler, count, **options):
    """The addresses of the servers of so many clients, which keep theirs meanwhile."""
    with contextlib.ExitStack() as stack:
        found = Counter()
        for _ in range(count):
            client = stack.enter_context(pooler.connect(**options))
            client.autocommit = False
            found[place_of(client)] += 1
        yield found


# --- roles ------------------------------------------------------------------------------------


@pytest.mark.setting("target_session_attrs", "databases.target_session_attrs")
def test_role_of_the_database_goes_before_that_of_the_settings(routed, pair):
    primary, standby = pair
    pooler = routed(settings={"target_session_attrs": "standby"})
    with held(pooler, 3) as found:
        assert found == {standby.host: 3}
    pooler = routed(settings={"target_session_attrs": "standby"}, target_session_attrs="primary")
    with held(pooler, 3) as found:
        assert found == {primary.host: 3}


@pytest.mark.parametrize("name", ["pgusher.target_session_attrs", "target_session_attrs"])
def test_client_asks_for_a_role_in_its_options(routed, pair, name):
    primary, standby = pair
    pooler = routed(target_session_attrs="read-write")
    with pooler.connect(options=f"-c {name}=standby") as reader, pooler.connect() as writer:
        for _ in range(3):
            assert place_of(reader) == standby.host
            assert place_of(writer) == primary.host
        pools = {row["database"] for row in pooler.show("POOLS")}
        assert {"main", "main:standby"} <= pools
        assert {row["database"] for row in pooler.show("CLIENTS", user="app")} == {"main"}


def test_client_that_asks_for_no_role_at_all_is_refused(routed):
    pooler = routed()
    with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter in options"):
        pooler.connect(options="-c pgusher.target_session_attrs=master")


def test_role_that_a_client_asked_for_is_kept_by_a_restart(routed, pair):
    primary, standby = pair
    pooler = routed()
    with (
        pooler.connect(options="-c pgusher.target_session_attrs=primary") as writer,
        pooler.connect(options="-c pgusher.target_session_attrs=standby") as reader,
    ):
        assert (place_of(writer), place_of(reader)) == (primary.host, standby.host)
        pooler.take_over()
        for _ in range(3):
            assert (place_of(writer), place_of(reader)) == (primary.host, standby.host)


@pytest.mark.setting("server_check_role")
@pytest.mark.parametrize("when", ["always", "login"])
def test_role_is_asked_before_each_use_if_that_is_wanted(routed, pair, when):
    primary, _ = pair
    pooler = routed(
        settings={
            "host_check_interval": "0",
            "server_check_delay": "0",
            "server_check_query": "",
            "server_check_role": when,
            "server_failover_check": "0",
            "query_wait_timeout": "2",
        },
        target_session_attrs="read-write",
    )
    with pooler.connect() as client:
        client.execute("INSERT INTO written VALUES (1)")
        primary.set("default_transaction_read_only", "on")
        try:
            with pytest.raises(psycopg.Error) as caught:
                client.execute("INSERT INTO written VALUES (2)")
        finally:
            primary.set("default_transaction_read_only", "off")
        refused_by_server = caught.value.sqlstate == "25006"
        assert refused_by_server == (when == "login")


# --- which host -------------------------------------------------------------------------------


@pytest.mark.setting("load_balance_hosts", "databases.load_balance_hosts")
def test_least_connections_fills_the_host_with_fewer(routed, pair):
    primary, standby = pair
    pooler = routed(settings={"load_balance_hosts": "least-connections"})
    with held(pooler, 6) as found:
        assert found == {primary.host: 3, standby.host: 3}
    rows = {row["host"]: int(row["connections"]) for row in pooler.show("HOSTS")}
    assert rows[primary.host] == rows[standby.host]
    assert {row["load_balance_hosts"] for row in pooler.show("DATABASES", name="main")} == {
        "least-connections"
    }


def test_random_uses_each_host(routed, pair):
    pooler = routed(load_balance_hosts="random", pool_size=40)
    with held(pooler, 20) as found:
        assert set(found) == {member.host for member in pair}


@pytest.mark.setting("databases.port")
def test_each_host_of_a_list_may_have_a_port_of_its_own(routed, pair, cluster):
    primary, _ = pair
    pooler = routed(
        hosts=f"127.0.0.1,{primary.host}",
        port=f"{cluster.port},{primary.port}",
        load_balance_hosts="round-robin",
    )
    with held(pooler, 4) as found:
        assert found == {"127.0.0.1": 2, primary.host: 2}
    rows = {(row["host"], int(row["port"])) for row in pooler.show("HOSTS")}
    assert rows == {("127.0.0.1", cluster.port), (primary.host, primary.port)}


@pytest.mark.setting("host_identity_check")
@pytest.mark.parametrize("check", ["1", "0"])
def test_hosts_of_another_system_are_not_mixed_in(routed, pair, stranger, check):
    primary, _ = pair
    pooler = routed(
        settings={"host_identity_check": check, "host_check_interval": "0.3"},
        hosts=f"{primary.host},127.0.0.1",
        port=f"{primary.port},{stranger.port}",
        target_session_attrs="primary",
    )
    with pooler.connect() as client:
        assert place_of(client) == primary.host
        pooler.wait_log(r"ERROR database main: host 127\.0\.0\.1:\d+ is of another PostgreSQL system")
        with held(pooler, 4) as found:
            assert ("127.0.0.1" in found) == (check == "0")


def test_client_that_waits_in_vain_is_told_what_the_hosts_said(routed, pair):
    _, standby = pair
    pooler = routed(
        settings={"query_wait_timeout": "1.5"},
        hosts=f"{standby.host},127.0.1.99",
        target_session_attrs="primary",
    )
    with pytest.raises(psycopg.OperationalError) as caught:
        pooler.connect()
    port = standby.port
    assert "query_wait_timeout" in str(caught.value)
    assert f"{standby.host}:{port} is a standby" in str(caught.value)
    assert f"127.0.1.99:{port} cannot be used: connect failed" in str(caught.value)


# --- watching ---------------------------------------------------------------------------------


def watched(pooler):
    """The hosts to which the daemon has a connection of its own."""
    return {row["host"] for row in pooler.show("HOSTS") if row["watched"] == "1"}


@pytest.mark.setting("host_check_interval")
def test_hosts_are_watched_while_the_database_has_clients(routed, pair):
    primary, standby = pair
    pooler = routed(settings={"host_check_interval": "0.2"}, target_session_attrs="primary")
    with pooler.connect() as client:
        assert place_of(client) == primary.host
        wait_until(lambda: watched(pooler) == {primary.host, standby.host}, what="both watched")
        wait_until(lambda: pooler.show("HOSTS", host=standby.host, role="standby", state="up"))
        wait_until(lambda: int(pooler.show("HOSTS", host=primary.host)[0]["timeline"]) > 0)
        (pool,) = pooler.show("POOLS", database="main")
        assert int(pool["sv_idle"]) == 1
    wait_until(lambda: not watched(pooler), what="the watches to end")
    pooler = routed(settings={"host_check_interval": "0"}, target_session_attrs="primary")
    with pooler.connect() as client:
        assert place_of(client) == primary.host
        stays(lambda: not watched(pooler), 1)


def test_pause_ends_the_watches_and_resume_begins_them_again(routed, pair):
    pooler = routed(target_session_attrs="primary")
    with pooler.connect() as client:
        place_of(client)
        wait_until(lambda: len(watched(pooler)) == 2, what="both watched")
        pooler.command("PAUSE main")
        assert not watched(pooler)
        wait_until(lambda: not pair[0].backends(), what="no connection of pgusher")
        pooler.command("RESUME main")
        wait_until(lambda: len(watched(pooler)) == 2, what="both watched again")
