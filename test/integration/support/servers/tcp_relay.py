# SPDX-License-Identifier: ISC
"""A TCP relay between the daemon and a server, to simulate network faults."""

import contextlib
import selectors
import socket
import struct
import threading

from support.process import HOST


class Relay:
    """Forwards bytes according to its mode.

    pass: both directions flow.

    hold: nothing is read or forwarded; connections are accepted and not connected further.

    reset: every connection, also each new one, is reset.

    mutate is None or a function (data, toward_server) -> data on each piece that is forwarded;
    piece() returns the maximum size of the next one.
    """

    def __init__(self, port, host=HOST):
        self.target = (host, port)
        self.mode = "pass"
        self.mutate = None
        self.piece = lambda: 65536
        self.accepted = 0
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((HOST, 0))
        self.listener.listen(128)
        self.host, self.port = self.listener.getsockname()
        self._selector = selectors.DefaultSelector()
        self._wake_read, self._wake_write = socket.socketpair()
        self._partner = {}
        self._toward_server = set()
        self._unconnected = set()
        self._stopped = False
        self._selector.register(self.listener, selectors.EVENT_READ, "accept")
        self._selector.register(self._wake_read, selectors.EVENT_READ, "wake")
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def set_mode(self, mode):
        """Change the mode; it applies to all bytes that are not read yet when this returns."""
        assert mode in ("pass", "hold", "reset")
        self.mode = mode
        self._wake()

    def stop(self):
        """End every connection and the relay."""
        self._stopped = True
        self._wake()
        self._thread.join(5)

    def _wake(self):
        with contextlib.suppress(OSError):
            self._wake_write.send(b"x")

    def _loop(self):
        while not self._stopped:
            self._obey()
            for key, _ in self._selector.select(0.5):
                if key.data == "wake":
                    self._wake_read.recv(4096)
                elif key.data == "accept":
                    self._accept()
                elif key.fileobj in self._partner and self.mode == "pass":
                    self._pass(key.fileobj)
        for sock in list(self._partner) + list(self._unconnected):
            self._drop(sock)
        for sock in (self.listener, self._wake_read, self._wake_write):
            sock.close()
        self._selector.close()

    def _obey(self):
        """Apply the mode to the open connections."""
        if self.mode == "reset":
            for sock in list(self._partner) + list(self._unconnected):
                self._drop(sock, reset=True)
        watching = self._selector.get_map()
        for sock in self._partner:
            if (self.mode == "pass") == (sock in watching):
                continue
            if self.mode == "pass":
                self._selector.register(sock, selectors.EVENT_READ, "data")
            else:
                self._selector.unregister(sock)
        if self.mode == "pass":
            for sock in list(self._unconnected):
                self._unconnected.discard(sock)
                self._join(sock)

    def _accept(self):
        sock, _ = self.listener.accept()
        self.accepted += 1
        if self.mode == "pass":
            self._join(sock)
        else:
            self._unconnected.add(sock)

    def _join(self, sock):
        server = socket.socket()
        try:
            server.connect(self.target)
        except OSError:
            server.close()
            self._drop(sock, reset=True)
            return
        for each in (sock, server):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(each, selectors.EVENT_READ, "data")
        self._partner[sock] = server
        self._partner[server] = sock
        self._toward_server.add(sock)

    def _pass(self, sock):
        try:
            data = sock.recv(self.piece())
            if not data:
                raise OSError("end")
            if self.mutate:
                data = self.mutate(data, sock in self._toward_server)
            self._partner[sock].sendall(data)
        except OSError:
            self._drop(sock)

    def _drop(self, sock, reset=False):
        partner = self._partner.pop(sock, None)
        self._unconnected.discard(sock)
        self._toward_server.discard(sock)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)
        with contextlib.suppress(OSError):
            if reset:
                sock.setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
        sock.close()
        if partner is not None:
            self._partner.pop(partner, None)
            self._drop(partner, reset)
