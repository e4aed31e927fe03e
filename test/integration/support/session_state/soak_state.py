# SPDX-License-Identifier: ISC
"""What the session of one client of the soak must hold, and the query that shows what it holds."""

import copy
from dataclasses import dataclass, field

USER = "app"

# The settings that clients change, as the server shows them when no client did.
USUAL = {
    "work_mem": "4MB",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "search_path": '"$user", public',
    "random_page_cost": "4",
    "bytea_output": "hex",
    "app.tenant": "",
    "app.note": "",
    "role": "none",
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "application_name": "",
}
VALUES = {
    "work_mem": ["5MB", "6MB", "7MB", "9MB"],
    "statement_timeout": ["61s", "62s", "63s"],
    "lock_timeout": ["31s", "32s"],
    "search_path": ["public, a", '"B", public'],
    "random_page_cost": ["1.5", "2.5"],
    "bytea_output": ["escape"],
    "role": ["tenant_one", "tenant_two"],
    "timezone": ["Asia/Tokyo", "Europe/Berlin", "America/Lima"],
    "datestyle": ["German, DMY", "SQL, MDY"],
}
OWN = ("app.tenant", "app.note", "application_name")  # the value names the client

# What keeps the server with its client, and is listed by SCAN under its own name.
PINNED = ("temporary", "locks", "cursors")

SCAN = (
    "SELECT 'setting', n, current_setting(n, true) FROM unnest(ARRAY["
    + ", ".join(f"'{name}'" for name in USUAL)
    + "]) n UNION ALL SELECT 'user', session_user, current_user"
    " UNION ALL SELECT 'unknown setting', name, setting FROM pg_settings WHERE source = 'session'"
    " AND setting IS DISTINCT FROM reset_val AND lower(name) <> ALL (ARRAY["
    + ", ".join(f"'{name}'" for name in USUAL)
    + "]) UNION ALL SELECT 'temporary', relname, '' FROM pg_class"
    " WHERE relnamespace = pg_my_temp_schema() AND relkind <> 'i'"
    " UNION ALL SELECT 'locks', objid::text, '' FROM pg_locks"
    " WHERE locktype = 'advisory' AND pid = pg_backend_pid()"
    " UNION ALL SELECT 'cursors', name, '' FROM pg_cursors WHERE is_holdable"
    " UNION ALL SELECT 'prepared', name, statement FROM pg_prepared_statements WHERE from_sql"
    " UNION ALL SELECT 'channels', c, '' FROM pg_listening_channels() c"
)


@dataclass
class State:
    """What a session holds."""

    settings: dict = field(default_factory=lambda: dict(USUAL))
    temporary: set = field(default_factory=set)
    cursors: set = field(default_factory=set)
    channels: set = field(default_factory=set)
    # ROLLBACK does not undo these.
    locks: set = field(default_factory=set)
    prepared: set = field(default_factory=set)

    def after_rollback_of(self, other):
        """This state again, when a transaction that led to the other one is rolled back."""
        state = copy.deepcopy(self)
        state.locks, state.prepared = set(other.locks), set(other.prepared)
        state.cursors &= other.cursors  # what was closed stays closed
        return state


class Foreign(AssertionError):
    """A client saw what is not its own, or did not see what is."""


def lost_names(seen, state, client):
    """Compare what SCAN shows, {kind: {name: value}}, with what the session of this client must hold.

    Returns what it does not hold, {family: names}, of what keeps its server; Foreign for all else.
    """
    _check_settings(seen, state)
    lost = {}
    for family in PINNED:
        names, own = set(seen.get(family, ())), getattr(state, family)
        if names - own:
            raise Foreign(f"foreign {family}: {names - own}")
        if own - names:
            lost[family] = own - names
    # A channel may be heard by another server than the one that runs the query.
    foreign = {name for name in seen.get("channels", ()) if not name.startswith(f"n_{client}_")}
    if foreign:
        raise Foreign(f"channels {foreign}")
    # Servers have other names for what follows its client, and may keep it.
    named = {name: text for name, text in seen.get("prepared", {}).items() if len(name) == 2}
    foreign = {
        name for name, text in named.items()
        if name not in state.prepared or f"'client {client}'" not in text
    }
    if foreign:
        raise Foreign(f"prepared statements {foreign}")
    return lost


def _check_settings(seen, state):
    if seen["setting"] != state.settings:
        differences = {
            name: (value, state.settings[name])
            for name, value in seen["setting"].items() if value != state.settings[name]
        }
        others = {key: set(names) for key, names in seen.items() if key != "setting"}
        raise Foreign(f"settings (seen, expected): {differences}, and saw {others}")
    role = state.settings["role"]
    if seen["user"] != {USER: USER if role == "none" else role}:
        raise Foreign(f"user {dict(seen['user'])} with role {role}")
    if seen.get("unknown setting"):
        raise Foreign(f"settings that no client set: {seen['unknown setting']}")
