# SPDX-License-Identifier: ISC
"""SHOW ADVICE: what is wrong, and the setting to change.

Unit tests have each kind with a fake clock. Here are those that appear within seconds, and with
PGUSHER_TEST_ADVICE=1 a scene of more than a minute.
"""

import contextlib
import os
import pathlib
import re
import threading

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.process import free_port, wait_until
from support.servers.certificates import Authority

ROOT = pathlib.Path(__file__).parents[2]
COLUMNS = ["severity", "code", "database", "user", "setting", "advice", "since_seconds"]
ROW = re.compile(r'^ADVICE\(\w+, "(\w+)", (\w+), ("\w+"|NULL), (\d+), (\d+), (\d+)\)', re.MULTILINE)
# Keys of [databases], which SHOW CONFIG does not have.
KEYS = {"host", "dbname", "pool_size"}


@pytest.fixture
def served(new_pooler):
    """Make a pooler that serves metrics; page(pooler) reads them."""

    def make(settings=None, wrap=(), **options):
        port = free_port()
        settings = {"pool_mode": "transaction", "metrics_port": port, **(settings or {})}
        pooler = new_pooler(settings, start=False, **options)
        pooler.metrics = port
        return pooler.start(wrap=wrap)

    return make


def advice(pooler, code, timeout=10, **where):
    """The row of this code, as soon as there is one."""

    def rows():
        return pooler.show("ADVICE", code=code, **where)

    wait_until(rows, timeout=timeout, what=code)
    return rows()[0]


def table():
    """The rows of advice.def: code, severity, setting, least, appears, goes."""
    return ROW.findall((ROOT / "include/admin/advice/advice.def").read_text())


# --- the table and the document --------------------------------------------------------------


def test_every_code_has_its_section():
    text = (ROOT / "doc/advice.md").read_text()
    sections = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    assert sections == [row[0] for row in table()]
    for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
        for part in ("When", "Change", "Check"):
            assert f"- **{part}**: " in section, section


def test_settings_exist_and_times_are_documented(pooler):
    text = (ROOT / "doc/advice.md").read_text()
    known = {row["key"] for row in pooler.show("CONFIG")} | KEYS
    for code, severity, setting, _, appears, goes in table():
        name = setting.strip('"')
        assert name == "NULL" or name in known
        cell = "-" if name == "NULL" else f"`{name}`"
        row = f"| [{code}](#{code}) | {severity.lower()} | {cell} | {appears} s | {goes} s |"
        assert row in text


# --- what appears within seconds -------------------------------------------------------------


def test_nothing_is_wrong_at_rest(pooler):
    with pooler.client() as client:
        client.query("SELECT 1")
    assert pooler.show("ADVICE") == []


def test_max_client_conn_above_the_descriptor_limit(served):
    pooler = served({"max_client_conn": 5000}, wrap=("prlimit", "--nofile=300:300"))
    row = advice(pooler, "descriptor_limit")
    assert list(row) == COLUMNS
    assert (row["severity"], row["setting"]) == ("warning", "max_client_conn")
    assert (row["database"], row["user"]) == (None, None)
    told = re.fullmatch(
        r"max_client_conn is 5000, but with the limit of 300 open files, of which \d+ are kept for"
        r" servers, only (\d+) clients can be connected\. Raise the limit \(LimitNOFILE of the"
        r" service, ulimit -n\) to at least (\d+), or lower max_client_conn to \1\.",
        row["advice"],
    )
    assert 100 < int(told[1]) < 300 < int(told[2])
    assert row["since_seconds"].isdigit()
    name = "pgusher_advice"
    page = scrape(pooler.metrics)
    assert page.value(name, code="descriptor_limit", database="", user="") >= 1
    # It follows a SET, and goes.
    pooler.admin(f"SET max_client_conn = {told[1]}")
    wait_until(lambda: pooler.show("ADVICE") == [])
    assert not scrape(pooler.metrics).series(name)


def test_logins_that_fail(served):
    """A host that does not answer, and a database that PostgreSQL does not have."""
    databases = {
        "main": {},
        "away": {"host": "127.0.0.1", "port": free_port()},
        "absent": {"dbname": "there_is_none"},
    }
    pooler = served({"server_login_retry": 1}, databases=databases)
    pooler.allow("connect failed|login failed|there_is_none")
    for database in ("away", "absent"):
        pooler.raw().send_startup("app", database)
    row = advice(pooler, "login_failing", database="away")
    assert (row["severity"], row["user"], row["setting"]) == ("critical", "app", "host")
    row = advice(pooler, "login_failing", database="absent")
    assert row["setting"] == "dbname"
    assert "(SQLSTATE 3D000): " in row["advice"] and '"there_is_none"' in row["advice"]
    row = advice(pooler, "host_down")
    assert re.match(r"Host 127\.0\.0\.1:\d+ has not answered for ", row["advice"])
    assert len(pooler.show("ADVICE")) == 3
    assert len(scrape(pooler.metrics).series("pgusher_advice")) == 3


def test_certificate_that_ends(served):
    authority = Authority()
    try:
        certificate, key = authority.issue("pooler", "IP:127.0.0.1", days=9)
        pooler = served(
            {
                "client_tls_sslmode": "allow",
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            }
        )
        row = advice(pooler, "certificate_ends")
    finally:
        authority.destroy()
    assert (row["severity"], row["setting"]) == ("warning", "client_tls_cert_file")
    assert re.fullmatch(
        rf"The certificate towards clients \({re.escape(certificate)}\) ends in [89] days: replace"
        r" the file of client_tls_cert_file, and RELOAD\.",
        row["advice"],
    )


def test_statistics_users_may_read_it_and_sql_selects_from_it(pooler):
    console = pooler.console(user="stats")
    assert console.query("SHOW ADVICE WHERE severity = 'critical' ORDER BY since_seconds").rows == []


# --- a scene of a minute ---------------------------------------------------------------------


class Loop(threading.Thread):
    """Clients that run this query one after the other, until close()."""

    def __init__(self, pooler, sql, **options):
        super().__init__()
        self.pooler, self.sql, self.options = pooler, sql, options
        self.ending = threading.Event()
        self.start()

    def run(self):
        with contextlib.suppress(OSError), self.pooler.client(**self.options) as client:
            while not self.ending.is_set():
                client.query(self.sql)

    def close(self):
        self.ending.set()
        self.join()


@pytest.mark.skipif(
    os.environ.get("PGUSHER_TEST_ADVICE") != "1", reason="PGUSHER_TEST_ADVICE=1 runs it: a minute"
)
def test_overload_is_explained(served):
    """Full pools, each for another reason, an old transaction, and statements that are evicted."""
    databases = {
        "free": {"dbname": "main", "pool_size": 2, "host_cores": 64},
        "busy": {"dbname": "main", "pool_size": 4, "host_cores": 1},
        "held": {"dbname": "main", "pool_size": 2},
        "kept": {"dbname": "main", "pool_size": 2, "pool_mode": "session"},
        "bound": {"dbname": "main", "pool_size": 5, "max_db_connections": 1},
        "texts": {"dbname": "main", "pool_size": 2},
    }
    pooler = served({"max_prepared_statements": 5}, databases=databases)
    with contextlib.ExitStack() as stack:
        for database in ("free", "busy", "bound"):
            for _ in range(8):
                loop = Loop(pooler, "SELECT pg_sleep(0.2)", database=database)
                stack.callback(loop.close)
        for _ in range(2):
            holder = stack.enter_context(
                pooler.client(database="held", application_name="batch <b>")
            )
            holder.query("BEGIN")
            stack.enter_context(pooler.client(database="kept")).query("SELECT 1")
        for database in ("held", "kept"):
            waiting = stack.enter_context(pooler.client(database=database))
            waiting.send(wire.query("SELECT 1"))
        connection = stack.enter_context(pooler.connect(dbname="texts"))
        connection.prepare_threshold = 0

        def use_many_texts():
            for number in range(20):
                connection.execute(f"SELECT {number}")
            return pooler.show("ADVICE", code="prepared_evictions")

        wait_until(use_many_texts, timeout=60, interval=0.3)
        said = {
            database: advice(pooler, code, timeout=60, database=database)["advice"]
            for database, code in {
                "free": "pool_full",
                "busy": "pool_busy",
                "held": "pool_held",
                "kept": "pool_session",
                "bound": "database_limit",
                "texts": "prepared_evictions",
            }.items()
        }
        assert "Raise pool_size from 2 to 4." in said["free"]
        assert "queries run on the 1 core of its machine" in said["busy"]
        assert "one by application 'batch <b>'" in said["held"]
        assert "With pool_mode = transaction others could use them" in said["kept"]
        assert "1 of the 1 connections that max_db_connections allows" in said["bound"]
        assert "Clients use 20 different statements" in said["texts"]
        assert "Raise max_prepared_statements from 5 to 20" in said["texts"]
        old = advice(pooler, "idle_transaction", timeout=60, database="held")
        assert old["severity"] == "critical"
        assert re.search(r"'batch <b>' \(.*\) has been open for 6\d s", old["advice"])
