# SPDX-License-Identifier: ISC
"""What the checks of the tree share: where the tree is, its files, and how a verdict is told."""

import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(os.environ.get("srcdir") or pathlib.Path(__file__).parents[2]).resolve()

FLOORS = [
    "base",
    "wire",
    "crypt",
    "net",
    "config",
    "setup",
    "model",
    "session",
    "admin",
    "daemon",
]

FOLDERS = [".ci", "src", "include", "etc", "doc", "test"]

# What a release holds. A checkout tells itself what belongs to it.
TEXT_NAMES = {"COPYRIGHT", "Makefile.am", "configure.ac", "run"}
TEXT_SUFFIXES = {".c", ".h", ".def", ".inc", ".sh", ".py", ".md", ".ini", ".txt", ".toml"}


def sources(*folders):
    """All C files below these folders, as paths from the top."""
    for folder in folders:
        for path in sorted((TOP / folder).rglob("*.[ch]")):
            yield path.relative_to(TOP)


def known_to_git():
    """A checkout's files and those to come, as git tells; None in a release or without git."""
    if not (TOP / ".git").exists() or not shutil.which("git"):
        return None
    names = set()
    for what in (["--cached"], ["--others", "--exclude-standard", "--", *FOLDERS]):
        listed = subprocess.run(
            ["git", "ls-files", "-z", *what], cwd=TOP, capture_output=True, check=False
        )
        if listed.returncode != 0:
            return None
        names.update(listed.stdout.decode().split("\0"))
    return [pathlib.Path(name) for name in sorted(names) if name and (TOP / name).is_file()]


def tree_files():
    """Every file that belongs to the tree, as paths from the top."""
    known = known_to_git()
    if known is not None:
        return known
    found = []
    for folder in ("", *FOLDERS):
        walk = (TOP / folder).rglob("*") if folder else TOP.glob("*")
        for path in walk:
            if path.is_file() and (path.suffix in TEXT_SUFFIXES or path.name in TEXT_NAMES):
                found.append(path.relative_to(TOP))
    return sorted(found)


def read(path):
    """The text of a file of the tree."""
    return (TOP / path).read_text(encoding="utf-8", errors="replace")


def verdict(*checks):
    """Tell in TAP what the checks, pairs of a name and its faults, came to, and exit."""
    print(f"1..{len(checks)}")
    for number, (name, faults) in enumerate(checks, 1):
        for fault in faults:
            print(f"# {fault}")
        print(f"{'not ok' if faults else 'ok'} {number} - {name}")
    sys.exit(any(faults for _, faults in checks))


def skip(name, why):
    """Tell in TAP that a check could not be made, and exit."""
    print(f"1..1\nok 1 - {name} # SKIP {why}")
    sys.exit(0)
