import os
import shutil
import socket
import sys

import pytest

from mcpspy.clients import checks, mistakes
from mcpspy.clients.check import FINE, NOTE, PROBLEM
from mcpspy.clients.checks import of_answer, of_captures, of_config
from mcpspy.clients.places import Found
from mcpspy.clients.probe import Answer
from mcpspy.clients.servers import Server
from mcpspy.clients.table import BY_ID
from mcpspy.process.ports import Holder
from tests.clients.configurations import machine

CURSOR = Found(BY_ID["cursor"], BY_ID["cursor"].places[0], os.path.abspath(__file__))  # the owner of this file matters
PROJECT = Found(BY_ID["cursor"], BY_ID["cursor"].places[1], CURSOR.path)
DEMO = [sys.executable, "-m", "mcpspy.demo.server"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "work").mkdir(parents=True)
    return machine(tmp_path, environ={"HOME": str(tmp_path / "home"), "PATH": os.defpath})


def server(words, **fields):
    return Server(CURSOR, "s", "s", words=words, **fields)


def of_server(one, here, *, named=False):
    return checks.of_server(one, here, named=named)


def levels(made):
    return [one.level for one in made]


def test_a_good_server_is_found_started_and_answers(here):
    not_wrapped, found, answered = of_server(server(DEMO), here)
    assert levels([not_wrapped, found, answered]) == [NOTE, FINE, FINE]
    assert not_wrapped.fix == "mcpspy install cursor s"
    assert f", python {sys.version.split()[0]}" in found.text
    assert answered.text.startswith("initialize was answered after ")
    assert "weather" in answered.text


def test_the_server_for_agents_needs_no_wrap(here):
    first = next(of_server(server(["mcpspy", "mcp"]), here))
    assert (first.level, first.text, first.fix) == (NOTE, "it is mcpspy itself, for agents", "")


def test_the_launcher_of_a_wrapped_server_is_tried(here):
    one = server(DEMO, launcher=[sys.executable, "-m", "mcpspy"])
    assert "wrapped by mcpspy" in next(of_server(one, here)).text


@pytest.mark.parametrize(
    ("launcher", "said"), [("/gone/mcpspy", "which no longer exists"), ("/bin/false", "which does not run")]
)
def test_a_stale_launcher_is_a_problem_with_a_fix(here, launcher, said):
    check = next(of_server(server(DEMO, launcher=[launcher]), here))
    assert check.level == PROBLEM
    assert said in check.text
    assert check.fix == "install it again, after: mcpspy uninstall cursor s"


@pytest.mark.parametrize(
    ("command", "fields", "fix"),
    [
        ("no-such-server", {}, "install it, or write its absolute path"),
        ("/no/such/server", {}, "correct the command"),
        ("npx -y server", {}, "put its arguments into args, word by word"),
        ("echo", {"env_file": "/no/such"}, "correct envFile"),
    ],
)
def test_what_is_not_there_is_a_problem_with_a_fix(here, command, fields, fix):
    *_, check = of_server(server([command], **fields), here)
    assert (check.level, check.fix) == (PROBLEM, fix)


def test_a_command_that_a_desktop_program_may_not_find_is_noted(here, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "my-server").symlink_to(shutil.which("true"))
    here.environ["PATH"] = f"{tmp_path / 'bin'}:{os.defpath}"
    made = list(of_server(server(["my-server"]), here))
    assert any("perhaps not on that of programs started from the desktop" in one.text for one in made)
    assert str(tmp_path / "bin" / "my-server") in " ".join(one.fix for one in made)


def test_what_only_the_client_knows_is_not_started(here):
    *_, check = of_server(server(["echo", "${input:key}"], environ={"A": "${config:other}"}), here)
    assert check.level == NOTE
    assert "${config:other}, ${input:key}" in check.text


@pytest.mark.parametrize(
    "fields", [{"environ": {"A": "${env:KEY}"}}, {"cwd": "/${env:KEY}"}, {"env_file": "${env:KEY}"}]
)
def test_a_variable_that_is_not_set_here_is_a_problem(here, fields):
    *_, check = of_server(server(["echo"], **fields), here)
    assert (check.level, check.text) == (PROBLEM, "not set here: KEY; so it was not started")
    here.environ["KEY"] = "x"
    assert "not set" not in " ".join(one.text for one in of_server(server(["echo"], **fields), here))


def test_gemini_cli_knows_variables_without_braces(here):
    gemini = Found(BY_ID["gemini-cli"], BY_ID["gemini-cli"].places[0], CURSOR.path)
    one = Server(gemini, "s", "s", words=told("os.environ['A']"), environ={"A": "$KEY"})
    assert list(of_server(one, here))[-1].text == "not set here: KEY; so it was not started"
    here.environ["KEY"] = "the value"
    assert "stderr: the value" in list(of_server(one, here))[-1].text


def told(source):
    return [sys.executable, "-c", f"import os, sys; sys.exit({source})"]


def test_a_server_is_started_as_the_client_would(here, tmp_path):
    """The server gets the variables that SDK clients pass, those of its entry and of its envFile, and its directory."""
    here.environ.update(SECRET="x", SHELL="/bin/sh")
    (tmp_path / "env").write_text("# c\nexport A=1\nB='2 3'\nC=file\nnothing\n")
    one = server(
        told("repr(sorted(os.environ.items())) + os.getcwd()"),
        environ={"C": "${env:SECRET}"}, env_file="${userHome}/../env", cwd="${workspaceFolder}",
    )  # fmt: skip
    said = list(of_server(one, here))[-1].text
    for pair in (("A", "1"), ("B", "2 3"), ("C", "x"), ("SHELL", "/bin/sh"), ("HOME", here.environ["HOME"])):
        assert repr(pair) in said
    assert "SECRET" not in said
    assert said.endswith(here.cwd)


@pytest.mark.parametrize("cwd", ["WORK/here", "here"])
def test_a_command_with_a_path_is_looked_for_in_the_server_s_directory(here, tmp_path, monkeypatch, cwd):
    """This is what the system does, whatever the working directory of doctor is."""
    (tmp_path / "home" / "work" / "here").mkdir()
    program = tmp_path / "home" / "work" / "here" / "server"
    monkeypatch.chdir("/")
    codex = Found(BY_ID["codex"], BY_ID["codex"].places[0], CURSOR.path)
    one = Server(codex, "s", "s", words=["./server"], cwd=cwd.replace("WORK", here.cwd))
    *_, check = of_server(one, here)
    assert (check.level, "./server is not there in " in check.text) == (PROBLEM, True)
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o700)
    assert "status 7" in list(of_server(one, here))[-1].text


def test_a_tilde_is_replaced_where_the_client_does_so(here, tmp_path):
    program = tmp_path / "home" / "server"
    program.write_text("#!/bin/sh\nexit $1\n")
    program.chmod(0o700)
    code = Found(BY_ID["vscode"], BY_ID["vscode"].places[0], CURSOR.path)
    assert "status 7" in list(of_server(Server(code, "s", "s", words=["~/server", "7"], cwd="~"), here))[-1].text
    *_, check = of_server(server(["~/server", "7"]), here)
    assert (check.level, check.fix) == (PROBLEM, "write the path in full")


MCPORTER = Found(BY_ID["mcporter"], BY_ID["mcporter"].places[0], CURSOR.path)


@pytest.mark.parametrize(("found", "cwd"), [(CURSOR, "/"), (PROJECT, "CWD"), (MCPORTER, os.path.dirname(CURSOR.path))])
def test_a_server_is_started_where_its_client_starts_it(here, found, cwd):
    """CF-11: a desktop program starts its user's servers anywhere, mcporter 0.12.3 beside its file."""
    one = Server(found, "s", "s", words=told("'in ' + os.getcwd()"))
    assert list(of_server(one, here, named=True))[-1].text.endswith("in " + cwd.replace("CWD", here.cwd))


@pytest.mark.parametrize(
    "fields",
    [
        {"words": ["echo", "\0"]},
        {"words": ["ec\0ho"]},
        {"words": ["echo", "\ud800"]},
        {"words": ["echo\ud800"]},
        {"environ": {"A=B": "c"}},
        {"environ": {"A": "\0"}},
        {"environ": {"PATH": "\0"}},
        {"environ": {"A": "\ud800"}},
        {"cwd": "\0"},
        {"cwd": "/no/such"},
        {"env_file": "\0"},
        {"launcher": ["\0"]},
        {"launcher": ["/\ud800/mcpspy"]},
    ],
)
def test_what_no_process_can_have_is_a_problem(here, fields):
    assert PROBLEM in levels(of_server(server(**{"words": ["echo"]} | fields), here))


@pytest.mark.parametrize(
    ("found", "disabled", "named", "said"),
    [
        (PROJECT, False, False, "the configuration is the project's, so it was not started"),
        (PROJECT, False, True, ""),
        (CURSOR, True, False, "it is disabled in Cursor, so it was not started"),
        (CURSOR, True, True, ""),
        (CURSOR, False, False, ""),
    ],
)
def test_what_others_may_have_written_runs_only_when_it_is_named(here, tmp_path, found, disabled, named, said):
    run = tmp_path / "ran"
    script = tmp_path / "mcpspy"
    script.write_text(f"#!/bin/sh\n: >{run}\n")
    script.chmod(0o700)
    one = Server(found, "it's", "s", words=["true"], launcher=[str(script)], disabled=disabled)
    made = list(of_server(one, here, named=named))
    assert run.exists() == (not said)
    if said:
        assert made == [(NOTE, said, "to start it: mcpspy doctor 'it'\"'\"'s'")]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_what_another_user_wrote_is_not_run(here, tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text("")
    os.chown(path, 1234, 1234)
    one = Server(CURSOR._replace(path=str(path)), "s", "s", words=["true"])
    [check] = of_server(one, here, named=True)
    assert check.text == "the configuration belongs to another user, so it was not started"


def test_a_broken_entry_is_a_problem(here):
    assert levels(of_server(server([], problem="its command is empty"), here)) == [PROBLEM]


def test_a_remote_server_is_said_to_be_one(here):
    said, held = of_server(server([], url="https://h/mcp?api_key=s3cr3t", disabled=True), here)
    assert (said.level, "s3cr3t" in said.text, said.fix) == (NOTE, False, "mcpspy install cursor s")
    assert held == (NOTE, "it is disabled in Cursor, so it was not asked", "to ask it: mcpspy doctor s")


def test_a_route_without_an_origin_is_noted(here):
    check, *_ = of_server(server([], route="x"), here)
    assert (check.level, check.text) == (NOTE, "'mcpspy install' knows no route 'x'")


def test_a_routed_server_needs_a_proxy(here, monkeypatch):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        one = server([], url="https://h/mcp", route="s", port=port)
        [check] = of_server(one, here)
        assert check == (
            PROBLEM,
            f"no proxy listens on port {port}",
            f"start 'mcpspy proxy --from cursor --listen 127.0.0.1:{port}'",
        )
        listener.listen()
        monkeypatch.setattr(mistakes, "holder", lambda _: Holder(1, ["/x/other", "--token", "secret"]))
        for routes, level in (([], PROBLEM), (["t"], PROBLEM), (["t", "s"], FINE)):
            monkeypatch.setattr(checks, "routes_at", lambda _, routes=routes: routes)
            [check] = of_server(one, here)
            assert check.level == level
            assert ("/x/other --token «withheld», which does not serve the route 's'" in check.text) == (
                level == PROBLEM
            )


@pytest.mark.parametrize(
    ("answer", "level", "said"),
    [
        (Answer("initialize", {"serverInfo": {"name": "n", "version": "2"}, "protocolVersion": "2025-06-18"}, 0.2),
         FINE, "initialize was answered after 0.2 s, n 2, 2025-06-18"),
        (Answer("server/discover", {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "n", "version": "2"}},
                                    "supportedVersions": ["2026-07-28", "x"]}, 1), FINE, ", n 2, 2026-07-28, x"),
        (Answer("initialize", {"serverInfo": 3, "_meta": 4}), FINE, "initialize was answered"),
        (Answer(exit=3, seconds=0.5, stderr=["no key"]), PROBLEM, "status 3, without an answer\n    stderr: no key"),
        (Answer(exit=-11), PROBLEM, "signal 11"),
        (Answer(error="bad"), PROBLEM, "it rejected initialize: bad"),
        (Answer(seconds=10), PROBLEM, "it sent nothing for 10 s"),
    ],
)  # fmt: skip
def test_an_answer_is_judged(answer, level, said):
    [check] = of_answer(answer)
    assert check.level == level
    assert said in check.text
    assert bool(check.fix) == (level == PROBLEM)


def test_noise_is_said():
    *_, check = of_answer(Answer("initialize", {}, 0.1, noise=["Listening"]))
    assert (check.level, "'Listening'" in check.text) == (PROBLEM, True)


def test_strict_json_is_seen_with_the_clients_eyes(tmp_path):
    desktop, path = BY_ID["claude-desktop"], tmp_path / "c.json"
    path.write_text('{"mcpServers": {},}')
    [check] = of_config(Found(desktop, desktop.places[0], str(path)), machine(tmp_path))
    assert (check.level, check.fix) == (PROBLEM, "take it out")
    assert check.text.startswith("line 1, column 18: a trailing comma; Claude Desktop cannot read a file with that")
    assert not list(of_config(Found(BY_ID["cursor"], BY_ID["cursor"].places[0], str(path)), machine(tmp_path)))


def test_whether_captures_can_be_written_is_tried(here, tmp_path):
    [check] = of_captures(here)
    assert (check.level, os.listdir(tmp_path / "home" / ".mcpspy" / "captures")) == (FINE, [])
    shutil.rmtree(tmp_path / "home" / ".mcpspy")
    (tmp_path / "home" / ".mcpspy").write_text("")
    here.environ["MCPSPY_CAPTURE_DIR"] = "/elsewhere"
    assert levels(of_captures(here)) == [PROBLEM, NOTE]


def test_the_version_is_that_of_the_very_command(here, tmp_path):
    """CF-11: `python3` without a `python` in the same directory, as on Debian."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "python3"
    program.write_text("#!/bin/sh\necho Python 3.99\n")
    program.chmod(0o700)
    texts = [one.text for one in of_server(server([str(program)]), here)]
    assert f"{program} is there, python 3.99" in texts


@pytest.mark.parametrize(
    ("begin", "seconds", "levels_"), [(None, 50, []), (3, 1, []), (3, 2, [NOTE]), (3, 3.5, [PROBLEM])]
)
def test_a_server_may_be_slower_than_the_client_is_patient(begin, seconds, levels_):
    """CF-11."""
    cline = Found(BY_ID["cline"], BY_ID["cline"].places[0], "x")
    one = Server(cline, "s", "s", words=["x"], begin=begin)
    made = list(checks.of_time(Answer("initialize", {}, seconds), one))
    assert levels(made) == levels_
    for check in made:
        assert check.text == f"Cline gives up after 3 s, and this took {seconds:.1f} s"
        assert check.fix.endswith(', or write "timeout": 60 (seconds) into its entry')


@pytest.mark.parametrize(("begin", "patience"), [(None, 10), (3, 10), (30, 30), (600, 60)])
def test_a_server_has_as_much_time_as_its_client_gives(begin, patience):
    assert checks.patience(Server(CURSOR, "s", "s", begin=begin)) == patience


@pytest.mark.parametrize(
    ("client", "refused"),
    [
        ("claude-code", "comment comma"),
        ("claude-desktop", "comment comma mark"),
        ("cline", "comment comma mark"),
        ("gemini-cli", "comma mark"),
        ("qwen", "comma"),
        ("mcporter", "mark"),
        ("copilot", ""),
        ("opencode", ""),
    ],
)
def test_each_client_has_a_parser_of_its_own(tmp_path, client, refused):
    """CF-11: each client was run with the three texts, except Claude Desktop, whose documentation was used."""
    texts = {"comment": "{} // c", "comma": '{"a": [1,]}', "mark": "\ufeff{}"}
    path = tmp_path / "c.json"
    made = []
    for name, text in texts.items():
        path.write_text(text)
        found = Found(BY_ID[client], BY_ID[client].places[0], str(path))
        made += [name for check in of_config(found, machine(tmp_path)) if check.level == PROBLEM]
    assert " ".join(made) == refused


def test_a_folder_that_is_not_trusted_is_a_problem_with_a_fix(tmp_path):
    """CF-11."""
    here = machine(tmp_path)
    path = tmp_path / "home" / ".gemini" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    gemini = BY_ID["gemini-cli"]
    [check] = of_config(Found(gemini, gemini.places[0], str(path)), here)
    assert check == (
        PROBLEM,
        f"Gemini CLI does not trust {here.cwd}, and ignores its servers, the user's too",
        "start it there once and trust the folder",
    )


def test_what_a_client_ignores_is_noted(tmp_path):
    """CF-10."""
    path = tmp_path / "s.yaml"
    path.write_text("")
    one = BY_ID["continue"]
    [check] = of_config(Found(one, one.places[1], str(path)), machine(tmp_path))
    assert (check.level, check.text) == (NOTE, "the IDE extensions read this file; the command line 'cn' ignores it")
