# SPDX-License-Identifier: ISC
"""Name servers: a real one, dnsmasq, and one that answers as badly as a test needs it."""

import contextlib
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import threading

import pytest

from support.process import as_service, drop_folder, make_folder, own, wait_until

PORT = 53
A, CNAME, SOA, AAAA = 1, 5, 6, 28
NXDOMAIN = 3


def free_address():
    """A loopback address with a free port 53: resolv.conf cannot name a port."""
    if os.getuid() != 0:
        pytest.skip("only root may answer on port 53")
    while True:
        address = "127.{}.{}.{}".format(*(random.SystemRandom().randrange(2, 250) for _ in "abc"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            with contextlib.suppress(OSError):
                sock.bind((address, PORT))
                return address


# --- messages -------------------------------------------------------------------------------


def encode_name(name):
    """RFC 1035 section 3.1."""
    labels = [label.encode() for label in name.split(".") if label]
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def question_of(message):
    """The name and type that a question asks for, and where it ends."""
    labels, at = [], 12
    while message[at]:
        labels.append(message[at + 1 : at + 1 + message[at]].decode("latin-1"))
        at += 1 + message[at]
    (kind,) = struct.unpack_from(">H", message, at + 1)
    return ".".join(labels), kind, at + 5


def record(kind, data, ttl=60):
    """A resource record of the name that was asked for."""
    return b"\xc0\x0c" + struct.pack(">HHIH", kind, 1, ttl, len(data)) + data


def addresses(*texts, ttl=60):
    """A records."""
    return [record(A, socket.inet_aton(text), ttl) for text in texts]


def reply(question, records=(), code=0, truncated=False):
    """The answer to a question."""
    end = question_of(question)[2]
    flags = 0x8180 | code | (0x0200 if truncated else 0)
    head = question[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
    return head + question[12:end] + b"".join(records)


def look_up(server, name, timeout=0.5):
    """The IPv4 addresses that this server knows; None when it does not answer."""
    question = struct.pack(">HHHHHH", random.randrange(65536), 0x0100, 1, 0, 0, 0)
    question += encode_name(name) + struct.pack(">HH", A, 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(timeout)
        try:
            sock.connect((server, PORT))
            sock.send(question)
            message = sock.recv(65536)
        except OSError:
            return None
    at, found = question_of(message)[2], []
    for _ in range(struct.unpack_from(">H", message, 6)[0]):
        kind, _, _, length = struct.unpack_from(">HHIH", message, at + 2)
        if kind == A:
            found.append(socket.inet_ntoa(message[at + 12 : at + 16]))
        at += 12 + length
    return found


# --- dnsmasq --------------------------------------------------------------------------------


class Dnsmasq:
    """Authoritative for the zone `zone.test` if there is a serial; knows the names of set()."""

    def __init__(self, serial=None):
        self.address = free_address()
        self.folder = make_folder("pgusher-dns-")
        self.hosts = os.path.join(self.folder, "hosts")
        self.process = None
        self.write({})
        self.start(serial)

    def write(self, names):
        """Write the names to the hosts file, before dnsmasq reads it."""
        with open(self.hosts, "w") as file:
            for name, places in names.items():
                file.writelines(f"{place} {name}\n" for place in places)
        os.chmod(self.hosts, 0o644)

    def start(self, serial=None):
        """Start and wait until it answers."""
        zone = []
        if serial is not None:
            zone = [f"--auth-server=ns.zone.test,{self.address}", "--auth-zone=zone.test"]
            zone += [f"--auth-soa={serial}"]
        program = shutil.which("dnsmasq", path=os.environ.get("PATH", "") + ":/usr/sbin")
        self.process = subprocess.Popen(
            as_service(
                [program, "--keep-in-foreground", "--conf-file=/dev/null", "--pid-file="]
                + ["--user=root", "--bind-interfaces", f"--listen-address={self.address}"]
                + ["--no-resolv", "--no-hosts", "--local=/test/", "--cache-size=0"]
                + [f"--addn-hosts={self.hosts}", *zone],
                as_root=True,
            ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self.answers, 10, "dnsmasq to answer")

    def answers(self):
        """Whether it answers questions."""
        assert self.process.poll() is None, f"dnsmasq ended with {self.process.returncode}"
        return look_up(self.address, "any.zone.test") is not None

    def set(self, names):
        """Replace all names and their addresses: {name: [address, ...]}.

        The serial is incremented.
        """
        self.write(names)
        self.process.send_signal(signal.SIGHUP)
        for name, places in (names or {"db.test": []}).items():
            wait_until(
                lambda n=name, p=places: sorted(look_up(self.address, n) or []) == sorted(p),
                10,
                f"dnsmasq to know {name}",
            )

    def stop(self):
        """End the process; the names remain."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)

    def destroy(self):
        """End it and remove its files."""
        self.stop()
        drop_folder(self.folder)


# --- a scripted one -------------------------------------------------------------------------


class FakeNames:
    """Answers each question over UDP and TCP with answer(question, tcp); None: no answer."""

    def __init__(self, answer=lambda question, tcp: None):
        self.address = free_address()
        self.answer = answer
        self.questions = 0
        self.tcp_questions = 0
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind((self.address, PORT))
        self._tcp = socket.create_server((self.address, PORT))
        self._stopped = False
        for work in (self._serve_datagrams, self._accept):
            threading.Thread(target=work, daemon=True).start()

    def _serve_datagrams(self):
        while not self._stopped:
            with contextlib.suppress(OSError):
                question, asker = self._udp.recvfrom(4096)
                if len(question) <= 12:
                    continue  # the shutdown in stop() wakes the thread
                self.questions += 1
                message = self.answer(question, False)
                if message is not None:
                    self._udp.sendto(message, asker)

    def _accept(self):
        while not self._stopped:
            with contextlib.suppress(OSError):
                sock, _ = self._tcp.accept()
                threading.Thread(target=self._serve_stream, args=(sock,), daemon=True).start()

    def _serve_stream(self, sock):
        with sock, contextlib.suppress(OSError, struct.error), sock.makefile("rb") as stream:
            while True:
                (length,) = struct.unpack(">H", stream.read(2))
                question = stream.read(length)
                self.tcp_questions += 1
                message = self.answer(question, True)
                if message is not None:
                    sock.sendall(struct.pack(">H", len(message)) + message)

    def stop(self):
        """Answer nothing more."""
        self._stopped = True
        for sock in (self._udp, self._tcp):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


def write_resolv_conf(path, *servers):
    """Write the file, or replace it as a whole, as network managers do."""
    with open(path + ".new", "w") as file:
        file.writelines(f"nameserver {server}\n" for server in servers)
    own(path + ".new")
    os.rename(path + ".new", path)
