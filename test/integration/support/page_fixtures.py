# SPDX-License-Identifier: ISC
"""Fixtures for tests that open the page in a browser."""

import pytest

from support import page_figures
from support.clients.browser import Browser, find_browser
from support.page_figures import SCENES
from support.servers.page_server import PageServer
from support.servers.pooler import is_sanitized


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests of a module."""
    if not find_browser():
        pytest.skip("no Chromium")
    process = Browser()
    yield process
    process.close()


@pytest.fixture
def page_server():
    """A server of the page with made-up figures, calm at first."""
    if is_sanitized():
        pytest.skip("such tests run no pgusher")
    server = PageServer(*page_figures.calm())
    yield server
    server.stop()


@pytest.fixture
def open_page(browser, page_server):
    """Open the page with this scene, or this state and history: with open_page("calm") as page."""

    def begin(scene, **options):
        page_server.state, page_server.history = SCENES[scene]() if isinstance(scene, str) else scene
        return browser.open(page_server.address, **options)

    return begin


def wait_for_figures(page):
    """Wait until the page shows figures."""
    page.wait_for("Descriptors", "#process")


def poll_now(page):
    """Have the page poll before its time."""
    page.run("() => run()")
