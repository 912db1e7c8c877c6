"""The list of sessions."""

import pytest

from mcpspy.agent.answers import LARGEST, size_of
from mcpspy.agent.sessions import list_sessions
from mcpspy.errors import UsageError

FINE = "= 2025-11-25\n> 2 ping\n< 2 = {}"


def test_each_session_has_its_counts(folder):
    name = folder.add(ppid=42)
    other = folder.add(FINE, "notes", ppid=42)
    answer = list_sessions(folder.captures)
    assert [it["session"] for it in answer["sessions"]] == [other, name]
    told = answer["sessions"][1]
    assert (told["server"], told["requests"], told["failed"], told["run"]) == ("weather", 5, 3, f"run:{name}")
    assert told["findings"]["error"] >= 1
    assert told["started"].endswith("Z")


def test_live_sessions_come_first(folder):
    _, live = folder.begin()
    folder.add()
    told = list_sessions(folder.captures)["sessions"]
    assert (told[0]["session"], told[0]["live"]) == (live, True)


@pytest.mark.parametrize(
    ("wanted", "servers"),
    [
        ({"server": "NOT"}, ["notes"]),
        ({"client": "nobody"}, []),
        ({"problems": True}, ["weather"]),
        ({"server": "weather.js"}, ["weather", "notes"]),
    ],
)
def test_sessions_are_filtered(folder, wanted, servers):
    folder.add(FINE, "notes")
    folder.add()
    answer = list_sessions(folder.captures, **wanted)
    assert [it["server"] for it in answer["sessions"]] == servers
    assert answer["total"] == len(servers)


def test_a_long_list_comes_in_pages(folder):
    names = [folder.add(FINE, f"server{n}" + "x" * 30) for n in range(60)]
    read, cursor, pages = [], "", 0
    while cursor is not None:
        answer = list_sessions(folder.captures, cursor=cursor)
        assert size_of(answer) <= LARGEST
        read += [it["session"] for it in answer["sessions"]]
        cursor = answer.get("next")
        pages += 1
    assert read == names[::-1]
    assert pages > 1
    with pytest.raises(UsageError, match="does not belong"):
        list_sessions(folder.captures, server="x", cursor=list_sessions(folder.captures)["next"])


def test_files_that_are_no_captures_are_named(folder):
    (folder.path / "broken.jsonl").write_text("{")
    assert "broken.jsonl" in list_sessions(folder.captures)["unread"][0]


def test_the_name_of_a_file_may_hold_a_secret(folder):
    (folder.path / f"{'ghp_' + 'a1B2' * 9}.jsonl").write_text("{")
    assert "redacted" in list_sessions(folder.captures)["unread"][0]


def test_no_secret_of_a_header_leaves_or_can_be_guessed(folder):
    """A-13: also one that somebody wrote into a capture by hand."""
    token = "gh" + "p_" + "a1B2" * 9
    folder.add(name=f"weather {token}", argv=("server", f"--x={token}"), imported={"from": f"a HAR {token}"})
    assert token not in str(list_sessions(folder.captures))
    assert list_sessions(folder.captures)["sessions"][0]["imported"].startswith("a HAR ")
    for guess in (token[:9], token):
        assert list_sessions(folder.captures, server=guess)["total"] == 0
    assert list_sessions(folder.captures, server="weather")["total"] == 1
    with pytest.raises(UsageError) as told:
        folder.captures.find(f"weather {token[:-2]}")
    assert token[:-2] not in str(told.value).partition("the n")[2]
