"""Exports from a session, by command and palette, while keys still work, and the messages about the outcome."""

import base64
import gzip
import os
import re
import threading

import pytest

from mcpspy.tui.app import Spy
from tests.exporters.consumers import exported
from tests.transcript import capture
from tests.tui.screen import on_screen, opened, play, timeline, until
from tests.tui.session.test_screen import typed, wrong


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return capture(str(tmp_path / "made.jsonl"), "> 1 ping\n< 1 = {}\n> 2 tools/list\n< 2 = {}")


def test_commands_and_the_palette_export_what_the_filter_shows_and_a_mistake_stands_below_the_line(tmp_path, path):
    (tmp_path / "mine.csv").write_text("mine")

    async def scenario(pilot):
        await opened(pilot)
        await typed(pilot, "slash", "method:ping")
        await typed(pilot, "colon", "export csv")
        await until(pilot, on_screen(pilot, "exported to"))
        assert on_screen(pilot, "made.csv")()
        await typed(pilot, "colon", "export csv mine.csv")
        assert wrong(pilot) == "mine.csv exists; give another name"
        await pilot.press("escape")
        await typed(pilot, "colon", "export har")
        assert "is a stdio session" in wrong(pilot)
        await pilot.press("escape", "escape")

        commands = {it.title: it.callback for it in pilot.app.get_system_commands(pilot.app.screen)}
        assert [title for title in commands if title.startswith("export")] == [
            "export har", "export mermaid", "export perfetto", "export csv", "export otlp", "export curl",
        ]  # fmt: skip
        commands["export mermaid"]()
        await until(pilot, on_screen(pilot, "made.mmd"))
        commands["export har"]()
        await until(pilot, on_screen(pilot, "not exported:"))

    play(scenario, path)
    assert (tmp_path / "made.csv").read_bytes() == exported("csv", path, wants=lambda row: row.method == "ping")
    assert (tmp_path / "mine.csv").read_text() == "mine"
    assert (tmp_path / "made.mmd").read_text().startswith("sequenceDiagram\n")


def test_keys_work_while_an_export_goes_on_and_nothing_is_left_of_it_when_the_application_ends(
    tmp_path, path, monkeypatch
):
    begun, go_on = threading.Event(), threading.Event()

    def slow(request, read):
        with open(f"{request.path}.part", "w") as file:
            file.write("half")
        begun.set()
        assert go_on.wait(20)
        try:
            read(1)
        finally:
            os.unlink(f"{request.path}.part")
        raise AssertionError("it was not told to end")

    monkeypatch.setattr("mcpspy.tui.session.written", slow)
    app = Spy([path])

    async def scenario(pilot):
        rows = await opened(pilot)
        await typed(pilot, "colon", "export csv")
        await until(pilot, begun.is_set)
        before = rows.cursor
        await pilot.press("down")
        assert timeline(pilot).cursor == before + 1
        app.workers.cancel_all()  # the end of the application does this
        go_on.set()

    play(scenario, app=app)
    assert os.listdir(tmp_path) == ["made.jsonl"]


def test_a_failure_is_told(tmp_path, path, monkeypatch):
    def fail(request, read):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("mcpspy.tui.session.written", fail)

    async def scenario(pilot):
        await opened(pilot)
        await typed(pilot, "colon", "export csv")
        await until(pilot, on_screen(pilot, "not exported: ZeroDivisionError: a bug"))

    play(scenario, path)


def test_what_the_filter_shows_is_shared_without_secrets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    token = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
    call = f'> {{"id":1,"method":"tools/call","params":{{"name":"a","arguments":{{"key":"{token}"}}}}}}'
    made = capture(str(tmp_path / "made.jsonl"), f'{call}\n< {{"id":1,"result":{{}}}}\n> 2 ping\n< 2 = {{}}')

    async def scenario(pilot):
        await opened(pilot)
        await typed(pilot, "slash", "method:tools/call")
        await typed(pilot, "colon", "share")
        await until(pilot, on_screen(pilot, "1 value replaced"))
        await typed(pilot, "colon", "share made.jsonl")
        assert wrong(pilot) == "made.jsonl exists; give another name"

    play(scenario, made)
    kept = b"".join(bring_back(tmp_path / "made.html"))
    assert token.encode() not in kept
    assert b"redacted-github-token-1" in kept
    assert b'"ping' not in kept


def bring_back(page):
    """Return the lines of the capture in a shared page."""
    packed = re.search(rb'id="capture">([^<]+)', page.read_bytes())[1]
    return gzip.decompress(base64.b64decode(packed)).splitlines()
