# SPDX-License-Identifier: ISC
"""Tables that are marked as sorted are, and no row is there twice.

The word `sorted` in a comment right before the rows marks a table; the mark holds until a blank
line, a closing brace or another comment line. A row's key is its first quoted text, or its first
word behind the parenthesis of a macro or the brace.
"""

import re

from report import TOP, read, sources, verdict

CLAIM = re.compile(r"^\s*(?:/\*|\*).*\bsorted\b", re.IGNORECASE)
NEAR = 12  # lines within which the rows begin
ROW = re.compile(r'^\t+(?:\{|\[\w+\] = \{)\s*"?([\w.-]+)|^(?:[A-Z_]+)\(\s*"?([\w.-]+)')
DEFINITION = re.compile(r"^(?:REASON|SETTING|SHOW)\(\s*\"?(\w+)", re.MULTILINE)


def rows_after(lines, start):
    """The keys of the rows that a mark at this line covers."""
    keys = []
    for distance, line in enumerate(lines[start + 1 :]):
        if distance > NEAR and not keys:
            break
        if keys and (not line.strip() or re.match(r"\s*(\}|/\*)", line)):
            break
        found = ROW.match(line)
        if found:
            keys.append(found.group(1) or found.group(2))
    return keys


def unsorted():
    """Rows that are not in order."""
    for path in tables():
        lines = read(path).splitlines()
        for number, line in enumerate(lines):
            if not CLAIM.search(line):
                continue
            keys = rows_after(lines, number)
            for before, after in zip(keys, keys[1:]):
                if before.lower() >= after.lower():
                    yield f"{path}:{number + 1}: {after} stands after {before}"


def tables():
    """The files that may hold a table."""
    yield from sources("src", "include")
    for path in sorted((TOP / "include").rglob("*.def")):
        yield path.relative_to(TOP)


def repeated():
    """Names that a .def file defines twice."""
    for path in sorted((TOP / "include").rglob("*.def")):
        seen = set()
        for name in DEFINITION.findall(path.read_text()):
            if name in seen:
                yield f"{path.relative_to(TOP)}: {name} stands twice"
            seen.add(name)


verdict(
    ("tables that say they are sorted are", list(unsorted())),
    ("no row of a .def file stands twice", list(repeated())),
)
