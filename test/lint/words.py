# SPDX-License-Identifier: ISC
"""What no file of the tree may contain: paths of one machine, reminders, trailing blanks."""

import re

from report import read, tree_files, verdict

MACHINE_PATH = re.compile(r"(?<![\w.}$)-])/(?:work|root|home|Users|builds)/\w")
REMINDER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")
TRAILING = re.compile(r"[ \t]+$")


def find(expression, files):
    """Where the expression is found, as file:line: line."""
    faults = []
    for path in files:
        for number, line in enumerate(read(path).splitlines(), 1):
            if expression.search(line):
                faults.append(f"{path}:{number}: {line.strip()}")
    return faults


FILES = [path for path in tree_files() if "corpus" not in path.parts and path.suffix not in (".pem", ".png")]
OTHERS = [path for path in FILES if path.parts[:2] != ("test", "lint")]
verdict(
    ("no file names a path of one machine", find(MACHINE_PATH, OTHERS)),
    ("no file holds a reminder instead of the thing", find(REMINDER, OTHERS)),
    ("no line ends in blanks", find(TRAILING, FILES)),
)
