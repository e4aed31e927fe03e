# SPDX-License-Identifier: ISC
"""Alembic as applications run it: migrations under an advisory lock of the session.

Several deployments migrate at once; the lock is the one that Alembic's users take in env.py.
"""

import os
import tempfile

import alembic.command
import alembic.config
import sqlalchemy
from sqlalchemy import text
from sqlalchemy.engine import URL

from check import check, finish

ENVIRONMENT = """
from alembic import context

connection = context.config.attributes["connection"]
context.configure(connection=connection, transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
"""

REVISIONS = {
    "one": (
        "None",
        "op.execute(\"SET lock_timeout = '20s'\")\n"
        "    op.create_table('author', sa.Column('id', sa.Integer, primary_key=True),"
        " sa.Column('name', sa.Text))",
        "op.drop_table('author')",
    ),
    "two": (
        "'one'",
        "op.bulk_insert(sa.table('author', sa.column('name')), [{'name': 'a'}, {'name': 'b'}])",
        "op.execute('DELETE FROM author')",
    ),
    # Outside of a transaction, in the middle of the others.
    "three": (
        "'two'",
        "with op.get_context().autocommit_block():\n"
        "        op.create_index('by_name', 'author', ['name'])",
        "op.drop_index('by_name')",
    ),
    "four": (
        "'three'",
        "op.add_column('author', sa.Column('born', sa.Date))",
        "op.drop_column('author', 'born')",
    ),
}

LOCK = 4711


def engine():
    """An engine with the settings of the session that a careful operator wants for migrations."""
    made = sqlalchemy.create_engine(URL.create(
        "postgresql+psycopg2", os.environ["PGUSER"], os.environ["PGPASSWORD"],
        os.environ["PGHOST"], int(os.environ["PGPORT"]), os.environ["PGDATABASE"],
    ))  # fmt: skip

    @sqlalchemy.event.listens_for(made, "connect")
    def set_timeouts(connection, _):
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = '50s'")
            cursor.execute("SET app.deployment = 'alembic'")
        connection.commit()

    return made


def write(folder):
    os.makedirs(os.path.join(folder, "versions"))
    with open(os.path.join(folder, "env.py"), "w") as file:
        file.write(ENVIRONMENT)
    for name, (before, up, down) in REVISIONS.items():
        with open(os.path.join(folder, "versions", name + ".py"), "w") as file:
            file.write(
                f"import sqlalchemy as sa\nfrom alembic import op\n\nrevision = '{name}'\n"
                f"down_revision = {before}\n\n\ndef upgrade():\n    {up}\n\n\n"
                f"def downgrade():\n    {down}\n"
            )


def locked(folder, action):
    """Run action(configuration) under the lock; check that the lock and the settings are held."""
    made = engine()
    with made.connect() as connection:
        connection.execute(text(f"SELECT pg_advisory_lock({LOCK})"))
        connection.commit()
        configuration = alembic.config.Config()
        configuration.set_main_option("script_location", folder)
        configuration.attributes["connection"] = connection
        # Alembic's context is global to a process: the processes of check() run it.
        action(configuration)
        connection.rollback()
        row = connection.execute(text(
            "SELECT current_setting('statement_timeout'), current_setting('app.deployment'),"
            f" pg_advisory_unlock({LOCK})"
        )).one()  # fmt: skip
        assert tuple(row) == ("50s", "alembic", True), row
        connection.commit()
    made.dispose()


def in_process(body):
    """A body for check() that runs in a process of its own."""

    def run(_):
        child = os.fork()
        if child == 0:
            try:
                body()
                os._exit(0)
            except BaseException as failure:
                print(f"# {type(failure).__name__}: {failure}", flush=True)
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0

    return run


def upgrades():
    locked(folder, lambda configuration: alembic.command.upgrade(configuration, "head"))


def is_migrated(_):
    with engine().connect() as connection:
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        names = connection.execute(text("SELECT name, born FROM author ORDER BY name")).all()
        assert (version, names) == ("four", [("a", None), ("b", None)])


def downgrades():
    locked(folder, lambda configuration: alembic.command.downgrade(configuration, "two"))
    locked(folder, lambda configuration: alembic.command.upgrade(configuration, "head"))
    locked(folder, lambda configuration: alembic.command.downgrade(configuration, "base"))


with tempfile.TemporaryDirectory() as folder:
    write(folder)
    check("deployments migrate one after the other", in_process(upgrades), 3)
    check("the database is migrated", is_migrated, 1)
    check("migrations go back", in_process(downgrades), 1)
finish()
