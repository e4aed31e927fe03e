# SPDX-License-Identifier: ISC
"""Run the drivers' own tests through pgusher: suites.py [--folder F] [--places P...] [SUITE...]

Each suite is fetched with the language's own client and runs four times: against PostgreSQL,
through pgusher in session mode, through pgusher in transaction mode, where settings and servers
follow their clients, and through PgBouncer in transaction mode, if it is installed. Printed are how
many tests passed, and the names of those that pass in session mode and not in transaction mode.

PGUSHER_BIN names the program. A run takes some minutes and needs what the registries have, so it is
no part of the tests of this tree. Most failures in session mode are those of PostgreSQL too: a suite
expects certain certificates, users or extensions.
"""

import argparse
import contextlib
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as xml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "bench"))

import rig
from support.process import HOST, make_folder, drop_folder
from support.servers.cluster import Cluster

PYTHON = "/usr/bin/python3"
USER = "postgres"
SECONDS = 900
TEST_SECONDS = 30
GO_SECONDS = 180  # for the tests of a package, the first of which that hangs is the last


def run(command, seconds=SECONDS, **options):
    """Run a command; returns its output, also when it fails or has to be ended."""
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=seconds, **options,
        ).stdout  # fmt: skip
    except subprocess.TimeoutExpired as expired:
        return (expired.stdout or b"").decode(errors="replace")


# --- suites -------------------------------------------------------------------------------------


class PythonSuite:
    """Tests of a source distribution, against the built package of the same version."""

    def __init__(self, name, wheel, tests, database=USER, needs=(), options=()):
        self.name = name
        self.wheel = wheel
        self.tests = tests
        self.database = database
        self.needs = needs
        self.options = options

    def fetch(self, folder):
        """Fetch the sources and the built package."""
        pip = [PYTHON, "-m", "pip"]
        if not glob.glob(os.path.join(folder, self.name + "-*.tar.gz")):
            source_only = ["--no-deps", "--no-binary", self.name, "-d", folder]
            run([*pip, "download", "-q", *source_only, self.name])
        (archive,) = glob.glob(os.path.join(folder, self.name + "-*.tar.gz"))
        version = re.search(r"-([\d.]+)\.tar", archive)[1]
        with tarfile.open(archive) as file:
            file.extractall(folder)
        packages = os.path.join(folder, "packages")
        if not os.path.exists(packages):
            run([*pip, "install", "-q", "--target", packages, f"{self.wheel}=={version}",
                 "pytest-timeout", *self.needs])
        # Only the tests: the sources of the package would hide the built one.
        here = os.path.join(folder, "tests-only")
        shutil.rmtree(here, ignore_errors=True)
        os.makedirs(here)
        source = archive[: -len(".tar.gz")]
        shutil.copytree(os.path.join(source, self.tests), os.path.join(here, self.tests))

    def prepare(self, cluster):
        """Nothing but the database."""

    def results(self, folder, environment):
        """The outcome of each test by its name."""
        here = os.path.join(folder, "tests-only")
        report = os.path.join(folder, "report.xml")
        with contextlib.suppress(FileNotFoundError):
            os.remove(report)
        environment["PYTHONPATH"] = os.path.join(folder, "packages")
        command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        command += ["--rootdir", here, *self.options, self.tests]
        command += [f"--timeout={TEST_SECONDS}"]
        command += [f"--junitxml={report}", "-o", "junit_family=xunit1"]
        printed = run(command, cwd=here, env=environment)
        try:
            cases = list(xml.parse(report).iter("testcase"))
        except (FileNotFoundError, xml.ParseError):
            raise SystemExit(printed[-3000:]) from None
        found, words = {}, {}
        for case in cases:
            name = f"{case.get('classname')}.{case.get('name')}"
            kinds = {child.tag: child.get("message") or "" for child in case}
            bad = "failure" in kinds or "error" in kinds
            outcome = "failed" if bad else "skipped" if "skipped" in kinds else "passed"
            if found.get(name) != "failed":
                found[name] = outcome
            if bad:
                words[name] = (kinds.get("failure") or kinds.get("error"))[:300]
        return found, words


class Psycopg2Suite(PythonSuite):
    """psycopg 2. Its test database has hstore."""

    def prepare(self, cluster):
        cluster.ask(self.database, "CREATE EXTENSION hstore")


OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


class GoSuite:
    """Tests of a Go module, from the copy that `go mod download` has made."""

    def __init__(self, name, module, database, setup="", packages=("./...",), environment=None):
        self.name = name
        self.module = module
        self.database = database
        self.setup = setup
        self.packages = packages
        self.environment = environment or (lambda port: {})

    def fetch(self, folder):
        """Copy the module of the version in go.mod, since its folder may not be written to."""
        here = os.path.join(folder, "module")
        if os.path.exists(here):
            return
        said = run(["go", "mod", "download", "-json", self.module], cwd=os.path.join(HERE, "go"))
        source = json.loads(said)["Dir"]
        shutil.copytree(source, here)
        run(["chmod", "-R", "u+w", here])

    def prepare(self, cluster):
        """The extensions and roles that the tests expect."""
        if self.setup:
            cluster.ask(self.database, self.setup)

    def results(self, folder, environment):
        """The outcome of each test and subtest."""
        environment.update(self.environment(environment["PGPORT"]))
        environment["GOFLAGS"] = "-mod=mod"
        here = os.path.join(folder, "module")
        limit = f"-timeout={GO_SECONDS}s"
        command = ["go", "test", "-json", "-count=1", "-p=1", limit, *self.packages]
        printed = run(command, cwd=here, env=environment)
        found, words, said = {}, {}, {}
        for line in printed.splitlines():
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            if "Test" not in event:
                continue
            name = f"{event['Package'].removeprefix(self.module)} {event['Test']}".strip()
            if event["Action"] == "output":
                said[name] = said.get(name, "") + event["Output"]
            elif event["Action"] in ("pass", "fail", "skip"):
                found[name] = OUTCOMES[event["Action"]]
                if event["Action"] == "fail":
                    words[name] = said.get(name, "")[:600]
        if not found:
            raise SystemExit(printed[-3000:])
        return found, words


PGX_SETUP = """
CREATE EXTENSION hstore; CREATE EXTENSION ltree; CREATE DOMAIN uint64 AS numeric(20,0);
CREATE ROLE " tricky, ' } "" \\ test user " SUPERUSER;
"""


def pgx_environment(port):
    # No PGX_TEST_PGBOUNCER_CONN_STRING: its tests are for poolers without prepared statements.
    words = f"host={HOST} port={port} user={USER} dbname=pgx_test"
    return {"PGX_TEST_DATABASE": words, "PGX_TEST_TCP_CONN_STRING": words}


SUITES = [
    PythonSuite("asyncpg", "asyncpg", "tests", needs=("typing_extensions",)),
    Psycopg2Suite("psycopg2", "psycopg2-binary", "tests", "psycopg2_test"),
    PythonSuite("pg8000", "pg8000", "test", needs=("pytz", "pytest-mock", "pytest-benchmark"),
                options=("--benchmark-disable",)),
    GoSuite("pgx", "github.com/jackc/pgx/v5", "pgx_test", PGX_SETUP,
            (".", "./pgconn", "./pgtype", "./pgxpool", "./stdlib"), pgx_environment),
    GoSuite("lib-pq", "github.com/lib/pq", "pqgo", "CREATE EXTENSION hstore", (".", "./hstore")),
]  # fmt: skip


# --- places -------------------------------------------------------------------------------------

SIZES = {"default_pool_size": 20, "max_client_conn": 1000}


def daemon(name, mode, **more):
    """A pooler in this mode, as a context that yields its port."""

    @contextlib.contextmanager
    def start(folder, cluster):
        line = f"* = host={cluster.host} port={cluster.port}"
        users = [f'"{row["rolname"]}" ""' for row in cluster.sql("SELECT rolname FROM pg_roles")
                 if '"' not in row["rolname"]]  # fmt: skip
        made = rig.Daemon(name, folder, None, [line], users, pool_mode=mode, **SIZES, **more)
        made.start()
        try:
            yield made.port
        finally:
            made.stop()

    return start


@contextlib.contextmanager
def direct(_, cluster):
    """PostgreSQL itself."""
    yield cluster.port


PLACES = {
    "PostgreSQL": direct,
    "session": daemon(rig.OURS, "session"),
    "transaction": daemon(rig.OURS, "transaction"),
    "PgBouncer": daemon(rig.THEIRS, "transaction", ignore_startup_parameters="extra_float_digits"),
}


def run_in(place, suite, folder):
    """The results of a suite in one place, which has a PostgreSQL of its own."""
    cluster = Cluster()
    work = make_folder("pgusher-suites-")
    try:
        cluster.sql(f"CREATE ROLE {USER} SUPERUSER LOGIN")
        cluster.sql("CREATE ROLE pqgo SUPERUSER LOGIN")
        if suite.database != "postgres":
            cluster.sql(f"CREATE DATABASE {suite.database}")
        suite.prepare(cluster)
        with PLACES[place](work, cluster) as port:
            environment = {
                **{key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ},
                **{key: value for key, value in os.environ.items() if key.startswith("GO")},
                "PGHOST": HOST, "PGPORT": str(port), "PGUSER": USER, "PGDATABASE": suite.database,
                "PGSSLMODE": "disable",
            }  # fmt: skip
            if suite.name == "lib-pq":
                environment["PGUSER"] = "pqgo"
            return suite.results(folder, environment)
    finally:
        cluster.destroy()
        drop_folder(work)


def print_differences(session, transaction, words):
    """Print what passes in session mode and not in transaction mode, and why."""
    for name, outcome in sorted(session.items()):
        if outcome == "passed" and transaction.get(name) != "passed":
            print(f"  {name}: {transaction.get(name)} {words.get(name, '').strip()[:300]!r}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=os.path.expanduser("~/.cache/pgusher-suites"))
    parser.add_argument("--places", nargs="*", default=list(PLACES), choices=list(PLACES))
    parser.add_argument("suites", nargs="*", default=[suite.name for suite in SUITES])
    chosen = parser.parse_args()
    places = [each for each in chosen.places if each != "PgBouncer" or rig.find_pgbouncer()]
    print("\t".join(["suite", *places]), flush=True)
    for suite in SUITES:
        if suite.name not in chosen.suites:
            continue
        folder = os.path.join(os.path.abspath(chosen.folder), suite.name)
        os.makedirs(folder, exist_ok=True)
        suite.fetch(folder)
        results = {place: run_in(place, suite, folder) for place in places}
        with open(os.path.join(folder, "results.json"), "w") as file:
            json.dump(results, file, indent=1)
        counts = []
        for place in places:
            outcomes = list(results[place][0].values())
            counts.append(f"{outcomes.count('passed')} passed, {outcomes.count('failed')} failed")
        print("\t".join([suite.name, *counts]), flush=True)
        if "session" in places and "transaction" in places:
            print_differences(results["session"][0], *results["transaction"])


if __name__ == "__main__":
    main()
