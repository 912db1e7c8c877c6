"""The timeline and single messages."""

import json

import pytest

from mcpspy.agent.answers import LARGEST, size_of
from mcpspy.agent.rows import read_message, read_timeline
from mcpspy.errors import UsageError

LARGE = """
= 2025-11-25
> 2 tools/call {{"name":"cat"}}
< 2 = {{"content":[{{"type":"text","text":"{}"}}]}}
"""


def test_rows_have_addresses_and_lead_to_each_other(folder):
    name = folder.add()
    rows = {it["at"]: it for it in read_timeline(folder.captures)["rows"]}
    call, answer = rows[f"{name}#10"], rows[f"{name}#11"]
    assert (call["what"], call["outcome"], call["other"]) == ("tools/call echo", "error", f"{name}#11")
    assert call["findings"] == ["tools/arguments"]
    assert (answer["other"], answer["ms"], answer["preview"]) == (f"{name}#10", 1.0, "-32602 text must be a string")
    assert rows[f"{name}#14"]["preview"] == "echo: warning"
    assert rows[f"{name}#5"]["from"] == "client"


def test_a_filter_selects_and_a_wrong_one_says_where(folder):
    name = folder.add()
    rows = read_timeline(folder.captures, filter="kind:request status:error,tool-error")["rows"]
    assert [it["at"] for it in rows] == [f"{name}#10", f"{name}#12"]
    newest = read_timeline(folder.captures, filter="kind:request", newest_first=True, limit=1)["rows"]
    assert [it["at"] for it in newest] == [f"{name}#15"]
    with pytest.raises(UsageError, match=r"not understood: .*column 1.*did you mean 'status'"):
        read_timeline(folder.captures, filter="stats:error")


def test_one_question_for_all_sessions(folder):
    """For example, to search for a word, or for the slow calls of all servers."""
    names = [folder.add(name=f"server{n}") for n in range(4)]
    found = read_timeline(folder.captures, session="all", filter='"no such file"')
    assert [it["at"] for it in found["rows"]] == [f"{name}#13" for name in reversed(names)]
    assert found["servers"] == {name: f"server{n}" for n, name in enumerate(names)}
    read, cursor = [], ""
    while cursor is not None:
        page = read_timeline(folder.captures, session="all", filter="kind:request", limit=3, cursor=cursor)
        read += [it["at"] for it in page["rows"]]
        cursor = page.get("next")
    assert len(set(read)) == len(read) == 4 * 5
    with pytest.raises(UsageError, match="does not belong"):
        read_timeline(folder.captures, session="all", cursor="3-00000000")


def test_what_is_not_read_yet_is_not_passed_over(folder, monkeypatch):
    folder.add()
    monkeypatch.setattr("mcpspy.agent.captures.grow", lambda *_: None)
    page = read_timeline(folder.captures, session="all")
    monkeypatch.undo()
    assert not page["rows"]
    assert read_timeline(folder.captures, session="all", cursor=page["next"])["rows"]


def test_one_question_for_a_run(folder):
    names = [folder.add(ppid=42), folder.add(ppid=42)]
    folder.add(ppid=43)
    rows = read_timeline(folder.captures, session=f"run:{names[0]}", filter="kind:end")["rows"]
    assert {it["at"].partition("#")[0] for it in rows} == set(names)


def test_no_rows_say_what_was_searched(folder):
    folder.add()
    note = read_timeline(folder.captures, filter="latency>100 status:ok")["note"]
    assert note.startswith("none of the 12 rows of the session matches; 'latency>100' was searched as text")


def test_what_is_no_message_is_read_in_its_row(folder):
    folder.add("= 2025-11-25\n< | Listening on port 3000")
    row = read_timeline(folder.captures, filter="kind:invalid")["rows"][0]
    assert (row["preview"], row["why"]) == ("Listening on port 3000", "not JSON (error at character 0)")


def test_a_long_timeline_comes_in_pages(folder):
    name = folder.add("= 2025-11-25\n" + "\n".join(f"> {n} ping\n< {n} = {{}}" for n in range(2, 200)))
    read, cursor = [], ""
    while cursor is not None:
        answer = read_timeline(folder.captures, limit=150, cursor=cursor)
        assert size_of(answer) <= LARGEST
        read += [int(it["at"].removeprefix(f"{name}#")) for it in answer["rows"]]
        cursor = answer.get("next")
    assert read == sorted(set(read))
    assert len(read) == 3 + 2 * 198 + 1


def test_a_message_comes_with_its_answer_and_findings(folder):
    name = folder.add()
    for n in (10, 11):
        answer = read_message(folder.captures, address=f"{name}#{n}")
        assert [it["at"] for it in answer["messages"]] == [f"{name}#10", f"{name}#11"]
        assert answer["messages"][0]["content"]["params"]["arguments"] == {"text": 5}
        assert answer["messages"][1]["content"]["error"]["code"] == -32602
        assert answer["findings"][0]["rule"] == "tools/arguments"
    alone = read_message(folder.captures, address=f"{name}#11", alone=True)
    assert [it["at"] for it in alone["messages"]] == [f"{name}#11"]


def test_a_long_value_is_cut_and_the_rest_can_be_read(folder):
    text = "".join(f"{n:06}" for n in range(5000))
    name = folder.add(LARGE.format(text))
    answer = read_message(folder.captures, address=f"{name}#9")
    assert size_of(answer) <= LARGEST
    assert answer["messages"][1]["clipped"][0]["pointer"] == "/result/content/0/text"
    read, offset = "", 0
    while offset is not None:
        part = read_message(folder.captures, address=f"{name}#9", pointer="/result/content/0/text", offset=offset)
        assert size_of(part) <= LARGEST
        read += part["value"]
        offset = part.get("next_offset")
    assert read == text


def test_a_pointer_may_lack_its_first_slash(folder):
    name = folder.add()
    assert read_message(folder.captures, address=f"{name}#10", pointer="params/arguments/text")["value"] == 5
    assert read_message(folder.captures, address=f"{name}#10", pointer="params")["pointer"] == "/params"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"address": "9"}, "not an address"),
        ({"address": "{}#999"}, "no frame .*#999; the nearest is"),
        ({"address": "zzzzzz#9"}, "no session 'zzzzzz'"),
        ({"address": "{}#10", "pointer": "/result"}, "nothing at '/result' .* there is /params"),
        ({"address": "{}#10", "pointer": "/params/no/text"}, "there is /params/name, /params/arguments"),
        ({"address": "{}#10", "pointer": "/params/name/first"}, "there is only /params/name"),
    ],
)
def test_what_there_is_not_has_a_nearest(folder, wrong, sentence):
    name = folder.add()
    with pytest.raises(UsageError, match=sentence):
        read_message(folder.captures, **wrong | {"address": wrong["address"].format(name)})


def test_secrets_do_not_come_out(folder):
    name = folder.add(
        '= 2025-11-25\n> 2 tools/call {"name":"login","arguments":{"password":"hunter2xyz"}}\n! password=hunter2xyz'
    )
    answers = [read_timeline(folder.captures), read_message(folder.captures, address=f"{name}#8")]
    assert "hunter2xyz" not in str(answers)


def test_a_response_may_repeat_a_secret_of_its_request(folder):
    call = '> 2 tools/call {"name":"login","arguments":{"password":"tigerlily99"}}\n< 2 ! {"code":-1,"message":"{}"}'
    name = folder.add("= 2025-11-25\n" + call.replace("{}", "tigerlily99 is refused"))
    assert "tigerlily99" not in str(read_message(folder.captures, address=f"{name}#9", alone=True))


def test_long_names_of_members_stay_within_the_bound(folder):
    value = {f"漢{n}" * 100: "漢" * 5000 for n in range(300)}
    name = folder.add("= 2025-11-25\n> 2 ping " + json.dumps(value) + "\n< 2 = " + json.dumps(value))
    assert size_of(read_message(folder.captures, address=f"{name}#8")) <= LARGEST
    assert size_of(read_message(folder.captures, address=f"{name}#8", alone=True)) <= LARGEST


def test_a_large_batch_stays_within_the_bound_and_can_be_read_on(folder):
    batch = [{"jsonrpc": "2.0", "id": n, "method": "m" * 300, "params": {"n": n}} for n in range(2, 100)]
    name = folder.add("= 2025-03-26\n> " + json.dumps(batch))
    answer = read_message(folder.captures, address=f"{name}#8")
    assert size_of(answer) <= LARGEST
    shown = len(answer["messages"])
    assert f"pointer /{shown} reads the next" in answer["note"]
    assert read_message(folder.captures, address=f"{name}#8", pointer=f"/{shown}/params/n")["value"] == shown + 2


def test_a_batch_and_what_is_no_message(folder):
    name = folder.add(
        '= 2025-03-26\n> [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","id":3,"method":"ping"}]\n'
        "< | Fetching…\n< 2 = {}\n> | {}"
    )
    rows = read_timeline(folder.captures)["rows"]
    assert [it["kind"] for it in rows][3:6] == ["batch", "invalid", "result"]
    batch = read_message(folder.captures, address=f"{name}#8")
    assert [it.get("part", 0) for it in batch["messages"]] == [0, 1]
    invalid = read_message(folder.captures, address=f"{name}#9")["messages"][0]
    assert invalid["content"] == "Fetching…"
    assert invalid["why"].startswith("not JSON")
    assert read_message(folder.captures, address=f"{name}#11")["messages"][0]["kind"] == "invalid"


SECRET_CALL = {"name": "Hunter2Fluffy", "arguments": {"password": "Hunter2Fluffy"}}
SECRET_ID = {"jsonrpc": "2.0", "id": "Hunter2Fluffy"}
GUESSED = f"""
= 2025-11-25
> | {json.dumps(SECRET_ID | {"method": "tools/call", "params": SECRET_CALL})}
< | {json.dumps(SECRET_ID | {"result": {"content": [{"type": "text", "text": "it is Hunter2Fluffy"}]}})}
> Hunter2Fluffy {{"again":"Hunter2Fluffy"}}
< Hunter2Fluffy {{}}
> 9 ping {{"a":"plain needle"}}
< 9 = {{}}
"""
GUESSES = (
    '"Hunter2{}"', '"\\"password\\": \\"Hunter2{}"', '"it is hunter2{}"', 'text:"Hunter2{}"', '"ed" "Hunter2{}"',
    "name:Hunter2{}*", "id:Hunter2{}*", "method:Hunter2{}*", "name:Hunter2{}* kind:request",
)  # fmt: skip


def test_a_filter_cannot_guess_a_secret(folder):
    """A-13: the right beginning of a scrubbed value selects the same rows as a wrong one, for each term."""
    folder.add(GUESSED)
    for form in GUESSES:
        for around in ("{}", "not {}", '{} or "redacted"', 'not ({} or "zzz")', '"needle" or not {}'):
            right, wrong = (
                [
                    [row["at"] for row in read_timeline(folder.captures, session=session, filter=text)["rows"]]
                    for session in ("", "all")
                ]
                for text in (around.format(form.format(letters)) for letters in ("Fl", "Xy"))
            )
            assert right == wrong, (form, around)
    assert [it["kind"] for it in read_timeline(folder.captures, filter='"plain needle"')["rows"]] == ["request"]
    assert read_timeline(folder.captures, filter="kind:request name:redacted* id:redacted* method:tools/call")["rows"]


def test_a_filter_cannot_guess_the_letters_of_a_secret_by_those_of_its_replacement(folder):
    """A-13: a text that is only in the replacement matches, whatever the secret contains."""
    selected = []
    for secret in ("Hunter2Fluffy", "alue7-Redacted"):
        call = json.dumps({"name": "x", "arguments": {"password": secret}})
        name = folder.add(f"= 2025-11-25\n> 5 tools/call {call}")
        found = [read_timeline(folder.captures, session=name, filter=text)["rows"] for text in ('"redact"', '"alue"')]
        selected.append([len(rows) for rows in found])
    assert selected == [[1, 1], [1, 1]]
