# SPDX-License-Identifier: ISC
"""Scenes from users' reports: whole loads, checked by counts; test/bench measures speed."""

import re
import resource
import signal
import subprocess
import threading

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import as_service, run, wait_until
from support.servers.cluster import Cluster, program

POOL = 20


@pytest.fixture(scope="module", autouse=True)
def many_descriptors():
    """Enough descriptors for a thousand clients here and in the daemon."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 8192 if hard == resource.RLIM_INFINITY else min(8192, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def bench_cluster():
    """PostgreSQL with max_connections = 100 and pgbench's tables in main."""
    cluster = Cluster()
    run(
        [program("pgbench"), "-i", "-q", "-s", "5", "-h", cluster.host, "-p", str(cluster.port)]
        + ["-U", "app", "main"]
    )
    assert cluster.value("SHOW max_connections") == "100"
    yield cluster
    cluster.destroy()


@pytest.fixture
def bench_pooler(new_pooler, bench_cluster):
    return new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": POOL,
            "max_client_conn": 2000,
            "log_connections": 0,
            "log_disconnections": 0,
        },
        cluster=bench_cluster,
    )


class Watcher:
    """Keeps the largest number of backends ever seen."""

    def __init__(self, cluster):
        self.most = 0
        self._cluster = cluster
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def _watch(self):
        sql = (
            "SELECT count(*) AS n FROM pg_stat_activity WHERE backend_type = 'client backend'"
            " AND usename <> 'harness'"
        )
        with self._cluster.connect() as connection:
            while not self._stop.wait(0.01):
                self.most = max(self.most, connection.execute(sql).fetchone()["n"])

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        self._thread.join()


def pgbench(pooler, *options, timeout=120):
    """Run pgbench through the pooler; returns its output. It must succeed and lose nothing."""
    done = run(
        [program("pgbench"), "-n", "-h", pooler.address[0], "-p", str(pooler.port), "-U", "app"]
        + [*options, "main"],
        timeout=timeout,
        check=False,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == 0, printed[-3000:]
    assert not re.search(r"aborted|FATAL|ERROR|fatal|error:", printed), printed[-3000:]
    failed = re.search(r"number of failed transactions: (\d+)", printed)
    assert failed is None or failed.group(1) == "0", printed
    return printed


def processed(printed):
    """Transactions that were processed, and how many were asked for."""
    found = re.search(r"number of transactions actually processed: (\d+)(?:/(\d+))?", printed)
    return int(found.group(1)), int(found.group(2) or found.group(1))


@pytest.mark.parametrize("script", ["tpcb-like", "select-only"])
@pytest.mark.parametrize("protocol", ["simple", "extended"])
def test_a_thousand_clients_on_a_pool_of_twenty(bench_pooler, bench_cluster, protocol, script):
    with Watcher(bench_cluster) as watcher:
        printed = pgbench(
            bench_pooler, "-c", "1000", "-j", "4", "-t", "2", "-M", protocol, "-b", script
        )
    assert processed(printed) == (2000, 2000)
    assert 0 < watcher.most <= POOL
    bench_pooler.wait_pool(cl_active=0, cl_waiting=0, sv_active=0)
    assert bench_pooler.stats()["xact_count"] >= 2000


@pytest.mark.parametrize("clients", [10, 50, 100, 200, 500])
def test_more_clients_are_never_refused(bench_pooler, bench_cluster, clients):
    script = bench_pooler.write("one.sql", "SELECT 1;\n")
    with Watcher(bench_cluster) as watcher:
        printed = pgbench(bench_pooler, "-c", str(clients), "-j", "2", "-t", "20", "-f", script)
    assert processed(printed) == (clients * 20, clients * 20)
    assert watcher.most <= POOL
    assert not bench_pooler.lines("pooler error")


def test_a_new_connection_for_each_transaction(bench_pooler, bench_cluster):
    with Watcher(bench_cluster) as watcher:
        printed = pgbench(bench_pooler, "-C", "-S", "-c", "20", "-j", "2", "-t", "100")
    assert processed(printed) == (2000, 2000)
    assert watcher.most <= POOL
    # The same few server connections served two thousand sessions.
    assert len(bench_pooler.servers()) <= POOL
    assert not bench_pooler.lines("S-.* closing because")


def test_a_reload_under_load_is_not_noticed(bench_pooler, bench_cluster):
    bench_pooler.settings["default_pool_size"] = 5
    bench_pooler.reload()
    bench = subprocess.Popen(
        as_service(
            [program("pgbench"), "-n", "-h", bench_pooler.address[0], "-p", str(bench_pooler.port)]
            + ["-U", "app", "-c", "50", "-j", "2", "-T", "4", "-S", "main"]
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until(lambda: len(bench_cluster.backends()) == 5, 10, "the load to begin")
        # A larger pool, by psql.
        bench_pooler.settings["default_pool_size"] = 12
        bench_pooler.write_config()
        bench_pooler.psql("-c", "RELOAD;", user="admin", database="pgbouncer")
        wait_until(lambda: len(bench_cluster.backends()) > 5, 3, "the pool to grow")
        # A smaller one, by signal; servers in use stay until they are idle.
        bench_pooler.settings["default_pool_size"] = 4
        bench_pooler.write_config()
        bench_pooler.signal(signal.SIGHUP)
        wait_until(lambda: bench_pooler.setting("default_pool_size") == "4")
        # A faulty file, by both.
        text = bench_pooler.config_text()
        bench_pooler.write("pgusher.ini", text + "default_pool_size = broken\n")
        place = f"{re.escape(bench_pooler.config_path)}:{len(text.splitlines()) + 1}"
        done = bench_pooler.psql(
            "-c", "RELOAD;", user="admin", database="pgbouncer", check=False
        )
        assert "RELOAD failed" in done.stderr
        bench_pooler.signal(signal.SIGHUP)
        bench_pooler.wait_log(place, 2)
        assert bench_pooler.setting("default_pool_size") == "4"
        assert bench.poll() is None, "the load ended too early"
        printed = bench.communicate(timeout=30)[0]
    finally:
        bench.kill()
        bench.wait()
    assert bench.returncode == 0, printed
    assert not re.search(r"aborted|FATAL|ERROR|fatal", printed), printed
    assert processed(printed)[0] > 100
    wait_until(lambda: len(bench_cluster.backends()) <= 4, 5, "the pool to shrink")


def test_an_application_pool_that_tests_its_connections(new_pooler, bench_cluster):
    """Twenty long-lived connections, each with SELECT 1 before every transaction, on five servers."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": 5}, cluster=bench_cluster
    )
    rounds = 40
    faults = []

    def work(number):
        try:
            connection = pooler.connect(autocommit=False, application_name=f"pool {number}")
            for count in range(rounds):
                connection.autocommit = True
                assert connection.execute("SELECT 1").fetchone() == (1,)
                connection.autocommit = False
                with connection.transaction():
                    connection.execute(
                        "UPDATE pgbench_branches SET bbalance = bbalance + 1 WHERE bid = %s",
                        [number % 5 + 1],
                    )
                    row = connection.execute(
                        "SELECT current_setting('application_name'), %s::int", [count]
                    ).fetchone()
                    assert row == (f"pool {number}", count)
        except Exception as error:
            faults.append(error)

    before = bench_cluster.ask("main", "SELECT sum(bbalance)::int AS n FROM pgbench_branches")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(20)]
    with Watcher(bench_cluster) as watcher:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert faults == []
    assert watcher.most <= 5
    after = bench_cluster.ask("main", "SELECT sum(bbalance)::int AS n FROM pgbench_branches")
    assert after[0]["n"] - before[0]["n"] == 20 * rounds
    pooler.wait_pool(sv_active=0, cl_waiting=0)


def test_five_hundred_requests_at_once(new_pooler, bench_cluster):
    """Each connects, fetches 100 rows of 15 columns, and disconnects."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "default_pool_size": POOL, "max_client_conn": 1000},
        cluster=bench_cluster,
    )
    columns = ", ".join(f"i + {number} AS c{number}" for number in range(15))
    sql = f"SELECT {columns} FROM generate_series(1, 100) i"
    expected = [tuple(str(i + number) for number in range(15)) for i in range(1, 101)]
    with Watcher(bench_cluster) as watcher:
        clients = [pooler.raw() for _ in range(500)]
        for client in clients:
            client.send_startup(application_name="request")
        for client in clients:
            client.finish_login("app")
        for client in clients:
            client.send(wire.query(sql))
        for client in clients:
            try:
                result = client.checked(timeout=30)
            except ServerError as error:
                raise AssertionError(f"refused: {error}") from None
            assert result.rows == expected and len(result.names) == 15
            client.leave()
    assert watcher.most <= POOL
    assert not pooler.lines("pooler error")
    pooler.wait_pool(cl_active=0, cl_waiting=0, sv_active=0)
