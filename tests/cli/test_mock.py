import json

import pytest

from tests.cli.test_gates import run
from tests.cli.test_replay import SESSION
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.transcript import capture

SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}'
GREEN = '{"jsonrpc":"2.0","id":0,"result":{"content":"green"}}'


@pytest.fixture
def mock(tmp_path):
    """Serve a transcript to a client that sends some lines, and return exit status, stdout and stderr."""

    def serve(text, *lines, options=()):
        paths = [capture(tmp_path / f"{n}.jsonl", it) for n, it in enumerate([text] if isinstance(text, str) else text)]
        return run("mock", *paths, *options, said=lines)

    return serve


def test_a_client_that_asks_what_was_recorded_is_served(mock):
    code, out, err = mock(SESSION, INITIALIZE, call(7, "get_forecast", '{"city":"Bergen"}'))
    assert (code, out, err) == (0, [INITIALIZED, result(7, "9 °C, rain")], [])


def test_misses_are_listed_at_the_end(mock):
    code, out, err = mock(SESSION, call(7, "get_forecast", '{"city":"Paris"}'), '{"id":8,"method":"prompts/list"}')
    assert (code, len(out)) == (1, 2)
    near = 'the nearest is #10, with "Oslo" at /params/arguments/city instead of "Paris"'
    assert err == [
        f"mcpspy: tools/call get_forecast was not recorded; {near}",
        "mcpspy: prompts/list was not recorded; the nearest is #8, tools/list",
    ]


def test_an_answer_that_is_another_is_listed_at_the_end(mock):
    text = f"> {call(1, 'a')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'A')}"
    code, _, err = mock(text, call(1, "a"), GREEN.replace("green", "red"))
    wrong = 'differs from the capture: expected "green" at /result/content, got "red"'
    assert (code, err) == (1, [f"mcpspy: the client's answer to sampling/createMessage (#6) {wrong}"])
    code, _, err = mock(text, call(1, "a"))
    assert (code, err) == (1, ["mcpspy: the client's answer to sampling/createMessage (#6) is missing"])


def test_loosely_a_request_is_served_and_that_is_said(mock):
    code, out, err = mock(SESSION, call(7, "get_forecast", '{"city":"Paris"}'), options=["--loose"])
    assert (code, out) == (0, [result(7, "12 °C, light rain")])
    assert [line.partition(":")[2].partition(":")[0] for line in err] == [" answered with the nearest recording"]


def test_loosely_the_nearest_is_served_which_stderr_names(mock):
    days = [(1, "Oslo", 2), (2, "Bergen", 2), (3, "Bergen", 3)]
    text = "\n".join(
        f"> {call(n, 'a', json.dumps({'city': c, 'days': d}))}\n< {result(n, f'{c} {d}')}" for n, c, d in days
    )
    code, out, err = mock(text, call(7, "a", '{"city":"Bergen","days":4}'), options=["--loose"])
    assert (code, out) == (0, [result(7, "Bergen 2")])
    assert err[0].endswith("the nearest is #7, with 2 at /params/arguments/days instead of 4")


def test_several_captures_are_one_server(mock):
    texts = [f"> {call(1, name)}\n< {result(1, name)}" for name in "ab"]
    assert mock(texts, call(1, "b"), call(2, "a"))[:2] == (0, [result(1, "b"), result(2, "a")])


def test_a_capture_that_cannot_be_played_is_one_line_and_exit_status_2(mock, tmp_path, mcpspy):
    code, out, err = mock(f"< {result(1, 'A')}")
    assert (code, out, len(err)) == (2, [], 1)
    assert err[0].endswith("has no message of a client: there is nothing to replay")
    assert "No such file" in mcpspy("mock", tmp_path / "none.jsonl")[2]
