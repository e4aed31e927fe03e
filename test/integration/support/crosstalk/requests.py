# SPDX-License-Identifier: ISC
"""The requests of clients, each made from a token that no other request has."""

from support import wire
from support.crosstalk.expected_answers import (
    BOUND,
    CLOSED,
    EMPTY,
    PARSED,
    RAISED,
    SUSPENDED,
    Fault,
    Request,
    body,
    done,
    echo,
    head,
    row,
)

# What the requests need in PostgreSQL.
FUNCTIONS = """
CREATE TABLE talk_shape (one int);
INSERT INTO talk_shape VALUES (1);
CREATE FUNCTION talk_fail(token text) RETURNS text LANGUAGE plpgsql AS
	$$BEGIN RAISE EXCEPTION '%', token USING ERRCODE = 'P0777'; END$$;
CREATE FUNCTION talk_notice(token text) RETURNS text LANGUAGE plpgsql AS
	$$BEGIN RAISE NOTICE '%', token; RETURN token; END$$;
"""
DROP_FUNCTIONS = """
DROP TABLE IF EXISTS talk_shape;
DROP FUNCTION IF EXISTS talk_fail(text), talk_notice(text);
"""

# The function reverse(text), for FunctionCall.
REVERSE = 3062


# --- simple -----------------------------------------------------------------------------------


def simple(token, _=None):
    sql = echo(token, f"'{token}'")
    return Request(wire.query(sql), [head(token), row(token), done("SELECT 1")])


def empty(_, __=None):
    return Request(wire.query(""), [EMPTY], harmless=True)


def several(token, draw):
    """Some statements in one query."""
    names = [f"{token}.{number}" for number in range(draw.randint(2, 5))]
    sql = ";".join(echo(name, f"'{name}'") for name in names)
    return Request(
        wire.query(sql),
        [part for name in names for part in (head(name), row(name), done("SELECT 1"))],
    )


def failing(token, draw):
    """An error behind a good statement of the same query."""
    fault = ("E", Fault(RAISED, token))
    if draw.random() < 0.5:
        sql = f"SELECT talk_fail('{token}')"
        return Request(wire.query(sql), [_text_head("talk_fail"), fault])
    sql = f"DO $$BEGIN PERFORM talk_fail('{token}'); END$$"
    return Request(
        wire.query(f"{echo(token, repr(token))};{sql};SELECT 'never'"),
        [head(token), row(token), done("SELECT 1"), fault],
    )


def _text_head(name):
    return ("T", body(wire.row_description(name)))


def noticing(token, _):
    return Request(
        wire.query(f"SELECT talk_notice('{token}')"),
        [_text_head("talk_notice"), ("D", body(wire.data_row(token))), done("SELECT 1")],
        notices=(token,),
    )


def bulky(token, draw):
    """A row larger than the pooler's buffers."""
    count = draw.randint(1, 20000)
    return Request(
        wire.query(f"SELECT repeat('{token}', {count}) AS bulk"),
        [_text_head("bulk"), ("D", body(wire.data_row(token * count))), done("SELECT 1")],
    )


def slow(token, draw):
    """A query that takes a while, so that most cancel requests hit it."""
    seconds = draw.uniform(0.001, 0.03)
    sql = f"SELECT '{token}' AS \"{token}\" FROM pg_sleep({seconds:.4f})"
    return Request(
        wire.query(sql), [_text_head(token), ("D", body(wire.data_row(token))), done("SELECT 1")]
    )


def call(token, _):
    """FunctionCall."""
    said = token[::-1].encode()
    return Request(
        wire.function_call(REVERSE, [token]), [("V", len(said).to_bytes(4, "big") + said)]
    )


def renaming(token, draw):
    """A tracked parameter changes: only this client receives the new value."""
    if draw.random() < 0.5:
        return Request(wire.query(f"SET application_name = '{token}'"), [done("SET")])
    return Request(
        wire.query(f"SELECT set_config('application_name', '{token}', false)"),
        [_text_head("set_config"), ("D", body(wire.data_row(token))), done("SELECT 1")],
    )


# --- extended ---------------------------------------------------------------------------------


def unnamed(token, draw):
    """The unnamed statement, with a text of this client or one that all clients use."""
    label = draw.choice((token, "echo"))
    return Request(
        wire.parse(echo(label, "$1::text")) + wire.bind([token]) + wire.describe()
        + wire.execute() + wire.sync(),
        [PARSED, BOUND, head(label), row(token), done("SELECT 1")],
    )


def portals(token, draw):
    """Two portals, one of which is read in parts."""
    count = draw.randint(3, 9)
    taken = draw.randint(1, count - 1)
    one, two = token + ".one", token + ".two"
    sql = "SELECT $1::text || i AS part FROM generate_series(1, $2::int) i"
    rows = [("D", body(wire.data_row(f"{token}{number + 1}"))) for number in range(count)]
    data = wire.parse(sql)
    data += wire.bind([token, count], portal=one) + wire.bind([token, 1], portal=two)
    data += wire.execute(one, taken) + wire.execute(two) + wire.execute(one)
    data += wire.close("P", two) + wire.sync()
    answer = [PARSED, BOUND, BOUND, *rows[:taken], SUSPENDED, rows[0], done("SELECT 1")]
    return Request(data, [*answer, *rows[taken:], done(f"SELECT {count - taken}"), CLOSED])


def broken_batch(token, draw):
    """An error, the messages before it, and those that it skips."""
    good = wire.parse(echo("echo", "$1::text")) + wire.bind([token]) + wire.execute()
    answer = [PARSED, BOUND, row(token), done("SELECT 1")]
    if draw.random() < 0.5:
        bad = wire.parse(f'SELECT "{token}"')
        answer.append(("E", Fault("42703", f'column "{token}" does not exist')))
    else:
        bad = wire.parse("SELECT talk_fail($1)") + wire.bind([token]) + wire.execute()
        answer += [PARSED, BOUND, ("E", Fault(RAISED, token))]
    return Request(good + bad + good + wire.describe() + wire.close("P", "") + wire.sync(), answer)


def large_parameter(token, draw):
    """A Bind larger than the pooler's buffers."""
    count = draw.randint(1, 5000)
    return Request(
        wire.parse("SELECT md5($1) = md5(repeat($2, $3)), $2")
        + wire.bind([token * count, token, count]) + wire.execute() + wire.sync(),
        [PARSED, BOUND, ("D", body(wire.data_row("t", token))), done("SELECT 1")],
    )


def lone_sync(_, __=None):
    return Request(wire.sync(), [], harmless=True)


def closing_nothing(token, _):
    """Closing a statement that does not exist is no error."""
    batch = wire.close("S", token) + wire.close("P", token) + wire.sync()
    return Request(batch, [CLOSED, CLOSED], harmless=True)


# --- COPY -------------------------------------------------------------------------------------


def copy_out(token, draw):
    count = draw.randint(1, 300)
    sql = f"COPY (SELECT '{token}.' || i FROM generate_series(1, {count}) i) TO STDOUT"
    rows = [("d", f"{token}.{number + 1}\n".encode()) for number in range(count)]
    answer = [("H", None), *rows, ("c", b""), done(f"COPY {count}")]
    if draw.random() < 0.5:
        return Request(wire.query(sql), answer)
    batch = wire.parse(sql) + wire.bind() + wire.execute() + wire.sync()
    return Request(batch, [PARSED, BOUND, *answer])


COPY_IN = "COPY talk_ledger FROM STDIN"


def copy_in(lines, end, answer, draw):
    """Rows for the ledger, sent at once; answer is what follows the CopyInResponse."""
    data = b"".join(wire.copy_data(line) for line in lines)
    if draw.random() < 0.5:
        return Request(wire.query(COPY_IN) + data + end, [("G", None), *answer])
    batch = wire.parse(COPY_IN) + wire.bind() + wire.execute()
    return Request(batch + data + end + wire.sync(), [PARSED, BOUND, ("G", None), *answer])


def copy_failing(token, draw):
    """A COPY that the client fails."""
    fault = Fault("57014", f"COPY from stdin failed: {token}")
    lines = [f"{token}\t1\t2\t0\n".encode()] * draw.randint(0, 30)
    return copy_in(lines, wire.copy_fail(token), [("E", fault)], draw)


def copy_refused(token, draw):
    """A COPY that the server refuses, while the client sends rows."""
    fault = Fault("22P02", f'invalid input syntax for type integer: "{token}"')
    lines = [f"{token}\t1\t2\t0\n".encode()] * draw.randint(0, 30)
    lines += [f"{token}\t1\t2\t{token}\n".encode()] * draw.randint(1, 30)
    return copy_in(lines, wire.copy_done(), [("E", fault)], draw)


# --- transaction blocks -----------------------------------------------------------------------


def begin():
    return Request(wire.query("BEGIN"), [done("BEGIN")], begins=True)


def commit():
    return Request(wire.query("COMMIT"), [done("COMMIT")], ends=True)


def commit_extended():
    batch = wire.parse("COMMIT") + wire.bind() + wire.execute() + wire.sync()
    return Request(batch, [PARSED, BOUND, done("COMMIT")], ends=True)


def rollback():
    return Request(wire.query("ROLLBACK"), [done("ROLLBACK")], ends=True)


ENDINGS = (commit, commit_extended, rollback)

# Requests that leave no state behind: what pipelines and blocks are made of.
ORDINARY = (
    (8, simple),
    (8, unnamed),
    (1, empty),
    (2, several),
    (2, failing),
    (2, noticing),
    (1, bulky),
    (2, slow),
    (1, call),
    (2, portals),
    (3, broken_batch),
    (1, large_parameter),
    (1, lone_sync),
    (1, closing_nothing),
    (1, copy_out),
    (1, copy_failing),
    (1, copy_refused),
    (1, renaming),
)
_WEIGHTS = [weight for weight, _ in ORDINARY]
_MAKERS = [make for _, make in ORDINARY]


def ordinary(token, draw):
    """Any request that changes no data."""
    (make,) = draw.choices(_MAKERS, _WEIGHTS)
    return make(token, draw)
