# SPDX-License-Identifier: ISC
"""Makes the root file system of the image by the steps of a Containerfile, without an engine.

    image.py BASE CONTAINERFILE CONTEXT FOLDER

BASE is a Debian root that stands for the image that the stages begin with. Each stage becomes a
copy of it below FOLDER, named by its number. The instructions are read out of the Containerfile, so
that they cannot differ; what this program does not know, it refuses. What the last stage says of
running it is printed as JSON.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys

RUN_IN = """
mount --make-rprivate / && mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" || exit 1
exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \\
    DEBIAN_FRONTEND=noninteractive chroot "$0" /bin/sh -c "$1"
"""


def instructions(text):
    """Pairs of an instruction's word and the rest of its line, continuations joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        word, rest = line.split(None, 1)
        yield word, rest.strip()


def words(rest):
    """The words of an instruction in its JSON form, or separated by blanks."""
    return json.loads(rest) if rest.startswith("[") else shlex.split(rest)


def copy(source, target):
    """As COPY does: the content of a folder, or a file into a folder."""
    if os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    else:
        os.makedirs(target, exist_ok=True)
        shutil.copy(source, target)


class Build:
    """The stages made so far."""

    def __init__(self, base, context, folder):
        self.base, self.context, self.folder = base, context, folder
        self.names, self.root, self.config = {}, None, {}

    def begin(self, rest):
        image, _, name = rest.partition(" AS ")
        assert re.fullmatch(r"docker\.io/library/debian:bookworm-slim", image), image
        self.root = os.path.join(self.folder, str(len(self.names)))
        self.names[name or str(len(self.names))] = self.root
        subprocess.run(["cp", "-a", "--reflink=auto", self.base, self.root], check=True)
        self.config = {}

    def run(self, rest):
        subprocess.run(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", RUN_IN, self.root, rest],
            check=True, stdout=sys.stderr)

    def copy(self, rest):
        *sources, target = rest.split()
        top = self.context
        if sources[0].startswith("--from="):
            top = self.names[sources.pop(0).removeprefix("--from=")]
        for source in sources:
            copy(os.path.join(top, source.lstrip("/")), self.root + target)

    def follow(self, text):
        for word, rest in instructions(text):
            if word == "FROM":
                self.begin(rest)
            elif word == "RUN":
                self.run(rest)
            elif word == "COPY":
                self.copy(rest)
            elif word in ("ENTRYPOINT", "EXPOSE", "STOPSIGNAL", "USER"):
                self.config[word] = words(rest)
            elif word == "HEALTHCHECK":
                self.config[word] = json.loads(rest.partition("CMD ")[2])
            else:
                raise SystemExit(f"unknown instruction: {word}")


def main():
    base, containerfile, context, folder = sys.argv[1:]
    build = Build(base, context, folder)
    with open(containerfile) as file:
        build.follow(file.read())
    print(json.dumps({"root": build.root, **build.config}))


if __name__ == "__main__":
    main()
