# SPDX-License-Identifier: ISC
"""A newer libpq than the system's, of the wheel psycopg[binary], in a process of its own.

Run as a program it connects, runs the lines on its standard input and answers each with one line:
SQL with the first column of its rows, `begin SQL` with nothing, `cancel` with the outcome of the
query that was begun.
"""

import json
import os
import subprocess
import sys
import threading

FOLDER = "PGUSHER_TEST_LIBPQ"


def version():
    """The version of the libpq in the folder that $PGUSHER_TEST_LIBPQ names; 0 if there is none."""
    if not os.environ.get(FOLDER):
        return 0
    script = "import psycopg; print(psycopg.pq.version())"
    done = subprocess.run(
        [sys.executable, "-c", script], env=_environment(), text=True, stdout=subprocess.PIPE
    )
    return int(done.stdout) if done.returncode == 0 else 0


def _environment():
    return {**os.environ, "PYTHONPATH": os.environ[FOLDER]}


class Refused(Exception):
    """An error of libpq or of the server."""


class Libpq:
    """One connection; the keywords are libpq's."""

    def __init__(self, **parameters):
        self.process = subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), json.dumps(parameters)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        try:
            # The protocol version as libpq counts: 30002 is 3.2.
            self.protocol = self._answer()
        except Refused:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _answer(self):
        line = self.process.stdout.readline()
        assert line, "the client of libpq ended"
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return answer["value"]

    def ask(self, line):
        """Send a line and return the answer."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self):
        """End it."""
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def _answer_with(function, *arguments):
    try:
        answer = {"value": function(*arguments)}
    except Exception as error:
        answer = {"error": str(error)}
    print(json.dumps(answer), flush=True)


class _Begun:
    """A query in the background, to be cancelled."""

    def __init__(self, connection, sql):
        self.connection = connection
        self.outcome = "finished"
        self.thread = threading.Thread(target=self._run, args=(sql,), daemon=True)
        self.thread.start()

    def _run(self, sql):
        try:
            self.connection.execute(sql)
        except Exception as error:
            self.outcome = getattr(error, "sqlstate", None) or str(error)

    def cancel(self):
        self.connection.cancel_safe(timeout=10)
        self.thread.join(10)
        return self.outcome


def main(parameters):
    """Connect and answer lines until the input ends."""
    import psycopg

    begun = None
    connection = None

    def connect():
        nonlocal connection
        connection = psycopg.connect(autocommit=True, prepare_threshold=None, **parameters)
        return connection.info.full_protocol_version

    def obey(line):
        nonlocal begun
        if line == "cancel":
            return begun.cancel()
        if line.startswith("begin "):
            begun = _Begun(connection, line.removeprefix("begin "))
            return None
        return [str(row[0]) for row in connection.execute(line).fetchall()]

    _answer_with(connect)
    for line in sys.stdin:
        _answer_with(obey, line.rstrip("\n"))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
