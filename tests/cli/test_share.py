"""The command line of `mcpspy share`: replaced values, questions, refusals, and the import of a page."""

import os

import pytest

from mcpspy.sharing.page import writer
from tests.sharing.page.written import carried, session
from tests.transcript import abandon, begin, capture, record

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"  # not a real token
MAIL = '{"name":"mail","arguments":{"to":"jane@corp.example"}}'
TALK = f"""
    = 2025-06-18
    > {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{MAIL}}}
    < {{"jsonrpc":"2.0","id":5,"result":{{"content":[{{"type":"text","text":"sent with {TOKEN}"}}]}}}}
    > {{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{{"name":"rain","arguments":{{}}}}}}
    < {{"jsonrpc":"2.0","id":6,"result":{{"content":[]}}}}
"""


@pytest.fixture(name="path")
def _path(home):
    return capture(home / "talk.jsonl", TALK)


def page(path="talk.html"):
    with open(path, encoding="utf-8") as file:
        return file.read()


def everything(text):
    """Return all content of a page, also the compressed parts."""
    return text.encode() + carried(text) + carried(text, "session")


def test_the_page_is_written_here_without_secrets_and_says_what_was_replaced(mcpspy, path):
    status, out, err = mcpspy("share", path, "--yes")
    assert (status, err) == (0, "")
    assert "redacted-github-token-1" in out
    assert out.splitlines()[-1].startswith("written: talk.html (")
    assert out.endswith(f"{len(session(page())['rows'])} rows)\n")
    found = everything(page())
    assert TOKEN.encode() not in found
    assert b"jane" not in found
    about = session(page())["about"]
    assert (about["scrubbed"], about["raw"], about["file"]) == (True, False, "talk.jsonl")
    assert {"kind": "GitHub token", "label": "redacted-github-token-1", "count": 1} in about["replaced"]
    assert os.stat("talk.html").st_mode & 0o777 == 0o600


def test_the_page_does_not_tell_a_name_that_the_file_had(mcpspy, path, home):
    named = home / f"jane@corp.example-{TOKEN}.jsonl"
    os.rename(path, named)
    mcpspy("share", str(named), "--yes", "-o", "p.html")
    found = everything(page("p.html"))
    assert b"jane" not in found
    assert TOKEN.encode() not in found
    mcpspy("share", str(named), "--raw", "-o", "raw.html")
    assert session(page("raw.html"))["about"]["file"] == named.name


def test_the_capture_in_the_page_says_that_it_was_scrubbed_and_comes_back(mcpspy, path):
    mcpspy("share", path, "--yes")
    status, out, _ = mcpspy("import", "talk.html")
    assert status == 0
    with open(out.strip(), "rb") as file:
        found = file.read()
    assert found == carried(page())
    assert b'"scrubbed":true' in found.partition(b"\n")[0]


def test_only_secrets_leaves_the_rest_and_replace_and_keep_say_more(mcpspy, path):
    mcpspy("share", path, "--yes", "--only-secrets", "-o", "a.html")
    assert b"jane@corp.example" in everything(page("a.html"))
    mcpspy("share", path, "--yes", "--replace", "sent with", "--keep", "/params/arguments/to", "-o", "b.html")
    found = everything(page("b.html"))
    assert b"sent with" not in found
    assert b"jane@corp.example" in found


def test_raw_replaces_nothing_and_says_so_here_and_on_the_page(mcpspy, path):
    status, out, err = mcpspy("share", path, "--raw")
    assert (status, out.count("\n")) == (0, 1)
    assert err == "mcpspy: --raw: the page holds all that was recorded, also secrets\n"
    with open(path, "rb") as file:
        assert carried(page()) == file.read()
    about = session(page())["about"]
    assert (about["scrubbed"], about["raw"], about["replaced"]) == (False, True, [])


def test_a_filter_leaves_the_other_exchanges_out(mcpspy, path):
    assert mcpspy("share", path, "--yes", "--filter", "name:rain")[0] == 0
    found = session(page())
    assert found["about"]["filter"] == "name:rain"
    assert {row["name"] for row in found["rows"] if row["method"] == "tools/call"} == {"rain"}
    assert b"sent with" not in everything(page())


def test_a_filter_is_asked_of_what_was_recorded_and_not_of_what_is_left_of_it(mcpspy, path):
    mcpspy("share", path, "--yes", "--filter", "jane@corp.example")
    assert b"jane" not in everything(page())
    assert session(page())["about"]["filter"] == "…"
    assert {row["name"] for row in session(page())["rows"] if row["method"] == "tools/call"} == {"mail"}


def test_a_mistake_in_the_filter_is_pointed_at_and_nothing_is_written(mcpspy, path):
    status, out, err = mcpspy("share", path, "--yes", "--filter", "metod:x")
    assert (status, out) == (2, "")
    assert err.startswith("  metod:x\n  ^\nmcpspy: unknown key 'metod' at column 1")
    assert not os.path.exists("talk.html")


def test_a_file_that_is_there_is_replaced_with_force_only(mcpspy, path):
    mcpspy("share", path, "--raw")
    before = page()
    status, _, err = mcpspy("share", path, "--raw", "--filter", "name:rain")
    assert (status, err) == (2, "mcpspy: talk.html exists; --force replaces it\n")
    assert page() == before
    assert mcpspy("share", path, "--raw", "--filter", "name:rain", "--force")[0] == 0
    assert page() != before


def test_the_capture_itself_is_never_replaced(mcpspy, path):
    status, _, err = mcpspy("share", path, "--raw", "--force", "-o", path)
    assert status == 2
    assert "talk.jsonl is the file" in err


def test_without_a_terminal_it_has_to_be_told_yes(mcpspy, path):
    status, _, err = mcpspy("share", path)
    assert status == 2
    assert err == "mcpspy: share asks before it writes, and this is not a terminal; --yes writes without asking\n"
    assert not os.path.exists("talk.html")


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_on_a_terminal_it_asks(mcpspy, path, monkeypatch, answer, status):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    assert mcpspy("share", path)[0] == status
    assert asked == ["Write talk.html? [y/N] "]
    assert os.path.exists("talk.html") is (status == 0)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--raw", "--replace", "x"], "--raw replaces nothing: no --replace, --keep or --only-secrets with it"),
        (["--yes", "--replace", "("], "--replace '(' is not a regular expression"),
    ],
)
def test_options_that_do_not_go_together_are_refused(mcpspy, path, options, told):
    status, _, err = mcpspy("share", path, *options)
    assert status == 2
    assert told in err


def test_what_is_no_capture_is_refused(mcpspy, home):
    (home / "x.txt").write_text("hello\n")
    assert (
        "is not a capture: its first line is not a capture header" in mcpspy("share", str(home / "x.txt"), "--yes")[2]
    )
    assert "is a directory; share takes one capture" in mcpspy("share", str(home), "--yes")[2]
    assert "no such file" in mcpspy("share", str(home / "y.jsonl"), "--yes")[2]


def test_a_capture_over_the_bound_is_refused_in_one_line_with_a_filter(mcpspy, path, monkeypatch):
    monkeypatch.setattr(writer, "MOST_ROWS", 3)
    status, _, err = mcpspy("share", path, "--raw")
    assert status == 2
    assert err.splitlines()[-1].startswith("mcpspy: ")
    assert "--filter" in err
    assert not os.path.exists("talk.html")


def test_a_live_and_damaged_capture_is_shared_as_far_as_it_goes(mcpspy, home):
    live = begin(home / "live.jsonl")
    record(live, TALK)
    status, _, err = mcpspy("share", live.path, "--yes")
    assert status == 0
    assert "is still being recorded: this is what it holds now" in err
    assert session(page("live.html"))["about"]["live"] is True
    abandon(live)
    with open(live.path, "ab") as file:
        file.write(b"damaged\n")
    status, _, err = mcpspy("share", live.path, "--yes", "--force")
    assert (status, "1 damaged line, whose content is left out" in err) == (0, True)
    damage = session(page("live.html"))["about"]["damage"]
    assert damage[0].endswith("1 lost: a damaged line")
    assert damage[1] == "the capture has no end: mcpspy was killed while it recorded"
