# SPDX-License-Identifier: ISC
"""A row of the table where what cannot follow its client is not kept: fewer ways, fewer looks.

mode     what cannot follow                                what others may see of it
cleaned  the client is warned, and its server reset         nothing (session_state = follow)
error    is refused, or the client is warned (DO, CALL)     nothing
warn     the client is warned                               all of it
ignore   stays                                              all of it, and settings beside
"""

from support import wire
from support.process import wait_until
from support.session_state.kinds import SETTINGS
from support.session_state.scenario import ENDINGS, IMPLICIT, SENDERS, UNDOING, possible

WAYS = (
    ("simple", "autocommit"), ("extended", "commit"), ("pipelined", "rollback"),
    ("script", "savepoint released"), ("named", "savepoint rolled back"), ("batch", "autocommit"),
    ("simple", "commit"), ("extended", "autocommit"),
)
# These follow their clients in all modes but ignore.
FOLLOWING = ("settings", "ways", "roles")
# What servers report of these follows everywhere.
REPORTED = ("DateStyle", "IntervalStyle", "TimeZone", "client_encoding", "application_name",
            "standard_conforming_strings")
LOST = "will not be there in the next transaction"
REFUSED = "0A000"


def kinds_that_follow_everywhere():
    """Settings that servers report, by name."""
    return [
        kind for kind in SETTINGS if any(f"'{name}'" in kind.look for name in REPORTED)
    ]


class Row:
    """A kind in one mode; run() returns the faults."""

    def __init__(self, place, kind, mode, number=0, whole=False):
        self.place = place
        self.kind = kind
        self.mode = mode
        all_ways = [
            way for way in WAYS if possible(kind, *way, place) and not self._may_wait_for_itself(*way)
        ]
        # Each kind in two ways, which are others for its neighbours.
        at = number % len(all_ways)
        self.ways = all_ways if whole or kind.typical else all_ways[at::5] + all_ways[:at][-2::5]
        self.follows = kind.family in FOLLOWING or mode == "ignore"
        self.told = False  # the client was warned, or its statement refused
        self.faults = []
        self.checks = 0

    def run(self):
        """Each way with a client of its own."""
        for protocol, ending in self.ways:
            if self.kind.family == "locks" and self.mode == "warn":
                self._wait_for_locks()
            client = self.place.client(self.kind.user, **dict(self.kind.start))
            try:
                self._way(client, protocol, ending)
            except Exception:
                self.place.freshen()  # a server that keeps a lock would fail all rows behind this one
                raise
            finally:
                client.close()
                if self.kind.family == "temporary" and self.told:
                    self._drop_permanent_table()
            if self.faults:
                self.place.freshen()
                break
            if not self.follows and self.mode == "warn":
                self.place.freshen()  # what it has left there is no fault
        return self.faults

    def _may_wait_for_itself(self, protocol, ending):
        """Whether a statement may need a lock that the client has taken on its other server: if state
        stays where it was made, and each statement is a transaction of its own.
        """
        return (
            self.kind.family == "locks" and self.mode == "warn" and ending == "autocommit"
            and protocol not in IMPLICIT
            and len(set(self.kind.make)) < len(self.kind.make)
        )

    def _drop_permanent_table(self):
        """Where SET search_path = pg_temp was refused, the next statement made a permanent table."""
        self.place.cluster.ask("main", "DROP TABLE IF EXISTS public.desk")

    def _wait_for_locks(self):
        """Sessions that were left with locks end soon."""
        wait_until(lambda: not self.place.cluster.sql(
            "SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"))

    def _way(self, client, protocol, ending):
        where = f"{self.kind.name} | {self.mode} | {protocol} | {ending}"
        undone = ending in UNDOING
        self.told = False
        self._make(client, protocol, ending)
        stays = not undone or self.kind.kept
        wanted = self.kind.made if stays else self.kind.usual
        seen = self.place.look(client, self.kind.look, None if self.told else wanted)
        self.checks += 1
        if self.follows and not self.told:
            if seen != wanted:
                self.faults.append(f"keep: {where}: {seen!r} instead of {wanted!r}")
        elif seen not in (wanted, self.kind.usual) or (seen != wanted and not self.told):
            self.faults.append(f"told: {where}: {seen!r} instead of {wanted!r}, untold")
        if self.mode != "warn" or self.follows:
            # The client may have one of the two servers.
            self._others_see_nothing(where, 1)
            client.reset()
            self._others_see_nothing(f"{where} | its client has left", 2)

    def _make(self, client, protocol, ending):
        statements = ENDINGS[ending](list(self.kind.make))
        for result in SENDERS[protocol](client, statements):
            self._hear(result)
        if client.status != "I":
            client.query("ROLLBACK")
        client.send(wire.query("SELECT 1"))
        self._hear(client.result())

    def _hear(self, result):
        if any(LOST in notice["M"] for notice in result.notices):
            self.told = True
        if not result.error:
            return
        if self.mode == "error" and result.error.sqlstate == REFUSED:
            self.told = True
        elif not self.told or result.error.sqlstate == REFUSED:
            raise AssertionError(f"{self.kind.name}: {result.error}")

    def _others_see_nothing(self, where, servers):
        """On so many servers."""
        watchers = self.place.watchers(self.kind.user)[:servers]
        for each in watchers:
            each.query("BEGIN")
            seen = self.place.look(each, self.kind.look)
            self.checks += 1
            if seen != self.kind.none:
                self.faults.append(f"leak: {where}: {seen!r}")
        for each in watchers:
            each.query("ROLLBACK")
