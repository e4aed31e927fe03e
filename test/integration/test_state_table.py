# SPDX-License-Identifier: ISC
"""Every kind of session state, made in every way: it stays with its client and reaches no other.

support.session_state.kinds is the table, support.session_state.scenario what is done with a row.
The same table passes against PostgreSQL itself, which proves the values in it.
"""

import os

import pytest

from support.clients.raw import ServerError
from support.session_state import modes, places
from support.session_state.kinds import KINDS, SUPERUSER
from support.session_state.scenario import run

# Every kind with each protocol and each end of its transaction, not only the typical ones.
WHOLE = bool(os.environ.get("PGUSHER_STATE_TABLE"))

# Kinds that do not follow their client yet, or reach another, by name, and why. A kind that passes is
# a failure too, so that its row is removed.
UNNAMED = "the name of the setting is not in the client's words"
ESCAPED = "escapes hide the name of the function"
EXPECTED_FAILURES = {
    "DO with EXECUTE 'SET'": UNNAMED,
    "a FunctionCall of set_config": UNNAMED,
    'SELECT U&"set\\005fconfig"': ESCAPED,
    'SELECT U&"set!005fconfig" UESCAPE': ESCAPED,
}


@pytest.fixture(scope="module")
def direct(state_stage):
    """PostgreSQL itself."""
    place = places.Place((state_stage.host, state_stage.port), state_stage)
    yield place
    place.close()


@pytest.fixture(scope="module")
def pooled(state_stage):
    """The pooler in transaction mode."""
    with places.pooler(state_stage, "transaction") as place:
        yield place


@pytest.fixture(scope="module")
def stated(state_stage):
    """The pooler in statement mode."""
    with places.pooler(state_stage, "statement") as place:
        yield place


MODES = {
    "cleaned": {"session_state": "follow", "max_pinned": 0},
    "pinned and cleaned": {"session_state": "follow", "max_pinned": "50%"},
    "error": {"session_state": "error"},
    "warn": {"session_state": "warn"},
}


@pytest.fixture(scope="module", params=list(MODES))
def moded(request, state_stage):
    """The pooler in transaction mode, with session_state or max_pinned of its own, and its mode."""
    with places.pooler(state_stage, "transaction", **MODES[request.param]) as place:
        place.pooler.allow("session_state is warn")
        yield place, request.param


@pytest.fixture(scope="module")
def ignoring(state_stage):
    """The pooler in transaction mode, with session_state = ignore."""
    with places.pooler(state_stage, "transaction", session_state="ignore") as place:
        yield place


@pytest.fixture
def library(direct):
    """What the kinds of the family `library` load."""
    with direct.client(SUPERUSER) as client:
        try:
            client.query("LOAD 'auto_explain'")
        except ServerError:
            pytest.skip("PostgreSQL has no auto_explain")


ROWS = [pytest.param(kind, number, id=str(kind)) for number, kind in enumerate(KINDS)]


def check(request, place, kind, number, failures):
    if kind.family == "library":
        request.getfixturevalue("library")
    fails = kind.name in failures
    if fails:
        request.applymarker(pytest.mark.xfail(reason=failures[kind.name], strict=True))
    checks, faults = run(place, kind, number, WHOLE, until_fault=fails)
    assert checks and not faults, "\n".join(faults)


@pytest.mark.parametrize("kind, number", ROWS)
def test_state_follows_its_client(request, pooled, kind, number):
    check(request, pooled, kind, number, EXPECTED_FAILURES)


@pytest.mark.parametrize("kind, number", [row for row in ROWS if not row.values[0].in_block])
def test_state_follows_its_client_in_statement_mode(request, stated, kind, number):
    check(request, stated, kind, number, EXPECTED_FAILURES)


TRACKED = [row for row in ROWS if row.values[0].name not in EXPECTED_FAILURES]


def check_mode(place, kind, mode, number):
    row = modes.Row(place, kind, mode, number, WHOLE)
    assert not row.run() and row.checks, "\n".join(row.faults)


@pytest.mark.setting("session_state", "max_pinned")
@pytest.mark.parametrize("kind, number", TRACKED)
def test_state_reaches_no_other_where_it_is_not_kept(request, moded, kind, number):
    if kind.family == "library":
        request.getfixturevalue("library")
    place, mode = moded
    check_mode(place, kind, mode, number)


@pytest.mark.setting("session_state")
@pytest.mark.parametrize(
    "kind, number", [row for row in TRACKED if row.values[0] in modes.kinds_that_follow_everywhere()]
)
def test_what_servers_report_follows_where_state_is_ignored(ignoring, kind, number):
    check_mode(ignoring, kind, "ignore", number)


@pytest.mark.parametrize("kind, number", ROWS)
def test_the_table_is_true_of_postgresql(request, direct, kind, number):
    check(request, direct, kind, number, {})


def test_expected_failures_name_kinds():
    assert set(EXPECTED_FAILURES) <= {kind.name for kind in KINDS}
