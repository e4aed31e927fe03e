# SPDX-License-Identifier: ISC
"""Parameters that clients set: which are followed from server to server, dropped or refused."""

import os

import pytest

from support import wire
from support.process import wait_until

# Name, a value for the client, what the server calls it, another value.
TRACKED = [
    ("DateStyle", "German", "German, DMY", "ISO, YMD"),
    ("client_encoding", "latin1", "LATIN1", "UTF8"),
    ("TimeZone", "Asia/Tokyo", "Asia/Tokyo", "Europe/Paris"),
    ("standard_conforming_strings", "off", "off", "on"),
    ("application_name", "mine", "mine", "yours"),
    ("IntervalStyle", "iso_8601", "iso_8601", "sql_standard"),
    ("default_transaction_read_only", "on", "on", "off"),
]


# Tracked parameters


@pytest.mark.parametrize("name, first, called, second", TRACKED)
def test_a_tracked_parameter_follows_its_client(one_server, name, first, called, second):
    one = one_server.client(**{name: first})
    two = one_server.client(**{name: second})
    plain = one_server.client()
    default = plain.value(f"SHOW {name}")
    for _ in range(3):
        assert one.value(f"SHOW {name}") == called
        assert two.value(f"SHOW {name}") == second
        assert plain.value(f"SHOW {name}") == default
    assert len(one_server.servers()) == 1


@pytest.mark.parametrize("name, first, called, second", TRACKED)
def test_what_a_client_sets_later_follows_it_too(one_server, name, first, called, second):
    one, two = one_server.client(), one_server.client()
    default = two.value(f"SHOW {name}")
    one.query(f"SET {name} = '{second}'")
    assert two.value(f"SHOW {name}") == default
    assert one.value(f"SHOW {name}") == second
    two.query(f"SET {name} = '{first}'")
    assert one.value(f"SHOW {name}") == second
    assert two.value(f"SHOW {name}") == called


def test_a_rolled_back_set_has_no_effect(one_server):
    one, two = one_server.client(), one_server.client()
    one.query("BEGIN")
    one.query("SET TimeZone = 'Asia/Tokyo'")
    one.query("ROLLBACK")
    assert two.value("SHOW TimeZone") == "UTC"
    assert one.value("SHOW TimeZone") == "UTC"


@pytest.mark.parametrize("spelling", ["timezone", "TIMEZONE", "tImEzOnE"])
def test_names_match_in_any_case(one_server, spelling):
    client = one_server.client(**{spelling: "Asia/Tokyo"})
    assert client.parameters["TimeZone"] == "Asia/Tokyo"
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"


def test_values_are_set_in_one_query_and_only_when_they_differ(new_pooler, new_server):
    """No client sees these SETs, and the server's spelling counts afterwards."""

    def answer(connection, sql):
        if "SET " in sql:
            body = b""
            if "German" in sql:
                body += wire.parameter_status("DateStyle", "German, DMY")
            if "'Tokyo'" in sql:
                body += wire.parameter_status("TimeZone", "Tokyo")
            sets = sql.count("SET ")
            return body + wire.command_complete("SET") * sets + wire.ready()
        return None

    def script(connection):
        connection.login()
        connection.serve(answer)

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client(datestyle="German", timezone="Tokyo", client_encoding="utf8")
    result = client.query("one")
    assert result.types == "TDCZ"
    client.query("two")
    assert [m.body[:-1].decode() for m in server.connections[0].received] == [
        "BEGIN;SET DateStyle='German';SET TimeZone='Tokyo';COMMIT",
        "one",
        "two",
    ]


@pytest.mark.parametrize(
    "value", ["it's", "back\\slash", "a; DROP TABLE x; --", '"quoted"', "$1 %s", "E'x'", "''"]
)
def test_values_are_quoted(one_server, value):
    client, other = one_server.client(application_name=value), one_server.client()
    assert client.parameters["application_name"] == value
    for _ in range(2):
        assert client.value("SHOW application_name") == value
        assert other.value("SHOW application_name") == ""


def test_a_long_value_follows_too(one_server):
    zone = "<+" + "A" * 200 + ">-01"
    one, two = one_server.client(), one_server.client()
    one.query(f"SET TimeZone = '{zone}'")
    assert two.value("SHOW TimeZone") == "UTC"
    assert one.value("SHOW TimeZone") == zone
    assert two.value("SHOW TimeZone") == "UTC"


def test_a_value_longer_than_the_servers_names_is_cut_by_the_server(one_server):
    one, two = one_server.client(application_name="x" * 200), one_server.client()
    assert one.value("SHOW application_name") == "x" * 63
    assert two.value("SHOW application_name") == ""
    assert one.value("SHOW application_name") == "x" * 63


def test_an_empty_value_is_a_value(one_server):
    one = one_server.client(application_name="set")
    two = one_server.client(application_name="")
    assert one.value("SHOW application_name") == "set"
    assert two.value("SHOW application_name") == ""


def test_strict_reports_a_bad_value_at_the_first_query_of_that_client_only(new_pooler):
    settings = {"pool_mode": "transaction", "default_pool_size": 1}
    one_server = new_pooler({**settings, "startup_parameters": "strict"})
    other = one_server.client()
    other.query("SELECT 1")
    client = one_server.client(timezone="Nowhere/Land")
    client.send(wire.query("SELECT 1"))
    assert client.fatal().is_("FATAL", "08P01", "invalid server parameter")
    assert one_server.lines("ERROR .*varcache_apply failed: ERROR: ")
    assert len(one_server.wait_log("closing because: invalid server parameter", 2)) == 2
    assert other.value("SELECT 1") == "1"


def test_the_clients_query_waits_for_its_parameters_in_a_pipeline(one_server):
    one = one_server.client(timezone="Asia/Tokyo")
    two = one_server.client(timezone="Europe/Paris")
    batch = wire.extended("SHOW TimeZone") + wire.sync()
    for client, zone in ((one, "Asia/Tokyo"), (two, "Europe/Paris")) * 3:
        client.send(batch * 3)
        assert [client.checked().value for _ in range(3)] == [zone] * 3


@pytest.mark.setting("track_extra_parameters")
def test_extra_parameters_are_tracked_as_configured(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "track_extra_parameters": "TimeZone, server_encoding, IntervalStyle, is_superuser",
        }
    )
    client = pooler.client()
    reported = [wire.read_pairs(m.body)[0][0] for m in client.welcome if m.type == "S"]
    # Tracked ones come last, each once.
    assert reported[-2:] == ["server_encoding", "is_superuser"]
    assert len(set(reported)) == len(reported)


def test_session_mode_sets_parameters_at_its_first_query(session_pooler):
    client = session_pooler.client(timezone="Asia/Tokyo")
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"
    client.query("SET TimeZone = 'Europe/Paris'")
    assert client.value("SHOW TimeZone") == "Europe/Paris"
    client.leave()
    session_pooler.wait_pool(sv_idle=1)
    assert session_pooler.client().value("SHOW TimeZone") == "UTC"


# Other startup parameters


@pytest.mark.setting("ignore_startup_parameters")
def test_ignored_parameters_have_no_effect(new_pooler):
    pooler = new_pooler({"ignore_startup_parameters": "extra_float_digits, work_mem"})
    client = pooler.client(extra_float_digits="3", work_mem="123kB")
    assert client.value("SHOW work_mem") == "4MB"


@pytest.mark.setting("startup_parameters")
@pytest.mark.parametrize("name", ["extra_float_digits", "statement_timeout", "Work_Mem"])
def test_strict_refuses_what_is_not_tracked(new_pooler, name):
    pooler = new_pooler(
        {"startup_parameters": "strict", "ignore_startup_parameters": "work_mem"}
    )
    error = pooler.refused(**{name: "1"})
    assert error.is_("FATAL", "08P01", f"unsupported startup parameter: {name}")
    assert pooler.lines(rf"WARNING .*unsupported startup parameter: {name}=1")


def test_strict_refuses_the_same_inside_options(new_pooler):
    pooler = new_pooler({"startup_parameters": "strict"})
    error = pooler.refused(options="-c work_mem=1MB")
    assert error.is_(
        "FATAL", "08P01", "unsupported startup parameter in options: work_mem"
    )


OPTIONS = {
    "-c timezone=Asia/Tokyo": {"TimeZone": "Asia/Tokyo"},
    "-ctimezone=Asia/Tokyo": {"TimeZone": "Asia/Tokyo"},
    "--timezone=Asia/Tokyo": {"TimeZone": "Asia/Tokyo"},
    "  -c   timezone=Asia/Tokyo   ": {"TimeZone": "Asia/Tokyo"},
    "-c application_name=two\\ words": {"application_name": "two words"},
    "-c application_name=back\\\\slash": {"application_name": "back\\slash"},
    "-c application_name=a=b": {"application_name": "a=b"},
    "-c timezone=UTC --datestyle=German -capplication_name=x": {
        "TimeZone": "UTC",
        "DateStyle": "German, DMY",
        "application_name": "x",
    },
    "-c time\\zone=Asia/Tokyo": {"TimeZone": "Asia/Tokyo"},
    "": {},
}


@pytest.mark.parametrize("options", OPTIONS)
def test_tracked_settings_inside_options_count(pooler, options):
    client = pooler.client(options=options)
    for name, value in OPTIONS[options].items():
        assert client.value(f"SHOW {name}") == value


MALFORMED = ["-c", "-c timezone", "--timezone", "timezone=UTC", "-c timezone=UTC junk", "-", "-d"]
ONLY_SETTINGS = (
    "unsupported options startup parameter: only '-c config=val' and '--config=val' are allowed"
)


@pytest.mark.parametrize("options", MALFORMED)
def test_malformed_options_are_refused(pooler, options):
    assert pooler.refused(options=options).is_("FATAL", "08P01", ONLY_SETTINGS)


@pytest.mark.parametrize("options", [*MALFORMED, "-d 5", "--", "-e"])
def test_with_strict_so_are_switches_that_postgres_takes(new_pooler, options):
    pooler = new_pooler({"startup_parameters": "strict"})
    assert pooler.refused(options=options).is_("FATAL", "08P01", ONLY_SETTINGS)


def test_unknown_settings_inside_options_can_be_ignored(new_pooler):
    pooler = new_pooler({"ignore_startup_parameters": "options"})
    client = pooler.client(options="-c work_mem=123kB -c timezone=Asia/Tokyo")
    assert client.value("SHOW work_mem") == "4MB"
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"
    pooler = new_pooler({"ignore_startup_parameters": "work_mem"})
    client = pooler.client(options="-c work_mem=123kB -c timezone=Asia/Tokyo")
    assert client.value("SHOW work_mem") == "4MB"
    assert client.value("SHOW TimeZone") == "Asia/Tokyo"


def test_options_far_larger_than_a_buffer(pooler):  # F03
    options = "-c timezone=UTC " * 600 + "-c timezone=Asia/Tokyo"
    assert pooler.client(options=options).value("SHOW TimeZone") == "Asia/Tokyo"


# application_name_add_host


@pytest.mark.setting("application_name_add_host")
def test_the_host_can_be_added_to_the_application_name(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "application_name_add_host": 1})
    client = pooler.client(application_name="tool")
    port = client.socket.getsockname()[1]
    assert client.value("SHOW application_name") == f"tool - 127.0.0.1:{port}"
    (row,) = pooler.clients()
    assert row["application_name"] == f"tool - 127.0.0.1:{port}"
    client.query("SET application_name = 'left alone'")
    assert client.value("SHOW application_name") == "left alone"


def test_the_host_is_added_to_app_when_there_is_no_name(new_pooler):
    pooler = new_pooler({"application_name_add_host": 1})
    client = pooler.client()
    port = client.socket.getsockname()[1]
    assert client.value("SHOW application_name") == f"app - 127.0.0.1:{port}"


@pytest.mark.parametrize("name", ["n" * 300, "n" * 600, "\u20ac" * 200], ids=["300", "600", "euros"])
def test_a_long_name_is_cut_for_the_host_between_characters(new_pooler, name):
    settings = {"application_name_add_host": 1, "pool_mode": "transaction"}
    pooler = new_pooler({**settings, "startup_parameters": "strict"})
    client = pooler.client(application_name=name)
    host = " - {}:{}".format(*client.socket.getsockname())
    shown = client.parameters["application_name"]
    assert shown.endswith(host)
    characters = (399 - len(host)) // len(name[0].encode())
    assert shown == name[:characters] + host
    # A server refuses an incomplete character.
    assert client.value("SELECT 1") == "1"


def test_the_host_of_an_ipv6_client_stands_in_brackets(new_pooler):
    pooler = new_pooler({"application_name_add_host": 1, "listen_addr": "::1"})
    client = pooler.raw(address=("::1", pooler.port)).login(application_name="tool")
    port = client.socket.getsockname()[1]
    assert client.value("SHOW application_name") == f"tool - [::1]:{port}"


def test_the_host_of_a_unix_client_is_its_process(new_pooler):
    pooler = new_pooler({"application_name_add_host": 1})
    client = pooler.client(unix=True, application_name="tool")
    shown = client.parameters["application_name"]
    assert shown == f"tool - unix({os.getpid()}@{os.uname().nodename}):{pooler.port}"


# Keys of a database


@pytest.mark.setting(
    "databases.application_name",
    "databases.client_encoding",
    "databases.datestyle",
    "databases.timezone",
)
def test_keys_of_the_database_go_into_the_servers_startup(new_pooler, new_server):
    server = new_server()
    keys = {
        "application_name": "from the entry",
        "client_encoding": "latin1",
        "datestyle": "German",
        "timezone": "Asia/Tokyo",
        "dbname": "real",
    }
    pooler = new_pooler(databases={"main": server.target(**keys)})
    pooler.client(application_name="client")
    wait_until(lambda: server.connections[0].startup)
    assert server.connections[0].startup == {
        "database": "real",
        "client_encoding": "latin1",
        "datestyle": "German",
        "timezone": "Asia/Tokyo",
        "application_name": "from the entry",
        "user": "app",
    }
    assert list(server.connections[0].startup) == [
        "database", "client_encoding", "datestyle", "timezone", "application_name", "user"
    ]


def test_a_plain_entry_sends_database_and_user_only(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler(databases={"main": server.target()})
    pooler.client(application_name="client", datestyle="German")
    assert server.connections[0].startup == {"database": "main", "user": "app"}


def test_keys_of_the_database_are_the_defaults_of_its_clients(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1},
        databases={"main": {"application_name": "entry", "timezone": "Asia/Tokyo"}},
    )
    client = pooler.client()
    assert client.parameters["application_name"] == "entry"
    assert client.value("SHOW application_name") == "entry"
    other = pooler.client(application_name="own")
    assert other.value("SHOW application_name") == "own"
    assert other.value("SHOW TimeZone") == "Asia/Tokyo"
    assert client.value("SHOW application_name") == "entry"


@pytest.mark.setting("login_notify_message")
def test_the_login_notice_comes_before_ready(new_pooler):
    pooler = new_pooler({"login_notify_message": "Moved to port 6543 tonight"})
    for client in (pooler.client(), pooler.console()):
        kinds = "".join(message.type for message in client.welcome)
        assert kinds.endswith("KNZ")
        notice = wire.read_fields(client.welcome[-2].body)
        assert notice == {"S": "NOTICE", "C": "00000", "M": "Moved to port 6543 tonight"}
