# SPDX-License-Identifier: ISC
"""Configuration files: what they may hold, what RELOAD and SIGHUP change, and how faults are
handled."""

import os
import re
import signal
import threading

import pytest

from support import wire
from support.clients.raw import ServerError
from support.passwords import md5_answer, md5_secret
from support.process import HOST, PATIENCE, own, stays, wait_until

RELOAD_FAILED = ("ERROR", "F0000", "RELOAD failed, see logs for additional details")


def hang_up(pooler):
    """Send SIGHUP and wait until it was handled: a console command is handled after it."""
    before = len(pooler.lines("got SIGHUP, re-reading config"))
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("got SIGHUP, re-reading config", before + 1)
    pooler.show("STATE")


def refuse_reload(pooler):
    """RELOAD and assert that it is refused."""
    with pytest.raises(ServerError) as caught:
        pooler.command("RELOAD")
    assert caught.value.is_(*RELOAD_FAILED)


# What a reload changes


@pytest.mark.parametrize("how", ["command", "signal"])
def test_changed_settings_take_effect(pooler, how):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.settings["default_pool_size"] = 7
    pooler.write_config()
    if how == "command":
        assert pooler.command("RELOAD").tag == "RELOAD"
        assert pooler.lines("RELOAD command issued")
    else:
        hang_up(pooler)
    assert pooler.setting("default_pool_size") == "7"
    assert client.value("SELECT 1") == "1"


def test_a_setting_that_was_removed_returns_to_its_default(pooler):
    pooler.settings["query_timeout"] = 5
    pooler.reload()
    pooler.command("SET server_lifetime = 17")
    assert pooler.setting("query_timeout") == "5"
    del pooler.settings["query_timeout"]
    pooler.reload()
    assert pooler.setting("query_timeout") == "0"
    assert pooler.setting("server_lifetime") == "3600"


def test_settings_for_the_start_only_are_kept(pooler):
    pooler.settings.update(listen_port=1, unix_socket_dir="/nonexistent", pkt_buf=100)
    pooler.reload()
    assert pooler.setting("listen_port") == str(pooler.port)
    assert pooler.setting("pkt_buf") == "4096"
    assert pooler.client().value("SELECT 1") == "1"


def test_a_larger_pool_serves_waiting_clients(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    assert waiter.silent(0.2)
    pooler.settings["default_pool_size"] = 2
    pooler.reload()
    assert waiter.checked().value == "1"


def test_a_new_database_is_served(pooler):
    assert pooler.refused(database="extra").sqlstate == "3D000"
    pooler.databases["extra"] = {"dbname": "main"}
    pooler.reload()
    assert pooler.client(database="extra").value("SELECT current_database()") == "main"


def test_a_removed_database_is_dropped_with_its_clients(new_pooler, cluster):
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": {}, "other": {}})
    victim, idle, survivor = pooler.client(), pooler.client(), pooler.client(database="other")
    victim.query("BEGIN"), idle.query("SELECT 1"), survivor.query("BEGIN")
    half = pooler.raw().send(wire.startup({"user": "app", "database": "main"})[:20])
    del pooler.databases["main"]
    pooler.reload()
    for client in (victim, idle):
        assert client.fatal().is_("FATAL", "57P01", "database removed")
    text = "dropping database 'main' as it does not exist anymore or inactive auto-database"
    assert pooler.lines("WARNING .*" + re.escape(text))
    wait_until(lambda: not cluster.backends(datname="main"))
    assert survivor.value("SELECT 1") == "1"
    assert pooler.refused().text == "no such database: main"
    half.send(wire.startup({"user": "app", "database": "main"})[20:])
    assert half.fatal().text == "no such database: main"
    assert not pooler.show("DATABASES", name="main")


def test_a_login_under_way_outlives_the_removal_of_its_database(new_pooler):
    pooler = new_pooler({"auth_type": "md5"}, auth={"app": "secret", "admin": "a"})
    console = pooler.client("admin", "pgbouncer", "a")
    client = pooler.raw().send_startup()
    challenge = client.read()
    pooler.databases = {"other": {}}
    pooler.write_config()
    console.query("RELOAD")
    client.send(wire.password(md5_answer(md5_secret("secret", "app"), challenge.body[4:8])))
    error = client.fatal()
    assert error.severity == "FATAL"
    assert error.text in ("no such database: main", "database removed")


@pytest.mark.parametrize(
    "change",
    [
        {"dbname": "other"},
        {"user": "alice"},
        {"connect_query": "SELECT 1"},
        {"host": "localhost"},
    ],
)
def test_a_changed_connect_string_renews_the_servers(pooler, change):
    busy, idle = pooler.client(), pooler.client()
    busy.query("BEGIN")
    old = busy.value("SELECT pg_backend_pid()")
    gone = idle.value("SELECT pg_backend_pid()")
    pooler.databases["main"] = {"port": pooler.cluster.port, "host": HOST, **change}
    pooler.reload()
    # A transaction stays on its server; everything new uses new servers.
    assert busy.value("SELECT pg_backend_pid()") == old
    assert idle.value("SELECT pg_backend_pid()") not in (old, gone)
    busy.query("COMMIT")
    assert busy.value("SELECT pg_backend_pid()") != old


@pytest.mark.parametrize("mode", ["session", "transaction"])
@pytest.mark.parametrize(
    "before, after, user",
    [({}, {"user": "alice"}, "alice"), ({"user": "alice"}, {"user": "bob"}, "bob"),
     ({"user": "alice"}, {}, "app")],
)
def test_all_clients_move_to_a_changed_forced_user(new_pooler, mode, before, after, user):
    pooler = new_pooler(
        {"pool_mode": mode, "default_pool_size": 1}, databases={"main": before}
    )
    old_user = before.get("user", "app")
    busy, waiter, idle = (pooler.client() for _ in range(3))
    for _ in range(100):
        busy.query("SELECT 1")
    busy.query("BEGIN")
    waiter.send(wire.query("SELECT current_user"))
    pooler.wait_pool(user=old_user, cl_waiting=1)
    pooler.databases["main"] = after
    pooler.reload()
    # Waiting clients do not wait for the old pool.
    assert waiter.checked().value == user
    assert busy.value("SELECT current_user") == old_user
    busy.query("COMMIT")
    if mode == "session":
        waiter.close(), busy.close()
        busy = pooler.client()
    assert idle.value("SELECT current_user") == user
    if mode == "session":
        idle.close()
    assert busy.value("SELECT current_user") == user
    # Nothing remains of the old pool.
    wait_until(lambda: pooler.pool(user=old_user) is None)
    assert pooler.stats()["query_count"] >= 104


def test_clients_of_an_automatic_database_move_too(new_pooler, cluster):
    host = f"host={cluster.host} port={cluster.port}"
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"*": host})
    client = pooler.client()
    assert client.value("SELECT current_user") == "app"
    pooler.databases = {"*": host + " user=alice"}
    pooler.reload()
    assert client.value("SELECT current_user") == "alice"


def test_a_removed_star_entry_serves_no_client_any_more(new_pooler, cluster):
    host = f"host={cluster.host} port={cluster.port}"
    pooler = new_pooler(databases={"*": host, "kept": host + " dbname=main"})
    victim, survivor = pooler.client(database="main"), pooler.client(database="kept")
    victim.query("SELECT 1")
    del pooler.databases["*"]
    pooler.reload()
    assert victim.fatal().is_("FATAL", "57P01", "database removed")
    assert pooler.refused(database="main").text == "no such database: main"
    assert survivor.value("SELECT 1") == "1"


def test_a_named_entry_replaces_an_automatic_one(new_pooler, cluster):
    host = f"host={cluster.host} port={cluster.port}"
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"*": host})
    client = pooler.client()
    pid = client.value("SELECT pg_backend_pid()")
    pooler.databases["main"] = host + " pool_size=7"
    pooler.reload()
    assert client.value("SELECT pg_backend_pid()") == pid
    pooler.databases["main"] = host + " dbname=other"
    pooler.reload()
    assert client.value("SELECT current_database()") == "other"
    del pooler.databases["*"], pooler.databases["main"]
    pooler.reload()
    assert client.fatal().text == "database removed"


@pytest.mark.parametrize(
    "change",
    [
        {"password": "other"},
        {"pool_size": 5},
        {"min_pool_size": 1},
        {"application_name": "later"},
        {"max_db_connections": 9},
        {"server_lifetime": 100},
    ],
)
def test_other_changes_leave_the_servers_alone(pooler, change):
    client = pooler.client()
    pid = client.value("SELECT pg_backend_pid()")
    pooler.databases["main"] = change
    pooler.reload()
    stays(lambda: client.value("SELECT pg_backend_pid()") == pid, 0.6)


def test_a_reload_without_changes_changes_nothing(pooler):
    client = pooler.client()
    pid = client.value("SELECT pg_backend_pid()")
    for _ in range(5):
        pooler.reload()
    hang_up(pooler)
    assert client.value("SELECT pg_backend_pid()") == pid
    assert not pooler.lines("closing because: (?!client)")


def test_a_changed_pool_mode_of_a_database(new_pooler):
    pooler = new_pooler({"pool_mode": "session"})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.wait_pool(sv_active=1)
    pooler.databases["main"] = {"pool_mode": "transaction"}
    pooler.reload()
    client.query("SELECT 1")
    # What the client has left in its session is not known.
    pooler.wait_pool(sv_active=0, sv_idle=0)


def test_a_removed_users_line_inherits_again(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, users={"app": {"pool_mode": "session"}})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.wait_pool(sv_active=1)
    pooler.users = {}
    pooler.reload()
    client.query("SELECT 1")
    pooler.wait_pool(sv_active=0)


@pytest.mark.setting("conffile")
def test_conffile_names_the_next_file(pooler):
    other = pooler.write("other.ini", pooler.config_text() + "default_pool_size = 33\n")
    pooler.command(f"SET conffile = '{other}'")
    pooler.command("RELOAD")
    assert pooler.setting("default_pool_size") == "33"


@pytest.mark.setting("logfile")
def test_the_log_file_is_reopened(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["logfile"] = pooler.path("log")
    pooler.write_config()
    pooler.start()
    pooler.client()
    os.rename(pooler.path("log"), pooler.path("log.1"))
    pooler.command("RELOAD")
    pooler.client("alice")
    with open(pooler.path("log")) as new, open(pooler.path("log.1")) as old:
        new_text, old_text = new.read(), old.read()
    assert "login attempt: db=main user=alice" in new_text
    assert "login attempt: db=main user=app" in old_text and "user=alice" not in old_text


def test_reload_under_load_is_not_noticed(new_pooler):  # F64
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 4, "max_client_conn": 50})
    stop = threading.Event()
    faults, counts = [], []

    def work():
        client = pooler.raw().login()
        count = 0
        try:
            while not stop.is_set():
                client.query("BEGIN")
                client.query("SELECT 1")
                client.query("COMMIT")
                count += 1
        except Exception as error:
            faults.append(error)
        counts.append(count)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    try:
        for number in range(40):
            pooler.settings["default_pool_size"] = 2 + number % 5
            pooler.settings["server_idle_timeout"] = 100 + number
            pooler.write_config()
            if number % 2:
                pooler.command("RELOAD")
            else:
                hang_up(pooler)
    finally:
        stop.set()
        for thread in threads:
            thread.join(20)
    assert faults == []
    assert len(counts) == 8 and min(counts) > 0
    assert pooler.setting("default_pool_size") == "6"


# A faulty file: none of it comes into force, and the faulty line is named. F65

BROKEN = {
    "bad value": "default_pool_size = many",
    "unknown key": "no_such_setting = 1",
    "boolean word": "log_stats = yes",
    "no equals": "default_pool_size",
    "only a comment": "pool_mode = ; why not",
    "unknown section": "[surprise]",
    "blanks in a section": "[ users ]",
    "section not closed": "[users",
    "quoted key": '"pool_mode" = session',
    "missing include": "%include /nonexistent/file.ini",
    "negative time": "server_lifetime = -1",
}


@pytest.mark.parametrize("how", ["command", "signal"])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_file_changes_nothing(pooler, fault, how):
    client = pooler.client()
    before = pooler.show("CONFIG")
    good = pooler.config_text()
    bad = good + f"query_timeout = 5\n{BROKEN[fault]}\nserver_lifetime = 7\n"
    bad = bad.replace("[databases]\n", "[databases]\nextra = dbname=main\n")
    pooler.write("pgusher.ini", bad)
    line = bad.splitlines().index(BROKEN[fault]) + 1
    if how == "command":
        refuse_reload(pooler)
    else:
        hang_up(pooler)
    pooler.wait_log("config file loading failed")
    assert pooler.lines(rf"ERROR .*{re.escape(pooler.config_path)}:{line}\b")
    assert pooler.show("CONFIG") == before
    assert not pooler.show("DATABASES", name="extra")
    assert client.value("SELECT 1") == "1"
    pooler.reload()
    assert pooler.client().value("SELECT 1") == "1"


BROKEN_ENTRIES = {
    "main = host='127.0.0.1": "syntax error in connection string",
    "main = host": "syntax error in connection string",
    "main = host=": "syntax error in connection string",
    "main = password=''": "syntax error in connection string",
    "main = hots=x": "unrecognized connection parameter: hots",
    "main = port=0": "invalid port: 0",
    "main = port=many": "invalid port: many",
    "main = pool_mode=chaotic": "invalid pool mode: chaotic",
    "main = load_balance_hosts=dice": "invalid load_balance_hosts: dice",
    "pgbouncer = host=x": 'database name "pgbouncer" is reserved',
}


@pytest.mark.parametrize("entry", BROKEN_ENTRIES)
def test_a_broken_database_entry_is_named(pooler, entry):
    good = pooler.config_text()
    pooler.write("pgusher.ini", good.replace("[databases]\n", f"[databases]\n{entry}\n"))
    refuse_reload(pooler)
    assert pooler.lines(re.escape(BROKEN_ENTRIES[entry]))
    assert pooler.lines(rf"{re.escape(pooler.config_path)}:2\b")
    assert pooler.client().value("SELECT 1") == "1"


def test_a_broken_users_entry_is_named(pooler):
    pooler.users = {"app": "pool_size=1 colour=red"}
    pooler.write_config()
    refuse_reload(pooler)
    assert pooler.lines("unrecognized user parameter: colour")


@pytest.mark.parametrize("fault", ["empty", "missing", "unreadable", "half", "folder", "binary"])
def test_a_file_that_cannot_be_read_changes_nothing(pooler, fault):
    before = pooler.show("CONFIG")
    text = pooler.config_text()
    os.unlink(pooler.config_path)
    if fault == "empty":
        pooler.write("pgusher.ini", "")
    elif fault == "unreadable":
        pooler.write("pgusher.ini", text)
        os.chmod(pooler.config_path, 0)
    elif fault == "half":
        pooler.write("pgusher.ini", text[: text.index("[pgbouncer]") + 5])
    elif fault == "folder":
        os.mkdir(pooler.config_path)
    elif fault == "binary":
        pooler.write("pgusher.ini", bytes(range(256)) * 20)
    refuse_reload(pooler)
    assert pooler.show("CONFIG") == before
    if fault == "folder":
        os.rmdir(pooler.config_path)
    elif fault != "missing":
        os.unlink(pooler.config_path)
    assert pooler.client().value("SELECT 1") == "1"
    pooler.reload()


BROKEN_USERLISTS = {
    "missing": (None, "could not open auth_file"),
    "unreadable": ('"app" "two"\n', "could not open auth_file"),
    "folder": (None, "could not open auth_file"),
    "no quotes": ('"app" "two"\nalice three\n', "broken auth file"),
    "open quote": ('"app" "two"\n"alice" "three\n', "broken auth file"),
    "byte order mark": ('\ufeff"app" "two"\n', "broken auth file"),
    "long name": (f'"app" "two"\n"{"n" * 128}" "x"\n', "username too long in auth file"),
    "long secret": (f'"app" "two"\n"n" "{"x" * 65531}"\n', "password too long in auth file"),
    "no text": (bytes(range(256)), "broken auth file"),
}


@pytest.mark.parametrize("fault", BROKEN_USERLISTS)
def test_a_broken_auth_file_keeps_its_users(new_pooler, fault):  # F14
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": "one", "admin": "a"})
    console = pooler.client("admin", "pgbouncer", "a")
    content, complaint = BROKEN_USERLISTS[fault]
    os.unlink(pooler.auth_path)
    if fault == "folder":
        os.mkdir(pooler.auth_path)
    elif content is not None:
        pooler.write("userlist.txt", content)
    if fault == "unreadable":
        os.chmod(pooler.auth_path, 0)
    console.query("RELOAD")
    assert pooler.client(password="one").value("SELECT 1") == "1"
    assert pooler.refused(password="two").text == "password authentication failed"
    assert len(pooler.wait_log(re.escape(complaint))) == 1
    if fault == "folder":
        os.rmdir(pooler.auth_path)
    elif content is not None:
        os.unlink(pooler.auth_path)
    pooler.write("userlist.txt", '"app" "two"\r\n')
    console.query("RELOAD")
    assert pooler.client(password="two").value("SELECT 1") == "1"


def test_a_million_users_are_taken_at_a_reload(new_pooler):  # F14
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": "one", "admin": "a"})
    console = pooler.client("admin", "pgbouncer", "a")
    many = "".join(f'"u{number}" "p{number}"\n' for number in range(1_000_000))
    pooler.write("userlist.txt", many + '"app" "two"\n"admin" "a"\n')
    console.query("RELOAD", timeout=60 * PATIENCE)
    for number in (0, 123_456, 999_999):
        user = f"u{number}"
        assert pooler.refused(user, password="wrong").text == "password authentication failed"
        client = pooler.raw().send_startup(user, "main")
        client.read()
        client.send(wire.password(f"p{number}"))
        # It is in the auth_file, and not at the server.
        assert "does not exist" in client.fatal().text
    assert pooler.client(password="two").value("SELECT 1") == "1"


# The grammar of files


def test_the_whole_grammar_in_one_file(new_pooler, cluster):
    pooler = new_pooler(start=False)
    included = pooler.write(
        "more.ini", "reserve_pool_size = 4\n[users]\napp = pool_mode=transaction\n"
    )
    host = f"host={cluster.host} port={cluster.port}"
    settings = "\n".join(f"{key} = {value}" for key, value in pooler.own_settings().items())
    text = (
        f"\r\n; comment\n  # another comment\n[databases] first = {host} dbname=main\r\n"
        f"   main   \t=\t  {host}   dbname = 'main'   \n"
        f"'odd name; really' = {host} dbname=main\n"
        f"quoted = {host} dbname=main application_name='it''s here' \n"
        f"twice = host=nowhere\ntwice = {host} dbname=other dbname=main\n"
        f"[pgbouncer] ; a note\n{settings}\ndefault_pool_size=0x0A\nmin_pool_size = 010\n"
        f"server_idle_timeout = .5\nserver_lifetime = 2min\n%include {included}\n"
        "bob = pool_size=2\n"
    )
    pooler.write("pgusher.ini", text)
    pooler.start()
    for name in ("first", "main", "odd name; really", "twice", "quoted"):
        assert pooler.client(database=name).value("SELECT current_database()") == "main"
    client = pooler.client(database="quoted")
    assert client.value("SHOW application_name") == "it's here"
    for key, value in [
        ("default_pool_size", "10"),
        ("min_pool_size", "8"),
        ("server_idle_timeout", "0.5"),
        ("server_lifetime", "120"),
        ("reserve_pool_size", "4"),
    ]:
        assert pooler.setting(key) == value
    users = {row["name"]: row for row in pooler.show("USERS")}
    assert users["app"]["pool_mode"] == "transaction"
    assert users["bob"]["pool_size"].strip() == "2"


def test_the_files_of_a_folder_are_read_in_order(new_pooler, cluster):
    pooler = new_pooler(start=False)
    folder = pooler.path("conf.d")
    os.mkdir(folder)
    own(folder)
    host = f"host={cluster.host} port={cluster.port}"
    pooler.write("conf.d/10-sizes.ini", "default_pool_size = 11\nserver_lifetime = 10min\n")
    pooler.write("conf.d/20-team.ini", f"[databases]\nteam = {host} dbname=other\n")
    pooler.write("conf.d/30-sizes.ini", "default_pool_size = 13\n")
    pooler.write("conf.d/40-off.ini~", "no_such_setting = 1\n")
    text = pooler.config_text() + f"%include {folder}\nmin_pool_size = 2\n"
    pooler.write("pgusher.ini", text)
    pooler.start()
    assert pooler.client(database="team").value("SELECT current_database()") == "other"
    values = {row["key"]: row["value"] for row in pooler.show("CONFIG")}
    assert values["default_pool_size"] == "13"
    assert values["server_lifetime"] == "600"
    assert values["min_pool_size"] == "2"
    pooler.write("conf.d/50-bad.ini", "\ndefault_pool_size = many\n")
    refuse_reload(pooler)
    assert pooler.lines(r"conf\.d/50-bad\.ini:2\b")
    os.unlink(pooler.path("conf.d/50-bad.ini"))
    os.unlink(pooler.path("conf.d/30-sizes.ini"))
    pooler.command("RELOAD")
    assert pooler.setting("default_pool_size") == "11"


def test_a_broken_star_entry_ends_no_client(new_pooler, cluster):
    host = f"host={cluster.host} port={cluster.port}"
    pooler = new_pooler(databases={"*": host})
    client = pooler.client(database="main")
    assert client.value("SELECT 1") == "1"
    pooler.databases = {"*": host + " port=0"}
    pooler.write_config()
    refuse_reload(pooler)
    assert pooler.lines("invalid port: 0")
    assert client.value("SELECT 1") == "1"


def test_nested_includes_are_limited(new_pooler):
    pooler = new_pooler(start=False)
    pooler.write("pgusher.ini", pooler.config_text() + f"%include {pooler.config_path}\n")
    pooler.allow("cannot load config file")
    assert pooler.run_to_end() == 1
    assert pooler.lines("include nesting level too deep")


def test_a_second_reload_recovers(pooler):
    pooler.write("pgusher.ini", "nonsense")
    refuse_reload(pooler)
    pooler.settings["default_pool_size"] = 3
    pooler.reload()
    assert pooler.setting("default_pool_size") == "3"
