# SPDX-License-Identifier: ISC
"""A server that answers as pgusher does for the page: the files of the tree, the same headers, and made-up figures."""

import contextlib
import http.server
import json
import pathlib
import re
import threading

from support.process import HOST

TOP = pathlib.Path(__file__).resolve().parents[4]
FOLDER = TOP / "src" / "admin" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Frame-Options": "DENY",
}


def page_sources(name):
    """The source files of a file of the page, in their order; empty when there is no such file."""
    if name == "page.js":
        names = re.findall(r"page/script/(\w+\.js)", (TOP / "src" / "Makefile.inc").read_text())
        return [FOLDER / "script" / script for script in names]
    path = FOLDER / "files" / name
    return [path] if "/" not in name and path.is_file() else []


def page_file(name):
    """A file of the page, as pgusher serves it."""
    return b"".join(path.read_bytes() for path in page_sources(name))


class PageServer:
    """Serves the page; `state` and `history` are what it answers, `status` the HTTP status of both, `asked` the
    paths that were asked for. Text in place of an object is sent as it is."""

    def __init__(self, state=None, history=None):
        self.state = state
        self.history = history
        self.status = 200
        self.asked = []
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        """Listen, on the same port as before."""
        page_server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """Answers one request; closes the connection, so that stop() leaves none."""

            def do_GET(self):
                page_server.answer(self)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((HOST, self.port), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        """Stop listening; start() listens again."""
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def answer(self, request):
        """Answer a request."""
        self.asked.append(request.path)
        status, kind, body = self.find(request.path)
        request.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        with contextlib.suppress(OSError):
            request.wfile.write(body)

    def find(self, path):
        """Status, type and body for a path."""
        figures = {"/api/state": self.state, "/api/history": self.history}
        if path in figures:
            value = figures[path]
            text = value if isinstance(value, str) else json.dumps(value)
            return self.status, "application/json", text.encode()
        name = "page.html" if path == "/" else path[1:]
        if not page_sources(name):
            return 404, "text/plain", b"not found\n"
        return 200, TYPES[pathlib.Path(name).suffix], page_file(name)

    @property
    def address(self):
        """The address of the page."""
        return f"http://{HOST}:{self.port}/"
