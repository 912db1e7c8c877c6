"""No name of a member protects a secret (A-13): any name that the code knows, any kind of token, in all places.

Each secret is used once, so that none is found only because it is known from another place. A run tries a sample; a
nightly run tries each name with each kind.
"""

import json
import re
import string
from random import Random
from urllib.parse import quote

import pytest

from mcpspy.agent.answers import Scrubber
from mcpspy.contract.clean import canonical, clean
from mcpspy.secrets.body import redacted_content
from mcpspy.secrets.redactor import Withheld
from mcpspy.sharing.page.writer import scrubbed as shared
from mcpspy.sharing.scrub import Scrub
from mcpspy.sharing.scrub.values import members
from mcpspy.timeline import Row
from tests import NIGHTLY
from tests.each import each
from tests.sharing.scrub.captures import ERR, IN, OUT, STDIO, call, frame, header, opened, result, written
from tests.sharing.scrub.made_up import rows, secret

CODE = frozenset(
    "inputSchema outputSchema requestedSchema input_schema output_schema schema $defs default const examples enum"
    " type description title format in scheme $ref name key keyname parameterkey variable value keys tokens signature"
    " token auth pass pat kind from role framing how transport started tool id peer to op action status mode"
    " resultType level required $schema pattern requestId protocolVersion".split()
)
"""Names that a scrub treats in a special way, or did in an earlier version."""
NAMES = sorted(members() | CODE | {"password", "x", "name", "progressToken", "Mcp-Name", "data"})
SOME = 30
"""Names in a sample, different ones in each place."""
RESERVED = {"kind", "ch", "t", "from", "role", "framing", "how", "head", "sent", "answers", "by", "jsonrpc"}
"""Members of records that must have values of the format."""


def percent(text, sign="%"):
    return "".join(one if one.isalnum() else f"{sign}{ord(one):02X}" for one in text)


def schema(name, value):
    inner = {"type": "string", "default": value, "const": value, "enum": [value], "examples": [value], name: value}
    return {"type": "object", "properties": {name: inner, value: {}}, "required": [value], name: value}


def listing(kind, name, value, text):
    entry = {"name": value, "title": text, "description": text, "_meta": {name: value}, name: value}
    if kind == "tools":
        entry["inputSchema"] = schema(name, value)
    return {"jsonrpc": "2.0", "id": 1, "result": {kind: [entry]}}


MESSAGES = {
    "value": lambda name, value: call({name: value}),
    "part": lambda name, value: call({name: f"use {value} now"}),
    "nested": lambda name, value: call({name: {name: [value, {name: value}]}}),
    "key": lambda name, value: call({name: {value: {f"a {value}": 1}}}),
    "envelope": lambda name, value: {"jsonrpc": "2.0", "id": value, "method": value, name: value},
    "params": lambda name, value: {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "x",
        "params": {name: value, "_meta": {name: value}},
    },
    "JSON in strings": lambda name, value: call({name: json.dumps({name: json.dumps([{name: value}, value])})}),
    "JSON in a text": lambda name, value: result(f"it is {json.dumps({name: value})}, I think"),
    "tools": lambda name, value: listing("tools", name, value, value),
    "prompts": lambda name, value: listing("prompts", name, value, f"see {value}"),
    "required": lambda name, value: call({"schema": {name: {"required": [value]}}}),
}
ESCAPED = {
    "after %2F": lambda value: f"https://a.example/b%2F{value}",
    "after %3d": lambda value: f"next=%3d{value}",
    "after %253D": lambda value: f"x%253D{value}%2526y",
    "inside": lambda value: f"https://a.example/?b={percent(value)}",
    "inside, twice": lambda value: f"https://a.example/?b={percent(value, '%25')}",
    "HTML": lambda value: f"a&#x2f;{value}&#47;b",
    "JSON": lambda value: f"\\u0025{value} \\u003d{value}",
}
MESSAGES |= {f"escape {how}": lambda name, value, how=how: call({name: ESCAPED[how](value)}) for how in ESCAPED}
RECORDS = {
    "event": lambda name, value: frame(5, f"event: {value}\ndata: {json.dumps(call({name: value}))}\n"),
    "stderr": lambda name, value: frame(ERR, f"[{name}] {name}: {value}"),
    "stderr, escaped": lambda name, value: frame(ERR, f"{name}=https://a.example/%2F{value}"),
    "head": lambda name, value: opened(
        9, "client", "request", "body", head={"target": f"/a?{name}={value}", "headers": [[name, value], [value, name]]}
    ),
    "target, escaped": lambda name, value: opened(9, "client", "request", "body", head={"target": f"/a%2F{value}"}),
    "record": lambda name, value: {
        "kind": "later", "t": 1, "x": {name: value}, **({} if name in RESERVED else {name: value}),
    },
    "name of a member": lambda name, value: {
        "kind": "later", "t": 1, value: name, f"{name} {value}": 1, f"x-{value}": {name: [value]},
    },
    "name of a member of a head": lambda name, value: opened(
        9, "client", "request", "body", head={"method": "GET", value: name, f"{name}-{value}": [1]}
    ),
    "sent": lambda name, value: frame(IN, {"a": 1}, sent=json.dumps(call({name: value})), by="gate x"),
}  # fmt: skip


def planted(seed):
    """Yield each name with a new token: its kind, the token, and the part that must not be visible."""
    random = Random(seed)  # noqa: S311 (made up)
    kinds = [row for row in rows() if "PEM" not in row[0]]
    for name in NAMES if NIGHTLY else random.sample(NAMES, SOME):
        for row in kinds if NIGHTLY else random.sample(kinds, 1):
            yield (name, *secret(row, random))


def capture(path, *records, **fields):
    channels = [opened(ch, *channel) for ch, channel in enumerate(STDIO, 1)]
    return written(path, header(**fields), *channels, opened(5, "server", "response", "sse"), *records)


def left(secrets, lines):
    whole = b"".join(lines).decode(errors="replace")
    return [it for it in secrets if it[-1] in whole]


@pytest.mark.parametrize("place", [*MESSAGES, *RECORDS])
def test_no_name_keeps_a_token_in_a_scrubbed_or_shared_capture(tmp_path, place):
    """A-13, A-16."""
    secrets = list(planted(place))
    if place in MESSAGES:
        records = [frame(OUT, MESSAGES[place](name, token)) for name, _, token, _ in secrets]
    else:
        records = [RECORDS[place](name, token) for name, _, token, _ in secrets]
    path = capture(tmp_path / "a.jsonl", *records)
    scrub = Scrub(path)
    assert left(secrets, scrub.lines()) == []
    assert left(secrets, [json.dumps(shared(path, scrub, None).about).encode()]) == []


def test_no_token_stays_in_the_name_of_a_member_of_the_header(tmp_path):
    """A-13."""
    secrets = list(planted("header"))
    path = capture(tmp_path / "a.jsonl", **{f"{name} {token}": "a" for name, _, token, _ in secrets})
    assert left(secrets, Scrub(path).lines()) == []


def known_secrets(seed):
    """Yield each name with two secrets that have no form: one that is found as a word, one only as a whole string."""
    random = Random(seed)  # noqa: S311 (made up)
    for name in NAMES if NIGHTLY else random.sample(NAMES, SOME):
        for size in (10, 6):
            yield name, "".join(random.choices(string.ascii_lowercase, k=size))


@each("place", [place for place in MESSAGES if not place.startswith("escape")])
def test_no_name_keeps_a_value_that_is_known_from_elsewhere(tmp_path, place):
    """A-13: it stands below the name of a password in another frame."""
    secrets = [
        (name, value) for name, value in known_secrets(place) if place not in ("part", "prompts") or len(value) > 8
    ]
    records = [frame(OUT, MESSAGES[place](name, value)) for name, value in secrets]
    named = [frame(IN, call({"password": value})) for _, value in secrets]
    if place == "key":
        secrets = [it for it in secrets if len(it[1]) > 8]  # a short one is only found as a whole
    if place == "JSON in a text":
        secrets = [it for it in secrets if len(it[1]) > 8]
    lines = list(Scrub(capture(tmp_path / "a.jsonl", *records, *named)).lines())
    assert left(secrets, lines) == []


def test_no_name_keeps_a_known_value_in_a_head_a_command_line_or_stderr(tmp_path):
    """A-13."""
    secrets = list(known_secrets("heads"))
    heads = {"target": "/", "headers": [[name, value] for name, value in secrets]}
    records = [frame(ERR, value) for _, value in secrets]
    records += [frame(IN, call({"password": value})) for _, value in secrets]
    path = capture(
        tmp_path / "a.jsonl", opened(9, "client", "request", "body", head=heads), *records,
        argv=["server", *(value for _, value in secrets)],
    )  # fmt: skip
    assert left(secrets, Scrub(path).lines()) == []


def test_no_name_keeps_a_token_in_a_command_line(tmp_path):
    """A-13, A-16, V-04: as it is recorded, and scrubbed."""
    secrets = list(planted("argv"))
    words = [f"--{name}={ESCAPED['after %2F'](token)}" for name, _, token, _ in secrets]
    words += [ESCAPED["inside"](token) for _, _, token, _ in secrets]
    assert left(secrets, [" ".join(Withheld().argv(words)).encode()]) == []
    assert left(secrets, Scrub(capture(tmp_path / "a.jsonl", argv=words)).lines()) == []


def agent_answer(scrubber, message):
    raw = json.dumps(message).encode()
    return json.dumps(scrubber.row(Row(5, 0, "request", "client", raw=raw, size=len(raw), value=message)).value)


@each("place", MESSAGES)
def test_no_name_keeps_a_token_in_an_answer_to_an_agent(place):
    """A-13, A-16."""
    secrets = list(planted(f"mcp {place}"))
    answers = [agent_answer(Scrubber(), MESSAGES[place](name, token)).encode() for name, _, token, _ in secrets]
    assert left(secrets, answers) == []


@each("place", ["value", "envelope", "params", "JSON in strings", "tools", "required"])
def test_no_name_keeps_a_value_of_the_same_frame_in_an_answer_to_an_agent(place):
    """A-13: also if the name of the password comes after it."""
    secrets = list(known_secrets(f"mcp {place}"))
    answers = [
        agent_answer(Scrubber(), MESSAGES[place](name, value) | {"later": {"password": value}}).encode()
        for name, value in secrets
    ]
    assert left(secrets, answers) == []


@each("place", MESSAGES)
def test_no_name_keeps_a_token_in_a_lock_or_in_telemetry(place):
    """A-13, A-16."""
    secrets = list(planted(f"lock {place}"))
    found = [MESSAGES[place](name, token) for name, _, token, _ in secrets]
    assert left(secrets, [canonical(clean(it)) for it in found]) == []
    assert left(secrets, [redacted_content(json.dumps(it), Withheld().mark).encode() for it in found]) == []


def test_the_places_are_tried_with_the_token_itself():
    """A place that left the token out would prove nothing."""
    for row in rows():
        kind, token, part = secret(row, Random(1))  # noqa: S311 (made up)
        made = [json.dumps(place("name", token)) for place in (*MESSAGES.values(), *RECORDS.values())]
        assert all(part in text or part in quote(text) for text in made), kind
        assert re.search("[A-Za-z0-9]{8}", part)
