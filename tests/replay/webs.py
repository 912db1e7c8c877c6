"""A mock over HTTP in its own process, and plain requests to it."""

import http.client
import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests import limits
from tests.limits import LIMIT


class Served:
    """A running `mcpspy mock --listen`."""

    def __init__(self, process, url):
        self.process = process
        self.url = url
        self.address = urlsplit(url).hostname, urlsplit(url).port
        self.code = None
        self.stderr = ""

    def ask(self, method, body=None, headers=None, target=None):
        """Make a request; return the response, not read yet."""
        connection = http.client.HTTPConnection(*self.address, timeout=LIMIT)
        kind = {"Content-Type": "application/json"} if body else {}
        connection.request(method, target or urlsplit(self.url).path, body and body.encode(), kind | (headers or {}))
        response = connection.getresponse()
        response.connection = connection
        return response

    def post(self, body, headers=None, target=None):
        """POST a message; return the status and the body of the response."""
        response = self.ask("POST", body, headers, target)
        try:
            return response.status, response.read().decode()
        finally:
            response.connection.close()

    def end(self):
        """Send SIGINT, as Ctrl-C does; return the exit status and the text on stderr."""
        if self.code is None:
            self.process.send_signal(signal.SIGINT)
            _, self.stderr = self.process.communicate(timeout=LIMIT)
            self.code = self.process.returncode
        return self.code, self.stderr


def served(*captures, options=()):
    """Serve captures over HTTP."""
    return listening("mock", *captures, *options)


@contextmanager
def listening(*arguments):
    """Run a command that listens on a free port and prints its URL."""
    argv = [sys.executable, "-m", "mcpspy", *map(str, arguments), "--listen", "127.0.0.1:0"]
    process = limits.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    there = Served(process, process.stdout.readline().strip())
    try:
        yield there
        there.end()
    finally:
        if process.returncode is None:
            process.kill()
            process.communicate()


def events(response, count):
    """Return the next events of a stream as type and data."""
    found = []
    for _ in range(count):
        fields = {}
        while line := response.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            fields[name] = value
        found.append((fields["event"], fields["data"]))
    return found


def told(text):
    """Return the decoded data of all events in a body."""
    return [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
