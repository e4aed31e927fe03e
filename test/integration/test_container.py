# SPDX-License-Identifier: ISC
"""The entry point of the container image: variables of four images, files, memory, pid 1."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import urllib.parse

import psycopg
import pytest

from support.container.variables import BITNAMI, CRUNCHY, EDOBURU, NAMED, OTHERS, ZALANDO
from support.documents import FOLDER as DOCUMENTS
from support.process import HOST, as_service, run, service_user, wait_until
from support.servers.cluster import PASSWORDS
from support.servers.pooler import binary

TREE = os.path.dirname(DOCUMENTS)
USER, PASSWORD = "scram_login", PASSWORDS["scram_login"]
AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def environment_of(folder, variables):
    return {"PATH": os.environ["PATH"], "PGUSHER_CONFIG_FOLDER": folder, **variables}


def container(folder, variables, *command, **options):
    """Run the entry point with these variables alone, its files in this folder."""
    return run([binary(), "--container", *command], check=False,
               env=environment_of(folder, variables), **options)


def files(folder, variables):
    """The lines of the configuration and of the auth_file that these variables make."""
    done = container(folder, variables, "/bin/true")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    text = ""
    for name in ("pgbouncer.ini", "userlist.txt", "users.txt", "mine.txt"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with open(path) as file:
                text += file.read()
            os.unlink(path)
    assert os.listdir(folder) == []
    return text.splitlines()


def refusal(folder, variables, status=1):
    """The text of the one line that the entry point has to say, and that it has made no file."""
    done = container(folder, variables)
    assert (done.returncode, done.stdout) == (status, "")
    (line,) = done.stderr.splitlines()
    assert " FATAL " in line
    assert os.listdir(folder) == []
    return line.split(" FATAL ")[1]


# Variables


@pytest.mark.parametrize("name", NAMED)
def test_variable(folder, name):
    others, value, lines = NAMED[name]
    wanted = {line.format(folder=folder) for line in lines}
    made = files(folder, {**others, name: value.format(folder=folder)})
    assert wanted <= set(made)
    if others:
        assert not wanted <= set(files(folder, others))


@pytest.mark.parametrize("name", sorted(set(NAMED) | {"PGUSHER_MAX_CLIENT_CONN"}))
def test_variable_in_a_file(folder, tmp_path, name):
    others, value, lines = NAMED.get(name, (EDOBURU, "7", ["max_client_conn = 7"]))
    secret = os.path.join(folder, "secret")
    os.chmod(folder, 0o777)
    with open(secret, "w") as file:
        file.write(value.format(folder=folder) + "\n")
    where = os.path.join(folder, "made")
    os.mkdir(where)
    os.chmod(where, 0o777)
    wanted = {line.format(folder=folder) for line in lines}
    done = container(where, {**others, name + "_FILE": secret}, "/bin/true")
    assert done.returncode == 0, done.stderr
    made = "".join(
        open(os.path.join(place, file)).read()
        for place, _, names in os.walk(folder) for file in names if file != "secret"
    )
    assert wanted <= set(made.splitlines())


def settings():
    """The names and defaults of all settings."""
    with open(os.path.join(TREE, "include", "config", "settings.def")) as file:
        rows = re.findall(r'^SETTING\((\w+), (\w+),\s*((?:"[^"]*"\s*)+|NULL),', file.read(), re.M)
    return {name: "".join(re.findall(r'"([^"]*)"', text)) for name, _, text in rows}


# Where the default is not set, or a value without meaning.
VALUES = {
    "cpu_affinity": "0",
    "peers": "dns:p", "per_address_exempt": "10.0.0.0/8", "proxy_networks": "10.0.0.0/8", "verbose": "1",
}


@pytest.mark.parametrize("prefix", ["", "PGBOUNCER_", "PGUSHER_"])
def test_every_setting_has_a_variable(folder, prefix):
    values = {name: VALUES.get(name) or value or "x" for name, value in settings().items()}
    assert len(values) > 130
    if prefix == "":
        del values["user"]  # see below
    made = files(folder, {"DB_HOST": "h", **{prefix + k.upper(): v for k, v in values.items()}})
    assert {f"{name} = {value}" for name, value in values.items()} <= set(made)


def test_presets_are_for_the_daemon(folder):
    presets = {"PGUSHER_PRESETS": "max_client_conn=77"}
    assert files(folder, {**EDOBURU, **presets}) == files(folder, EDOBURU)
    config = os.path.join(folder, "own.ini")
    with open(config, "w") as file:
        file.write("[databases]\n[pgbouncer]\nlisten_addr = 127.0.0.1\nauth_type = any\n")
    os.chmod(config, 0o644)
    assert container(folder, presets, "--check", config).returncode == 0
    done = container(folder, {"PGUSHER_PRESETS": "no_such=1"}, "--check", config)
    assert done.returncode == 1 and "no_such" in done.stdout


def test_the_shells_variable_user_is_not_a_setting(folder):
    assert not any(line.startswith("user =") for line in files(folder, {**EDOBURU, "USER": "root"}))


def documented():
    """The names of variables in the tables of the document."""
    with open(os.path.join(DOCUMENTS, "install-container.md")) as file:
        rows = re.findall(r"^\| (`[A-Z].*?) \|", file.read(), re.M)
    return {name for row in rows for name in re.findall(r"`([A-Z][A-Z_0-9]+)`", row)}


def known():
    """The names of variables that have a row in the program."""
    with open(os.path.join(TREE, "src", "setup", "environment_names.c")) as file:
        return set(re.findall(r'^\t\{"([A-Z_]+)", FACT', file.read(), re.M))


def test_tests_and_document_have_every_variable_of_the_program():
    with_rows = {name for name in NAMED if name in known()} | OTHERS
    assert known() == with_rows
    assert documented() == set(NAMED) | OTHERS


def test_links_of_services_are_not_variables(folder):
    links = {
        "PGBOUNCER_PORT": "tcp://10.0.0.1:6432", "DB_PORT": "tcp://10.0.0.2:5432",
        "PGUSHER_SERVICE_HOST": "10.0.0.1", "PGUSHER_PORT": "tcp://10.0.0.1:6432",
        "PGUSHER_PORT_6432_TCP_ADDR": "10.0.0.1", "PGUSHER_SERVICE_PORT_POSTGRES": "6432",
        "POSTGRESQL_PORT": "tcp://10.0.0.3:5432",
    }
    assert files(folder, {**EDOBURU, **links}) == files(folder, EDOBURU)


def test_empty_variables_are_as_if_not_set(folder):
    empty = {name: "" for name in NAMED} | {name + "_FILE": "" for name in NAMED if name != "AUTH"}
    assert files(folder, {**empty, **EDOBURU}) == files(folder, EDOBURU)
    # But with our own prefix an empty text is one.
    assert "unix_socket_dir =" in files(folder, {**EDOBURU, "PGUSHER_UNIX_SOCKET_DIR": ""})


def test_equal_values_do_not_contradict_each_other(folder):
    made = files(folder, {
        "DATABASE_URL": "postgres://app:secret@db.example", **EDOBURU, "PGHOST": "db.example",
        "PGPASSWORD": "secret", "LISTEN_PORT": "7000", "PGBOUNCER_PORT": "7000",
    })
    assert "* = host=db.example auth_user=app" in made and "listen_port = 7000" in made


CONTRADICTIONS = [
    ({"DATABASE_URL": "postgres://u:p@h1/d", "DB_HOST": "h2"}, "DATABASE_URL (h1) and DB_HOST (h2)"),
    ({"DATABASE_URL": "postgres://u:p1@h/d", "DB_PASSWORD": "p2"}, "DATABASE_URL and DB_PASSWORD"),
    ({"DB_HOST": "h", "POOL_MODE": "session", "PGUSHER_POOL_MODE": "statement"},
     "POOL_MODE (session) and PGUSHER_POOL_MODE (statement)"),
    ({**BITNAMI, "PGBOUNCER_PORT": "1", "PGBOUNCER_LISTEN_PORT": "2"},
     "PGBOUNCER_PORT (1) and PGBOUNCER_LISTEN_PORT (2)"),
    ({"PGHOST": "a", "PG_SERVICE": "b"}, "PGHOST (a) and PG_SERVICE (b)"),
    ({"DB_HOST": "h", "DB_PASSWORD": "x", "DB_PASSWORD_FILE": "{folder}/../secret"},
     "DB_PASSWORD and DB_PASSWORD_FILE"),
    ({"DATABASE_URL": "postgres://u:p@h/d?sslpassword=p1&sslpassword=p2"}, "DATABASE_URL and DATABASE_URL"),
    ({"DB_HOST": "h", "AUTH_LDAP_OPTIONS": "ldapbindpasswd=p1", "PGUSHER_AUTH_LDAP_OPTIONS": "ldapbindpasswd=p2"},
     "AUTH_LDAP_OPTIONS and PGUSHER_AUTH_LDAP_OPTIONS"),
]


@pytest.mark.parametrize("variables, both", CONTRADICTIONS, ids=[both for _, both in CONTRADICTIONS])
def test_contradictions_are_named(folder, variables, both):
    secret = folder + ".secret"
    with open(secret, "w") as file:
        file.write("y\n")
    variables = {name: secret if name.endswith("_FILE") else value for name, value in variables.items()}
    try:
        assert refusal(folder, variables) == f"{both} contradict each other: set one of them"
    finally:
        os.unlink(secret)


MISTAKES = [
    ({}, "no server is named: set DATABASE_URL or DB_HOST, or put a configuration at"),
    ({"POOL_MODE": "session"}, "no server is named"),
    ({"DB_HOST": "h", "AUTH_LDAP_OPTIONS": "ldapbindpasswd=x\n"},
     "AUTH_LDAP_OPTIONS: auth_ldap_options = ...: a value is one line"),
    ({"DATABASE_URL": "postgres://u:p@ss@h/d"}, "DATABASE_URL: an @ in a user name or password is written %40"),
    ({"DATABASE_URL": "postgres:///d"}, "DATABASE_URL: the URL has no host"),
    ({"DATABASE_URL": "mysql://h/d"}, "DATABASE_URL: a URL begins with postgresql://"),
    ({"DATABASE_URL": "postgres://h:x/d"}, "DATABASE_URL: port: invalid port: x"),
    ({"DATABASE_URL": "postgres://h/d?sslmode=maybe"}, "DATABASE_URL: sslmode: "),
    ({"DATABASE_URL": "postgres://h/d?sslmode=require", "SERVER_TLS_SSLMODE": "prefer"},
     "DATABASE_URL: sslmode=require: server_tls_sslmode is prefer already, for all servers"),
    ({"DATABASE_URLS": "postgres://h1/d,postgres://h2/d"}, "DATABASE_URLS: the database d is named twice"),
    ({"DATABASE_URLS": "postgres://u:a@h1/d,postgres://u:b@h2/e"},
     "DATABASE_URLS: the user u has another password elsewhere"),
    ({**EDOBURU, "DB_PORT": "0"}, "DB_PORT: port: invalid port: 0: allowed is a number from 1 to 65535"),
    ({**EDOBURU, "DB_NAME": "it's"}, "DB_HOST: host: a name of an ini file has no quote and no line end"),
    ({**EDOBURU, "DB_PASSWORD": "a\nb"}, "DB_PASSWORD: names and passwords are one line"),
    ({**EDOBURU, "POOL_MODE": "transactions"}, "POOL_MODE: pool_mode = transactions: allowed is session"),
    ({**EDOBURU, "PGUSHER_POOL_MOD": "session"},
     "PGUSHER_POOL_MOD: there is no such setting: did you mean pool_mode?"),
    ({**EDOBURU, "PGUSHER_XYZZY": "1"}, "PGUSHER_XYZZY: there is no such setting"),
    ({**EDOBURU, "LOGFILE": "a\nadmin_users = eve"}, "LOGFILE: logfile = "),
    ({**EDOBURU, "DB_PASSWORD": "", "DB_PASSWORD_FILE": "/nonexistent/pw"},
     "DB_PASSWORD_FILE: /nonexistent/pw: No such file or directory"),
    ({**EDOBURU, "DB_PASSWORD": "", "DB_PASSWORD_FILE": "/dev/null"},
     "DB_PASSWORD_FILE: /dev/null: the file is empty"),
    ({**EDOBURU, "DB_PASSWORD": "", "DB_PASSWORD_FILE": "/tmp"}, "DB_PASSWORD_FILE: /tmp: Is a directory"),
    ({**BITNAMI, "PGBOUNCER_DSN_1": "host"}, "PGBOUNCER_DSN_1: it is NAME=CONNECTION STRING"),
    ({**BITNAMI, "PGBOUNCER_DSN_1": "a=host=b port"}, "PGBOUNCER_DSN_1: a connection string is key=value"),
    ({**BITNAMI, "PGBOUNCER_USERLIST": "bob pw"}, 'PGBOUNCER_USERLIST: a line is "name" "secret"'),
    ({**ZALANDO, "PGSCHEMA": "a; DROP TABLE b"}, "PGSCHEMA: a schema is a name of letters, digits and _"),
]


@pytest.mark.parametrize("variables, reason", MISTAKES, ids=[reason for _, reason in MISTAKES])
def test_mistakes_are_told_in_one_line(folder, variables, reason):
    told = refusal(folder, variables)
    assert told.startswith(reason)
    assert "p@ss" not in told


def test_place_for_a_configuration_is_named(folder):
    assert refusal(folder, {}).endswith(f"put a configuration at {folder}/pgusher.ini")


@AS_ROOT
def test_secret_file_that_may_not_be_read(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("pw")
    secret.chmod(0o600)
    for parent in (tmp_path, *tmp_path.parents[:-2]):
        parent.chmod(0o755)
    told = refusal(folder, {"DB_HOST": "h", "DB_USER": "u", "DB_PASSWORD_FILE": str(secret)})
    assert told == f"DB_PASSWORD_FILE: {secret}: Permission denied"


def test_together_the_values_have_to_be_a_configuration(folder):
    done = container(folder, {**EDOBURU, "PGUSHER_PROXY_PROTOCOL": "required"})
    assert done.returncode == 1 and os.listdir(folder) == []
    error, fatal = done.stderr.splitlines()
    assert "proxy_protocol: proxy_networks is empty" in error
    assert fatal.endswith("the variables of the environment make no configuration")


@pytest.mark.parametrize("variables, told", [
    ({**BITNAMI, "PGBOUNCER_DAEMON_GROUP": "g"}, "PGBOUNCER_DAEMON_GROUP: the variable has no effect"),
    ({**BITNAMI, "PGBOUNCER_FORCE_INITSCRIPTS": "1"},
     "PGBOUNCER_FORCE_INITSCRIPTS: the variable has no effect"),
    ({"DATABASE_URL": "postgres://u:p@h/d?schema=x"},
     "DATABASE_URL: schema has no counterpart here"),
    ({"DB_HOST": "h"}, "the environment: no client can log in, since it names no user"),
])
def test_what_has_no_effect_is_told(folder, variables, told):
    (line,) = container(folder, variables, "/bin/true").stderr.splitlines()
    assert line.endswith(f" WARNING {told}")


# Users


def test_auth_type_any_forces_the_user(folder):
    made = files(folder, {**EDOBURU, "AUTH_TYPE": "any"})
    assert "* = host=db.example user=app password=secret" in made


def test_auth_type_trust_knows_the_user_without_a_password(folder):
    assert '"bob" ""' in files(folder, {"DB_HOST": "h", "DB_USER": "bob", "AUTH_TYPE": "trust"})
    assert '"bob" ""' not in files(folder, {"DB_HOST": "h", "DB_USER": "bob"})


def test_existing_auth_file_is_used_as_it_is(folder):
    path = os.path.join(folder, "userlist.txt")
    with open(path, "w") as file:
        file.write('"app" "other"\n')
    os.chmod(path, 0o644)
    done = container(folder, EDOBURU, "/bin/cat", os.path.join(folder, "pgbouncer.ini"))
    assert f"auth_file = {path}\n" in done.stdout and done.stderr == ""
    with open(path) as file:
        assert file.read() == '"app" "other"\n'


def test_existing_auth_file_without_the_user_is_copied_with_it(folder):
    path = os.path.join(folder, "userlist.txt")
    with open(path, "w") as file:
        file.write('"eve" "other"\n')
    os.chmod(path, 0o644)
    script = f"f=$(sed -n 's/^auth_file = //p' {folder}/pgbouncer.ini); echo $f; cat $f"
    done = container(folder, EDOBURU, "/bin/sh", "-c", script)
    place, *users = done.stdout.splitlines()
    assert place.startswith("/dev/fd/") and set(users) == {'"app" "secret"', '"eve" "other"'}
    assert "lacks a user of the environment: RELOAD does not read it again" in done.stderr
    with open(path) as file:
        assert file.read() == '"eve" "other"\n'


# Files


def test_files_are_the_users_alone(folder):
    container(folder, EDOBURU, "/bin/true")
    for name in ("pgbouncer.ini", "userlist.txt"):
        assert os.stat(os.path.join(folder, name)).st_mode & 0o7777 == 0o600
    assert sorted(os.listdir(folder)) == ["pgbouncer.ini", "userlist.txt"]


def test_existing_configuration_is_used_as_it_is(folder):
    path = os.path.join(folder, "pgbouncer.ini")
    with open(path, "w") as file:
        file.write("[pgbouncer]\n")
    os.chmod(path, 0o644)
    done = container(folder, EDOBURU, "/bin/cat", path)
    assert done.stdout == "[pgbouncer]\n" and os.listdir(folder) == ["pgbouncer.ini"]
    assert f"LOG {path} exists and is used as it is: variables are not" in done.stderr


def test_what_cannot_be_written_is_kept_in_memory(folder):
    gone = os.path.join(folder, "gone")
    path = os.path.join(gone, "pgbouncer.ini")
    done = container(gone, EDOBURU, "/bin/sh", "-c", 'echo "$0"; cat "$0"', path)
    place, text = done.stdout.split("\n", 1)
    assert place.startswith("/dev/fd/")
    assert "[databases]\n* = host=db.example auth_user=app\n" in text
    assert "auth_file = /dev/fd/" in text
    assert os.listdir(folder) == []


@AS_ROOT
def test_full_disk_leaves_nothing_behind(folder):
    """The auth_file still has room, the configuration does not."""
    script = (
        f"mount -t tmpfs -o size=8k,mode=0777 none {folder} && head -c 4096 /dev/zero >{folder}/filler && "
        f"setpriv --reuid=65534 --clear-groups {binary()} --container; echo $?; ls {folder}"
    )
    variables = {**EDOBURU, "PGUSHER_AUTH_QUERY": "SELECT '" + "x" * 5000 + "', $1"}
    done = run(["unshare", "--mount", "/bin/sh", "-c", script], as_root=True,
               env=environment_of(folder, variables))
    assert done.stdout.split() == ["1", "filler"]
    (line,) = done.stderr.splitlines()
    assert line.endswith(f"FATAL cannot write {folder}/pgbouncer.ini: No space left on device")


# Commands


def test_command_is_executed_in_our_place(folder):
    done = container(folder, {}, "/bin/sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM
    assert container(folder, {}, "/bin/sh", "-c", "exit 7").returncode == 7
    # Its arguments are its own.
    assert container(folder, {}, "/bin/echo", "-v", "--health").stdout == "-v --health\n"


@pytest.mark.parametrize("command, status, reason", [
    ("/nonexistent/pgbouncer", 127, "No such file or directory"),
    ("/etc/passwd", 126, "Permission denied"),
])
def test_command_that_cannot_be_run(folder, command, status, reason):
    done = container(folder, {}, command)
    assert done.returncode == status
    assert done.stderr.endswith(f" FATAL cannot run {command}: {reason}\n")


def test_command_inherits_no_ignored_signals(folder):
    done = container(folder, {}, "/bin/grep", "SigIgn", "/proc/self/status")
    ours = run(["/bin/grep", "SigIgn", "/proc/self/status"])
    assert done.stdout == ours.stdout


def test_options_without_a_command_are_those_of_the_pooler(folder):
    assert container(folder, {}, "--version").stdout.startswith("PgBouncer ")
    assert container(folder, {}, "--help").stdout.startswith(binary())
    done = container(folder, EDOBURU, "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(folder) == []
    assert container(folder, {}, "--nonsense").returncode == 1


def test_container_is_the_first_option():
    done = run([binary(), "-v", "--container"], check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"{binary()}: --container is the first option\n")


# Poolers


@pytest.fixture
def start(new_pooler):
    """Start the entry point with these variables, and wait until it is up."""

    def start(variables, *command, folder=None, **options):
        pooler = new_pooler(start=False)
        os.unlink(pooler.config_path)
        os.unlink(pooler.auth_path)
        environment = environment_of(folder or pooler.folder, {
            "PGUSHER_LISTEN_PORT": str(pooler.port), "PGUSHER_UNIX_SOCKET_DIR": "", **variables})
        pooler.spawn("--container", *command, config=False, environment=environment, **options)
        pooler.wait_up()
        return pooler

    return start


def of_family(cluster, family):
    """The variables that name the cluster and a user of it, as an image has them."""
    port = str(cluster.port)
    return {
        "url": {"DATABASE_URL":
                f"postgresql://{USER}:{urllib.parse.quote(PASSWORD)}@{HOST}:{port}/main?sslmode=disable"},
        "edoburu": {"DB_HOST": HOST, "DB_PORT": port, "DB_USER": USER, "DB_PASSWORD": PASSWORD},
        "bitnami": {"POSTGRESQL_HOST": HOST, "POSTGRESQL_PORT": port, "POSTGRESQL_USERNAME": USER,
                    "POSTGRESQL_PASSWORD": PASSWORD, "POSTGRESQL_DATABASE": "main"},
        "zalando": {"PGHOST": HOST, "PGPORT": port, "PGUSER": USER, "PGPASSWORD": PASSWORD},
    }[family]


@pytest.mark.parametrize("family", ["url", "edoburu", "bitnami", "zalando"])
def test_clients_of_each_image_log_in(cluster, start, family):
    pooler = start(of_family(cluster, family))
    connection = pooler.connect(USER, "main", password=PASSWORD)
    assert connection.execute("SELECT current_user, current_database()").fetchone() == (USER, "main")
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        pooler.connect(USER, "main", password="wrong")


def test_configuration_in_memory_survives_reload(cluster, start, folder):
    variables = {**of_family(cluster, "bitnami"), "PGBOUNCER_MAX_CLIENT_CONN": "77"}
    pooler = start(variables, folder=os.path.join(folder, "gone"))
    pooler.use_console(USER, PASSWORD)
    assert pooler.setting("conffile").startswith("/dev/fd/")
    pooler.command("SET max_client_conn = 5")
    pooler.command("RELOAD")
    assert pooler.setting("max_client_conn") == "77"
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("got SIGHUP, re-reading config")
    assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)
    assert os.listdir(folder) == []


def test_file_behind_the_options_is_the_configuration(cluster, start, new_pooler):
    pooler = new_pooler(start=False)
    pooler.spawn("--container", pooler.config_path, config=False, environment=EDOBURU)
    pooler.wait_up()
    assert pooler.setting("conffile") == pooler.config_path


def test_flags_of_the_environment_are_options(cluster, start):
    pooler = start({**of_family(cluster, "bitnami"), "PGBOUNCER_EXTRA_FLAGS": "-v --preset=query_timeout=9"})
    pooler.use_console(USER, PASSWORD)
    assert pooler.setting("query_timeout") == "9"
    assert pooler.lines(" DEBUG ")


def test_name_by_which_it_was_started_stays(cluster, start, folder):
    """Sidecars find the process by its name."""
    os.symlink(binary(), os.path.join(folder, "pgbouncer"))
    pooler = start(of_family(cluster, "edoburu"), program=os.path.join(folder, "pgbouncer"))
    with open(f"/proc/{pooler.process.pid}/comm") as file:
        assert file.read() == "pgbouncer\n"


@pytest.mark.parametrize("number, text", [
    (signal.SIGTERM, "got SIGTERM, shutting down, waiting for all clients disconnect"),
    (signal.SIGINT, "got SIGINT, shutting down, waiting for all servers connections to be released"),
])
def test_signals_of_operators(cluster, start, number, text):
    pooler = start(of_family(cluster, "edoburu"))
    pooler.signal(number)
    assert pooler.wait_exit() == 0
    assert pooler.lines(text)


def test_port_in_use(cluster, new_pooler, folder):
    other = new_pooler()
    done = container(folder, {**of_family(cluster, "edoburu"), "LISTEN_PORT": str(other.port),
                              "LISTEN_ADDR": HOST, "PGUSHER_UNIX_SOCKET_DIR": ""})
    assert done.returncode == 1
    assert f"cannot listen on {HOST}:{other.port}: bind(): Address already in use" in done.stderr
    assert " FATAL failed to listen on any address in listen_addr list: " in done.stderr


# The first process of a container


def spawn_first(pooler, variables, before=""):
    """Run the entry point as process 1 of a namespace, as a user without a name."""
    environment = environment_of("/nonexistent", {
        "PGUSHER_LISTEN_PORT": str(pooler.port), "PGUSHER_UNIX_SOCKET_DIR": "", **variables})
    script = f"{before} exec setpriv --reuid=12345 --regid=12345 --clear-groups {binary()} --container"
    with open(pooler.log_path, "ab") as log:
        pooler.process = subprocess.Popen(
            as_service(["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "/bin/sh", "-c", script],
                       as_root=True),
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)
    pooler.wait_up()


def first_process(pooler):
    """The number of process 1 of the namespace, outside of it."""
    with open(f"/proc/{pooler.process.pid}/task/{pooler.process.pid}/children") as file:
        (child,) = file.read().split()
    return int(child)


def zombies(parent):
    """The numbers of the dead children of a process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == parent:
            found.append(name)
    return found


@AS_ROOT
def test_first_process_without_a_name_serves_and_reaps(cluster, new_pooler):
    pooler = new_pooler(start=False)
    # Orphans, since their parents have ended: one of them ends before the pooler is there, the other
    # may not.
    spawn_first(pooler, of_family(cluster, "edoburu"), "(true &); (sleep 0.2 &); sleep 0.05;")
    first = first_process(pooler)
    try:
        with open(f"/proc/{first}/status") as file:
            assert re.search(r"^Uid:\t12345\t12345", file.read(), re.M)
        assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)
        pooler.close_clients()
        children = f"/proc/{first}/task/{first}/children"
        wait_until(lambda: open(children).read() == "", what="the orphan to be gone")
        assert zombies(first) == []
        os.kill(first, signal.SIGTERM)
        assert pooler.wait_exit() == 0
        assert pooler.lines("got SIGTERM")
    finally:
        # With another user it does not end with its parent.
        if pooler.running():
            os.kill(first, signal.SIGKILL)


@AS_ROOT
def test_started_by_root_it_becomes_the_images_user(cluster, new_pooler, folder):
    user = service_user()
    pooler = new_pooler(start=False)
    environment = environment_of(folder, {
        **of_family(cluster, "edoburu"), "PGUSHER_LISTEN_PORT": str(pooler.port),
        "PGUSHER_UNIX_SOCKET_DIR": "", "PGUSHER_USER": user.pw_name})
    pooler.spawn("--container", config=False, as_root=True, environment=environment)
    pooler.wait_up()
    assert os.stat(f"/proc/{pooler.process.pid}").st_uid == user.pw_uid
    pooler.signal(signal.SIGHUP)
    pooler.wait_log("got SIGHUP, re-reading config")
    assert not pooler.lines("could not load|Permission denied")


# etc/container


def etc(name):
    with open(os.path.join(TREE, "etc", "container", name)) as file:
        return file.read()


def image_instructions():
    """The instructions of the last stage of the Containerfile."""
    spec = importlib.util.spec_from_file_location("image", os.path.join(TREE, "test", "package", "image.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    stages = []
    for word, rest in module.instructions(etc("Containerfile")):
        if word == "FROM":
            stages.append({})
        stages[-1].setdefault(word, []).append(rest)
    assert len(stages) == 2
    return stages


def test_image_runs_as_a_number_without_a_shell():
    _, image = image_instructions()
    assert image["USER"] == ["70"] and image["STOPSIGNAL"] == ["SIGTERM"]
    assert json.loads(image["ENTRYPOINT"][0]) == ["/usr/bin/pgusher", "--container"]
    assert json.loads(image["HEALTHCHECK"][0].partition("CMD ")[2]) == [
        "/usr/bin/pgusher", "--container", "--health"]


def test_image_is_built_with_the_packages_of_the_build_script():
    build, _ = image_instructions()
    packages = re.search(r"--no-install-recommends (.*)$", build["RUN"][0]).group(1).split()
    with open(os.path.join(TREE, "etc", "build.sh")) as file:
        named = re.search(r'^build_packages="(.*?)"', file.read(), re.M | re.S).group(1).split()
    # Those for the manual, and for a terminal.
    assert set(packages) == set(named) - {"pandoc", "libpq-dev", "libncurses-dev"}


@pytest.fixture(scope="module")
def compose():
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(etc("compose.yaml"))


def test_compose_starts_one_after_another(compose):
    services = compose["services"]
    assert services["pgusher"]["depends_on"]["db"] == {"condition": "service_healthy"}
    assert services["try"]["depends_on"]["pgusher"] == {"condition": "service_healthy"}
    assert services["db"]["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert services["pgusher"]["read_only"] is True and services["pgusher"]["cap_drop"] == ["ALL"]
    build = services["pgusher"]["build"]
    folder = os.path.join(TREE, "etc", "container", build["context"])
    assert os.path.exists(os.path.join(folder, build["dockerfile"]))
    limit = int(services["pgusher"]["environment"]["PGUSHER_SHUTDOWN_TIMEOUT"])
    assert limit < int(services["pgusher"]["stop_grace_period"].removesuffix("s"))


def test_pooler_of_compose_serves_and_is_healthy(compose, cluster, start, folder):
    service = compose["services"]["pgusher"]
    secret = os.path.join(folder, "db_password")
    with open(secret, "w") as file:
        file.write(PASSWORD + "\n")
    os.chmod(secret, 0o644)
    variables = service["environment"]
    assert variables["DB_PASSWORD_FILE"] == "/run/secrets/" + service["secrets"][0]
    assert compose["secrets"]["db_password"]["file"] == "secrets/db_password"
    variables = {**variables, "DB_HOST": HOST, "DB_PORT": str(cluster.port), "DB_USER": USER, "DB_NAME": "main",
                 "ADMIN_USERS": USER, "DB_PASSWORD_FILE": secret}
    pooler = start(variables, folder=os.path.join(folder, "gone"))
    assert pooler.connect(USER, "main", password=PASSWORD).execute("SELECT 1").fetchone() == (1,)
    word, *command = service["healthcheck"]["test"]
    assert (word, command[0]) == ("CMD", "/usr/bin/pgusher")
    environment = environment_of(os.path.join(folder, "gone"), {
        **variables, "LISTEN_PORT": str(pooler.port), "PGUSHER_UNIX_SOCKET_DIR": ""})
    assert run([binary(), *command[1:]], env=environment).stdout.endswith("accepting connections\n")
    pooler.use_console(USER, PASSWORD)
    assert pooler.setting("shutdown_timeout") == variables["PGUSHER_SHUTDOWN_TIMEOUT"]


def test_secrets_of_compose_are_made_by_its_command(folder):
    command = re.search(r"^#     (mkdir .*)$", etc("compose.yaml"), re.M).group(1)
    with open(os.path.join(DOCUMENTS, "install-container.md")) as file:
        assert command in file.read()
    run(["/bin/sh", "-ec", f"cd {folder}; {command}"])
    with open(os.path.join(folder, "secrets", "db_password")) as file:
        assert re.fullmatch(r"[0-9a-f]{48}\n", file.read())
