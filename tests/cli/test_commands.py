"""The commands: their help, page, completion and mistakes."""

import argparse
import os
import re
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest

from mcpspy import __version__, cli, exporters
from mcpspy.cli import command_reference, installation, sql
from mcpspy.cli.arguments import Parser
from mcpspy.cli.commands import COMMANDS
from mcpspy.cli.complete import FILTER_KEYS, FILTER_VALUES, answer
from mcpspy.cli.options import Command, Option
from mcpspy.cli.options.set_up import SHELLS
from mcpspy.clients import table as clients
from mcpspy.cost import TOKEN
from mcpspy.errors import UsageError
from mcpspy.filters import KEYS
from mcpspy.filters.terms import KINDS, SENDERS, STATUSES
from mcpspy.query.tables import TABLES
from mcpspy.report import checked, differences, findings
from mcpspy.rules import SEVERITIES
from mcpspy.spec import client_limits
from mcpspy.spec.revisions import Revision
from tests import limits
from tests.cli.conftest import refusal
from tests.limits import LIMIT
from tests.optional import require


def test_the_help_groups_the_commands_by_task_and_fits_a_terminal(run):
    _, out, _ = run("--help")
    groups = [line.rstrip(":") for line in out.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert groups == ["Record", "Look", "Check", "Replay", "Share", "Set up", "Options"]
    assert max(map(len, out.splitlines())) < 80


def test_the_help_of_all_commands_imports_none_of_them():
    script = "from mcpspy.cli.commands import run; import sys; run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {f"mcpspy.cli.{command.module}" for command in COMMANDS.values()} & loaded
    assert not {"argparse", "difflib", "mcpspy.rules", "textual", "rich"} & loaded


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["shwo"], "there is no command 'shwo'; did you mean 'show'?"),
        (["prnue"], "did you mean 'prune'?"),
        (["wrpa"], "did you mean 'wrap'?"),
        (["xyzzy"], "the commands are wrap, "),
        (["/etc/passwd"], "there is no command '/etc/passwd'; to open this file: mcpspy tui /etc/passwd"),
        (["--verbose"], "there is no option '--verbose'; did you mean '--version'?"),
        (["--quick"], "there is no option '--quick'; see 'mcpspy --help'"),
        (["show", "a", "b"], "unexpected argument b"),
        (["show", "--jsno", "a"], "--jsno"),
        (["show", "--js", "a"], "--js"),
        (["ls", "a", "b"], "unexpected argument b"),
        (["prune"], "--older 30d, --keep 2GB"),
        (["prune", "--older"], "--older"),
        (["wrap"], "wrap needs the server's command after '--'"),
        (["wrap", "--"], "wrap needs the server's command after '--'"),
        (["wrap", "--nmae", "x", "--", "true"], "did you mean '--name'?"),
        (["wrap", "--name", "--", "true"], "--name needs a value"),
        (["wrap", "--name=", "--", "true"], "--name needs a value"),
        (["wrap", "-o", "a", "--capture-dir", "b", "--", "true"], "give one of them"),
        (["--", "wrap"], ""),
        (["--", "show"], ""),
        ([""], ""),
        (["", "x"], ""),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, arguments, hint):
    """The line names the mistake and the nearest alternative."""
    assert hint in refusal(run(*arguments))


def test_help_for_wrap_is_shown_without_a_command(monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["mcpspy", "wrap", "--help"])
    assert cli.main() == 0
    out = capfd.readouterr().out
    assert out.startswith("usage: mcpspy wrap")
    assert max(map(len, out.splitlines())) < 80


def test_an_interrupt_ends_quietly(run, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("mcpspy.cli.commands.run", interrupt)
    assert run("ls") == (130, "", "")


def test_a_bug_of_ours_is_not_hidden(run, monkeypatch):
    """Only errors that the user can do something about become one line."""

    def stumble(_):
        raise ZeroDivisionError

    monkeypatch.setattr("mcpspy.cli.commands.run", stumble)
    with pytest.raises(ZeroDivisionError):
        run("ls")


@pytest.mark.parametrize(("arguments", "status"), [(["--version"], 0), (["shwo"], 2), (["ls", "/nowhere"], 2)])
def test_the_exit_status_is_that_of_the_process(arguments, status):
    root = os.path.dirname(os.path.dirname(os.path.dirname(cli.__file__)))
    command = [sys.executable, "-m", "mcpspy", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root, timeout=LIMIT)
    assert run.returncode == status
    assert (run.stderr.count("\n"), "Traceback" in run.stderr) == (int(status != 0), False)


PAGE = Path(__file__).parents[2] / "docs" / "commands.md"
INNER = {(name, inner.name): inner for name, command in COMMANDS.items() for inner in command.subcommands}
EVERY = {(name,): command for name, command in COMMANDS.items()} | INNER
"""The commands and subcommands, by their words."""


def test_the_page_is_that_of_the_commands():
    assert PAGE.read_text(encoding="utf-8") == command_reference.document(), "scripts/write-rules writes it"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_a_section_with_all_its_options(name):
    text = PAGE.read_text(encoding="utf-8")
    section = re.split(r"^##+ (?!#)(?!mcpspy \w+ )", text.partition(f"### mcpspy {name}\n")[2], flags=re.MULTILINE)[0]
    for words in ([name], *([name, inner.name] for inner in COMMANDS[name].subcommands)):
        for option in set(answer([*words, "-"]).words) - {"-h", "--help"}:
            assert re.search(rf"(?<![-\w]){re.escape(option)}(?![-\w])", section), option
    for inner in COMMANDS[name].subcommands:
        assert f"#### mcpspy {name} {inner.name}\n" in section


def test_no_cell_of_a_table_breaks_it():
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 3 for row in rows)


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_each_option_that_a_help_lists_is_offered_and_explained(words, monkeypatch, capfd):
    monkeypatch.setattr(sys, "argv", ["mcpspy", *words, "--help"])
    with suppress(SystemExit):
        cli.main()
    heads = re.findall(r"^  (-.*?)(?:  |$)", capfd.readouterr().out, re.MULTILINE)
    options = {option for head in heads for option in re.findall(r"(?<![^\s,])--?[a-z][a-z-]*", head)}
    found = answer([*words, "-"]).words
    assert {"-h", "--help"} <= options == set(found)
    assert all(found.values())


def test_every_command_is_offered_with_its_text():
    assert answer([""]).words == {name: command.text for name, command in COMMANDS.items()}
    assert set(answer(["-"]).words) == {"-h", "--help", "--version"}
    assert sorted(INNER) == [
        ("ca", "env"), ("ca", "export"), ("ca", "status"), ("schema", "diff"), ("schema", "list"), ("schema", "show"),
    ]  # fmt: skip


OFFERED = {
    "bash": lambda words: [" ".join(["mcpspy", *words]), " "],
    "zsh": lambda words: ["mcpspy", *words],
    "fish": lambda words: ["mcpspy", *words],
}
"""What each shell passes to `__complete` at a Tab."""


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_an_option_is_declared_in_one_place(words, monkeypatch, capfd):
    """A trial option in a table is in the parser, the help, the page and the completion of the three shells."""
    command = EVERY[words]
    trial = Option("--trial", placeholder="COLOUR", choices=("green", "blue"), text="paint it")
    monkeypatch.setattr(command, "options", (*command.options, trial))

    def output(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcpspy", *arguments])
        with suppress(SystemExit):
            cli.main()
        return capfd.readouterr()

    assert re.search("--trial.* (needs a value|expected one argument);", output(*words, "--trial").err)
    assert re.search(
        r"--trial COLOUR\s+paint\s+it:\s+green,\s+blue\s+\(default:\s+green\)", output(*words, "--help").out
    )
    assert "| `--trial COLOUR` | paint it: green, blue (default: green) |\n" in command_reference.document()
    for shell, passed in OFFERED.items():
        assert "--trial" in output("__complete", shell, *passed([*words, "--tr"])).out
        assert "green" in output("__complete", shell, *passed([*words, "--trial", ""])).out


FIXED = {
    "check --fail-on": checked.THRESHOLDS,
    "check --client": (*client_limits.CLIENTS, "all"),
    "check --format": findings.FORMATS,
    "scrub --format": findings.PLACE_FORMATS,
    "diff --format": differences.CHANGE_FORMATS,
    "replay --format": differences.FORMATS,
    "export --format": (*exporters.FORMATS, "parquet"),
    "sql --format": sql.FORMATS,
    "check --as": (it.value for it in Revision),
    "install --scope": clients.SCOPES,
}
"""The values that stand in a table, as the command implements them."""


@pytest.mark.parametrize("words", FIXED)
def test_the_values_in_a_table_are_those_that_the_command_has(words):
    name, option = words.split()
    assert COMMANDS[name].named_options[option].offers == tuple(FIXED[words])


def test_texts_name_what_the_command_has():
    assert f"The tables are {', '.join(TABLES)};" in COMMANDS["sql"].description
    assert f"one for each {TOKEN} bytes of JSON" in COMMANDS["stats"].epilog


def test_the_terms_of_filters_are_those_of_the_language():
    assert tuple(KEYS) == FILTER_KEYS
    assert {
        "from": SENDERS,
        "kind": KINDS,
        "status": STATUSES,
        "severity": SEVERITIES,
        "revision": tuple(it.value for it in Revision),
    } == FILTER_VALUES


@pytest.mark.parametrize("words", [["check", "--format", ""], ["export", "--format", ""], ["mock", "--pace", ""]])
def test_choices_are_offered(words):
    assert len(answer(words).words) > 1


ROOT = Path(cli.__file__).parent.parent.parent


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script_that_it_can_read(mcpspy, shell):
    require(shell)
    status, out, err = mcpspy("completion", shell)
    assert (status, err) == (0, "")
    assert limits.run([shell, "-n"], input=out, text=True, capture_output=True).stderr == ""


@pytest.mark.parametrize(
    ("name", "hint"), [("bahs", "did you mean 'bash'?"), ("powershell", "there are bash, zsh, fish")]
)
def test_another_shell_is_a_mistake_that_names_those_there_are(mcpspy, name, hint):
    assert mcpspy("completion", name) == (2, "", f"mcpspy: there is no completion for {name!r}; {hint}\n")


def test_help_scripts_and_readme_say_the_same_about_switching_it_on(mcpspy):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for shell, line in SHELLS.items():
        switch, place = re.split(r"    +", line)
        assert f"# Completion of mcpspy for {shell}: {switch} {place}\n" in mcpspy("completion", shell)[1]
        assert switch in readme


@pytest.fixture
def parser():
    form = Option("--format", placeholder="FORMAT", choices=("text", "json"), text="format of the report")
    return Parser(Command("x", "", "", form, Option("--rule", placeholder="RULE", text="100% of it", offers=("a",))))


def test_the_first_name_is_the_default(parser):
    assert parser.parse_args([]).format == "text"
    assert parser.parse_args(["--format", "json"]).format == "json"


def test_the_help_lists_the_names(parser):
    assert "--format FORMAT  format of the report: text, json (default: text)" in parser.format_help()
    assert "100% of it" in parser.format_help()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--format", "jsn"], "--format cannot be 'jsn'; did you mean 'json'?"),
        (["--format", "x"], "--format cannot be 'x'; it takes text, json"),
        (["--form", "json"], "there is no option '--form'; did you mean '--format'? see 'mcpspy x --help'"),
        (["https://me:secret@host/"], "see 'mcpspy x --help'"),
    ],
)
def test_a_mistake_is_one_sentence(parser, given, sentence):
    with pytest.raises(UsageError) as raised:
        parser.parse_args(given)
    assert sentence in str(raised.value)
    assert "secret" not in str(raised.value)


def test_what_is_only_offered_to_shells_is_judged_by_the_command(parser):
    assert parser.parse(["--rule", "b"], argparse.Namespace()).rule == "b"


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (True, f"{sys.executable} -m pip install 'mcpspy[sql]'"),
        (False, f"uv pip install --python {sys.executable} 'mcpspy[sql]'"),
    ],
)
def test_the_command_uses_pip_if_it_is_installed_and_uv_otherwise(monkeypatch, pip, command):
    monkeypatch.setattr(installation, "find_spec", lambda _: pip)
    assert installation.install_command("sql") == command


def rows(out):
    """Return the lines by their first words."""
    return {line.split("  ")[0] or line.split()[0]: line for line in out.splitlines()}


def test_the_report_has_versions_extras_and_places(mcpspy, monkeypatch):
    monkeypatch.setenv("TERM", "xterm\x1b[2J")
    status, out, err = mcpspy("--version", "--verbose")
    assert (status, err) == (0, "")
    found = rows(out)
    assert found["mcpspy"].split()[1] == f"{__version__},"
    assert f"CPython {sys.version.split()[0]}" in found["Python"]
    assert found["captures"].endswith(f"  ~{os.sep}.mcpspy{os.sep}captures, does not exist yet")
    assert found["terminal"].endswith(f"none (stdout is not a terminal), TERM=xterm\\e[2J, {sys.stdout.encoding}")
    assert found["orjson"].endswith(f"  {metadata.version('orjson')}")
    assert {"dependencies", "extras", "aiohttp", "agent", "mitm", "otel", "reload", "sql", "web"} < set(found)
    assert not {"dev", "pytest"} & set(found)
    assert out.isascii()
    columns = {line.rindex("  ") for line in out.splitlines() if "  " in line.strip()}
    assert len(columns) == 1, "the values stand below each other"


def test_no_value_of_a_variable_and_no_home_is_shown(mcpspy, home, monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "10.1.2.3 5 10.1.2.4 22")
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(home / "of a customer"))
    monkeypatch.setattr(sys, "executable", str(home / "venv" / "python"))
    (home / "of a customer").mkdir()
    _, out, _ = mcpspy("--version", "--verbose")
    assert str(home) not in out
    assert "10.1.2" not in out
    found = rows(out)
    assert found["captures"].endswith(f"  ~{os.sep}of a customer, from MCPSPY_CAPTURE_DIR")
    assert found["Python"].endswith(f", ~{os.sep}venv{os.sep}python")
    assert "SSH_CONNECTION is set" in found["terminal"]


def test_what_the_package_requires_is_parsed():
    dependencies, extras = installation.parse(
        [
            "orjson>=3.10",
            "aiohttp<3.15,>=3.14",
            "backports-zstd>=1; python_version < '3.14'",
            'mitmproxy<12,>=11; (python_version < "3.12") and extra == "mitm"',
            "mitmproxy<14,>=12; (python_version >= '3.12') and extra == 'mitm'",
            "ruff>=0.8; extra == 'dev'",
            "",
        ]
    )
    assert dependencies == {"aiohttp": "", "backports-zstd": "python_version < '3.14'", "orjson": ""}
    assert extras == {"mitm": ["mitmproxy"]}


def test_what_is_not_installed_is_named():
    assert installation.of_dependency("no-such-package", "") == "not installed"
    assert (
        installation.of_dependency("no-such-package", "os_name == 'nt'") == "not installed; needed if os_name == 'nt'"
    )
    assert installation.of_extra("x", ["no-such-package"]) == "not installed (mcpspy[x])"
    assert installation.of_extra("x", ["no-such-package", "orjson"]) == (
        f"no-such-package missing, orjson {metadata.version('orjson')}"
    )


def test_without_an_installation_there_is_a_report_too(mcpspy, monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", missing)
    _, out, _ = mcpspy("--version", "--verbose")
    assert rows(out)["dependencies"].endswith("  unknown: mcpspy is not installed as a package")
