# SPDX-License-Identifier: ISC
"""Passwords that PAM checks, with a real service: with a module of these tests, and with pam_exec."""

import contextlib
import fcntl
import os
import shutil
import time

import pytest

from support import wire
from support.clients.metrics_page import scrape
from support.clients.raw import ServerError
from support.process import drop_folder, free_port, make_folder, own, run, wait_until

SERVICE = "/etc/pam.d/pgbouncer"
FAILED = ("FATAL", "28000", "PAM authentication failed")

PASSWORDS = {
    "app": "app's secret",
    "alice": "Passwort für Älice",
    "bob": "0123456789abcdef" * 4000,
    "carol": "carol's",
    "chatty": "c",
    "asks_aloud": "a",
    "hangs": "h",
    "slow": "s",
    "slower": "s",
    "expired": "e",
    "plain_login": "plain secret",
    "md5_login": "md5 secret",
    "scram_login": "scram secret",
}

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not os.path.exists("/etc/pam.d"), reason="only root can set up a service"
)


@contextlib.contextmanager
def service_of(text):
    """Replace the rules of the service within this block; other test processes wait."""
    with open("/tmp/pgusher-test-pam.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        saved = None
        if os.path.exists(SERVICE):
            with open(SERVICE) as file:
                saved = file.read()
        try:
            with open(SERVICE, "w") as file:
                file.write(text)
            yield
        finally:
            os.unlink(SERVICE)
            if saved is not None:
                with open(SERVICE, "w") as file:
                    file.write(saved)


@pytest.fixture(scope="module")
def module():
    """The path of the module, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not compiler:
        pytest.skip("no C compiler")
    folder = make_folder("pgusher-pam-")
    path = os.path.join(folder, "pam_module.so")
    source = os.path.join(os.path.dirname(__file__), "support", "compiled", "pam_module.c")
    run([compiler, "-shared", "-fPIC", "-o", path, source, "-lpam"], as_root=True)
    yield path
    drop_folder(folder)


class ModuleControl:
    """The folder that controls the module: passwords, log and gate."""

    def __init__(self):
        self.folder = make_folder("pgusher-control-")
        for user, password in PASSWORDS.items():
            self.write(user, password)
        os.mkfifo(self.path("gate"))
        own(self.path("gate"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        own(self.path(name))

    def asked(self):
        """A line for each authentication: service, user, host, silent."""
        if not os.path.exists(self.path("log")):
            return []
        with open(self.path("log")) as file:
            return file.read().splitlines()

    def open_gate(self):
        """Logins that hang continue; no login hangs from now on."""
        self.gate = os.open(self.path("gate"), os.O_RDWR)


@pytest.fixture
def control(module):
    """The service uses the module of these tests."""
    control = ModuleControl()
    rules = "".join(f"{kind} required {module} {control.folder}\n" for kind in ("auth", "account"))
    with service_of(rules):
        yield control
    drop_folder(control.folder)


@pytest.fixture
def pam_pooler(new_pooler, control):
    """Make a daemon that checks passwords with PAM."""

    def make(settings=None, **options):
        settings = {"auth_type": "pam", "pool_mode": "transaction", **(settings or {})}
        return new_pooler(settings, auth={"app": "plays no role"}, **options)

    return make


def let_in(pooler, user="app", password=None, unix=False):
    """Whether this user is accepted. Asserts that a refused user gets the text of a wrong password."""
    try:
        client = pooler.raw(unix).login(user, password=password or PASSWORDS[user])
    except ServerError as error:
        if error.text.endswith("does not exist"):  # an error of PostgreSQL: PAM accepted the password
            return True
        assert error.is_(*FAILED)
        return False
    assert client.methods() == [3, 0]
    client.close()
    return True


def logins(console):
    """How many clients are logging in."""
    rows = console.query("SHOW LISTS").dicts()
    return next(int(row["items"]) for row in rows if row["list"] == "login_clients")


def begin(pooler, user, password=None):
    """A client that has just sent its password, or a wrong one."""
    client = pooler.raw().send_startup(user)
    assert client.read().type == "R"
    client.send(wire.password(password or PASSWORDS[user]))
    return client


# --- right and wrong --------------------------------------------------------------------------


@pytest.mark.setting("auth_type")
def test_the_right_password_is_accepted_and_others_are_not(pam_pooler):
    pooler = pam_pooler()
    assert pooler.client(password=PASSWORDS["app"]).value("SELECT current_user") == "app"
    for wrong in ("wrong", PASSWORDS["app"] + " ", "plays no role", "x" * 3000):
        assert not let_in(pooler, password=wrong)
    assert not let_in(pooler, "unknown", "wrong")


def test_passwords_may_be_long_and_not_ascii(pam_pooler):
    pooler = pam_pooler()
    assert let_in(pooler, "alice")
    assert len(PASSWORDS["bob"]) > 60000
    assert let_in(pooler, "bob")
    assert not let_in(pooler, "bob", PASSWORDS["bob"][:-1])


def test_modules_know_service_and_host_and_are_silent(pam_pooler, control):
    pooler = pam_pooler()
    assert let_in(pooler)
    assert let_in(pooler, unix=True)
    assert control.asked() == ["pgbouncer app 127.0.0.1 silent", "pgbouncer app unix silent"]


def test_an_empty_password_is_refused_without_pam(pam_pooler, control):
    client = pam_pooler().raw().send_startup()
    assert client.read().type == "R"
    client.send(wire.password(""))
    assert client.fatal().is_("FATAL", "28P01", "empty password returned by client")
    assert control.asked() == []


def test_only_questions_for_the_password_are_answered(pam_pooler):
    pooler = pam_pooler()
    assert let_in(pooler, "chatty")
    assert not let_in(pooler, "asks_aloud")


def test_an_account_may_be_refused_although_the_password_is_right(pam_pooler):
    pooler = pam_pooler()
    assert not let_in(pooler, "expired")
    assert pooler.lines(r"PAM authentication: pam_acct_mgmt\(\): ")


def test_metrics_tell_an_expired_account_from_a_wrong_password(pam_pooler):
    pytest.importorskip("prometheus_client")
    port = free_port()
    pooler = pam_pooler({"metrics_port": port})
    assert not let_in(pooler, "expired")
    assert not let_in(pooler, "app", "wrong")
    reported = scrape(port)
    assert reported.value("pgusher_auth_failures_total", reason="expired") == 1
    assert reported.value("pgusher_auth_failures_total", reason="password") == 1
    assert reported.value("pgusher_client_login_seconds_count", method="pam", outcome="denied") == 2


def test_without_modules_it_is_a_mistake_of_the_operator(new_pooler):
    with service_of("auth required /nonexistent/pam_nothing.so\n"):
        pooler = new_pooler({"auth_type": "pam"})
        assert not let_in(pooler)
        assert pooler.lines(r"WARNING .*PAM authentication: pam_authenticate\(\)")


def test_a_program_of_pam_exec_can_decide(new_pooler):
    folder = make_folder("pgusher-exec-")
    script = os.path.join(folder, "decide")
    with open(script, "w") as file:
        # A program that a thread of the daemon starts must not have signals blocked.
        file.write(
            "#!/bin/sh\n"
            'grep -q "^SigBlk:[[:space:]]*0*$" /proc/self/status || exit 1\n'
            '[ "$PAM_SERVICE $PAM_RHOST" = "pgbouncer 127.0.0.1" ] || exit 1\n'
            '[ "$PAM_TYPE" = auth ] || { [ "$PAM_USER" != bob ]; exit; }\n'
            '[ "$(tr -d "\\000")" = "let me in" ]\n'
        )
    os.chmod(script, 0o755)
    rules = f"auth required pam_exec.so quiet expose_authtok {script}\n"
    rules += f"account required pam_exec.so quiet {script}\n"
    with service_of(rules):
        pooler = new_pooler({"auth_type": "pam"})
        assert let_in(pooler, "alice", "let me in")
        assert not let_in(pooler, "alice", "wrong")
        assert not let_in(pooler, "bob", "let me in")
    drop_folder(folder)


# --- users ------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", ["plain_login", "md5_login", "scram_login"])
def test_the_password_is_used_to_log_in_to_servers(pam_pooler, user):
    client = pam_pooler().client(user, password=PASSWORDS[user])
    assert client.value("SELECT current_user") == user


def test_a_database_with_an_auth_user_is_a_contradiction(pam_pooler):
    pooler = pam_pooler(databases={"main": {}, "asked": {"dbname": "main", "auth_user": "alice"}})
    error = pooler.refused("app", "asked", PASSWORDS["app"])
    assert error.is_("FATAL", "08P01", "bouncer config error")
    assert pooler.lines("PAM can't be used together with database authentication")
    assert let_in(pooler)


def test_pam_passwords_open_the_console_too(pam_pooler):
    pooler = pam_pooler({"admin_users": "app"})
    assert pooler.client("app", "pgbouncer", PASSWORDS["app"]).query("SHOW VERSION").rows
    assert pooler.refused("alice", "pgbouncer", PASSWORDS["alice"]).text == "not allowed"


def test_pam_is_no_method_of_hba_files(new_pooler):
    pooler = new_pooler({"auth_type": "hba", "auth_hba_file": "hba.conf"}, start=False)
    pooler.write("hba.conf", "host all all all pam\n")
    pooler.start()
    assert pooler.lines("unsupported method: buf=pam")


def test_passwords_are_not_logged(pam_pooler):
    pooler = pam_pooler({"verbose": 3})
    assert let_in(pooler)
    assert not let_in(pooler, password="a marked password")
    assert "marked password" not in pooler.log() and PASSWORDS["app"] not in pooler.log()


# --- trouble ----------------------------------------------------------------------------------


def test_a_delay_after_a_wrong_password_delays_no_other_client(pam_pooler):
    pooler = pam_pooler()
    started = time.monotonic()
    slow = begin(pooler, "slow", "wrong")
    slower = [begin(pooler, "slower", "wrong") for _ in range(15)]
    assert let_in(pooler)
    assert let_in(pooler, "slower")
    assert slow.fatal().is_(*FAILED)
    # PAM varies the delay by up to a half.
    assert time.monotonic() - started > 0.9
    # No login waited for a thread then, though there are fewer threads.
    assert all(client.silent(0) for client in slower)
    assert not pooler.lines("queue is full|slower@.* closing because: PAM")


def test_a_module_that_hangs_delays_no_other_client(pam_pooler, control):
    pooler = pam_pooler({"admin_users": "carol", "client_login_timeout": "30"})
    console = pooler.client("carol", "pgbouncer", PASSWORDS["carol"])
    known = pooler.client(password=PASSWORDS["app"])
    before = len(control.asked())
    hanging = [begin(pooler, "hangs") for _ in range(7)]
    wait_until(lambda: len(control.asked()) == before + 7, what="logins that hang")
    # As long as one thread is free, logins proceed.
    assert let_in(pooler)
    hanging += [begin(pooler, "hangs") for _ in range(20)]
    pooler.wait_log("WARNING PAM queue is full, waiting")
    started = time.monotonic()
    for _ in range(20):
        assert known.value("SELECT 1") == "1"
        assert console.query("SHOW STATE").rows
    assert time.monotonic() - started < 10
    for client in hanging[1:]:
        client.close()
    wait_until(lambda: logins(console) == 1, what="disconnected clients to be gone")
    control.open_gate()
    # The password was right, but PostgreSQL has no such role.
    assert hanging[0].fatal(timeout=10).text.endswith("does not exist")
    assert let_in(pooler)
    # PAM was not asked about clients that disconnected while they waited.
    assert sum(" hangs " in line for line in control.asked()) <= 8
    assert len(pooler.lines("PAM queue is full, waiting")) == 1


def test_a_login_that_hangs_ends_with_its_time(pam_pooler, control):
    pooler = pam_pooler({"client_login_timeout": "1"})
    client = begin(pooler, "hangs")
    assert client.fatal(timeout=10).is_("FATAL", "57014", "client_login_timeout")
    control.open_gate()
    assert let_in(pooler)


def test_a_stop_does_not_wait_for_a_module_that_hangs(pam_pooler, control):
    pooler = pam_pooler()
    client = begin(pooler, "hangs")
    wait_until(control.asked, what="the module to hang")
    client.close()
    pooler.signal(15)
    # Nor does it unload the module while a thread runs in it.
    assert pooler.wait_exit() == 0
