# SPDX-License-Identifier: ISC
"""PostgreSQL with streaming replication: a primary and standbys at addresses of their own, one port.

The standby that is named synchronous has each row before its writer gets the answer, so that no
acknowledged row may be lost when the primary ends. fsync is off: hosts die here, the machine does not.
"""

import contextlib
import os
import signal
import socket
import time

from support.process import free_port, has_ended, make_folder, own, run, wait_until
from support.servers.cluster import HARNESS, Cluster, configure, copy_data, program

# Loopback addresses: each stands for a host.
ADDRESS = "127.0.1.{}"

SETTINGS = {
    "wal_level": "replica",
    "max_connections": 60,
    "max_wal_senders": 6,
    "wal_keep_size": "'64MB'",
    "hot_standby": "on",
    "synchronous_commit": "on",
    # pg_rewind needs both.
    "full_page_writes": "on",
    "wal_log_hints": "on",
    # How long a standby waits before it connects to its primary again; by default 5 s.
    "wal_retrieve_retry_interval": "'100ms'",
    "wal_receiver_timeout": "'5s'",
    "shared_buffers": "'16MB'",
    "wal_buffers": "'1MB'",
}

HBA = """
local replication all trust
host replication all 127.0.0.0/8 trust
host all all 127.0.0.0/8 trust
"""


def twin(name):
    """The program of this name that belongs to the server's programs; None if it is of others."""
    try:
        path = program(name)
    except RuntimeError:
        return None
    same = os.path.dirname(path) == os.path.dirname(program("postgres"))
    return path if same else None


class Replica(Cluster):
    """One PostgreSQL of a group: its primary or a standby."""

    def __init__(self, group, number):
        """Nothing is started yet, and there is no data."""
        self.folder = make_folder("pgusher-pg-")
        self.data = os.path.join(self.folder, "data")
        self.socket_folder = self.folder
        self.log_path = os.path.join(self.folder, "log")
        self.port = group.port
        self.host = ADDRESS.format(number)
        self.name = f"replica{number}"
        self.process = self._connection = None

    def __repr__(self):
        return f"{self.name} at {self.host}"

    # --- data -----------------------------------------------------------------------------------

    def initialize(self, schema):
        """Make the data of a first primary, start it, and run this SQL in the database main."""
        copy_data(self.data)
        configure(self.data, SETTINGS)
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as file:
            file.write(HBA)
        self._write_own_settings()
        self.start()
        self.ask("main", schema)

    def _write_own_settings(self, source=None):
        """Replace what ALTER SYSTEM has set, here or at the host from which the data comes."""
        settings = {
            "listen_addresses": f"'{self.host}'",
            "port": self.port,
            "unix_socket_directories": f"'{self.socket_folder}'",
        }
        if source:
            settings["primary_conninfo"] = f"'{self._source(source)}'"
        path = os.path.join(self.data, "postgresql.auto.conf")
        with open(path, "w") as file:
            file.writelines(f"{name} = {value}\n" for name, value in settings.items())
        own(path)

    def _source(self, primary):
        return (
            f"host={primary.host} port={primary.port} user={HARNESS} application_name={self.name}"
        )

    def clone(self, primary):
        """Replace the data by a base backup of the primary, and start as its standby."""
        run(["rm", "-rf", self.data])
        backup = twin("pg_basebackup")
        if backup:
            run(
                [backup, "-D", self.data, "-h", primary.host, "-p", str(primary.port)]
                + ["-U", HARNESS, "--checkpoint=fast", "--no-sync", "--wal-method=stream"]
            )
        else:
            self._copy(primary)
        self._stand_by(primary)

    def _copy(self, primary):
        """PostgreSQL: "Making a Base Backup Using the Low Level API". The present server's programs
        may be without pg_basebackup, and an older one refuses newer servers."""
        with primary.connect() as connection:
            connection.execute("SELECT pg_backup_start('clone', true)")
            # Files may go while cp reads the folder: those need no copy.
            run(["cp", "-a", primary.data, self.data], check=False)
            row = connection.execute("SELECT * FROM pg_backup_stop(false)").fetchone()
        run(["rm", "-rf", os.path.join(self.data, "pg_wal")])
        run(["cp", "-a", os.path.join(primary.data, "pg_wal"), self.data], check=False)
        for name in ("postmaster.pid", "postmaster.opts"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(self.data, name))
        label = os.path.join(self.data, "backup_label")
        with open(label, "w") as file:
            file.write(row["labelfile"])
        own(label)

    def rejoin(self, primary):
        """Start as a standby of the primary, after this server was one itself: its own last rows
        may be known to no other."""
        self.stop()
        rewind = twin("pg_rewind")
        if not rewind:
            self.clone(primary)
            return
        # pg_rewind reads the timeline of the other server from its last checkpoint.
        primary.sql("CHECKPOINT")
        done = run(
            [rewind, "-D", self.data, "--no-sync", "--source-server"]
            + [f"host={primary.socket_folder} port={primary.port} user={HARNESS} dbname=postgres"],
            check=False,
        )
        if done.returncode == 0:
            self._stand_by(primary)
        else:
            self.clone(primary)

    def return_as_standby(self, primary):
        """Start as a standby after a clean stop: the primary has all that this server wrote."""
        self.stop()
        self._stand_by(primary)

    def _stand_by(self, primary):
        self._write_own_settings(source=primary)
        path = os.path.join(self.data, "standby.signal")
        open(path, "w").close()
        own(path)
        self.start()

    # --- what happens to hosts ------------------------------------------------------------------

    def _processes(self):
        """The server's processes, the postmaster first."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [pid, *map(int, file.read().split())]

    def _signal_all(self, number):
        """The postmaster is stopped first, so that it starts no other process meanwhile."""
        self.process.send_signal(signal.SIGSTOP)
        pids = self._processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def kill(self):
        """End all processes with SIGKILL."""
        pids = self._signal_all(signal.SIGKILL)
        self.process.wait()
        self._disconnect()
        wait_until(
            lambda: all(map(has_ended, pids)), 10, f"{self.name} to end"
        )

    def freeze(self):
        """From now on the host accepts connections, since the kernel does, and answers nothing."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self):
        """Let a frozen host continue."""
        for pid in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def promote(self):
        """Make it the primary; returns the moment from which it accepts writes."""
        with self.connect() as connection:
            connection.execute("SELECT pg_promote(false)")
            wait_until(
                lambda: not connection.execute(
                    "SELECT pg_is_in_recovery() AS is"
                ).fetchone()["is"],
                30,
                f"{self.name} to be promoted",
                interval=0.002,
            )
            return time.monotonic()

    def follow(self, primary):
        """Let a running standby follow another primary."""
        self.set("primary_conninfo", self._source(primary))

    def set(self, name, value):
        """ALTER SYSTEM, and wait until it applies."""
        self.sql(f"ALTER SYSTEM SET {name} = '{value}'")
        self.sql("SELECT pg_reload_conf()")

        def applies():
            with self.connect() as connection:
                row = connection.execute(f"SHOW {name}").fetchone()
                return row[name] == value

        wait_until(applies, 10, f"{name} of {self.name}")

    def fence(self):
        """Let the primary refuse writes, as operators and cloud vendors do before a move."""
        self.set("default_transaction_read_only", "on")

    def unfence(self):
        """Let it accept writes again."""
        self.set("default_transaction_read_only", "off")

    def pause_replay(self):
        """The standby goes on receiving and does not apply: what it shows grows old."""
        self.sql("SELECT pg_wal_replay_pause()")

    def resume_replay(self):
        """Apply what was received."""
        self.sql("SELECT pg_wal_replay_resume()")

    # --- questions ------------------------------------------------------------------------------

    def runs(self):
        """Whether the server runs."""
        return self.process is not None and self.process.poll() is None

    def is_primary(self):
        """Whether it runs, and not as a standby."""
        return self.runs() and not self.value("SELECT pg_is_in_recovery()")

    def receives_from(self, primary):
        """Whether it streams from this primary, and has all of it."""
        row = primary.sql(
            "SELECT count(*) AS n FROM pg_stat_replication WHERE application_name = %s"
            " AND state = 'streaming' AND replay_lsn >= %s::pg_lsn",
            [self.name, primary.value("SELECT pg_current_wal_flush_lsn()")],
        )
        return row[0]["n"] == 1

    def received(self):
        """How far it has received, in bytes."""
        return self.value("SELECT pg_last_wal_receive_lsn() - '0/0'::pg_lsn")


class Replicas:
    """A group with one primary and its standbys."""

    def __init__(self, count=2, schema="SELECT"):
        self.schema = schema
        self.port = free_port()
        self.members = []
        try:
            for _ in range(count):
                self.add()
        except BaseException:
            self.destroy()
            raise

    def add(self):
        """Add a standby, or the first primary; returns it."""
        member = Replica(self, len(self.members) + 1)
        self.members.append(member)
        if len(self.members) == 1:
            member.initialize(self.schema)
        else:
            member.clone(self.primary)
        return member

    def remove(self, member):
        """Remove a standby, of which the primary must not wait for anything any more."""
        self.members.remove(member)
        member.destroy()

    @property
    def primary(self):
        """The member that is the primary; None if there is none."""
        return next((member for member in self.members if member.is_primary()), None)

    def settle(self, synchronous=True):
        """Repair what the last scene has left: returns the primary, then the standbys.

        With synchronous, a row is acknowledged when a standby has it.
        """
        for member in self.members:
            if member.runs():
                member.thaw()
        primary = self.primary
        if primary is None:
            primary = self._begin_anew()
        primary.unfence()
        standbys = [member for member in self.members if member is not primary]
        primary.set("synchronous_standby_names", "")
        for standby in standbys:
            self._repair(standby, primary)
        if synchronous:
            self.synchronize(primary)
        return primary, *standbys

    def _begin_anew(self):
        """No primary is left: a scene has failed."""
        for member in self.members:
            member.stop("immediate")
        first = self.members[0]
        run(["rm", "-rf", first.data])
        first.initialize(self.schema)
        return first

    def _repair(self, standby, primary):
        if not standby.runs() or standby.is_primary():
            standby.rejoin(primary)
        else:
            standby.resume_replay()
            standby.follow(primary)
        wait_until(lambda: standby.receives_from(primary), 30, f"{standby} to follow {primary}")

    def synchronize(self, primary):
        """A row is acknowledged from now on when any standby has it on disk; the rows before are
        there."""
        primary.set("synchronous_standby_names", "ANY 1 (*)")
        # Writers wait for standbys as soon as the checkpointer has read the setting, which it does
        # before a checkpoint.
        primary.sql("CHECKPOINT")
        standbys = [member for member in self.members if member is not primary and member.runs()]
        wait_until(
            lambda: any(standby.receives_from(primary) for standby in standbys),
            30,
            f"a standby to have all of {primary}",
        )

    def most_advanced(self, standbys):
        """The standby that has received most: it has every acknowledged row."""
        return max(standbys, key=Replica.received)

    def destroy(self):
        """End all, standbys first, and remove their files."""
        for member in reversed(self.members):
            with contextlib.suppress(OSError):
                if member.runs():
                    member.thaw()
            member.destroy()


class BlackHole:
    """An address and port where connections are neither accepted nor refused, as if packets were
    dropped: the kernel drops those for which a full backlog has no room."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((host, port))
        self._listener.listen(0)
        self._fillers = []
        while self._has_room():
            pass

    def _has_room(self):
        filler = socket.socket()
        filler.settimeout(0.1)
        self._fillers.append(filler)
        try:
            filler.connect((self.host, self.port))
        except TimeoutError:
            return False
        return True

    def close(self):
        """From now on the kernel refuses connections."""
        for each in (*self._fillers, self._listener):
            each.close()
