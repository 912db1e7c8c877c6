"""The completions that mcpspy gives to shells, and how the three shells use them."""

import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.complete import (
    CAPTURES,
    COMMAND,
    DIRECTORIES,
    FILES,
    TERMS,
    VALUES,
    answer,
    captures,
    split,
)
from mcpspy.rules import RULES
from tests import limits
from tests.each import each
from tests.limits import LIMIT
from tests.optional import fork_terminal, require

BREAKS = " \t\n\"'@><=;|&(:"  # COMP_WORDBREAKS of bash
HOSTILE = (
    "a b.jsonl",
    "c:d.jsonl",
    "e'f\".jsonl",
    "g$(touch pwned).jsonl",
    "h`touch pwned`.jsonl",
    "-i.jsonl",
    "j;touch pwned;.jsonl",
    "k*?[x]{y,z}~!.jsonl",
    "l\\m&n|o<p>q#.jsonl",
    "r\ns.jsonl",
    "t\x1b[31m.jsonl",
    "üv.jsonl",
)
OTHER = "a $(touch pwned)'\n[b]*"


@pytest.fixture
def environment(tmp_path, monkeypatch):
    """The environment of a shell that finds mcpspy. It starts in an empty directory, beside the captures in `caps`.

    OTHER is another capture directory.
    """
    for name in ("caps", "work", OTHER):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    own = {"MCPSPY_CAPTURE_DIR": str(tmp_path / "caps"), "HOME": str(tmp_path), "ZDOTDIR": str(tmp_path)}
    own["OTHER"] = str(tmp_path / OTHER)
    own |= dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(tmp_path))
    return own | {"PATH": path, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


# The possible words at the cursor


@each(
    "line, kind, some",
    [
        ("", VALUES, {"wrap", "show", "completion"}),
        ("sh", VALUES, {"show", "schema"}),
        ("-", VALUES, {"--help", "--version"}),
        ("show ", CAPTURES, set()),
        ("show a.jsonl ", VALUES, {"--json", "--filter"}),
        ("show -", VALUES, {"--json", "--filter", "--follow", "-h"}),
        ("show --json ", CAPTURES, set()),
        ("show --gate ", FILES, set()),
        ("show --gate=", FILES, set()),
        ("show --gate x ", CAPTURES, set()),
        ("show --gate=x ", CAPTURES, set()),
        ("show --gate -- ", CAPTURES, set()),
        ("show -- ", CAPTURES, set()),
        ("show -- -", CAPTURES, set()),
        ("show --filter ", TERMS, {"method:", "status:"}),
        ("show --filter status:", TERMS, {"status:error"}),
        ("check a b ", CAPTURES, set()),
        ("check --client ", VALUES, {"cursor", "all"}),
        ("check --ignore ", VALUES, set(RULES)),
        ("check --as ", VALUES, {"2025-06-18"}),
        ("check --format=", VALUES, {"junit"}),
        ("check --fail-on ", VALUES, {"warning", "never"}),
        ("rules ", VALUES, set(RULES)),
        ("install ", VALUES, {"cursor", "vscode"}),
        ("install cursor --scope ", VALUES, {"user", "project"}),
        ("proxy --from ", VALUES, {"cursor"}),
        ("diff a ", CAPTURES, set()),
        ("import ", FILES, set()),
        ("import x --capture-dir ", DIRECTORIES, set()),
        ("ls ", DIRECTORIES, set()),
        ("ca ", VALUES, {"export", "env", "status"}),
        ("ca export ", FILES, set()),
        ("schema diff 2025-06-18 ", VALUES, {"2025-11-25"}),
        ("wrap ", VALUES, {"--name", "-o", "--check"}),
        ("wrap --check -- ", COMMAND, set()),
        ("wrap --name -- -- ", COMMAND, set()),
        ("wrap -- show ", COMMAND, set()),
        ("replay a -- python ", COMMAND, set()),
        ("completion ", VALUES, {"bash", "zsh", "fish"}),
    ],
)
def test_what_may_stand_at_the_cursor(line, kind, some):
    found = answer(line.split(" "))
    assert (found.kind, some - set(found.words)) == (kind, set())


@each("line", ["nonsense ", "ca nonsense ", "wrap --name ", "demo -- ", "prune --older "])
def test_nothing_is_offered_where_nothing_is_known(line):
    found = answer(line.split(" "))
    assert (found.kind, found.words) == (VALUES, {})


def test_what_stands_before_in_the_same_word_stays():
    found = answer(["show", "--filter=status:error kind:"])
    assert (found.before, "kind:request" in found.words) == ("--filter=status:error ", True)
    assert not any(it.endswith(":") for it in found.words)


def test_the_capture_that_was_written_to_last_comes_first(tmp_path):
    for number, name in enumerate(("b.jsonl", "a.jsonl", "c.jsonl", "d.txt")):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, number))
    (tmp_path / "e.jsonl").mkdir()
    (tmp_path / "f.jsonl").symlink_to("nowhere")
    (tmp_path / "g.jsonl").symlink_to("g.jsonl")
    assert [os.path.basename(path) for path in captures(str(tmp_path))] == ["c.jsonl", "a.jsonl", "b.jsonl"]
    assert captures(str(tmp_path / "nowhere")) == []


@each(
    "line, words, start",
    [
        ("mcpspy", ["mcpspy"], 0),
        ("mcpspy  show ", ["mcpspy", "show", ""], 0),
        (r"mcpspy a\ b 'c d' \"e", ["mcpspy", "a b", "c d", '"e'], 0),
        ("mcpspy 'a b", ["mcpspy", "a b"], 0),
        ("mcpspy '' ", ["mcpspy", "", ""], 0),
        ("mcpspy --a=b", ["mcpspy", "--a=b"], 4),
        (r"mcpspy a\:b", ["mcpspy", "a:b"], 0),
        ("mcpspy 'a:b' a:b:c", ["mcpspy", "a:b", "a:b:c"], 4),
        (r"""mcpspy "a\"b'""", ["mcpspy", "a\"b'"], 0),
    ],
)
def test_a_line_of_bash_is_split_as_bash_does(line, words, start):
    assert split(line, BREAKS) == (words, start)


def test_a_tab_imports_nothing_heavy():
    script = "import sys; sys.argv = ['mcpspy', '__complete', 'fish', 'mcpspy', 'show', '']\n"
    script += "from mcpspy.cli import main; main(); print(*sys.modules)"
    script = f"import sys; sys.path[:0] = {sys.path!r}\n{script}"
    run = subprocess.run(
        [sys.executable, "-IS", "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT
    )
    loaded = set(run.stdout.rpartition("\0")[2].split())
    assert "mcpspy.cli.complete" in loaded
    heavy = "re json typing argparse orjson collections importlib mcpspy.rules mcpspy.clients mcpspy.spec"
    assert not {*heavy.split()} & loaded
    assert (
        not {f"mcpspy.cli.{command.module}" for command in COMMANDS.values() if command.module != "complete"} & loaded
    )


@each("arguments", [[], ["fish"], ["fish", ""], ["bash", ""], ["csh", "mcpspy", ""]])
def test_whoever_asks_otherwise_is_told_who_asks(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["mcpspy", "__complete", *arguments])
    assert cli.main() == 2
    assert capsys.readouterr().err == (
        "mcpspy: only the scripts that 'mcpspy completion SHELL' prints use '__complete'\n"
    )


@each("line", ["", "mcpspy", "'", "\\", "a 'b", "mcpspy show '\\"])
def test_any_line_of_bash_has_an_answer(line, monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "argv", ["mcpspy", "__complete", "bash", line, BREAKS])
    assert cli.main() == 0
    assert capfdbinary.readouterr().out.endswith(b"\0")


# The shells

ASKED = {
    "mcpspy ": set(COMMANDS),
    "mcpspy sh": {"show", "share"},
    "mcpspy check --fo": {"--format", "--follow", "--forbid-tool"},
    "mcpspy rules tools/du": {"tools/duplicate-name"},
    "mcpspy check --client cursor --ignore tools/": {it for it in RULES if it.startswith("tools/")},
    "mcpspy check --as 2025-": {"2025-03-26", "2025-06-18", "2025-11-25"},
    "mcpspy check $(touch pwned) `touch pwned` (touch pwned) --wai": {"--waivers"},
    "mcpspy ca e": {"export", "env"},
    "mcpspy install --scope p": {"project"},
}
"""Command lines, each with all words that a shell offers for its last word."""


LISTS = {
    "bash": """
        COMP_WORDBREAKS=$' \\t\\n"\\'@><=;|&(:'
        eval "$(mcpspy completion bash)"
        while IFS= read -r COMP_LINE; do
            COMP_POINT=${#COMP_LINE} COMP_WORDS=($COMP_LINE) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            _mcpspy
            printf '%s\\n' "${COMPREPLY[@]}" END
        done
    """,
    "fish": "mcpspy completion fish | source; while read line; complete -C $line; echo END; end",
}
"""Programs of shells that print what is offered for each line of stdin."""


@pytest.mark.parametrize(
    ("command", "format_text"), [(("bash",), "text"), (("fish", "--no-config"), "--format=text")], ids=["bash", "fish"]
)
def test_a_shell_offers_what_there_is(command, format_text, environment):
    """Bash replaces only the text after the `=`."""
    require(command[0])
    expected = ASKED | {"mcpspy check --format=te": {format_text}}
    text = "".join(f"{line}\n" for line in expected)
    argv = [*command, "-c", LISTS[command[0]]]
    run = limits.run(argv, input=text, capture_output=True, text=True, check=True, env=environment)
    *found, rest = run.stdout.split("END\n")
    assert rest == ""
    assert [{line.partition("\t")[0] for line in it.splitlines()} for it in found] == [*expected.values()]
    assert ("show\tprint a capture as a timeline" in found[0].splitlines()) == (command[0] == "fish")
    assert not os.path.exists("pwned")


START = {
    "bash": ["bash", "--rcfile", "{rc}", "-i"],
    "zsh": ["zsh", "-i"],
    "fish": ["fish", "--no-config", "-i", "-C", "source {rc}"],
}
TELL = "printf '%s\\0' {words} '' >&9"
PROFILES = {
    "bash": f"""
        mcpspy() {{ {TELL.format(words='"$@"')}; }}
        eval "$(command mcpspy completion bash)"
    """,
    "zsh": f"""
        mcpspy() {{ {TELL.format(words='"$@"')}; }}
        autoload -Uz compinit
        compinit -u -D
        eval "$(command mcpspy completion zsh)"
    """,
    "fish": f"""
        function mcpspy; {TELL.format(words="$argv")}; end
        command mcpspy completion fish | source
    """,
}


class Shell:
    """A shell in a terminal, where `mcpspy` is a function that writes its arguments to a pipe."""

    def __init__(self, name, environment, folder):
        self._name = name
        path = folder / ".zshrc"
        path.write_text(f"{PROFILES[name]}\nmcpspy ready")
        self.told, write = os.pipe()
        self.pid, self.screen = fork_terminal()
        if not self.pid:
            os.dup2(write, 9)
            with suppress(OSError):
                os.execvpe(name, [word.format(rc=path) for word in START[name]], environment)
            os._exit(127)
        os.close(write)
        self.shown = b""
        """What the shell wrote to the terminal for the last line."""
        assert self._read() == ["ready"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.screen)  # the shell gets SIGHUP
        os.close(self.told)
        limits.within(os.waitpid, self.pid, 0)

    def tab(self, line):
        """Type a line, Tab and Enter. Return the arguments that `mcpspy` gets."""
        os.write(self.screen, f"{line}\t\r".encode())
        return self._read()

    def use_other(self):
        """Complete from another capture directory from now on."""
        name = "MCPSPY_CAPTURE_DIR"
        change = f"set -gx {name} $OTHER" if self._name == "fish" else f'{name}="$OTHER"'
        os.write(self.screen, f"{change}; mcpspy ready\r".encode())
        assert self._read() == ["ready"]

    def _read(self):
        """Return the arguments that `mcpspy` writes, and read the terminal's output so that it does not block."""
        told, self.shown, end = b"", b"", time.monotonic() + limits.LIMIT
        while not told.endswith(b"\0\0"):
            ready, _, _ = select.select([self.told, self.screen], [], [], max(0, end - time.monotonic()))
            assert ready, f"nothing came: {self.shown.decode(errors='replace')}"
            if self.screen in ready:
                self.shown += limits.read(self.screen, 65536)
            if self.told in ready:
                told += limits.read(self.told, 65536)
        return os.fsdecode(told).split("\0")[:-2]


@pytest.fixture(params=["bash", "zsh", "fish"])
def shell(request, environment, tmp_path):
    """A shell in a terminal."""
    require(request.param)
    with Shell(request.param, environment, tmp_path) as shell:
        yield shell


RAW = (
    "a\x9b31m.jsonl",
    "a\x9d0;t\x9c.jsonl",
    "b\u202e.jsonl",
    "c\u200b.jsonl",
    f"d{chr(0x301) * 9}.jsonl",
    "e\x85.jsonl",
)
"""Names with characters that bash, zsh or fish write to the terminal unchanged."""


def test_a_name_that_shells_show_raw_is_not_offered(tmp_path, monkeypatch, capfdbinary):
    """A-14: neither from the capture directory nor from another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "none"))
    for name in (*RAW, *HOSTILE, os.fsdecode(b"f\xff.jsonl")):
        (tmp_path / name).touch()
    (tmp_path / "g\x9b").mkdir()
    assert {os.path.basename(path) for path in captures(str(tmp_path))} == set(HOSTILE)
    monkeypatch.setattr(sys, "argv", ["mcpspy", "__complete", "bash", "mcpspy show ./", BREAKS])
    assert cli.main() == 0
    assert {os.fsdecode(it) for it in capfdbinary.readouterr().out.split(b"\0")[1:-1]} == {f"./{it}" for it in HOSTILE}


def test_a_shell_completes_commands_options_values_and_files_as_they_are_and_runs_nothing(shell, tmp_path):
    """A-14: no hostile name is written to the terminal; names that are not offered leave one candidate."""
    caps, other = tmp_path / "caps", tmp_path / OTHER / "weather x.jsonl"
    other.touch()
    for path in (*(caps / name for name in (*RAW, *HOSTILE)), Path("here.jsonl"), Path("there.txt")):
        path.touch()
    asked = {
        "mcpspy sho": ["show"],
        "mcpspy show --fol": ["show", "--follow"],
        "mcpspy check --format=sar": ["check", "--format=sarif"],
        "mcpspy rules tools/du": ["rules", "tools/duplicate-name"],
        "mcpspy show --filter late": ["show", "--filter", "latency:"],
        "mcpspy show --filter status:error\\ late": ["show", "--filter", "status:error latency:"],
        "mcpspy show he": ["show", "here.jsonl"],
        "mcpspy import the": ["import", "there.txt"],
    }
    asked |= {f"mcpspy show {caps}/{name[0]}": ["show", str(caps / name)] for name in HOSTILE}
    for line, expected in asked.items():
        assert shell.tab(line) == expected
        text = shell.shown.decode(errors="replace")
        assert not {"\x9b", "\x9d", "\x85", "\u202e", "\u200b", "\u0301"} & set(text)
        assert "\x1b[31m.jsonl" not in text
    shell.use_other()
    assert shell.tab("mcpspy show weat") == ["show", str(other)]
    assert not os.path.exists("pwned")


@pytest.mark.needs("zsh")
def test_zsh_offers_each_capture_once_also_when_their_directory_is_typed(environment, tmp_path):
    for written, name in enumerate(("a.jsonl", "b.jsonl")):
        (tmp_path / "caps" / name).touch()
        os.utime(tmp_path / "caps" / name, (0, written))
    with Shell("zsh", environment, tmp_path) as shell:  # the first Tab lists, each further Tab selects the next
        found = [shell.tab(f"mcpspy show {tmp_path}/caps/{tabs}")[1][-7:] for tabs in ("\t", "\t\t", "\t\t\t")]
    assert found == ["b.jsonl", "a.jsonl", "b.jsonl"]
