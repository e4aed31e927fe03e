# SPDX-License-Identifier: ISC
"""The metrics endpoint: what its pages contain, and what it withstands."""

import contextlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

from support import wire
from support.clients.metrics_page import OPEN_METRICS, Page, ask, scrape
from support.clients.raw import ServerError
from support.process import HOST, free_port, wait_until
from support.servers.certificates import Authority
from support.servers.pooler import is_sanitized

pytest.importorskip("prometheus_client")

POOL = {"database", "user"}
DATABASE = {"name", "host", "port", "database", "force_user", "pool_mode"}

# Families that dashboards and alerts use: kind, labels.
CONTRACT = {
    **{
        f"pgbouncer_pools_{name}": ("gauge", POOL)
        for name in (
            "client_active_connections",
            "client_active_cancel_connections",
            "client_waiting_connections",
            "client_waiting_cancel_connections",
            "server_active_connections",
            "server_active_cancel_connections",
            "server_being_canceled_connections",
            "server_idle_connections",
            "server_used_connections",
            "server_testing_connections",
            "server_login_connections",
            "client_maxwait_seconds",
        )
    },
    **{
        f"pgbouncer_stats_{prefix}{name}_total": ("counter", {"database"})
        for prefix in ("totals_", "")
        for name in (
            "queries_pooled",
            "queries_duration_seconds",
            "received_bytes",
            "sent_bytes",
            "client_wait_seconds",
            "sql_transactions_pooled",
            "server_in_transaction_seconds",
        )
    },
    **{
        f"pgbouncer_stats_totals_{name}_total": ("counter", {"database"})
        for name in ("client_parses", "server_parses", "binds", "server_assignments")
    },
    **{
        f"pgbouncer_databases_{name}": ("gauge", DATABASE)
        for name in (
            "pool_size",
            "reserve_pool",
            "max_connections",
            "current_connections",
            "paused",
            "disabled",
        )
    },
    **{
        f"pgbouncer_{name}": ("gauge", set())
        for name in (
            "databases",
            "users",
            "pools",
            "free_clients",
            "used_clients",
            "login_clients",
            "free_servers",
            "used_servers",
            "cached_dns_names",
            "cached_dns_zones",
            "in_flight_dns_queries",
            "up",
            "config_max_client_connections",
            "config_max_user_connections",
            "process_open_fds",
            "process_max_fds",
            "process_resident_memory_bytes",
            "process_virtual_memory_bytes",
            "process_virtual_memory_max_bytes",
            "process_start_time_seconds",
        )
    },
    "pgbouncer_version_info": ("gauge", {"version"}),
    "pgbouncer_process_cpu_seconds_total": ("counter", set()),
    "pgbouncer_client_connections": ("gauge", POOL | {"application_name", "state"}),
}


@pytest.fixture
def served(new_pooler):
    """A daemon in transaction mode that serves metrics on served.metrics."""

    def make(settings=None, **options):
        port = free_port()
        settings = {"pool_mode": "transaction", "metrics_port": port, **(settings or {})}
        pooler = new_pooler(settings, **options)
        pooler.metrics = port
        return pooler

    return make


def family_of(page, name):
    """The type of the family that a name belongs to, as the parser reports it."""
    return page.types.get(name) or page.types[re.sub("_total$", "", name)]


# Contents of the page


def test_families_have_the_names_types_and_labels_of_dashboards(served):
    pooler = served()
    pooler.client(application_name="report").query("SELECT 1")
    page = scrape(pooler.metrics)
    for name, (kind, labels) in CONTRACT.items():
        assert family_of(page, name) == kind, name
        samples = page.series(name)
        assert samples, name
        for has, _ in samples:
            assert set(has) == labels, name
    assert "pgbouncer_stats_totals_queries_total" not in page.names()


def test_no_sample_has_a_label_that_scrapers_add(served):
    pooler = served()
    labels = {label for _, labels in scrape(pooler.metrics).values for label, _ in labels}
    assert not labels & {"job", "instance", "pgbouncer_cluster"}


# Columns of SHOW and samples of the page with the same meaning.
POOL_COLUMNS = {
    "cl_active": "client_active_connections",
    "cl_active_cancel_req": "client_active_cancel_connections",
    "cl_waiting": "client_waiting_connections",
    "cl_waiting_cancel_req": "client_waiting_cancel_connections",
    "sv_active": "server_active_connections",
    "sv_active_cancel": "server_active_cancel_connections",
    "sv_being_canceled": "server_being_canceled_connections",
    "sv_idle": "server_idle_connections",
    "sv_used": "server_used_connections",
    "sv_tested": "server_testing_connections",
    "sv_login": "server_login_connections",
}
TOTALS_COLUMNS = {
    "query_count": ("queries_pooled", 1),
    "query_time": ("queries_duration_seconds", 1e6),
    "bytes_received": ("received_bytes", 1),
    "bytes_sent": ("sent_bytes", 1),
    "wait_time": ("client_wait_seconds", 1e6),
    "xact_count": ("sql_transactions_pooled", 1),
    "xact_time": ("server_in_transaction_seconds", 1e6),
    "client_parse_count": ("client_parses", 1),
    "server_parse_count": ("server_parses", 1),
    "bind_count": ("binds", 1),
    "server_assignment_count": ("server_assignments", 1),
}
LISTS = {
    "dns_names": "cached_dns_names",
    "dns_zones": "cached_dns_zones",
    "dns_queries": "in_flight_dns_queries",
}


def test_the_page_agrees_with_the_console(served):
    pooler = served({"max_user_connections": 7, "server_idle_timeout": 0, "reserve_pool_size": 3})
    busy = pooler.client()
    busy.query("BEGIN")
    pooler.client("bob").query("SELECT 1")
    pooler.command("SHOW VERSION")
    page = scrape(pooler.metrics)
    for row in pooler.show("POOLS"):
        for column, name in POOL_COLUMNS.items():
            value = page.value(f"pgbouncer_pools_{name}", database=row["database"], user=row["user"])
            assert value == int(row[column]), (row["database"], column)
    for row in pooler.show("STATS_TOTALS"):
        for column, (name, unit) in TOTALS_COLUMNS.items():
            name = f"pgbouncer_stats_totals_{name}_total"
            assert page.value(name, database=row["database"]) == int(row[column]) / unit, column
    for row in pooler.show("DATABASES"):
        labels = {label: row[label] or "" for label in DATABASE}
        columns = {"reserve_pool": "reserve_pool_size"}
        for name in ("pool_size", "max_connections", "current_connections", "reserve_pool"):
            value = page.value(f"pgbouncer_databases_{name}", **labels)
            assert value == int(row[columns.get(name, name)]), name
    for row in pooler.show("LISTS"):
        name = f"pgbouncer_{LISTS.get(row['list'], row['list'])}"
        if name in CONTRACT:
            assert page.value(name) == int(row["items"]), name
    assert page.value("pgbouncer_config_max_user_connections") == 7
    assert page.value("pgbouncer_config_max_client_connections") == 100
    version = pooler.admin("SHOW VERSION")[0]["version"]
    assert page.value("pgbouncer_version_info", version=version) == 1
    labels = {"database": "main", "user": "app"}
    assert page.value("pgbouncer_pools_server_active_connections", **labels) == 1
    assert page.value("pgbouncer_stats_queries_pooled_total", database="main") == 2


def test_traffic_has_the_same_values_under_both_names(served):
    pooler = served()
    pooler.client().query("SELECT 1")
    page = scrape(pooler.metrics)
    for name in (name for name in CONTRACT if name.startswith("pgbouncer_stats_totals_")):
        alias = name.replace("_totals", "")
        if alias in CONTRACT:
            assert page.series(name) == page.series(alias)


def test_the_longest_wait_has_a_fraction_and_grows(served):
    pooler = served({"default_pool_size": 1})
    labels = {"database": "main", "user": "app"}
    pooler.client().query("BEGIN")
    waiting = pooler.client()
    waiting.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)

    def wait():
        return scrape(pooler.metrics).value("pgbouncer_pools_client_maxwait_seconds", **labels)

    first = wait_until(wait, 5)
    assert 0 < first < 60
    assert wait_until(lambda: wait() > first, 5)


def test_figures_of_the_process_are_true(served):
    pooler = served()
    page = scrape(pooler.metrics)
    pid = pooler.process.pid
    assert abs(page.value("pgbouncer_process_open_fds") - pooler.descriptors()) <= 1
    assert page.value("pgbouncer_process_resident_memory_bytes") == pytest.approx(
        pooler.memory(), rel=0.2
    )
    limits = open(f"/proc/{pid}/limits").read()
    soft = re.search(r"Max open files +(\d+)", limits).group(1)
    assert page.value("pgbouncer_process_max_fds") == int(soft)
    assert page.value("pgbouncer_process_start_time_seconds") == pytest.approx(
        os.stat(f"/proc/{pid}").st_ctime, abs=60
    )
    assert 0 < page.value("pgbouncer_process_cpu_seconds_total") <= pooler.cpu_seconds() + 1


def test_clients_are_counted_by_application_name(served):
    # With follow the server's spelling of the names would count.
    pooler = served({"startup_parameters": "strict"})
    labels = {"database": "main", "user": "app"}
    busy = pooler.client(application_name="report")
    busy.query("BEGIN")
    pooler.client(application_name="report")
    pooler.client(application_name='odd"name\\with\nnewline')
    page = scrape(pooler.metrics)

    def count(name, state):
        return page.get("pgbouncer_client_connections", application_name=name, state=state, **labels)

    assert count("report", "active") == 1
    assert count("report", "idle") == 1
    assert count('odd"name\\with\nnewline', "idle") == 1
    assert len(page.series("pgbouncer_client_connections")) == 3


def test_application_names_are_bounded(served):
    pooler = served({"max_client_conn": 300})
    for number in range(150):
        pooler.client(application_name=f"name {number}")
    pooler.client(application_name="n" * 100)
    page = scrape(pooler.metrics)
    series = page.series("pgbouncer_client_connections")
    names = {labels["application_name"] for labels, _ in series if labels["database"] == "main"}
    assert len(names) == 101 and "other" in names
    assert max(map(len, names)) <= 63
    assert page.total("pgbouncer_client_connections", database="main") == 151


ODD = ['a"b', "a\\", 'x{y="z"}', "# HELP", "é", "tab\tname"]


@pytest.mark.parametrize("is_open", [False, True])
def test_names_of_clients_do_not_break_the_page(served, new_server, is_open):  # F78
    bad = [b"bad\xff%d" % number for number in range(3)]
    users = [name.encode() for name in ODD] + bad
    auth = b"".join(b'"%s" ""\n' % name.replace(b'"', b'""') for name in [b"admin", *users])
    pooler = served(
        {"startup_parameters": "strict"}, auth=auth, databases={"main": new_server().target()}
    )
    for name in users:
        raw = pooler.raw()
        pairs = {b"user": name, b"database": b"main", b"application_name": name + b"\n\xc3"}
        raw.send(wire.startup(pairs)).finish_login(name)
    page = scrape(pooler.metrics, is_open)
    name = "pgbouncer_pools_client_active_connections"
    assert {labels["user"] for labels, _ in page.series(name)} >= {*ODD, "<invalid>"}
    assert page.value(name, database="main", user="<invalid>") == 3
    assert page.total("pgbouncer_client_connections", application_name="<invalid>") == 9
    assert page.text.endswith("\n")


def test_promtool_finds_no_fault(served):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("there is no promtool")
    pooler = served()
    pooler.client(application_name="report").query("SELECT 1")
    # It reads the older format only; the Python client's parser reads the other.
    text = ask(pooler.metrics).text
    result = subprocess.run([promtool, "check", "metrics"], input=text, text=True, capture_output=True)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


# Formats


def test_open_metrics_is_sent_on_request(served):
    pooler = served()
    plain = ask(pooler.metrics)
    assert plain.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in plain.text and plain.text.endswith("\n")
    both = ask(pooler.metrics, Accept=f"{OPEN_METRICS},text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
    assert both.headers["Content-Type"] == f"{OPEN_METRICS}; charset=utf-8"
    assert both.text.endswith("\n# EOF\n")
    assert "# TYPE pgbouncer_stats_totals_binds counter\n" in both.text
    old, new = Page(plain.text), Page(both.text, is_open=True)
    volatile = re.compile("pgbouncer_process_|pgusher_memory|pgusher_http|pgusher_loop|pgusher_worker")
    stable = {key for key in old.values if not volatile.match(key[0])}
    assert stable <= set(new.values)
    assert {key: old.values[key] for key in stable} == {key: new.values[key] for key in stable}


# Requests


def test_other_pages(served):
    pooler = served()
    links = ask(pooler.metrics, "/")
    assert links.status == 200 and links.headers["Content-Type"].startswith("text/html")
    assert all(f'href="/{name}"' in links.text for name in ("metrics", "healthz", "readyz"))
    assert (ask(pooler.metrics, "/healthz").status, ask(pooler.metrics, "/readyz").status) == (200, 200)
    for path in ("/metric", "/metrics/", "/Metrics", "/%6detrics", "/../etc/passwd"):
        assert ask(pooler.metrics, path).status == 404, path
    assert ask(pooler.metrics, "/metrics?x=1").status == 200
    page = scrape(pooler.metrics)
    requests = "pgusher_http_requests_total"
    assert page.value(requests, path="other", code="404") == 5
    assert page.value(requests, path="page", code="200") == 1
    assert page.value(requests, path="metrics", code="200") == 1
    assert page.value(requests, path="healthz", code="200") == 1


def test_head_has_the_headers_of_get_and_no_body(served):
    pooler = served()
    answer = ask(pooler.metrics, "/readyz", method="HEAD")
    assert (answer.status, answer.headers["Content-Length"], answer.text) == (200, "6", "")
    answer = ask(pooler.metrics, method="HEAD")
    assert answer.status == 200 and answer.text == ""
    assert int(answer.headers["Content-Length"]) > 5000


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(served, method):
    pooler = served()
    answer = ask(pooler.metrics, method=method)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")


# Readiness


def ready(pooler):
    """Status and text of /readyz, which has the reason; asserts that /healthz is good."""
    answer = ask(pooler.metrics, "/readyz")
    assert ask(pooler.metrics, "/healthz").text == "ok\n"
    assert answer.text.count("\n") == 1 and answer.text.endswith("\n")
    return answer.status, answer.text.strip()


def state(pooler):
    """The state that the page reports as the current one."""
    series = scrape(pooler.metrics).series("pgusher_state")
    assert {labels["state"] for labels, _ in series} == {"active", "paused", "suspended", "shutdown"}
    (name,) = (labels["state"] for labels, value in series if value == 1)
    return name


def test_readiness_follows_pause_and_resume(served):
    pooler = served()
    assert (ready(pooler), state(pooler)) == ((200, "ready"), "active")
    pooler.command("PAUSE")
    assert (ready(pooler), state(pooler)) == ((503, "paused"), "paused")
    pooler.command("RESUME")
    assert (ready(pooler), state(pooler)) == ((200, "ready"), "active")
    pooler.command("PAUSE main")
    assert ready(pooler) == (200, "ready")


def test_a_suspended_process_is_not_ready(served):
    pooler = served()
    console = pooler.console()
    console.query("SUSPEND")
    assert (ready(pooler), state(pooler)) == ((503, "suspended"), "suspended")
    console.query("RESUME")
    assert (ready(pooler), state(pooler)) == ((200, "ready"), "active")


def test_a_pause_that_waits_is_not_ready(served):
    pooler = served()
    busy = pooler.client()
    busy.query("BEGIN")
    pauser = pooler.console()
    pauser.send(wire.query("PAUSE"))
    wait_until(lambda: ready(pooler) == (503, "paused"), 5, "the pause to have begun")
    busy.query("COMMIT")
    pauser.result()
    assert ready(pooler) == (503, "paused")
    pooler.command("RESUME")


@pytest.mark.parametrize("how", ["WAIT_FOR_SERVERS", "WAIT_FOR_CLIENTS"])
def test_a_process_that_shuts_down_is_not_ready_and_still_healthy(served, how):
    pooler = served()
    busy = pooler.client()
    busy.query("BEGIN")
    pooler.command(f"SHUTDOWN {how}")
    assert (ready(pooler), state(pooler)) == ((503, "shutting down"), "shutdown")
    busy.query("COMMIT")


# Where it listens


def answers(port, host=HOST):
    """Whether metrics are served there."""
    try:
        return ask(port, "/healthz", host=host).status == 200
    except OSError:
        return False


@pytest.mark.setting("metrics_port")
def test_metrics_are_off_without_a_port_and_follow_a_change(new_pooler):
    pooler = new_pooler()
    assert pooler.setting("metrics_port") == "0" and not pooler.lines("serving metrics")
    first, second = free_port(), free_port()
    pooler.settings["metrics_port"] = first
    pooler.reload()
    assert answers(first)
    pooler.settings["metrics_port"] = second
    pooler.reload()
    assert answers(second) and not answers(first)
    pooler.command(f"SET metrics_port = {first}")
    assert answers(first) and not answers(second)
    pooler.settings["metrics_port"] = "off"
    pooler.reload()
    assert not answers(first) and not answers(second)


@pytest.mark.setting("metrics_listen_addr")
def test_metrics_are_served_at_the_configured_addresses(served):
    pooler = served()
    assert answers(pooler.metrics) and not answers(pooler.metrics, "127.0.0.2")
    pooler.settings["metrics_listen_addr"] = "127.0.0.2, 127.0.0.3"
    pooler.reload()
    assert not answers(pooler.metrics)
    assert answers(pooler.metrics, "127.0.0.2") and answers(pooler.metrics, "127.0.0.3")
    pooler.settings["metrics_listen_addr"] = "*"
    pooler.reload()
    assert answers(pooler.metrics) and answers(pooler.metrics, "127.0.0.4")


@pytest.mark.parametrize(
    "address, why",
    [
        ("localhost", "'localhost' is no numeric address"),
        ("", "no address to listen on"),
        ("192.0.2.1", "192.0.2.1 port {}: Cannot assign requested address"),
    ],
)
def test_an_address_that_is_not_available_ends_a_start_and_no_running_process(served, address, why):
    pooler = served()
    why = why.format(pooler.metrics)
    pooler.settings["metrics_listen_addr"] = address
    pooler.reload()
    assert pooler.lines(f"ERROR cannot serve metrics: {why}$")
    assert answers(pooler.metrics), "it goes on where it was"
    pooler.client().query("SELECT 1")
    pooler.stop()
    pooler.allow("FATAL cannot serve metrics")
    assert pooler.run_to_end() == 1
    assert pooler.lines(f"FATAL cannot serve metrics: {why}$")


def test_a_port_in_use_ends_a_start_and_no_running_process(served):
    pooler = served()
    with socket.create_server((HOST, 0)) as other:
        pooler.settings["metrics_port"] = other.getsockname()[1]
        pooler.reload()
        assert pooler.lines("ERROR cannot serve metrics: .* Address already in use")
        assert answers(pooler.metrics)
        pooler.stop()
        pooler.allow("FATAL cannot serve metrics")
        assert pooler.run_to_end() == 1


# Limits


@pytest.mark.setting("max_metric_series")
def test_series_that_would_make_the_page_too_long_are_left_out_and_counted(served):
    pooler = served()
    for user in ("app", "alice", "bob"):
        pooler.client(user).query("SELECT 1")
    page = scrape(pooler.metrics)
    assert page.value("pgusher_metric_series_dropped") == 0
    whole = len(page.values)
    pooler.command(f"SET max_metric_series = {whole - 60}")
    page = scrape(pooler.metrics)
    dropped = page.value("pgusher_metric_series_dropped")
    assert dropped > 0 and len(page.values) <= whole - 59
    assert page.series("pgusher_query_duration_seconds_count")
    assert not page.series("pgusher_client_wait_seconds_count")
    assert abs(dropped + len(page.values) - whole) <= 8, "what is left out is counted"
    assert len(page.series("pgbouncer_pools_client_active_connections")) == 4
    assert page.value("pgbouncer_up") == 1
    pooler.command("SET max_metric_series = 0")
    assert scrape(pooler.metrics).value("pgusher_metric_series_dropped") == 0


def talk(port, data, timeout=10):
    """Send bytes and read until the other side closes."""
    with socket.create_connection((HOST, port), timeout=timeout) as raw:
        raw.sendall(data)
        found = b""
        try:
            while True:
                more = raw.recv(65536)
                if not more:
                    return found
                found += more
        except ConnectionError:
            return found


def test_line_and_headers_have_8_kilobytes_together(served):
    pooler = served()
    line = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"

    def with_header(size):
        return talk(pooler.metrics, line + b"X: " + b"a" * size + b"\r\n\r\n")

    assert with_header(8000).startswith(b"HTTP/1.1 200")
    assert not with_header(8200).startswith(b"HTTP/1.1 200")
    many = line + b"".join(b"X%d: y\r\n" % number for number in range(2000)) + b"\r\n"
    assert b" 200 " not in talk(pooler.metrics, many)
    assert b" 200 " not in talk(pooler.metrics, b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n")
    assert scrape(pooler.metrics).value("pgbouncer_up") == 1


@pytest.mark.parametrize("method", [b"GET", b"POST"])
@pytest.mark.parametrize(
    "header", [b"Content-Length: 104857600", b"Transfer-Encoding: chunked", b"Content-Length: -1"]
)
def test_requests_with_bodies_are_refused_unread(served, method, header):  # F78
    pooler = served()
    before = pooler.memory()
    head = method + b" /metrics HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n"
    with socket.create_connection((HOST, pooler.metrics), timeout=10) as raw:
        raw.sendall(head)
        with pytest.raises((ConnectionError, TimeoutError, socket.timeout)):
            raw.settimeout(8)
            chunk = b"40000\r\n" + b"x" * 0x40000 + b"\r\n"
            for _ in range(400):
                raw.sendall(chunk)
    assert pooler.memory() < before + 4 * 1024 * 1024
    assert scrape(pooler.metrics).value("pgbouncer_up") == 1


def closes_within(raw, seconds):
    """How long the other side took to close; None if it did not."""
    raw.settimeout(seconds)
    start = time.monotonic()
    try:
        while raw.recv(65536):
            pass
    except socket.timeout:
        return None
    except ConnectionError:
        pass
    return time.monotonic() - start


def test_connections_without_a_request_are_closed_after_five_seconds(served):
    pooler = served()
    with contextlib.ExitStack() as stack:
        raws = [stack.enter_context(socket.create_connection((HOST, pooler.metrics))) for _ in range(4)]
        start = time.monotonic()
        for raw, sent in zip(raws, (b"", b"GET /metrics HT", *[b"GET /metrics HTTP/1.1\r\nX: "] * 2)):
            raw.sendall(sent)
        *silent, slow = raws
        while closes_within(slow, 0.5) is None:  # single bytes do not extend the time limit
            slow.sendall(b"y")
            closed = select.select(silent, [], [], 0)[0]
            assert time.monotonic() - start < 15
            assert time.monotonic() - start > 4.5 or not closed
        assert 4.5 < time.monotonic() - start < 15
        for raw in silent:
            assert closes_within(raw, 5) is not None


def test_thirty_two_connections_at_most_and_requests_come_first(served):
    pooler = served()
    before = pooler.descriptors()
    silent = [socket.create_connection((HOST, pooler.metrics)) for _ in range(100)]
    assert scrape(pooler.metrics).value("pgbouncer_up") == 1
    assert pooler.descriptors() <= before + 32
    for raw in silent:
        raw.close()


class Crowd:
    """Many connections to an endpoint, each opened anew as soon as it is closed."""

    def __init__(self, port, count, first):
        self.port, self.first = port, first
        self.raws = [self.open() for _ in range(count)]

    def open(self):
        raw = socket.socket()
        raw.setblocking(False)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect_ex((HOST, self.port))
        return raw

    def stir(self):
        """Send a byte on each connection, and reopen those that were closed."""
        for number, raw in enumerate(self.raws):
            try:
                raw.send(self.first)
            except BlockingIOError:
                pass
            except OSError:
                raw.close()
                self.raws[number] = self.open()

    def close(self):
        for raw in self.raws:
            raw.close()


@pytest.mark.parametrize(
    "first",
    [b"G", b"GET /metrics HTTP/1.1\r\n\r\n", b"X: " + b"y" * 8000, b"POST / HTTP/1.1\r\n\r\n"],
    ids=["slow", "deaf", "long", "post"],
)
def test_a_thousand_scrapers_do_not_affect_the_pools(served, first):  # F78
    pooler = served()
    client = pooler.client()
    client.query("SELECT 1")
    before = pooler.descriptors()
    crowd = Crowd(pooler.metrics, 1000, first)
    longest = 0
    try:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            crowd.stir()
            for _ in range(20):
                start = pooler.loop_seconds()
                client.query("SELECT 1")
                longest = max(longest, pooler.loop_seconds() - start)
            assert pooler.descriptors() <= before + 33
    finally:
        crowd.close()
    assert longest < 0.5
    assert pooler.memory() < 64 * 1024 * 1024 or is_sanitized()
    page = wait_until(lambda: answers(pooler.metrics) and scrape(pooler.metrics), 10, "a page")
    assert page.value("pgbouncer_up") == 1
    wait_until(lambda: pooler.descriptors() <= before + 1, 10, "all to be gone")


def test_requests_without_reading_fill_no_memory(served):  # F78
    # A page larger than all socket buffers.
    pooler = served(databases={f"db{number}": "host=127.0.0.1" for number in range(6000)})
    with socket.socket() as raw:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        raw.connect((HOST, pooler.metrics))
        raw.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        raw.settimeout(1)
        before = pooler.memory()
        taken, more = 0, b"x" * 65536
        try:
            while taken < 256 * 1024 * 1024:
                taken += raw.send(more)
        except OSError:
            pass  # the daemon reads no more, or has closed
        assert pooler.memory() < before + 64 * 1024 * 1024  # a part of it is the page
        assert taken < 16 * 1024 * 1024
    assert scrape(pooler.metrics).value("pgbouncer_up") == 1


def test_a_reader_that_disconnects_while_the_page_is_written(served):
    pooler = served()
    for _ in range(50):
        with socket.create_connection((HOST, pooler.metrics)) as raw:
            raw.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert scrape(pooler.metrics).value("pgbouncer_up") == 1


def test_a_client_that_ends_its_side_gets_the_whole_page(served):
    """As `printf ... | nc -N` does."""
    pooler = served()
    whole = ask(pooler.metrics)
    with socket.create_connection((HOST, pooler.metrics), 10) as client:
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        found = b""
        while data := client.recv(65536):
            found += data
    head, body = found.split(b"\r\n\r\n", 1)
    assert int(re.search(rb"Content-Length: (\d+)", head)[1]) == len(body)
    assert len(body) > len(whole.text) / 2


def test_the_process_ends_while_readers_wait(served):
    pooler = served()
    for sent in (b"", b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\n"):
        raw = socket.create_connection((HOST, pooler.metrics))
        pooler.keep(raw)
        raw.sendall(sent)
    pooler.reload()
    pooler.signal(signal.SIGQUIT)
    assert pooler.wait_exit() == 0


# Events


def test_errors_are_counted_by_their_text(served, private_cluster):
    pooler = served({"max_client_conn": 3, "default_pool_size": 2}, cluster=private_cluster)
    page = scrape(pooler.metrics)
    texts = {labels["errmsg"] for labels, _ in page.series("pgbouncer_errors_count")}
    assert {"server conn crashed?", "no more connections allowed (max_client_conn)"} <= texts
    assert {"no such database: ...", "query_wait_timeout", "other"} <= texts
    assert page.total("pgbouncer_errors_count") == 0
    pooler.refused(database="nowhere")
    clients = [pooler.client() for _ in range(3)]
    pooler.refused()
    pid = clients[0].value("SELECT pg_backend_pid()")
    clients[0].send(wire.query("SELECT pg_sleep(60)"))
    pooler.wait_pool(sv_active=1)
    os.kill(int(pid), signal.SIGKILL)
    clients[0].fatal()

    def count(text):
        return scrape(pooler.metrics).value("pgbouncer_errors_count", errmsg=text)

    assert count("no such database: ...") == 1
    assert count("no more connections allowed (max_client_conn)") == 1
    assert count("server conn crashed?") >= 1


ALERTS = """
sum without (database, user) (pgbouncer_pools_client_waiting_connections) > 20
max(pgbouncer_pools_client_maxwait_seconds) > 15
100 * (sum without (database, user) (pgbouncer_pools_server_active_connections + \
pgbouncer_pools_server_idle_connections + pgbouncer_pools_server_used_connections)) \
/ clamp_min(pgbouncer_config_max_user_connections, 1) > 80
pgbouncer_pools_server_active_connections > 200
increase(pgbouncer_errors_count{errmsg!="server conn crashed?"}[1m]) > 10
increase(pgbouncer_errors_count{errmsg="no more connections allowed (max_client_conn)"}[30s]) > 0
pgbouncer_up == 0
rate(pgbouncer_stats_queries_pooled_total[1m])
rate(pgbouncer_stats_queries_duration_seconds_total[1m])
rate(pgbouncer_stats_sql_transactions_pooled_total[1m])
rate(pgbouncer_stats_server_in_transaction_seconds_total[1m])
rate(pgbouncer_stats_received_bytes_total[1m]) + rate(pgbouncer_stats_sent_bytes_total[1m])
pgbouncer_databases_max_connections
"""


def test_alerts_and_dashboards_find_their_names(served):
    pooler = served()
    pooler.client().query("SELECT 1")
    names = scrape(pooler.metrics).names()
    asked = set(re.findall(r"pgbouncer_\w+", ALERTS))
    assert len(asked) == 15 and asked <= names, asked - names


def test_attempts_and_ends_of_connections_are_counted(served):
    pooler = served()
    quitter = pooler.client()
    quitter.query("SELECT 1")
    with pytest.raises(ServerError):
        quitter.query("SELECT 1/0")
    with pytest.raises(ServerError):
        quitter.query("SELECT no_such_column")
    quitter.leave()
    pooler.wait_pool(cl_active=0)
    pooler.refused(database="nowhere")
    pooler.command("RECONNECT main")
    pooler.wait_pool(sv_idle=0)
    pooler.reload()
    page = scrape(pooler.metrics)
    main = {"database": "main"}
    assert page.value("pgusher_server_opened_total", **main) == 1
    assert page.value("pgusher_server_closed_total", reason="reconnect", **main) == 1
    assert page.value("pgusher_client_closed_total", reason="quit", **main) == 1
    assert page.value("pgusher_client_closed_total", reason="auth", database="") == 1
    assert page.value("pgusher_server_errors_total", **{"class": "22"}, **main) == 1
    assert page.value("pgusher_server_errors_total", **{"class": "42"}, **main) == 1
    assert page.value("pgusher_reloads_total", outcome="ok") == 1
    assert page.value("pgusher_config_last_reload_successful") == 1
    stamp = page.value("pgusher_config_last_reload_success_timestamp_seconds")
    assert stamp == pytest.approx(time.time(), abs=60)
    with open(pooler.config_path, "a") as file:
        file.write("nonsense\n")
    with pytest.raises(ServerError):
        pooler.command("RELOAD")
    page = scrape(pooler.metrics)
    assert page.value("pgusher_reloads_total", outcome="error") == 1
    assert page.value("pgusher_config_last_reload_successful") == 0
    assert page.value("pgusher_config_last_reload_success_timestamp_seconds") == stamp


def test_latencies_have_buckets(served):
    pooler = served()
    client = pooler.client()
    for _ in range(3):
        client.query("SELECT 1")
    client.query("SELECT pg_sleep(0.3)")
    pooler.wait_pool(sv_idle=1)
    page = scrape(pooler.metrics, is_open=True)
    labels = {"database": "main", "user": "app"}
    name = "pgusher_query_duration_seconds"
    assert page.types[name] == "histogram"
    assert page.value(f"{name}_count", **labels) == 4
    assert page.value(f"{name}_bucket", le="+Inf", **labels) == 4
    assert page.value(f"{name}_bucket", le="0.25", **labels) == 3
    assert 0.3 < page.value(f"{name}_sum", **labels) < 10
    bounds = "0.0005 0.001 0.0025 0.005 0.01 0.025 0.05 0.1 0.25 0.5 1.0 2.5 5.0 10.0 30.0 60.0 +Inf"
    found = [has["le"] for has, _ in page.series(f"{name}_bucket") if has["user"] == "app"]
    assert found == bounds.split()
    for other in ("pgusher_transaction_duration_seconds", "pgusher_client_wait_seconds"):
        assert page.value(f"{other}_count", **labels) >= 1
    labels = {"database": "main", "outcome": "ok"}
    assert page.value("pgusher_server_connect_seconds_count", **labels) == 1


def test_open_transactions_have_an_age(served):
    pooler = served({"default_pool_size": 1, "reserve_pool_size": 1, "reserve_pool_timeout": 0.2})
    labels = {"database": "main", "user": "app"}

    def value(name):
        return scrape(pooler.metrics).value(f"pgusher_{name}", **labels)

    client = pooler.client()
    client.query("SELECT 1")
    assert value("oldest_transaction_seconds") == value("oldest_idle_transaction_seconds") == 0
    assert (value("pool_size"), value("pool_reserve_in_use")) == (1, 0)
    client.query("BEGIN")
    wait_until(lambda: value("oldest_transaction_seconds") > 0.2, 5)
    assert value("oldest_idle_transaction_seconds") > 0
    other = pooler.client()
    other.query("BEGIN")
    assert value("pool_reserve_in_use") == 1
    client.query("COMMIT")
    other.query("COMMIT")
    wait_until(lambda: value("oldest_transaction_seconds") == 0, 5)


def test_certificates_and_handshakes_are_reported(served):
    authority = Authority()
    try:
        certificate, key = authority.issue("pooler", "IP:127.0.0.1", days=30)
        pooler = served(
            {
                "client_tls_sslmode": "allow",
                "client_tls_cert_file": certificate,
                "client_tls_key_file": key,
            }
        )
        pooler.connect(sslmode="require").execute("SELECT 1")
        page = scrape(pooler.metrics)
    finally:
        authority.destroy()
    name = "pgusher_tls_certificate_not_after_seconds"
    end = page.value(name, side="client", file=certificate)
    assert end == pytest.approx(time.time() + 30 * 86400, abs=3600)
    labels = {"side": "client", "outcome": "ok"}
    assert page.value("pgusher_tls_handshake_seconds_count", **labels) == 1


def test_hosts_are_up_or_down(served):
    pooler = served(databases={"main": {}, "away": {"host": "127.0.0.1", "port": free_port()}})
    pooler.client().query("SELECT 1")
    pooler.raw().send_startup("app", "away")

    def hosts():
        page = scrape(pooler.metrics)
        return {labels["database"]: value for labels, value in page.series("pgusher_server_up")}

    wait_until(lambda: hosts() == {"main": 1, "away": 0}, 10, "the hosts to be known")
    page = scrape(pooler.metrics)
    labels = {"database": "away", "outcome": "refused"}
    assert page.value("pgusher_server_connect_seconds_count", **labels) >= 1


def test_a_host_that_is_listed_twice_is_reported_once(served, cluster):
    target = {"host": f"{HOST},{HOST},{HOST}", "port": cluster.port}
    pooler = served({"pool_mode": "session"}, databases={"main": target})
    for _ in range(3):
        pooler.client().query("SELECT 1")
    assert len(scrape(pooler.metrics).series("pgusher_server_up")) == 1


def test_the_daemon_describes_itself(served):
    pooler = served()
    pooler.client().query("SELECT 1")
    page = scrape(pooler.metrics)
    assert page.value("pgusher_loop_lag_seconds_count") > 0
    assert 0 < page.value("pgusher_loop_busy_seconds_total") <= pooler.cpu_seconds() + 1
    assert page.value("pgusher_log_messages_total", level="log") >= len(pooler.lines(" LOG "))
    assert page.value("pgusher_log_messages_total", level="fatal") == 0
    assert page.value("pgusher_accept_paused_total", reason="fd_limit") == 0
    assert page.total("pgusher_dns_lookups_total") == page.value("pgusher_dns_changes_total") == 0
    assert page.value("pgusher_client_current", scope="database", name="main") == 1
    assert page.value("pgusher_client_limit", scope="global", name="") == 100
    for kind in ("clients", "servers", "buffers", "prepared"):
        assert page.get("pgusher_memory_bytes", kind=kind) is not None


def test_prepared_statements_are_counted(served):
    pooler = served({"default_pool_size": 1, "max_prepared_statements": 2})
    pooler.client().query("SELECT 1")
    page = scrape(pooler.metrics)
    assert not page.series("pgusher_prepared_hits_total")
    assert page.value("pgusher_prepared_bytes") == 0
    client = pooler.client()
    for name in "abc":  # the third one evicts the first
        client.send(wire.parse(f"SELECT '{name}'", name), wire.sync())
        assert client.result().types == "1Z"
    for name in "ccba":
        client.send(wire.bind([], name), wire.execute(), wire.sync())
        assert client.result().value == name
    page = scrape(pooler.metrics)
    assert page.value("pgusher_prepared_hits_total", database="main") == 3
    assert page.value("pgusher_prepared_misses_total", database="main") == 1
    assert page.value("pgusher_prepared_evictions_total", database="main") == 2
    assert page.value("pgusher_prepared_entries", database="main") == 2
    bytes_ = page.value("pgusher_prepared_bytes")
    assert 300 < bytes_ < 2000
    assert page.value("pgusher_memory_bytes", kind="prepared") == bytes_
    client.leave()
    wait_until(lambda: scrape(pooler.metrics).value("pgusher_prepared_bytes") < bytes_)


# Runs the collectors of Debian's exporter against a console: the metrics of each, or the column
# that it does not find.
EXPORTER = """
import json, sys
from prometheus_pgbouncer_exporter import collectors
from prometheus_pgbouncer_exporter.utils import get_connection

connection = get_connection("stats", sys.argv[1], "127.0.0.1")
found, missing = {}, {}
for name in ("StatsCollector", "PoolsCollector", "DatabasesCollector", "ListsCollector"):
    kind = getattr(collectors, name)
    options = {} if name == "ListsCollector" else {"databases": None}
    try:
        for family in kind(connection=connection, **options).collect():
            found[family.name] = [[s.labels, float(s.value)] for s in family.samples]
    except KeyError as error:
        missing[name] = error.args[0]
print(json.dumps([found, missing]))
"""


def test_debians_exporter_reads_the_console(served):
    pytest.importorskip("prometheus_pgbouncer_exporter")
    pooler = served()
    pooler.client().query("SELECT 1")
    result = subprocess.run(
        [sys.executable, "-c", EXPORTER, str(pooler.port)], text=True, capture_output=True, check=True
    )
    found, missing = json.loads(result.stdout)
    # It is older than PgBouncer 1.25, where these columns are missing or renamed too.
    assert missing == {"StatsCollector": "total_requests", "DatabasesCollector": "reserve_pool"}
    page = scrape(pooler.metrics)
    for name in ("databases", "users", "pools", "free_servers", "used_servers", "login_clients"):
        name = f"pgbouncer_{name}"
        assert page.types[name] == "gauge"
        assert found[name] == [[{}, page.value(name)]], name
    for labels, value in found["pgbouncer_active_clients"]:
        if labels["database"] == "main":
            assert page.value("pgbouncer_pools_client_active_connections", **labels) == value
