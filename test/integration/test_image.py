# SPDX-License-Identifier: ISC
"""The image's root file system, run as an engine runs it. test/package/container.sh makes it and
names it in PGUSHER_TEST_IMAGE; without it these tests are skipped."""

import argparse
import os
import re
import shlex
import signal
import subprocess

import psycopg
import pytest

from support.container.variables import NAMED
from support.documents import FOLDER as DOCUMENTS
from support.process import HOST, free_port, run, wait_until
from support.servers.cluster import PASSWORDS

IMAGE = os.environ.get("PGUSHER_TEST_IMAGE")
pytestmark = pytest.mark.skipif(
    not IMAGE or os.environ.get("PGUSHER_TEST_PACKAGES") != "1" or os.getuid() != 0,
    reason="needs test/package/container.sh",
)

USER, PASSWORD = "scram_login", PASSWORDS["scram_login"]
ANY_UID = "12345:12345"

# Process 1 of namespaces: the root read-only, no shell in it, and a tmpfs with a secret.
ENTER = r"""
mount --make-rprivate / && mount --bind "$1" "$1" && mount -t proc proc "$1/proc" &&
mount --bind /dev "$1/dev" && mount -t tmpfs -o mode=755 none "$1/run" && mkdir "$1/run/secrets" &&
printf '%s\n' "$SECRET" >"$1/run/secrets/password" && chmod 444 "$1/run/secrets/password" &&
mount -o remount,ro "$1/run" &&
mount --bind /dev/null "$1/usr/bin/dash" && mount --bind /dev/null "$1/usr/bin/bash" || exit 99
[ "$2" = writable ] || mount -o remount,bind,ro "$1" || exit 99
user=$3
root=$1
shift 3
unset SECRET PWD OLDPWD SHLVL _
exec chroot --userspec="$user" --groups= "$root" "$@"
"""


def command_line(*command, user=ANY_UID, mode="readonly"):
    return ["unshare", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child", "/bin/sh", "-c", ENTER,
            "enter", IMAGE, mode, user, "/usr/bin/pgusher", "--container", *command]


def environment_of(variables):
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "SECRET": PASSWORD,
            **variables}


def once(variables, *command, **options):
    """Run the entry point to its end."""
    return run(command_line(*command, **options), as_root=True, check=False, env=environment_of(variables))


class Container:
    """The entry point as it runs."""

    def __init__(self, folder, variables, *command, **options):
        self.log_path = os.path.join(folder, "log")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                command_line(*command, **options), env=environment_of(variables), stdout=log, stderr=log,
                stdin=subprocess.DEVNULL)
        wait_until(lambda: self.process.poll() is not None or "process up: " in self.log(), 20, "the pooler")
        assert self.process.poll() is None, self.log()

    def log(self):
        with open(self.log_path) as file:
            return file.read()

    def signal(self, number):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            os.kill(int(file.read()), number)

    def end(self):
        if self.process.poll() is None:
            self.signal(signal.SIGQUIT)
        return self.process.wait(10)


@pytest.fixture
def start(folder):
    started = []

    def start(variables, *command, **options):
        started.append(Container(folder, variables, *command, **options))
        return started[-1]

    yield start
    for container in started:
        container.end()


@pytest.fixture
def variables(cluster):
    """Those of a pooler for the cluster, with its password in a file."""
    return {"DB_HOST": HOST, "DB_PORT": str(cluster.port), "DB_USER": USER,
            "DB_PASSWORD_FILE": "/run/secrets/password", "AUTH_TYPE": "scram-sha-256",
            "ADMIN_USERS": USER, "LISTEN_PORT": str(free_port())}


def connect(variables, dbname="main", password=PASSWORD):
    return psycopg.connect(host=HOST, port=variables["LISTEN_PORT"], user=USER, dbname=dbname,
                           password=password, autocommit=True, prepare_threshold=None)


def test_any_user_without_anything_to_write_to(start, variables):
    container = start(variables)
    with connect(variables) as connection:
        assert connection.execute("SELECT current_user").fetchone() == (USER,)
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        connect(variables, password="wrong")
    health = once(variables, "--health")
    assert (health.returncode, health.stdout) == (
        0, f"127.0.0.1:{variables['LISTEN_PORT']} - accepting connections\n")
    with connect(variables, "pgbouncer") as console:
        console.execute("RELOAD")
        shown = dict(row[:2] for row in console.execute("SHOW CONFIG"))
    assert shown["conffile"].startswith("/dev/fd/") and shown["unix_socket_dir"] == ""
    container.signal(signal.SIGTERM)
    assert container.process.wait(10) == 0
    assert "got SIGTERM, shutting down" in container.log()
    assert once(variables, "--health").returncode == 2


@pytest.mark.parametrize("program", ["/usr/bin/pgbouncer", "/usr/sbin/pgbouncer", "/bin/pgbouncer", "pgbouncer"])
def test_command_of_other_images(start, variables, program):
    container = start(variables, program, "/etc/pgbouncer/pgbouncer.ini")
    with connect(variables) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    container.signal(signal.SIGINT)
    assert container.process.wait(10) == 0


@pytest.mark.parametrize("user", ["70:70", "12345:0"])
def test_files_are_made_where_they_may_be_written(variables, user):
    made = [os.path.join(IMAGE, "etc/pgbouncer", name) for name in ("pgbouncer.ini", "userlist.txt")]
    try:
        done = once(variables, "/bin/true", user=user, mode="writable")
        assert (done.returncode, done.stderr) == (0, "")
        assert all(os.path.exists(path) for path in made)
    finally:
        for path in made:
            if os.path.exists(path):
                os.unlink(path)


@pytest.mark.parametrize("name", NAMED)
def test_variable(name):
    others, value, lines = NAMED[name]
    places = ["/etc/pgbouncer/pgbouncer.ini", "/bitnami/pgbouncer/conf/pgbouncer.ini",
              "/pgconf/pgbouncer.ini"]
    done = once({**others, name: value.format(folder="/nonexistent")}, "/bin/cat", *places)
    made = done.stdout.splitlines()
    wanted = [line.format(folder="/nonexistent") for line in lines]
    # The auth_file is in memory, too. A path that is not there is nothing to make it at.
    missing = {line for line in wanted if not line.startswith(('"', "auth_file"))} - set(made)
    assert not missing, done.stderr


def test_image_has_no_more_than_it_needs():
    for name in ("usr/bin/gcc", "usr/bin/make", "source", "build", "usr/include/event2"):
        assert not os.path.exists(os.path.join(IMAGE, name))
    with open(os.path.join(IMAGE, "etc/passwd")) as file:
        assert "postgres:x:70:70:" in file.read()


# doc/install-container.md


def documented():
    """What the document runs: the variables, the user, the volume and the command of each line."""
    with open(os.path.join(DOCUMENTS, "install-container.md")) as file:
        lines = re.findall(r"^(?:\| .* `)?podman (run [^`\n]*)`?", file.read(), re.M)
    for line in lines:
        parser = argparse.ArgumentParser()
        for option in ("--rm", "--read-only"):
            parser.add_argument(option, action="store_true")
        for option in ("-p", "-v", "--cap-drop"):
            parser.add_argument(option)
        parser.add_argument("-e", action="append", default=[])
        parser.add_argument("--user", default="70")
        parser.add_argument("command", nargs=argparse.REMAINDER)
        given = parser.parse_args(shlex.split(line)[1:])
        assert given.command.pop(0) == "pgusher"
        yield pytest.param(given, id=line)


@pytest.mark.parametrize("given", documented())
def test_commands_of_the_document(start, given):
    port = free_port()
    variables = dict(variable.split("=", 1) for variable in given.e)
    volume = None
    if given.v:
        source, place, mode = given.v.split(":")
        assert (source, mode) == ("./pgusher.ini", "ro")
        volume = IMAGE + place
        with open(volume, "w") as file:
            file.write(f"[pgbouncer]\nlisten_addr = {HOST}\nlisten_port = {port}\nunix_socket_dir =\n")
    else:
        variables["LISTEN_PORT"] = str(port)
    user = f"{given.user}:{given.user}"
    try:
        if given.command:
            done = once(variables, *given.command, user=user)
            assert done.returncode == 0, done.stderr
        else:
            container = start(variables, user=user)
            assert once(variables, "--health", user=user).returncode == 0
            container.signal(signal.SIGINT)
            assert container.process.wait(10) == 0
    finally:
        if volume:
            os.unlink(volume)


def test_document_has_commands_to_run():
    assert len(list(documented())) == 6
