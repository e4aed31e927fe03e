# SPDX-License-Identifier: ISC
"""The lines that operators and log analysers match: their text, their level, and how often."""

import os
import re
import signal
import socket
import ssl

import pytest

from support import wire
from support.clients.raw import RawClient, ServerError
from support.process import wait_until
from support.servers.certificates import Authority

PREFIX = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC \[\d+\] "


def line(level, text):
    """The pattern of a whole line."""
    return rf"^{PREFIX}{level} {text}$"


def expect(pooler, level, text, count=1):
    """Wait for exactly so many such lines; returns them."""
    found = pooler.wait_log(line(level, text), count)
    assert len(found) == count, found
    return found


# Prefixes


def test_the_prefix_of_a_client_is_its_pointer_in_show(pooler):
    client = pooler.client()
    port = client.socket.getsockname()[1]
    (row,) = pooler.clients()
    assert re.fullmatch("0x[0-9a-f]+", row["ptr"])
    expect(pooler, "LOG", rf"C-{row['ptr']}: main/app@127\.0\.0\.1:{port} login attempt: .*")
    client.leave()
    expect(pooler, "LOG", rf"C-{row['ptr']}: main/app@127\.0\.0\.1:{port} closing because: .*")


def test_the_prefix_of_a_server_is_its_pointer_in_show(pooler, cluster):
    pooler.client().query("SELECT 1")
    (row,) = pooler.servers()
    expect(
        pooler,
        "LOG",
        rf"S-{row['ptr']}: main/app@127\.0\.0\.1:{cluster.port} new connection to server"
        rf" \(from 127\.0\.0\.1:{row['local_port']}\)",
    )


def test_the_prefix_of_a_unix_socket_has_the_process(pooler):
    pooler.client(unix=True)
    expect(
        pooler, "LOG", rf"C-0x\w+: main/app@unix\({os.getpid()}\):{pooler.port} login attempt: .*"
    )


def test_a_server_over_a_unix_socket_has_no_local_address(new_pooler, cluster):
    pooler = new_pooler(databases={"main": {"host": cluster.socket_folder, "port": cluster.port}})
    pooler.client().query("SELECT 1")
    expect(pooler, "LOG", rf"S-0x\w+: main/app@unix:{cluster.port} new connection to server")


def test_a_server_over_ipv6_has_brackets(new_pooler):
    with socket.socket(socket.AF_INET6) as listener:
        listener.bind(("::1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        pooler = new_pooler(databases={"main": f"host=::1 port={port}"})
        client = pooler.raw().send_startup()
        expect(
            pooler,
            "LOG",
            rf"S-0x\w+: main/app@\[::1\]:{port} new connection to server \(from \[::1\]:\d+\)",
        )
        client.close()


def test_a_silent_connection_has_no_names(pooler):
    pooler.raw().send(b"\0\0\0\x08\0\0\0\0").read_all()
    expect(
        pooler, "LOG", r"C-0x\w+: \(nodb\)/\(nouser\)@127\.0\.0\.1:\d+ closing because:"
        r" bad packet header: '0000000800000000' \(age=\d+s\)"
    )  # fmt: skip


def test_a_cancel_request_has_the_pool_and_no_user(pooler, cluster):
    client = pooler.client()
    client.send(wire.query("SELECT pg_sleep(60)"))
    wait_until(lambda: cluster.backends(state="active", query="SELECT pg_sleep(60)"))
    with RawClient(pooler.address) as asker:
        asker.send(wire.cancel_request(client.key))
        asker.closed()
    assert client.error().sqlstate == "57014"
    expect(
        pooler, "LOG", r"C-0x\w+: main/\(nouser\)@127\.0\.0\.1:\d+ closing because:"
        r" successfully sent cancel request \(age=\d+s\)"
    )  # fmt: skip
    # The connection that carried it was logged as others are.
    expect(pooler, "LOG", r"S-0x\w+: main/app@\S+ new connection to server \(from \S+\)", 2)
    expect(
        pooler, "LOG", r"S-0x\w+: main/app@\S+ closing because:"
        r" successfully sent cancel request \(age=\d+s\)"
    )  # fmt: skip


# Logins and connections


def test_unknown_names_are_logged_before_the_attempt(pooler):
    pooler.refused("ghost")
    pooler.wait_log("closing because")
    lines = [text.split(" ", 5)[5] for text in pooler.lines("ghost|closing|pooler error")]
    assert re.search(r" \(age=\ds\)$", lines[-1])
    lines[-1] = re.sub(r"age=\d", "age=0", lines[-1])
    port = re.search(r"@127\.0\.0\.1:(\d+)", lines[0]).group(1)
    assert [re.sub(r"C-0x\w+", "C", text) for text in lines] == [
        f"C: (nodb)/ghost@127.0.0.1:{port} no such user: ghost",
        f"C: (nodb)/ghost@127.0.0.1:{port} login attempt: db=main user=ghost tls=no replication=no",
        f'C: (nodb)/ghost@127.0.0.1:{port} pooler error: "trust" authentication failed',
        f'C: (nodb)/ghost@127.0.0.1:{port} closing because: "trust" authentication failed (age=0s)',
    ]


def test_an_unknown_database_is_a_failed_login(pooler):
    pooler.refused(database="nowhere")
    expect(pooler, "LOG", r"C-0x\w+: \(nodb\)/app@\S+ login failed: db=nowhere user=app")
    expect(pooler, "WARNING", r"C-0x\w+: \(nodb\)/app@\S+ pooler error: no such database: nowhere")
    expect(pooler, "LOG", r"C-0x\w+: .* closing because: no such database: nowhere \(age=\d+s\)")


def test_a_wrong_password_is_no_failed_login(new_pooler):
    pooler = new_pooler({"auth_type": "plain"}, auth={"app": "secret"})
    pooler.refused(password="wrong")
    expect(
        pooler, "LOG", r"C-0x\w+: .* closing because: password authentication failed \(age=\d+s\)"
    )
    assert not pooler.lines("login failed")


@pytest.mark.parametrize("wanted", [1, 0])
def test_encryption_towards_servers_is_logged(new_pooler, private_cluster, wanted):
    authority = Authority()
    try:
        certificate, key = authority.issue("localhost")
        private_cluster.sql("ALTER SYSTEM SET ssl = on")
        private_cluster.sql(f"ALTER SYSTEM SET ssl_cert_file = '{certificate}'")
        private_cluster.sql(f"ALTER SYSTEM SET ssl_key_file = '{key}'")
        private_cluster.restart()
        pooler = new_pooler(
            {"server_tls_sslmode": "require", "log_connections": wanted, "verbose": 1},
            cluster=private_cluster,
        )
        pooler.client().query("SELECT 1")
        text = r"S-0x\w+: main/\w+@\S+ SSL established: TLSv1\.3/TLS_\w+"
        assert len(pooler.lines(line("LOG", text))) == wanted
        assert not pooler.lines(r"\] NOISE ")
        pooler.command("SET verbose = 2")
        pooler.client("alice").query("SELECT 1")
        assert len(pooler.lines(line("LOG" if wanted else "NOISE", text))) == 1 + wanted
    finally:
        authority.destroy()


def test_an_automatic_database_is_logged_once(new_pooler, cluster):
    pooler = new_pooler(databases={"*": f"host={cluster.host} port={cluster.port}"})
    for _ in range(3):
        pooler.client(database="other").leave()
    expect(pooler, "LOG", r"C-0x\w+: \S+@\S+ registered new auto-database: other")


def test_a_connection_from_the_reserve_is_logged_once(new_pooler):
    pooler = new_pooler(
        {
            "pool_mode": "transaction",
            "default_pool_size": 1,
            "reserve_pool_size": 1,
            "reserve_pool_timeout": "0.1",
        }
    )
    first, second = pooler.client(), pooler.client()
    first.query("BEGIN")
    second.query("BEGIN")
    expect(pooler, "WARNING", r"C-0x\w+: main/app@\S+ taking connection from reserve_pool")


def test_attempts_that_failed_are_no_connections(new_pooler):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        pooler = new_pooler(databases={"main": f"host=127.0.0.1 port={port}"})
        client = pooler.raw().send_startup()
        expect(
            pooler, "WARNING", rf"S-0x\w+: main/app@127\.0\.0\.1:{port} sbuf_connect failed to"
            rf" connect to 127\.0\.0\.1:{port}: Connection refused"
        )  # fmt: skip
        expect(pooler, "LOG", rf"S-0x\w+: main/app@\S+ closing because: connect failed \(age=\d+s\)")
        assert not pooler.lines("new connection to server")
        client.close()


def test_the_error_by_which_a_server_refuses_us(new_pooler, cluster):
    pooler = new_pooler(databases={"main": {"dbname": "nowhere"}})
    assert "nowhere" in pooler.refused().text
    text = 'database "nowhere" does not exist'
    expect(pooler, "WARNING", rf"server login failed: FATAL {text}")
    expect(pooler, "LOG", rf"S-0x\w+: main/app@\S+ closing because: {text} \(age=\d+s\)")
    expect(pooler, "WARNING", rf"C-0x\w+: main/app@\S+ pooler error: {text}")
    expect(pooler, "LOG", rf"C-0x\w+: main/app@\S+ closing because: {text} \(age=\d+s\)")


# Closed connections


def test_each_close_is_logged_once(pooler):
    """Of a client and its server, and of waiting clients."""
    pooler.command("SET default_pool_size = 1")
    holder, waiters = pooler.client(), [pooler.client() for _ in range(3)]
    holder.query("BEGIN")
    for waiter in waiters:
        waiter.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=3)
    pooler.command("KILL main")
    for client in [holder, *waiters]:
        assert client.fatal().sqlstate == "57P01"
    expect(pooler, "LOG", r"C-0x\w+: main/app@\S+ closing because: .* \(age=\d+s\)", 4)
    expect(pooler, "LOG", r"S-0x\w+: main/app@\S+ closing because: .* \(age=\d+s\)")


def test_a_crash_is_logged_for_the_server_and_its_client(pooler, cluster):
    client = pooler.client()
    client.query("BEGIN")
    cluster.terminate(client.value("SELECT pg_backend_pid()"))
    client.fatal()
    for side in "SC":
        expect(
            pooler, "LOG", rf"{side}-0x\w+: main/app@\S+ closing because:"
            r" (server conn crashed\?|terminating connection .*) \(age=\d+s\)"
        )  # fmt: skip


def request_inside(pooler, authority, sent):
    """What follows when this is sent inside TLS, before a login."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    context.check_hostname = False
    with socket.create_connection(pooler.address) as plain:
        plain.sendall(wire.ssl_request())
        assert plain.recv(1) == b"S"
        with context.wrap_socket(plain) as inside:
            inside.sendall(sent)
            inside.recv(100)


def test_encryption_that_fails_is_logged(new_pooler):
    authority = Authority()
    try:
        certificate, key = authority.issue("localhost")
        pooler = new_pooler(
            {
                "client_tls_sslmode": "allow",
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            }
        )
        request_inside(pooler, authority, wire.ssl_request())
        expect(pooler, "LOG", r"C-0x\w+: .* closing because: SSL req inside SSL \(age=\d+s\)")
        with RawClient(pooler.address) as client:
            client.send(wire.ssl_request())
            client.read_bytes(1)
            client.send(b"this is no handshake at all")
            client.socket.recv(1000)
        expect(pooler, "WARNING", r"C-0x\w+: \(nodb\)/\(nouser\)@\S+ TLS handshake error: .*")
    finally:
        authority.destroy()


ENDINGS = {
    "client close request": lambda pooler: pooler.client().leave(),
    "client unexpected eof": lambda pooler: pooler.client().close(),
    "admin forced disconnect": lambda pooler: kill_client(pooler),
    "unknown pkt": lambda pooler: pooler.client().send(wire.message("z")).read_all(),
    "old V2 protocol not supported": lambda pooler: pooler.raw()
    .send(wire.untyped(wire.PROTOCOL_2_0)).read_all(),
    "no username supplied": lambda pooler: pooler.raw()
    .send(wire.startup({"database": "main"})).read_all(),
    "failed cancel request": lambda pooler: pooler.raw()
    .send(wire.cancel_request(b"12345678")).read_all(),
    "bad packet": lambda pooler: pooler.raw().send(wire.query("SELECT 1")).read_all(),
}  # fmt: skip


def kill_client(pooler):
    client = pooler.client()
    (row,) = pooler.clients()
    pooler.command(f"KILL_CLIENT {row['id']}")
    client.fatal()


@pytest.mark.parametrize("reason", ENDINGS)
def test_the_reason_of_a_close(pooler, reason):
    ENDINGS[reason](pooler)
    expect(pooler, "LOG", rf"C-0x\w+: \S+ closing because: {re.escape(reason)} \(age=\d+s\)")


def test_the_console_closes_with_a_reason_of_its_own(pooler):
    pooler.console().leave()
    expect(pooler, "LOG", r"C-0x\w+: pgbouncer/admin@\S+ closing because: close req \(age=\d+s\)")


# Other events for operators


def test_commands_are_logged(pooler):
    client = pooler.client()
    client.query("SELECT 1")
    for command in ("PAUSE", "RESUME", "DISABLE main", "ENABLE main", "RECONNECT", "RELOAD"):
        pooler.command(command)
    for command in ("PAUSE", "RESUME", "RECONNECT", "RELOAD"):
        expect(pooler, "LOG", f"{command} command issued")
    for command in ("DISABLE", "ENABLE"):
        expect(pooler, "LOG", f"{command} 'main' command issued")


def test_errors_of_the_console_are_logged_without_a_prefix(pooler):
    with pytest.raises(ServerError) as error:
        pooler.command("NONSENSE")
    expect(pooler, "ERROR", re.escape(error.value.text))


def test_unknown_messages_are_logged_with_their_letter(pooler):
    pooler.client().send(wire.message("z")).read_all()
    expect(pooler, "ERROR", r"C-0x\w+: main/app@\S+ unknown pkt from client: 122/0x7a")


def test_unsupported_parameters_are_logged_with_their_value(new_pooler):
    pooler = new_pooler({"startup_parameters": "strict"})
    pooler.refused(odd_one="its value")
    expect(pooler, "WARNING", r"C-0x\w+: \S+ unsupported startup parameter: odd_one=its value")
    pooler.refused(options="-c other_one=two")
    expect(
        pooler, "WARNING", r"C-0x\w+: \S+ unsupported startup parameter in options: other_one=two"
    )


def test_own_queries_that_fail_are_logged(new_pooler, cluster):
    pooler = new_pooler(
        {"pool_mode": "transaction", "server_login_retry": 60},
        databases={"main": {"connect_query": "SELECT 1/0"}},
    )
    client = pooler.raw().send_startup()
    expect(
        pooler, "ERROR", r"S-0x\w+: main/app@\S+ S: error while executing exec_on_query:"
        r" ERROR: division by zero"
    )  # fmt: skip
    client.close()


def test_a_parameter_that_the_server_refuses_is_logged(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "startup_parameters": "strict"})
    client = pooler.client(timezone="No/Where")
    client.send(wire.query("SELECT 1"))
    client.fatal()
    expect(
        pooler, "ERROR", r"S-0x\w+: main/app@\S+ varcache_apply failed: ERROR: invalid value for"
        r' parameter "TimeZone": "No/Where"'
    )  # fmt: skip


def test_an_unrequested_message_of_a_server_is_logged(new_pooler, new_server):
    def script(connection):
        connection.login()
        connection.server.gate.wait(10)
        connection.send(wire.error("XX000", "out of the blue", "ERROR"))
        connection.wait_disconnected()

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    pooler.client()
    pooler.wait_pool(sv_idle=1)
    server.gate.set()
    expect(
        pooler, "WARNING", r"S-0x\w+: main/app@\S+ got packet 'E' from server when not linked"
    )
    expect(
        pooler, "LOG", r"S-0x\w+: main/app@\S+ closing because:"
        r" (idle server got dirty|SV_IDLE server got dirty) \(age=\d+s\)"
    )  # fmt: skip


def test_a_name_that_is_not_found_is_logged(new_pooler):
    pooler = new_pooler(databases={"main": "host=no-such-host.invalid"})
    client = pooler.raw().send_startup()
    expect(pooler, "WARNING", r"DNS lookup failed: no-such-host\.invalid: result=\d+")
    expect(
        pooler, "LOG", r"S-0x\w+: main/app@\(bad-af\):0 closing because:"
        r" server DNS lookup failed \(age=\d+s\)"
    )  # fmt: skip
    client.close()


def test_decisions_that_operators_look_for_at_verbosity_1(new_pooler):
    pooler = new_pooler({"pool_mode": "transaction", "default_pool_size": 1, "verbose": 1})
    client, other = pooler.client(datestyle="iso, mdy"), pooler.client(unix=True)
    here = client.socket.getsockname()
    client.query("BEGIN")
    other.send(wire.query("SELECT 1"))
    pooler.wait_log(line("DEBUG", r"launch_new_connection: pool full \(1 >= 1\)"))
    client.query("COMMIT")
    assert other.checked().value == "1"
    prefix = rf"C-0x\w+: main/app@127\.0\.0\.1:{here[1]} "
    expect(pooler, "DEBUG", prefix + r"query time: \d+ us", 2)
    expect(pooler, "DEBUG", prefix + r"transaction time: \d+ us")
    expect(
        pooler, "DEBUG", rf"C-0x\w+: \(nodb\)/\(nouser\)@127\.0\.0\.1:{here[1]} P: got connection:"
        rf" 127\.0\.0\.1:{here[1]} -> 127\.0\.0\.1:{pooler.port}"
    )  # fmt: skip
    expect(pooler, "DEBUG", r"C-0x\w+: \(nodb\)/\(nouser\)@unix\S+ P: got connection: unix->unix")
    expect(
        pooler, "DEBUG", prefix + "varcache_set_canonical: setting DateStyle to its canonical"
        " version iso, mdy -> ISO, MDY"
    )  # fmt: skip
    pooler.command("SET verbose = 0")
    before = len(pooler.log().splitlines())
    client.query("SELECT 1")
    assert len(pooler.log().splitlines()) == before


@pytest.mark.parametrize("limit", ["max_db_connections", "max_user_connections"])
def test_full_databases_and_users_are_logged_at_verbosity_1(new_pooler, limit):
    pooler = new_pooler({"pool_mode": "transaction", limit: 1, "verbose": 1})
    client, other = pooler.client(), pooler.client()
    client.query("BEGIN")
    other.send(wire.query("SELECT 1"))
    owner = {"max_db_connections": "database 'main'", "max_user_connections": "user 'app'"}[limit]
    pooler.wait_log(line("DEBUG", rf"launch_new_connection: {owner} full \(1 >= 1\)"))
    client.query("COMMIT")
    assert other.checked().value == "1"


# Configuration errors


MISTAKES = [
    ("pool_mode = sometimes", 'invalid value "sometimes" for parameter pool_mode in configuration ({at})'),
    ("[nonsense]", 'invalid section "nonsense" in configuration ({at})'),
    ("no_such_thing = 1", "unknown parameter: pgbouncer/no_such_thing"),
    ("what is this", "syntax error in configuration ({at}), stopping loading"),
    ("%include /nonexistent/file", 'could not load file "/nonexistent/file": No such file or directory'),
]


@pytest.mark.parametrize("text, message_text", MISTAKES)
def test_mistakes_in_the_configuration(new_pooler, text, message_text):
    pooler = new_pooler()
    broken = pooler.config_text() + text + "\n"
    at = f"{pooler.config_path}:{len(broken.splitlines())}"
    expected = line("ERROR", re.escape(message_text.format(at=at)) + ".*")
    pooler.write("pgusher.ini", broken)
    pooler.signal(signal.SIGHUP)
    expect(pooler, "LOG", "got SIGHUP, re-reading config")
    expect(pooler, "WARNING", "config file loading failed")
    assert len(pooler.lines(expected)) == 1
    second = new_pooler(start=False)
    second.allow("cannot load config file")
    second.write("pgusher.ini", broken.replace(pooler.folder, second.folder))
    assert second.run_to_end() == 1
    at = f"{second.config_path}:{len(broken.splitlines())}"
    lines = second.log().splitlines()
    expected = re.compile(line("ERROR", re.escape(message_text.format(at=at)) + ".*"))
    assert len([text for text in lines if expected.match(text)]) == 1, lines
    assert re.match(line("FATAL", "cannot load config file"), lines[-1])


def test_a_missing_main_section_is_reported(new_pooler):
    pooler = new_pooler()
    pooler.write("pgusher.ini", "[databases]\n")
    pooler.signal(signal.SIGHUP)
    expect(pooler, "WARNING", "config file loading failed")
    expect(pooler, "ERROR", "load_init_file: main section missing from config file")
