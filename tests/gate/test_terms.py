"""The frames that match the terms of a gate."""

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.compiled import When, matches
from mcpspy.gate.gate import Facts, InFlight
from mcpspy.gate.messages import json_of, read

CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_docs"}}'
RESULT = b'{"jsonrpc":"2.0","id":3,"result":{"isError":true}}'
ERROR = b'{"jsonrpc":"2.0","id":3,"error":{"code":1}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'


def facts_of(frame, sender="client", table=None, framing="lines"):
    facts = Facts(sender, framing, None, table or InFlight())
    facts.begin(frame)
    return facts


def acts(when, frame, sender="client", table=None, framing="lines"):
    return When("gate g", when).fits(facts_of(frame, sender, table, framing))


@pytest.mark.parametrize(
    ("when", "chosen"),
    [
        ({}, "call note result error text"),
        ({"from": "client"}, "call note text"),
        ({"from": "server"}, "result error"),
        ({"kind": "request"}, "call"),
        ({"kind": "notification"}, "note"),
        ({"kind": "result"}, "result"),
        ({"kind": "error"}, "error"),
        ({"kind": "response"}, "result error"),
        ({"method": "tools/call"}, "call result error"),
        ({"method": "tools/*", "kind": "request"}, "call"),
        ({"method": "*"}, "call note result error"),
        ({"method": "Tools/call"}, ""),
        ({"method": "tools"}, ""),
        ({"name": "search*"}, "call result error"),
        ({"name": "search*", "kind": "error"}, "error"),
        ({"name": "search?docs", "from": "client"}, "call"),
        ({"name": "docs"}, ""),
        ({"id": ["number", "3"]}, "call result error"),
        ({"id": ["string", "3"]}, ""),
        ({"id": ["number", "3"], "kind": "result"}, "result"),
    ],
)
def test_a_gate_names_the_frames_for_which_all_terms_hold(when, chosen):
    table = InFlight()
    table.note(None, "client", read(CALL, "lines")[0])
    frames = {"call": CALL, "note": NOTE, "result": RESULT, "error": ERROR, "text": b"\xff no JSON"}
    senders = {"result": "server", "error": "server"}
    found = [it for it, frame in frames.items() if acts(when, frame, senders.get(it, "client"), table)]
    assert found == chosen.split()


def test_a_response_to_a_request_that_is_not_in_the_table_has_neither_method_nor_name():
    assert not acts({"method": "*"}, RESULT, "server")
    assert acts({"kind": "result"}, RESULT, "server")


@pytest.mark.parametrize(
    "frame",
    [
        CALL.replace(b"/", b"\\/"),
        CALL.replace(b"tools", b"\\u0074\\u006f\\u006f\\u006cs"),
        CALL.replace(b"search_docs", b"\\u0073earch_docs"),
        CALL.replace(b"search_docs", b"SEARCH_docs"),
        b"[" + NOTE + b"," + CALL + b"]",
    ],
)
def test_the_search_for_words_hides_no_frame_that_matches(frame):
    """Frames with escapes or in another case, and batches."""
    assert acts({"method": "tools/call", "name": "search*"}, frame)


def test_a_frame_without_the_words_is_not_decoded():
    facts = Facts("client", "lines", None, InFlight())
    facts.begin(NOTE)
    assert not When("gate g", {"method": "tools/call"}).fits(facts)
    assert not facts.decoded


@given(st.text("ab*?/", max_size=6), st.text("ab/", max_size=8))
def test_globs_are_those_of_fnmatch(glob, text):
    assert matches(glob, text) == bool(re.match(fnmatch.translate(glob), text))


def test_globs_ignore_case_without_capitals():
    assert matches("search*", "Search_Docs")
    assert not matches("Search*", "search_docs")


@pytest.mark.parametrize("id_", [["number", "7"], ["number", "1.0e5"], ["string", ""], ["null", "null"]])
def test_every_id_of_a_message_is_allowed(id_):
    frame = b'{"id":%s,"method":"a"}' % json_of(tuple(id_))
    assert acts({"id": id_}, frame)


@pytest.mark.parametrize(
    ("when", "chosen"),
    [
        ({"from": ["client", "server"]}, "call note result error text"),
        ({"kind": ["notification", "error"]}, "note error"),
        ({"method": ["ping", "tools/*"]}, "call result error"),
        ({"method": {"is": "tools/*"}}, ""),
        ({"method": {"is": "tools/call"}}, "call result error"),
        ({"method": ["notifications/*", {"is": "tools/call"}], "from": "client"}, "call note"),
        ({"id": ["glob", "*"]}, ""),
        ({"id": [["string", "3"], ["number", "3"]]}, "call result error"),
        ({"not": {"method": "tools/call"}}, "note text"),
        ({"not": {"from": "client"}}, "result error"),
        ({"any": [{"kind": "error"}, {"method": "notifications/progress"}]}, "note error"),
        ({"all": [{"kind": "request"}, {"name": "search*"}]}, "call"),
        ({"all": []}, "call note result error text"),
        ({"any": []}, ""),
        ({"any": [{"from": "server"}, {"not": {"kind": ["request", "notification"]}}]}, "result error text"),
        ({"text": "search"}, "call"),
        ({"text": "SEARCH"}, ""),
        ({"text": ["iserror", "progress"]}, "note result"),
        ({"text": "isError"}, "result"),
        ({"text": "json"}, "call note result error text"),
        ({"size": [0, 20]}, "text"),
        ({"size": [[len(CALL), len(CALL)], [0, 5]]}, "call"),
        ({"size": [len(CALL), None]}, "call"),
        ({"method": "tools/call", "text": "docs"}, "call"),
    ],
    ids=str,
)
def test_terms_take_lists_and_are_joined(when, chosen):
    test_a_gate_names_the_frames_for_which_all_terms_hold(when, chosen)


def test_ids_that_are_strings_take_globs():
    assert acts({"id": ["glob", "abc*"]}, b'{"id":"abcd","method":"a"}')
    assert not acts({"id": ["glob", "abc*"]}, b'{"id":"ABCD","method":"a"}'.replace(b"ABCD", b"xabc"))


@pytest.mark.parametrize(
    ("text", "frame", "framing"),
    [
        ("café", '{"a":"CAFÉ"}'.encode(), "lines"),
        ("café", b'{"a":"caf\\u00e9"}', "lines"),
        ('"city":"Bergen"', b'{"a":"{\\"city\\":\\"Bergen\\"}"}', "lines"),
        ("a/b", b'{"a\\/b":1}', "lines"),
        ("bergen", b'event: message\ndata: {"a":"B\\u0065rgen"}\n', "sse"),
    ],
)
def test_a_text_is_found_as_it_came_and_with_its_escapes_undone(text, frame, framing):
    assert acts({"text": text}, frame, framing=framing)
    assert not acts({"text": text + "x"}, frame, framing=framing)


def test_a_text_in_what_is_no_json_is_looked_for_as_it_came():
    assert acts({"text": "oops"}, b"\\oops{")
    assert not acts({"text": "ooops"}, b"\\oops{")


def test_the_words_that_its_request_must_have_do_not_depend_on_who_answers_and_how():
    when = When("gate g", {"from": "server", "kind": "result", "method": "tools/call"})
    assert when.follows
    assert when.wants(facts_of(CALL))
    assert not when.wants(facts_of(NOTE))
    assert not When("gate g", {"kind": "request", "method": "tools/call"}).follows
    assert not When("gate g", {"from": "client"}).follows


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ({"header": "x"}, "unknown key when.header"),
        ({"any": [{}, {"kind": "reqest"}]}, 'when.any.1.kind is "reqest"'),
        ({"not": {"not": {"size": 5}}}, "when.not.not.size is 5"),
        ({"not": []}, "when.not is []; it must be an object"),
        ({"all": {}}, "when.all is {}; it must be a list of objects"),
        ({"size": [-1, 5]}, "two numbers of bytes"),
        ({"text": ""}, "a text that is not empty"),
        ({"method": {"is": ""}}, "an object with `is`"),
        ({"method": {"glob": "a"}}, "an object with `is`"),
        ({"from": []}, "client or server"),
    ],
    ids=str,
)
def test_a_term_without_meaning_is_named(when, fault):
    with pytest.raises(ValueError, match=re.escape(fault)):
        When("gate g", when)


WHENS = st.recursive(
    st.fixed_dictionaries(
        {},
        optional={
            "from": st.sampled_from(["client", "server"]),
            "kind": st.sampled_from(["request", "notification", "result", "error", "response"]),
            "method": st.sampled_from(["tools/call", "tools/*", "*", {"is": "tools/call"}, "nothing"]),
            "text": st.sampled_from(["search", "isError", "\\u"]),
            "size": st.sampled_from([[0, 60], [61, None]]),
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {}, optional={"all": st.lists(inner, max_size=2), "any": st.lists(inner, max_size=2), "not": inner}
    ),
    max_leaves=6,
)


@given(WHENS, st.sampled_from([CALL, RESULT, ERROR, NOTE, b"\xff no JSON", b""]), st.sampled_from(["client", "server"]))
def test_a_frame_that_the_search_for_words_leaves_out_would_not_have_matched(when, frame, sender):
    """Frames with escapes are not searched for words, and the result must be the same without that search."""
    table = InFlight()
    table.note(None, "client", read(CALL, "lines")[0])
    table.note(None, "server", read(CALL, "lines")[0])
    searched, unsearched = facts_of(frame, sender, table), facts_of(frame, sender, table)
    unsearched.escaped = True
    assert When("gate g", when).fits(searched) == When("gate g", when).fits(unsearched)
