# SPDX-License-Identifier: ISC
"""--listen and --to: a pooler without a file, and the file that it prints."""

import os
import re
import signal

import psycopg
import pytest

from support.documents import FOLDER as DOCUMENTS
from support.documents import Document
from support.process import HOST, run, service_user, wait_until
from support.servers.cluster import PASSWORDS
from support.servers.pooler import UP, binary

USER = "scram_login"
PASSWORD = PASSWORDS[USER]


@pytest.fixture
def start(cluster, new_pooler):
    """Start a pooler by these options and wait until it is up; what it prints is in the file stdout."""

    def start(*options, **popen):
        pooler = new_pooler(start=False)
        os.unlink(pooler.config_path)
        with open(pooler.write("stdout", ""), "w") as stdout:
            pooler.spawn(*(option.format(port=pooler.port, folder=pooler.folder) for option in options),
                         config=False, stdout=stdout, **popen)
        pooler.wait_up()
        return pooler

    return start


def printed(pooler):
    with open(pooler.path("stdout")) as file:
        return file.read()


def to(cluster, user=USER, password=PASSWORD, **keys):
    """The value of --to for the cluster."""
    words = {"host": HOST, "port": cluster.port, "user": user, "password": password, **keys}
    return " ".join(f"{key}='{value}'" for key, value in words.items() if value is not None)


def refused(*options, **popen):
    """The one line of a start that fails."""
    done = run([binary(), *options], check=False, **popen)
    assert (done.returncode, done.stdout) == (1, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"{binary()}: ")
    return lines[0].removeprefix(f"{binary()}: ")


def test_clients_log_in_as_at_the_server(cluster, start):
    pooler = start("--listen", "{port}", "--to", to(cluster))
    for database in ("main", "other"):
        connection = pooler.connect(USER, database, password=PASSWORD)
        assert connection.execute("SELECT current_user, current_database()").fetchone() == (USER, database)
    for user, password in ((USER, "wrong"), ("app", PASSWORD)):
        with pytest.raises(psycopg.OperationalError, match="authentication failed"):
            pooler.connect(user, "main", password=password)
    pooler.use_console(USER, PASSWORD)
    assert pooler.setting("pool_mode") == "transaction"
    assert pooler.setting("listen_addr") == HOST


def test_url_names_the_server(cluster, start):
    url = f"postgresql://{USER}:{PASSWORD.replace(' ', '%20')}@{HOST}:{cluster.port}/main"
    pooler = start("--listen", "{port}", "--to", url)
    assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="no such database"):
        pooler.connect(USER, "other", password=PASSWORD)


def test_password_of_libpqs_variable(cluster, start):
    pooler = start("--listen", "{port}", "--to", to(cluster, user=None, password=None),
                   environment={"PGUSER": USER, "PGPASSWORD": PASSWORD})
    assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)
    with open(f"/proc/{pooler.process.pid}/cmdline") as file:
        assert PASSWORD not in file.read()


def test_without_a_password_no_other_machine_is_let_in(cluster, start):
    pooler = start("--listen", "{port}", "--to", to(cluster, "app", None))
    assert pooler.connect("anything", "main").execute("SELECT current_user").fetchone() == ("app",)
    told = refused("--listen", ":7000", "--to", "host=db user=app", env={})
    assert told == ("--listen *: without a password in --to (or PGPASSWORD) clients need none, so only local"
                    " addresses are allowed")


def test_what_is_printed_is_the_file(cluster, start, new_pooler):
    pooler = start("--listen", "{port}", "--listen", "{folder}", "--preset", "max_client_conn=33",
                   "--to", to(cluster, sslmode="disable"))
    text = printed(pooler)
    assert PASSWORD not in text and "password=********" in text
    assert f'; "{USER}" "********"\n' in text
    pooler.use_console(USER, PASSWORD)
    shown = pooler.show("CONFIG")
    assert pooler.setting("max_client_conn") == "33"
    pooler.stop()
    # With the passwords put back, the file makes the same pooler.
    same = new_pooler(start=False)
    text = text.replace("password=********", f"password='{PASSWORD}'").replace("userlist.txt", same.auth_path)
    same.write("pgusher.ini", text)
    same.write("userlist.txt", f'"{USER}" "{PASSWORD}"\n')
    same.port, same.folder = pooler.port, same.folder
    same.start()
    same.use_console(USER, PASSWORD)
    differing = {row["key"] for row in shown} - {
        row["key"] for row in same.show("CONFIG") if row in shown}
    assert differing == {"conffile", "auth_file"}


def test_quiet_prints_nothing(cluster, new_pooler):
    pooler = new_pooler(start=False)
    with open(pooler.write("stdout", ""), "w") as stdout:
        pooler.spawn("-q", "--listen", str(pooler.port), "--to", to(cluster), config=False, stdout=stdout)
    wait_until(lambda: run([binary(), "--health", "--listen", str(pooler.port)], check=False).returncode == 0)
    assert printed(pooler) == "" and pooler.log() == ""


def test_reload_finds_the_configuration_again(cluster, start):
    pooler = start("--listen", "{port}", "--to", to(cluster))
    pooler.use_console(USER, PASSWORD)
    pooler.command("SET pool_mode = session")
    pooler.command("RELOAD")
    assert pooler.setting("pool_mode") == "transaction"
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("got SIGHUP, re-reading config")
    assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_reload_after_a_change_of_the_user(cluster, start):
    pooler = start("-u", service_user().pw_name, "--listen", "{port}", "--to", to(cluster), as_root=True)
    pooler.use_console(USER, PASSWORD)
    pooler.command("RELOAD")
    assert not pooler.lines("could not load|Permission denied")


@pytest.mark.parametrize("options, told", [
    (("--listen", "6432"), "--listen needs --to"),
    (("--to", "host=h user=u", "x.ini"), "--to and a configuration file exclude each other"),
    (("--listen", "1", "x.ini"), "--listen and a configuration file exclude each other"),
    (("--to", "host=h"), None),
    (("--to", "user=u"), "--to: it has no host"),
    (("--to", "host=h user=u hots=x"), "--to: hots has no counterpart here"),
    (("--to", "postgres://u:p@ss@h"), "--to: an @ in a user name or password is written %40, so there is one @"),
    (("--to", "host=h user=u", "--listen", "70000"), "--listen 70000: allowed is PORT, ADDRESS, ADDRESS:PORT,"
     " [IPV6]:PORT, or the FOLDER of a Unix socket"),
    (("--to", "host=h user=u", "--preset", "pool_mod=x"),
     "pool_mod = x: there is no such setting: did you mean pool_mode?"),
    (("--to", "host=h user=u", *8 * ("--listen", "1"), "--listen", "1"), "more than 8 times --listen"),
])
def test_mistakes_are_told_in_one_line(options, told):
    if told is None:
        # Without a user it is that of the system, as with libpq.
        done = run([binary(), "--check", *options], check=False, env={})
        assert f"user={(service_user() or __import__('pwd').getpwuid(os.getuid())).pw_name}" in done.stdout
    else:
        assert refused(*options, env={}) == told


def test_port_in_use(cluster, new_pooler):
    other = new_pooler()
    done = run([binary(), "--listen", str(other.port), "--to", to(cluster)], check=False)
    assert done.returncode == 1
    assert re.search(rf"cannot listen on {HOST}:{other.port}: bind\(\): Address already in use", done.stderr)
    assert " FATAL failed to listen on any address in listen_addr list: " in done.stderr


# doc/first-steps.md


@pytest.fixture
def shell(cluster, folder, new_pooler):
    """Run blocks of the document, for the cluster and a free port, as far as the first line differs."""
    pooler = new_pooler(start=False)
    os.symlink(binary(), os.path.join(folder, "pgusher"))
    document = Document("first-steps.md")
    replaced = {"6432": pooler.port, "dbname=app": f"port={cluster.port} dbname=main", " app app": " app main"}
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "PGPASSWORD": "secret", "HOME": folder}

    def run_block(first_line):
        return run(["/bin/sh", "-ec", f"cd {folder}\n" + document.text(first_line, replaced)], env=environment)

    def start_block(first_line):
        text = document.text(first_line, replaced)
        before = len(pooler.lines(UP))
        pooler.spawn("-ec", f"exec env {text}" if text.startswith("PG") else f"exec {text}", config=False,
                     program="/bin/sh", environment=environment)
        pooler.wait_up(before)

    run_block.start, run_block.pooler, run_block.blocks = start_block, pooler, document.blocks
    return run_block


def test_commands_of_the_document(shell):
    start, psql, pools, health, keep = shell.blocks
    shell.start(start)
    for block in (psql, pools, health):
        shell_output = shell(block)
        assert shell_output.returncode == 0
    assert shell(pools).stdout.count("main") >= 1
    shell.pooler.stop()
    # All but the start at the end, then that.
    *check, begin = shell.blocks[keep].splitlines()
    shell.blocks["check"] = "\n".join(check) + "\n"
    shell("check")
    shell.blocks["begin"] = begin
    shell.start("begin")
    shell(psql)


def test_readme_has_the_command_of_the_document():
    (command,) = [block for block in Document("../README.md").blocks if "--to" in block]
    assert command in Document("first-steps.md").blocks


def test_examples_of_the_document_are_accepted():
    with open(os.path.join(DOCUMENTS, "first-steps.md")) as file:
        rows = re.findall(r"^\| ?(.*?) ?\| (`.*) \|$", file.read(), re.M)
    cells = {option: [] for option in ("`--to`", "`--listen`", "`--preset`")}
    for option, cell in rows:
        cells[option if option.strip() else "`--to`"].append(cell)
    first, urls = cells["`--to`"]
    keys = re.findall(r"`(\w+)`", first)
    assert len(keys) == 7
    values = {"sslmode": "require", "sslnegotiation": "postgres", "connect_timeout": "3"}
    targets = ["host=db user=app " + " ".join(f"{key}={values.get(key, '/x')}" for key in keys)]
    targets += re.findall(r"`(postgres.*?)`", urls)
    assert len(targets) == 4
    for target in targets:
        done = run([binary(), "--check", "--to", target], env={"PGPASSWORD": "pw"}, check=False)
        assert done.stdout.startswith("; The configuration of this command"), done.stderr
    (places,) = cells["`--listen`"]
    places = re.findall(r"`(\S+)`", places)
    assert len(places) == 5
    for place in places:
        done = run([binary(), "--check", "--listen", place, "--to", "host=db user=app password=x"], check=False)
        assert done.stdout.startswith("; The configuration of this command"), done.stderr
