# SPDX-License-Identifier: ISC
"""How much of what a client has sent its peer has not received yet."""

import fcntl
import socket
import struct
import termios


def unread_by_peer(client):
    """The bytes that the kernel still has for the peer of this socket, on the same machine. A Unix
    socket counts them with its own overhead: unix(7), SIOCOUTQ; for TCP: proc(5), /proc/net/tcp."""
    if client.family == socket.AF_UNIX:
        return struct.unpack("i", fcntl.ioctl(client, termios.TIOCOUTQ, b"\0" * 4))[0]
    ports = [f"{address[1]:04X}" for address in (client.getpeername(), client.getsockname())]
    with open("/proc/net/tcp") as file:
        for line in file:
            fields = line.split()
            if [field.rpartition(":")[2] for field in fields[1:3]] == ports:
                return int(fields[4].rpartition(":")[2], 16)
    raise AssertionError("the connection is gone")
