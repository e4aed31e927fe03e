# SPDX-License-Identifier: ISC
"""Many clients on few servers, each with session state of its own: none sees that of another.

To run longer, or to repeat a failure with the seed that it printed: PGUSHER_STATE_SOAK seconds,
PGUSHER_STATE_SEED, PGUSHER_STATE_CLIENTS.
"""

import os

import pytest

from support.servers.pooler import is_sanitized
from support.session_state import places, soak
from support.session_state.soak_trouble import Trouble

SECONDS = float(os.environ.get("PGUSHER_STATE_SOAK", 5))
SEED = os.environ.get("PGUSHER_STATE_SEED")
CLIENTS = int(os.environ.get("PGUSHER_STATE_CLIENTS", 20))


def mix(address, **more):
    return soak.Mix(
        address=address,
        seed=SEED or os.urandom(4).hex(),
        clients=CLIENTS,
        seconds=SECONDS,
        patience=120 if is_sanitized() else 20,
        **more,
    )


@pytest.fixture
def new_soaked(new_pooler, state_stage):
    """A pooler with so many servers, and its mix: new_soaked(servers, max_pinned, **more of the mix)."""

    def make(servers, max_pinned, **more):
        pooler = new_pooler({
            "pool_mode": "transaction",
            "default_pool_size": servers,
            "max_pinned": max_pinned,
            "query_wait_notify": 0,
        }, cluster=state_stage)
        return pooler, mix(pooler.address, **more)

    return make


DONE = ("transactions", "observations", "killed in a transaction", "killed in a COPY",
        "killed while the server was asked", *soak.FAMILIES)


def assert_all_was_done(counts, *more):
    print(dict(counts))
    for each in (*DONE, *more):
        assert counts[each] > 0, (each, counts)


@pytest.mark.once
@pytest.mark.parametrize("max_pinned", [0, 1, "50%"])
def test_no_client_sees_the_state_of_another(new_soaked, max_pinned):
    _, some = new_soaked(4, max_pinned)
    assert_all_was_done(soak.run(some), "warned")


@pytest.mark.once
def test_no_client_loses_its_state_where_there_are_servers_enough(new_soaked):
    _, some = new_soaked(2 * CLIENTS, "100%", keeps_pinned=True)
    assert_all_was_done(soak.run(some), "heard")


@pytest.mark.once
def test_no_client_sees_the_state_of_another_in_trouble(new_soaked, state_stage):
    pooler, some = new_soaked(4, 2)
    some.trouble = Trouble(pooler, state_stage)
    counts = soak.run(some)
    assert_all_was_done(counts, "warned", "troubled")


@pytest.mark.once
def test_the_soak_is_true_of_postgresql(state_stage):
    assert_all_was_done(soak.run(mix((state_stage.host, state_stage.port), keeps_pinned=True)), "heard")
