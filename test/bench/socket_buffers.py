# SPDX-License-Identifier: ISC
"""Bulk data with small and large kernel buffers (tcp_socket_buffer), beside PgBouncer.

Small socket buffers can leave TCP with a closed receive window between two receives, so that the
sender waits for a timer of the kernel each time. Rows of a SELECT, COPY OUT and COPY IN are
transferred with several sizes, without and with TLS on both sides; the bar is PgBouncer's rate of
the same round.
"""

import argparse
import contextlib
import ssl
import statistics
import sys
import time

import rig
from rig import DATABASE, HOST, OURS, THEIRS, USER
from support import wire
from support.clients.raw import RawClient
from support.servers.certificates import Authority
from support.servers.cluster import Cluster

SIZES = [1, 1024, 4096, 16384, 1048576]
# A set-returning function in the list of columns is not materialized before the first row.
ROWS = "SELECT repeat('x', 1000), generate_series(1, 100000000)"
WHOLE_ROW = b"x" * 7999 + b"\n"

# A part of PgBouncer's rate within which ours counts as equal: rates of two runs differ by that.
NOISE = 0.9


def connect(port, tls):
    """A client that has logged in."""
    client = RawClient((HOST, port), timeout=60)
    if tls:
        client.send(wire.ssl_request())
        assert client.read_bytes(1) == b"S"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        client.socket = context.wrap_socket(client.socket)
    return client.login(user=USER, database=DATABASE)


def receive(client, sql, seconds):
    """Bytes a second of the answer to this query, which does not end in that time."""
    client.send(wire.query(sql))
    sock = client.socket
    room = bytearray(1 << 18)
    sock.recv_into(room)
    sock.settimeout(seconds)
    began = time.monotonic()
    got = 0
    while (now := time.monotonic()) < began + seconds:
        with contextlib.suppress(TimeoutError):
            got += sock.recv_into(room)
    return got / (now - began)


def send(client, seconds):
    """Bytes a second of a COPY whose rows the server parses and does not store."""
    client.send(wire.query("CREATE TEMP TABLE IF NOT EXISTS sink (line text)"))
    client.read_until("Z")
    client.send(wire.query("COPY sink FROM STDIN WHERE false"))
    client.read_until("G")
    piece = wire.copy_data(WHOLE_ROW) * 4
    began = time.monotonic()
    sent = 0
    client.socket.settimeout(60)
    while time.monotonic() < began + seconds:
        client.socket.sendall(piece)
        sent += len(piece)
    client.socket.sendall(wire.copy_done())
    client.read_until("Z", timeout=120)
    return sent / (time.monotonic() - began)


TRANSFERS = {
    "SELECT": lambda client, seconds: receive(client, ROWS, seconds),
    "COPY OUT": lambda client, seconds: receive(client, f"COPY ({ROWS}) TO STDOUT", seconds),
    "COPY IN": send,
}


def rate(port, tls, transfer, seconds):
    """Million bytes a second of one transfer on a connection of its own."""
    client = connect(port, tls)
    try:
        return TRANSFERS[transfer](client, seconds) / 1e6
    finally:
        client.close()


def measure(bench, cluster, report, size, tls, files, options):
    """The rows of the report for one size, with or without TLS."""
    mode = "require" if tls else "disable"
    settings = {"tcp_socket_buffer": size, "server_tls_sslmode": mode, "client_tls_sslmode": mode}
    if tls:
        settings.update(client_tls_cert_file=files[0], client_tls_key_file=files[1])
    names = [OURS] + ([THEIRS] if rig.find_pgbouncer() else [])
    database = f"{DATABASE} = host={HOST} port={cluster.port}"
    with bench.running(*names, databases=[database], **settings) as daemons:
        for transfer in TRANSFERS:
            what = f"{size} bytes, {'TLS' if tls else 'plain'}, {transfer}, MB/s"
            values = rig.in_turns(
                daemons,
                lambda daemon: rate(daemon.port, tls, transfer, options.seconds),
                options.rounds,
            )
            ours = statistics.median(values[0])
            if len(values) == 1:
                report.show(what, ours)
                continue
            theirs = statistics.median(values[1])
            report.row(what, ours, theirs * NOISE, f"PgBouncer {theirs:.3f}", least=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one transfer")
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    options = parser.parse_args()

    authority = Authority()
    files = authority.issue("server", names=f"IP:{HOST}")
    cluster = Cluster({"ssl": "on", "ssl_cert_file": f"'{files[0]}'", "ssl_key_file": f"'{files[1]}'"})
    report = rig.Report("Bulk data and socket buffers")
    try:
        with rig.Rig() as bench:
            for size in options.sizes:
                for tls in (False, True):
                    try:
                        measure(bench, cluster, report, size, tls, files, options)
                    except (rig.Trouble, OSError, AssertionError) as trouble:
                        report.trouble(f"{size} bytes, {'TLS' if tls else 'plain'}", trouble)
    finally:
        cluster.destroy()
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
