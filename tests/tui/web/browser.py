"""A real browser."""

import base64
import http.client
import json
import os
import re
import subprocess
import time
from contextlib import closing, suppress

import pytest

from tests import limits
from tests.limits import LIMIT

BLANK = 20_000  # bytes; the picture of an empty page is smaller

needs_chromium = pytest.mark.needs("chromium", "chromedriver")


def fetch(url, method="GET", body=None, **headers):
    """Return the status, body and headers of the response to a request."""
    _, _, authority, path = url.split("/", 3)
    with closing(http.client.HTTPConnection(authority, timeout=LIMIT)) as connection:
        connection.request(method, f"/{path}", body, headers)
        response = connection.getresponse()
        return response.status, response.read().decode(), response.headers


class Browser:
    """Headless Chromium, controlled by plain WebDriver requests over HTTP (https://www.w3.org/TR/webdriver2/).

    `logs` are the logs that it keeps besides the console's log.
    """

    def __init__(self, folder, logs=()):
        self.process = limits.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True, env=os.environ | {"HOME": str(folder)}
        )
        port = None
        while port is None:
            line = self.process.stdout.readline()
            assert line, "chromedriver ended"
            port = re.search(r"on port (\d+)\.", line)
        options = {
            "args": [
                "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1200,700",
                f"--user-data-dir={folder}/profile", "--enable-unsafe-swiftshader",
            ]
        }  # fmt: skip
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": dict.fromkeys(("browser", *logs), "ALL")}
        self.url = f"http://127.0.0.1:{port[1]}/session"
        self.url += "/" + self.ask("", capabilities={"alwaysMatch": wanted})["sessionId"]

    def ask(self, path, method="POST", **arguments):
        """Send a command and return its value."""
        body = json.dumps(arguments) if method == "POST" else None
        status, answer, _ = fetch(self.url + path, method, body)
        assert status == 200, answer
        return json.loads(answer)["value"]

    def script(self, text):
        """Run a function with this body and return its value."""
        return self.ask("/execute/sync", script=text, args=[])

    def until(self, text):
        """Wait until an expression is true."""
        deadline = time.monotonic() + LIMIT
        while not self.script(f"return {text}"):
            assert time.monotonic() < deadline, (text, self.script("return window.seen"), self.log())
            time.sleep(0.05)

    def press(self, *keys):
        """Press keys together and release them."""
        steps = [{"type": "keyDown", "value": key} for key in keys]
        steps += [{"type": "keyUp", "value": key} for key in reversed(keys)]
        self.ask("/actions", actions=[{"type": "key", "id": "keys", "actions": steps}])

    def picture(self):
        """Return the page as a PNG."""
        return base64.b64decode(self.ask("/screenshot", "GET"))

    def settled(self, other=None):
        """Wait until the page is drawn, stable, and different from `other`. Return it as a PNG."""
        deadline = time.monotonic() + LIMIT
        before, now = other, self.picture()
        while len(now) <= BLANK or now == other or now != before:
            assert time.monotonic() < deadline, f"{len(now)} bytes; {self.log()}"
            before, now = now, self.picture()
        return now

    def log(self):
        """Return the errors in the page's console, except those about the font that it cannot load."""
        entries = self.ask("/se/log", type="browser")
        found = [entry["message"] for entry in entries if entry["level"] == "SEVERE"]
        return [message for message in found if "fonts.googleapis.com" not in message]

    def close(self):
        """End the browser in any state."""
        with suppress(OSError, AssertionError):
            self.ask("", "DELETE")
        self.process.terminate()
        self.process.communicate(timeout=LIMIT)
