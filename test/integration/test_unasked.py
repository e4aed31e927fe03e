# SPDX-License-Identifier: ISC
"""Messages of a server about itself may come at any moment, and reach its client in their order."""

import pytest

from support import wire

UNASKED = {
    "tracked parameter": wire.parameter_status("TimeZone", "Europe/Berlin"),
    "other parameter": wire.parameter_status("in_hot_standby", "on"),
    "notification": wire.message("A", b"\0\0\0\0" + wire.text("news") + wire.text("words")),
    "notice": wire.notice("by the way"),
    "several": wire.notice("one") + wire.parameter_status("DateStyle", "German, DMY") + wire.notice("two"),
}
ROWS = [wire.row_description("a"), wire.data_row("1"), wire.data_row("2"), wire.command_complete("SELECT 2")]
READY = wire.ready()

# By the text of a query: the messages of its answer.
ANSWERS = {
    "rows": [*ROWS, READY],
    "several": [*ROWS, *ROWS, wire.message("I"), READY],
    "error": [wire.row_description("a"), wire.data_row("1"), wire.error("22012", "division by zero"), READY],
    "copy out": [
        wire.message("H", b"\0\0\0"), wire.copy_data(b"1\n"), wire.copy_data(b"2\n"), wire.copy_done(),
        wire.command_complete("COPY 2"), READY,
    ],
    "call": [wire.message("V", b"\0\0\0\1x"), READY],
}
BATCH = [wire.message("1"), wire.message("2"), *ROWS, wire.message("3"), wire.message("s"), READY]
COPY_BEGIN = [wire.message("G", b"\0\0\0")]
COPY_END = [wire.command_complete("COPY 1"), READY]


def said_at(messages, place, unasked):
    """The bytes of an answer with another message before one of its messages."""
    return b"".join(messages[:place]) + unasked + b"".join(messages[place:])


def send_cut(connection, data, size):
    for at in range(0, len(data), size):
        connection.send(data[at:at + size])


class Script:
    """A server with a script of a test: `place`, `unasked`, and the size of its pieces."""

    def __init__(self):
        self.place, self.unasked, self.size = 0, b"", 1 << 20

    def __call__(self, connection):
        connection.login()
        while True:
            found = connection.read()
            for messages in self._answers(found):
                send_cut(connection, messages, self.size)

    def _answers(self, found):
        if found.type == "Q" and found.body[:-1].decode() in ANSWERS:
            yield said_at(ANSWERS[found.body[:-1].decode()], self.place, self.unasked)
        elif found.type == "Q" and found.body.startswith(b"copy in"):
            yield said_at(COPY_BEGIN, min(self.place, 1), self.unasked)
        elif found.type == "Q":
            yield wire.command_complete("SET") + READY
        elif found.type == "c":
            yield said_at(COPY_END, min(self.place, 1), self.unasked)
        elif found.type == "S":
            yield said_at(BATCH, self.place, self.unasked)


@pytest.fixture(params=["session", "transaction"])
def scene(request, new_pooler, new_server):
    """A client, and the script of the only server."""
    script = Script()
    server = new_server(script)
    pooler = new_pooler(
        {"pool_mode": request.param, "default_pool_size": 1}, databases={"main": server.target()}
    )
    yield pooler.client(), script
    assert server.count == 1, "a server was given up"


def each_place(script, messages):
    """All places before one of these messages, at any speed."""
    for script.size in (1 << 20, 1):
        for script.place in range(len(messages)):
            yield script.place


@pytest.mark.parametrize("name", UNASKED)
@pytest.mark.parametrize("sql", ANSWERS)
def test_in_the_answer_to_a_query(scene, sql, name):
    client, script = scene
    script.unasked = UNASKED[name]
    for place in each_place(script, ANSWERS[sql]):
        expected = said_at(ANSWERS[sql], place, script.unasked)
        client.send(wire.query(sql))
        assert client.read_bytes(len(expected)) == expected


@pytest.mark.parametrize("name", UNASKED)
def test_in_the_answer_to_a_batch(scene, name):
    client, script = scene
    script.unasked = UNASKED[name]
    batch = wire.extended("rows") + wire.close("P", "x") + wire.execute("", 1) + wire.sync()
    for place in each_place(script, BATCH):
        expected = said_at(BATCH, place, script.unasked)
        client.send(batch)
        assert client.read_bytes(len(expected)) == expected


@pytest.mark.parametrize("name", UNASKED)
def test_around_a_copy(scene, name):
    client, script = scene
    script.unasked = UNASKED[name]
    for place in each_place(script, COPY_END):
        for messages, data in (COPY_BEGIN, wire.query("copy in")), (COPY_END, wire.copy_done()):
            expected = said_at(messages, min(place, 1), script.unasked)
            client.send(data)
            assert client.read_bytes(len(expected)) == expected


@pytest.mark.parametrize("name", UNASKED)
def test_between_two_queries_of_a_session(new_pooler, new_server, name):
    script = Script()
    server = new_server(script)
    pooler = new_pooler({"pool_mode": "session"}, databases={"main": server.target()})
    client = pooler.client()
    client.query("rows")
    for size in (1 << 20, 1):
        send_cut(server.connections[0], UNASKED[name], size)
        assert client.read_bytes(len(UNASKED[name])) == UNASKED[name]
    assert client.query("rows").types == "TDDCZ"


@pytest.mark.parametrize("name", UNASKED)
def test_between_the_queries_of_a_transaction(new_pooler, new_server, name):
    def script(connection):
        connection.login()
        connection.serve(lambda _, sql: wire.command_complete(sql) + wire.ready("T" if sql == "BEGIN" else "I"))

    server = new_server(script)
    pooler = new_pooler({"pool_mode": "transaction"}, databases={"main": server.target()})
    client, other = pooler.client(), pooler.client()
    client.query("BEGIN")
    for size in (1 << 20, 1):
        send_cut(server.connections[0], UNASKED[name], size)
        assert client.read_bytes(len(UNASKED[name])) == UNASKED[name]
    assert client.query("COMMIT").status == "I"
    assert other.query("mine").tag == "mine"
    assert server.count == 1
