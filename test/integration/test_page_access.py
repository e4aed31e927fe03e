# SPDX-License-Identifier: ISC
"""Which browsers may read the page, and what the endpoint withstands: page_password, metrics_tls, names of hosts."""

import contextlib
import http.client
import os
import shutil
import socket
import ssl
import struct
import time

import pytest

from support.clients.metrics_page import ask
from support.clients.page_client import basic, fetch, state_of, trusting
from support.process import HOST, free_port, own, wait_until
from support.servers.certificates import Authority
from support.servers.pooler import is_sanitized

PAGES = ("/", "/page.css", "/page.js", "/icon.svg", "/api/state", "/api/history")
OPEN = ("/metrics", "/healthz", "/readyz")


@pytest.fixture(scope="module")
def authority():
    """Its certificates are those of the daemons."""
    made = Authority()
    yield made
    made.destroy()


@pytest.fixture(scope="module")
def ours(authority):
    """The daemon's certificate and key."""
    return authority.issue("pooler", "IP:127.0.0.1", days=30)


@pytest.fixture
def served(new_pooler):
    """A daemon in transaction mode with a page at served.metrics."""

    def make(settings=None, **options):
        port = free_port()
        settings = {"pool_mode": "transaction", "metrics_port": port, **(settings or {})}
        pooler = new_pooler(settings, **options)
        pooler.metrics = port
        return pooler

    return make


@pytest.fixture
def encrypted(served, ours):
    """The same with TLS."""

    def make(settings=None, **options):
        files = {"client_tls_cert_file": ours[0], "client_tls_key_file": ours[1]}
        return served({"metrics_tls": 1, **files, **(settings or {})}, **options)

    return make


# The password


@pytest.mark.setting("page_password")
def test_the_page_needs_the_password_and_scrapers_do_not(served):
    pooler = served({"page_password": "o pen:sésame"})
    right = basic("o pen:sésame")
    for path in PAGES:
        refused = fetch(pooler.metrics, path)
        assert refused.status == 401, path
        assert refused.headers["WWW-Authenticate"] == 'Basic realm="pgusher", charset="UTF-8"'
        assert "pools" not in refused.text
        assert fetch(pooler.metrics, path, Authorization=right).status == 200, path
        assert fetch(pooler.metrics, path, method="HEAD", Authorization=right).status == 200, path
    for path in OPEN:
        assert fetch(pooler.metrics, path).status == 200, path
    assert fetch(pooler.metrics, "/api/state", Authorization=basic("o pen:sésame", "")).status == 200
    assert fetch(pooler.metrics, "/api/state", Authorization=right.replace("Basic", "bASIC")).status == 200
    assert fetch(pooler.metrics, "/nothing").status == 404
    requests = ask(pooler.metrics).text
    assert 'pgusher_http_requests_total{path="page",code="401"} 4' in requests
    assert 'pgusher_http_requests_total{path="api",code="401"} 2' in requests


def test_the_password_is_shown_nowhere(served):
    pooler = served({"page_password": "geheim4711"})
    fetch(pooler.metrics, "/api/state", Authorization=basic("geheim4711"))
    assert pooler.setting("page_password") == "(hidden)"
    assert "geheim4711" not in str(pooler.show("CONFIG")) + pooler.log() + ask(pooler.metrics).text
    pooler.command("SET page_password = 'geheim4712'")
    assert fetch(pooler.metrics, "/", Authorization=basic("geheim4712")).status == 200
    assert "geheim471" not in pooler.log()
    pooler.command("SET page_password = ''")
    assert pooler.setting("page_password") == ""
    assert fetch(pooler.metrics, "/").status == 200


@pytest.mark.parametrize(
    "header",
    [
        basic("wrong"),
        basic("sesam"),
        basic("sesamee"),
        basic(""),
        "Basic " + "c2VzYW1l",  # no colon
        "Basic !!!!",
        "Basic YTpzZXNhbWU",  # its padding is missing
        "Basic YTpzZXNhbWU= x",
        "Basic " + "A" * 7000,
        "Basic ",
    ],
)
def test_a_wrong_password_is_answered_a_second_later(served, header):
    pooler = served({"page_password": "sesame"})
    start = time.monotonic()
    answer = fetch(pooler.metrics, "/api/state", Authorization=header)
    assert answer.status == 401
    # A header value ends with the last byte that is no blank.
    assert time.monotonic() - start > 0.9 or header == "Basic "
    assert fetch(pooler.metrics, "/api/state", Authorization=basic("sesame")).status == 200


def test_another_scheme_is_no_attempt(served):
    pooler = served({"page_password": "sesame"})
    for header in ("Bearer sesame", "Digest username=x", "sesame", "Basicsesame"):
        start = time.monotonic()
        assert fetch(pooler.metrics, "/", Authorization=header).status == 401
        assert time.monotonic() - start < 0.9
    assert not pooler.lines("wrong page_password")


def send_guess(port, password, source):
    """Send a guess and do not wait for the answer."""
    raw = socket.create_connection((HOST, port), 10, (source, 0))
    raw.sendall(f"GET /api/state HTTP/1.1\r\nAuthorization: {basic(password)}\r\n\r\n".encode())
    return raw


def test_a_thousand_guesses_are_mostly_not_looked_at(served):
    pooler = served({"page_password": "sesame"})
    assert fetch(pooler.metrics, "/", Authorization=basic("sesame")).status == 200
    before, descriptors = pooler.memory(), pooler.descriptors()
    statuses = []
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        for number in range(1000):
            raw = stack.enter_context(send_guess(pooler.metrics, f"guess{number}", "127.0.0.2"))
            statuses.append(raw)
        tried = len(pooler.lines("wrong page_password"))
        # The right password is not looked at either, or a guesser would learn of it.
        late = fetch(pooler.metrics, "/", source="127.0.0.2", Authorization=basic("sesame"))
        assert late.status in (429, 200)
        # An address with the right password before is let in, whatever others do.
        assert fetch(pooler.metrics, "/", Authorization=basic("sesame")).status == 200
    page = ask(pooler.metrics).text
    refused = 'pgusher_http_requests_total{path="api",code="429"}'
    count = next(int(line.split()[1]) for line in page.splitlines() if line.startswith(refused))
    # Eight guesses a second, and no more.
    assert count >= 1000 - 8 * (2 + time.monotonic() - start)
    assert tried <= 2 + time.monotonic() - start
    wait_until(lambda: pooler.descriptors() <= descriptors, 8)
    assert pooler.memory() < before + 2 * 1024 * 1024 or is_sanitized()

    def let_in():
        return fetch(pooler.metrics, "/", source="127.0.0.2", Authorization=basic("sesame")).status == 200

    wait_until(let_in, 5, "the guesses to be forgotten")


def test_an_address_with_the_password_may_guess_little_too(served):
    pooler = served({"page_password": "sesame"})
    assert fetch(pooler.metrics, "/", Authorization=basic("sesame")).status == 200
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(send_guess(pooler.metrics, "wrong", HOST))
        wait_until(
            lambda: fetch(pooler.metrics, "/", Authorization=basic("sesame")).status == 429, 1,
            "the address to have to wait",
        )  # fmt: skip
        # Others are not in its places.
        other = fetch(pooler.metrics, "/", source="127.0.0.3", Authorization=basic("sesame"))
        assert other.status == 200


def test_a_password_in_clear_text_over_the_network_is_warned_of(served, ours):
    warning = "WARNING browsers send page_password unencrypted"
    pooler = served({"page_password": "sesame", "metrics_listen_addr": "127.0.0.1, ::1, 127.0.0.2"})
    assert not pooler.lines(warning)
    pooler.settings["metrics_listen_addr"] = "127.0.0.1, *"
    pooler.reload()
    assert len(pooler.lines(warning)) == 1
    pooler.command("SET max_client_conn = 99")
    assert len(pooler.lines(warning)) == 1
    pooler.settings.update(
        {"metrics_tls": 1, "client_tls_cert_file": ours[0], "client_tls_key_file": ours[1]}
    )
    pooler.reload()
    assert len(pooler.lines(warning)) == 1
    pooler.settings["metrics_tls"] = 0
    pooler.reload()
    assert len(pooler.lines(warning)) == 2


# Names of other sites


def test_a_name_that_another_site_may_have_made_up_gets_no_page(served, authority, ours):
    pooler = served()
    machine = socket.gethostname()
    good = (HOST, f"{HOST}:9127", "localhost", f"LocalHost:{pooler.metrics}", "[::1]:9127", machine)
    bad = ("evil.example", f"evil.example:{pooler.metrics}", f"{machine}.evil.example",
           "127.0.0.1.evil.example", "[evil.example]", "localhost.evil.example")  # fmt: skip
    for path in PAGES:
        for host in good:
            assert fetch(pooler.metrics, path, Host=host).status == 200, host
        for host in bad:
            assert fetch(pooler.metrics, path, Host=host).status == 421, host
    for path in OPEN:
        assert fetch(pooler.metrics, path, Host="evil.example").status == 200, path
    # Its scripts know no password, and it has no certificate for the name.
    pooler.command("SET page_password = 'sesame'")
    assert fetch(pooler.metrics, "/", Host="pooler.example", Authorization=basic("sesame")).status == 200
    pooler.command("SET page_password = ''")
    pooler.settings.update(
        {"metrics_tls": 1, "client_tls_cert_file": ours[0], "client_tls_key_file": ours[1]}
    )
    pooler.reload()
    assert fetch(pooler.metrics, "/", context=trusting(authority), Host="pooler.example").status == 200


# TLS


@pytest.mark.setting("metrics_tls")
def test_all_is_encrypted_with_metrics_tls(encrypted, authority):
    pooler = encrypted({"page_password": "sesame"})
    context = trusting(authority)
    for path in OPEN:
        assert fetch(pooler.metrics, path, context=context).status == 200, path
    for path in PAGES:
        assert fetch(pooler.metrics, path, context=context).status == 401, path
        answer = fetch(pooler.metrics, path, context=context, Authorization=basic("sesame"))
        assert answer.status == 200, path
        head = fetch(pooler.metrics, path, "HEAD", context=context, Authorization=basic("sesame"))
        assert (head.status, head.text) == (200, "")
    for alpn in (["http/1.1"], ["h2", "http/1.1"]):
        assert fetch(pooler.metrics, "/healthz", context=trusting(authority, alpn)).status == 200
    for alpn in (["h2"], ["postgresql"]):
        with pytest.raises(ssl.SSLError):
            fetch(pooler.metrics, "/healthz", context=trusting(authority, alpn))
    page = fetch(pooler.metrics, "/metrics", context=context).text
    assert 'pgusher_tls_certificate_not_after_seconds{side="metrics"' in page
    state = state_of(pooler, context=context, Authorization=basic("sesame"))
    (certificate,) = state["process"]["certificates"]
    assert certificate["side"] == "metrics"
    assert certificate["seconds_left"] == pytest.approx(30 * 86400, abs=3600)


def test_no_certificate_is_asked_of_browsers(encrypted, authority):
    pooler = encrypted({"client_tls_sslmode": "verify-full", "client_tls_ca_file": authority.certificate})
    assert fetch(pooler.metrics, "/", context=trusting(authority)).status == 200


def test_a_reload_turns_tls_on_and_off_on_the_same_port(served, authority, ours):
    pooler = served({"client_tls_cert_file": ours[0], "client_tls_key_file": ours[1]})
    context = trusting(authority)
    for _ in range(2):
        assert fetch(pooler.metrics, "/healthz").status == 200
        with pytest.raises((ssl.SSLError, ConnectionError)):
            fetch(pooler.metrics, "/healthz", context=context)
        pooler.settings["metrics_tls"] = 1
        pooler.reload()
        assert fetch(pooler.metrics, "/healthz", context=context).status == 200
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            fetch(pooler.metrics, "/healthz")
        pooler.settings["metrics_tls"] = 0
        pooler.reload()


def test_a_reload_reads_a_renewed_certificate(encrypted, authority, ours):
    other = Authority("Other")
    try:
        pooler = encrypted()
        pair = [pooler.path(name) for name in ("page.crt", "page.key")]

        def install(files):
            for source, target in zip(files, pair):
                shutil.copy(source, target)
                own(target)
                os.chmod(target, 0o600)

        install(ours)
        pooler.settings.update({"client_tls_cert_file": pair[0], "client_tls_key_file": pair[1]})
        pooler.reload()
        assert fetch(pooler.metrics, "/", context=trusting(authority)).status == 200
        install(other.issue("pooler", "IP:127.0.0.1"))
        pooler.reload()
        assert fetch(pooler.metrics, "/", context=trusting(other)).status == 200
        # A broken file leaves the certificate as it was.
        with open(pair[0], "w") as file:
            file.write("nonsense")
        with pytest.raises(Exception, match="RELOAD"):
            pooler.command("RELOAD")
        assert fetch(pooler.metrics, "/", context=trusting(other)).status == 200
    finally:
        other.destroy()


def test_without_a_certificate_nothing_is_served_in_its_place(served, ours):
    pooler = served()
    pooler.settings["metrics_tls"] = 1
    with contextlib.suppress(Exception):
        pooler.reload()
    assert pooler.lines("ERROR metrics_tls requires client_tls_key_file and client_tls_cert_file")
    # The setting is in force, so no page leaves unencrypted.
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        fetch(pooler.metrics, "/healthz")
    pooler.client().query("SELECT 1")
    pooler.stop()
    pooler.allow("FATAL TLS setup failed")
    assert pooler.run_to_end() == 1


def read_all(raw):
    """What comes until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while data := raw.recv(65536):
            found += data
    return found


def test_what_is_no_tls_is_closed(encrypted, authority):
    pooler = encrypted()
    hello = bytes.fromhex("160301020001000 1fc0303".replace(" ", "")) + os.urandom(300)
    for sent in (
        b"GET / HTTP/1.1\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b"\x00" * 600, os.urandom(600), hello,
        struct.pack(">II", 8, 80877103), b"\x16\x03\x01\xff\xff" + b"x" * 70000, b"\x15\x03\x03\x00\x02\x02\x28",
    ):  # fmt: skip
        with socket.create_connection((HOST, pooler.metrics), 10) as raw:
            with contextlib.suppress(OSError):
                raw.sendall(sent)
                raw.shutdown(socket.SHUT_WR)
            answer = read_all(raw)
        # An alert of TLS at most.
        assert b"HTTP" not in answer and len(answer) < 5000, sent[:20]
    assert fetch(pooler.metrics, "/healthz", context=trusting(authority)).status == 200


def test_a_handshake_that_hangs_ends_after_five_seconds(encrypted, authority):
    pooler = encrypted()
    before = pooler.descriptors()
    with contextlib.ExitStack() as stack:
        start = time.monotonic()
        raws = [
            stack.enter_context(socket.create_connection((HOST, pooler.metrics), 10)) for _ in range(3)
        ]
        raws[1].sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        secured = trusting(authority).wrap_socket(raws[2], server_hostname=HOST)
        secured.sendall(b"GET / HTT")
        for raw in (raws[0], raws[1], secured):
            with contextlib.suppress(ssl.SSLError):
                read_all(raw)
            assert 4 < time.monotonic() - start < 15
        # The end of an encrypted connection is told.
        assert secured.pending() == 0
    wait_until(lambda: pooler.descriptors() <= before, 5)


def test_a_browser_that_ends_its_side_gets_the_answer(encrypted, authority):
    pooler = encrypted()
    with socket.create_connection((HOST, pooler.metrics), 10) as raw:
        secured = trusting(authority).wrap_socket(raw, server_hostname=HOST, suppress_ragged_eofs=False)
        secured.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        socket.socket.shutdown(secured, socket.SHUT_WR)
        found = read_all(secured)  # fails without close_notify
    assert found.startswith(b"HTTP/1.") and b"pgbouncer_up 1" in found


@pytest.mark.parametrize("is_encrypted", [False, True])
def test_hostile_browsers_leave_pools_and_page_alone(served, encrypted, authority, is_encrypted):
    pooler = (encrypted if is_encrypted else served)()
    context = trusting(authority) if is_encrypted else None
    client = pooler.client()
    before, descriptors = pooler.memory(), pooler.descriptors()
    line = b"GET /api/history HTTP/1.1\r\n"
    sent = (
        b"",
        line,
        line + b"X: " + b"y" * 9000 + b"\r\n\r\n",
        line + b"Content-Length: 100000000\r\n\r\n" + b"x" * 20000,
        b"POST /api/state HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"GET /api/state HTTP/9.9\r\n\r\n",
        b"GET " + b"/" * 7000 + b" HTTP/1.1\r\n\r\n",
        b"\r\n\r\n\x00\xff" * 100,
        line + b"\r\n",
    )
    for round in range(3):
        with contextlib.ExitStack() as stack:
            for number in range(45):
                raw = stack.enter_context(socket.create_connection((HOST, pooler.metrics), 10))
                with contextlib.suppress(OSError):
                    if is_encrypted and number % 2:
                        raw = context.wrap_socket(raw, server_hostname=HOST)
                        stack.callback(raw.close)
                    raw.sendall(sent[number % len(sent)])
                    if number % 3 == 0:
                        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            assert pooler.descriptors() <= descriptors + 33
            client.query("SELECT 1")
            assert fetch(pooler.metrics, "/api/state", context=context).status == 200
    wait_until(lambda: pooler.descriptors() <= descriptors, 8, "all to be gone")
    assert pooler.memory() < before + 8 * 1024 * 1024 or is_sanitized()
