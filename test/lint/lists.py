# SPDX-License-Identifier: ISC
"""The lists of the build: every source is in one, and has a licence."""

import re
from collections import Counter
from fnmatch import fnmatch

from report import TOP, read, sources, tree_files, verdict

SPDX = "SPDX-License-Identifier: ISC"
# Makes the manual page of settings, and is no part of the daemon.
BUILD_TOOL = "reference"


def listed(fragment):
    """The paths that an automake fragment names."""
    return set(re.findall(r"[\w./-]+/[\w.-]+", read(fragment)))


def unlisted_sources():
    """Files of the daemon that no build compiles and no release contains."""
    names = listed("src/Makefile.inc")
    known = list(sources("src", "include"))
    known += [path.relative_to(TOP) for path in sorted((TOP / "include").rglob("*.def"))]
    return [f"{path}: not in src/Makefile.inc" for path in known if str(path) not in names]


def doubled_sources():
    """Files that the list of the library has twice, as a merge may leave them."""
    lists = re.findall(r"^libpgusher_a_SOURCES \+=((?:.*\\\n)*.*)", read("src/Makefile.inc"), re.M)
    for name, times in Counter(" ".join(lists).replace("\\", " ").split()).items():
        if times > 1:
            yield f"{name}: twice in libpgusher_a_SOURCES"


def wrong_map():
    """Modules that the map of doc/architecture.md lacks, and words of it that name no module."""
    section = read("doc/architecture.md").split("## Floors and folders", 1)[1]
    text = section.split("```")[1].replace("(.def)", "")
    words = set(re.findall(r"[a-z_][a-z0-9_/*]*", text))
    paths = [*sources("src", "include")]
    floors = {path.parts[1] for path in paths}
    folders = {f"{folder}/" for path in paths for folder in path.parts[2:-1]}
    modules = {path.stem for path in paths}
    modules |= {path.stem for path in (TOP / "include").rglob("*.def")}
    for module in sorted(modules - {BUILD_TOOL}):
        if not any(fnmatch(module, word) for word in words):
            yield f"{module}: not in the map of doc/architecture.md"
    for word in sorted(words - floors - folders):
        if not any(fnmatch(module, word) for module in modules):
            yield f"{word}: in the map of doc/architecture.md, and no module"
    for floor, times in Counter(re.findall(r"^([a-z]+) ", text, re.M)).items():
        if times > 1:
            yield f"{floor}: twice in the map of doc/architecture.md, as a merge may leave it"


def unlisted_tests():
    """Tests that no list runs."""
    names = listed("test/Makefile.inc")
    for path in sources("test/unit", "test/fuzz"):
        is_program = re.match(r"test_|fuzz_", path.name) and path.suffix == ".c"
        if str(path.with_suffix("") if is_program else path) not in names:
            yield f"{path}: not in test/Makefile.inc"


def missing_licences():
    """Sources without a licence in their first lines."""
    for path in tree_files():
        code = path.suffix in {".c", ".h", ".def", ".py", ".sh", ".inc", ".ac", ".am"}
        if code and SPDX not in "\n".join(read(path).splitlines()[:2]):
            yield f"{path}: no '{SPDX}' in its first two lines"


verdict(
    ("every source is in src/Makefile.inc", unlisted_sources()),
    ("no source is in the library twice", list(doubled_sources())),
    ("the map of doc/architecture.md has every module", list(wrong_map())),
    ("every test is in test/Makefile.inc", list(unlisted_tests())),
    ("every source says its licence", list(missing_licences())),
)
