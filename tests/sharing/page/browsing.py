"""A page in a browser, and the actions of a user."""

import json

from tests.sharing.page import made

DOWN, ENTER, ESCAPE = "\ue015", "\ue007", "\ue00c"
_WIDE = (1400, 900)


class Page:
    """A page in a browser."""

    def __init__(self, browser, folder):
        self.browser = browser
        self.folder = folder
        self.made = {}

    def open(self, path, address="#timeline", **about):
        """Open the page of a capture; return the session that the page shows."""
        key = (path, str(about))
        if key not in self.made:
            data = made.session(path, **about)
            self.made[key] = data, made.write(self.folder / f"{len(self.made)}.html", data, path.read_bytes())
        data, url = self.made[key]
        self.visit(url + address)
        return data

    def visit(self, url):
        self.command("Emulation.setEmulatedMedia", media="", features=[])
        self.size(*_WIDE)
        self.browser.ask("/url", url="about:blank")
        self.browser.log()
        self.browser.ask("/url", url=url)
        self.browser.until("document.body.dataset.ready === 'all'")

    def command(self, name, **parameters):
        return self.browser.ask("/goog/cdp/execute", cmd=name, params=parameters)

    def size(self, width, height):
        self.command(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def press(self, keys):
        for key in keys:
            self.browser.press(key)

    def texts(self, selector):
        return self.browser.script(f"return [...document.querySelectorAll({selector!r})].map(it => it.textContent)")

    def value(self, expression):
        return self.browser.script(f"return {expression}")

    def until(self, expression):
        self.browser.until(expression)

    def selected(self):
        """Return the fragment of the page's address, once the selected row and message match it."""
        self.until(
            "document.querySelector('#rows [aria-selected=true] .n').textContent === location.hash.split('.')[0]"
            " && document.querySelector('.card.selected .frame').textContent === location.hash"
        )
        return self.value("location.hash")

    def filter(self, text):
        """Type a filter; return the count of matching rows as the page shows it."""
        self.browser.script("document.getElementById('filter').value = ''")
        self.press(f"/{text}")
        self.until(f"document.getElementById('filter').dataset.done === {text!r}")
        return self.value("document.getElementById('count').textContent")


def requested(browser):
    """Return the URLs that the pages requested since the last call, from the browser's log."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.ask("/se/log", type="performance")]
    named = ("Network.requestWillBeSent", "Network.webSocketCreated")
    return [
        message["params"].get("request", message["params"])["url"] for message in messages if message["method"] in named
    ]
