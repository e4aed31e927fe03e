# SPDX-License-Identifier: ISC
"""Passwords that a real LDAP server checks."""

import contextlib
import os
import shutil
import socket
import subprocess
import time

import pytest

from support import wire
from support.clients.raw import ServerError
from support.process import (
    HOST,
    as_service,
    drop_folder,
    free_port,
    make_folder,
    run,
    wait_until,
)
from support.servers.ldap_server import (
    BASE,
    DEEP,
    HIDDEN,
    LONG_PASSWORD,
    MANAGER,
    MANAGER_PASSWORD,
    PASSWORDS,
    PEOPLE,
    Directory,
)

FAILED = ("FATAL", "28000", "LDAP authentication failed")

pytestmark = pytest.mark.skipif(
    not shutil.which("slapd", path="/usr/sbin"), reason="there is no slapd"
)


@pytest.fixture(scope="module")
def shared_directory():
    directory = Directory()
    yield directory
    directory.destroy()


@pytest.fixture
def directory(shared_directory):
    """The LDAP server that all tests of this file use in turn."""
    return shared_directory


def quote(value):
    """A value of an option, in quotes."""
    return '"' + value.replace('"', '""') + '"'


def options_for(directory, **options):
    """Options with the server's address and these."""
    options = {"ldapserver": HOST, "ldapport": directory.port, **options}
    return " ".join(f"{key}={quote(str(value))}" for key, value in options.items())


SIMPLE = {"ldapprefix": "uid=", "ldapsuffix": f",{PEOPLE}"}
SEARCH = {"ldapbasedn": BASE}


@pytest.fixture
def ldap_pooler(new_pooler, directory):
    """Make a daemon that uses the directory: ldap_pooler(ldapbasedn=...) or ldap_pooler(text=...)."""

    def make(text=None, settings=None, environment=None, **options):
        pooler = new_pooler(
            {
                "auth_type": "ldap",
                "auth_ldap_options": text or options_for(directory, **options),
                "pool_mode": "transaction",
                **(settings or {}),
            },
            start=False,
            auth={"app": "a secret that plays no role"},
        )
        return pooler.start(
            environment=directory.environment if environment is None else environment
        )

    return make


def let_in(pooler, user="app", password=None, **options):
    """Whether this user is accepted. Asserts that a refused user gets the text of a wrong password."""
    try:
        client = pooler.raw().login(user, password=password or PASSWORDS[user], **options)
    except ServerError as error:
        assert error.is_(*FAILED)
        return False
    assert client.methods() == [3, 0]
    client.close()
    return True


# --- modes ------------------------------------------------------------------------------------


@pytest.mark.setting("auth_ldap_options", "auth_type")
@pytest.mark.parametrize("mode", [SIMPLE, SEARCH], ids=["simple", "search"])
def test_the_right_password_is_accepted_and_others_are_not(ldap_pooler, mode):
    pooler = ldap_pooler(**mode)
    assert pooler.client(password=PASSWORDS["app"]).value("SELECT current_user") == "app"
    for wrong in ("wrong", PASSWORDS["app"] + " ", PASSWORDS["app"].upper(), "*", "x" * 3000):
        assert not let_in(pooler, password=wrong)
    assert not let_in(pooler, "unknown", "wrong")
    # The auth_file has another password.
    assert not let_in(pooler, password="a secret that plays no role")


def test_a_dn_may_be_longer_than_256_bytes(ldap_pooler):
    """PgBouncer 1.25 cut it: what is made of prefix, name and suffix, and what a search found."""
    assert len(DEEP) > 300
    pooler = ldap_pooler(ldapprefix="uid=", ldapsuffix=f",{DEEP}")
    assert let_in(pooler, "expired_login", "at the bottom")
    pooler = ldap_pooler(ldapbasedn=BASE)
    assert let_in(pooler, "expired_login", "at the bottom")
    assert not let_in(pooler, "expired_login", "wrong")


@pytest.mark.parametrize("mode", [SIMPLE, SEARCH], ids=["simple", "search"])
def test_passwords_may_be_long_and_not_ascii(ldap_pooler, mode):
    pooler = ldap_pooler(**mode)
    assert let_in(pooler, "alice")
    assert len(LONG_PASSWORD) > 1000
    assert let_in(pooler, "bob")
    assert not let_in(pooler, "bob", LONG_PASSWORD[:-1])


def test_psycopg_logs_in(ldap_pooler):
    connection = ldap_pooler(**SEARCH).connect(password=PASSWORDS["app"])
    assert connection.execute("SELECT 1").fetchone() == (1,)


def test_an_empty_password_never_reaches_the_server(ldap_pooler):
    # For LDAP this would be an anonymous bind, which succeeds.
    for mode in (SIMPLE, SEARCH):
        client = ldap_pooler(**mode).raw().send_startup()
        assert client.read().type == "R"
        client.send(wire.password(""))
        assert client.fatal().is_("FATAL", "28P01", "empty password returned by client")


def test_ldap_passwords_open_the_console_too(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, settings={"admin_users": "app", "stats_users": "bob"})
    client = pooler.client("app", "pgbouncer", PASSWORDS["app"])
    assert client.query("SHOW VERSION").rows
    error = pooler.refused("alice", "pgbouncer", PASSWORDS["alice"])
    assert error.text == "not allowed"


# --- searching --------------------------------------------------------------------------------


def test_names_are_searched_exactly(ldap_pooler):
    pooler = ldap_pooler(**SEARCH)
    for name in ("o'neil, \"jr\" = x", "jörg"):
        # Refused by PostgreSQL, which has no such role: LDAP accepted the password.
        error = pooler.refused(name, password=PASSWORDS[name])
        assert error.text.endswith("does not exist"), error.text
        assert not let_in(pooler, name, "wrong")


@pytest.mark.parametrize(
    "name",
    ["*", "ap*", "app)(uid=*", "(app", "app)", "\\61pp", "ap/p", "app\\", "x)(|(uid=app)"],
)
def test_names_with_a_meaning_in_filters_are_refused(ldap_pooler, name):
    pooler = ldap_pooler(**SEARCH)
    assert not let_in(pooler, name, PASSWORDS["app"])
    assert pooler.lines("the user's name has a meaning in filters")


@pytest.mark.parametrize("name", ["app,ou=people", "app+cn=x", 'app"', "app\\", "app#", "=", ","])
def test_names_with_special_characters_of_dns_are_unknown(ldap_pooler, name):
    pooler = ldap_pooler(**SIMPLE)
    assert not let_in(pooler, name, PASSWORDS["app"])
    assert let_in(pooler)


def test_another_attribute_can_be_searched(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, ldapsearchattribute="mail")
    assert not let_in(pooler)
    error = pooler.refused("mail-0@example.net", password=PASSWORDS["app"])
    assert error.text.endswith("does not exist")


def test_every_placeholder_of_a_filter_is_the_name(ldap_pooler):
    pooler = ldap_pooler(
        **SEARCH, ldapsearchfilter="(&(employeeType=worker)(|(uid=$username)(mail=$username)))"
    )
    assert let_in(pooler)
    assert pooler.refused("mail-0@example.net", password=PASSWORDS["app"]).text.endswith("exist")
    # The filter finds the user, but its other condition does not hold.
    assert not let_in(pooler, "twin1", "twin")


def test_a_filter_of_one_condition_needs_no_parentheses(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, ldapsearchfilter="uid=$username")
    assert let_in(pooler)
    assert not let_in(pooler, password="wrong")


def test_a_broken_filter_accepts_no_client(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, ldapsearchfilter="(uid=$username")
    assert not let_in(pooler)
    assert pooler.lines("WARNING .*LDAP authentication: search: Bad search filter")


def test_only_one_entry_may_be_found(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, ldapsearchattribute="mail")
    assert not let_in(pooler, "twin@example.net", "twin")
    assert pooler.lines("the search found several entries")
    assert not let_in(pooler, "unknown@example.net", "twin")
    assert pooler.lines("the search found no entry")


def test_the_search_may_use_a_bind_dn(ldap_pooler):
    hidden = {"ldapbasedn": HIDDEN}
    assert not let_in(ldap_pooler(**hidden), "carol", "hidden secret")
    pooler = ldap_pooler(**hidden, ldapbinddn=MANAGER, ldapbindpasswd=MANAGER_PASSWORD)
    assert let_in(pooler, "carol", "hidden secret")
    assert not let_in(pooler, "carol", "wrong")
    pooler = ldap_pooler(**hidden, ldapbinddn=MANAGER, ldapbindpasswd="wrong")
    assert not let_in(pooler, "carol", "hidden secret")
    # A mistake of the operator, not of the client.
    assert pooler.lines("WARNING .*LDAP authentication: bind: Invalid credentials")
    assert MANAGER_PASSWORD not in pooler.log()


def test_a_search_of_one_entry_is_one_of_its_scope(ldap_pooler, directory):
    url = f"ldap://{HOST}:{directory.port}/"
    people = f"uid=app,{PEOPLE}"
    for base, scope, expected in (
        (BASE, "sub", True),
        (BASE, "one", False),
        (PEOPLE, "one", True),
        (PEOPLE, "base", False),
        (people, "base", True),
    ):
        pooler = ldap_pooler(text=f"ldapurl={quote(f'{url}{base}?uid?{scope}')}")
        assert let_in(pooler) == expected, (base, scope)


def test_a_url_may_hold_all_options(ldap_pooler, directory):
    for end in (f"/{BASE}", f"/{BASE}?uid", f"/{BASE}??sub", f"/{BASE}???(uid=$username)"):
        pooler = ldap_pooler(text=f"ldapurl={quote(f'ldap://{HOST}:{directory.port}{end}')}")
        assert let_in(pooler)
        assert not let_in(pooler, password="wrong")
    pooler = ldap_pooler(text=f"ldapurl={quote(f'ldaps://{HOST}:{directory.tls_port}/{BASE}')}")
    assert let_in(pooler)


# --- options ----------------------------------------------------------------------------------


def test_without_options_every_login_reports_it(new_pooler):
    pooler = new_pooler({"auth_type": "ldap"})
    error = pooler.refused(password="x")
    assert error.is_("FATAL", "28000", "auth_ldap_options is null")


@pytest.mark.parametrize(
    "more, line",
    [
        ({"ldapcolour": "red"}, 'invalid LDAP option: "ldapcolour"'),
        ({"ldapport": "0"}, 'invalid LDAP port number: "0"'),
        ({"ldapprefix": "x"}, "both a prefix or suffix and a search"),
        ({"ldapsearchfilter": "(a=b)", "ldapsearchattribute": "a"}, "both an attribute and a filter"),
    ],
)
def test_wrong_options_accept_no_client_and_are_logged(ldap_pooler, more, line):
    pooler = ldap_pooler(**SEARCH, **more)
    assert not let_in(pooler)
    assert pooler.lines(line)


def test_options_in_force_are_those_of_the_last_reload(ldap_pooler, directory):
    pooler = ldap_pooler(
        **SEARCH,
        ldapsearchfilter="(uid=x-$username)",
        ldapport=directory.tls_port,
        ldapscheme="ldaps",
        settings={"admin_users": "app"},
    )
    assert not let_in(pooler)
    # Scheme, port and filter of the former options have no effect.
    pooler.settings["auth_ldap_options"] = options_for(directory, **SEARCH)
    pooler.write_config()
    pooler.signal(1)
    wait_until(lambda: let_in(pooler), what="the new options")


# --- TLS --------------------------------------------------------------------------------------


def test_tls_modes(ldap_pooler, directory):
    start_tls = {"ldaptls": "1"}
    ldaps = {"ldapscheme": "ldaps", "ldapport": directory.tls_port}
    for mode in (SIMPLE, SEARCH):
        for way in (start_tls, ldaps):
            pooler = ldap_pooler(**{**mode, **way})
            assert let_in(pooler)
            assert not let_in(pooler, password="wrong")


def test_a_certificate_of_an_unknown_authority_is_not_trusted(ldap_pooler, directory):
    for way in ({"ldaptls": "1"}, {"ldapscheme": "ldaps", "ldapport": directory.tls_port}):
        pooler = ldap_pooler(**SEARCH, **way, environment={})
        assert not let_in(pooler)
        assert pooler.lines("WARNING .*LDAP authentication: ")


@pytest.mark.parametrize(
    "way",
    [
        {"ldaptls": "1", "ldapscheme": "ldaps"},
        {"ldaptls": "1", "ldapscheme": "ldaps", "ldapport": "tls"},
        {"ldapscheme": "ldaps"},
        {"ldaptls": "1", "ldapport": "tls"},
        {"ldapport": "tls"},
        {"ldapport": "unused"},
    ],
    ids=lambda way: "-".join(f"{key}-{value}" for key, value in way.items()),
)
def test_tls_that_is_impossible_fails_at_once(ldap_pooler, directory, way):
    ports = {"tls": directory.tls_port, "unused": free_port()}
    if "ldapport" in way:
        way = {**way, "ldapport": ports[way["ldapport"]]}
    pooler = ldap_pooler(**SEARCH, **way)

    def attempt():
        started = time.monotonic()
        assert not let_in(pooler)
        return time.monotonic() - started

    # A timeout takes three seconds each time; a busy machine may take them once.
    assert min(attempt() for _ in range(3)) < 2.5, "that was a time-out"


def test_the_next_server_is_asked_when_one_is_down(ldap_pooler, directory):
    pooler = ldap_pooler(**{**SEARCH, "ldapserver": f"127.0.0.9 {HOST}"})
    assert let_in(pooler)
    assert not let_in(pooler, password="wrong")


# --- finding the server -----------------------------------------------------------------------


@pytest.fixture
def dns(directory):
    """The environment in which the system's resolver asks a dnsmasq that knows the directory."""
    program = shutil.which("dnsmasq", path="/usr/sbin")
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not program or not compiler:
        pytest.skip("there is no dnsmasq, or no C compiler")
    folder = make_folder("pgusher-dns-")
    library = os.path.join(folder, "resolve.so")
    source = os.path.join(os.path.dirname(__file__), "support", "compiled", "redirected_resolver.c")
    run([compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library, source], as_root=True)
    port = free_port()
    arguments = [program, "-k", "-C", "/dev/null", "--no-hosts", "--no-resolv", "--pid-file="]
    arguments += [f"--port={port}", f"--listen-address={HOST}", "--bind-interfaces"]
    arguments += [f"--srv-host=_ldap._tcp.example.net,localhost,{directory.port}"]
    process = subprocess.Popen(as_service(arguments), stderr=subprocess.DEVNULL, cwd="/")

    def answers():
        with contextlib.suppress(OSError):
            socket.create_connection((HOST, port), 1).close()
            return True

    try:
        wait_until(answers, what="dnsmasq to listen")
        yield {
            "LD_PRELOAD": library,
            "TEST_DNS_PORT": str(port),
            "ASAN_OPTIONS": "verify_asan_link_order=0",
            **directory.environment,
        }
    finally:
        process.kill()
        process.wait()
        drop_folder(folder)


def test_without_a_server_the_domain_of_the_base_dn_is_looked_up(ldap_pooler, dns):
    for text in (f"ldapbasedn={quote(BASE)}", f"ldapurl={quote(f'ldap:///{BASE}?uid')}"):
        pooler = ldap_pooler(text=text, environment=dns)
        assert let_in(pooler)
        assert not let_in(pooler, password="wrong")
    pooler = ldap_pooler(text='ldapbasedn="dc=other,dc=net"', environment=dns)
    assert not let_in(pooler)
    assert pooler.lines("WARNING .*DNS knows no server for the base DN")
    pooler = ldap_pooler(text='ldapbasedn="ou=people"', environment=dns)
    assert not let_in(pooler)
    assert pooler.lines("WARNING .*LDAP authentication: ")


# --- servers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["plain_login", "md5_login", "scram_login"])
def test_the_password_is_used_to_log_in_to_servers(ldap_pooler, user):
    pooler = ldap_pooler(**SEARCH)
    client = pooler.client(user, password=PASSWORDS[user])
    assert client.value("SELECT current_user") == user


def test_users_are_known_while_they_are_connected(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, settings={"admin_users": "app"})
    console = pooler.client("app", "pgbouncer", PASSWORDS["app"])

    def users():
        return [row["name"] for row in console.query("SHOW USERS").dicts()]

    assert not let_in(pooler, "jörg", "wrong")
    assert "jörg" not in users() and "md5_login" not in users()
    client = pooler.client("md5_login", password=PASSWORDS["md5_login"])
    client.value("SELECT 1")
    assert "md5_login" in users()
    assert PASSWORDS["md5_login"] not in str(console.query("SHOW USERS").rows)


def test_passwords_are_not_logged(ldap_pooler):
    pooler = ldap_pooler(**SEARCH, settings={"verbose": 3})
    assert let_in(pooler, "bob")
    assert not let_in(pooler, password="a marked password")
    assert "marked password" not in pooler.log() and LONG_PASSWORD not in pooler.log()


# --- HBA --------------------------------------------------------------------------------------


def test_a_rule_has_options_of_its_own(new_pooler, directory):
    pooler = new_pooler(
        {"auth_type": "hba", "auth_hba_file": "hba.conf", "auth_ldap_options": "ldapcolour=red"},
        start=False,
        auth={"alice": "alice's own", "app": "app's own"},
    )
    pooler.write(
        "hba.conf",
        f"host all app,scram_login all ldap {options_for(directory, **SEARCH)}\n"
        "host all all all scram-sha-256\n",
    )
    pooler.start()
    assert let_in(pooler)
    assert let_in(pooler, "scram_login")
    assert not let_in(pooler, password="app's own")
    client = pooler.client("alice", password="alice's own")
    assert client.methods() == [10, 11, 12, 0]


# --- trouble ----------------------------------------------------------------------------------


def begin(pooler, user="app"):
    """A client that has just sent its password."""
    client = pooler.raw().send_startup(user)
    assert client.read().type == "R"
    client.send(wire.password(PASSWORDS["app"]))
    return client


def logins(console):
    """How many clients are logging in."""
    rows = console.query("SHOW LISTS").dicts()
    return next(int(row["items"]) for row in rows if row["list"] == "login_clients")


@pytest.fixture
def mixed_pooler(new_pooler, directory):
    """A daemon that checks the password of app with LDAP, and trusts all others."""
    pooler = new_pooler(
        {"auth_type": "hba", "auth_hba_file": "hba.conf", "pool_mode": "transaction"}, start=False
    )
    pooler.write(
        "hba.conf",
        f"host all app all ldap {options_for(directory, **SEARCH)}\nhost all all all trust\n",
    )
    return pooler.start()


def test_a_directory_that_hangs_delays_no_other_client(mixed_pooler, directory):
    pooler = mixed_pooler
    console = pooler.console()
    client = pooler.client("alice")
    known = pooler.client("app", password=PASSWORDS["app"])
    with directory.hung():
        waiting = [begin(pooler) for _ in range(30)]
        pooler.wait_log("WARNING LDAP queue is full, waiting")
        started = time.monotonic()
        for _ in range(20):
            assert client.value("SELECT 1") == "1"
            assert known.value("SELECT 1") == "1"
            assert console.query("SHOW STATE").rows
            pooler.client("bob").close()
        # If the loop waited for one answer, this would take three seconds.
        assert time.monotonic() - started < 10
        # The question of a client that disconnects is dropped; a client that waits gets an error,
        # after a while.
        for each in waiting[::2]:
            each.close()
        wait_until(lambda: logins(console) <= 15, what="disconnected clients to be gone")
        for each in waiting[1::2]:
            assert each.fatal(timeout=30).is_(*FAILED)
    assert len(pooler.lines("LDAP queue is full, waiting")) == 1
    wait_until(lambda: let_in(pooler), 15, "the directory to be back")


def test_a_login_that_takes_too_long_gets_an_error(new_pooler, directory):
    pooler = new_pooler(
        {
            "auth_type": "ldap",
            "auth_ldap_options": options_for(directory, **SEARCH),
            "client_login_timeout": "1",
        }
    )
    with directory.hung():
        error = begin(pooler).fatal(timeout=10)
        assert error.is_("FATAL", "57014", "client_login_timeout")


def test_a_stop_does_not_wait_for_a_directory_that_hangs(mixed_pooler, directory):
    with directory.hung():
        begin(mixed_pooler)
        mixed_pooler.wait_log("login attempt: db=main user=app")
        started = time.monotonic()
        mixed_pooler.signal(2)
        mixed_pooler.signal(2)
        mixed_pooler.close_clients()
        assert mixed_pooler.wait_exit() == 0
        assert time.monotonic() - started < 2.5


def test_many_logins_at_once_are_all_answered(ldap_pooler):
    pooler = ldap_pooler(**SEARCH)
    clients = [begin(pooler) for _ in range(100)]
    for client in clients:
        assert client.read_until("Z")[-1].type == "Z"
