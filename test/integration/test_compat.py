# SPDX-License-Identifier: ISC
"""compat_version: what tools see of PgBouncer 1.26.1 or 1.25.2, and the counter of client logins."""

import re

import pytest

from support.clients.raw import ServerError
from support.process import run, wait_until
from support.servers.pooler import binary

VERSIONS = ("1.26.1", "1.25.2")

BEFORE = (
    "server_assignment_count xact_count query_count {received} {sent} xact_time query_time"
    " wait_time "
)
SHARED = {
    "total": BEFORE.format(received="received", sent="sent")
    + "client_parse_count server_parse_count bind_count",
    "avg": BEFORE.format(received="recv", sent="sent")
    + "client_parse_count server_parse_count bind_count",
}


def stats_columns(version):
    """The columns of SHOW STATS, by position."""
    added = " client_login_count" if version == "1.26.1" else ""
    return ["database"] + [
        f"{prefix}_{name}" for prefix in SHARED for name in (SHARED[prefix] + added).split()
    ]


def columns(pooler, topic):
    return pooler.command(f"SHOW {topic}").names


def logins(pooler, database="main"):
    """The counter of one database; None if it has no pool."""
    rows = pooler.show("STATS_TOTALS", database=database)
    return int(rows[0]["client_login_count"]) if rows else None


@pytest.fixture(params=VERSIONS)
def version(request):
    return request.param


@pytest.mark.setting("compat_version")
def test_columns_texts_and_the_line_of_the_log_are_those_of_one_version(new_pooler, version):
    pooler = new_pooler(
        {"pool_mode": "transaction", "compat_version": version, "stats_period": 1}
    )
    pooler.client().query("SELECT 1")
    # Texts, which tools choose their columns by.
    (row,) = pooler.show("VERSION")
    assert row["version"].startswith(f"PgBouncer {version} (pgusher ")
    assert pooler.console().parameters["server_version"] == f"{version}/bouncer"
    assert pooler.command("SHOW server_version").rows == [(f"{version}/bouncer",)]
    # As a number, it is what libpq makes of the text.
    number = pooler.connect("admin", "pgbouncer").info.server_version
    assert pooler.command("SHOW server_version_num").rows == [(str(number),)]
    assert pooler.lines(f"process up: PgBouncer {re.escape(version)} ")
    shown = run([binary(), "--version", pooler.config_path]).stdout
    assert shown.splitlines()[0] == row["version"]
    # Columns, by position.
    new = version == "1.26.1"
    assert columns(pooler, "STATS") == stats_columns(version)
    for topic, name in (
        ("STATS_TOTALS", "client_login_count"), ("STATS_AVERAGES", "avg_client_login_count")
    ):
        found = columns(pooler, topic)
        assert len(found) == (13 if new else 12)
        assert (found[-1] == name) == new and (name in found) == new
    names = [row["name"] for row in pooler.show("TOTALS")]
    assert len(names) == (24 if new else 22)
    assert (names[-1] == "avg_client_login_count") == new
    assert (names[11] == "total_client_login_count") == new
    # Rows have as many values as there are columns.
    for topic in ("STATS", "STATS_TOTALS", "STATS_AVERAGES"):
        result = pooler.command(f"SHOW {topic}")
        assert {len(row) for row in result.rows} == {len(result.columns)}
    # The statistics line.
    part = r" \d+ client logins/s," if new else ""
    (line, *_) = pooler.wait_log(r" LOG stats: ")
    assert re.search(rf" \d+ binds/s,{part} in \d+ B/s, out ", line)


def test_clauses_and_binary_results_know_the_columns_of_the_version(new_pooler, version):
    pooler = new_pooler({"pool_mode": "transaction", "compat_version": version})
    pooler.client().query("SELECT 1")
    sql = "SHOW STATS_TOTALS WHERE client_login_count > 0"
    if version == "1.26.1":
        assert [row["database"] for row in pooler.admin(sql)] == ["main", "pgbouncer"]
    else:
        with pytest.raises(ServerError) as failure:
            pooler.command(sql)
        assert failure.value.sqlstate == "42703"
    connection = pooler.connect("admin", "pgbouncer")
    cursor = connection.cursor(binary=True)
    cursor.execute("SHOW STATS")
    assert [column.name for column in cursor.description] == stats_columns(version)
    assert {len(row) for row in cursor.fetchall()} == {len(stats_columns(version))}


def test_a_reload_changes_no_column_under_a_tool_that_reads_by_position(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"})
    pooler.settings["compat_version"] = "1.25.2"
    pooler.reload()
    assert columns(pooler, "STATS") == stats_columns("1.26.1")
    assert pooler.setting("compat_version") == "1.26.1"


def test_an_online_restart_selects_another_version(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "pidfile": None}, start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    client = pooler.client()
    client.query("SELECT 1")
    before = logins(pooler)
    pooler.settings["compat_version"] = "1.25.2"
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()
    assert columns(pooler, "STATS") == stats_columns("1.25.2")
    client.query("SELECT 1")
    pooler.settings["compat_version"] = "1.26.1"
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()
    assert logins(pooler) == before, "counted on, and the adopted client not once more"
    pooler.client()
    assert logins(pooler) == before + 1


def test_an_unknown_version_is_refused(new_pooler):
    pooler = new_pooler({"compat_version": "1.24.0"}, start=False)
    pooler.allow("FATAL")
    assert pooler.run_to_end("--check") == 1
    assert "1.26.1" in pooler.log() and "1.25.2" in pooler.log()
    shown = run([binary(), "--version", pooler.config_path]).stdout
    assert shown.startswith("PgBouncer 1.26.1 "), "--version answers whatever the file has"


# The counter of logins


def test_each_login_counts_once_in_its_database(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"}, databases={"main": {}, "other": {"dbname": "main"}}
    )
    for _ in range(3):
        pooler.client()
    pooler.client("bob")
    pooler.client(database="other")
    assert (logins(pooler), logins(pooler, "other")) == (4, 1)
    # With startup parameters that a server has to check first.
    pooler.client(options="-c work_mem=123kB")
    assert logins(pooler) == 5
    console = logins(pooler, "pgbouncer")
    pooler.console()
    assert logins(pooler, "pgbouncer") == console + 1


def test_a_login_counts_before_the_welcome_that_waits_for_a_server(new_pooler, new_server):
    """The server accepts connections and says nothing, so no welcome can be sent."""

    def silent(connection):
        connection.accept_startup()
        connection.wait_disconnected()

    server = new_server(silent)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    waiting = pooler.raw().send_startup()
    pooler.wait_pool(cl_waiting=1)
    assert logins(pooler) == 1
    waiting.close()
    wait_until(lambda: not pooler.clients())
    assert logins(pooler) == 1


def test_refused_logins_and_look_ups_do_not_count(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "auth_type": "md5", "auth_user": "harness"},
        databases={"main": {}, "closed": {"dbname": "main"}},
        auth={"app": "right", "admin": "a", "harness": ""},
    )
    pooler.use_console("admin", "a")
    pooler.client("app", password="right")
    assert logins(pooler) == 1
    pooler.refused("app", password="wrong")
    pooler.refused("app", "missing", password="right")
    pooler.refused("nobody", password="x")  # looked up by auth_query
    pooler.command("DISABLE closed")
    pooler.refused("app", "closed", password="right")
    assert logins(pooler) == 1
    assert logins(pooler, "closed") in (None, 0)
    total = {row["name"]: row["value"] for row in pooler.show("TOTALS")}
    assert int(total["total_client_login_count"]) == 1 + logins(pooler, "pgbouncer")


def test_the_average_is_per_second(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "stats_period": 1})

    def average():
        for _ in range(10):
            pooler.client().close()
        (row,) = pooler.show("STATS_AVERAGES", database="main")
        return int(row["avg_client_login_count"])

    wait_until(average, what="an average above 0")
    pooler.wait_log(r"binds/s, [1-9]\d* client logins/s, in")
