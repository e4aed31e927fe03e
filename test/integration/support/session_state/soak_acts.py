# SPDX-License-Identifier: ISC
"""What clients of the soak do to their sessions: each returns statements, and changes the state."""

from support.session_state.soak_state import OWN, USUAL, VALUES

FAMILIES = ("settings", "temporary", "locks", "cursors", "prepared", "channels")
CHANNELS = 3  # of each client


def act(client, family, state):
    """Statements of this family; the state becomes what it is behind them."""
    return _ACTS[family](client, state)


def channel(number, index):
    """A channel of a client: no other listens to it."""
    return f"n_{number}_{index}"


def _settings(client, state):
    draw = client.draw
    name = draw.choice(list(USUAL))
    way = draw.choice(("set", "set", "set_config", "do", "local", "reset"))
    value = f"{name} of {client.token()}" if name in OWN else draw.choice(VALUES[name])
    is_list = name in ("search_path", "datestyle")
    quoted = value if is_list else f"'{value}'"
    if name == "datestyle":
        quoted = ", ".join(f"'{part}'" for part in value.split(", "))
    if way == "local":
        # It has an end with the transaction only: here it is undone by the next SET.
        state.settings[name] = "none" if name == "role" else client.asked[name]
        return [f"SET LOCAL {name} = {quoted}", f"RESET {name}"]
    if way == "reset":
        state.settings[name] = "none" if name == "role" else client.asked[name]
        return [f"RESET {name}"]
    state.settings[name] = value
    if way == "set":
        return [f"SET {name} = {quoted}"]
    call = f"set_config('{name}', '{value}', false)"
    return [f"SELECT {call}" if way == "set_config" else f"DO $$ BEGIN PERFORM {call}; END $$"]


def _temporary(client, state):
    if state.settings["role"] != "none":
        return []  # the table's owner would be the role
    if state.temporary and client.draw.random() < 0.6:
        name = client.draw.choice(sorted(state.temporary))
        state.temporary.remove(name)
        return [f"DROP TABLE IF EXISTS pg_temp.{name}"]
    name = f"t_{client.token()}"
    state.temporary.add(name)
    return [client.draw.choice((
        f"CREATE TEMP TABLE {name} AS SELECT 1 AS a", f"SELECT 1 AS a INTO TEMP {name}",
        f"CREATE TABLE pg_temp.{name} (a int)",
    ))]


def _locks(client, state):
    if state.locks and client.draw.random() < 0.6:
        key = client.draw.choice(sorted(state.locks))
        state.locks.remove(key)
        return [f"SELECT pg_advisory_unlock({key})"]
    # The session of this client's last login may not have ended yet.
    key = str((client.number * 1000 + client.life % 1000) * 1000 + client.draw.randrange(1000))
    if key in state.locks:
        return []
    state.locks.add(key)
    return [client.draw.choice((
        f"SELECT pg_advisory_lock({key})", f"SELECT pg_try_advisory_lock({key})",
        f"DO $$ BEGIN PERFORM pg_advisory_lock({key}); END $$",
    ))]


def _cursors(client, state):
    if state.cursors and client.draw.random() < 0.6:
        if client.draw.random() < 0.5:
            name = client.draw.choice(sorted(state.cursors))
            state.cursors.remove(name)
            return [f"CLOSE {name}"]
        state.cursors.clear()
        return ["CLOSE ALL"]
    name = f"h_{client.token()}"
    state.cursors.add(name)
    return [f"DECLARE {name} CURSOR WITH HOLD FOR SELECT 1"]


def _prepared(client, state):
    if state.prepared and client.draw.random() < 0.3:
        name = client.draw.choice(sorted(state.prepared))
        state.prepared.remove(name)
        return [f"DEALLOCATE {name}"]
    if state.prepared and client.draw.random() < 0.6:
        name = client.draw.choice(sorted(state.prepared))
        return [f"EXECUTE {name}"]
    name = f"p{client.draw.randrange(3)}"  # every client has statements of these names
    if name in state.prepared:
        return [f"EXECUTE {name}"]
    state.prepared.add(name)
    sql = f"PREPARE {name} AS SELECT 'executed', 'client {client.number}', '{name}'"
    if client.draw.random() < 0.1:
        return [f"DO $do$ BEGIN EXECUTE $${sql}$$; END $do$"]
    return [sql]


def _channels(client, state):
    if state.channels and client.draw.random() < 0.5:
        if client.draw.random() < 0.5:
            state.channels.clear()
            return ["UNLISTEN *"]
        name = client.draw.choice(sorted(state.channels))
        state.channels.remove(name)
        return [f"UNLISTEN {name}"]
    name = channel(client.number, client.draw.randrange(CHANNELS))
    state.channels.add(name)
    return [f"LISTEN {name}"]


_ACTS = {
    "settings": _settings,
    "temporary": _temporary,
    "locks": _locks,
    "cursors": _cursors,
    "prepared": _prepared,
    "channels": _channels,
}
