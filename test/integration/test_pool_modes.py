# SPDX-License-Identifier: ISC
"""Pools: when servers are assigned, released, reset, checked and renewed, and how many there are."""

import time

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import stays, wait_until
from support.servers.cluster import PASSWORDS


def pid(client):
    """The backend behind a client's next query."""
    return client.value("SELECT pg_backend_pid()")


def pids(pooler):
    """The pids of all servers."""
    return [row["remote_pid"] for row in pooler.servers()]


def queries_seen(connection):
    """The simple queries that a scripted server received, in order."""
    return [body[:-1].decode() for kind, body in connection.received if kind == "Q"]


# Session mode


@pytest.mark.setting("pool_mode")
def test_a_session_keeps_its_server_until_it_ends(session_pooler):
    first, second = session_pooler.client(), session_pooler.client()
    one = pid(first)
    assert pid(first) == one
    assert pid(second) != one
    session_pooler.wait_pool(sv_active=2, sv_idle=0)
    first.leave()
    session_pooler.wait_pool(sv_active=1, sv_idle=1)
    assert pid(session_pooler.client()) == one


def test_a_session_without_a_query_takes_no_server(session_pooler):
    session_pooler.client()
    session_pooler.wait_pool(cl_active=1, sv_idle=1, sv_active=0)


def test_a_server_is_reset_between_sessions(session_pooler):
    client = session_pooler.client()
    one = pid(client)
    client.query("SET work_mem = '1234kB'")
    client.query("CREATE TEMP TABLE left_behind (a int)")
    client.leave()
    session_pooler.wait_pool(sv_idle=1)
    heir = session_pooler.client()
    assert pid(heir) == one
    assert heir.value("SHOW work_mem") != "1234kB"
    with pytest.raises(ServerError, match="does not exist"):
        heir.query("SELECT * FROM left_behind")


@pytest.mark.setting("server_reset_query", "server_reset_query_always")
@pytest.mark.parametrize(
    "mode, settings, resets",
    [
        ("session", {}, ["DISCARD ALL"]),
        ("session", {"server_reset_query": "DISCARD PLANS; SELECT 1"}, ["DISCARD PLANS; SELECT 1"]),
        ("session", {"server_reset_query": ""}, []),
        ("transaction", {}, []),
        ("transaction", {"server_reset_query_always": 1}, ["DISCARD ALL"]),
        ("statement", {}, []),
        ("statement", {"server_reset_query_always": 1}, ["DISCARD ALL"]),
    ],
)
def test_the_reset_query_is_sent_where_the_mode_asks_for_it(
    new_pooler, new_server, mode, settings, resets
):
    server = new_server()
    pooler = new_pooler({"pool_mode": mode, **settings}, databases={"main": server.target()})
    client = pooler.client()
    client.query("one")
    client.leave()
    pooler.wait_pool(sv_idle=1, cl_active=0)
    client = pooler.client()
    client.query("two")
    client.leave()
    pooler.wait_pool(sv_idle=1, cl_active=0)
    assert server.count == 1
    assert queries_seen(server.connections[0]) == ["one", *resets, "two", *resets]


def test_an_error_in_the_reset_query_is_ignored(new_pooler):
    pooler = new_pooler({"server_reset_query": "SELECT no_such_thing"})
    client = pooler.client()
    one = pid(client)
    client.leave()
    pooler.wait_pool(sv_idle=1)
    assert pid(pooler.client()) == one


def test_a_reset_query_that_leaves_a_transaction_open_ends_the_server(new_pooler):
    pooler = new_pooler({"server_reset_query": "BEGIN", "default_pool_size": 1})
    client = pooler.client()
    one = pid(client)
    client.leave()
    wait_until(lambda: one not in pids(pooler))
    client = pooler.client()
    assert pid(client) != one
    assert client.status == "I"


def test_a_server_in_reset_is_shown_as_tested(new_pooler):
    pooler = new_pooler({"server_reset_query": "SELECT pg_sleep(0.5)", "default_pool_size": 1})
    client = pooler.client()
    one = pid(client)
    client.leave()
    pooler.wait_pool(sv_tested=1)
    waiter = pooler.client()
    assert pid(waiter) == one


def test_a_session_that_ends_in_a_transaction_loses_its_server(session_pooler, cluster):
    client = session_pooler.client()
    one = pid(client)
    client.query("CREATE TEMP TABLE leftover ()")
    client.query("BEGIN")
    client.leave()
    wait_until(lambda: cluster.backends(pid=int(one), state="idle"))
    client = session_pooler.client()
    assert pid(client) == one
    assert client.value("SELECT to_regclass('leftover')") is None


# Transaction mode


@pytest.mark.setting("pool_mode")
def test_a_transaction_holds_its_server_and_nothing_else_does(pooler):
    first, second = pooler.client(), pooler.client()
    one = pid(first)
    assert pid(second) == one
    first.query("BEGIN")
    assert pid(first) == one
    two = pid(second)
    assert two != one
    first.query("COMMIT")
    pooler.wait_pool(sv_active=0, sv_idle=2)


def test_a_failed_transaction_holds_its_server_until_it_is_ended(pooler):
    client = pooler.client()
    client.query("BEGIN")
    with pytest.raises(ServerError):
        client.query("SELECT 1/0")
    assert client.status == "E"
    pooler.wait_pool(sv_active=1, sv_idle=0)
    client.query("ROLLBACK")
    pooler.wait_pool(sv_active=0, sv_idle=1)


def test_a_pipeline_keeps_its_server_between_its_syncs(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    client = pooler.client()
    batch = wire.extended("SELECT pg_backend_pid(), pg_sleep(0.05)") + wire.sync()
    client.send(batch * 5)
    seen = {client.checked().value for _ in range(5)}
    assert len(seen) == 1
    pooler.wait_pool(sv_idle=1, sv_active=0)


def test_a_batch_without_its_sync_keeps_its_server(pooler):
    client = pooler.client()
    client.send(wire.extended("SELECT 1"), wire.flush())
    client.read_until("C")
    pooler.wait_pool(sv_active=1)
    client.send(wire.sync())
    assert client.read().type == "Z"
    pooler.wait_pool(sv_active=0, sv_idle=1)


def test_a_notification_does_not_take_the_server_from_the_pool(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    client = pooler.client()
    one = pid(client)
    client.query("LISTEN news")
    pooler.cluster.ask("main", "NOTIFY news")
    stays(lambda: pooler.pool()["sv_idle"] == 1, 0.5)
    assert pid(client) == one


@pytest.mark.setting("databases.pool_mode", "users.pool_mode")
def test_the_mode_of_user_beats_database_beats_global(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={"main": {}, "sessions": {"dbname": "main", "pool_mode": "session"}},
        users={"alice": {"pool_mode": "session"}, "bob": {"pool_mode": "transaction"}},
    )
    clients = {}
    for user, database in (
        ("app", "main"), ("alice", "main"), ("app", "sessions"), ("bob", "sessions")
    ):
        clients[user, database] = pooler.client(user, database)
        clients[user, database].query("SELECT 1")
    modes = {
        (row["user"], row["database"]): (row["pool_mode"], row["sv_active"])
        for row in pooler.show("POOLS")
        if row["database"] != "pgbouncer"
    }
    assert modes == {
        ("app", "main"): ("transaction", "0"),
        ("alice", "main"): ("session", "1"),
        ("app", "sessions"): ("session", "1"),
        ("bob", "sessions"): ("transaction", "0"),
    }


def test_the_mode_of_the_forced_user_counts_not_the_clients(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={"main": {"user": "bob"}},
        users={"app": {"pool_mode": "session"}, "bob": {"pool_mode": "transaction"}},
    )
    pooler.client("app").query("SELECT 1")
    pooler.wait_pool(user="bob", sv_idle=1, sv_active=0)


def test_a_changed_mode_acts_at_the_next_release(session_pooler):
    client = session_pooler.client()
    client.query("SELECT 1")
    session_pooler.wait_pool(sv_active=1)
    session_pooler.command("SET pool_mode = transaction")
    client.query("SELECT 1")
    # What the client has left in its session is not known.
    session_pooler.wait_pool(sv_active=0, sv_idle=0)
    client.query("SELECT 1")
    session_pooler.wait_pool(sv_active=0, sv_idle=1)
    session_pooler.command("SET pool_mode = session")
    client.query("SELECT 1")
    session_pooler.wait_pool(sv_active=1, sv_idle=0)


# Statement mode


@pytest.mark.setting("pool_mode")
def test_statement_mode_refuses_transaction_blocks(new_pooler):
    pooler = new_pooler({"pool_mode": "statement"})
    other = pooler.client()
    client = pooler.client()
    one = pid(client)
    text = "transaction blocks not allowed in statement pooling mode"
    client.send(wire.query("BEGIN"))
    messages = client.read_all()
    assert [message.type for message in messages][-1] == "E"
    assert "Z" not in [message.type for message in messages]
    assert ServerError(messages[-1].body).is_("FATAL", "08P01", text)
    wait_until(lambda: one not in pids(pooler))
    assert other.value("SELECT 1") == "1"
    assert len(pooler.wait_log("closing because: " + text, 2)) == 2


BLOCKS = {
    "a batch": wire.extended("BEGIN") + wire.sync(),
    "a batch that goes on": wire.extended("BEGIN") + wire.extended("INSERT INTO kept VALUES (1)") + wire.sync(),
    "several statements": wire.query("SELECT 1; BEGIN; INSERT INTO kept VALUES (2)"),
    "a block that has failed": wire.query("BEGIN; SELECT 1/0"),
    "a pipeline": wire.query("BEGIN") + wire.query("INSERT INTO kept VALUES (3)") + wire.query("SELECT 1"),
    "a pipeline of batches": b"".join(
        wire.extended(sql) + wire.sync() for sql in ("BEGIN", "INSERT INTO kept VALUES (4)", "SELECT 1")
    ),
    "a copy in a block": wire.query("BEGIN; COPY kept FROM STDIN") + wire.copy_data(b"5\n") + wire.copy_done(),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_statement_mode_refuses_blocks_however_they_begin(new_pooler, cluster, name):
    cluster.ask("main", "CREATE TABLE kept (number int); GRANT ALL ON kept TO app")
    try:
        pooler = new_pooler({"pool_mode": "statement", "default_pool_size": 1})
        other = pooler.client()
        error = pooler.client().send(BLOCKS[name]).fatal()
        assert error.is_("FATAL", "08P01", "transaction blocks not allowed in statement pooling mode")
        assert other.value("SELECT count(*) FROM kept") == "0"
        # Nor does the block begin later, on a server of another client.
        pooler.client().query("COMMIT")
        assert other.value("SELECT count(*) FROM kept") == "0"
    finally:
        cluster.ask("main", "DROP TABLE kept")


def test_statement_mode_takes_a_whole_transaction_in_one_query(new_pooler):
    pooler = new_pooler({"pool_mode": "statement"})
    client = pooler.client()
    result = client.query("BEGIN; SELECT 1; COMMIT")
    assert (result.tags, result.status) == (["BEGIN", "SELECT 1", "COMMIT"], "I")
    assert client.value("SELECT 2") == "2"


# Checks


def test_a_server_just_used_is_not_checked(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    for _ in range(3):
        client.query("q")
    assert queries_seen(server.connections[0]) == ["q"] * 3


@pytest.mark.setting("server_check_delay", "server_check_query")
@pytest.mark.parametrize(
    "setting, sent", [("<empty>", [""]), ("SELECT 'alive'", ["SELECT 'alive'"]), ("", [])]
)
def test_without_a_delay_every_reuse_is_checked(new_pooler, new_server, setting, sent):
    server = new_server()
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_check_delay": 0, "server_check_query": setting},
        databases={"main": server.target()},
    )
    client = pooler.client()
    client.query("one")
    client.query("two")
    # The first use of a new server needs no check.
    assert queries_seen(server.connections[0]) == ["one", *sent, "two"]
    assert server.count == 1


def test_an_idle_server_is_checked_after_the_delay(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_check_delay": 0.3},
        databases={"main": server.target()},
    )
    client = pooler.client()
    client.query("one")
    pooler.wait_pool(sv_used=1, sv_idle=0)
    client.query("two")
    assert queries_seen(server.connections[0]) == ["one", "", "two"]


def test_a_server_that_closes_in_its_check_is_replaced_without_an_error(new_pooler, new_server):
    def script(connection):
        connection.login()
        while True:
            sql = connection.next_query()
            if sql == "":
                connection.reset()
                return
            connection.send(wire.one_row(sql))

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_check_delay": 0},
        databases={"main": server.target()},
    )
    client = pooler.client()
    assert client.value("one") == "one"
    assert client.value("two") == "two"
    assert server.count == 2


def test_a_check_answered_by_an_error_counts_as_alive(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_check_delay": 0, "server_check_query": "SELECT nope"}
    )
    client = pooler.client()
    assert pid(client) == pid(client)


def test_set_of_the_check_query_acts_at_once(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_check_delay": 0, "server_check_query": "SELECT 1"},
        databases={"main": server.target()},
    )
    client = pooler.client()
    client.query("one")
    pooler.command("SET server_check_query = '<empty>'")
    client.query("two")
    assert queries_seen(server.connections[0]) == ["one", "", "two"]


# Age


@pytest.mark.setting("server_lifetime")
def test_a_server_is_renewed_after_its_lifetime(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "server_lifetime": 1, "default_pool_size": 1})
    client = pooler.client()
    one = pid(client)
    pooler.wait_log(r"closing because: server lifetime over \(age=[01]s\)")
    assert pid(client) != one


def test_a_server_in_a_transaction_outlives_its_lifetime(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "server_lifetime": 0.5})
    client = pooler.client()
    client.query("BEGIN")
    one = pid(client)
    client.query("SELECT pg_sleep(1.2)")
    assert pid(client) == one
    client.query("COMMIT")
    pooler.wait_log("closing because: server lifetime over")
    assert pid(client) != one


def test_lifetime_zero_uses_a_server_once(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "server_lifetime": 0})
    client = pooler.client()
    seen = [pid(client) for _ in range(4)]
    assert len(set(seen)) == 4
    assert len(pooler.wait_log("closing because: server lifetime over", 4)) >= 4


def test_closes_for_age_are_spread_out(new_pooler):
    """At most one per lifetime / pool_size: three servers of one age need two such steps."""
    pooler = new_pooler({"pool_mode": "transaction", "server_lifetime": 2, "default_pool_size": 4})
    clients = [pooler.client() for _ in range(3)]
    for client in clients:
        client.query("BEGIN")
    for client in clients:
        client.query("COMMIT")
    pooler.wait_pool(sv_idle=3)
    when = []

    def closed(count):
        wait_until(lambda: len(pids(pooler)) <= 3 - count, 10)
        when.append(time.monotonic())

    for count in (1, 2, 3):
        closed(count)
    assert when[1] - when[0] > 0.3 and when[2] - when[1] > 0.3


@pytest.mark.setting("databases.server_lifetime")
def test_the_databases_lifetime_wins(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_lifetime": 3600},
        databases={"main": {"server_lifetime": 1}},
    )
    pooler.client().query("SELECT 1")
    pooler.wait_log("closing because: server lifetime over")


@pytest.mark.setting("server_idle_timeout")
def test_an_idle_server_is_closed_after_its_timeout(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "server_idle_timeout": 0.4})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.wait_log("closing because: server idle timeout")
    cluster.wait_quiet()
    assert client.value("SELECT 1") == "1"


def test_the_idle_timeout_leaves_the_minimum(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_idle_timeout": 0.4, "min_pool_size": 1}
    )
    clients = [pooler.client() for _ in range(3)]
    for client in clients:
        client.query("BEGIN")
    for client in clients:
        client.query("COMMIT")
    pooler.wait_pool(sv_idle=3)
    pooler.wait_pool(sv_idle=1)
    stays(lambda: pooler.pool()["sv_idle"] == 1, 1)


# Order


@pytest.mark.setting("server_round_robin")
@pytest.mark.parametrize("round_robin", [0, 1])
def test_the_order_of_use(new_pooler, round_robin):
    pooler = new_pooler({"pool_mode": "transaction", "server_round_robin": round_robin})
    clients = [pooler.client() for _ in range(3)]
    for client in clients:
        client.query("BEGIN")
    servers = [pid(client) for client in clients]
    for client in clients:
        client.query("COMMIT")
    seen = [pid(clients[0]) for _ in range(6)]
    if round_robin:
        assert seen == servers * 2
    else:
        assert seen == [servers[2]] * 6


def test_waiting_clients_are_served_in_their_order(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "max_client_conn": 50})
    holder = pooler.client()
    holder.query("BEGIN")
    holder.query("CREATE TABLE IF NOT EXISTS turns (at serial, client int)")
    holder.query("TRUNCATE turns RESTART IDENTITY")
    waiters = [pooler.client() for _ in range(12)]
    for number, client in enumerate(waiters):
        client.send(wire.query(f"INSERT INTO turns (client) VALUES ({number})"))
        pooler.wait_pool(cl_waiting=number + 1)
    holder.query("COMMIT")
    for client in waiters:
        client.checked()
    rows = pooler.cluster.ask("main", "SELECT client FROM turns ORDER BY at")
    assert [row["client"] for row in rows] == list(range(12))


def test_a_freed_server_goes_to_the_client_that_waited_longest(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("COMMIT")
    holder.send(wire.query("BEGIN"))
    assert waiter.checked().value == "waited"
    assert holder.checked().tag == "BEGIN"


def test_pipelined_transactions_keep_the_server(new_pooler):
    """A COMMIT and the next BEGIN in one write: an answer is outstanding at the first
    ReadyForQuery."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 'waited'"))
    pooler.wait_pool(cl_waiting=1)
    holder.send(wire.query("COMMIT"), wire.query("BEGIN"))
    assert holder.checked().tag == "COMMIT"
    assert holder.checked().tag == "BEGIN"
    assert waiter.silent(0.2)
    holder.query("COMMIT")
    assert waiter.checked().value == "waited"


# How many


@pytest.mark.setting("default_pool_size")
def test_a_pool_never_exceeds_its_size(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 3})
    clients = [pooler.client() for _ in range(30)]
    for client in clients:
        client.send(wire.query("SELECT pg_sleep(0.02)"))
    seen = set()
    for client in clients:
        client.checked()
        seen.add(len(cluster.backends()))
    assert max(seen) <= 3
    assert len(pids(pooler)) <= 3


def test_one_connection_attempt_per_pool_at_a_time(new_pooler, new_server):
    def script(connection):
        connection.accept_startup()
        connection.server.gate.wait(10)
        connection.welcome()
        connection.serve()

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    clients = [pooler.raw().send_startup() for _ in range(6)]
    pooler.wait_pool(cl_waiting=6, sv_login=1)
    server.wait_count(1)
    stays(lambda: server.count == 1, 0.5)
    server.gate.set()
    for client in clients:
        client.finish_login("app")


@pytest.mark.setting("databases.pool_size", "users.pool_size")
@pytest.mark.parametrize(
    "default, database, user, size",
    [(2, None, None, 2), (2, 3, None, 3), (2, 3, 1, 1), (1, 0, None, 6), (1, 2, 0, 6)],
)
def test_pool_size_of_user_beats_database_beats_default(new_pooler, default, database, user, size):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": default},
        databases={"main": {} if database is None else {"pool_size": database}},
        users={} if user is None else {"app": {"pool_size": user}},
    )
    clients = [pooler.client() for _ in range(6)]
    for client in clients:
        client.send(wire.query("BEGIN"))
    pooler.wait_pool(sv_active=size, cl_waiting=6 - size)
    stays(lambda: pooler.pool()["sv_active"] == size, 0.2)


def test_a_smaller_pool_size_shrinks_the_pool(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 4})
    clients = [pooler.client() for _ in range(4)]
    for client in clients:
        client.query("BEGIN")
    pooler.command("SET default_pool_size = 2")
    # Servers in use stay until they are free.
    stays(lambda: pooler.pool()["sv_active"] == 4, 0.5)
    for client in clients:
        client.query("COMMIT")
    pooler.wait_pool(sv_idle=2, sv_active=0)
    assert len(pooler.lines("closing because: too many servers in the pool")) == 2


@pytest.mark.setting("min_pool_size")
def test_min_pool_size_opens_servers_once_a_client_has_connected(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "min_pool_size": 3})
    assert pooler.pool() is None
    client = pooler.client()
    pooler.wait_pool(sv_idle=3)
    stays(lambda: pooler.pool()["sv_idle"] == 3, 0.5)
    old = pids(pooler)
    for server in old:
        pooler.cluster.terminate(int(server))
    wait_until(lambda: len(set(pids(pooler)) - set(old)) == 3)
    assert client.value("SELECT 1") == "1"


def test_min_pool_size_is_kept_without_clients_if_the_secret_is_known(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "min_pool_size": 3}, auth={"app": "secret"})
    client = pooler.client()
    pooler.wait_pool(sv_idle=3)
    client.close()
    pooler.wait_pool(cl_active=0)
    old = pids(pooler)
    for server in old:
        pooler.cluster.terminate(int(server))
    wait_until(lambda: len(set(pids(pooler)) - set(old)) == 3)


def test_min_pool_size_with_a_forced_user_needs_no_client(new_pooler):
    pooler = new_pooler(
        databases={
            "main": {"user": "app", "min_pool_size": 2},
            "none": {"dbname": "main", "user": "app"},
            "free": {"dbname": "main", "user": "app", "min_pool_size": 2, "pool_size": 0},
        }
    )
    pooler.wait_pool(sv_idle=2)
    pooler.wait_pool("free", sv_idle=2)
    assert pooler.pool("none") is None


@pytest.mark.setting("databases.min_pool_size")
def test_the_databases_minimum_wins(new_pooler):
    pooler = new_pooler({"min_pool_size": 1}, databases={"main": {"min_pool_size": 0}})
    pooler.client()
    pooler.wait_pool(sv_idle=1)
    stays(lambda: len(pids(pooler)) == 1, 0.6)


@pytest.mark.setting("reserve_pool_size", "reserve_pool_timeout")
def test_the_reserve_is_used_after_its_timeout(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "reserve_pool_size": 1,
            "reserve_pool_timeout": 0.5,
        }
    )
    holder, second, third = (pooler.client() for _ in range(3))
    holder.query("BEGIN")
    second.send(wire.query("BEGIN"))
    began = time.monotonic()
    assert second.checked().tag == "BEGIN"
    assert time.monotonic() - began > 0.45
    assert len(pooler.lines("WARNING .* taking connection from reserve_pool$")) == 1
    third.send(wire.query("SELECT 1"))
    assert third.silent(1)
    assert len(pids(pooler)) == 2
    holder.query("COMMIT")
    assert third.checked().value == "1"
    assert len(pooler.lines("taking connection from reserve_pool")) == 1


@pytest.mark.parametrize(
    "settings", [{"reserve_pool_size": 1, "reserve_pool_timeout": 0}, {"reserve_pool_size": 0}]
)
def test_without_timeout_or_size_there_is_no_reserve(new_pooler, settings):
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 1, "reserve_pool_timeout": 0.1, **settings}
    )
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    assert waiter.silent(1)


@pytest.mark.setting("databases.reserve_pool_size", "users.reserve_pool_size")
@pytest.mark.parametrize(
    "default, database, user, reserve",
    [(1, None, None, 1), (0, 2, None, 2), (2, 1, None, 1), (2, 2, 0, 0), (0, 0, 1, 1)],
)
def test_reserve_of_user_beats_database_beats_default(new_pooler, default, database, user, reserve):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "reserve_pool_size": default,
            "reserve_pool_timeout": 0.1,
        },
        databases={"main": {} if database is None else {"reserve_pool_size": database}},
        users={} if user is None else {"app": {"reserve_pool_size": user}},
    )
    clients = [pooler.client() for _ in range(5)]
    for client in clients:
        client.send(wire.query("BEGIN"))
    pooler.wait_pool(sv_active=1 + reserve)
    stays(lambda: pooler.pool()["sv_active"] == 1 + reserve, 0.6)


@pytest.mark.setting("max_db_connections")
def test_max_db_connections_evicts_idle_servers_of_other_pools(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_db_connections": 1})
    first, second = pooler.client("alice"), pooler.client("bob")
    one = pid(first)
    assert pid(second) != one
    assert pooler.wait_log("closing because: evicted")
    assert len(pids(pooler)) == 1
    assert pid(first) != one


def test_max_db_connections_waits_for_busy_servers(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_db_connections": 1})
    first, second = pooler.client("alice"), pooler.client("bob")
    first.query("BEGIN")
    second.send(wire.query("SELECT 2"))
    assert second.silent(0.5)
    first.query("COMMIT")
    assert second.checked().value == "2"
    assert len(pids(pooler)) == 1


def test_the_server_used_least_recently_is_evicted(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "max_db_connections": 3})
    clients = {name: pooler.client(name) for name in ("alice", "bob", "carol", "app")}
    servers = {}
    for name in ("bob", "alice", "carol"):
        servers[name] = pid(clients[name])
    # Used once more: now bob's server is no longer the oldest.
    assert pid(clients["bob"]) == servers["bob"]
    clients["app"].query("SELECT 1")
    assert servers["alice"] not in pids(pooler)
    assert {servers["bob"], servers["carol"]} <= set(pids(pooler))


@pytest.mark.setting("databases.max_db_connections")
def test_the_databases_own_connection_limit_wins(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_db_connections": 1},
        databases={"main": {"max_db_connections": 2}, "other": {}},
    )
    for user in ("alice", "bob"):
        pooler.client(user).query("BEGIN")
    waiter = pooler.raw().send_startup("carol")
    assert waiter.silent(0.4)
    # Another database has a limit of its own.
    assert pooler.client("alice", "other").value("SELECT 1") == "1"


@pytest.mark.setting("max_user_connections")
def test_max_user_connections_counts_over_all_databases(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_user_connections": 1}, databases={"main": {}, "other": {}}
    )
    first, second = pooler.client("alice"), pooler.client("alice", "other")
    first.query("SELECT 1")
    assert second.value("SELECT 2") == "2"
    assert pooler.wait_log("closing because: evicted")
    second.query("BEGIN")
    first.send(wire.query("SELECT 1"))
    assert first.silent(0.4)
    assert pooler.client("bob").value("SELECT 3") == "3"
    second.query("COMMIT")
    assert first.checked().value == "1"


@pytest.mark.setting("users.max_user_connections")
def test_the_users_own_connection_limit_wins(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "max_user_connections": 1},
        users={"alice": {"max_user_connections": 2}},
    )
    for _ in range(2):
        pooler.client("alice").query("BEGIN")
    waiter = pooler.client("alice")
    waiter.send(wire.query("SELECT 1"))
    assert waiter.silent(0.4)


# Clients


@pytest.mark.setting("max_client_conn")
def test_max_client_conn_refuses_further_clients(new_pooler):
    pooler = new_pooler({"max_client_conn": 3})
    clients = [pooler.client() for _ in range(3)]
    text = "no more connections allowed (max_client_conn)"
    assert pooler.refused().is_("FATAL", "53300", text)
    # Before authentication and whatever the database.
    assert pooler.refused("ghost", "nowhere").text == text
    clients.pop().leave()
    assert pooler.client().value("SELECT 1") == "1"


DB_LIMIT = "client connections exceeded (max_db_client_connections)"
USER_LIMIT = "client connections exceeded (max_user_client_connections)"


@pytest.mark.setting("max_db_client_connections", "databases.max_db_client_connections")
def test_max_db_client_connections(new_pooler):
    pooler = new_pooler(
        {"max_db_client_connections": 1},
        databases={"main": {}, "two": {"dbname": "main", "max_db_client_connections": 2}},
    )
    client = pooler.client()
    assert pooler.refused("alice").is_("FATAL", "53300", DB_LIMIT)
    pooler.client(database="two"), pooler.client(database="two")
    assert pooler.refused("alice", "two").text == DB_LIMIT
    client.leave()
    assert pooler.client("alice").value("SELECT 1") == "1"


@pytest.mark.setting("max_user_client_connections", "users.max_user_client_connections")
def test_max_user_client_connections(new_pooler):
    pooler = new_pooler(
        {"max_user_client_connections": 1},
        databases={"main": {}, "other": {}},
        users={"alice": {"max_user_client_connections": 2}},
    )
    client = pooler.client()
    assert pooler.refused("app", "other").is_("FATAL", "53300", USER_LIMIT)
    pooler.client("alice"), pooler.client("alice", "other")
    assert pooler.refused("alice").text == USER_LIMIT
    client.leave()
    assert pooler.client("app", "other").value("SELECT 1") == "1"


def test_client_limits_are_checked_before_the_password_and_released(new_pooler):
    pooler = new_pooler(
        {"auth_type": "md5", "max_db_client_connections": 1, "max_user_client_connections": 1},
        auth={"app": "secret", "admin": "a"},
    )
    for _ in range(3):
        assert pooler.refused(password="wrong").text == "password authentication failed"
        assert pooler.refused("ghost", password="x").text == "password authentication failed"
    client = pooler.client(password="secret")
    # Both limits are exceeded: the first one checked gives the text.
    assert pooler.refused().text == DB_LIMIT
    client.leave()
    assert pooler.client(password="secret").value("SELECT 1") == "1"


def test_the_first_limit_that_is_exceeded_is_reported(new_pooler):
    limits = {"max_client_conn": 2, "max_db_client_connections": 1, "max_user_client_connections": 1}
    pooler = new_pooler(limits)
    pooler.client()
    assert pooler.refused().text == DB_LIMIT
    pooler.console()
    assert pooler.refused().text == "no more connections allowed (max_client_conn)"


def test_a_configured_user_counts_while_it_logs_in(new_pooler):
    pooler = new_pooler(
        {"auth_type": "md5"}, users={"ghost": {"max_user_client_connections": 1}}, auth={"admin": "a"}
    )
    pooler.use_console("admin", "a")
    half = pooler.raw().send_startup("ghost")
    half.read()
    assert pooler.show("USERS", name="ghost")[0]["current_client_connections"] == "1"
    text = "client connections exceeded (max_user_client_connections)"
    assert pooler.refused("ghost").text == text
    half.send(wire.password("md5" + "0" * 32))
    assert half.fatal().text == "password authentication failed"
    assert pooler.show("USERS", name="ghost")[0]["current_client_connections"] == "0"
    assert pooler.raw().send_startup("ghost").read().type == "R"


def test_administrators_are_counted_but_not_refused_on_the_console(new_pooler):
    pooler = new_pooler({"max_db_client_connections": 1, "max_user_client_connections": 1})
    for _ in range(3):
        pooler.console()
    (row,) = pooler.show("DATABASES", name="pgbouncer")
    assert row["current_client_connections"] == "4"
    (row,) = pooler.show("USERS", name="admin")
    assert row["current_client_connections"] == "4"
    assert pooler.refused("stats", "pgbouncer").text == DB_LIMIT


def test_a_client_counts_from_its_startup(new_pooler):
    pooler = new_pooler(
        {"auth_type": "md5", "max_db_client_connections": 1}, auth={"app": "s", "admin": "a"}
    )
    half = pooler.raw().send_startup()
    assert half.read().type == "R"
    assert pooler.refused().text == DB_LIMIT
    half.close()
    client = wait_until(lambda: try_login(pooler, "s"))
    assert client.value("SELECT 1") == "1"


def try_login(pooler, password):
    try:
        return pooler.client(password=password)
    except ServerError:
        return None


# Databases


@pytest.mark.setting("databases.connect_query")
def test_connect_query_runs_before_the_first_use(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={"main": {"connect_query": "SET work_mem = '4321kB'; SELECT 1"}},
    )
    assert pooler.client().value("SHOW work_mem") == "4321kB"


def test_an_error_in_connect_query_is_logged_and_ignored(new_pooler):
    pooler = new_pooler(databases={"main": {"connect_query": "SELECT broken"}})
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.lines('S: error while executing exec_on_query: ERROR: column "broken"')


@pytest.mark.setting("databases.user")
def test_a_forced_user_has_one_pool_for_all_clients(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": {"user": "carol"}})
    clients = [pooler.client(name) for name in ("alice", "bob", "app")]
    assert {pid(client) for client in clients} == {pid(clients[0])}
    rows = [row for row in pooler.show("POOLS") if row["database"] == "main"]
    assert [(row["user"], row["cl_active"]) for row in rows] == [("carol", "3")]
    assert clients[0].value("SELECT current_user") == "carol"


@pytest.mark.setting("databases.host")
def test_databases_over_unix_sockets(new_pooler, cluster):
    pooler = new_pooler(
        databases={
            "folder": {"host": cluster.socket_folder, "port": cluster.port, "dbname": "main"},
            "scram": {
                "host": cluster.socket_folder,
                "port": cluster.port,
                "dbname": "main",
                "user": "scram_login",
                "password": PASSWORDS["scram_login"],
            },
        }
    )
    assert pooler.client(database="folder").value("SELECT inet_client_addr()") is None
    assert pooler.client(database="scram").value("SELECT current_user") == "scram_login"


def test_a_database_without_a_host_needs_a_socket_folder(new_pooler):
    databases = {"main": "dbname=main", "other": {"dbname": "main"}}
    settings = {"unix_socket_dir": "", "query_wait_timeout": 0.5}
    pooler = new_pooler(settings, databases=databases)
    assert pooler.refused().text == "query_wait_timeout"
    assert pooler.lines("ERROR S-.* unix socket dir not configured: main")
    assert pooler.lines("S-.* closing because: cannot connect ")
    assert pooler.client(database="other").value("SELECT 1") == "1"


def test_an_idle_server_that_sent_something_is_closed_alone(new_pooler, new_server):
    server = new_server()
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    client.query("one")
    server.connections[0].send(wire.error("57P01", "good bye", "WARNING"))
    pooler.wait_log("S-.* closing because: SV_IDLE server got dirty ")
    server.wait_all_ended()
    assert client.silent(0.05)
    assert client.value("two") == "two"


@pytest.mark.parametrize("command", ["RECONNECT", "RELOAD"])
def test_a_login_with_outdated_settings_is_closed_at_once(new_pooler, new_server, command):
    gate = new_server(lambda connection: (connection.accept_startup(), connection.wait_disconnected()))
    pooler = new_pooler({"server_login_retry": 0}, databases={"main": gate.target()})
    client = pooler.raw().send_startup()
    pooler.wait_pool(sv_login=1)
    server = new_server()
    if command == "RELOAD":
        pooler.databases["main"] = server.target()
        pooler.reload()
    else:
        gate.script = server.script
        pooler.command("RECONNECT main")
    assert pooler.wait_log("S-.* closing because: connect string changed ")
    assert client.finish_login("app").value("SELECT 1")


def test_a_command_that_names_an_automatic_database_creates_it(new_pooler):
    pooler = new_pooler(databases={"*": {"dbname": "main"}})
    pooler.command("PAUSE fresh")
    (row,) = pooler.show("DATABASES", name="fresh")
    assert row["paused"] == "1"
    assert pooler.lines("registered new auto-database: fresh")
    waiting = pooler.raw().send_startup(database="fresh")
    pooler.wait_pool("fresh", cl_waiting=1)
    pooler.command("RESUME fresh")
    assert waiting.finish_login("app").value("SELECT 1") == "1"


def test_a_host_name_is_looked_up(new_pooler, cluster):
    pooler = new_pooler(databases={"main": {"host": "localhost", "port": cluster.port}})
    assert pooler.client().value("SELECT 1") == "1"
    (row,) = pooler.servers()
    assert row["addr"] == "127.0.0.1"


def test_the_star_entry_serves_names_that_are_not_listed(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={
            "main": {"pool_size": 3},
            "*": {"host": cluster.host, "port": cluster.port, "pool_size": 2},
        },
    )
    client = pooler.client(database="other")
    assert client.value("SELECT current_database()") == "other"
    assert len(pooler.lines("registered new auto-database: other$")) == 1
    (row,) = pooler.show("DATABASES", name="other")
    assert (row["pool_size"], row["database"]) == ("2", "other")
    assert not pooler.show("DATABASES", name="*")
    error = pooler.refused(database="missing_one")
    assert error.is_("FATAL", "3D000", 'database "missing_one" does not exist')


@pytest.mark.setting("autodb_idle_timeout")
def test_an_unused_automatic_database_is_removed_after_its_timeout(new_pooler, cluster):
    pooler = new_pooler(
        {"server_idle_timeout": 0.3, "autodb_idle_timeout": 0.5},
        databases={"*": {"host": cluster.host, "port": cluster.port}},
    )
    client = pooler.client()
    client.query("SELECT 1")
    assert pooler.show("DATABASES", name="main")
    client.leave()
    wait_until(lambda: not pooler.show("DATABASES", name="main"))
    text = "dropping database 'main' as it does not exist anymore or inactive auto-database"
    pooler.wait_log(text)
    wait_until(lambda: pooler.pool() is None)
    assert pooler.client().value("SELECT 1") == "1"


@pytest.mark.setting("pool_idle_timeout")
def test_an_empty_pool_is_removed_after_its_timeout(new_pooler):
    pooler = new_pooler({"server_idle_timeout": 0.3, "pool_idle_timeout": 0.5})
    client = pooler.client()
    client.query("SELECT 1")
    assert pooler.pool()
    client.leave()
    wait_until(lambda: pooler.pool() is None)
    text = r"cleaning up idle pool for user app on db main because: pool idle timeout \(age="
    pooler.wait_log(text)
    assert pooler.client().value("SELECT 1") == "1"


def test_a_pool_in_use_outlives_its_timeout(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_idle_timeout": 0.3, "pool_idle_timeout": 0.3}
    )
    client = pooler.client()
    client.query("SELECT 1")
    pooler.wait_pool(sv_idle=0)
    stays(lambda: pooler.pool() is not None, 1)
    assert client.value("SELECT 1") == "1"


# Fast close


@pytest.mark.setting("server_fast_close")
def test_fast_close_ends_sessions_between_transactions(new_pooler):
    pooler = new_pooler({"pool_mode": "session", "server_fast_close": 1})
    busy, quiet = pooler.client(), pooler.client()
    busy.query("BEGIN"), quiet.query("SELECT 1")
    pooler.command("RECONNECT")
    assert quiet.fatal().is_("FATAL", "57P01", "database configuration changed")
    assert busy.value("SELECT 1") == "1"
    busy.query("COMMIT")
    assert busy.fatal().text == "database configuration changed"


def test_without_fast_close_a_session_keeps_its_server(session_pooler):
    client = session_pooler.client()
    one = pid(client)
    session_pooler.command("RECONNECT")
    stays(lambda: one in pids(session_pooler), 0.6)
    assert pid(client) == one
    client.leave()
    session_pooler.wait_log("closing because: close_needed")
