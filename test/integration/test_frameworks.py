# SPDX-License-Identifier: ISC
"""Frameworks that rely on their session work in transaction mode, without a change of their settings.

Few servers serve the clients of a program, and neighbours that look for what these leave. The
programs of test/drivers check their own results, and say in TAP what they found.
"""

import functools
import os
import shutil
from dataclasses import dataclass

import pytest

from support.clients import driver_programs
from support.clients.driver_programs import (
    DATABASE, JAVA, PASSWORD, PYTHON, RUBY, USER, debian_program, kit_program, run, run_checks,
    start_pooler, wait_gone,
)  # fmt: skip
from support.process import wait_until
from support.servers.cluster import is_newer
from support.session_state.neighbours import Neighbours

pytestmark = pytest.mark.long

ROLE = "drivers_web"
NEIGHBOURS = 2


@dataclass
class Framework:
    """A program, and how many servers it has. Those that listen may each keep one of them."""

    command: list
    kit: str = ""  # of test/drivers/build.py
    question: tuple = ()  # Debian's packages
    servers: int = 3

    def program(self):
        """The command, its folder and its variables. Skips the test where it is not available."""
        if self.kit:
            return kit_program(self.kit, self.command)
        return debian_program(self.command, list(self.question))


def debian(program, packages, **more):
    return Framework([PYTHON, f"python/{program}"], "", (PYTHON, "-c", f"import {packages}"), **more)


def python(program, **more):
    return Framework([PYTHON, program], "python", **more)


def java(program, **more):
    return Framework([*JAVA, program], "java", **more)


FRAMEWORKS = {
    # Sessions that are prepared once: tenants, roles, search paths, temporary tables.
    "tenants-debian": debian("use_tenants.py", "psycopg, psycopg2, sqlalchemy", servers=4),
    "tenants": python("use_tenants.py", servers=4),
    "django-debian": debian("use_django_session.py", "django, psycopg2", servers=4),
    "django": python("use_django_session.py", servers=4),
    "rails": Framework(
        [RUBY, "ruby/use_rails_session.rb"], "",
        (RUBY, "-e", "require 'active_record'; require 'pg'"), servers=4,
    ),
    # Migrations under a lock of the session.
    "alembic": python("use_alembic.py"),
    "flyway": java("UseFlyway", servers=4),
    "liquibase": java("UseLiquibase"),
    "golang-migrate": Framework(["programs/migrate"], "go"),
    "node-pg-migrate": Framework(["node", "use_node_pg_migrate.js"], "node"),
    # Queues of jobs, of which notifications tell.
    "river": Framework(["programs/river"], "go", servers=5),
    "procrastinate": python("use_procrastinate.py", servers=5),
    "graphile-worker": Framework(["node", "use_graphile_worker.js"], "node", servers=5),
    "pg-boss": Framework(["node", "use_pg_boss.js"], "node"),
}  # fmt: skip


@pytest.fixture
def database(cluster):
    """The programs' database, and a role that their user may take."""
    with driver_programs.database(cluster) as name:
        cluster.sql(f"CREATE ROLE {ROLE}; GRANT {ROLE} TO {USER}")
        yield name
    cluster.sql(f"DROP ROLE {ROLE}")


@pytest.fixture
def new_pool(new_pooler, database):
    """Make a daemon in transaction mode with so many servers: new_pool(servers)."""
    return functools.partial(start_pooler, new_pooler)


def neighbours_of(pooler):
    direct = (pooler.cluster.host, pooler.cluster.port)
    return Neighbours(
        NEIGHBOURS, pooler.address, direct, user=USER, database=DATABASE, password=PASSWORD
    )


def expect_nothing_left(pooler, neighbours, servers):
    """The clients are gone, no server is kept for them, and none has anything of them."""
    wait_gone(pooler, servers)
    wait_until(lambda: not pooler.show("PINS"), 15, "pins to end")
    neighbours.look_at_all(pooler.address, servers)
    locks = "SELECT count(*) AS held FROM pg_locks WHERE locktype = 'advisory' AND database ="
    locks += " (SELECT oid FROM pg_database WHERE datname = current_database())"
    assert pooler.cluster.ask(DATABASE, locks) == [{"held": 0}]


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_works_in_transaction_mode(new_pool, name):
    framework = FRAMEWORKS[name]
    command, where, packages = framework.program()
    pooler = new_pool(framework.servers)
    with neighbours_of(pooler) as neighbours:
        run_checks(command, pooler, "transaction", where, **packages)
    expect_nothing_left(pooler, neighbours, framework.servers)


# --- psql ---------------------------------------------------------------------------------------

PSQLRC = """
SET search_path = own, public;
SET statement_timeout = '50s';
SET app.operator = 'psql';
\\set ON_ERROR_STOP on
\\pset format unaligned
\\pset tuples_only on
"""

PSQL_SCRIPT = r"""
CREATE SCHEMA own;
CREATE TABLE item (id int, name text);
\copy item FROM 'FOLDER/rows'
\copy (SELECT * FROM own.item ORDER BY id) TO 'FOLDER/copied'
CREATE TEMP TABLE staging (LIKE item);
\copy staging FROM 'FOLDER/rows'
INSERT INTO item SELECT id + 100, name FROM staging;
DROP TABLE staging;
SELECT 'seen ' || count(*) || ' ' || current_setting('app.operator') FROM item;
SHOW search_path;
WATCHED
"""

# \watch goes on until its query fails, as that of psql 15 has no count.
WATCH_TO_FAILURE = r"""
\set ON_ERROR_STOP off
CREATE SEQUENCE turns MAXVALUE 4 NO CYCLE;
SELECT 'watched ' || nextval('turns') || current_setting('app.operator') \watch 0.05
"""


@pytest.mark.skipif(is_newer(), reason="the tools are older than the server")
def test_psql_keeps_what_its_psqlrc_sets(new_pool, folder):
    """Also for \\copy and \\watch, while its servers change."""
    with open(os.path.join(folder, "psqlrc"), "w") as file:
        file.write(PSQLRC)
    rows = "".join(f"{i}\tname {i}\n" for i in range(50))
    with open(os.path.join(folder, "rows"), "w") as file:
        file.write(rows)
    with open(os.path.join(folder, "script.sql"), "w") as file:
        file.write(PSQL_SCRIPT.replace("FOLDER", folder).replace("WATCHED", WATCH_TO_FAILURE))
    pooler = new_pool(2)
    command = [shutil.which("psql"), "-f", os.path.join(folder, "script.sql")]
    with neighbours_of(pooler) as neighbours:
        printed = run(command, pooler, "transaction", folder, PSQLRC=os.path.join(folder, "psqlrc"))
    assert "seen 100 psql\nown, public\n" in printed, printed
    assert [f"watched {i}psql" in printed for i in range(1, 5)] == [True] * 4, printed
    with open(os.path.join(folder, "copied")) as file:
        assert file.read() == rows
    expect_nothing_left(pooler, neighbours, 2)
