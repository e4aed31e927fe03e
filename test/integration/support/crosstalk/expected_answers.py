# SPDX-License-Identifier: ISC
"""Requests and the exact answers that their client must receive.

An answer is a list of (type, body). A body is the bytes that must come, a function that makes them
from the client's parameters, a Fault, or None where the type is enough.
"""

from typing import NamedTuple

from support import wire

TEXT = 25


class Fault(NamedTuple):
    """An ErrorResponse."""

    sqlstate: str
    text: str


class Request(NamedTuple):
    """One request and its answer, without the ReadyForQuery."""

    data: bytes
    answer: list
    notices: tuple = ()
    begins: bool = False  # begins a transaction block
    ends: bool = False  # ends a transaction block
    harmless: bool = False  # is allowed in a failed transaction block


def body(message):
    """The body of one message that a function of support.wire has made."""
    return message[5:]


# Parameters that servers report to their client, and some that they do not.
SETTINGS = (
    "current_setting('application_name') AS app, current_setting('TimeZone') AS zone, concat_ws('/',"
    " current_setting('search_path'), current_setting('statement_timeout'), current_setting('work_mem'))"
    " AS quiet"
)
# The values of the latter where the client has not asked for others.
QUIET = {"search_path": '"$user", public', "statement_timeout": "0", "work_mem": "4MB"}


def echo(label, value):
    """SQL that returns a value in a column of this name, and the parameters in force."""
    return f'SELECT {value} AS "{label}", {SETTINGS}'


def head(label):
    return ("T", body(wire.row_description(label, "app", "zone", "quiet")))


def row(value):
    """The row that echo() must return to this client."""

    def tell(parameters):
        quiet = "/".join(parameters[name] for name in QUIET)
        return body(wire.data_row(value, parameters["application_name"], parameters["TimeZone"], quiet))

    return ("D", tell)


def done(tag):
    return ("C", body(wire.command_complete(tag)))


PARSED, BOUND, CLOSED = ("1", b""), ("2", b""), ("3", b"")
NO_DATA, SUSPENDED, EMPTY = ("n", b""), ("s", b""), ("I", b"")
DESCRIBED = ("t", (1).to_bytes(2, "big") + TEXT.to_bytes(4, "big"))
RAISED = "P0777"
