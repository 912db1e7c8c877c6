"""Use VS Code once, as a person would: `vscode.py CODE_SERVER PROMPT`, in a folder that is to be opened.

VS Code is code-server, and the person is Chromium with chromedriver. The chat gets the prompt and its tools get their
approval. After the answer the server `plain` is stopped in the list of servers. Ctrl-C cancels the chat's answer. The
last picture of the window is `screen.png` beside the folder.
"""

import base64
import http.client
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from client_rows import MODEL
from real_clients import started

F1, ENTER, ESCAPE = "\ue031", "\ue007", "\ue00c"
WINDOW = "--window-size=1100,800"
SERVER = ("--auth", "none", "--bind-addr", "127.0.0.1:0", "--disable-telemetry", "--disable-update-check")
BROWSER = {"args": ["--headless=new", "--no-sandbox", "--disable-gpu", WINDOW]}
PATIENCE = 60  # seconds until a part of the window must be there
ROWS = """[...document.querySelectorAll('.quick-input-widget .monaco-list-row')]
  .map(row => row.getAttribute('aria-label'))"""
ROW = "document.querySelector('.quick-input-widget .monaco-list-row.focused')?.getAttribute('aria-label') ?? ''"
FOCUSED = "document.querySelector('.interactive-input-part .monaco-editor.focused')"
STOP = "document.querySelector('.interactive-session .codicon-stop-circle')"
CHAT = "document.querySelector('.interactive-session')?.innerText ?? ''"
ALLOW = """const allow = [...document.querySelectorAll('.chat-confirmation-widget-container .monaco-button')]
  .find(button => button.innerText.startsWith('Allow')); allow?.click(); return """


class Window:
    """A page in Chromium, controlled by WebDriver."""

    def __init__(self, port: int) -> None:
        self._port, self._path = port, "/session"
        session = self._ask("POST", "", {"capabilities": {"alwaysMatch": {"goog:chromeOptions": BROWSER}}})
        self._path += "/" + session["sessionId"]

    def open(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def close(self) -> None:
        self._ask("DELETE", "")

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def value(self, script: str) -> Any:
        return self._ask("POST", "/execute/sync", {"script": f"return {script}", "args": []})

    def write(self, text: str) -> None:
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": keys}]})

    def wait(self, script: str, holds: Callable[[Any], bool] = bool, seconds: float = PATIENCE) -> None:
        until = time.monotonic() + seconds
        while not holds(self.value(script)):
            if time.monotonic() > until:
                raise TimeoutError(script)
            time.sleep(0.1)

    def pick(self, text: str, seconds: float = PATIENCE) -> None:
        """Choose in a list: write the text, and wait until this line is the first one."""
        self.write(text)
        self.wait(ROW, lambda row: row.startswith(text), seconds)
        self.write(ENTER)

    def command(self, title: str) -> None:
        """Choose in the command palette. While VS Code starts, its list does not have all commands yet."""
        until = time.monotonic() + PATIENCE
        while True:
            self.write(ESCAPE + F1)
            self.wait("document.activeElement?.closest('.quick-input-widget')")
            try:
                return self.pick(title, 5)
            except TimeoutError:
                if time.monotonic() > until:
                    raise

    def _ask(self, method: str, path: str, body: dict | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request(method, self._path + path, json.dumps(body) if body else None)
        answer = json.load(connection.getresponse())["value"]
        connection.close()
        return answer


def chat(window: Window, prompt: str) -> None:
    """Ask, approve the tools, and wait for the answer."""
    window.wait("document.querySelector('.monaco-workbench .statusbar')")
    window.command("Chat: Manage Language Models")  # only this makes VS Code read its list
    window.wait("document.querySelector('.models-widget')?.innerText ?? ''", lambda text: MODEL in text)
    window.write(ESCAPE)
    window.command("Chat: Open Chat")
    window.wait(FOCUSED)
    window.write(prompt)
    window.write(ENTER)
    window.wait(STOP)
    window.wait(f"(() => {{{ALLOW}{STOP}}})()", lambda button: not button, float("inf"))


def main(code_server: str, prompt: str) -> None:
    environ = dict(os.environ)
    with (
        started([code_server, *SERVER, "--disable-workspace-trust"], environ, "listening on http://") as listening,
        started(["chromedriver", "--port=0"], environ, "successfully on port") as port,
    ):
        window = Window(int(port.rpartition(" ")[2].strip(".")))
        window.open(f"{listening.split()[-1]}?folder={Path.cwd()}")
        try:
            chat(window, prompt)
        except KeyboardInterrupt:
            window.value(f"{STOP}.click()")
        finally:
            window.picture(Path("../screen.png"))
            print(window.value(CHAT))
            window.command("MCP: List Servers")
            window.pick("plain")
            window.wait(ROWS, lambda rows: "Show Output" in rows)
            if "Stop Server" in window.value(ROWS):
                window.pick("Stop Server")
            window.close()


main(*sys.argv[1:])
