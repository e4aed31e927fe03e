# SPDX-License-Identifier: ISC
"""The page of figures in a headless Chromium, with made-up figures: each scene, each figure, hostile names, phones,
themes, a server that does not answer."""

import copy
import hashlib
import os
import re

import pytest

from support import page_figures
from support.clients.browser import Browser, find_browser
from support.clients.page_client import HISTORY, STATE, check
from support.page_figures import HOSTILE, NOW, SCENES, new_advice, new_history, new_host, new_pool, new_slow, new_state, times
from support.process import wait_until
from support.servers.page_server import TOP, PageServer, page_file, page_sources
from support.servers.pooler import is_sanitized

FILES = ("icon.svg", "page.css", "page.html", "page.js")
# Pictures for the documents: PGUSHER_TEST_SCREENSHOTS is a folder to write them to (make screenshots).
PICTURES = [(width, height, theme) for width, height in ((1280, 900), (390, 1200)) for theme in ("light", "dark")]
# What pictures are made of. The lint test/lint/pictures.py compares these sums with those of the tree.
SOURCES = [
    *(path for name in FILES for path in page_sources(name)),
    TOP / "test/integration/support/page_figures.py",
]

HEADLINES = {
    "calm": "No client waits: pgusher and PostgreSQL keep up",
    "down": "Clients wait: PostgreSQL is not reached, host 1 is down",
    "empty": "No client is connected",
    "hostile": "Clients wait only briefly, but there is advice",
    "many": "Clients wait: pool 200 is not full, but a limit of its database, user or host is reached",
    "overload": "Clients wait: pool 1 is full, PostgreSQL is not the limit",
    "paused": "pgusher is paused: clients wait until RESUME",
    "slow_server": "Clients wait: pool 1 is full because PostgreSQL is slow",
    "unknown": "No client waits: pgusher and PostgreSQL keep up",
}

pytestmark = [
    pytest.mark.skipif(not find_browser(), reason="no Chromium"),
    pytest.mark.skipif(is_sanitized(), reason="these tests run no pgusher"),
]


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests."""
    process = Browser()
    yield process
    process.close()


@pytest.fixture
def server():
    """A server of the page, calm."""
    page_server = PageServer(*page_figures.calm())
    yield page_server
    page_server.stop()


@pytest.fixture
def open_page(browser, server):
    """Open the page with this scene: with open_page("calm") as page."""

    def begin(scene, **options):
        server.state, server.history = SCENES[scene]() if isinstance(scene, str) else scene
        return browser.open(server.address, **options)

    return begin


def wait_for_figures(page):
    """Wait until the page shows figures."""
    page.wait_for("Descriptors", "#process")


def poll_now(page):
    """Have the page poll before its time."""
    page.run("() => run()")


# --- scenes -----------------------------------------------------------------------------------

INLINE = "() => document.querySelectorAll('[style],[onclick],style,script:not([src])').length"
WIDTH = "() => document.scrollingElement.scrollWidth"


@pytest.mark.parametrize("scene", sorted(SCENES))
def test_a_scene_is_shown_without_a_complaint(open_page, server, scene):
    with open_page(scene) as page:
        wait_for_figures(page)
        assert page.text("#headline") == HEADLINES[scene]
        for width in (1280, 390, 320):
            page.show(width)
            page.run("() => document.querySelectorAll('.opens').forEach((button, number) => number < 5 && button.click())")
            assert page.run(WIDTH) <= width
        assert page.run(INLINE) == 0
        assert page.run("() => document.getAnimations().length") == 0
        assert page.complaints == []
        assert {url for url in page.requests if not url.startswith(server.address)} == set()
        assert {*server.asked} == {"/", "/page.css", "/page.js", "/icon.svg", "/api/state", "/api/history"} - (
            {"/icon.svg"} - {*server.asked}
        )


def test_all_scenes_are_what_pgusher_answers():
    assert set(HEADLINES) == set(SCENES)
    for state, history in (scene() for scene in SCENES.values()):
        check(HISTORY, history, "history")
        for host in state["hosts"]:
            host["up"] = bool(host["up"])  # the page shows that it does not know it, too
        for pool in state["pools"]:
            for name in ("longest_wait", "oldest_transaction", "oldest_idle_transaction"):
                pool[name] = pool[name] or 0
            for name in ("query_ms", "transaction_ms", "wait_ms"):
                if pool[name] and pool[name]["p50"] is None:
                    pool[name] = None
        check(STATE, state, "state")


# --- figures ----------------------------------------------------------------------------------


def every_figure():
    """A state in which each number is another one, with names."""
    pool = new_pool(
        1,
        name="shop.web",
        database="shop",
        user="web",
        mode="statement",
        size=701,
        reserve=702,
        clients={"active": 703, "idle": 704, "waiting": 705},
        servers={"active": 706, "idle": 707, "used": 708, "tested": 709, "login": 710, "pinned": 711},
        longest_wait=71.2,
        oldest_transaction=71.3,
        oldest_idle_transaction=71.4,
        transactions_per_second=715.0,
        queries_per_second=716.0,
        errors_per_second=717.0,
        query_ms=times(718, 719, 720, 721),
        transaction_ms=times(722, 723, 724, 725),
        wait_ms=times(726, 727, 728, 729),
    )
    other = new_pool(2, name="other.pool", database=None, user=None, paused=True)
    state = new_state(
        [pool, other],
        state="suspended",
        details=True,
        pools_total=730,
        hosts=[new_host(1, name="db.example", role="standby", up=False, connections=731, connect_ms=732, lag_bytes=733, lag_seconds=73.4)],
        advice=[new_advice("code_of_advice", severity="info", seconds=735, text="Text of advice.", setting="setting_of_advice")],
        slow=[new_slow(0, total_ms=740, queue_ms=741, server_ms=742, client_ms=743, rows=744, bytes=745, application="psql of slow", text="select 746")],
    )
    state["process"] = {
        "clients": 750,
        "max_clients": 751,
        "logins": 752,
        "servers": 753,
        "cpu": 0.54,
        "memory_bytes": 755,
        "fds": 756,
        "max_fds": 757,
        "certificates": [{"side": "client", "seconds_left": 75.8}],
    }
    state["totals"] = {
        "transactions_per_second": 760.0,
        "queries_per_second": 761.0,
        "received_per_second": 762.0,
        "sent_per_second": 763.0,
        "errors": [{"error": "error of totals", "count": 764}],
    }
    return state


def leaves(value, name=""):
    """The figures and texts of a JSON value, with their names."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, name)
    else:
        yield name, value


def test_each_figure_is_on_the_page(open_page):
    state = every_figure()
    state["pools"].pop()
    with open_page((state, new_history(1))) as page:
        wait_for_figures(page)
        page.click(".opens")
        text = page.wait_for("Queries/s")
        elsewhere = {"now": "22:13:20", "started": "13 Nov 2023, 20:10:16", "up": "down", "cpu": "54 % of a core", "seconds": "12 min 15 s", "seconds_left": "75.8 s"}
        # Whether names are shown, whether a pool is paused, and numbers that refer to another object.
        not_shown = {"details", "paused", "id", "pool", "host", "at"}
        for name, value in leaves(state):
            if name not in not_shown and value is not None:
                assert elsewhere.get(name, str(value).removesuffix(".0")) in text, name
        for words in ("shop / web", "718 ms", "71.2 s", "733 B", "73.4 s", "745 B", "755 B", "763 B", "12 min 15 s", "75.8 s"):
            assert words in text


def test_a_paused_pool_says_so(open_page):
    with open_page("paused") as page:
        wait_for_figures(page)
        assert "paused" in page.text("#pools-table")
        assert "RESUME" in page.text("#change")


def test_what_is_not_known_is_a_dash(open_page):
    with open_page("unknown") as page:
        wait_for_figures(page)
        page.click(".opens")
        text = page.wait_for("Queries/s")
        assert not re.search(r"NaN|null|undefined|Infinity|Invalid", text)
        assert page.run("() => document.querySelector('#hosts td:nth-child(5)').innerText") == "–"


def test_names_are_hidden_with_the_setting_to_show_them(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        assert "page_details = 1" in page.text("footer")
    with open_page("hostile") as page:
        wait_for_figures(page)
        assert "page_details" not in page.text("footer")


# --- answers ----------------------------------------------------------------------------------


def test_the_verdict_answers_the_four_questions(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        where = page.text("#where")
        assert "12.5 s in pgusher" in where and "5.2 ms at PostgreSQL" in where
        holder = page.text("#holder")
        assert "pool 1: 5 of 5 servers active" in holder and "idle in its transaction for 60.1 s" in holder
        assert page.text("#since") == "22:09:10, 4 min 10 s ago"
        assert page.text("#change") == "pool_size: see the advice on pool 1"
        assert page.run("() => document.title") == "(95 waiting) pgusher"


FULL = "Clients wait: pool 1 is full"


VERDICTS = [
    ({"oldest_idle_transaction": 0}, f"{FULL}, PostgreSQL is not the limit", "pool_size"),
    ({}, f"{FULL}, PostgreSQL is not the limit", "idle_transaction_timeout"),
    ({"servers": {"pinned": 4}}, f"{FULL} because servers are pinned to clients", "SHOW PINS"),
    (
        {"transaction_ms": times(300, 400, 500, 600)},
        f"{FULL} because transactions hold servers between queries",
        "application",
    ),
    ({"query_ms": times(300, 400, 500, 600)}, f"{FULL} because PostgreSQL is slow", "log_min_duration"),
    ({"paused": True}, "Clients wait: pool 1 is paused", "RESUME"),
    (
        {"servers": {"active": 1, "login": 2}},
        "Clients wait: new servers of pool 1 log in at PostgreSQL",
        "min_pool_size",
    ),
    (
        {"servers": {"active": 1}},
        "Clients wait: pool 1 is not full, but a limit of its database, user or host is reached",
        "max_db_connections",
    ),
    (
        {"longest_wait": 0.02, "errors_per_second": 0},
        "Clients wait only briefly, but a transaction of pool 1 is left open",
        "There is no advice yet.",
    ),
    ({"longest_wait": 0.02}, "Clients wait only briefly, but queries fail in pool 1", "There is no advice yet."),
]


def test_the_verdict_names_the_cause_and_what_to_change(open_page):
    before, history = page_figures.overload()
    with open_page((before, history)) as page:
        wait_for_figures(page)
        for changes, headline, change in VERDICTS:
            state = copy.deepcopy({**before, "advice": []})
            pool = next(pool for pool in state["pools"] if pool["id"] == 1)
            for name, value in changes.items():
                pool[name] = {**pool[name], **value} if isinstance(value, dict) else value
            page.run("(next) => { state = next; showState(); }", state)
            assert page.text("#headline") == headline
            assert change in page.text("#change")


# --- hostile names ----------------------------------------------------------------------------


def test_hostile_names_are_text(open_page):
    with open_page("hostile") as page:
        wait_for_figures(page)
        content = page.run("() => document.body.textContent")
        for name in HOSTILE:
            if name.isprintable():
                assert name in content
        assert "tab␉here␊new␀␛[31m␡" in content
        assert "\u202e" not in content and "\\u202egnp.exe" in content
        assert page.run("() => document.querySelectorAll('body script, img, iframe, b').length") == 0
        assert page.complaints == []


def test_the_source_makes_no_markup_from_text():
    script = page_file("page.js").decode()
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|DOMParser|https?://(?!www\.w3\.org/2000/svg)", script)
    page = page_file("page.html").decode()
    assert not re.search(r"\sstyle=|\son\w+=|<style|https?:", page)
    assert not re.search(r"url\(|@import|https?:", page_file("page.css").decode())


# --- time -------------------------------------------------------------------------------------


def test_figures_change_without_a_reload(open_page, server):
    with open_page("calm") as page:
        wait_for_figures(page)
        page.run("() => { window.kept = document.querySelector('#pools-table tbody'); }")
        state = copy.deepcopy(server.state)
        state["pools"][0]["transactions_per_second"] = 4321.0
        state["advice"] = [new_advice(text="New advice.")]
        server.state = state
        page.wait_for("4,321", "#pools-table")
        page.wait_for("New advice.", "#advice")
        assert page.run("() => window.kept.isConnected")
        assert server.asked.count("/") == 1


def test_a_server_that_does_not_answer_is_said_with_the_last_figures(open_page, server):
    with open_page("calm") as page:
        wait_for_figures(page)
        server.stop()
        poll_now(page)
        text = page.wait_for("does not answer since", "#lost")
        assert "no connection" in text and "The figures are those of" in text and "Next try in 2 s" in text
        assert page.text("#live") == "Not live"
        assert "812" in page.text("#pools-table")
        assert page.run("() => document.body.classList.contains('old')")
        page.wait_for("Next try in 4 s", "#lost")
        server.start()
        page.click("#retry")
        page.wait_for("Live", "#live")
        assert page.text("#lost") == ""


@pytest.mark.parametrize(
    "status, state, words",
    [
        (503, {}, "it answers with HTTP 503"),
        (401, {}, "it refuses the password"),
        (200, '{"version": ', "its answer is not complete"),
        (200, {"version": "pgusher 1.0"}, "its answer has another form"),
    ],
)
def test_a_bad_answer_is_said(open_page, server, status, state, words):
    server.status = status
    with open_page((state, new_history())) as page:
        page.wait_for(words, "#lost")
        assert page.text("#figures") == ""
        server.status, server.state = 200, page_figures.calm()[0]
        page.click("#retry")
        wait_for_figures(page)


def test_a_restart_is_said_and_the_page_goes_on(open_page, server):
    with open_page("overload") as page:
        wait_for_figures(page)
        asked = server.asked.count("/api/history")
        server.state = {**page_figures.calm()[0], "started": NOW - 5}
        poll_now(page)
        page.wait_for("restarted at 22:13:15", "#live")
        assert page.text("#headline") == HEADLINES["calm"]
        assert server.asked.count("/api/history") == asked + 1


def test_a_hidden_page_asks_for_nothing(open_page, server):
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"
    with open_page("calm") as page:
        wait_for_figures(page)
        page.run(hide, True)
        assert page.run("() => poll.timer !== null && !poll.running")
        before = len(server.asked)
        page.run("() => new Promise((done) => setTimeout(done, STATE_EVERY + 200))")
        assert len(server.asked) == before
        page.run(hide, False)
        wait_until(lambda: len(server.asked) > before, 1)


# --- many pools -------------------------------------------------------------------------------

ROWS = "() => [...document.querySelectorAll('#pools-table > table > tbody')].map((row) => row.querySelector('bdi').innerText)"
CHANGES = """async () => {
    let changes = 0;
    const observer = new MutationObserver((list) => { changes += list.length; });
    observer.observe(document, { childList: true, subtree: true, characterData: true });
    const before = performance.now();
    showState();
    const took = performance.now() - before;
    await null;
    changes += observer.takeRecords().length;
    observer.disconnect();
    return [changes, took];
}"""


def test_of_many_pools_those_that_wait_longest_are_shown_first(open_page):
    with open_page("many") as page:
        wait_for_figures(page)
        assert page.run(ROWS) == [f"pool {number}" for number in range(200, 180, -1)]
        assert "500, of which 200" in page.text("#pools-count")
        page.click("#pools-all")
        assert len(page.run(ROWS)) == 200
        changes, took = page.run(CHANGES)
        assert changes == 0 and took < 1000
        page.run("() => { const find = document.querySelector('#pools-find'); find.value = 'POOL 17'; find.dispatchEvent(new Event('input')); }")
        assert sorted(page.run(ROWS)) == sorted(["pool 17", *(f"pool {number}" for number in range(170, 180))])


def test_a_column_sorts_the_pools(open_page):
    with open_page("many") as page:
        wait_for_figures(page)
        page.click("#pools-table th:first-child button")
        assert page.run(ROWS)[:3] == ["pool 1", "pool 2", "pool 3"]
        page.click("#pools-table th:first-child button")
        assert page.run(ROWS)[:2] == ["pool 200", "pool 199"]
        assert page.run("() => document.querySelector('#pools-table th').ariaSort") == "descending"


def test_rows_stay_in_place_under_the_pointer(open_page, server):
    with open_page("calm") as page:
        wait_for_figures(page)
        place = page.run("() => { const box = document.querySelector('#pools-table').getBoundingClientRect(); return [box.x + 20, box.y + 20]; }")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0], y=place[1])
        before = page.run(ROWS)
        state = copy.deepcopy(server.state)
        state["pools"][2]["longest_wait"] = 40.0
        server.state = state
        poll_now(page)
        page.wait_for("40 s", "#pools-table")
        assert page.run(ROWS) == before
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        poll_now(page)
        wait_until(lambda: page.run(ROWS)[0] == "pool 3")


# --- charts -----------------------------------------------------------------------------------


def test_charts_show_the_hour_of_all_pools_or_one(open_page, server):
    state, history = page_figures.overload()
    history = {**history, "pools": [history["pools"][0], *new_history(1, 2, 3)["pools"][2:]]}
    with open_page((state, history)) as page:
        wait_for_figures(page)
        label = "() => document.querySelector('#charts svg').getAttribute('aria-label')"
        assert re.fullmatch(r"Clients waiting, last hour, all pools: now 95, most \d+ at 22:1\d:\d\d", page.run(label))
        path = "() => document.querySelector('#charts .line').getAttribute('d')"
        before = page.run(path)
        page.run("() => { const select = document.querySelector('#hour-pool'); select.value = '2'; select.dispatchEvent(new Event('change')); }")
        assert "pool 2: now 0, most 0" in page.run(label)
        assert page.run(path) != before
        assert not re.search("NaN|undefined", page.run("() => document.querySelector('#charts').innerHTML"))


def test_a_point_of_a_chart_is_read_by_the_keyboard(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        page.run("() => document.querySelector('#charts svg').focus()")
        page.key("ArrowLeft")
        page.key("PageUp")
        assert page.text("#hour-at") == "at 22:08:20"
        assert page.run("() => document.querySelector('#charts strong').innerText") == "0"


# --- readers ----------------------------------------------------------------------------------

# The least contrast of the page's texts and their backgrounds, WCAG 2.1, with the text that has it.
CONTRAST = """() => {
    const parse = (color) => color.match(/[\\d.]+/g).map(Number);
    const light = (color) => { const [r, g, b] = parse(color).map((part) => part / 255)
        .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (node) => { for (; node; node = node.parentElement) {
        const color = getComputedStyle(node).backgroundColor;
        if ((parse(color)[3] ?? 1) > 0) return color; } return 'rgb(255, 255, 255)'; };
    let least = [99, ''];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const node = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest('noscript, .skip')) continue;
        const [a, b] = [light(getComputedStyle(node).color), light(behind(node))].sort((x, y) => y - x);
        const contrast = (a + 0.05) / (b + 0.05);
        if (contrast < least[0]) least = [contrast, walker.currentNode.data + ' in ' + node.className];
    }
    return least;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out_in_both_themes(open_page, server, theme):
    with open_page("overload", theme=theme) as page:
        wait_for_figures(page)
        for scene in ("overload", "paused", "calm", "down"):
            page.run("(next, past) => { state = next; Object.assign(hour, past); showHistory(); showState(); }", *SCENES[scene]())
            least, text = page.run(CONTRAST)
            assert least >= 4.5, (scene, text)
        server.stop()
        poll_now(page)
        page.wait_for("does not answer", "#lost")
        least, text = page.run(CONTRAST)
        assert least >= 4.5, text


def test_the_themes_differ(open_page):
    back = "() => getComputedStyle(document.body).backgroundColor"
    with open_page("calm") as page:
        wait_for_figures(page)
        light = page.run(back)
        page.show(1280, theme="dark")
        assert page.run(back) != light


@pytest.mark.parametrize("width", [1280, 390])
def test_screen_readers_get_tables_headings_and_texts_of_charts(open_page, width):
    with open_page("overload", width=width) as page:
        wait_for_figures(page)
        page.click(".opens")
        nodes = [node for node in page.call("Accessibility.getFullAXTree")["nodes"] if not node["ignored"]]
        by_role = {}
        for node in nodes:
            by_role.setdefault(node["role"]["value"], []).append(node.get("name", {}).get("value", ""))
        assert {"Advice", "Pools", "Hosts", "Errors", "Slow queries, the newest first", "Times by percentile"} <= {*by_role["table"]}
        assert len([name for name in by_role["image"] if "last hour" in name]) == 6
        assert len(by_role["cell"]) > 100 and len(by_role["rowheader"]) >= 10
        assert by_role["heading"][0] == "pgusher" and "Clients wait: pool 1" in by_role["heading"][1]
        assert all(by_role["button"]) and all(by_role["region"])


def test_a_pool_is_opened_by_the_keyboard(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        page.run("() => document.querySelector('.opens').focus()")
        page.key("Enter")
        page.wait_for("Pool mode", "#pools-table")
        assert page.run("() => document.activeElement.ariaExpanded") == "true"


def test_the_headline_is_announced_only_when_it_changes(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        assert page.run("() => document.querySelector('#headline').ariaLive") == "polite"
        assert not re.search(r"\d\d", page.text("#headline"))


def test_the_page_prints_without_controls(open_page):
    with open_page("overload") as page:
        wait_for_figures(page)
        page.show(800, media="print")
        assert page.run("() => getComputedStyle(document.querySelector('#hour-pool').parentElement).display") == "none"
        assert page.run(WIDTH) <= 800


# --- pictures ---------------------------------------------------------------------------------


def test_pictures_for_the_documents(open_page, folder):
    target = os.environ.get("PGUSHER_TEST_SCREENSHOTS") or folder
    with open_page("overload") as page:
        wait_for_figures(page)
        for width, height, theme in PICTURES:
            page.show(width, height, theme)
            path = os.path.join(target, f"page-overload-{width}-{theme}.png")
            page.picture(path, full=False)
            assert os.path.getsize(path) > 20000
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(TOP)}\n" for path in SOURCES]
    with open(os.path.join(target, "page.sha256"), "w") as file:
        file.writelines(sums)
