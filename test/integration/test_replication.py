# SPDX-License-Identifier: ISC
"""Clients that ask for replication: each has a server connection of its own, with the real tools."""

import glob
import os
import shutil
import struct
import subprocess

import psycopg
import pytest
from support import wire
from support.cluster import Cluster, configure, program
from support.fakeserver import PARAMETERS
from support.process import (
    HOST, as_service, drop_folder, free_port, make_folder, own, run, stays, wait_until,
)
from support.raw import Closed, ServerError

IDENTIFY = wire.query("IDENTIFY_SYSTEM")


# --- what is needed ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def source_of_module():
    """A PostgreSQL that lets `app` and `scram_login` replicate, physically and logically."""
    cluster = Cluster(
        {"wal_level": "logical", "max_wal_senders": 12, "max_replication_slots": 12}
        | {"wal_keep_size": "'256MB'"}
    )
    path = os.path.join(cluster.data, "pg_hba.conf")
    with open(path, "a") as file:
        file.write("host replication scram_login 127.0.0.1/32 scram-sha-256\n")
        file.write("host replication app 127.0.0.1/32 trust\n")
    cluster.sql("ALTER ROLE app REPLICATION")
    cluster.sql("ALTER ROLE scram_login REPLICATION")
    cluster.sql("SELECT pg_reload_conf()")
    yield cluster
    cluster.destroy()


@pytest.fixture
def source(source_of_module):
    """The same, with nobody connected and no slot left."""
    cluster = source_of_module
    cluster.sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE backend_type IN ('walsender', 'client backend') AND usename <> 'harness'"
    )
    wait_until(lambda: not senders(cluster), 15, "WAL senders to go")
    wait_until(
        lambda: not cluster.sql("SELECT 1 FROM pg_replication_slots WHERE active"), 15, "slots"
    )
    cluster.sql("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots")
    yield cluster


@pytest.fixture
def make(new_pooler, source):
    """A daemon in transaction mode with the databases main and replication."""

    def start(settings=None, databases=None, **options):
        databases = databases or {"main": {}, "replication": {}}
        settings = {"pool_mode": "transaction", "server_tls_sslmode": "disable", **(settings or {})}
        return new_pooler(settings, databases=databases, cluster=source, **options)

    return start


@pytest.fixture
def pooler(make):
    return make()


def senders(cluster, **where):
    """Connections for replication, as PostgreSQL sees them."""
    rows = cluster.sql("SELECT * FROM pg_stat_activity WHERE backend_type = 'walsender'")
    return [row for row in rows if all(row[key] == value for key, value in where.items())]


def physical(pooler, **parameters):
    """A raw client of physical replication that has logged in."""
    return pooler.client(database="replication", replication="true", **parameters)


def logical(pooler, **parameters):
    """A raw client of logical replication that has logged in."""
    return pooler.client(replication="database", **parameters)


def tool(pooler, name, *arguments, database=None, **options):
    """Run one of PostgreSQL's programs for replication to its end."""
    target = ["-d", database] if database else []
    return run(
        [program(name), "-h", HOST, "-p", str(pooler.port), "-U", "app", *target, *arguments],
        **options,
    )


@pytest.fixture
def folder():
    path = make_folder("pgusher-replica-")
    yield path
    drop_folder(path)


# --- the tools --------------------------------------------------------------------------------


def test_base_backup_with_its_stream(pooler, source, folder):
    """Two connections: the second one streams the WAL meanwhile."""
    target = os.path.join(folder, "data")
    tool(pooler, "pg_basebackup", "-D", target, "-X", "stream", "-c", "fast")
    run([program("pg_verifybackup"), target])
    wait_until(lambda: not senders(source), 5, "both WAL senders to go")
    assert pooler.servers() == []


def test_base_backup_as_tar_with_its_wal_behind(pooler, source, folder):
    target = os.path.join(folder, "tar")
    tool(pooler, "pg_basebackup", "-D", target, "-Ft", "-X", "fetch", "-c", "fast")
    assert os.path.getsize(os.path.join(target, "base.tar")) > 10 << 20


def test_identify_system_from_psql(pooler, source):
    done = run(
        [shutil.which("psql"), "-XAt", "-c", "IDENTIFY_SYSTEM"]
        + [f"host={HOST} port={pooler.port} user=app dbname=main replication=database"]
    )
    identifier = source.value("SELECT system_identifier::text FROM pg_control_system()")
    assert done.stdout.split("|")[0] == identifier
    assert done.stdout.strip().split("|")[3] == "main"
