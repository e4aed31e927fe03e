# SPDX-License-Identifier: ISC
"""What a client receives through the pooler is what PostgreSQL sends: to the byte, keys excepted."""

import random
import threading

import pytest

from support import wire
from support.differential.conversations import SETUP, Conversation, Cut, Plain, Slow, run_conversation
from support.differential.scripts import scripts

SEEDS = 2


@pytest.fixture
def direct(cluster):
    """How PostgreSQL answers: direct(conversation)."""
    cluster.ask("main", SETUP)

    def converse(conversation):
        address = (cluster.host, cluster.port)
        return run_conversation(address, conversation, Plain(), in_main(cluster))

    return converse


def in_main(cluster):
    """SQL run by another client, which connects to the database directly."""
    return lambda sql: cluster.ask("main", sql)


@pytest.fixture
def make(new_pooler, new_relay, cluster):
    """A pooler in some mode, with a relay before its servers that can cut their answers."""

    def start(mode, pool_size=1, **settings):
        relay = new_relay(cluster.port)
        settings = {
            "pool_mode": mode,
            "default_pool_size": pool_size,
            # A refused write would make the pooler replace its servers.
            "server_failover_check": 0,
            **settings,
        }
        pooler = new_pooler(settings, databases={"main": {"host": relay.host, "port": relay.port}})
        pooler.relay = relay
        return pooler

    return start


UNKNOWN_STATEMENT = "26000"


def is_unknown_statement(message):
    kind, body = message
    if kind != "E":
        return False
    fields = wire.read_fields(body)
    return (fields["S"], fields["C"]) == ("ERROR", UNKNOWN_STATEMENT)


def assert_alike(received, expected, follows_statements=False):
    """Report where two conversations differ. With statement tracking the pooler has an error text
    of its own for an unknown statement."""
    if received == expected:
        return
    for number, (ours, theirs) in enumerate(zip(received, expected)):
        if follows_statements and is_unknown_statement(ours) and is_unknown_statement(theirs):
            continue
        assert ours == theirs, f"message {number} of {len(expected)}, behind {received[max(0, number - 4):number]}"
    assert received[len(expected):] == [] and expected[len(received):] == []


def expected_of(direct, name):
    """What the server sends, and the error that a pooler adds when the server has disconnected."""
    expected = direct(scripts[name]).after_login()
    if scripts[name].fatal:
        expected.append(("E", wire.fields(S="FATAL", C="08006", M="server conn crashed?")))
    return expected


def ways(name):
    """Everything at once, cut at random places, and read in small pieces."""
    yield Plain()
    for seed in range(SEEDS):
        yield Cut(f"{name} {seed}")
    yield Slow(name)


def assert_answers_alike(pooler, direct, name, follows_statements=False):
    expected = expected_of(direct, name)
    for way in ways(name):
        received = run_conversation(pooler.address, scripts[name], way, in_main(pooler.cluster)).after_login()
        assert_alike(received, expected, follows_statements)
    # Cut the server's bytes as well.
    random_ = random.Random(name)
    pooler.relay.piece = lambda: random_.randint(1, 300)
    received = run_conversation(pooler.address, scripts[name], Cut(name, 1, 2000), in_main(pooler.cluster)).after_login()
    assert_alike(received, expected, follows_statements)
    assert_servers_are_kept(pooler, scripts[name])


def assert_servers_are_kept(pooler, conversation, count=1):
    """Servers were clean at release and were used again: no more than these were ever opened."""
    pooler.wait_pool(sv_active=0, cl_waiting=0)
    if not conversation.fatal:
        assert len(pooler.lines("S-.* new connection to server")) <= count


@pytest.mark.parametrize("name", scripts)
def test_a_session_receives_what_the_server_sends(make, direct, name):
    assert_answers_alike(make("session"), direct, name)


@pytest.mark.parametrize("name", [name for name in scripts if scripts[name].anywhere])
def test_transactions_receive_what_the_server_sends(make, direct, name):
    assert_answers_alike(make("transaction"), direct, name, True)


COMPANY = 5


def assert_company_hears_alike(pooler, direct, name):
    """Several clients have the same conversation at once, each cut in its own way."""
    expected = expected_of(direct, name)
    faults = []

    def converse(number):
        way = Cut(f"{name} {number}", 1, 500) if number else Plain()
        try:
            received = run_conversation(pooler.address, scripts[name], way, in_main(pooler.cluster)).after_login()
            assert_alike(received, expected, True)
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=converse, args=(number,)) for number in range(COMPANY)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if faults:
        raise faults[0]
    assert_servers_are_kept(pooler, scripts[name], 2)


in_company = [name for name in scripts if scripts[name].anywhere and scripts[name].again]


@pytest.mark.parametrize("name", in_company)
def test_clients_that_share_servers_receive_what_each_would_alone(make, direct, name):
    # A small packet buffer: no answer may depend on what fits into it.
    pkt_buf = random.Random(name).choice([64, 300, 4096])
    assert_company_hears_alike(make("transaction", 2, pkt_buf=pkt_buf), direct, name)


in_statements = [
    name for name in in_company if scripts[name].single and not scripts[name].has("BEGIN")
]


@pytest.mark.parametrize("name", in_statements)
def test_single_statements_receive_what_the_server_sends(make, direct, name):
    assert_company_hears_alike(make("statement", 2), direct, name)


@pytest.mark.setting("max_prepared_statements")
@pytest.mark.parametrize("name", [name for name in in_company if "name" in name])
def test_statements_that_servers_forget_are_answered_alike(make, direct, name):
    pooler = make("transaction", 2, max_prepared_statements=3)
    assert_company_hears_alike(pooler, direct, name)


# --- logins -----------------------------------------------------------------------------------

VERSION_3_9999 = 0x0003270F
OPTION = "_pq_.test_protocol_negotiation"


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"application_name": "talker", "client_encoding": "LATIN1"},
        {"TimeZone": "Europe/Berlin", "DateStyle": "German, DMY", "IntervalStyle": "iso_8601"},
        {"options": "-c timezone=PST8PDT -c datestyle=SQL,\\ YMD"},
    ],
)
@pytest.mark.parametrize("mode", ["session", "transaction"])
def test_a_login_reports_the_same(make, direct, mode, parameters):
    pooler = make(mode)
    conversation = Conversation((), startup=parameters)
    expected = direct(conversation).login()
    for _ in range(2):
        received = run_conversation(pooler.address, conversation, Plain(), None).login()
        assert received == expected


@pytest.mark.parametrize("options", [{}, {OPTION: ""}, {OPTION: "x", "_pq_.another": "y"}])
@pytest.mark.parametrize("protocol", [wire.PROTOCOL_3_0, wire.PROTOCOL_3_2, VERSION_3_9999])
def test_a_protocol_version_is_negotiated_as_with_a_server(make, direct, cluster, protocol, options):
    if int(cluster.value("SHOW server_version_num")) < 180000:
        pytest.skip("PostgreSQL speaks 3.2 since 18")
    conversation = Conversation((), protocol=protocol, startup=options)
    kinds, _ = direct(conversation).login()
    pooler = make("transaction")
    received, _ = run_conversation(pooler.address, conversation, Plain(), None).login()
    # Each side chooses the length of its long keys.
    long = [kind for kind, size in kinds if kind == "K" and size > 8]
    assert [each for each in received if each[0] != "K"] == [each for each in kinds if each[0] != "K"]
    assert [kind for kind, size in received if kind == "K" and size > 8] == long
