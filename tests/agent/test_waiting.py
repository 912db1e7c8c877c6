"""Waiting, tested without a clock: each call of `look` is one step."""

import json

import pytest

from mcpspy.agent.rows import NextMatch
from mcpspy.errors import UsageError
from tests.transcript import CHANNELS, OPENS, finish, frames

FIRST = '= 2025-11-25\n> 2 tools/call {"name":"a"}\n< 2 ! {"code":-1,"message":"before"}\n> 3 tools/call {"name":"b"}'
FINE = '@5 < 3 = {"content":[]}\n@5.1 > 4 tools/call {"name":"c"}'
WRONG = '@6 < 4 = {"content":[{"type":"text","text":"no"}],"isError":true}'


def opened(folder, **fields):
    writer, name = folder.begin(**fields)
    for channel in OPENS:
        writer.open(channel.ch, 0, channel.sender, channel.role, channel.framing)
    return writer, name


def write(writer, text):
    for mark, t, raw, cut in frames(text):
        writer.frame(CHANNELS[mark], t, raw, more=False, cut=cut)


@pytest.mark.parametrize("session", [True, False])
def test_only_what_is_new_counts(folder, session):
    writer, name = opened(folder)
    write(writer, FIRST)
    watch = NextMatch(folder.captures, name if session else "")
    assert watch.look() is None
    write(writer, FINE)
    assert watch.look() is None
    write(writer, WRONG)
    found = watch.look()
    assert (found["found"], found["session"]) == (True, name)
    assert found["row"]["outcome"] == "tool-error"
    assert watch.seen >= 2
    finish(writer)


def test_a_call_that_failed_is_told_once_by_its_response(folder):
    writer, name = opened(folder)
    watch = NextMatch(folder.captures, name)
    write(writer, FIRST)
    row = watch.look()["row"]
    assert (row["at"], row["other"], row["preview"]) == (f"{name}#9", f"{name}#8", "-1 before")
    assert NextMatch(folder.captures, after=row["at"]).look() is None
    assert NextMatch(folder.captures, name, "kind:request", f"{name}#7").look()["row"]["at"] == f"{name}#8"
    finish(writer)


def test_a_session_that_begins_meanwhile_is_watched(folder):
    watch = NextMatch(folder.captures)
    assert watch.look() is None
    writer, name = opened(folder)
    write(writer, FIRST)
    assert watch.look()["session"] == name
    finish(writer)


def test_a_filter_is_waited_for(folder):
    writer, name = opened(folder)
    watch = NextMatch(folder.captures, name, "name:b kind:request")
    write(writer, FIRST)
    assert watch.look()["row"]["what"] == "tools/call b"
    finish(writer)


def test_the_end_of_the_session_ends_the_waiting(folder):
    writer, name = opened(folder)
    watch = NextMatch(folder.captures, name, "name:never")
    write(writer, FIRST)
    finish(writer)
    assert watch.look() == {"found": False, "session": name, "note": "the session has ended"}


def test_nothing_came(folder):
    _, name = opened(folder)
    watch = NextMatch(folder.captures, name)
    assert "nothing matched" in watch.nothing(2)["note"]
    assert f"in {name} within 2 s" in watch.nothing(2)["note"]


def test_what_cannot_be_waited_for(folder):
    name = folder.add()
    with pytest.raises(UsageError, match="has ended, so nothing new will come"):
        NextMatch(folder.captures, name)
    with pytest.raises(UsageError, match="column 1"):
        NextMatch(folder.captures, "", "stats:error")


def test_nothing_between_two_calls_is_missed(folder):
    writer, name = opened(folder)
    write(writer, FIRST)
    assert NextMatch(folder.captures, after=f"{name}#7").look()["row"]["at"] == f"{name}#9"
    assert NextMatch(folder.captures, after=f"{name}#9").look() is None
    finish(writer)
    assert NextMatch(folder.captures, after=f"{name}#7").look()["found"]
    assert NextMatch(folder.captures, after=f"{name}#99").look()["note"] == "the session has ended"
    with pytest.raises(UsageError, match="not an address"):
        NextMatch(folder.captures, after="x")


def test_a_wait_that_found_nothing_says_where_the_next_goes_on(folder):
    writer, name = opened(folder)
    write(writer, FIRST)
    watch = NextMatch(folder.captures, name)
    assert watch.look() is None
    after = watch.nothing(1)["after"]
    write(writer, FINE)
    write(writer, WRONG)
    assert NextMatch(folder.captures, after=after).look()["row"]["outcome"] == "tool-error"
    finish(writer)


@pytest.mark.parametrize("term", ['"Hunter2{}"', "name:Hunter2{}*", "id:Hunter2{}*", "method:Hunter2{}*"])
@pytest.mark.parametrize("around", ["{} kind:request", "not {} kind:request name:*"])
def test_waiting_cannot_guess_a_secret(folder, term, around):
    """A-13: the right beginning of a scrubbed value is waited for like a wrong one."""
    writer, name = opened(folder)
    watches = [NextMatch(folder.captures, name, around.format(term.format(letters))) for letters in ("Fl", "Xy")]
    params = {"name": "Hunter2Fl", "arguments": {"password": "Hunter2Fl"}}
    call = json.dumps({"jsonrpc": "2.0", "id": "Hunter2Fl", "method": "tools/call", "params": params})
    write(writer, f"= 2025-11-25\n> | {call}\n> Hunter2Fl {{}}")
    right, wrong = (watch.look() for watch in watches)
    assert (right and right["row"]["at"]) == (wrong and wrong["row"]["at"])
    finish(writer)
