import json

import pytest

from mcpspy.errors import CaptureError
from mcpspy.replay.match import RecordedAnswers, answers
from tests.each import each
from tests.replay.scripts import call, result, script
from tests.transcript import capture

SESSION = f"""
    > {call(1, "get_forecast", '{"city":"Oslo"}')}
    < {result(1, "12 °C")}
    > {call(2, "get_forecast", '{"city":"Bergen"}')}
    < {result(2, "9 °C")}
    > {call(3, "get_forecast", '{"city":"Bergen"}')}
    < {result(3, "8 °C")}
    > {call(4, "slow")}
    > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":4}}}}
"""


def recorded(*, nearest=False):
    return RecordedAnswers(script(SESSION).turns, nearest=nearest)


def test_requests_that_are_alike_are_answered_in_their_order_under_the_id_of_today():
    answer = recorded()
    assert answer(call('"a"', "get_forecast", '{"city":"Oslo"}').encode()) == result('"a"', "12 °C").encode()
    found = [answer(call(5, "get_forecast", '{"city":"Bergen"}').encode()) for _ in range(3)]
    assert found == [result(5, text).encode() for text in ("9 °C", "8 °C", "8 °C")]


@each(
    "frame",
    [
        call(5, "get_forecast", '{"city":"Paris"}'),
        call(5, "slow"),
        call(5, "other"),
        '{"jsonrpc":"2.0","id":5,"method":"prompts/list"}',
    ],
)
def test_a_request_that_has_no_recorded_response_is_not_answered(frame):
    assert recorded()(frame.encode()) is None


def test_the_nearest_recording_has_the_name_or_else_the_method():
    answer = recorded(nearest=True)
    assert answer(call(5, "get_forecast", '{"city":"Bergen","days":2}').encode()) == result(5, "9 °C").encode()
    assert answer(call(5, "get_forecast", '{"city":"Paris"}').encode()) == result(5, "12 °C").encode()
    assert "°C" in json.loads(answer(call(5, "other").encode()))["result"]["content"][0]["text"]
    assert answer(b'{"jsonrpc":"2.0","id":5,"method":"prompts/list"}') is None


@each("frame", [b"", b"not JSON", b"[]", b'{"method":"tools/list"}', b'{"id":1,"result":{}}', b"[{},{}]"])
def test_what_is_not_one_request_is_not_answered(frame):
    assert recorded(nearest=True)(frame) is None


def test_a_capture_is_loaded_and_one_that_cannot_be_played_is_refused(tmp_path):
    path = capture(tmp_path / "a.jsonl", SESSION)
    said = []
    asked = call(5, "get_forecast", '{"city":"Paris"}').encode()
    assert answers(path, "forward", said.append)(asked) is None
    assert answers(path, "nearest", said.append)(asked) is not None
    assert said == []
    with pytest.raises(CaptureError, match="No such file"):
        answers(str(tmp_path / "none.jsonl"), "forward", said.append)
