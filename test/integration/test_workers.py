# SPDX-License-Identifier: ISC
"""Several workers: threads with an event loop each, one set of databases, limits and commands."""

import os

import pytest

from support import wire
from support.clients.raw import ServerError, cancel
from support.process import run, wait_until
from support.servers.pooler import binary

WORKERS = 3
NAMES = [f"db{number}" for number in range(6)]
SLEEP = "SELECT pg_sleep(60)"


@pytest.fixture
def many(new_pooler):
    """Make a daemon with three workers and six databases, all of them the cluster's `main`."""

    def make(settings=None, **options):
        options.setdefault("databases", {name: {"dbname": "main"} for name in NAMES})
        return new_pooler(
            {"pool_mode": "transaction", "workers": WORKERS, **(settings or {})}, **options)

    return make


def threads(pooler):
    """The names of the daemon's threads that serve clients, besides the first one."""
    folder = f"/proc/{pooler.process.pid}/task"
    names = []
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/comm") as file:
            names.append(file.read().strip())
    return [name for name in names if name.startswith("pgusher-work")]


@pytest.mark.setting("workers")
def test_each_worker_has_a_thread_and_all_databases_are_served(many):
    pooler = many()
    # A thread names itself.
    wait_until(lambda: len(threads(pooler)) == WORKERS - 1)
    for name in NAMES:
        for _ in range(WORKERS):  # accepted by each worker
            assert pooler.client(database=name).query("SELECT 42").value == "42"
    assert sorted({row["database"] for row in pooler.show("POOLS")}) == [*NAMES, "pgbouncer"]


def test_one_worker_has_no_thread_of_its_own(new_pooler):
    assert threads(new_pooler({"workers": 1})) == []


def processors(pooler, worker=0):
    """The processors that this worker is bound to. The first one is the main thread."""
    for thread in os.listdir(f"/proc/{pooler.process.pid}/task"):
        with open(f"/proc/{pooler.process.pid}/task/{thread}/status") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        if status["Name"] == f"pgusher-work-{worker}" or (
                worker == 0 and int(thread) == pooler.process.pid):
            return status["Cpus_allowed_list"]
    raise AssertionError(f"no worker {worker}")


@pytest.mark.setting("cpu_affinity")
def test_workers_are_bound_to_processors_in_turn(many):
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    pooler = many({"cpu_affinity": f"{last}, {first}"})
    pooler.wait_log(f"cpu_affinity: 3 workers, on processors {last} {first} {last}$")
    assert [processors(pooler, worker) for worker in range(3)] == [str(last), str(first), str(last)]
    assert pooler.client(database=NAMES[0]).query("SELECT 1").value == "1"


def test_a_single_worker_is_bound_too(new_pooler):
    last = max(os.sched_getaffinity(0))
    pooler = new_pooler({"workers": 1, "cpu_affinity": last})
    pooler.wait_log(f"cpu_affinity: 1 worker, on processor {last}$")
    assert processors(pooler) == str(last)


def test_helper_threads_of_a_bound_worker_run_anywhere(new_pooler):
    last = max(os.sched_getaffinity(0))
    pooler = new_pooler(
        {"workers": 1, "cpu_affinity": last, "auth_type": "scram-sha-256"},
        auth={"app": "a password", "admin": ""})
    pooler.wait_log("cpu_affinity: ")
    assert pooler.client(password="a password").value("SELECT 1") == "1"
    folder, everywhere = f"/proc/{pooler.process.pid}/task", os.sched_getaffinity(0)

    def free_threads():
        return [thread for thread in os.listdir(folder) if os.sched_getaffinity(int(thread)) == everywhere]

    # A helper has derived keys. ThreadSanitizer's own thread stays bound.
    wait_until(free_threads)


@pytest.mark.parametrize("value, problem", [
    ("1023", "this process may use no processor 1023"), ("0-", "allowed is numbers and ranges")])
def test_a_processor_that_is_not_there_is_a_mistake(new_pooler, value, problem):
    pooler = new_pooler({"cpu_affinity": value}, start=False)
    pooler.allow("cpu_affinity|cannot load config file")
    assert pooler.run_to_end() == 1
    assert pooler.lines(f"cpu_affinity.*{problem}")
    result = run([binary(), "--check", pooler.config_path], check=False)
    assert result.returncode == 1
    assert problem in result.stdout


def test_counts_of_all_workers_are_shown_together(many):
    pooler = many()
    clients = [pooler.client(database=name) for name in NAMES for _ in range(2)]
    for client in clients:
        client.query("SELECT 1")
    rows = {row["database"]: row for row in pooler.show("STATS_TOTALS")}
    assert [rows[name]["query_count"] for name in NAMES] == ["2"] * len(NAMES)
    assert len(pooler.show("CLIENTS", user="app")) == len(clients)
    assert len(pooler.show("SERVERS")) == len(NAMES)


def busiest(pooler, database):
    """The thread that used the most processor time while this database was in use."""
    def times():
        folder, found = f"/proc/{pooler.process.pid}/task", {}
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/stat") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if name.startswith("pgusher"):
                found[name] = sum(map(int, rest.split()[11:13]))
        return found

    before = times()
    client = pooler.client(database=database)

    def spent():
        for _ in range(2000):
            client.query("SELECT 1")
        now = times()
        return max((now[name] - before[name], name) for name in now)

    wait_until(lambda: spent()[0] >= 8, 30, "a thread to be busy")
    return spent()[1]


@pytest.mark.setting("databases.worker")
def test_database_is_served_by_the_worker_that_it_names(many):
    pooler = many(databases={
        "one": {"dbname": "main", "worker": 1},
        "two": {"dbname": "main", "worker": 2},
        "again": {"dbname": "main", "worker": 1 + WORKERS},
        "*": {"dbname": "main", "worker": 2},
    })
    assert busiest(pooler, "one") == "pgusher-work-1"
    assert busiest(pooler, "two") == "pgusher-work-2"
    assert busiest(pooler, "again") == "pgusher-work-1"
    assert busiest(pooler, "automatic") == "pgusher-work-2"


def test_automatic_databases_have_one_home(many):
    pooler = many(databases={"*": {"dbname": "main"}})
    clients = [pooler.client(database=name) for name in NAMES for _ in range(4)]
    for client in clients:
        assert client.query("SELECT 1").value == "1"
    assert len(pooler.show("POOLS", user="app")) == len(NAMES)


@pytest.mark.parametrize("databases", [["main"], ["main", "*"]])
def test_the_console_is_at_the_first_worker_by_both_names(many, databases):
    pooler = many(databases={name: {} for name in databases})
    for name in ("pgbouncer", "pgusher"):
        for _ in range(WORKERS):  # accepted by each worker
            assert pooler.client("admin", name, unix=False).query("SHOW DATABASES").rows


def test_cancel_finds_its_query_at_any_worker(many):
    pooler = many()
    for name in NAMES:
        for _ in range(WORKERS):
            client = pooler.client(database=name)
            client.send(wire.query(SLEEP))
            # PostgreSQL drops a request for a query that it has not received yet.
            wait_until(lambda: pooler.cluster.backends(state="active", query=SLEEP))
            cancel(pooler.address, client.key)
            assert client.result().error.is_("ERROR", "57014", "canceling statement due to user request")
            client.close()


def test_commands_act_on_databases_of_all_workers(many):
    pooler = many()
    clients = {name: pooler.client(database=name) for name in NAMES}
    for client in clients.values():
        client.query("SELECT 1")
    pooler.command("PAUSE")
    assert all(row["paused"] == "0" for row in pooler.show("DATABASES"))
    for client in clients.values():
        client.send(wire.query("SELECT 'after'"))
    for name in NAMES:
        pooler.wait_pool(database=name, cl_waiting=1)
    assert pooler.show("SERVERS") == []
    pooler.command("RESUME")
    for client in clients.values():
        assert client.result().value == "after"
    for name in NAMES:
        pooler.command(f"KILL {name}")
        with pytest.raises(Exception):
            clients[name].query("SELECT 1")
        pooler.command(f"RESUME {name}")
        assert pooler.client(database=name).query("SELECT 1").value == "1"


def test_reload_changes_databases_of_all_workers(many):
    pooler = many()
    clients = {name: pooler.client(database=name) for name in NAMES}
    for client in clients.values():
        client.query("SELECT 1")
    gone = NAMES[:3]
    for name in gone:
        del pooler.databases[name]
    pooler.databases["new"] = {"dbname": "main"}
    pooler.write_config()
    pooler.command("RELOAD")
    for name in gone:
        with pytest.raises(Exception):
            clients[name].query("SELECT 1")
    for name in NAMES[3:]:
        assert clients[name].query("SELECT 1").value == "1"
    assert pooler.client(database="new").query("SELECT 1").value == "1"


def test_client_limit_holds_for_the_process(many):
    pooler = many({"max_client_conn": 9})
    clients = [pooler.client(database=NAMES[number % len(NAMES)]) for number in range(9)]
    assert pooler.refused(database=NAMES[0]).is_(
        "FATAL", "53300", "no more connections allowed (max_client_conn)")
    clients.pop().close()
    wait_until(lambda: len(pooler.show("CLIENTS", user="app")) == 8, 5, "the client to be gone")


def test_shutdown_waits_for_clients_of_all_workers(many):
    pooler = many()
    clients = [pooler.client(database=name) for name in NAMES]
    for client in clients:
        client.query("BEGIN")
    pooler.signal(15)
    pooler.wait_log("got SIGTERM")
    for client in clients:
        assert client.query("SELECT 1").value == "1"
        client.query("COMMIT")
        client.close()
    assert pooler.wait_exit() == 0


def test_a_command_makes_an_automatic_database_at_its_home(many):
    pooler = many(databases={"*": {"dbname": "main", "worker": 1}})
    pooler.command("PAUSE unseen")
    assert [row["names"] for row in pooler.show("WORKERS")] == ["", "unseen", ""]
    pooler.command("RESUME unseen")
    assert pooler.client(database="unseen").value("SELECT 1") == "1"
    assert [row["names"] for row in pooler.show("WORKERS")] == ["", "unseen", ""]


def test_silent_logins_of_all_workers_make_room(many):
    """Accepted by each worker in turn, and dropped wherever they are when clients need their places."""
    pooler = many({"max_client_conn": 8})
    silent = [pooler.raw() for _ in range(6)]
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) == len(silent))
    # Half a second is theirs; from then on each client takes the place of one. The console has one too.
    clients = []
    for number in range(7):
        def comes_in():
            try:
                clients.append(pooler.client(database=NAMES[number % len(NAMES)]))
            except ServerError:
                return False
            return True

        wait_until(comes_in)
    assert [client.query("SELECT 1").value for client in clients] == ["1"] * 7


def test_many_silent_logins_make_room_for_one_client(many):
    """max_client_conn refuses none of them as long as they say nothing: all that are too many are dropped."""
    pooler = many({"max_client_conn": 5})
    silent = [pooler.raw() for _ in range(30)]
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) == len(silent))
    # Half a second is theirs.
    assert silent[-1].silent(0.6)
    with pooler.client(database=NAMES[0]) as client:
        assert client.value("SELECT 1") == "1"
    wait_until(lambda: len(pooler.show("SOCKETS", state="cl_login")) < 5)
