# SPDX-License-Identifier: ISC
"""Clients that ask for replication: each has a server of its own; with PostgreSQL's programs."""

import glob
import os
import shutil
import signal
import struct
import subprocess

import psycopg
import pytest
from support import wire
from support.clients.raw import ServerError, cancel
from support.process import (
    HOST, as_service, drop_folder, free_port, make_folder, own, run, stays, wait_until,
)
from support.servers.certificates import Authority
from support.servers.cluster import Cluster, configure, is_newer, program
from support.servers.fake_server import PARAMETERS

IDENTIFY = wire.query("IDENTIFY_SYSTEM")


# --- setup ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source_of_module():
    """A PostgreSQL that lets `app` and `scram_login` replicate, physically and logically."""
    cluster = Cluster(
        {"wal_level": "logical", "max_wal_senders": 12, "max_replication_slots": 12}
        | {"wal_keep_size": "'256MB'"}
    )
    path = os.path.join(cluster.data, "pg_hba.conf")
    with open(path, "a") as file:
        file.write("host replication scram_login 127.0.0.1/32 scram-sha-256\n")
        file.write("host replication app 127.0.0.1/32 trust\n")
    cluster.sql("ALTER ROLE app REPLICATION")
    cluster.sql("ALTER ROLE scram_login REPLICATION")
    cluster.sql("SELECT pg_reload_conf()")
    yield cluster
    cluster.destroy()


@pytest.fixture
def source(source_of_module):
    """The same, with no client connected and no slot left."""
    cluster = source_of_module
    cluster.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type IN ('walsender', 'client backend') AND usename <> 'harness'"
    )
    wait_until(lambda: not senders(cluster), 15, "WAL senders to go")
    wait_until(
        lambda: not cluster.sql("SELECT 1 FROM pg_replication_slots WHERE active"), 15, "slots"
    )
    cluster.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    yield cluster


@pytest.fixture
def make(new_pooler, source):
    """A daemon in transaction mode with the databases main and replication."""

    def start(settings=None, databases=None, **options):
        databases = databases or {"main": {}, "replication": {}}
        settings = {"pool_mode": "transaction", "server_tls_sslmode": "disable", **(settings or {})}
        return new_pooler(settings, databases=databases, cluster=source, **options)

    return start


@pytest.fixture
def pooler(make):
    return make()


def senders(cluster, **where):
    """The backends of replication, as PostgreSQL lists them."""
    rows = cluster.sql("SELECT * FROM pg_stat_activity WHERE backend_type = 'walsender'")
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def physical(pooler, **parameters):
    """A raw client of physical replication that has logged in."""
    return pooler.client(database="replication", replication="true", **parameters)


def logical(pooler, **parameters):
    """A raw client of logical replication that has logged in."""
    return pooler.client(replication="database", **parameters)


def tool(pooler, name, *arguments, database=None, **options):
    """Run one of PostgreSQL's programs for replication to its end."""
    target = ["-d", database] if database else []
    return run(
        [program(name), "-h", HOST, "-p", str(pooler.port), "-U", "app", *target, *arguments],
        **options,
    )


# --- the tools --------------------------------------------------------------------------------


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_base_backup_with_its_stream(pooler, source, folder):
    """Two connections: the second one streams the WAL during the backup."""
    target = os.path.join(folder, "data")
    tool(pooler, "pg_basebackup", "-D", target, "-X", "stream", "-c", "fast")
    run([program("pg_verifybackup"), target])
    wait_until(lambda: not senders(source), 5, "both WAL senders to go")
    assert pooler.servers() == []


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_base_backup_as_tar_with_wal_fetched_at_the_end(pooler, source, folder):
    target = os.path.join(folder, "tar")
    tool(pooler, "pg_basebackup", "-D", target, "-Ft", "-X", "fetch", "-c", "fast")
    assert os.path.getsize(os.path.join(target, "base.tar")) > 10 << 20


def test_identify_system_from_psql(pooler, source):
    done = run(
        [shutil.which("psql"), "-XAt", "-c", "IDENTIFY_SYSTEM"]
        + [f"host={HOST} port={pooler.port} user=app dbname=main replication=database"]
    )
    identifier = source.value("SELECT system_identifier::text FROM pg_control_system()")
    assert done.stdout.split("|")[0] == identifier
    assert done.stdout.strip().split("|")[3] == "main"


# --- one connection each ----------------------------------------------------------------------


def identify(client):
    """The row that IDENTIFY_SYSTEM gives: system, timeline, position, database."""
    return client.query("IDENTIFY_SYSTEM").rows[0]


def start_stream(client, slot=None):
    """Start the streaming of WAL."""
    _, timeline, position, _ = identify(client)
    name = f"SLOT {slot} " if slot else ""
    client.send(wire.query(f"START_REPLICATION {name}PHYSICAL {position} TIMELINE {timeline}"))
    assert client.read_until("WE")[-1].type == "W"
    return client


def next_wal(client, source=None):
    """Wait until WAL comes, which the source is made to write."""
    if source:
        source.sql("SELECT pg_logical_emit_message(true, 'test', repeat('x', 3000))")
    while True:
        found = client.read()
        assert found.type == "d", found
        if found.body[:1] == b"w":
            return found.body


def answer(client, reply_requested=False):
    """A standby status update: nothing has been written yet."""
    body = b"r" + struct.pack("!QQQQb", 0, 0, 0, 1, reply_requested)
    return client.send(wire.copy_data(body))


def test_two_clients_never_share_a_server_of_replication(pooler, source):
    first, second, other = logical(pooler), logical(pooler), pooler.client()
    pids = [each.value("SELECT pg_backend_pid()") for each in (first, second, other)]
    assert len(set(pids)) == 3
    assert sorted(str(row["pid"]) for row in senders(source)) == sorted(pids[:2])
    # Other clients use the pool's mode: their server is free, these are not.
    assert first.value("SELECT pg_backend_pid()") == pids[0]
    assert pooler.client().value("SELECT pg_backend_pid()") == pids[2]
    assert len(pooler.servers(state="active", replication="logical")) == 2
    assert len(pooler.servers(state="idle", replication="none")) == 1


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_replication_uses_session_mode_whatever_the_pool_has(make, mode):
    pooler = make({"pool_mode": mode})
    client = logical(pooler)
    client.query("BEGIN")
    assert client.status == "T"
    client.query("SET work_mem = '77MB'")
    client.query("COMMIT")
    assert client.value("SHOW work_mem") == "77MB"


def test_idle_server_of_the_pool_is_not_taken(pooler, source):
    pooler.client().query("SELECT 1")
    client = logical(pooler)
    client.query("SELECT 1")
    wait_until(lambda: len(senders(source)) == 1)
    assert len(pooler.servers()) == 2


def test_its_server_is_launched_at_the_first_query_if_the_welcome_is_known(pooler, source):
    pooler.client().query("SELECT 1")
    client = logical(pooler)
    assert not senders(source)
    assert pooler.clients(replication="logical")[0]["state"] == "idle"
    assert identify(client)[3] == "main"
    assert len(senders(source)) == 1


def test_its_server_is_launched_at_once_if_the_welcome_is_unknown(pooler, source):
    client = physical(pooler)
    assert len(senders(source)) == 1
    (row,) = pooler.clients(replication="physical")
    assert row["state"] == "active"
    assert pooler.servers(replication="physical")[0]["link"] == row["ptr"]
    assert client.parameters["server_version"] and client.parameters["TimeZone"] == "UTC"
    assert identify(client)[3] is None


def test_its_startup_values_are_not_used_for_others(pooler):
    client = logical(pooler, TimeZone="Asia/Tokyo", DateStyle="german", application_name="mine")
    assert client.parameters["TimeZone"] == "Asia/Tokyo"
    assert client.parameters["DateStyle"] == "German, DMY", "as its server spells it"
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"
    other = pooler.client()
    assert other.parameters["TimeZone"] == "UTC"
    assert other.parameters["DateStyle"] == "ISO, MDY"
    assert other.parameters["application_name"] == ""


def test_automatic_databases_serve_replication_too(make, source):
    pooler = make(databases={"*": {}})
    assert identify(physical(pooler))
    assert len(pooler.servers(database="replication", replication="physical")) == 1


def test_the_values_of_the_replication_parameter(pooler):
    for word, kind in {"database": "logical", "on": "physical", "off": "none"}.items():
        database = "replication" if kind == "physical" else "main"
        client = pooler.client(database=database, replication=word)
        assert len(pooler.clients(replication=kind)) == 1
        client.leave()
    for word in ("database", "yes", "no"):
        assert pooler.lines(f"login attempt: db=.* user=app tls=no replication={word}$")


# --- what its server receives -----------------------------------------------------------------


def login_and_stream(connection):
    """Let the pooler log in and answer as a server of replication does."""
    connection.login()
    while True:
        found = connection.read()
        if found.type == "X":
            return
        if found.type == "Q" and b"START_REPLICATION" in found.body:
            connection.send(wire.message("W", struct.pack("!bH", 0, 0)))
            connection.server.gate.wait(10)
        elif found.type == "Q":
            connection.send(wire.one_row("answer"))


OPTIONS = "-c geqo=off  -E --my.var=a\\ b "


def test_the_startup_message_has_its_parameters_and_options_unchanged(make, new_server):
    server = new_server(login_and_stream)
    target = server.target(dbname="real", application_name="entry", user="app")
    pooler = make(databases={"main": target})
    client = pooler.client(
        replication="database", options=OPTIONS, timezone="Asia/Tokyo", IntervalStyle="iso_8601"
    )
    assert list(server.connections[0].startup.items()) == [
        ("database", "real"),
        ("application_name", "entry"),
        ("replication", "database"),
        ("TimeZone", "Asia/Tokyo"),
        ("IntervalStyle", "iso_8601"),
        ("options", OPTIONS),
        ("user", "app"),
    ]
    # And nothing is set later, though the server reports other values.
    assert client.value("IDENTIFY_SYSTEM") == "answer"
    assert [found.body for found in server.connections[0].received] == [b"IDENTIFY_SYSTEM\0"]


def test_physical_replication_sends_replication_yes(make, new_server):
    server = new_server(login_and_stream)
    pooler = make(databases={"main": server.target(connect_query="SELECT 'hello'")})
    client = pooler.client(replication="1")
    assert list(server.connections[0].startup.items()) == [
        ("database", "main"), ("replication", "yes"), ("user", "app"),
    ]  # fmt: skip
    client.value("IDENTIFY_SYSTEM")
    # It cannot run SQL, so no connect_query.
    assert [found.body for found in server.connections[0].received] == [b"IDENTIFY_SYSTEM\0"]


def test_parameters_of_its_server_reach_the_client(make, new_server):
    server = new_server(login_and_stream)
    pooler = make(databases={"main": server.target()})
    pooler.client().query("SELECT 1")
    client = pooler.client(replication="database", application_name="mine")
    assert client.value("IDENTIFY_SYSTEM") == "answer"
    startup = server.connections[1].startup
    assert startup["application_name"] == "mine"
    assert startup["TimeZone"] == dict(PARAMETERS)["TimeZone"]


def test_its_options_are_not_parsed(pooler):
    client = logical(pooler, options="-e  -c geqo=off")
    assert client.value("SHOW geqo") == "off"
    assert client.value("SHOW DateStyle") == "ISO, DMY"


def test_logical_replication_runs_the_connect_query(make):
    pooler = make(databases={"main": {"connect_query": "SET work_mem = '77MB'"}})
    assert logical(pooler).value("SHOW work_mem") == "77MB"


def test_password_of_the_client_logs_in_to_its_server(make, source):
    secrets = {"scram_login": source.secret("scram_login")}
    pooler = make({"auth_type": "scram-sha-256"}, auth=secrets)
    client = pooler.client(
        "scram_login", "replication", "scram secret", replication="true", TimeZone="UTC"
    )
    assert identify(client)[0]
    assert senders(source)[0]["usename"] == "scram_login"


# --- pool limits ------------------------------------------------------------------------------


def test_idle_servers_are_evicted_for_replication(make, source):
    pooler = make({"default_pool_size": 1})
    other = pooler.client()
    other.query("SELECT 1")
    client = logical(pooler)
    assert identify(client)
    assert len(pooler.servers()) == 1
    assert pooler.lines("S-.*closing because: evicted")
    # And it keeps its server until it disconnects.
    other.send(wire.query("SELECT 'at last'"))
    pooler.wait_pool(cl_waiting=1)
    assert other.silent()
    client.leave()
    assert other.result().value == "at last"


def test_without_room_it_waits_and_gets_no_server_of_others(make, source):
    pooler = make({"default_pool_size": 2})
    holders = [pooler.client(), pooler.client()]
    for holder in holders:
        holder.query("BEGIN")
    waiter = pooler.client()
    waiter.send(wire.query("SELECT pg_backend_pid()"))
    pooler.wait_pool(cl_waiting=1)
    client = logical(pooler)
    client.send(IDENTIFY)
    pooler.wait_pool(cl_waiting=2)
    assert pooler.clients(replication="logical")[0]["state"] == "waiting"
    # The waiting client came first; its server is idle then, and is evicted.
    holders[0].query("COMMIT")
    assert waiter.result().value
    assert client.result().rows[0][3] == "main"
    assert pooler.lines("S-.*closing because: evicted")


def test_its_turn_comes_before_later_clients(make, source):
    pooler = make({"default_pool_size": 1})
    holder = pooler.client()
    holder.query("BEGIN")
    client, later = logical(pooler), pooler.client()
    client.send(IDENTIFY)
    pooler.wait_pool(cl_waiting=1)
    later.send(wire.query("SELECT 'later'"))
    pooler.wait_pool(cl_waiting=2)
    holder.query("COMMIT")
    assert client.result().rows[0][3] == "main"
    assert later.silent(0.1)
    client.leave()
    assert later.result().value == "later"


def test_several_that_wait_get_their_servers_in_turn(make, source):
    pooler = make({"default_pool_size": 5})
    clients = [logical(pooler) for _ in range(5)]
    for client in clients:
        client.send(IDENTIFY)
    assert all(client.result().rows for client in clients)
    assert len(senders(source)) == 5


@pytest.mark.setting("query_wait_timeout")
def test_its_wait_is_limited_as_for_others(make):
    pooler = make({"default_pool_size": 1, "query_wait_timeout": 1})
    pooler.client().query("BEGIN")
    client = logical(pooler)
    client.send(IDENTIFY)
    assert client.fatal().is_("FATAL", "57014", "query_wait_timeout")


@pytest.mark.setting("query_wait_notify")
def test_it_is_notified_that_it_waits(make):
    pooler = make({"default_pool_size": 1, "query_wait_notify": 1})
    pooler.client().query("BEGIN")
    client = logical(pooler)
    client.send(IDENTIFY)
    assert b"No server connection available" in client.read_until("N")[-1].body


def test_a_login_that_waits_for_room_gets_its_welcome_then(make):
    pooler = make({"default_pool_size": 1})
    first = physical(pooler)
    second = pooler.raw()
    second.send_startup("app", "replication", replication="true")
    pooler.wait_pool("replication", cl_waiting=1)
    # No login of these gives the pool its welcome, so none goes beyond its size.
    assert second.silent() or second.read().type == "R"
    assert len(pooler.servers()) == 1
    first.leave()
    assert second.finish_login("app").parameters["TimeZone"] == "UTC"


@pytest.mark.setting("reserve_pool_size")
def test_the_reserve_is_for_replication_too(make, source):
    pooler = make({"default_pool_size": 1, "reserve_pool_size": 1, "reserve_pool_timeout": 0.5})
    pooler.client().query("BEGIN")
    client = logical(pooler)
    assert identify(client)
    assert pooler.lines("taking connection from reserve_pool")


@pytest.mark.setting("max_db_connections")
def test_servers_of_other_pools_of_the_database_are_evicted(make):
    pooler = make({"max_db_connections": 1})
    pooler.client("alice").query("SELECT 1")
    assert identify(logical(pooler))
    assert [row["user"] for row in pooler.servers()] == ["app"]


@pytest.mark.setting("server_lifetime")
def test_its_server_has_no_age_limit_and_no_second_use(make, source):
    pooler = make({"server_lifetime": 1, "server_idle_timeout": 1})
    client = start_stream(physical(pooler))
    stays(lambda: len(senders(source)) == 1, 1.6)
    next_wal(client, source)
    client.leave()
    wait_until(lambda: not senders(source))
    assert pooler.servers() == []


@pytest.mark.setting("min_pool_size")
def test_its_server_does_not_count_for_min_pool_size(make, source):
    pooler = make({"min_pool_size": 2})
    client = logical(pooler)
    pooler.wait_pool(sv_idle=1, sv_active=1)
    client.leave()
    wait_until(lambda: not senders(source))
    pooler.client().query("SELECT 1")
    pooler.wait_pool(sv_idle=2, sv_active=0)
    assert not pooler.servers(replication="logical")


def test_it_is_counted_as_no_assignment(pooler):
    pooler.client().query("SELECT 1")
    client = logical(pooler)
    client.query("SELECT 1")
    (stats,) = pooler.show("STATS_TOTALS", database="main")
    assert stats["server_assignment_count"] == "1"
    assert int(stats["query_count"]) == 2


# --- logins that fail -------------------------------------------------------------------------


@pytest.mark.setting("server_login_retry")
def test_only_its_client_gets_the_error_of_a_failed_login(make):
    pooler = make({"server_login_retry": 60})
    assert pooler.refused("alice", replication="database").is_("FATAL", "08P01", "login failed")
    assert pooler.lines("ERROR S-.* S: login failed: FATAL: .*(?i:wal ?sender)")
    assert pooler.lines(r"S-.*closing because: login failed \(age=0s\)")
    assert pooler.lines(r"C-.*closing because: login failed \(age=0s\)")
    assert not pooler.lines("server login failed")
    # The pool is not affected.
    client = pooler.client("alice")
    assert client.value("SELECT 1") == "1"
    late = pooler.client("alice", replication="database")
    late.send(IDENTIFY)
    assert late.fatal().is_("FATAL", "08P01", "login failed")
    assert client.value("SELECT 2") == "2"


def test_a_refusal_of_other_logins_does_not_hold_for_replication(make, source):
    """Physical replication does not need the database to exist."""
    pooler = make({"server_login_retry": 60})
    assert "does not exist" in pooler.refused(database="replication").text
    assert identify(physical(pooler))
    # Nor does it mean that other logins would succeed now.
    other = pooler.raw()
    other.send_startup(database="replication")
    pooler.wait_pool("replication", cl_waiting=1)
    assert identify(physical(pooler))
    assert len(pooler.lines("server login failed: FATAL")) == 1


def test_it_waits_for_a_server_that_cannot_be_reached(make, source):
    port = free_port()
    pooler = make({"server_login_retry": 0.2}, databases={"main": {"host": HOST, "port": port}})
    client = pooler.raw()
    client.send_startup(replication="database")
    pooler.wait_log("connect failed", count=2)
    pooler.databases["main"] = {"host": HOST, "port": source.port}
    pooler.write_config()
    pooler.command("RELOAD")
    assert identify(client.finish_login("app"))


def test_a_server_that_crashes_in_its_login_is_a_failed_login(make, new_server):
    def crash(connection):
        if "replication" not in connection.accept_startup():
            connection.welcome()
            connection.serve()

    server = new_server(crash)
    pooler = make(databases={"main": server.target()})
    assert pooler.refused(replication="database").is_("FATAL", "08P01", "login failed")
    assert pooler.client().value("query") == "query"


def test_client_that_disconnects_ends_the_login_of_its_server(make, new_server):
    server = new_server(lambda connection: connection.accept_startup() and connection.wait_disconnected())
    pooler = make(databases={"main": server.target()})
    client = pooler.raw()
    client.send_startup(replication="database")
    server.wait_count(1)
    client.close()
    server.wait_all_ended()
    pooler.wait_log("S-.*closing because: replication client was closed")
    assert pooler.servers() == []
    # That was no failure of the server.
    server.script = login_and_stream
    assert pooler.client(replication="database")


# --- streams ----------------------------------------------------------------------------------


def test_wal_and_status_updates_are_passed_on_at_once(pooler, source):
    client = start_stream(physical(pooler))
    for _ in range(3):
        next_wal(client, source)
        answer(client)
    answer(client, reply_requested=True)
    while client.read().body[:1] != b"k":
        pass
    (row,) = source.sql("SELECT * FROM pg_stat_replication")
    assert row["state"] == "streaming"
    wait_until(lambda: source.value("SELECT reply_time FROM pg_stat_replication"))


def test_small_pieces_are_passed_on_at_once(make, new_server):
    data = wire.copy_data(b"w" * 595)

    def script(connection):
        connection.login()
        connection.next_query()
        connection.send(wire.message("W", struct.pack("!bH", 0, 0)))
        for at in range(0, len(data), 50):
            connection.send(data[at : at + 50])
            connection.read()  # sent after the client has received that

    server = new_server(script)
    pooler = make(databases={"main": server.target()})
    client = pooler.client(replication="database")
    client.send(wire.query("START_REPLICATION"))
    client.read_until("W")
    for at in range(0, len(data), 50):
        assert client.read_bytes(50, 5) == data[at : at + 50]
        client.send(wire.copy_data(b"r"))


def test_client_ends_the_stream_and_goes_on(pooler, source):
    client = start_stream(physical(pooler))
    next_wal(client, source)
    client.send(wire.copy_done())
    result = client.result()
    assert "c" in result.types and result.types.endswith("CZ")
    assert identify(client)
    start_stream(client).send(wire.copy_done())
    assert client.result().status == "I"
    assert len(senders(source)) == 1


BOTH = wire.message("W", struct.pack("!bH", 0, 0))
ENDED = (
    wire.row_description("next_tli") + wire.data_row("2") + wire.command_complete("SELECT 1")
    + wire.command_complete("START_STREAMING") + wire.ready()
)  # fmt: skip


def test_server_ends_the_stream(make, new_server):
    """The end of a timeline: several CommandCompletes behind the CopyDone of both sides."""

    def script(connection):
        connection.login()
        connection.next_query()
        connection.send(BOTH, wire.copy_data(b"wal"), wire.copy_done())
        assert connection.read().type == "d" and connection.read().type == "c"
        connection.send(ENDED)
        connection.serve()

    server = new_server(script)
    pooler = make(databases={"main": server.target()})
    client = pooler.client(replication="database")
    client.send(wire.query("START_REPLICATION"))
    assert "".join(each.type for each in client.read_until("c")) == "Wdc"
    client.send(wire.copy_data(b"r"), wire.copy_done())
    assert client.result().types == "TDCCZ"
    # Nothing is outstanding: the next query is answered, and the server counts as idle.
    assert client.value("next") == "next"
    pooler.command("PAUSE")
    assert client.fatal().text == "pause mode"


@pytest.mark.parametrize("late", [wire.copy_done(), wire.copy_fail(), b""])
def test_error_in_the_stream_ends_it(make, new_server, late):
    def script(connection):
        connection.login()
        connection.next_query()
        connection.send(BOTH, wire.copy_data(b"wal"), wire.error("58P01", "segment removed"))
        connection.send(wire.ready())
        while True:
            found = connection.read()  # late messages are ignored, as in PostgreSQL
            if found.type == "Q":
                connection.send(wire.one_row("next"))

    server = new_server(script)
    pooler = make(databases={"main": server.target()})
    client = pooler.client(replication="database")
    client.send(wire.query("START_REPLICATION"))
    result = client.result()
    assert result.types == "WdEZ" and result.error.sqlstate == "58P01"
    client.send(wire.copy_data(b"r") + late)
    assert client.value("next") == "next"
    pooler.command("PAUSE")
    assert client.fatal().text == "pause mode"


def test_several_result_sets_pass_unchanged(pooler, source):
    """A base backup: two results with rows, one COPY, one more result with rows."""
    client = physical(pooler)
    client.send(wire.query("BASE_BACKUP (CHECKPOINT 'fast', WAL true)"))
    types = client.result(60).types
    assert "".join(each for each in types if each not in "dDN") == "TCTCHcTCCZ"
    assert identify(client)


def test_the_server_refuses_the_extended_protocol_and_the_session_continues(pooler):
    client = physical(pooler)
    client.send(wire.extended("IDENTIFY_SYSTEM"), wire.sync())
    result = client.result()
    assert result.error and result.types.endswith("EZ")
    assert identify(client)


def test_a_stream_that_no_client_asked_for_ends_the_server(make, new_server):
    def script(connection):
        connection.login()
        connection.next_query()
        connection.send(BOTH)
        connection.wait_disconnected()

    server = new_server(script)
    pooler = make(databases={"main": server.target()})
    client = pooler.client()
    client.send(wire.query("SELECT 1"))
    assert client.fatal().is_("FATAL", "08P01", "unknown pkt")


# --- disconnects ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["close", "reset", "leave"])
def test_client_that_disconnects_ends_the_wal_sender_at_once(make, source, way):
    pooler = make({"default_pool_size": 1})
    client = start_stream(physical(pooler))
    next_wal(client, source)
    getattr(client, way)()
    wait_until(lambda: not senders(source), 2)
    pooler.wait_log("S-.*closing because: replication client disconnected")
    assert start_stream(physical(pooler))


def test_client_that_disconnects_in_a_base_backup_ends_it_too(pooler, source):
    client = physical(pooler)
    client.send(wire.query("BASE_BACKUP (CHECKPOINT 'fast', MAX_RATE 1024)"))
    client.read_until("d")
    client.close()
    wait_until(lambda: not senders(source), 5)


def test_client_that_disconnects_between_two_commands(pooler, source):
    client = physical(pooler)
    identify(client)
    client.leave()
    pooler.wait_log("S-.*closing because: replication client was closed")
    wait_until(lambda: not senders(source), 2)
    assert pooler.servers() == []


def test_client_gets_an_error_when_its_server_closes(pooler, source):
    client = start_stream(physical(pooler))
    source.terminate(senders(source)[0]["pid"])
    errors = [ServerError(each.body) for each in client.read_all() if each.type == "E"]
    assert errors[0].sqlstate == "57P01"
    assert errors[-1].is_("FATAL", "08006", "server conn crashed?")
    pooler.wait_log("C-.*closing because: server conn crashed")


def test_client_of_a_killed_idle_session_gets_an_error(pooler, source):
    client, other = logical(pooler), pooler.client()
    other.query("SELECT 1")
    source.terminate(senders(source)[0]["pid"])
    assert client.fatal().text == "server conn crashed?"
    assert other.value("SELECT 1") == "1"


def test_kill_client(pooler, source):
    client = start_stream(physical(pooler))
    (row,) = pooler.clients()
    pooler.command(f"KILL_CLIENT {row['id']}")
    assert client.fatal().is_("FATAL", "57P01", "admin forced disconnect")
    wait_until(lambda: not senders(source), 2)


def test_reconnect_ends_it_at_the_next_maintenance(pooler, source):
    client, idle = start_stream(physical(pooler)), logical(pooler)
    pooler.command("RECONNECT")
    for each in (client, idle):
        assert each.fatal().is_("FATAL", "57P01", "database configuration changed")
    assert pooler.command("WAIT_CLOSE").tag == "WAIT_CLOSE"
    wait_until(lambda: not senders(source))


def test_changed_configuration_ends_it_too(pooler, source):
    client = start_stream(physical(pooler))
    pooler.databases["replication"] = {"dbname": "elsewhere"}
    pooler.write_config()
    pooler.command("RELOAD")
    assert client.fatal().text == "database configuration changed"
    assert start_stream(physical(pooler))


# --- cancel and limits ------------------------------------------------------------------------


def test_cancel_hits_a_query(pooler, source):
    client = logical(pooler)
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: senders(source, wait_event="PgSleep"))
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"
    assert identify(client)


def test_cancel_ends_the_wait_for_a_server(make):
    pooler = make({"default_pool_size": 1})
    holder = pooler.client()
    holder.query("BEGIN")
    client = logical(pooler)
    client.send(IDENTIFY)
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, client.key)
    result = client.result()
    assert (result.error.severity, result.error.sqlstate) == ("ERROR", "57014")
    holder.query("COMMIT")
    assert identify(client)


def test_cancel_ends_a_login_that_waits_too(make, new_server):
    server = new_server(lambda connection: connection.accept_startup() and connection.wait_disconnected())
    pooler = make(databases={"main": server.target()})
    server.script, hanging = login_and_stream, server.script
    pooler.client().query("SELECT 1")
    server.script = hanging
    client = pooler.client(replication="database")
    client.send(IDENTIFY)
    server.wait_count(2)
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"
    wait_until(lambda: len(server.open) == 1)
    server.script = login_and_stream
    assert client.value("IDENTIFY_SYSTEM") == "answer"


def test_cancel_hits_a_stream(pooler, source):
    client = start_stream(physical(pooler))
    next_wal(client, source)
    cancel(pooler.address, client.key)
    errors = [found for found in client.read_until("Z") if found.type == "E"]
    assert ServerError(errors[0].body).sqlstate == "57014"
    assert identify(client)


@pytest.mark.setting("query_timeout")
@pytest.mark.setting("transaction_timeout")
def test_query_timeout_does_not_apply_to_a_stream(make, source):
    limits = {"query_timeout": 0.5, "transaction_timeout": 0.5, "client_idle_timeout": 0.5}
    pooler = make(limits)
    source.sql("SELECT pg_create_physical_replication_slot('s')")
    source.ask("main", "SELECT pg_create_logical_replication_slot('l', 'test_decoding')")
    first, second, third = start_stream(physical(pooler), "s"), logical(pooler), physical(pooler)
    second.send(wire.query("START_REPLICATION SLOT l LOGICAL 0/0"))
    second.read_until("W")
    third.send(wire.query("BASE_BACKUP (CHECKPOINT 'fast', MAX_RATE 1024)"))
    third.read_until("d")
    stays(lambda: len(senders(source)) == 3, 1.5)
    next_wal(first, source)
    source.ask("main", "SELECT pg_logical_emit_message(true, 'test', 'decoded')")
    next_wal(second)
    assert third.read().type == "d"
    assert pooler.clients(replication="logical")[0]["wait"] == "0"


@pytest.mark.setting("query_timeout")
def test_query_timeout_applies_to_logical_replication(make):
    client = logical(make({"query_timeout": 0.5}))
    client.send(wire.query("SELECT pg_sleep(60)"))
    assert client.fatal().is_("FATAL", "57014", "query timeout")


@pytest.mark.setting("idle_transaction_timeout")
def test_idle_transaction_timeout_applies_to_logical_replication(make):
    client = logical(make({"idle_transaction_timeout": 0.5}))
    client.query("BEGIN")
    assert client.fatal().text == "idle transaction timeout"


@pytest.mark.setting("client_idle_timeout")
def test_client_idle_timeout_applies_without_a_server(make):
    pooler = make({"client_idle_timeout": 1})
    pooler.client().query("SELECT 1")
    assert logical(pooler).fatal().text == "client_idle_timeout"


# --- access rules -----------------------------------------------------------------------------


HBA = """
host pgbouncer all all trust
host replication app 127.0.0.1/32 trust
host main app 127.0.0.1/32 trust
host all alice 127.0.0.1/32 trust
host replication bob 127.0.0.1/32 reject
"""


def test_physical_replication_needs_a_rule_of_its_own(make):
    pooler = make({"auth_type": "hba", "auth_hba_file": "hba.conf"}, start=False)
    pooler.write("hba.conf", HBA)
    pooler.start()
    # Whatever database it names.
    assert identify(physical(pooler))
    assert identify(pooler.client(replication="true"))
    # The keyword does not match others, not even a database of that name.
    refusal = ("FATAL", "28000", "no authentication method is found")
    assert pooler.refused(database="replication").is_(*refusal)
    # `all` does not match physical replication; logical replication is matched by its database.
    assert pooler.refused("alice", "replication", replication="true").is_(*refusal)
    assert pooler.refused("bob", replication="true").is_("FATAL", "28000", "login rejected")
    assert identify(logical(pooler))
    assert pooler.refused("alice", replication="database").text == "login failed"


def test_user_that_is_in_no_file_is_looked_up(make, source):
    source.sql("CREATE ROLE asker LOGIN SUPERUSER")
    try:
        pooler = make(
            {"auth_type": "scram-sha-256", "auth_user": "asker", "auth_dbname": "main"},
            auth={"asker": "", "scram_login": None},
        )
        secret = "scram secret"
        client = pooler.client("scram_login", "replication", secret, replication="true")
        assert identify(client)
        servers = pooler.superuser().query("SHOW SERVERS").dicts()
        (row,) = (row for row in servers if row["user"] == "asker")
        assert (row["replication"], row["database"], row["state"]) == ("none", "main", "idle")
        (row,) = senders(source)
        assert row["usename"] == "scram_login"
    finally:
        pooler.close_clients()
        wait_until(lambda: not senders(source))
        source.clear()
        source.sql("DROP ROLE asker")


@pytest.mark.setting("max_user_client_connections")
def test_limits_of_clients_apply_to_replication(make):
    pooler = make({"max_user_client_connections": 1})
    client = logical(pooler)
    assert pooler.refused(replication="database").sqlstate == "53300"
    assert identify(client)


# --- operators --------------------------------------------------------------------------------


def catch_up(client, source):
    """Read until the stream has delivered everything."""
    sent = "SELECT bool_and(sent_lsn = pg_current_wal_lsn()) FROM pg_stat_replication"

    def has_all():
        while not client.silent(0.1):
            client.read()
        return source.value(sent)

    wait_until(has_all)
    while not client.silent(0.1):
        client.read()


def test_pause_ends_streams_and_waits_for_other_commands(make, source):
    pooler = make({"pool_mode": "session"})
    stream, idle, backup = start_stream(physical(pooler)), logical(pooler), physical(pooler)
    backup.send(wire.query("BASE_BACKUP (CHECKPOINT 'fast', MAX_RATE 32768)"))
    backup.read_until("d")
    # The stream began at the start of a segment, so no half message is pending.
    catch_up(stream, source)
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    for each in (stream, idle):
        assert each.fatal().is_("FATAL", "57P01", "pause mode")
    assert console.silent(0.1)
    found = backup.read_until("Z", 60)
    assert console.result().tag == "PAUSE"
    assert found[-2].type == "C", "it was complete"
    assert backup.fatal().text == "pause mode"
    wait_until(lambda: not senders(source), 2)
    # A client that connects again waits as others do.
    late = pooler.raw()
    late.send_startup("app", "replication", replication="true")
    pooler.wait_pool("replication", cl_waiting=1)
    pooler.command("RESUME")
    assert identify(late.finish_login("app"))


def test_pause_of_another_database_has_no_effect(pooler, source):
    client = start_stream(physical(pooler))
    assert pooler.command("PAUSE main").tag == "PAUSE"
    stays(lambda: len(senders(source)) == 1, 0.8)
    next_wal(client, source)


def test_suspend_stops_a_stream_between_two_messages(pooler, source):
    client = start_stream(physical(pooler))
    next_wal(client, source)
    assert pooler.command("SUSPEND").tag == "SUSPEND"
    source.sql("SELECT pg_logical_emit_message(true, 'test', 'held')")
    wait_until(
        lambda: source.value("SELECT sent_lsn = pg_current_wal_lsn() FROM pg_stat_replication")
    )
    while not client.silent():
        client.read()
    pooler.command("RESUME")
    next_wal(client, source)


def test_suspend_while_other_clients_wait(make, source):
    """In transaction mode clients with a server continue to free it for others, but a stream does
    not."""
    pooler = make({"default_pool_size": 2})
    client, holder, waiter = logical(pooler), pooler.client(), pooler.client()
    identify(client)
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 'served'"))
    pooler.wait_pool(cl_waiting=1)
    console = pooler.console()
    console.send(wire.query("SUSPEND"))
    wait_until(lambda: pooler.admin("SHOW STATE")[2]["value"] == "yes")
    client.send(IDENTIFY)
    assert client.silent()
    holder.query("COMMIT")
    assert console.result().tag == "SUSPEND"
    console.query("RESUME")
    assert waiter.result().value == "served"
    assert client.result().rows


def test_shutdown_that_waits_for_servers_ends_streams(pooler, source):
    client = start_stream(physical(pooler))
    pooler.command("SHUTDOWN WAIT_FOR_SERVERS")
    assert client.fatal().is_("FATAL", "57P01", "server shutting down")
    assert pooler.wait_exit() == 0


def test_shutdown_that_waits_for_clients_ends_streams_last(pooler, source):
    stream, idle, other = start_stream(physical(pooler)), logical(pooler), pooler.client()
    pooler.close_console()
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("SIGTERM")
    stays(lambda: len(senders(source)) == 2, 0.8)
    next_wal(stream, source)
    assert other.value("SELECT 1") == "1"
    other.leave()
    for each in (stream, idle):
        assert each.fatal().is_("FATAL", "57P01", "server shutting down")
    assert pooler.wait_exit() == 0


# --- a new process ----------------------------------------------------------------------------


def test_new_process_continues_every_connection(make, source):
    pooler = make({"default_pool_size": 3, "suspend_timeout": 5}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    stream, busy = start_stream(physical(pooler)), logical(pooler)
    busy.query("BEGIN")
    holder, idle = pooler.client(), pooler.client(replication="database", options="-c geqo=off")
    holder.query("BEGIN")
    waiter = logical(pooler)
    others = [pooler.client()]
    others[0].query("BEGIN")
    waiter.send(IDENTIFY)
    pooler.wait_pool(cl_waiting=1)
    before = {row["id"]: row["replication"] for row in pooler.clients() + pooler.servers()}
    pooler.close_console()
    pooler.take_over()
    after = {row["id"]: row["replication"] for row in pooler.clients() + pooler.servers()}
    assert after == before
    assert sorted(after.values()).count("logical") == 4
    next_wal(stream, source)
    answer(stream)
    assert busy.query("COMMIT").tag == "COMMIT"
    # There is room: a waiting client gets it, and its server serves no other client.
    holder.leave()
    assert waiter.result().rows[0][3] == "main"
    waiter.leave()
    assert idle.value("SHOW geqo") == "off", "its options have come along"
    stream.send(wire.copy_done())
    assert stream.result().status == "I"
    for each in (stream, busy, idle):
        each.leave()
    wait_until(lambda: not senders(source))
    assert not pooler.servers(state="idle", replication="logical")


def test_other_poolers_do_not_get_connections_of_replication(pooler, source):
    start_stream(physical(pooler))
    logical(pooler)
    pooler.client().query("SELECT 1")
    console = pooler.superuser()
    console.query("SUSPEND")
    tasks = [row["task"] for row in console.query("SHOW FDS").dicts()]
    assert sorted(tasks) == ["client", "pooler", "pooler", "server"]
    console.query("RESUME")


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_encrypted_stream_ends_in_the_old_process(make, source):
    authority = Authority()
    try:
        certificate, key = authority.issue("localhost", "DNS:localhost")
        pooler = make({
            "client_tls_sslmode": "allow", "client_tls_cert_file": certificate,
            "client_tls_key_file": key,
        })  # fmt: skip
        folder = make_folder("pgusher-wal-")
        receiver = start_tool(
            pooler, "pg_receivewal", "-D", folder, "--no-loop", "-d", "dbname=replication sslmode=require"
        )
        wait_until(lambda: source.sql("SELECT 1 FROM pg_stat_replication WHERE state='streaming'"))
        pooler.close_console()
        # It is the last client there, and its stream does not end by itself.
        pooler.take_over()
        assert receiver.wait(10) == 1
        assert pooler.lines("C-.*closing because: server shutting down")
        assert identify(physical(pooler))
    finally:
        authority.destroy()
        drop_folder(folder)


# --- more tools -------------------------------------------------------------------------------


def start_tool(pooler, name, *arguments):
    """Start one of the programs, which runs until it is stopped."""
    return subprocess.Popen(
        as_service([program(name), "-h", HOST, "-p", str(pooler.port), "-U", "app", *arguments]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        env={**os.environ, "HOME": "/nonexistent"},  # libpq looks for certificates there
    )


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_receivewal_receives_segments_and_stops_in_order(pooler, source, folder):
    receiver = start_tool(pooler, "pg_receivewal", "-D", folder, "--no-loop", "-v")
    wait_until(lambda: glob.glob(folder + "/*.partial"), 30)
    for count in (1, 2, 3):
        source.sql("SELECT pg_logical_emit_message(true, 'test', 'one more'), pg_switch_wal()")
        wait_until(
            lambda c=count: len([f for f in os.listdir(folder) if len(f) == 24]) >= c, 30
        )
    receiver.send_signal(signal.SIGINT)
    output = receiver.communicate(timeout=15)
    assert receiver.returncode == 0, output
    wait_until(lambda: not senders(source))
    name = min(name for name in os.listdir(folder) if len(name) == 24)
    with open(os.path.join(folder, name), "rb") as one:
        with open(os.path.join(source.data, "pg_wal", name), "rb") as other:
            assert one.read() == other.read()


def test_recvlogical_decodes_changes(pooler, source, folder):
    path = os.path.join(folder, "changes")
    slot = ["--slot", "decoded", "-d", "main"]
    tool(pooler, "pg_recvlogical", *slot, "--create-slot", "-P", "test_decoding")
    receiver = start_tool(pooler, "pg_recvlogical", *slot, "--start", "-f", path, "--no-loop")
    wait_until(lambda: source.sql("SELECT 1 FROM pg_replication_slots WHERE active"))
    source.ask("main", "DROP TABLE IF EXISTS decoded; CREATE TABLE decoded (a int)")
    for number in range(3):
        source.ask("main", f"INSERT INTO decoded VALUES ({number})")

    def changes():
        with open(path) as file:
            return [line for line in file if "INSERT" in line]

    wait_until(lambda: len(changes()) == 3)
    receiver.send_signal(signal.SIGINT)
    assert receiver.wait(15) == 0
    tool(pooler, "pg_recvlogical", *slot, "--drop-slot")
    assert not source.sql("SELECT 1 FROM pg_replication_slots")


def test_psycopg2_streams_and_acknowledges(pooler, source):
    psycopg2 = pytest.importorskip("psycopg2")
    extras = pytest.importorskip("psycopg2.extras")
    connection = psycopg2.connect(
        host=HOST, port=pooler.port, user="app", dbname="main",
        connection_factory=extras.LogicalReplicationConnection,
    )  # fmt: skip
    cursor = connection.cursor()
    cursor.create_replication_slot("p2", output_plugin="test_decoding")
    cursor.start_replication(slot_name="p2", decode=True)
    source.ask("main", "DROP TABLE IF EXISTS p2; CREATE TABLE p2 AS SELECT 'seen' AS word")
    found = []

    def seen():
        message = cursor.read_message()
        if message:
            found.append(message.payload)
            cursor.send_feedback(flush_lsn=message.data_start)
        return any("seen" in each for each in found)

    wait_until(seen)
    connection.close()
    wait_until(lambda: not senders(source), 2)


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_standby_follows_through_the_pooler(pooler, source, folder):
    target, port = os.path.join(folder, "data"), free_port()
    tool(pooler, "pg_basebackup", "-D", target, "-R", "-X", "stream", "-c", "fast")
    configure(target, {"port": port, "unix_socket_directories": f"'{folder}'", "hot_standby": "on"})
    log = open(os.path.join(folder, "log"), "wb")
    standby = subprocess.Popen(
        as_service([program("postgres"), "-D", target], death_signal=signal.SIGINT),
        stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
    )  # fmt: skip
    try:
        source.ask("main", "DROP TABLE IF EXISTS followed; CREATE TABLE followed AS SELECT 7 AS a")

        def followed():
            try:
                with psycopg.connect(
                    host=folder, port=port, dbname="main", user="harness"
                ) as connection:
                    return connection.execute("SELECT a FROM followed").fetchone() == (7,)
            except psycopg.Error:
                return False

        wait_until(followed, 30)
        assert len(pooler.servers(replication="physical")) == 1
        # Its stream is cut, and it connects again.
        source.terminate(senders(source)[0]["pid"])
        source.ask("main", "UPDATE followed SET a = 8")
        wait_until(lambda: senders(source), 15)
    finally:
        standby.send_signal(signal.SIGQUIT)
        standby.wait(15)
        log.close()
