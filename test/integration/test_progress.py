# SPDX-License-Identifier: ISC
"""How far a PAUSE, SHUTDOWN, RELOAD and a takeover are, in words: notices, the log, SHOW WAITS."""

import re
import signal
import subprocess
import time

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program


def hold(pooler, **options):
    client = pooler.client(**options)
    client.query("BEGIN")
    return client


def psql(pooler, *commands):
    """A psql of the console, in the background."""
    arguments = [argument for command in commands for argument in ("-c", command)]
    return subprocess.Popen(
        [program("psql"), "-X", "-h", pooler.folder, "-p", str(pooler.port), "-U", "admin"]
        + [*arguments, "pgbouncer"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def words(line):
    """The text of a log line."""
    return line.split(" LOG ", 1)[1]


def notice(console):
    return wire.read_fields(console.read_until("N")[-1].body)["M"]


# PAUSE


def test_a_pause_says_in_psql_and_in_the_log_what_it_waits_for(pooler):
    idle = pooler.client()
    oldest = hold(pooler, application_name="billing")
    newer = hold(pooler)
    idle.query("SELECT 1")
    port = oldest.socket.getsockname()[1]
    console = psql(pooler, "PAUSE")
    (line,) = pooler.wait_log(r"PAUSE has waited \d s")
    expected = (
        r"PAUSE has waited \d s: 2 of 3 servers are still in use, 2 in a transaction; the oldest "
        r"transaction is open for \d s \(application billing, client \d+ of main/app at "
        rf"127\.0\.0\.1:{port}, idle in transaction\)")
    assert re.fullmatch(expected, words(line))
    newer.send(wire.query("SELECT pg_sleep(2)"))
    oldest.query("COMMIT")
    newer.result()
    # The notice comes after three seconds; by then one client is left.
    newer.query("COMMIT")
    out, errors = console.communicate(timeout=10)
    assert out == "PAUSE\n"
    assert re.fullmatch(
        r"NOTICE:  PAUSE has waited 3 s: 1 of 3 servers is still in use, 1 in a transaction; the "
        r"oldest transaction is open for \d s \(client \d+ of main/app at \S+, a query runs\)\n",
        errors)
    pooler.wait_log(r"PAUSE is complete: no server is in use, after \d s")
    # One line in ten seconds, not at every look.
    assert len(pooler.lines("PAUSE has waited")) == 1
    pooler.command("RESUME")


def test_a_short_pause_says_nothing(pooler):
    holder = hold(pooler)
    console = psql(pooler, "PAUSE")
    wait_until(lambda: pooler.show("WAITS"))
    holder.query("COMMIT")
    assert console.communicate(timeout=10) == ("PAUSE\n", "")
    assert not pooler.lines("has waited|is complete")


def test_the_pause_of_a_database_counts_its_own_servers(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"}, databases={"main": {}, "other": {"dbname": "main"}})
    holder, other = hold(pooler), hold(pooler, database="other")
    pooler.console().send(wire.query("PAUSE other"))
    wait_until(lambda: pooler.show("WAITS", database="other"))
    other.query("ROLLBACK AND CHAIN")
    (row,) = pooler.show("WAITS")
    assert row["waits_for"].startswith("1 of 1 server is still in use")
    assert "of other/app at" in row["waits_for"]
    pooler.wait_log("PAUSE other has waited")
    other.query("COMMIT")
    holder.query("COMMIT")


def test_a_failed_transaction_and_a_session_without_one_are_named(new_pooler):
    pooler = new_pooler({"pool_mode": "session"})
    client = pooler.client()
    client.query("SELECT 1")
    pooler.console().send(wire.query("PAUSE main"))
    wait_until(lambda: pooler.show("WAITS"))
    (row,) = pooler.show("WAITS")
    assert re.fullmatch(
        r"1 of 1 server is still in use, none in a transaction; one client has had its server for "
        r"\d s \(client \d+ of main/app at \S+, idle, not in a transaction\)", row["waits_for"])
    client.query("BEGIN")
    with pytest.raises(ServerError):
        client.query("SELECT 1/0")
    (row,) = pooler.show("WAITS")
    assert row["waits_for"].endswith(", idle in a failed transaction)")
    client.leave()


def test_the_name_of_an_application_cannot_forge_a_line(pooler):
    name = "x\r\n2026-01-01 LOG all is well\x1b[2J" + "é" * 200
    holder = hold(pooler, application_name=name)
    console = pooler.console()
    console.send(wire.query("PAUSE"))
    wait_until(lambda: pooler.show("WAITS"))
    (row,) = pooler.show("WAITS")
    assert "application x" in row["waits_for"] and "idle in transaction)" in row["waits_for"]
    assert row["waits_for"].isprintable()
    assert notice(console).isprintable()
    holder.query("COMMIT")


# SHUTDOWN


def test_a_shutdown_says_how_many_clients_have_left_and_how_long_it_may_take(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "shutdown_timeout": 1000})
    clients = [hold(pooler, application_name="batch"), *(pooler.client() for _ in range(3))]
    console = pooler.console()
    console.send(wire.query("SHUTDOWN WAIT_FOR_CLIENTS"))
    assert re.fullmatch(
        r"SHUTDOWN WAIT_FOR_CLIENTS has waited 0 s: 0 of 4 clients have left, 4 remain and 1 "
        r"console, 1 in a transaction; idle clients are closed; the oldest transaction is open for "
        r"\d s \(application batch, client \d+ of main/app at \S+, idle in transaction\); at most "
        r"(1,000|999) s more", notice(console))
    assert console.result().tag == "SHUTDOWN"
    clients.pop().leave()
    # And again every three seconds, while the console is there.
    began = time.monotonic()
    assert "WAIT_FOR_CLIENTS has waited 3 s: 1 of 4 clients has left, 3 remain" in notice(console)
    assert time.monotonic() - began < 6
    # The console goes on meanwhile.
    assert console.query("SHOW VERSION").rows
    (line,) = pooler.lines("has waited")
    assert "1 of 4 clients has left, 3 remain and 1 console, 1 in a transaction" in line
    assert re.search(r"; at most 99\d s more$", line)
    (row,) = console.query("SHOW WAITS").dicts()
    assert "1 of 4 clients has left" in row["waits_for"]
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def test_psql_gets_the_first_notice_with_the_answer(pooler):
    holder = hold(pooler)
    out, errors = psql(pooler, "SHUTDOWN WAIT_FOR_SERVERS").communicate(timeout=10)
    assert out == "SHUTDOWN\n"
    assert errors.startswith(
        "NOTICE:  SHUTDOWN WAIT_FOR_SERVERS has waited 0 s: 1 of 1 server is still in use, 1 in a "
        "transaction; the oldest transaction is open for ")
    assert errors.endswith("; without a time limit (shutdown_timeout = 0)\n")
    holder.query("COMMIT")
    assert pooler.wait_exit() == 0


def test_other_consoles_get_no_notice(pooler):
    holder, other = hold(pooler), pooler.console()
    other.query("SHOW VERSION")
    pooler.command("SHUTDOWN WAIT_FOR_CLIENTS")
    pooler.wait_log("SHUTDOWN WAIT_FOR_CLIENTS has waited", timeout=5)
    assert other.silent(1.5)
    holder.leave()
    pooler.close_clients()
    assert pooler.wait_exit() == 0


def test_the_end_of_the_time_says_what_was_left(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "shutdown_timeout": 1})
    hold(pooler)
    pooler.signal(signal.SIGTERM)
    assert pooler.wait_exit() == 0
    (line,) = pooler.lines("closing what is left: 0 of 1 client has left, 1 remain, 1 in a ")
    assert line


# RELOAD


def test_a_reload_says_what_it_has_read_and_changed(new_pooler):
    pooler = new_pooler(
        {"pool_mode": "transaction"}, databases={"main": {}, "b": {}, "c": {}, "d": {}},
        users={"app": {"pool_size": 3}})
    client = hold(pooler)
    assert psql(pooler, "RELOAD").communicate(timeout=10) == ("RELOAD\n", "")
    (line,) = pooler.lines("RELOAD: ")
    assert re.fullmatch(
        r"RELOAD: read 2 files with 4 databases and 6 users in \d+ ms, applied in \d+ ms; nothing "
        r"has changed", words(line))
    del pooler.databases["b"], pooler.databases["c"]
    pooler.databases.update({"d": {"pool_size": 2}, "e": {}, "main": {"dbname": "postgres"}, "*": {}})
    pooler.users = {"app": {"pool_size": 4}, "bob": {"pool_size": 1}}
    pooler.auth = {"alice": None, "bob": "secret", "dora": "", "emil": ""}
    pooler.settings.update({"default_pool_size": 7, "query_timeout": 99})
    pooler.write_config()
    out, errors = psql(pooler, "RELOAD").communicate(timeout=10)
    assert out == "RELOAD\n"
    assert re.fullmatch(
        r"NOTICE:  RELOAD: read 2 files with 4 databases and 7 users in \d+ ms, applied in \d+ ms; "
        r"2 databases added, 2 changed, 2 removed; 2 users added, 1 changed, 1 removed; 1 entry of "
        r"\[users\] added, 1 changed; 2 settings changed \(default_pool_size, query_timeout\); "
        r"1 server is to be renewed as it comes free\n", errors)
    assert words(pooler.lines("RELOAD: ")[1]) == errors[len("NOTICE:  "):-1]
    client.query("COMMIT")


def test_a_reload_by_signal_is_in_the_log_and_a_failed_one_is_not(pooler):
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("RELOAD: read 2 files with 1 database and 6 users")
    pooler.write("pgusher.ini", "nonsense\n")
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("config file loading failed")
    assert len(pooler.lines("RELOAD: ")) == 1


def test_many_changed_settings_are_not_all_named(pooler):
    numbers = {
        name: 77 for name in (
            "default_pool_size", "min_pool_size", "reserve_pool_size", "max_db_connections",
            "max_user_connections", "max_db_client_connections", "max_user_client_connections",
            "query_timeout", "query_wait_timeout", "client_idle_timeout", "server_lifetime",
            "server_idle_timeout", "server_connect_timeout", "server_login_retry",
            "idle_transaction_timeout", "transaction_timeout", "max_prepared_statements")}
    pooler.settings.update(numbers)
    pooler.reload()
    assert re.search(
        r"; 17 settings changed \(client_idle_timeout, .*, \.\.\.\)$", pooler.lines("RELOAD: ")[-1])


# Takeover


@pytest.fixture
def authority():
    made = Authority()
    yield made
    made.destroy()


def test_both_processes_of_a_takeover_say_what_they_have(new_pooler, authority):
    certificate, key = authority.issue("localhost", "DNS:localhost")
    pooler = new_pooler({
        "pool_mode": "transaction", "client_tls_sslmode": "allow",
        "client_tls_key_file": key, "client_tls_cert_file": certificate})
    plain = hold(pooler), pooler.client()
    encrypted = pooler.connect(sslmode="require", autocommit=True)
    encrypted.execute("BEGIN")
    old = pooler.process
    pooler.spawn("-R")
    pooler.wait_log("handed over to another process, 1 connections stay")
    (line,) = pooler.wait_log("taken over")
    assert re.fullmatch(
        r"taken over 2 of 3 clients and 1 server in \d+ ms; 1 client stays with "
        rf"process {old.pid} until its transaction ends: encrypted connections cannot be handed over", words(line))
    (line,) = pooler.wait_log("the old process of a takeover has waited")
    assert f"[{old.pid}]" in line
    assert re.fullmatch(
        r"the old process of a takeover has waited \d s: 0 of 1 client has left, 1 remain, 1 in a "
        r"transaction, which could not be handed over \(encrypted connections, logins\); each "
        r"leaves after its transaction; the oldest transaction is open for \d s \(client \d+ of "
        r"main/app at \S+, idle in transaction\); without a time limit \(shutdown_timeout = 0\)",
        words(line))
    encrypted.execute("COMMIT")
    assert old.wait(10) == 0
    assert plain[0].query("COMMIT").tag == "COMMIT"


def test_a_whole_takeover_says_so_in_a_word(pooler):
    holder = hold(pooler)
    pooler.take_over()
    (line,) = pooler.lines("taken over")
    assert re.fullmatch(r"taken over 1 client and 1 server in \d+ ms", words(line))
    holder.query("COMMIT")
