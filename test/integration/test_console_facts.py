# SPDX-License-Identifier: ISC
"""The console as an interface: every topic, column, command, right and text, from tables."""

import contextlib
import os
import pty
import re
import resource
import select
import socket
import time

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import Closed, RawClient, ServerError, cancel
from support.process import HOST, free_port, wait_until
from support.servers.pooler import is_sanitized

TEXT = ("text", 25, -1)
INT4 = ("int4", 23, 4)
INT8 = ("int8", 20, 8)
NUMERIC = ("numeric", 1700, -1)
BYTEA = ("bytea", 17, -1)
TIME = ("time", 25, -1)

RENDERINGS = {
    "text": r"[\s\S]*",
    "int4": r"-?\d{1,10}",
    "int8": r"\d{1,20}",
    "numeric": r"\d{1,20}",
    "bytea": r"\\x([0-9a-f]{2})*",
    "time": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC",
}

# Columns that may be NULL.
NULLS = {
    "DATABASES": {"host", "force_user", "pool_mode", "load_balance_hosts"},
    "POOLS": {"load_balance_hosts"},
    "USERS": {"pool_mode"},
    "CONFIG": {"value", "default"},
    "FDS": {
        "user", "database", "client_encoding", "std_strings", "datestyle", "timezone",
        "password", "scram_client_key", "scram_server_key",
    },
    "PEERS": {"host"},
    "WAITS": ...,
}


def columns(*groups):
    """Columns from groups: a type and names."""
    return [(name, kind) for kind, names in groups for name in names.split()]


LINK = (
    (TEXT, "type user database replication state addr"),
    (INT4, "port"),
    (TEXT, "local_addr"),
    (INT4, "local_port"),
    (TIME, "connect_time request_time"),
    (INT4, "wait wait_us close_needed"),
    (TEXT, "ptr link"),
    (INT4, "remote_pid"),
    (TEXT, "tls application_name"),
    (INT4, "prepared_statements id"),
)
SOCKET = (
    *LINK,
    (INT4, "recv_pos pkt_pos pkt_remain send_pos send_remain pkt_avail send_avail"),
)
COUNTERS = (
    "server_assignment_count xact_count query_count bytes_received bytes_sent xact_time"
    " query_time wait_time "
)

TOPICS = {
    "ACTIVE_SOCKETS": columns(*SOCKET),
    "CLIENTS": columns(*LINK),
    "CONFIG": columns((TEXT, "key value default changeable")),
    "DATABASES": columns(
        (TEXT, "name host"),
        (INT4, "port"),
        (TEXT, "database force_user"),
        (INT4, "pool_size min_pool_size reserve_pool_size server_lifetime"),
        (TEXT, "pool_mode load_balance_hosts"),
        (INT4, "max_connections current_connections max_client_connections"),
        (INT4, "current_client_connections paused disabled"),
    ),
    "DNS_HOSTS": columns((TEXT, "hostname"), (INT8, "ttl"), (TEXT, "addrs")),
    "DNS_ZONES": columns((TEXT, "zonename"), (INT8, "serial"), (INT4, "count")),
    "FDS": columns(
        (INT4, "fd"),
        (TEXT, "task user database addr"),
        (INT4, "port"),
        (INT8, "cancel"),
        (INT4, "link"),
        (TEXT, "client_encoding std_strings datestyle timezone password"),
        (BYTEA, "scram_client_key scram_server_key"),
    ),
    "LISTS": columns((TEXT, "list"), (INT4, "items")),
    "MEM": columns((TEXT, "name"), (INT4, "size used free memtotal")),
    "PEERS": columns((INT4, "peer_id"), (TEXT, "host"), (INT4, "port pool_size")),
    "PEER_POOLS": columns(
        (INT4, "peer_id cl_active_cancel_req cl_waiting_cancel_req sv_active_cancel sv_login")
    ),
    "POOLS": columns(
        (TEXT, "database user"),
        (INT4, "cl_active cl_waiting cl_active_cancel_req cl_waiting_cancel_req"),
        (INT4, "sv_active sv_active_cancel sv_being_canceled sv_idle sv_used sv_tested"),
        (INT4, "sv_login maxwait maxwait_us"),
        (TEXT, "pool_mode load_balance_hosts"),
    ),
    "SERVERS": columns(*LINK),
    "SOCKETS": columns(*SOCKET),
    "STATE": columns((TEXT, "key value")),
    "STATS": columns(
        (TEXT, "database"),
        (NUMERIC, "total_server_assignment_count total_xact_count total_query_count"),
        (NUMERIC, "total_received total_sent total_xact_time total_query_time total_wait_time"),
        (NUMERIC, "total_client_parse_count total_server_parse_count total_bind_count"),
        (NUMERIC, "total_client_login_count"),
        (NUMERIC, "avg_server_assignment_count avg_xact_count avg_query_count avg_recv"),
        (NUMERIC, "avg_sent avg_xact_time avg_query_time avg_wait_time"),
        (NUMERIC, "avg_client_parse_count avg_server_parse_count avg_bind_count"),
        (NUMERIC, "avg_client_login_count"),
    ),
    "STATS_AVERAGES": columns(
        (TEXT, "database"),
        (NUMERIC, COUNTERS + "avg_client_parse_count avg_server_parse_count avg_bind_count"),
        (NUMERIC, "avg_client_login_count"),
    ),
    "STATS_TOTALS": columns(
        (TEXT, "database"),
        (NUMERIC, COUNTERS + "client_parse_count server_parse_count bind_count"),
        (NUMERIC, "client_login_count"),
    ),
    "TOTALS": columns((TEXT, "name"), (NUMERIC, "value")),
    "USERS": columns(
        (TEXT, "name pool_size reserve_pool_size pool_mode"),
        (INT4, "max_user_connections current_connections"),
        (INT4, "max_user_client_connections current_client_connections"),
    ),
    "VERSION": columns((TEXT, "version")),
}

FAKES = {
    "client_encoding": "UTF-8",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "datestyle": "ISO",
    "timezone": "GMT",
}

HELP = """
\tSHOW HELP|CONFIG|DATABASES|POOLS|CLIENTS|SERVERS|USERS|VERSION
\tSHOW PEERS|PEER_POOLS
\tSHOW FDS|SOCKETS|ACTIVE_SOCKETS|LISTS|MEM|STATE
\tSHOW DNS_HOSTS|DNS_ZONES
\tSHOW STATS|STATS_TOTALS|STATS_AVERAGES|TOTALS
\tSET key = arg
\tRELOAD
\tPAUSE [<db>]
\tRESUME [<db>]
\tDISABLE <db>
\tENABLE <db>
\tRECONNECT [<db>]
\tKILL [<db>]
\tKILL_CLIENT <client_id>
\tSUSPEND
\tSHUTDOWN
\tSHUTDOWN WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS
\tWAIT_CLOSE [<db>]"""


@pytest.fixture
def busy(new_pooler, cluster):
    """A daemon with at least one row in every topic where that is possible."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "peer_id": 1, "default_pool_size": 1},
        databases={"main": {}, "named": {"dbname": "main", "host": "localhost", "port": cluster.port}},
        users={"alice": {"pool_size": 7}},
    )
    with open(pooler.config_path, "a") as file:
        file.write("[peers]\n1 = host=127.0.0.1\n2 = host=127.0.0.1 port=7777\n")
    pooler.command("RELOAD")
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    pooler.client(database="named").query("SELECT 1")
    pooler.wait_pool(cl_waiting=1)
    return pooler


def check_columns(found, expected):
    assert [(each.name, each.type, each.length) for each in found] == [
        (name, oid, length) for name, (_, oid, length) in expected
    ]
    assert {(each.table, each.number, each.modifier, each.format) for each in found} == {
        (0, 0, -1, 0)
    }


def check_cells(topic, result, expected):
    for row in result.rows:
        assert len(row) == len(expected)
        for (name, (kind, _, _)), cell in zip(expected, row):
            if cell is None:
                assert name in NULLS.get(topic, ()), (topic, name)
            else:
                assert re.fullmatch(RENDERINGS[kind], cell), (topic, name, cell)
            if kind == "int4" and cell:
                assert -(2**31) <= int(cell) < 2**31


EMPTY = {"PEER_POOLS", "DNS_ZONES"}


def test_every_topic_has_its_columns_and_cells(busy):
    for topic, expected in TOPICS.items():
        result = busy.command(f"SHOW {topic}")
        assert result.types == "T" + "D" * len(result.rows) + "CZ" and result.tag == "SHOW"
        check_columns(result.columns, expected)
        check_cells(topic, result, expected)
        assert bool(result.rows) == (topic not in EMPTY), topic


def test_the_extended_protocol_describes_the_same_columns(busy):
    client = busy.console()
    for topic, expected in TOPICS.items():
        client.send(wire.parse(f"SHOW {topic}"), wire.describe("S"), wire.sync())
        result = client.result()
        assert result.types == "1tTZ"
        check_columns(result.columns, expected)


def test_topics_without_effect_have_one_column(pooler):
    for name, value in FAKES.items():
        result = pooler.command(f"SHOW {name.upper()};")
        check_columns(result.columns, [(name, TEXT)])
        assert result.rows == [(value,)] and result.tag == "SHOW"


def test_help_begins_with_the_known_lines(pooler):
    (notice,) = pooler.command("SHOW HELP").notices
    assert list(notice) == ["S", "C", "M", "D"]
    assert (notice["S"], notice["C"], notice["M"]) == ("NOTICE", "00000", "Console usage")
    assert notice["D"].startswith(HELP + "\n\t")


def test_help_and_commands_list_everything(pooler):
    (notice,) = pooler.command("SHOW HELP").notices
    rows = pooler.show("COMMANDS")
    for row in rows:
        assert f"\n\t{row['command']}: {row['purpose']}" in notice["D"]
    reported = {row["command"] for row in rows}
    assert {f"SHOW {topic}" for topic in (*TOPICS, "HELP", "COMMANDS")} <= reported
    usages = {line.strip() for line in HELP.splitlines() if "SHOW" not in line and line}
    assert usages <= reported
    for row in rows:
        if re.fullmatch(r"SHOW [A-Z_]+", row["command"]):
            assert pooler.command(row["command"]).tag == "SHOW"


# Topics of PgBouncer have these columns only; the tests of our own topics check theirs.


@pytest.mark.parametrize(
    "item", ["PREPARED STATEMENTS", "CLIENT", "POOL", "", "ALL", "work_mem", '"POOLS', "1"]
)
def test_there_are_no_other_items(pooler, item):
    error = error_of(pooler.console(), f"SHOW {item}")
    assert error.is_("ERROR", "08P01", f"invalid command 'SHOW {item}', use SHOW HELP;")


def error_of(client, sql):
    """The error of a console command. Asserts that the connection is ready for the next one."""
    client.send(wire.query(sql))
    result = client.result()
    assert result.types == "EZ" and result.status == "I"
    assert [field for field in result.error.fields if field != "H"] == ["S", "C", "M"]
    return result.error


def test_row_orders(busy):
    for topic, keys in (
        ("DATABASES", ["name"]),
        ("POOLS", ["database", "user"]),
        ("USERS", ["name"]),
        ("CONFIG", ["key"]),
        ("STATS", ["database"]),
    ):
        found = [tuple(row[key] for key in keys) for row in busy.show(topic)]
        assert found == sorted(found, key=lambda each: [part.encode() for part in each])
    assert [row["peer_id"] for row in busy.show("PEERS")] == ["1", "2"]
    assert [row["list"] for row in busy.show("LISTS")] == (
        "databases users peers pools peer_pools free_clients used_clients login_clients"
        " free_servers used_servers dns_names dns_zones dns_queries dns_pending"
    ).split()
    names = (
        "server_assignment_count xact_count query_count client_bytes server_bytes xact_time"
        " query_time wait_time ps_client_parse_count ps_server_parse_count ps_bind_count"
        " client_login_count"
    ).split()
    assert [row["name"] for row in busy.show("TOTALS")] == [
        prefix + name for prefix in ("total_", "avg_") for name in names
    ]


def test_links_are_listed_in_their_order(new_pooler):
    """Per pool: active clients, waiting ones; active servers, idle ones; logins at the very end."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    spare, holder = pooler.client(), pooler.client()
    holder.query("BEGIN")
    spare.query("SELECT 1")
    assert [row["state"] for row in pooler.servers()] == ["active", "idle"]
    spare.query("BEGIN")
    waiter = pooler.client()
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    silent_connection = pooler.raw()
    wait_until(lambda: pooler.show("SOCKETS", state="cl_login"))
    assert [row["state"] for row in pooler.clients()] == ["active", "active", "waiting"]
    states = [row["state"] for row in pooler.show("SOCKETS") if row["database"] != "pgbouncer"]
    assert states == ["cl_active", "cl_active", "cl_waiting", "sv_active", "sv_active", "cl_login"]
    assert not [row for row in pooler.show("CLIENTS") if row["user"] == "(nouser)"]
    silent_connection.close()


# Commands

# A command, its tag, and the line that it logs.
COMMANDS = [
    ("PAUSE", "PAUSE", "PAUSE command issued"),
    ("RESUME", "RESUME", "RESUME command issued"),
    ("PAUSE main", "PAUSE", "PAUSE 'main' command issued"),
    ("RESUME main", "RESUME", "RESUME 'main' command issued"),
    ("DISABLE main", "DISABLE", "DISABLE 'main' command issued"),
    ("ENABLE main", "ENABLE", "ENABLE 'main' command issued"),
    ("RECONNECT", "RECONNECT", "RECONNECT command issued"),
    ("RECONNECT main", "RECONNECT", "RECONNECT 'main' command issued"),
    ("WAIT_CLOSE", "WAIT_CLOSE", "WAIT_CLOSE command issued"),
    ("WAIT_CLOSE main", "WAIT_CLOSE", "WAIT_CLOSE 'main' command issued"),
    ("KILL main", "KILL", "KILL 'main' command issued"),
    ("RESUME main", "RESUME", "RESUME 'main' command issued"),
    ("KILL", "KILL", "KILL command issued"),
    ("RELOAD", "RELOAD", "RELOAD command issued"),
    ("SUSPEND", "SUSPEND", "SUSPEND command issued"),
    ("RESUME", "RESUME", "RESUME command issued"),
    ("SET verbose = 0", "SET verbose=0", None),
    ("SET datestyle TO ISO", "SET", None),
    ("SHOW VERSION", "SHOW", None),
    ("SELECT VERSION", "SHOW", None),
    ("SHUTDOWN WAIT_FOR_CLIENTS", "SHUTDOWN", "SHUTDOWN WAIT_FOR_CLIENTS command issued"),
    ("SHUTDOWN", None, "SHUTDOWN command issued"),
]


@pytest.mark.parametrize("extended", [False, True])
def test_every_command_has_its_tag_and_its_line(pooler, extended):
    client = pooler.console()
    for sql, tag, line in COMMANDS:
        before = len(pooler.lines(re.escape(line))) if line else 0
        client.send(wire.extended(sql) + wire.sync() if extended else wire.query(sql))
        if tag is None:
            assert "C" not in [message.type for message in client.read_all()]
            assert pooler.wait_exit() == 0
        else:
            result = client.result()
            assert (result.error, result.tag) == (None, tag), sql
        if line:
            pooler.wait_log(r"\] LOG " + re.escape(line) + "$", before + 1)


def test_a_query_has_one_command(pooler):
    for sql in ("SHOW STATE; SHOW STATE", "SHOW STATE;;", "SHOW STATE -- x", "/* x */ SHOW STATE"):
        assert error_of(pooler.console(), sql).text == f"invalid command '{sql}', use SHOW HELP;"


REGISTERING = ["PAUSE", "DISABLE", "RECONNECT", "KILL", "WAIT_CLOSE"]


@pytest.mark.parametrize("word", REGISTERING)
def test_these_register_automatic_databases(new_pooler, cluster, word):
    pooler = new_pooler(databases={"*": {"dbname": "main"}})
    assert pooler.command(f"{word} fresh").tag == word
    assert len(pooler.lines("registered new auto-database: fresh$")) == 1


@pytest.mark.parametrize("word", ["RESUME", "ENABLE"])
def test_these_do_not_register_automatic_databases(new_pooler, word):
    pooler = new_pooler(databases={"*": {"dbname": "main"}})
    assert error_of(pooler.console(), f"{word} fresh").text == "no such database: fresh"
    assert not pooler.lines("registered new auto-database")


@pytest.mark.parametrize(
    "sql, text",
    [
        ("KILL_CLIENT", "invalid client pointer supplied"),
        ("KILL_CLIENT x", "invalid client pointer supplied"),
        ("KILL_CLIENT 0x10", "invalid client pointer supplied"),
        ("KILL_CLIENT 123456", "client not found"),
        ("KILL_CLIENT 0", "client not found"),
        ("RELOAD x", "invalid command 'RELOAD x', use SHOW HELP;"),
        ("SUSPEND x", "invalid command 'SUSPEND x', use SHOW HELP;"),
        ("SHUTDOWN x", "invalid command 'SHUTDOWN x', use SHOW HELP;"),
        ("SHUTDOWN IMMEDIATE", "invalid command 'SHUTDOWN IMMEDIATE', use SHOW HELP;"),
        ("SET x", "invalid command 'SET x', use SHOW HELP;"),
        ("SET verbose = -1", "invalid command 'SET verbose = -1', use SHOW HELP;"),
        ("SET verbose = ''", "SET failed"),
        ("RESUME", "pooler is not paused/suspended"),
    ],
)
def test_wrong_commands_have_their_error_texts(pooler, sql, text):
    assert error_of(pooler.console(), sql).is_("ERROR", "08P01", text)


# Rights

ARGUMENTS = {
    "<client_id>": "1",
    "[<db>]": "main",
    "<db>": "main",
    "WAIT_FOR_SERVERS|WAIT_FOR_CLIENTS": "WAIT_FOR_SERVERS",
}


def test_stats_users_may_give_no_admin_command(pooler):
    """F62: each command in SHOW COMMANDS, by both protocols."""
    client = pooler.console("stats")
    before = pooler.show("CONFIG"), pooler.show("DATABASES"), pooler.show("STATE")
    tried = 0
    for row in pooler.show("COMMANDS", rights="admin"):
        sql = " ".join(ARGUMENTS.get(word, word) for word in row["command"].split())
        for given in {sql, sql.split()[0] if "SHOW" not in sql else sql}:
            assert error_of(client, given).is_("ERROR", "08P01", "admin access needed")
            client.send(wire.extended(given), wire.sync())
            error = client.result().error
            assert error.is_("ERROR", "08P01", "admin access needed"), given
            tried += 1
    assert tried >= 15
    assert error_of(client, "SET verbose = 2").is_("ERROR", "08P01", "admin access needed")
    # These errors come before the check of rights.
    for sql in ("RELOAD x", "SUSPEND x", "SHUTDOWN x"):
        assert error_of(client, sql).text == f"invalid command '{sql}', use SHOW HELP;"
    assert (pooler.show("CONFIG"), pooler.show("DATABASES"), pooler.show("STATE")) == before
    assert pooler.running()


def test_stats_users_may_see_everything_else(busy):
    client = busy.console("stats")
    for topic in TOPICS:
        if topic != "FDS":
            assert client.query(f"SHOW {topic}").tag == "SHOW"
            assert client.query(f"SHOW {topic} LIMIT 1").tag == "SHOW"
    assert client.query("SHOW HELP").tag == "SHOW"
    for sql in ("SHOW FDS", "SHOW FDS LIMIT 1", "SELECT fds WHERE fd = 1"):
        assert error_of(client, sql).is_("ERROR", "08P01", "admin access needed")
    for name in FAKES:
        assert client.query(f"SET {name} = 1").tag == "SET"


def test_every_user_may_read_where_no_password_is_needed(new_pooler):
    pooler = new_pooler({"auth_type": "any"}, databases={"main": {"user": "app"}})
    assert pooler.console("any_name").query("SHOW STATE").rows
    assert error_of(pooler.console("any_name"), "PAUSE").text == "admin access needed"
    assert pooler.console("admin").query("PAUSE").tag == "PAUSE"


def test_the_local_superuser_is_logged_with_connections_only(new_pooler):
    pooler = new_pooler({"log_connections": 0})
    done = pooler.psql(
        "-Atc", "SHOW STATE", user="pgbouncer", database="pgbouncer", unix=True
    )
    assert "active|yes" in done.stdout
    assert not pooler.lines("pgbouncer access from unix socket")


# Limits


def test_limits_of_clients_do_not_apply_to_admins_on_the_console(new_pooler):
    for limit in ("max_db_client_connections", "max_user_client_connections"):
        pooler = new_pooler({limit: 1})
        admins = [pooler.console() for _ in range(3)]
        assert all(admin.query("SHOW VERSION").rows for admin in admins)
        if limit == "max_user_client_connections":
            pooler.console("stats")
        with pytest.raises(ServerError, match=limit):
            pooler.console("stats")
        pooler.close_clients()


def test_the_console_in_show_databases(new_pooler):
    pooler = new_pooler(
        {"max_db_connections": 3, "max_db_client_connections": 4, "min_pool_size": 1}
    )
    pooler.console("stats")
    (row,) = pooler.show("DATABASES", name="pgbouncer")
    assert (row["host"], row["port"], row["database"]) == (None, str(pooler.port), "pgbouncer")
    assert (row["force_user"], row["pool_size"], row["pool_mode"]) == ("pgbouncer", "2", "statement")
    assert (row["max_connections"], row["max_client_connections"]) == ("3", "4")
    assert (row["current_connections"], row["current_client_connections"]) == ("0", "2")


# Clauses


def test_clauses_work_on_every_topic(busy):
    client = busy.console()
    for topic, expected in TOPICS.items():
        rows = client.query(f"SHOW {topic}").rows
        for name, _ in expected:
            null = client.query(f"SHOW {topic} WHERE {name} IS NULL").rows
            rest = client.query(f"SELECT {topic} WHERE {name} IS NOT NULL ;").rows
            assert len(null) + len(rest) == len(client.query(f"SHOW {topic}").rows)
            ordered = client.query(f"SHOW {topic} ORDER BY {name} DESC LIMIT 2")
            assert len(ordered.rows) == min(2, len(rows))
            check_columns(ordered.columns, expected)
        error = error_of(client, f"SHOW {topic} WHERE nothing = 1")
        assert error.is_("ERROR", "42703", f'SHOW {topic}: column "nothing" does not exist')
    error = error_of(client, "SHOW HELP LIMIT 1")
    assert error.is_("ERROR", "42601", "SHOW HELP: there are no rows to choose from")


def test_rows_are_filtered_as_awk_would(busy):
    client = busy.console()
    rows = client.query("SHOW CONFIG").dicts()
    found = client.query("SHOW CONFIG WHERE key LIKE 'server%' AND value > 10 ORDER BY key DESC")
    expected = [
        row["key"]
        for row in rows
        if row["key"].startswith("server")
        and re.fullmatch(r"[\d.]+", row["value"] or "")
        and float(row["value"]) > 10
    ]
    assert [row[0] for row in found.rows] == expected[::-1] and len(expected) > 3
    found = client.query("show clients where state = 'waiting' and wait >= 0").dicts()
    assert [row["database"] for row in found] == ["main"]
    (row,) = client.query("SHOW POOLS WHERE cl_waiting > 0").dicts()
    assert (row["database"], row["user"]) == ("main", "app")
    (row,) = client.query("SHOW USERS WHERE pool_size = 7").dicts()
    assert row["name"] == "alice"
    ports = [int(row["port"]) for row in client.query("SHOW CLIENTS ORDER BY port").dicts()]
    assert ports == sorted(ports) and len(ports) >= 4


# Cancel


def test_cancel_of_an_idle_console_is_reported(pooler):
    console = pooler.console()
    cancel(pooler.address, console.key)
    pooler.wait_log(r"\] WARNING C-0x.* admin cancel request for non-waiting client\?$")
    assert console.query("SHOW STATE").rows[0] == ("active", "yes")


# psql and other clients

CATALOG = [
    "SELECT c.oid, n.nspname, c.relname FROM pg_catalog.pg_class c LEFT JOIN"
    " pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relname OPERATOR(pg_catalog.~)"
    " '^(x)$' COLLATE pg_catalog.default ORDER BY 2, 3;",
    "SELECT pg_catalog.quote_ident(c.relname) FROM pg_catalog.pg_class c WHERE"
    " (pg_catalog.quote_ident(c.relname) LIKE 'po%') LIMIT 1000",
    "SELECT name FROM (SELECT pg_catalog.lower(name) AS name FROM pg_catalog.pg_settings) ss"
    " WHERE name LIKE 'tim%' LIMIT 1000",
    "SELECT 1 + 1",
    "SELECT version() FROM x",
    "SAVEPOINT x",
    "SELECT pg_catalog.set_config('work_mem', '', false)",
    "SHOW pools FROM x WHERE a = 1",
    "x " * 1500,
]


def test_queries_that_clients_send_to_servers_are_harmless(pooler):
    client = pooler.console()
    for sql in CATALOG:
        error = error_of(client, sql)
        assert error.is_("ERROR", "08P01", f"invalid command '{sql[:900]}', use SHOW HELP;")
    assert client.query("SHOW STATE").rows[0] == ("active", "yes")


def test_psql_with_completion_and_catalog_commands(pooler):
    """A psql on a terminal: tab completion and backslash commands, then a command that works."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="dumb", PAGER="cat", HOME=pooler.folder, PSQLRC="/dev/null")
        os.execvp("psql", ["psql", "-h", HOST, "-p", str(pooler.port), "admin", "-U", "admin",
                        "-d", "pgbouncer"])
    output = b""

    def expect(text):
        nonlocal output
        deadline = time.monotonic() + 15
        while text not in output:
            assert time.monotonic() < deadline, output.decode(errors="replace")
            if select.select([terminal], [], [], 0.2)[0]:
                output += os.read(terminal, 65536)
        output = output[output.index(text) + len(text):]

    try:
        expect(b"=# ")
        for typed in (b"\\d\n", b"\\l\n", b"\\dt x*\n", b"\\du\n"):
            os.write(terminal, typed)
            expect(b"invalid command")
            expect(b"=# ")
        for typed in (b"SELECT * FROM po\t\t", b"SHOW t\t\t", b"SET tim\t\t"):
            os.write(terminal, typed + b"\x15")
        os.write(terminal, b"\nSHOW VERSION;\n")
        expect(b"PgBouncer 1.26.1")
        os.write(terminal, b"\\q\n")
    finally:
        with contextlib.suppress(OSError):
            while os.read(terminal, 65536):
                pass
        os.close(terminal)
        os.waitpid(pid, 0)
    assert len(pooler.lines("pooler error: invalid command")) >= 4


# F61


def test_other_clients_do_not_notice_what_happens_on_the_console(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    for garbage in (
        b"\0" * 9000,
        os.urandom(20000),
        wire.query("SHOW " * 180000),
        wire.parse("x" * 900_000) + wire.sync(),
        wire.parse("SHOW STATE" + " " * 900_000) + wire.bind() + wire.execute() + wire.sync(),
        wire.message("P", b"x" * 900_000),
        wire.message("E", b"\0" * 900_000),
        wire.sync() * 100_000,
        wire.extended("SHOW CONFIG") * 2000,
        wire.query("SHOW CONFIG") * 2000,
    ):
        for end in (RawClient.reset, RawClient.close):
            console = RawClient(pooler.address).login("admin", "pgbouncer")
            console.socket.settimeout(0.5)
            with contextlib.suppress(OSError):
                console.send(garbage)
            end(console)
            assert client.value("SELECT 1") == "1"
    wait_until(lambda: len(pooler.show("CLIENTS", database="pgbouncer")) == 1)
    assert pooler.show("STATE")


def test_a_message_of_900_kb_is_answered(pooler):
    client = pooler.console()
    assert client.query("SHOW STATE" + " " * 900_000).rows[0] == ("active", "yes")
    data = wire.query(" " * 900_000 + "SHOW VERSION;")
    for at in range(0, len(data), 65_000):
        client.send(data[at : at + 65_000])
    assert client.result().tag == "SHOW"
    assert error_of(client, "x " * 450_000).text.startswith("invalid command 'x x")
    # A longer message closes this console.
    with contextlib.suppress(Closed, ConnectionError, BrokenPipeError):
        client.send(wire.query(" " * 1_100_000))
        client.read_all()
    assert pooler.show("STATE")


def test_unread_answers_are_bounded(pooler):
    """The daemon stops reading from a console that sends commands and reads no answers."""
    console = pooler.raw().login("admin", "pgbouncer")
    console.query("SHOW CONFIG")
    before = pooler.memory()
    console.socket.settimeout(1)
    sent = 0
    with contextlib.suppress(OSError):
        while sent < 40_000_000:
            console.send(wire.extended("SHOW CONFIG") * 5000)
            sent += 5000
    if not is_sanitized():
        assert pooler.memory() - before < 24_000_000
    assert pooler.client().value("SELECT 1") == "1"


MANY = 5000


@pytest.fixture
def many_descriptors():
    """Enough descriptors for so many clients here and in the daemon."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < MANY + 1000:
        pytest.skip(f"no more than {hard} descriptors are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, MANY + 1000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def crowd(new_pooler, many_descriptors):
    """A daemon with so many clients, each with a name of its own, and its metrics."""
    port = free_port()
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "max_client_conn": 2 * MANY,
            "listen_backlog": MANY,
            "log_connections": 0,
            "log_disconnections": 0,
            "metrics_port": port,
        }
    )
    pooler.metrics = port
    pooler.crowd = [
        pooler.raw().send_startup("app", "main", application_name=f"tool{number % 50}_{number}")
        for number in range(MANY)
    ]
    for client in pooler.crowd:
        client.finish_login("app")
    return pooler


def slow_console(pooler):
    """A console with small socket buffers: most of an answer stays in the daemon until it is read."""
    option = (socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client = pooler.keep(RawClient(pooler.address, options=[option]))
    return client.login("admin", "pgbouncer")


def turns_of(pooler):
    """How many turns the event loop has made so far; each turn serves all other clients too."""
    return scrape(pooler.metrics).value("pgusher_loop_lag_seconds_count")


def test_show_of_5000_clients_stalls_no_other_client(crowd):
    """A turn of the loop builds a few hundred rows; all of them together cost little, too."""
    console = crowd.console()

    def turns_for(sql):
        """Turns from one page of metrics to the next, and the answer."""
        before = turns_of(crowd)
        found = console.query(sql)
        return turns_of(crowd) - before, found

    # The pages themselves take turns too, always about as many.
    least = max(turns_for("SHOW VERSION")[0] for _ in range(5))
    for sql, rows, reported in (
        ("SHOW CLIENTS", MANY + 1, MANY),
        ("SHOW SOCKETS", MANY + 2, MANY),
        (r"SHOW CLIENTS WHERE application_name LIKE 'tool7\_%'", MANY // 50, MANY),
        ("SHOW CLIENTS ORDER BY application_name DESC, port", MANY + 1, 2 * MANY),
        ("SHOW CLIENTS WHERE application_name LIKE '%o%7' ORDER BY id LIMIT 9", 9, MANY),
        ("SHOW CLIENTS LIMIT 9", 9, 0),
    ):
        before = crowd.loop_seconds()
        found = console.query(sql)
        taken = crowd.loop_seconds() - before
        assert abs(len(found.rows) - rows) <= 1, sql
        assert taken < (1.0 if is_sanitized() else 0.1), (sql, taken)
        if reported:
            assert turns_for(sql)[0] - least >= 0.8 * reported // 256, sql
    # Rows that portals keep are bounded too.
    client = crowd.console()
    client.send(
        wire.parse("SHOW CLIENTS ORDER BY id"),
        *[wire.bind((), "", str(each)) + wire.execute(str(each), 1) for each in range(40)],
        wire.sync(),
    )
    result = client.result()
    assert result.error.is_("ERROR", "54000", "too many rows are waiting in portals")
    assert 10 < result.types.count("s") < 30


def test_a_client_that_stays_is_listed_once_while_others_come_and_go(crowd):
    """The answers are larger than socket buffers, so that clients come and go in the middle of
    them."""
    shows = ["SHOW CLIENTS", "SHOW SOCKETS", "SHOW CLIENTS ORDER BY port DESC"] * 4
    console = slow_console(crowd)
    console.send(*[wire.query(sql) for sql in shows])
    guests = []
    for number in range(150):
        guests.append(crowd.client(application_name=f"guest_{number}"))
        # Some of the remaining clients wait, and are listed elsewhere; the others have finished by
        # then.
        busy = crowd.crowd[number * 33 : number * 33 + 33]
        for client in busy:
            client.send(wire.query("SELECT 1"))
        if number % 2:
            guests.pop(0).close()
        for client in busy:
            client.result()
    for sql in shows:
        rows = [row for row in console.result().dicts() if row["type"] == "C"]
        names = [row["application_name"] for row in rows if row["application_name"]]
        assert len(names) == len(set(names)), sql
        assert sum(name.startswith("tool") for name in names) == MANY, sql


def test_a_reload_and_a_kill_in_the_middle_of_answers(crowd):
    console = slow_console(crowd)
    console.send(*[wire.query("SHOW CLIENTS"), wire.query("SHOW SERVERS")] * 12)
    first = console.read_until("D")
    crowd.command("RELOAD")
    crowd.command("KILL main")
    answers = [console.result() for _ in range(24)]
    assert all(answer.tag == "SHOW" for answer in answers) and first
    assert len(answers[0].rows) > 1 and len(answers[-2].rows) == 2
    crowd.command("RESUME main")
    assert crowd.client().value("SELECT 1") == "1"


def test_a_console_of_protocol_3_2_has_a_longer_key(pooler):
    client = pooler.raw().send_startup("admin", "pgbouncer", protocol=wire.PROTOCOL_3_2)
    client.finish_login("admin")
    assert len(client.key) > 8
    cancel(pooler.address, client.key)
    pooler.wait_log("admin cancel request for non-waiting client")
