# SPDX-License-Identifier: ISC
"""The floors and their folders: a file includes headers of its own and of those below, never above."""

import re
from collections import Counter

from report import FLOORS, read, sources, verdict

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)

# wire and crypt stand on one floor and do not see each other.
HEIGHT = {floor: height for height, floor in enumerate(FLOORS)}

# The terminal view is a program of its own, beside the daemon: the floors that it stands on.
BESIDE = {"top": {"base", "wire"}}

# The folders of a floor, from the bottom up.
FOLDERS = {
    "session": [
        "link",
        "relay",
        "slow",
        "notify",
        "statements",
        "parameters",
        "state",
        "server",
        "pool",
        "auth",
        "lookup",
        "serving",
        "login",
        "rules",
        "takeover",
    ],
    "admin": ["advice", "metrics", "show", "console", "page"],
}
# Folders that do not see each other.
APART = [{"metrics", "show"}, {"metrics", "console"}]

# More files than this in one folder cannot be taken in at a glance.
FILES_MOST = 25


def may_include(floor, other):
    """Whether a file of one floor may include a header of another."""
    if {floor, other} == {"wire", "crypt"}:
        return False
    if floor in BESIDE or other in BESIDE:
        return other == floor or other in BESIDE.get(floor, ())
    return HEIGHT[other] <= HEIGHT[floor]


def check():
    """The upward arrows, and quoted includes that are no module's path."""
    arrows, strangers = [], []
    for path in sources("src", "include"):
        floor = path.parts[1]
        if floor not in HEIGHT and floor not in BESIDE:
            strangers.append(f"{path}: no such floor: {floor}")
            continue
        for quote, name in INCLUDE.findall(read(path)):
            if quote == "<":
                continue
            other = name.split("/")[0]
            if other not in HEIGHT and other not in BESIDE:
                strangers.append(f'{path}: "{name}" does not name a floor')
            elif not may_include(floor, other):
                arrows.append(f'{path}: {floor} may not include "{name}"')
    return arrows, strangers


def folder_of(name):
    """The folder of a floor that a path below src or include names: "session/pool/launch.h"."""
    parts = name.split("/")
    return parts[1] if len(parts) > 2 else None


def check_folders():
    """Includes that point from a folder of a floor to one above it, or to one apart."""
    for path in sources("src", "include"):
        floor, folder = path.parts[1], folder_of("/".join(path.parts[1:]))
        order = FOLDERS.get(floor)
        if order is None or folder is None:
            continue
        if folder not in order:
            yield f"{path}: no such folder of {floor}: {folder}"
            continue
        for _, name in INCLUDE.findall(read(path)):
            other = folder_of(name)
            if name.split("/")[0] != floor or other not in order or other == folder:
                continue
            if order.index(other) > order.index(folder) or {folder, other} in APART:
                yield f'{path}: {floor}/{folder} may not include "{name}"'


def check_sizes():
    """Folders of the daemon with too many files."""
    counts = Counter(path.parent for path in sources("src", "include"))
    for folder, count in sorted(counts.items()):
        if count > FILES_MOST:
            yield f"{folder}: {count} files, at most {FILES_MOST}"


def check_headers():
    """Headers without the guard that their path demands: two headers could share a guard."""
    for path in sources("include"):
        guard = "PGUSHER_" + re.sub(r"\W", "_", "/".join(path.parts[1:])).upper()
        if not re.search(rf"^#ifndef {guard}\n#define {guard}\n", read(path), re.MULTILINE):
            yield f"{path}: its guard should be {guard}"


ARROWS, STRANGERS = check()
verdict(
    ("no file includes a header of a floor above its own", ARROWS),
    ("no file includes a header of a folder above its own", list(check_folders())),
    (f"no folder has more than {FILES_MOST} files", list(check_sizes())),
    ("quoted includes name a floor and a module", STRANGERS),
    ("header guards are named after the header's path", list(check_headers())),
)
