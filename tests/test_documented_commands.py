"""Every `mcpspy` command in a shell block of README.md or docs/ parses, and runs if it can run in a test.

The real parsers parse all of them. A command in `NOT_RUN` is not run; the table has the reason. A command in `APART`
is run as a separate process (`scripts/test --field`). All others are run in this process, in a directory that has the
files of the pages. Both tables are exact: a command that is on no page any more fails a test.
"""

import gzip
import importlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.cli import gates, wrap
from mcpspy.cli.commands import COMMANDS
from mcpspy.replay import run
from mcpspy.transport import link
from tests.cli.test_replay import SESSION
from tests.limits import LIMIT
from tests.replay.scripts import SERVER
from tests.test_documentation import prose
from tests.transcript import capture

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(?:(sh|bash)|console)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"""(?:^|[\s(]|venv/bin/)mcpspy(?![^\s)"])(.*)""")
END = re.compile(r"""\s+(?:#|\||&&|\|\|)\s|\)"$""")

NOT_RUN = {
    "opens the terminal application: tests/tui": ("", "tui -"),
    "reads a pipe: tests/cli/test_compressed.py": ("check -",),
    "runs until Ctrl-C, in front of a client: tests/relay, tests/cli": (
        "mitm  --gate faults.toml --allow mcp.example.com",
        "mitm --allow mcp.example.com",
        "mitm --allow mcp.example.com --allow auth.example.com --all-http",
        "mitm --mode local:Cursor --allow mcp.example.com",
        "mitm --mode reverse:https://mcp.example.com",
        "mock weather.jsonl --listen 127.0.0.1:0",
        "proxy --allow-host weather.example.com http://127.0.0.1:8000/mcp",
        "proxy --from claude-code",
        "proxy --from cursor",
        "proxy --from vscode",
        "proxy --gate faults.toml http://127.0.0.1:8000/mcp",
        "proxy http://127.0.0.1:8000/mcp",
    ),
    "becomes the client's program: tests/cli/test_run.py": (
        "run -- /Applications/Cursor.app/Contents/MacOS/Cursor",
        "run -- cursor",
        "run -- python my_client.py",
        """run -- curl -sS https://mcp.example.com/mcp -H 'Content-Type: application/json' -H \
'Accept: application/json, text/event-stream' -d '{"jsonrpc":"2.0","id":1,"method":"ping"}'""",
    ),
    "needs a collector: tests/telemetry, tests/cli/test_scale_page.py": (
        "otel --content --endpoint http://localhost:4318",
        "otel --endpoint http://localhost:4318",
        "otel --follow --endpoint http://collector.example:4318",
        "otel --follow --endpoint http://localhost:4318",
        "otel session.jsonl",
        "otel session.jsonl --endpoint http://localhost:4318",
    ),
    "needs a server or a wrapper that is not there: tests/contract, tests/replay": (
        "replay weather.jsonl --url https://…/mcp",
        'verify --through "other-wrapper --" -- python server.py',
        "verify --url http://127.0.0.1:8000/mcp",
        "verify --url http://127.0.0.1:8000/mcp --through http://127.0.0.1:9000/mcp",
    ),
    "starts the command that its user recorded: tests/cli/test_again.py": (
        "replay weather.jsonl --only 10",
        "replay weather.jsonl --only 10 --edit",
    ),
    "needs a company's proxy and certificates: tests/network": (
        "lock --url https://mcp.example.com/mcp --ca company.pem",
        "proxy https://mcp.example.com/mcp",
        "proxy https://mcp.example.com/mcp --cert me.pem --key me.key",
    ),
    "needs Docker, or another machine": (
        "wrap --name weather -- docker run -i --rm weather",
        "wrap --name weather -- ssh devbox python server.py",
    ),
    "needs npm": ("lock -- npx -y @scope/weather@1.4.0",),
    "NAME stands for a server": ("install claude-code NAME",),
    "needs the authority that mitm makes: tests/cli/test_ca.py": ("ca env",),
    "writes to /srv, or is part of a loop: tests/cli/test_scale_page.py": (
        "export ~/.mcpspy/captures --format parquet -o /srv/mcp/lake",
        "export ~/.mcpspy/clean --format parquet -o /srv/mcp/lake",
        'scrub "$capture" --yes -o "$copy"',
    ),
}
APART = (
    "demo",
    "mock  --gate faults.toml session.jsonl",
    "mock session.jsonl --gate faults.toml",
    "mock weather.jsonl",
    "mock weather.jsonl --record-missing -- python server.py",
    "verify -- python -m mcpspy.demo.server",
    "verify -- python server.py",
    "verify --capture session.jsonl -- python server.py",
    "wrap  --gate faults.toml -- python server.py",
    "wrap --gate faults.toml -- python server.py",
    "wrap --name weather -- python -m weather_server",
    "wrap --name weather -- python server.py",
    "wrap --reload src/ -- python src/server.py",
    "wrap --reload src/ --reload-after idle -- python src/server.py",
    "wrap -o session.jsonl -- python server.py",
    "wrap -o tests/captures/weather.jsonl -- python -m weather_server",
    "wrap -o tests/captures/weather.jsonl -- python server.py",
)
NEVER_HERE = {"", "demo", "mcp", "mitm", "mock", "otel", "proxy", "run", "tui", "verify", "wrap"}
"""Commands that serve until they are stopped, replace the process, or need peers. A table must list them."""
MISTAKES = {"show session.jsonl --filter 'metod:tools/call'"}
"""Commands that end with exit status 2, as their page shows."""
MADE = {
    "session.har": ("export", "http.jsonl", "--format", "har", "-o", "session.har"),
    "session.html": ("share", "session.jsonl", "--yes", "-o", "session.html"),
    "tests/captures/forecast.jsonl": (
        *("cut", "session.jsonl", "--filter", "name:get_forecast", "-o", "tests/captures/forecast.jsonl"),
    ),
    "mcp.lock.json": ("lock", "session.jsonl", "-o", "mcp.lock.json"),
}
"""The commands that make the files which other commands read."""


def documented(text):
    """Yield the commands of a page, each without `mcpspy` and its comment."""
    for _, shell, block in BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if not shell and not line.strip().startswith("$ "):
                continue  # the output of a command
            if found := COMMAND.search(re.split(r"\s#\s", line)[0].rstrip()):
                yield END.split(found[1])[0].strip()


ALL = sorted({command for page in PAGES for command in documented(page.read_text(encoding="utf-8"))})
TABLED = [command for commands in (*NOT_RUN.values(), APART) for command in commands]
RUN = [command for command in ALL if command not in TABLED]


def words(command):
    """Return the arguments as a shell passes them.

    `python` is this interpreter: a server gets the PATH with which this process was started, and a system may only
    have `python3` there.
    """
    return [sys.executable if word == "python" else os.path.expanduser(word) for word in shlex.split(command)]


def toml(page, name):
    """Return the first TOML block of a page that contains a text."""
    blocks = re.findall(
        r"^```toml\n(.*?)^```", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return next(block for block in blocks if name in block)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A home and a project with the files that the pages name."""
    folder = tmp_path_factory.mktemp("workshop")
    captures = folder / "home" / ".mcpspy" / "captures"
    for made in (captures, folder / "captures", folder / "tests" / "captures", folder / "src"):
        made.mkdir(parents=True)
    capture(folder / "session.jsonl", SESSION)
    with gzip.open(folder / "session.jsonl.gz", "wb") as file:
        file.write((folder / "session.jsonl").read_bytes())
    copies = ["before", "after", "weather", "captures/weather", "tests/captures/weather"]
    for path in [*(folder / f"{copy}.jsonl" for copy in copies), captures / "1.jsonl"]:
        shutil.copy(folder / "session.jsonl", path)
    shutil.copy(folder / "session.jsonl", captures / "20260317T100000Z-mcp.example.com-4242-9f2c.jsonl")
    shutil.copy(ROOT / "captures" / "http-python2-2026-07-28.jsonl", folder / "http.jsonl")
    for name in ("server.py", "weather_server.py", "changed.py", "src/server.py"):
        shutil.copy(SERVER[-1], folder / name)
    (folder / "faults.toml").write_text(toml("gate.md", "slow search"), encoding="utf-8")
    (folder / "expect.toml").write_text(toml("expect.md", "get_forecast"), encoding="utf-8")
    servers = {"weather": {"command": sys.executable, "args": [str(folder / "server.py")]}}
    for name, key in {
        "../.mcp.json": "mcpServers",
        ".cursor/mcp.json": "mcpServers",
        ".claude.json": "mcpServers",
        ".config/Claude/claude_desktop_config.json": "mcpServers",
        ".config/Code/User/mcp.json": "servers",
    }.items():
        file = folder / "home" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({key: servers}), encoding="utf-8")
    return folder


@pytest.fixture
def place(workshop, tmp_path, monkeypatch):
    """A copy of the workshop as the current directory."""
    folder = tmp_path / "place"
    shutil.copytree(workshop, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(folder / "home"))
    for name in ("MCPSPY_CAPTURE_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture
def mcpspy(monkeypatch, capsys):
    """Run a command line in this process, with stdin as a terminal that answers yes."""

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def run(arguments):
        monkeypatch.setattr(sys, "argv", ["mcpspy", *arguments])
        monkeypatch.setattr(sys, "stdin", Terminal("y\n" * 9))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
        return cli.main(), *capsys.readouterr()

    return run


class Parsed(Exception):
    """Raised when `wrap` has parsed its command line."""


@pytest.mark.parametrize("command", ALL)
def test_each_command_is_one_that_there_is(command, workshop, mcpspy, monkeypatch):
    def parsed(*_, **__):
        raise Parsed

    name, *arguments = words(command) or ["tui"]
    if name == "wrap":
        monkeypatch.setattr(wrap, "spawn", parsed)
        monkeypatch.setattr("mcpspy.cli.wrap.check_reload", parsed)
        monkeypatch.setattr(gates, "compiled_apart", lambda _: ())
        monkeypatch.setattr(gates, "recorded_answers", lambda _: ())
        with pytest.raises(Parsed):
            mcpspy([name, *arguments])
        return
    assert name in COMMANDS
    module = importlib.import_module(f"mcpspy.cli.{COMMANDS[name].module}")
    monkeypatch.setattr(module, COMMANDS[name].function, lambda _: 0)
    assert mcpspy([name, *arguments]) == (0, "", "")


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_a_command_within_a_sentence_has_the_options_that_it_is_given(path):
    for span in re.findall(r"`mcpspy ([a-z][^`]*)`", prose(path.read_text(encoding="utf-8"))):
        name, *arguments = span.partition(" -- ")[0].split()
        every = (COMMANDS[name], *COMMANDS[name].subcommands)
        known = {name for it in every for name, option in it.named_options.items() if option.text}
        given = {word.strip("[]").partition("=")[0] for word in arguments if re.match(r"\[?--?[a-z]", word)}
        assert given <= known, span


@pytest.mark.parametrize("command", RUN)
def test_each_command_runs(command, place, mcpspy, monkeypatch):
    """Findings or differences give exit status 1, a refused command gives 2."""
    monkeypatch.setattr(run, "LEAST", 0.5)
    monkeypatch.setattr(run, "GRACE", 0.2)
    monkeypatch.setattr(link, "PATIENCE", 0.5)
    arguments = words(command)
    assert not {*arguments[:1], command} & NEVER_HERE, "put it into NOT_RUN, with the reason, or into APART"
    for file in set(arguments) & set(MADE) - {after for word, after in pairwise(arguments) if word == "-o"}:
        assert mcpspy(MADE[file])[0] == 0
    status, out, err = mcpspy(arguments)
    assert (status == 2) == (command in MISTAKES), (out, err)
    assert status in (0, 1, 2)
    assert "Traceback" not in err


@pytest.mark.parametrize("page", ["gate.md", "how-to/faults.md"])
def test_the_first_gate_file_of_a_page_compiles(page, place, mcpspy):
    (place / "faults.toml").write_text(toml(page, "[[gate]]"), encoding="utf-8")
    assert mcpspy(words("show session.jsonl --gate faults.toml"))[0] == 0


@pytest.mark.field
@pytest.mark.parametrize("command", APART)
def test_each_command_runs_in_a_process_of_its_own(command, place):
    done = subprocess.run(
        [sys.executable, "-m", "mcpspy", *words(command)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)


def test_the_tables_name_commands_of_the_pages_and_each_once():
    assert set(TABLED) - set(ALL) == set()
    assert len(set(TABLED)) == len(TABLED)
    assert set(RUN) >= MISTAKES


def test_a_command_is_found_wherever_it_stands():
    text = """
```sh
mcpspy check a.jsonl      # a comment: mcpspy show
python -m venv venv && venv/bin/mcpspy demo
eval "$(mcpspy completion bash)"
mcpspy completion fish | source
uvx mcpspy ls
python client.py mcpspy wrap -- python server.py
pip install 'mcpspy[otel]' ../mcpspy
```
```console
$ mcpspy show \\
    b.jsonl
mcpspy: what it printed
```
```toml
mcpspy = "none"
```
"""
    assert list(documented(text)) == [
        "check a.jsonl", "demo", "completion bash", "completion fish", "ls", "wrap -- python server.py",
        "show      b.jsonl",
    ]  # fmt: skip
