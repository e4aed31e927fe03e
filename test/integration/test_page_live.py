# SPDX-License-Identifier: ISC
"""The page that pgusher itself serves, in a headless Chromium: an overload, hostile names, a password, a restart."""

import contextlib
import threading

import pytest

from support.clients.page_client import basic
from support.clients.raw import Closed
from support.process import HOST, free_port, wait_until


@pytest.fixture
def served(new_pooler):
    """A daemon in transaction mode with a page at served.page."""

    def make(settings=None, **options):
        port = free_port()
        pooler = new_pooler({"pool_mode": "transaction", "metrics_port": port, **(settings or {})}, **options)
        pooler.page = f"http://{HOST}:{port}/"
        return pooler

    return make


@contextlib.contextmanager
def busy_clients(pooler, count, text, **options):
    """Clients that send this query over and over, in threads."""
    stopped = threading.Event()

    def work(client):
        with contextlib.suppress(Closed, OSError):
            while not stopped.is_set():
                client.query(text)

    clients = [pooler.client(**options) for _ in range(count)]
    threads = [threading.Thread(target=work, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def test_an_overload_is_seen_with_its_cause_without_a_reload(served, browser):
    pooler = served({"default_pool_size": 2, "page_details": 1})
    with browser.open(pooler.page) as page:
        page.wait_for("No client is connected", "#headline")
        holder = pooler.client()
        holder.query("begin")
        with busy_clients(pooler, 8, "select pg_sleep(0.2)"):
            page.wait_for("Clients wait: main / app is full", "#headline")
            assert "2 of 2 servers active" in page.text("#holder")
            assert "oldest transaction" in page.text("#holder")
            page.click(".opens")
            assert "127.0.0.1" in page.wait_for("Pool mode", "#pools-table") + page.text("#hosts")
            assert page.text("#state") == ""
        holder.query("rollback")
        page.wait_for("No client waits", "#headline")
        pooler.command("PAUSE")
        page.wait_for("pgusher is paused", "#headline")
        pooler.command("RESUME")
        page.wait_for("No client waits", "#headline")
        assert page.complaints == []
        assert {url for url in page.requests if not url.startswith(pooler.page)} == set()


def test_a_database_called_script_is_shown_as_such(served, browser):
    name = "<script>alert(1)</script>"
    pooler = served({"page_details": 1}, databases={name: {"dbname": "main"}})
    pooler.client(database=name).query("select 1")
    with browser.open(pooler.page) as page:
        page.wait_for(f"{name} / app", "#pools-table")
        assert page.run("() => document.querySelectorAll('script').length") == 1
        assert page.complaints == []


def test_names_are_not_sent_without_the_setting(served, browser):
    pooler = served(databases={"secret_shop": {"dbname": "main"}})
    pooler.client(database="secret_shop").query("select 1")
    with browser.open(pooler.page) as page:
        page.wait_for("pool ", "#pools-table")
        page.click(".opens")
        page.wait_for("Pool mode", "#pools-table")
        assert "secret_shop" not in page.run("() => document.documentElement.textContent + JSON.stringify(state)")


def test_the_page_needs_the_password_and_goes_on_after_a_restart(served, browser):
    pooler = served({"page_password": "three-words-here"})
    with browser.open(pooler.page, credentials=basic("three-words-here")) as page:
        page.wait_for("No client is connected", "#headline")
        pooler.stop()
        page.wait_for("does not answer since", "#lost")
        pooler.start()
        page.click("#retry")
        page.wait_for("restarted at", "#live")
        assert page.text("#lost") == ""
    with browser.open(pooler.page, credentials=basic("another")) as page:
        wait_until(lambda: any("401" in complaint for complaint in page.complaints) or page.text(), 10)
        assert page.text("#headline") == ""
