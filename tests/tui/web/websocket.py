"""The WebSocket of a page, without a browser."""

import json
import socket
import struct
import time

from tests.limits import LIMIT


def authority_of(link):
    """Return the host and port in a link."""
    return link.split("/")[2]


def secret_of(link):
    """Return the secret in the fragment of a link."""
    return link.partition("#secret=")[2]


class Page:
    """The WebSocket that a page opens with the secret of a link. `headers` replace headers, or leave out those of None.

    `status` is the status of the response, and `head` its head.
    """

    def __init__(self, link, headers=()):
        authority = authority_of(link)
        self.socket = socket.create_connection(authority.split(":"), timeout=LIMIT)
        sent = {
            "Host": authority,
            "Origin": f"http://{authority}",
            "Connection": "Upgrade",
            "Upgrade": "websocket",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            "Sec-WebSocket-Protocol": f"mcpspy.tui, {secret_of(link)}",
        } | dict(headers)
        lines = [f"{name}: {value}" for name, value in sent.items() if value is not None]
        request = "\r\n".join(["GET /ws?width=80&height=24 HTTP/1.1", *lines, "", ""])
        self.socket.sendall(request.encode(errors="surrogateescape"))
        self.seen = b""
        self.head = self.until(b"\r\n\r\n").partition(b"\r\n\r\n")[0].decode()
        self.status = int(self.head.split()[1])

    def until(self, wanted):
        """Return the received bytes up to `wanted`; without it, all bytes until the server closes."""
        deadline = time.monotonic() + LIMIT
        while wanted is None or wanted not in self.seen:
            assert time.monotonic() < deadline, self.seen[-2000:]
            chunk = self.socket.recv(65536)
            if not chunk:
                assert wanted is None, self.seen[-2000:]
                break
            self.seen += chunk
        return self.seen

    def close(self):
        """Disconnect without a close frame."""
        self.socket.close()

    def send(self, *message):
        """Send a JSON message."""
        self.say(json.dumps(message))

    def say(self, text):
        """Send any text as a WebSocket text message, masked with zeros."""
        body = text.encode()
        self.socket.sendall(struct.pack("!BB4x", 0x81, 0x80 | len(body)) + body)
