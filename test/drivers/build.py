# SPDX-License-Identifier: ISC
"""Build what the programs here need and Debian does not have: build.py FOLDER [KIT...]

A kit is a folder here with the programs of one language. It is copied below FOLDER, its packages
are fetched with the language's own client, and its programs are built there. Once built, it is kept
until its sources change. A kit that is not available (no runtime, no network) is left out, with the
reason in FOLDER/KIT.json, which test_drivers.py reads; a program that does not build is an error.
"""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FETCH_SECONDS = 240
BUILD_SECONDS = 600


@dataclasses.dataclass
class Kit:
    """How to build the programs of one language; commands run in its copy."""

    tool: list  # prints its version
    least: tuple  # minimum version
    manifest: str  # the file that names the packages
    fetch: list
    build: list = dataclasses.field(default_factory=list)
    needs: tuple = ()  # other tools
    environment: dict = dataclasses.field(default_factory=dict)


KITS = {
    "python": Kit(
        tool=["/usr/bin/python3", "--version"],
        least=(3, 10),
        manifest="requirements.txt",
        fetch=[
            ["/usr/bin/python3", "-m", "pip", "install", "--quiet", "--target", "packages"]
            + ["--only-binary", ":all:", "-r", "requirements.txt"]
        ],
    ),
    "node": Kit(
        tool=["node", "--version"],
        least=(18,),
        manifest="package-lock.json",
        fetch=[["npm", "ci", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]],
        needs=("npm",),
    ),
    "java": Kit(
        tool=["javac", "-version"],
        least=(17,),
        manifest="pom.xml",
        fetch=[
            ["mvn", "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=packages"]
        ],
        build=[["javac", "-nowarn", "-cp", "packages/*", "-d", "classes", "Check.java"]
               + ["UsePgjdbc.java", "UseHikari.java", "UseFlyway.java", "UseLiquibase.java"]],
        needs=("mvn",),
    ),
    "go": Kit(
        tool=["go", "version"],
        least=(1, 25),
        manifest="go.sum",
        fetch=[["go", "mod", "download"]],
        build=[["go", "build", "-o", "programs/", "./migrate", "./pgx", "./pq", "./river"]],
        environment={"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"},
    ),
    "rust": Kit(
        tool=["cargo", "--version"],
        least=(1, 94),
        manifest="Cargo.toml",
        fetch=[["cargo", "fetch", "--quiet"]],
        build=[["cargo", "build", "--quiet", "--offline"]],
    ),
}  # fmt: skip


class LeftOut(Exception):
    """The kit is not available on this machine."""


class Broken(Exception):
    """The kit's programs do not build."""


def digest(name):
    """A digest of the kit's sources."""
    sum = hashlib.sha256(repr(KITS[name]).encode())
    for folder, folders, files in sorted(os.walk(os.path.join(HERE, name))):
        folders[:] = [each for each in folders if each not in ("__pycache__", "node_modules")]
        for file in sorted(files):
            path = os.path.join(folder, file)
            with open(path, "rb") as content:
                sum.update(os.path.relpath(path, HERE).encode() + b"\0" + content.read())
    return sum.hexdigest()


def run(kit, command, folder, seconds, failure):
    """Run a command; raise a failure of this class if it fails."""
    environment = {**os.environ, **kit.environment}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, timeout=seconds, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise failure(f"{command[0]} did not end in {seconds} s") from None
    if done.returncode != 0:
        raise failure(f"{' '.join(command[:3])} failed: {done.stdout[-2000:].strip()}")
    return done.stdout


def check_tools(kit):
    """Leave the kit out unless its tools are installed, in recent versions."""
    for tool in (kit.tool[0], *kit.needs):
        if not shutil.which(tool):
            raise LeftOut(f"there is no {os.path.basename(tool)} here")
    words = run(kit, kit.tool, "/", 60, LeftOut)
    version = tuple(int(part) for part in re.search(r"\d+(\.\d+)*", words)[0].split("."))
    if version < kit.least:
        least = ".".join(map(str, kit.least))
        raise LeftOut(f"{kit.tool[0]} is older than {least}: {words.strip()}")


def fetch(kit, name, folder):
    """Fetch the packages, unless those of this manifest are there."""
    with open(os.path.join(HERE, name, kit.manifest), "rb") as file:
        wanted = file.read()
    fetched = os.path.join(folder, "fetched")
    if os.path.exists(fetched):
        with open(fetched, "rb") as file:
            if file.read() == wanted:
                return
        os.remove(fetched)
    shutil.rmtree(os.path.join(folder, "packages"), ignore_errors=True)
    for command in kit.fetch:
        run(kit, command, folder, FETCH_SECONDS, LeftOut)
    with open(fetched, "wb") as file:
        file.write(wanted)


def make(name, folder):
    """Fetch and build one kit."""
    kit = KITS[name]
    check_tools(kit)
    # Keep built programs: cargo and go know which ones are up to date.
    os.makedirs(folder, exist_ok=True)
    ignored = shutil.ignore_patterns("__pycache__", "node_modules")
    shutil.copytree(os.path.join(HERE, name), folder, dirs_exist_ok=True, ignore=ignored)
    shutil.rmtree(os.path.join(folder, "classes"), ignore_errors=True)
    fetch(kit, name, folder)
    for command in kit.build:
        run(kit, command, folder, BUILD_SECONDS, Broken)


def ready(record, sources):
    """Whether the kit was built from these sources."""
    try:
        with open(record) as file:
            known = json.load(file)
    except (OSError, ValueError):
        return False
    return known == {"sources": sources, "outcome": "ready", "words": ""}


def prepare(name, top):
    """Build a kit unless it is ready, and record the outcome."""
    record, sources = os.path.join(top, name + ".json"), digest(name)
    if ready(record, sources):
        return "ready"
    began = time.monotonic()
    outcome, words = "ready", ""
    try:
        make(name, os.path.join(top, name))
    except LeftOut as failure:
        outcome, words = "left out", str(failure)
    except Broken as failure:
        outcome, words = "broken", str(failure)
    with open(record, "w") as file:
        json.dump({"sources": sources, "outcome": outcome, "words": words}, file)
    print(f"{name}: {outcome} after {time.monotonic() - began:.0f} s {words}".rstrip())
    return outcome


def main():
    top = os.path.abspath(sys.argv[1])
    os.makedirs(top, exist_ok=True)
    outcomes = [prepare(name, top) for name in sys.argv[2:] or KITS]
    sys.exit(1 if "broken" in outcomes else 0)


if __name__ == "__main__":
    main()
