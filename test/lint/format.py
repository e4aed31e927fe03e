# SPDX-License-Identifier: ISC
"""The layout of C files, by clang-format 14; other versions lay out differently."""

import re
import shutil
import subprocess

from report import TOP, skip, sources, verdict

NAME = "C files are laid out as .clang-format says"


def formatter():
    """The path of clang-format 14, or None."""
    for name in ("clang-format-14", "clang-format"):
        path = shutil.which(name)
        if path:
            said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            if re.search(r"version 14\.", said.stdout):
                return path
    return None


PROGRAM = formatter()
if not PROGRAM:
    skip(NAME, "no clang-format 14")
FILES = [str(path) for path in sources("src", "include", "test")]
TOLD = subprocess.run(
    [PROGRAM, "--dry-run", *FILES], cwd=TOP, capture_output=True, text=True, check=False
).stderr
verdict((NAME, list(dict.fromkeys(re.findall(r"^(\S+:\d+):\d+: warning:", TOLD, re.MULTILINE)))))
