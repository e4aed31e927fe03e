# SPDX-License-Identifier: ISC
"""Files that are installed with the daemon: mkauth.py, completion, sample configurations."""

import os
import shutil
import stat
import subprocess

import pytest

from support.process import run
from support.servers.cluster import HARNESS
from support.servers.pooler import binary

ETC = os.path.join(os.path.dirname(__file__), "..", "..", "etc")
SECRETS = {
    "tool md5": "md5" + "0" * 32,
    'tool"quoted': "SCRAM-SHA-256$4096:" + "A" * 24 + "$" + "B" * 43 + "=:" + "C" * 43 + "=",
}


@pytest.fixture
def users(cluster):
    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    names = [*SECRETS, "tool expired", "tool none"]
    for name in names:
        cluster.sql(f"CREATE ROLE {quoted(name)} LOGIN")
    for name, secret in SECRETS.items():
        cluster.sql(f"ALTER ROLE {quoted(name)} PASSWORD '{secret}'")
    cluster.sql("ALTER ROLE \"tool expired\" PASSWORD 'x' VALID UNTIL '2020-01-01'")
    yield
    for name in names:
        cluster.sql(f"DROP ROLE {quoted(name)}")


@pytest.fixture
def own(folder):
    """A copy of a file in etc that the service user can read, wherever the tree is."""

    def copy(name):
        path = os.path.join(folder, "copy-" + name)
        shutil.copyfile(os.path.join(ETC, name), path)
        os.chmod(path, 0o644)
        return path

    return copy


@pytest.fixture
def mkauth(own):
    program = own("mkauth.py")
    return lambda *arguments: run(["/usr/bin/python3", program, *arguments], check=False)


def connstr(cluster):
    return f"host={cluster.host} port={cluster.port} dbname=postgres user={HARNESS}"


def test_an_auth_file_is_made_from_a_running_server(cluster, users, folder, mkauth, new_pooler):
    path = folder + "/userlist.txt"
    done = mkauth(path, connstr(cluster))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open(path) as file:
        lines = file.read().splitlines()
    assert '"tool md5" "md5' + "0" * 32 + '"' in lines
    assert '"tool""quoted" "' + SECRETS['tool"quoted'] + '"' in lines
    assert not any("expired" in line or "none" in line for line in lines)
    assert lines == sorted(lines)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    # And the daemon reads it.
    with open(path) as file:
        pooler = new_pooler(auth=file.read(), start=False)
    assert run([binary(), "--check", pooler.config_path]).stdout == ""


def test_a_file_with_the_same_content_is_not_replaced(cluster, users, folder, mkauth):
    path = folder + "/userlist.txt"
    mkauth(path, connstr(cluster))
    os.utime(path, (1, 1))
    mkauth(path, connstr(cluster))
    assert os.stat(path).st_mtime == 1
    os.chmod(path, 0o640)
    cluster.sql("ALTER ROLE \"tool md5\" PASSWORD 'md5" + "1" * 32 + "'")
    inode = os.stat(path).st_ino
    assert mkauth(path, connstr(cluster)).returncode == 0
    assert os.stat(path).st_ino != inode  # replaced, never half-written
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o640
    assert sorted(os.listdir(folder)) == ["copy-mkauth.py", "userlist.txt"]


def test_a_dash_writes_to_standard_output(cluster, users, mkauth):
    assert '"tool md5" "md5' in mkauth("-", connstr(cluster)).stdout


def test_a_failure_leaves_the_file_as_it_was(cluster, users, folder, mkauth):
    path = folder + "/userlist.txt"
    mkauth(path, connstr(cluster))
    with open(path) as file:
        before = file.read()
    done = mkauth(path, connstr(cluster) + " connect_timeout=2 options=-cnonsense=1")
    assert done.returncode == 1 and done.stderr
    with open(path) as file:
        assert file.read() == before
    assert mkauth(folder + "/no/such", connstr(cluster)).returncode == 1
    assert mkauth(path).stderr == "usage: mkauth.py DEST CONNSTR\n"


def complete(*words):
    script = (
        f'. "{ETC}/pgusher.bash-completion"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
        '_pgusher "$1" "${@: -1}" "${@: -2:1}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", script, "bash", binary(), *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_options_are_completed():
    assert {"--daemon", "--reboot", "--check", "--convert", "--help", "--preset="} <= set(complete("--"))
    assert {"--listen=", "--to=", "--health", "--container"} <= set(complete("--"))
    assert complete("--verb") == ["--verbose"]
    assert complete("--ver") == ["--verbose", "--version"]
    assert "root" in complete("-u", "roo")


def test_options_of_top_are_completed():
    assert complete("to") == ["top"]
    if not os.path.exists(binary() + "-top"):
        pytest.skip("pgusher-top was not built")
    assert complete("top", "--on") == ["--once"]
    assert {"--host=", "--port=", "--no-colour"} <= set(complete("top", "--"))
    assert "root" in complete("top", "-U", "roo") and complete("top", "-p", "6") == []


def test_files_are_completed(tmp_path):
    for name in ("a.ini", "a.txt"):
        (tmp_path / name).touch()
    (tmp_path / "a.d").mkdir()
    assert complete(f"{tmp_path}/a") == [f"{tmp_path}/a.d/", f"{tmp_path}/a.ini"]
    (tmp_path / "a.toml").touch()
    converted = complete("--convert", f"{tmp_path}/a")
    assert converted == [f"{tmp_path}/a.d/", f"{tmp_path}/a.ini", f"{tmp_path}/a.toml"]
    assert complete("--convert", "--from", "pgc") == ["pgcat"]


def test_sample_files_are_valid_configurations(own):
    done = run([binary(), "--check", own("pgusher.ini")], check=False)
    assert done.returncode == 0, done.stdout
