# SPDX-License-Identifier: ISC
"""The page for browsers, at the side of the server: its files and what its JSON says."""

import signal
import socket

import pytest

from support import wire
from support.clients.metrics_page import ask, scrape_in_time
from support.clients.page_client import fetch, history_of, state_of
from support.process import HOST, free_port, wait_until
from support.servers.page_server import page_file
from support.servers.pooler import is_sanitized



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


# Files


@pytest.mark.parametrize(
    "path, name, kind",
    [
        ("/", "page.html", "text/html; charset=utf-8"),
        ("/page.css", "page.css", "text/css; charset=utf-8"),
        ("/page.js", "page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "icon.svg", "image/svg+xml"),
    ],
)
def test_files_are_those_of_the_source_and_bound_to_themselves(served, path, name, kind):
    pooler = served()
    answer = fetch(pooler.metrics, path)
    assert (answer.status, answer.text) == (200, page_file(name).decode())
    headers = answer.headers
    assert headers["Content-Type"] == kind
    policy = headers["Content-Security-Policy"].split("; ")
    assert set(policy) == {
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    }
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    head = fetch(pooler.metrics, path, method="HEAD")
    assert (head.status, head.text) == (200, "")
    assert head.headers["Content-Length"] == headers["Content-Length"]


def test_there_are_no_other_files_and_nothing_to_send(served):
    pooler = served()
    for path in (
        "/page.html", "/page.js/", "/../page.js", "/%2e%2e/etc/passwd", "/files/page.js",
        "/page.js%00", "/api", "/api/", "/api/state/", "/api/pools", "/API/STATE", "/page", "/?/../api",
    ):  # fmt: skip
        answer = fetch(pooler.metrics, path)
        assert answer.status == (200 if path[1] == "?" else 404), path
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        for path in ("/", "/api/state"):
            assert fetch(pooler.metrics, path, method=method).status == 405
    assert state_of(pooler)["state"] == "active"


# The state


def only(found):
    """The one element of a list."""
    (one,) = found
    return one


@pytest.mark.setting("page_details")
def test_the_state_has_names_only_with_page_details(served):
    pooler = served({"default_pool_size": 1}, databases={"secretdb": {"dbname": "main"}})
    client = pooler.client("app", "secretdb", application_name="secretapp")
    client.query("BEGIN")
    waiting = pooler.client("app", "secretdb")
    waiting.send(wire.query("SELECT 'secrettext'"))
    pooler.wait_pool("secretdb", cl_waiting=1)

    def texts():
        return [fetch(pooler.metrics, path).text for path in ("/api/state", "/api/history", "/")]

    for text in texts():
        for word in ("secret", '"app"', HOST, str(pooler.cluster.port)):
            assert word not in text, word
    pool = only(state_of(pooler)["pools"])
    assert (pool["database"], pool["user"]) == (None, None)
    assert pool["name"] == f"pool {pool['id']}"
    host = only(state_of(pooler)["hosts"])
    assert host["name"] == f"host {host['id']}" and pool["host"] == host["id"]
    # A document that was written before must not be served after the change, nor the reverse.
    pooler.command("SET page_details = 1")
    state = state_of(pooler)
    pool = only(state["pools"])
    assert state["details"] and (pool["database"], pool["user"]) == ("secretdb", "app")
    assert only(state["hosts"])["name"] == f"{pooler.cluster.host}:{pooler.cluster.port}"
    pooler.command("SET page_details = 0")
    assert "secretdb" not in texts()[0]


def test_the_state_agrees_with_the_console(served):
    pooler = served({"page_details": 1, "default_pool_size": 2, "server_idle_timeout": 0})
    first, second = pooler.client(), pooler.client()
    first.query("BEGIN")
    second.query("BEGIN")
    pooler.client()
    waiting = pooler.client()
    waiting.send(wire.query("SELECT 1"))
    pooler.wait_pool(cl_waiting=1)
    pooler.client("bob").query("SELECT 1")
    state = state_of(pooler)
    shown = {(row["database"], row["user"]): row for row in pooler.show("POOLS")}
    assert state["pools_total"] == len(state["pools"]) == len(shown) - 1
    for pool in state["pools"]:
        row = shown[pool["database"], pool["user"]]
        clients, servers = pool["clients"], pool["servers"]
        assert clients["active"] + clients["idle"] == int(row["cl_active"])
        assert clients["waiting"] == int(row["cl_waiting"])
        for name in ("active", "idle", "used", "tested", "login"):
            assert servers[name] == int(row[f"sv_{name}"]), name
        assert pool["mode"] == row["pool_mode"] == "transaction"
        assert pool["size"] == 2
    # The pool in which clients wait comes first.
    busy = state["pools"][0]
    assert (busy["user"], busy["clients"]) == ("app", {"active": 2, "idle": 1, "waiting": 1})
    assert 0 < busy["longest_wait"] < 60
    assert 0 < busy["oldest_idle_transaction"] <= busy["oldest_transaction"] < 60
    latency = {
        (row["user"], row["kind"]): row
        for row in pooler.show("STATS_LATENCY", database="main")
        if row["user"]
    }
    for pool in state["pools"]:
        for kind in ("query", "transaction", "wait"):
            row, times = latency[pool["user"], kind], pool[f"{kind}_ms"]
            if times is None:
                assert int(row["count"]) == 0
                continue
            for name in ("p50", "p90", "p99", "max"):
                assert times[name] * 1000 == pytest.approx(int(row[name])), (kind, name)
    process = state["process"]
    # The console is a client too.
    assert process["clients"] in (5, 6) and process["max_clients"] == 100
    assert process["servers"] == 3 and process["logins"] == 0
    assert process["memory_bytes"] == pytest.approx(pooler.memory(), rel=0.2)
    assert abs(process["fds"] - pooler.descriptors()) <= 2
    assert state["version"].startswith("pgusher ") and state["compat"] == "PgBouncer 1.26.1"
    assert 0 < state["now"] - state["started"] < 300
    host = only(state["hosts"])
    assert (host["role"], host["up"], host["connections"]) == ("primary", True, 3)


def test_rates_are_those_since_the_last_look(served):
    pooler = served()
    client = pooler.client()
    client.query("SELECT 1")
    first = state_of(pooler)
    for _ in range(200):
        client.query("SELECT 1")

    def fresh():
        state = state_of(pooler)
        return state["now"] > first["now"] and state

    second = wait_until(fresh, 5, "a new document")
    span = second["now"] - first["now"]
    pool = only(second["pools"])
    for name in ("transactions_per_second", "queries_per_second"):
        assert pool[name] == pytest.approx(200 / span, rel=0.05)
        assert second["totals"][name] == pytest.approx(200 / span, rel=0.05)
    assert pool["errors_per_second"] == 0
    assert second["totals"]["sent_per_second"] > second["totals"]["received_per_second"] > 0
    assert pool["id"] == only(first["pools"])["id"]


def test_errors_are_those_of_the_metrics(served):
    pooler = served()
    pooler.refused(database="nowhere")
    assert state_of(pooler)["totals"]["errors"] == [{"error": "no such database: ...", "count": 1}]


ODD = ["<script>alert(1)</script>", 'a"b\'c', "a\\", "new\nline", "tab\tname", "é", "&amp;", "\x01\x7f"]


def test_odd_names_stay_text(served, new_server):
    users = [name.encode() for name in ODD] + [b"bad\xff\xc3"]
    auth = b"".join(b'"%s" ""\n' % name.replace(b'"', b'""') for name in [b"admin", *users])
    pooler = served(
        {"page_details": 1, "startup_parameters": "strict"},
        auth=auth,
        databases={"<script>": new_server().target()},
    )
    for name in users:
        raw = pooler.raw()
        pairs = {b"user": name, b"database": b"<script>", b"application_name": name}
        raw.send(wire.startup(pairs)).finish_login(name)
    found = {pool["user"] for pool in state_of(pooler)["pools"]}
    # A line of the auth_file cannot have a newline: such a user is only in the database.
    assert found >= {*ODD, "bad\ufffd\ufffd"} - {"new\nline"}
    text = fetch(pooler.metrics, "/api/state").text
    assert "<" not in text and "\\u003cscript\\u003e" in text


def test_operations_are_told(served):
    pooler = served()
    pooler.client().query("SELECT 1")

    def becomes(state):
        wait_until(lambda: state_of(pooler)["state"] == state, 5, state)

    pooler.command("PAUSE")
    becomes("paused")
    assert only(state_of(pooler)["pools"])["paused"]
    pooler.command("RESUME")
    becomes("active")
    console = pooler.console()
    console.query("SUSPEND")
    becomes("suspended")
    console.query("RESUME")
    busy = pooler.client()
    busy.query("BEGIN")
    pooler.command("SHUTDOWN WAIT_FOR_SERVERS")
    becomes("shutdown")
    busy.query("COMMIT")


def test_a_takeover_passes_the_page_on(served):
    pooler = served()
    pooler.client().query("SELECT 1")
    before = state_of(pooler)
    pooler.take_over()
    scrape_in_time(pooler.metrics)
    after = state_of(pooler)
    assert after["started"] >= before["started"]
    assert only(after["pools"])["clients"]["idle"] == 1


def test_advice_is_told_with_names_only_with_page_details(served):
    port = free_port()
    pooler = served(databases={"away": {"host": HOST, "port": port}})
    waiting = pooler.raw()
    waiting.send_startup("app", "away")

    def advice():
        return [one for one in state_of(pooler)["advice"] if one["code"] == "host_down"]

    hidden = only(wait_until(advice, 10, "advice"))
    assert (hidden["severity"], hidden["setting"]) == ("warning", "host")
    assert HOST not in hidden["text"] and str(port) not in hidden["text"]
    pooler.command("SET page_details = 1")
    shown = only(advice())
    assert HOST in shown["text"] and shown["text"] != hidden["text"]
    rows = [row for row in pooler.show("ADVICE") if row["code"] == "host_down"]
    assert only(rows)["setting"] == "host"


def test_whom_advice_is_about_is_told_only_with_page_details(served):
    pooler = served(databases={"away": {"host": HOST, "port": free_port()}})
    waiting = pooler.raw()
    waiting.send_startup("app", "away")

    def about():
        advice = state_of(pooler)["advice"]
        return [(one["database"], one["user"]) for one in advice if one["code"] == "login_failing"]

    assert wait_until(about, 10, "advice") == [(None, None)]
    pooler.command("SET page_details = 1")
    assert wait_until(about, 5, "advice") == [("away", "app")]


def test_slow_queries_are_told(served):
    settings = {"default_pool_size": 1, "log_min_duration": 0, "page_details": 1}
    pooler = served(settings)
    client = pooler.client(application_name="report <1>")
    client.query("SELECT '<b>', pg_sleep(0.01)")
    pooler.wait_pool(sv_idle=1)
    state = state_of(pooler)
    slow = only(state["slow"])
    assert slow["pool"] == only(state["pools"])["id"]
    assert slow["server_ms"] >= 10
    parts = slow["queue_ms"] + slow["server_ms"] + slow["client_ms"]
    assert slow["total_ms"] == pytest.approx(parts, abs=0.01)
    assert (slow["rows"], slow["application"]) == (1, "report <1>")
    assert slow["text"] == "SELECT '<b>', pg_sleep(0.01)"
    assert abs(slow["at"] - state["now"]) < 60
    pooler.command("SET page_details = 0")
    slow = only(state_of(pooler)["slow"])
    assert (slow["text"], slow["application"]) == (None, None)


def test_queries_that_waited_for_the_same_are_told_as_one(served):
    pooler = served({"default_pool_size": 1, "log_min_duration": "100ms"})
    first, *others = [pooler.client() for _ in range(3)]
    first.send(wire.query("SELECT pg_sleep(0.3)"))
    pooler.wait_pool(sv_active=1)
    for number, client in enumerate(others):
        client.send(wire.query(f"SELECT {number}"))
    for client in (first, *others):
        client.read_until("Z")
    found = wait_until(lambda: [each for each in state_of(pooler)["slow"] if each["cause"] == "queue"], 5, "a group")
    assert [(each["count"], each["setting"]) for each in found] == [(2, "pool_size")]


def test_slow_queries_are_told_in_groups(served):
    pooler = served({"log_min_duration": 0, "page_details": 1})
    client = pooler.client(application_name="report")
    for _ in range(25):
        client.query("SELECT pg_sleep(0.001)")
    pooler.wait_pool(sv_idle=1)

    def groups():
        return {each["text"]: each for each in state_of(pooler)["slow"] if each["cause"] == "server"}

    first = wait_until(lambda: groups().get("SELECT pg_sleep(0.001)"), 5, "the group")
    assert first["count"] >= 24 and first["setting"] is None
    slowest = max(int(row["total_us"]) for row in pooler.show("SLOW", cause="server"))
    assert first["total_ms"] == pytest.approx(slowest / 1000)
    for number in range(10):
        client.query(f"SELECT pg_sleep(0.001), {number}")
    wait_until(lambda: "SELECT pg_sleep(0.001), 9" in groups(), 5, "the newest group")
    found = state_of(pooler)["slow"]
    assert len(found) == 8
    assert [each["at"] for each in found] == sorted((each["at"] for each in found), reverse=True)


# The history


def test_the_history_has_a_point_for_each_step(served):
    pooler = served()
    pooler.client().query("SELECT 1")

    def both():
        history = history_of(pooler)
        return len(history["pools"]) == 2 and history

    history = wait_until(both, 5, "the pool to have a history")
    assert (history["step"], history["points"]) == (10, 360)
    assert abs(history["end"] - state_of(pooler)["now"]) < 15
    ids = [pool["id"] for pool in history["pools"]]
    assert ids == [0, only(state_of(pooler)["pools"])["id"]]
    for pool in history["pools"]:
        for name, series in pool["series"].items():
            assert len(series) == 360, name


# Cost


def test_polls_share_a_document(served):
    pooler = served()
    texts = {fetch(pooler.metrics, "/api/state").text for _ in range(20)}
    assert len(texts) <= 3, "one a second at most"


def test_a_thousand_polls_take_no_memory(served):
    pooler = served()
    pooler.client().query("SELECT 1")

    def poll(times):
        for _ in range(times):
            fetch(pooler.metrics, "/api/state")
            fetch(pooler.metrics, "/")

    poll(100)
    before, descriptors = pooler.memory(), pooler.descriptors()
    poll(1000)
    assert pooler.memory() < before + 1024 * 1024 or is_sanitized()
    wait_until(lambda: pooler.descriptors() <= descriptors, 5)


def test_two_hundred_pools_are_listed_those_with_waiting_clients_first(served, new_server):
    target = new_server().target()
    pooler = served(
        {"page_details": 1, "startup_parameters": "strict", "max_client_conn": 500},
        databases={f"db{number:03}": target for number in range(230)},
    )
    for number in range(230):
        pooler.client("app", f"db{number:03}")
    pooler.command("PAUSE db229")
    waiting = pooler.client("app", "db229")
    waiting.send(wire.query("SELECT 1"))
    pooler.wait_pool("db229", cl_waiting=1)
    state = state_of(pooler)
    assert (state["pools_total"], len(state["pools"])) == (230, 200)
    assert (state["pools"][0]["database"], state["pools"][0]["paused"]) == ("db229", True)
    assert len({pool["id"] for pool in state["pools"]}) == 200
    wait_until(lambda: len(history_of(pooler)["pools"]) == 101, 5, "a hundred pools and the total")
    # Pools that vanish while a document is written.
    pooler.databases = {"main": {}}
    pooler.reload()
    assert state_of(pooler)["pools_total"] <= 230
    assert ask(pooler.metrics, "/healthz").status == 200


def test_the_process_ends_while_browsers_wait(served):
    pooler = served({"page_password": "sesame"})
    for path, header in (
        ("/api/state", "Basic YTpzZXNhbWU="),
        ("/api/history", "Basic YTpzZXNhbWU="),
        ("/api/state", "Basic YTp3cm9uZw=="),
    ):
        raw = socket.create_connection((HOST, pooler.metrics))
        pooler.keep(raw)
        raw.sendall(f"GET {path} HTTP/1.1\r\nAuthorization: {header}\r\n\r\n".encode())
    pooler.reload()
    pooler.signal(signal.SIGQUIT)
    assert pooler.wait_exit() == 0
