# SPDX-License-Identifier: ISC
"""Cancel requests: they reach the right backend, and never another query."""

import random
import threading

import pytest

from support import wire
from support.clients.raw import RawClient, cancel
from support.process import stays, wait_until

SLEEP = "SELECT pg_sleep(30)"


def running(pooler, client, sql=SLEEP):
    """Start a query and wait until it runs."""
    client.send(wire.query(sql))
    wait_until(lambda: pooler.cluster.backends(state="active", query=sql))
    return client


def test_a_cancel_ends_the_query_and_nothing_more(pooler):
    client, other = pooler.client(), pooler.client()
    running(pooler, client)
    running(pooler, other, "SELECT pg_sleep(0.5), 'other'")
    cancel(pooler.address, client.key)
    error = client.result().error
    assert (error.severity, error.sqlstate) == ("ERROR", "57014")
    assert other.checked().rows[0][1] == "other"
    assert client.value("SELECT 'goes on'") == "goes on"
    assert pooler.wait_log("C-.* closing because: successfully sent cancel request", 1)


def test_psycopg_cancels(pooler):
    connection = pooler.connect()
    fault = []

    def work():
        try:
            connection.execute(SLEEP)
        except Exception as error:
            fault.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
    connection.cancel()
    thread.join(10)
    assert fault and fault[0].sqlstate == "57014"


def test_a_cancel_in_session_mode(session_pooler):
    client = running(session_pooler, session_pooler.client())
    cancel(session_pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"


def test_a_cancel_over_the_unix_socket(pooler):
    client = running(pooler, pooler.client(unix=True))
    cancel(pooler.socket_path, client.key)
    assert client.result().error.sqlstate == "57014"


def test_a_cancel_of_an_idle_client_does_nothing(pooler):
    client, other = pooler.client(), pooler.client()
    client.query("SELECT 1")
    running(pooler, other, "SELECT pg_sleep(0.4)")
    cancel(pooler.address, client.key)
    assert pooler.wait_log("cancel request for idle client")
    assert other.result().error is None
    assert client.value("SELECT 2") == "2"


def test_a_cancel_with_the_key_of_a_disconnected_client_does_nothing(pooler):
    client = pooler.client()
    key = client.key
    client.query("SELECT 1")
    client.leave()
    other = running(pooler, pooler.client(), "SELECT pg_sleep(0.4)")
    cancel(pooler.address, key)
    assert pooler.wait_log("failed cancel request")
    assert other.result().error is None


def test_a_cancel_reaches_the_server_with_the_servers_key(new_pooler, new_server):
    def script(connection):
        connection.login(key=b"\xca\xfe\xba\xbe")
        while True:
            sql = connection.next_query()
            connection.server.gate.wait(10)
            connection.send(wire.one_row(sql))

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    cancel(pooler.address, client.key)
    wait_until(lambda: server.cancels)
    assert server.cancels == [(1000).to_bytes(4, "big") + b"\xca\xfe\xba\xbe"]
    server.gate.set()
    assert client.checked().value == "slow"


def test_a_cancel_may_exceed_the_pool_size(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    client = running(pooler, pooler.client())
    waiter = pooler.client()
    waiter.send(wire.query("SELECT 'served'"))
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"
    assert waiter.checked().value == "served"


def test_a_server_is_reserved_until_its_cancel_has_ended(new_pooler, new_server):
    """The query ends while its cancel is in flight: the next client does not get that server."""

    def script(connection):
        if connection.number == 1:
            # The connection of the cancel request: accepted, and closed when the test says so.
            connection.read_bytes(16)
            connection.server.cancels.append(b"seen")
            connection.server.gate.wait(10)
            return
        connection.login()
        connection.serve(lambda connection, sql: wire.one_row(sql) if sql != "slow" else b"")

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client = pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    canceler = RawClient(pooler.address)
    canceler.send(wire.cancel_request(client.key))
    wait_until(lambda: server.cancels)
    pooler.wait_pool(cl_active_cancel_req=1, sv_active_cancel=1)
    server.connections[0].send(wire.one_row("slow"))
    assert client.checked().value == "slow"
    pooler.wait_pool(sv_being_canceled=1, sv_idle=0)
    assert client.value("next") == "next"
    assert server.connections[0].received[-1].body != b"next\0"
    server.gate.set()
    canceler.closed()
    pooler.wait_pool(sv_being_canceled=0, cl_active_cancel_req=0)


def test_a_cancel_that_comes_too_late_is_dropped(new_pooler, new_server):
    """The query ends while its cancel request waits for a connection: nothing is sent."""

    def script(connection):
        if connection.number == 0:
            connection.login()
            connection.serve(lambda connection, sql: wire.one_row(sql) if sql != "slow" else b"")
        elif connection.number == 1:
            # A slow login: it takes the only connection attempt that the pool may make.
            connection.accept_startup()
            connection.server.gate.wait(10)
            connection.welcome()
            connection.serve()
        else:
            connection.server.cancels.append(connection.read_bytes(16))

    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_concurrency": 1},
        databases={"main": server.target()},
    )
    client, waiter = pooler.client(), pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    waiter.send(wire.query("quick"))
    pooler.wait_pool(cl_waiting=1, sv_login=1)
    canceler = RawClient(pooler.address)
    canceler.send(wire.cancel_request(client.key))
    pooler.wait_pool(cl_waiting_cancel_req=1)
    server.connections[0].send(wire.one_row("slow"))
    assert client.checked().value == "slow"
    assert waiter.checked().value == "quick"
    server.gate.set()
    assert canceler.closed()
    assert pooler.wait_log("not sending cancel request for client that is now idle")
    assert client.value("again") == "again"
    assert server.cancels == []


@pytest.mark.setting("cancel_wait_timeout")
def test_a_cancel_that_finds_no_server_is_dropped(new_pooler, new_server, new_relay):
    server = new_server(slow_script)
    relay = new_relay(server.port)
    pooler = new_pooler(
        {"pool_mode": "transaction", "cancel_wait_timeout": 0.5, "server_login_retry": 1},
        databases={"main": {"host": relay.host, "port": relay.port}},
    )
    client = pooler.client()
    client.send(wire.query("slow"))
    pooler.wait_pool(sv_active=1)
    # A server in its login takes the pool's only attempt; the cancel request has to wait.
    relay.set_mode("hold")
    waiter = pooler.client()
    waiter.send(wire.query("quick"))
    pooler.wait_pool(sv_login=1)
    canceler = RawClient(pooler.address)
    canceler.send(wire.cancel_request(client.key))
    assert canceler.closed()
    assert pooler.wait_log("closing because: cancel_wait_timeout")
    relay.set_mode("pass")
    server.gate.set()
    assert client.checked().value == "slow"


def slow_script(connection):
    """Answers `slow` only once the gate is open."""
    connection.login()
    while True:
        sql = connection.next_query()
        if sql == "slow":
            connection.server.gate.wait(15)
        connection.send(wire.one_row(sql))


def test_many_cancels_of_one_query_are_all_closed_in_order(pooler):
    client, other = pooler.client(), pooler.client()
    running(pooler, other, "SELECT pg_sleep(1), 'other'")
    running(pooler, client)
    cancelers = [RawClient(pooler.address) for _ in range(30)]
    for canceler in cancelers:
        canceler.send(wire.cancel_request(client.key))
    for canceler in cancelers:
        assert canceler.closed()
        canceler.close()
    assert client.result().error.sqlstate == "57014"
    assert client.value("SELECT 'fresh'") == "fresh"
    assert other.checked().rows[0][1] == "other"


def test_cancels_are_accepted_while_clients_are_not(new_pooler):
    pooler = new_pooler({"max_client_conn": 1})
    client = running(pooler, pooler.client())
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"


# Queries in the pool's queue: F36


@pytest.fixture
def queue(new_pooler):
    """A pool of one server, which one client has, and another client."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    return pooler, holder, waiter


def is_canceled(error):
    """Whether it is the pooler's own error for a cancelled query."""
    return error.is_("ERROR", "57014", "canceling statement due to user request")


def test_a_query_in_the_queue_is_cancelled(queue):
    pooler, holder, waiter = queue
    waiter.send(wire.query("SELECT 'never'"))
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, waiter.key)
    result = waiter.result()
    assert is_canceled(result.error)
    assert (result.types, result.status) == ("EZ", "I")
    assert sorted(result.error.fields) == ["C", "M", "S"]
    assert pooler.wait_log("C-.* closing because: cancel request for waiting client", 1)
    pooler.wait_pool(cl_waiting=0)
    waiter.send(wire.query("SELECT 'next'"))
    pooler.wait_pool(cl_waiting=1)
    holder.query("COMMIT")
    assert waiter.checked().value == "next"


def test_what_follows_a_cancelled_query_is_run(queue):
    pooler, holder, waiter = queue
    waiter.send(wire.query("SELECT 'never'"), wire.query("SELECT 'next'"),
                wire.extended("SELECT 'last'"), wire.sync())
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, waiter.key)
    assert is_canceled(waiter.result().error)
    holder.query("COMMIT")
    assert waiter.checked().value == "next"
    assert waiter.checked().value == "last"


def test_a_batch_in_the_queue_is_cancelled_up_to_its_sync(queue):
    pooler, holder, waiter = queue
    waiter.send(wire.extended("SELECT 'never'"), wire.flush())
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, waiter.key)
    assert is_canceled(waiter.error())
    holder.query("COMMIT")
    assert waiter.silent()
    waiter.send(wire.extended("SELECT 'skipped'"), wire.query("SELECT 'skipped'"))
    assert waiter.silent()
    waiter.send(wire.sync(), wire.extended("SELECT 'next'"), wire.sync())
    result = waiter.result()
    assert (result.types, result.status) == ("Z", "I")
    assert waiter.checked().value == "next"


def test_psycopg_is_cancelled_in_the_queue(queue):
    pooler, holder, _ = queue
    connection = pooler.connect()
    fault = []

    def work():
        try:
            connection.execute("SELECT %s::text", ["never"])
        except Exception as error:
            fault.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    pooler.wait_pool(cl_waiting=1)
    connection.cancel()
    thread.join(10)
    assert fault and fault[0].sqlstate == "57014"
    connection.rollback()
    holder.query("COMMIT")
    assert connection.execute("SELECT %s::text", ["next"]).fetchone()[0] == "next"


def test_a_query_that_waits_for_the_end_of_a_pause_is_cancelled(pooler):
    client = pooler.client()
    pooler.command("PAUSE")
    client.send(wire.query("SELECT 'never'"))
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, client.key)
    assert is_canceled(client.result().error)
    pooler.command("RESUME")
    assert client.value("SELECT 'next'") == "next"


def test_a_pause_completes_sooner_when_its_query_is_cancelled(pooler):
    client, waiter, console = pooler.client(), pooler.client(), pooler.console()
    running(pooler, client)
    console.send(wire.query("PAUSE"))
    wait_until(lambda: not pooler.show("POOLS", database="main", sv_idle=1))
    waiter.send(wire.query("SELECT 'waits'"))
    pooler.wait_pool(cl_waiting=1)
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"
    assert console.checked().tag == "PAUSE"
    pooler.command("RESUME")
    assert waiter.checked().value == "waits"


def test_a_query_is_cancelled_while_parameters_are_set_on_its_server(new_pooler, new_server):
    def script(connection):
        connection.login()
        while True:
            sql = connection.next_query()
            asked.append(sql)
            if sql.startswith("SET"):
                connection.server.gate.wait(10)
                connection.send(wire.parameter_status("application_name", "caf\u00e9"))
                connection.send(wire.command_complete("SET"), wire.ready())
            else:
                connection.send(wire.one_row(sql))

    asked = []
    server = new_server(script)
    # Do not check the value on a server at login.
    settings = {"pool_mode": "transaction", "default_pool_size": 1, "startup_parameters": "strict"}
    pooler = new_pooler(settings, databases={"main": server.target()})
    pooler.client().value("first")
    # A value that is not ASCII is set before the client's message is sent.
    client = pooler.client(application_name="caf\u00e9")
    client.send(wire.query("never"))
    wait_until(lambda: len(asked) == 2)
    cancel(pooler.address, client.key)
    assert is_canceled(client.result().error)
    pooler.wait_pool(cl_waiting=0, sv_being_canceled=1)
    server.gate.set()
    assert client.value("next") == "next"
    assert asked == ["first", "SET application_name='caf\u00e9';", "next"]


def test_only_the_query_of_the_key_is_ever_cancelled(new_pooler):  # F35 in part
    """Cancel requests that race with the end of queries hit a query of their own client or none."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 2})
    victim, bystander = pooler.client(), pooler.client()
    for _ in range(60):
        victim.send(wire.query("SELECT 1"))
        canceler = RawClient(pooler.address)
        canceler.send(wire.cancel_request(victim.key))
        bystander.send(wire.query("SELECT pg_sleep(0.002), 'safe'"))
        error = victim.result().error
        assert error is None or error.sqlstate == "57014"
        assert bystander.checked().rows[0][1] == "safe"
        canceler.closed()
        canceler.close()
    stays(lambda: pooler.pool()["cl_waiting_cancel_req"] == 0, 0.1)
    pooler.wait_pool(sv_active=0, sv_active_cancel=0, sv_being_canceled=0)


def test_hundreds_of_racing_and_forged_cancels_hit_no_other_client(new_pooler):  # F35
    """Four clients are cancelled at random moments; forged and outdated keys are sent as well."""
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 3, "max_client_conn": 500})
    faults, hits = [], []
    dead = pooler.client()
    dead.leave()

    def guard(act):
        def work():
            try:
                act(random.Random(act.__name__))
            except Exception as fault:
                faults.append(repr(fault))
        return threading.Thread(target=work)

    def be_hit(generator):
        victim = pooler.client()
        for _ in range(170):
            token = str(generator.random())
            victim.send(wire.query(f"SELECT '{token}', pg_sleep(0.001)"))
            keys = [victim.key, dead.key, generator.randbytes(8), victim.key[:4] + generator.randbytes(4)]
            for key in generator.sample(keys, 4):
                with RawClient(pooler.address) as canceler:
                    canceler.send(wire.cancel_request(key)).closed()
            result = victim.result()
            if result.error:
                assert result.error.sqlstate == "57014"
            else:
                assert result.value == token
            hits.append(token)

    def be_safe(_):
        bystander = pooler.client()
        while len(hits) < 680 and not faults:
            assert bystander.value("SELECT 'safe' FROM pg_sleep(0.002)") == "safe"

    threads = [guard(be_hit) for _ in range(4)] + [guard(be_safe) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    assert not faults
    assert len(hits) == 680
    pooler.wait_pool(sv_active=0, sv_active_cancel=0, sv_being_canceled=0, cl_waiting_cancel_req=0)


def test_the_key_space_shows_no_pattern(new_pooler):  # F38 in part
    pooler = new_pooler({"max_client_conn": 1000})
    keys = set()
    for _ in range(300):
        client = pooler.client()
        keys.add(client.key)
        client.leave()
    assert len(keys) == 300
    for at in range(8):
        assert len({key[at] for key in keys}) > 70
