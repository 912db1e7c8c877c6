"""A forward proxy on a real socket: it leads each request and each tunnel to one port, and notes what it was asked."""

import socket
import threading
from base64 import b64encode
from contextlib import contextmanager

from tests.limits import LIMIT


class ScriptedProxy:
    """The proxy: `heads` are those of its requests; `login` is what it requires, `refuses` answers every request."""

    def __init__(self, there, login=None, refuses=b"", asks=b'Basic realm="company"'):
        self.heads = []
        self.login = login
        self.refuses = refuses
        self.asks = asks
        self.there = there
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def close(self):
        self._listener.close()

    def _serve(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client):
        client.settimeout(LIMIT)
        head = _head(client)
        if not head:
            client.close()
            return
        self.heads.append(head)
        refusal = self._refusal(head)
        if refusal:
            client.sendall(refusal)
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self.there), LIMIT)
        if head.startswith(b"CONNECT "):
            client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            server.sendall(_origin_form(head))
        threading.Thread(target=_copy, args=(server, client), daemon=True).start()
        if head.startswith(b"CONNECT "):
            _copy(client, server)
            return
        while piece := _received(client):  # a head comes as a whole, and bodies are small
            if b" http://" in piece.partition(b"\r\n")[0]:
                self.heads.append(piece.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
                piece = _origin_form(piece)
            server.sendall(piece)
        _end(server)

    def _refusal(self, head):
        if self.refuses:
            return self.refuses
        wanted = b"Proxy-Authorization: Basic " + b64encode((self.login or "").encode()) + b"\r\n"
        if self.login is None or wanted in head:
            return b""
        return (
            b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: "
            + self.asks
            + b"\r\nContent-Length: 5\r\n\r\nlogin"
        )


@contextmanager
def forwarding(there, **options):
    """Run a proxy before a port of this machine."""
    proxy = ScriptedProxy(there, **options)
    try:
        yield proxy
    finally:
        proxy.close()


def _head(client):
    """Return the first head of a connection; what follows it is read later."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = _received(client, 1)
        if not byte:
            return b""
        head += byte
    return head


def _origin_form(head):
    method, target, rest = head.split(b" ", 2)
    assert target.startswith(b"http://"), head
    lines = [line for line in rest.split(b"\r\n") if not line.startswith(b"Proxy-Authorization:")]
    return b" ".join([method, b"/" + target.split(b"/", 3)[3], b"\r\n".join(lines)])


def _received(source, size=65536):
    try:
        return source.recv(size)
    except OSError:
        return b""


def _copy(source, to):
    try:
        while piece := _received(source):
            to.sendall(piece)
    except OSError:
        pass
    _end(to)


def _end(it):
    try:
        it.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    it.close()
