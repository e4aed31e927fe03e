# SPDX-License-Identifier: ISC
"""A HAProxy in front of daemons."""

import contextlib
import os
import re
import socket
import subprocess

from support.process import HOST, as_service, drop_folder, free_port, make_folder, own, wait_until

PROGRAM = "/usr/sbin/haproxy"
STATISTICS = """
global
    stats socket {folder}/stats mode 600
"""


class HaProxy:
    """A running HAProxy."""

    def __init__(self, config):
        """Start it with this configuration."""
        self.folder = make_folder("pgusher-haproxy-")
        # These need root.
        text = re.sub(r"^ *(user|group|log /dev/log) .*\n", "", config, flags=re.M)
        self.config = os.path.join(self.folder, "haproxy.cfg")
        with open(self.config, "w") as file:
            file.write(text + STATISTICS.format(folder=self.folder))
        own(self.config)
        self.log_path = os.path.join(self.folder, "log")
        self.stats_path = os.path.join(self.folder, "stats")
        with open(self.log_path, "wb") as log:
            own(self.log_path)
            self.process = subprocess.Popen(
                as_service([PROGRAM, "-db", "-f", self.config]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def wait_up(self, *ports):
        """Wait until it listens on these ports."""
        wait_until(lambda: self._is_up(ports), 20, "HAProxy to listen")
        return self

    def _is_up(self, ports):
        with open(self.log_path) as log:
            assert self.process.poll() is None, log.read()
        return os.path.exists(self.stats_path) and all(map(self._listens, ports))

    def _listens(self, port):
        with contextlib.suppress(OSError):
            # A port that is bound already is in use, and no connection is made.
            with socket.socket() as probe:
                probe.bind((HOST, port))
            return False
        return True

    def servers(self):
        """The state of each server, such as `UP` or `DOWN`, by its name."""
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(self.stats_path)
            client.sendall(b"show stat\n")
            with client.makefile() as answer:
                lines = [row.split(",") for row in answer.read().splitlines() if row]
        names = lines[0]
        rows = [dict(zip(names, row)) for row in lines[1:]]
        return {row["svname"]: row["status"] for row in rows if row["svname"] not in ("FRONTEND", "BACKEND")}

    def destroy(self):
        """Stop it and remove everything."""
        self.process.kill()
        self.process.wait()
        drop_folder(self.folder)
