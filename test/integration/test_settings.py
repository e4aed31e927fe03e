# SPDX-License-Identifier: ISC
"""The effect of single settings and keys that no other file tests."""

import re
import socket

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import own, stays, wait_until


# Log


class Syslog:
    """A system's log daemon."""

    def __init__(self, path):
        self.path = path
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setblocking(False)
        own(path)
        self.lines = []

    def find(self, pattern):
        """The first line so far that matches; None if there is none."""
        try:
            while True:
                self.lines.append(self.socket.recv(65536).decode())
        except BlockingIOError:
            pass
        return next((line for line in self.lines if re.search(pattern, line)), None)

    def wait(self, pattern):
        """Wait for a line."""
        return wait_until(lambda: self.find(pattern), 10, f"syslog to receive {pattern}")


@pytest.mark.setting("syslog", "syslog_ident", "syslog_facility")
def test_syslog_gets_what_is_logged(new_pooler, library):
    pooler = new_pooler({"syslog": 1}, start=False)
    syslog = Syslog(pooler.path("log.socket"))
    options = "verify_asan_link_order=0:detect_leaks=0"
    pooler.start(
        environment={
            "LD_PRELOAD": library,
            "PGUSHER_SYSLOG": syslog.path,
            "ASAN_OPTIONS": options,
        }
    )
    # Facility daemon is 3, of eight priorities each; LOG has the priority info, 6.
    line = syslog.wait("process up")
    assert re.match(rf"<30>\w+ .* pgbouncer\[{pooler.process.pid}\]: process up", line)
    pooler.refused("ghost")
    assert syslog.wait("pooler error").startswith("<28>")
    pooler.command("SET syslog_ident = 'sluice'")
    pooler.command("SET syslog_facility = 'local3'")
    pooler.client("alice")
    assert re.match(rf"<158>.* sluice\[{pooler.process.pid}\]: .*user=alice", syslog.wait("alice"))
    pooler.command("SET syslog = 0")
    pooler.client("bob")
    pooler.command("SET syslog = 1")
    pooler.client("carol")
    syslog.wait("user=carol")
    assert not syslog.find("user=bob")


@pytest.mark.setting("log_stats", "stats_period")
def test_totals_are_logged_each_period_if_log_stats_is_set(new_pooler):
    pooler = new_pooler({"stats_period": "1h"})
    total = r" LOG stats: \d+ xacts/s, "
    assert not pooler.lines(total)
    # A period in progress ends when the new length says so.
    pooler.command("SET stats_period = 1")
    pooler.wait_log(total, 2)
    pooler.command("SET log_stats = 0")
    logged = len(pooler.lines(total))
    stays(lambda: len(pooler.lines(total)) == logged, 1.5)


# The network


def accepted(pooler):
    """How many clients the daemon has accepted that have sent nothing yet."""
    return int(next(row["items"] for row in pooler.show("LISTS") if row["list"] == "login_clients"))


@pytest.mark.setting("tcp_defer_accept")
def test_the_kernel_keeps_silent_connections_only_if_deferred(new_pooler):
    pooler = new_pooler({"tcp_defer_accept": 1})
    silent = pooler.raw()
    stays(lambda: accepted(pooler) == 0, 0.3)
    # Open listeners follow the change.
    pooler.command("SET tcp_defer_accept = 0")
    other = pooler.raw()
    wait_until(lambda: accepted(pooler) >= 1, what="the connection to be accepted at once")
    for client in (silent, other):
        assert client.login().value("SELECT 1") == "1"


# The process


@pytest.mark.setting("job_name")
def test_the_service_name_is_reported_and_cannot_change(new_pooler):
    pooler = new_pooler({"job_name": "main pooler"})
    assert pooler.setting("job_name") == "main pooler"
    pooler.settings["job_name"] = "another"
    pooler.reload()
    assert pooler.setting("job_name") == "main pooler"


def test_the_other_service_name_is_unknown_here(new_pooler):
    pooler = new_pooler()
    pooler.settings["service_name"] = "x"
    pooler.write_config()
    with pytest.raises(ServerError):
        pooler.command("RELOAD")
    assert pooler.lines("unknown parameter: pgbouncer/service_name")


# Keys


@pytest.mark.setting("databases.query_wait_timeout", "users.query_wait_timeout")
@pytest.mark.parametrize(
    "general, database, user, ends",
    [
        (60, "300ms", None, True),
        (60, None, "300ms", True),
        (60, 60, "300ms", True),
        (0.3, 0, None, False),
        (0.3, None, 0, False),
        (0.3, "300ms", 0, False),
        (0.3, -1, -1, True),
    ],
)
def test_query_wait_timeout_of_user_beats_database_beats_global(
    new_pooler, general, database, user, ends
):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "query_wait_timeout": general},
        databases={"main": {} if database is None else {"query_wait_timeout": database}},
        users={} if user is None else {"app": {"query_wait_timeout": user}},
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    if ends:
        assert waiter.fatal(5).text == "query_wait_timeout"
    else:
        assert waiter.silent(1)
        holder.query("COMMIT")
        assert waiter.checked().value == "1"


@pytest.mark.setting("databases.reserve_pool")
@pytest.mark.parametrize(
    "entry",
    ["reserve_pool=1", "reserve_pool_size=0 reserve_pool=1", "reserve_pool=0 reserve_pool_size=1"],
)
def test_reserve_pool_is_the_older_name(new_pooler, cluster, entry):
    target = f"host={cluster.host} port={cluster.port} dbname=main "
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "reserve_pool_timeout": 0.1},
        databases={"main": target + entry},
    )
    for _ in range(3):
        pooler.client().send(wire.query("BEGIN"))
    pooler.wait_pool(sv_active=2)
    stays(lambda: pooler.pool()["sv_active"] == 2, 0.5)


@pytest.mark.setting("databases.port", "databases.dbname")
def test_port_and_name_lead_to_the_server(new_pooler, new_server):
    servers = [new_server(), new_server()]
    pooler = new_pooler(
        databases={
            "first": servers[0].target(dbname="one"),
            "second": servers[1].target(),
        }
    )
    pooler.client(database="first").query("SELECT 1")
    pooler.client(database="second").query("SELECT 1")
    assert [server.connections[0].startup["database"] for server in servers] == ["one", "second"]


@pytest.mark.setting("databases.host", "databases.port")
def test_the_port_is_part_of_the_name_of_a_unix_socket(new_pooler, cluster):
    pooler = new_pooler(
        databases={"main": f"host={cluster.socket_folder} port={cluster.port}"}
    )
    assert pooler.client().value("SELECT inet_server_addr() IS NULL") == "t"
