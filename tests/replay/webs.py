"""A mock over HTTP in its own process, and plain requests to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests import limits
from tests.limits import LIMIT
from tests.peers import warm


class Served:
    """A running `mcpspy mock --listen`."""

    def __init__(self, process, stderr):
        self.process = process
        self.url = process.stdout.readline().strip()
        self._log = stderr
        self.address = urlsplit(self.url).hostname, urlsplit(self.url).port
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
            self.code = self.process.wait(LIMIT)
            self._log.seek(0)
            self.stderr = self._log.read()
        return self.code, self.stderr


def served(*captures, options=()):
    """Serve captures over HTTP."""
    return listening("mock", *captures, *options)


@contextmanager
def listening(*arguments):
    """Run a command that listens on a free port and prints its URL."""
    argv = [sys.executable, "-m", "mcpspy", *map(str, arguments), "--listen", "127.0.0.1:0"]
    with tempfile.TemporaryFile("w+") as stderr:
        if parent := warm.parent_of(argv):
            process = warm.Child(argv[1:], dict(os.environ), stderr, imported=parent)
        else:
            process = limits.Popen(argv, stdout=subprocess.PIPE, stderr=stderr, text=True)
        try:
            there = Served(process, stderr)
            yield there
            there.end()
        finally:
            process.kill()
            process.wait(LIMIT)
            process.stdout.close()


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
