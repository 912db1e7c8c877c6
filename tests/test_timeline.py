"""Rows, and their JSON for programs (docs/json.md)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Close, End, Frame, Gap, Gates, Header, Open, Signal
from mcpspy.report.lines import line
from mcpspy.timeline import Ending, Row, final_rows, rows_alone, streamed_rows, to_json, wall_time
from tests.rules.gate_sessions import TRANSPORTS, request, result
from tests.transcript import OPENS, records, rows

HEADER = Header(
    "9f2c", "2026-11-20T19:15:00.123456Z", "mcpspy 0.1.0", "stdio", "weather", ("npx", "-y", "@scope/server")
)
BIG = "12345678901234567890123"
KEYS = (
    "n part t time from channel transport kind id method name revision session status outcome failed expected request"
    " response latency size http findings"
).split()


def final(text, *, live=False):
    return list(final_rows(lambda: records(text), live=live))


def frames(*raws):
    """Return records of frames that the server sent, byte for byte."""
    return [*OPENS, *(Frame(n, 2, n, raw) for n, raw in enumerate(raws, 5))]


def printed(*raws):
    """Return the rows of frames that the server sent, as a strict parser reads the printed lines."""
    return [strict(to_json(row, HEADER)) for row in final_rows(lambda: frames(*raws), live=False)]


def strict(line):
    """Decode a line that must follow the grammar of RFC 8259, which has no NaN."""
    assert b"\n" not in line
    assert b"\r" not in line, "text mode would break the line here"
    line.decode()

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(
        line, parse_constant=refuse, parse_int=lambda digits: digits if len(digits) > 4300 else int(digits)
    )


def statuses(text, **options):
    return [(row.n, row.part, row.kind, row.status) for row in final(text, **options) if row.kind != "notification"]


# Statuses (F-07).

EVERY_OUTCOME = """
    > {"id":1,"method":"tools/call","params":{"name":"a"}}
    < {"id":1,"result":{"content":[]}}
    > {"id":2,"method":"tools/call","params":{"name":"b"}}
    < {"id":2,"result":{"isError":true}}
    > {"id":3,"method":"nope"}
    < {"id":3,"error":{"code":-32601,"message":"Method not found"}}
    > {"id":4,"method":"tools/call","params":{"name":"c"}}
    > {"method":"notifications/cancelled","params":{"requestId":4}}
    > {"id":5,"method":"subscriptions/listen"}
    > {"id":6,"method":"tools/list"}
"""


def test_each_row_of_a_finished_capture_is_final():
    """F-07."""
    assert statuses(EVERY_OUTCOME) == [
        (1, 0, "request", "ok"),
        (2, 0, "result", "ok"),
        (3, 0, "request", "tool-error"),
        (4, 0, "result", "tool-error"),
        (5, 0, "request", "error"),
        (6, 0, "error", "error"),
        (7, 0, "request", "cancelled"),
        (9, 0, "request", "pending"),
        (10, 0, "request", "unanswered"),
    ]


def test_in_a_live_capture_a_request_may_still_be_pending():
    """F-07."""
    assert statuses(EVERY_OUTCOME, live=True)[-1] == (10, 0, "request", "pending")


def test_across_a_gap_nothing_is_called_unanswered():
    assert statuses("""
        > {"id":1,"method":"ping"}
        ~ 2
        > {"id":2,"method":"ping"}
    """) == [(1, 0, "request", "pending"), (2, 0, "gap", None), (3, 0, "request", "unanswered")]


def test_a_late_answer_to_a_cancelled_request_is_part_of_it():
    """F-07."""
    request, _, response = final("""
        > {"id":1,"method":"ping"}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        < {"id":1,"result":{}}
    """)
    assert (request.status, request.response) == ("cancelled", 3)
    assert (response.status, response.request) == ("cancelled", 1)


def test_request_and_response_know_each_other_and_the_latency():
    request, response = final("""
        @1.00 > {"id":1,"method":"tools/call","params":{"name":"a"}}
        @1.25 < {"id":1,"result":{}}
    """)
    for row in (request, response):
        assert (row.request, row.response, row.latency) == (1, 2, 250_000_000)
        assert (row.method, row.name) == ("tools/call", "a")


def test_a_request_whose_answer_was_recorded_first_is_final_too():
    request, response = final("""
        @1.25 < {"id":1,"result":{}}
        @1.00 > {"id":1,"method":"ping"}
    """)
    assert (request.n, request.status, request.response, request.latency) == (2, "ok", 1, 250_000_000)
    assert (response.n, response.request) == (1, 2)


def test_an_answer_to_nothing_has_no_request():
    (row,) = final('< {"id":1,"result":{}}')
    assert (row.kind, row.method, row.status, row.request, row.response) == ("result", None, None, None, None)


def test_rows_stream_with_what_is_known_so_far():
    text = """
        > {"id":1,"method":"ping"}
        < {"id":1,"result":{}}
    """
    request = next(rows(iter(records(text))))
    assert (request.status, request.response, request.latency) == ("pending", None, None)


def test_a_capture_that_grows_between_the_two_passes_gives_what_came_later_as_pending():
    asked = records("""
        > {"id":1,"method":"ping"}
        > {"id":2,"method":"ping"}
    """)
    passes = [asked[:-1], asked]
    assert [row.status for row in final_rows(lambda: passes.pop(0), live=True)] == ["pending", "pending"]


# The JSON.


def test_a_row_is_the_object_that_the_design_shows():
    raw = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"get_forecast"}}'
    feed = [
        *OPENS,
        Frame(17, 1, 123_456_000, raw),
        Frame(21, 2, 135_756_000, b'{"jsonrpc":"2.0","id":3,"result":{}}'),
    ]
    request, response = (to_json(row, HEADER) for row in final_rows(lambda: feed, live=False))
    told = json.loads(request)
    assert [finding["rule"] for finding in told.pop("findings")] == ["lifecycle/before-initialize"]
    assert told == {
        "n": 17,
        "part": 0,
        "t": 0.123456,
        "time": "2026-11-20T19:15:00.246912Z",
        "from": "client",
        "channel": 1,
        "transport": "stdio",
        "kind": "request",
        "id": 3,
        "method": "tools/call",
        "name": "get_forecast",
        "revision": None,
        "session": None,
        "status": "ok",
        "outcome": "ok",
        "failed": False,
        "expected": None,
        "request": 17,
        "response": 21,
        "latency": 0.0123,
        "size": len(raw),
        "http": None,
        "message": json.loads(raw),
    }
    assert list(json.loads(request)) == [*KEYS, "message"]
    assert list(json.loads(response)) == [*KEYS, "message"]
    assert b": " not in request, "compact"


def test_every_kind_of_row_has_the_same_keys():
    feed = [
        *frames(b'{"method":"n"}', b"{", b'{"id":1,"error":{}}'),
        Frame(8, 3, 8, b"a warning"),
        Gap(9, 9, 2, "no space left on device"),
        Close(10, 2, 10, "eof"),
        End(11, 11, code=3),
    ]
    found = [strict(to_json(row, HEADER)) for row in final_rows(lambda: feed, live=False)]
    assert [row["kind"] for row in found] == [
        "notification", "invalid", "error", "stderr", "gap", "end-of-stream", "end",
    ]  # fmt: skip
    for row in found:
        assert [key for key in row if key not in ("message", "text", "stream")] == KEYS
        assert ("stream" in row) == (row["kind"] == "end-of-stream")
        assert ("message" in row) != ("text" in row)
    assert [row.get("text") for row in found] == [
        None,
        "{",
        None,
        "a warning",
        "2 lost: no space left on device",
        "the server closed stdout after 0 µs, idle for 0 µs",
        "the server exited with code 3",
    ]
    assert [row["from"] for row in found] == ["server"] * 4 + ["mcpspy", "server", "mcpspy"]
    assert [row["channel"] for row in found] == [2, 2, 2, 3, None, 2, None]
    assert found[5]["stream"] == {"name": "stdout", "how": "eof", "lasted": 1e-8, "idle": 3e-9, "unanswered": []}


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (End(1, 0, code=0), "the server exited with code 0"),
        (End(1, 0, signal=15), "the server was killed by signal 15"),
        (End(1, 0, code=127, why="cannot start 'x': not found"), "cannot start 'x': not found"),
    ],
)
def test_the_end_says_how_it_came(end, text):
    (row,) = rows([end])
    assert (row.kind, row.text) == ("end", text)


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (Signal(1, 5, 15, "group", forwarded=False), "SIGTERM to the process group"),
        (Signal(1, 5, 2, "group", forwarded=True), "SIGINT to the process group, forwarded to the server"),
        (Signal(1, 5, 1, "process", forwarded=True), "SIGHUP to mcpspy, forwarded to the server"),
        (Signal(1, 5, 3, "process", forwarded=False), "SIGQUIT to mcpspy, not forwarded to the server"),
        (Signal(1, 5, 999, "process", forwarded=True), "999 to mcpspy, forwarded to the server"),
    ],
)
def test_a_signal_is_a_row_of_its_own(record, text):
    """C-02."""
    (row,) = rows([record])
    assert (row.kind, row.sender, row.t, row.text) == ("signal", "mcpspy", 5, text)
    fields = json.loads(to_json(row, HEADER))
    assert (fields["kind"], fields["text"], fields["channel"]) == ("signal", text, None)


@pytest.mark.parametrize(
    "id_",
    [
        "1",
        "1.0",
        "1e0",
        "-0.0",
        BIG,
        f"-{BIG}",
        "1e999",
        "9" * 5000,
        '"1"',
        '"\\ud800"',
        '"é\\n"',
        "null",
        "true",
        "[1]",
        '{"a":1}',
    ],
)
def test_an_id_is_verbatim(id_):
    """F-05."""
    for raw in (f'{{"id":{id_},"method":"x"}}', f'{{"id":{id_},"result":{{}}}}'):
        (row,) = final_rows(lambda raw=raw: frames(raw.encode()), live=False)
        line = to_json(row, HEADER)
        strict(line)
        written = json.loads(line, parse_int=str, parse_float=str)["id"]
        assert written == json.loads(id_, parse_int=str, parse_float=str)


@pytest.mark.parametrize(
    "id_", ["NaN", "Infinity", "-Infinity", "[NaN]", f"[{','.join('1' * 600)}]", f'["{"x" * 2000}"]']
)
def test_an_id_that_is_none_leaves_valid_json(id_):
    """F-05, F-10."""
    assert len(printed(f'{{"id":{id_},"method":"x"}}'.encode())) == 1


@pytest.mark.parametrize("number", [BIG, "1.10", "1e2", "-0", "0.1234567890123456789012345", "1E400"])
def test_the_numbers_of_a_message_keep_their_digits(number):
    """F-05."""
    raw = f'{{"jsonrpc":"2.0","method":"n","params":[{number}]}}'.encode()
    (row,) = final_rows(lambda: frames(raw), live=False)
    line = to_json(row, HEADER)
    if row.refused is None:
        assert raw in line
        strict(line)


@pytest.mark.parametrize("around", ["[{}]", '[5,{},{{"method":"m"}}]', "\ufeff{}"])
def test_an_integer_of_23_digits_survives_in_a_batch_and_behind_a_byte_order_mark(around):
    """F-05, F-09."""
    raw = around.format(f'{{"jsonrpc":"2.0","method":"n","params":[{BIG},-{BIG}]}}').encode()
    found = [row["message"] for row in printed(raw) if row["kind"] == "notification"]
    assert found[0]["params"] == [int(BIG), -int(BIG)]


def test_each_message_of_a_batch_is_a_row_with_its_part():
    """F-09."""
    found = printed(b'[{"id":1,"method":"a"},{"method":"b","params":{"x":"\xc3\xa9"}},5]')
    assert [(row["n"], row["part"], row["kind"]) for row in found] == [
        (5, 0, "request"),
        (5, 1, "notification"),
        (5, 2, "invalid"),
    ]
    assert [row["message"] for row in found] == [{"id": 1, "method": "a"}, {"method": "b", "params": {"x": "é"}}, 5]


def test_json_that_is_no_message_is_a_message_all_the_same():
    """F-03: `text` is only for frames that are not JSON."""
    assert [row["message"] for row in printed(b"5", b'"x"', b"{}", b"[]", b"false")] == [5, "x", {}, [], False]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"Server running", "Server running"),
        (b"caf\xe9", "caf\ufffd"),
        (b'{"method":"n","params":NaN}', '{"method":"n","params":NaN}'),
        (b'{"method":"n","params":[-Infinity]}', '{"method":"n","params":[-Infinity]}'),
        (b'{"method":"n","params":1e999}', '{"method":"n","params":1e999}'),
        (b"\x1b[2J\x00", "\x1b[2J\x00"),
    ],
)
def test_what_is_not_json_is_text(raw, text):
    """F-03."""
    (row,) = printed(raw)
    assert row["text"] == text
    assert "message" not in row


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"method":"\\ud800","params":"\\udfff"}', {"method": "\ud800", "params": "\udfff"}),
        (b'\xef\xbb\xbf{"method":"n"}', {"method": "n"}),
        (b'{"method":"n","params":"\xff"}', {"method": "n", "params": "\ufffd"}),
        (b' {"method":"n"}\r', {"method": "n"}),
        (b'{"method":\r"n"}', {"method": "n"}),
        ('{"method":"n","params":"\u2028"}'.encode(), {"method": "n", "params": "\u2028"}),
        (b'{"method":"a","method":"n"}', {"method": "n"}),
    ],
)
def test_what_peers_can_read_is_a_message(raw, message):
    """F-03, F-08: always one line of JSON, whatever the frame contains."""
    feed = frames(raw)
    (row,) = final_rows(lambda: feed, live=False)
    line = to_json(row, HEADER)
    assert b"\r" not in line
    assert b"\n" not in line
    assert json.loads(line)["message"] == message
    assert json.loads(line)["method"] == message["method"]


@pytest.mark.parametrize("depth", [500, 900, 1000, 1020, 5000, 100_000])
@pytest.mark.parametrize(
    "frame", ['{"id":1,"method":"x","params":%s}', "[%s]", '\ufeff{"id":1,"method":"x","params":%s}']
)
def test_deep_nesting_gives_a_row(frame, depth):
    """F-10."""
    raw = (frame % ("[" * depth + "]" * depth)).encode()
    for row in final_rows(lambda: frames(raw), live=False):
        line = to_json(row, HEADER)
        if depth <= 900:
            strict(line)
        assert line.startswith(b'{"n":5,')


def test_a_newline_of_a_message_in_pieces_does_not_break_the_line():
    (row,) = printed(b'{"method":\n"n"}')
    assert row["message"] == {"method": "n"}


def test_times_are_those_of_the_wall():
    assert wall_time(HEADER, 0) == "2026-11-20T19:15:00.123456Z"
    assert wall_time(HEADER, 60_000_001_999) == "2026-11-20T19:16:00.123457Z"
    assert wall_time(HEADER, 1_000) == "2026-11-20T19:15:00.123457Z"


def test_the_size_is_that_of_the_frame():
    assert [row["size"] for row in printed(b'{"method":"n"} ', b'[{"method":"n"},{"method":"n"}]')] == [15, 31, 31]


# One record at a time.


@pytest.mark.parametrize("text", [EVERY_OUTCOME, '< {"id":1,"result":{}}\n< {"id":2,"result":{}}'])
def test_the_rows_are_streamed_without_what_is_not_known_yet(text):
    found = [to_json(row, HEADER) for row in streamed_rows(records(text)) if isinstance(row, Row)]
    for row in (alone := list(rows(records(text)))):
        row.findings = ()
    streamed = [json.loads(line) | {"findings": []} for line in found]
    assert streamed == [json.loads(to_json(row, HEADER)) for row in alone]


def test_what_has_no_answer_is_known_at_the_end():
    ending = Ending()
    list(streamed_rows(records(EVERY_OUTCOME), ending))
    assert [(exchange.request.n, exchange.status) for exchange in ending.pending] == [
        (7, "cancelled"),
        (9, "pending"),
        (10, "pending"),
    ]


@pytest.mark.parametrize("live", [True, False])
def test_the_final_status_of_an_exchange_is_that_of_its_row(live):
    text = f"""
        {EVERY_OUTCOME}
        ~ 1
        > {{"id":7,"method":"ping"}}
    """
    ending = Ending()
    found = {row.n: row.status for row in final_rows(lambda: records(text), ending, live=live) if row.kind == "request"}
    pending = {exchange.request.n: exchange.final_status(live=live) for exchange in ending.pending}
    assert pending == {n: found[n] for n in pending}
    assert (pending[12], pending[10]) == ("pending" if live else "unanswered", "pending")


def test_the_rows_of_one_record_alone_say_what_it_says():
    (row,) = rows_alone(Frame(9, 1, 5, b'{"id":1,"method":"tools/call","params":{"name":"a"}}'), OPENS[0])
    assert (row.n, row.t, row.kind, row.sender, row.method, row.name) == (9, 5, "request", "client", "tools/call", "a")
    (row,) = rows_alone(Frame(9, 2, 5, b'{"id":1,"result":{"isError":true}}'), OPENS[1])
    assert (row.kind, row.sender, row.method, row.request, row.status) == ("result", "server", None, None, None)
    assert [row.part for row in rows_alone(Frame(9, 2, 5, b'[{"id":1,"result":{}},{"method":"x"}]'), OPENS[1])] == [
        0,
        1,
    ]
    (row,) = rows_alone(Frame(9, 3, 5, b"{}"), OPENS[2])
    assert (row.kind, row.text) == ("stderr", "{}")
    (row,) = rows_alone(Frame(9, 8, 5, b'{"method":"x"}'), None)
    assert (row.kind, row.sender) == ("notification", "client")
    assert [row.kind for record in (Gap(9, 5, 1, "x"), End(9, 5)) for row in rows_alone(record, None)] == ["gap", "end"]


# Properties.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
MESSAGE = st.fixed_dictionaries(
    {}, optional={"id": JSON, "method": JSON | st.just("tools/call"), "params": JSON, "result": JSON, "error": JSON}
)
RAW = st.one_of(
    st.binary(),
    st.builds(
        lambda value, ascii_, indent: json.dumps(value, ensure_ascii=ascii_, indent=indent).encode(
            "utf-8", "surrogatepass"
        ),
        MESSAGE | JSON | st.lists(MESSAGE, max_size=3),
        st.booleans(),
        st.sampled_from([None, "\r", " "]),
    ),
)


@given(st.lists(st.tuples(st.integers(1, 4), RAW, st.integers(0, 2 * 10**9)), max_size=8))
def test_every_row_is_one_line_of_strict_json(frames):
    feed = [*OPENS, Open(4, 4, 0, "client", "request", "body")]
    feed += [Frame(n, ch, t, raw) for n, (ch, raw, t) in enumerate(frames, 5)]
    for row in final_rows(lambda: feed, live=False):
        found = strict(to_json(row, HEADER))
        assert [key for key in found if key not in ("message", "text")] == KEYS


@given(st.integers(0, 2**62))
def test_every_time_that_a_clock_can_show_is_printed(t):
    (row,) = rows([Gap(2, t, 1, "x")])
    assert strict(to_json(row, HEADER))["t"] == pytest.approx(t / 1e9)


@pytest.mark.parametrize(
    ("gates", "by", "text"),
    [
        (({"name": "slow search"}, {"name": "flaky"}), "file", "slow search, flaky (set by the gate file)"),
        ((), "viewer", "none in force (set by a viewer)"),
        (({},), "viewer", "? (set by a viewer)"),
    ],
)
def test_the_gates_in_force_are_a_row_of_their_own(gates, by, text):
    (row,) = rows([Gates(1, 5, gates, by)])
    assert (row.kind, row.sender, row.t, row.text) == ("gates", "mcpspy", 5, text)
    assert f"· gates: {text}" in line(row)


CALL, DONE = request(3, "tools/call", name="search"), result(3, content=[])


def gated_rows(transport, **gated):
    """Return the final rows of a call with a gate on it and of its response, each with its JSON, by kind."""
    wire = TRANSPORTS[transport]()
    wire.client(CALL, **gated)
    wire.wait(gated.get("hold", 0) + 0.5)
    if "sent" not in gated:
        wire.server(DONE, of=3)
    found = final_rows(lambda: wire.records, live=False)
    return {row.kind: (row, json.loads(to_json(row, HEADER))) for row in found if row.method}


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_latency_of_a_final_row_excludes_the_time_for_which_a_gate_held_it(transport):
    found = gated_rows(transport, hold=12, how="delayed")
    for row, fields in found.values():
        assert 0.4 < fields["latency"] < 0.6
        assert fields["status"] == "ok"
        assert ("held" in fields) is (row.kind == "request")
    row, fields = found["request"]
    assert (fields["gate"], fields["forwarded"], round(fields["held"])) == ("g", "delayed", 12)
    assert "delayed" in line(row)
    assert line(row).endswith(" by gate g]")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(
    ("gated", "status", "fields"),
    [
        ({"sent": None}, "dropped", {"gate": "g", "forwarded": "dropped"}),
        ({"sent": b"{}"}, "unanswered", {"gate": "g", "forwarded": "edited"}),
        ({"hold": 99, "how": "expired", "sent": None}, "dropped", {"gate": "g", "forwarded": "dropped"}),
    ],
    ids=["dropped", "edited", "held and dropped"],
)
def test_a_final_row_tells_what_a_gate_did(transport, gated, status, fields):
    _, found = gated_rows(transport, **gated)["request"]
    assert found["status"] == status
    assert found.items() >= fields.items()
    assert ("held" in found) is ("hold" in gated)


def test_a_request_that_is_still_held_is_no_unanswered_one():
    wire = TRANSPORTS["stdio"]()
    wire.client(CALL, hold=99, how="expired")
    for live in (True, False):
        (row,) = (row for row in final_rows(lambda: wire.records, live=live) if row.kind == "request")
        fields = json.loads(to_json(row, HEADER))
        assert (row.status, fields["gate"], fields["forwarded"], fields["held"]) == ("held", "g", None, None)


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_what_a_gate_made_is_ours(transport):
    wire = TRANSPORTS[transport]()
    wire.client(CALL, sent=None, answered=True)
    wire.made("server", DONE, of=3)
    (asked, answer) = (row for row in final_rows(lambda: wire.records, live=False) if row.method)
    assert (asked.status, asked.act.how, asked.response) == ("ok", "answered", answer.n)
    assert (answer.sender, answer.act.how, json.loads(to_json(answer, HEADER))["gate"]) == ("mcpspy", "made", "g")


def test_a_row_of_an_ungated_frame_has_no_such_members():
    found = json.loads(to_json(next(row for row in rows(records("> 1 ping")) if row.method), HEADER))
    assert not {"gate", "forwarded", "held"} & set(found)
