# SPDX-License-Identifier: ISC
"""The floors: a file includes headers of its own floor and of those below, never above."""

import re

from report import FLOORS, read, sources, verdict

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)

# wire and crypt stand on one floor and do not see each other.
HEIGHT = {floor: height for height, floor in enumerate(FLOORS)}


def may_include(floor, other):
    """Whether a file of one floor may include a header of another."""
    if {floor, other} == {"wire", "crypt"}:
        return False
    return HEIGHT[other] <= HEIGHT[floor]


def check():
    """The upward arrows, and quoted includes that are no module's path."""
    arrows, strangers = [], []
    for path in sources("src", "include"):
        floor = path.parts[1]
        if floor not in HEIGHT:
            strangers.append(f"{path}: no such floor: {floor}")
            continue
        for quote, name in INCLUDE.findall(read(path)):
            if quote == "<":
                continue
            other = name.split("/")[0]
            if other not in HEIGHT:
                strangers.append(f'{path}: "{name}" does not name a floor')
            elif not may_include(floor, other):
                arrows.append(f'{path}: {floor} may not include "{name}"')
    return arrows, strangers


def check_headers():
    """Headers whose guard is not their path, so that two could shut each other out."""
    for path in sources("include"):
        guard = "PGUSHER_" + re.sub(r"\W", "_", "/".join(path.parts[1:])).upper()
        if not re.search(rf"^#ifndef {guard}\n#define {guard}\n", read(path), re.MULTILINE):
            yield f"{path}: its guard should be {guard}"


ARROWS, STRANGERS = check()
verdict(
    ("no file includes a header of a floor above its own", ARROWS),
    ("quoted includes name a floor and a module", STRANGERS),
    ("header guards are named after the header's path", list(check_headers())),
)
