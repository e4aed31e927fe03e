# SPDX-License-Identifier: ISC
"""The Debian packages are in step with what they are made of: etc/debian/made.sh applies, its scripts and those
that test the packages are shell, the licence is that of COPYRIGHT; and Debian's and RPM's lists have each program."""

import pathlib
import re
import shutil
import subprocess
import tempfile

from report import TOP, read, verdict

DEBIAN = TOP / "etc" / "debian"
SCRIPTS = ("*.sh", "*.postinst", "*.prerm", "*.postrm", "*.init", "take-over", "succeed")
LEAST = 10
LEAST_INSTALLED = 7


def made():
    """What made.sh says of the samples in etc/."""
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder)
        shutil.copytree(TOP / "etc", tree / "etc")
        shutil.copytree(DEBIAN, tree / "debian")
        done = subprocess.run(
            ["sh", "debian/made.sh", "debian/tmp"],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        yield from done.stderr.splitlines()
        if done.returncode != 0 and not done.stderr:
            yield "made.sh fails without a word"
        elif done.returncode == 0 and not (tree / "debian/tmp/etc/pgusher/pgusher.ini").is_file():
            yield "made.sh makes no pgusher.ini"


def scripts():
    """The shell scripts of the packages and of their tests."""
    for pattern in SCRIPTS:
        yield from sorted(DEBIAN.glob(pattern))
    yield from sorted((TOP / "test" / "package").glob("*.sh"))


def broken_scripts():
    """Scripts that the shell cannot read, or too few scripts."""
    count = 0
    for count, path in enumerate(scripts(), 1):
        done = subprocess.run(["sh", "-n", path], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            yield f"{path.relative_to(TOP)}: {done.stderr.strip()}"
    if count < LEAST:
        yield f"{count} scripts, at least {LEAST}"


def licence():
    """Words of COPYRIGHT that the copyright file of the packages has not, in their order."""
    text = (TOP / "COPYRIGHT").read_text().split("contributors", 1)[1]
    lines = (DEBIAN / "copyright").read_text().split("License: ISC\n")[-1].splitlines()
    if text.split() != [word for line in lines if line != " ." for word in line.split()]:
        yield "etc/debian/copyright differs from COPYRIGHT"


def missing_programs():
    """Programs, their completions and manual pages that a list of a package lacks."""
    debian = (read("etc/debian/pgusher.install") + read("etc/debian/pgusher.links")).split()
    rpm = read("etc/rpm/pgusher.spec").split()
    programs = re.findall(r"^bin_PROGRAMS \+= (\S+)$", read("src/Makefile.inc"), re.M)
    pages = re.findall(r"^dist_man_MANS \+?= (.*)$", read("Makefile.am"), re.M)
    wanted = [("bin/" + name, "%{_bindir}/" + name) for name in programs]
    wanted += [("share/bash-completion/completions/" + name, "%{completions}/" + name) for name in programs]
    wanted += [("share/man", f"%{{_mandir}}/man{page[-1]}/{page}*") for page in " ".join(pages).split()]
    for path, line in wanted:
        if "usr/" + path not in debian:
            yield f"etc/debian/pgusher.install, pgusher.links: no usr/{path}"
        if line not in rpm:
            yield f"etc/rpm/pgusher.spec: no {line}"
    if len(wanted) < LEAST_INSTALLED:
        yield f"{len(wanted)} programs and pages, at least {LEAST_INSTALLED}"


verdict(
    ("the packages are made of the samples as they are", list(made())),
    ("the scripts of the packages are shell", list(broken_scripts())),
    ("the packages have the licence of the tree", list(licence())),
    ("the packages have each program and manual page", list(missing_programs())),
)
