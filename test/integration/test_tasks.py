# SPDX-License-Identifier: ISC
"""The pages that are tasks: their commands do what the pages say, in the situation that each is for.
doc/upgrading.md is tested by test/package/debian.sh, the picture of read-the-page.md by its own test."""

import collections
import contextlib
import os
import re
import subprocess
import sys
import threading

import psycopg
import pytest

from support import wire
from support.documents import FOLDER, Document
from support.passwords import scram_secret
from support.process import HOST, stays, wait_until
from support.servers.cluster import Cluster

OLD, NEW = "of-the-server", "the-new-one"


# --- debug-a-wait.md, size-a-pool.md ----------------------------------------------------------


def test_the_way_from_a_wait_to_the_client_that_causes_it(new_pooler, cluster):
    page = Document("debug-a-wait.md")
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})

    def ask(name, replaced=()):
        return pooler.admin(page.text(name, dict(replaced)).split("\n", 1)[1])

    holder = pooler.client(application_name="report")
    holder.query("BEGIN")
    waiting = pooler.client(application_name="web")
    waiting.send(wire.query("SELECT 2"))
    pooler.wait_pool(cl_waiting=1)
    ask("on the console: psql -h 127.0.0.1 -p 6432 -U admin pgbouncer")
    (pool,) = [row for row in ask("is there a queue?") if row["database"] == "main"]
    (place,) = pooler.show("DATABASES", name="main")
    assert pool["cl_waiting"] == "1" and pool["sv_active"] == place["pool_size"] == "1"
    kinds = {row["kind"] for row in ask("waits and queries, by percentile")}
    assert kinds == {"wait", "query", "transaction"}
    (server,) = ask("servers in use, the longest first")
    assert server["application_name"] == "report"
    rows = cluster.sql(page.text("on PostgreSQL", {}))
    (backend,) = [row for row in rows if row["pid"] == int(server["remote_pid"])]
    assert backend["state"] == "idle in transaction"
    assert ask("servers that clients keep") == []
    (client,) = ask("which client?", {"0x550000000010": server["link"]})
    assert client["application_name"] == "report"
    ask("end it, by its id", {"KILL_CLIENT 1": f"KILL_CLIENT {client['id']}"})
    assert waiting.result().value == "2"


def test_the_figures_that_a_size_is_found_by(new_pooler, cluster):
    page = Document("size-a-pool.md")
    entry = {"host=127.0.0.1": f"host={cluster.host} port={cluster.port} dbname=main"}
    pooler = new_pooler(start=False)
    settings = "".join(f"{name} = {value}\n" for name, value in pooler.own_settings().items())
    content = page.text("in pgusher.ini", entry) + settings
    pooler.config_text = lambda: content.replace(" pool_size=12", " pool_size=1")
    pooler.write_config()
    pooler.start()
    holder, waiting = pooler.client(database="app"), pooler.client(database="app")
    holder.query("BEGIN")
    waiting.send(wire.query("SELECT 2"))
    pooler.wait_pool("app", cl_waiting=1)
    for name, columns in {
        "the queue and the servers": {"cl_waiting", "sv_active"},
        "waits, queries and transactions of the last one or two minutes, by percentile": {"kind", "p99"},
        "the size, and how it came to it": {"pool_size", "current_connections"},
        "xact_count: transactions a second, xact_time: microseconds of each": {"xact_count", "xact_time"},
    }.items():  # fmt: skip
        rows = pooler.admin(page.text(name, {}).split("\n", 1)[1])
        assert rows and columns <= rows[0].keys(), name
    pooler.config_text = lambda: content
    pooler.write_config()
    pooler.command(page.text("apply it", {}).split("\n", 1)[1])
    assert waiting.result().value == "2"
    assert pooler.show("DATABASES", name="app")[0]["pool_size"] == "12"


def test_settings_that_the_pages_name_exist():
    table = open(os.path.join(FOLDER, "..", "include", "config", "settings.def")).read()
    known = set(re.findall(r"^SETTING\((\w+)", table, re.MULTILINE))
    for name in ("debug-a-wait.md", "read-the-page.md", "size-a-pool.md", "rotate-a-password.md"):
        text = open(os.path.join(FOLDER, name)).read()
        # What an ini block or a "name = value" in the text sets.
        named = set(re.findall(r"`(\w+) = [^`]*`", text)) | set(re.findall(r"^(\w+) = \S+$", text, re.MULTILINE))
        # Entries, a key of them, and a column.
        named -= {"app", "shop", "pool_size", "wait_event_type"}
        assert named <= known, (name, named - known)


# --- rotate-a-password.md ---------------------------------------------------------------------

ROTATION = Document("rotate-a-password.md")


@pytest.fixture(scope="module")
def shop():
    """A PostgreSQL with the database and the roles of the page, which all need their passwords."""
    made = Cluster()
    hba = os.path.join(made.data, "pg_hba.conf")
    rules = open(hba).read()
    with open(hba, "w") as file:
        file.write("host all shop,shop_2,asker all scram-sha-256\n" + rules)
    made.sql("SELECT pg_reload_conf()")
    made.sql(f"CREATE ROLE shop LOGIN PASSWORD '{OLD}'")
    made.sql(f"CREATE ROLE asker LOGIN SUPERUSER PASSWORD '{OLD}'")
    made.sql("CREATE DATABASE shop OWNER shop")
    yield made
    made.destroy()


@pytest.fixture
def shop_pooler(new_pooler, shop):
    """The configuration of the page: shop_pooler(auth, more settings)."""

    def make(auth, **settings):
        pooler = new_pooler(start=False, cluster=shop)
        place = {"host=127.0.0.1": f"host={HOST} port={shop.port}"}
        content = ROTATION.text("in pgusher.ini", {**place, "/etc/pgusher/userlist.txt": pooler.auth_path})
        if settings:
            content = content.replace(f" user=shop password={OLD}", "")
        own = {key: value for key, value in pooler.own_settings().items() if not key.startswith("auth_")}
        # Servers are used once, so that each password is needed all the time.
        own.update(pool_mode="transaction", server_lifetime=0, **settings)
        content += "".join(f"{name} = {value}\n" for name, value in own.items())
        pooler.config_text = lambda: content
        pooler.auth = {**auth, "admin": "of the admin"}
        pooler.write_config()
        pooler.start()
        pooler.use_console("admin", "of the admin")
        return pooler

    return make


class Application:
    """Processes of an application which log in, use a transaction and disconnect, all the time."""

    def __init__(self, pooler, user, password):
        self.pooler, self.user, self.password = pooler, user, password
        self.lock, self.users = threading.Lock(), collections.Counter()
        self.done, self.failures = 0, []
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self._work) for _ in range(3)]

    def connect(self, user=None, password=None):
        """A client of the application, as the user of now or as another one."""
        return psycopg.connect(
            host=HOST, port=self.pooler.port, dbname="shop", user=user or self.user,
            password=password or self.password, autocommit=True, connect_timeout=20,
        )  # fmt: skip

    def change(self, user, password):
        """From now on it logs in as this user; none of its processes is about to do so as the other."""
        old = self.user
        with self.lock:
            self.user, self.password = user, password
        wait_until(lambda: self.users[old] == 0, what="the processes with the old login")

    def _work(self):
        while not self.ending.is_set():
            with self.lock:
                user, password = self.user, self.password
                self.users[user] += 1
            try:
                with self.connect(user, password) as connection, connection.transaction():
                    connection.execute("SELECT 1")
                self.done += 1
            except psycopg.Error as error:
                self.failures.append(f"{user}: {error}")
            with self.lock:
                self.users[user] -= 1

    def wait_work(self):
        """Wait until it has gone on."""
        reached = self.done + 10
        wait_until(lambda: self.done > reached or self.failures, 20, "the application to work")
        assert not self.failures, self.failures

    @contextlib.contextmanager
    def working(self):
        for thread in self.threads:
            thread.start()
        try:
            self.wait_work()
            yield self
            self.wait_work()
        finally:
            self.ending.set()
            for thread in self.threads:
                thread.join()


def shell(name, folder, replaced, standard_input=None):
    """Run a block of commands of the page as it is printed, but for paths."""
    subprocess.run(
        ["sh", "-euc", ROTATION.text(name, replaced)],
        cwd=folder, input=standard_input, text=True, check=True, capture_output=True, timeout=30,
    )  # fmt: skip


def on_console(pooler, name):
    """Run the commands of a block of the page on the console."""
    rows = []
    for command in ROTATION.text(name, {}).split("\n", 1)[1].split(";"):
        if command.strip():
            rows = pooler.admin(command.strip())
    return rows


def test_an_application_in_auth_file_changes_its_password(shop_pooler):
    pooler = shop_pooler({"web-1": scram_secret("the first")})
    files = {"/etc/pgusher/userlist.txt": pooler.auth_path, "python3": sys.executable}
    pooler.write("make-secret.py", ROTATION.text("make-secret.py: the password is read from standard input", {}))
    with Application(pooler, "web-1", "the first").working() as application:
        shell("add the user web-2", pooler.folder, files, "the second\n")
        on_console(pooler, "on the console")
        application.wait_work()
        assert "the second" not in open(pooler.auth_path).read()
        application.change("web-2", "the second")
        wait_until(lambda: not on_console(pooler, "which clients still use the old user?"))
        shell("remove the user web-1", pooler.folder, files)
        on_console(pooler, "on the console")
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        application.connect("web-1", "the first")


def test_an_application_with_a_role_changes_its_password(shop_pooler, shop):
    pooler = shop_pooler({"asker": OLD}, auth_user="asker")
    with Application(pooler, "shop", OLD).working() as application:
        shop.ask("shop", ROTATION.text("a second role", {}))
        application.wait_work()
        application.change("shop_2", "the new one")
        wait_until(lambda: not on_console(pooler, "which clients still use the old role?"))
        shop.ask("shop", ROTATION.text("the old password is good for nothing", {}))
        try:
            with application.connect() as client:
                client.execute("CREATE TABLE made_after_the_change ()")
            assert shop.ask("shop", "SELECT tableowner FROM pg_tables WHERE tablename = 'made_after_the_change'") == [
                {"tableowner": "shop"}
            ]
            with pytest.raises(psycopg.OperationalError, match="no such user"):
                application.connect("shop", OLD)
        finally:
            shop.ask("shop", "ALTER ROLE shop LOGIN")


@pytest.mark.parametrize("whose", ["shop", "asker"])
def test_the_password_of_pgusher_itself_is_changed(shop_pooler, shop, whose):
    """That of the entry of a database, and that of auth_user, which is in auth_file."""
    for role in ("shop", "asker"):
        shop.sql(f"ALTER ROLE {role} PASSWORD '{OLD}'")
    if whose == "shop":
        pooler = shop_pooler({"web": "its own"})
        application, file = Application(pooler, "web", "its own"), pooler.config_path
    else:
        pooler = shop_pooler({"asker": OLD}, auth_user="asker")
        application, file = Application(pooler, "shop", OLD), pooler.auth_path
    replaced = {"/etc/pgusher/pgusher.ini": file}
    if whose == "asker":
        replaced["password="] = ""
    with application.working():
        on_console(pooler, "hold everything")
        shop.sql(ROTATION.text("the new password", {"ROLE shop": f"ROLE {whose}"}))
        stays(lambda: not application.failures, 0.3)
        shell("write it down", pooler.folder, replaced)
        assert NEW in open(file).read() and OLD not in open(file).read()
        on_console(pooler, "go on")
        application.wait_work()
    assert not pooler.lines("password authentication failed")
