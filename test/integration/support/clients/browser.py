# SPDX-License-Identifier: ISC
"""A headless Chromium, driven by the DevTools protocol through a pair of pipes: no port, no driver program.

https://chromedevtools.github.io/devtools-protocol/: messages are JSON objects, each with a zero byte behind it;
Chromium reads from descriptor 3 and writes to descriptor 4 (--remote-debugging-pipe).
"""

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time

from support.process import as_service, drop_folder, make_folder, wait_until

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# The sandbox needs user namespaces, which containers and root do not have. The page under test is ours.
OPTIONS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
    "--lang=en",
    "--remote-debugging-pipe",
    "about:blank",
)
TO_BROWSER, FROM_BROWSER = 3, 4
# The text that the element of a selector shows.
TEXT = "(s) => { const n = document.querySelector(s); return n?.checkVisibility() ? n.innerText : '' }"


def find_browser():
    """The path of Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class BrowserError(AssertionError):
    """The browser refused a command, or a script of the test has thrown."""


class Browser:
    """One process of Chromium, in which tests open a page after the other."""

    def __init__(self):
        self.folder = make_folder("pgusher-browser-")
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        # Above 3 and 4, so that neither is overwritten before it is copied.
        high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 64) for number in (to_read, to_write)]
        environment = {**os.environ, "HOME": self.folder, "TZ": "UTC", "XDG_RUNTIME_DIR": self.folder}
        self.process = subprocess.Popen(
            as_service([find_browser(), f"--user-data-dir={self.folder}/profile", *OPTIONS]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            pass_fds=(TO_BROWSER, FROM_BROWSER),
            preexec_fn=lambda: (os.dup2(high[0], TO_BROWSER), os.dup2(high[1], FROM_BROWSER)),
            start_new_session=True,
        )
        for number in (to_read, to_write, *high):
            os.close(number)
        self.received = b""
        self.last = 0
        self.pages = {}

    def close(self):
        """End the browser and remove its profile."""
        with contextlib.suppress(OSError, BrowserError):
            self.call("Browser.close")
        for number in (self.to_browser, self.from_browser):
            os.close(number)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        drop_folder(self.folder)

    def call(self, method, session=None, timeout=30, **parameters):
        """Have the browser do a command, and return its result."""
        self.last += 1
        number = self.last
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self.receive(deadline - time.monotonic())
            if answer is None:
                raise BrowserError(f"{method}: no answer in {timeout} s")
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self, timeout=0):
        """The next message of the browser, or None; events go to their page too."""
        while b"\0" not in self.received:
            if not select.select([self.from_browser], [], [], max(0, timeout))[0]:
                return None
            received = os.read(self.from_browser, 1 << 20)
            if not received:
                raise BrowserError("the browser has ended")
            self.received += received
        message, _, self.received = self.received.partition(b"\0")
        message = json.loads(message)
        if "method" in message and message.get("sessionId") in self.pages:
            self.pages[message["sessionId"]].on_event(message["method"], message["params"])
        return message

    @contextlib.contextmanager
    def open(self, address, width=1280, height=900, theme="light", credentials=None):
        """A new page at this address, and its end."""
        page = BrowserPage(self)
        try:
            page.show(width, height, theme)
            if credentials:
                page.call("Network.setExtraHTTPHeaders", headers={"Authorization": credentials})
            page.call("Page.navigate", url=address)
            yield page
        finally:
            page.close()


class BrowserPage:
    """A page of the browser: what it shows, what it has asked for, and what it has complained about."""

    def __init__(self, browser):
        self.browser = browser
        # A context of its own: nothing is left of pages before.
        self.context = browser.call("Target.createBrowserContext")["browserContextId"]
        self.target = browser.call("Target.createTarget", url="about:blank", browserContextId=self.context)[
            "targetId"
        ]
        attached = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)
        self.session = attached["sessionId"]
        self.requests = []
        self.complaints = []
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log", "Network", "Audits"):
            self.call(f"{domain}.enable")

    def close(self):
        """Close the page and forget all it has stored."""
        del self.browser.pages[self.session]
        self.browser.call("Target.disposeBrowserContext", browserContextId=self.context)

    def call(self, method, **parameters):
        """A command to this page."""
        return self.browser.call(method, self.session, **parameters)

    def on_event(self, method, event):
        """Keep what the tests look at."""
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = event["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([item.get("value") for item in event["args"]]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["entry"]["text"] + " " + event["entry"].get("url", ""))
        elif method == "Audits.issueAdded" and "contentSecurityPolicyIssueDetails" in event["issue"]["details"]:
            self.complaints.append(str(event["issue"]["details"]))

    def show(self, width, height=900, theme="light", motion="no-preference", media=""):
        """Give the page this size in pixels, and the preferences of its user."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call(
            "Emulation.setEmulatedMedia",
            media=media,
            features=[
                {"name": "prefers-color-scheme", "value": theme},
                {"name": "prefers-reduced-motion", "value": motion},
            ],
        )

    def run(self, script, *arguments):
        """What the function `script` returns when it is called in the page. It runs in a world of its own,
        which the policy of the page does not bind."""
        answer = self.call(
            "Runtime.evaluate",
            expression=f"({script})(...{json.dumps(arguments)})",
            returnByValue=True,
            awaitPromise=True,
        )
        if "exceptionDetails" in answer:
            raise BrowserError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def text(self, selector="body"):
        """The text that an element shows; empty when it is not there or hidden."""
        return self.run(TEXT, selector)

    def wait_for(self, words, selector="body", timeout=20):
        """Wait until the element shows these words, and return its text."""
        return wait_until(
            lambda: words in (text := self.text(selector)) and text, timeout, f"{words!r} in {selector}", 0.05
        )

    def click(self, selector):
        """Click on the first element of this selector."""
        self.run("(s) => document.querySelector(s).click()", selector)

    def key(self, name):
        """Press a key and release it."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, text="\r" if name == "Enter" else "")

    def picture(self, path, full=True):
        """Write what the page shows to a PNG file."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full, optimizeForSpeed=False)
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
