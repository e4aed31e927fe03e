# SPDX-License-Identifier: ISC
"""Settings of a client that a server refuses: its error ends the query, and nothing of that runs."""

import psycopg
import pytest

from support import wire
from support.clients.raw import ServerError


@pytest.fixture
def one_server(new_pooler, cluster):
    """A pooler with one server, and a role and a table that come and go."""
    cluster.ask("main", "CREATE ROLE passing; GRANT passing TO app")
    cluster.ask("main", "CREATE TABLE seen (line int); GRANT ALL ON seen TO app, passing")
    yield new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    cluster.ask("main", "DROP TABLE seen")
    if cluster.sql("SELECT 1 FROM pg_roles WHERE rolname = 'passing'"):
        drop_role(cluster)


def drop_role(cluster):
    cluster.ask("main", "DROP OWNED BY passing; DROP ROLE passing")


def create_role(cluster):
    cluster.ask("main", "CREATE ROLE passing; GRANT passing TO app; GRANT ALL ON seen TO passing")


@pytest.fixture
def refused(one_server, cluster):
    """A client with a role that is gone, and another client."""
    client, other = one_server.client(), one_server.client()
    client.query("SET ROLE passing")
    assert other.value("SELECT current_user") == "app"
    drop_role(cluster)
    return client, other


def pids(pooler):
    return {server["remote_pid"] for server in pooler.servers()}


def test_the_client_gets_the_servers_error_until_the_role_is_back(refused, one_server, cluster):
    client, other = refused
    servers = pids(one_server)
    for _ in range(3):
        with pytest.raises(ServerError) as error:
            client.query("INSERT INTO seen VALUES (1)")
        assert error.value.is_("ERROR", "22023", 'role "passing" does not exist')
        assert other.value("SELECT current_user") == "app"
    assert other.value("SELECT count(*) FROM seen") == "0"
    create_role(cluster)
    assert client.value("SELECT current_user") == "passing"
    assert other.value("SELECT current_user") == "app"
    assert pids(one_server) == servers
    assert not one_server.lines("closing because: .*parameter")


def test_a_role_that_may_no_longer_be_set(one_server, cluster):
    client, other = one_server.client(), one_server.client()
    client.query("SET ROLE passing")
    assert other.value("SELECT current_user") == "app"
    cluster.ask("main", "REVOKE passing FROM app")
    with pytest.raises(ServerError) as error:
        client.query("SELECT 1")
    assert error.value.sqlstate == "42501"
    cluster.ask("main", "GRANT passing TO app")
    assert client.value("SELECT current_user") == "passing"


def test_a_batch_of_the_extended_protocol_is_skipped_to_its_sync(refused):
    client, other = refused
    client.send(wire.extended("INSERT INTO seen VALUES (1)") + wire.extended("SELECT 2") + wire.sync())
    assert client.result().error.sqlstate == "22023"
    client.send(wire.parse("INSERT INTO seen VALUES (1)") + wire.flush())
    assert client.read_until("E")
    client.send(wire.bind() + wire.execute() + wire.sync())
    assert [kind for kind, _ in client.read_until("Z")] == ["Z"]
    assert other.value("SELECT count(*) FROM seen") == "0"


def test_each_query_of_a_pipeline_gets_its_error(refused):
    client, other = refused
    client.send(
        wire.query("INSERT INTO seen VALUES (1)")
        + wire.extended("INSERT INTO seen VALUES (2)") + wire.sync()
        + wire.query("BEGIN") + wire.query("INSERT INTO seen VALUES (3)") + wire.query("COMMIT"))
    for _ in range(5):
        assert client.result().error.sqlstate == "22023"
    assert other.value("SELECT count(*) FROM seen") == "0"


@pytest.mark.parametrize("sql, user", [
    ("RESET ROLE", "app"),
    ("SET ROLE NONE", "app"),
    ("SET ROLE app", "app"),
    ("SET SESSION AUTHORIZATION DEFAULT", "app"),
    ("DISCARD ALL", "app"),
    ("set role = 'app';", "app"),
])
@pytest.mark.parametrize("extended", [False, True], ids=["simple", "extended"])
def test_statements_that_replace_the_role_are_run(refused, one_server, sql, user, extended):
    client, other = refused
    servers = pids(one_server)
    if extended:
        client.send(wire.extended(sql) + wire.sync())
        client.checked()
    else:
        client.query(sql)
    for _ in range(2):
        assert client.value("SELECT current_user") == user
        assert other.value("SELECT current_user") == "app"
    assert pids(one_server) == servers


def test_a_role_that_is_refused_too_changes_nothing(refused, cluster):
    client, other = refused
    with pytest.raises(ServerError) as error:
        client.query("SET ROLE nobody_at_all")
    assert error.value.is_("ERROR", "22023", 'role "nobody_at_all" does not exist')
    with pytest.raises(ServerError) as error:
        client.query("SELECT 1")
    assert error.value.is_("ERROR", "22023", 'role "passing" does not exist')
    create_role(cluster)
    assert client.value("SELECT current_user") == "passing"


def test_reset_all_does_not_take_the_role_away(refused, cluster):
    client, _ = refused
    with pytest.raises(ServerError):
        client.query("RESET ALL")
    create_role(cluster)
    assert client.value("SELECT current_user") == "passing"


def test_statement_that_is_only_prepared_changes_nothing(refused):
    client, _ = refused
    client.send(wire.parse("RESET ROLE", "reset") + wire.describe("S", "reset") + wire.sync())
    assert client.result().error.sqlstate == "22023"
    with pytest.raises(ServerError):
        client.query("SELECT 1")


def test_psycopg_goes_on(one_server, cluster):
    with one_server.connect(autocommit=True) as client, one_server.client() as other:
        client.execute("SET ROLE passing")
        assert other.value("SELECT current_user") == "app"
        drop_role(cluster)
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="does not exist"):
            client.execute("SELECT %s::int", [1])
        client.execute("RESET ROLE")
        assert client.execute("SELECT current_user").fetchone() == ("app",)


# --- settings that go in one write with the client's message ----------------------------------


@pytest.fixture
def tablespace(one_server, cluster):
    """A client with a default_tablespace that is gone, and another client."""
    with cluster.connect("main") as connection:
        connection.execute("SET allow_in_place_tablespaces = on")
        connection.execute("CREATE TABLESPACE gone OWNER app LOCATION ''")
    client, other = one_server.client(), one_server.client()
    client.query("SET default_tablespace = gone")
    assert other.value("SHOW default_tablespace") == ""
    cluster.sql("DROP TABLESPACE gone")
    return client, other


def test_a_statement_behind_a_refused_set_is_not_run(tablespace, one_server):
    client, other = tablespace
    servers = pids(one_server)
    for _ in range(2):
        with pytest.raises(ServerError) as error:
            client.query("INSERT INTO seen VALUES (1)")
        assert error.value.sqlstate == "22023"
        assert other.value("SHOW default_tablespace") == ""
    assert other.value("SELECT count(*) FROM seen") == "0"
    client.query("RESET ALL")
    client.query("INSERT INTO seen VALUES (2)")
    assert other.value("SELECT line FROM seen") == "2"
    assert pids(one_server) == servers


@pytest.mark.parametrize("sql", [
    "ROLLBACK; INSERT INTO seen VALUES (1)",
    "/* a */ COMMIT; BEGIN; INSERT INTO seen VALUES (1); COMMIT",
    ";;END; INSERT INTO seen VALUES (1)",
])
def test_a_text_that_leaves_a_failed_transaction_is_not_run(tablespace, sql):
    client, other = tablespace
    with pytest.raises(ServerError) as error:
        client.query(sql)
    assert error.value.sqlstate == "22023"
    assert other.value("SELECT count(*) FROM seen") == "0"


def test_messages_behind_a_rollback_are_not_run(tablespace):
    client, other = tablespace
    client.send(wire.query("ROLLBACK") + wire.query("INSERT INTO seen VALUES (1)"))
    for _ in range(2):
        assert client.result().error.sqlstate == "22023"
    client.send(wire.extended("ROLLBACK") + wire.sync()
                + wire.extended("INSERT INTO seen VALUES (1)") + wire.sync())
    for _ in range(2):
        assert client.result().error.sqlstate == "22023"
    assert other.value("SELECT count(*) FROM seen") == "0"


def test_a_batch_without_its_sync_behind_a_refused_set(tablespace):
    client, other = tablespace
    client.send(wire.parse("INSERT INTO seen VALUES (1)") + wire.bind() + wire.flush())
    assert client.read_until("E")
    client.send(wire.execute() + wire.sync())
    assert client.read_until("Z")
    assert other.value("SELECT count(*) FROM seen") == "0"


def test_half_a_message_behind_a_refused_set(tablespace):
    client, other = tablespace
    message = wire.query("INSERT INTO seen VALUES (1) --" + "x" * 9000)
    client.send(message[:6000])
    assert other.value("SELECT 1") == "1"
    client.send(message[6000:])
    assert client.result().error.sqlstate == "22023"
    assert other.value("SELECT count(*) FROM seen") == "0"
    client.query("SET default_tablespace = ''")
    assert client.value("SELECT 1") == "1"


def test_a_set_behind_another_refused_setting_is_an_error(tablespace):
    client, other = tablespace
    with pytest.raises(ServerError):
        client.query("SET work_mem = '77MB'")
    client.query("RESET default_tablespace")
    assert client.value("SHOW work_mem") == "4MB"
    assert other.value("SHOW work_mem") == "4MB"


@pytest.mark.parametrize("settings", [
    {"session_state": "ignore"},
    {"startup_parameters": "strict"},
], ids=str)
def test_where_settings_do_not_follow_the_client_is_closed(new_pooler, settings):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1, **settings})
    client = pooler.client(TimeZone="Nowhere/Land" if "startup_parameters" in settings else "UTC")
    if "startup_parameters" in settings:
        client.send(wire.query("SELECT 1"))
        assert client.fatal().is_("FATAL", "08P01", "invalid server parameter")
    else:
        assert client.value("SELECT 1") == "1"
