# SPDX-License-Identifier: ISC
"""What the page shows in a headless Chromium, with made-up figures: each scene, each figure, the verdict, hostile
names; and the pictures of it for the documents."""

import copy
import hashlib
import os
import re

import pytest

from support import page_figures
from support.clients.browser import TEXT
from support.clients.page_client import HISTORY, STATE, check
from support.page_figures import (
    HOSTILE, SCENES, new_advice, new_history, new_host, new_pool, new_slow, new_state, times,
)
from support.page_fixtures import wait_for_figures
from support.png import smaller
from support.servers.page_server import TOP, page_file, page_sources

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
    "overload": "Clients wait: pool 1 is full, PostgreSQL is not the limit. A transaction is left open",
    "paused": "pgusher is paused: clients wait until RESUME",
    "slow_server": "Clients wait: pool 1 is full, and its queries are slower than usual. A transaction is left open",
    "unknown": "No client waits: pgusher and PostgreSQL keep up",
}


# --- scenes -----------------------------------------------------------------------------------

INLINE = "() => document.querySelectorAll('[style],[onclick],style,script:not([src])').length"
OPEN_SOME = "() => [...document.querySelectorAll('.opens')].slice(0, 5).forEach((button) => button.click())"
WIDTH = "() => document.scrollingElement.scrollWidth"


@pytest.mark.parametrize("scene", sorted(SCENES))
def test_a_scene_is_shown_without_a_complaint(open_page, page_server, scene):
    with open_page(scene) as page:
        wait_for_figures(page)
        assert page.text("#headline") == HEADLINES[scene]
        for width in (1280, 390, 320):
            page.show(width)
            page.run(OPEN_SOME)
            assert page.run(WIDTH) <= width
        assert page.run(INLINE) == 0
        assert page.run("() => document.getAnimations().length") == 0
        assert page.complaints == []
        assert {url for url in page.requests if not url.startswith(page_server.address)} == set()
        assert {*page_server.asked} == {"/", "/page.css", "/page.js", "/icon.svg", "/api/state", "/api/history"} - (
            {"/icon.svg"} - {*page_server.asked}
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
        hosts=[
            new_host(
                1,
                name="db.example",
                role="standby",
                up=False,
                connections=731,
                connect_ms=732,
                lag_bytes=733,
                lag_seconds=73.4,
            )
        ],
        advice=[
            new_advice(
                "code_of_advice", severity="info", seconds=735, text="Text of advice.", setting="a_setting",
                pool=None, database="archive", user="clerk")
        ],
        slow=[
            new_slow(
                0,
                count=739,
                cause="client",
                setting="pool_mode",
                total_ms=740,
                queue_ms=741,
                server_ms=742,
                client_ms=743,
                rows=744,
                bytes=745,
                application="psql of slow",
                text="select 746",
            )
        ],
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
        elsewhere = {
            "now": "22:13:20",
            "started": "13 Nov 2023, 20:10:16",
            "up": "down",
            "cpu": "54 % of a core",
            "seconds": "12 min 15 s",
            "seconds_left": "75.8 s",
        }
        # Whether names are shown, whether a pool is paused, and numbers that refer to another object.
        not_shown = {"details", "paused", "id", "pool", "host", "at", "cause"}
        for name, value in leaves(state):
            if name not in not_shown and value is not None:
                assert elsewhere.get(name, str(value).removesuffix(".0")) in text, name
        for words in ("shop / web", "archive / clerk", "718 ms", "71.2 s", "733 B", "73.4 s", "745 B", "755 B", "763 B"):
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
        assert page.text("#change") == "pool_size, idle_transaction_timeout: see the advice on pool 1"
        assert page.run("() => document.title") == "(95 waiting) pgusher"


FULL = "Clients wait: pool 1 is full"
OPEN = ". A transaction is left open"


VERDICTS = [
    ({"oldest_idle_transaction": 0}, f"{FULL}, PostgreSQL is not the limit", "pool_size"),
    ({}, f"{FULL}, PostgreSQL is not the limit{OPEN}", "idle_transaction_timeout"),
    ({"servers": {"pinned": 4}}, f"{FULL} because servers are pinned to clients{OPEN}", "SHOW PINS"),
    (
        {"transaction_ms": times(300, 400, 500, 600)},
        f"{FULL} because transactions hold servers between queries",
        "application",
    ),
    # One query of each transaction takes long: the others do not make it an idle one.
    (
        {"query_ms": times(0.4, 1, 290, 300), "transaction_ms": times(300, 400, 500, 600)},
        f"{FULL} because PostgreSQL is slow{OPEN}",
        "log_min_duration",
    ),
    ({"query_ms": times(300, 400, 500, 600)}, f"{FULL} because PostgreSQL is slow{OPEN}", "log_min_duration"),
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


def verdict(page, state):
    """The headline of these figures, and what to change. In one call: the page fetches others soon."""
    return page.run(
        f"(next) => {{ state = next; showState(); return ['#headline', '#change'].map((s) => ({TEXT})(s)) }}", state)


def test_the_verdict_names_the_cause_and_what_to_change(open_page):
    before, history = page_figures.overload()
    with open_page((before, history)) as page:
        wait_for_figures(page)
        for changes, headline, change in VERDICTS:
            state = copy.deepcopy({**before, "advice": []})
            pool = next(pool for pool in state["pools"] if pool["id"] == 1)
            for name, value in changes.items():
                pool[name] = {**pool[name], **value} if isinstance(value, dict) else value
            shown, advised = verdict(page, state)
            assert shown == headline
            assert change in advised


ADVISED = [
    ("pool_full", "pool_size", ", PostgreSQL is not the limit" + OPEN, "pool_size, idle_transaction_timeout: see"),
    ("pool_full", "max_db_connections", ", PostgreSQL is not the limit" + OPEN, "max_db_connections, idle"),
    ("pool_busy", None, " because PostgreSQL is busy" + OPEN, "idle_transaction_timeout: see the advice"),
    ("pool_held", "idle_transaction_timeout", " because transactions hold servers between queries",
     "idle_transaction_timeout: see the advice on pool 1"),
    ("pool_session", "pool_mode", " because clients keep servers for their sessions" + OPEN, "pool_mode, idle"),
    ("pool_pinned", "pin_causes", " because servers are pinned to clients" + OPEN, "pin_causes, idle"),
]


def test_the_verdict_follows_the_advice_on_the_pool(open_page):
    before, history = page_figures.overload()
    with open_page((before, history)) as page:
        wait_for_figures(page)
        for code, setting, headline, change in ADVISED:
            state = copy.deepcopy(before)
            # Figures that suggest another cause.
            full = next(pool for pool in state["pools"] if pool["id"] == 1)
            full["transaction_ms"] = times(300, 400, 500, 600)
            state["advice"][1] |= {"code": code, "setting": setting}
            shown, advised = verdict(page, state)
            assert shown == FULL + headline
            assert advised.startswith(change)
        # A limit of PostgreSQL: there is no setting.
        del state["advice"][0]
        state["advice"][0] |= {"code": "pool_full", "setting": None}
        assert verdict(page, state)[1] == "See the advice on pool 1."


def test_advice_is_about_a_pool_a_database_a_user_or_none_of_them(open_page):
    state, history = page_figures.overload()
    state["advice"] = [
        new_advice("a"),
        new_advice("b", pool=None),
        new_advice("c", pool=None, database="<b>shop"),
        new_advice("d", pool=None, user="app"),
        new_advice("e", pool=4711, database="gone", user="app"),
    ]
    with open_page((state, history)) as page:
        wait_for_figures(page)
        column = "() => [...document.querySelectorAll('#advice td[data-label=Pool]')].map((cell) => cell.innerText)"
        assert page.run(column) == ["pool 1", "–", "<b>shop", "user app", "gone / app"]


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
    made = r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\b|Function\(|DOMParser"
    assert not re.search(made, script)
    assert re.findall(r"https?://[^\"]*", script) == ["http://www.w3.org/2000/svg"]
    page = page_file("page.html").decode()
    assert not re.search(r"\sstyle=|\son\w+=|<style|https?:", page)
    assert not re.search(r"url\(|@import|https?:", page_file("page.css").decode())


# --- pictures ---------------------------------------------------------------------------------


def test_pictures_for_the_documents(open_page, folder):
    wanted = os.environ.get("PGUSHER_TEST_SCREENSHOTS")
    target = wanted or folder
    with open_page("overload") as page:
        wait_for_figures(page)
        for width, height, theme in PICTURES:
            page.show(width, height, theme)
            path = os.path.join(target, f"page-overload-{width}-{theme}.png")
            page.picture(path, full=False)
            if wanted:
                with open(path, "r+b") as file:
                    picture = smaller(file.read())
                    file.seek(0)
                    file.truncate(file.write(picture))
            assert os.path.getsize(path) > 20000
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(TOP)}\n" for path in SOURCES]
    with open(os.path.join(target, "page.sha256"), "w") as file:
        file.writelines(sums)
