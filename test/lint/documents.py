# SPDX-License-Identifier: ISC
"""The documents: each link between them leads somewhere, and an installation has all of them."""

import posixpath
import re

from report import TOP, read, tree_files, verdict

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Links of this tree; fewer mean that the expression above finds none.
LEAST = 100


def prose(path):
    """The text without code blocks, where brackets and # have other meanings."""
    return re.sub(r"^```.*?^```", "", read(path), flags=re.S | re.M)


def anchors(path):
    """What a link into a document may have behind its #: the headings, as they are spelt there."""
    for heading in re.findall(r"^#+ (.*)$", prose(path), re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        yield re.sub(r"[^\w\- ]", "", shown).replace(" ", "-")


def broken_links(documents):
    """Links to files or headings that do not exist."""
    count = 0
    for path in documents:
        for link in LINK.findall(prose(path)):
            if re.match(r"[a-z]+:", link):
                continue
            count += 1
            name, _, anchor = link.partition("#")
            target = posixpath.normpath(path.parent / name) if name else path
            if not (TOP / target).is_file():
                yield f"{path}: {link}: there is no {target}"
            elif anchor and anchor not in anchors(target):
                yield f"{path}: {link}: {target} has no such heading"
    if count < LEAST:
        yield f"{count} links, at least {LEAST}"


def not_installed(documents):
    """Documents that no list of Makefile.am has. The manual pages are made of theirs."""
    names = set(re.findall(r"[\w./-]+\.md", read("Makefile.am")))
    return [f"{path}: not in Makefile.am" for path in documents if str(path) not in names]


DOCUMENTS = [path for path in tree_files() if path.suffix == ".md"]
verdict(
    ("links in documents lead to files and headings", list(broken_links(DOCUMENTS))),
    ("every document is in the releases", not_installed(DOCUMENTS)),
)
