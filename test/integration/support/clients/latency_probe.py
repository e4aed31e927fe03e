# SPDX-License-Identifier: ISC
"""A client in a process of its own that measures the latency which other clients cause.

Run as a program it sends queries or logs in again and again. Each line on its standard input is a
number of seconds to measure; the answer has the times of everything since the answer before.
"""

import json
import os
import select
import subprocess
import sys
import time

if __name__ == "__main__":
    sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from support.clients.raw import RawClient

# Between two rounds: short enough to notice a stall, long enough to be no load.
PAUSE = 0.002


class Probe:
    """Queries of one established client, or logins; ends with the with-block."""

    def __init__(self, address, what, user="app", database="main", password=""):
        host, port = address
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), host, str(port), what]
            + [user, database, password],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lap()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()

    def lap(self, seconds=0):
        """The times since the last lap and for so long from now on, sorted; at least one."""
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, "the probe was refused or cut off"
        return sorted(json.loads(line))


def share(times, part):
    """The time that this share of all times did not exceed: share(times, 0.99)."""
    return times[min(len(times) - 1, int(len(times) * part))]


def main(host, port, what, user, database, password):
    """Measure until our input ends."""

    def connect():
        return RawClient((host, int(port))).login(user, database, password)

    def log_in():
        connect().leave()

    client = connect()
    action = log_in if what == "logins" else lambda: client.value("SELECT 1")
    times = []
    until = None
    while True:
        began = time.monotonic()
        action()
        times.append(time.monotonic() - began)
        asked, _, _ = select.select([] if until else [sys.stdin], [], [], PAUSE)
        if asked:
            line = sys.stdin.readline()
            if not line:
                return
            until = time.monotonic() + float(line)
        if until and time.monotonic() >= until:
            print(json.dumps(times), flush=True)
            times, until = [], None


if __name__ == "__main__":
    main(*sys.argv[1:])
