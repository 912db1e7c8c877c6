"""All problems in one answer."""

from mcpspy.agent.answers import LARGEST
from mcpspy.agent.clean import size_of
from mcpspy.agent.problems import find_problems
from tests.agent.conftest import EXAMPLE
from tests.transcript import record


def test_one_answer_has_everything(folder):
    name = folder.add()
    answer = find_problems(folder.captures)
    assert {key: answer["counts"][key] for key in ("requests", "failed", "unanswered")} == {
        "requests": 5,
        "failed": 2,
        "unanswered": 1,
    }
    assert [(it["at"], it["status"]) for it in answer["failed"]] == [
        (f"{name}#12", "tool-error"),
        (f"{name}#10", "error"),
    ]
    wrong = answer["failed"][1]
    assert (wrong["error"], wrong["arguments"]) == ("-32602 text must be a string", {"text": 5})
    assert (wrong["rule"], wrong["blame"], wrong["answer"]) == ("tools/arguments", "client", f"{name}#11")
    assert answer["failed"][0]["error"] == "no such file"
    assert [it["at"] for it in answer["unanswered"]] == [f"{name}#15"]
    assert answer["stderr"] == [{"at": f"{name}#14", "text": "echo: warning"}]
    assert answer["end"]["text"] == "the server exited with code 3"
    found = {it["rule"]: it for it in answer["findings"]}
    assert found["tools/arguments"]["at"] == f"{name}#10"
    assert found["tools/arguments"]["fix"]
    assert answer["findings"][0]["severity"] == "error"


def test_a_session_without_problems_is_short(folder):
    folder.add("= 2025-11-25\n> 2 ping\n< 2 = {}", code=0)
    answer = find_problems(folder.captures)
    assert not answer.keys() & {"failed", "unanswered", "findings", "stderr", "more"}
    assert answer["note"].startswith("no problems")
    assert size_of(answer) < 400


def test_many_problems_stay_within_the_bound_and_say_how_to_get_the_rest(folder):
    call = (
        '> {0} tools/call {{"name":"t{0}","arguments":{{"q":"{1}"}}}}\n< {0} ! {{"code":-32000,"message":"{1}"}}\n! {1}'
    )
    calls = "\n".join(call.format(n, "x" * 900) for n in range(2, 60))
    folder.add("= 2025-11-25\n" + calls)
    answer = find_problems(folder.captures)
    assert size_of(answer) <= LARGEST
    assert len(answer["failed"]) > 2
    assert any("status:error,tool-error" in it for it in answer["more"])


def test_a_run_has_the_problems_of_each_session(folder):
    names = [folder.add(EXAMPLE, f"s{n}", ppid=42) for n in range(12)]
    answer = find_problems(folder.captures, session=f"run:{names[0]}")
    assert size_of(answer) <= LARGEST
    told = [it["session"] for it in answer["sessions"]]
    rest = [it.removeprefix("find_problems ") for it in answer.get("more", ())]
    assert sorted(told + rest) == sorted(names)
    assert all(it["failed"] for it in answer["sessions"])


def test_a_live_session_is_told_as_far_as_it_is(folder):
    writer, name = folder.begin()
    assert find_problems(folder.captures, session=name)["state"] == "live"
    record(writer, EXAMPLE)
    assert find_problems(folder.captures, session=name)["counts"]["failed"] == 2
    writer.end(0, 0, None)


def test_what_is_not_read_yet_is_said(folder, monkeypatch):
    folder.add()
    entry = folder.captures.find("")
    monkeypatch.setattr("mcpspy.agent.captures.grow", lambda *_: None)
    folder.captures.open(entry)
    assert find_problems(folder.captures)["read"].startswith("0 %")
