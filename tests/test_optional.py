"""Tests whose programs are missing are skipped, and the last lines of a run name the programs and how to add them."""

import os
import re
import sys
from pathlib import Path

import pytest

from tests import NIGHTLY, limits, optional
from tests.peers import prepare

ROOT = Path(__file__).parent.parent
CONCERNED = {
    "bash": "tests/cli/test_complete.py::test_a_shell_offers_what_there_is[bash]",
    "cc": "tests/test_benchmarks.py::test_the_proxy_benchmark_runs_and_loses_nothing",
    "chromedriver": "tests/exporters/test_mermaid.py::test_mermaid_shows_hostile_words_as_text",
    "chromium": "tests/sharing/page/test_filtering.py",
    "curl": "tests/exporters/test_single_message.py::test_curl_asks_what_was_asked",
    "fish": "tests/cli/test_complete.py::test_a_shell_offers_what_there_is[fish]",
    "git": "tests/clients/test_machine.py::test_the_git_working_tree_around_a_directory_is_found",
    "mount": "tests/relay/stdio/test_recording.py::test_a_read_only_directory_changes_nothing_for_the_client",
    "nginx": "tests/network/test_field.py::test_nginx_refuses_a_client_after_the_handshake",
    "node": "tests/exporters/test_perfetto.py::test_hostile_names_are_names",
    "npm": "tests/test_conformance.py",
    "openssl": "tests/relay/mitm/test_authority.py::test_the_password_of_a_key_is_not_asked_for",
    "squid": "tests/network/test_field.py::test_each_refusal_of_a_real_proxy_is_one_sentence[squid]",
    "systemd-analyze": "tests/telemetry/test_recipes.py::test_systemd_takes_the_unit",
    "tinyproxy": "tests/network/test_field.py::test_each_refusal_of_a_real_proxy_is_one_sentence[tinyproxy]",
    "tmux": "tests/tui/test_terminal.py::test_a_small_terminal_and_back_and_the_shell_and_back",
    "zsh": "tests/cli/test_complete.py::test_zsh_offers_each_capture_once_also_when_their_directory_is_typed",
}
"""For each optional program, a test that needs it."""
ASKS = re.compile(r"needs\(|tests\.optional|\bshutil\b")


@pytest.fixture
def without(tmp_path):
    """Run pytest in a process whose PATH has all programs of this one but some. Return its status and its lines."""

    def run(programs, *arguments):
        folder = tmp_path / "bin"
        folder.mkdir()
        for entry in os.environ["PATH"].split(os.pathsep):
            for program in Path(entry or ".").glob("*"):
                if program.name not in programs and not (folder / program.name).is_symlink():
                    (folder / program.name).symlink_to(program.absolute())
        environ = {name: text for name, text in os.environ.items() if not name.startswith(("PYTEST", "CI"))}
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "", *arguments]
        environ["PATH"] = str(folder)
        done = limits.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
        assert done.stderr == ""
        return done.returncode, done.stdout.splitlines()

    return run


@pytest.mark.parametrize("program", optional.PACKAGES if NIGHTLY else ["chromium", "node", "zsh"])
def test_without_a_program_the_tests_concerned_are_skipped_and_the_last_lines_say_so(without, program):
    status, lines = without({program}, CONCERNED[program])
    assert status == 0
    [at] = [number for number, line in enumerate(lines) if re.fullmatch(r"\d+ skipped in \S+", line)]
    left_out, add, *_ = lines[at + 1 :]
    assert re.fullmatch(rf"left out: \d+ tests?, because these are missing: .*(?<=[ /]){program}\b.*", left_out)
    assert f" {optional.PACKAGES[program]} " in add


def test_without_any_optional_program_the_tests_concerned_are_skipped(without):
    status, lines = without({*optional.PACKAGES, "python"}, *CONCERNED.values())
    assert status == 0
    [at] = [number for number, line in enumerate(lines) if re.fullmatch(r"\d+ skipped in \S+", line)]
    left_out, add, node = lines[at + 1 :]
    assert {".peers/node", *optional.PACKAGES} <= set(left_out.partition("missing: ")[2].split(", "))
    assert set(" ".join(optional.PACKAGES.values()).split()) <= set(add.split())
    assert node.startswith(f"Node must be {prepare.NODE} or newer")


def test_without_any_optional_program_tests_are_collected(without):
    """By default only the files that ask for a program or a peer."""
    asks = [str(path) for path in sorted((ROOT / "tests").rglob("test_*.py")) if ASKS.search(path.read_text("utf-8"))]
    assert len(asks) > 30
    status, lines = without({*optional.PACKAGES, "python"}, "--collect-only", "-q", *(["tests"] if NIGHTLY else asks))
    assert (status, [line for line in lines if "rror" in line.partition(":")[0]]) == (0, [])


def test_nothing_is_printed_if_nothing_is_missing():
    assert optional.left_out([]) == []
    assert optional.left_out(["reads /proc", "cannot mount a file system here: permission denied"]) == []


def test_the_last_lines_count_the_tests_and_name_the_packages(monkeypatch):
    monkeypatch.setattr("shutil.which", {"node": "/usr/bin/node"}.get)  # too old
    assert optional.left_out(["missing: zsh", "reads /proc"]) == [
        "left out: 1 test, because these are missing: zsh",
        "to add them on Debian: apt-get install --no-install-recommends zsh && scripts/test",
    ]
    assert optional.left_out(["missing: .peers/node", "missing: cc, zsh"]) == [
        "left out: 2 tests, because these are missing: .peers/node, cc, zsh",
        "to add them on Debian: apt-get install --no-install-recommends gcc libc6-dev npm zsh && scripts/test",
        "Node must be 20 or newer; if Debian's is older: https://nodejs.org",
    ]
    assert optional.left_out(["missing: node"])[1:] == [
        "to add them: scripts/test",
        "Node must be 20 or newer; if Debian's is older: https://nodejs.org",
    ]
    assert optional.left_out(["missing: .peers/mitm"])[1:] == ["to add them: scripts/test"]


def test_a_name_that_is_not_in_the_table_is_a_mistake():
    with pytest.raises(AssertionError, match="zhs is not in the table"):
        optional.require("zhs")


@pytest.mark.parametrize(
    ("programs", "why"),
    [
        ({}, "npm is not on PATH"),
        ({"npm": ""}, "node is not on PATH"),
        ({"npm": "", "node": "echo v18.20.4"}, "this is Node v18.20.4; the tests need 20 or newer"),
        ({"npm": "", "node": "exit 1"}, "this is Node of an unknown version; the tests need 20 or newer"),
    ],
)
def test_node_packages_are_not_built_without_npm_and_a_new_node(tmp_path, monkeypatch, programs, why):
    for name, line in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(prepare, "ENVIRONMENTS", str(tmp_path / "peers"))
    assert prepare.build("node") == f"skipped: {why}"


def test_in_ci_a_skipped_test_fails_unless_its_reason_is_excused_whatever_the_folder_is_called(tmp_path):
    folder = tmp_path / "mount"
    folder.mkdir()
    (folder / "test_skipped.py").write_text(
        "import pytest\nfrom tests import optional\n"
        "optional.PACKAGES['no-such-program'] = 'none'\n"
        "@pytest.mark.needs('no-such-program')\ndef test_marked(): pass\n"
        "def test_required(): optional.require('no-such-program')\n"
        "def test_excused(): pytest.skip('cannot mount a file system here')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    environ = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST")} | {"CI": "true"}
    done = limits.run(
        [*command, "--rootdir", folder, "-c", os.devnull, folder],
        cwd=ROOT, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "1 failed, 1 skipped, 1 error" in done.stdout
    assert "skipped in CI: " in done.stdout


def test_ci_installs_packages_of_the_table():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    installed = re.search(r"for package in (.+); do", script)[1].split()
    assert len(installed) > 3
    assert set(installed) <= set(optional.PACKAGES.values())
