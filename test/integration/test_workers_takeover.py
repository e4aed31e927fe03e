# SPDX-License-Identifier: ISC
"""What concerns the whole process while several workers serve: takeovers, also to another number of
workers, SUSPEND, PAUSE, KILL and the ends of the process."""

import contextlib
import shutil
import signal
import subprocess
import threading

import pytest

from support import wire
from support.clients.metrics_page import ask
from support.clients.raw import Closed, RawClient, ServerError, cancel
from support.process import HOST, as_service, free_port, wait_until
from support.servers.cluster import program

NAMES = [f"db{number}" for number in range(6)]
SCRIPT = """\\set n random(1, 5)
BEGIN;
SELECT :n + 1;
SELECT repeat('x', 2000);
COMMIT;
SELECT 'load' || :n;
"""
PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")


@pytest.fixture
def make(new_pooler):
    """Make a daemon with so many workers and six databases, all of them the cluster's `main`."""

    def start(workers=3, settings=None, program=None, **options):
        options.setdefault("databases", {name: {"dbname": "main"} for name in NAMES})
        values = {
            "pool_mode": "transaction", "workers": workers, "default_pool_size": 3,
            "max_client_conn": 1000, "server_tls_sslmode": "disable"}
        pooler = new_pooler({**values, **(settings or {})}, start=False, **options)
        return pooler.start(program=program)

    return start


def take_over(pooler, workers):
    pooler.settings["workers"] = workers
    pooler.write_config()
    pooler.close_console()
    pooler.take_over()


class Load:
    """A pgbench for each database, for a minute, or until it is checked."""

    def __init__(self, pooler, clients=4, mode="prepared"):
        self.pooler = pooler
        script = pooler.write("script", SCRIPT)
        # A thread each: pgbench waits for the answer to a Parse without serving other clients.
        self.running = {
            name: subprocess.Popen(
                as_service(
                    [program("pgbench"), "-n", "-c", str(clients), "-j", str(clients)]
                    + ["-T", "120", "-M", mode, "-f", script, "-h", HOST]
                    + ["-p", str(pooler.port), "-U", "app", name]),
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd="/")
            for name in NAMES
        }
        self.goes_on()

    def _totals(self):
        return totals(self.pooler)

    def goes_on(self, count=20):
        """Wait until clients of each database have had some more transactions."""
        before = self._totals()
        wait_until(
            lambda: all(
                after >= before.get(name, 0) + count for name, after in self._totals().items()
                if name in NAMES) and set(NAMES) <= set(self._totals()),
            60, "transactions in each database")

    def check(self):
        """All clients are served, and none has seen an error."""
        self.goes_on()
        for process in self.running.values():
            process.send_signal(signal.SIGALRM)  # as when the time of -T is over
        for process in self.running.values():
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0, out
            assert "number of failed transactions: 0 " in out

    def end(self):
        """The clients may have lost their connections."""
        for process in self.running.values():
            process.kill()
            process.communicate()


@pytest.fixture
def load():
    with contextlib.ExitStack() as stack:

        def start(*arguments, **options):
            made = Load(*arguments, **options)
            stack.callback(made.end)
            return made

        yield start


def totals(pooler):
    """The number of transactions of each database."""
    return {row["database"]: int(row["xact_count"]) for row in pooler.show("STATS_TOTALS")}


def one_of_each(pooler):
    return {name: pooler.client(database=name) for name in NAMES}


def prepare(client):
    client.send(wire.parse("SELECT 'prepared ' || $1::text", "s"), wire.sync())
    client.read_until("Z")


def execute(client):
    client.send(wire.bind(["x"], "s"), wire.execute(), wire.sync())
    return client.checked().value


def check_cancel(pooler, client):
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(
        lambda: "pg_sleep" in str(pooler.cluster.backends(state="active")), what="the query to run")
    cancel(pooler.address, client.key)
    assert client.result().error.sqlstate == "57014"


# --- takeover --------------------------------------------------------------------------------------


@pytest.mark.parametrize("before, after", [(1, 4), (4, 1), (3, 3), (2, 3)])
def test_clients_under_load_notice_no_takeover(make, load, before, after):
    pooler = make(before)
    clients = one_of_each(pooler)
    for client in clients.values():
        prepare(client)
    sessions = one_of_each(pooler)
    backends = {}
    for name, client in sessions.items():
        client.query("BEGIN")
        backends[name] = client.value("SELECT pg_backend_pid()")
    bench = load(pooler)
    for workers in (after, before):
        had = totals(pooler)
        take_over(pooler, workers)
        assert pooler.setting("workers") == str(workers)
        has = totals(pooler)
        assert {name for name in had if has.get(name, 0) < had[name]} == set()
        for name in NAMES:
            assert execute(clients[name]) == "prepared x"
            assert sessions[name].value("SELECT pg_backend_pid()") == backends[name]
        bench.goes_on()
    for client in sessions.values():
        assert client.query("COMMIT").tag == "COMMIT"
    bench.check()
    for client in clients.values():
        check_cancel(pooler, client)


def test_a_text_of_several_workers_keeps_its_numbers(make):
    """Servers have it by the number that their worker has given it."""
    pooler = make(3, {"default_pool_size": 1})
    clients = one_of_each(pooler)
    for client in clients.values():
        prepare(client)
        assert execute(client) == "prepared x"
    names = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%prepared%'"
    for workers in (1, 4, 2, 1):
        take_over(pooler, workers)
        for client in clients.values():
            assert execute(client) == "prepared x"
            assert client.value(names) == "1"
    # A new name for the text may be for either number.
    for name in NAMES:
        other = pooler.client(database=name)
        prepare(other)
        assert execute(other) == "prepared x"
        assert execute(clients[name]) == "prepared x"
    take_over(pooler, 3)
    for client in clients.values():
        assert execute(client) == "prepared x"


COUNTERS = (
    "pgusher_errors", "pgusher_client_logins", "pgusher_auth_failed", "pgusher_server_errors",
    "pgusher_login_seconds")


def test_counts_of_all_workers_are_taken_over(make):
    """Logins that fail are counted by the worker that has them."""
    port = free_port()
    pooler = make(4, {"metrics_port": port})
    for name in NAMES:
        for _ in range(3):
            pooler.refused(user="nobody", database=name)
        client = pooler.client(database=name)
        with pytest.raises(ServerError):
            client.query("SELECT 1 / 0")
        client.close()

    def counted():
        with contextlib.suppress(ConnectionRefusedError):  # after a takeover, for a moment
            lines = ask(port).text.splitlines()
            samples = [line.rsplit(" ", 1) for line in lines if line.startswith(COUNTERS)]
            return {name: float(value) for name, value in samples}

    page = wait_until(counted)
    for workers in (1, 3, 4):
        take_over(pooler, workers)
        after = wait_until(counted)
        assert {key for key in page if after.get(key, -1) < page[key]} == set()


def test_automatic_databases_find_their_homes(make):
    pooler = make(1, databases={"*": {"dbname": "main"}})
    clients = one_of_each(pooler)
    for client in clients.values():
        assert client.query("SELECT 1").value == "1"
    for workers in (4, 3, 1):
        take_over(pooler, workers)
        for name, client in clients.items():
            assert client.query("SELECT 2").value == "2"
            assert pooler.client(database=name).query("SELECT 3").value == "3"
        assert len(pooler.show("POOLS", user="app")) == len(NAMES)


def test_pauses_are_taken_over(make):
    pooler = make(3)
    clients = one_of_each(pooler)
    for name in NAMES[::2]:
        pooler.command(f"PAUSE {name}")
    for client in clients.values():
        client.send(wire.query("SELECT 'after'"))
    for workers in (1, 4):
        take_over(pooler, workers)
        paused = {row["name"] for row in pooler.show("DATABASES", paused=1)}
        assert paused == set(NAMES[::2])
    for name in NAMES[1::2]:
        assert clients[name].result().value == "after"
    for name in NAMES[::2]:
        pooler.wait_pool(database=name, cl_waiting=1)
        pooler.command(f"RESUME {name}")
        assert clients[name].result().value == "after"


@pytest.mark.parametrize("after", [3, 1])
def test_clients_that_connect_meanwhile_are_served(make, after):
    pooler = make(3)
    ends = threading.Event()
    failed, served = [], [0] * 8

    def connect(number):
        while not ends.is_set():
            try:
                with RawClient(pooler.address, timeout=60) as client:
                    client.login(database=NAMES[served[number] % len(NAMES)])
                    assert client.value("SELECT 1") == "1"
                served[number] += 1
            except Exception as error:  # noqa: BLE001
                failed.append(repr(error))
                return

    threads = [threading.Thread(target=connect, args=(number,)) for number in range(len(served))]
    for thread in threads:
        thread.start()
    try:
        for workers in (after, 3, after):
            take_over(pooler, workers)
            had = list(served)
            wait_until(
                lambda: failed or all(now > before + 2 for now, before in zip(served, had)),
                60, "logins")
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert failed == []


def test_a_takeover_that_fails_leaves_all_workers_at_work(make, load):
    pooler = make(3)
    bench = load(pooler)
    for _ in range(3):
        with pooler.superuser() as console:
            console.send(wire.query("HANDOVER 1"))
            console.read_until("Z")
        pooler.wait_log("the takeover has failed, going on")
        bench.goes_on()
    bench.check()


@pytest.mark.skipif(not PGBOUNCER, reason="no PgBouncer installed")
def test_from_pgbouncer(make):
    pooler = make(None, program=PGBOUNCER)
    clients = one_of_each(pooler)
    backends = {}
    for name, client in clients.items():
        client.query("BEGIN")
        backends[name] = client.value("SELECT pg_backend_pid()")
    take_over(pooler, 4)
    for name, client in clients.items():
        assert client.value("SELECT pg_backend_pid()") == backends[name]
        client.query("COMMIT")
        check_cancel(pooler, client)


# --- commands ----------------------------------------------------------------------------------------


def test_suspend_and_resume_under_load(make, load):
    pooler = make()
    bench = load(pooler)
    for _ in range(3):
        pooler.command("SUSPEND", timeout=60)
        before = totals(pooler)
        # No client gets an answer until the RESUME.
        assert pooler.show("STATE", key="suspended")[0]["value"] == "yes"
        assert totals(pooler) == before
        pooler.command("RESUME")
        bench.goes_on()
    bench.check()


def test_suspend_ends_with_its_console(make, load):
    pooler = make()
    bench = load(pooler)
    pooler.command("SUSPEND", timeout=60)
    pooler.close_console()
    pooler.wait_log("admin disappeared when suspended, doing RESUME")
    bench.check()


def test_pause_and_reconnect_under_load(make, load):
    pooler = make()
    bench = load(pooler)
    for _ in range(3):
        pooler.command("PAUSE", timeout=60)
        assert pooler.servers() == []
        pooler.command("RESUME")
        bench.goes_on()
        had = {row["id"] for row in pooler.servers()}
        pooler.command("RECONNECT")
        for name in NAMES:
            pooler.command(f"WAIT_CLOSE {name}", timeout=60)
        assert not had & {row["id"] for row in pooler.servers()}
        bench.goes_on()
    bench.check()


def test_cancel_of_a_pause_resumes_all_workers(make, load):
    pooler = make()
    bench = load(pooler)
    for _ in range(3):
        busy = one_of_each(pooler)
        for client in busy.values():
            client.query("BEGIN")
            client.query("SELECT 1")
        console = pooler.console()
        console.send(wire.query("PAUSE"))
        wait_until(lambda: pooler.show("STATE", key="paused")[0]["value"] == "yes")
        cancel(pooler.address, console.key)
        wait_until(lambda: pooler.show("STATE", key="paused")[0]["value"] == "no")
        for client in busy.values():
            client.query("COMMIT")
            client.close()
        bench.goes_on()
        console.close()
    bench.check()


def test_disabled_databases_are_refused_by_all_workers(make):
    pooler = make()
    for name in NAMES:
        pooler.command(f"DISABLE {name}")
    for name in NAMES:
        assert "disabled" in pooler.refused(database=name).text
    for name in NAMES:
        pooler.command(f"ENABLE {name}")
    for client in one_of_each(pooler).values():
        assert client.value("SELECT 1") == "1"


def test_storm_of_kills(make):
    """Clients are closed in the middle of anything, and can connect again at once."""
    pooler = make()
    ends = threading.Event()
    served, odd = [0] * 12, []

    def work(number):
        while not ends.is_set():
            try:
                with RawClient(pooler.address, timeout=60) as client:
                    client.login(database=NAMES[number % len(NAMES)])
                    while not ends.is_set():
                        client.query("BEGIN")
                        assert client.value("SELECT 41 + 1") == "42"
                        client.query("COMMIT")
                        served[number] += 1
            except (Closed, ServerError, OSError):
                continue
            except Exception as error:  # noqa: BLE001
                odd.append(repr(error))
                return

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(served))]
    for thread in threads:
        thread.start()
    try:
        for turn in range(30):
            name = NAMES[turn % len(NAMES)]
            pooler.command(f"KILL {name}")
            pooler.command(f"RESUME {name}")
            for row in pooler.clients()[:3]:
                with contextlib.suppress(ServerError):
                    pooler.command(f"KILL_CLIENT {row['id']}")
        had = list(served)
        wait_until(
            lambda: odd or all(now > before + 5 for now, before in zip(served, had)), 60,
            "clients of all databases")
    finally:
        ends.set()
        for thread in threads:
            thread.join()
    assert odd == []


# --- ends --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["", "WAIT_FOR_SERVERS", "WAIT_FOR_CLIENTS"])
def test_shutdown_under_load(make, load, mode):
    pooler = make()
    bench = load(pooler)
    with contextlib.suppress(Closed):  # its console is closed too
        pooler.command(f"SHUTDOWN {mode}")
    pooler.close_console()
    if mode == "WAIT_FOR_CLIENTS":
        for process in bench.running.values():
            process.send_signal(signal.SIGALRM)
        for process in bench.running.values():
            out, _ = process.communicate(timeout=60)
            assert process.returncode == 0, out
    assert pooler.wait_exit(30) == 0


def test_drain_lets_clients_of_all_workers_finish(make):
    pooler = make(settings={"shutdown_timeout": 20})
    busy, idle = one_of_each(pooler), one_of_each(pooler)
    for client in busy.values():
        client.query("BEGIN")
    pooler.signal(signal.SIGTERM)
    for client in idle.values():
        assert client.fatal(30).sqlstate == "57P01"
    for client in busy.values():
        assert client.query("SELECT 1").value == "1"
        client.query("COMMIT")
        assert client.fatal(30).sqlstate == "57P01"
    assert pooler.wait_exit(30) == 0
