# SPDX-License-Identifier: ISC
"""Names of servers: lookups with good and bad name servers, moved servers, lists, and failover."""

import contextlib
import os
import socket
import threading
import time

import psycopg
import pytest

from support.clients.raw import ServerError
from support.process import drop_folder, free_port, make_folder, own, run, stays, wait_until
from support.servers.cluster import Cluster, configure
from support.servers.name_servers import (
    CNAME,
    NXDOMAIN,
    A,
    Dnsmasq,
    FakeNames,
    addresses,
    question_of,
    record,
    reply,
    write_resolv_conf,
)

ONE, TWO, THREE = "127.0.0.1", "127.0.0.2", "127.0.0.3"
DEAD, SILENT = "127.0.0.9", "127.0.0.8"
FORTY = [f"127.0.1.{number}" for number in range(1, 41)]
PLACE = "SELECT host(inet_server_addr())"


@pytest.fixture(scope="module")
def wide_cluster():
    """A PostgreSQL that listens on many addresses."""
    every = ",".join([ONE, TWO, THREE, *FORTY])
    cluster = Cluster({"listen_addresses": f"'{every}'"})
    yield cluster
    cluster.destroy()


@pytest.fixture
def wide(wide_cluster):
    """The same, with no client connected to it."""
    wide_cluster.clear()
    return wide_cluster


@pytest.fixture
def names():
    """A dnsmasq that has no names yet."""
    server = Dnsmasq()
    yield server
    server.destroy()


@pytest.fixture
def new_names():
    """Make a scripted name server: new_names(answer)."""
    with contextlib.ExitStack() as stack:

        def make(*answer):
            server = FakeNames(*answer)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture
def folder():
    """A folder for resolv.conf, which must be there before the daemon starts."""
    path = make_folder("pgusher-resolv-")
    yield path
    drop_folder(path)


@pytest.fixture
def named_pooler(new_pooler, folder):
    """Make a daemon that uses this name server: named_pooler(server, port, settings, NAME=host)."""

    def make(server, port, settings=None, **databases):
        for name, keys in databases.items():
            databases[name] = keys if isinstance(keys, dict) else {"host": keys}
        path = os.path.join(folder, "resolv.conf")
        write_resolv_conf(path, server)
        return new_pooler(
            {
                "pool_mode": "transaction",
                "resolv_conf": path,
                "server_login_retry": "1",
                **(settings or {}),
            },
            databases={
                name: {"port": port, "dbname": "main", **keys}
                for name, keys in databases.items()
            },
        )

    return make


def place_of(connection):
    """The address of the server that serves this connection now."""
    return connection.execute(PLACE).fetchone()[0]


def place(pooler, dbname="main"):
    """The address of the server that serves a new client."""
    with pooler.connect(dbname=dbname) as connection:
        return place_of(connection)


def begin(pooler, dbname="main"):
    """A client in a transaction: it keeps its server."""
    connection = pooler.connect(dbname=dbname)
    connection.execute("BEGIN")
    return connection


def refusal(client):
    """The error that a query of this client gets."""
    with pytest.raises(ServerError) as caught:
        client.query("SELECT 1")
    return caught.value


class Waiting:
    """A new client that waits for a server at an unknown address, in a thread of its own."""

    def __init__(self, pooler, dbname="main"):
        self.place = self.error = None
        self.done_at = None
        self.thread = threading.Thread(target=self._work, args=(pooler, dbname), daemon=True)
        self.thread.start()

    def _work(self, pooler, dbname):
        try:
            self.place = place(pooler, dbname)
        except psycopg.Error as error:
            self.error = error
        self.done_at = time.monotonic()

    def served_within(self, seconds):
        """The address of the server that served it, in time."""
        self.thread.join(seconds)
        assert not self.thread.is_alive(), "still waits"
        assert self.error is None, self.error
        return self.place


def server_at(pooler, address):
    """The rows of SHOW SERVERS of this address."""
    return pooler.servers(addr=address)


# --- moves ----------------------------------------------------------------------------------

MOVING_HOSTS = {
    "name": {"host": "db.test"},
    "list": {"host": "db.test,127.0.0.1", "load_balance_hosts": "disable"},
}


@pytest.mark.parametrize("keys", MOVING_HOSTS.values(), ids=MOVING_HOSTS)
def test_connections_to_an_address_that_was_removed_are_retired(named_pooler, names, wide, keys):
    names.set({"db.test": [TWO]})
    pooler = named_pooler(
        names.address, wide.port, {"dns_max_ttl": "0"}, main=keys
    )
    busy = begin(pooler)
    assert place_of(busy) == TWO
    names.set({"db.test": [THREE]})
    assert place(pooler) == THREE
    (old,) = server_at(pooler, TWO)
    assert old["close_needed"] == "1"
    assert place_of(busy) == TWO
    busy.execute("COMMIT")
    wait_until(lambda: not server_at(pooler, TWO), 5, "the old server to go")
    assert place_of(busy) == THREE
    assert pooler.lines(r"LOG db\.test is no longer at 127\.0\.0\.2, connections to be retired: 1")
    # The pool keeps its servers' parameters: logins need no new server for them.
    assert pooler.pool()["cl_waiting"] == 0


@pytest.mark.setting("dns_max_ttl")
def test_an_answer_is_used_for_dns_max_ttl(named_pooler, names, wide):
    names.set({"db.test": [TWO]})
    pooler = named_pooler(names.address, wide.port, {"dns_max_ttl": "1000"}, main="db.test")
    first = begin(pooler)
    names.set({"db.test": [THREE]})
    second = begin(pooler)
    assert place_of(second) == TWO
    (row,) = pooler.show("DNS_HOSTS")
    assert (row["hostname"], row["addrs"]) == ("db.test", "127.0.0.2:0")
    assert 900 <= int(row["ttl"]) <= 1000
    # Set at run time, for answers from then on.
    pooler.command("SET dns_max_ttl = 1")
    pooler.command("RECONNECT")
    first.execute("COMMIT")
    second.execute("COMMIT")
    assert place(pooler) == TWO
    assert int(pooler.show("DNS_HOSTS")[0]["ttl"]) > 900


def test_several_addresses_are_used_in_turn(named_pooler, names, wide):
    names.set({"db.test": [ONE, TWO, THREE]})
    pooler = named_pooler(names.address, wide.port, main="db.test")
    clients = [begin(pooler) for _ in range(6)]
    places = [place_of(client) for client in clients]
    assert sorted(places[:3]) == [ONE, TWO, THREE]
    assert places[3:] == places[:3]
    (row,) = pooler.show("DNS_HOSTS")
    assert sorted(row["addrs"].split(",")) == [f"{each}:0" for each in (ONE, TWO, THREE)]


def test_a_failed_lookup_invalidates_nothing(named_pooler, names, wide):
    names.set({"db.test": [TWO]})
    pooler = named_pooler(
        names.address, wide.port, {"dns_max_ttl": "0", "dns_nxdomain_ttl": "1"}, main="db.test"
    )
    busy = begin(pooler)
    names.set({})
    waiting = Waiting(pooler)
    pooler.wait_log(r"WARNING DNS lookup failed: db\.test: result=4")
    pooler.wait_log(r"closing because: server DNS lookup failed")
    assert [row["close_needed"] for row in server_at(pooler, TWO)] == ["0"]
    busy.execute("COMMIT")
    assert waiting.served_within(5) == TWO
    assert place_of(busy) == TWO


@pytest.mark.setting("dns_nxdomain_ttl")
def test_a_name_that_is_not_found_is_asked_for_again_after_its_time(named_pooler, names, wide):
    settings = {"dns_nxdomain_ttl": "2", "server_login_retry": "0"}
    pooler = named_pooler(names.address, wide.port, settings, main="db.test")
    waiting = Waiting(pooler)
    pooler.wait_log(r"DNS lookup failed: db\.test: result=4")
    asked = time.monotonic()
    names.set({"db.test": [TWO]})
    assert waiting.served_within(5) == TWO
    # Many attempts have failed in that time, with a single lookup.
    assert waiting.done_at - asked > 1
    assert len(pooler.lines("WARNING DNS lookup failed")) == 1
    assert len(pooler.lines("closing because: server DNS lookup failed")) > 3


def test_reload_forgets_failures(named_pooler, names, wide):
    pooler = named_pooler(
        names.address, wide.port, {"dns_nxdomain_ttl": "1000"}, main="db.test", other=ONE
    )
    waiting = Waiting(pooler)
    pooler.wait_log(r"DNS lookup failed: db\.test")
    names.set({"db.test": [TWO]})
    pooler.wait_log(r"closing because: server DNS lookup failed", count=2)
    assert len(pooler.lines("WARNING DNS lookup failed")) == 1
    pooler.command("RELOAD")
    assert waiting.served_within(5) == TWO


# --- zones ----------------------------------------------------------------------------------


@pytest.mark.setting("dns_zone_check_period")
def test_a_zone_with_a_higher_serial_has_its_names_looked_up(named_pooler, wide):
    names = Dnsmasq(serial=4294967294)
    try:
        names.set({"db.zone.test": [TWO]})
        pooler = named_pooler(
            names.address,
            wide.port,
            {"dns_zone_check_period": "1", "dns_max_ttl": "1000"},
            main="db.zone.test",
        )
        assert place(pooler) == TWO
        row = {"zonename": "zone.test", "serial": "4294967295", "count": "1"}
        wait_until(lambda: pooler.show("DNS_ZONES") == [row], 10, "the serial to be known")
        assert pooler.show("LISTS", list="dns_zones")[0]["items"] == "1"
        names.set({"db.zone.test": [THREE]})
        pooler.wait_log(r"LOG zone 'zone\.test' serial changed: old=4294967295 new=0")
        # No client needs a server, and the old one is closed all the same.
        wait_until(lambda: not server_at(pooler, TWO), 5, "the old server to go")
        assert place(pooler) == THREE
        assert pooler.show("DNS_ZONES")[0]["serial"] == "0"
        pooler.command("SET dns_zone_check_period = 0")
        assert pooler.show("DNS_ZONES") == []
    finally:
        names.destroy()


# --- resolv.conf ----------------------------------------------------------------------------


@pytest.mark.setting("resolv_conf")
def test_another_resolv_conf_is_used_at_once(named_pooler, new_names, names, wide, folder):
    silent = new_names()
    names.set({"db.test": [TWO]})
    pooler = named_pooler(silent.address, wide.port, main="db.test", plain=ONE)
    waiting = Waiting(pooler)
    wait_until(lambda: silent.questions > 0, 5, "a question")
    started = time.monotonic()
    assert place(pooler, "plain") == ONE
    assert time.monotonic() - started < 4.5, "a dead resolver keeps others waiting"
    write_resolv_conf(os.path.join(folder, "resolv.conf"), names.address)
    # The lookup in flight is answered by the new server: no attempt has failed.
    assert waiting.served_within(5) == TWO
    assert pooler.lines(r"LOG .*/resolv\.conf has changed, looking up names anew")
    assert not pooler.lines("DNS lookup failed")


def test_reload_asks_again(named_pooler, new_names, wide):
    server = new_names()
    pooler = named_pooler(server.address, wide.port, main="db.test")
    waiting = Waiting(pooler)
    wait_until(lambda: server.questions >= 2, 5, "both questions")
    # Without the reload, the lookup would ask three times for each address family, and then fail.
    for times in range(2, 9):
        pooler.command("RELOAD")
        wait_until(lambda: server.questions >= 2 * times, 5, "the questions again")
    assert not pooler.lines("DNS lookup failed")
    server.answer = answers_with([TWO])
    pooler.command("RELOAD")
    assert waiting.served_within(5) == TWO


def test_a_resolv_conf_that_cannot_be_read_is_reported(new_pooler):
    pooler = new_pooler({"resolv_conf": "/no/such/resolv.conf"})
    assert pooler.lines("WARNING cannot read resolv_conf: /no/such/resolv.conf")
    assert place(pooler) == ONE


# --- bad name servers -----------------------------------------------------------------------


def answers_with(texts, **options):
    """An honest name server that gives these records for every name."""

    def answer(question, tcp):
        kind = question_of(question)[1]
        return reply(question, addresses(*texts, **options) if kind == A else [])

    return answer


def garbage(question, tcp):
    """A header that promises records, followed by garbage."""
    return question[:2] + b"\x81\x80\0\1\0\7\0\0\0\0" + question[12:] + b"\xff" * 40


def nonsense(question, tcp):
    """A message that is no DNS."""
    return question[:2] + b"HTTP/1.1 400 Bad Request\r\n\r\n"


def wrong_identity(question, tcp):
    """An answer with a wrong id, as forgers send it."""
    honest = answers_with([DEAD])(question, tcp)
    return bytes([honest[0] ^ 0x55]) + honest[1:]


def alias_loop(question, tcp):
    """Names that are aliases of each other."""
    to_itself = record(CNAME, b"\xc0\x0c")
    return reply(question, [to_itself, to_itself])


def not_found(question, tcp):
    """NXDOMAIN."""
    return reply(question, code=NXDOMAIN)


def failing(question, tcp):
    """SERVFAIL."""
    return reply(question, code=2)


def refusing(question, tcp):
    """REFUSED."""
    return reply(question, code=5)


def silent(question, tcp):
    """No answer."""
    return None


def cut_for_ever(question, tcp):
    """Truncated over UDP, and no answer over TCP."""
    return None if tcp else reply(question, truncated=True)


BAD = [garbage, nonsense, wrong_identity, alias_loop, not_found, failing, refusing, silent]
BAD += [cut_for_ever]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_bad_name_server_affects_no_other_client_and_all_recovers(named_pooler, new_names, wide, bad):
    server = new_names(bad)
    pooler = named_pooler(
        server.address,
        wide.port,
        {"dns_nxdomain_ttl": "1"} if bad is not_found else {},
        main="db.test",
        plain=ONE,
    )
    waiting = Waiting(pooler)
    wait_until(lambda: server.questions >= 2, 5, "questions")
    started = time.monotonic()
    assert place(pooler, "plain") == ONE
    assert time.monotonic() - started < 4.5
    # Also after it has been bad for a while.
    if bad not in (silent, wrong_identity, cut_for_ever, nonsense):
        pooler.wait_log(r"closing because: server DNS lookup failed", timeout=10)
    server.answer = answers_with([TWO])
    assert waiting.served_within(5) == TWO
    assert pooler.running()


def truncating(question, tcp):
    """Gives the records over TCP only."""
    return answers_with([TWO])(question, tcp) if tcp else reply(question, truncated=True)


ODD = {
    "TTL 0": (answers_with([TWO], ttl=0), {TWO}),
    "TTL 2^31": (answers_with([TWO], ttl=2**31), {TWO}),
    "40 addresses": (answers_with(FORTY), set(FORTY)),
    "truncated": (truncating, {TWO}),
}


@pytest.mark.parametrize("answer, places", ODD.values(), ids=ODD)
def test_unusual_answers_are_answers(named_pooler, new_names, wide, answer, places):
    server = new_names(answer)
    pooler = named_pooler(server.address, wide.port, {"dns_max_ttl": "1000"}, main="db.test")
    assert place(pooler) in places
    (row,) = pooler.show("DNS_HOSTS")
    assert {each.split(":")[0] for each in row["addrs"].split(",")} == places
    # The pooler chooses how long it keeps this answer.
    assert 900 <= int(row["ttl"]) <= 1000
    assert server.tcp_questions > 0 or answer is not truncating


def test_a_name_server_that_does_not_answer_is_reported_as_the_cause(named_pooler, new_names, wide):
    server = new_names(answers_with([TWO]))
    pooler = named_pooler(
        server.address,
        wide.port,
        {"query_wait_timeout": "1", "dns_max_ttl": "0", "server_login_retry": "30"},
        main="db.test",
    )
    client = pooler.client()
    assert client.value(PLACE) == TWO
    server.answer = failing
    wide.clear()
    wait_until(lambda: not pooler.servers(), 5, "the server to go")
    assert refusal(client).is_("FATAL", "57014", "query_wait_timeout")
    assert refusal(pooler.client()).is_(
        "FATAL",
        "08006",
        "server login has been failing, cached error: "
        "server DNS lookup failed (server_login_retry)",
    )


# --- lists of hosts -------------------------------------------------------------------------


@pytest.fixture
def silent_host(wide):
    """An address where the kernel accepts connections, and no process."""
    with socket.create_server((SILENT, wide.port)):
        yield SILENT


def host_pooler(new_pooler, port, host, settings=None, **keys):
    """A daemon and a database with this list of hosts."""
    return new_pooler(
        {"pool_mode": "transaction", **(settings or {})},
        databases={"main": {"host": host, "port": port, **keys}},
    )


@pytest.mark.setting("databases.load_balance_hosts")
def test_hosts_are_used_in_turn(new_pooler, wide):
    pooler = host_pooler(new_pooler, wide.port, f"{THREE},{ONE},{TWO}")
    clients = [begin(pooler) for _ in range(5)]
    assert [place_of(client) for client in clients] == [THREE, ONE, TWO, THREE, ONE]


@pytest.mark.setting("databases.load_balance_hosts")
def test_without_balancing_the_first_host_is_used(new_pooler, wide):
    pooler = host_pooler(
        new_pooler, wide.port, f"{THREE},{ONE},{TWO}", load_balance_hosts="disable"
    )
    clients = [begin(pooler) for _ in range(4)]
    assert [place_of(client) for client in clients] == [THREE] * 4


def test_sockets_may_stand_in_a_list(new_pooler, wide):
    hosts = f"{wide.socket_folder},{TWO},@unused/here"
    pooler = host_pooler(new_pooler, wide.port, hosts)
    clients = [begin(pooler) for _ in range(4)]
    # No process listens on the abstract socket: the next host is used.
    assert [place_of(client) for client in clients] == [None, TWO, None, TWO]


@pytest.mark.parametrize("balance", ["round-robin", "disable"])
def test_a_host_that_refuses_costs_no_time(new_pooler, wide, balance):
    pooler = host_pooler(new_pooler, wide.port, f"{DEAD},{TWO}", load_balance_hosts=balance)
    started = time.monotonic()
    clients = [begin(pooler) for _ in range(4)]
    assert [place_of(client) for client in clients] == [TWO] * 4
    assert time.monotonic() - started < 10, "server_login_retry is not waited for"
    assert pooler.lines(rf"WARNING .*sbuf_connect failed to connect to {DEAD}:{wide.port}: ")
    assert not pooler.lines("closing because: connect failed")


def test_a_host_whose_name_is_unknown_is_skipped(named_pooler, names, wide):
    names.set({"db.test": [TWO]})
    pooler = named_pooler(names.address, wide.port, main="gone.test,db.test")
    assert place(pooler) == TWO
    assert pooler.lines("DNS lookup failed: gone.test: result=4")
    # Operators' tools look for this line, which PgBouncer writes; no server was closed.
    assert len(pooler.lines(r"S-.* closing because: server DNS lookup failed \(age=0s\)")) == 1
    assert not pooler.lines("closing because: connect failed")


def test_a_silent_host_leaves_time_for_the_next(new_pooler, wide, silent_host):
    pooler = host_pooler(
        new_pooler, wide.port, f"{silent_host},{TWO}", {"server_connect_timeout": "4"}
    )
    started = time.monotonic()
    assert place(pooler) == TWO
    assert time.monotonic() - started > 1.5
    assert not pooler.lines("closing because: (connect timeout|connect failed)")
    assert pooler.lines(f"no answer from {silent_host}, trying the next one")


def test_clients_get_an_error_when_all_hosts_refuse_and_all_recovers(new_pooler):
    cluster = Cluster({"listen_addresses": f"'{TWO},{THREE}'"})
    try:
        pooler = host_pooler(
            new_pooler,
            cluster.port,
            f"{TWO},{DEAD},{THREE}",
            {"query_wait_timeout": "1", "server_login_retry": "2"},
        )
        client = pooler.client()
        assert client.value("SELECT 1") == "1"
        cluster.stop()
        wait_until(lambda: not pooler.servers(), 5, "the server to go")
        assert refusal(client).is_("FATAL", "57014", "query_wait_timeout")
        for address in (TWO, DEAD, THREE):
            assert pooler.lines(f"sbuf_connect failed to connect to {address}:")
        # A client of a list waits for a host, and is told why there is none.
        error = refusal(pooler.client())
        assert error.is_("FATAL", "57014", "query_wait_timeout")
        assert f"{TWO}:{cluster.port} cannot be used: connect failed" in error.fields["D"]
        cluster.start()

        def served():
            with contextlib.suppress(ServerError, OSError):
                return pooler.client().value("SELECT 1") == "1"
            return False

        wait_until(served, 5, "recovery")
    finally:
        cluster.destroy()


def test_a_list_in_another_order_is_another_target(new_pooler, wide):
    pooler = host_pooler(new_pooler, wide.port, f"{TWO},{THREE}", load_balance_hosts="disable")
    busy = begin(pooler)
    assert place_of(busy) == TWO
    pooler.databases["main"]["host"] = f"{THREE},{TWO}"
    pooler.reload()
    assert place(pooler) == THREE
    assert place_of(busy) == TWO
    busy.execute("COMMIT")
    assert place_of(busy) == THREE


@pytest.mark.parametrize("host", ["a,,b", "a,", ",a", ","])
def test_a_list_with_an_empty_item_is_refused(new_pooler, host):
    pooler = new_pooler(start=False, databases={"main": {"host": host}})
    pooler.allow("FATAL")
    assert pooler.run_to_end() == 1
    assert f"empty item in host list: {host}" in pooler.log()


# --- failover -------------------------------------------------------------------------------


class Standby(Cluster):
    """A standby of a cluster, at another address and the same port."""

    def __init__(self, primary, host):
        self.folder = make_folder("pgusher-pg-")
        self.data = os.path.join(self.folder, "data")
        self.socket_folder = self.folder
        self.log_path = os.path.join(self.folder, "log")
        self.port, self.host = primary.port, host
        self.process = self._connection = None
        # Not with pg_basebackup: it may be of another version than the server's programs.
        primary.stop()
        run(["cp", "-a", primary.data, self.data])
        primary.start()
        configure(
            self.data,
            {
                "primary_conninfo": f"'host={primary.socket_folder} port={primary.port} user=harness'",
                "listen_addresses": f"'{host}'",
                "unix_socket_directories": f"'{self.socket_folder}'",
            },
        )
        open(os.path.join(self.data, "standby.signal"), "w").close()
        self.start()


@pytest.fixture
def pair():
    """A primary at one address, and its standby at another."""
    with contextlib.ExitStack() as stack:
        primary = Cluster({"listen_addresses": f"'{TWO}'", "wal_level": "replica"})
        stack.callback(primary.destroy)
        with open(os.path.join(primary.data, "pg_hba.conf"), "a") as file:
            file.write("local replication all trust\n")
        primary.sql("SELECT pg_reload_conf()")
        primary.ask("main", "CREATE TABLE notes (id serial, text text)")
        primary.ask("main", "GRANT ALL ON ALL TABLES IN SCHEMA public TO app")
        primary.ask("main", "GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app")
        standby = Standby(primary, THREE)
        stack.callback(standby.destroy)
        yield primary, standby


def write_note(connection):
    """The address of the server where a row was written; raises the server's error."""
    return connection.execute(
        "INSERT INTO notes (text) VALUES ('x') RETURNING host(inet_server_addr())"
    ).fetchone()[0]


def notes(cluster):
    """How many rows were written."""
    return cluster.ask("main", "SELECT count(*) AS n FROM notes WHERE text = 'x'")[0]["n"]


def make_read_only(cluster):
    """Make the primary read-only, as operators do before a failover."""
    cluster.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    cluster.sql("SELECT pg_reload_conf()")


def test_writers_follow_a_failover(named_pooler, names, pair):
    primary, standby = pair
    names.set({"db.test": [TWO]})
    pooler = named_pooler(names.address, primary.port, {"dns_max_ttl": "1000"}, main="db.test")
    clients = [pooler.connect() for _ in range(3)]
    for client in clients:
        client.execute("BEGIN")
        assert write_note(client) == TWO
    for client in clients:
        client.execute("COMMIT")
    make_read_only(primary)

    def refused():
        try:
            write_note(clients[0])
        except psycopg.errors.ReadOnlySqlTransaction:
            return True
        return False

    wait_until(refused, 5, "the old primary to refuse")
    wait_until(lambda: notes(standby) >= 3, 10, "the standby to have what was written")
    standby.sql("SELECT pg_promote()")
    names.set({"db.test": [THREE]})
    places = []

    def all_write():
        places.clear()
        for client in clients:
            try:
                places.append(write_note(client))
            except psycopg.errors.ReadOnlySqlTransaction:
                places.append(None)
        return places == [THREE] * 3

    wait_until(all_write, 10, "all to write again", interval=0.1)
    wait_until(lambda: not server_at(pooler, TWO), 10, "the old servers to go")
    assert pooler.lines("the server is read-only, looking for its successor")
    assert notes(standby) >= 6


def test_a_transaction_continues_on_its_server(named_pooler, names, pair):
    primary, standby = pair
    names.set({"db.test": [TWO]})
    pooler = named_pooler(names.address, primary.port, {"dns_max_ttl": "1000"}, main="db.test")
    reader, writer = begin(pooler), pooler.connect()
    assert place_of(reader) == TWO
    writer.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        write_note(writer)
    writer.execute("ROLLBACK")
    (row,) = server_at(pooler, TWO)
    assert row["close_needed"] == "1"
    assert place_of(reader) == TWO
    reader.execute("COMMIT")
    wait_until(lambda: not server_at(pooler, TWO), 5, "the old server to go")
    assert write_note(writer) == TWO


@pytest.mark.setting("server_failover_check")
def test_clients_follow_no_failover_without_the_check(named_pooler, names, wide):
    names.set({"db.test": [TWO]})
    pooler = named_pooler(
        names.address,
        wide.port,
        {"dns_max_ttl": "1000", "server_failover_check": "0"},
        main="db.test",
    )
    client = pooler.connect()
    pid = client.execute("SELECT pg_backend_pid()").fetchone()[0]
    client.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        client.execute("CREATE TABLE forbidden ()")
    client.execute("ROLLBACK")
    names.set({"db.test": [THREE]})
    stays(lambda: [row["close_needed"] for row in pooler.servers()] == ["0"])
    assert client.execute("SELECT pg_backend_pid()").fetchone()[0] == pid
    pooler.command("SET server_failover_check = 1")
    client.execute("BEGIN READ ONLY")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        client.execute("CREATE TABLE forbidden ()")
    client.execute("ROLLBACK")
    assert place_of(client) == THREE
