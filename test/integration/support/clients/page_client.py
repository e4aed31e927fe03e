# SPDX-License-Identifier: ISC
"""Requests to the page for browsers, plain or by TLS, and what its JSON has to look like."""

import base64
import http.client
import json
import ssl

from support.clients.metrics_page import Answer
from support.process import HOST


def basic(password, user="anyone"):
    """The value of an Authorization header."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def fetch(port, path="/", method="GET", context=None, source=None, timeout=10, **headers):
    """One request on a connection of its own; `context` is that of TLS, `source` our address."""
    options = {"timeout": timeout, "source_address": (source, 0) if source else None}
    if context:
        connection = http.client.HTTPSConnection(HOST, port, context=context, **options)
    else:
        connection = http.client.HTTPConnection(HOST, port, **options)
    try:
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()


def trusting(authority, alpn=None):
    """A context of TLS for clients of this authority."""
    context = ssl.create_default_context(cafile=authority.certificate)
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


def state_of(pooler, **options):
    """What /api/state says; it has the right members, of the right types."""
    answer = fetch(pooler.metrics, "/api/state", **options)
    assert answer.status == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    state = json.loads(answer.text)
    check(STATE, state, "state")
    return state


def history_of(pooler):
    """What /api/history says; likewise."""
    answer = fetch(pooler.metrics, "/api/history")
    assert answer.status == 200, answer.text
    history = json.loads(answer.text)
    check(HISTORY, history, "history")
    return history


NUMBER = (int, float)
NUMBER_OR_NULL = (int, float, type(None))
TEXT_OR_NULL = (str, type(None))
TIMES = ({"p50": NUMBER, "p90": NUMBER, "p99": NUMBER, "max": NUMBER}, None)

# Members and their types: a dict has exactly these members, a list elements of this one kind.
STATE = {
    "version": str,
    "compat": str,
    "now": NUMBER,
    "started": NUMBER,
    "state": str,
    "details": bool,
    "process": {
        "clients": int,
        "max_clients": int,
        "logins": int,
        "servers": int,
        "cpu": NUMBER_OR_NULL,
        "memory_bytes": int,
        "fds": (int, type(None)),
        "max_fds": (int, type(None)),
        "certificates": [{"side": str, "seconds_left": int}],
    },
    "totals": {
        "transactions_per_second": NUMBER,
        "queries_per_second": NUMBER,
        "received_per_second": NUMBER,
        "sent_per_second": NUMBER,
        "errors": [{"error": str, "count": int}],
    },
    "pools": [
        {
            "id": int,
            "name": str,
            "database": TEXT_OR_NULL,
            "user": TEXT_OR_NULL,
            "mode": str,
            "size": int,
            "reserve": int,
            "paused": bool,
            "host": (int, type(None)),
            "clients": {"active": int, "idle": int, "waiting": int},
            "servers": {
                "active": int,
                "idle": int,
                "used": int,
                "tested": int,
                "login": int,
                "pinned": int,
            },
            "longest_wait": NUMBER,
            "oldest_transaction": NUMBER,
            "oldest_idle_transaction": NUMBER,
            "transactions_per_second": NUMBER,
            "queries_per_second": NUMBER,
            "errors_per_second": NUMBER,
            "query_ms": TIMES,
            "transaction_ms": TIMES,
            "wait_ms": TIMES,
        }
    ],
    "pools_total": int,
    "hosts": [
        {
            "id": int,
            "name": str,
            "role": str,
            "up": bool,
            "connections": int,
            "connect_ms": NUMBER_OR_NULL,
            "lag_bytes": (int, type(None)),
            "lag_seconds": NUMBER_OR_NULL,
        }
    ],
    "advice": [
        {
            "code": str,
            "severity": str,
            "pool": (int, type(None)),
            "database": TEXT_OR_NULL,
            "user": TEXT_OR_NULL,
            "seconds": int,
            "text": str,
            "setting": TEXT_OR_NULL,
        }
    ],
    "slow": [
        {
            "at": NUMBER,
            "count": int,
            "pool": int,
            "cause": str,
            "setting": TEXT_OR_NULL,
            "total_ms": NUMBER,
            "queue_ms": NUMBER,
            "server_ms": NUMBER,
            "client_ms": NUMBER,
            "rows": int,
            "bytes": int,
            "application": TEXT_OR_NULL,
            "text": TEXT_OR_NULL,
        }
    ],
}
SERIES = [NUMBER_OR_NULL]
HISTORY = {
    "step": int,
    "end": int,
    "points": int,
    "pools": [
        {
            "id": int,
            "series": {
                "transactions": SERIES,
                "waiting": SERIES,
                "longest_wait_ms": SERIES,
                "active": SERIES,
                "query_p99_ms": SERIES,
                "wait_p99_ms": SERIES,
                "errors": SERIES,
            },
        }
    ],
}


def check(kind, value, where):
    """Fail unless the value is of this kind."""
    if isinstance(kind, dict):
        assert isinstance(value, dict) and value.keys() == kind.keys(), f"{where}: {value}"
        for name, member in kind.items():
            check(member, value[name], f"{where}.{name}")
    elif isinstance(kind, list):
        assert isinstance(value, list), where
        for number, element in enumerate(value):
            check(kind[0], element, f"{where}[{number}]")
    elif isinstance(kind, tuple) and isinstance(kind[0], dict):
        if value is not None:
            check(kind[0], value, where)
    else:
        assert isinstance(value, kind), f"{where}: {value!r}"
        assert not isinstance(value, bool) or kind is bool, f"{where}: {value!r}"
