# SPDX-License-Identifier: ISC
"""Every kind of session state, made in every way: it stays with its client and reaches no other.

support.session_state.kinds is the table, support.session_state.scenario what is done with a row.
The same table passes against PostgreSQL itself, which proves the values in it.
"""

import pytest

from support.session_state import places
from support.session_state.kinds import KINDS, PROTOCOLS
from support.session_state.scenario import run

# Kinds that do not follow their client yet, by name, and why.
EXPECTED_FAILURES = {
}


@pytest.fixture(scope="module")
def stage(shared_cluster):
    """PostgreSQL with the objects of the table."""
    shared_cluster.clear()
    with places.objects(shared_cluster):
        yield shared_cluster


@pytest.fixture(scope="module")
def direct(stage):
    """PostgreSQL itself."""
    place = places.Place((stage.host, stage.port), stage)
    yield place
    place.close()


@pytest.fixture(scope="module")
def pooled(stage):
    """The pooler in transaction mode."""
    with places.pooler(stage, "transaction") as place:
        yield place


@pytest.fixture(scope="module")
def stated(stage):
    """The pooler in statement mode."""
    with places.pooler(stage, "statement") as place:
        yield place


def rows(protocols):
    """The kinds and protocols that go together."""
    return [
        pytest.param(kind, protocol, id=f"{kind} by {protocol}")
        for kind in KINDS
        for protocol in protocols
        if protocol in kind.protocols
    ]


def expected(kind):
    return EXPECTED_FAILURES.get(kind.name)


@pytest.mark.parametrize("kind, protocol", rows(PROTOCOLS))
def test_state_follows_its_client(request, pooled, kind, protocol):
    if expected(kind):
        request.applymarker(pytest.mark.xfail(reason=expected(kind), strict=True))
    checks, faults = run(pooled, kind, protocol)
    assert checks and not faults, "\n".join(faults)


@pytest.mark.parametrize("kind, protocol", rows(PROTOCOLS))
def test_the_table_is_true_of_postgresql(direct, kind, protocol):
    checks, faults = run(direct, kind, protocol)
    assert checks and not faults, "\n".join(faults)
