# SPDX-License-Identifier: ISC
"""Fixtures: one PostgreSQL for each test process, one daemon for each test."""

import contextlib
import itertools
import os
import shutil

import psycopg.waiting
import pytest

# By select(), which psycopg prefers, it cannot wait for descriptors above 1023: tests have more.
psycopg.waiting.wait = psycopg.waiting.wait_epoll

pytest.register_assert_rewrite("support")
pytest_plugins = ["support.second_try", "support.page_fixtures"]

from support.clients.writers import TABLE
from support.crosstalk import requests, transfers
from support.process import drop_folder, make_folder, run
from support.servers.cluster import SHARED_FOLDER, Cluster
from support.servers.fake_server import FakeServer, answer_with_text
from support.servers.pooler import Pooler, is_sanitized, publish_binary
from support.servers.replicas import Replicas
from support.servers.tcp_relay import Relay
from support.session_state import places


@pytest.fixture(scope="session")
def shared_cluster():
    """The PostgreSQL that all tests of this process use in turn."""
    cluster = Cluster()
    yield cluster
    cluster.destroy()


@pytest.fixture
def cluster(shared_cluster):
    """The shared PostgreSQL, with no client connected to it. Tests must leave it as it was."""
    shared_cluster.clear()
    return shared_cluster


@pytest.fixture(scope="module")
def replicas():
    """A primary and a standby, for all tests of a module."""
    group = Replicas(2, TABLE)
    yield group
    group.destroy()


@pytest.fixture
def pair(replicas):
    """The primary and its synchronous standby, whichever of the two these are by now."""
    return replicas.settle()


@pytest.fixture
def private_cluster():
    """A PostgreSQL for this test alone, which may stop or break it."""
    cluster = Cluster()
    yield cluster
    cluster.destroy()


@pytest.fixture
def stage(cluster):
    """The shared PostgreSQL with the tables and functions of the crosstalk test."""
    drop = transfers.DROP_TABLES + requests.DROP_FUNCTIONS
    with cluster.connect("main", "app") as connection:
        connection.execute(drop + transfers.TABLES + requests.FUNCTIONS)
    yield cluster
    cluster.clear()
    cluster.ask("main", drop)


@pytest.fixture(scope="module")
def state_stage(shared_cluster):
    """The shared PostgreSQL with the objects that support.session_state.kinds needs, for a module."""
    shared_cluster.clear()
    with places.objects(shared_cluster):
        yield shared_cluster


@pytest.fixture
def folder():
    """A folder that the service user may write to."""
    path = make_folder("pgusher-folder-")
    yield path
    drop_folder(path)


@pytest.fixture
def new_pooler(cluster):
    """Make a daemon: new_pooler(settings, databases=, users=, auth=); start=False only writes."""
    with contextlib.ExitStack() as stack:

        def make(settings=None, start=True, **options):
            options.setdefault("cluster", cluster)
            pooler = Pooler(settings, **options)
            stack.callback(pooler.destroy)
            return pooler.start() if start else pooler

        yield make


@pytest.fixture
def pooler(new_pooler):
    """A daemon in transaction mode with one database, main."""
    return new_pooler({"pool_mode": "transaction"})


@pytest.fixture
def one_server(new_pooler):
    """A daemon in transaction mode with a pool of one: a server that is not released, or that is
    released in another state than before, shows at once."""
    return new_pooler({"pool_mode": "transaction", "default_pool_size": 1})


@pytest.fixture
def session_pooler(new_pooler):
    """A daemon in session mode with one database, main."""
    return new_pooler({"pool_mode": "session"})


@pytest.fixture(scope="session")
def library():
    """The path of the library that wraps system calls (support/compiled/failing_calls.c)."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler to make the library of calls with")
    folder = make_folder("pgusher-calls-")
    source = os.path.join(os.path.dirname(__file__), "support", "compiled", "failing_calls.c")
    path = os.path.join(folder, "calls.so")
    memory = ["-DWITHOUT_MEMORY"] if is_sanitized() else []
    with open(source) as file:
        run(
            [compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", *memory, "-xc", "-"]
            + ["-o", path, "-ldl"],
            stdin=file,
        )
    yield path
    drop_folder(folder)


@pytest.fixture
def new_server():
    """Make a scripted server: new_server(script)."""
    with contextlib.ExitStack() as stack:

        def make(script=answer_with_text):
            server = FakeServer(script)
            stack.callback(server.stop)
            return server

        yield make


@pytest.fixture
def new_relay():
    """Make a relay to a port: new_relay(port)."""
    with contextlib.ExitStack() as stack:

        def make(port):
            relay = Relay(port)
            stack.callback(relay.stop)
            return relay

        yield make


# --- the whole run ----------------------------------------------------------------------------

# More than there are processors: most tests wait most of the time.
WORKERS_PER_PROCESSOR = 4


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Put the tests that take long between the modules: each process gets tests that follow one another,
    and none may get most of these."""
    long = [item for item in items if item.get_closest_marker("long")]
    apart = set(long)
    modules = [list(module) for _, module in itertools.groupby(
        (item for item in items if item not in apart), key=lambda item: item.path)]
    for number, module in enumerate(modules):
        module += long[number::len(modules)]
    items[:] = itertools.chain(*modules or [long])


@pytest.hookimpl(optionalhook=True, tryfirst=True)
def pytest_xdist_auto_num_workers():
    """How many processes `-n auto` means."""
    return WORKERS_PER_PROCESSOR * len(os.sched_getaffinity(0))


def pytest_configure(config):
    """Make the folder that all processes of this run share. Workers (-n) inherit its name."""
    if SHARED_FOLDER not in os.environ:
        config.shared_folder = os.environ[SHARED_FOLDER] = make_folder("pgusher-shared-")
        try:
            publish_binary(config.shared_folder)
        except RuntimeError as error:
            raise pytest.UsageError(str(error)) from None


def pytest_unconfigure(config):
    """Remove that folder."""
    if hasattr(config, "shared_folder"):
        drop_folder(config.shared_folder)
        del os.environ[SHARED_FOLDER]
