# SPDX-License-Identifier: ISC
"""Messages of the frontend/backend protocol: functions that build them, and a reader."""

import struct
from typing import NamedTuple

PROTOCOL_2_0 = 0x00020000
PROTOCOL_3_0 = 0x00030000
PROTOCOL_3_2 = 0x00030002
CANCEL_REQUEST = 80877102
SSL_REQUEST = 80877103
GSSENC_REQUEST = 80877104


class Message(NamedTuple):
    """One message: its type byte and its body."""

    type: str
    body: bytes


def text(value):
    """A string as it is sent, with its final zero."""
    return (value if isinstance(value, bytes) else value.encode()) + b"\0"


def message(kind, body=b""):
    """A typed message."""
    return kind.encode() + struct.pack("!I", len(body) + 4) + body


def untyped(code, body=b""):
    """A startup-style packet."""
    return struct.pack("!II", len(body) + 8, code) + body


def startup(parameters, protocol=PROTOCOL_3_0, terminator=b"\0"):
    """A StartupMessage; parameters is a dict or a list of pairs."""
    pairs = parameters.items() if isinstance(parameters, dict) else parameters
    body = b"".join(text(name) + text(value) for name, value in pairs)
    return untyped(protocol, body + terminator)


def ssl_request():
    return untyped(SSL_REQUEST)


def gssenc_request():
    return untyped(GSSENC_REQUEST)


def cancel_request(key):
    """key is the whole body of BackendKeyData."""
    return untyped(CANCEL_REQUEST, key)


# Frontend

def query(sql):
    return message("Q", text(sql))


def parse(sql, name="", types=()):
    return message(
        "P", text(name) + text(sql) + struct.pack("!H", len(types)) + b"".join(
            struct.pack("!I", oid) for oid in types
        )
    )


def bind(values=(), statement="", portal="", result_formats=()):
    body = text(portal) + text(statement) + struct.pack("!H", 0)
    body += struct.pack("!H", len(values))
    for value in values:
        if value is None:
            body += struct.pack("!i", -1)
        else:
            data = value if isinstance(value, bytes) else str(value).encode()
            body += struct.pack("!i", len(data)) + data
    body += struct.pack("!H", len(result_formats))
    body += b"".join(struct.pack("!H", code) for code in result_formats)
    return message("B", body)


def describe(kind="P", name=""):
    return message("D", kind.encode() + text(name))


def execute(portal="", rows=0):
    return message("E", text(portal) + struct.pack("!I", rows))


def close(kind, name):
    return message("C", kind.encode() + text(name))


def sync():
    return message("S")


def flush():
    return message("H")


def extended(sql, values=()):
    """Parse, Bind, Describe, Execute of the unnamed statement, without a Sync."""
    return parse(sql) + bind(values) + describe() + execute()


def function_call(oid, arguments):
    """FunctionCall with text arguments and a text result."""
    body = struct.pack("!IH", oid, 0) + struct.pack("!H", len(arguments))
    for argument in arguments:
        data = str(argument).encode()
        body += struct.pack("!i", len(data)) + data
    return message("F", body + struct.pack("!H", 0))


def copy_data(data):
    return message("d", data)


def copy_done():
    return message("c")


def copy_fail(reason="no more"):
    return message("f", text(reason))


def password(secret):
    return message("p", text(secret))


def terminate():
    return message("X")


# Backend

def authentication(code, body=b""):
    return message("R", struct.pack("!I", code) + body)


def parameter_status(name, value):
    return message("S", text(name) + text(value))


def backend_key(pid, secret):
    return message("K", struct.pack("!I", pid) + secret)


def ready(status="I"):
    return message("Z", status.encode())


def fields(**values):
    """The body of an ErrorResponse or NoticeResponse: S=..., C=..., M=..."""
    return b"".join(name.encode() + text(value) for name, value in values.items()) + b"\0"


def error(sqlstate="XX000", said="went wrong", severity="ERROR"):
    return message("E", fields(S=severity, V=severity, C=sqlstate, M=said))


def notice(said, sqlstate="00000"):
    return message("N", fields(S="NOTICE", V="NOTICE", C=sqlstate, M=said))


def row_description(*names):
    body = struct.pack("!H", len(names))
    for name in names:
        body += text(name) + struct.pack("!IHIhih", 0, 0, 25, -1, -1, 0)
    return message("T", body)


def data_row(*values):
    body = struct.pack("!H", len(values))
    for value in values:
        if value is None:
            body += struct.pack("!i", -1)
        else:
            data = value if isinstance(value, bytes) else str(value).encode()
            body += struct.pack("!i", len(data)) + data
    return message("D", body)


def command_complete(tag):
    return message("C", text(tag))


def one_row(value, tag="SELECT 1", name="value", status="I"):
    """A whole answer to a simple query."""
    return row_description(name) + data_row(value) + command_complete(tag) + ready(status)


# Reading

class Column(NamedTuple):
    """One column of a RowDescription."""

    name: str
    table: int
    number: int
    type: int
    length: int
    modifier: int
    format: int


def read_columns(body):
    """The columns of a RowDescription."""
    (count,) = struct.unpack_from("!H", body)
    at = 2
    columns = []
    for _ in range(count):
        end = body.index(b"\0", at)
        name = body[at:end].decode()
        columns.append(Column(name, *struct.unpack_from("!IhIhih", body, end + 1)))
        at = end + 19
    assert at == len(body), "RowDescription has bytes left over"
    return columns


def read_row(body):
    """The values of a DataRow, as text; None is NULL."""
    (count,) = struct.unpack_from("!H", body)
    at = 2
    values = []
    for _ in range(count):
        (length,) = struct.unpack_from("!i", body, at)
        at += 4
        if length < 0:
            values.append(None)
        else:
            values.append(body[at:at + length].decode("utf-8", "surrogateescape"))
            at += length
    assert at == len(body), "DataRow has bytes left over"
    return tuple(values)


def read_bound(body):
    """The values of a Bind, as text."""
    rest = body.split(b"\0", 2)[2]
    (formats,) = struct.unpack_from("!H", rest)
    at = 2 + 2 * formats
    (count,) = struct.unpack_from("!H", rest, at)
    at += 2
    values = []
    for _ in range(count):
        (length,) = struct.unpack_from("!I", rest, at)
        values.append(rest[at + 4 : at + 4 + length].decode())
        at += 4 + length
    return values


def read_fields(body):
    """The fields of an ErrorResponse or NoticeResponse, by letter, in order."""
    assert body.endswith(b"\0"), "fields are not terminated"
    found = {}
    for part in body[:-1].split(b"\0")[:-1]:
        found[chr(part[0])] = part[1:].decode("utf-8", "surrogateescape")
    return found


def read_pairs(body):
    """Zero-terminated names and values, as in StartupMessage and ParameterStatus."""
    parts = [part.decode("utf-8", "surrogateescape") for part in body.split(b"\0")]
    return [(name, value) for name, value in zip(parts[0::2], parts[1::2]) if name]


def split(data):
    """All whole typed messages in data, and the bytes left over."""
    messages = []
    at = 0
    while len(data) - at >= 5:
        (length,) = struct.unpack_from("!I", data, at + 1)
        if len(data) - at < 1 + length:
            break
        messages.append(Message(chr(data[at]), data[at + 5:at + 1 + length]))
        at += 1 + length
    return messages, data[at:]
