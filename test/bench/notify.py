# SPDX-License-Identifier: ISC
"""What a notification costs for each of 10,000 clients that listen on its channel, in microseconds of
processor time of the daemon, and how long it takes until the last client has it.

Beside it stands what a program costs that only sends as many bytes to as many connections
(send_floor.c), since on the loopback interface the kernel does the work of the receiving side in the
sender's send(). The absolute bar is therefore for Unix sockets. PgBouncer has nothing to compare with:
PostgreSQL itself is measured with fewer clients, each of which has a backend.
"""

import argparse
import contextlib
import os
import selectors
import statistics
import subprocess
import sys
import time

import psycopg

import rig
from rig import HOST, OURS, USER, Report, Rig
from support import wire
from support.clients.raw import RawClient
from support.servers.cluster import Cluster

DATABASE = "main"
NOTIFICATIONS = 20


def listeners(stack, address, count):
    """So many clients that LISTEN, their sockets not blocking."""
    clients = []
    for _ in range(count):
        client = stack.enter_context(RawClient(address, timeout=120))
        client.login(user=USER, database=DATABASE)
        clients.append(client)
    for client in clients:
        client.send(wire.query("LISTEN bench"))
    for client in clients:
        client.read_until("Z")
        client.socket.setblocking(False)
    return clients


def wait_for_all(selector, count):
    """Read until every client has got something."""
    got = 0
    while got < count:
        ready = selector.select(30)
        if not ready:
            raise rig.Trouble("a notification did not come")
        for key, _ in ready:
            with contextlib.suppress(BlockingIOError):
                got += bool(key.fileobj.recv(4096))


def floor(tool, clients, where):
    """Microseconds of processor time of a send, if nothing else is done."""
    length = len(wire.message("A", b"\0" * 4 + wire.text("bench") + wire.text("payload 10")))
    command = [tool, str(clients), str(NOTIFICATIONS), str(length), where]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def backends_cpu(source):
    """Seconds of processor time of all backends that listen."""
    rows = source.execute(
        "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    ).fetchall()
    return sum(rig.cpu_seconds(row[0]) for row in rows)


def user_seconds(pid):
    """Processor time outside of the kernel, in steps of 10 ms."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")


def measure(source, clients, cpu, user=lambda: 0):
    """Microseconds of processor time for each client, those outside of the kernel, and milliseconds
    until the last client has it."""
    started = user()
    with selectors.DefaultSelector() as selector:
        for client in clients:
            selector.register(client.socket, selectors.EVENT_READ)
        costs, times = [], []
        for number in range(NOTIFICATIONS):
            before, began = cpu(), time.monotonic()
            source.execute(f"NOTIFY bench, 'payload {number}'")
            wait_for_all(selector, len(clients))
            times.append((time.monotonic() - began) * 1e3)
            costs.append((cpu() - before) * 1e6 / len(clients))
    outside = (user() - started) * 1e6 / NOTIFICATIONS / len(clients)
    return statistics.mean(costs), outside, statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=10000)
    parser.add_argument("--direct", type=int, default=80, help="clients of PostgreSQL itself")
    parser.add_argument("--rounds", help="ignored: for the other scripts")
    parser.add_argument("--seconds", help="ignored: for the other scripts")
    options = parser.parse_args()
    rig.raise_descriptors(2 * options.clients + 200)
    report = Report(f"NOTIFY to {options.clients} clients")
    with contextlib.ExitStack() as stack:
        cluster = Cluster()
        stack.callback(cluster.destroy)
        bench = stack.enter_context(Rig())
        tool = rig.compile_tool("send_floor", bench.folder)
        source = stack.enter_context(
            psycopg.connect(host=HOST, port=cluster.port, user=USER, dbname=DATABASE, autocommit=True)
        )
        (daemon,) = stack.enter_context(
            bench.running(
                OURS, databases=[f"{DATABASE} = host={HOST} port={cluster.port}"],
                pool_mode="transaction", max_client_conn=options.clients + 100,
                log_connections=0, log_disconnections=0, unix_socket_dir=bench.folder,
            )
        )
        for name, address in [
            ("TCP", (HOST, daemon.port)),
            ("Unix sockets", f"{bench.folder}/.s.PGSQL.{daemon.port}"),
        ]:
            with contextlib.ExitStack() as clients_end:
                clients = listeners(clients_end, address, options.clients)
                cost, outside, wait = measure(
                    source, clients, lambda: rig.cpu_seconds(daemon.pid),
                    lambda: user_seconds(daemon.pid),
                )
            least = floor(tool, options.clients, "tcp" if name == "TCP" else f"{bench.folder}/floor")
            if name == "TCP":
                report.show(f"us of processor time for each client, {name}", cost)
            else:
                report.row(f"us of processor time for each client, {name}", cost, 3)
            report.show(f"us of a program that only sends, {name}", least)
            report.row(f"our cost by that, {name}", cost / least, 1.5)
            report.row(f"us of it outside of the kernel, {name}", outside, 1)
            report.show(f"ms until the last client has it, {name}", wait)
        with contextlib.ExitStack() as clients_end:
            clients = listeners(clients_end, (HOST, cluster.port), options.direct)
            cost, _, wait = measure(source, clients, lambda: backends_cpu(source))
        report.show(f"us, {options.direct} clients of PostgreSQL", cost)
        report.show("ms until the last of these has it", wait)
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
