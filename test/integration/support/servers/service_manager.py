# SPDX-License-Identifier: ISC
"""A real systemd, pid 1 of namespaces of its own (test/package/root.sh), over this machine's files."""

import os
import shutil
import subprocess
import tempfile

from support.process import run

LIBRARY = os.path.join(os.path.dirname(__file__), "..", "..", "..", "package", "root.sh")


class ServiceManager:
    """systemd, with a network of its own; `shared` is its folder /srv."""

    def __init__(self, shared):
        self.folder = tempfile.mkdtemp(prefix="pgusher-roots.")
        os.chmod(self.folder, 0o755)
        self.root = f"{self.folder}/view"
        self.shared = shared
        self._call("root_view view")

    def place(self, path, content=None, source=None, mode=0o644):
        """Put a file into the view, before or after its start; replaces the file, as dpkg does."""
        base = f"/proc/{self.pid()}/root" if os.path.exists(f"{self.root}.pid") else f"{self.root}.files"
        target = base + path
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if source:
            shutil.copyfile(source, target + ".new")
        else:
            with open(target + ".new", "w") as file:
                file.write(content)
        os.chmod(target + ".new", mode)
        os.rename(target + ".new", target)

    def boot(self):
        self._call('root_boot "$roots/view"')
        # What systemd itself says of a unit stands in the journal too.
        self.run("systemctl", "log-target", "journal")
        return self

    def pid(self):
        """Of systemd, as this machine sees it."""
        with open(f"{self.root}.pid") as file:
            outer = file.read().strip()
        with open(f"/proc/{outer}/task/{outer}/children") as file:
            return int(file.read().split()[0])

    def command(self, *arguments):
        """The command line that runs a command beside systemd."""
        enter = ["nsenter", "--target", str(self.pid()), "--all", "--root", "--wd"]
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        return [*enter, "env", "-i", path, "LC_ALL=C.UTF-8", *arguments]

    def run(self, *arguments, check=True):
        return run(self.command(*arguments), check=check, as_root=True)

    def show(self, unit, name):
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).stdout.strip()

    def journal(self, unit):
        return self.run("journalctl", "--no-pager", "--quiet", "--unit", unit).stdout

    def halt(self):
        self._call('root_halt "$roots/view"')
        if not os.environ.get("PGUSHER_TEST_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, text):
        script = f'. "$0" && roots=$1 root_shared=$2 && {text}'
        # Not a pipe, which what runs in the background would keep open.
        with open(f"{self.folder}/log", "w+") as log:
            done = subprocess.run(
                ["sh", "-c", script, LIBRARY, self.folder, self.shared],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=60, check=False)
            log.seek(0)
            assert done.returncode == 0, log.read()
