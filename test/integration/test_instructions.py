# SPDX-License-Identifier: ISC
"""How many user instructions a transaction takes, counted by callgrind."""

import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "bench"))

import instructions
import rig

from support.servers.pooler import binary

# Of one transaction, by gcc 12 with -O3: in all, and in the program itself without its libraries.
# After a change that is worth its instructions, or that saves some:
#   python3 test/bench/instructions.py build/plain/pgusher
USUAL = {
    ("simple", 50): (3269.5, 2624.2),
    ("simple", 10): (2418.5, 1776.1),
    ("extended", 50): (4114.6, 3404.4),
    ("extended", 10): (3264.8, 2555.3),
    ("prepared", 50): (3825.0, 3156.8),
    ("prepared", 10): (2976.0, 2307.5),
}
# Two runs differ by less than 0.1 %. Libraries depend on the machine: libc has a memcpy for each kind of processor.
MORE = 1.005
MORE_WITH_LIBRARIES = 1.03
LESS = 0.98


def other_build():
    """How the program was built, if not as USUAL holds for; else None."""
    done = subprocess.run(
        ["readelf", "--debug-dump=info", "--dwarf-depth=1", binary()],
        capture_output=True, text=True, check=False,
    )
    producers = set(re.findall(r"DW_AT_producer *: (?:\(.*?\): )?(.*)", done.stdout))
    if not producers:
        return "the program does not tell how it was compiled"
    for each in producers:
        flags = each.split()
        if not re.match(r"GNU C\d+ 12\.", each) or not {"-O3", "-march=x86-64"} <= set(flags):
            return f"compiled by {each}"
        if any(flag.startswith(("-fsanitize", "-flto", "-fprofile", "--coverage")) for flag in flags):
            return f"compiled by {each}"
    return None


@pytest.fixture(scope="module")
def counter():
    """The daemon in callgrind, before the fake server."""
    problem = instructions.why_not() or other_build()
    if problem:
        pytest.skip(problem)
    with rig.Rig() as bench, instructions.counting(bench, binary()) as made:
        yield made


@pytest.mark.alone
@pytest.mark.parametrize("protocol, clients", instructions.CASES)
def test_a_transaction_takes_no_more_instructions_than_before(counter, protocol, clients):
    """50 clients wait for one of 20 servers, 10 have one at once."""
    most, most_own = USUAL[protocol, clients]
    count, count_own = counter.per_transaction(protocol, clients)
    print(f"{count:.1f} in all, {count_own:.1f} in the program; usual {most}, {most_own}")
    assert count_own <= most_own * MORE
    assert count <= most * MORE_WITH_LIBRARIES
    assert count_own >= most_own * LESS, "USUAL is too high for this program"
