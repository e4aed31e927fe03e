# SPDX-License-Identifier: ISC
"""`pgusher --convert`: configurations of other poolers become ours, which start and serve."""

import contextlib
import os
import resource

import psycopg
import pytest

from support.process import HOST, free_port, own, run
from support.servers.pooler import Pooler, binary, is_sanitized

SAMPLES = os.path.join(os.path.dirname(__file__), "support", "convert")
POOLERS = ("odyssey.conf", "pgcat.toml", "pgagroal.conf", "pgbouncer.ini")
BESIDE = ("pgagroal_databases.conf", "pgagroal_hba.conf", "pgagroal_users.conf")
PASSWORDS = {
    "app": "secret of app",
    "report": "secret of report",
    "admin": 'secret of "admin"',
}


class Conversion:
    """A folder with samples, in which conversions are made."""

    def __init__(self, folder, cluster):
        self.folder, self.port = folder, free_port()
        self.replaced = {
            "@FOLDER@": folder,
            "@PORT@": self.port,
            "@METRICS@": free_port(),
            "@HOST@": cluster.host,
            "@SERVER_PORT@": cluster.port,
            "@DATABASE@": "main",
        }
        for name in (*POOLERS, *BESIDE):
            with open(os.path.join(SAMPLES, name)) as file:
                text = file.read()
            for old, new in self.replaced.items():
                text = text.replace(old, str(new))
            self.write(name, text)

    def path(self, name):
        """A path in the folder."""
        return os.path.join(self.folder, name)

    def write(self, name, content):
        """Write a file; returns its path."""
        path = self.path(name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        own(path)
        return path

    def read(self, name):
        """The text of a file."""
        with open(self.path(name)) as file:
            return file.read()

    def run(self, name, *options, **arguments):
        """Run the conversion of this file."""
        command = [binary(), "--convert", self.path(name), *options]
        return run(command, check=False, **arguments)

    def convert(self, name):
        """Convert this sample into out.ini; returns the list on stderr."""
        done = self.run(name, f"--output={self.path('out.ini')}")
        assert done.returncode == 2, done.stderr
        return done.stderr

    def check(self):
        """Check out.ini."""
        done = run([binary(), "--check", self.path("out.ini")], check=False)
        assert done.returncode == 0, done.stdout


class Converted(Pooler):
    """A daemon with a converted configuration, and the users of the samples."""

    def __init__(self, conversion):
        self._conversion = conversion
        super().__init__()
        self.port = conversion.port
        self.write_config()

    def config_text(self):
        return self._conversion.read("out.ini").replace("user = postgres\n", "")


@pytest.fixture
def conversion(folder, cluster):
    """The samples, with addresses and folders of this test."""
    return Conversion(folder, cluster)


@pytest.fixture
def serve(conversion):
    """Start what was converted; returns a function that connects to it."""
    with contextlib.ExitStack() as stack:

        def start():
            pooler = Converted(conversion)
            stack.callback(pooler.destroy)
            pooler.start()

            def connect(dbname, user, password=None):
                connection = psycopg.connect(
                    host=HOST,
                    port=conversion.port,
                    dbname=dbname,
                    user=user,
                    password=PASSWORDS[user] if password is None else password,
                    autocommit=True,
                )
                return stack.enter_context(connection)

            return connect

        yield start


@pytest.fixture
def report(cluster):
    """The role `report` of the samples."""
    cluster.ask("postgres", "CREATE ROLE report LOGIN")
    yield
    cluster.clear()
    cluster.ask("postgres", "DROP ROLE report")


def value(connection, query):
    """The one value that a query returns."""
    return connection.execute(query).fetchone()[0]


@pytest.mark.parametrize("name", POOLERS)
def test_result_is_valid_and_private(conversion, name):
    conversion.convert(name)
    conversion.check()
    for made in os.listdir(conversion.folder):
        if made.startswith("out."):
            assert os.stat(conversion.path(made)).st_mode & 0o777 == 0o600, made
        assert not made.endswith(".new")


@pytest.mark.parametrize("name", POOLERS)
def test_stdout_has_no_passwords_and_the_list_neither(conversion, name):
    done = conversion.run(name)
    assert done.returncode == 2
    assert "secret of" not in done.stdout + done.stderr
    assert "********" in done.stdout or name == "pgagroal.conf"


def test_converted_odyssey_serves(conversion, report, serve):
    listed = conversion.convert("odyssey.conf")
    assert "workers" not in listed
    assert "odyssey.conf:95: not converted: options: " in listed
    connect = serve()
    client = connect("app", "app")
    assert value(client, "SELECT current_database()") == "main"
    client.execute("SET work_mem = '7MB'")
    connect("app", "report").execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        connect("postgres", "app")
    with pytest.raises(psycopg.OperationalError):
        connect("app", "app", "another")
    console = connect("pgbouncer", "admin", "secret of admin")
    pools = {row[1]: row for row in console.execute("SHOW POOLS").fetchall() if row[0] == "app"}
    assert "transaction" in pools["app"] and "session" in pools["report"]


def test_converted_pgcat_serves(conversion, report, serve):
    listed = conversion.convert("pgcat.toml")
    assert "pgcat.toml:65: not converted: mirrors: " in listed
    connect = serve()
    assert value(connect("app", "app"), "SELECT current_database()") == "main"
    assert value(connect("app_ro", "app"), "SELECT current_database()") == "main"
    assert value(connect("two shards", "report"), "SELECT current_database()") == "main"
    shard = connect("two shards_shard_1", "app")
    assert value(shard, "SELECT current_database()") == "postgres"
    with pytest.raises(psycopg.OperationalError):
        connect("app", "report")
    console = connect("pgbouncer", "admin")
    rows = console.execute("SHOW CONFIG").fetchall()
    settings = {row[0]: row[1] for row in rows}
    assert (settings["server_idle_timeout"], settings["pool_mode"]) == ("30", "transaction")


def test_converted_pgagroal_serves(conversion, report, serve):
    listed = conversion.convert("pgagroal.conf")
    assert "pgagroal_users.conf:1: not converted: the password of user app is encrypted" in listed
    with open(conversion.path("out.userlist.txt"), "a") as file:
        file.write('"app" "secret of app"\n"report" "secret of report"\n')
    conversion.check()
    connect = serve()
    assert value(connect("app", "app"), "SELECT current_database()") == "main"
    assert value(connect("app", "report"), "SELECT current_user") == "report"
    with pytest.raises(psycopg.OperationalError):
        connect("postgres", "app")


def test_converted_pgbouncer_serves(conversion, serve):
    conversion.write("userlist.txt", '"app" "secret of app"\n"admin" "secret of admin"\n')
    listed = conversion.convert("pgbouncer.ini")
    assert "pgbouncer.ini:13: not converted: pool_size: " in listed
    assert "pgbouncer.ini:24: not converted: not possible here: " in listed
    assert "\n; pool_size = 30\n" in conversion.read("out.ini")
    connect = serve()
    assert value(connect("direct", "app"), "SELECT current_user") == "app"


def test_differences_are_those_from_the_defaults(conversion):
    done = conversion.run("pgbouncer.ini", "--diff")
    assert "default_pool_size = 15 (default: 20)\n" in done.stdout
    assert "client_idle_timeout" not in done.stdout


def test_all_is_converted_without_a_finding(conversion):
    path = conversion.write("a.conf", '[pgagroal]\nhost = *\nport = 1\n[one]\nhost = h\n')
    os.unlink(conversion.path("pgagroal_users.conf"))
    os.unlink(conversion.path("pgagroal_databases.conf"))
    os.unlink(conversion.path("pgagroal_hba.conf"))
    done = conversion.run("a.conf")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Made by pgusher --convert of {path}\n" in done.stdout
    assert "\n* = host=h port=5432\n" in done.stdout


def test_unknown_keys_are_listed(conversion):
    conversion.write("p.toml", '[general]\nprot = 1\n"x y" = 2\n[new]\na = 1\n[pools.a.users.0]\nsize = 1\n')
    listed = conversion.run("p.toml").stderr
    assert "p.toml:2: not converted: prot: unknown: is it port?" in listed
    assert "p.toml:3: not converted: x y: unknown: " in listed
    assert "p.toml:4: not converted: new: unknown: " in listed
    conversion.write("o.conf", 'storage "s" { host "h" hots 5 }\nlisten { prt 1 }\n')
    listed = conversion.run("o.conf").stderr
    assert "o.conf:1: not converted: hots: unknown: is it host?" in listed
    assert "o.conf:2: not converted: prt: unknown: is it port?" in listed


def test_nothing_is_overwritten_and_nothing_is_half_written(conversion):
    conversion.write("out.hba.conf", "mine")
    before = sorted(os.listdir(conversion.folder))
    done = conversion.run("odyssey.conf", f"--output={conversion.path('out.ini')}")
    assert done.returncode == 1
    assert "out.hba.conf: exists already, and no file is overwritten" in done.stderr
    assert sorted(os.listdir(conversion.folder)) == before
    assert conversion.read("out.hba.conf") == "mine"


def test_full_disk_leaves_nothing(conversion):
    before = sorted(os.listdir(conversion.folder))
    limited = [
        "prlimit",
        "--fsize=300",
        "sh",
        "-c",
        "trap '' XFSZ; exec \"$@\"",
        "sh",
        binary(),
        "--convert",
        conversion.path("odyssey.conf"),
        f"--output={conversion.path('out.ini')}",
    ]
    done = run(limited, check=False)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert sorted(os.listdir(conversion.folder)) == before


@pytest.mark.parametrize(
    "content, said",
    [
        ('[general]\nhost = "x\n', ":2: the string has no end in its line: "),
        ('[general]\nadmin_password = """x\n', ":2: column 21: the string that starts here has no end\n"),
        ("[general]\nport = yes\n", ":2: this is no value: "),
        (b"[general]\nhost = '\xff'\n", ":2: this is no text: "),
        (b"[general]\nhost = '\0'\n", ":2: this is no text: "),
        ("listen {\n", ":1: the block that opens here has no }\n    listen {\n           ^"),
        ("[pgagroal]\nhost = *\nport\n", ":3: syntax error: "),
        ("[databases]\nx\n", ":2: syntax error: "),
        ("[databases]\n", "the result: "),
        ("what is it", ": it is not seen of which pooler this file is: "),
        ("", ": it is not seen of which pooler this file is: "),
    ],
)
def test_what_cannot_be_read_is_an_error(conversion, content, said):
    conversion.write("bad", content)
    done = conversion.run("bad", f"--output={conversion.path('out.ini')}")
    assert done.returncode == 1
    assert said in done.stderr
    assert not os.path.exists(conversion.path("out.ini"))


def test_odd_files_are_errors(conversion):
    for path, said in (("/dev/zero", "not seen"), ("/tmp", "Is a directory"), ("/nowhere", "No such")):
        done = run([binary(), "--convert", path], check=False)
        assert (done.returncode, done.stdout) == (1, "")
        assert said in done.stderr
    done = conversion.run("odyssey.conf", "--output=/nowhere/out.ini")
    assert done.returncode == 1 and "/nowhere/out.ini: its folder cannot be used" in done.stderr
    done = conversion.run("odyssey.conf", "--from=pgbounce")
    assert done.returncode == 1 and "--from has one of these names" in done.stderr


def test_named_pooler_counts_before_the_content(conversion):
    done = conversion.run("pgcat.toml", "--from=pgagroal")
    assert done.returncode == 1


def test_includes_end(conversion):
    conversion.write("o.conf", 'include "o.conf"\n')
    done = conversion.run("o.conf")
    assert done.returncode == 1
    assert "too many files include others" in done.stderr


def test_large_files_take_bounded_time_and_memory(conversion):
    users = "".join(
        f'[pools.p{i}.users.0]\nusername = "u"\npassword = "p{i}"\npool_size = {i}\n' for i in range(3000)
    )
    conversion.write("large.toml", "[general]\n" + users)

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    done = conversion.run("large.toml", preexec_fn=limit)
    assert done.returncode in (1, 2), done.stderr[-300:]
    assert "and " in done.stderr


def test_long_name_does_not_become_many_texts(conversion):
    shards = ",".join(f'{i}={{servers=[["h",1,"p"]]}}' for i in range(8000))
    users = '{0={username="u",password="p"}}'
    conversion.write("long.toml", f'[pools]\n"{"a" * 1000000}" = {{ users = {users}, shards = {{{shards}}} }}\n')

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
        if not is_sanitized():  # AddressSanitizer reserves terabytes
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))

    done = conversion.run("long.toml", "--from=pgcat", preexec_fn=limit)
    assert done.returncode == 2, done.stderr[-300:]
    assert "not possible as a database: the name is too long" in done.stderr
