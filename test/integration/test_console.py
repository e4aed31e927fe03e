# SPDX-License-Identifier: ISC
"""The console: access, wire behaviour, grammar, and what every SHOW reports.

test_console_facts has the tables.
"""

import os
import re
import struct

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.process import service_uid, stays, wait_until

# Every setting of PgBouncer 1.25: default (None is NULL, ... is not checked) and whether it may
# change while running. doc/differences.md names all others: test/lint/settings.py.
SETTINGS = {
    "admin_users": ("", True),
    "application_name_add_host": ("0", True),
    "auth_dbname": (None, True),
    "auth_file": (None, True),
    "auth_hba_file": ("", True),
    "auth_ident_file": (None, True),
    "auth_ldap_options": (None, True),
    "auth_query": (
        "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END"
        " FROM pg_authid WHERE rolname=$1 AND rolcanlogin",
        True,
    ),
    "auth_type": ("md5", True),
    "auth_user": (None, True),
    "autodb_idle_timeout": ("3600", True),
    "cancel_wait_timeout": ("10", True),
    "client_idle_timeout": ("0", True),
    "client_login_timeout": ("60", True),
    "client_tls13_ciphers": (..., True),
    "client_tls_ca_file": ("", True),
    "client_tls_cert_file": ("", True),
    "client_tls_ciphers": ("default", True),
    "client_tls_dheparams": ("auto", True),
    "client_tls_ecdhcurve": ("auto", True),
    "client_tls_key_file": ("", True),
    "client_tls_protocols": ("secure", True),
    "client_tls_sslmode": ("disable", True),
    "conffile": (None, True),
    "default_pool_size": ("20", True),
    "disable_pqexec": ("0", False),
    "dns_max_ttl": ("15", True),
    "dns_nxdomain_ttl": ("15", True),
    "dns_zone_check_period": ("0", True),
    "idle_transaction_timeout": ("0", True),
    "ignore_startup_parameters": ("", True),
    "job_name": ("pgbouncer", False),
    "listen_addr": ("", False),
    "listen_backlog": ("128", False),
    "listen_port": ("6432", False),
    "log_connections": ("1", True),
    "log_disconnections": ("1", True),
    "log_pooler_errors": ("1", True),
    "log_stats": ("1", True),
    "logfile": ("", True),
    "max_client_conn": ("100", True),
    "max_db_client_connections": ("0", True),
    "max_db_connections": ("0", True),
    "max_packet_size": ("2147483647", True),
    "max_prepared_statements": ("200", True),
    "max_user_client_connections": ("0", True),
    "max_user_connections": ("0", True),
    "min_pool_size": ("0", True),
    "peer_id": ("0", True),
    "pidfile": ("", False),
    "pkt_buf": ("4096", False),
    "pool_mode": ("session", True),
    "query_timeout": ("0", True),
    "query_wait_notify": ("5", True),
    "query_wait_timeout": ("120", True),
    "reserve_pool_size": ("0", True),
    "reserve_pool_timeout": ("5", True),
    "resolv_conf": ("", False),
    "sbuf_loopcnt": ("5", True),
    "scram_iterations": ("4096", True),
    "server_check_delay": ("30", True),
    "server_check_query": ("<empty>", True),
    "server_connect_timeout": ("15", True),
    "server_fast_close": ("0", True),
    "server_idle_timeout": ("600", True),
    "server_lifetime": ("3600", True),
    "server_login_retry": ("15", True),
    "server_reset_query": ("DISCARD ALL", True),
    "server_reset_query_always": ("0", True),
    "server_round_robin": ("0", True),
    "server_tls13_ciphers": (..., True),
    "server_tls_ca_file": ("", True),
    "server_tls_cert_file": ("", True),
    "server_tls_ciphers": ("default", True),
    "server_tls_key_file": ("", True),
    "server_tls_protocols": ("secure", True),
    "server_tls_sslmode": ("prefer", True),
    "so_reuseport": ("0", False),
    "stats_period": ("60", True),
    "stats_users": ("", True),
    "suspend_timeout": ("10", True),
    "syslog": ("0", True),
    "syslog_facility": ("daemon", True),
    "syslog_ident": ("pgbouncer", True),
    "tcp_defer_accept": ("1", True),
    "tcp_keepalive": ("1", True),
    "tcp_keepcnt": ("0", True),
    "tcp_keepidle": ("0", True),
    "tcp_keepintvl": ("0", True),
    "tcp_socket_buffer": ("0", True),
    "tcp_user_timeout": ("0", True),
    "track_extra_parameters": ("IntervalStyle", False),
    "transaction_timeout": ("0", True),
    "unix_socket_dir": ("/tmp", False),
    "unix_socket_group": ("", False),
    "unix_socket_mode": ("0777", False),
    "user": (None, False),
    "verbose": (None, True),
}
# Some of the others.
OTHERS = {
    "compat_version": ("1.26.1", False),
    "login_notify_message": ("", True),
    "pool_idle_timeout": ("0", True),
    "server_login_concurrency": ("8", True),
    "startup_parameters": ("follow", True),
}


def error_of(client, sql):
    """The error of a console command. Asserts that the connection is ready for the next one."""
    client.send(wire.query(sql))
    result = client.result()
    assert result.types == "EZ" and result.status == "I"
    assert [field for field in result.error.fields if field != "H"] == ["S", "C", "M"]
    return result.error


# Columns and rows


def test_show_version_is_the_first_line_of_the_program(pooler):
    (row,) = pooler.show("VERSION")
    assert re.fullmatch(r"PgBouncer 1\.26\.1 \(pgusher \d+\.\d+\.\d+\)", row["version"])
    out = pooler.path("version")
    with open(out, "wb") as file:
        pooler_code = run_for_output(pooler, "--version", file)
    with open(out) as file:
        assert file.readline().rstrip("\n") == row["version"]
    assert pooler_code == 0


def run_for_output(pooler, option, file):
    """Run the program once more beside the daemon, its output in a file."""
    daemon = pooler.process
    try:
        pooler.spawn(option, config=False, stdout=file)
        return pooler.process.wait(10)
    finally:
        pooler.process = daemon


def test_show_state_names_the_one_mode(pooler):
    assert pooler.admin("SHOW STATE") == [
        {"key": "active", "value": "yes"},
        {"key": "paused", "value": "no"},
        {"key": "suspended", "value": "no"},
    ]
    pooler.command("PAUSE")
    assert [row["value"] for row in pooler.show("STATE")] == ["no", "yes", "no"]
    pooler.command("RESUME")
    assert [row["value"] for row in pooler.show("STATE")] == ["yes", "no", "no"]


def test_show_config_lists_every_setting_in_order(pooler):
    rows = pooler.show("CONFIG")
    keys = [row["key"] for row in rows]
    assert keys == sorted(keys)
    known = SETTINGS | OTHERS
    assert set(known) <= set(keys), sorted(set(known) - set(keys))
    for row in rows:
        if row["key"] not in known:
            continue
        default, changeable = known[row["key"]]
        if default is not ...:
            assert row["default"] == default, row
        assert row["changeable"] == ("yes" if changeable else "no"), row


def test_show_config_renders_values(new_pooler):
    pooler = new_pooler(
        {
            "server_idle_timeout": "0.5",
            "client_idle_timeout": "1.5e1",
            "server_lifetime": "3600.0",
            "unix_socket_mode": "0700",
            "pool_mode": "TRANSACTION",
            "default_pool_size": "0x10",
        }
    )
    assert pooler.setting("server_idle_timeout") == "0.5"
    assert pooler.setting("client_idle_timeout") == "15"
    assert pooler.setting("server_lifetime") == "3600"
    assert pooler.setting("unix_socket_mode") == "448"
    assert pooler.setting("pool_mode") == "transaction"
    assert pooler.setting("default_pool_size") == "16"
    assert pooler.setting("conffile") == pooler.config_path
    assert pooler.setting("user") is None


def test_show_databases_lists_what_is_configured(new_pooler, cluster):
    pooler = new_pooler(
        {"default_pool_size": 7, "min_pool_size": 0, "reserve_pool_size": 3, "max_db_connections": 9},
        databases={
            "one": {},
            "two": {
                "dbname": "main",
                "user": "alice",
                "pool_size": 2,
                "min_pool_size": 1,
                "reserve_pool_size": 4,
                "server_lifetime": 77,
                "pool_mode": "statement",
                "max_db_connections": 5,
                "max_db_client_connections": 6,
            },
            "many": {"host": "127.0.0.1,127.0.0.2"},
            "socket": f"port={cluster.port} dbname=main",
        },
    )
    rows = {row["name"]: row for row in pooler.show("DATABASES")}
    assert list(rows) == ["many", "one", "pgbouncer", "socket", "two"]
    assert rows["one"] == {
        "name": "one",
        "host": "127.0.0.1",
        "port": str(cluster.port),
        "database": "one",
        "force_user": None,
        "pool_size": "7",
        "min_pool_size": "0",
        "reserve_pool_size": "3",
        "server_lifetime": "3600",
        "pool_mode": None,
        "load_balance_hosts": None,
        "max_connections": "9",
        "current_connections": "0",
        "max_client_connections": "0",
        "current_client_connections": "0",
        "paused": "0",
        "disabled": "0",
    }
    two = rows["two"]
    assert (two["database"], two["force_user"], two["pool_mode"]) == ("main", "alice", "statement")
    assert (two["pool_size"], two["min_pool_size"], two["reserve_pool_size"]) == ("2", "1", "4")
    assert (two["server_lifetime"], two["max_connections"]) == ("77", "5")
    assert two["max_client_connections"] == "6"
    assert rows["many"]["host"] == "127.0.0.1,127.0.0.2"
    assert rows["many"]["load_balance_hosts"] == "round-robin"
    assert rows["socket"]["host"] is None
    console = rows["pgbouncer"]
    assert console["host"] is None
    assert console["port"] == str(pooler.port)
    assert (console["database"], console["force_user"]) == ("pgbouncer", "pgbouncer")
    assert (console["pool_size"], console["pool_mode"]) == ("2", "statement")
    assert console["current_client_connections"] == "1"


def test_show_databases_counts_connections(pooler):
    clients = [pooler.client() for _ in range(3)]
    clients[0].query("BEGIN")
    clients[1].query("BEGIN")
    (row,) = pooler.show("DATABASES", name="main")
    assert (row["current_connections"], row["current_client_connections"]) == ("2", "3")


def test_show_pools_counts_each_state(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    clients = [pooler.client() for _ in range(4)]
    clients[0].query("BEGIN")
    clients[1].query("BEGIN")
    clients[2].send(wire.query("SELECT 1"))
    row = pooler.wait_pool(cl_waiting=1)
    assert (row["cl_active"], row["sv_active"], row["sv_idle"]) == (3, 2, 0)
    assert row["pool_mode"] == "transaction"
    clients[0].query("COMMIT")
    assert clients[2].result().value == "1"
    row = pooler.wait_pool(cl_waiting=0, sv_active=1, sv_idle=1)
    assert (row["cl_active"], row["maxwait"], row["maxwait_us"]) == (4, 0, 0)


def test_show_pools_measures_the_first_waiter(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    wait_until(lambda: pooler.pool()["maxwait_us"] > 200000, what="the wait to grow")
    wait_until(lambda: pooler.pool()["maxwait"] == 1, what="a whole second")
    (row,) = pooler.clients(state="waiting")
    assert int(row["wait"]) >= 1
    holder.query("COMMIT")
    assert waiter.result().value == "1"


def test_show_pools_is_sorted_and_has_the_console(new_pooler):
    pooler = new_pooler(databases={"b": {"dbname": "main"}, "a": {"dbname": "main"}})
    for database, user in (("b", "bob"), ("b", "alice"), ("a", "carol")):
        pooler.client(user, database)
    rows = [(row["database"], row["user"]) for row in pooler.show("POOLS")]
    assert rows == [("a", "carol"), ("b", "alice"), ("b", "bob"), ("pgbouncer", "pgbouncer")]


TIME = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


def test_show_clients_describes_a_client(pooler):
    client = pooler.client(application_name="first")
    client.query("SELECT 1")
    (row,) = pooler.clients()
    assert (row["type"], row["user"], row["database"]) == ("C", "app", "main")
    assert (row["replication"], row["state"], row["addr"]) == ("none", "idle", "127.0.0.1")
    assert int(row["port"]) == client.socket.getsockname()[1]
    assert (row["local_addr"], row["local_port"]) == ("127.0.0.1", str(pooler.port))
    assert re.fullmatch(TIME, row["connect_time"])
    assert re.fullmatch(TIME, row["request_time"])
    assert re.fullmatch("0x[0-9a-f]+", row["ptr"])
    assert (row["link"], row["remote_pid"], row["tls"]) == ("", "0", "")
    assert (row["application_name"], row["prepared_statements"]) == ("first", "0")
    assert (row["wait"], row["close_needed"]) == ("0", "0")
    assert pooler.lines(f"C-{row['ptr']}: main/app@127.0.0.1:{row['port']} login attempt")


def test_show_servers_describes_a_server_and_its_link(pooler, cluster):
    client = pooler.client(application_name="owner")
    client.query("BEGIN")
    (server,) = pooler.servers()
    (row,) = pooler.clients()
    assert (server["type"], server["user"], server["database"]) == ("S", "app", "main")
    assert (server["state"], row["state"]) == ("active", "active")
    assert (server["addr"], server["port"]) == ("127.0.0.1", str(cluster.port))
    assert (server["link"], row["link"]) == (row["ptr"], server["ptr"])
    (backend,) = cluster.backends()
    assert int(server["remote_pid"]) == backend["pid"]
    assert int(server["local_port"]) == backend["client_port"]
    assert server["application_name"] == "owner"
    client.query("COMMIT")
    (server,) = pooler.servers()
    assert (server["state"], server["link"]) == ("idle", "")


def test_show_names_unix_peers(new_pooler, cluster):
    pooler = new_pooler(databases={"main": {"host": cluster.socket_folder, "port": cluster.port}})
    client = pooler.client(unix=True)
    client.query("SELECT 1")
    (row,) = pooler.clients()
    assert (row["addr"], row["port"]) == ("unix", str(pooler.port))
    assert int(row["remote_pid"]) == os.getpid()
    (server,) = pooler.servers()
    assert server["addr"] == "unix"
    (backend,) = cluster.backends()
    # The peer pid of a Unix socket is that of the process that called listen(), so either is right.
    assert int(server["remote_pid"]) in (backend["pid"], cluster.process.pid)


def test_ids_rise_by_one_for_each_connection_only(pooler):
    first = pooler.client()
    first.query("SELECT 1")
    (row,) = pooler.clients()
    (server,) = pooler.servers()
    console_ids = [int(each["id"]) for each in pooler.show("CLIENTS", database="pgbouncer")]
    last = max([int(row["id"]), int(server["id"]), *console_ids])
    asking = pooler.raw()
    asking.send(wire.ssl_request())
    assert asking.read_bytes(1) == b"N"
    asking.send(wire.gssenc_request())
    assert asking.read_bytes(1) == b"N"
    asking.login()
    newest = max(int(each["id"]) for each in pooler.clients())
    assert newest == last + 1


def test_show_sockets_lists_every_connection(pooler):
    pooler.raw().send(b"\0\0")
    client = pooler.client()
    client.query("BEGIN")
    wait_until(lambda: pooler.show("SOCKETS", state="cl_login"))
    states = sorted(row["state"] for row in pooler.show("SOCKETS"))
    assert states == ["cl_active", "cl_active", "cl_login", "sv_active"]
    (row,) = pooler.show("SOCKETS", state="cl_login")
    assert (row["user"], row["database"]) == ("(nouser)", "(nodb)")


def test_show_users_lists_known_users(new_pooler):
    pooler = new_pooler(
        {"max_user_connections": 11, "max_user_client_connections": 12, "auth_type": "trust"},
        databases={"main": {}, "forced": {"dbname": "main", "user": "carol"}},
        users={
            "alice": {"pool_size": 5, "reserve_pool_size": 2, "pool_mode": "session"},
            "bob": {"max_user_connections": 3, "max_user_client_connections": 4},
        },
        auth={"carol": None},
    )
    assert pooler.refused("ghost").sqlstate == "28000"
    client = pooler.client("alice")
    client.query("SELECT 1")
    rows = {row["name"]: row for row in pooler.show("USERS")}
    names = list(rows)
    assert names == sorted(names)
    assert {"admin", "alice", "app", "bob", "carol", "pgbouncer", "stats"} == set(names)
    assert rows["alice"] == {
        "name": "alice",
        "pool_size": "        5",
        "reserve_pool_size": "        2",
        "pool_mode": "session",
        "max_user_connections": "11",
        "current_connections": "1",
        "max_user_client_connections": "12",
        "current_client_connections": "1",
    }
    assert (rows["bob"]["pool_size"], rows["bob"]["reserve_pool_size"]) == ("", "")
    assert rows["bob"]["pool_mode"] is None
    assert rows["bob"]["max_user_connections"] == "3"
    assert rows["bob"]["max_user_client_connections"] == "4"


def test_show_lists_counts_objects(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    rows = pooler.show("LISTS")
    assert [row["list"] for row in rows] == (
        "databases users peers pools peer_pools free_clients used_clients login_clients"
        " free_servers used_servers dns_names dns_zones dns_queries dns_pending"
    ).split()
    items = {row["list"]: int(row["items"]) for row in rows}
    assert (items["databases"], items["pools"]) == (2, 2)
    assert (items["used_clients"], items["login_clients"]) == (2, 0)


def test_show_totals_has_its_rows_in_order(pooler):
    names = (
        "server_assignment_count xact_count query_count client_bytes server_bytes xact_time"
        " query_time wait_time ps_client_parse_count ps_server_parse_count ps_bind_count"
        " client_login_count"
    ).split()
    rows = pooler.show("TOTALS")
    assert [row["name"] for row in rows] == [
        prefix + name for prefix in ("total_", "avg_") for name in names
    ]
    assert all(row["value"].isdigit() for row in rows)


def test_show_mem_adds_up(pooler):
    for row in pooler.show("MEM"):
        assert int(row["memtotal"]) == (int(row["used"]) + int(row["free"])) * int(row["size"])


def test_show_is_up_to_date(pooler):
    """A client that sent Terminate before the command is not listed; one that has logged in is."""
    for _ in range(20):
        client = pooler.client()
        assert len(pooler.clients()) == 1
        client.leave()
        assert pooler.clients() == []


# Statistics


def counted(pooler, action):
    """How an action changes the counters of main."""
    before = pooler.stats()
    action()
    after = pooler.stats()
    return {key: after[key] - before[key] for key in after if key != "database"}


def test_stats_count_queries_and_transactions(pooler):
    client = pooler.client()
    client.query("SELECT 1")

    change = counted(pooler, lambda: client.query("SELECT 1"))
    assert (change["query_count"], change["xact_count"]) == (1, 1)
    assert change["server_assignment_count"] == 1

    def transaction():
        for sql in ("BEGIN", "SELECT 1", "COMMIT"):
            client.query(sql)

    change = counted(pooler, transaction)
    assert (change["query_count"], change["xact_count"]) == (3, 1)
    assert change["server_assignment_count"] == 1

    change = counted(pooler, lambda: client.extended("SELECT 1"))
    assert (change["query_count"], change["xact_count"]) == (1, 1)

    def apart():
        client.send(wire.parse("SELECT 1"), wire.sync())
        client.checked()
        client.send(wire.bind(), wire.describe(), wire.execute(), wire.sync())
        client.checked()

    client.query("BEGIN")
    change = counted(pooler, apart)
    assert change["query_count"] == 2
    client.query("COMMIT")

    def pipeline():
        batch = wire.extended("SELECT 1") + wire.sync()
        client.send(batch * 3)
        for _ in range(3):
            client.checked()

    change = counted(pooler, pipeline)
    assert change["query_count"] == 1
    assert counted(pooler, lambda: client.query(""))["query_count"] == 1


def test_stats_count_bytes_of_messages(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    sql = "SELECT 'abc'"
    sent = len(wire.query(sql))
    received = []

    def ask():
        received.extend(client.query(sql).messages)

    change = counted(pooler, ask)
    assert change["bytes_received"] == sent
    assert change["bytes_sent"] == sum(5 + len(message.body) for message in received)


def test_stats_measure_times(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")

    def wait_a_little():
        waiter.send(wire.query("SELECT 1"))
        pooler.wait_pool(cl_waiting=1)
        holder.query("SELECT pg_sleep(0.3)")
        holder.query("COMMIT")
        waiter.result()

    change = counted(pooler, wait_a_little)
    assert change["query_time"] >= 2 * 300000
    assert change["wait_time"] >= 300000
    assert change["xact_time"] >= 2 * 300000
    assert change["wait_time"] < 5000000


def test_stats_of_the_console_count_one_for_each_connection(pooler):
    before = pooler.stats("pgbouncer")
    other = pooler.console()
    other.query("SHOW STATE")
    other.query("SHOW STATE")
    after = pooler.stats("pgbouncer")
    assert after["query_count"] - before["query_count"] == 1
    assert after["xact_count"] - before["xact_count"] == 1
    assert after["bytes_received"] == 0


def test_averages_follow_the_period(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "stats_period": 1})
    client = pooler.client()

    def busy():
        for _ in range(20):
            client.query("SELECT 1")
        (row,) = pooler.show("STATS_AVERAGES", database="main")
        return int(row["query_count"]) > 0 and int(row["query_time"]) > 0

    wait_until(busy, what="averages of the last period")
    line = pooler.wait_log(r" LOG stats: [1-9]")[-1]
    assert re.search(
        r"stats: \d+ xacts/s, \d+ queries/s, \d+ client parses/s, \d+ server parses/s,"
        r" \d+ binds/s, \d+ client logins/s, in \d+ B/s, out \d+ B/s, xact \d+ us, query \d+ us, wait \d+ us$",
        line,
    )


# The connection


def test_welcome_of_the_console(pooler):
    client = pooler.console(application_name="tool")
    kinds = "".join(message.type for message in client.welcome)
    pairs = [wire.read_pairs(m.body)[0] for m in client.welcome if m.type == "S"]
    assert re.fullmatch("RS+KZ", kinds)
    assert pairs[0][0] == "server_version"
    assert re.fullmatch(r"1\.26\.1/bouncer", pairs[0][1])
    assert pairs[1:7] == [
        ("client_encoding", "UTF8"),
        ("server_encoding", "UTF8"),
        ("DateStyle", "ISO"),
        ("TimeZone", "GMT"),
        ("standard_conforming_strings", "on"),
        ("is_superuser", "on"),
    ]
    assert ("application_name", "tool") in pairs[7:]
    assert len(client.key) == 8 and client.key[0] < 128
    assert client.status == "I"


def test_console_is_also_called_pgusher(new_pooler):
    pooler = new_pooler()
    client = pooler.client("admin", "pgusher")
    assert client.query("SHOW STATE").rows
    assert {row["database"] for row in pooler.show("CLIENTS")} == {"pgbouncer"}


def test_a_database_called_pgusher_is_an_ordinary_one(new_pooler):
    pooler = new_pooler(databases={"pgusher": {"dbname": "main"}})
    assert pooler.client("app", "pgusher").value("SELECT current_database()") == "main"


def test_users_without_rights_are_refused_before_any_password(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret", "admin": "secret"})
    error = pooler.refused("app", "pgbouncer")
    assert error.is_("FATAL", "08P01", "not allowed")
    assert pooler.client("admin", "pgbouncer", "secret").query("SHOW STATE").rows


def test_unknown_user_of_the_console_fails_like_any_other(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret"})
    error = pooler.refused("ghost", "pgbouncer", "guess")
    assert error.is_("FATAL", "28P01", "password authentication failed")


@pytest.mark.setting("admin_users")
def test_names_in_the_user_lists_match_as_whole_items(new_pooler):
    names = {"one, two": "", "two three": "", "tw": "", "one": "", "two": "", "three": ""}
    pooler = new_pooler({"admin_users": "one, two three"}, auth=names)
    for name in ("one", "two", "three"):
        assert pooler.console(name).query("SHOW STATE").rows
    for name in ("one, two", "two three", "tw"):
        assert pooler.refused(name, "pgbouncer").text == "not allowed"


def test_own_uid_on_the_unix_socket_needs_no_password(new_pooler):
    pooler = new_pooler({"auth_type": "md5"})
    done = pooler.psql(
        "-Atc", "SHOW STATE", "-c", "PAUSE", "-c", "RESUME",
        user="pgbouncer", database="pgbouncer", unix=True,
    )
    assert "active|yes" in done.stdout
    assert pooler.lines("pgbouncer access from unix socket")


def test_local_superuser_is_the_uid_not_the_name(new_pooler):
    pooler = new_pooler({"auth_type": "md5"})
    error = pooler.refused("pgbouncer", "pgbouncer", "guess")
    assert error.severity == "FATAL"
    if os.getuid() != service_uid():
        error = pooler.refused("pgbouncer", "pgbouncer", "guess", unix=True)
        assert error.severity == "FATAL"


def test_console_ignores_max_client_conn(new_pooler):
    pooler = new_pooler({"max_client_conn": 1})
    pooler.client()
    assert pooler.show("STATE")
    error = pooler.refused()
    assert error.is_("FATAL", "53300", "no more connections allowed (max_client_conn)")


def test_two_commands_in_one_write_are_answered_in_order(pooler):
    client = pooler.console()
    client.send(wire.query("SHOW STATE"), wire.query("SHOW VERSION"))
    assert client.result().names == ["key", "value"]
    assert client.result().names == ["version"]


def test_a_command_in_pieces_is_put_together(pooler):
    client = pooler.console()
    data = wire.query("SHOW STATE")
    for at in range(len(data)):
        client.send(data[at:at + 1])
    assert client.result().tag == "SHOW"


def test_a_long_command_is_read_whole(pooler):
    client = pooler.console()
    error = error_of(client, "SHOW " + "x" * 20000)
    assert error.sqlstate == "08P01"
    assert client.query("SHOW STATE").rows


def test_console_closes_at_terminate(pooler):
    client = pooler.console()
    client.send(wire.terminate())
    assert client.closed()
    assert pooler.wait_log("closing because: close req ")


def test_unknown_type_on_the_console_closes(pooler):
    client = pooler.console()
    client.send(wire.message("y", b"x"))
    assert client.fatal().severity == "FATAL"
    assert pooler.show("STATE")


def test_psql_works_on_the_console(pooler):
    done = pooler.psql("-Atc", "SHOW POOLS;", user="admin", database="pgbouncer")
    assert "pgbouncer|pgbouncer|" in done.stdout


# Grammar


@pytest.mark.parametrize(
    "sql",
    [
        "show state",
        "SELECT state",
        " \t\r\n SHOW \n STATE \t;  ",
        "Show State;",
        'SHOW "state"',
        '"show" "STATE"',
    ],
)
def test_commands_are_read_leniently(pooler, sql):
    assert len(pooler.admin(sql)) == 3


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 + 1",
        "SHOW",
        "SHOW NOTHING",
        "SHOW STATE x",
        "SHOW STATE; SHOW STATE",
        "SHOW STATE;;",
        "SHOW STATE -- why",
        "SAVEPOINT x",
        "NONSENSE",
        "RELOAD now",
        "SHUTDOWN SOON",
        "PAUSE a-b",
        "SELECT n.nspname FROM pg_catalog.pg_namespace n",
    ],
)
def test_unknown_commands_are_refused(pooler, sql):
    error = error_of(pooler.console(), sql)
    assert error.is_("ERROR", "08P01", f"invalid command '{sql}', use SHOW HELP;")


@pytest.mark.parametrize("sql", ["A" * 16, "PAUSE " + "a" * 64, "SET verbose = '" + "1" * 256 + "'"])
def test_too_long_words_are_refused(pooler, sql):
    assert error_of(pooler.console(), sql).is_("ERROR", "08P01", "bad arguments")


def test_database_names_may_be_quoted(new_pooler):
    pooler = new_pooler(databases={"odd-name": {"dbname": "main"}, "Case": {"dbname": "main"}})
    pooler.command('DISABLE "odd-name"')
    pooler.command("DISABLE Case")
    rows = pooler.show("DATABASES", disabled=1)
    assert [row["name"] for row in rows] == ["Case", "odd-name"]
    error = error_of(pooler.console(), "DISABLE case")
    assert error.text == "no such database: case"


def test_errors_are_logged_twice(pooler):
    error_of(pooler.console(), "NONSENSE")
    pooler.wait_log(r"\] ERROR invalid command 'NONSENSE', use SHOW HELP;$")
    pooler.wait_log(
        r"\] WARNING C-0x[0-9a-f]+: pgbouncer/admin@127.0.0.1:\d+"
        r" pooler error: invalid command 'NONSENSE', use SHOW HELP;$"
    )


FAKED = {
    "client_encoding": "UTF-8",
    "default_transaction_isolation": "read committed",
    "standard_conforming_strings": "on",
    "datestyle": "ISO",
    "timezone": "GMT",
    "extra_float_digits": "1",
    "application_name": "",
}


@pytest.mark.parametrize("name", FAKED)
def test_parameters_that_drivers_set_are_accepted_without_effect(pooler, name):
    for client in (pooler.console("admin"), pooler.console("stats")):
        result = client.query(f"SHOW {name.title()}")
        assert (result.names, result.rows, result.tag) == ([name], [(FAKED[name],)], "SHOW")
        result = client.query(f"SET {name.upper()} TO 'anything'")
        assert result.types == "NCZ" and result.tag == "SET"
        assert result.notices[0]["M"] == "SET ignored"


# Rights


@pytest.mark.setting("stats_users")
@pytest.mark.parametrize(
    "sql",
    [
        "RELOAD",
        "PAUSE",
        "PAUSE main",
        "RESUME",
        "DISABLE main",
        "ENABLE main",
        "KILL",
        "KILL main",
        "RECONNECT",
        "SUSPEND",
        "SHUTDOWN",
        "SHUTDOWN WAIT_FOR_SERVERS",
        "WAIT_CLOSE",
        "SET verbose = 1",
    ],
)
def test_stats_user_may_change_nothing(pooler, sql):
    client = pooler.console("stats")
    assert error_of(client, sql).is_("ERROR", "08P01", "admin access needed")
    assert [row["value"] for row in client.query("SHOW STATE").dicts()] == ["yes", "no", "no"]
    assert pooler.running()


# SET


def test_set_changes_a_setting_at_once(pooler):
    result = pooler.command("SET default_pool_size = 3")
    assert result.tag == "SET default_pool_size=3"
    assert pooler.setting("default_pool_size") == "3"
    pooler.command("SET server_idle_timeout = '0.25'")
    assert pooler.setting("server_idle_timeout") == "0.25"
    pooler.command("set  query_timeout  to  7 ;")
    assert pooler.setting("query_timeout") == "7"
    pooler.command("SET server_reset_query = 'SELECT ''x'''")
    assert pooler.setting("server_reset_query") == "SELECT 'x'"


@pytest.mark.parametrize(
    "sql",
    [
        "SET role=x",
        "SET server_version=15",
        "SET DEFAULT_POOL_SIZE = 3",
        "SET default_pool_size = many",
        "SET pool_mode = chaotic",
        "SET server_lifetime = '-1'",
    ],
)
def test_set_refuses_unknown_names_and_values(pooler, sql):
    before = pooler.show("CONFIG")
    assert error_of(pooler.console(), sql).is_("ERROR", "08P01", "SET failed")
    assert pooler.show("CONFIG") == before


def test_set_of_a_fixed_setting_is_accepted_and_ignored(pooler):
    assert pooler.command("SET listen_port = 1").tag == "SET listen_port=1"
    assert pooler.setting("listen_port") == str(pooler.port)


# PAUSE and RESUME


def test_pause_waits_for_the_transaction_and_holds_new_ones(pooler, cluster):
    holder, other = pooler.client(), pooler.client()
    holder.query("BEGIN")
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    assert console.silent()
    other.send(wire.query("SELECT 2"))
    assert other.silent()
    assert holder.query("SELECT 1").value == "1"
    holder.query("COMMIT")
    assert console.result().tag == "PAUSE"
    cluster.wait_quiet()
    assert pooler.lines("PAUSE command issued") and pooler.lines("closing because: pause mode")
    pooler.wait_pool(cl_waiting=1)
    assert pooler.command("RESUME").tag == "RESUME"
    assert other.result().value == "2"


def test_pause_closes_idle_servers(pooler, cluster):
    client = pooler.client()
    client.query("SELECT 1")
    assert len(cluster.backends()) == 1
    pooler.command("PAUSE")
    cluster.wait_quiet()
    error = error_of(pooler.console(), "PAUSE main")
    assert error.text == "already suspended/paused"
    assert error_of(pooler.console(), "KILL main").text == "already suspended/paused"
    pooler.command("RESUME")
    assert error_of(pooler.console(), "RESUME").text == "pooler is not paused/suspended"
    assert client.value("SELECT 1") == "1"


def test_clients_log_in_to_a_paused_pool_that_was_used(pooler):
    pooler.client().query("SELECT 1")
    pooler.command("PAUSE")
    client = pooler.client()
    client.send(wire.query("SELECT 3"))
    assert client.silent()
    pooler.command("RESUME")
    assert client.result().value == "3"


def test_logins_wait_for_the_first_server_of_a_paused_pool(pooler):
    pooler.command("PAUSE")
    client = pooler.raw().send_startup()
    assert client.silent()
    pooler.command("RESUME")
    client.finish_login("app")
    assert client.value("SELECT 1") == "1"


def test_a_console_that_waits_in_pause_answers_other_commands(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    assert console.silent(0.1)
    console.send(wire.query("SHOW STATE"))
    assert console.result().dicts()[1] == {"key": "paused", "value": "yes"}
    holder.query("COMMIT")
    assert console.result().tag == "PAUSE"
    pooler.command("RESUME")


def test_resume_ends_a_waiting_pause_with_an_error(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    assert console.silent(0.1)
    pooler.command("RESUME")
    result = console.result()
    assert result.types == "EZ" and result.error.severity == "ERROR"
    holder.query("COMMIT")
    assert holder.value("SELECT 1") == "1"


def test_pause_stays_when_its_console_disconnects(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    console.leave()
    other = pooler.client()
    other.send(wire.query("SELECT 1"))
    holder.query("COMMIT")
    assert other.silent()
    pooler.command("RESUME")
    assert other.result().value == "1"


def test_pause_of_one_database_leaves_the_others(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": {}, "other": {}})
    one, two = pooler.client(), pooler.client(database="other")
    one.query("SELECT 1"), two.query("SELECT 1")
    assert pooler.command("PAUSE main").tag == "PAUSE"
    assert pooler.lines("PAUSE 'main' command issued")
    (row,) = pooler.show("DATABASES", name="main")
    assert row["paused"] == "1"
    one.send(wire.query("SELECT 1"))
    assert two.value("SELECT 2") == "2"
    assert one.silent(0.2)
    # A global RESUME does not resume databases paused by name.
    assert error_of(pooler.console(), "RESUME").text == "pooler is not paused/suspended"
    assert error_of(pooler.console(), "RESUME other").text == "database other is not paused"
    assert pooler.command("RESUME main").tag == "RESUME"
    assert one.result().value == "1"


def test_pause_in_session_mode_waits_for_the_client(session_pooler):
    client = session_pooler.client()
    client.query("SELECT 1")
    console = session_pooler.console()
    console.send(wire.query("PAUSE"))
    assert console.silent()
    client.leave()
    assert console.result().tag == "PAUSE"


@pytest.mark.parametrize(
    "sql, text",
    [
        ("PAUSE nowhere", "no such database: nowhere"),
        ("RESUME nowhere", "no such database: nowhere"),
        ("DISABLE nowhere", "no such database: nowhere"),
        ("ENABLE nowhere", "no such database: nowhere"),
        ("KILL nowhere", "no such database: nowhere"),
        ("RECONNECT nowhere", "no such database: nowhere"),
        ("WAIT_CLOSE nowhere", "no such database: nowhere"),
        ("DISABLE", "a database is required"),
        ("ENABLE", "a database is required"),
        ("PAUSE pgbouncer", "cannot pause admin db: pgbouncer"),
        ("DISABLE pgbouncer", "cannot disable admin db: pgbouncer"),
        ("ENABLE pgbouncer", "cannot enable admin db: pgbouncer"),
        ("KILL pgbouncer", "cannot kill admin db: pgbouncer"),
        ("RECONNECT pgbouncer", "cannot reconnect admin db: pgbouncer"),
        ("WAIT_CLOSE pgbouncer", "cannot wait in admin db: pgbouncer"),
        ("RESUME main", "database main is not paused"),
    ],
)
def test_commands_refuse_wrong_databases(pooler, sql, text):
    assert error_of(pooler.console(), sql).is_("ERROR", "08P01", text)


# DISABLE and ENABLE


def test_disabled_database_refuses_new_clients_only(pooler):
    client = pooler.client()
    assert pooler.command("DISABLE main").tag == "DISABLE"
    error = pooler.refused()
    assert error.is_("FATAL", "55000", 'database "main" is disabled')
    assert client.value("SELECT 1") == "1"
    pooler.reload()
    (row,) = pooler.show("DATABASES", name="main")
    assert row["disabled"] == "1"
    assert pooler.command("ENABLE main").tag == "ENABLE"
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.lines("DISABLE 'main' command issued")
    assert pooler.lines("ENABLE 'main' command issued")


def test_disabled_database_asks_for_the_password_first(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "right", "admin": "right"})
    pooler.client("admin", "pgbouncer", "right").query("DISABLE main")
    assert pooler.refused("app", "main", "wrong").text == "password authentication failed"
    assert pooler.refused("app", "main", "right").text == 'database "main" is disabled'


# KILL


def test_kill_closes_all_clients_and_pauses_the_database(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": {}, "other": {}})
    victim, bystander = pooler.client(), pooler.client(database="other")
    victim.query("BEGIN"), bystander.query("BEGIN")
    assert pooler.command("KILL main").tag == "KILL"
    assert victim.fatal().is_("FATAL", "57P01", "database removed")
    wait_until(lambda: not cluster.backends(datname="main"))
    assert bystander.value("SELECT 1") == "1"
    waiting = pooler.raw().send_startup()
    assert waiting.silent()
    pooler.command("RESUME main")
    waiting.finish_login("app")
    assert waiting.value("SELECT 1") == "1"


def test_kill_of_all_leaves_the_console_and_the_global_mode(pooler):
    victim = pooler.client()
    victim.query("SELECT 1")
    assert pooler.command("KILL").tag == "KILL"
    assert victim.fatal().text == "database removed"
    assert pooler.show("STATE")[0] == {"key": "active", "value": "yes"}
    assert error_of(pooler.console(), "RESUME").text == "pooler is not paused/suspended"
    pooler.command("RESUME main")
    assert pooler.client().value("SELECT 1") == "1"


# RECONNECT and WAIT_CLOSE


def test_reconnect_renews_servers_when_they_are_free(pooler):
    idle, busy = pooler.client(), pooler.client()
    busy.query("BEGIN")
    old = busy.value("SELECT pg_backend_pid()")
    gone = idle.value("SELECT pg_backend_pid()")
    assert gone != old
    assert pooler.command("RECONNECT").tag == "RECONNECT"
    (row,) = pooler.servers(remote_pid=old)
    assert row["close_needed"] == "1"
    console = pooler.console()
    console.send(wire.query("WAIT_CLOSE"))
    assert busy.value("SELECT pg_backend_pid()") == old
    assert idle.value("SELECT pg_backend_pid()") not in (old, gone)
    assert console.silent(0.2)
    busy.query("COMMIT")
    assert console.result().tag == "WAIT_CLOSE"
    assert busy.value("SELECT pg_backend_pid()") != old
    assert pooler.lines(r"closing because: close_needed \(")
    assert pooler.lines(r"closing because: (database configuration changed|obsolete connection)")


def test_wait_close_returns_at_once_when_nothing_is_marked(pooler):
    assert pooler.command("WAIT_CLOSE").tag == "WAIT_CLOSE"
    client = pooler.client()
    client.query("BEGIN")
    assert pooler.command("WAIT_CLOSE main").tag == "WAIT_CLOSE"


def test_wait_close_does_not_answer_a_pause(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    pauser = pooler.console()
    pauser.send(wire.query("PAUSE"))
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    assert pooler.command("WAIT_CLOSE").tag == "WAIT_CLOSE"
    assert pauser.silent()
    holder.query("COMMIT")
    assert pauser.result().tag == "PAUSE"


def test_login_after_reconnect_waits_for_a_fresh_server(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    pooler.client().query("SELECT 1")
    assert server.count == 1
    pooler.command("RECONNECT main")
    pooler.client()
    assert server.count == 2


# SHUTDOWN


def test_shutdown_ends_without_an_answer(pooler):
    client = pooler.client()
    console = pooler.console()
    console.send(wire.query("SHUTDOWN"))
    assert [message.type for message in console.read_all()] in ([], ["E"])
    assert pooler.wait_exit() == 0
    assert [message.type for message in client.read_all()] in ([], ["E"])
    assert pooler.lines("SHUTDOWN command issued")
    assert not os.path.exists(pooler.socket_path)


def test_shutdown_wait_for_servers_lets_transactions_end(pooler):
    holder, idle, waiter = pooler.client(), pooler.client(), pooler.client()
    holder.query("BEGIN")
    assert pooler.command("SHUTDOWN WAIT_FOR_SERVERS").tag == "SHUTDOWN"
    with pytest.raises(OSError):
        RawClient(pooler.address)
    idle.send(wire.query("SELECT 1"))
    assert idle.fatal().is_("FATAL", "57P01", "server shutting down")
    error = pooler.refused(unix=True)
    assert error.is_("FATAL", "57P03", "pooler is shutting down")
    assert holder.value("SELECT 1") == "1"
    assert pooler.console(unix=True).query("SHOW STATE").rows[1] == ("paused", "yes")
    assert error_of(pooler.console(unix=True), "RESUME").text == "pooler is shutting down"
    holder.query("COMMIT")
    assert pooler.wait_exit() == 0
    assert pooler.lines("server connections dropped, exiting")
    assert waiter.read_all() == []


def test_shutdown_wait_for_clients_serves_on(pooler):
    client = pooler.client()
    console = pooler.console()
    assert console.query("SHUTDOWN WAIT_FOR_CLIENTS").tag == "SHUTDOWN"
    with pytest.raises(OSError):
        RawClient(pooler.address)
    assert client.value("SELECT 1") == "1"
    error = pooler.refused(unix=True)
    assert error.is_("FATAL", "57P03", "pooler is shutting down")
    console.leave()
    assert client.value("SELECT 2") == "2"
    stays(pooler.running)
    client.leave()
    assert pooler.wait_exit() == 0
    assert pooler.lines("client connections dropped, exiting")


# Cancel


def test_cancel_of_a_console_client_resumes(pooler):
    holder = pooler.client()
    holder.query("BEGIN")
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    with RawClient(pooler.address) as canceler:
        canceler.send(wire.cancel_request(console.key))
        canceler.closed()
    wait_until(lambda: pooler.show("STATE", key="active", value="yes"))
    assert pooler.lines("cancel request for console client")
    assert pooler.client().value("SELECT 1") == "1"


# Faults: F61 in part


def test_garbage_on_the_console_affects_no_other_client(pooler):
    client = pooler.client()
    for garbage in (
        wire.query("\x01\xff'\"" * 100),
        wire.message("Q", b"SHOW STATE"),
        wire.message("Q", b""),
        struct.pack("!cI", b"Q", 3),
        struct.pack("!cI", b"Q", 0x7FFFFFFF),
        wire.query("SHOW " * 200000),
    ):
        console = pooler.console()
        console.send(garbage)
        console.reset()
    console = pooler.console()
    try:
        console.send(wire.query("SET verbose = 'x"))
        console.result()
    except (Closed, ServerError):
        pass
    assert client.value("SELECT 1") == "1"
    assert pooler.show("STATE")
