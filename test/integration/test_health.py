# SPDX-License-Identifier: ISC
"""--health answers as pg_isready does, with its exit statuses, and leaves no odd lines in the log."""

import os
import re
import signal
import socket
import threading

import pytest

from support.process import HOST, free_port, make_folder, resume_process, run, stop_process, wait_until
from support.servers.certificates import Authority
from support.servers.cluster import PASSWORDS, program
from support.servers.pooler import binary

ACCEPTS, REJECTS, NO_ANSWER, NOT_ASKED = range(4)
USER = "scram_login"
ODD = r"(no such user|closing because: (?!client unexpected eof)| WARNING | ERROR | FATAL )"


def ask(*arguments, **options):
    """The exit status of --health and the one line that it prints."""
    done = run([binary(), "--health", *arguments], check=False, **options)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    return done.returncode, line


@pytest.mark.parametrize("auth_type", ["trust", "scram-sha-256", "md5", "plain", "any"])
def test_pooler_that_accepts(new_pooler, auth_type):
    pooler = new_pooler({"auth_type": auth_type}, auth={"admin": "pw"})
    assert ask(pooler.config_path) == (ACCEPTS, f"{HOST}:{pooler.port} - accepting connections")
    assert not pooler.lines(ODD)


def test_its_lines_in_the_log_are_those_of_pg_isready(new_pooler):
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"admin": "pw"})
    before = len(pooler.log().splitlines())

    def facts():
        return [re.sub(r"^.* LOG C-\S+ |:\d+ ", "", line) for line in pooler.log().splitlines()[before:]]

    assert ask(pooler.config_path)[0] == ACCEPTS
    wait_until(lambda: len(facts()) == 1)
    run([program("pg_isready"), "-h", HOST, "-p", str(pooler.port), "-U", "admin", "-d", "pgbouncer"])
    wait_until(lambda: len(facts()) == 2)
    assert facts()[0] == facts()[1]


def test_pooler_that_is_not_there(new_pooler):
    pooler = new_pooler(start=False)
    status, line = ask(pooler.config_path)
    assert status == NO_ANSWER
    assert line == f"{pooler.socket_path} - no response: cannot connect: No such file or directory"


def test_pooler_that_shuts_down(new_pooler):
    pooler = new_pooler({"drain_delay": 0})
    client = pooler.client()
    pooler.signal(signal.SIGTERM)
    pooler.wait_log("got SIGTERM")
    # TCP is closed; the Unix socket is still there and tells why.
    assert ask(pooler.config_path) == (
        REJECTS, f"{HOST}:{pooler.port} - rejecting connections: it answers at {pooler.socket_path} only")
    client.close()


@pytest.mark.alone
def test_pooler_that_hangs_costs_three_seconds(new_pooler):
    pooler = new_pooler()
    stop_process(pooler.process)
    try:
        status, line = ask(pooler.config_path, timeout=20)
    finally:
        resume_process(pooler.process)
    assert (status, line) == (NO_ANSWER, f"{HOST}:{pooler.port} - no response: no answer: time limit")


@pytest.mark.parametrize("answer, told", [
    (b"", "no answer: connection closed"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not a pooler"),
    (b"R\x7f\xff\xff\xff", "not a pooler"), (b"R\0\0\0\0", "not a pooler"),
    (b"E\0\0\0\xffS", "no answer: connection closed"), (b"Z\0\0\0\5I", "not a pooler"),
])
def test_something_else_on_the_port(answer, told):
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        process_answers(listener, answer)
        status, line = ask("--listen", str(port))
    assert status == NO_ANSWER
    assert line.startswith(f"{HOST}:{port} - no response: {told}")


def process_answers(listener, answer):
    """Answer one connection from a thread."""

    def serve():
        connection, _ = listener.accept()
        with connection:
            connection.recv(1000)
            connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


@pytest.mark.parametrize("sqlstate, status", [("53300", ACCEPTS), ("28000", ACCEPTS), ("57P03", REJECTS)])
def test_errors_but_for_one_are_an_answer(sqlstate, status):
    fields = f"SFATAL\0C{sqlstate}\0Mwhy\x1b\0\0".encode()
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        listener.listen()
        port = listener.getsockname()[1]
        process_answers(listener, b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        found, line = ask("--listen", str(port))
    assert found == status
    if status == REJECTS:
        assert line == f"{HOST}:{port} - rejecting connections: why\\x1b"


def test_users_of_databases_are_asked_for_if_the_console_has_none(new_pooler):
    pooler = new_pooler({"auth_type": "md5", "admin_users": "", "stats_users": ""}, auth={"app": "pw"})
    assert ask(pooler.config_path)[0] == ACCEPTS
    assert pooler.lines("login attempt: db=main user=admin")
    assert not pooler.lines(ODD)


# Where to ask


def test_pooler_on_its_socket_only(new_pooler):
    pooler = new_pooler({"listen_addr": ""})
    assert ask(pooler.config_path) == (ACCEPTS, f"{pooler.socket_path} - accepting connections")


@pytest.mark.parametrize("address, asked", [("*", HOST), ("0.0.0.0", HOST), ("::1", "[::1]"), ("::", "[::1]"),
                                            ("localhost", "localhost")])
def test_addresses_that_are_listened_on(new_pooler, address, asked):
    pooler = new_pooler({"listen_addr": address, "unix_socket_dir": ""}, start=False)
    pooler.settings["auth_type"] = "trust"
    pooler.write_config()
    pooler.start()
    assert ask(pooler.config_path) == (ACCEPTS, f"{asked}:{pooler.port} - accepting connections")


def test_configuration_that_listens_nowhere(new_pooler):
    pooler = new_pooler({"listen_addr": "", "unix_socket_dir": ""}, start=False)
    assert ask(pooler.config_path) == (NOT_ASKED, "the configuration listens nowhere")


def test_configuration_with_a_mistake(new_pooler):
    pooler = new_pooler({"listen_port": "many"}, start=False)
    status, line = ask(pooler.config_path)
    assert status == NOT_ASKED and "listen_port" in line
    status, line = ask("/nonexistent.ini")
    assert status == NOT_ASKED and "/nonexistent.ini" in line
    status, line = ask("--listen", "0")
    assert status == NOT_ASKED and "--listen 0" in line


def test_place_instead_of_a_file(new_pooler):
    pooler = new_pooler({"auth_type": "scram-sha-256"}, auth={"admin": "pw"})
    accepts = (ACCEPTS, f"{HOST}:{pooler.port} - accepting connections")
    assert ask("--listen", str(pooler.port)) == accepts
    assert ask("--listen", f"0.0.0.0:{pooler.port}") == accepts
    assert ask("--listen", pooler.folder, "--preset", f"listen_port={pooler.port}") == (
        ACCEPTS, f"{pooler.socket_path} - accepting connections")
    port = free_port()
    assert ask("--listen", str(port)) == (
        NO_ANSWER, f"{HOST}:{port} - no response: cannot connect: Connection refused")


# TLS and proxies


@pytest.fixture(scope="module")
def authority():
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def files(authority):
    """The settings of a pooler with a certificate."""
    certificate, key = authority.issue("pooler", "IP:127.0.0.1")
    return {"client_tls_cert_file": certificate, "client_tls_key_file": key,
            "client_tls_ca_file": authority.certificate}


@pytest.mark.parametrize("mode", ["require", "prefer"])
def test_pooler_that_demands_tls(new_pooler, files, mode):
    pooler = new_pooler({"client_tls_sslmode": mode, "unix_socket_dir": "", **files})
    assert ask(pooler.config_path) == (ACCEPTS, f"{HOST}:{pooler.port} - accepting connections")
    assert not pooler.lines(ODD)
    assert pooler.lines("login attempt: .* tls=TLS")


@pytest.mark.parametrize("socket_dir", [True, False])
def test_pooler_that_demands_a_certificate(new_pooler, files, socket_dir):
    without = {} if socket_dir else {"unix_socket_dir": ""}
    pooler = new_pooler({"client_tls_sslmode": "verify-full", **files, **without})
    place = pooler.socket_path if socket_dir else f"{HOST}:{pooler.port}"
    assert ask(pooler.config_path) == (ACCEPTS, f"{place} - accepting connections")
    assert not pooler.lines(ODD)


@pytest.mark.parametrize("networks", ["127.0.0.0/8", "10.0.0.0/8", "unix"])
@pytest.mark.parametrize("socket_dir", [True, False])
def test_pooler_behind_proxies(new_pooler, networks, socket_dir):
    pooler = new_pooler({
        "proxy_protocol": "required", "proxy_networks": networks,
        **({} if socket_dir else {"unix_socket_dir": ""})})
    assert ask(pooler.config_path)[0] == ACCEPTS
    if socket_dir or networks == "127.0.0.0/8":
        assert not pooler.lines(ODD)


# Containers


def test_in_a_container_it_goes_by_the_environment(cluster, new_pooler, folder):
    pooler = new_pooler(start=False)
    gone = os.path.join(folder, "gone")
    environment = {
        "PATH": os.environ["PATH"], "PGUSHER_CONFIG_FOLDER": gone, "DB_HOST": HOST,
        "DB_PORT": str(cluster.port), "DB_USER": USER, "DB_PASSWORD": PASSWORDS[USER],
        "LISTEN_PORT": str(pooler.port), "PGUSHER_UNIX_SOCKET_DIR": ""}
    assert ask(env=environment)[0] == NO_ANSWER
    pooler.spawn("--container", config=False, environment=environment)
    pooler.wait_up()
    accepts = (ACCEPTS, f"{HOST}:{pooler.port} - accepting connections")
    assert ask(env=environment) == accepts
    assert run([binary(), "--container", "--health"], env=environment).stdout.splitlines() == [accepts[1]]
    # The console's user is unknown in this image's defaults, and still nothing odd is logged.
    assert not pooler.lines(ODD)
    # Asking writes no file, even where it could.
    made = make_folder("pgusher-health-")
    assert ask(env={**environment, "PGUSHER_CONFIG_FOLDER": made}) == accepts
    assert os.listdir(made) == []
    os.rmdir(made)


def test_environment_that_makes_no_configuration(folder):
    done = run([binary(), "--health"], check=False, env={"PGUSHER_CONFIG_FOLDER": folder})
    assert done.returncode == NOT_ASKED
    assert " FATAL no server is named" in done.stderr
