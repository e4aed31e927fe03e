# SPDX-License-Identifier: ISC
"""Made-up figures for the page: what /api/state and /api/history answer in scenes that are hard to make for real."""

import math

NOW = 1700000000.5
POINTS = 360
STEP = 10
SERIES = ("transactions", "waiting", "longest_wait_ms", "active", "query_p99_ms", "wait_p99_ms", "errors")


def times(p50, p90, p99, most):
    """Percentiles of a time, in milliseconds."""
    return {"p50": p50, "p90": p90, "p99": p99, "max": most}


def new_pool(number, **changes):
    """A pool of 20 with little to do."""
    pool = {
        "id": number,
        "name": f"pool {number}",
        "database": None,
        "user": None,
        "mode": "transaction",
        "size": 20,
        "reserve": 0,
        "paused": False,
        "host": 1,
        "clients": {"active": 3, "idle": 40, "waiting": 0},
        "servers": {"active": 3, "idle": 6, "used": 0, "tested": 0, "login": 0, "pinned": 0},
        "longest_wait": 0,
        "oldest_transaction": 0.02,
        "oldest_idle_transaction": None,
        "transactions_per_second": 812.4,
        "queries_per_second": 1630.0,
        "errors_per_second": 0.0,
        "query_ms": times(0.41, 1.2, 4.8, 22),
        "transaction_ms": times(1.1, 2.9, 9.4, 41),
        "wait_ms": times(0.01, 0.04, 0.3, 2.1),
    }
    return {**pool, **changes}


def new_host(number, **changes):
    """A primary that answers."""
    host = {
        "id": number,
        "name": f"host {number}",
        "role": "primary",
        "up": True,
        "connections": 9,
        "connect_ms": 3.1,
        "lag_bytes": None,
        "lag_seconds": None,
    }
    return {**host, **changes}


def new_advice(code="pool_full", **changes):
    """A warning."""
    advice = {
        "code": code,
        "severity": "warning",
        "pool": 1,
        "database": None,
        "user": None,
        "seconds": 34,
        "text": "The pool is full for 34 s, and PostgreSQL is idle.",
        "setting": "pool_size",
    }
    return {**advice, **changes}


def new_slow(number, **changes):
    """Queries that have waited in the queue."""
    slow = {
        "at": NOW - 3 * number,
        "count": 40 - 3 * number,
        "pool": 1,
        "cause": "queue",
        "setting": "pool_size",
        "total_ms": 9040 - 7 * number,
        "queue_ms": 9020 - 7 * number,
        "server_ms": 19,
        "client_ms": 1,
        "rows": 10 + number,
        "bytes": 1234,
        "application": None,
        "text": None,
    }
    return {**slow, **changes}


def new_state(pools=(), **changes):
    """The state with these pools."""
    pools = list(pools)
    state = {
        "version": "pgusher 1.0",
        "compat": "PgBouncer 1.26.1",
        "now": NOW,
        "started": NOW - 93784,
        "state": "active",
        "details": False,
        "process": {
            "clients": sum(sum(pool["clients"].values()) for pool in pools),
            "max_clients": 1000,
            "logins": 0,
            "servers": sum(pool["servers"]["active"] + pool["servers"]["idle"] for pool in pools),
            "cpu": 0.12,
            "memory_bytes": 34567890,
            "fds": 140,
            "max_fds": 65536,
            "certificates": [{"side": "client", "seconds_left": 7776000}],
        },
        "totals": {
            "transactions_per_second": sum(pool["transactions_per_second"] for pool in pools),
            "queries_per_second": sum(pool["queries_per_second"] for pool in pools),
            "received_per_second": 412345.0,
            "sent_per_second": 5412345.0,
            "errors": [],
        },
        "pools": pools,
        "pools_total": len(pools),
        "hosts": [new_host(1)] if pools else [],
        "advice": [],
        "slow": [],
    }
    return {**state, **changes}


def new_history(*pools, **levels):
    """An hour in which each series is about its level; an overload makes it another one for the last minutes:
    name=level, or name=(level, level in the overload)."""
    usual = {name: 0 for name in SERIES} | {"transactions": 812, "active": 3, "query_p99_ms": 4.8, "wait_p99_ms": 0.3}
    overload = POINTS - 26

    def value(name, number):
        level = levels.get(name, usual[name])
        if isinstance(level, tuple):
            level = level[number >= overload] * (1 if number < overload else min(1, (number - overload + 3) / 9))
        return round(level * (1 + 0.12 * math.sin(number / 7) + 0.06 * math.sin(number * 1.7)), 2)

    series = {name: [None] * 8 + [value(name, number) for number in range(8, POINTS)] for name in SERIES}
    return {
        "step": STEP,
        "end": int(NOW),
        "points": POINTS,
        "pools": [{"id": number, "series": series} for number in (0, *pools)],
    }


# --- scenes: state and history ----------------------------------------------------------------


def calm():
    """Three pools that keep up."""
    pools = [new_pool(1), new_pool(2, transactions_per_second=95.2, size=10), new_pool(3, mode="session", size=0)]
    return new_state(pools, hosts=[new_host(1), new_host(2, role="standby", lag_bytes=1234, lag_seconds=0.2)]), (
        new_history(1, 2, 3)
    )


def empty():
    """A program that has just started."""
    return new_state(), {"step": STEP, "end": int(NOW), "points": POINTS, "pools": []}


def overload():
    """A pool of 5 with 200 clients, of which one has left its transaction open."""
    full = new_pool(
        1,
        size=5,
        clients={"active": 5, "idle": 100, "waiting": 95},
        servers={"active": 5, "idle": 0, "used": 0, "tested": 0, "login": 0, "pinned": 1},
        longest_wait=12.5,
        oldest_transaction=60.1,
        oldest_idle_transaction=60.1,
        transactions_per_second=341.0,
        queries_per_second=342.0,
        errors_per_second=0.2,
        query_ms=times(0.42, 1.1, 5.2, 31),
        transaction_ms=times(0.9, 2.2, 9.8, 60100),
        wait_ms=times(420, 2400, 9200, 12500),
    )
    advice = [
        new_advice(
            "idle_transaction",
            severity="critical",
            text="A transaction has been open for 60 s, and idle for 60 s: it keeps a server, locks, and old rows from "
            "VACUUM. idle_transaction_timeout (now 0: none) ends such transactions; better have the application commit "
            "before it waits for something else.",
            setting="idle_transaction_timeout",
            seconds=31,
        ),
        new_advice(
            text="95 clients wait for a server, the longest for 12.5 s, and all servers of the pool (pool_size 5) are in "
            "use: on average 3.6 of them run queries. PostgreSQL has room: about 4 queries run on the 16 cores of its "
            "machine, which can use 64. Raise pool_size from 5 to 10.",
            seconds=247,
        ),
        new_advice(
            "standby_lag",
            pool=None,
            text="A standby is 45 MB behind, and its last replayed transaction is 90 s old. Clients that read there see "
            "old rows: set max_standby_lag, and check its replication.",
            setting="max_standby_lag",
            seconds=90,
        ),
    ]
    errors = [{"error": "query_wait_timeout", "count": 214}, {"error": "server conn crashed?", "count": 2}]
    state = new_state(
        [new_pool(2, transactions_per_second=95.2), full, new_pool(3, mode="session", size=0)],
        advice=advice,
        hosts=[
            new_host(1),
            new_host(2, role="standby", lag_bytes=48123456, lag_seconds=90.4, connections=2, connect_ms=4.4),
        ],
        slow=[
            new_slow(0),
            new_slow(1, setting="idle_transaction_timeout", total_ms=6041, queue_ms=6020, server_ms=20),
            new_slow(2, pool=2, cause="server", setting=None, total_ms=731, queue_ms=0, server_ms=731, count=2),
        ],
    )
    state["totals"]["errors"] = errors
    return state, new_history(
        1,
        2,
        3,
        waiting=(0, 92),
        longest_wait_ms=(2, 12000),
        wait_p99_ms=(0.3, 9000),
        transactions=(1150, 436),
        active=(4, 11),
        errors=(0, 2),
    )


def slow_server():
    """PostgreSQL takes a hundred times as long as before, and the pool is full of that."""
    state, _ = overload()
    state["pools"][1] |= {"query_ms": times(210, 480, 900, 1400), "transaction_ms": times(230, 500, 950, 1500)}
    return state, new_history(1, 2, 3, waiting=(0, 92), query_p99_ms=(5, 900), longest_wait_ms=(2, 12000))


def down():
    """The only host does not answer."""
    waiting = new_pool(
        1,
        clients={"active": 0, "idle": 3, "waiting": 40},
        servers={"active": 0, "idle": 0, "used": 0, "tested": 0, "login": 0, "pinned": 0},
        longest_wait=31.0,
        transactions_per_second=0.0,
        queries_per_second=0.0,
        host=None,
    )
    host = new_host(1, up=False, role="unknown", connections=0, connect_ms=None)
    return new_state([waiting], hosts=[host]), new_history(1, waiting=(0, 40), transactions=(800, 0))


def paused():
    """PAUSE of all pools."""
    pool = new_pool(1, paused=True, clients={"active": 0, "idle": 3, "waiting": 7}, longest_wait=4.2)
    return new_state([pool], state="paused"), new_history(1)


HOSTILE = (
    "<script>alert(1)</script>",
    "x" * 63,
    "\U0001f418 données \u65e5\u672c\u8a9e",
    "\u05d0\u05d1\u05d2 \u202egnp.exe",
    "tab\there\nnew\x00\x1b[31m\x7f",
    "\"><img src=/x onerror=alert(2)>",
    "${alert(3)}' OR 1=1 --",
)


def hostile():
    """Names that clients and operators may choose, and statements with whatever is in them."""
    pools = [
        new_pool(number, name=name, database=name, user=name[::-1][:63], clients={"active": 1, "idle": 1, "waiting": number})
        for number, name in enumerate(HOSTILE, 1)
    ]
    return new_state(
        pools,
        details=True,
        version="pgusher <b>1</b>",
        hosts=[new_host(number, name=name) for number, name in enumerate(HOSTILE, 1)],
        advice=[new_advice(text=name, setting=name, pool=number) for number, name in enumerate(HOSTILE, 1)],
        slow=[
            new_slow(number, pool=number, application=name, text=f"select '{name}';\n\t-- {name * 20}")
            for number, name in enumerate(HOSTILE, 1)
        ],
    ), new_history(1, 2, 3)


def unknown():
    """Figures that pgusher does not know yet."""
    nothing = times(None, None, None, None)
    pool = new_pool(
        1,
        oldest_transaction=None,
        longest_wait=None,
        query_ms=nothing,
        transaction_ms=None,
        wait_ms=nothing,
        host=None,
    )
    host = new_host(1, role="unknown", up=None, connect_ms=None)
    return new_state([pool], hosts=[host]), new_history()


def many():
    """200 pools of 500."""
    pools = [
        new_pool(number, clients={"active": number % 7, "idle": number, "waiting": number % 3}, longest_wait=number / 100)
        for number in range(1, 201)
    ]
    return new_state(pools, pools_total=500), new_history(*range(1, 101))


SCENES = {
    scene.__name__: scene
    for scene in (calm, empty, overload, slow_server, down, paused, hostile, unknown, many)
}
