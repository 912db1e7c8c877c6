"""The user's own programs: how they are found, and the text that they get."""

import os
import signal
import sys
from contextlib import contextmanager

import pytest
from textual.app import SuspendNotSupported

from mcpspy.errors import UsageError
from mcpspy.tui.widgets.programs import edited, edited_outside, editor_command, pager_command, view, viewer_command


def program(folder, source):
    """Write an editor: a program with `source`, which gets the file's path as `path`."""
    path = folder / "editor.py"
    path.write_text(f"import os, pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n{source}\n")
    return f"{sys.executable} '{path}'"


def test_the_editor_is_that_of_the_environment():
    assert editor_command({"EDITOR": "nano"}) == ["nano"]
    assert editor_command({"EDITOR": "nano", "VISUAL": "code -w '/a b'"}) == ["code", "-w", "/a b"]
    assert editor_command({"EDITOR": "nano", "VISUAL": ""}) == ["nano"]
    for empty in ({}, {"EDITOR": " "}):
        with pytest.raises(UsageError, match="no editor is set"):
            editor_command(empty)


def test_the_viewer_is_that_of_the_system_where_there_is_a_display(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert (
        viewer_command({"DISPLAY": ":0"}, "linux") == viewer_command({"WAYLAND_DISPLAY": "w"}, "linux") == ["xdg-open"]
    )
    assert viewer_command({}, "darwin") == ["open"]
    with pytest.raises(UsageError, match="there is no display"):
        viewer_command({}, "linux")
    with pytest.raises(UsageError, match="nothing can be opened: s saves it"):
        viewer_command({"DISPLAY": ":0"}, "win32")
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="xdg-open is not installed"):
        viewer_command({"DISPLAY": ":0"}, "linux")


def test_a_viewer_gets_a_file_that_only_the_user_can_read(tmp_path):
    os.mkfifo(tmp_path / "note")
    source = f"""
import os, stat, sys
path = sys.argv[-1]
modes = [oct(stat.S_IMODE(os.stat(it).st_mode)) for it in (path, os.path.dirname(path))]
open({str(tmp_path / "note")!r}, "w").write(" ".join([path[-4:], open(path).read(), *modes]))
"""
    view(b"bytes", ".png", [sys.executable, "-c", source])
    assert (tmp_path / "note").read_text() == ".png bytes 0o600 0o700"
    with pytest.raises(UsageError, match="cannot open the file"):
        view(b"bytes", ".png", [str(tmp_path / "none")])


def test_the_pager_is_that_of_the_environment_or_less(monkeypatch):
    assert pager_command({"PAGER": "most -s"}) == ["most", "-s"]
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert pager_command({}) == ["less"]
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(UsageError, match="no pager is set"):
        pager_command({"PAGER": ""})


@pytest.mark.parametrize(
    ("find", "name", "value", "why"),
    [
        (editor_command, "EDITOR", "it's", "$EDITOR is malformed: no closing quotation in it's"),
        (editor_command, "VISUAL", "vi \\", "$VISUAL is malformed: no escaped character in vi \\"),
        (pager_command, "PAGER", '"\x1b[2J', '$PAGER is malformed: no closing quotation in "\\e[2J'),
    ],
)
def test_a_malformed_command_is_one_line(find, name, value, why):
    with pytest.raises(UsageError) as error:
        find({"EDITOR": "vi", name: value})
    assert str(error.value) == why


def test_an_editor_gets_the_text_in_a_file_of_its_own_that_nobody_else_reads(tmp_path):
    note = tmp_path / "note"
    source = f"""pathlib.Path({str(note)!r}).write_text(f"{{path}}\\n{{path.stat().st_mode & 0o777:o}}")
path.write_text(path.read_text().replace("é", "日") + "\\n")"""
    command = editor_command({"EDITOR": program(tmp_path, source)})
    before = signal.getsignal(signal.SIGINT)
    assert edited('{"a":"é"}', command) == '{"a":"日"}'
    path, mode = note.read_text().split("\n")
    assert not os.path.exists(path)
    assert mode == "600" or os.name != "posix"
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    ("source", "why"),
    [("sys.exit(3)", "status 3"), ("path.unlink()", "No such file"), ("path.write_bytes(b'\\xff')", "cannot open")],
)
def test_an_editor_that_fails_is_one_line(tmp_path, source, why):
    with pytest.raises(UsageError, match=why) as error:
        edited("{}", editor_command({"EDITOR": program(tmp_path, source)}))
    assert "\n" not in str(error.value)


def test_an_editor_that_is_not_there_is_one_line():
    with pytest.raises(UsageError, match="/nowhere/vi cannot open the text"):
        edited("{}", ["/nowhere/vi"])


class SuspendableApp:
    """An application that, like Textual, does not resume after a failure."""

    resumed = False

    @contextmanager
    def suspend(self):
        yield
        self.resumed = True


@pytest.mark.parametrize("command", [["/nowhere/vi"], [sys.executable, "-c", "raise SystemExit(3)"]])
def test_the_application_goes_on_after_an_editor_that_fails(command):
    app = SuspendableApp()
    with pytest.raises(UsageError):
        edited_outside(app, "{}", command)
    assert app.resumed
    app = SuspendableApp()
    assert edited_outside(app, "{}", [sys.executable, "-c", ""]) == "{}"
    assert app.resumed


def test_a_terminal_that_cannot_be_given_away_is_one_line():
    class Fixed:
        def suspend(self):
            raise SuspendNotSupported

    with pytest.raises(UsageError, match="cannot run another program"):
        edited_outside(Fixed(), "{}", ["/nowhere/vi"])


def test_a_text_that_cannot_be_written_is_one_line():
    with pytest.raises(UsageError, match="vi cannot open the text"):
        edited("\ud800", ["vi"])
