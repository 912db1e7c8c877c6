"""Copying: through tmux where the application runs in it, else by the terminal; the notice tells what was done."""

import os
from types import SimpleNamespace

import pytest

from mcpspy.tui.widgets.clipboard import copy

TMUX = {"TMUX": "/run/tmux-0/default,1,0"}


def copied(text, environ, *, web=False):
    sent = []
    where = copy(SimpleNamespace(is_web=web, copy_to_clipboard=sent.append), text, environ)
    return where, sent


@pytest.fixture
def tmux(tmp_path, monkeypatch):
    """Put a tmux on the path that answers with a line and a status, and return the file that it writes."""

    def put(answer, status=0):
        program = tmp_path / "tmux"
        program.write_text(
            f"#!/bin/sh\necho $@ >{tmp_path}/words\ncat >{tmp_path}/text\necho '{answer}'\nexit {status}\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "text"

    return put


@pytest.mark.parametrize(
    ("answer", "where"),
    [
        ("external 256,clipboard,title", "in tmux's buffer and sent to the terminal"),
        ("on clipboard", "in tmux's buffer and sent to the terminal"),
        ("off clipboard", "in tmux's buffer"),
        ("external 256,title", "in tmux's buffer"),
        ("", "in tmux's buffer"),
    ],
)
def test_in_tmux_a_text_goes_to_its_buffer_and_the_notice_says_what_is_known(tmux, answer, where):
    text = tmux(answer)
    assert copied("\u6771\n; x", TMUX) == (where, [])
    assert text.read_text() == "\u6771\n; x"
    assert (text.parent / "words").read_text().startswith("load-buffer -w - ; display-message -p ")


def test_without_tmux_and_in_a_browser_it_is_sent_as_an_escape_sequence(tmux, monkeypatch):
    assert copied("x", {}) == ("sent to the terminal", ["x"])
    text = tmux("on clipboard", status=1)  # an old one: it has no option -w
    assert copied("x", TMUX) == ("sent to the terminal", ["x"])
    text.unlink()
    assert copied("x", TMUX, web=True) == ("sent to the browser", ["x"])
    monkeypatch.setenv("PATH", str(text))
    assert copied("x", TMUX) == ("sent to the terminal", ["x"])
    assert not text.exists()
