# SPDX-License-Identifier: ISC
"""The primary moves: real streaming replication, and what clients of the pool notice of it.

Writers note each row that was acknowledged. After each scene all of these must be there, and no
row twice: a query that may have run is never sent again.
"""

import contextlib
import os
import threading
import time
from collections import Counter

import psycopg
import pytest

from support.clients.raw import ServerError
from support.clients.writers import TABLE, Writers, failure_of
from support.process import drop_folder, make_folder, wait_until
from support.servers.name_servers import Dnsmasq, write_resolv_conf
from support.servers.replicas import BlackHole

# More than 2 MB of WAL.
BULK = "CREATE TABLE bulk AS SELECT n, repeat('x', 100) FROM generate_series(1, 20000) n"
PLACE = "SELECT host(inet_server_addr())"
WRITE = "INSERT INTO written (id) VALUES (-1) RETURNING host(inet_server_addr())"

# A busy machine may take so many times longer than the figures that the tests name.
PATIENCE = 3

# How often the primary moves in the test of flapping.
FLAPS = int(os.environ.get("PGUSHER_TEST_FLAPS", 3))

# The error that a client gets in a transaction: that of the server which ends, or of its lost connection.
CUT = {"08006", "57P01", "57P02"}


@pytest.fixture
def trio(replicas):
    """The primary, and two standbys, of which any acknowledges a row."""
    third = replicas.add()
    yield replicas.settle()
    if third.is_primary():
        # The group goes on with its other members.
        first = next(member for member in replicas.members if member is not third)
        third.set("synchronous_standby_names", "")
        first.rejoin(third) if not first.runs() else first.follow(third)
        wait_until(lambda: first.receives_from(third), 30, f"{first} to follow {third}")
        third.stop()
        first.promote()
    replicas.remove(third)


def entry(*members, attrs=None, **keys):
    """An entry of [databases] with this list of hosts."""
    hosts = ",".join(member if isinstance(member, str) else member.host for member in members)
    port = next(member.port for member in members if not isinstance(member, str))
    asked = {"target_session_attrs": attrs} if attrs else {}
    return {"host": hosts, "port": port, "dbname": "main", **asked, **keys}


@pytest.fixture
def routed(new_pooler):
    """Make a daemon: routed(main=entry(...), NAME=entry(...), settings={})."""

    def make(settings=None, **databases):
        return new_pooler(
            {
                "pool_mode": "transaction",
                "default_pool_size": 6,
                "server_login_retry": "1",
                "server_connect_timeout": "2",
                **(settings or {}),
            },
            databases=databases,
        )

    return make


def routed_with_one(routed, primary, standby):
    """A daemon for writers, and with a pool of one server, for which clients wait."""
    return routed(
        main=entry(primary, standby, attrs="read-write"),
        one=entry(primary, standby, attrs="read-write", pool_size=1),
    )


def writers(pooler, dbname="main", **options):
    """Writers through the pool."""
    return Writers(lambda: pooler.connect(dbname=dbname), **options)


def check_rows(writing, primary):
    """End the writers: each acknowledged row is there, and none twice."""
    writing.stop()
    print(writing.summary())
    assert writing.lost_and_doubled(primary) == (0, 0)


def check_each_had_one_error_at_most(writing):
    """A writer has no transaction open when the primary ends, but one query may be on its way."""
    assert max(writing.failures_of_each()) <= 1, writing.summary()


def place_of(connection):
    """The address of the server that serves this connection now."""
    return connection.execute(PLACE).fetchone()[0]


def place(pooler, dbname="main"):
    """The address of the server that serves a new client."""
    with pooler.connect(dbname=dbname) as connection:
        return place_of(connection)


def places(pooler, dbname, count=6):
    """The addresses of the servers of so many clients that keep theirs meanwhile."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(pooler.connect(dbname=dbname)) for _ in range(count)]
        found = Counter()
        for client in clients:
            client.execute("BEGIN")
            found[place_of(client)] += 1
        return found


def serving(pooler, member):
    """The servers of clients at this host, without the one that watches its role."""
    rows = pooler.servers(addr=member.host)
    return [row for row in rows if row["state"] != "tested"]


def host_row(pooler, member):
    """The row of SHOW HOSTS of this host."""
    (row,) = pooler.show("HOSTS", host=member if isinstance(member, str) else member.host)
    return row


# --- while all is well ------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["primary first", "standby first"])
def test_writers_get_no_error_in_either_order_of_the_hosts(routed, pair, order):
    primary, standby = pair
    hosts = pair if order == "primary first" else pair[::-1]
    pooler = routed(main=entry(*hosts, attrs="read-write"))
    with writers(pooler) as writing:
        writing.wait_written(rows=50)
        assert not serving(pooler, standby)
        check_rows(writing, primary)
    assert not writing.failures()


def test_each_word_of_target_session_attrs_finds_its_host(routed, pair):
    primary, standby = pair
    expected = {
        "read-write": {primary.host},
        "read-only": {standby.host},
        "primary": {primary.host},
        "standby": {standby.host},
        "prefer-standby": {standby.host},
        "any": {primary.host, standby.host},
    }
    names = {f"{word.replace('-', '_')}_{n}": word for word in expected for n in (1, 2)}
    pooler = routed(
        **{
            name: entry(*(pair if name.endswith("1") else pair[::-1]), attrs=word)
            for name, word in names.items()
        }
    )
    for name, word in names.items():
        assert set(places(pooler, name, 4)) == expected[word], name
    assert host_row(pooler, primary)["role"] == "primary"
    assert host_row(pooler, standby)["role"] == "standby"


# --- the primary ends -------------------------------------------------------------------------


class Audience:
    """One client of each kind, of a pool with one server: in a transaction, waiting, and idle."""

    def __init__(self, pooler, dbname):
        self.idle = pooler.connect(dbname=dbname)
        self.idle.execute("SELECT 1")
        # psycopg has no SQLSTATE of an error with which a connection ends.
        self.busy = pooler.client(database=dbname)
        self.busy.query("BEGIN")
        self.busy.query("INSERT INTO written (id) VALUES (-1)")
        self.waiting = pooler.connect(dbname=dbname)
        self.place = self.failure = None
        self._pooler, self._dbname = pooler, dbname
        self._thread = threading.Thread(target=self._wait, daemon=True)
        self._thread.start()
        pooler.wait_pool(dbname, cl_waiting=1)

    def _wait(self):
        try:
            self.place = write(self.waiting)
        except psycopg.Error as error:
            self.failure = failure_of(error, "wait")

    def end_transaction(self):
        """The error that the client in a transaction gets, or None; it can go on after it."""
        try:
            self.busy.query("SELECT 1")
            self.busy.query("COMMIT")
        except ServerError as error:
            if error.severity == "FATAL":
                self.busy = self._pooler.client(database=self._dbname)
            else:
                self.busy.query("ROLLBACK")
            return error
        return None

    def check_served(self, primary):
        """The client that waited got its answer, and the first query of the others too."""
        self._thread.join(20)
        assert not self._thread.is_alive(), "the client still waits"
        assert self.failure is None, self.failure
        assert self.place == primary.host
        assert write(self.idle) == primary.host
        assert self.busy.value(WRITE) == primary.host


def write(connection):
    """Write a row; the address of the server that did it."""
    return connection.execute(WRITE).fetchone()[0]


def kill(primary):
    primary.kill()


def stop(primary):
    primary.stop("fast")


def move(end, primary, standby):
    """End the primary in this way and promote the standby; returns since when that accepts writes."""
    end(primary)
    return standby.promote()


@pytest.mark.parametrize("end", [kill, stop], ids=["killed", "stopped"])
@pytest.mark.parametrize("order", ["primary first", "standby first"])
def test_writers_get_one_error_at_most_when_the_primary_ends(routed, pair, end, order):
    primary, standby = pair
    hosts = pair if order == "primary first" else pair[::-1]
    pooler = routed(main=entry(*hosts, attrs="read-write"))
    with writers(pooler) as writing:
        writing.wait_written()
        promoted = move(end, primary, standby)
        writing.wait_written(promoted)
        check_rows(writing, standby)
    check_each_had_one_error_at_most(writing)
    assert {failure.step for failure in writing.failures()} <= {"write"}
    assert {failure.sqlstate for failure in writing.failures()} <= {*CUT, "closed"}


@pytest.mark.parametrize("end", [kill, stop], ids=["killed", "stopped"])
def test_a_transaction_alone_notices_that_the_primary_ends(routed, pair, end):
    primary, standby = pair
    pooler = routed(main=entry(primary, standby, attrs="read-write", pool_size=1))
    audience = Audience(pooler, "main")
    end(primary)
    failure = audience.end_transaction()
    assert failure and failure.sqlstate in CUT, failure
    # Nothing is promoted yet: the client still waits, however often a login fails.
    pooler.wait_log("server_login_retry|closing because: server", count=2)
    assert audience.failure is None, audience.failure
    standby.promote()
    audience.check_served(standby)


def test_a_primary_that_answers_no_more_is_left_when_its_successor_is_known(routed, pair):
    primary, standby = pair
    # No query has a timeout: the standby tells that it was promoted.
    pooler = routed(
        main=entry(primary, standby, attrs="read-write"), settings={"host_check_interval": "1"}
    )
    with writers(pooler) as writing:
        writing.wait_written()
        # Of two hosts that say that they are the primary, the later timeline is the right one.
        wait_until(lambda: host_row(pooler, primary)["timeline"] != "0", 10, "its timeline")
        primary.freeze()
        promoted = standby.promote()
        writing.wait_written(promoted)
        check_rows(writing, standby)
        primary.kill()
    check_each_had_one_error_at_most(writing)


def test_nothing_is_written_at_an_old_primary_once_the_new_one_is_known(routed, pair):
    primary, standby = pair
    # No standby confirms rows, as when the network between the two is cut: both accept writes.
    primary.set("synchronous_standby_names", "")
    pooler = routed(
        main=entry(primary, standby, attrs="read-write"),
        one=entry(primary, standby, attrs="read-write", pool_size=1),
        settings={"host_check_interval": "1"},
    )
    audience = Audience(pooler, "one")
    with writers(pooler) as writing:
        writing.wait_written()
        wait_until(lambda: host_row(pooler, primary)["timeline"] != "0", 10, "its timeline")
        standby.promote()
        # With several workers each database has one of its own, and one of them tells the other.
        homes = min(2, int(pooler.setting("workers")))
        wait_until(lambda: len(pooler.lines("WARNING .* is not written to any more")) >= homes)
        known = time.monotonic()
        # The old primary would still take the COMMIT.
        failure = audience.end_transaction()
        assert failure and failure.sqlstate in CUT, failure
        writing.wait_written(known, rows=20)
        assert not serving(pooler, primary)
        writing.stop()
        print(writing.summary())
        assert writing.lost_and_doubled(standby, since=known) == (0, 0)
    check_each_had_one_error_at_most(writing)
    audience.check_served(standby)
    assert primary.is_primary()


# --- the primary moves as planned -------------------------------------------------------------


def test_no_client_notices_a_switchover_between_pause_and_resume(routed, pair):
    primary, standby = pair
    pooler = routed_with_one(routed, primary, standby)
    audience = Audience(pooler, "one")
    with writers(pooler) as writing:
        writing.wait_written()
        pause = pooler.console()
        pausing = threading.Thread(target=pause.query, args=("PAUSE", 30), daemon=True)
        pausing.start()
        # It waits for the transaction, and no other query begins meanwhile.
        pooler.wait_pool("main", sv_active=0, sv_idle=0)
        assert pausing.is_alive()
        assert audience.end_transaction() is None
        pausing.join(30)
        assert not pausing.is_alive(), "PAUSE still waits"
        primary.stop()
        promoted = standby.promote()
        # It is back before the pool looks for a host, and refuses writes.
        primary.return_as_standby(standby)
        pooler.command("RESUME")
        writing.wait_written(promoted)
        check_rows(writing, standby)
    audience.check_served(standby)
    assert not writing.failures()


def test_the_old_primary_comes_back_as_a_standby_without_an_error(routed, pair):
    primary, standby = pair
    pooler = routed(main=entry(primary, standby, attrs="read-write"))
    with writers(pooler) as writing:
        writing.wait_written()
        writing.wait_written(move(kill, primary, standby))
        before = time.monotonic()
        primary.rejoin(standby)
        writing.wait_written(time.monotonic(), rows=50)
        assert not serving(pooler, primary)
        check_rows(writing, standby)
    assert not writing.failures(before)


def test_a_fenced_primary_is_left(routed, pair):
    primary, standby = pair
    pooler = routed_with_one(routed, primary, standby)
    audience = Audience(pooler, "one")
    with writers(pooler) as writing:
        writing.wait_written()
        primary.fence()
        # It began before: the server lets it end.
        failure = audience.end_transaction()
        assert failure is None or failure.sqlstate == "25006", failure
        promoted = standby.promote()
        writing.wait_written(promoted)
        check_rows(writing, standby)
    check_each_had_one_error_at_most(writing)
    assert {failure.sqlstate for failure in writing.failures()} <= {"25006"}
    audience.check_served(standby)


def test_a_fenced_primary_is_used_again_when_it_accepts_writes(routed, pair):
    primary, standby = pair
    pooler = routed(main=entry(primary, standby, attrs="read-write"))
    with writers(pooler) as writing:
        writing.wait_written()
        primary.fence()
        wait_until(
            lambda: writing.failures() or not serving(pooler, primary), 10, "a writer to notice it"
        )
        primary.unfence()
        writing.wait_written(time.monotonic())
        check_rows(writing, primary)
    check_each_had_one_error_at_most(writing)


# --- it moves often ---------------------------------------------------------------------------


def test_each_move_costs_a_writer_one_error_at_most(routed, pair, replicas):
    pooler = routed(main=entry(*pair, attrs="read-write"))
    primary, standby = pair
    with writers(pooler) as writing:
        writing.wait_written()
        for _ in range(FLAPS):
            before = time.monotonic()
            writing.wait_written(move(kill, primary, standby))
            primary.rejoin(standby)
            assert max(writing.failures_of_each(before)) <= 1, writing.summary()
            # Nothing acknowledged may be lost at the next move either.
            replicas.synchronize(standby)
            primary, standby = standby, primary
        check_rows(writing, primary)
    # Its role does not change if it was not seen as a standby before its next promotion.
    assert len(pooler.lines(r"WARNING host .* is the primary in place of ")) >= FLAPS


def test_two_moves_among_three_hosts_are_followed(routed, trio, replicas):
    pooler = routed(main=entry(*trio, attrs="read-write"))
    primary, *standbys = trio
    with writers(pooler) as writing:
        writing.wait_written()
        for turn in range(2):
            before = time.monotonic()
            primary.kill()
            successor = replicas.most_advanced(standbys)
            standbys.remove(successor)
            promoted = successor.promote()
            for other in standbys:
                other.follow(successor)
                wait_until(lambda o=other: o.receives_from(successor), 30, f"{other} to follow")
            writing.wait_written(promoted)
            assert max(writing.failures_of_each(before)) <= 1, writing.summary()
            if turn == 0:
                replicas.synchronize(successor)
            primary = successor
        check_rows(writing, primary)
    assert set(places(pooler, "main", 2)) == {primary.host}


# --- dead hosts -------------------------------------------------------------------------------


def test_a_dead_first_host_costs_one_timeout_for_the_whole_process(routed, pair):
    primary, _ = pair
    hole = BlackHole("127.0.1.200", primary.port)
    try:
        pooler = routed(
            main=entry(hole.host, primary, attrs="read-write", pool_size=20),
            other=entry(hole.host, primary, attrs="primary", load_balance_hosts="disable"),
            # The pause between two probes is longer than this test.
            settings={"max_client_conn": 300},
        )
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            for number in range(100):
                dbname = "other" if number % 10 == 0 else "main"
                client = stack.enter_context(pooler.connect(dbname=dbname))
                assert write(client) == primary.host
        took = time.monotonic() - began
        row = host_row(pooler, hole.host)
        print(f"100 connections in {took:.2f} s, {row}")
        timeouts = pooler.lines(f"no answer from {hole.host}|@{hole.host}:.*closing because")
        assert row["state"] == "down"
        # Of a second timeout a probe may tell, if this has taken long: the first one comes after one
        # second, the probe begins three quarters of a second later, and fails after nearly another one.
        assert len(timeouts) <= 1 + int(took > 2.3), timeouts
        assert took < 2 * PATIENCE
    finally:
        hole.close()


def test_a_host_that_returns_is_used_within_its_next_probe(routed, pair):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    pooler = routed(main=entry(primary, standby, attrs="standby"))
    client = pooler.connect()
    assert place_of(client) == standby.host
    standby.kill()
    waiting = pooler.connect()
    found = []

    def read():
        with contextlib.suppress(psycopg.Error):
            found.append(place_of(waiting))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    wait_until(lambda: int(host_row(pooler, standby)["failures"]) >= 2, 20, "two failures")
    standby.start()
    reader.join(20)
    assert found == [standby.host]
    assert host_row(pooler, standby)["state"] == "up"
    assert host_row(pooler, standby)["failures"] == "0"


# --- names that move --------------------------------------------------------------------------


@pytest.fixture
def names():
    """A dnsmasq that has no names yet."""
    server = Dnsmasq()
    yield server
    server.destroy()


@pytest.fixture
def resolv_conf(names):
    """The path of a resolv.conf with that name server."""
    folder = make_folder("pgusher-resolv-")
    path = os.path.join(folder, "resolv.conf")
    write_resolv_conf(path, names.address)
    yield path
    drop_folder(folder)


def test_a_name_that_moves_is_followed(routed, pair, names, resolv_conf):
    primary, standby = pair
    names.set({"db.test": [primary.host]})
    pooler = routed(
        main={**entry(primary), "host": "db.test", "target_session_attrs": "read-write"},
        settings={"resolv_conf": resolv_conf, "dns_max_ttl": "1"},
    )
    with writers(pooler) as writing:
        writing.wait_written()
        promoted = move(kill, primary, standby)
        names.set({"db.test": [standby.host]})
        writing.wait_written(promoted)
        check_rows(writing, standby)
    check_each_had_one_error_at_most(writing)


def test_each_address_of_a_name_has_a_role(routed, pair, names, resolv_conf):
    primary, standby = pair
    names.set({"db.test": [primary.host, standby.host]})
    pooler = routed(
        main={**entry(primary), "host": "db.test", "target_session_attrs": "read-write"},
        readers={**entry(primary), "host": "db.test", "target_session_attrs": "standby"},
        settings={"resolv_conf": resolv_conf},
    )
    assert set(places(pooler, "readers", 4)) == {standby.host}
    with writers(pooler) as writing:
        writing.wait_written(rows=20)
        assert not writing.failures(), writing.summary()
        promoted = move(kill, primary, standby)
        writing.wait_written(promoted)
        check_rows(writing, standby)
    check_each_had_one_error_at_most(writing)


# --- readers ----------------------------------------------------------------------------------


def test_readers_leave_a_standby_that_ends_and_return_to_it(routed, pair):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    pooler = routed(main=entry(primary, standby, attrs="prefer-standby"))
    clients = [pooler.connect() for _ in range(4)]
    assert {place_of(client) for client in clients} == {standby.host}
    standby.kill()
    errors = 0
    for client in clients:
        try:
            assert place_of(client) == primary.host
        except psycopg.Error:
            errors += 1
    # One server was idle or more: its end is known before a query is sent to it.
    assert errors == 0
    standby.start()
    wait_until(lambda: place(pooler) == standby.host, 15, "readers to return", interval=0.2)


def test_a_promoted_standby_keeps_the_servers_of_pools_that_may_use_it(routed, pair):
    primary, standby = pair
    pooler = routed(
        anywhere=entry(standby, attrs="any"),
        preferring=entry(standby, primary, attrs="prefer-standby"),
        readers=entry(standby, primary, attrs="standby"),
    )
    pid = "SELECT pg_backend_pid()"
    indifferent, preferring, reader = (
        pooler.connect(dbname=name) for name in ("anywhere", "preferring", "readers")
    )
    before = [client.execute(pid).fetchone()[0] for client in (indifferent, preferring)]
    assert place_of(reader) == standby.host
    assert host_row(pooler, standby)["role"] == "standby"
    move(kill, primary, standby)
    # A server tells its new role with the next answer.
    after = [client.execute(pid).fetchone()[0] for client in (indifferent, preferring)]
    assert after == before
    row = host_row(pooler, standby)
    assert (row["role"], row["told_by"]) == ("primary", "report")
    assert pooler.lines(r"LOG .* host .* is a primary.*, as a report tells")
    # Its worker watches the hosts for it, with connections of its own.
    wait_until(
        lambda: all(row["state"] == "tested" for row in pooler.servers(database="readers")),
        5, "the reader's server to go")
    assert [client.execute(pid).fetchone()[0] for client in (indifferent, preferring)] == before


@pytest.mark.setting("max_standby_lag", "databases.max_standby_lag")
@pytest.mark.parametrize("limit", ["1MB", "1s"])
def test_a_standby_that_is_too_far_behind_gets_no_new_transactions(routed, pair, limit):
    primary, standby = pair
    primary.set("synchronous_standby_names", "")
    pooler = routed(
        main=entry(primary, standby, attrs="prefer-standby"),
        anyhow=entry(primary, standby, attrs="prefer-standby", max_standby_lag="0"),
        settings={"host_check_interval": "0.5", "max_standby_lag": limit},
    )
    client, content = pooler.connect(), pooler.connect(dbname="anyhow")
    assert place_of(client) == place_of(content) == standby.host
    standby.pause_replay()
    primary.ask("main", BULK)
    wait_until(lambda: place_of(client) == primary.host, 10, "readers to leave", interval=0.1)
    assert place_of(content) == standby.host
    standby.resume_replay()
    wait_until(lambda: place(pooler) == standby.host, 10, "readers to return", interval=0.1)
    primary.ask("main", "DROP TABLE bulk")


# --- a plain list -----------------------------------------------------------------------------


@pytest.mark.setting("server_failover_check")
@pytest.mark.parametrize("order", ["primary first", "standby first"])
def test_writers_of_a_plain_list_leave_the_standby(routed, pair, order):
    primary, standby = pair
    hosts = pair if order == "primary first" else pair[::-1]
    pooler = routed(main=entry(*hosts), readers=entry(*hosts))
    with writers(pooler) as writing:
        wait_until(writing.failures, 10, "an error of a standby")
        writing.wait_written(time.monotonic())
        settled = time.monotonic()
        writing.wait_written(settled, rows=60)
        assert not writing.failures(settled), writing.summary()
        check_each_had_one_error_at_most(writing)
        # The same hosts in another entry, which only reads, are used in turn.
        assert places(pooler, "readers", 4) == {primary.host: 2, standby.host: 2}
        # Without a role that is asked for, a standby is better than no host. It is left when another
        # host is the primary.
        writing.wait_written(move(kill, primary, standby))
        settled = time.monotonic()
        writing.wait_written(settled, rows=20)
        assert not writing.failures(settled), writing.summary()
        check_rows(writing, standby)


# --- how long it takes ------------------------------------------------------------------------


def measure(pooler, pair):
    """Kill the primary under writers; how long after the promotion the last of them went on."""
    primary, standby = pair
    with writers(pooler) as writing:
        writing.wait_written()
        promoted = move(kill, primary, standby)
        writing.wait_written(promoted)
        resumed = writing.resumed_after(promoted)
        check_rows(writing, standby)
    check_each_had_one_error_at_most(writing)
    return resumed


@pytest.mark.alone
def test_writers_go_on_soon_by_errors_alone(routed, pair):
    pooler = routed(
        main=entry(*pair, attrs="read-write"), settings={"host_check_interval": "0"}
    )
    resumed = measure(pooler, pair)
    print(f"the last writer went on {resumed:.3f} s after the promotion, by errors alone")
    assert resumed < 1.5 * PATIENCE


@pytest.mark.alone
def test_writers_go_on_at_once_when_a_report_tells_of_the_primary(routed, pair):
    pooler = routed(main=entry(*pair, attrs="read-write"))
    resumed = measure(pooler, pair)
    print(f"the last writer went on {resumed:.3f} s after the promotion, by a report")
    assert resumed < 0.3 * PATIENCE
