# SPDX-License-Identifier: ISC
"""The site of `make html`: every page is well-formed, every link and anchor leads somewhere, and
nothing is fetched from elsewhere. Documents that no page is made of are found without pandoc."""

import os
import pathlib
import re
import subprocess
from html.parser import HTMLParser

from report import TOP, read, verdict

EMPTY = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}
# What a browser fetches by itself.
FETCHED = {("img", "src"), ("link", "href"), ("script", "src"), ("source", "srcset"), ("iframe", "src")}
# Anchors to which other documents, and other sites, may link.
KEPT = {
    "pgusher.5.html": {"pool_mode", "databases.pool_mode", "users.pool_mode", "metrics_port", "databases"},
    "pgusher.1.html": {"option-check", "option-reboot", "signals"},
    "index.html": {"install", "from-the-sources"},
    "sizing.html": {"pool_size--auto"},
}
NAME = re.compile(r"^\s*(\S+\.md) \S", re.MULTILINE)


class Page(HTMLParser):
    """One page: its anchors, its links, and what is wrong with it."""

    def __init__(self, path):
        super().__init__()
        self.name = path.name
        self.open, self.ids, self.links, self.faults = [], [], [], []
        self.titles = 0
        text = path.read_text(encoding="utf-8")
        if not text.startswith("<!DOCTYPE html>\n<html lang="):
            self.fault("no document type and language at its start")
        self.feed(text)
        self.close()
        if self.open:
            self.fault(f"never closed: {self.open}")
        for name in sorted({each for each in self.ids if self.ids.count(each) > 1}):
            self.fault(f"the anchor {name} stands twice")
        if self.titles != 1:
            self.fault(f"{self.titles} headings of the first level")

    def fault(self, text):
        self.faults.append(f"{self.name}: {text}")

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if len(values) != len(attrs):
            self.fault(f"an attribute of {tag} stands twice")
        if tag not in EMPTY:
            self.open.append(tag)
        self.titles += tag == "h1"
        if "id" in values:
            self.ids.append(values["id"])
        if tag == "a" and "a" in self.open[:-1]:
            self.fault(f"a link in a link: {values.get('href')}")
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag == "img" and not values.get("alt"):
            self.fault(f"an image without words: {values.get('src')}")
        if tag in ("script", "style") or "style" in values or any(each.startswith("on") for each in values):
            self.fault(f"{tag} with a script or a style of its own")
        for kind, key in FETCHED:
            if tag == kind and key in values:
                self.links.append(values[key])
                if re.match(r"[a-z]+:|//", values[key]):
                    self.fault(f"fetched from elsewhere: {values[key]}")

    def handle_endtag(self, tag):
        if tag in EMPTY:
            return
        if not self.open or self.open.pop() != tag:
            self.fault(f"</{tag}> at line {self.getpos()[0]} closes what is not open")
            self.open.clear()


def make():
    """Make the site in the build folder; returns its folder and what went wrong. None without pandoc."""
    makefile = pathlib.Path("Makefile")
    pandoc = makefile.is_file() and re.search(r"^PANDOC = (.+)", makefile.read_text(), re.MULTILINE)
    if not pandoc or re.search(r"^HAVE_PANDOC_TRUE = #", makefile.read_text(), re.MULTILINE):
        return None, []
    environment = {key: value for key, value in os.environ.items() if "MAKE" not in key and key != "MFLAGS"}
    done = subprocess.run(
        ["make", "--no-print-directory", "html"], capture_output=True, text=True, env=environment, check=False
    )
    return pathlib.Path("html"), [] if done.returncode == 0 else (done.stdout + done.stderr).splitlines()


def broken_links(pages, folder):
    """Links to pages, files or anchors that are not there."""
    for name, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            if path and not (folder / path).is_file():
                yield f"{name}: {link}: there is no {path}"
            elif anchor and (path or name) in pages and anchor not in pages[path or name].ids:
                yield f"{name}: {link}: there is no such anchor"
    for name, anchors in KEPT.items():
        for anchor in sorted(anchors - set(pages[name].ids)):
            yield f"{name}: the anchor {anchor} is gone"


def in_no_list():
    """Documents that no page is made of, and pages of documents that do not exist."""
    names = NAME.findall(read("etc/html/pages.list"))
    documents = {str(path.relative_to(TOP)) for path in (TOP / "doc").glob("*.md")} | {"README.md", "NEWS.md"}
    for name in sorted({each for each in names if names.count(each) > 1}):
        yield f"{name}: twice in etc/html/pages.list"
    yield from (f"{name}: not in etc/html/pages.list" for name in sorted(documents - set(names)))
    yield from (f"{name}: in etc/html/pages.list, and no document" for name in sorted(set(names) - documents))


FOLDER, FAULTS = make()
if FOLDER and not FAULTS:
    PAGES = {path.name: Page(path) for path in sorted(FOLDER.glob("*.html"))}
    LINKED = {link.partition("#")[0] for link in PAGES["index.html"].links}
    FAULTS = sum((page.faults for page in PAGES.values()), [])
    FAULTS += list(broken_links(PAGES, FOLDER))
    FAULTS += [f"{name}: not in the navigation" for name in PAGES if name not in LINKED]
    FAULTS += [] if len(PAGES) >= 30 else [f"{len(PAGES)} pages, at least 30"]
verdict(
    ("every document is a page of the site", list(in_no_list())),
    ("the site is well-formed, and its links lead somewhere" + ("" if FOLDER else " # SKIP no pandoc"), FAULTS),
)
