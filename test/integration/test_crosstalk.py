# SPDX-License-Identifier: ISC
"""No client receives what belongs to another, waits without end, or loses a committed write.

To run longer, or to repeat a failure with the seed that it printed: PGUSHER_CROSSTALK_SECONDS,
PGUSHER_CROSSTALK_CLIENTS, PGUSHER_CROSSTALK_SEED.
"""

import asyncio
import os
import socket

import pytest

from support import wire
from support.clients.async_client import AsyncClient, NothingReceived
from support.crosstalk import expected_answers, requests, runner, transfers
from support.crosstalk.activities import MODES
from support.crosstalk.answer_check import WrongAnswer
from support.crosstalk.client import Client, Ended
from support.crosstalk.runner import Mix, Run, environment_value
from support.crosstalk.transfers import Ledger
from support.process import HOST
from support.servers.pooler import is_sanitized
from support.wire import Message

SERVERS = 5


@pytest.mark.once
@pytest.mark.parametrize("mode", MODES)
def test_no_client_receives_what_belongs_to_another(new_pooler, stage, mode):  # F21, F24, F35, F42, F44
    pooler = new_pooler({
        "pool_mode": mode,
        "default_pool_size": SERVERS,
        "max_client_conn": 2000,
        "query_wait_notify": 0,
    })
    mix = Mix(
        address=pooler.address,
        postgres=(stage.host, stage.port),
        mode=mode,
        seed=environment_value("SEED", os.urandom(4).hex()),
        clients=environment_value("CLIENTS", 200),
        seconds=environment_value("SECONDS", 8.0),
        patience=120 if is_sanitized() else 40,
    )
    found = runner.run(mix)
    assert found.missing() == []
    for each in ("kills", "ended", "vanished", "cancels", "canceled", "alterations"):
        assert found.counts[each] > 0, each
    pooler.wait_pool(sv_active=0, cl_active=0, cl_waiting=0)
    found.ledger.check(stage, "main")
    assert found.ledger.count(transfers.COMMITTED) > found.ledger.count(transfers.UNKNOWN)
    assert pooler.client().value("SELECT 'served'") == "served"


# --- the check itself detects these faults ----------------------------------------------------


@pytest.fixture
def client():
    """A client that has logged in; the test makes up its answers."""
    client = Client(Run(Mix((HOST, 0), None, "transaction", "seed")), 7)
    client.parameters = {**expected_answers.QUIET, "application_name": "7/1", "TimeZone": "UTC"}
    client.status = "I"
    return client


def answer(*bodies):
    """Messages of a type letter and a body each."""
    return [Message(kind, body) for kind, body in bodies]


def data_row(*values):
    return ("D", expected_answers.body(wire.data_row(*values)))


QUIET = "/".join(expected_answers.QUIET.values())
HEAD = expected_answers.head("c7.1")
OWN_ROW = data_row("c7.1", "7/1", "UTC", QUIET)
DONE = expected_answers.done("SELECT 1")
CANCELED = ("E", wire.fields(S="ERROR", C="57014", M="canceling statement due to user request"))


def test_the_own_answer_is_right(client):
    assert client.check(requests.simple("c7.1"), answer(HEAD, OWN_ROW, DONE)) == (True, False)


@pytest.mark.parametrize("received", [
    pytest.param([HEAD, data_row("c8.1", "7/1", "UTC", QUIET), DONE], id="row"),
    pytest.param([expected_answers.head("c8.1"), OWN_ROW, DONE], id="columns"),
    pytest.param([HEAD, data_row("c7.1", "8/1", "UTC", QUIET), DONE], id="name"),
    pytest.param([HEAD, data_row("c7.1", "7/1", "Asia/Tokyo", QUIET), DONE], id="zone"),
    pytest.param([HEAD, data_row("c7.1", "7/1", "UTC", "schema1" + QUIET), DONE], id="path"),
    pytest.param([HEAD, OWN_ROW, OWN_ROW, DONE], id="row twice"),
    pytest.param([HEAD, DONE], id="no row"),
    pytest.param([HEAD, OWN_ROW], id="no end"),
    pytest.param([HEAD, OWN_ROW, DONE, DONE], id="two ends"),
    pytest.param([HEAD, ("N", wire.fields(S="NOTICE", M="c8.1")), OWN_ROW, DONE], id="notice"),
    pytest.param([HEAD, OWN_ROW, DONE, ("S", b"application_name\0c8.1\0")], id="parameter"),
    pytest.param([HEAD, OWN_ROW, DONE, ("A", b"\0\0\0\1channel8\0c8.1\0")], id="notification"),
    pytest.param([HEAD, CANCELED], id="cancel"),
    pytest.param([("E", wire.fields(S="ERROR", C="P0777", M="c8.1"))], id="error"),
])
def test_the_answer_of_another_client_is_wrong(client, received):
    with pytest.raises(WrongAnswer):
        client.check(requests.simple("c7.1"), answer(*received))


def test_a_cancel_request_ends_its_own_query_and_no_other(client):
    client.cancels = 1
    assert client.check(requests.simple("c7.1"), answer(HEAD, CANCELED)) == (False, True)
    with pytest.raises(WrongAnswer):
        client.check(requests.simple("c7.1"), answer(HEAD, CANCELED))


@pytest.mark.parametrize("sent, before, status, lawful", [
    (requests.simple("c7.1"), "I", "I", True),
    (requests.simple("c7.1"), "I", "T", False),
    (requests.simple("c7.1"), "T", "I", False),
    (requests.begin(), "I", "T", True),
    (requests.begin(), "I", "I", False),
    (requests.commit(), "T", "I", True),
    (requests.commit(), "T", "T", False),
])
def test_an_unexpected_transaction_status_is_noticed(client, sent, before, status, lawful):
    client.status = before
    if lawful:
        client.check_status(sent, status, True, False)
        assert client.status == status
    else:
        with pytest.raises(WrongAnswer):
            client.check_status(sent, status, True, False)


def test_a_lost_connection_needs_a_terminated_server(client):
    (fatal,) = answer(("E", wire.fields(S="FATAL", C="57P01", M="terminating connection")))
    with pytest.raises(WrongAnswer):
        client.end(fatal, "error")
    client.run.counts.update(kills=2)
    with pytest.raises(Ended):
        client.end(fatal, "error")
    with pytest.raises(WrongAnswer):
        client.end(fatal, "error")


def test_an_answer_that_does_not_come_is_noticed():
    async def wait():
        connection = await AsyncClient.connect(listener.getsockname(), patience=0.1)
        try:
            await connection.read()
        finally:
            connection.close()

    with socket.create_server((HOST, 0)) as listener, pytest.raises(NothingReceived):
        asyncio.run(wait())


@pytest.mark.parametrize("committed, count, lawful", [
    (True, 1, True), (True, 0, False), (True, 2, False),
    (False, 0, True), (False, 1, False),
    (None, 0, True), (None, 1, True), (None, 2, False),
])
def test_the_ledger_is_exact(committed, count, lawful):
    ledger = Ledger()
    ledger.start("c1.1")
    if committed is not None:
        ledger.settle("c1.1", committed)
    assert (list(ledger.faults({"c1.1": count} if count else {})) == []) is lawful


def test_rows_that_no_client_wrote_are_a_fault():
    assert list(Ledger().faults({"c1.1": 1})) == ["c1.1 was written by no client"]


def test_the_same_seed_makes_the_same_choices():
    def draws(seed):
        client = Client(Run(Mix((HOST, 0), None, "session", seed)), 7)
        for _ in range(20):
            client.begin_conversation()
            yield client.cancel_after, client.bytes_left, [client.ordinary().data for _ in range(9)]

    assert list(draws("one")) == list(draws("one"))
    assert list(draws("one")) != list(draws("two"))
