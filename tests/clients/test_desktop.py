"""Where clients find commands: U-03. The folders are made here; the search is that of the operating system."""

import os

import pytest

from mcpspy.clients.desktop import chosen, desktop_path, elsewhere, lacking, login_path, output, search_path
from mcpspy.clients.places import Machine
from mcpspy.clients.table import BY_ID
from tests.each import each
from tests.relay.harness import LIMIT, running, until


@pytest.fixture
def here(tmp_path):
    return Machine(str(tmp_path), "linux", {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}, str(tmp_path))


def program(here, name, text="#!/bin/sh\n"):
    path = os.path.join(here.home, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    os.chmod(path, 0o700)
    return path


@each(
    "printed, path",
    [
        ("LANG=C\nPATH=/a:/b\nX=y\n", "/a:/b"),
        ("PATH=$'/a b:/c'\n", "/a b:/c"),
        ("XPATH=/a\n", "/usr/local/bin:/usr/bin:/bin"),
        ("", "/usr/local/bin:/usr/bin:/bin"),
    ],
)
def test_on_linux_systemd_knows_the_path_of_the_desktop(here, printed, path):
    program(here, "bin/systemctl", f"#!/bin/sh\n[ \"$*\" = '--user show-environment' ] && cat <<'E'\n{printed}E\n")
    assert desktop_path(here) == path


def test_without_systemd_and_on_macos_it_is_the_default(here):
    program(here, "bin/systemctl", "#!/bin/sh\necho PATH=/a\nexit 1\n")
    assert desktop_path(here) == "/usr/local/bin:/usr/bin:/bin"
    mac = Machine("/Users/me", "darwin", {"PATH": "/opt/homebrew/bin"}, "/")
    assert desktop_path(mac) == "/usr/bin:/bin:/usr/sbin:/sbin"


def test_each_client_has_a_path_of_its_own(here):
    """Claude Desktop has the desktop's, VS Code that of a login shell, Codex that of the shell it is started from."""
    here.environ.update(VIRTUAL_ENV="/venv", PATH="/venv/bin:/mine:/usr/bin")
    assert search_path(BY_ID["claude-desktop"], here) == "/usr/local/bin:/usr/bin:/bin"
    assert search_path(BY_ID["vscode"], here) == login_path(here) == "/mine:/usr/bin"
    assert search_path(BY_ID["codex"], here) == "/venv/bin:/mine:/usr/bin"
    windows = Machine("C:\\Users\\me", "win32", {"PATH": "C:\\x"}, "C:\\")
    assert search_path(BY_ID["claude-desktop"], windows) == "C:\\x"


@each(
    "line, need",
    [
        ("#!/bin/sh", None),
        ("#!/bin/sh -e", None),
        ("#!/usr/bin/env sh", None),
        ("#!/usr/bin/env -S sh -e", None),
        ("#!/usr/bin/env no-such", ("no-such", True)),
        ("#!/usr/bin/env -S A=1 no-such --x", ("no-such", True)),
        ("#!/no/such/python", ("/no/such/python", False)),
        ("#!/bin/sh\r", ("", False)),
        ("#!/usr/bin/env 'a", None),
        ("\x7fELF", None),
        ("", None),
    ],
)
def test_what_a_script_needs_is_read_from_its_first_line(here, line, need):
    path = program(here, "bin/tool", f"{line}\nrest")
    found = lacking(path, "/usr/bin:/bin")
    assert (found and (found.program, found.on_path)) == need


def test_the_interpreter_of_an_interpreter_is_needed_too(here):
    path = program(here, "bin/tool", "#!/usr/bin/env inner\n")
    program(here, "bin/inner", "#!/usr/bin/env no-such\n")
    assert lacking(path, f"{here.home}/bin:/usr/bin").program == "no-such"
    program(here, "bin/inner", "#!/usr/bin/env inner\n")
    assert lacking(path, f"{here.home}/bin:/usr/bin") is None, "a circle ends"


NVM = ".nvm/versions/node"


@each(
    "name, path, folder",
    [
        ("bin/tool", "bin/tool", ""),
        (f"{NVM}/v9.1.0/bin/tool {NVM}/v22.0.0/bin/tool", f"{NVM}/v22.0.0/bin/tool", ""),
        (".local/bin/tool", ".local/bin/tool", ""),
        ("other/tool", None, ""),
    ],
)  # fmt: skip
def test_a_command_is_looked_for_on_the_path_of_the_shell_and_in_usual_places(tmp_path, name, path, folder):
    home = tmp_path / name.replace("/", "-").replace(" ", "")
    here = Machine(str(home), "linux", {"PATH": f"{home}/bin:/usr/bin"}, str(tmp_path))
    for one in name.split():
        program(here, one)
    found = elsewhere("tool", "/usr/bin:/bin", here)
    assert found == (path and (f"{home}/{path}", folder))


def test_a_shim_is_replaced_by_what_its_manager_runs(here):
    real, shim = program(here, "real/tool"), program(here, ".pyenv/shims/tool")
    manager = program(here, ".pyenv/bin/pyenv", f'#!/bin/sh\n[ "$*" = "which tool" ] && echo {real}\n')
    assert chosen(shim, here) == real
    assert chosen(real, here) == ""
    for printed in ("no such version", f"{real}\n/bin/sh", "/no/such"):
        program(here, ".pyenv/bin/pyenv", f"#!/bin/sh\nprintf '{printed}'\n")
        assert chosen(shim, here) == ""
    os.unlink(manager)
    assert chosen(shim, here) == ""


def test_a_program_that_tells_something_ends_with_all_that_it_started(here):
    pid = os.path.join(here.home, "pid")
    slow = program(here, "bin/slow", f"#!/bin/sh\nsleep 1000 &\necho $! > {pid}.new\nmv {pid}.new {pid}\nwait\n")
    assert output([slow], here.environ, here.home, 1) is None
    with open(pid, encoding="utf-8") as file:
        left = int(file.read())
    until(lambda: not running(left))
    quick = program(here, "bin/quick", f"#!/bin/sh\nsleep 1000 >/dev/null &\necho $! > {pid}\necho yes\n")
    assert output([quick], here.environ, here.home, LIMIT) == "yes\n"
    with open(pid, encoding="utf-8") as file:
        left = int(file.read())
    until(lambda: not running(left))
    assert output(["/no/such"], None, None, 1) is None
    assert output(["\0"], None, None, 1) is None
