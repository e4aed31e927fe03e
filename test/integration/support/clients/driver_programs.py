# SPDX-License-Identifier: ISC
"""The programs of test/drivers: how each is run, and what its report in TAP says.

Python's and Ruby's programs run with Debian's packages. The other programs, and Python's again with
newer packages, are built by test/drivers/build.py in the folder that PGUSHER_TEST_DRIVERS names.
"""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess

import pytest

from support.process import HOST, wait_until

SOURCES = os.path.abspath(
    os.path.join(os.path.dirname(__file__), "..", "..", "..", "drivers")
)
DATABASE = "drivers"
USER = "scram_login"
PASSWORD = "scram secret"
PYTHON = "/usr/bin/python3"
RUBY = "/usr/bin/ruby"
JAVA = ["java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", "classes:packages/*"]


def environment(pooler, mode, **more):
    """Variables that lead libpq and other drivers to the pooler, and name the mode to the programs."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {
        **kept, "PGHOST": HOST, "PGPORT": str(pooler.port), "PGUSER": USER, "PGPASSWORD": PASSWORD,
        "PGDATABASE": DATABASE, "DRIVER_MODE": mode, "PYTHONDONTWRITEBYTECODE": "1", **more,
    }  # fmt: skip


def run(command, pooler, mode, folder, **more):
    """Run a program to its end; returns its output."""
    done = subprocess.run(
        command, cwd=folder, env=environment(pooler, mode, **more), text=True, timeout=140,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout[-6000:]}"
    return done.stdout


def run_checks(command, pooler, mode, folder, **more):
    """Run a driver's program: all its checks pass."""
    printed = run(command, pooler, mode, folder, **more)
    right = re.findall(r"^ok \d+ - ", printed, re.MULTILINE)
    assert right and f"\n1..{len(right)}\n" in printed, printed
    assert "not ok" not in printed, printed


# --- the pooler ---------------------------------------------------------------------------------


@contextlib.contextmanager
def database(cluster):
    """The database that the user of the programs owns."""
    cluster.sql(f"CREATE DATABASE {DATABASE} OWNER {USER}")
    try:
        yield DATABASE
    finally:
        cluster.sql(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def start_pooler(new_pooler, servers, mode="transaction", **settings):
    """Start a daemon with so many servers for the programs, all of which may be pinned."""
    sizes = {"default_pool_size": servers, "max_client_conn": 300, "max_pinned": "100%"}
    pooler = new_pooler(
        {"auth_type": "scram-sha-256", "pool_mode": mode, **sizes, **settings},
        databases={DATABASE: {}, "restored": {}}, auth={USER: PASSWORD, "admin": PASSWORD},
    )  # fmt: skip
    pooler.use_console("admin", PASSWORD)
    return pooler


def wait_gone(pooler, servers):
    """Wait until a program has left no client and no server more than these."""
    wait_until(lambda: not pooler.clients(), 15, "clients to be gone")
    # One more may listen for all clients. PostgreSQL counts a closed one until its process has ended.
    backends = lambda: pooler.cluster.backends(datname=DATABASE)  # noqa: E731
    wait_until(lambda: len(backends()) <= servers + 1, 15, "servers to go")


# --- packages -----------------------------------------------------------------------------------


def debian_program(command, question):
    """A program that needs Debian's packages: a command that succeeds where they are installed."""
    if not os.access(command[0], os.X_OK) or subprocess.run(question, capture_output=True).returncode:
        pytest.skip(f"what {command[1]} needs is not installed: {question[-1]}")
    return command, SOURCES, {}


def builder():
    """The module build.py, which lists the sources of each kit."""
    path = os.path.join(SOURCES, "build.py")
    description = importlib.util.spec_from_file_location("drivers_build", path)
    module = importlib.util.module_from_spec(description)
    description.loader.exec_module(module)
    return module


def kit_folder(kit):
    """The folder of a kit. Skips the test if the kit could not be built."""
    top = os.environ.get("PGUSHER_TEST_DRIVERS")
    if not top:
        pytest.skip("PGUSHER_TEST_DRIVERS names no folder made by test/drivers/build.py")
    try:
        with open(os.path.join(top, kit + ".json")) as file:
            record = json.load(file)
    except OSError:
        pytest.skip(f"build.py has not made {kit}")
    if record["outcome"] == "left out":
        pytest.skip(record["words"])
    assert record["outcome"] == "ready", record["words"]
    if record["sources"] != builder().digest(kit):
        pytest.skip(f"{kit} was made of other sources: run build.py again")
    return os.path.join(top, kit)


def kit_program(kit, command):
    """The command of a kit's program, its folder, and variables that name its packages."""
    folder = kit_folder(kit)
    if not shutil.which(command[0]):
        command = [os.path.join(folder, command[0]), *command[1:]]
    return command, folder, {"PYTHONPATH": os.path.join(folder, "packages")} if kit == "python" else {}
