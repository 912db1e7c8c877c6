"""A person with a terminal stops the calls of a real SDK client that is already connected to a real SDK server.

SDK client ── mcpspy wrap ── SDK server        with the entry that `mcpspy install` has written
SDK client ── mcpspy proxy ── SDK server       Streamable HTTP
"""

import json
import os
import signal
import sys

import pytest

from mcpspy.capture.records import Frame, Release
from tests import limits
from tests.peers import prepare
from tests.peers.serving import LIMIT, running, serving
from tests.relay.harness import until
from tests.relay.talking import talking
from tests.relay.viewer import Viewer
from tests.tui.terminal import mcpspy

pytestmark = pytest.mark.needs(".peers/python1")
SPY = [sys.executable, "-m", "mcpspy"]
EDITOR = """#!/bin/sh
sed -i.bak "$(cat {change})" "$1" && rm "$1.bak"
"""


@pytest.fixture
def environ(tmp_path):
    """A separate home for the client, and therefore for the captures."""
    return {name: text for name, text in os.environ.items() if not name.startswith("MCPSPY")} | {"HOME": str(tmp_path)}


@pytest.fixture
def person(tmp_path, terminal):
    return Person(tmp_path, terminal)


class Person:
    """A person with a terminal and an editor, who opens the newest session."""

    def __init__(self, folder, terminal):
        self.folder, self.terminal = folder, terminal
        self.type, self.shows = terminal.type, terminal.shows
        self.editor, self.change = folder / "editor", folder / "change"
        self.editor.write_text(EDITOR.format(change=self.change))
        self.editor.chmod(0o755)

    def opens(self, *targets):
        self.shows("ready")
        self.type(mcpspy("tui", *targets, env=[f"EDITOR={self.editor}"]), "Enter")

    def no_longer_sees(self, text):
        until(lambda: text not in self.terminal.screen(), f"a screen without {text!r}")

    def goes_to_the_first_call(self):
        """Move from the last row, the list of tools, up to the first call."""
        self.shows("tools/list\n result · server → client")
        wanted = ("→ tools/call echo", "← tools/list")  # over HTTP there may be HTTP heads between them
        screens = []

        def complete():
            screens.append(self.terminal.screen().splitlines())
            return all(any(it in row for row in screens[-1]) for it in wanted)

        until(complete, f"a screen with {wanted}")
        call, tools = (next(n for n, row in enumerate(screens[-1]) if it in row) for it in wanted)
        self.type(*["k"] * (tools - call))
        self.shows("tools/call echo\n request · client → server")

    def breaks(self):
        """Set a breakpoint from the row of a call."""
        self.type("B")
        self.shows("method:tools/call name:echo from:client")
        self.type("Enter")
        self.shows("held from now on")

    def breaks_at(self, when):
        """Set a breakpoint from the row of a call, with another filter."""
        self.type("B")
        self.shows("method:tools/call name:echo from:")
        self.type("C-u")
        self.no_longer_sees("name:echo from:")
        self.type(when, "Enter")
        self.shows("held from now on")

    def meets_held(self, key, done, change=""):
        """Go to the held row and end the hold with a key."""
        self.change.write_text(change)
        self.shows("1 held")
        self.type("H")
        self.shows("⏎ continue")
        self.type(key)
        self.shows(f"is {done}")
        self.no_longer_sees("1 held")

    def removes_the_gate(self, name):
        """Remove the gate in the view of gates, then go back to the call."""
        self.type("6")
        self.shows(f"● on  {name}")
        self.type("x")
        self.shows("no gate is set")
        self.type("1")
        self.shows(" tools/call echo\n re")

    def leaves(self):
        self.type("q")
        until(lambda: not self.terminal.alternate(), "the shell")


def wait_for(viewer, *names):
    """Wait until exactly these gates are in force."""
    until(lambda: tuple(gate["name"] for gate in viewer.in_force()) == names, f"{names} in force")


def nobody_is_blamed(capture, environ):
    """Return whether `mcpspy check` reports no error and no warning."""
    command = [*SPY, "check", str(capture)]
    done = limits.run(command, env=environ, check=False, capture_output=True, text=True)
    return "\n0 errors, 0 warnings, " in f"\n{done.stdout}" or print(done.stdout)  # its relay may still be ending


def test_calls_of_an_installed_server_are_held_edited_answered_dropped_and_sent_again(tmp_path, environ, person):
    configuration = tmp_path / ".cursor" / "mcp.json"
    configuration.parent.mkdir()
    command, *arguments = prepare.server("python1")
    configuration.write_text(json.dumps({"mcpServers": {"features": {"command": command, "args": arguments}}}))
    limits.run([*SPY, "install", "cursor", "--yes"], env=environ, cwd=tmp_path, check=True, capture_output=True)
    entry = json.loads(configuration.read_text())["mcpServers"]["features"]
    assert "wrap" in entry["args"]
    with talking(prepare.talker("stdio", entry["command"], *entry["args"]), environ) as talk:
        assert talk.ask("one") == "one"
        (capture,) = (tmp_path / ".mcpspy" / "captures").glob("*.jsonl")
        viewer = Viewer(capture)
        person.opens()
        person.goes_to_the_first_call()

        person.breaks()
        wait_for(viewer, "break echo")
        talk.say("two")
        person.meets_held("E", "edited", "s/two/edited/")
        assert talk.heard() == "edited"
        person.shows("ms, edited (gate break echo) · forwarded as")
        talk.say("three")
        person.meets_held("A", "answered", 's/"text": *""/"text":"our answer"/')
        assert talk.heard() == "our answer"
        talk.say("four")
        person.meets_held("D", "dropped")
        talk.say("five")
        person.meets_held("Enter", "continued")
        assert talk.heard() == "five", "and nothing of the call that was dropped"

        person.change.write_text("s/five/again/")
        person.type("R")
        person.shows("send to features under the id mcpspy-")
        person.type("C-o")
        person.shows("; the client does not see it")
        person.removes_the_gate("break echo")
        wait_for(viewer)
        person.breaks_at("kind:result")
        wait_for(viewer, "break kind:result")
        talk.say("six")
        person.meets_held("E", "edited", "s/six/changed/")
        assert talk.heard() == "changed"
        person.removes_the_gate("break kind:result")
        wait_for(viewer)
        assert talk.ask("seven") == "seven"
        person.leaves()
    own, answer = (frame.raw for frame in viewer.records(Frame) if frame.by == "viewer")
    assert json.loads(own)["params"]["arguments"] == {"text": "again"}
    assert json.loads(answer)["result"]["content"][0]["text"] == "again"
    assert [release.how for release in viewer.records(Release)] == [
        "edited", "answered", "dropped", "continued", "edited",
    ]  # fmt: skip
    assert nobody_is_blamed(viewer.capture, environ)


def test_a_call_through_the_proxy_is_held_and_edited(tmp_path, environ, person):
    capture = tmp_path / "proxied.jsonl"
    command = [*SPY, "proxy", "--listen", "127.0.0.1:0", "-o", str(capture)]
    with serving("python1", "http") as url, running([*command, url]) as proxy:
        with talking(prepare.talker("http", proxy.stdout.readline().strip())) as talk:
            assert talk.ask("one") == "one"
            viewer = Viewer(capture)
            person.opens(capture)
            person.goes_to_the_first_call()
            person.breaks()
            wait_for(viewer, "break echo")
            talk.say("two")
            person.meets_held("E", "edited", "s/two/edited/")
            assert talk.heard() == "edited"
            person.shows("ms, edited (gate break echo) · forwarded as")
            talk.say("three")
            person.shows("1 held")
            person.leaves()
            assert talk.heard() == "three", "what is held goes on when the viewer leaves"
            wait_for(viewer)
            assert talk.ask("four") == "four"
        proxy.send_signal(signal.SIGINT)
        assert proxy.wait(LIMIT) == 0
    assert [release.how for release in viewer.records(Release)] == ["edited", "continued"]
    assert nobody_is_blamed(viewer.capture, environ)
