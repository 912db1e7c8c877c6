"""A-07: an unexpected exception becomes one line on stderr and exit status 2."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.cli import ls
from tests import limits
from tests.cli.conftest import refusal
from tests.cli.test_replay import SESSION
from tests.transcript import capture

CALL = '> {"jsonrpc":"2.0","id":90,"method":"tools/call","params":{"name":"t","arguments":{}}}'


def deep(levels, leaf):
    nested = '{"[a":' * levels + json.dumps(leaf) + "}" * levels
    return f'{SESSION}\n{CALL}\n< {{"jsonrpc":"2.0","id":90,"result":{{"content":[],"structuredContent":{nested}}}}}'


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("where", ["2>/dev/full", "2>&-"])
def test_an_error_that_cannot_be_written_has_its_exit_status_all_the_same(where):
    """It must not look like findings (1), and not appear on stdout."""
    command = f"{shlex.quote(sys.executable)} -m mcpspy check missing.jsonl {where}"
    done = limits.run(["sh", "-c", command], stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")


def endless(options):
    return endless(options)


def test_the_frame_that_is_nested_too_deeply_is_named(run, monkeypatch):
    capture("a.jsonl", deep(900, "a"))
    capture("b.jsonl", deep(990, "b"))
    monkeypatch.setattr("mcpspy.cli.replay.run_diff", endless)
    code, out, err = run("diff", "a.jsonl", "b.jsonl", "--format", "json")
    frame = next(n for n, line in enumerate(Path("b.jsonl").read_text().splitlines(), 1) if "structuredContent" in line)
    assert (code, out) == (2, "")
    assert err == f"mcpspy: b.jsonl: frame #{frame} is nested too deeply for 'diff' (992 levels)\n"


def test_a_stack_that_ended_for_nothing_in_a_capture_is_one_line_too(run, monkeypatch):
    monkeypatch.setattr(ls, "run", endless)
    assert run("ls", "nothing") == (2, "", "mcpspy: a message is nested too deeply for 'ls'\n")


def test_a_bug_of_ours_is_called_one(run, monkeypatch):
    monkeypatch.setattr(ls, "run", json.loads)
    code, out, err = run("ls")
    assert (code, out) == (2, "")
    assert err.startswith("mcpspy: a bug of mcpspy ended 'ls' (TypeError: the JSON object must be str")
    assert err.endswith("please report it\n")
    assert " in cli/commands.py, line " in err


@pytest.mark.parametrize("levels", [500, 900, 960, 990, 1015])
def test_what_is_nested_deeply_differs_all_the_same(run, levels):
    capture("a.jsonl", deep(levels, "a"))
    capture("b.jsonl", deep(levels, "b"))
    code, out, err = run("diff", "a.jsonl", "b.jsonl", "--format", "json")
    assert (code, err) == (1, "")
    assert [it["outcome"] for it in json.loads(out)["exchanges"]].count("changed") == 1


@pytest.mark.parametrize("part", ["code", "message"])
def test_an_error_whose_parts_are_nested_deeply_is_shown(run, part):
    nested = "[" * 1005 + "]" * 1005
    capture("a.jsonl", f'{CALL}\n< {{"jsonrpc":"2.0","id":90,"error":{{"{part}":{nested}}}}}')
    code, out, err = run("show", "a.jsonl")
    assert (code, err) == (0, "")
    assert "error" in out


@pytest.mark.parametrize("arguments", [("diff", "a.jsonl", "a.jsonl"), ("check", "a.jsonl", "--fail-on", "never")])
def test_a_method_may_be_empty(run, arguments):
    capture("a.jsonl", SESSION + '\n> {"jsonrpc":"2.0","id":90,"method":""}\n< {"jsonrpc":"2.0","id":90,"result":{}}')
    code, _, err = run(*arguments)
    assert (code, err) == (0, "")


def failing(error):
    def command(options):
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (PermissionError(13, "Permission denied", "/etc/s\x1bd"), "'ls' cannot access /etc/s\\ed: Permission denied"),
        (OSError(18, "Invalid cross-device link", "a", None, b"b"), "'ls' cannot rename a to b: Invalid cross-device"),
        (ConnectionRefusedError(111, "Connection refused"), "'ls' failed in cli/commands.py, line "),
        (BlockingIOError(11, "Resource temporarily unavailable"), "temporarily unavailable\n"),
        (BrokenPipeError(32, "Broken pipe"), "Broken pipe\n"),
        (TimeoutError(), ": TimeoutError\n"),
    ],
    ids=lambda it: type(it).__name__,
)
def test_a_22_only_an_error_of_the_output_is_reported_as_one(run, monkeypatch, error, sentence):
    monkeypatch.setattr(ls, "run", failing(error))
    err = refusal(run("ls"))
    assert sentence in err
    assert "output" not in err
