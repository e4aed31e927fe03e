# SPDX-License-Identifier: ISC
"""Many clients on three servers, each with session state of its own: none sees that of another.

To run longer, or to repeat a failure with the seed that it printed: PGUSHER_STATE_SOAK seconds,
PGUSHER_STATE_SEED, PGUSHER_STATE_CLIENTS.
"""

import os

import pytest

from support.servers.pooler import is_sanitized
from support.session_state import places, soak

# Families of state that do not follow their client yet, and why.
ASKED = "the RESET ALL of a question, or of a pinned client, takes the settings of its start"
NOT_YET = {
    "temporary": ASKED,
    "locks": ASKED,
    "cursors": ASKED,
    "channels": ASKED,
    "prepared": "a statement prepared by SQL pins, and is lost beyond max_pinned",
}

SECONDS = float(os.environ.get("PGUSHER_STATE_SOAK", 5))
SEED = os.environ.get("PGUSHER_STATE_SEED")
CLIENTS = int(os.environ.get("PGUSHER_STATE_CLIENTS", 20))


@pytest.fixture(scope="module")
def stage(shared_cluster):
    """PostgreSQL with the roles of the table."""
    shared_cluster.clear()
    with places.objects(shared_cluster):
        yield shared_cluster


def mix(address, **more):
    return soak.Mix(
        address=address,
        seed=SEED or os.urandom(4).hex(),
        clients=CLIENTS,
        seconds=SECONDS,
        patience=120 if is_sanitized() else 40,
        families=tuple(each for each in soak.FAMILIES if each not in NOT_YET),
        **more,
    )


@pytest.fixture
def new_mix(new_pooler, stage):
    """The mix for a pooler with so many servers: new_mix(servers, max_pinned, **more of the mix)."""

    def make(servers, max_pinned="50%", **more):
        pooler = new_pooler({
            "pool_mode": "transaction",
            "default_pool_size": servers,
            "max_pinned": max_pinned,
            "query_wait_notify": 0,
        })
        return mix(pooler.address, **more)

    return make


def assert_all_was_done(counts):
    for each in ("transactions", "observations", "killed in a transaction", "DISCARD ALL", "RESET ALL"):
        assert counts[each] > 0, (each, counts)


@pytest.mark.once
def test_no_client_sees_the_state_of_another(new_mix):
    assert_all_was_done(soak.run(new_mix(3)))


@pytest.mark.once
def test_no_client_loses_its_state_where_there_are_servers_enough(new_mix):
    assert_all_was_done(soak.run(new_mix(2 * CLIENTS, "100%", keeps_pinned=True)))


@pytest.mark.once
def test_the_soak_is_true_of_postgresql(stage):
    counts = soak.run(mix((stage.host, stage.port), keeps_pinned=True))
    assert_all_was_done(counts)
