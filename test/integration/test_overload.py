# SPDX-License-Identifier: ISC
"""A real overload, and what each view says of it: the cause, and the setting to change.

The transaction is open for a minute of the pooler's time. By default that runs many times as fast (a
preloaded clock); with PGUSHER_TEST_OVERLOAD=1 no clock is touched, and the minute takes a minute. With
PGUSHER_TEST_OVERLOAD_KEEP=FOLDER what was seen is written there: screenshots, screens, rows, lines.
"""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

from support import overload, wire
from support.clients.browser import Browser, find_browser
from support.clients.metrics_page import ask
from support.process import HOST, drop_folder, free_port, make_folder, run, wait_until
from support.servers.pooler import Pooler, is_sanitized
from support.servers.replicas import Replicas
from support.terminal import TMUX, Terminal, program

IN_FULL = bool(os.environ.get("PGUSHER_TEST_OVERLOAD"))
KEEP = os.environ.get("PGUSHER_TEST_OVERLOAD_KEEP")
SPEED = 1 if IN_FULL else 20

# What is wrong, and which setting each view has to name.
CAUSES = {
    "pool_full": "pool_size",
    "idle_transaction": "idle_transaction_timeout",
    "prepared_evictions": "max_prepared_statements",
    "standby_lag": "max_standby_lag",
}

pytestmark = pytest.mark.skipif(
    is_sanitized(), reason="a preloaded clock and AddressSanitizer exclude each other")


def keep(name, text):
    """Write what was seen to the folder of PGUSHER_TEST_OVERLOAD_KEEP."""
    if KEEP:
        os.makedirs(KEEP, exist_ok=True)
        with open(os.path.join(KEEP, name), "w") as file:
            file.write(text)


@pytest.fixture(scope="module")
def clock():
    """The environment in which the pooler's time passes SPEED times as fast."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if SPEED == 1:
        yield {}
        return
    if not compiler:
        pytest.skip("no C compiler to make the clock with")
    folder = make_folder("pgusher-clock-")
    source = os.path.join(os.path.dirname(__file__), "support", "compiled", "fast_clock.c")
    library = os.path.join(folder, "clock.so")
    # From its standard input: the service user may not be allowed to read the checkout.
    with open(source) as file:
        run([compiler, "-D_GNU_SOURCE", "-shared", "-fPIC", "-O1", "-xc", "-", "-o", library], stdin=file)
    yield {"LD_PRELOAD": library, "CLOCK_SPEED": str(SPEED)}
    drop_folder(folder)


@pytest.fixture(scope="module")
def scene(clock):
    """The overload, as long as all that it causes has been found."""
    group = Replicas(2, overload.SCHEMA)
    try:
        pair = group.settle()
        port = free_port()
        pooler = Pooler(
            {**overload.SETTINGS, "log_min_duration": f"{SPEED}s", "metrics_port": port, "page_details": 1},
            databases=overload.databases(*pair))
        pooler.metrics = port
        scene = overload.Overload(pooler, pair)
        try:
            pooler.start(environment=clock)
            scene.begin()
            wait_until(lambda: found(scene) >= set(CAUSES), 100, "all advice", 0.3)
            yield scene
        finally:
            scene.end()
            pooler.destroy()
    finally:
        group.destroy()


def found(scene):
    """The codes of the advice. The reports go on meanwhile."""
    scene.read()
    return {row["code"] for row in scene.pooler.show("ADVICE")}


# The scene itself


def test_clients_wait_although_postgresql_is_idle(scene):
    (pool,) = scene.pooler.show("POOLS", database="shop", user="app")
    assert int(pool["cl_waiting"]) > overload.CLIENTS * 0.9
    assert (pool["sv_active"], pool["sv_idle"]) == (str(overload.POOL_SIZE), "0")
    standby = f"{scene.standby.host}"
    (host,) = [row for row in scene.pooler.show("HOSTS") if row["host"] == standby]
    assert int(host["lag_bytes"]) > 0 and int(host["lag_ms"]) > 5000


# The console


def test_show_advice_names_each_cause_and_its_setting(scene):
    rows = scene.pooler.show("ADVICE")
    keep("show-advice.txt", "\n".join(json.dumps(row) for row in rows) + "\n")
    advice = {row["code"]: row for row in rows}
    assert {code: advice[code]["setting"] for code in CAUSES} == CAUSES
    for code in ("pool_full", "idle_transaction", "prepared_evictions"):
        assert advice[code]["database"] == "shop"
    assert re.search(
        r"^\d+ clients wait for a server, the longest for [0-9.]+ m?s, and all servers of the pool "
        r"\(pool_size 5\) are in use: on average [0-9.]+ of them run queries\. PostgreSQL has room: "
        r".* 16 cores .*\. Raise pool_size from 5 to 10\.$", advice["pool_full"]["advice"])
    assert advice["idle_transaction"]["severity"] == "critical"
    assert re.search(
        r"application 'billing' \(127\.0\.0\.1\) has been open for .* idle_transaction_timeout ",
        advice["idle_transaction"]["advice"])
    assert re.search(
        r"Raise max_prepared_statements from 8 to ", advice["prepared_evictions"]["advice"])
    assert scene.standby.host in advice["standby_lag"]["advice"]
    assert "max_standby_lag (5.0 s)" in advice["standby_lag"]["advice"]


def test_advice_is_there_while_consoles_ask_for_other_things(scene):
    def ages():
        rows = scene.pooler.show("ADVICE")
        return {row["code"]: int(row["since_seconds"]) for row in rows if row["code"] in CAUSES}

    before = ages()
    end = time.monotonic() + 2
    while time.monotonic() < end:
        scene.pooler.show("POOLS")
    after = ages()
    assert set(after) == set(CAUSES)
    assert all(after[code] > before[code] for code in CAUSES)


def test_the_metrics_have_the_advice(scene):
    text = ask(scene.pooler.metrics, "/metrics").text
    assert set(re.findall(r'^pgusher_advice\{code="(\w+)"', text, re.M)) >= set(CAUSES)
    assert re.search(r'^pgusher_advice\{code="pool_full",database="shop",user="app"\} \d', text, re.M)


# Slow queries


def test_the_slow_log_says_that_the_queue_is_slow_and_which_setting_to_change(scene):
    lines = scene.pooler.wait_log("slow query: total=.*cause=queue", timeout=20)
    keep("slow-log.txt", "\n".join(lines[-20:]) + "\n")
    fields = dict(re.findall(r"(\w+)=([0-9.]+)ms", lines[-1]))
    assert float(fields["queue"]) > 0.9 * float(fields["total"])
    assert 'application="storefront"' in lines[-1]
    assert any(" setting=pool_size " in line for line in lines)
    if IN_FULL:
        # A bounded number a second, and how many there are besides.
        assert scene.pooler.lines(r"slow query: \d+ more in the last second, .* log_slow_rate = 1$")
    rows = scene.pooler.show("SLOW")
    keep("show-slow.txt", "\n".join(json.dumps(row) for row in rows[:20]) + "\n")
    assert {row["cause"] for row in rows if row["text"] == "BEGIN;"} == {"queue"}
    assert {row["application_name"] for row in rows} == {"storefront"}
    # A server that is between two queries of a transaction at that moment counts as idle.
    settings = [row["setting"] for row in rows if row["text"] == "BEGIN;"]
    assert settings.count("pool_size") > len(settings) / 2, settings


# The page


def state(scene):
    return ask(scene.pooler.metrics, "/api/state")


def test_the_state_has_the_same_advice(scene):
    answer = state(scene).text
    keep("state.json", answer)
    figures = json.loads(answer)
    assert {each["code"]: each["setting"] for each in figures["advice"]}.items() >= CAUSES.items()
    pool = figures["pools"][0]
    assert (pool["database"], pool["size"], pool["servers"]["active"]) == ("shop", 5, 5)
    assert pool["clients"]["waiting"] > overload.CLIENTS * 0.9
    assert pool["oldest_idle_transaction"] > 60
    (full,) = [each for each in figures["advice"] if each["code"] == "pool_full"]
    assert full["pool"] == pool["id"]
    assert figures["hosts"][1]["lag_seconds"] > 5
    assert {each["application"] for each in figures["slow"]} == {"storefront"}
    assert len(figures["slow"]) <= 8
    # One row for all that waited because the pool is small.
    (waits,) = [each for each in figures["slow"] if each["setting"] == "pool_size" and each["cause"] == "queue"]
    assert waits["count"] > 2


def test_without_details_no_name_is_in_the_state(scene):
    try:
        scene.pooler.command("SET page_details = 0")
        answer = state(scene).text
        keep("state-without-details.json", answer)
        for name in ("shop", "billing", "storefront", "accounts", scene.standby.host, "app\""):
            assert name not in answer
        assert {each["code"] for each in json.loads(answer)["advice"]} >= set(CAUSES)
    finally:
        scene.pooler.command("SET page_details = 1")


@pytest.fixture(scope="module")
def browser():
    if not find_browser():
        pytest.skip("no Chromium")
    process = Browser()
    yield process
    process.close()


def test_the_page_names_each_cause_and_its_setting(scene, browser):
    with browser.open(f"http://{HOST}:{scene.pooler.metrics}/") as page:
        text = page.wait_for("Raise pool_size from 5 to 10.")
        keep("page.txt", text)
        for setting in CAUSES.values():
            assert setting in text
        assert "application 'billing'" in text
        assert "Clients wait: shop / app is full, PostgreSQL is not the limit. A transaction is left open" in text
        assert "pool_size, idle_transaction_timeout: see the advice on shop / app" in text
        for width in (1280, 390):
            for theme in ("light", "dark"):
                page.show(width, theme=theme)
                assert page.run("() => document.scrollingElement.scrollWidth") <= width
                if KEEP:
                    page.picture(os.path.join(KEEP, f"page-{width}-{theme}.png"))
        assert page.complaints == []


# pgusher top


@pytest.fixture(scope="module")
def terminal(scene):
    if not TMUX or not program():
        pytest.skip("no tmux, or pgusher-top was not built")
    window = Terminal(width=150, height=45)
    window.start("-h", HOST, "-p", scene.pooler.port, "-U", "admin", "-i", "0.5", "pgbouncer")
    yield window
    window.close()


def test_top_names_each_cause_and_its_setting(terminal):
    screen = terminal.wait("shop ")
    keep("top-pools.txt", screen)
    assert re.search(r"^shop +app .*\b19\d\b", screen, re.M)
    flat = " ".join(screen.split())
    assert re.search(r'\[pool_size\]; "billing" \S+ is idle in its transaction', flat)
    assert "shop/app: " in flat and "Raise pool_size from 5 to 10. [pool_size]" in flat
    terminal.press("a")
    terminal.wait("max_prepared_statements")
    screen = terminal.wait("max_standby_lag")
    keep("top-advice.txt", screen)
    flat = " ".join(screen.split())
    assert all(setting in flat for setting in CAUSES.values())
    assert "application 'billing'" in flat


def test_top_shows_who_holds_the_servers(terminal):
    terminal.press("s")
    screen = terminal.wait("billing")
    keep("top-servers.txt", screen)
    terminal.press("l")
    screen = terminal.wait("storefront")
    keep("top-slow.txt", screen)


# PAUSE


def test_a_pause_in_the_overload_names_the_transaction(scene):
    console = scene.pooler.console()
    console.send(wire.query("PAUSE shop"))
    try:
        # The crowd's transactions end.
        row = wait_until(
            lambda: next(iter(scene.pooler.show("WAITS", servers="1")), None), 10, "the holder")
        keep("show-waits.txt", json.dumps(row) + "\n")
        assert re.match(
            r"1 of 5 servers is still in use, 1 in a transaction; the oldest transaction is open for "
            r"[\d,]+ s \(application billing, client \d+ of shop/app at \S+, idle in transaction\)",
            row["waits_for"])
    finally:
        scene.pooler.command("RESUME shop")
    assert subprocess.Popen.poll(scene.crowd) is None
