# SPDX-License-Identifier: ISC
"""How the page behaves in a headless Chromium: live figures, a server that does not answer, many pools, charts, themes,
keyboards, screen readers, paper."""

import copy
import re

import pytest

from support import page_figures
from support.page_figures import NOW, SCENES, new_advice, new_history
from support.page_fixtures import poll_now, wait_for_figures
from support.process import wait_until


# --- time -------------------------------------------------------------------------------------


def test_figures_change_without_a_reload(open_page, page_server):
    with open_page("calm") as page:
        wait_for_figures(page)
        page.run("() => { window.kept = document.querySelector('#pools-table tbody'); }")
        state = copy.deepcopy(page_server.state)
        state["pools"][0]["transactions_per_second"] = 4321.0
        state["advice"] = [new_advice(text="New advice.")]
        page_server.state = state
        page.wait_for("4,321", "#pools-table")
        page.wait_for("New advice.", "#advice")
        assert page.run("() => window.kept.isConnected")
        assert page_server.asked.count("/") == 1


def test_a_server_that_does_not_answer_is_said_with_the_last_figures(open_page, page_server):
    with open_page("calm") as page:
        wait_for_figures(page)
        page_server.stop()
        poll_now(page)
        text = page.wait_for("does not answer since", "#lost")
        assert "no connection" in text and "The figures are those of" in text and "Next try in 2 s" in text
        assert page.text("#live") == "Not live"
        assert "812" in page.text("#pools-table")
        assert page.run("() => document.body.classList.contains('old')")
        page.wait_for("Next try in 4 s", "#lost")
        page_server.start()
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
def test_a_bad_answer_is_said(open_page, page_server, status, state, words):
    page_server.status = status
    with open_page((state, new_history())) as page:
        page.wait_for(words, "#lost")
        assert page.text("#figures") == ""
        page_server.status, page_server.state = 200, page_figures.calm()[0]
        page.click("#retry")
        wait_for_figures(page)


def test_a_restart_is_said_and_the_page_goes_on(open_page, page_server):
    with open_page("overload") as page:
        wait_for_figures(page)
        asked = page_server.asked.count("/api/history")
        page_server.state = {**page_figures.calm()[0], "started": NOW - 5}
        poll_now(page)
        page.wait_for("restarted at 22:13:15", "#live")
        assert page.text("#headline") == "No client waits: pgusher and PostgreSQL keep up"
        assert page_server.asked.count("/api/history") == asked + 1


def test_a_hidden_page_asks_for_nothing(open_page, page_server):
    hide = "(hidden) => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });"
    hide += " document.dispatchEvent(new Event('visibilitychange')); }"

    def asked():
        # Chromium fetches the icon when it likes.
        return sum(path.startswith("/api/") for path in page_server.asked)

    with open_page("calm") as page:
        wait_for_figures(page)
        page.run(hide, True)
        assert page.run("() => poll.timer !== null && !poll.running")
        before = asked()
        page.run("() => new Promise((done) => setTimeout(done, STATE_EVERY + 200))")
        assert asked() == before
        page.run(hide, False)
        wait_until(lambda: asked() > before, 1)


# --- many pools -------------------------------------------------------------------------------

ENTER = """(selector, value) => {
    const node = document.querySelector(selector);
    node.value = value;
    for (const event of ['input', 'change']) node.dispatchEvent(new Event(event));
}"""
PLACE = """(selector) => {
    const box = document.querySelector(selector).getBoundingClientRect();
    return [box.x, box.y];
}"""
ROWS = """() => [...document.querySelectorAll('#pools-table > table > tbody')]
    .map((row) => row.querySelector('bdi').innerText)"""
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
        page.run(ENTER, "#pools-find", "POOL 17")
        assert sorted(page.run(ROWS)) == sorted(["pool 17", *(f"pool {number}" for number in range(170, 180))])


def test_a_column_sorts_the_pools(open_page):
    with open_page("many") as page:
        wait_for_figures(page)
        page.click("#pools-table th:first-child button")
        assert page.run(ROWS)[:3] == ["pool 1", "pool 2", "pool 3"]
        page.click("#pools-table th:first-child button")
        assert page.run(ROWS)[:2] == ["pool 200", "pool 199"]
        assert page.run("() => document.querySelector('#pools-table th').ariaSort") == "descending"


def test_rows_stay_in_place_under_the_pointer(open_page, page_server):
    with open_page("calm") as page:
        wait_for_figures(page)
        place = page.run(PLACE, "#pools-table")
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=place[0] + 20, y=place[1] + 20)
        before = page.run(ROWS)
        state = copy.deepcopy(page_server.state)
        state["pools"][2]["longest_wait"] = 40.0
        page_server.state = state
        poll_now(page)
        page.wait_for("40 s", "#pools-table")
        assert page.run(ROWS) == before
        page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
        poll_now(page)
        wait_until(lambda: page.run(ROWS)[0] == "pool 3")


# --- charts -----------------------------------------------------------------------------------


def test_charts_show_the_hour_of_all_pools_or_one(open_page, page_server):
    state, history = page_figures.overload()
    history = {**history, "pools": [history["pools"][0], *new_history(1, 2, 3)["pools"][2:]]}
    with open_page((state, history)) as page:
        wait_for_figures(page)
        label = "() => document.querySelector('#charts svg').getAttribute('aria-label')"
        assert re.fullmatch(r"Clients waiting, last hour, all pools: now 95, most \d+ at 22:1\d:\d\d", page.run(label))
        path = "() => document.querySelector('#charts .line').getAttribute('d')"
        before = page.run(path)
        page.run(ENTER, "#hour-pool", "2")
        assert "pool 2: now 0, most 0" in page.run(label)
        assert page.run(path) != before
        assert not re.search("NaN|undefined", page.run("() => document.querySelector('#charts').innerHTML"))


def test_charts_of_a_young_process_are_of_its_time(open_page):
    state, history = page_figures.overload()
    series = history["pools"][0]["series"]
    for values in series.values():
        values[:-12] = [None] * (len(values) - 12)
    with open_page((state, history)) as page:
        wait_for_figures(page)
        path = page.run("() => document.querySelector('#charts .line').getAttribute('d')")
        assert 280 < float(re.match(r"M([\d.]+) ", path)[1]) < 300
        assert page.run("() => document.querySelector('.axis span').innerText") == "22:03"


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


SHOW = "(next, past) => { state = next; Object.assign(hour, past); showHistory(); showState(); }"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_texts_stand_out_in_both_themes(open_page, page_server, theme):
    with open_page("overload", theme=theme) as page:
        wait_for_figures(page)
        for scene in ("overload", "paused", "calm", "down"):
            page.run(SHOW, *SCENES[scene]())
            least, text = page.run(CONTRAST)
            assert least >= 4.5, (scene, text)
        page_server.stop()
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
        tables = {"Advice", "Pools", "Hosts", "Errors", "Slow queries, the newest first", "Times by percentile"}
        assert tables <= {*by_role["table"]}
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
        assert page.run("() => document.scrollingElement.scrollWidth") <= 800
