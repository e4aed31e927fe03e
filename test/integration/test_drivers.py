# SPDX-License-Identifier: ISC
"""Drivers with their defaults: runs the programs of test/drivers, which report in TAP.

In transaction mode the six clients of a program share two servers; in session mode each has its
own. Python's and Ruby's programs run with Debian's packages. The other programs, and Python's again
with newer packages, are built by test/drivers/build.py in the folder that PGUSHER_TEST_DRIVERS
names.
"""

import os
import re
import shutil

import pytest

from support.clients import driver_programs
from support.clients.driver_programs import (
    DATABASE, JAVA, PASSWORD, PYTHON, RUBY, USER, debian_program, kit_program, run, run_checks,
    start_pooler, wait_gone,
)  # fmt: skip
from support.process import wait_until
from support.servers.cluster import HARNESS, is_newer, program
from support.servers.pooler import is_sanitized

pytestmark = pytest.mark.long

# Servers of a pool, by its mode.
SERVERS = {"transaction": 2, "session": 60}

# With Debian's packages: the program, and a command that succeeds if its packages are installed.
DEBIAN = {
    "psycopg3": ([PYTHON, "python/use_psycopg3.py"], [PYTHON, "-c", "import psycopg"]),
    "psycopg2": ([PYTHON, "python/use_psycopg2.py"], [PYTHON, "-c", "import psycopg2"]),
    "asyncpg": ([PYTHON, "python/use_asyncpg.py"], [PYTHON, "-c", "import asyncpg"]),
    "django": ([PYTHON, "python/use_django.py"], [PYTHON, "-c", "import django, psycopg2"]),
    "sqlalchemy-psycopg2": (
        [PYTHON, "python/use_sqlalchemy.py", "psycopg2"],
        [PYTHON, "-c", "import sqlalchemy, psycopg2"],
    ),
    "sqlalchemy-asyncpg": (
        [PYTHON, "python/use_sqlalchemy.py", "asyncpg"],
        [PYTHON, "-c", "import sqlalchemy, asyncpg"],
    ),
    "ruby-pg": ([RUBY, "ruby/use_pg.rb"], [RUBY, "-e", "require 'pg'"]),
    "rails": ([RUBY, "ruby/use_rails.rb"], [RUBY, "-e", "require 'active_record'; require 'pg'"]),
}

# Built by build.py: the kit, and the program in its folder.
KITS = {
    "psycopg3": ("python", [PYTHON, "use_psycopg3.py"]),
    "psycopg2": ("python", [PYTHON, "use_psycopg2.py"]),
    "asyncpg": ("python", [PYTHON, "use_asyncpg.py"]),
    "pg8000": ("python", [PYTHON, "use_pg8000.py"]),
    "django": ("python", [PYTHON, "use_django.py"]),
    "sqlalchemy-psycopg2": ("python", [PYTHON, "use_sqlalchemy.py", "psycopg2"]),
    "sqlalchemy-psycopg": ("python", [PYTHON, "use_sqlalchemy.py", "psycopg"]),
    "sqlalchemy-asyncpg": ("python", [PYTHON, "use_sqlalchemy.py", "asyncpg"]),
    "sqlalchemy-pg8000": ("python", [PYTHON, "use_sqlalchemy.py", "pg8000"]),
    "pgjdbc": ("java", [*JAVA, "UsePgjdbc"]),
    "hikaricp": ("java", [*JAVA, "UseHikari"]),
    "node-postgres": ("node", ["node", "use_pg.js"]),
    "postgres.js": ("node", ["node", "use_postgres.js"]),
    "pgx": ("go", ["programs/pgx"]),
    "lib-pq": ("go", ["programs/pq"]),
    "tokio-postgres": ("rust", ["target/debug/use_tokio_postgres"]),
    "sqlx": ("rust", ["target/debug/use_sqlx"]),
}


@pytest.fixture
def database(cluster):
    with driver_programs.database(cluster) as name:
        yield name


@pytest.fixture(params=SERVERS)
def mode(request):
    if request.param == "session" and (is_sanitized() or is_newer()):
        pytest.skip("transaction mode is enough for the sanitizers, and for a newer PostgreSQL")
    return request.param


@pytest.fixture
def new_drivers_pooler(new_pooler, database):
    """Make a daemon in this mode: new_drivers_pooler(mode, settings)."""

    def make(mode, **settings):
        return start_pooler(new_pooler, SERVERS[mode], mode, **settings)

    return make


def drive(command, pooler, mode, folder, **more):
    """Run a driver's program: all its checks pass, and it leaves nothing behind."""
    run_checks(command, pooler, mode, folder, **more)
    wait_gone(pooler, SERVERS[mode])
    wait_until(lambda: not busy_servers(pooler), 15, "servers to be idle")


def busy_servers(pooler):
    """Servers of the pool that are busy although no client is connected."""
    return [row for row in pooler.cluster.backends(datname=DATABASE) if row["state"] != "idle"]


# --- drivers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DEBIAN)
def test_a_driver_of_debian_works_with_its_defaults(new_drivers_pooler, mode, name):
    command, folder, packages = debian_program(*DEBIAN[name])
    drive(command, new_drivers_pooler(mode), mode, folder, **packages)


@pytest.mark.parametrize("name", KITS)
def test_a_driver_of_a_registry_works_with_its_defaults(new_drivers_pooler, mode, name):
    command, folder, packages = kit_program(*KITS[name])
    drive(command, new_drivers_pooler(mode), mode, folder, **packages)


# --- the console --------------------------------------------------------------------------------

# Frameworks look into the catalog when they connect.
NOT_FOR_THE_CONSOLE = ("django", "rails", "sqlalchemy-asyncpg")


def drive_console(command, pooler, folder, **more):
    names = {"PGDATABASE": "pgbouncer", "PGUSER": "admin", **more}
    printed = run(command, pooler, "console", folder, **names)
    assert printed.count("ok 1 - the console\n1..1\n") == 1 and "not ok" not in printed, printed


@pytest.mark.parametrize("name", [name for name in DEBIAN if name not in NOT_FOR_THE_CONSOLE])
def test_a_driver_of_debian_works_on_the_console(new_drivers_pooler, name):
    command, folder, packages = debian_program(*DEBIAN[name])
    drive_console(command, new_drivers_pooler("transaction"), folder, **packages)


@pytest.mark.parametrize("name", [name for name in KITS if name not in NOT_FOR_THE_CONSOLE])
def test_a_driver_of_a_registry_works_on_the_console(new_drivers_pooler, name):
    command, folder, packages = kit_program(*KITS[name])
    drive_console(command, new_drivers_pooler("transaction"), folder, **packages)


# --- PostgreSQL's own programs ------------------------------------------------------------------

PSQL_SCRIPT = r"""
\set ON_ERROR_STOP on
CREATE TABLE psql (id int, name text);
\set word 'it''s'
INSERT INTO psql SELECT i, :'word' FROM generate_series(1, 100) AS i;
\set FETCH_COUNT 7
SELECT count(*) = 100 AS all FROM psql \gset
\if :all
\echo counted
\endif
SELECT id FROM psql ORDER BY id;
\unset FETCH_COUNT
\set ON_ERROR_STOP off
\set ON_ERROR_ROLLBACK on
BEGIN;
INSERT INTO psql VALUES (101, 'kept');
SELECT 1 / 0;
INSERT INTO psql VALUES (102, 'kept');
COMMIT;
\set ON_ERROR_STOP on
\copy psql TO 'FOLDER/psql.out'
\copy psql FROM 'FOLDER/psql.out'
SELECT count(*) FROM psql \gx
SELECT format('SELECT %s AS made', i) FROM generate_series(1, 3) AS i \gexec
SELECT 1 AS one \; SELECT 2 AS two;
\d psql
\dt+
\l
\du
"""


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_psql_works_with_its_defaults(new_drivers_pooler, mode, folder):
    path = os.path.join(folder, "script.sql")
    with open(path, "w") as file:
        file.write(PSQL_SCRIPT.replace("FOLDER", folder))
    pooler = new_drivers_pooler(mode)
    printed = run([shutil.which("psql"), "-X", "-f", path], pooler, mode, folder)
    assert "counted\n" in printed and "ERROR:  division by zero" in printed
    assert "count | 204" in printed
    assert [f"    {i}\n" for i in range(1, 4) if f"\n    {i}\n" not in printed] == []
    assert f'Table "public.psql"' in printed


@pytest.mark.parametrize("protocol", ["simple", "extended", "prepared"])
def test_pgbench_works_and_its_sums_agree(new_drivers_pooler, mode, folder, protocol):
    pooler = new_drivers_pooler(mode)
    pgbench = program("pgbench")
    run([pgbench, "-i", "-q"], pooler, mode, folder)
    # A pgbench thread that prepares a statement makes its other clients wait: with threads of
    # several clients one server has to be enough.
    counts = ["-n", "-c", "8", "-j", "8", "-t", "150"]
    printed = run([pgbench, "-M", protocol, *counts], pooler, mode, folder)
    assert "number of transactions actually processed: 1200/1200" in printed
    printed = run([pgbench, "-M", protocol, "-S", *counts], pooler, mode, folder)
    assert "number of transactions actually processed: 1200/1200" in printed
    (row,) = pooler.cluster.ask(
        DATABASE,
        "SELECT (SELECT count(*) FROM pgbench_history) AS count,"
        " (SELECT sum(delta) FROM pgbench_history) AS history,"
        " (SELECT sum(abalance) FROM pgbench_accounts) AS accounts,"
        " (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers,"
        " (SELECT sum(bbalance) FROM pgbench_branches) AS branches",
    )
    assert row["count"] == 1200
    assert row["history"] == row["accounts"] == row["tellers"] == row["branches"]


def test_pgbench_sends_pipelines(new_drivers_pooler, mode, folder):
    path = os.path.join(folder, "pipeline.sql")
    with open(path, "w") as file:
        file.write(
            "\\set a random(1, 1000)\n\\startpipeline\n"
            + "SELECT :a;\nSELECT :a + 1;\n" * 10 + "\\endpipeline\n"
        )  # fmt: skip
    pooler = new_drivers_pooler(mode)
    for protocol in ("extended", "prepared"):
        counts = ["-n", "-c", "8", "-j", "2", "-t", "50", "-f", path]
        printed = run([program("pgbench"), "-M", protocol, *counts], pooler, mode, folder)
        assert "number of transactions actually processed: 400/400" in printed


def dump(pooler, folder, name, *options):
    """What pg_dump prints of a database through the pooler, less what differs from run to run."""
    command = [program("pg_dump"), "--no-owner", *options, name]
    printed = run(command, pooler, "", folder)
    return [line for line in printed.splitlines() if not re.match(r"--|\\(un)?restrict ", line)]


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
@pytest.mark.parametrize("form", ["plain", "directory"])
def test_pg_dump_and_pg_restore_work(new_drivers_pooler, mode, cluster, folder, form):
    pooler = new_drivers_pooler(mode, default_pool_size=4)  # one, and one for each job
    run([program("pgbench"), "-i", "-q"], pooler, mode, folder)
    cluster.ask(DATABASE, "CREATE SEQUENCE s; CREATE VIEW v AS SELECT 1 AS one; ALTER TABLE"
                f" pgbench_history OWNER TO {USER}; ALTER SEQUENCE s OWNER TO {USER};"
                f" ALTER VIEW v OWNER TO {USER}; SELECT lo_from_bytea(5, 'large');"
                f" ALTER LARGE OBJECT 5 OWNER TO {USER}")  # fmt: skip
    original = dump(pooler, folder, DATABASE)
    assert len(original) > 100000
    cluster.sql(f"CREATE DATABASE restored OWNER {USER}")
    try:
        if form == "plain":
            path = os.path.join(folder, "dump.sql")
            run([program("pg_dump"), "--no-owner", "-f", path], pooler, mode, folder)
            restore = [shutil.which("psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", path]
            run([*restore, "-d", "restored"], pooler, mode, folder)
        else:
            path = os.path.join(folder, "dump")
            run([program("pg_dump"), "-Fd", "-j", "3", "-f", path], pooler, mode, folder)
            restore = [program("pg_restore"), "--no-owner", "-j", "3", "-d", "restored", path]
            run(restore, pooler, mode, folder)
        assert dump(pooler, folder, "restored") == original
    finally:
        cluster.sql("DROP DATABASE restored WITH (FORCE)")


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_pg_dump_settings_do_not_reach_other_clients(new_drivers_pooler, mode, cluster, folder):
    """What pg_dump sets in its session is reset before the next client has the server."""
    pooler = new_drivers_pooler(mode, default_pool_size=1)
    run([program("pg_dump"), "-f", os.devnull], pooler, mode, folder)
    with pooler.connect(USER, DATABASE, password=PASSWORD) as connection:
        for name in ("search_path", "statement_timeout", "extra_float_digits", "row_security"):
            with cluster.connect(DATABASE, HARNESS) as direct:
                (wanted,) = direct.execute(f"SHOW {name}").fetchone().values()
            assert connection.execute(f"SHOW {name}").fetchone() == (wanted,)
