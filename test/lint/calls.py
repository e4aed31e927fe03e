# SPDX-License-Identifier: ISC
"""No circle of calls between the files of the daemon.

Files that call each other in a circle can only be read together. The calls are read from the
relocations of the built objects: what the code sections of one object refer to and another one
defines as a function. Tables of functions (rules, handlers, events) are data: a lower module calls
a higher one through them, and they do not count.
"""

import re
import shutil
import subprocess
from pathlib import Path

from report import TOP, skip, verdict

# How compilers refer to a function from code, on the processors that we know.
CALLS = {
    "R_X86_64_PLT32",
    "R_X86_64_GOTPCRELX",
    "R_X86_64_REX_GOTPCRELX",
    "R_AARCH64_CALL26",
    "R_AARCH64_JUMP26",
}
NAME = "no file calls another one in a circle"


def run(*command):
    """The lines that a program prints."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def built():
    """The objects of the daemon in the build tree, by the source file of each."""
    for source in sorted((TOP / "src").rglob("*.c")):
        found = Path(source.relative_to(TOP)).with_suffix(".o")
        if found.is_file():
            yield str(source.relative_to(TOP)), str(found)


def defined(found):
    """The functions that an object defines for others."""
    for line in run("nm", "-g", "--defined-only", found):
        words = line.split()
        if len(words) == 3 and words[1] in "Tt":
            yield words[2]


def called(found):
    """The names that the code of an object refers to."""
    code = False
    for line in run("readelf", "-rW", found):
        section = re.match(r"Relocation section '([^']+)'", line)
        if section:
            code = section.group(1).startswith((".rela.text", ".rel.text"))
        words = line.split()
        if code and len(words) >= 5 and words[2] in CALLS:
            yield words[4]


def call_graph(objects):
    """For each file the files that it calls, with the functions."""
    homes = {name: source for source, found in objects for name in defined(found)}
    graph = {source: {} for source, _ in objects}
    for source, found in objects:
        for name in called(found):
            home = homes.get(name, source)
            if home != source:
                graph[source].setdefault(home, set()).add(name)
    return graph


def reached(graph, start):
    """The files that this one calls, directly or not."""
    seen, waiting = set(), [start]
    while waiting:
        for other in graph[waiting.pop()]:
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen


def circles(graph):
    """A line for each call that is part of a circle."""
    reach = {source: reached(graph, source) for source in graph}
    for source in sorted(graph):
        for other, names in sorted(graph[source].items()):
            if source in reach[other]:
                yield f"{source} calls {', '.join(sorted(names))} of {other}"


if __name__ == "__main__":
    if not shutil.which("readelf") or not shutil.which("nm"):
        skip(NAME, "no readelf")
    OBJECTS = list(built())
    if len(OBJECTS) < 100:
        skip(NAME, "the daemon is not built here")
    GRAPH = call_graph(OBJECTS)
    if sum(map(len, GRAPH.values())) < len(OBJECTS):
        skip(NAME, "relocations of this processor are not known")
    verdict((NAME, list(circles(GRAPH))))
