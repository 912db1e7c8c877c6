"""The judge as a whole: another revision, gaps, recording races, and captures with damaged messages."""

import json
import random
from collections import deque
from dataclasses import replace
from typing import ClassVar

import pytest

from mcpspy.capture.reader import Capture, ordered
from mcpspy.capture.records import Frame, Gap, Open
from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import Recent
from mcpspy.conversation.conversation import events_of
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.outcomes import Outcome
from mcpspy.rules import RULES, LocatedFinding
from mcpspy.rules.judge import Fold, Judge, JudgedEvents, judged_events
from mcpspy.rules.rule import Fault, Later, Rule, StatefulCheck
from mcpspy.spec import peer_schemas
from mcpspy.spec.peer_schemas import Budget, Judgement, Validity
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Request
from tests import NIGHTLY
from tests.conversation.http import SSE, Exchange, request, result
from tests.each import each
from tests.findings import CAPTURES
from tests.limits import proportionate
from tests.memory import objects_in
from tests.rules.examples import findings, judged, records
from tests.rules.notation import message
from tests.spec.test_peer_schemas import TREE, deep, doubled
from tests.transcript import OPENS

EXAMPLES = {f"{rule.id} {which}": getattr(rule, which) for rule in RULES.values() for which in ("fails", "passes")}
PASSING = each("rule", RULES.values(), ids=lambda rule: rule.id)


def test_each_finding_comes_with_the_message_that_it_is_about():
    for path in sorted(CAPTURES.glob("*.jsonl")):
        events = judged_events(Capture(str(path)).records(), as_revision=Revision.R2026_07_28)
        found = [event for event in events if isinstance(event, LocatedFinding)]
        assert found
        assert all((finding.frame, finding.part) == (about.n, about.part) for finding, about in found)


class Kept(Fold):
    """Keep what a fold gets, and the states of the exchanges without a response at the end."""

    def __init__(self):
        self.events, self.ended = [], []

    def add(self, event):
        self.events.append(event)

    def end(self, pending, *, live):
        self.ended.append(([exchange.request.n for exchange in pending], live))


@pytest.mark.parametrize("live", [True, False])
def test_a_fold_gets_every_event_before_the_reader_and_then_the_end(live):
    found = records(f"{RULES['pairing/unanswered'].fails}")
    fold = Kept()
    read = []
    for event in judged_events(found, fold, live=live):
        read.append(event)
        assert fold.events == read
    assert fold.ended == [([4], live)]
    assert ("pairing/unanswered" in {it.finding.rule for it in read if isinstance(it, LocatedFinding)}) is not live


def many_sessions():
    """Return records in which a stream is resumed after so many refused sessions that its session was reduced."""
    http, ping = Exchange(), b'id: e1\ndata: {"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id="a")
    stream = http.answer(http.ask(method="GET", mcp_session_id="a"), kind=SSE, end=False)
    http.event(stream, raw=ping)
    http.close(stream, "reset")
    for number in range(4):
        asked = http.ask(request(2, "tools/list"), mcp_session_id=f"s{number}", peer=f"10.0.0.{number}:1")
        http.answer(asked, result(2), status=404)
    stream = http.answer(http.ask(method="GET", mcp_session_id="a", last_event_id="e0"), kind=SSE, end=False)
    http.event(stream, raw=ping)
    http.answer(http.ask(request(3, "tools/call"), mcp_session_id="a"), result(3))
    return http.records


@pytest.mark.parametrize("sessions", [1, 2, 3, 4, 256])
def test_judging_changes_no_event(monkeypatch, sessions):
    """`final_rows` reads a capture twice, judged and not, and joins what both find by the number of a request."""
    monkeypatch.setattr(bounds, "SESSIONS", sessions)
    monkeypatch.setattr(bounds, "RESTING", 2 * sessions)
    captures = [list(Capture(str(path)).records()) for path in sorted(CAPTURES.glob("*.jsonl"))]
    for found in [many_sessions(), *captures]:
        judged = (it for it in judged_events(found) if not isinstance(it, LocatedFinding | GateAct | Outcome))
        assert [*map(told, judged)] == [*map(told, events_of(found))]


def told(event):
    """Return what an event is, and whether it belongs to an exchange."""
    return event.n, type(event), getattr(event, "exchange", None) is None


def test_of_processes_that_are_over_only_the_last_are_known_in_full(monkeypatch):
    """A capture may hold any number of them; their requests without a response are all reported."""
    monkeypatch.setattr(bounds, "SESSIONS", 3)
    monkeypatch.setattr(bounds, "RESTING", 6)
    listing = message(id=1, method="tools/list"), message(id=1, result={"tools": [{"name": "t", "inputSchema": {}}]})
    found, judge = [], Judge()
    for number in range(20):
        n, t = 10 * number, number * 10**9
        records = [Open(n, 2 * number, t, "client", "stdin", "lines")]
        records += [Open(n + 1, 2 * number + 1, t, "server", "stdout", "lines")]
        records += [Frame(n + 2 + place, 2 * number + place, t + place, raw) for place, raw in enumerate(listing)]
        records += [Frame(n + 5, 2 * number, t + 5, message(id=2, method="ping"))]
        found += [event for record in records for event in judge.feed(record)]
    known = judged_sessions(judge)
    assert sum(bool(session.listing.tools) for session in known) <= 4
    ends = [it.finding for it in judge.end() if isinstance(it, LocatedFinding)]
    assert [it.rule for it in ends].count("pairing/unanswered") == 20


def test_links_between_request_and_response_hold_until_the_next_record():
    events = JudgedEvents()
    for record in records("= 2025-11-25\n> 2 ping\n< 2 = {}"):
        (event, *_) = [*events.feed(record), None]
    assert (event.exchange.response, event.exchange.request.exchange) == (event, event.exchange)
    list(events.feed(Frame(9, 1, 10**9, b"{}")))
    assert event.exchange.response is None


def judged_sessions(judge):
    """Return the remembered sessions of which a message was examined."""
    return [session for session in objects_in(judge, Session) if session.judged]


def above_info(findings):
    return {(finding.frame, finding.rule) for finding in findings if finding.severity != "info"}


# Before the revision is negotiated

INITIALIZE = '1 initialize {"protocolVersion":"REVISION","capabilities":{},"clientInfo":{"name":"a","version":"1"}}'
AGREED = '{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"b","version":"1"}}'


@pytest.mark.parametrize("requested", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(
    "text",
    [
        "> INITIALIZE\n< | Server listening",
        "> INITIALIZE\n> 2 tools/list\n> | {\n< 7 = {}",
        '> INITIALIZE\n> 2 no/such\n< 1 ! {"code":-32602,"message":"no"}\n< | oops',
        ">> INITIALIZE\n<< 200 [content-type: application/json] | oops",
    ],
)
def test_findings_before_the_handshake_has_settled_cite_the_revision_that_the_client_asked_for(text, requested):
    """R-11."""
    text = text.replace("INITIALIZE", INITIALIZE.replace("REVISION", requested))
    found = [finding for finding in judged(records(text)) if finding.rule.split("/")[0] != "schema"]
    assert {finding.revision for finding in found} == {requested}
    for finding in found:
        assert finding.spec == RULES[finding.rule].url(Revision.of(requested)), finding


def test_an_agreed_revision_is_cited_from_the_answer_on():
    """R-11."""
    text = f"> {INITIALIZE.replace('REVISION', '2025-06-18')}\n< 1 = {AGREED}\n< | oops"
    assert {finding.revision for finding in judged(records(text))} == {"2024-11-05"}


# Another revision


def test_every_message_stands_under_the_revision_that_is_put_in_place():
    judge = Judge(Revision.R2025_03_26)
    text = """
        = 2025-06-18
        > 2 ping
        < 2 = {}
        < | nonsense
        > 3 tools/list {META}
    """
    events = [event for record in records(text) for event in judge.feed(record)]
    assert {event.revision for event in events if isinstance(event, Message)} == {Revision.R2025_03_26}


def test_what_was_agreed_on_counts_for_nothing_under_another_revision():
    for rule in ("lifecycle/era-mixed", "lifecycle/revision-mismatch"):
        found = records(RULES[rule].fails)
        assert rule in {finding.rule for finding in judged(found)}
        for revision in Revision:
            assert rule not in {finding.rule for finding in judged(found, as_revision=revision)}


@PASSING
def test_an_example_can_be_judged_by_another_revision(rule):
    """Each example by one revision: neighbours by different ones."""
    revision = list(Revision)[list(RULES).index(rule.id) % len(Revision)]
    for text in (rule.fails, rule.passes):
        assert {finding.revision for finding in judged(records(text), as_revision=revision)} <= {revision.value}


def test_the_rules_for_a_kind_of_message_are_chosen_once(monkeypatch):
    chosen = []
    monkeypatch.setattr("mcpspy.rules.judge.LISTS", {})
    monkeypatch.setattr(Rule, "learns_from", lambda *_: chosen.append(1))
    calls = ["= 2025-06-18", *(f"> {n} ping\n< {n} = {{}}" for n in range(2, 9))]
    judged(records("\n".join(calls[:2])))
    once = len(chosen)
    judged(records("\n".join(calls)))
    assert len(chosen) == once > 0


# Memory


def test_what_is_remembered_of_a_session_is_bounded(monkeypatch):
    """A client without a handshake keeps sending requests, with ever new cursors, tokens, tools and subscriptions."""
    most = 1000 if NIGHTLY else 200
    monkeypatch.setattr(bounds, "FACTS", most)
    monkeypatch.setattr(bounds, "FORGOTTEN_FACTS", most // 4)
    monkeypatch.setattr(bounds, "EXCHANGES", most // 2)
    monkeypatch.setattr(bounds, "FORGOTTEN", most // 2)
    judge = Judge()
    [list(judge.feed(record)) for record in OPENS]
    for n in range(1, 8 * most, 4):
        meta = {"progressToken": f"t{n}", "io.modelcontextprotocol/protocolVersion": "2026-07-28"}
        call = message(id=n, method="tools/list", params={"_meta": meta} if n % 8 == 1 else {"cursor": str(n)})
        answer = message(id=n, result={"tools": [{"name": f"tool {n}", "inputSchema": {}}], "nextCursor": str(n)})
        listen = message(id=f"l{n}", method="subscriptions/listen", params={})
        ended = message(id=f"l{n}", result={})
        for place, (ch, raw) in enumerate(((1, call), (2, answer), (1, listen), (2, ended))):
            list(judge.feed(Frame(n + place, ch, n * 10**9 // most, raw)))
    (session,) = judged_sessions(judge)
    for table in (session.progress, session.listens, session.listing.tools):
        assert 0 < len(table) <= most
    assert max(map(len, objects_in(session, dict))) <= most, "nor does any rule remember more"
    assert max(map(len, objects_in(session, list))) <= 100, "of requests before the handshake"
    assert max(map(len, objects_in(judge, deque))) <= 3 * most, "of what one second brought"


# Gaps: nothing is reported as missing


MISSING = (
    "pairing/orphan-response",
    "pairing/unanswered",
    "pairing/id-in-flight",
    "pairing/id-loose-match",
    "pairing/duplicate-response",
    "progress/unknown-token",
    "progress/token-reused",
    "cancel/unknown-request",
    "paging/unknown-cursor",
    "subscription/unknown-id",
    "subscription/unacknowledged",
    "tools/unknown-tool",
    "lifecycle/initialized-missing",
    "lifecycle/before-initialize",
    "lifecycle/capability-missing",
    "lifecycle/logging-without-level",
    "framing/unterminated",
    *(rule for rule in RULES if rule.startswith("http/")),
)


@PASSING
def test_a_gap_anywhere_in_what_is_right_makes_nothing_missing(rule):
    """Once with a record of the example lost in the gap, and once without."""
    whole = records(rule.passes)
    expected = above_info(judged(whole))
    for place in range(len(OPENS), len(whole)):
        for lost in (0, 1):
            gap = Gap(whole[place].n, whole[place].t, 1, "no space left on device")
            rest = [replace(record, n=record.n + 1) for record in whole[place + lost :]]
            found = above_info(judged([*whole[:place], gap, *rest]))
            assert {rule for _, rule in found} & set(MISSING) <= {rule for _, rule in expected} & set(MISSING)


KNOWN = {
    "http/challenge-missing": "warning",
    "http/expose-headers": "error",
    "http/oauth-document": "warning",
    "http/placeholder": "warning",
    "http/redirect-elsewhere": "warning",
    "lifecycle/handshake-failed": "error",
    "lifecycle/server-exit": "error",
    "paging/empty-cursor": "warning",
    "pairing/orphan-response": "error",
    "progress/no-token": "info",
}
"""The severity of what the records before a gap show, whatever came after them."""


@pytest.mark.parametrize("rule", [it for it in RULES.values() if it.closes or it.ends], ids=lambda rule: rule.id)
def test_what_may_have_been_mended_in_a_gap_is_not_reported(rule):
    whole = records(rule.fails)
    gap = Gap(whole[-1].n + 1, whole[-1].t + 1, 1, "no space left on device")
    assert {it.severity for it in judged([*whole, gap]) if it.rule == rule.id} == {*filter(None, [KNOWN.get(rule.id)])}


# Races: two threads record, so a later frame may be recorded first, with its correct time


def swapped(found):
    """Yield the records with two neighbours of different channels exchanged, for one pair at a time."""
    for place in range(len(OPENS), len(found) - 1):
        first, second = found[place], found[place + 1]
        if {getattr(first, "ch", None), getattr(second, "ch", None)} == {1, 2}:
            again = replace(second, n=first.n), replace(first, n=second.n)
            yield [*found[:place], *again, *found[place + 2 :]], {first.n: second.n, second.n: first.n}


@PASSING
def test_a_race_of_the_recording_is_no_finding(rule):
    whole = records(rule.passes)
    expected = above_info(judged(whole))
    for found, moved in swapped(whole):
        assert {(moved.get(n, n), rule) for n, rule in above_info(judged(ordered(found)))} <= expected


def test_a_race_of_the_recording_is_no_finding_in_a_whole_session():
    for name in ("features-python1-2025-11-25", "features-python2-2026-07-28"):
        whole = list(Capture(str(CAPTURES / f"{name}.jsonl")).records())
        expected = {rule for _, rule in above_info(judged(whole))}
        frames = [place for place, record in enumerate(whole) if isinstance(record, Frame)]
        for place in frames[:-1:7]:
            first, second = whole[place], whole[place + 1]
            if isinstance(second, Frame) and {first.ch, second.ch} == {1, 2}:
                again = replace(second, n=first.n), replace(first, n=second.n)
                found = [*whole[:place], *again, *whole[place + 2 :]]
                assert {rule for _, rule in above_info(judged(ordered(found)))} <= expected


# Damaged messages: nothing raises, nothing hangs


CASES = 50_000 if NIGHTLY else 1_500
VALUES = (
    None,
    True,
    0,
    -1,
    2**53 + 1,
    10**40,
    1.5,
    1e400,
    "",
    "x",
    "2.0",
    "\ud800",
    "\U000e0041",
    [],
    {},
    [[]],
    {"a": 1},
)
MEMBERS = ("jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "arguments", "tools", "cursor")
SCHEMAS = (
    {"$ref": "#"}, {"$ref": "http://127.0.0.1:9/x"}, {"pattern": "(a+)+$"}, {"type": "objet"}, {"$schema": 5}, TREE,
    deep(300), doubled(28), {"required": "a"}, {"x-mcp-header": []}, {"properties": {"a": {"x-mcp-header": 5}}},
)  # fmt: skip


def flipped(raw, chance):
    mutated = bytearray(raw)
    for _ in range(chance.randint(1, 3)):
        if mutated:
            mutated[chance.randrange(len(mutated))] ^= 1 << chance.randrange(8)
    return bytes(mutated)


def truncated(raw, chance):
    return raw[: chance.randrange(len(raw) + 1)]


def spliced(raw, chance):
    place = chance.randrange(len(raw) + 1)
    return (
        raw[:place]
        + chance.choice((b'"', b"\0", b"\xff", b"{", b"]", b",", b"\\ud800", b"1e999", b"\r", raw))
        + raw[place:]
    )


def changed(raw, chance):
    """Return a message with one value or member changed."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return truncated(raw, chance)
    holder = value
    while isinstance(holder, dict) and holder:
        key = chance.choice(list(holder))
        if not isinstance(holder[key], dict) or chance.random() < 0.4:
            holder[key] = chance.choice(VALUES)
            break
        holder = holder[key]
    if isinstance(value, dict) and chance.random() < 0.3:
        value[chance.choice(MEMBERS)] = chance.choice(VALUES)
    return json.dumps(value).encode()


def schemed(raw, chance):
    """Return a listing of two tools with hostile schemas."""
    tools = [{"name": chance.choice(("echo", "a", 5)), "inputSchema": chance.choice(SCHEMAS),
              "outputSchema": chance.choice(SCHEMAS)} for _ in range(2)]  # fmt: skip
    return message(id=2, result={"tools": tools})


def random_json(chance, depth=0):
    kind = chance.randrange(8 if depth < 4 else 6)
    if kind == 6:
        return [random_json(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 7:
        return {chance.choice((*MEMBERS, "a")): random_json(chance, depth + 1) for _ in range(chance.randrange(5))}
    return chance.choice(VALUES)


def invented(raw, chance):
    return json.dumps(random_json(chance)).encode()


MUTATIONS = {flipped: 14, truncated: 8, spliced: 10, changed: 14, invented: 6, schemed: 1}


@each("seed", range(10))
def test_nonsense_of_any_kind_raises_nothing(seed, monkeypatch):
    """Small sessions with one or two frames changed; `tests/spec/test_peer_schemas.py` tests the cost of schemas."""
    monkeypatch.setattr(peer_schemas, "judge_apart", lambda *_: Judgement(Validity.TOO_COSTLY))
    chance = random.Random(seed)  # noqa: S311 (seeded, so that a failure can be reproduced)
    sessions = [records(text) for text in EXAMPLES.values() if len(text) < 3000 and "|x" not in text]
    mutations, weights = list(MUTATIONS), list(MUTATIONS.values())
    for case in range(CASES // 10):
        found = list(chance.choice(sessions))
        for _ in range(chance.choice((1, 1, 2))):
            place = chance.choice([place for place, record in enumerate(found) if isinstance(record, Frame)])
            (mutate,) = chance.choices(mutations, weights)
            found[place] = replace(found[place], raw=mutate(found[place].raw, chance), cut=chance.random() < 0.1)
        revision = chance.choice((None, None, None, *Revision))
        try:
            for finding in judged(found, as_revision=revision):
                assert finding.message
        except Exception as error:
            raise AssertionError(f"seed {seed}, case {case}: {found[3:]}") from error


# Hostile peers: the work grows in proportion to the traffic, not faster


@pytest.mark.parametrize(
    "elements",
    [[message(method="notifications/tools/list_changed")] * 1500, [b"1"] * 15_000,
     [message(method="notifications/tools/list_changed", x="\u00e9")] * 1500],
    ids=["notifications", "numbers", "escapes"],
)  # fmt: skip
def test_the_bytes_of_a_batch_are_looked_at_once(elements):
    with proportionate(1.5):
        judged([*records("= 2025-03-26"), Frame(99, 2, 10**9, b"[" + b",".join(elements) + b"]")])


def test_many_requests_with_one_id_and_many_orphans_take_their_time_once():
    same = [Frame(n, 1, n * 1000, message(id=7, method="ping")) for n in range(1_100, 5_100)]
    asked = [Frame(n, 1, n * 1000, message(id=n, method="ping")) for n in range(20_000, 21_000)]
    orphans = [Frame(n, 2, n * 1000, message(id=f"x{n}", result={})) for n in range(30_000, 31_000)]
    with proportionate(2):
        found = judged(ordered([*records("= 2025-11-25"), *same, *asked, *orphans]))
    assert sum(finding.rule == "pairing/id-in-flight" for finding in found) == 3999
    assert sum(finding.rule == "pairing/orphan-response" for finding in found) == 1000


@pytest.mark.parametrize(
    "raw",
    [message(method="notifications/message", params={"level": "info", "data": "\U0001f3f4" + "\U000e0067" * 100_000}),
     message(method="notifications/message", params={"level": "info", "data": "-eyJ" * 60_000}),
     b'{"jsonrpc":"2.0","method":"x","params":{' + b",".join(b'"k%d":1' % n for n in range(50_000)) + b',"k0":2}}'],
    ids=["tags", "tokens", "keys"],
)  # fmt: skip
def test_one_large_message_takes_time_in_proportion(raw):
    with proportionate(3):
        judged([*records("= 2025-11-25"), Frame(99, 2, 10**9, raw)])


def test_all_the_costly_schemas_of_a_capture_share_a_budget(monkeypatch):
    monkeypatch.setattr(peer_schemas, "judge_apart", lambda *_: pytest.fail("a process was started"))
    monkeypatch.setattr("mcpspy.rules.judge.Budget", lambda: Budget(0))
    result = {"tools": [{"name": "t", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}}}]}
    listing = [
        Frame(50, 1, 10**9, message(id=9, method="tools/list")),
        Frame(51, 2, 10**9, message(id=9, result=result)),
    ]
    (finding,) = judged([*records("= 2025-11-25"), *listing])
    assert (finding.rule, finding.severity) == ("tools/schema-too-costly", "info")


def test_a_session_after_so_many_that_some_were_dropped_misses_nothing(monkeypatch):
    monkeypatch.setattr(bounds, "RESTING", 1)
    monkeypatch.setattr(bounds, "SESSIONS", 1)
    http = Exchange()
    judge = Judge()
    lossy = []
    for number in range(3):
        http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id=f"s{number}")
    for record in http.records:
        list(judge.feed(record))
        lossy += [session.lossy for session in judged_sessions(judge)]
    assert lossy[4] is False
    assert lossy[-1] is True


def test_of_sessions_that_were_idle_for_long_only_what_late_frames_need_is_kept(monkeypatch):
    """A-02: 20 sessions list tools; only the last 3 keep their tools, and all sessions are still known."""
    monkeypatch.setattr(bounds, "SESSIONS", 3)
    judge, http = Judge(), Exchange()
    for number in range(20):
        http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id=f"s{number}")
        asked = http.ask(request(1, "tools/list"), mcp_session_id=f"s{number}")
        http.answer(asked, result(1, tools=[{"name": "t", "inputSchema": {"type": "object"}}]))
        http.wait((number + 2) * 2 * 10**9)  # so that no deferred check is pending
    for record in http.records:
        list(judge.feed(record))
    states = judged_sessions(judge)
    assert len(states) == 20
    assert sorted(bool(state.listing.tools) for state in states) == [False] * 17 + [True] * 3
    assert all(state.first_initialize and state.agreed for state in states)


def test_what_is_found_at_the_end_of_a_session_is_found_before_it_is_forgotten(monkeypatch):
    """W-02: each of 20 sessions has a refused call, and only 3 are remembered in full."""
    monkeypatch.setattr(bounds, "SESSIONS", 3)
    monkeypatch.setattr(bounds, "RESTING", 6)
    http = Exchange()
    for number in range(20):
        http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id=f"s{number}")
        asked = http.ask(request(1, "tools/call", name="a"), mcp_session_id=f"s{number}")
        http.answer(asked, status=504, kind=None)
        http.wait((number + 2) * 2 * 10**9)
    assert [it.rule for it in judged(http.records)].count("http/refused") == 20


def test_a_session_that_has_ended_is_the_first_to_be_forgotten(monkeypatch):
    """A-02: a request in the ended session is still reported as sent too late."""
    monkeypatch.setattr(bounds, "SESSIONS", 2)
    judge, http = Judge(), Exchange()
    found = []
    for name in ("one", "two", "three"):
        agreed = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        http.answer(http.ask(request(0, "initialize", **agreed)), result(0, **agreed), mcp_session_id=name)
        if name == "two":
            http.answer(http.ask(method="DELETE", mcp_session_id="two"), kind=None)
            http.ask(request(1, "tools/list"), mcp_session_id="one")
    http.wait(10 * 10**9)
    http.ask(request(1, "tools/list"), mcp_session_id="two", mcp_protocol_version="2025-06-18")
    for record in http.records:
        if record.t > 9 * 10**9 and not found:
            tables = [[session.name for session in table] for table in objects_in(judge, Recent)]
            assert tables == [["two", "one", "three"]] * 2
        found += [event.finding.rule for event in judge.feed(record) if isinstance(event, LocatedFinding)] + [""]
    assert "http/session-over" in found


# A rule that raises


@pytest.fixture
def broken(monkeypatch):
    """Replace the check of a rule by one that raises; several rules check the same `tools/list`."""

    def put(rule, check):
        monkeypatch.setitem(RULES, rule, replace(RULES[rule], check=check))
        monkeypatch.setattr("mcpspy.rules.judge.LISTS", {})

    return put


TWICE = """
    = 2025-06-18
    > 2 tools/list {"cursor":"x"}
    > 2 tools/list {"cursor":"x"}
"""


def reported(text):
    """Return the rules of the findings, and the reported bugs."""
    sentences = []
    events = judged_events(records(text), report=sentences.append)
    return [it.finding.rule for it in events if isinstance(it, LocatedFinding)], sentences


def at_once(message, session):
    raise RuntimeError("oh")


def after_a_finding(message, session):
    yield Fault("found before")
    raise RuntimeError("oh")


def afterwards(message, session):
    def question():
        yield from ()
        raise RuntimeError("oh")

    yield Later(question())


class Learning(StatefulCheck):
    learns_from: ClassVar = {Request: ()}

    def learn(self, message):
        raise RuntimeError("oh")

    def check(self, message):
        yield from ()


class Ending(StatefulCheck):
    def check(self, message):
        yield from ()

    def end(self, request):
        raise RuntimeError("oh")


class Beginning(StatefulCheck):
    def __init__(self, session):
        raise RuntimeError("oh")


@pytest.mark.parametrize("check", [at_once, after_a_finding, afterwards, Learning, Ending, Beginning])
def test_a_rule_that_raises_is_reported_once_and_others_go_on(check, broken):
    """A-12."""
    before, nothing = reported(TWICE)
    assert nothing == []
    broken("paging/unknown-cursor", check)
    found, sentences = reported(TWICE)
    (sentence,) = sentences
    assert sentence.startswith("a bug in the rule paging/unknown-cursor at #")
    assert "(RuntimeError: oh)" in sentence
    assert [rule for rule in found if not rule.startswith("paging/")] == [
        rule for rule in before if not rule.startswith("paging/")
    ]
    assert "pairing/id-in-flight" in found
    assert found.count("paging/unknown-cursor") == (2 if check is after_a_finding else 0)


def test_what_a_session_is_known_by_is_learned_although_a_rule_raises(broken):
    text = '= 2025-06-18\n> 2 tools/list\n< 2 = {"tools":[]}\n> 3 tools/call {"name":"x"}'
    broken("tools/duplicate-name", at_once)
    found, sentences = reported(text)
    assert "tools/unknown-tool" in found
    assert len(sentences) == 1


def test_a_bug_in_the_tests_for_plain_messages_shows_them_to_every_rule(monkeypatch):
    def fails(message, method, session):
        raise RecursionError("too deep")

    before, _ = reported(TWICE)
    monkeypatch.setattr("mcpspy.rules.judge.aspects", fails)
    found, sentences = reported(TWICE)
    assert found == before
    assert len(sentences) == 1
    assert "RecursionError" in sentences[0]


def test_a_bug_is_written_to_stderr(broken, capsys):
    broken("paging/unknown-cursor", at_once)
    judged(records(TWICE))
    assert capsys.readouterr().err.startswith("mcpspy: a bug in the rule paging/unknown-cursor at #")


def test_a_check_has_one_memory_for_each_session():
    """The cursors of one session are unknown in another."""
    http = Exchange()
    for number in range(2):
        http.answer(http.ask(request(0, "initialize")), result(0), mcp_session_id=f"s{number}")
    asked = http.ask(request(1, "tools/list"), mcp_session_id="s0")
    http.answer(asked, result(1, tools=[], nextCursor="a"))
    for number in range(2):
        http.ask(request(2, "tools/list", cursor="a"), mcp_session_id=f"s{number}")
    found = [finding for finding in judged(http.records) if finding.rule == "paging/unknown-cursor"]
    assert len(found) == 1


def test_what_clients_refuse_is_judged_only_where_clients_are_named():
    """P-01: a judge with clients does not affect a judge without clients, nor the reverse."""
    text = (
        '= 2025-11-25\n> 2 tools/list\n< 2 = {"tools":[{"name":"a.b","inputSchema":{"type":"object","properties":{}}}]}'
    )
    for clients, found in (([], []), (["openai-api"], ["compat/tool-name"]), ([], []), (["vscode"], [])):
        assert [finding.rule for finding in findings(text, clients)] == found


def test_only_checks_that_look_at_the_end_are_asked_about_requests_without_an_answer(monkeypatch):
    asked, end = [], Rule.end
    monkeypatch.setattr(Rule, "end", lambda rule, *about: asked.append(rule.id) or end(rule, *about))
    assert [it.rule for it in findings("= 2025-06-18\n> 2 ping")] == ["pairing/unanswered"]
    asked_at_end = ["http/empty-answer", "lifecycle/server-exit", "pairing/orphan-response", "pairing/unanswered"]
    assert sorted(asked) == [*asked_at_end, "progress/no-token"]
