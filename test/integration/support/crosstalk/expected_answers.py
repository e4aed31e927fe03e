# SPDX-License-Identifier: ISC
"""What exactly a client must hear: one phrase is one request up to its ReadyForQuery.

An answer is a list of (type, body). A body is the bytes that must come, a function that makes them
of what the asker was told of its parameters, a Fault, or None where the type says enough.
"""

from typing import NamedTuple

from support import wire

TEXT = 25


class Fault(NamedTuple):
    """An ErrorResponse."""

    sqlstate: str
    text: str


class Phrase(NamedTuple):
    """One request and its answer, without the ReadyForQuery."""

    data: bytes
    answer: list
    notices: tuple = ()
    begins: bool = False  # a transaction block
    ends: bool = False  # one
    harmless: bool = False  # is no error in a transaction block that has failed


def body(message):
    """The body of one message that a function of support.wire has made."""
    return message[5:]


# Settings that are told to their client, and some that nobody is told of.
SETTINGS = (
    "current_setting('application_name') AS app, current_setting('TimeZone') AS zone, concat_ws('/',"
    " current_setting('search_path'), current_setting('statement_timeout'), current_setting('work_mem'))"
    " AS quiet"
)
# The values of the quiet ones where nobody has asked for others.
QUIET = {"search_path": '"$user", public', "statement_timeout": "0", "work_mem": "4MB"}


def echo(label, value):
    """SQL that tells a value under a name, and whose settings hold."""
    return f'SELECT {value} AS "{label}", {SETTINGS}'


def head(label):
    return ("T", body(wire.row_description(label, "app", "zone", "quiet")))


def row(value):
    """The row that echo() must give to its asker, and to nobody else."""

    def tell(told):
        quiet = "/".join(told[name] for name in QUIET)
        return body(wire.data_row(value, told["application_name"], told["TimeZone"], quiet))

    return ("D", tell)


def done(tag):
    return ("C", body(wire.command_complete(tag)))


PARSED, BOUND, CLOSED = ("1", b""), ("2", b""), ("3", b"")
NO_DATA, SUSPENDED, EMPTY = ("n", b""), ("s", b""), ("I", b"")
DESCRIBED = ("t", (1).to_bytes(2, "big") + TEXT.to_bytes(4, "big"))
RAISED = "P0777"
