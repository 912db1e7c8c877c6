"""What may change, from a file beside the capture or from options: `mock`, `replay`, `diff`, gates, the fixtures."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import refusal
from tests.cli.test_gates import run as finish
from tests.cli.test_replay import SESSION
from tests.relay.harness import python
from tests.replay.scripts import INITIALIZE, SERVER, call, result
from tests.replay.webs import served
from tests.transcript import capture

NONCES = ("0b9d2a1e-5c3f-4d6a-9e8b-7f6a5d4c3b2a", "1c8e3b2f-6d4a-4e5b-8f9c-6a5b4c3d2e1f")
BOOKING = """
[is]
"tools/call book /params/arguments/nonce" = "uuid"
"tools/call book /result/content/0/text" = "any"

[echo]
"tools/call book /result/content/*/text" = "/params/arguments/nonce"
"""


def booking(number, nonce, room=5):
    return call(number, "book", json.dumps({"room": room, "nonce": nonce}))


def booked(number, nonce, room=5):
    return result(number, f"room {room} is booked under {nonce}")


BOOKED = (
    f"> {booking(1, NONCES[0], 7)}\n< {booked(1, NONCES[0], 7)}\n> {booking(2, NONCES[0])}\n< {booked(2, NONCES[0])}"
)
CLOCK = """
import datetime, json, sys
for line in sys.stdin:
    request = json.loads(line)
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    text = sys.argv[1] if len(sys.argv) > 1 else now
    content = [{"type": "text", "text": text}]
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}}), flush=True)
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Stand in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_booking_with_a_nonce_is_served_with_the_nonce_of_the_client(here):
    """U-04. The settings beside the capture also hold for a mock behind a gate, and for a gate that answers from it."""
    path = capture(here / "booking.jsonl", BOOKED)
    (here / "booking.replay.toml").write_text(BOOKING)
    said, answers = [booking(9, NONCES[1]), booking(10, NONCES[1], 7)], [booked(9, NONCES[1]), booked(10, NONCES[1], 7)]
    assert finish("mock", path, said=said) == (0, answers, [])
    with served(path) as server:
        assert [server.post(it) for it in said] == [(200, it) for it in answers]
    code, out, err = finish("mock", path, said=[booking(9, "none")])
    near = 'at /params/arguments/nonce instead of "none" (matcher: is uuid)'
    assert (code, err[0].endswith(near)) == (1, True)
    assert json.loads(out[0])["error"]["code"] == -32603
    gate = "[[gate]]\nwhen = 'method:tools/call from:client'\nanswer-from = 'booking.jsonl'\n"
    (here / "gates.toml").write_text(gate)
    command = [
        "wrap",
        "--gate",
        "gates.toml",
        "-o",
        "new.jsonl",
        "--no-control",
        "--",
        *python("import sys; sys.stdin.read()"),
    ]
    assert finish(*command, said=said)[:2] == (0, answers)
    pace = "[[gate]]\nwhen = 'method:tools/call from:client'\ndelay = '1ms'\n"
    (here / "gates.toml").write_text(pace)
    assert finish("mock", path, "--gate", "gates.toml", said=said) == (0, answers, [])


def test_options_allow_what_a_file_does(here):
    path = capture(here / "booking.jsonl", BOOKED)
    nonce = "tools/call book /params/arguments/nonce"
    for options in (["--is", f"{nonce}=uuid"], ["--matches", f"{nonce}=^[0-9a-f-]+$"], ["--ignore", nonce]):
        code, out, err = finish("mock", path, *options, said=[booking(9, NONCES[1])])
        assert (code, out, err) == (0, [booked(9, NONCES[0])], [])
    (here / "gates.toml").write_text("[[gate]]\nwhen = 'method:x'\ndrop = true\n")
    code, out, _ = finish("mock", path, "--ignore", nonce, "--gate", "gates.toml", said=[booking(9, NONCES[1])])
    assert (code, out) == (0, [booked(9, NONCES[0])])
    assert finish("mock", path, "--within", "/params/arguments/room=1", said=[booking(9, NONCES[0], 6)])[0] == 0


def test_a_clock_is_learned_and_a_clock_that_breaks_is_found(here, run):
    """U-04. The clock counts seconds, so the runs are apart from each other."""
    capture("clock.jsonl", f"> {call(1, 'now')}\n< {result(1, '2026-11-28T12:00:00+00:00')}")
    command = python(CLOCK)
    assert run("replay", "clock.jsonl", "--", *command)[0] == 1
    code, out, err = run("replay", "clock.jsonl", "--learn", "3", "--update", "--", *command)
    table = "[is]\n'tools/call now /result/content/0/text' = 'date-time'\n"
    assert (code, out) == (0, "clock.jsonl: 1 comparison: 1 same\n")
    assert err == f"mcpspy: clock.replay.toml allows from now on:\n{table}"
    assert Path("clock.replay.toml").read_text() == table
    assert run("replay", "clock.jsonl", "--", *command)[0] == 0
    code, out, _ = run("replay", "clock.jsonl", "--", *command, "no clock today")
    assert (code, out.splitlines()[3:5]) == (1, ['      observed  "no clock today"', "      matcher   is date-time"])
    _, out, _ = run("replay", "clock.jsonl", "--format", "json", "--", *command, "no clock today")
    assert json.loads(out)["exchanges"][0]["differences"][0]["matcher"] == "is date-time"
    assert run("replay", "clock.jsonl", "--learn", "2", "--", *command)[2].endswith("there is nothing to allow\n")


def test_what_was_not_requested_is_listed(here):
    """U-04: two recordings are unused. The handshake is not listed."""
    path = capture(here / "weather.jsonl", SESSION)
    said = [INITIALIZE, '{"jsonrpc":"2.0","id":2,"method":"tools/list"}', call(7, "get_forecast", '{"city":"Oslo"}')]
    assert finish("mock", path, said=said)[0] == 0
    unused = [
        "mcpspy: tools/call report (#12) was recorded, but not requested",
        "mcpspy: tools/call get_forecast (#14) was recorded, but not requested",
    ]
    code, out, err = finish("mock", path, "--all-used", said=said)
    assert (code, len(out), err) == (1, 3, unused)
    report = call(8, "report", '{"city":"Oslo","sky":"blue"}')
    every = [*said, report, call(9, "get_forecast", '{"city":"Bergen"}')]
    assert finish("mock", path, "--all-used", said=every)[::2] == (0, [])
    (here / "gates.toml").write_text("[[gate]]\nwhen = 'method:x'\ndrop = true\n")
    assert finish("mock", path, "--all-used", "--gate", "gates.toml", said=said)[::2] == (1, unused)


def test_over_http_all_clients_together_request_what_was_recorded(here):
    text = "\n".join(f"> {call(n, name)}\n< {result(n, name)}" for n, name in enumerate("abc", 1))
    path = capture(here / "a.jsonl", f"{text}")
    with served(path, options=["--all-used"]) as server:
        for name in "ab":
            assert server.post(call(9, name)) == (200, result(9, name))
        assert server.end() == (1, "mcpspy: tools/call c (#9) was recorded, but not requested\n")
    with served(path, options=["--all-used"]) as server:
        assert server.end()[0] == 1, "no client came"


def test_two_captures_are_compared_by_the_settings_of_the_first(here, run):
    other = "\n".join(
        f"> {booking(n, NONCES[1], room)}\n< {booked(n, NONCES[1], room)}" for n, room in ((1, 5), (2, 7))
    )
    capture("a.jsonl", BOOKED)
    capture("b.jsonl", other)
    assert run("diff", "a.jsonl", "b.jsonl")[0] == 1
    Path("a.replay.toml").write_text(BOOKING.replace('"tools/call book /result/content/0/text" = "any"', ""))
    code, out, _ = run("diff", "a.jsonl", "b.jsonl")
    assert (code, out.splitlines()[-1]) == (0, "0 changes in listings, 0 breaking; answers: 2 same")
    Path("b.jsonl").write_text(Path("b.jsonl").read_text().replace(f"under {NONCES[1]}", f"under {NONCES[0]}"))
    assert run("diff", "a.jsonl", "b.jsonl")[0] == 1, "the server has to repeat the nonce"
    assert run("diff", "a.jsonl", "b.jsonl", "--matches", "/result/content/0/text=^room [0-9] is booked")[0] == 0


@pytest.mark.parametrize(
    ("options", "file", "sentence"),
    [
        (["--is", "result/x=uuid"], "", "'result/x' is not a method; a JSON Pointer begins with a slash: '/result/x'"),
        (["--is", "/result/x=uid"], "", "'uid' is not a form of values; did you mean 'uuid'?"),
        (["--matches", "/result/x=(a)\\1"], "", "is not a regular expression without look-around and back-references"),
        (["--within", "/result/x=near"], "", "'near' is not a distance; write a number, such as 0.5"),
        (["--ignore", "/result/~x"], "", "'/result/~x' is not a JSON Pointer: write ~ in a name as ~0"),
        ([], "[is]\n'/x' = 'uid'", "a.replay.toml: [is] '/x': 'uid' is not a form of values; did you mean 'uuid'?"),
        ([], "[mathces]", "a.replay.toml has 'mathces', which is not a setting; did you mean 'matches'?"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_sent(here, run, options, file, sentence):
    capture("a.jsonl", SESSION)
    Path("a.replay.toml").write_text(file)
    touch = python("open('started', 'w')")
    assert sentence in refusal(run("replay", "a.jsonl", *options, "--", *touch))
    assert sentence in refusal(run("diff", "a.jsonl", "a.jsonl", *options))
    for more in ([], ["--listen", "127.0.0.1:0"], ["--record-missing", "--", *touch]):
        assert sentence in refusal(run("mock", "a.jsonl", *options, *more))
    if file:
        Path("g.toml").write_text("[[gate]]\nanswer-from = 'a.jsonl'\n")
        code, out, err = finish("wrap", "--gate", "g.toml", "-o", "new.jsonl", "--", *touch, said=[INITIALIZE])
        assert (code, out, len(err)) == (2, [], 1)
        assert f"g.toml:2:15: answer-from cannot use the settings: {here}/{sentence}" in err[0]
    assert not Path("started").exists()


def test_settings_do_not_hide_a_change_of_another_place(here, run):
    capture("weather.jsonl", SESSION)
    Path("weather.replay.toml").write_text('[matches]\n"/result/content/0/text" = "°C, (light )?rain$"\n')
    assert run("replay", "weather.jsonl", "--", *SERVER, "none")[0] == 0
    assert run("replay", "weather.jsonl", "--", *SERVER, "result")[0] == 1, "13 °C, sun"
    Path("weather.replay.toml").write_text('[matches]\n"/result/content/0/text" = "°C, [a-z ]+$"\n')
    assert run("replay", "weather.jsonl", "--", *SERVER, "result")[0] == 0
    assert run("replay", "weather.jsonl", "--", *SERVER, "description")[0] == 1
    assert run("replay", "weather.jsonl", "--", *SERVER, "error")[0] == 1
