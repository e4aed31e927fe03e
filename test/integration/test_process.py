# SPDX-License-Identifier: ISC
"""The process: command line, start, files it makes, signals, listening, logging and its end."""

import contextlib
import ctypes
import itertools
import os
import pwd
import re
import signal
import socket
import struct
import subprocess

import pytest

from support import wire
from support.clients.raw import Closed, RawClient, ServerError
from support.process import HOST, has_ended, run, service_uid, service_user, stays, stop_process, wait_until
from support.servers.pooler import binary, is_sanitized


def output(*options):
    """Exit code, stdout and stderr of a run that ends by itself."""
    done = run([binary(), *options], check=False)
    return done.returncode, done.stdout, done.stderr


# Command line


def test_version():
    for option in ("-V", "--version", "--vers"):
        code, out, err = output(option)
        lines = out.splitlines()
        assert (code, err) == (0, "")
        assert re.fullmatch(r"PgBouncer 1\.26\.1 \(pgusher \d+\.\d+\.\d+\)", lines[0])
        assert lines[1].startswith("libevent 2.")
        assert lines[2].startswith("adns: c-ares ")
        assert lines[3].startswith("tls: OpenSSL ")


def test_help():
    for option in ("-h", "--help"):
        code, out, err = output(option)
        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{binary()} is a connection pooler for PostgreSQL."
        for word in ("-d", "--daemon", "-q", "--quiet", "-u", "--user", "-v", "--verbose"):
            assert word in out
        for word in ("-V", "--version", "-h", "--help", "--check"):
            assert word in out


@pytest.mark.parametrize("arguments", [(), ("one.ini", "two.ini")])
def test_exactly_one_file_is_expected(arguments):
    code, out, err = output(*arguments)
    assert (code, out) == (1, "")
    assert err == (
        f"{binary()}: no configuration file specified\n"
        f'Try "{binary()} --help" for more information.\n'
    )


def test_an_unknown_option_is_refused():
    code, out, err = output("--nonsense")
    assert (code, out) == (1, "")
    assert "nonsense" in err
    assert err.endswith(f'Try "{binary()} --help" for more information.\n')


def test_check_accepts_a_good_file(new_pooler):
    pooler = new_pooler(start=False)
    code, _, err = output("--check", pooler.config_path)
    assert code == 0, err
    assert not os.path.exists(pooler.socket_path)


def test_check_lists_every_problem_with_its_line(new_pooler):
    pooler = new_pooler(start=False)
    text = pooler.config_text() + "default_pool_size = many\nno_such_thing = 1\npool_mode = odd\n"
    pooler.write("pgusher.ini", text)
    code, out, err = output("--check", pooler.config_path)
    assert code != 0
    printed = out + err
    lines = text.splitlines()
    for line in ("default_pool_size = many", "no_such_thing = 1", "pool_mode = odd"):
        assert f"{pooler.config_path}:{lines.index(line) + 1}: " in printed
    assert re.search(r"session.*transaction.*statement", printed)


MISTAKES = [
    ("[databases]", None),
    ("app = hots=127.0.0.1", "app: unrecognized connection parameter: hots: did you mean host?"),
    ("web = port=54320000", "web: invalid port: 54320000: allowed is a number from 1 to 65535, or one for each host"),
    ("far = host='example.com", "far: syntax error in connection string"),
    ("pgbouncer = host=127.0.0.1", 'pgbouncer: database name "pgbouncer" is reserved'),
    ("[user]", 'invalid section "user": allowed is databases, peers, pgbouncer, pgusher, users'),
    ("[users]", None),
    ("alice = pool_size=ten", "alice: invalid pool_size: ten: allowed is auto, or a whole number, at least -1"),
    ("[pgbouncer]", None),
    (
        "pool_mod = session",
        "unknown parameter: pgbouncer/pool_mod: did you mean pool_mode?",
    ),
    (
        "pool_mode = transactions",
        'invalid value "transactions" for parameter pool_mode: allowed is session, transaction,'
        " statement",
    ),
    (
        "listen_port = 99999",
        'invalid value "99999" for parameter listen_port: allowed is a whole number from 0 to 65535',
    ),
    (
        "query_timeout = 5 minutes",
        'invalid value "5 minutes" for parameter query_timeout: allowed is a number of seconds,'
        " or one with us, ms, s, min, h or d",
    ),
    (
        "log_stats = yes",
        'invalid value "yes" for parameter log_stats: allowed is 1 (on) or 0 (off)',
    ),
    (
        "default_pool_size 20",
        "syntax error: a line is `[section]`, `key = value`, `%include PATH`, or starts with ; or #",
    ),
    (
        "%include /nonexistent/more.ini",
        'could not load file "/nonexistent/more.ini": No such file or directory',
    ),
]


def test_check_has_a_clear_message_for_each_of_many_mistakes(new_pooler):
    pooler = new_pooler(start=False)
    pooler.write("pgusher.ini", "".join(line + "\n" for line, _ in MISTAKES))
    code, out, err = output("--check", pooler.config_path)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        f"{pooler.config_path}:{number}: {text}"
        for number, (_, text) in enumerate(MISTAKES, 1)
        if text
    ]
    assert len(out.splitlines()) >= 10
    # A start reports the same and fails.
    pooler.allow("cannot load config file")
    assert pooler.run_to_end() == 1
    for number, (_, text) in enumerate(MISTAKES, 1):
        if text:
            assert f":{number})" in pooler.log() or text in pooler.log(), text


# Why a start fails.
REFUSED = {
    "user": ({"user": "no_such_user"}, "user: there is no system user 'no_such_user'"),
    "unix_socket_dir": (
        {"unix_socket_dir": "/nonexistent"},
        "unix_socket_dir: '/nonexistent': No such file or directory",
    ),
    "a file as unix_socket_dir": (
        {"unix_socket_dir": "/etc/passwd"},
        "unix_socket_dir: '/etc/passwd' is not a directory",
    ),
    "unix_socket_group": (
        {"unix_socket_group": "no_such_group"},
        "unix_socket_group: there is no system group 'no_such_group'",
    ),
    "logfile": (
        {"logfile": "/nonexistent/log"},
        "logfile: '/nonexistent': No such file or directory",
    ),
    "a folder as logfile": ({"logfile": "/tmp"}, "logfile: '/tmp' is a directory"),
    "pidfile": (
        {"pidfile": "/nonexistent/pid"},
        "pidfile: '/nonexistent': No such file or directory",
    ),
    "listen_addr": (
        {"listen_addr": "127.0.0.1, no.such.host.invalid"},
        "listen_addr: 'no.such.host.invalid': ",
    ),
    "nowhere": (
        {"listen_addr": "", "unix_socket_dir": ""},
        "nowhere to listen on: neither listen_addr nor unix_socket_dir is set",
    ),
    "no certificate": (
        {"client_tls_sslmode": "require"},
        "To allow TLS connections from clients, client_tls_key_file and client_tls_cert_file must"
        " be set.",
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_check_finds_what_would_make_a_start_fail(new_pooler, fault):
    settings, text = REFUSED[fault]
    pooler = new_pooler(settings, start=False)
    code, out, _ = output("--check", pooler.config_path)
    assert code == 1
    (line,) = out.splitlines()
    assert line.startswith(f"{pooler.config_path}: {text}")
    pooler.allow(r"\] FATAL ")
    if os.getuid() != 0 or "user" not in settings:
        assert pooler.run_to_end() == 1


# Configurations that start, and accept no client.
DOUBTFUL = {
    "unix_socket_mode": (
        {"unix_socket_mode": "777"},
        "unix_socket_mode: 777 is 01411: octal numbers begin with a 0",
    ),
    "resolv_conf": (
        {"resolv_conf": "/nonexistent"},
        "resolv_conf: '/nonexistent': No such file or directory",
    ),
    "syslog_facility": (
        {"syslog_facility": "locl0"},
        "syslog_facility: there is no 'locl0', so it is daemon: allowed is auth, authpriv, daemon,"
        " user, local0 to local7",
    ),
    "server_tls_ca_file": (
        {"server_tls_sslmode": "verify-full", "server_tls_ca_file": "/nonexistent"},
        "no server can be connected to: TLS setup failed: failed to load CA: ",
    ),
    "no secrets": (
        {"auth_file": None},
        "no user can log in: neither auth_file nor auth_user is set",
    ),
    "any without a user": (
        {"auth_type": "any"},
        "auth_type any: no user can log in to main, which has no user=",
    ),
    "auth_query": (
        {"auth_query": "SELECT * FROM users"},
        "auth_query: no user can be found by a query without the parameter $1",
    ),
    "auth_dbname": ({"auth_dbname": "gone"}, "auth_dbname: [databases] has no 'gone'"),
}


@pytest.mark.parametrize("fault", DOUBTFUL)
def test_check_warns_of_configurations_that_accept_no_client(new_pooler, fault):
    settings, text = DOUBTFUL[fault]
    pooler = new_pooler(settings, start=False)
    code, out, _ = output("--check", pooler.config_path)
    assert code == 0
    (line,) = out.splitlines()
    assert line.startswith(f"{pooler.config_path}: warning: {text}")
    pooler.start()


def test_comments_behind_values_are_taken_or_named_in_one_line(new_pooler):
    """As tutorials print them; PgBouncer refuses each of these lines."""
    settings = {
        "pool_mode": "transaction ; session is the default",
        "max_client_conn": "50 # few",
        "default_pool_size": "3;each",
        "client_tls_protocols": "secure ; 1.2 and 1.3",
    }
    pooler = new_pooler(settings, start=False)
    assert output("--check", pooler.config_path) == (0, "", "")
    pooler.start()
    assert pooler.setting("pool_mode") == "transaction"
    assert pooler.setting("default_pool_size") == "3"
    other = new_pooler({**settings, "stats_users": "stats ; they only read"}, start=False)
    code, out, _ = output("--check", other.config_path)
    (line,) = out.splitlines()
    warning = (
        'stats_users: "; they only read" is part of the value: write a comment on a line of its own'
    )
    assert code == 0 and line.startswith(other.config_path) and line.endswith("warning: " + warning)
    other.start()
    other.wait_log(r"\] WARNING " + re.escape(warning) + r" \(.*:\d+\)$")


NEGATIVE = {
    "default_pool_size": "auto, or a whole number, at least 0, or -1, which is read as 0",
    "max_user_connections": "a whole number, at least 0, or -1, which is read as 0",
    "max_client_conn": "a whole number, at least 0",
    "tcp_keepcnt": "a whole number, at least 0, or -1, which is read as 0",
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_numbers_have_a_lower_bound(new_pooler, name):
    pooler = new_pooler({name: "-3"}, start=False)
    code, out, _ = output("--check", pooler.config_path)
    (line,) = out.splitlines()
    assert code == 1
    assert line.endswith(f'invalid value "-3" for parameter {name}: allowed is {NEGATIVE[name]}')


def test_check_warns_of_entries_that_accept_no_client(new_pooler):
    keys = {"auth_user": "app", "auth_dbname": "gone", "auth_query": "SELECT 1"}
    pooler = new_pooler({"auth_file": None}, databases={"main": keys}, start=False)
    code, out, _ = output("--check", pooler.config_path)
    assert code == 0
    assert out.splitlines() == [
        f"{pooler.config_path}: warning: main: {text}"
        for text in (
            "auth_query: no user can be found by a query without the parameter $1",
            "auth_dbname: [databases] has no 'gone'",
        )
    ]
    pooler.databases["*"] = {}
    pooler.write_config()
    code, out, _ = output("--check", pooler.config_path)
    assert "auth_dbname" not in out


def test_check_asks_for_the_options_of_ldap_and_the_file_of_hba(new_pooler):
    pooler = new_pooler({"auth_type": "hba"}, start=False)
    expected = "auth_hba_file: without this file auth_type hba refuses every login\n"
    assert output("--check", pooler.config_path) == (1, expected, "")
    pooler.settings["auth_type"] = "ldap"
    pooler.write_config()
    code, out, _ = output("--check", pooler.config_path)
    if code == 0:  # and support was built in
        expected = "warning: auth_type ldap: no user can log in without auth_ldap_options"
        assert out == f"{pooler.config_path}: {expected}\n"


def test_check_of_a_missing_file_fails():
    code, out, err = output("--check", "/nonexistent/file.ini")
    assert code != 0
    assert "/nonexistent/file.ini" in out + err


def test_check_runs_beside_the_daemon(pooler):
    code, _, err = output("--check", pooler.config_path)
    assert code == 0, err
    assert pooler.client().value("SELECT 1") == "1"


# Start


def fails_with(pooler, *texts, code=1, options=(), **popen):
    """The daemon refuses to start and prints the reason."""
    pooler.allow(r"\] FATAL ")
    assert pooler.run_to_end(*options, **popen) == code
    for text in texts:
        assert text in pooler.log(), pooler.log()


def test_a_broken_file_is_fatal_and_named(new_pooler):
    pooler = new_pooler(start=False)
    text = pooler.config_text() + "default_pool_size = many\n"
    pooler.write("pgusher.ini", text)
    line = len(text.splitlines())
    fails_with(
        pooler,
        'invalid value "many" for parameter default_pool_size in configuration'
        f" ({pooler.config_path}:{line})",
        "FATAL cannot load config file",
    )


def test_a_missing_file_is_fatal(new_pooler):
    pooler = new_pooler(start=False)
    os.unlink(pooler.config_path)
    fails_with(pooler, f'could not load file "{pooler.config_path}"', "cannot load config file")


def test_a_file_without_the_main_section_is_fatal(new_pooler):
    pooler = new_pooler(start=False)
    pooler.write("pgusher.ini", "[databases]\nmain = host=x\n")
    fails_with(pooler, "load_init_file: main section missing from config file")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can try to run as root")
def test_root_is_refused(new_pooler):
    pooler = new_pooler(start=False)
    fails_with(pooler, "PgBouncer should not run as root", as_root=True)


@pytest.mark.setting("user")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can switch users")
@pytest.mark.parametrize("how", ["option", "setting"])
def test_root_switches_to_another_user(new_pooler, how):
    pooler = new_pooler(start=False)
    name = service_user().pw_name
    if how == "setting":
        pooler.settings["user"] = name
        pooler.write_config()
        pooler.start(as_root=True)
    else:
        pooler.settings["user"] = "nobody"
        pooler.write_config()
        pooler.start("-u", name, as_root=True)
    with open(f"/proc/{pooler.process.pid}/status") as file:
        status = file.read()
    user = pwd.getpwnam(name)
    assert f"Uid:\t{user.pw_uid}\t{user.pw_uid}\t{user.pw_uid}" in status
    assert f"Gid:\t{user.pw_gid}\t{user.pw_gid}\t{user.pw_gid}" in status
    (groups,) = re.findall(r"^Groups:\t(.*)$", status, re.M)
    assert set(groups.split()) <= {str(user.pw_gid)}
    assert pooler.client().value("SELECT 1") == "1"


def test_an_unknown_user_to_switch_to_is_fatal(new_pooler):
    pooler = new_pooler({"user": "no_such_user_here"}, start=False)
    fails_with(pooler, "could not find user 'no_such_user_here' to switch to")


def test_nowhere_to_listen_is_fatal(new_pooler):
    pooler = new_pooler({"listen_addr": "", "unix_socket_dir": ""}, start=False)
    fails_with(pooler, "nowhere to listen on")


def test_the_start_is_logged(pooler):
    (line,) = pooler.lines("process up: ")
    assert re.search(
        r" LOG process up: PgBouncer 1\.26\.1.*, libevent \S+ \(epoll\), adns: c-ares \S+,"
        r" tls: OpenSSL ",
        line,
    )
    assert pooler.lines(
        r"LOG kernel file descriptor limit: \d+ \(hard: \d+\); max_client_conn: 100,"
        r" max expected fd use: \d+$"
    )


# Listening


def test_the_listeners_are_logged(pooler):
    assert pooler.lines(rf"LOG listening on 127\.0\.0\.1:{pooler.port}$")
    assert pooler.lines(rf"LOG listening on unix:{re.escape(pooler.socket_path)}$")


def test_ipv6(new_pooler):
    pooler = new_pooler({"listen_addr": "::1"})
    client = pooler.keep(RawClient(("::1", pooler.port))).login()
    assert client.value("SELECT 1") == "1"
    assert pooler.lines(rf"listening on \[::1\]:{pooler.port}$")
    port = client.socket.getsockname()[1]
    assert pooler.lines(rf"main/app@\[::1\]:{port} login attempt")
    console = pooler.keep(RawClient(("::1", pooler.port))).login("admin", "pgbouncer")
    (row,) = [row for row in console.query("SHOW CLIENTS").dicts() if row["database"] == "main"]
    assert row["addr"] == "::1"


@pytest.mark.setting("listen_addr")
@pytest.mark.parametrize("addresses", ["127.0.0.1,::1", " 127.0.0.1 ,, ::1 ", "localhost,::1", "*"])
def test_several_addresses(new_pooler, addresses):
    pooler = new_pooler({"listen_addr": addresses})
    for host in (HOST, "::1"):
        client = pooler.keep(RawClient((host, pooler.port))).login()
        assert client.value("SELECT 1") == "1"


def test_no_address_is_no_tcp(new_pooler):
    pooler = new_pooler({"listen_addr": ""})
    with pytest.raises(ConnectionRefusedError):
        RawClient(pooler.address)
    assert pooler.client(unix=True).value("SELECT 1") == "1"


def test_a_taken_address_is_a_warning_while_another_is_free(new_pooler):
    pooler = new_pooler({"listen_addr": f"{HOST},::1"}, start=False)
    with socket.socket() as taken:
        taken.bind((HOST, pooler.port))
        taken.listen()
        pooler.start()
        assert pooler.lines(rf"WARNING cannot listen on {HOST}:{pooler.port}: bind\(\): ")
        client = pooler.keep(RawClient(("::1", pooler.port))).login()
        assert client.value("SELECT 1") == "1"


def test_no_free_address_is_fatal(new_pooler):
    pooler = new_pooler(start=False)
    with socket.socket() as taken:
        taken.bind((HOST, pooler.port))
        taken.listen()
        fails_with(pooler, "failed to listen on any address in listen_addr list: ")


def test_an_address_that_does_not_exist_is_fatal(new_pooler):
    pooler = new_pooler({"listen_addr": "no-such-host.invalid"}, start=False)
    fails_with(pooler, "getaddrinfo('no-such-host.invalid', ")


@pytest.mark.setting("unix_socket_dir")
def test_no_unix_socket_folder_is_no_unix_socket(new_pooler):
    pooler = new_pooler({"unix_socket_dir": ""})
    assert not os.path.exists(pooler.socket_path)
    assert not pooler.lines("listening on unix")
    assert pooler.client().value("SELECT 1") == "1"


@pytest.mark.setting("unix_socket_mode")
@pytest.mark.parametrize("mode", [None, "0700", "0660"])
def test_the_mode_of_the_unix_socket(new_pooler, mode):
    pooler = new_pooler({"unix_socket_mode": mode})
    assert os.stat(pooler.socket_path).st_mode & 0o7777 == int(mode or "0777", 8)


@pytest.mark.setting("unix_socket_group")
@pytest.mark.skipif(os.getuid() != 0, reason="the service user may not be in another group")
def test_the_group_of_the_unix_socket(new_pooler):
    gid = service_user().pw_gid
    pooler = new_pooler({"unix_socket_group": gid})
    assert os.stat(pooler.socket_path).st_gid == gid


def test_an_unknown_group_of_the_unix_socket_is_fatal(new_pooler):
    pooler = new_pooler({"unix_socket_group": "no_such_group_here"}, start=False)
    fails_with(pooler, "no_such_group_here")


@pytest.mark.setting("unix_socket_dir")
def test_an_abstract_unix_socket(new_pooler):
    pooler = new_pooler(start=False)
    name = f"pgusher-test-{pooler.port}"
    pooler.settings["unix_socket_dir"] = "@" + name
    pooler.write_config()
    pooler.start()
    address = f"\0{name}/.s.PGSQL.{pooler.port}"
    assert pooler.keep(RawClient(address)).login().value("SELECT 1") == "1"
    assert pooler.lines(rf"listening on unix:@{name}/\.s\.PGSQL\.{pooler.port}$")


def test_a_stale_unix_socket_is_replaced(new_pooler):  # F76
    pooler = new_pooler(start=False)
    stale = socket.socket(socket.AF_UNIX)
    stale.bind(pooler.socket_path)
    stale.close()
    os.chmod(pooler.socket_path, 0o777)
    if os.getuid() == 0:
        os.chown(pooler.socket_path, service_uid(), -1)
    pooler.start()
    assert pooler.client(unix=True).value("SELECT 1") == "1"


def test_a_unix_socket_in_use_is_fatal(new_pooler, pooler):
    second = new_pooler(
        {"unix_socket_dir": pooler.folder, "listen_port": pooler.port, "listen_addr": ""},
        start=False,
    )
    fails_with(second, "unix socket is in use, cannot continue")
    assert pooler.client(unix=True).value("SELECT 1") == "1"


def test_a_lock_file_beside_the_unix_socket_is_fatal(new_pooler):
    pooler = new_pooler(start=False)
    pooler.write(f".s.PGSQL.{pooler.port}.lock", "1\n")
    fails_with(pooler, f"unix port {pooler.port} is in use")


@pytest.mark.setting("so_reuseport")
def test_two_share_a_port_with_so_reuseport(new_pooler):
    first = new_pooler({"so_reuseport": 1, "pool_mode": "transaction"})
    second = new_pooler({"so_reuseport": 1, "pool_mode": "transaction"}, start=False)
    second.port = first.port
    second.write_config()
    second.start()
    clients = [first.client() for _ in range(30)]
    for client in clients:
        assert client.value("SELECT 1") == "1"
    assert first.lines("login attempt") and second.lines("login attempt")
    first.close_clients()


@pytest.mark.setting("listen_port")
def test_the_port_is_6432_by_default(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings.update(listen_port=None, listen_addr="")
    pooler.write_config()
    pooler.start()
    path = pooler.path(".s.PGSQL.6432")
    assert pooler.keep(RawClient(path)).login().value("SELECT 1") == "1"


def socket_option(pid, address, level, option):
    """An option of the daemon's end of a connection, read from a duplicate of its descriptor."""
    pidfd = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                fd = pidfd_getfd(pidfd, int(name))
                with socket.socket(fileno=fd) as duplicate:
                    if duplicate.getpeername()[:2] == address:
                        return duplicate.getsockopt(level, option)
    finally:
        os.close(pidfd)
    raise AssertionError("no such connection")


def pidfd_getfd(pidfd, fd):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(438, pidfd, fd, 0)
    if result < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return result


@pytest.mark.setting("tcp_keepcnt", "tcp_keepidle", "tcp_keepintvl", "tcp_user_timeout")
@pytest.mark.skipif(os.getuid() != 0, reason="only root may look into another process")
def test_tcp_options_are_set_on_both_sides(new_pooler, cluster):
    pooler = new_pooler(
        {
            "pool_mode": "session",
            "tcp_keepcnt": 3,
            "tcp_keepidle": 41,
            "tcp_keepintvl": 7,
            "tcp_user_timeout": 12345,
        }
    )
    client = pooler.client()
    client.query("SELECT 1")
    peers = [client.socket.getsockname(), (cluster.host, cluster.port)]
    for peer in peers:
        for level, option, value in [
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
            (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
            (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 41),
            (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 7),
            (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 12345),
            (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        ]:
            assert socket_option(pooler.process.pid, peer, level, option) == value


@pytest.mark.setting("tcp_keepalive", "tcp_socket_buffer")
@pytest.mark.skipif(os.getuid() != 0, reason="only root may look into another process")
def test_tcp_options_may_be_left_to_the_system(new_pooler, cluster):
    pooler = new_pooler(
        {
            "pool_mode": "session",
            "tcp_keepalive": 0,
            "tcp_keepcnt": 3,
            "tcp_socket_buffer": "16kB",
        }
    )
    first = pooler.client()
    first.query("SELECT 1")
    for peer in [first.socket.getsockname(), (cluster.host, cluster.port)]:
        for level, option, value in [
            (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0),
            # The kernel adds as much again for itself.
            (socket.SOL_SOCKET, socket.SO_RCVBUF, 2 * 16384),
            (socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * 16384),
        ]:
            assert socket_option(pooler.process.pid, peer, level, option) == value
    # A change applies to later connections.
    pooler.command("SET tcp_keepalive = 1")
    pooler.command("SET tcp_socket_buffer = 0")
    second = pooler.client()
    for client, value in [(first, 0), (second, 1)]:
        address = client.socket.getsockname()
        assert (
            socket_option(pooler.process.pid, address, socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            == value
        )


@pytest.mark.parametrize("buffer", [1, 4096])
@pytest.mark.parametrize("direction", ["out", "in"])
def test_bulk_data_passes_with_small_socket_buffers(new_pooler, buffer, direction):
    # setting: tcp_socket_buffer
    # A receive window that closes after each receive lets 40 kB pass in a second.
    pooler = new_pooler({"pool_mode": "transaction", "tcp_socket_buffer": buffer})
    client = pooler.client()
    if direction == "out":
        sql = "SELECT repeat('x', 1000) FROM generate_series(1, 3000)"
        result = client.query(sql, timeout=15)
        assert len(result.rows) == 3000
    else:
        client.send(
            wire.query("CREATE TEMP TABLE sink (line text) ON COMMIT DROP;COPY sink FROM STDIN")
        )
        client.read_until("G")
        for _ in range(300):
            client.send(wire.copy_data(b"x" * 9999 + b"\n"))
        client.send(wire.copy_done())
        assert client.result().tags[-1] == "COPY 300"


def backlogs(pid):
    """The backlog of each TCP listener of the daemon."""
    found = []
    pidfd = os.pidfd_open(pid)
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                with socket.socket(fileno=pidfd_getfd(pidfd, int(name))) as duplicate:
                    if duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                        info = duplicate.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                        # tcpi_sacked, which is the backlog of a listener
                        found.append(struct.unpack_from("=I", info, 28)[0])
    finally:
        os.close(pidfd)
    return found


@pytest.mark.setting("listen_backlog")
@pytest.mark.skipif(os.getuid() != 0, reason="only root may look into another process")
@pytest.mark.parametrize("setting, backlog", [(None, 128), (17, 17)])
def test_listeners_have_the_configured_backlog(new_pooler, setting, backlog):
    pooler = new_pooler({"listen_backlog": setting})
    assert backlogs(pooler.process.pid) == [backlog]


# Pidfile and daemon


@pytest.mark.setting("pidfile")
def test_the_pidfile_exists_as_long_as_the_process(new_pooler):
    pooler = new_pooler(start=False)
    path = pooler.path("pid")
    pooler.settings["pidfile"] = path
    pooler.write_config()
    pooler.start()
    with open(path) as file:
        assert file.read() == f"{pooler.process.pid}\n"
    assert os.stat(path).st_mode & 0o777 == 0o644
    pooler.signal(signal.SIGQUIT)
    assert pooler.wait_exit() == 0
    assert not os.path.exists(path)


def dead_pid():
    """The pid of a process that has ended."""
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_a_stale_pidfile_is_replaced(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["pidfile"] = pooler.write("pid", f"{dead_pid()}\n")
    pooler.write_config()
    pooler.start()
    assert pooler.lines("LOG stale pidfile, removing")
    with open(pooler.path("pid")) as file:
        assert int(file.read()) == pooler.process.pid


@pytest.mark.parametrize("content", ["", "nonsense\n", "ours"])
def test_a_pidfile_in_use_or_unreadable_is_fatal(new_pooler, content):
    pooler = new_pooler(start=False)
    content = content.replace("ours", f"{os.getpid()}\n")
    path = pooler.write("pid", content)
    pooler.settings["pidfile"] = path
    pooler.write_config()
    fails_with(pooler, f"pidfile '{path}' exists, another instance running?")
    # A process that never wrote the pidfile never removes it.
    with open(path) as file:
        assert file.read() == content


def test_a_pidfile_that_cannot_be_written_is_fatal(new_pooler):
    pooler = new_pooler({"pidfile": "/nonexistent/pid"}, start=False)
    fails_with(pooler, "could not open pidfile '/nonexistent/pid': ")
    assert not os.path.exists(pooler.socket_path)


def test_a_daemon_needs_a_pidfile(new_pooler):
    pooler = new_pooler(start=False)
    fails_with(pooler, "daemon needs pidfile configured", options=["-d"])


def test_a_daemon_detaches_from_its_caller(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings.update(pidfile=pooler.path("pid"), logfile=pooler.path("log"))
    pooler.write_config()
    assert pooler.run_to_end("-d") == 0
    wait_until(lambda: os.path.exists(pooler.path("pid")))
    pid = int(wait_until(lambda: read(pooler.path("pid"))))
    try:
        assert os.getsid(pid) != os.getsid(0)
        for number in range(3):
            assert os.readlink(f"/proc/{pid}/fd/{number}") == "/dev/null"
        assert os.readlink(f"/proc/{pid}/cwd") == pooler.folder
        assert pooler.client().value("SELECT 1") == "1"
        assert "process up: " not in pooler.log()
        assert f"[{pid}] LOG process up: " in read(pooler.path("log"))
        pooler.close_clients()
    finally:
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: has_ended(pid))
    assert not os.path.exists(pooler.path("pid"))


def read(path):
    with open(path) as file:
        return file.read()


def test_a_daemon_that_cannot_start_reports_it_to_its_caller(new_pooler, pooler):
    second = new_pooler(start=False)
    second.settings.update(
        pidfile=second.path("pid"), unix_socket_dir=pooler.folder, listen_port=pooler.port
    )
    second.write_config()
    fails_with(second, "unix socket is in use, cannot continue", options=["-d"])


# Logging


def test_lines_have_their_format(pooler):
    pooler.client()
    for line in pooler.log().splitlines():
        assert re.match(
            r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC "
            rf"\[{pooler.process.pid}\] (LOG|WARNING|ERROR|FATAL|DEBUG|NOISE) \S",
            line,
        )


def test_quiet_writes_nothing_to_stderr(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["logfile"] = pooler.path("log")
    pooler.write_config()
    pooler.spawn("-q")
    wait_until(lambda: os.path.exists(pooler.socket_path))
    assert pooler.client().value("SELECT 1") == "1"
    assert pooler.log() == ""
    assert "login attempt" in read(pooler.path("log"))


def test_file_and_stderr_get_the_same_lines(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["logfile"] = pooler.path("log")
    pooler.write_config()
    pooler.start()
    pooler.client()
    assert read(pooler.path("log")) == pooler.log()


def test_a_log_file_that_cannot_be_opened_is_fatal(new_pooler):
    pooler = new_pooler({"logfile": "/nonexistent/log"}, start=False)
    fails_with(pooler, "FATAL Cannot open logfile: '/nonexistent/log': ")


@pytest.mark.setting("verbose")
@pytest.mark.parametrize("how", ["option", "setting", "command"])
def test_verbosity(new_pooler, how):
    pooler = new_pooler(start=False)
    if how == "setting":
        pooler.settings["verbose"] = 1
        pooler.write_config()
    pooler.start(*["-v"] if how == "option" else [])
    if how == "command":
        assert not pooler.lines(r"\] DEBUG ")
        pooler.command("SET verbose = 1")
    pooler.client(timezone="Asia/Tokyo").query("SELECT 1")
    assert pooler.wait_log(r"\] DEBUG S-0x[0-9a-f]+: .*varcache_apply: SET TimeZone='Asia/Tokyo'")
    assert not pooler.lines(r"\] NOISE ")


def test_names_of_peers_cannot_forge_lines(new_pooler):
    pooler = new_pooler()
    pooler.refused("evil\n2026-01-01 00:00:00.000 UTC [1] FATAL forged\x1b[31m")
    log = pooler.log()
    assert "\x1b" not in log
    assert not [line for line in log.splitlines() if line.startswith("2026-01-01 00:00:00")]


def test_no_secret_is_ever_logged(new_pooler):  # F63 in part
    pooler = new_pooler(
        {"auth_type": "plain", "verbose": 3},
        databases={"main": {"user": "plain_login", "password": "plain secret"}},
        auth={"app": "Marked-Secret-1", "admin": "Marked-Secret-2"},
    )
    pooler.client(password="Marked-Secret-1").query("SELECT 1")
    pooler.refused(password="Marked-Secret-3")
    console = pooler.client("admin", "pgbouncer", "Marked-Secret-2")
    shown = ""
    for topic in ("CONFIG", "DATABASES", "USERS", "CLIENTS", "SERVERS", "SOCKETS", "POOLS"):
        shown += str(console.query(f"SHOW {topic}").rows)
    everything = pooler.log() + shown
    for name in ("cmdline", "environ"):
        with open(f"/proc/{pooler.process.pid}/{name}", "rb") as file:
            everything += file.read().decode("latin1")
    assert "Marked-Secret" not in everything and "plain secret" not in everything


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
def test_an_idle_process_ends_at_once(pooler, number):
    pooler.signal(number)
    assert pooler.wait_exit(3) == 0
    assert not os.path.exists(pooler.socket_path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_shutdown_does_not_wait_for_disconnected_clients(new_pooler, number):
    """Not even for the next run of the janitor, three times a second."""

    def time_to_end():
        pooler = new_pooler({"pool_mode": "transaction"})
        client = pooler.client()
        client.query("SELECT 1")
        pooler.wait_pool(sv_idle=1)
        client.close(), pooler.close_clients()
        pooler.signal(number)
        assert pooler.wait_exit() == 0
        return logged_at(pooler, "dropped, exiting") - logged_at(pooler, f"got {number.name}")

    assert sorted(time_to_end() for _ in range(3))[1] < 0.1


def logged_at(pooler, pattern):
    """The second of the day when the matching line was written."""
    (line,) = pooler.lines(pattern)
    hours, minutes, seconds = line.split()[1].split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


def test_sigquit_ends_at_once_with_clients_connected(pooler):
    client = pooler.client()
    client.query("BEGIN")
    pooler.signal(signal.SIGQUIT)
    assert pooler.wait_exit(3) == 0
    assert pooler.lines("LOG got SIGQUIT, fast exit")
    messages = client.read_all()
    assert [message.type for message in messages] in ([], ["E"])


def test_sigterm_waits_for_clients(pooler):
    client, idle = pooler.client(), pooler.client()
    client.query("BEGIN")
    pooler.signal(signal.SIGTERM)
    text = "got SIGTERM, shutting down, waiting for all clients disconnect"
    assert pooler.wait_log(text)
    wait_until(lambda: cannot_connect(pooler))
    assert pooler.refused(unix=True).is_("FATAL", "57P03", "pooler is shutting down")
    assert client.query("COMMIT").tag == "COMMIT"
    assert idle.value("SELECT 1") == "1"
    client.leave(), idle.leave()
    assert pooler.wait_exit() == 0
    assert pooler.lines("client connections dropped, exiting")


def cannot_connect(pooler):
    try:
        RawClient(pooler.address).close()
    except OSError:
        return True
    return False


def test_sigint_waits_for_servers(pooler):
    client, idle = pooler.client(), pooler.client()
    client.query("BEGIN")
    pooler.signal(signal.SIGINT)
    text = "got SIGINT, shutting down, waiting for all servers connections to be released"
    assert pooler.wait_log(text)
    idle.send(wire.query("SELECT 1"))
    assert idle.fatal().is_("FATAL", "57P01", "server shutting down")
    assert client.query("COMMIT").tag == "COMMIT"
    assert pooler.wait_exit() == 0
    assert pooler.lines("server connections dropped, exiting")


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_at_once(pooler, first, second):
    client = pooler.client()
    client.query("BEGIN")
    pooler.signal(first)
    pooler.wait_log(f"got {first.name}, shutting down")
    pooler.signal(second)
    assert pooler.wait_exit(3) == 0
    assert pooler.lines(f"got {second.name} while shutting down, fast exit")


def test_waiting_clients_get_an_error_at_a_shutdown(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1})
    holder, waiter = pooler.client(), pooler.client()
    holder.query("BEGIN")
    waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    pooler.signal(signal.SIGINT)
    assert waiter.fatal().is_("FATAL", "57P01", "server shutting down")
    holder.query("COMMIT")
    assert pooler.wait_exit() == 0


def test_sigusr1_pauses_and_sigusr2_resumes(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    pooler.signal(signal.SIGUSR1)
    assert pooler.wait_log("got SIGUSR1, pausing all activity")
    wait_until(lambda: pooler.show("STATE", key="paused", value="yes"))
    pooler.signal(signal.SIGUSR1)
    assert pooler.wait_log("got SIGUSR1, but already paused/suspended")
    client.send(wire.query("SELECT 2"))
    assert client.silent(0.2)
    pooler.signal(signal.SIGUSR2)
    assert pooler.wait_log("got SIGUSR2, continuing from PAUSE")
    assert client.checked().value == "2"
    pooler.signal(signal.SIGUSR2)
    assert pooler.wait_log("got SIGUSR2, but not paused/suspended")


def test_signals_in_any_order_do_no_harm(new_pooler):  # F74 in part
    pooler = new_pooler({"pool_mode": "transaction"})
    client = pooler.client()
    half = pooler.raw().send(b"\0\0")
    client.query("BEGIN")
    for number in (
        signal.SIGUSR2, signal.SIGHUP, signal.SIGUSR1, signal.SIGHUP, signal.SIGUSR2,
        signal.SIGUSR1, signal.SIGUSR1, signal.SIGPIPE,
    ):
        pooler.signal(number)
    assert client.query("COMMIT").tag == "COMMIT"
    half.close()
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("got SIGTERM")
    pooler.signal(signal.SIGUSR2)
    pooler.signal(signal.SIGHUP)
    pooler.close_clients()
    assert pooler.wait_exit() == 0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGQUIT])
@pytest.mark.parametrize(
    "before", list(itertools.permutations([signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2], 3)))
def test_every_order_of_signals_ends_as_it_should(new_pooler, before, end):  # F74
    """In a transaction, beside a login in progress: documented ends, and exit code 0."""
    pooler = new_pooler({"pool_mode": "transaction"})
    client = pooler.client()
    client.query("BEGIN")
    half = pooler.raw().send_startup()  # its welcome comes, or waits for RESUME
    for number in (*before, end):
        pooler.signal(number)
        pooler.wait_log(f"got {signal.Signals(number).name}")
    if end == signal.SIGQUIT:
        assert pooler.wait_exit() == 0
        with pytest.raises((Closed, ConnectionError)):
            client.query("COMMIT")
        return
    # SIGTERM and SIGINT end no transaction.
    assert client.value("SELECT 1") == "1"
    assert client.query("COMMIT").tag == "COMMIT"
    if end == signal.SIGTERM:
        if before.index(signal.SIGUSR1) < before.index(signal.SIGUSR2):
            assert client.value("SELECT 2") == "2"  # not paused any more
        stays(pooler.running, 0.4)
    half.close()
    pooler.close_clients()
    assert pooler.wait_exit() == 0


# SIGKILL and SIGSTOP: F76


def test_a_killed_process_can_start_again_at_once(new_pooler):
    pooler = new_pooler(start=False)
    pooler.settings["pidfile"] = pooler.path("pid")
    pooler.write_config()
    pooler.start()
    clients = [pooler.client() for _ in range(5)]
    for client in clients:
        client.query("SELECT 1")
    for _ in range(2):
        pooler.process.kill()
        pooler.process.wait()
        pooler.close_clients()
        os.unlink(pooler.log_path)
        pooler.start()
        assert pooler.lines("stale pidfile, removing")
        for unix in (False, True):
            assert pooler.client(unix=unix).value("SELECT 1") == "1"


def test_a_stopped_process_continues(new_pooler):  # F72
    """A long stop of the whole process makes no client time out."""
    pooler = new_pooler(
        {"pool_mode": "transaction", "client_idle_timeout": 1.5, "idle_transaction_timeout": 1.5}
    )
    idle, holder = pooler.client(), pooler.client()
    idle.query("SELECT 1"), holder.query("BEGIN")
    stop_process(pooler.process)
    assert idle.silent(3)
    pooler.signal(signal.SIGCONT)
    assert idle.value("SELECT 1") == "1"
    assert holder.query("COMMIT").tag == "COMMIT"
    assert not pooler.lines("timeout")


@pytest.mark.parametrize(
    "setting", ["transaction_timeout", "idle_transaction_timeout", "client_idle_timeout"]
)
def test_what_had_arrived_counts_after_a_stop(new_pooler, setting):
    """A message that came while the process was stopped comes before a limit that ended then.

    There are more clients than libevent handles in its first poll.
    """
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 60})
    clients = [pooler.client() for _ in range(50)]
    for sql in ("BEGIN", "COMMIT"):  # launches the servers
        for client in clients:
            client.query(sql)
    pooler.settings[setting] = 0.9
    pooler.write_config()
    pooler.reload()
    # All at once: on a busy machine one after the other takes longer than the limit.
    for client in clients:
        client.send(wire.query("SELECT 1" if setting == "client_idle_timeout" else "BEGIN"))
    for client in clients:
        client.checked()
    stop_process(pooler.process)
    for client in clients:
        client.send(wire.query("COMMIT"))
    assert clients[0].silent(0.95)
    pooler.signal(signal.SIGCONT)
    for client in clients:
        assert client.checked(5).tag == "COMMIT"
    assert not pooler.lines("closing because: .*timeout")


def test_programs_that_are_started_inherit_no_descriptors(pooler):
    """All descriptors but the standard ones are closed when another program is run."""
    pooler.client().query("SELECT 1")
    pid = pooler.process.pid
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        if int(name) > 2:
            with contextlib.suppress(FileNotFoundError):
                with open(f"/proc/{pid}/fdinfo/{name}") as file:
                    (flags,) = re.findall(r"^flags:\s+0?(\d+)$", file.read(), re.M)
                assert int(flags, 8) & os.O_CLOEXEC, name


# Descriptors and memory: F69, F70


def test_running_out_of_descriptors_affects_only_new_clients(new_pooler):  # F69
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 500})
    old = pooler.client()
    old.query("SELECT 1")
    limit = pooler.descriptors() + 10
    run_prlimit(pooler.process.pid, limit)
    crowd = []
    for _ in range(40):
        crowd.append(pooler.raw())
        crowd[-1].send(b"\0")
    wait_until(lambda: pooler.descriptors() >= limit - 2)
    cpu = pooler.cpu_seconds()
    assert old.value("SELECT 1") == "1"
    assert old.silent(1)
    assert pooler.cpu_seconds() - cpu < 0.3
    assert old.value("SELECT 2") == "2"
    for client in crowd:
        client.close()
    run_prlimit(pooler.process.pid, 1000)
    new_client = pooler.raw().send_startup()
    new_client.finish_login("app")
    assert new_client.value("SELECT 1") == "1"


def run_prlimit(pid, limit):
    run(["prlimit", f"--pid={pid}", f"--nofile={limit}:"])


def test_a_memory_limit_closes_connections_and_not_the_process(new_pooler):  # F70
    if is_sanitized():
        pytest.skip("the sanitizer's shadow memory does not fit below a limit")
    pooler = new_pooler({"pool_mode": "transaction", "max_client_conn": 5000, "pkt_buf": 65536})
    old = pooler.client()
    old.query("SELECT 1")
    with open(f"/proc/{pooler.process.pid}/statm") as file:
        size = int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")
    run(["prlimit", f"--pid={pooler.process.pid}", f"--as={size + (4 << 20)}:"])
    crowd = []
    half = b"Q" + struct.pack("!I", 60000) + b"x" * 59000
    for _ in range(300):
        with contextlib.suppress(Exception):
            client = pooler.client()
            client.send(half)
            crowd.append(client)
    assert pooler.running()
    for client in crowd:
        client.close()
    assert old.value("SELECT 1") == "1"

    def is_alone():
        # A client of the console may be refused as long as memory is short.
        with contextlib.suppress(Closed, ServerError):
            return len(pooler.clients()) == 1

    wait_until(is_alone)
    assert pooler.client().value("SELECT 1") == "1"
