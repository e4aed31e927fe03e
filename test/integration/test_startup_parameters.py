# SPDX-License-Identifier: ISC
"""Startup parameters that servers do not report: they follow their own client only."""

import os
import re
import struct

import pytest

from support import wire
from support.clients.raw import RawClient, ServerError
from support.process import wait_until

# Name, a value for the client, what SHOW calls it, the server's own.
FOLLOWED = [
    ("search_path", "main_schema, public", "main_schema, public", '"$user", public'),
    ("statement_timeout", "12345", "12345ms", "0"),
    ("extra_float_digits", "3", "3", "1"),
    ("work_mem", "77MB", "77MB", "4MB"),
    ("Lock_Timeout", "5s", "5s", "0"),
    ("default_transaction_isolation", "serializable", "serializable", "read committed"),
    ("bytea_output", "escape", "escape", "hex"),
]


@pytest.fixture
def one_server(new_pooler):
    """The same fixture as elsewhere, but it logs its SETs."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "verbose": 1})


def batches(pooler):
    """The SETs that were sent to servers, in order."""
    lines = pooler.lines("varcache_apply: ")
    return [re.sub(r"^.*varcache_apply: ", "", line) for line in lines]


# They follow


@pytest.mark.parametrize("name, value, called, default", FOLLOWED)
def test_a_parameter_follows_its_client_and_no_other(one_server, name, value, called, default):
    one, plain = one_server.client(**{name: value}), one_server.client()
    for _ in range(3):
        assert one.value(f"SHOW {name}") == called
        assert plain.value(f"SHOW {name}") == default
    assert len(one_server.servers()) == 1


@pytest.mark.parametrize("mode", ["session", "transaction", "statement"])
def test_it_follows_in_each_mode(new_pooler, mode):
    pooler = new_pooler({"pool_mode": mode, "default_pool_size": 1})
    for value in ("1MB", "2MB"):
        client = pooler.client(work_mem=value)
        assert client.value("SHOW work_mem") == value
        client.leave()
        pooler.wait_pool(sv_idle=1)
    assert pooler.client().value("SHOW work_mem") == "4MB"


def test_a_custom_parameter_follows_whatever_its_value(one_server):
    values = {"my.var": "it's; \\ me", "app.user": "42", "app.select.Left": "x"}
    one, other = one_server.client(**values), one_server.client()
    for _ in range(2):
        for name, value in values.items():
            assert one.value(f"SELECT current_setting('{name}')") == value
            assert not other.value(f"SELECT current_setting('{name}', true)")


def test_a_list_of_names_is_a_list(one_server, cluster):
    cluster.ask("main", "CREATE SCHEMA \"Odd, one\"; GRANT USAGE ON SCHEMA \"Odd, one\" TO app")
    try:
        client = one_server.client(search_path='"Odd, one", Public, pg_catalog')
        other = one_server.client(search_path="public")
        for _ in range(2):
            assert client.value("SELECT current_schema()") == "Odd, one"
            assert other.value("SELECT current_schema()") == "public"
    finally:
        cluster.ask("main", 'DROP SCHEMA "Odd, one"')


def test_a_list_of_tablespaces_is_a_list(one_server, cluster):
    spaces = ("space", "Space two")
    with cluster.connect("main") as connection:
        connection.execute("SET allow_in_place_tablespaces = on")
        for space in spaces:
            connection.execute(f"CREATE TABLESPACE \"{space}\" OWNER app LOCATION ''")
    try:
        client, other = one_server.client(temp_tablespaces='space, "Space two"'), one_server.client()
        for _ in range(2):
            assert client.value("SHOW temp_tablespaces") == 'space, "Space two"'
            assert other.value("SHOW temp_tablespaces") == ""
    finally:
        cluster.clear()
        for space in spaces:
            cluster.sql(f'DROP TABLESPACE "{space}"')


def test_options_set_several(one_server):
    options = "-c work_mem=9MB --statement_timeout=1min -c my.var=two\\ words -c geqo=off"
    client, other = one_server.client(options=options), one_server.client()
    other.query("SELECT 1")
    assert client.value("SHOW work_mem") == "9MB"
    assert client.value("SHOW statement_timeout") == "1min"
    assert client.value("SHOW my.var") == "two words"
    assert client.value("SHOW geqo") == "off"
    assert other.value("SHOW geqo") == "on"


def test_of_a_repeated_parameter_the_last_counts(one_server):
    client = one_server.client(options="-c work_mem=1MB -c WORK_MEM=2MB -c work_mem=3MB")
    assert client.value("SHOW work_mem") == "3MB"


def test_parameters_of_one_transaction_have_no_effect(one_server, cluster):
    """As with PostgreSQL, which accepts and forgets them."""
    with cluster.connect("main", "app", options="-c transaction_read_only=on") as direct:
        assert direct.execute("SHOW transaction_read_only").fetchone() == {
            "transaction_read_only": "off"
        }
    client = one_server.client(transaction_read_only="on", transaction_isolation="serializable")
    assert client.value("SHOW transaction_read_only") == "off"
    assert client.value("SHOW transaction_isolation") == "read committed"


def test_libpq_and_drivers_may_set_any_parameter(one_server):
    connection = one_server.connect(options="-c search_path=pg_catalog -c statement_timeout=9s")
    other = one_server.connect()
    for _ in range(2):
        assert connection.execute("SHOW search_path").fetchone() == ("pg_catalog",)
        assert connection.execute("SHOW statement_timeout").fetchone() == ("9s",)
        assert other.execute("SHOW statement_timeout").fetchone() == ("0",)
    environment = {**os.environ, "PGOPTIONS": "-c work_mem=5MB"}
    shown = one_server.psql("-Atc", "SHOW work_mem", env=environment)
    assert shown.stdout.strip() == "5MB"


def test_many_clients_with_different_values_share_three_servers(new_pooler):  # F42
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 3})
    zones = ["UTC", "Asia/Tokyo", "Europe/Paris", "America/Lima", "Africa/Cairo"]
    names = ["TimeZone", "DateStyle", "application_name", "search_path", "work_mem", "my.var"]
    defaults = {"search_path": '"$user", public', "work_mem": "4MB", "my.var": ""}
    clients = []
    for number in range(50):
        values = {
            "TimeZone": zones[number % 5],
            "DateStyle": ["ISO, MDY", "German, DMY", "SQL, DMY"][number % 3],
            "application_name": f"client {number}",
        }
        if number % 2:
            values["search_path"] = f"schema_{number % 7}, public"
        if number % 3:
            values["work_mem"] = f"{number + 1}MB"
        if number % 4:
            values["my.var"] = f"mine {number}"
        clients.append((pooler.client(**values), {**defaults, **values}))
    sql = "SELECT " + ", ".join(
        f"coalesce(current_setting('{name}', true), '')" for name in names
    )
    for turn in range(4):
        for client, _ in clients:
            client.send(wire.query(sql) if turn % 2 else wire.extended(sql) + wire.sync())
        for client, values in clients:
            assert client.checked().rows == [tuple(values[name] for name in names)]
    assert len(pooler.servers()) <= 3


# In one batch, and only where they differ


def test_all_is_set_in_one_query_and_only_where_it_differs(one_server):
    one = one_server.client(work_mem="1MB", geqo="off", timezone="Asia/Tokyo")
    same = one_server.client(geqo="off", TimeZone="Asia/Tokyo", Work_Mem="1MB")
    other = one_server.client(geqo="off", timezone="Asia/Tokyo")
    plain = one_server.client()
    before = len(batches(one_server))
    for client in (one, same, one, other, other, plain, plain, one):
        client.query("SELECT 1")
    assert batches(one_server)[before:] == [
        "SET TimeZone='Asia/Tokyo';SET geqo='off';SET work_mem='1MB';",
        "RESET work_mem;",
        "RESET geqo;SET TimeZone='UTC';",
        "SET TimeZone='Asia/Tokyo';SET geqo='off';SET work_mem='1MB';",
    ]


def test_no_query_runs_with_parameters_that_could_not_be_set(one_server, cluster):
    """A value was valid, and no longer is: the statement that was sent with it is not run."""
    cluster.ask("main", "CREATE TABLE written (line int); GRANT ALL ON written TO app")
    with cluster.connect("main") as connection:
        connection.execute("SET allow_in_place_tablespaces = on")
        connection.execute("CREATE TABLESPACE gone OWNER app LOCATION ''")
    dropped = False
    try:
        client, other = one_server.client(default_tablespace="gone"), one_server.client()
        assert client.value("SHOW default_tablespace") == "gone"
        assert other.value("SHOW default_tablespace") == ""
        cluster.sql("DROP TABLESPACE gone")
        dropped = True
        client.send(wire.query("INSERT INTO written VALUES (1)"))
        assert client.result().error.sqlstate == "22023"
        one_server.wait_log(r"varcache_apply failed: ERROR: .*gone")
        assert other.value("SELECT count(*) FROM written") == "0"
        assert other.value("SHOW default_tablespace") == ""
    finally:
        cluster.ask("main", "DROP TABLE written")
        if not dropped:
            cluster.sql("DROP TABLESPACE gone")


def test_a_parameter_that_cannot_be_set_any_more_needs_another_server(one_server):
    """temp_buffers cannot change once there was a temporary table: another server can set it."""
    one, other = one_server.client(temp_buffers="1MB"), one_server.client(temp_buffers="2MB")
    for client in (one, other, one):
        client.query("CREATE TEMP TABLE here (line int); DROP TABLE here")
        size = "1MB" if client is one else "2MB"
        assert client.value("SHOW temp_buffers") == size


# Changes that a client makes to its session


@pytest.mark.parametrize(
    "sql",
    [
        "SET work_mem = '9MB'",
        "RESET work_mem",
        "RESET ALL",
        "DISCARD ALL",
        "BEGIN; SET work_mem = '9MB'; COMMIT",
        "BEGIN; SET work_mem = '9MB'; ROLLBACK",
        "BEGIN; SET LOCAL work_mem = '9MB'; COMMIT",
    ],
)
def test_the_session_is_checked_after_a_client_changed_it(one_server, sql):
    one, plain = one_server.client(work_mem="1MB", geqo="off"), one_server.client()
    for _ in range(2):
        for statement in sql.split("; "):
            one.query(statement)
        kept = "9MB" if sql in ("SET work_mem = '9MB'", "BEGIN; SET work_mem = '9MB'; COMMIT") else "1MB"
        assert one.value("SHOW work_mem") == kept
        for statement in sql.split("; "):
            one.query(statement)
        assert plain.value("SHOW work_mem") == "4MB"
        assert plain.value("SHOW geqo") == "on"


def test_the_session_is_checked_after_a_batch_changed_it(one_server):
    one, plain = one_server.client(work_mem="1MB"), one_server.client()
    one.query("SELECT 1; SET work_mem = '9MB'; SELECT 2")
    assert one.value("SHOW work_mem") == "9MB"
    one.send(wire.extended("SET work_mem = '8MB'") + wire.sync())
    one.checked()
    assert one.value("SHOW work_mem") == "8MB"
    one.send(wire.extended("SET work_mem = '9MB'") + wire.sync())
    one.checked()
    assert plain.value("SHOW work_mem") == "4MB"


ASKED = {
    "application_name": "mine",
    "TimeZone": "Asia/Tokyo",
    "search_path": "pg_catalog, public",
    "work_mem": "1MB",
    "my.var": "it's",
}
SHOWN = "SELECT " + ", ".join(f"current_setting('{name}')" for name in [*ASKED, "geqo"])

# Queries of a client in one transaction after the other.
RESETS = [
    ["RESET ALL"],
    ["DISCARD ALL"],
    ["RESET TimeZone"],
    ["RESET work_mem"],
    ["RESET my.var"],
    ["SET TimeZone = 'Europe/Paris'", "RESET ALL"],
    ["SET TimeZone = 'UTC'", "RESET ALL"],
    ["SET search_path = '$user', public", "DISCARD ALL"],
    ["SET application_name = ''", "DISCARD ALL"],
    ["SET geqo = off; RESET ALL"],
    ["SELECT 1; CLOSE ALL; UNLISTEN *; RESET ALL;"],
    ["BEGIN; RESET ALL; COMMIT"],
    ["BEGIN; RESET ALL; ROLLBACK"],
    ["RESET TimeZone", "SET TimeZone = 'Europe/Paris'"],
    ["SET TimeZone = 'Europe/Paris'", "RESET application_name"],
]

# A SET that is not reported lasts as long as the session.
RESETS_OF_SESSIONS = [
    ["SET work_mem = '9MB'", "RESET ALL"],
    ["SET work_mem = '9MB'", "RESET TimeZone"],
    ["SET my.var = 'x'", "RESET work_mem"],
    ["SET work_mem = '9MB'; SET my.var = 'x'", "DISCARD ALL"],
]


def say_all(client, ask, script, between):
    """The answers to a client's queries, with other clients between them."""
    outcomes = []
    for sql in script:
        result = ask(client, sql)
        outcomes.append((result.tags, sorted(result.parameters), result.status))
        if result.status == "I":
            between()
    return outcomes


def compare_resets(new_pooler, cluster, mode, script, ask):
    """Send the same to PostgreSQL and through the pooler: compare the answers and the final values."""
    pooler = new_pooler({"pool_mode": mode, "default_pool_size": 1})
    client, between = pooler.client(**ASKED), lambda: None
    if mode == "transaction":
        plain = pooler.client()
        between = lambda: plain.query("SELECT 1")
    with RawClient((cluster.host, cluster.port)).login("app", "main", **ASKED) as direct:
        ours = say_all(client, ask, script, between)
        theirs = say_all(direct, ask, script, lambda: None)
        assert client.query(SHOWN).rows == direct.query(SHOWN).rows
        assert client.parameters == direct.parameters
    return ours, theirs


def ask_extended(client, sql):
    """Send each statement of a text by the extended protocol, in one batch."""
    parts = [wire.extended(each) for each in sql.strip(";").split("; ")]
    return client.send(*parts, wire.sync()).checked()


@pytest.mark.parametrize("ask", [RawClient.query, ask_extended], ids=["simple", "extended"])
@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("script", RESETS, ids=" - ".join)
def test_a_reset_restores_what_the_client_asked_for(new_pooler, cluster, mode, script, ask):
    ours, theirs = compare_resets(new_pooler, cluster, mode, script, ask)
    assert ours == theirs


@pytest.mark.parametrize("script", RESETS_OF_SESSIONS, ids=" - ".join)
def test_a_reset_changes_nothing_else(new_pooler, cluster, script):
    ours, theirs = compare_resets(new_pooler, cluster, "session", script, RawClient.query)
    assert ours == theirs


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_reset_in_a_transaction_counts_from_its_end_on(new_pooler, cluster, mode, end):
    """Until then the client sees the server's own value, which is in force."""
    for script in (["RESET TimeZone"], ["SET TimeZone = 'Europe/Paris'", "RESET ALL"]):
        script = ["BEGIN", *script, "SELECT 1", end]
        ours, theirs = compare_resets(new_pooler, cluster, mode, script, RawClient.query)
        assert ("TimeZone", "UTC") in ours[-3][1]
        assert [tags for tags, _, _ in ours] == [tags for tags, _, _ in theirs]


RESTORED = "startup parameters are set again after a reset"


def test_a_reset_without_effect_costs_nothing(one_server):
    plain = one_server.client(client_encoding="utf-8", datestyle="iso, mdy")
    following = one_server.client(work_mem="1MB")
    for client in (plain, following):
        for sql in ("RESET ALL", "DISCARD ALL", "SET work_mem = '2MB'; RESET ALL"):
            client.query(sql)
    assert not one_server.lines(RESTORED)
    one_server.client(timezone="Asia/Tokyo").query("RESET ALL")
    assert len(one_server.lines(RESTORED)) == 1


def test_with_strict_a_reset_restores_the_servers_own(new_pooler):
    pooler = new_pooler({"pool_mode": "session", "startup_parameters": "strict"})
    client = pooler.client(TimeZone="Asia/Tokyo")
    client.query("RESET ALL")
    assert client.value("SHOW TimeZone") == "UTC"


@pytest.mark.parametrize("own", ["latin1", "utf8"])
def test_values_are_restored_from_the_encoding_of_the_start(session_pooler, own):
    client = session_pooler.raw()
    client.send(latin1_startup())
    client.finish_login("app")
    client.query(f"SET client_encoding = {own}")
    for sql in ("RESET work_mem", "SET my.name = ''; RESET my.name"):
        client.query(sql)
        octets = "SELECT octet_length(convert_to(current_setting('my.name'), 'UTF8'))"
        assert client.value(octets) == "2"
        assert client.value("SHOW client_encoding") == own.upper()
    client.query("RESET ALL")
    assert client.value("SHOW client_encoding") == "LATIN1"
    assert client.parameters["client_encoding"] == "LATIN1"


def test_a_reset_keeps_the_unnamed_statement(session_pooler):
    client = session_pooler.client(work_mem="1MB")
    client.send(wire.parse("RESET ALL", "reset"), wire.parse("SHOW work_mem"), wire.sync())
    client.checked()
    reset = wire.bind(statement="reset", portal="mine") + wire.execute("mine")
    client.send(reset, wire.sync()).checked()
    client.send(wire.bind(), wire.execute(), wire.sync())
    assert client.checked().value == "1MB"
    names = client.query("SELECT name FROM pg_prepared_statements").rows
    assert names == [("reset",)]


def test_a_role_is_restored_after_a_reset_of_it(session_pooler, roles):
    client = session_pooler.client(role="team", work_mem="1MB")
    for sql in ("SET ROLE app; RESET ROLE", "DISCARD ALL", "RESET ALL"):
        client.query(sql)
        assert client.value("SELECT current_user") == "team"
    client.query("SET ROLE app; RESET work_mem")
    assert client.value("SELECT current_user") == "app"


def test_the_values_of_a_reset_survive_an_online_restart(new_pooler):
    pooler = new_pooler({"pool_mode": "session"})
    client, inside = pooler.client(**ASKED), pooler.client(**ASKED)
    inside.query("BEGIN")
    inside.query("RESET ALL")
    pooler.take_over()
    client.query("DISCARD ALL")
    inside.query("COMMIT")
    for each in (client, inside):
        assert each.query(SHOWN).rows == [(*ASKED.values(), "on")]
        assert each.parameters["TimeZone"] == "Asia/Tokyo"


def test_other_commands_cost_nothing(one_server):
    one = one_server.client(work_mem="1MB")
    one.query("SELECT 1")
    before = len(batches(one_server))
    for sql in ("SELECT 1", "DISCARD TEMP", "BEGIN", "SET CONSTRAINTS ALL DEFERRED", "COMMIT"):
        one.query(sql)
    one.query("SELECT 1")
    assert len(batches(one_server)) == before


def test_the_reset_query_resets_everything(new_pooler):
    pooler = new_pooler({"pool_mode": "session", "default_pool_size": 1, "verbose": 1})
    pooler.client(work_mem="1MB").query("SELECT 1")
    pooler.close_clients()
    pooler.wait_pool(sv_idle=1)
    before = len(batches(pooler))
    assert pooler.client().value("SHOW work_mem") == "4MB"
    assert len(batches(pooler)) == before


def test_another_reset_query_does_not_reset_everything(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "session",
            "default_pool_size": 1,
            "server_reset_query": "SELECT pg_advisory_unlock_all()",
        }
    )
    pooler.client(work_mem="1MB").query("SELECT 1")
    pooler.close_clients()
    pooler.wait_pool(sv_idle=1)
    assert pooler.client().value("SHOW work_mem") == "4MB"


def test_connect_query_runs_again_after_a_reset(new_pooler):
    query = "SET work_mem = '33MB'; SET TimeZone = 'Asia/Tokyo' -- of ours"
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"connect_query": query}},
    )
    one = pooler.client(work_mem="1MB", timezone="Europe/Paris")
    plain = pooler.client()
    zoned = pooler.client(timezone="Europe/Paris")
    for _ in range(2):
        assert one.value("SHOW work_mem") == "1MB"
        assert zoned.value("SHOW TimeZone") == "Europe/Paris"
        assert one.value("SHOW TimeZone") == "Europe/Paris"
        assert plain.value("SHOW work_mem") == "33MB"
        assert plain.value("SHOW TimeZone") == "Asia/Tokyo"


def test_a_connect_query_that_fails_is_not_repeated(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"connect_query": "SELECT 1/0"}},
    )
    one, plain = pooler.client(work_mem="1MB"), pooler.client()
    pid = one.value("SELECT pg_backend_pid()")
    for _ in range(2):
        assert plain.value("SHOW work_mem") == "4MB"
        assert one.value("SHOW work_mem") == "1MB"
    one = pooler.client(work_mem="2MB")
    assert one.value("SELECT pg_backend_pid()") == pid


# Roles of a session


@pytest.fixture
def roles(cluster):
    """The role team, which app may set, and the superuser boss."""
    cluster.sql("CREATE ROLE team; GRANT team TO app; CREATE ROLE boss SUPERUSER LOGIN")
    yield
    cluster.clear()
    cluster.sql("DROP ROLE team; DROP ROLE boss")


def test_a_role_follows_its_client_and_no_other(one_server, roles):
    one = one_server.client(options="-c role=team -c work_mem=1MB")
    plain = one_server.client(work_mem="2MB")
    for _ in range(3):
        assert one.value("SELECT current_user") == "team"
        assert one.value("SHOW work_mem") == "1MB"
        assert plain.value("SELECT current_user") == "app"
        assert plain.value("SHOW work_mem") == "2MB"


def test_a_parameter_for_superusers_does_not_depend_on_a_role(new_pooler, roles):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"user": "boss"}},
    )
    one = pooler.client(options="-c role=team -c log_min_messages=error")
    other = pooler.client(options="-c session_authorization=app -c log_min_messages=fatal")
    for _ in range(2):
        assert one.value("SELECT current_user") == "team"
        assert one.value("SHOW log_min_messages") == "error"
        assert other.value("SELECT session_user") == "app"
        assert other.value("SHOW log_min_messages") == "fatal"


# Answers of the server


@pytest.fixture
def statements(cluster):
    """Counts the statements with this text that app has run since."""
    cluster.sql("ALTER ROLE app SET log_statement = 'all'")
    start = len(cluster.log())
    yield lambda text: cluster.log()[start:].count(text)
    cluster.clear()
    cluster.sql("ALTER ROLE app RESET log_statement")


SPELT = [
    ("client_encoding", "utf-8", "UTF8"),
    ("client_encoding", "'latin-1'", "LATIN1"),
    ("TimeZone", "utc", "UTC"),
    ("DateStyle", "iso, mdy", "ISO, MDY"),
    ("DateStyle", "German", "German, DMY"),
    ("TimeZone", "asia/tokyo", "Asia/Tokyo"),
    ("IntervalStyle", "ISO_8601", "iso_8601"),
    ("standard_conforming_strings", "OFF", "off"),
    ("application_name", "naïve", "na??ve"),
    ("default_transaction_read_only", "1", "on"),
]


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize("name, value, called", SPELT)
def test_the_welcome_has_the_servers_spelling(new_pooler, cluster, mode, name, value, called):
    pooler = new_pooler({"pool_mode": mode, "verbose": 1})
    direct = RawClient((cluster.host, cluster.port))
    try:
        expected = direct.login("app", "main", **{name: value}).parameters[name]
    finally:
        direct.close()
    assert expected == called or name == "application_name"  # which versions spell in two ways
    client = pooler.client(**{name: value})
    assert client.parameters[name] == expected
    assert pooler.client().parameters[name] != expected or value.lower() in ("utf-8", "utc", "iso, mdy")
    assert client.value(f"SHOW {name}") == expected


BAD = [
    ("timezone", "Nowhere/Land"),
    ("DateStyle", "nonsense"),
    ("client_encoding", "klingon"),
    ("statement_timeout", "soon"),
    ("work_mem", "1"),
    ("search_path", "a b"),
    ("log_min_messages", "error"),
    ("role", "nobody at all"),
    ("session_authorization", "harness"),
    ("my..var", "1"),
]


@pytest.mark.parametrize("name, value", BAD)
def test_a_bad_value_is_reported_at_login_as_postgres_does(one_server, cluster, name, value):
    direct = RawClient((cluster.host, cluster.port))
    with pytest.raises(ServerError) as outcomes:
        direct.login("app", "main", **{name: value})
    direct.close()
    other = one_server.client()
    other.query("SELECT 1")
    for _ in range(2):
        error = one_server.refused(**{name: value})
        assert error.is_("FATAL", outcomes.value.fields["C"], outcomes.value.fields["M"])
    assert other.value("SELECT 1") == "1"
    assert len(one_server.servers()) == 1


def test_parameters_that_servers_report_besides_reach_the_client(one_server, cluster):
    """PostgreSQL 18 reports search_path; no version reports work_mem."""
    wishes = {"search_path": "Public,  pg_catalog", "work_mem": "1MB"}
    direct = RawClient((cluster.host, cluster.port))
    outcomes = direct.login("app", "main", **wishes).parameters
    direct.close()
    for _ in range(2):
        client = one_server.client(**wishes)
        assert client.parameters.get("search_path") == outcomes.get("search_path")
        assert "work_mem" not in client.parameters
    plain = one_server.client().parameters.get("search_path")
    assert plain == ('"$user", public' if "search_path" in outcomes else None)


def test_what_a_client_sets_of_it_follows_where_servers_report_it(one_server):
    client, plain = one_server.client(search_path="public"), one_server.client()
    if "search_path" not in client.parameters:
        pytest.skip("this server does not report search_path")
    client.query("SET search_path = pg_catalog")
    assert client.parameters["search_path"] == "pg_catalog"
    assert plain.value("SHOW search_path") == '"$user", public'
    assert client.value("SHOW search_path") == "pg_catalog"
    client.query("BEGIN")
    client.query("SET search_path = nowhere")
    client.query("ROLLBACK")
    assert plain.value("SHOW search_path") == '"$user", public'
    assert client.value("SHOW search_path") == "pg_catalog"


@pytest.mark.parametrize("policy", ["follow", "strict"])
def test_a_search_path_may_be_tracked(new_pooler, policy):
    """A tracked parameter that the server does not report is followed, or has no effect, as with
    PgBouncer."""
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "track_extra_parameters": "IntervalStyle, search_path",
            "startup_parameters": policy,
        }
    )
    plain = pooler.client()
    client = pooler.client(search_path="pg_catalog")
    counts = policy == "follow" or "search_path" in plain.parameters
    for _ in range(2):
        assert client.value("SHOW search_path") == (
            "pg_catalog" if counts else '"$user", public'
        )
        assert plain.value("SHOW search_path") == '"$user", public'


def test_an_unknown_name_is_reported_at_login(pooler):
    error = pooler.refused(no_such_thing="1")
    assert error.is_("FATAL", "08P01", "unsupported startup parameter: no_such_thing")
    assert pooler.lines("WARNING .*unsupported startup parameter: no_such_thing=1")
    error = pooler.refused(work_mem="1MB", options="-c No_Such_Thing=1")
    text = "unsupported startup parameter in options: no_such_thing"
    assert error.is_("FATAL", "08P01", text)
    # Another unknown name.
    error = pooler.refused(temp_tablespaces="nowhere")
    assert error.is_("FATAL", "42704", 'tablespace "nowhere" does not exist')


def test_one_query_is_enough_for_a_thousand_logins(new_pooler, statements):
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 2000})
    for number in range(1000):
        name = f"application {number}"
        client = pooler.raw().login(application_name=name, datestyle="German", work_mem="1MB")
        assert client.parameters["DateStyle"] == "German, DMY"
        client.leave()
    assert statements("SELECT pg_catalog.") == 1


def test_values_that_every_client_asks_for_cost_no_query(pooler, statements):
    for _ in range(3):
        connection = pooler.connect(client_encoding="utf8", application_name="it's mine ~")
        connection.execute("SELECT 1")
    pooler.client(timezone="utc", datestyle="iso, mdy").query("SELECT 1")
    assert statements("SELECT pg_catalog.") == 0
    assert statements("SELECT 1") == 4


def test_the_check_leaves_no_values_on_the_server(one_server):
    plain = one_server.client()
    pid = plain.value("SELECT pg_backend_pid()")
    one_server.client(work_mem="1MB", client_encoding="latin1", options="-c role=app -c my.x=1")
    before = len(batches(one_server))
    sql = (
        "SELECT pg_backend_pid(), current_setting('work_mem'), current_setting('client_encoding'),"
        " current_setting('role'), current_setting('my.x', true)"
    )
    assert plain.query(sql).rows[0] == (pid, "4MB", "UTF8", "none", "")
    assert len(batches(one_server)) == before


def test_values_are_read_in_the_clients_encoding(one_server):
    client = one_server.raw()
    client.send(latin1_startup())
    client.finish_login("app")
    assert client.value("SELECT octet_length(current_setting('my.name')::bytea)") == "2"


def latin1_startup():
    """A startup message with a value that is not UTF-8."""
    pairs = [b"user", b"app", b"database", b"main", b"client_encoding", b"latin1"]
    pairs += [b"my.name", b"\xe4"]
    body = struct.pack("!I", wire.PROTOCOL_3_0) + b"".join(each + b"\0" for each in pairs) + b"\0"
    return struct.pack("!I", len(body) + 4) + body


def test_long_values_are_accepted(one_server):
    long = "x" * 60000
    client, plain = one_server.client(**{"my.long": long}), one_server.client()
    for _ in range(2):
        assert client.value("SELECT current_setting('my.long')") == long
        assert not plain.value("SELECT current_setting('my.long', true)")


def test_a_login_waits_for_a_server_that_can_check_its_values(one_server):
    busy = one_server.client()
    busy.query("BEGIN")
    client = one_server.raw()
    client.send_startup(work_mem="1MB")
    one_server.wait_pool(cl_waiting=1)
    assert one_server.client(datestyle="iso, mdy")
    busy.query("COMMIT")
    client.finish_login("app")
    assert client.value("SHOW work_mem") == "1MB"


def test_a_login_waits_through_a_pause(one_server):
    one_server.client().query("SELECT 1")
    one_server.admin("PAUSE")
    client = one_server.raw()
    client.send_startup(work_mem="1MB")
    wait_until(lambda: one_server.clients(state="waiting"), 10, "the login to wait")
    one_server.admin("RESUME")
    client.finish_login("app")
    assert client.value("SHOW work_mem") == "1MB"


def test_a_server_that_closes_during_the_check_is_replaced(one_server, cluster):
    plain = one_server.client()
    pid = plain.value("SELECT pg_backend_pid()")
    one_server.admin("PAUSE")
    one_server.admin("RESUME")
    plain.query("SELECT 1")
    for backend in cluster.backends(usename="app"):
        cluster.terminate(backend["pid"])
    client = one_server.client(work_mem="1MB")
    assert client.value("SELECT pg_backend_pid()") != pid
    assert client.value("SHOW work_mem") == "1MB"


# Refused parameters


@pytest.mark.parametrize("name", ["not a name", "a;b", "1a", "x" * 64, "naïve"])
def test_impossible_names_are_refused(pooler, name):
    error = pooler.refused(**{name: "1"})
    assert error.fields["M"].startswith(f"unsupported startup parameter: {name}"[:100])
    assert error.fields["C"] == "08P01"


def test_the_number_of_parameters_is_limited(pooler):
    many = {f"my.v{number}": str(number) for number in range(64)}
    client = pooler.client(**many)
    assert client.value("SHOW my.v63") == "63"
    error = pooler.refused(**many, one_more="1")
    assert error.is_("FATAL", "08P01", "unsupported startup parameter: one_more")


def test_a_seed_cannot_be_reset(pooler):
    error = pooler.refused(options="-c seed=0.5")
    assert error.is_("FATAL", "08P01", "unsupported startup parameter in options: seed")


def test_the_console_ignores_parameters(pooler):
    console = pooler.console(search_path="x", options="-c work_mem=1MB")
    assert console.query("SHOW VERSION").rows


# A new process


def test_parameters_survive_an_online_restart(one_server):
    one, plain = one_server.client(work_mem="1MB", geqo="off"), one_server.client()
    one.query("SELECT 1")
    pid = one.value("SELECT pg_backend_pid()")
    one_server.take_over()
    before = len(batches(one_server))
    assert one.value("SELECT pg_backend_pid()") == pid
    assert len(batches(one_server)) == before
    assert plain.value("SHOW work_mem") == "4MB"
    assert one.value("SHOW work_mem") == "1MB"
    one.query("SET work_mem = '9MB'")
    one_server.take_over()
    assert plain.value("SHOW work_mem") == "4MB"
    assert plain.value("SHOW geqo") == "on"
    assert one.value("SHOW work_mem") == "9MB"


# Time limits of a client end no query of the pooler's that another client needs

TIMED_OUT = wire.error("57014", "canceling statement due to statement timeout") + wire.ready()


def limited_once(ours):
    """A script for servers: the first connection ends our queries of this kind by a time limit,
    from the first SET of a client on."""

    def answer(connection, sql):
        if not isinstance(sql, str):
            return None
        if connection.number == 0 and connection.limited and re.match(ours, sql):
            return TIMED_OUT
        if "statement_timeout=" in sql.replace(" ", ""):
            connection.limited = True
            count = sql.count(";")
            return wire.command_complete("SET") * max(1, count) + wire.ready()
        return None

    def script(connection):
        connection.limited = False
        connection.login()
        connection.serve(answer)

    return script


@pytest.mark.parametrize("how", ["followed", "set"])
def test_a_time_limit_that_ends_our_sets_is_not_the_next_clients(new_pooler, new_server, how):
    server = new_server(limited_once("BEGIN;|SET |RESET |SHOW "))
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": server.target()},
    )
    if how == "followed":
        first = pooler.client(statement_timeout="1", application_name="first")
        first.query("SELECT 'first'")
    else:
        first = pooler.client(application_name="first")
        first.query("SET statement_timeout = 1")
    second = pooler.client(application_name="second")
    for text in ("SELECT 'one'", "SELECT 'two'"):
        assert second.value(text) == text
    assert server.count == 2
    assert pooler.lines("closing because: time limit of another client ended")


def test_a_session_that_was_not_reset_for_a_time_limit_is_not_used_again(new_pooler, new_server):
    server = new_server(limited_once("DISCARD ALL"))
    pooler = new_pooler(
        {"pool_mode": "session", "default_pool_size": 1, "server_reset_query": "DISCARD ALL"},
        databases={"main": server.target()},
    )
    first = pooler.client()
    first.query("SET statement_timeout = 1")
    first.leave()
    assert pooler.client().value("SELECT 'next'") == "SELECT 'next'"
    assert server.count == 2


def test_a_check_of_a_login_that_a_time_limit_ends_is_repeated(new_pooler, new_server):
    def script(connection):
        connection.login()
        while True:
            found = connection.next_query()
            if connection.number == 0 and not isinstance(found, str):
                while found.type != "S":
                    found = connection.next_query()
                connection.send(TIMED_OUT)
            elif isinstance(found, str) and found.startswith("SET "):
                connection.send(wire.command_complete("SET"), wire.ready())
            elif isinstance(found, str):
                connection.send(wire.one_row(found))
            else:
                connection.send(connection.answer_startup_check(found) or b"")

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": server.target()},
    )
    pooler.client().query("SET statement_timeout = 1")
    pooler.client(work_mem="1MB").leave()
    assert server.count == 2


def test_long_setting_of_parameters_is_under_no_time_limit_of_clients(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"connect_query": "SELECT pg_sleep(0.05)"}},
    )
    first = pooler.client(statement_timeout="1", lock_timeout="1", work_mem="1MB")
    second = pooler.client(statement_timeout="5s")
    servers = None
    for _ in range(3):
        first.send(wire.query("SELECT pg_sleep(1)"))
        assert first.result().error.sqlstate == "57014"
        assert second.value("SHOW statement_timeout") == "5s"
        assert second.value("SHOW lock_timeout") == "0"
        servers = servers or pooler.servers()
    assert [each["ptr"] for each in pooler.servers()] == [each["ptr"] for each in servers]
