# SPDX-License-Identifier: ISC
"""A console that says what no pooler says: a script for FakeServer."""

import threading

from support import wire
from support.servers.fake_server import FakeServer

PTR = "0x{:x}"

ANSWERS = {
    "VERSION": (["version"], [["PgBouncer 9.9.9"]]),
    "LISTS": (["list", "items"], [["used_clients", "2"]]),
    "CONFIG": (["key", "value"], [["max_client_conn", "77"]]),
    "DATABASES": (["name", "pool_size", "paused", "disabled"], [["main", "5", "0", "0"]]),
    "STATS": (["database", "total_xact_count", "total_query_count"], [["main", "1", "2"]]),
    "POOLS": (
        ["database", "user", "cl_active", "cl_waiting", "sv_active", "maxwait", "maxwait_us", "pool_mode"],
        [["main", "app", "1", "1", "1", "3", "500000", "transaction"]],
    ),
    "SERVERS": (["ptr", "link", "database", "user", "state"], [["0x1", "0x2", "main", "app", "active"]]),
    "CLIENTS": (
        ["ptr", "link", "database", "user", "state", "addr", "port", "application_name"],
        [["0x2", "0x1", "main", "app", "active", "10.0.0.1", "1234", "batch"]],
    ),
}


def table(columns, rows):
    """The messages of an answer with rows."""
    return b"".join([
        wire.row_description(*columns), *(wire.data_row(*row) for row in rows),
        wire.command_complete("SHOW"), wire.ready(),
    ])


class FakeConsole(FakeServer):
    """Answers SHOW by `answers`: a pair of columns and rows, bytes to send as they are, None for an unknown
    SHOW, or a function of the connection."""

    def __init__(self, **answers):
        self.answers = {**ANSWERS, **answers}
        self.asked = []
        self.lock = threading.Lock()
        super().__init__(self.answer)

    def answer(self, connection):
        """The script of a connection."""
        connection.login()
        while True:
            sql = connection.next_query()
            with self.lock:
                self.asked.append(sql)
            found = self.answers.get(sql.upper().removeprefix("SHOW ").strip(" ;"))
            if callable(found):
                found(connection)
            elif isinstance(found, bytes):
                connection.send(found)
            elif found:
                connection.send(table(*found))
            else:
                said = f"invalid command '{sql}', use SHOW HELP;"
                connection.send(wire.error("08P01", said), wire.ready())

    def count(self, topic):
        """How often a SHOW was asked for."""
        with self.lock:
            return self.asked.count(f"SHOW {topic}")
