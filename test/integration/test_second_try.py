# SPDX-License-Identifier: ISC
"""The plugin that gives failed tests a second try: support/second_try.py."""

import os
import re
import subprocess
import sys

import pytest

TESTS = '''
import os
import pytest

def first_time(name):
    try:
        os.close(os.open(name, os.O_CREAT | os.O_EXCL))
        return True
    except FileExistsError:
        return False

def test_good(): pass
def test_slow(): assert not first_time("slow"), "was slow"
def test_bad(): assert first_time("bad") is None

@pytest.fixture
def fixture(): assert not first_time("fixture"), "was not ready"
def test_fixture(fixture): pass

@pytest.mark.once
def test_once(): assert not first_time("once")
'''


@pytest.mark.parametrize("workers", ["0", "2"])
def test_a_failed_test_runs_twice_and_is_named_if_it_passes_then(tmp_path, workers):
    (tmp_path / "test_tries.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    once: no second try\n")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTHONPATH": os.path.dirname(__file__),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "support.second_try", "-p", "no:cacheprovider"]
        + ["-n", workers, "-rf"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert re.search(r"\b2 failed, 3 passed\b", done.stdout), done.stdout
    assert sorted(re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.M)) == ["test_bad", "test_once"]
    assert sorted(re.findall(r"^RETRIED \S+::(\w+) \(.+\)$", done.stdout, re.M)) == [
        "test_fixture",
        "test_slow",
    ]
