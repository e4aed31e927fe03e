# SPDX-License-Identifier: ISC
"""Applications with row-level security, in which the session decides which rows a query returns.

Policies compare app.tenant, or the role, with the row. The application sets these once for a
connection, at each request, or for a transaction only as PostgREST does. SQLAlchemy over psycopg 2
and psycopg 3.
"""

import contextlib
import json
import os
import random
import sys

import psycopg
import psycopg2
import sqlalchemy
from sqlalchemy import text
from sqlalchemy.engine import URL

from check import CLIENTS, check, fails, finish

TURNS = 12
COUNT = "SELECT count(*), count(*) FILTER (WHERE tenant = %s) FROM invoice"


def new_engine(pool_size):
    return sqlalchemy.create_engine(URL.create(
        "postgresql+psycopg2", os.environ["PGUSER"], os.environ["PGPASSWORD"],
        os.environ["PGHOST"], int(os.environ["PGPORT"]), os.environ["PGDATABASE"],
    ), pool_size=pool_size, future=True)  # fmt: skip


def makes(_):
    """Each tenant has as many rows as its number, plus 1."""
    with psycopg.connect(autocommit=True) as connection:
        connection.execute("CREATE TABLE invoice (id serial, tenant text, amount int)")
        for tenant in range(CLIENTS):
            connection.execute(
                "INSERT INTO invoice (tenant, amount) SELECT %s, i FROM generate_series(0, %s) i",
                (f"t{tenant}", tenant),
            )
        connection.execute(
            "ALTER TABLE invoice ENABLE ROW LEVEL SECURITY;"
            "ALTER TABLE invoice FORCE ROW LEVEL SECURITY;"
            "CREATE POLICY own ON invoice USING (tenant = current_setting('app.tenant', true)"
            " OR tenant = nullif(current_setting('request.jwt.claims', true), '')::json ->> 'tenant');"
            "CREATE VIEW mine WITH (security_invoker) AS SELECT * FROM invoice;"
            "GRANT SELECT, INSERT ON invoice, mine TO drivers_web;"
            "GRANT USAGE ON SEQUENCE invoice_id_seq TO drivers_web"
        )


def sees_own(ask, number):
    """The rows are the tenant's own, and all of them."""
    assert tuple(ask(COUNT, f"t{number}")) == (number + 1, number + 1)


def asker(connection):
    return lambda sql, *values: connection.execute(sql, values).fetchone()


def once_for_a_connection(number):
    """SET when the connection begins, then many transactions, some of which fail."""
    with psycopg.connect() as connection:
        connection.execute(f"SET app.tenant = 't{number}'")
        connection.commit()
        for turn in range(TURNS):
            sees_own(asker(connection), number)
            connection.commit()
            connection.execute("INSERT INTO invoice (tenant, amount) VALUES (%s, 0)", (f"t{number}",))
            if turn % 2:
                fails(psycopg.Error, lambda: connection.execute(
                    "INSERT INTO invoice (tenant, amount) VALUES ('foreign', 0)"))
            connection.rollback()


def at_each_request(number):
    """A pool of connections; each request sets another tenant, and the next one finds it changed."""
    engine = new_engine(2)
    draw = random.Random(number)
    query = text(COUNT.replace("%s", ":tenant"))
    for _ in range(TURNS):
        tenant = draw.randrange(CLIENTS)
        with engine.connect() as connection:
            connection.execute(text("SELECT set_config('app.tenant', :t, false)"), {"t": f"t{tenant}"})
            connection.commit()
            for _ in range(3):
                row = connection.execute(query, {"tenant": f"t{tenant}"}).one()
                assert tuple(row) == (tenant + 1, tenant + 1), (row, tenant)
                connection.commit()
        with engine.connect() as connection:
            connection.execute(text("RESET app.tenant"))
            assert connection.execute(query, {"tenant": "t0"}).one()[0] == 0
            connection.commit()
    engine.dispose()


def as_a_role(number):
    """SET ROLE for the connection: the user of its statements is the role."""
    with psycopg.connect(autocommit=True) as connection:
        connection.execute("SET ROLE drivers_web")
        connection.execute(f"SET app.tenant = 't{number}'")
        for _ in range(TURNS):
            row = connection.execute("SELECT current_user, session_user").fetchone()
            assert row == ("drivers_web", os.environ["PGUSER"]), row
            sees_own(asker(connection), number)
            fails(psycopg.errors.InsufficientPrivilege,
                  lambda: connection.execute("DELETE FROM invoice"))
        connection.execute("RESET ROLE")
        assert connection.execute("SELECT current_user").fetchone() == (os.environ["PGUSER"],)


def as_postgrest(number):
    """What PostgREST sends: everything for the transaction only, in one prepared statement."""
    prepare = (
        "SELECT set_config('search_path', %s, true), set_config('role', %s, true),"
        " set_config('request.jwt.claims', %s, true), set_config('request.method', 'GET', true),"
        " set_config('request.path', '/mine', true), set_config('statement_timeout', '30s', true)"
    )
    with psycopg.connect(prepare_threshold=0) as connection:
        for turn in range(TURNS):
            tenant = (number + turn) % CLIENTS
            claims = json.dumps({"role": "drivers_web", "tenant": f"t{tenant}"})
            connection.execute(prepare, ('"public", "pg_temp"', "drivers_web", claims))
            row = connection.execute(
                "WITH found AS (SELECT * FROM mine) SELECT count(*), min(tenant), current_user,"
                " current_setting('request.jwt.claims', true)::json ->> 'tenant' FROM found"
            ).fetchone()
            assert row == (tenant + 1, f"t{tenant}", "drivers_web", f"t{tenant}"), row
            connection.commit()
            row = connection.execute(
                "SELECT current_user, current_setting('request.jwt.claims', true)"
            ).fetchone()
            assert row[0] == os.environ["PGUSER"] and not row[1], row
            connection.rollback()


def discards(number):
    """A pool that cleans a connection which is given back by DISCARD ALL."""
    with contextlib.closing(psycopg2.connect("")) as connection, connection.cursor() as cursor:
        for _ in range(TURNS):
            connection.autocommit = True
            cursor.execute("SET app.tenant = %s", (f"t{number}",))
            cursor.execute("SET statement_timeout = %s", (f"{50 + number}s",))
            cursor.execute("PREPARE own AS SELECT count(*) FROM invoice WHERE tenant = $1")
            cursor.execute("EXECUTE own (%s)", (f"t{number}",))
            assert cursor.fetchone() == (number + 1,)
            cursor.execute("DISCARD ALL")
            cursor.execute("SELECT current_setting('app.tenant', true),"
                           " current_setting('statement_timeout')")
            row = cursor.fetchone()
            assert not row[0] and row[1] == "0", row
            fails(psycopg2.Error, lambda: cursor.execute("EXECUTE own ('')"))
            # ABORT; RESET ALL; SET SESSION AUTHORIZATION DEFAULT, and autocommit is off again.
            cursor.execute("SET search_path = pg_catalog")
            connection.reset()
            cursor.execute("SHOW search_path")
            assert cursor.fetchone() == ('"$user", public',)
            connection.rollback()


def temporary_tables(number):
    """An import by way of a temporary table that lives for several transactions."""
    engine = new_engine(1)
    metadata = sqlalchemy.MetaData()
    staging = sqlalchemy.Table(
        "staging", metadata, sqlalchemy.Column("id", sqlalchemy.Integer),
        prefixes=["TEMPORARY"],
    )  # fmt: skip
    for _ in range(3):
        with engine.connect() as connection:
            metadata.create_all(connection)
            connection.commit()
            for part in range(3):
                rows = [{"id": number * 1000 + part * 100 + i} for i in range(100)]
                connection.execute(staging.insert(), rows)
                connection.commit()
            query = "SELECT count(*), min(id), count(DISTINCT id) FROM staging"
            assert tuple(connection.execute(text(query)).one()) == (300, number * 1000, 300)
            connection.rollback()
            metadata.drop_all(connection)
            connection.commit()
    engine.dispose()


print(f"# psycopg {psycopg.__version__}, SQLAlchemy {sqlalchemy.__version__}", file=sys.stderr)
check("makes tables and policies", makes, 1)
check("a tenant that is set once for a connection", once_for_a_connection)
check("a tenant that is set at each request", at_each_request)
check("a role that is set for a connection", as_a_role)
check("what is set for a transaction only", as_postgrest)
check("connections that are cleaned by DISCARD ALL", discards)
check("temporary tables that live for several transactions", temporary_tables)
finish()
