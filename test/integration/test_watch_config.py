# SPDX-License-Identifier: ISC
"""watch_config: changed files are read again without a signal, however they were changed."""

import os
import re
import ssl
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))

import rig

from support import wire
from support.clients.raw import ServerError
from support.kubelet import Volume
from support.process import HOST, own, stays, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import program

READ = r" LOG '[^']+' (and \d+ more )?ha(s|ve) changed, re-reading config$"
FAILED = " WARNING config file loading failed$"


@pytest.fixture
def watching(new_pooler):
    """Make a daemon that watches its files."""

    def make(settings=None, **options):
        return new_pooler({"pool_mode": "transaction", "watch_config": 1, **(settings or {})}, **options)

    return make


def named(path, others=0):
    """The line of the log for this changed file."""
    more = rf"' and {others} more have" if others else "' has"
    return " LOG '" + re.escape(path) + more + " changed, re-reading config$"


def replace(path, text):
    """Change a file by renaming another one over it."""
    with open(path + ".new", "w") as file:
        file.write(text)
    own(path + ".new")
    os.rename(path + ".new", path)


def overwrite(path, text):
    """Change a file in place."""
    with open(path, "w") as file:
        file.write(text)


def make_anew(path, text):
    """Delete a file and create it again."""
    os.unlink(path)
    overwrite(path, text)
    own(path)


@pytest.mark.setting("watch_config")
@pytest.mark.parametrize("change", [replace, overwrite, make_anew])
def test_a_changed_file_is_read_again(watching, change):
    pooler = watching()
    client = pooler.client()
    client.query("BEGIN")
    assert pooler.setting("watch_config") == "1"
    for size in (7, 17):
        pooler.settings["default_pool_size"] = size
        change(pooler.config_path, pooler.config_text())
        wait_until(lambda: pooler.setting("default_pool_size") == str(size))
    assert len(pooler.lines(named(pooler.config_path))) == len(pooler.lines(READ)) == 2
    assert client.value("SELECT 1") == "1"


def test_without_the_setting_nothing_is_watched(pooler):
    pooler.settings["default_pool_size"] = 7
    pooler.write_config()
    stays(lambda: pooler.setting("default_pool_size") == "20", 3)
    # By RELOAD it is turned on and off; from then on, and until then, changes count.
    pooler.settings["watch_config"] = 1
    pooler.reload()
    pooler.settings["default_pool_size"] = 8
    pooler.write_config()
    wait_until(lambda: pooler.setting("default_pool_size") == "8")
    pooler.settings.update(default_pool_size=9, watch_config=0)
    pooler.write_config()
    wait_until(lambda: pooler.setting("default_pool_size") == "9")
    pooler.settings["default_pool_size"] = 10
    pooler.write_config()
    stays(lambda: pooler.setting("default_pool_size") == "9", 3)


def test_every_kind_of_file_is_watched(watching, folder):
    authority = Authority()
    try:
        pair = authority.issue("pooler", "IP:127.0.0.1")
        pooler = watching(start=False, auth={"app": "one"})
        pooler.settings.update(
            auth_type="hba",
            auth_hba_file=pooler.write("hba", "local all all trust\nhost all @names all trust\n"),
            auth_ident_file=pooler.write("ident", ""),
            client_tls_sslmode="allow",
            client_tls_cert_file=pair[0],
            client_tls_key_file=pair[1],
            server_tls_ca_file=authority.certificate,
        )
        names = pooler.write("names", "app admin\n".replace(" ", ","))
        os.mkdir(pooler.path("conf.d"))
        one = pooler.write("conf.d/one.ini", "")
        pooler.write("pgusher.ini", f"%include {pooler.path('conf.d')}\n" + pooler.config_text())
        pooler.start()
        paths = [
            pooler.config_path, pooler.auth_path, pooler.settings["auth_hba_file"],
            pooler.settings["auth_ident_file"], names, one, *pair, authority.certificate,
        ]  # fmt: skip
        for path in paths:
            # A blank line more changes the meaning of no such file.
            with open(path, "a") as file:
                file.write("\n")
        pooler.wait_log(named(min(paths), len(paths) - 1))
        assert len(pooler.lines(READ)) == 1
        # Another file in a folder that is included, and one that goes.
        two = pooler.write("conf.d/two.ini", "[pgbouncer]\nquery_timeout = 77\n")
        pooler.wait_log(named(pooler.path("conf.d")))
        assert pooler.setting("query_timeout") == "77"
        os.unlink(two)
        wait_until(lambda: pooler.setting("query_timeout") == "0")
        assert not pooler.lines(FAILED)
    finally:
        authority.destroy()


def test_a_file_of_tls_that_only_set_names_is_watched(watching):
    authority = Authority()
    try:
        pair = authority.issue("first", "IP:127.0.0.1")
        pooler = watching()
        console = pooler.console(unix=True)
        console.query(f"SET client_tls_cert_file = '{pair[0]}'")
        console.query(f"SET client_tls_key_file = '{pair[1]}'")
        console.query("SET client_tls_sslmode = 'allow'")
        with open(pair[0], "a") as file:
            file.write("\n")
        pooler.wait_log(named(pair[0]))
    finally:
        authority.destroy()


def test_a_mistake_is_refused_whole_and_logged_once(watching):
    pooler = watching()
    pooler.settings.update(default_pool_size=7, nonsense=1)
    pooler.write_config()
    pooler.wait_log(FAILED)
    stays(lambda: len(pooler.lines(FAILED)) == 1, 4)
    assert len(pooler.lines("unknown parameter: pgbouncer/nonsense")) == 1
    assert pooler.setting("default_pool_size") == "20"
    # Another change of any file tells the mistake again; its correction is applied.
    pooler.write("userlist.txt", pooler.auth_text() + "\n")
    pooler.wait_log(FAILED, 2)
    del pooler.settings["nonsense"]
    pooler.write_config()
    wait_until(lambda: pooler.setting("default_pool_size") == "7")


def test_a_file_that_was_included_but_missing_is_awaited(watching):
    pooler = watching()
    lost = pooler.path("lost.ini")
    pooler.write("pgusher.ini", pooler.config_text() + f"%include {lost}\n")
    pooler.wait_log(FAILED)
    pooler.write("lost.ini", "query_timeout = 77\n")
    pooler.wait_log(named(lost))
    assert pooler.setting("query_timeout") == "77"


def test_a_file_that_is_missing_is_no_change(watching):
    pooler = watching({"auth_type": "hba"}, start=False)
    pooler.settings["auth_hba_file"] = pooler.write("hba", "host all all all trust\nlocal all all trust\n")
    pooler.write_config()
    pooler.start()
    os.unlink(pooler.path("hba"))
    pooler.settings["default_pool_size"] = 7
    pooler.write_config()
    # Without the rules no client could log in.
    stays(lambda: pooler.setting("default_pool_size") == "20", 4)
    pooler.client()
    pooler.write("hba", "host all all all trust\nlocal all all trust\n")
    wait_until(lambda: pooler.setting("default_pool_size") == "7")
    pooler.client()


def test_a_file_is_not_read_while_it_is_written(watching):
    pooler = watching()
    pooler.settings["default_pool_size"] = 7
    text = pooler.config_text() + "; and a comment\n" * 10
    with open(pooler.config_path, "w") as file:
        # Each half second some lines, up to the middle of a line that would be a mistake.
        for end in range(0, len(text), len(text) // 8):
            file.write(text[end : end + len(text) // 8])
            file.flush()
            stays(lambda: not pooler.lines(READ), 0.6)
    wait_until(lambda: pooler.setting("default_pool_size") == "7")
    assert not pooler.lines(FAILED)


def test_the_watch_goes_on_after_an_online_restart(watching):
    pooler = watching()
    client = pooler.client()
    pooler.take_over()
    pooler.settings["default_pool_size"] = 7
    pooler.write_config()
    wait_until(lambda: pooler.setting("default_pool_size") == "7")
    assert client.value("SELECT 1") == "1"
    assert len(pooler.lines(READ)) == 1


def test_a_preset_turns_it_on_and_stays(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction"}, start=False)
    pooler.start("--preset=watch_config=1", "--preset=query_timeout=55")
    for size in ("7", "8"):
        pooler.settings["default_pool_size"] = size
        pooler.write_config()
        wait_until(lambda: pooler.setting("default_pool_size") == size)
    assert pooler.setting("query_timeout") == "55"


def test_nothing_is_reloaded_while_links_are_suspended(watching):
    pooler = watching()
    console = pooler.console()
    console.query("SUSPEND")
    pooler.settings["default_pool_size"] = 7
    pooler.write_config()
    stays(lambda: not pooler.lines(READ), 3)
    console.query("RESUME")
    wait_until(lambda: pooler.setting("default_pool_size") == "7")


# --- what it costs ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def strace():
    possible, why = rig.can_trace()
    if not possible:
        pytest.skip(why)


def stats_in(pooler, seconds=4):
    """The calls of stat() in some seconds, and all calls but those for locks, which workers contend for
    by chance.
    """
    with rig.traced(pooler.process.pid, pooler.folder) as result:
        stays(lambda: True, seconds)
    calls = result().by_name()
    names = ("stat", "newfstatat", "statx")
    return sum(calls.get(name, 0) for name in names), sum(calls.values()) - calls.get("futex", 0)


def test_the_cost_is_a_stat_per_name_and_second(watching, new_pooler, strace):
    quiet = new_pooler({"pool_mode": "transaction"})
    seen, without = stats_in(quiet)
    assert seen == 0
    pooler = watching()
    seen, calls = stats_in(pooler)
    # Two files, looked at three to five times.
    assert 6 <= seen <= 10
    # Each worker turns a few times a second by itself.
    assert calls <= without * 1.1 + seen + 15


def test_a_thousand_included_files_are_watched(watching):
    pooler = watching(start=False)
    os.mkdir(pooler.path("conf.d"))
    for number in range(1000):
        pooler.write(f"conf.d/{number:04}.ini", f"[databases]\nd{number} = host=127.0.0.1\n")
    pooler.write("pgusher.ini", pooler.config_text() + f"%include {pooler.path('conf.d')}\n")
    pooler.start()
    before = rig.cpu_seconds(pooler.process.pid)
    stays(lambda: True, 4)
    # A stat() takes a microsecond or two: two per cent of a processor is ten times as much.
    assert rig.cpu_seconds(pooler.process.pid) - before < 4 * 0.02
    last = pooler.write("conf.d/0999.ini", "[databases]\nanother = host=127.0.0.1\n")
    pooler.wait_log(named(last), timeout=20)
    assert pooler.show("DATABASES", name="another") and not pooler.show("DATABASES", name="d999")


# --- Kubernetes -------------------------------------------------------------------------------

SCRIPT = "BEGIN;\nSELECT 1;\nSELECT txid_current();\nEND;\n"


class Scene:
    """A pod's volumes, and a database with one role whose password is rotated."""

    def __init__(self, pooler, cluster, authority):
        self.pooler = pooler
        self.cluster = cluster
        self.authority = authority
        self.settings = Volume(pooler.path("config"), {"pgusher.ini": self.ini()})
        self.secrets = Volume(pooler.path("secrets"), self.passwords("one"))
        self.certificate = Volume(pooler.path("tls"), self.pair("first"))
        pooler.config_path = self.settings.file("pgusher.ini")

    def ini(self, **changed):
        pooler = self.pooler
        settings = {
            **pooler.own_settings(), "pool_mode": "transaction", "default_pool_size": 4,
            "watch_config": 1, "auth_type": "scram-sha-256", "server_login_retry": 1,
            "auth_file": pooler.path("secrets/userlist.txt"),
            "client_tls_sslmode": "allow", "client_tls_cert_file": pooler.path("tls/tls.crt"),
            "client_tls_key_file": pooler.path("tls/tls.key"), **changed,
        }  # fmt: skip
        lines = [f"{name} = {value}" for name, value in settings.items()]
        entry = f"main = host={self.cluster.host} port={self.cluster.port}"
        return "\n".join(["[databases]", entry, "[pgbouncer]", *lines, ""])

    def passwords(self, word):
        return {"userlist.txt": f'"scram_login" "{word}"\n"admin" "console"\n'}

    def pair(self, name):
        files = self.authority.issue(name, "IP:127.0.0.1")
        return {key: open(path).read() for key, path in zip(("tls.crt", "tls.key"), files)}

    def rotate_in_the_server(self, word):
        self.cluster.sql(f"ALTER ROLE scram_login PASSWORD '{word}'")

    def pgbench(self, password, *options):
        script = self.pooler.write("script.sql", SCRIPT)
        return subprocess.Popen(
            [program("pgbench"), "-n", "-f", script, "-c", "8", "-j", "2", "-h", HOST, *options]
            + ["-p", str(self.pooler.port), "-U", "scram_login", "main"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, "PGPASSWORD": password, "PGSSLMODE": "require"},
        )  # fmt: skip

    def shown_certificate(self):
        """The common name of the certificate that a new client sees."""
        client = self.pooler.raw()
        client.send(wire.ssl_request())
        assert client.read_bytes(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.authority.certificate)
        client.socket = context.wrap_socket(client.socket, server_hostname=HOST)
        return dict(pair[0] for pair in client.socket.getpeercert()["subject"])["commonName"]

    def rotated(self, word):
        """Whether new clients log in with this password."""
        try:
            self.pooler.client("scram_login", "main", word)
        except ServerError:
            return False
        return True


@pytest.fixture
def scene(new_pooler, cluster):
    authority = Authority()
    pooler = new_pooler(start=False)
    made = Scene(pooler, cluster, authority)
    made.rotate_in_the_server("one")
    pooler.start()
    pooler.use_console("admin", "console")
    yield made
    made.rotate_in_the_server("scram secret")
    authority.destroy()


def test_config_map_and_secrets_are_swapped_under_load(scene):
    pooler = scene.pooler
    load = scene.pgbench("one", "-T", "11")
    wait_until(lambda: len(pooler.servers(state="active")) > 1, what="servers")
    assert scene.shown_certificate() == "first"
    # A ConfigMap.
    scene.settings.update({"pgusher.ini": scene.ini(default_pool_size=6)})
    pooler.wait_log(named(pooler.config_path))
    assert pooler.setting("default_pool_size") == "6"
    wait_until(lambda: len(pooler.servers(database="main")) == 6, what="a larger pool")
    # A Secret: the new password is in force in PostgreSQL and here.
    scene.rotate_in_the_server("two")
    scene.secrets.update(scene.passwords("two"))
    wait_until(lambda: scene.rotated("two"))
    assert not scene.rotated("one")
    # A certificate.
    scene.certificate.update(scene.pair("second"))
    wait_until(lambda: scene.shown_certificate() == "second")
    # New servers log in with the new password too, and new clients in any case.
    pooler.command("RECONNECT main")
    second = scene.pgbench("two", "-t", "20", "-C")
    for process in (second, load):
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and "number of failed transactions: 0 " in out, out
    assert len(pooler.lines(READ)) == 3 and not pooler.lines(FAILED)


def test_config_map_and_secret_that_belong_together(scene):
    """The ConfigMap comes first and cannot be used without the Secret, which comes later."""
    pooler = scene.pooler
    ca = pooler.path("secrets/ca.crt")
    scene.settings.update({"pgusher.ini": scene.ini(
        default_pool_size=7, auth_type="hba", auth_hba_file=pooler.path("secrets/hba"),
        client_tls_cert_file="missing-in-this-folder/tls.crt")})
    # The mistake is told once. What is in force serves on.
    pooler.wait_log("ERROR TLS setup failed: failed to load certificate file")
    assert scene.shown_certificate() == "first"
    scene.settings.update({"pgusher.ini": scene.ini(
        default_pool_size=8, client_tls_ca_file=ca, client_tls_sslmode="verify-ca")})
    pooler.wait_log("ERROR TLS setup failed", 2)
    scene.secrets.update({**scene.passwords("one"), "ca.crt": open(scene.authority.certificate).read()})
    pooler.wait_log(named(ca, 1))
    wait_until(lambda: pooler.lines(READ)[2:])
    assert len(pooler.lines("ERROR TLS setup failed")) == 2
