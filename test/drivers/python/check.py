# SPDX-License-Identifier: ISC
"""What the programs in Python share: clients that work at once, and a report in TAP.

libpq's variables (PGHOST, PGPORT, PGUSER, PGPASSWORD, PGDATABASE) name the server. DRIVER_MODE is
its kind: transaction, a pooler in transaction mode; session, one in session mode; or direct,
PostgreSQL itself.
"""

import asyncio
import os
import sys
import threading
import traceback

CLIENTS = 6
MODE = os.environ.get("DRIVER_MODE", "transaction")
HAS_SESSION = MODE != "transaction"

# A statement that fails because a table has changed: an error with PostgreSQL and in session mode,
# replayed by the pooler in transaction mode.
HEALS = MODE == "transaction"

_results = []


def record(name, failure=None):
    """Print a check's result, and keep it for the end."""
    _results.append(failure is None)
    words = f"ok {len(_results)} - {name}"
    print(words if failure is None else f"not {words}", flush=True)
    if failure is not None:
        text = "".join(traceback.format_exception(failure))
        print("# " + text.rstrip().replace("\n", "\n# "), flush=True)


def check(name, body, count=CLIENTS):
    """Run body(number) in as many threads as there are clients; all have to succeed."""
    failures = []

    def run(number):
        try:
            body(number)
        except Exception as failure:
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    record(name, failures[0] if failures else None)


async def check_async(name, body, count=CLIENTS):
    """The same for coroutines."""
    results = await asyncio.gather(
        *(body(number) for number in range(count)), return_exceptions=True
    )
    failures = [result for result in results if isinstance(result, BaseException)]
    record(name, failures[0] if failures else None)


def fails(kinds, body):
    """The exception of one of these kinds that body() raises."""
    try:
        body()
    except kinds as failure:
        return failure
    raise AssertionError(f"no {kinds} was raised")


def finish():
    """Print the number of checks, and exit with 0 if all were right."""
    print(f"1..{len(_results)}", flush=True)
    sys.stdout.flush()
    os._exit(0 if _results and all(_results) else 1)
