"""A-14, A-20: hostile text in files that others wrote, in arguments and in what a server answers reaches no terminal.

`tests/test_hostile_text.py` does the same with captures.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from mcpspy.cli.commands import COMMANDS
from mcpspy.clients.table import BY_ID
from mcpspy.contract.lock import LockedServer, as_text
from tests import NIGHTLY, limits
from tests.clients.configurations import FIXTURES, put
from tests.each import each
from tests.hostile_text import NASTY, gentle, harsh
from tests.optional import open_terminal
from tests.test_hostile_text import assert_safe, printed, values

NAME = NASTY.replace("\0", "").replace("/", "")
"""The same for a name of a file."""
WORD = "\x1b]52;c;x\x07\x9b31m\r\n\u202e\u200b[bold]"
"""The same for an argument; without an `@`, because text before it may be a password, which is not shown."""
WAYS = [False, True]
"""Whether the output is a terminal."""


def toml(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home of its own, and no program to start."""
    (tmp_path / "home" / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for name in {name for client in BY_ID.values() for place in client.places for name, _ in place.variables}:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path / "home" / "work")
    return tmp_path / "home"


@pytest.fixture
def capture(tmp_path):
    return harsh("stdio", tmp_path / f"a{NAME[:20]}.jsonl")


def try_all(commands):
    """Run commands, with their output in a pipe and in a terminal. Each prints hostile text with escapes."""

    @each("words, terminal", [(words, terminal) for words in commands for terminal in WAYS])
    def safe(words, terminal):
        text = printed(*words, terminal=terminal)
        assert_safe(text)
        assert any(escape in text for escape in ("\\u009b", "\\x9b", "\\e", "\\x1b")), text

    safe()


# Files


LOCKS = {
    "text": NASTY,
    "list": json.dumps([NASTY]),
    "format": json.dumps({"format": NASTY, "servers": {}}),
    "server": json.dumps({"format": 1, "servers": {NASTY: 5}}),
    "tools": json.dumps({"format": 1, "servers": {NASTY: {"tools": {NASTY: {"definition": {"name": NASTY}}}}}}),
    "hash": json.dumps({"format": 1, "servers": {NASTY: {"tools": {}, "hash": NASTY}}}),
    "sound": as_text({NASTY: LockedServer({"serverInfo": {"name": NASTY}}, {"tools": {NASTY: {"name": NASTY}}})}),
}


def test_lock_files_of_others(capture, tmp_path):
    """A-14."""
    for name, text in LOCKS.items():
        path = tmp_path / f"{name}{NAME}"
        path.write_text(text)
        try_all([["check", capture, "--lock", path], ["lock", capture, "-o", path]])
    try_all([["lock", capture, "--name", NAME, "-o", path]])


FORMS = [
    f"{NASTY}",
    f"{toml(NASTY)} = 5",
    f"[[FORM]]\n{toml(NASTY)} = {toml(NASTY)}",
    *(
        f"[[FORM]]\n{first} = {value}\n{more}"
        for first in ("name", "when", "rule", "capture", "reason", "action", "server", "times", "schema", "answer")
        for value in (toml(NASTY), f"[{toml(NASTY)}]", f"{{ {toml(NASTY)} = {toml(NASTY)} }}")
        for more in ("", 'name = "a"' * (first != "name"))
    ),
    f"[[FORM]]\nname = {toml(NASTY)}\nwhen = 'name:x'\nfault = {toml(NASTY)}",
    f"[[FORM]]\nname = {toml(NASTY)}\nwhen = {toml('name:' + NASTY + ' (')}\ndrop = true",
    f"[[FORM]]\nname = {toml(NASTY)}\nwhen = 'name:get'\nset = {{ {toml(NASTY)} = 1 }}",
    f"[[FORM]]\nname = {toml(NASTY)}\nwhen = 'name:get'\ndrop = true",
    f"[[FORM]]\nname = {toml(NASTY)}\nnever = true\nserver = {toml(NASTY)}",
    f"[[FORM]]\nname = {toml(NASTY)}\nserver = {toml(NASTY)}",
    f"[[FORM]]\nrule = 'schema/invalid'\ncapture = {toml(NASTY)}\nreason = {toml(NASTY)}",
    f"[[FORM]]\nrule = 'schema/invalid'\ncapture = '*'\npointer = {toml(NASTY)}\nreason = {toml(NASTY)}",
    f"[[FORM]]\nrule = 'schema/invalid'\ncapture = {toml(NASTY)}\nreason = 'x'\nexpires = 2020-01-01",
    f"order = [{toml(NASTY)}, {toml(NASTY)}]\nserver = {toml(NASTY)}",
    f"[session]\nstderr_without = [{toml(NASTY)}]\nmax_duration = {toml(NASTY)}",
]
READERS = {"gate": ("show", "--gate"), "waiver": ("check", "--waivers"), "tool": ("check", "--expect")}


@pytest.mark.parametrize("form", READERS)
def test_gates_waivers_and_expectations_of_others(capture, tmp_path, form):
    """A-14: names, `by`, reasons, filters, and every mistake that quotes them."""
    command, option = READERS[form]
    path = tmp_path / f"file{NAME}.toml"

    @each("text, terminal", [(text, terminal) for text in FORMS for terminal in WAYS])
    def safe(text, terminal):
        path.write_text(text.replace("FORM", form))
        assert_safe(printed(command, capture, option, path, terminal=terminal))

    safe()


KNOWN = re.compile(r"mcp|servers?|command|args|env|environment|url|httpUrl|type|headers|name|projects|/.*|https?:.*")
"""The strings in configurations that decide where the servers are, and what they are."""
CONFIGURED = [name for name in FIXTURES if ".linux." in name]


def planted(text):
    """Return a configuration with hostile text at the end of most quoted strings, as JSON, TOML and YAML write it."""
    escapes = "".join(f"\\u{ord(character):04x}" for character in "\x1b]52;c;x\x07\x9b31m\r\n\u202e\u200b")
    quoted = re.compile(r'"([^"\\\n]*)"')
    return quoted.sub(lambda it: it[0] if KNOWN.fullmatch(it[1]) else f'"{it[1]}{escapes}[bold]"', text)


@pytest.mark.parametrize("name", CONFIGURED if NIGHTLY else CONFIGURED[::4])
def test_configurations_of_clients(home, tmp_path, name):
    """A-14: the names of servers, their commands, variables and URLs."""
    path, _ = put(name, tmp_path)
    client = name.partition(".")[0]
    texts = [planted(path.read_text()), path.read_text() + NASTY, NASTY]

    @each("text, terminal", [(text, terminal) for text in texts for terminal in WAYS])
    def safe(text, terminal):
        path.write_text(text)
        for words in (
            ["install"], ["install", client, "--dry-run"], ["install", client, "--agent", "--dry-run"],
            ["install", client, NAME], ["install", client, "--yes"], ["uninstall", client, "--dry-run"],
            ["uninstall", client], ["status"], ["doctor", client], ["doctor", NAME], ["proxy", "--from", client],
        ):  # fmt: skip
            if words[0] != "proxy" or text == NASTY:  # with another text it may run until it is stopped
                assert_safe(printed(*words, terminal=terminal))
        assert_safe(printed("status", "--json", terminal=True))

    safe()


def test_recordings_of_other_programs(tmp_path):
    """A-14: what `import` says about a file, and what it makes of it."""
    entry = {
        "request": {"method": NASTY, "url": f"https://x/{NASTY}", "headers": [{"name": NASTY, "value": NASTY}]},
        "response": {"status": NASTY, "content": {"text": NASTY, "encoding": NASTY}},
        "startedDateTime": NASTY,
    }
    texts = {
        "a.har": json.dumps({"log": {"version": NASTY, "creator": {"name": NASTY}, "entries": [entry]}}),
        "b.har": json.dumps({"log": {"entries": NASTY}}), "c.log": NASTY,
        "d.log": f'2026-11-20T19:15:00.000Z [{NASTY}] [info] Message from client: {{"method":{json.dumps(NASTY)}}}',
        "e.jsonl": json.dumps({"mcpspy": 10**9, "id": NASTY}), "f.json": json.dumps({"mcpspy": NASTY}),
    }  # fmt: skip
    for name, text in texts.items():
        path = tmp_path / f"{NAME}{name}"
        path.write_text(text)
        for terminal in WAYS:
            assert_safe(printed("import", path, "--capture-dir", tmp_path / NAME, terminal=terminal))


# Arguments


def test_every_mistake_in_the_arguments(capture, tmp_path, monkeypatch):
    """A-14: messages of argparse, of our own choices, and of parsers that quote what they read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for words in ([name, f"--{WORD}"] for name in COMMANDS if name != "wrap"):
        assert_safe(printed(*words))  # some name what is missing first
    commands = [["show", capture, f"--{WORD}"], ["check", f"--{WORD}"]]
    commands += [["ca", WORD], ["rules", WORD], ["schema", WORD], ["schema", "diff", WORD, WORD], ["completion", WORD]]
    commands += [["install", WORD], ["uninstall", WORD], ["install", "cursor", "--scope", WORD], ["doctor", WORD]]
    commands += [["prune", "--older", WORD], ["prune", "--keep", WORD], ["tui", WORD], ["ls", WORD], [WORD]]
    commands += [["check", capture, f"--{option}", WORD] for option in ("as", "fail-on", "client", "ignore", "format")]
    commands += [["check", capture, "--max-duration", WORD], ["export", capture, "--format", WORD]]
    commands += [["scrub", capture, "--replace", f"({WORD}"], ["share", capture, "--filter", f"({WORD}"]]
    commands += [
        ["show", capture, f"--json={WORD}"],
        ["sql", f'select "{WORD}"', capture],
        ["replay", capture, "--ignore", WORD, "--url", WORD],
    ]
    commands += [["mock", capture, "--listen", WORD], ["diff", capture, WORD]]
    commands += [["proxy", WORD], ["otel", capture, "--endpoint", WORD], ["lock", "--url", WORD], ["demo", WORD]]
    try_all(commands)


# What a server answers, and tables


def test_tables_and_telemetry(capture, tmp_path, monkeypatch):
    """A-14, A-20: `sql` to a terminal and to a pipe, and `otel` without a collector."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    query = "select * from messages"
    for terminal in WAYS:
        assert_safe(printed("sql", query, capture, terminal=terminal))
        assert_safe(printed("otel", capture, "--endpoint", "http://127.0.0.1:1", terminal=terminal))
    for form in (["--json"], ["--format", "csv"]):
        assert_safe(printed("sql", query, capture, *form, terminal=True))


ANSWERING = """
import json, sys
nasty = json.loads(sys.argv[1])
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        answer = {"error": {"code": 1, "message": nasty, "data": nasty}}
        if message.get("method") == "initialize":
            answer = {"result": {"protocolVersion": "2025-06-18" + nasty * int(sys.argv[2]), "capabilities": {},
                "serverInfo": {"name": nasty, "version": nasty}, "instructions": nasty}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"]} | answer), flush=True)
print(nasty, nasty, sep="\\n")
"""


@pytest.mark.parametrize("whole", ["0", "1"])
def test_a_server_that_answers_hostile_text(tmp_path, whole):
    """A-14: `replay`, `lock` and `verify` start a server and print what it answers."""
    path = tmp_path / f"a{NAME[:20]}.jsonl"
    lines = gentle("stdio", path).read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if '"kind": "gap"' not in line))
    server = [sys.executable, "-c", ANSWERING, json.dumps(NASTY), whole]
    commands = [["replay", path, "--", *server], ["lock", "-o", tmp_path / "lock", "--", *server]]
    for words in [*commands, ["verify", "--", *server]] if NIGHTLY else commands:
        for terminal in WAYS:
            assert_safe(printed(*words, terminal=terminal))
    text = printed("replay", path, "--format", "json", "--", *server, terminal=True)
    assert_safe(text)
    assert values(text)


# Processes


def on_terminal(*words, text=b""):
    """Return what a process writes to a terminal as its standard error; its standard output is a pipe."""
    reader, writer = open_terminal()
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with limits.Popen(words, stdin=pipe, stdout=null, stderr=writer) as process:
        os.close(writer)
        process.stdin.write(text)
        process.stdin.close()
        written = []
        try:
            while part := limits.read(reader, 1 << 16):
                written.append(part)
        except OSError:  # the process has ended
            pass
    os.close(reader)
    return re.sub("\r+\n", "\n", b"".join(written).decode())


def test_wrap_and_mock_on_a_terminal(tmp_path):
    """A-14: what they say about a gate file, a command, a file and a request."""
    gates = tmp_path / f"{WORD}.toml"
    gates.write_text(f"[[gate]]\nname = {toml(NASTY)}\n{toml(NASTY)} = 5\n")
    capture = gentle("stdio", tmp_path / f"b{NAME[:20]}.jsonl")
    request = json.dumps({"jsonrpc": "2.0", "id": NASTY, "method": NASTY, "params": {"name": NASTY}}).encode() + b"\n"
    mcpspy = [sys.executable, "-m", "mcpspy"]
    for words in (
        ["wrap", f"--{NAME}"], ["wrap", "--gate", gates, "--", "true"], ["wrap", "--", tmp_path / WORD],
        ["wrap", "-o", tmp_path / WORD / "none", "--", sys.executable, "-c", ""],
        ["mock", capture], ["mock", "--gate", gates, capture], ["demo", NAME],
    ):  # fmt: skip
        text = on_terminal(*mcpspy, *words, text=request)
        assert_safe(text)
        assert text, words


BUGS = """
import logging, sys, threading, warnings
from mcpspy.cli.output import guard
class Broken:
    def __del__(self):
        raise ValueError(nasty)
nasty = sys.argv[1]
guard()
warnings.warn(nasty)
logging.getLogger(nasty).error(nasty)
thread = threading.Thread(target=lambda: int(nasty), name=nasty)
thread.start()
thread.join()
Broken()
raise KeyboardInterrupt(nasty)
"""


def test_warnings_logs_and_exceptions_of_python_pass_the_barrier():
    """A-14: whoever writes to standard error, also the interpreter itself."""
    text = on_terminal(sys.executable, "-c", BUGS, WORD)
    assert_safe(text)
    missing = [
        word for word in ("UserWarning", "Exception in thread", "Exception ignored", "Interrupt") if word not in text
    ]
    assert not missing
    assert text.count("\\u009b31m") >= 5
