# SPDX-License-Identifier: ISC
"""Parameters that PgBouncer 1.26 tracks by default: all that servers report and clients may set."""

import re

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import wait_until
from support.servers.fake_server import PARAMETERS, simple_answer

NAMES = {
    "application_name": "mine",
    "client_encoding": "LATIN1",
    "DateStyle": "German, DMY",
    "default_transaction_read_only": "on",
    "IntervalStyle": "iso_8601",
    "scram_iterations": "5000",
    "search_path": "tenant",
    "session_authorization": "bob",
    "standard_conforming_strings": "off",
    "TimeZone": "Asia/Tokyo",
}

# What a server of PostgreSQL 18 reports, and one of 15 does not.
ONLY_NEW = {"scram_iterations": "4096", "search_path": '"$user", public'}
REPORTED = (
    *PARAMETERS,
    ("default_transaction_read_only", "off"),
    ("session_authorization", "app"),
    *ONLY_NEW.items(),
)


@pytest.fixture
def boss(cluster):
    """A superuser, and a role that a session of this user may act as."""
    cluster.sql("CREATE ROLE boss SUPERUSER LOGIN")
    yield "boss"
    cluster.clear()
    cluster.sql("DROP ROLE boss")


@pytest.fixture
def boss_pooler(new_pooler, boss):
    """One server connection, of a superuser."""
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"user": boss}},
    )


# Asked before the SETs that follow a client's SET.
LIMITS = "SHOW statement_timeout;SHOW lock_timeout"


class Reporting:
    """A scripted server that reports what is SET, as PostgreSQL does, and keeps the queries. Its
    connections report these parameters, the last tuple for all further ones."""

    def __init__(self, new_server, *reported):
        self.queries = []
        self.reported = reported or (REPORTED,)
        self.server = new_server(self.script)

    def script(self, connection):
        first = dict(self.reported[min(connection.number, len(self.reported) - 1)])
        names = {name.lower(): name for name in first}
        connection.login(parameters=first.items())

        def run(statement):
            """The tag of one statement, and the report of the parameter that it has changed."""
            found = re.fullmatch(
                r"(?:SET (\w+)=(.*)|RESET (\w+)|SELECT pg_catalog.set_config\('(\w+)','(.*)',false\))",
                statement,
            )
            report = b""
            if found:
                name = (found[1] or found[3] or found[4]).lower()
                value = found[2] or found[5]
                if name in names:
                    value = first[names[name]] if found[3] else value.strip("'") or '""'
                    report = wire.parameter_status(names[name], value)
            return wire.command_complete(statement.split()[0]), report

        def answer(_, sql):
            if not isinstance(sql, str):
                return None
            if sql == LIMITS:
                rows = wire.data_row("0") + wire.command_complete("SHOW")
                return 2 * (wire.row_description("limit") + rows) + wire.ready()
            # SETs that the pooler sends alone are kept as those with a transaction around them.
            alone = sql.startswith(("SET ", "RESET ")) and sql.endswith(";")
            self.queries.append(f"BEGIN;{sql}COMMIT" if alone else sql)
            if sql == "wait":
                assert self.server.gate.wait(20)
            if not sql.startswith(("SET ", "BEGIN;", "RESET ")):
                return simple_answer(sql)
            tags, reports = zip(*(run(each) for each in sql.split(";") if each))
            return b"".join(tags + reports) + wire.ready()

        connection.serve(answer)


def reporting_pooler(new_pooler, reporting, **settings):
    return new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, **settings},
        databases={"main": reporting.server.target()},
    )


# A SET of a client stays with it


def test_a_read_only_default_stays_with_the_client_that_set_it(one_server):
    one, two = one_server.client(), one_server.client()
    one.query("SET default_transaction_read_only = on")
    two.query("CREATE TABLE written (); DROP TABLE written")
    with pytest.raises(ServerError) as failure:
        one.query("CREATE TABLE written ()")
    assert failure.value.sqlstate == "25006"
    assert two.value("SHOW default_transaction_read_only") == "off"
    one.query("RESET default_transaction_read_only")
    one.query("CREATE TABLE written (); DROP TABLE written")


def test_a_session_authorization_stays_with_the_client_that_set_it(boss_pooler):
    one, two = boss_pooler.client(), boss_pooler.client()
    one.query("SET SESSION AUTHORIZATION bob")
    for _ in range(2):
        assert two.value("SELECT session_user") == "boss"
        assert one.value("SELECT session_user") == "bob"
    one.query("RESET SESSION AUTHORIZATION")
    assert two.value("SELECT session_user") == "boss"
    assert one.value("SELECT session_user") == "boss"
    assert len(boss_pooler.servers()) == 1


def test_a_clients_session_authorization_takes_no_rights_from_another(boss_pooler):
    """It is reset before anything is set, and a check of startup values runs without it too."""
    one = boss_pooler.client()
    one.query("SET SESSION AUTHORIZATION bob")
    two = boss_pooler.client(options="-c log_min_messages=error")
    for _ in range(2):
        one.query("SELECT 1")
        assert two.value("SHOW log_min_messages") == "error"
    one.query("SELECT 1")
    error = boss_pooler.refused(log_min_messages="soon")
    assert error.sqlstate == "22023"
    assert boss_pooler.client(options="-c log_min_messages=panic")
    assert two.value("SELECT session_user") == "boss"


def test_session_authorization_is_followed_with_role_and_in_any_case(boss_pooler, cluster):
    cluster.sql('CREATE ROLE "Bob"; GRANT bob TO "Bob"')
    try:
        one = boss_pooler.client(options="-c session_authorization=Bob -c role=bob")
        two = boss_pooler.client(session_authorization="bob")
        for _ in range(2):
            sql = "SELECT session_user, current_user"
            assert one.query(sql).rows == [("Bob", "bob")]
            assert two.query(sql).rows == [("bob", "bob")]
        one.query("RESET ROLE")
        two.query("SET SESSION AUTHORIZATION DEFAULT")
    finally:
        boss_pooler.close_clients()
        cluster.clear()
        cluster.sql('DROP ROLE "Bob"')


def test_a_session_authorization_without_the_right_is_refused_at_login(one_server):
    error = one_server.refused(session_authorization="bob")
    assert error.sqlstate == "42501"
    client = one_server.client(session_authorization="app")
    assert client.value("SELECT session_user") == "app"


@pytest.mark.parametrize("name", ["scram_iterations", "search_path"])
def test_what_only_newer_servers_report_stays_with_its_client(one_server, name):
    one, two = one_server.client(), one_server.client()
    if name not in two.parameters:
        pytest.skip(f"this server does not report {name}")
    default = two.value(f"SHOW {name}")
    one.query(f"SET {name} = {NAMES[name]}")
    for _ in range(2):
        assert two.value(f"SHOW {name}") == default
        assert one.value(f"SHOW {name}") == NAMES[name]


def test_reported_values_of_all_ten_follow_their_client(new_pooler, new_server):
    reporting = Reporting(new_server)
    pooler = reporting_pooler(new_pooler, reporting)
    one, two = pooler.client(), pooler.client()
    for name in ("default_transaction_read_only", "scram_iterations", "search_path"):
        one.query(f"SET {name}={NAMES[name]}")
    reporting.queries.clear()
    two.query("SELECT 2")
    one.query("SELECT 1")
    assert reporting.queries == [
        "BEGIN;RESET default_transaction_read_only;SET scram_iterations='4096';"
        'SET search_path="$user", public;COMMIT',
        "SELECT 2",
        "BEGIN;SET scram_iterations='5000';SET search_path=tenant;"
        "SET default_transaction_read_only='on';COMMIT",
        "SELECT 1",
    ]


def test_clients_that_set_nothing_cost_no_set(new_pooler, new_server):
    reporting = Reporting(new_server)
    pooler = reporting_pooler(new_pooler, reporting)
    clients = [pooler.client() for _ in range(3)]
    for client in clients * 2:
        client.query("SELECT 1")
    assert reporting.queries == ["SELECT 1"] * 6


# Startup


@pytest.mark.parametrize("policy", ["follow", "strict"])
@pytest.mark.parametrize("inside", [False, True], ids=["beside", "in options"])
@pytest.mark.parametrize("name", NAMES)
def test_all_ten_are_accepted_at_the_start(new_pooler, new_server, policy, inside, name):
    pooler = reporting_pooler(new_pooler, Reporting(new_server), startup_parameters=policy)
    pooler.client()
    value = NAMES[name]
    given = {"options": f"-c {name}={value.replace(' ', chr(92) + ' ')}"} if inside else {name: value}
    client = pooler.client(**given)
    assert client.parameters[name] == value


def test_strict_gives_the_values_to_the_server(new_pooler, boss):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "startup_parameters": "strict"},
        databases={"main": {"user": boss}},
    )
    one = pooler.client(session_authorization="bob", default_transaction_read_only="on")
    two = pooler.client()
    sql = "SELECT session_user, current_setting('default_transaction_read_only')"
    for _ in range(2):
        assert one.query(sql).rows == [("bob", "on")]
        assert two.query(sql).rows == [("boss", "off")]


def test_a_default_of_the_role_is_what_clients_are_brought_back_to(new_pooler, cluster):
    cluster.sql("ALTER ROLE app SET default_transaction_read_only = on")
    try:
        pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
        one, two = pooler.client(), pooler.client(default_transaction_read_only="off")
        assert one.parameters["default_transaction_read_only"] == "on"
        for _ in range(2):
            assert two.value("SHOW default_transaction_read_only") == "off"
            assert one.value("SHOW default_transaction_read_only") == "on"
        one.query("SET default_transaction_read_only = off")
        one.query("RESET default_transaction_read_only")
        two.query("SELECT 1")
        assert one.value("SHOW default_transaction_read_only") == "on"
    finally:
        pooler.close_clients()
        cluster.clear()
        cluster.sql("ALTER ROLE app RESET default_transaction_read_only")


# Lists of names


@pytest.mark.parametrize(
    "value, sent",
    [
        ('""', "''"),
        ('"A", b', '"A", b'),
        ('"$user", public', '"$user", public'),
        ('"it\'s; DROP", "a""b"', '"it\'s; DROP", "a""b"'),
    ],
)
def test_a_reported_search_path_is_set_as_it_was_reported(new_pooler, new_server, value, sent):
    def script(connection):
        reported = dict(REPORTED)
        if connection.number == 0:
            reported["search_path"] = value
        else:
            reported["search_path"] = "other"
        connection.login(parameters=reported.items())
        connection.serve()

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 2},
        databases={"main": server.target()},
    )
    one, two = pooler.client(), pooler.client()
    one.query("BEGIN")
    one.send(wire.query("SELECT 1"))
    one.result()
    two.send(wire.query("SELECT 2"))
    two.result()
    assert server.count >= 1
    queries = [m.body[:-1].decode() for c in server.connections for m in c.received if m.type == "Q"]
    if server.count > 1:
        assert f"BEGIN;SET search_path={sent};COMMIT" in queries


def test_letter_case_of_a_quoted_schema_counts(new_pooler, new_server):
    reporting = Reporting(new_server)
    pooler = reporting_pooler(new_pooler, reporting)
    one, two = pooler.client(), pooler.client()
    one.query('SET search_path="A"')
    two.query('SET search_path="a"')
    reporting.queries.clear()
    one.query("SELECT 1")
    assert reporting.queries == ['BEGIN;SET search_path="A";COMMIT', "SELECT 1"]


# Servers that do not report one of them


OLD = tuple(pair for pair in REPORTED if pair[0] not in ONLY_NEW)


def test_an_unreported_startup_value_reaches_no_other_client(new_pooler, new_server):
    reporting = Reporting(new_server, OLD)
    pooler = reporting_pooler(new_pooler, reporting)
    one, two = pooler.client(search_path="tenant"), pooler.client()
    reporting.queries.clear()
    one.query("SELECT 1")
    two.query("SELECT 2")
    one.query("SELECT 1")
    followed = "BEGIN;SELECT pg_catalog.set_config('search_path','tenant',false);COMMIT"
    assert reporting.queries == [
        followed, "SELECT 1", "BEGIN;RESET search_path;COMMIT", "SELECT 2", followed, "SELECT 1",
    ]


def test_a_name_to_be_ignored_is_ignored_where_servers_do_not_report_it(one_server, new_pooler):
    """Operators have listed search_path since poolers refused it."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "ignore_startup_parameters": "search_path, geqo"}
    )
    client = pooler.client(search_path="pg_catalog")
    reported = "search_path" in client.parameters
    expected = "pg_catalog" if reported else '"$user", public'
    assert client.value("SHOW search_path") == expected


def test_a_pool_with_servers_of_two_versions(new_pooler, new_server):
    """The first server does not report search_path, the second does: nothing leaks there, and a
    client's own SET is not undone by what it asked for at its start."""
    reporting = Reporting(new_server, OLD, REPORTED)
    pooler = reporting_pooler(new_pooler, reporting, default_pool_size=2)
    one, two, holder = pooler.client(search_path="tenant"), pooler.client(), pooler.client()
    assert "search_path" not in two.parameters
    holder.send(wire.query("wait"))
    wait_until(lambda: "wait" in reporting.queries)
    two.query("SET search_path=mine")
    assert reporting.server.count == 2
    one.query("SELECT 1")
    late = pooler.client()
    assert late.parameters["search_path"] == '"$user", public'
    names = [wire.read_pairs(m.body)[0][0] for m in late.welcome if m.type == "S"]
    assert len(names) == len(set(names)), "each is reported once"
    reporting.queries.clear()
    late.query("SELECT 3")
    two.query("SELECT 2")
    one.query("SET search_path=second")
    late.query("SELECT 3")
    one.query("SELECT 1")
    default = 'SET search_path="$user", public;'
    assert reporting.queries == [
        f"BEGIN;RESET search_path;{default}COMMIT", "SELECT 3",
        "BEGIN;SET search_path=mine;COMMIT", "SELECT 2",
        "BEGIN;SET search_path=tenant;SELECT pg_catalog.set_config('search_path','tenant',false);"
        "COMMIT", "SET search_path=second",
        f"BEGIN;RESET search_path;{default}COMMIT", "SELECT 3",
        "BEGIN;SET search_path=second;SELECT pg_catalog.set_config('search_path','second',false);"
        "COMMIT", "SELECT 1",
    ]
    reporting.server.gate.set()
    holder.result()


# Other ways


def test_an_online_restart_keeps_them(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    one, two = pooler.client(), pooler.client()
    one.query("SET default_transaction_read_only = on")
    pooler.take_over()
    for _ in range(2):
        assert two.value("SHOW default_transaction_read_only") == "off"
        assert one.value("SHOW default_transaction_read_only") == "on"


def test_in_session_mode_the_next_session_begins_anew(session_pooler):
    client = session_pooler.client()
    client.query("SET default_transaction_read_only = on")
    client.leave()
    session_pooler.wait_pool(sv_idle=1)
    assert session_pooler.client().value("SHOW default_transaction_read_only") == "off"
