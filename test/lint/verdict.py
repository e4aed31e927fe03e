# SPDX-License-Identifier: ISC
"""The verdict of test/run.sh (test/verdict.sh): the budget of retries, and what was not checked."""

import subprocess
import tempfile

from report import TOP, verdict

BUDGET = 6


def close(commands, log=""):
    """Run commands of test/verdict.sh and close_run: the lines that it prints, and its exit status."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/log", "w", encoding="utf-8") as file:
            file.write(log)
        script = f'say() {{ printf "%s\\n" "$*"; }}\nnotes={folder} log={folder}/log\n. "$1"\n{commands}\nclose_run'
        done = subprocess.run(
            ["sh", "-eu", "-c", script, "sh", str(TOP / "test/verdict.sh")],
            capture_output=True,
            text=True,
            check=False,
        )
    return done.stdout.splitlines() + done.stderr.splitlines(), done.returncode


def retries(count):
    """What pytest prints of so many tests that passed at their second try."""
    return "".join(f"RETRIED test_a.py::test_{number} (too slow)\n" for number in range(count))


def differs(found, lines, status):
    """The fault, if what was found is not this."""
    return [] if found == (lines, status) else [f"{found}, not {(lines, status)}"]


def retried(count):
    """The verdict on ten tests, so many of which passed at their second try, in two stages."""
    stages = "collect_retries plain $log; collect_retries sanitize /dev/null; add_result 6 0; add_result 4 0"
    return close(stages, "noise\n" + retries(count))


def listed(count):
    """The lines that name the tests which needed a second try."""
    names = [f"plain: test_a.py::test_{number} (too slow)" for number in range(count)]
    return ["Passed only at the second try:", *names]


OVER = f"More than {BUDGET} tests needed a second try: 1 of them count as failed"
SKIPPED_LINT = (
    "PASS: test/lint/words.py 1 - no line ends in blanks\n"
    "SKIP: test/lint/format.py 1 - C files are laid out as .clang-format says # SKIP no clang-format 14\n"
)
NOT_CHECKED = [
    "Not checked: tests against PostgreSQL 18",
    "Not checked: test/lint/format.py: no clang-format 14",
]

verdict(
    ("a run without retries passes", differs(retried(0), ["10 passed, 0 failed"], 0)),
    (
        "retries within the budget are named, and the run passes",
        differs(retried(BUDGET), [*listed(BUDGET), "10 passed, 0 failed"], 0),
    ),
    (
        "one retry above the budget fails the run",
        differs(retried(BUDGET + 1), [*listed(BUDGET + 1), OVER, "9 passed, 1 failed"], 1),
    ),
    ("a failed test fails the run", differs(close("add_result 9 1"), ["9 passed, 1 failed"], 1)),
    ("a run that tested nothing fails", differs(close(":"), ["0 passed, 0 failed"], 1)),
    (
        "what was skipped is named once, before the last line",
        differs(
            close(
                "add_result 10 0; not_checked tests against PostgreSQL 18\n"
                "collect_skipped_lints $log; collect_skipped_lints $log",
                SKIPPED_LINT,
            ),
            [*NOT_CHECKED, "10 passed, 0 failed"],
            0,
        ),
    ),
)
