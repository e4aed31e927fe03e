# SPDX-License-Identifier: ISC
"""LISTEN in transaction mode: one server of the pool listens for all its clients."""

import contextlib
import itertools
import struct
import threading

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import Closed
from support.process import free_port, wait_until

LOST = "the connection that listens for this client was lost: notifications may be missing"


def fields(body):
    """The channel and the payload of a NotificationResponse."""
    channel, payload, _ = body[4:].split(b"\0")
    return channel.decode(), payload.decode()


def pid(body):
    return struct.unpack_from("!i", body)[0]


def next_notification(client):
    """The next message, which is a notification."""
    found = client.read()
    assert found.type == "A", found
    return fields(found.body)


def notifications(client, count):
    return [next_notification(client) for _ in range(count)]


def listening(cluster, count=1):
    """Wait until so many backends have LISTEN or UNLISTEN as their last query; return their pids."""
    def found():
        rows = cluster.sql("SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %'"
                           " OR query LIKE 'UNLISTEN %'")
        return [row["pid"] for row in rows] if len(rows) == count else None
    return wait_until(found)


@pytest.fixture
def pool(new_pooler):
    """A pooler in transaction mode with a pool of one."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 1})


def notify(pool, channel, *payloads):
    with contextlib.closing(pool.client()) as client:
        for payload in payloads:
            client.query(f"NOTIFY {channel}, '{payload}'")


def test_a_listener_of_a_pool_of_one_gets_notifications_in_order(pool):
    client = pool.client()
    result = client.query("LISTEN c")
    assert (result.types, result.tag, result.status) == ("CZ", "LISTEN", "I")
    notify(pool, "c", *range(50))
    assert notifications(client, 50) == [("c", str(i)) for i in range(50)]
    assert client.silent()


@pytest.mark.parametrize("sql", ["LISTEN c", "UNLISTEN c", "UNLISTEN *"])
def test_the_unnamed_statement_ends_with_any_simple_query(pool, sql):
    client = pool.client()
    client.send(wire.parse("SELECT 1"), wire.sync())
    client.checked()
    client.query(sql)
    client.send(wire.bind(), wire.execute(), wire.sync())
    assert client.result().error.sqlstate == "26000"


def test_a_session_hears_its_own_notify_once(pool):
    client = pool.client()
    client.query("LISTEN c")
    for i in range(20):
        client.query(f"NOTIFY c, '{i}'")
        assert next_notification(client) == ("c", str(i))
    assert client.silent()


def test_many_clients_need_one_server(pool, cluster):
    clients = [pool.client() for _ in range(30)]
    for client in clients:
        client.query("LISTEN c")
    notify(pool, "c", "x")
    for client in clients:
        assert next_notification(client) == ("c", "x")
    assert len(cluster.backends(datname="main")) == 2
    assert len(pool.servers(state="active")) == 1


def test_a_client_gets_only_its_channels(pool):
    one, two = pool.client(), pool.client()
    one.query('LISTEN "Mixed"')
    two.query("LISTEN mixed")
    notify(pool, '"Mixed"', "1")
    notify(pool, "MIXED", "2")
    assert next_notification(one) == ("Mixed", "1")
    assert next_notification(two) == ("mixed", "2")
    assert one.silent() and two.silent(0.01)


@pytest.mark.parametrize("sql,name", [
    ("listen C", "c"),
    (" /* a */ LISTEN -- b\n c ;", "c"),
    ('LISTEN "a ""b"" c"', 'a "b" c'),
    ('LISTEN "select"', "select"),
    ("LISTEN " + "n" * 63, "n" * 63),
    ("LISTEN " + "n" * 70, "n" * 63),
    ('LISTEN "grün"', "grün"),
    ('LISTEN U&"gr\\00fcn"', "grün"),
])
def test_names_are_read_as_the_server_reads_them(pool, sql, name):
    client = pool.client()
    assert client.query(sql).error is None
    quoted = '"' + name.replace('"', '""') + '"'
    client.query(f"NOTIFY {quoted}, 'x'")
    assert next_notification(client) == (name, "x")
    client.query(f"UNLISTEN {quoted}")
    client.query(f"NOTIFY {quoted}, 'y'")
    client.query("SELECT 1")
    assert client.silent()


@pytest.mark.parametrize("sql,sqlstate", [("LISTEN", "42601"), ('LISTEN ""', "42601"),
                                          ("LISTEN a b", "42601"), ("LISTEN 'a'", "42601")])
def test_errors_of_the_server_are_passed_on(pool, sql, sqlstate):
    client = pool.client()
    client.send(wire.query(sql))
    result = client.result()
    assert result.error.sqlstate == sqlstate and result.status == "I"
    assert client.value("SELECT 1") == "1"


@pytest.mark.parametrize("end", ["UNLISTEN c", "UNLISTEN *", "DISCARD ALL",
                                 "SELECT 1; UNLISTEN *", "BEGIN; UNLISTEN c; COMMIT"])
def test_unlisten_ends_it(pool, end):
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    other.query("LISTEN c")
    for statement in [end] if end.startswith("SELECT") else end.split("; "):
        client.query(statement)
    notify(pool, "c", "x")
    assert next_notification(other) == ("c", "x")
    assert client.silent()


def test_the_last_unlisten_reaches_the_server(pool, cluster):
    client = pool.client()
    client.query("LISTEN c")
    listening(cluster)
    client.query("UNLISTEN c")
    wait_until(lambda: cluster.sql("SELECT 1 FROM pg_stat_activity WHERE query = 'UNLISTEN c'"))
    client.query("LISTEN c")
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")


def test_a_client_in_a_transaction_gets_notifications_at_its_end(pool, cluster):
    client = pool.client()
    client.query("LISTEN c")
    client.query("BEGIN")
    cluster.ask("main", "NOTIFY c, 'x'")
    cluster.ask("main", "NOTIFY c, 'y'")
    assert client.silent()
    assert client.query("SELECT 1").types == "TDCZ"
    client.send(wire.query("COMMIT"))
    assert [message.type for message in client.read_until("Z")] == ["C", "Z"]
    assert notifications(client, 2) == [("c", "x"), ("c", "y")]


def test_no_notification_comes_inside_an_answer(pool, cluster):
    client = pool.client()
    client.query("LISTEN c")
    client.send(wire.query("SELECT g, pg_sleep(0.0005), repeat('x', 200)"
                           " FROM generate_series(1, 1000) g"))
    assert client.read().type == "T"
    for i in range(20):
        cluster.ask("main", f"NOTIFY c, '{i}'")
    types = [message.type for message in client.read_until("Z")]
    assert types == ["D"] * 1000 + ["C", "Z"]
    assert notifications(client, 20) == [("c", str(i)) for i in range(20)]


# --- inside transactions, by the extended protocol, in functions

WAYS = ["extended", "transaction", "several", "function"]


def listen(client, way, channel="c"):
    """LISTEN in a way that needs a server of the client."""
    if way == "extended":
        client.extended(f"LISTEN {channel}")
    elif way == "transaction":
        for sql in ("BEGIN", f"LISTEN {channel}", "COMMIT"):
            client.query(sql)
    elif way == "several":
        client.query(f"SELECT 1; LISTEN {channel}")
    else:
        client.query(f"DO $$ BEGIN EXECUTE 'LISTEN {channel}'; END $$")


@pytest.mark.parametrize("way", WAYS)
def test_a_listen_in_any_way_is_handed_over(pool, cluster, way):
    client, other = pool.client(), pool.client()
    listen(client, way)
    cluster.ask("main", "NOTIFY c, 'x'")
    assert next_notification(client) == ("c", "x")
    other.query("SELECT 1")
    client.query("SELECT 1")
    assert pool.show("PINS") == []
    client.query("NOTIFY c, 'y'")
    other.query("NOTIFY c, 'z'")
    assert notifications(client, 2) == [("c", "y"), ("c", "z")]
    assert client.silent()
    assert other.query("SELECT * FROM pg_listening_channels()").rows == []


class Listener:
    """A client that keeps all notifications, in whichever answer they come."""

    def __init__(self, client):
        self.client = client
        self.found = {"c": [], "d": []}

    def read(self):
        message = self.client.read()
        if message.type == "A":
            channel, payload = fields(message.body)
            self.found[channel].append(int(payload))
        return message.type

    def query(self, sql):
        self.client.send(wire.query(sql))
        self._read_answer()

    def extended(self, sql):
        self.client.send(wire.extended(sql) + wire.sync())
        self._read_answer()

    def _read_answer(self):
        while self.read() != "Z":
            pass

    def read_up_to(self, last):
        while any(not each or each[-1] < last for each in self.found.values()):
            assert self.read() == "A"


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_lost_or_doubled_while_a_listen_is_handed_over(pool, cluster, way):
    """A steady stream of notifications: the client gets all from some number on, each once."""
    with cluster.connect("main", "app") as source:
        sent = 0

        def send(count):
            nonlocal sent
            for _ in range(count):
                source.execute(f"SELECT pg_notify('c', '{sent}'), pg_notify('d', '{sent}')")
                sent += 1

        for _ in range(8):
            listener = Listener(pool.client())
            send(5)
            first = sent
            listen(listener, way)
            send(40)
            listen(listener, way, "d")
            send(40)
            listener.query("SELECT 1")
            listener.read_up_to(sent - 1)
            assert listener.found == {"c": list(range(first, sent)),
                                      "d": list(range(first + 40, sent))}
            assert listener.client.silent(0.02)
            listener.client.leave()


def test_a_rolled_back_listen_is_none(pool):
    client = pool.client()
    for sql in ("BEGIN", "LISTEN c", "ROLLBACK"):
        client.query(sql)
    notify(pool, "c", "x")
    client.query("SELECT 1")
    assert client.silent()


def test_a_listen_behind_a_savepoint_that_is_rolled_back_is_none(pool):
    client = pool.client()
    for sql in ("BEGIN", "LISTEN a", "SAVEPOINT s", "LISTEN b", "ROLLBACK TO s", "COMMIT"):
        client.query(sql)
    notify(pool, "b", "x")
    notify(pool, "a", "y")
    assert next_notification(client) == ("a", "y")
    assert client.silent()


def test_a_second_listen_in_a_transaction_doubles_nothing(pool):
    client = pool.client()
    client.query("LISTEN c")
    for sql in ("BEGIN", "LISTEN c", "NOTIFY c, 'own'", "COMMIT"):
        client.send(wire.query(sql))
        client.read_until("Z")
    notify(pool, "c", "x")
    assert notifications(client, 2) == [("c", "own"), ("c", "x")]
    assert client.silent()


def pipeline(client, *texts):
    """The results of these statements, all in one write, each with its Sync."""
    client.send(*[wire.extended(text) + wire.sync() for text in texts])
    return [client.result() for _ in texts]


def test_listen_and_unlisten_in_a_pipeline(pool, cluster):
    client = pool.client()
    results = pipeline(client, "LISTEN c", "LISTEN d", "SELECT 1", "UNLISTEN d", "NOTIFY c, 'own'")
    assert [result.error for result in results] == [None] * 5
    heard = [fields(body) for result in results for body in result.notifications]
    assert (heard or notifications(client, 1)) == [("c", "own")]
    cluster.ask("main", "NOTIFY d, 'x'")
    cluster.ask("main", "NOTIFY c, 'y'")
    assert next_notification(client) == ("c", "y")
    results = pipeline(client, "UNLISTEN c", "SELECT 1")
    assert [result.error for result in results] == [None] * 2
    cluster.ask("main", "NOTIFY c, 'z'")
    client.query("SELECT 1")
    assert client.silent()


def test_listens_as_queries_in_a_pipeline_are_answered_in_order(pool, cluster):
    client = pool.client()
    client.send(*[wire.query(sql) for sql in ("LISTEN c", "SELECT 1", "LISTEN d", "BEGIN", "LISTEN e",
                                              "COMMIT", "UNLISTEN d", "SELECT 2")])
    results = [client.result() for _ in range(8)]
    assert [result.tag for result in results] == [
        "LISTEN", "SELECT 1", "LISTEN", "BEGIN", "LISTEN", "COMMIT", "UNLISTEN", "SELECT 1"]
    for channel in "cde":
        cluster.ask("main", f"NOTIFY {channel}")
    assert [channel for channel, _ in notifications(client, 2)] == ["c", "e"]
    assert client.silent()


@pytest.mark.parametrize("way", ["extended", "several", "function"])
@pytest.mark.parametrize("session_state", ["warn", "error"])
def test_channels_follow_whatever_session_state_says_of_other_state(
    new_pooler, cluster, session_state, way
):
    pool = new_pooler({"pool_mode": "transaction", "session_state": session_state})
    client = pool.client()
    client.query("LISTEN c")
    listen(client, way, "d")
    for channel in "cd":
        cluster.ask("main", f"NOTIFY {channel}, 'x'")
    assert notifications(client, 2) == [("c", "x"), ("d", "x")]


def test_listen_in_statement_mode(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "statement"})
    client = pool.client()
    client.query("LISTEN c")
    client.extended("LISTEN d")
    for channel in "cd":
        cluster.ask("main", f"NOTIFY {channel}, 'x'")
    assert notifications(client, 2) == [("c", "x"), ("d", "x")]
    client.extended("UNLISTEN c")
    client.query("UNLISTEN d")
    for channel in "cd":
        cluster.ask("main", f"NOTIFY {channel}, 'x'")
    client.query("SELECT 1")
    assert client.silent()


def test_ignored_session_state_leaves_listen_to_the_server(new_pooler, cluster):
    """As in PgBouncer: what the server sends reaches the client that has it."""
    pool = new_pooler({"pool_mode": "transaction", "session_state": "ignore", "default_pool_size": 1})
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    assert len(cluster.backends(datname="main")) == 1
    assert pool.show("LISTENERS") == []
    cluster.ask("main", "NOTIFY c, 'x'")
    assert client.silent()
    result = other.query("NOTIFY c, 'y'")
    assert ("c", "y") in [fields(body) for body in result.notifications]


def test_a_listen_in_a_transaction_fails_with_it(pool, cluster):
    client = pool.client()
    client.query("BEGIN")
    client.query("LISTEN c")
    client.send(wire.query("SELECT 1/0"))
    assert client.result().error.sqlstate == "22012"
    client.query("COMMIT")
    cluster.ask("main", "NOTIFY c, 'x'")
    client.query("SELECT 1")
    assert client.silent()
    assert pool.show("LISTENERS") == []


@pytest.mark.parametrize("end", ["ROLLBACK", "COMMIT"])
def test_an_unlisten_counts_at_the_end_of_its_transaction(pool, cluster, end):
    client = pool.client()
    client.query("LISTEN c")
    client.query("BEGIN")
    client.query("UNLISTEN c")
    client.query(end)
    cluster.ask("main", "NOTIFY c, 'x'")
    if end == "ROLLBACK":
        assert next_notification(client) == ("c", "x")
    client.query("SELECT 1")
    assert client.silent()


def test_a_prepared_unlisten_counts_each_time(pool, cluster):
    client = pool.client()
    client.send(wire.parse("UNLISTEN c", "end") + wire.sync())
    client.read_until("Z")
    for _ in range(3):
        client.query("LISTEN c")
        cluster.ask("main", "NOTIFY c, 'x'")
        assert next_notification(client) == ("c", "x")
        client.send(wire.bind((), "end") + wire.execute() + wire.sync())
        client.read_until("Z")
        cluster.ask("main", "NOTIFY c, 'y'")
        client.query("SELECT 1")
        assert client.silent()


# --- limits that pools share

def test_a_listen_gets_its_place_below_a_full_limit(new_pooler, cluster):
    """Clients of another pool that never rest must not keep it from its place."""
    pool = new_pooler({"pool_mode": "transaction", "max_db_connections": 2, "default_pool_size": 2,
                       "query_wait_timeout": 20})
    stop = threading.Event()

    def work():
        with contextlib.closing(pool.client(user="alice")) as client:
            while not stop.is_set():
                client.query("SELECT pg_sleep(0.002)")

    workers = [threading.Thread(target=work) for _ in range(6)]
    for worker in workers:
        worker.start()
    try:
        wait_until(lambda: len(cluster.backends(datname="main")) == 2)
        client = pool.client()
        client.query("LISTEN c")
        cluster.ask("main", "NOTIFY c, 'x'")
        assert next_notification(client) == ("c", "x")
    finally:
        stop.set()
        for worker in workers:
            worker.join()


def test_where_no_server_may_listen_the_client_keeps_its_own(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_db_connections": 1, "default_pool_size": 1,
                       "max_pinned": 1})
    client = pool.client()
    client.extended("LISTEN c")
    wait_until(lambda: len(pool.show("PINS")) == 1)
    cluster.ask("main", "NOTIFY c, 'x'")
    assert next_notification(client) == ("c", "x")


# --- clients that vanish, servers that are lost

def test_a_client_that_leaves_listens_no_more(pool, cluster):
    client = pool.client()
    client.query("LISTEN c")
    client.reset()
    wait_until(lambda: cluster.sql("SELECT 1 FROM pg_stat_activity WHERE query = 'UNLISTEN c'"))


def test_loss_of_the_listening_server_is_told_and_repaired(pool, cluster):
    clients = [pool.client() for _ in range(3)]
    for client in clients:
        client.query("LISTEN c")
        client.query("LISTEN d")
    for _ in range(3):
        cluster.terminate(listening(cluster)[0])
        for client in clients:
            found = client.read()
            assert found.type == "N"
            assert wire.read_fields(found.body)["M"] == LOST
        listening(cluster)
        pool.client().query("LISTEN sync")
        notify(pool, "c", "x")
        notify(pool, "d", "y")
        for client in clients:
            assert notifications(client, 2) == [("c", "x"), ("d", "y")]


def test_a_listen_waits_for_its_server(new_pooler, private_cluster):
    pool = new_pooler({"pool_mode": "transaction", "server_login_retry": 0.1,
                       "query_wait_timeout": 60}, cluster=private_cluster)
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    private_cluster.restart()
    assert client.read().type == "N"
    other.query("LISTEN c")
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")
    assert next_notification(other) == ("c", "x")


def test_a_client_that_vanishes_while_it_is_held_does_no_harm(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction"})
    pool.client().query("SELECT 1")
    pool.admin("PAUSE")
    for _ in range(3):
        client = pool.client()
        client.send(wire.query("LISTEN c"))
        assert client.silent(0.05)
        client.reset()
    stays = pool.client()
    stays.send(wire.query("LISTEN c"))
    pool.admin("RESUME")
    assert stays.result().tag == "LISTEN"
    notify(pool, "c", "x")
    assert next_notification(stays) == ("c", "x")


@pytest.mark.parametrize("action", ["disconnect", "error"])
def test_a_listen_that_waits_too_long_ends(new_pooler, action):
    pool = new_pooler({"pool_mode": "transaction", "query_wait_timeout": 0.3,
                       "query_wait_timeout_action": action})
    pool.client().query("SELECT 1")
    pool.admin("PAUSE")
    client = pool.client()
    client.send(wire.query("LISTEN c"))
    if action == "disconnect":
        assert "query_wait_timeout" in str(client.read().body)
        return
    assert client.result().error.text == "query_wait_timeout"
    pool.admin("RESUME")
    notify(pool, "c", "x")
    client.query("SELECT 1")
    assert client.silent()


@pytest.mark.parametrize("command", ["PAUSE", "RECONNECT"])
def test_commands_that_close_servers_move_the_listening_one(pool, cluster, command):
    client = pool.client()
    client.query("LISTEN c")
    before = listening(cluster)
    pool.admin(command)
    assert client.read().type == "N"
    if command == "PAUSE":
        assert cluster.backends(datname="main") == []
        pool.admin("RESUME")
    wait_until(lambda: listening(cluster) != before)
    client.query("LISTEN d")
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")


def test_kill_closes_listeners(pool):
    client = pool.client()
    client.query("LISTEN c")
    pool.admin("KILL main")
    with pytest.raises(Closed):
        while True:
            client.read()
    pool.admin("RESUME main")
    again = pool.client()
    again.query("LISTEN c")
    notify(pool, "c", "x")
    assert next_notification(again) == ("c", "x")


def test_an_unneeded_listening_server_goes(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "server_idle_timeout": 0.3})
    client = pool.client()
    client.query("LISTEN c")
    assert client.silent(1)
    assert len(pool.servers(state="active")) == 1
    client.query("UNLISTEN *")
    wait_until(lambda: not pool.servers())


def test_subscriptions_survive_a_takeover_and_nothing_is_lost(pool, cluster):
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    client.query('LISTEN "D d"')
    before = listening(cluster)
    with cluster.connect("main", "app") as source:
        numbers = itertools.count()
        stop = threading.Event()

        def send():
            while not stop.is_set():
                source.execute(f"SELECT pg_notify('c', '{next(numbers)}')")

        sender = threading.Thread(target=send)
        sender.start()
        for _ in range(3):
            pool.take_over()
        stop.set()
        sender.join()
    sent = next(numbers)
    assert notifications(client, sent) == [("c", str(i)) for i in range(sent)]
    assert listening(cluster) == before
    other.query("LISTEN c")
    notify(pool, "c", "x")
    notify(pool, '"D d"', "y")
    assert notifications(client, 2) == [("c", "x"), ("D d", "y")]
    assert next_notification(other) == ("c", "x")


def test_what_a_client_has_not_read_survives_a_takeover(pool, cluster):
    client = pool.client()
    client.query("LISTEN c")
    client.query("BEGIN")
    for i in range(5):
        cluster.ask("main", f"NOTIFY c, '{i}'")
    pool.take_over()
    client.send(wire.query("COMMIT"))
    assert [message.type for message in client.read_until("Z")] == ["C", "Z"]
    assert notifications(client, 5) == [("c", str(i)) for i in range(5)]


def test_a_listen_that_waits_survives_a_takeover(new_pooler):
    pool = new_pooler({"pool_mode": "transaction"})
    pool.client().query("SELECT 1")
    pool.admin("PAUSE")
    client = pool.client()
    client.send(wire.query("LISTEN c"))
    assert client.silent(0.1)
    pool.close_console()
    pool.take_over()
    pool.admin("RESUME")
    assert client.result().tag == "LISTEN"
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")


def test_a_suspended_listener_goes_on(pool):
    client = pool.client()
    client.query("LISTEN c")
    pool.admin("SUSPEND")
    pool.admin("RESUME")
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")


def test_listeners_move_with_a_forced_user(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction"}, databases={"main": {"user": "app"}})
    client = pool.client(user="bob")
    client.query("LISTEN c")
    pool.databases = {"main": {"user": "alice"}}
    pool.reload()
    assert wire.read_fields(client.read().body)["M"] == LOST
    client.query("LISTEN sync")

    def hears():
        cluster.ask("main", "NOTIFY c, 'x'")
        return not client.silent(0.5)

    # The new server may listen for `sync` a moment before it does for `c`.
    wait_until(hears)
    assert next_notification(client) == ("c", "x")
    assert [row["usename"] for row in cluster.backends(datname="main")].count("alice") >= 1


# --- limits

@pytest.mark.setting("max_notify_backlog")
def test_a_client_that_does_not_read_is_closed_and_blocks_nobody(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_notify_backlog": 200000})
    slow, client = pool.client(), pool.client()
    slow.query("LISTEN c")
    client.query("LISTEN c")
    with cluster.connect("main", "app") as source:
        for i in range(2000):
            source.execute(f"SELECT pg_notify('c', '{i:07000}')")
            assert client.read().type == "A"
    pool.wait_log("too many notifications wait for the client")
    assert len(pool.clients()) == 1


def test_a_burst_beyond_the_limit_reaches_a_client_that_may_receive(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_notify_backlog": 1000})
    client = pool.client()
    client.query("LISTEN c")
    payloads = [f"{i:0400}" for i in range(8)]
    with cluster.connect("main", "app") as source:
        # One transaction: pgusher reads them all at once.
        source.execute("; ".join(f"NOTIFY c, '{each}'" for each in payloads))
    assert notifications(client, 8) == [("c", each) for each in payloads]
    assert client.value("SELECT 1") == "1"


def test_a_client_in_a_transaction_is_told_why_it_is_closed(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_notify_backlog": 200000})
    client = pool.client()
    client.query("LISTEN c")
    client.query("BEGIN")
    with cluster.connect("main", "app") as source:
        for i in range(40):
            source.execute(f"SELECT pg_notify('c', '{i:07000}')")
    found = client.read_all()
    assert [message.type for message in found] == ["E"]
    error = wire.read_fields(found[0].body)
    assert (error["S"], error["C"]) == ("FATAL", "53400")


def test_a_limit_of_one_connection_leaves_none_to_listen(new_pooler):
    pool = new_pooler({"pool_mode": "transaction", "max_db_connections": 1})
    client = pool.client()
    client.send(wire.query("LISTEN c"))
    result = client.result()
    assert (result.error.sqlstate, result.status) == ("53300", "I")
    assert client.value("SELECT 1") == "1"


def test_limits_that_pools_share_count_the_listening_server(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_db_connections": 2})
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    other.query("BEGIN")
    client.send(wire.query("SELECT 1"))
    assert client.silent()
    other.query("COMMIT")
    assert client.result().value == "1"
    assert len(cluster.backends(datname="main")) == 2


def test_a_client_has_at_most_so_many_channels(pool):
    client = pool.client()
    for first in range(0, 4096, 256):
        client.send(*[wire.query(f"LISTEN c{i}") for i in range(first, first + 256)])
        for _ in range(256):
            assert client.result().tag == "LISTEN"
    client.send(wire.query("LISTEN one_more"))
    assert client.result().error.sqlstate == "54000"
    notify(pool, "c4095", "x")
    assert next_notification(client) == ("c4095", "x")
    client.query("UNLISTEN *")
    client.query("LISTEN one_more")


# --- settings

@pytest.mark.setting("listen")
def test_listen_may_be_refused(new_pooler):
    pool = new_pooler({"pool_mode": "transaction", "listen": "error"})
    client = pool.client()
    client.send(wire.query("LISTEN c"))
    assert client.result().error.sqlstate == "0A000"
    assert client.value("SELECT 1") == "1"
    client.send(wire.extended("LISTEN c") + wire.sync())
    assert client.result().error.sqlstate == "0A000"
    client.query("BEGIN")
    client.send(wire.query("LISTEN c"))
    result = client.result()
    assert (result.error.sqlstate, result.status) == ("0A000", "E")
    client.query("ROLLBACK")
    notices = client.query("DO $$ BEGIN EXECUTE 'LISTEN c'; END $$").notices
    if not notices:
        assert client.read().type == "N"
    assert client.value("SELECT count(*) FROM pg_listening_channels()") == "0"
    pool.settings["listen"] = "shared"
    pool.write_config()
    pool.reload()
    client.query("LISTEN c")
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")


def test_listen_may_pin(new_pooler):
    pool = new_pooler({"pool_mode": "transaction", "listen": "pin", "max_pinned": 5})
    client = pool.client()
    client.query("LISTEN c")
    wait_until(lambda: len(pool.show("PINS")) == 1)
    notify(pool, "c", "x")
    assert next_notification(client) == ("c", "x")
    client.query("UNLISTEN c")
    client.query("SELECT 1")
    assert pool.show("PINS") == []


def test_another_encoding_pins(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction", "max_pinned": 5})
    client = pool.client(client_encoding="LATIN1")
    client.query("LISTEN c")
    cluster.ask("main", "NOTIFY c, 'grün'")
    found = client.read()
    assert found.type == "A" and "grün".encode("latin1") in found.body
    wait_until(lambda: len(pool.show("PINS")) == 1)


def test_two_users_have_a_server_each(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "transaction"})
    one, two = pool.client(), pool.client(user="alice")
    one.query("LISTEN c")
    two.query("LISTEN c")
    listening(cluster, 2)
    notify(pool, "c", "x")
    assert next_notification(one) == next_notification(two) == ("c", "x")


def test_psycopg_gets_notifications(pool):
    with pool.connect() as connection:
        connection.autocommit = True
        connection.execute("LISTEN c")
        notify(pool, "c", "x", "y")
        found = connection.notifies()
        assert [next(found).payload, next(found).payload] == ["x", "y"]
        found.close()


# --- the process number in a notification

def told(client):
    """The process number that the client was told at its login."""
    return struct.unpack_from("!i", client.key)[0]


@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_notification_names_the_client_as_it_was_told(new_pooler, cluster, mode):
    pool = new_pooler({"pool_mode": mode})
    client, other = pool.client(), pool.client()
    client.query("LISTEN c")
    other.query("BEGIN")
    client.send(wire.query("NOTIFY c, 'own'"))
    found = [message for message in client.read_until("A" if mode == "transaction" else "Z")
             if message.type == "A"]
    other.query("NOTIFY c, 'x'")
    other.query("COMMIT")
    found.append(client.read())
    cluster.ask("main", "NOTIFY c, 'direct'")
    found.append(client.read())
    assert [pid(message.body) for message in found] == [told(client), told(other), 0]


def test_a_notification_of_a_server_with_two_clients_names_none(pool):
    listener, client, other = pool.client(), pool.client(), pool.client()
    listener.query("LISTEN c")
    client.query("SELECT 1")
    other.query("NOTIFY c")
    assert pid(listener.read().body) == 0


def test_ignored_session_state_leaves_process_numbers_alone(new_pooler, cluster):
    pool = new_pooler({"pool_mode": "session", "session_state": "ignore"})
    client = pool.client()
    backend = int(client.value("SELECT pg_backend_pid()"))
    client.query("LISTEN c")
    assert pid(client.query("NOTIFY c").notifications[0]) == backend


# --- what the operator sees

def test_show_listeners(pool, cluster):
    client, other = pool.client(), pool.client(user="alice")
    client.query("LISTEN c")
    client.query('LISTEN "D d"')
    again = pool.client()
    again.query("LISTEN c")
    other.query("LISTEN c")
    rows = pool.show("LISTENERS")
    assert [(row["database"], row["user"], row["channel"], row["subscribers"]) for row in rows] == [
        ("main", "alice", "c", "1"), ("main", "app", "c", "2"), ("main", "app", "D d", "1")]
    servers = {row["ptr"]: row["user"] for row in pool.servers(state="active")}
    assert all(servers[row["server"]] == row["user"] for row in rows)
    assert {row["backlog"] for row in rows} == {"0"}
    client.query("BEGIN")
    cluster.ask("main", f"NOTIFY c, '{'x' * 1000}'")
    assert again.read().type == other.read().type == "A"
    (row,) = [row for row in pool.show("LISTENERS") if row["channel"] == "D d"]
    assert int(row["backlog"]) > 1000
    client.query("COMMIT")
    for each in (client, again, other):
        each.leave()
    wait_until(lambda: pool.show("LISTENERS") == [])


def test_a_listening_server_is_active_while_a_client_listens(pool):
    """The other server was launched for the welcome of the client."""
    client = pool.client()

    def expect(active, idle):
        row = pool.pool()
        assert (row["sv_active"], row["sv_idle"]) == (active, idle)
        states = sorted(row["state"] for row in pool.servers())
        assert states == ["active"] * active + ["idle"] * idle
        sockets = sorted(row["state"] for row in pool.show("SOCKETS", type="S"))
        assert sockets == ["sv_active"] * active + ["sv_idle"] * idle

    client.query("LISTEN c")
    expect(1, 1)
    client.query("UNLISTEN c")
    expect(0, 2)
    client.query("LISTEN c")
    expect(1, 1)


def test_metrics_count_listeners_and_notifications(new_pooler, cluster):
    port = free_port()
    pool = new_pooler({"pool_mode": "transaction", "metrics_port": port, "max_notify_backlog": 20000})
    clients = [pool.client() for _ in range(3)]
    for client in clients:
        client.query("LISTEN c")
    clients[0].query("LISTEN d")
    notify(pool, "c", "x", "y")
    for client in clients:
        notifications(client, 2)

    def value(name):
        return scrape(port).value(f"pgusher_{name}", database="main", user="app")

    assert value("pool_channels") == 2
    assert value("pool_listeners") == 4
    assert value("notifications_total") == 6
    assert value("notify_backlog_closed_total") == value("listening_lost_total") == 0
    clients[2].query("BEGIN")
    notify(pool, "c", *["x" * 5000] * 5)
    wait_until(lambda: value("notify_backlog_closed_total") == 1)
    cluster.terminate(listening(cluster)[0])
    wait_until(lambda: value("listening_lost_total") == 1)
    pool.wait_log("main/app: the connection that listens was lost: 2 clients are warned")
