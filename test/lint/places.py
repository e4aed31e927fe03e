# SPDX-License-Identifier: ISC
"""The table "Where is ...?" of doc/architecture.md names functions that are where it says."""

import re

from report import TOP, read, verdict

ROW = re.compile(r"^\| (?P<what>[^|]+) \| `(?P<file>[^`]+)` \| `(?P<function>\w+)` \|$")
ROWS_LEAST = 20
DOCUMENT = "doc/architecture.md"


def rows():
    """The rows of the table: behaviour, file, function."""
    text = read(DOCUMENT).split("## Where is ...?")[-1]
    for line in text.splitlines():
        found = ROW.match(line)
        if found:
            yield found["what"], found["file"], found["function"]


def misplaced():
    """Rows with a file that does not define the function."""
    for what, name, function in rows():
        if not (TOP / name).is_file():
            yield f"{what}: no file {name}"
        elif not re.search(rf"^(?:\w[^;\n]*)?\b{function}\(", read(name), re.MULTILINE):
            yield f"{what}: {name} does not define {function}()"


def too_few():
    """Whether the table has shrunk."""
    count = len(list(rows()))
    if count < ROWS_LEAST:
        yield f"{count} rows, at least {ROWS_LEAST}"


verdict(
    ("each function of the table of behaviours is in its file", list(misplaced())),
    (f"the table of behaviours has {ROWS_LEAST} rows or more", list(too_few())),
)
