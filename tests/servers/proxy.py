"""A TCP proxy, with which a test cuts the network between a client and a server."""

from __future__ import annotations

import selectors
import socket
import threading
from contextlib import ExitStack, suppress


class Proxy:
    """Passes bytes on to a server, until it is cut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._lock = threading.Lock()
        self._is_cut = False
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with ExitStack() as held, suppress(OSError):
            held.enter_context(client)
            server = held.enter_context(socket.create_connection(("127.0.0.1", self._target)))
            with self._lock:
                if self._is_cut:
                    return
                self._open |= {client, server}
            selector = held.enter_context(selectors.DefaultSelector())
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    source, target = key.fileobj, key.data
                    assert isinstance(source, socket.socket)
                    payload = source.recv(1 << 16)
                    if not payload:
                        return
                    target.sendall(payload)

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            for one in self._open:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            self._open.clear()

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self._listener.close()
        self.cut()
