# SPDX-License-Identifier: ISC
"""Users that are in no file: looked up with auth_query, as auth_user, in auth_dbname."""

import os
import re
import signal
import threading

import pytest

from support import wire
from support.clients.raw import ServerError
from support.passwords import ScramClient, md5_answer, md5_secret
from support.process import wait_until
from support.servers.fake_server import FakeConnection
from support.servers.pooler import is_sanitized

ADMIN_SECRET = "open sesame"
PASSWORD = "Geheim 12'\""
CONFIG_ERROR = ("FATAL", "08P01", "bouncer config error")
NO_SUCH_USER = ("FATAL", "28000", "no such user")
FAILED = {
    "plain": ("FATAL", "28P01", "password authentication failed"),
    "md5": ("FATAL", "28P01", "password authentication failed"),
    "scram-sha-256": ("FATAL", "28P01", "SASL authentication failed"),
}
METHODS = list(FAILED)

ROLES = """
CREATE ROLE asker LOGIN SUPERUSER;
ALTER ROLE asker SET log_statement = 'all';
SET password_encryption = 'md5';
CREATE ROLE hashed LOGIN PASSWORD {password};
CREATE ROLE "Ünal ""the"" user" LOGIN PASSWORD {password};
SET password_encryption = 'scram-sha-256';
CREATE ROLE scrammed LOGIN PASSWORD {password};
CREATE ROLE stale LOGIN PASSWORD {password} VALID UNTIL '2001-01-01';
CREATE ROLE nobody_at_all NOLOGIN PASSWORD {password};
RESET password_encryption;
"""
NAMES = ["asker", "hashed", 'Ünal ""the"" user', "scrammed", "stale", "nobody_at_all"]

# Every user exists and has its name as password; the lookup of the user slow takes a while.
SLOW_QUERY = (
    "SELECT $1::text, $1::text FROM (SELECT pg_sleep("
    "CASE WHEN $1::text LIKE 'slow%' THEN 60 WHEN $1::text LIKE 'late%' THEN 1 ELSE 0 END)) x"
)


@pytest.fixture
def roles(cluster):
    """The cluster with roles that can be looked up; all logins to it are trusted."""
    quoted = "'" + PASSWORD.replace("'", "''") + "'"
    cluster.sql(ROLES.format(password=quoted))
    yield cluster
    cluster.clear()
    for name in NAMES:
        cluster.sql(f'DROP ROLE "{name}"')


@pytest.fixture
def asking(roles, new_pooler):
    """Make a daemon that looks users up: asking(settings, ...)."""

    def make(settings=None, auth=None, **options):
        settings = {"auth_user": "asker", "auth_type": "md5", **(settings or {})}
        secrets = {"alice": None, "bob": None, "carol": None, "admin": ADMIN_SECRET}
        pooler = new_pooler(settings, auth={**secrets, **(auth or {})}, **options)
        pooler.use_console("admin", ADMIN_SECRET)
        return pooler

    return make


class Lookups:
    """The queries that the role asker has sent to the server since this was made."""

    LINE = re.compile(r"asker@(\w+) .*(?:statement|execute <unnamed>): (.*)")

    def __init__(self, cluster):
        self.cluster = cluster
        self.start = len(cluster.log())

    def __call__(self):
        lines = self.cluster.log()[self.start:].splitlines()
        return [match.groups() for match in map(self.LINE.search, lines) if match]

    def queries(self):
        """The statements alone."""
        return [sql for _, sql in self()]


def mine(queries):
    """The default auth_query among these statements."""
    return [sql for sql in queries if "FROM pg_authid WHERE rolname=$1" in sql]


# Methods and kinds of secrets


@pytest.mark.setting("auth_user", "auth_query")
@pytest.mark.parametrize("method, user", [
    ("plain", "hashed"),
    ("plain", "scrammed"),
    ("md5", "hashed"),
    ("md5", "scrammed"),
    ("scram-sha-256", "scrammed"),
])
def test_the_right_password_is_accepted_and_no_other(asking, method, user):
    pooler = asking({"auth_type": method})
    assert pooler.client(user, password=PASSWORD).value("SELECT current_user") == user
    stored = pooler.cluster.secret(user)
    for wrong in ("wrong", PASSWORD + " ", stored, stored[3:], "asker"):
        error = pooler.refused(user, password=wrong)
        assert (error.severity, error.sqlstate) == ("FATAL", "28P01")
        kind = "scram-sha-256" if user == "scrammed" and method != "plain" else method
        assert error.is_(*FAILED[kind])


def test_an_md5_secret_fails_a_scram_exchange(asking):
    pooler = asking({"auth_type": "scram-sha-256"})
    client = pooler.raw().send_startup("hashed")
    client.read()
    client.send_sasl_first(ScramClient(PASSWORD).first())
    assert client.fatal().is_(*FAILED["scram-sha-256"])


@pytest.mark.parametrize("method", METHODS)
def test_an_own_auth_query_may_return_plain_passwords(asking, method):
    pooler = asking({"auth_type": method, "auth_query": "SELECT $1::text, 'p' || $1::text"})
    for _ in range(3):
        assert pooler.client("alice", password="palice").value("SELECT current_user") == "alice"
    assert pooler.refused("alice", password="alice").is_(*FAILED[method])


def test_trust_accepts_every_user_that_is_found(asking):
    pooler = asking({"auth_type": "trust"})
    for user in ("hashed", "scrammed", "stale", "alice"):
        assert pooler.client(user).value("SELECT current_user") == user
    assert pooler.refused("ghost").is_(*NO_SUCH_USER)
    assert pooler.refused("nobody_at_all").is_(*NO_SUCH_USER)
    assert len(pooler.lines("login failed: db=main user=ghost$")) == 1


def test_psycopg_and_psql_log_in(asking):
    pooler = asking()
    connection = pooler.connect('Ünal "the" user', password=PASSWORD)
    assert connection.execute("SELECT current_user").fetchone() == ('Ünal "the" user',)
    done = pooler.psql("-Atc", "SELECT current_user", user="scrammed", env={"PGPASSWORD": PASSWORD})
    assert done.stdout == "scrammed\n"


@pytest.mark.parametrize("method, user, password", [
    ("md5", "md5_login", "md5 secret"),
    ("scram-sha-256", "scram_login", "scram secret"),
])
def test_a_secret_that_was_found_logs_in_to_servers(asking, method, user, password):
    pooler = asking({"auth_type": method})
    client = pooler.client(user, password=password)
    assert client.value("SELECT current_user") == user
    client.leave()
    # The keys outlive the connection, and belong to this user only.
    pooler.command("RECONNECT main")
    assert pooler.client(user, password=password).value("SELECT current_user") == user
    error = pooler.refused(user, password="wrong")
    assert error.sqlstate == "28P01"


def test_a_changed_password_is_in_force_at_once(asking, cluster):
    pooler = asking({"auth_type": "scram-sha-256"})
    assert pooler.client("scram_login", password="scram secret").value("SELECT 1") == "1"
    try:
        cluster.sql("ALTER ROLE scram_login PASSWORD 'another'")
        assert pooler.refused("scram_login", password="scram secret").sqlstate == "28P01"
        pooler.command("RECONNECT main")
        client = pooler.client("scram_login", password="another")
        assert client.value("SELECT current_user") == "scram_login"
    finally:
        cluster.sql("ALTER ROLE scram_login PASSWORD 'scram secret'")


# A user without a secret has no password


GUESSES = ["", "x", "NULL", "null", "\\N", "md5", "late", "stale", "SCRAM-SHA-256", "0", "asker"]


def attempt(pooler, user, method, guess, database="main"):
    """Try a password, even an empty one; the error that ends the login."""
    client = pooler.raw().send_startup(user, database)
    body = client.read().body
    if method == "plain":
        client.send(wire.password(guess))
    elif method == "md5":
        assert body[:4] == b"\0\0\0\5"
        client.send(wire.password(md5_answer(md5_secret(guess, user), body[4:8])))
    else:
        scram = ScramClient(guess)
        client.send_sasl_first(scram.first())
        found = client.read()
        assert found.type == "R"
        client.send_sasl(scram.final(found.body[4:].decode()))
    return client.fatal()


@pytest.mark.parametrize("method", METHODS)
def test_an_expired_role_is_refused_until_it_is_valid_again(asking, cluster, method):
    """CVE-2025-2291, F40: the query returns NULL, which must not become a word that a client can
    guess."""
    databases = {"main": {}, "forced": {"dbname": "main", "user": "app"}}
    pooler = asking({"auth_type": method}, databases=databases)
    for database in databases:
        for guess in [PASSWORD, *GUESSES]:
            error = attempt(pooler, "stale", method, guess, database)
            if guess or method != "plain":
                assert error.is_(*FAILED[method])
            else:
                assert error.text == "empty password returned by client"
    cluster.sql("ALTER ROLE stale VALID UNTIL 'infinity'")
    assert pooler.client("stale", password=PASSWORD).value("SELECT 1") == "1"


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_secret_is_never_the_right_one(asking, method):
    pooler = asking({"auth_type": method, "auth_query": "SELECT $1::text, ''"})
    for guess in GUESSES[1:]:
        assert attempt(pooler, "alice", method, guess).is_(*FAILED[method])


# Which user asks, in which database, and with which query


@pytest.mark.setting("databases.auth_user", "databases.auth_query", "databases.auth_dbname")
def test_a_database_may_have_its_own_user_database_and_query(asking, roles):
    queries_sent = Lookups(roles)
    entry = {
        "dbname": "main",
        "auth_user": "asker",
        "auth_query": "SELECT rolname, rolpassword FROM pg_authid WHERE rolname = lower($1)",
        "auth_dbname": "elsewhere",
    }
    databases = {"main": entry, "elsewhere": {"dbname": "other"}, "plain": {"dbname": "main"}}
    pooler = asking({"auth_user": None}, databases=databases)
    assert pooler.client("hashed", password=PASSWORD).value("SELECT current_database()") == "main"
    assert {where for where, _ in queries_sent()} == {"other"}
    assert queries_sent.queries()[0] == entry["auth_query"]
    wait_until(lambda: pooler.pool("elsewhere", "asker")["sv_idle"] == 1)
    # The other databases look no user up.
    assert pooler.refused("hashed", "plain", PASSWORD).is_(*FAILED["md5"])


@pytest.mark.setting("auth_dbname")
def test_a_global_auth_dbname_serves_every_database_and_the_console(asking, roles):
    queries_sent = Lookups(roles)
    databases = {"main": {}, "users": {"dbname": "other"}}
    pooler = asking({"auth_dbname": "users", "admin_users": "scrammed,admin"}, databases=databases)
    assert pooler.client("hashed", password=PASSWORD).value("SELECT 1") == "1"
    console = pooler.client("scrammed", "pgbouncer", PASSWORD)
    assert console.query("SHOW VERSION").rows
    assert console.query("PAUSE users").tag == "PAUSE"
    assert console.query("RESUME users").tag == "RESUME"
    assert pooler.refused("hashed", "pgbouncer", PASSWORD).text == "not allowed"
    assert pooler.refused("ghost", "pgbouncer", PASSWORD).is_(*NO_SUCH_USER)
    assert {where for where, _ in queries_sent()} == {"other"}


def test_the_console_cannot_be_the_auth_dbname(asking):
    databases = {"main": {"auth_dbname": "pgbouncer"}}
    pooler = asking(databases=databases)
    for database in ("main", "pgbouncer"):
        assert pooler.refused("hashed", database, PASSWORD).is_(*CONFIG_ERROR)
    line = 'cannot use the reserved "pgbouncer" database as an auth_dbname'
    assert len(pooler.lines(line)) == 2


def test_an_unknown_or_disabled_auth_dbname_is_reported(asking):
    databases = {
        "main": {"auth_dbname": "nowhere"},
        "second": {"dbname": "main", "auth_dbname": "users"},
        "users": {"dbname": "main"},
    }
    pooler = asking(databases=databases)
    assert pooler.refused("hashed", "main", PASSWORD).is_(*CONFIG_ERROR)
    assert len(pooler.lines('authentication database "nowhere" is not configured')) == 1
    pooler.command("DISABLE users")
    error = pooler.refused("hashed", "second", PASSWORD)
    assert error.is_("FATAL", "55000", 'authentication database "users" is disabled')
    pooler.command("ENABLE users")
    assert pooler.client("hashed", "second", PASSWORD).value("SELECT 1") == "1"


def test_lookups_run_in_automatic_databases(asking):
    pooler = asking(databases={"*": {}})
    assert pooler.client("hashed", "main", PASSWORD).value("SELECT current_database()") == "main"
    assert len(pooler.lines("registered new auto-database: main")) == 1
    # The server's own error is passed on before any authentication: operators rely on it.
    error = pooler.refused("hashed", "absent", PASSWORD)
    assert error.is_("FATAL", "3D000", 'database "absent" does not exist')
    error = pooler.refused("hashed", "absent", PASSWORD)
    assert 'cached error: database "absent" does not exist' in error.text


def test_databases_that_the_server_lacks_are_forgotten_soon(asking):
    pooler = asking({"server_login_retry": 1}, databases={"*": {}})
    pooler.refused("hashed", "absent", PASSWORD)
    pooler.wait_log("dropping database 'absent'", timeout=10)
    assert pooler.client("hashed", "main", PASSWORD).value("SELECT 1") == "1"


def test_a_forced_user_logs_in_to_servers_for_users_that_were_found(asking):
    pooler = asking(databases={"main": {"user": "md5_login", "password": "md5 secret"}})
    client = pooler.client("hashed", password=PASSWORD)
    assert client.value("SELECT current_user") == "md5_login"
    assert pooler.pool("main", "md5_login")["cl_active"] == 1
    assert pooler.pool("main", "hashed") is None


def test_the_secret_that_was_found_is_not_used_for_the_forced_user(asking):
    pooler = asking(databases={"main": {"user": "md5_login"}}, auth={})
    error = pooler.refused("hashed", password=PASSWORD)
    assert error.is_("FATAL", "28000", "server login failed: wrong password type")


def test_the_name_in_the_answer_replaces_the_one_in_the_startup_message(asking):
    query = "SELECT 'alice', $1::text WHERE $1::text LIKE 'al%' UNION ALL SELECT 'bob', 'x' LIMIT 1"
    pooler = asking({"auth_type": "plain", "auth_query": query})
    client = pooler.client("al", password="al")
    assert client.value("SELECT current_user") == "alice"
    (row,) = pooler.clients()
    assert row["user"] == "alice"
    assert not pooler.show("USERS", name="al")
    assert pooler.show("USERS", name="alice")[0]["current_client_connections"] == "1"


def test_settings_are_read_anew_for_each_login(asking):
    pooler = asking({"auth_user": None})
    assert pooler.refused("hashed", password=PASSWORD).is_(*FAILED["md5"])
    pooler.command("SET auth_user = 'asker'")
    assert pooler.client("hashed", password=PASSWORD).value("SELECT 1") == "1"
    pooler.command("SET auth_query = 'SELECT $1::text, ''changed'''")
    assert pooler.client("hashed", password="changed").value("SELECT 1") == "1"
    pooler.command("SET auth_dbname = 'nowhere'")
    assert pooler.refused("hashed", password="changed").is_(*CONFIG_ERROR)


# A user in the file and on the server: F39


def test_the_auth_file_comes_first_and_alone(asking, roles):
    queries_sent = Lookups(roles)
    pooler = asking(auth={"hashed": "filed", "scrammed": ""})
    assert pooler.client("hashed", password="filed").value("SELECT 1") == "1"
    assert pooler.refused("hashed", password=PASSWORD).is_(*FAILED["md5"])
    # An empty secret is a secret: no server is asked for another.
    assert pooler.refused("scrammed", password=PASSWORD).is_(*FAILED["md5"])
    assert queries_sent.queries() == []
    pooler.auth.update(hashed=None)
    pooler.reload()
    assert pooler.refused("hashed", password="filed").is_(*FAILED["md5"])
    assert pooler.client("hashed", password=PASSWORD).value("SELECT 1") == "1"


def test_auth_user_has_to_authenticate_as_any_client(asking, roles):
    pooler = asking()
    # asker has no password at the server, so no password is right.
    for guess in ("asker", "", "x"):
        assert attempt(pooler, "asker", "md5", guess).is_(*FAILED["md5"])
    # CVE-2015-6817: an unknown user does not become asker.
    assert pooler.refused("ghost", password="x").is_(*NO_SUCH_USER)
    assert pooler.clients() == []
    assert pooler.pool("main", "asker")["cl_active"] == 0


def test_a_name_of_the_users_section_is_looked_up_too_and_counted(asking):
    pooler = asking(users={"hashed": {"max_user_client_connections": 1}})
    pooler.client("hashed", password=PASSWORD)
    error = pooler.refused("hashed", password=PASSWORD)
    assert error.text == "client connections exceeded (max_user_client_connections)"
    assert pooler.show("USERS", name="hashed")[0]["current_client_connections"] == "1"


RULES = """
host pgbouncer all 127.0.0.1/32 trust
host main carol 127.0.0.1/32 reject
host main hashed 127.0.0.1/32 md5
host main scrammed 127.0.0.1/32 scram-sha-256
host main all 127.0.0.1/32 trust
"""


def test_rules_apply_to_the_name_of_the_startup_message(new_pooler, roles):
    query = "SELECT lower(rolname), rolpassword FROM pg_authid WHERE rolname = lower($1)"
    settings = {"auth_type": "hba", "auth_hba_file": "hba.conf"}
    settings.update(auth_user="asker", auth_query=query)
    pooler = new_pooler(settings, start=False, auth={"alice": None, "carol": None})
    pooler.write("hba.conf", RULES)
    pooler.start()
    assert pooler.client("hashed", password=PASSWORD).value("SELECT current_user") == "hashed"
    assert pooler.client("SCRAMMED", password=PASSWORD).value("SELECT current_user") == "scrammed"
    assert pooler.client("Alice").value("SELECT current_user") == "alice"
    assert pooler.refused("CAROL").is_("FATAL", "28000", "login rejected")
    assert pooler.refused("ghost").is_(*NO_SUCH_USER)
    # The rule of a name does not apply to the user that it stands for, nor the other way round.
    assert pooler.refused("Scrammed", password="wrong").is_(*FAILED["scram-sha-256"])


# The server connection of a lookup


HOSTILE = {
    "DateStyle": "German",
    "TimeZone": "Mars",
    "application_name": "'; DROP TABLE x; --",
    "search_path": "evil, pg_catalog; SELECT 1",
    "IntervalStyle": "nonsense",
}


def test_startup_parameters_of_the_client_never_reach_it(asking, roles):
    """CVE-2025-12819, F41: in the startup message and in its options."""
    queries_sent = Lookups(roles)
    extra = {"track_extra_parameters": "IntervalStyle,search_path"}
    settings = {"pool_mode": "transaction", "startup_parameters": "strict"}
    pooler = asking({**extra, **settings})
    pooler.client("hashed", password=PASSWORD, **HOSTILE)
    options = " ".join(
        f"-c {name}={value}".replace(" ", "\\ ").replace("-c\\ ", "-c ")
        for name, value in HOSTILE.items()
    )
    pooler.client("hashed", password=PASSWORD, options=options)
    assert len(queries_sent.queries()) == len(mine(queries_sent.queries())) == 2


def test_what_a_client_left_in_the_session_is_not_used(asking, roles):
    """A client that had the connection before has created tables that hide those of pg_authid."""
    databases = {"main": {"user": "asker", "pool_size": 1}}
    pooler = asking({"pool_mode": "transaction", "track_extra_parameters": "search_path",
                     "session_state": "ignore"}, databases=databases)
    queries_sent = Lookups(roles)
    evil = pooler.client("hashed", password=PASSWORD)
    evil.query("CREATE TEMP TABLE pg_authid AS SELECT rolname, 'forged'::text AS rolpassword,"
               " rolvaliduntil, true AS rolcanlogin FROM pg_catalog.pg_authid")
    evil.query("SET search_path = pg_temp, public, pg_catalog")
    assert evil.value("SELECT rolpassword FROM pg_authid LIMIT 1") == "forged"
    assert pooler.refused("scrammed", password="forged").is_(*FAILED["scram-sha-256"])
    assert pooler.client("scrammed", password=PASSWORD).value("SELECT 1") == "1"
    assert len(pooler.cluster.backends(usename="asker")) == 1
    assert queries_sent.queries().count("DISCARD ALL") >= 1


def test_a_role_that_a_client_set_is_reset_first(asking, roles):
    databases = {"main": {"user": "asker", "pool_size": 1, "connect_query": "SET work_mem='1MB'"}}
    pooler = asking({"pool_mode": "transaction"}, databases=databases)
    client = pooler.client("hashed", password=PASSWORD)
    client.query("SET ROLE app")
    client.query("SET work_mem = '2MB'")
    assert pooler.client("scrammed", password=PASSWORD).value("SHOW work_mem") == "1MB"


def test_in_session_mode_the_server_is_reset_afterwards(asking, roles):
    pooler = asking({"pool_mode": "session", "server_reset_query": "DISCARD PLANS"})
    queries_sent = Lookups(roles)
    pooler.client("hashed", password=PASSWORD)
    wait_until(lambda: "DISCARD PLANS" in queries_sent.queries(), 5, "the reset query")
    assert len(mine(queries_sent.queries())) == 1
    pooler.wait_pool("main", "asker", sv_idle=1, sv_tested=0)


def test_a_startup_byte_by_byte_is_looked_up_once(asking, roles):
    queries_sent = Lookups(roles)
    pooler = asking({"auth_type": "trust"})
    client = pooler.raw()
    packet = wire.startup({"user": "hashed", "database": "main", "_pq_.option": "x"})
    for i in range(len(packet)):
        client.send(packet[i:i + 1])
    types = [found.type for found in client.read_until("Z")]
    assert types.count("v") == 1
    assert len(mine(queries_sent.queries())) == 1
    assert pooler.show("USERS", name="hashed")[0]["current_client_connections"] == "1"
    assert pooler.show("DATABASES", name="main")[0]["current_client_connections"] == "1"
    assert len(pooler.lines("login attempt: ")) == 2  # the other one is the console's


def test_concurrent_lookups_of_one_name_make_one_query(asking, roles):
    queries_sent = Lookups(roles)
    pooler = asking({"auth_type": "trust"})
    for _ in range(5):
        pooler.client("hashed").leave()
    assert len(mine(queries_sent.queries())) == 5
    clients = [pooler.raw() for _ in range(60)]
    pooler.command("PAUSE")
    for client in clients:
        client.send_startup("scrammed")
    wait_until(lambda: len(pooler.clients(state="waiting")) == 60, 5, "all to wait")
    assert pooler.pool("main", "asker")["cl_waiting"] == 60
    pooler.command("RESUME")
    for client in clients:
        client.read_until("Z")
    assert len(mine(queries_sent.queries())) == 6


# Errors and delays of the server


@pytest.mark.parametrize("query", [
    "SELECT rolname FROM pg_authid WHERE rolname = $1",
    "SELECT rolname, rolpassword, 1 FROM pg_authid WHERE rolname = $1",
    "SELECT rolname, rolpassword FROM absent WHERE rolname = $1",
    "SELECT 'hashed', 'x'",
    "SELECT NULL::text, $1::text",
    "SELECT $1::text, $2::text",
    "SELECT $1::text, 1/0",
    "CREATE ROLE x; SELECT $1, $1",
    "not even SQL $1",
    "",
])
def test_a_query_with_a_wrong_result_is_an_error_of_the_configuration(asking, query):
    pooler = asking({"auth_query": query})
    for _ in range(2):
        assert pooler.refused("hashed", password=PASSWORD).is_(*CONFIG_ERROR)
    assert pooler.lines("auth_query: ")
    assert len(pooler.lines("pooler error: bouncer config error")) == 2
    pooler.wait_pool("main", "asker", sv_active=0, sv_idle=0)


def test_errors_of_the_query_are_in_the_log(asking):
    pooler = asking({"auth_query": "SELECT $1::text, 1/0"})
    pooler.refused("hashed", password=PASSWORD)
    assert len(pooler.lines(r"S: error in auth_query: ERROR: division by zero")) == 1


def test_errors_of_the_servers_login_are_reported(asking):
    pooler = asking({"auth_user": "absent_role", "server_login_retry": 1})
    error = pooler.refused("hashed", password=PASSWORD)
    assert error.is_("FATAL", "28000", 'role "absent_role" does not exist')
    error = pooler.refused("hashed", password=PASSWORD)
    assert error.sqlstate == "08006"
    assert error.text == (
        'server login has been failing, cached error: role "absent_role" does not exist'
        " (server_login_retry)"
    )


def test_no_limit_of_transactions_ends_a_slow_lookup(asking):
    limits = {"transaction_timeout": 0.2, "idle_transaction_timeout": 0.2}
    pooler = asking({"auth_type": "plain", "auth_query": SLOW_QUERY, **limits})
    query = SLOW_QUERY.replace("$1::text, $1::text", "'alice', $1::text")
    pooler.command("SET auth_query = '" + query.replace("'", "''") + "'")
    assert pooler.client("late", password="late").status == "I"


def test_query_timeout_ends_a_slow_lookup(asking):
    pooler = asking({"auth_query": SLOW_QUERY, "query_timeout": 1})
    assert pooler.refused("slow", password="x").is_(*CONFIG_ERROR)
    assert pooler.lines("S-.* closing because: query timeout")


def test_a_lookup_that_hangs_fails_its_login_in_time_and_no_other(asking):
    pooler = asking({"auth_type": "plain", "auth_query": SLOW_QUERY, "client_login_timeout": 1},
                    databases={"main": {"pool_size": 8}})
    slow = pooler.raw().send_startup("slow")
    pooler.wait_pool("main", "asker", sv_active=1)
    assert pooler.client("alice", password="alice").value("SELECT 1") == "1"
    assert slow.fatal().is_("FATAL", "57014", "client_login_timeout")
    pooler.wait_pool("main", "asker", sv_active=0)
    assert pooler.lines("closing because: client disconnect while server was not ready")


def test_a_client_that_disconnects_ends_its_lookup(asking):
    pooler = asking({"auth_query": SLOW_QUERY})
    for way in ("close", "reset"):
        client = pooler.raw().send_startup("slow")
        pooler.wait_pool("main", "asker", sv_active=1, cl_waiting=1)
        getattr(client, way)()
        pooler.wait_pool("main", "asker", sv_active=0, cl_waiting=0)
    assert len(pooler.lines("closing because: client disconnect while server was not ready")) == 2


def test_lookups_never_take_the_whole_pool(asking):
    """F13: clients of the same pool are served while a hundred users wait for lookups that hang."""
    settings = {"auth_query": SLOW_QUERY, "query_wait_timeout": 4, "max_client_conn": 300}
    pooler = asking({"pool_mode": "transaction", **settings},
                    databases={"main": {"pool_size": 8}}, auth={"asker": "x"})
    worker = pooler.client("asker", password="x")
    running = [pooler.raw().send_startup(f"slow{i}") for i in range(2)]
    pooler.wait_pool("main", "asker", sv_active=2, cl_waiting=2)
    waiting = [pooler.raw().send_startup(f"slow{i}") for i in range(2, 100)]
    pooler.wait_pool("main", "asker", sv_active=2, cl_waiting=100)
    others = [pooler.client("asker", password="x") for _ in range(5)]
    for client in [worker, *others]:
        client.query("BEGIN")
    pooler.wait_pool("main", "asker", sv_active=8, cl_waiting=100)
    for client in [worker, *others]:
        client.query("COMMIT")
    errors = [client.fatal().text for client in waiting]
    assert set(errors) == {"query_wait_timeout"}
    assert worker.value("SELECT 1") == "1"
    assert all(client.silent(0.1) for client in running)


def test_a_pause_makes_logins_wait(asking):
    pooler = asking({"auth_type": "trust"})
    pooler.command("PAUSE main")
    client = pooler.raw().send_startup("hashed")
    pooler.wait_pool("main", "asker", cl_waiting=1, sv_active=0)
    assert client.silent()
    assert pooler.clients(state="waiting")[0]["user"] == "hashed"
    pooler.command("RESUME main")
    assert client.read_until("Z")[-1].type == "Z"


def test_waiting_logins_fail_with_the_lookup(asking):
    pooler = asking()
    pooler.command("PAUSE main")
    clients = [pooler.raw().send_startup("hashed") for _ in range(3)]
    pooler.wait_pool("main", "asker", cl_waiting=3)
    number = pooler.clients(state="waiting")[0]["id"]
    pooler.command(f"KILL_CLIENT {number}")
    pooler.wait_pool("main", "asker", cl_waiting=2)
    pooler.command("KILL main")
    texts = sorted(client.fatal().text for client in clients)
    assert texts == ["admin forced disconnect", "database removed", "database removed"]


def test_a_login_survives_a_database_that_is_removed_or_comes_back(asking):
    pooler = asking(databases={"main": {}, "second": {"dbname": "main", "auth_dbname": "main"}})
    pooler.command("PAUSE main")
    client = pooler.raw().send_startup("hashed", "second")
    pooler.wait_pool("main", "asker", cl_waiting=1)
    del pooler.databases["second"]
    pooler.reload()
    assert client.fatal().text == "database removed"
    pooler.wait_pool("main", "asker", cl_waiting=0)


def test_an_idle_server_that_was_terminated_is_replaced_without_an_error(asking, cluster):
    pooler = asking({"auth_type": "trust"})
    pooler.client("hashed").leave()
    pooler.wait_pool("main", "asker", sv_idle=1)
    (backend,) = cluster.backends(usename="asker")
    cluster.terminate(backend["pid"])
    assert pooler.client("scrammed").value("SELECT 1") == "1"


def test_thousands_of_names_leave_nothing_behind(asking):
    query = "SELECT $1::text, $1::text"
    pooler = asking({"auth_type": "plain", "auth_query": query})
    pooler.client("alice", password="alice")
    users = len(pooler.show("USERS"))

    def refuse(count, prefix):
        for i in range(count):
            client = pooler.raw().send_startup(f"{prefix}{i}")
            client.read()
            client.send(wire.password("wrong"))
            client.fatal()
            client.close()

    refuse(300, "first")
    memory = pooler.memory()
    refuse(2000, "second")
    assert len(pooler.show("USERS")) == users
    if not is_sanitized():
        assert pooler.memory() - memory < 1_000_000


def test_a_flood_of_logins_is_served(asking):
    pooler = asking({"auth_type": "scram-sha-256", "max_client_conn": 500})
    failures = []

    def storm():
        for _ in range(10):
            try:
                pooler.client("scrammed", password=PASSWORD).leave()
            except (ServerError, OSError, TimeoutError) as error:
                failures.append(error)

    threads = [threading.Thread(target=storm) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert pooler.pool("main", "asker")["sv_active"] == 0


# Several workers


WORKERS = 3
PLACES = [(where, number) for where in range(WORKERS) for number in range(WORKERS)]


@pytest.fixture
def scattered(asking):
    """Make a daemon with three workers. The databases have their homes in the order of their names, in
    turn: each worker has one in which users are looked up, `auth0` to `auth2`, and one that looks its
    users up in each of these: `db00` to `db22`."""

    def make(settings=None):
        databases = {f"auth{number}": {"dbname": "main"} for number in range(WORKERS)}
        for where, number in PLACES:
            databases[f"db{where}{number}"] = {"dbname": "main", "auth_dbname": f"auth{where}"}
        return asking({"workers": WORKERS, **(settings or {})}, databases=databases)

    return make


def wait_for_lookups(pooler, number):
    """Wait until so many logins wait for look-ups in each authentication database."""
    for where in range(WORKERS):
        pooler.wait_pool(f"auth{where}", "asker", cl_waiting=number)


@pytest.mark.setting("auth_dbname", "workers")
def test_users_are_looked_up_at_any_worker(scattered, roles):
    queries_sent = Lookups(roles)
    pooler = scattered()
    for where, number in PLACES:
        name = f"db{where}{number}"
        assert pooler.client("hashed", name, PASSWORD).value("SELECT current_user") == "hashed"
        assert pooler.refused("hashed", name, "wrong").is_(*FAILED["md5"])
        assert pooler.refused("ghost", name, PASSWORD).is_(*NO_SUCH_USER)
    assert len(mine(queries_sent.queries())) == 3 * len(PLACES)
    assert {row["database"] for row in pooler.show("POOLS", user="asker")} == {"auth0", "auth1", "auth2"}


def test_commands_reach_logins_that_are_looked_up_at_another_worker(scattered):
    pooler = scattered({"auth_type": "trust"})

    def each_home(command):
        for where in range(WORKERS):
            pooler.command(f"{command} auth{where}")

    each_home("PAUSE")
    clients = [pooler.raw().send_startup("hashed", f"db{where}{number}") for where, number in PLACES]
    wait_for_lookups(pooler, WORKERS)
    for client in clients[::WORKERS]:
        client.close()
    wait_for_lookups(pooler, WORKERS - 1)
    each_home("RESUME")
    for number, client in enumerate(clients):
        if number % WORKERS:
            assert client.read_until("Z")[-1].type == "Z"
            client.close()
    each_home("PAUSE")
    clients = [pooler.raw().send_startup("hashed", f"db{where}{number}") for where, number in PLACES]
    wait_for_lookups(pooler, WORKERS)
    each_home("KILL")
    assert {client.fatal().text for client in clients} == {"database removed"}


def test_logins_wait_at_another_worker_no_longer_than_they_may(scattered):
    pooler = scattered({"auth_type": "trust", "query_wait_timeout": 1, "client_login_timeout": 60})
    pooler.command("PAUSE")
    clients = [pooler.raw().send_startup("hashed", f"db{where}{number}") for where, number in PLACES]
    assert {client.fatal().text for client in clients} == {"query_wait_timeout"}
    wait_for_lookups(pooler, 0)


def test_a_look_up_that_runs_at_another_worker_is_limited_by_client_login_timeout(scattered):
    pooler = scattered({
        "auth_type": "trust", "auth_query": SLOW_QUERY, "client_login_timeout": 2, "query_wait_timeout": 60})
    clients = [pooler.raw().send_startup(f"slow{where}{number}", f"db{where}{number}")
               for where, number in PLACES]
    # One at a time runs in each pool; the others wait for a server, which does not count.
    texts = [client.fatal(timeout=30).text for client in clients]
    assert set(texts) == {"client_login_timeout"}


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGQUIT])
def test_a_shutdown_ends_logins_that_are_looked_up_at_another_worker(scattered, way):
    pooler = scattered({"auth_type": "trust"})
    pooler.command("PAUSE")
    clients = [pooler.raw().send_startup("hashed", f"db{where}{number}") for where, number in PLACES]
    wait_for_lookups(pooler, WORKERS)
    pooler.signal(way)
    for client in clients:
        client.read_all(10)
    pooler.wait_exit(30)


def test_a_flood_of_logins_is_looked_up_at_all_workers(scattered):
    pooler = scattered({"auth_type": "scram-sha-256", "max_client_conn": 500})
    failures = []

    def storm(number):
        for turn in range(12):
            where, other = PLACES[(number + turn) % len(PLACES)]
            name = f"db{where}{other}"
            try:
                if turn % 4 == 3:
                    pooler.raw().send_startup("scrammed", name).close()  # it does not wait for the answer
                else:
                    pooler.client("scrammed", name, PASSWORD).leave()
            except (ServerError, OSError, TimeoutError) as error:
                failures.append(error)

    threads = [threading.Thread(target=storm, args=(number,)) for number in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    wait_for_lookups(pooler, 0)


# Answers that PostgreSQL would not send: F13


def answering(*messages):
    """A script that accepts the login and gives this answer to each batch."""

    def script(connection: FakeConnection):
        connection.login()
        while True:
            found = connection.read()
            if found.type == "S":
                connection.send(*messages)
            elif found.type == "X":
                return

    return script


START = wire.message("1") + wire.message("2") + wire.row_description("name", "secret")
END = wire.command_complete("SELECT 1") + wire.ready()

ODD_ANSWERS = {
    "nothing": b"",
    "one column": wire.message("1") + wire.message("2") + wire.row_description("name")
    + wire.data_row("hashed") + END,
    "three columns": wire.message("1") + wire.message("2") + wire.row_description("a", "b", "c")
    + wire.data_row("hashed", "x", "y") + END,
    "a row of three": START + wire.data_row("hashed", "x", "y") + END,
    "a NULL name": START + wire.data_row(None, "x") + END,
    "an empty name": START + wire.data_row("", "x") + END,
    "a secret of 1 MB": START + wire.data_row("hashed", "x" * 1_000_000) + END,
    "a NUL inside": START + wire.data_row(b"ha\0shed", "x") + END,
    "no description": wire.message("1") + wire.message("2") + wire.data_row("hashed", "x") + END,
    "rows first": wire.data_row("hashed", "x") + START + END,
    "a row that lies": START + wire.message("D", b"\0\2\0\0\0\x06hashed\x7f\xff\xff\xff") + END,
    "a transaction": START + wire.command_complete("SELECT 1") + wire.ready("T"),
    "cut short": START + wire.data_row("hashed", "x") + wire.ready(),
    "an error of no fields": wire.message("E", b"\0") + wire.ready(),
    "an error cut off": wire.message("E", b"SERROR\0Mhalf") + wire.ready(),
    "a COPY": wire.message("1") + wire.message("G", b"\0\0\0") + END,
    "garbage": b"\xff" * 50,
    "an unasked login": wire.authentication(0) + END,
}


@pytest.mark.parametrize("name", ODD_ANSWERS)
def test_wrong_answers_fail_that_login_alone(new_pooler, new_server, cluster, name):
    server = new_server(answering(ODD_ANSWERS[name]))
    databases = {"odd": server.target(), "main": {}}
    pooler = new_pooler({"auth_user": "asker", "client_login_timeout": 1}, databases=databases)
    error = pooler.refused("hashed", "odd")
    if name == "nothing":
        assert error.is_("FATAL", "57014", "client_login_timeout")
    else:
        assert error.is_(*CONFIG_ERROR)
    server.wait_all_ended()
    assert pooler.client("app").value("SELECT 1") == "1"


def test_answers_of_zero_and_many_rows_are_understood(new_pooler, new_server):
    several = b"".join(wire.data_row(f"user{i}", "x") for i in range(20_000))
    servers = {
        "none": new_server(answering(START + END)),
        "many": new_server(answering(START + several + wire.data_row("last", "y") + END)),
        "null": new_server(answering(START + wire.data_row("unknown", None) + END)),
    }
    databases = {name: server.target() for name, server in servers.items()}
    pooler = new_pooler({"auth_user": "asker"}, databases=databases)
    assert pooler.refused("hashed", "none").is_(*NO_SUCH_USER)
    assert pooler.raw().login("hashed", "many")
    assert pooler.show("USERS", name="last")
    assert pooler.raw().login("hashed", "null")


def test_a_server_that_answers_in_small_pieces_costs_only_time(new_pooler, new_server):
    answer = START + wire.data_row("last", "y") + wire.notice("by the way") + END

    def slowly(connection):
        connection.login()
        while connection.read().type != "S":
            pass
        for i in range(len(answer)):
            connection.send(answer[i:i + 1])
        connection.wait_disconnected()

    server = new_server(slowly)
    pooler = new_pooler({"auth_user": "asker"}, databases={"slow": server.target()})
    assert pooler.raw().login("hashed", "slow")


def test_a_lookup_waits_for_a_server_as_any_query_does(new_pooler, new_server):
    server = new_server(lambda connection: connection.wait_disconnected())
    settings = {"auth_user": "asker", "query_wait_timeout": 1, "client_login_timeout": 30}
    pooler = new_pooler(settings, databases={"mute": server.target()})
    assert pooler.refused("hashed", "mute").is_("FATAL", "57014", "query_wait_timeout")


def test_the_lookup_is_one_batch_of_the_extended_protocol(new_pooler, new_server):
    asked = []

    def script(connection):
        connection.login()
        while True:
            found = connection.read()
            asked.append((found.type, found.body))
            if found.type == "S":
                connection.send(START, wire.data_row("last", "y"), END)

    server = new_server(script)
    settings = {"auth_user": "asker", "auth_query": "SELECT me($1)"}
    pooler = new_pooler(settings, databases={"fake": server.target()})
    pooler.raw().login("o'connor\\", "fake")
    name = b"o'connor\\"
    assert asked[:5] == [
        ("P", b"\0SELECT me($1)\0\0\0"),
        ("B", b"\0\0\0\0\0\1" + len(name).to_bytes(4, "big") + name + b"\0\0"),
        ("D", b"P\0"),
        ("E", b"\0\0\0\0\0"),
        ("S", b""),
    ]
    assert server.connections[0].startup["user"] == "asker"


def test_the_function_in_the_manual_page_works(asking, roles):
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "doc", "pgusher.5.md")) as file:
        page = file.read()
    section = page.split("# USERS LOOKED UP BY A QUERY")[1].split("\n# ")[0]
    code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    sql, settings = code.split("auth_user = ")
    query = settings.split("auth_query = ")[1].strip()
    with roles.connect("main") as connection:
        connection.execute("CREATE SCHEMA pooler; GRANT USAGE ON SCHEMA pooler TO PUBLIC")
        connection.execute("ALTER ROLE asker NOSUPERUSER")
        connection.execute(sql)
    try:
        pooler = asking({"auth_query": query})
        assert pooler.client("scrammed", password=PASSWORD).value("SELECT 1") == "1"
        assert pooler.refused("stale", password=PASSWORD).is_(*FAILED["md5"])
        assert pooler.refused("ghost").is_(*NO_SUCH_USER)
    finally:
        roles.clear()
        roles.ask("main", "DROP SCHEMA pooler CASCADE")
