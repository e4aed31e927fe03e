# SPDX-License-Identifier: ISC
"""pool_size = auto: what a pool comes to by its host, when that changes, and what SHOW SIZING says."""

import contextlib
import os

import pytest

from support import wire
from support.clients.raw import ServerError
from support.documents import Document
from support.process import wait_until
from support.servers.cluster import HARNESS, Cluster
from support.servers.fake_server import Disconnected, FakeServer

QUESTION = "pg_catalog.current_setting('max_connections')"


def sizing(pooler, database="main", user="app"):
    """The row of SHOW SIZING of a pool."""
    (row,) = pooler.show("SIZING", database=database, user=user)
    return row


def size(pooler, database="main", user="app"):
    """The size of a pool."""
    return int(sizing(pooler, database, user)["pool_size"])


def settle(pooler, expected, database="main", user="app"):
    """Wait until a pool has this size."""
    wait_until(
        lambda: size(pooler, database, user) == expected, 10, f"a pool_size of {expected}"
    )


def use(pooler, database="main", user="app"):
    """Have a client run a query."""
    with pooler.connect(user, database) as client:
        client.execute("SELECT 1")


@contextlib.contextmanager
def holding(pooler, count, user="app", database="main"):
    """So many clients in transactions, each with a server of its own."""
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(pooler.connect(user, database)) for _ in range(count)]
        for client in clients:
            client.execute("BEGIN")
        yield clients


@pytest.fixture
def auto(new_pooler):
    """Make a daemon with default_pool_size = auto: auto(settings, databases={...})."""

    def make(settings=None, **options):
        options.setdefault("databases", {"main": {"host_cores": 4}})
        return new_pooler(
            {"pool_mode": "transaction", "default_pool_size": "auto", **(settings or {})}, **options
        )

    return make


# --- facts -----------------------------------------------------------------------------------


@pytest.mark.setting("databases.host_cores")
def test_size_is_known_before_the_first_client_is_served(auto):
    pooler = auto()
    assert pooler.show("DATABASES", name="main")[0]["pool_size"] == "4"
    assert pooler.setting("default_pool_size") == "auto"
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["decided_by"]) == ("16", "cores")
    assert (row["cores"], row["cores_from"]) == ("4", "host_cores")
    assert (row["max_connections"], row["reserved"]) == ("100", "3")
    assert (row["sharing_pools"], row["processes"], row["other_pools"]) == ("1", "1", "0")
    assert row["host"].endswith(f":{pooler.cluster.port}")
    assert row["why"] == "4 cores (host_cores) * 4 = 16"
    assert pooler.show("DATABASES", name="main")[0]["pool_size"] == "16"
    assert len(pooler.lines("pool main/app: pool_size = auto is 16: 4 cores")) == 1


def test_configuration_of_the_document(new_pooler, cluster):
    place = f"host={cluster.host} port={cluster.port} dbname=main"
    text = Document("sizing.md").text("in pgusher.ini", {"host=db.example.com": place})
    pooler = new_pooler(start=False)
    settings = "".join(f"{name} = {value}\n" for name, value in pooler.own_settings().items())
    pooler.config_text = lambda: text + settings
    pooler.write_config()
    pooler.start()
    use(pooler, "app")
    assert sizing(pooler, "app")["why"] == "16 cores (host_cores) * 4 = 64"


def test_pool_has_as_many_servers_as_its_size(auto):
    pooler = auto()
    with holding(pooler, 16), pooler.client() as waiting:
        waiting.send(wire.query("SELECT 1"))
        pooler.wait_pool(sv_active=16, cl_waiting=1)
        assert sizing(pooler)["servers"] == "16"


def test_server_on_this_machine_has_the_cores_that_pgusher_may_use(auto):
    pooler = auto(databases={"main": {}})
    use(pooler)
    row = sizing(pooler)
    assert row["cores_from"] == "this machine"
    assert 1 <= int(row["cores"]) <= os.cpu_count()
    assert int(row["pool_size"]) == min(max(4 * int(row["cores"]), 4), 87)


def test_role_that_may_read_files_of_the_server_is_told_its_cores(auto, cluster):
    cluster.ask("main", Document("sizing.md").text("for the role app", {"app": "bob"}))
    try:
        pooler = auto(databases={"main": {}}, auth={HARNESS: ""})
        use(pooler, user="alice")
        assert sizing(pooler, user="alice")["cores_from"] == "this machine"
        # It is known of the host then, for all pools.
        use(pooler, user="bob")
        for user in ("alice", "bob"):
            wait_until(lambda: sizing(pooler, user=user)["cores_from"] == "server")
        pooler = auto(databases={"main": {}}, auth={HARNESS: ""})
        use(pooler, user=HARNESS)
        assert sizing(pooler, user=HARNESS)["cores_from"] == "server"
    finally:
        cluster.ask("main", "REVOKE pg_read_server_files FROM bob; REVOKE EXECUTE ON FUNCTION"
                    " pg_read_file(text, bigint, bigint, boolean) FROM bob")


def test_limits_of_role_and_database_are_kept(auto, cluster):
    cluster.ask("main", "ALTER ROLE alice CONNECTION LIMIT 7")
    cluster.ask("main", "ALTER DATABASE other CONNECTION LIMIT 2")
    try:
        pooler = auto(databases={"main": {"host_cores": 8}, "other": {"host_cores": 8}})
        use(pooler, user="alice")
        assert (size(pooler, user="alice"), sizing(pooler, user="alice")["decided_by"]) == (7, "role")
        use(pooler, "other", "bob")
        row = sizing(pooler, "other", "bob")
        assert (row["pool_size"], row["decided_by"]) == ("2", "database")
        assert row["why"].endswith("CONNECTION LIMIT of the database 2")
    finally:
        cluster.ask("main", "ALTER ROLE alice CONNECTION LIMIT -1")
        cluster.ask("main", "ALTER DATABASE other CONNECTION LIMIT -1")


# --- sharing ---------------------------------------------------------------------------------


def test_entries_of_a_host_share_it_before_they_have_clients(auto):
    entry = {"dbname": "main", "host_cores": 8}
    pooler = auto(databases={"one": entry, "two": entry})
    use(pooler, "one")
    assert size(pooler, "one") == 16
    use(pooler, "two")
    assert (size(pooler, "one"), size(pooler, "two")) == (16, 16)
    assert sizing(pooler, "two")["why"] == "8 cores (host_cores) * 4 / 2 pools = 16"


def test_users_of_an_entry_share_its_host(auto):
    pooler = auto()
    use(pooler)
    assert size(pooler) == 16
    use(pooler, user="alice")
    settle(pooler, 8)
    settle(pooler, 8, user="alice")
    assert pooler.show("DATABASES", name="main")[0]["pool_size"] == "8"


def test_databases_of_the_wildcard_share_its_host(auto):
    pooler = auto(databases={"*": {"dbname": "main", "host_cores": 4}})
    for count, expected in ((1, 16), (2, 8), (3, 5), (4, 4), (5, 4)):
        use(pooler, f"wild{count}")
        settle(pooler, expected, f"wild{count}")
    for number in range(1, 6):
        settle(pooler, 4, f"wild{number}")
    assert sizing(pooler, "wild1")["decided_by"] == "least"


def test_sizes_of_other_pools_are_left_to_them(auto):
    pooler = auto(
        databases={
            "main": {"host_cores": 100},
            "fixed": {"dbname": "main", "pool_size": 30, "reserve_pool_size": 7},
        }
    )
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["other_pools"]) == ("50", "37")
    assert row["decided_by"] == "max_connections"


@pytest.mark.setting("auto_pool_max")
def test_no_pool_is_larger_than_auto_pool_max(auto):
    pooler = auto({"auto_pool_max": 10})
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["decided_by"]) == ("10", "auto_pool_max")
    pooler.command("SET auto_pool_max = 12")
    settle(pooler, 12)


def test_pool_is_no_larger_than_limits_of_servers(auto):
    pooler = auto(databases={"main": {"host_cores": 4, "max_db_connections": 6}})
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["decided_by"]) == ("6", "connection limits")


def test_processes_that_know_each_other_share_a_host(auto):
    pooler = auto({"peer_id": 1}, start=False)
    pooler.peers = [f"{number} = host=127.0.0.1 port={pooler.port + number}" for number in (1, 2)]
    pooler.write_config()
    pooler.start()
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["processes"]) == ("8", "2")
    assert {row["pool_size"] for row in pooler.show("PEERS")} == {"20"}


@pytest.mark.setting("databases.pool_size", "users.pool_size", "default_pool_size")
def test_word_is_known_wherever_a_pool_size_is(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"},
        databases={
            "one": {"dbname": "main", "pool_size": "auto", "host_cores": 6},
            "two": {"dbname": "main", "host_cores": 6},
        },
        users={"alice": {"pool_size": "auto"}, "bob": {"pool_size": 7}},
    )
    for database, user in (("one", "app"), ("one", "bob"), ("two", "alice"), ("two", "app")):
        use(pooler, database, user)
    rows = {(row["database"], row["user"]) for row in pooler.show("SIZING")}
    assert rows == {("one", "app"), ("two", "alice")}
    # The pools of bob and app have numbers: 7 and 20.
    settle(pooler, 12, "one")
    settle(pooler, 12, "two", "alice")
    wait_until(lambda: sizing(pooler, "one")["other_pools"] == "27")
    assert pooler.show("USERS", name="alice")[0]["pool_size"].strip() == "auto"


def test_minimum_is_no_more_than_the_size(auto):
    pooler = auto({"min_pool_size": 9}, databases={"main": {"host_cores": 1}})
    use(pooler)
    pooler.wait_pool(sv_idle=4)
    assert size(pooler) == 4


# --- changes ---------------------------------------------------------------------------------


def test_reload_makes_a_pool_smaller_without_cutting_a_client(auto):
    pooler = auto()
    with holding(pooler, 16) as clients:
        pooler.databases["main"]["host_cores"] = 2
        pooler.reload()
        settle(pooler, 8)
        for client in clients:
            client.execute("SELECT 1")
            client.execute("COMMIT")
    pooler.wait_pool(sv_active=0, sv_idle=8)


def test_reload_makes_room_for_clients_that_wait(auto):
    pooler = auto(databases={"main": {"host_cores": 1}})
    with holding(pooler, 4), pooler.client() as waiting:
        waiting.send(wire.query("SELECT 1"))
        pooler.wait_pool(cl_waiting=1)
        pooler.databases["main"]["host_cores"] = 2
        pooler.reload()
        waiting.read_until("Z")


def test_pool_with_a_number_keeps_its_servers_when_it_becomes_auto(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_round_robin": 1},
        databases={"main": {"pool_size": 12, "host_cores": 3}},
    )
    with holding(pooler, 12) as clients:
        pids = {client.execute("SELECT pg_backend_pid()").fetchone()[0] for client in clients}
    pooler.wait_pool(sv_idle=12)
    pooler.databases["main"]["pool_size"] = "auto"
    pooler.reload()
    settle(pooler, 12)
    with holding(pooler, 12) as clients:
        assert pids == {client.execute("SELECT pg_backend_pid()").fetchone()[0] for client in clients}
    pooler.databases["main"]["pool_size"] = -1
    pooler.settings["default_pool_size"] = 3
    pooler.reload()
    assert not pooler.show("SIZING")
    pooler.wait_pool(sv_idle=3)


def test_connection_limit_of_a_role_is_read_again_by_a_reload(auto, cluster):
    pooler = auto()
    use(pooler)
    assert size(pooler) == 16
    cluster.ask("main", "ALTER ROLE app CONNECTION LIMIT 5")
    try:
        with holding(pooler, 1) as (client,):
            # All servers are in use: the first one that is released is asked.
            pooler.reload()
            client.execute("COMMIT")
            settle(pooler, 5)
            client.execute("SELECT 1")
    finally:
        cluster.ask("main", "ALTER ROLE app CONNECTION LIMIT -1")


def test_restart_of_the_server_with_fewer_connections(auto, private_cluster):
    pooler = auto(
        {"server_login_retry": "1"}, cluster=private_cluster, databases={"main": {"host_cores": 40}}
    )
    use(pooler)
    assert size(pooler) == 87
    private_cluster.sql("ALTER SYSTEM SET max_connections = 40")
    private_cluster.restart()
    pooler.wait_pool(sv_idle=0)
    use(pooler)
    row = sizing(pooler)
    assert (row["pool_size"], row["max_connections"]) == ("33", "40")
    assert len(pooler.lines("pool_size = auto is 33: ")) == 1


def test_pool_that_moves_to_another_host_has_its_size(auto, private_cluster, cluster):
    private_cluster.sql("ALTER SYSTEM SET max_connections = 30")
    private_cluster.restart()
    pooler = auto(
        {"server_login_retry": "1", "host_check_interval": "1"},
        databases={
            "main": {
                "host": f"{private_cluster.host},{cluster.host}",
                "port": f"{private_cluster.port},{cluster.port}",
                "load_balance_hosts": "disable",
                "host_cores": 100,
            }
        },
    )
    use(pooler)
    # A watch of each host is pgusher's own, and among the tenth for others.
    assert size(pooler) == 24
    private_cluster.stop()
    pooler.wait_pool(sv_idle=0)
    use(pooler)
    settle(pooler, 87)


def test_pool_of_a_server_that_accepts_no_more_is_smaller_for_a_while(auto, private_cluster):
    private_cluster.sql("ALTER SYSTEM SET max_connections = 20")
    private_cluster.restart()
    pooler = auto(
        {"server_login_retry": "1"}, cluster=private_cluster, databases={"main": {"host_cores": 4}}
    )
    pooler.allow("FATAL")
    with contextlib.ExitStack() as others:
        # Of 17 connections for common users 7 are left, one of which is the harness's own.
        for _ in range(10):
            others.enter_context(private_cluster.connect("main", "alice"))
        with holding(pooler, 6), pooler.client() as waiting:
            assert size(pooler) == 15
            # The next one but one is refused.
            waiting.send(wire.query("SELECT 1"))
            more = pooler.client()
            more.send(wire.query("SELECT 1"))
            wait_until(lambda: sizing(pooler)["decided_by"] == "refusal")
            assert size(pooler) in (6, 7)
            assert "accepts no more now than" in sizing(pooler)["why"]


def test_takeover_keeps_size_and_servers(auto):
    pooler = auto()
    with holding(pooler, 12):
        pass
    pooler.wait_pool(sv_idle=12)
    pids = {row["remote_pid"] for row in pooler.servers()}
    pooler.take_over()
    pooler.close_console()
    assert size(pooler) == 16
    wait_until(lambda: sizing(pooler)["why"] == "4 cores (host_cores) * 4 = 16")
    assert {row["remote_pid"] for row in pooler.servers()} == pids


def test_pause_and_suspend_leave_the_size(auto):
    pooler = auto()
    use(pooler)
    for stop in ("PAUSE", "SUSPEND"):
        pooler.command(stop)
        assert size(pooler) == 16
        pooler.command("RELOAD")
        pooler.command("RESUME")
        use(pooler)
        settle(pooler, 16)


def test_host_that_is_down_at_the_start(auto, private_cluster):
    pooler = auto({"server_login_retry": "1"}, cluster=private_cluster)
    private_cluster.stop()
    with pooler.raw() as client:
        client.send(wire.startup({"user": "app", "database": "main"}))
        pooler.wait_pool(cl_waiting=1)
        row = sizing(pooler)
        assert (row["pool_size"], row["host"]) == ("4", None)
        assert row["why"] == "not known yet: no server has logged in"
        private_cluster.start()
        client.read_until("Z")
    wait_until(lambda: size(pooler) == 16)


# --- mistakes --------------------------------------------------------------------------------


def test_misspelt_word_has_a_hint(new_pooler):
    pooler = new_pooler(databases={"main": {"pool_size": "atuo"}}, start=False)
    assert pooler.run_to_end("--check") == 1
    allowed = "allowed is auto, or a whole number, at least -1"
    assert f"invalid pool_size: atuo: {allowed}: did you mean auto?" in pooler.log()
    pooler = new_pooler()
    for text, hint in (
        ("default_pool_size = atuo", "did you mean auto"),
        ("auto_pool_max = 3", "at least 4"),
    ):
        with pytest.raises(ServerError, match="SET failed"):
            pooler.command(f"SET {text}")
        pooler.wait_log(hint)
    pooler.command("SET default_pool_size = auto")
    use(pooler)
    assert size(pooler) >= 4


def test_no_server_is_asked_for_a_pool_with_a_number(new_pooler):
    asked = []

    def script(connection):
        connection.login()
        connection.serve(lambda _, sql: asked.append(sql))

    with contextlib.closing(Fake(script)) as server:
        pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
        use(pooler)
        assert asked == ["SELECT 1"]
        assert not pooler.show("SIZING")


# --- odd servers -----------------------------------------------------------------------------


class Fake(FakeServer):
    """A fake server that contextlib.closing() stops."""

    close = FakeServer.stop


def row(*values):
    """An answer of one row."""
    names = [f"c{number}" for number in range(len(values))]
    return (
        wire.row_description(*names) + wire.data_row(*values) + wire.command_complete("SELECT 1")
        + wire.ready()
    )


def refusal(sqlstate):
    """An answer that is an error."""
    return wire.error(sqlstate) + wire.ready()


def tells(*values):
    """The answer to the question for connections, which says that files can be read; then to that."""
    return {QUESTION: row(*values[:5], "t"), "pg_read_file(": row(*values[5:])}


def tells_badly(connections):
    """The answer to the question for connections, where max_connections is this text."""
    return {QUESTION: row(connections, "0", None, None, None, "f")}


def only(answer):
    """This answer to the question for connections."""
    return {QUESTION: answer}


FULL = ("50", "3", "2", "-1", "-1")
NO_FILES = ("50", "3", "2", "-1", "-1", "f")

ODD = {
    "usual": (tells(*FULL, "0-7\n", None), "32", "server"),
    "quota": (tells(*FULL, "0-7\n", "200000 100000\n"), "8", "server"),
    "limit of the role": (tells("50", "3", None, "6", "9", "0-7\n", "max 100000"), "6", "server"),
    "reserved above all": (tells("50", "99", "0", None, None, "0-7", None), "1", "server"),
    "odd cores": (tells(*FULL, "9-0", "x"), None, None),
    "NULL for files": (tells(*FULL, None, None), None, None),
    "files refused": ({QUESTION: row(*FULL, "t"), "pg_read_file(": refusal("42501")}, None, None),
    "connections for files": ({QUESTION: row(*FULL, "t"), "pg_read_file(": row(*FULL, "t")}, None, None),
    "zero": (tells_badly("0"), None, None),
    "negative": (tells_badly("-7"), None, None),
    "huge": (tells_badly("99999999999999999999"), None, None),
    "above what PostgreSQL has": (tells_badly("262144"), None, None),
    "text": (tells_badly("many"), None, None),
    "empty": (tells_badly(""), None, None),
    "NULL": (only(row(None, None, None, None, None, None)), None, None),
    "one column": (only(row("100")), None, None),
    "three columns": (only(row("100", "3", "0")), None, None),
    "no row": (only(wire.command_complete("SELECT 0") + wire.ready()), None, None),
    "no answer at all": (only(wire.message("I") + wire.ready()), None, None),
    "error": (only(refusal("42501")), None, None),
    "unknown function": (only(refusal("42883")), None, None),
    "second row, of which nothing is taken": (
        only(
            wire.data_row(*NO_FILES) + wire.data_row("9", "3", "2", "1", "1", "t")
            + wire.command_complete("SELECT 2") + wire.ready()
        ), None, None,
    ),
}


def scripted(answers):
    """A script that gives these answers to questions that have the keys in their texts."""

    def answer(_, sql):
        return next((said for key, said in answers.items() if key in str(sql)), None)

    def script(connection):
        connection.login()
        connection.serve(answer)

    return script


@pytest.mark.parametrize("name", ODD)
def test_odd_answer_of_a_server(auto, name):
    answers, expected, source = ODD[name]
    with contextlib.closing(Fake(scripted(answers))) as server:
        pooler = auto(databases={"main": server.target()})
        use(pooler)
        found = sizing(pooler)
        if expected:
            assert (found["pool_size"], found["cores_from"]) == (expected, source)
        else:
            # The server is on this machine, so at least the cores are known.
            assert found["cores_from"] == "this machine"
            assert found["decided_by"] in ("cores", "max_connections", "least")
        assert 1 <= int(found["pool_size"]) <= 100
        use(pooler)


def test_server_that_refuses_the_whole_question_tells_a_part(auto):
    def answer(connection, sql):
        if QUESTION not in str(sql):
            return None
        return refusal("42501") if "rolconnlimit" in sql else row("50", "3")

    def script(connection):
        connection.login()
        connection.serve(answer)

    with contextlib.closing(Fake(script)) as server:
        pooler = auto(databases={"main": server.target(host_cores=20)})
        use(pooler)
        found = sizing(pooler)
        assert (found["pool_size"], found["max_connections"]) == ("42", "50")
        use(pooler)


def test_server_that_closes_at_the_question_is_used_all_the_same(auto):
    def answer(connection, sql):
        if QUESTION in str(sql):
            raise Disconnected()
        return None

    def script(connection):
        connection.login()
        connection.serve(answer)

    with contextlib.closing(Fake(script)) as server:
        pooler = auto({"server_login_retry": "0"}, databases={"main": server.target()})
        use(pooler)
        # Once for all, once for less.
        assert server.count == 3
        use(pooler)
        assert server.count == 3


def test_error_that_passes_is_not_taken_for_an_answer(auto):
    answers = [refusal("57014"), row(*NO_FILES)]

    def script(connection):
        connection.login()
        connection.serve(lambda _, sql: answers.pop(0) if QUESTION in str(sql) else None)

    with contextlib.closing(Fake(script)) as server:
        pooler = auto(databases={"main": server.target(host_cores=5)})
        use(pooler)
        assert size(pooler) == 4
        settle(pooler, 20)
