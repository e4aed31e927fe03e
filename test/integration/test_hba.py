# SPDX-License-Identifier: ISC
"""Logins by the rules of an HBA file, and by maps of system users."""

import os
import pwd
import shutil
import socket
import ssl
import subprocess

import psycopg
import pytest

from support import wire
from support.clients.raw import ServerError
from support.passwords import md5_secret, scram_secret
from support.process import HOST, as_service, run, service_user, wait_until
from support.servers.certificates import Authority
from support.servers.pooler import binary

NO_METHOD = ("FATAL", "28000", "no authentication method is found")
REJECTED = ("FATAL", "28000", "login rejected")
PEER_REJECTED = ("FATAL", "28000", "unix socket login rejected")
CERTIFICATE_FAILED = ("FATAL", "28000", "certificate authentication failed")
PASSWORD_FAILED = ("FATAL", "28P01", "password authentication failed")
SASL_FAILED = ("FATAL", "28P01", "SASL authentication failed")

# Lets the test use the console whatever the rules under test are.
CONSOLE_RULE = "host pgbouncer admin 127.0.0.1/32 trust\n"

as_others = pytest.mark.skipif(os.getuid() != 0, reason="only root can be other users")


@pytest.fixture
def hba_pooler(new_pooler):
    """Make a daemon with these rules and maps: hba_pooler(rules, maps, settings)."""

    def make(rules, maps="", settings=None, start=True, **options):
        pooler = new_pooler(
            {
                "pool_mode": "transaction",
                "auth_type": "hba",
                "auth_hba_file": "hba.conf",
                "auth_ident_file": "ident.conf",
                **(settings or {}),
            },
            start=False,
            **options,
        )
        pooler.write("hba.conf", CONSOLE_RULE + rules)
        pooler.write("ident.conf", maps)
        return pooler.start() if start else pooler

    return make


def rewrite(pooler, rules=None, maps=None):
    """Put other rules and maps into force."""
    if rules is not None:
        pooler.write("hba.conf", CONSOLE_RULE + rules)
    if maps is not None:
        pooler.write("ident.conf", maps)
    pooler.command("RELOAD")


def has_ipv6():
    """Whether ::1 can be listened on here."""
    try:
        with socket.socket(socket.AF_INET6) as six:
            six.bind(("::1", 0))
            return True
    except OSError:
        return False


# --- methods ----------------------------------------------------------------------------------


@pytest.mark.parametrize("unix", [False, True])
@pytest.mark.parametrize(
    "method, secret, codes, failure",
    [
        ("password", "secret", [3, 0], PASSWORD_FAILED),
        ("password", md5_secret("secret", "app"), [3, 0], PASSWORD_FAILED),
        ("password", scram_secret("secret"), [3, 0], PASSWORD_FAILED),
        ("md5", "secret", [5, 0], PASSWORD_FAILED),
        ("md5", scram_secret("secret"), [10, 11, 12, 0], SASL_FAILED),
        ("scram-sha-256", "secret", [10, 11, 12, 0], SASL_FAILED),
        ("scram-sha-256", scram_secret("secret"), [10, 11, 12, 0], SASL_FAILED),
    ],
)
def test_a_rule_asks_for_the_password_by_its_method(hba_pooler, unix, method, secret, codes, failure):
    rules = f"local all all {method}\nhost all all all {method}\n"
    pooler = hba_pooler(rules, auth={"app": secret})
    client = pooler.client(password="secret", unix=unix)
    assert client.methods() == codes
    assert client.value("SELECT current_user") == "app"
    assert pooler.refused(password="wrong", unix=unix).is_(*failure)
    assert pooler.refused("ghost", password="secret", unix=unix).is_(
        *(SASL_FAILED if method == "scram-sha-256" else PASSWORD_FAILED)
    )


@pytest.mark.parametrize("method", ["password", "md5", "scram-sha-256"])
def test_psycopg_and_psql_log_in(hba_pooler, method):
    rules = f"host all all 127.0.0.1/32 {method}\nlocal all all {method}\n"
    pooler = hba_pooler(rules, auth={"app": "secret"})
    assert pooler.connect(password="secret").execute("SELECT 1").fetchone() == (1,)
    for unix in (False, True):
        environment = {**os.environ, "PGPASSWORD": "secret"}
        done = pooler.psql("-Atc", "SELECT current_user", unix=unix, env=environment)
        assert done.stdout == "app\n"
    with pytest.raises(psycopg.OperationalError, match="authentication failed"):
        pooler.connect(password="wrong")


def test_rules_without_a_password(hba_pooler):
    pooler = hba_pooler("host all app all trust\nhost all alice all reject\nlocal all app trust\n")
    assert pooler.client().methods() == [0]
    assert pooler.client(unix=True).methods() == [0]
    assert pooler.refused("alice").is_(*REJECTED)
    assert pooler.refused("bob").is_(*NO_METHOD)
    assert pooler.refused("alice", unix=True).is_(*NO_METHOD)
    assert pooler.lines(r"closing because: login rejected \(age=")
    assert pooler.lines(r"closing because: no authentication method is found \(age=")


def test_unknown_users_are_refused_with_the_error_of_their_rule(hba_pooler):
    pooler = hba_pooler(
        "host trusting all all trust\nhost rejecting all all reject\n"
        "host certain all all cert\nhost mutual all all peer\n"
    )
    assert pooler.refused("ghost", "trusting").is_("FATAL", "28000", '"trust" authentication failed')
    assert pooler.refused("ghost", "rejecting").is_(*REJECTED)
    assert pooler.refused("ghost", "certain").is_(*CERTIFICATE_FAILED)
    assert pooler.refused("ghost", "mutual").is_(*PEER_REJECTED)
    assert pooler.refused("ghost", "ruleless").is_(*NO_METHOD)
    assert pooler.lines("no such user: ghost")
    # Whether the database exists is reported to authenticated clients only.
    assert pooler.refused("app", "trusting").is_("FATAL", "3D000", "no such database: trusting")


@pytest.mark.parametrize("method", ["password", "scram-sha-256"])
@pytest.mark.parametrize("kind", ["clear", "md5", "scram", "empty"])
def test_only_the_right_secret_is_accepted(hba_pooler, method, kind):
    """F39: the stored text is no password, and no rule accepts an empty secret."""
    stored = {
        "clear": "secret",
        "md5": md5_secret("secret", "app"),
        "scram": scram_secret("secret"),
        "empty": "",
    }[kind]
    pooler = hba_pooler(f"host all all all {method}\nlocal all all trust\n", auth={"app": stored})
    guesses = {"secret", stored, stored[3:], md5_secret("secret", "app"), "app", "md5"} - {""}
    if kind != "empty" and (kind, method) != ("md5", "scram-sha-256"):
        guesses -= {"secret"}
        assert pooler.client(password="secret").value("SELECT 1") == "1"
    for guess in sorted(guesses):
        assert pooler.refused(password=guess).sqlstate == "28P01", guess
    # Another rule for the same user has no effect on this one.
    assert pooler.client(unix=True).methods() == [0]
    assert pooler.refused(password="wrong").sqlstate == "28P01"


def test_one_user_by_several_rules(hba_pooler):
    pooler = hba_pooler(
        "local all app scram-sha-256\n"
        "host main app all md5\n"
        "host other app all password\n"
        "host all app all reject\n",
        databases={"main": {}, "other": {}, "third": {"dbname": "main"}},
        auth={"app": "secret"},
    )
    assert pooler.client(password="secret", unix=True).methods() == [10, 11, 12, 0]
    assert pooler.client(password="secret").methods() == [5, 0]
    assert pooler.client(database="other", password="secret").methods() == [3, 0]
    assert pooler.refused(database="third", password="secret").is_(*REJECTED)
    for options in ({"unix": True}, {}, {"database": "other"}):
        assert pooler.refused(password="wrong", **options).sqlstate == "28P01"


# --- which rule -------------------------------------------------------------------------------


def test_the_first_rule_decides(hba_pooler):
    pooler = hba_pooler(
        "host main app 127.0.0.1/32 trust\n"
        "host main all 127.0.0.0/8 reject # all others\n"
        "host all all all trust\n",
        databases={"main": {}, "other": {}},
    )
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.refused("alice").is_(*REJECTED)
    assert pooler.client("alice", "other").value("SELECT 1") == "1"


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_addresses_select_rules(hba_pooler):
    pooler = hba_pooler(
        "host main app ::1/128 trust\n"
        "host main alice 127.0.0.1 255.255.255.255 trust\n"
        "host main bob all trust\n"
        "host main carol 127.0.0.1/8 trust\n",
        settings={"listen_addr": f"{HOST},::1"},
    )
    six = ("::1", pooler.port)
    assert pooler.raw(address=six).login("app", "main").value("SELECT 1") == "1"
    assert pooler.refused("app").is_(*NO_METHOD)
    assert pooler.client("alice").value("SELECT 1") == "1"
    assert pooler.raw(address=six).send_startup("alice").fatal().is_(*NO_METHOD)
    assert pooler.client("bob").value("SELECT 1") == "1"
    assert pooler.raw(address=six).login("bob", "main").value("SELECT 1") == "1"
    # The address in the rule has bits outside of its mask.
    assert pooler.refused("carol").is_(*NO_METHOD)
    assert pooler.lines(
        r"WARNING address does not match mask in hba.conf line #5: 127.0.0.1 / 255.0.0.0"
    )
    done = run(
        [shutil.which("psql"), "-X", "-h", "::1", "-p", str(pooler.port), "-U", "bob", "-d", "main"]
        + ["-Atc", "SELECT 1"]
    )
    assert done.stdout == "1\n"


def test_names_are_lists_with_quotes_and_keywords(hba_pooler):
    pooler = hba_pooler(
        'host "all" all all reject\n'
        'host "my db",main  "a b" , "c""d" all trust\n'
        "host sameuser all all trust\n"
        "host other app,alice all trust\n",
        databases={
            "main": {"user": "app"},
            "my db": {"dbname": "main", "user": "app"},
            "all": {"dbname": "main", "user": "app"},
            "other": {},
            "bob": {"dbname": "main"},
        },
        auth={"a b": "", 'c"d': ""},
    )
    for user in ("a b", 'c"d'):
        for database in ("main", "my db"):
            assert pooler.client(user, database).value("SELECT current_user") == "app"
        assert pooler.refused(user, "other").is_(*NO_METHOD)
    assert pooler.refused("app", "all").is_(*REJECTED)
    assert pooler.client("bob", "bob").value("SELECT current_user") == "bob"
    assert pooler.refused("alice", "bob").is_(*NO_METHOD)
    assert pooler.client("alice", "other").value("SELECT current_user") == "alice"
    assert pooler.refused("bob", "other").is_(*NO_METHOD)


def test_rules_match_the_clients_name_of_the_database(hba_pooler):
    pooler = hba_pooler(
        "host alias all all trust\n", databases={"alias": {"dbname": "main"}, "main": {}}
    )
    assert pooler.client(database="alias").value("SELECT current_database()") == "main"
    assert pooler.refused(database="main").is_(*NO_METHOD)


def test_names_come_from_files_of_which_reload_sees_changes(hba_pooler):
    pooler = hba_pooler("host all @users all trust\n", start=False)
    pooler.write("users", "# these\n\napp, @more\n")
    pooler.write("more", '"alice"\n')
    pooler.start()
    assert pooler.client("app").value("SELECT 1") == "1"
    assert pooler.client("alice").value("SELECT 1") == "1"
    assert pooler.refused("bob").is_(*NO_METHOD)
    pooler.write("more", '"carol"\n')
    pooler.command("RELOAD")
    assert pooler.client("carol").value("SELECT 1") == "1"
    assert pooler.refused("alice").is_(*NO_METHOD)
    os.unlink(pooler.path("more"))
    pooler.command("RELOAD")
    assert pooler.refused("app").is_(*NO_METHOD)
    assert pooler.lines(r"ERROR hba line 2: user: could not open @more: No such file or directory")
    assert pooler.lines(r"ERROR could not parse hba config line 2")


# --- the console ------------------------------------------------------------------------------


def test_the_console_is_called_pgbouncer_by_either_name(hba_pooler):
    rules = "host pgbouncer stats all password\nhost all all all reject\n"
    pooler = hba_pooler(rules, auth={"stats": "secret"})
    for name in ("pgbouncer", "pgusher"):
        client = pooler.client("stats", name, password="secret")
        assert client.methods() == [3, 0]
        assert client.query("SHOW VERSION").rows
        assert pooler.refused("stats", name, password="wrong").is_(*PASSWORD_FAILED)
    assert pooler.refused("stats", "main").is_(*REJECTED)
    assert pooler.refused("app", "pgbouncer").is_("FATAL", "08P01", "not allowed")
    assert pooler.refused("ghost", "pgbouncer").is_(*REJECTED)


def test_the_operator_on_the_machine_needs_no_rule(hba_pooler):
    pooler = hba_pooler("local all all reject\n")
    done = pooler.psql("-Atc", "SHOW VERSION", user="pgbouncer", database="pgbouncer", unix=True)
    assert "PgBouncer" in done.stdout
    assert pooler.lines("pgbouncer access from unix socket")


# --- peer -------------------------------------------------------------------------------------


def psql_as(system_user, pooler, user, folder=None, database="main"):
    """Run psql as a system user over the Unix socket; returns its output or error."""
    entry = pwd.getpwnam(system_user)
    done = subprocess.run(
        ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]
        + [shutil.which("psql"), "-X", "-h", folder or pooler.folder, "-p", str(pooler.port)]
        + ["-U", user, "-d", database, "-Atc", "SELECT 'in as ' || current_user"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
        env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
    )
    return done.stdout.strip() if done.returncode == 0 else done.stderr


FORCED = {"main": {"user": "app"}}


def own_name():
    """The system user that the daemon and psql() run as."""
    user = service_user()
    return user.pw_name if user else pwd.getpwuid(os.getuid()).pw_name


def test_peer_accepts_the_user_of_the_same_name(hba_pooler):
    name = own_name()
    rules = "local all all peer\nhost all all all peer\n"
    pooler = hba_pooler(rules, databases=FORCED, auth={name: ""})
    assert pooler.psql("-Atc", "SELECT 1", user=name, unix=True).stdout == "1\n"
    done = pooler.psql("-Atc", "SELECT 1", user="alice", unix=True, check=False)
    assert "unix socket login rejected" in done.stderr
    # The kernel knows no uid of a TCP client.
    assert pooler.refused(name).is_(*PEER_REJECTED)


@as_others
@pytest.mark.parametrize("secret", ["NULL", "''"])
def test_peer_accepts_users_that_are_looked_up_without_a_secret(hba_pooler, secret):
    name = own_name()
    settings = {"auth_user": "app", "auth_query": f"SELECT $1::text, {secret}"}
    pooler = hba_pooler("local all all peer\n", databases=FORCED, settings=settings)
    assert pooler.psql("-Atc", "SELECT 1", user=name, unix=True).stdout == "1\n"
    done = pooler.psql("-Atc", "SELECT 1", user="ghost", unix=True, check=False)
    assert "unix socket login rejected" in done.stderr


def test_peer_refuses_every_other_uid(hba_pooler):
    pooler = hba_pooler("local all all peer\n", databases=FORCED, auth={"nobody": "", "daemon": ""})
    assert psql_as("nobody", pooler, "nobody") == "in as app"
    assert "unix socket login rejected" in psql_as("nobody", pooler, "daemon")
    assert "unix socket login rejected" in psql_as("daemon", pooler, "nobody")
    assert "unix socket login rejected" in psql_as("root", pooler, "nobody")
    assert "unix socket login rejected" in psql_as("root", pooler, "root")  # not a user of pgusher
    assert pooler.lines("no such user: root")


@as_others
def test_peer_checks_the_process_not_the_path(hba_pooler):
    pooler = hba_pooler("local all all peer\n", databases=FORCED, auth={"nobody": "", "daemon": ""})
    link = pooler.path("link")
    os.symlink(pooler.folder, link)
    assert psql_as("nobody", pooler, "nobody", link) == "in as app"
    assert "unix socket login rejected" in psql_as("daemon", pooler, "nobody", link)
    # A symbolic link to the socket leads to the same socket.
    other = pooler.path("other")
    os.mkdir(other)
    os.chmod(other, 0o755)
    os.symlink(pooler.socket_path, os.path.join(other, os.path.basename(pooler.socket_path)))
    assert psql_as("nobody", pooler, "nobody", other) == "in as app"
    assert "unix socket login rejected" in psql_as("daemon", pooler, "nobody", other)


@as_others
@pytest.mark.setting("auth_ident_file")
def test_peer_with_a_map(hba_pooler):
    pooler = hba_pooler(
        "local all all peer map=staff\n",
        'staff nobody alice\nstaff daemon all\nother nobody bob\nstaff games "all"\n',
        databases=FORCED,
        auth={"nobody": "", "all": ""},
    )
    assert psql_as("nobody", pooler, "alice") == "in as app"
    assert "unix socket login rejected" in psql_as("nobody", pooler, "bob")
    assert "unix socket login rejected" in psql_as("nobody", pooler, "nobody")
    assert psql_as("daemon", pooler, "bob") == "in as app"
    assert psql_as("games", pooler, "all") == "in as app"
    assert "unix socket login rejected" in psql_as("games", pooler, "alice")
    # A map gives no access to a user that does not exist.
    assert "unix socket login rejected" in psql_as("daemon", pooler, "ghost")
    assert len(pooler.lines("ident map staff cannot be matched")) == 3


@as_others
def test_peer_with_a_regular_expression(hba_pooler):
    pooler = hba_pooler(
        "local all all peer map=m\n",
        'm /^no(.*)$ prefix_\\1\nm /^dae "alice"\nm /^(a+)+!$ bob\n',
        databases=FORCED,
        auth={"prefix_body": "", "prefix_": "", "prefix_\\1": ""},
    )
    assert psql_as("nobody", pooler, "prefix_body") == "in as app"
    for user in ("prefix_", "prefix_\\1", "alice"):
        assert "unix socket login rejected" in psql_as("nobody", pooler, user)
    assert psql_as("daemon", pooler, "alice") == "in as app"


@as_others
def test_peer_of_a_uid_without_a_name(hba_pooler):
    pooler = hba_pooler("local all all peer map=m\n", "m /.* all\n", databases=FORCED)
    uid = next(uid for uid in range(54321, 60000) if not _has_name(uid))
    done = subprocess.run(
        ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", shutil.which("psql"), "-X"]
        + ["-h", pooler.folder, "-p", str(pooler.port), "-U", "app", "-d", "main", "-c", "SELECT 1"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd="/",
    )  # fmt: skip
    assert "unix socket login rejected" in done.stderr
    assert pooler.lines(f"no system user has the uid {uid}")


def _has_name(uid):
    try:
        return bool(pwd.getpwuid(uid))
    except KeyError:
        return False


def test_many_peer_logins_at_once(hba_pooler):
    name = pwd.getpwuid(os.getuid()).pw_name
    pooler = hba_pooler(
        "local all all peer\n",
        settings={"max_client_conn": 300, "listen_backlog": 300},
        databases=FORCED,
        auth={name: ""},
    )
    clients = [pooler.raw(unix=True).send_startup(name) for _ in range(200)]
    for number, client in enumerate(clients):
        if number % 3 == 0:
            client.close()  # perhaps before its name is known
    for number, client in enumerate(clients):
        if number % 3:
            client.finish_login(name)
    assert clients[1].value("SELECT 1") == "1"


# --- TLS --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority():
    """The authority that all in these tests trust."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture
def tls_settings(authority):
    """Settings of a daemon that offers TLS to clients."""
    certificate, key = authority.issue("pooler", "IP:127.0.0.1")
    return {
        "client_tls_sslmode": "allow",
        "client_tls_cert_file": certificate,
        "client_tls_key_file": key,
        "client_tls_ca_file": authority.certificate,
    }


def tls_client(pooler, authority, pair=None):
    """A raw client behind a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    if pair:
        context.load_cert_chain(*pair)
    client = pooler.raw()
    client.send(wire.ssl_request())
    assert client.read_bytes(1) == b"S"
    client.socket = context.wrap_socket(client.socket, server_hostname=HOST)
    return client


def test_rules_for_tls_and_for_none(hba_pooler, tls_settings, authority):
    pooler = hba_pooler(
        "hostssl main app all trust\nhostnossl main alice all trust\nhost main bob all trust\n",
        settings=tls_settings,
    )
    assert tls_client(pooler, authority).login("app", "main").value("SELECT 1") == "1"
    assert pooler.refused("app").is_(*NO_METHOD)
    assert pooler.client("alice").value("SELECT 1") == "1"
    assert tls_client(pooler, authority).send_startup("alice").fatal().is_(*NO_METHOD)
    assert tls_client(pooler, authority).login("bob", "main").value("SELECT 1") == "1"
    assert pooler.client("bob").value("SELECT 1") == "1"


def test_certificates_with_and_without_a_map(hba_pooler, tls_settings, authority):
    pooler = hba_pooler(
        "hostssl main app,ghost all cert\n"
        "hostssl main all all cert map=m\n"
        "host main all all cert\n",
        "m robot alice\nm /^(.*)@example\\.com$ \\1\n",
        settings=tls_settings,
    )
    app, robot = authority.issue("app"), authority.issue("robot")
    bob = authority.issue("someone", "DNS:bob@example.com")
    ghost = authority.issue("ghost")

    def refused(pair, user):
        return tls_client(pooler, authority, pair).send_startup(user).fatal()

    assert tls_client(pooler, authority, app).login("app", "main").value("SELECT 1") == "1"
    assert tls_client(pooler, authority, robot).login("alice", "main").value("SELECT 1") == "1"
    assert tls_client(pooler, authority, bob).login("bob", "main").value("SELECT 1") == "1"
    assert refused(robot, "app").is_(*CERTIFICATE_FAILED)
    assert refused(robot, "bob").is_(*CERTIFICATE_FAILED)
    assert refused(bob, "alice").is_(*CERTIFICATE_FAILED)
    assert refused(app, "alice").is_(*CERTIFICATE_FAILED)
    assert len(pooler.lines("ident map: m does not have a match")) == 3
    assert refused(ghost, "ghost").is_(*CERTIFICATE_FAILED)
    assert refused(None, "app").is_(*CERTIFICATE_FAILED)
    assert pooler.refused("app").is_(*CERTIFICATE_FAILED)


# --- files ------------------------------------------------------------------------------------


@pytest.mark.setting("auth_hba_file", "auth_type")
def test_reload_puts_changed_rules_into_force_and_closes_no_client(hba_pooler):
    pooler = hba_pooler("host all app all trust\n")
    client = pooler.client()
    rewrite(pooler, "host all app all reject\n")
    assert pooler.refused().is_(*REJECTED)
    assert client.value("SELECT 1") == "1"
    rewrite(pooler, "host all app all trust\n")
    assert pooler.client().value("SELECT 1") == "1"


def test_bad_lines_are_named_at_error_level_and_ignored(hba_pooler):
    pooler = hba_pooler(
        "host all bob all rejekt\n"
        "hosst all all all trust\n"
        "local all all peer map=x\n"
        "host all all all trust\n",
        "m a\nm a b c\nm root app\n",
    )
    assert pooler.client("bob").value("SELECT 1") == "1"  # the mistyped reject has no effect
    for line in (
        "hba line 2: unsupported method: buf=rejekt",
        "could not parse hba config line 2",
        "hba line 3: unknown type",
        "could not parse hba config line 3",
        "hba line 4: Ident map x is not found in ident config file",
        "could not parse hba config line 4",
        "could not parse ident config line 1",
        "ident line 2: unsupported parameters",
        "could not parse ident config line 2",
    ):
        assert len(pooler.lines(rf"\] ERROR {line}$")) == 1, line
    assert pooler.command("RELOAD").tag == "RELOAD"
    assert len(pooler.lines("could not parse hba config line 2")) == 2


def check(pooler):
    """What --check prints about the configuration: its exit code and lines."""
    done = subprocess.run(
        as_service([binary(), "--check", pooler.config_path]),
        capture_output=True, text=True, timeout=30, cwd=pooler.folder,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()


def test_check_names_each_bad_line_and_fails(hba_pooler):
    pooler = hba_pooler("host all all all trust\n", "m a b\n", start=False)
    assert check(pooler)[0] == 0
    pooler.write("hba.conf", "host all all all rejekt\nhost all all 127.0.0.1/8 trust\n")
    pooler.write("ident.conf", "m /( b\n")
    code, lines = check(pooler)
    assert code == 1
    assert lines == [
        "ident.conf:1: bad regular expression: missing closing parenthesis",
        "hba.conf:1: unsupported method: buf=rejekt: allowed is cert, ldap, md5, password, peer, "
        "reject, scram-sha-256, trust",
        "hba.conf:2: warning: address does not match mask, so that this rule never matches: "
        "127.0.0.1 / 255.0.0.0",
    ]
    pooler.write("hba.conf", "host all all 127.0.0.1/8 trust\n")
    pooler.write("ident.conf", "")
    assert check(pooler)[0] == 0  # a rule that never matches is no syntax error
    os.unlink(pooler.path("hba.conf"))
    code, lines = check(pooler)
    assert code == 1
    assert lines == ["hba.conf: could not open hba config file hba.conf: No such file or directory"]


def test_missing_files_accept_no_client_and_the_daemon_runs(hba_pooler):
    pooler = hba_pooler("host all all all trust\n", start=False)
    os.unlink(pooler.path("hba.conf"))
    os.unlink(pooler.path("ident.conf"))
    pooler.start()
    assert pooler.lines(
        r"\] ERROR could not open ident config file ident.conf: No such file or directory"
    )
    assert pooler.lines(
        r"\] ERROR could not open hba config file hba.conf: No such file or directory"
    )
    assert pooler.refused().is_(*NO_METHOD)
    assert pooler.refused("admin", "pgbouncer").is_(*NO_METHOD)
    pooler.write("hba.conf", CONSOLE_RULE + "host all all all trust\n")
    done = pooler.psql("-c", "RELOAD", user="pgbouncer", database="pgbouncer", unix=True)
    assert done.stdout == "RELOAD\n"
    client = pooler.client()
    os.unlink(pooler.path("hba.conf"))
    pooler.command("RELOAD")
    assert pooler.refused().is_(*NO_METHOD)
    assert client.value("SELECT 1") == "1"


def test_a_reload_that_fails_leaves_the_rules_as_they_are(hba_pooler):
    pooler = hba_pooler("host all all all trust\n")
    pooler.write("hba.conf", CONSOLE_RULE + "host all all all reject\n")
    pooler.write("pgusher.ini", pooler.config_text() + "nonsense = 1\n")
    with pytest.raises(ServerError, match="RELOAD failed"):
        pooler.command("RELOAD")
    assert pooler.client().value("SELECT 1") == "1"
    pooler.write_config()
    pooler.command("RELOAD")
    assert pooler.refused().is_(*REJECTED)


def test_set_reads_no_rules(hba_pooler):
    pooler = hba_pooler("host all all all trust\n", settings={"auth_type": "trust"})
    pooler.command("SET auth_type = 'hba'")
    assert pooler.refused().is_(*NO_METHOD)
    pooler.settings["auth_type"] = "hba"
    pooler.reload()
    assert pooler.client().value("SELECT 1") == "1"
    pooler.write("none.conf", CONSOLE_RULE)
    pooler.command("SET auth_hba_file = 'none.conf'")
    assert pooler.client().value("SELECT 1") == "1"
    pooler.settings["auth_hba_file"] = "none.conf"
    pooler.reload()
    assert pooler.refused().is_(*NO_METHOD)
    assert pooler.setting("auth_hba_file") == "none.conf"
    assert pooler.setting("auth_ident_file") == "ident.conf"


def test_rules_replaced_under_load(hba_pooler):
    """RELOADs while clients log in: every login is checked by one set of rules or the other."""
    pooler = hba_pooler("host all all all trust\n", settings={"max_client_conn": "500"})
    seen = set()
    for number in range(60):
        clients = [pooler.raw().send_startup() for _ in range(5)]
        rewrite(pooler, f"host all all all {'trust' if number % 2 else 'reject'}\n")
        for client in clients:
            message = client.read()
            seen.add(message.type)
            assert message.type in ("R", "E")
            client.close()
    assert "R" in seen
    wait_until(lambda: not pooler.clients(user="app"), 10, "clients to go")
