# SPDX-License-Identifier: ISC
"""User instructions per transaction of programs side by side, as callgrind counts them.

    instructions.py OLD NEW...       paths of pgusher, or `pgbouncer`; each is compared with the first

Transaction mode, a pool of 20 and the fake server. With 50 clients every server is busy and clients
wait for one; with 10 each client has a server at once. A library makes the turns of the event loop
the same in each run (settled.c). Waits are not counted. `own` is without libraries. Two runs differ by
less than 0.1 %.
"""

import argparse
import contextlib
import glob
import mmap
import os
import re
import shutil
import struct
import sys

import rig
from rig import OURS, THEIRS, Rig, Trouble
from support.process import own, wait_until

PROTOCOLS = {"simple": [], "extended": ["-x"], "prepared": ["-X"]}
CASES = [(protocol, clients) for protocol in PROTOCOLS for clients in (50, 10)]
FEW, MANY = 1000, 9000


def why_not():
    """Why instructions cannot be counted here, or None."""
    if not rig.compiler():
        return "no C compiler"
    if not shutil.which("valgrind"):
        return "valgrind is not installed"
    if not os.path.exists("/usr/include/valgrind/callgrind.h"):
        return "callgrind.h is not installed"
    return None


def costs(path):
    """What callgrind has counted, by the path of the program or library."""
    found, names, inside, skip = {}, {}, None, False
    with open(path) as file:
        for line in file:
            if line.startswith("ob="):
                number, name = re.match(r"ob=\((\d+)\)(?: (.*))?", line).groups()
                inside = names.setdefault(number, name)
            elif line.startswith("calls="):
                skip = True  # the next line is the cost of what is called
            elif line[0] in "0123456789+-*":
                if not skip:
                    found[inside] = found.get(inside, 0) + int(line.split()[1])
                skip = False
            elif found_name := re.match(r"cob=\((\d+)\) (.*)", line):
                names.setdefault(*found_name.groups())
    return found


class Counter:
    """One daemon under callgrind."""

    def __init__(self, bench, daemon, shared, out):
        self._bench = bench
        self._daemon = daemon
        self._shared = shared
        self._out = out
        self._dumps = 0
        self._tell(0)
        self._run("-c", 50, "-n", FEW)  # has all servers opened

    def _tell(self, load):
        struct.pack_into("=2i", self._shared, 0, self._bench.fake.pid, load)

    def _run(self, *options):
        self._daemon.load().run("transactions", *options, started=self._tell)
        self._tell(0)

    def _dump(self):
        """What was counted since the last time."""
        self._dumps += 1
        struct.pack_into("=i", self._shared, 8, self._dumps)

        def is_done():
            if self._daemon.process.poll() is not None:
                raise Trouble(f"{self._daemon.name} ended: {self._daemon.log()[-500:]}")
            return struct.unpack_from("=i", self._shared, 12)[0] == self._dumps

        wait_until(is_done, 60, "callgrind to write")
        (path,) = glob.glob(f"{self._out}.{self._dumps}")
        return costs(path)

    def per_transaction(self, protocol, clients):
        """Instructions per transaction: all, and those in the program itself without its libraries."""
        run = ["-c", clients, *PROTOCOLS[protocol]]
        self._run(*run, "-n", FEW)
        self._dump()
        self._run(*run, "-n", FEW)
        few = self._dump()
        self._run(*run, "-n", FEW + MANY)
        many = self._dump()
        each = {name: (many[name] - few.get(name, 0)) / MANY for name in many}
        program = os.path.realpath(self._daemon.program())
        own_ones = [count for name, count in each.items() if name and os.path.realpath(name) == program]
        if not own_ones:
            raise Trouble(f"callgrind counted nothing in {program}: {each}")
        return sum(each.values()), sum(own_ones)


@contextlib.contextmanager
def counting(bench, program):
    """A program under callgrind, to count with."""
    name = THEIRS if os.path.basename(program) == THEIRS else OURS
    library = rig.compile_tool("settled", bench.folder, "-shared", "-fPIC")
    daemon = bench.daemon(name, program=program)
    path, out = (f"{bench.folder}/{kind}.{daemon.port}" for kind in ("settled", "callgrind"))
    with open(path, "wb") as file:
        file.write(bytes(mmap.PAGESIZE))
    own(path)
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), mmap.PAGESIZE) as shared:
        try:
            daemon.start(
                ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"],
                60,
                {"LD_PRELOAD": library, "PGUSHER_SETTLED": path},
            )
            yield Counter(bench, daemon, shared, out)
        finally:
            daemon.stop()


def publish(bench, program):
    """A path of the program that the service user can run."""
    if program == THEIRS:
        return rig.find_pgbouncer() or sys.exit("pgbouncer is not installed")
    folder = os.path.join(bench.folder, f"program{len(os.listdir(bench.folder))}")
    os.mkdir(folder)
    os.chmod(folder, 0o755)
    return shutil.copy(program, os.path.join(folder, OURS))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    parser.add_argument("--protocol", choices=PROTOCOLS, action="append")
    options = parser.parse_args()
    problem = why_not()
    if problem:
        sys.exit(f"nothing was counted: {problem}")
    cases = [case for case in CASES if not options.protocol or case[0] in options.protocol]
    counts = []
    os.environ.setdefault("PGUSHER_BIN", options.programs[0])
    with Rig() as bench:
        for program in options.programs:
            with counting(bench, publish(bench, program)) as counter:
                counts.append([counter.per_transaction(*case) for case in cases])
    for number, program in enumerate(options.programs, 1):
        print(f"{number}: {program}")
    titles = ["instructions per transaction", "1: all", "1: own"]
    for number in range(2, len(counts) + 1):
        titles += [f"{number}: all", f"{number}: own", f"{number} to 1"]
    print("| " + " | ".join(titles) + " |")
    print("| --- |" + " ---: |" * (len(titles) - 1))
    for index, (protocol, clients) in enumerate(cases):
        cells = [f"{protocol}, {clients} clients"]
        for number, each in enumerate(counts):
            cells += [f"{count:.1f}" for count in each[index]]
            cells += [f"{each[index][0] / counts[0][index][0] - 1:+.2%}"] if number else []
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
