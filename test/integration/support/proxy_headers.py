# SPDX-License-Identifier: ISC
"""Headers of the PROXY protocol, as a proxy sends them."""

import socket
import struct

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def line(source, port, destination="192.0.2.9"):
    """Version 1."""
    word = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {word} {source} {destination} {port} 6432\r\n".encode()


def binary(family, rest=b"", command=0x21):
    """Version 2, of any family and content."""
    return SIGNATURE + bytes([command, family]) + struct.pack("!H", len(rest)) + rest


def tcp(source, port, destination="192.0.2.9", tlvs=b""):
    """Version 2, with addresses of IPv4."""
    addresses = socket.inet_aton(source) + socket.inet_aton(destination)
    return binary(0x11, addresses + struct.pack("!HH", port, 6432) + tlvs)


def unix(path=b"/run/client"):
    """Version 2: the client of the proxy has connected to a Unix socket."""
    return binary(0x31, path.ljust(108, b"\0") + b"/run/proxy".ljust(108, b"\0"))


LOCAL = binary(0, command=0x20)
UNSPECIFIED = binary(0)
UNKNOWN = b"PROXY UNKNOWN\r\n"
