"""Records other than frames."""

import json
from dataclasses import fields, is_dataclass

from mcpspy.capture import records
from mcpspy.sharing.scrub import Scrub
from mcpspy.sharing.scrub.lines import FIELDS
from tests.each import each
from tests.sharing.scrub.captures import IN, capture, frame, header, opened, scrubbed, written

V = "redacted-value-1"


def record(path, fields, **options):
    """Return the scrubbed record after the header."""
    return json.loads(scrubbed(written(path, header(), fields), **options)[1])


def test_the_header_keeps_its_order_and_loses_what_is_personal(tmp_path):
    fields = header(
        argv=["npx", "--token", "abc123", "/home/bob/server"], cwd="/home/bob", url="https://x.example/?api_key=abc123",
        client=["agent", "--api-key", "abc123", "/home/bob/a"],
        env=["API_TOKEN", "HOME"], control=True, later={"password": "abc123", "n": 1.5},
    )  # fmt: skip
    new = json.loads(scrubbed(written(tmp_path / "a.jsonl", fields))[0])
    assert list(new) == [*(name for name in fields if name != "control"), "scrubbed"]
    assert new["argv"] == ["npx", "--token", V, "/home/user-1/server"]
    assert new["client"] == ["agent", "--api-key", V, "/home/user-1/a"]
    assert new["cwd"] == "/home/user-1"
    assert new["url"] == f"https://x.example/?api_key={V}"
    assert new["env"] == ["API_TOKEN", "HOME"]
    assert new["later"] == {"password": V, "n": 1.5}
    assert len(new["id"]) == 32 != fields["id"]


def test_a_token_is_replaced_also_where_no_relay_writes_one(tmp_path):
    token = "gh" + "p_" + "a1B2" * 9
    new = "redacted-github-token-1"
    head = {"method": "GET", "headers": [[token, "a"], ["a", token], [token, None]], "later": [token]}
    fields = record(tmp_path / "a.jsonl", opened(5, "client", token, "body", head=head, peer=token))
    assert (fields["role"], fields["peer"], fields["from"]) == (new, new, "client")
    assert fields["head"] == {"method": "GET", "headers": [[new, "a"], ["a", new], [new, None]], "later": [new]}
    path = {"kind": "later", "t": 1, "file": "/home/bob/x"}
    assert record(tmp_path / "b.jsonl", path) == {**path, "file": "/home/user-1/x"}


def test_a_token_in_the_name_of_an_unknown_member_is_replaced(tmp_path):
    """A-13: in the header, a record and a head, whatever its value is; also in what `--check` prints."""
    token = "gh" + "p_" + "a1B2" * 9
    new = "redacted-github-token-1"
    names = {f"x-{token}": "hello", f"extra {token}": 1, f"y {token}": {"a": token}, f"z {token}": deep()}
    head = {"method": "GET", "headers": [[f"X-{token}", "Bearer abc123"]], **names}
    path = written(tmp_path / "a.jsonl", header(**names), opened(5, "client", "request", "body", head=head, **names))
    old_header, record = map(json.loads, scrubbed(path))
    for found in (old_header, record, record["head"]):
        assert [name for name in found if "redacted" in name] == [name.replace(token, new) for name in names]
    assert not [place for place in Scrub(path).places() if token in place.where]


def deep():
    value = "a"
    for _ in range(300):
        value = [value]
    return value


def test_the_name_of_a_field_stays_also_if_it_is_a_known_secret(tmp_path):
    """A-13: without it, the record would not be one."""
    named = frame(IN, {"password": "forwarded", "secret": "scrubbed"})
    signal = {"kind": "signal", "t": 1, "signal": 15, "to": "process", "forwarded": True}
    new = [json.loads(line) for line in scrubbed(capture(tmp_path / "a.jsonl", signal, named))]
    assert new[0]["scrubbed"]
    assert new[4] == signal


def test_every_field_of_a_record_is_known():
    kinds = (it for it in vars(records).values() if is_dataclass(it) and it not in (records.Imported, records.Omitted))
    names = {field.name for kind in kinds for field in fields(kind)}
    assert names - {"n", "sender", "omitted"} <= FIELDS


def test_a_head_keeps_its_fields_and_their_order(tmp_path):
    head = {
        "method": "POST", "target": "/mcp?token=abc123", "version": "1.1",
        "headers": [["Host", "a"], ["X-Api-Key", "abc123"], ["Mcp-Session-Id", "s-1234"], ["a", "/home/bob"]],
    }  # fmt: skip
    sent = {"headers": [["X-Api-Key", "abc123"], ["gone", None]]}
    new = record(tmp_path / "a.jsonl", opened(5, "client", "request", "body", head=head, sent=sent, by="gate bob"))
    assert new["head"]["target"] == f"/mcp?token={V}"
    assert new["head"]["headers"] == [
        ["Host", "a"],
        ["X-Api-Key", V],
        ["Mcp-Session-Id", "session-1"],
        ["a", "/home/user-1"],
    ]
    assert new["sent"]["headers"] == [["X-Api-Key", V], ["gone", None]]


def test_what_a_gate_sent_is_scrubbed_as_the_frame_is(tmp_path):
    sent = [json.dumps({"password": "abc123"}), {"b64": "/3Rva2VuPWFiYzEyMw=="}, None]
    path = capture(tmp_path / "a.jsonl", *(frame(IN, "x", sent=one, by="gate a") for one in sent))
    new = [json.loads(line)["sent"] for line in scrubbed(path)[4:]]
    assert new[0] == json.dumps({"password": V})
    assert "b64" in new[1]
    assert new[1] != sent[1]
    assert new[2] is None


def test_names_of_gates_stay_those_of_frames(tmp_path):
    gates = {"kind": "gates", "t": 1, "gates": [{"name": "for bob", "when": {"name": "a"}}], "by": "file"}
    path = capture(tmp_path / "a.jsonl", gates, frame(IN, "x", by="gate for bob"), cwd="/home/bob")
    new = list(map(json.loads, scrubbed(path)))
    assert new[4]["gates"][0]["name"] == "for user-1"
    assert new[5]["by"] == "gate for user-1"


def test_words_of_the_format_stay_also_where_a_secret_is_one(tmp_path):
    path = capture(
        tmp_path / "a.jsonl", {"kind": "close", "t": 1, "ch": 1, "how": "shutdown"}, argv=["--token", "shutdown"]
    )
    assert json.loads(scrubbed(path)[4]) == {"kind": "close", "t": 1, "ch": 1, "how": "shutdown"}


def test_the_id_of_a_capture_is_not_shown_as_random(tmp_path):
    """A-13: an id that was derived, or is that of another capture, stays; a secret in its place does not."""
    own, other = "9f86d081884c7d659a2feaa0c55ad015", "60303ae22b998861bce3b28f33eec1be"
    for done in ({}, {"scrubbed": True}):
        path = capture(tmp_path / "a.jsonl", id=own, continues={"id": other, "n": 1}, **done)
        assert not Scrub(path).leftovers
        new = json.loads(scrubbed(path)[0])
        assert (new["id"] == own) is bool(done)
        assert list(new["continues"]) == ["id", "n"]
        assert new["continues"]["id"] != other
    named = frame(IN, {"password": own})
    assert own not in str(scrubbed(capture(tmp_path / "a.jsonl", named, id=own, scrubbed=True)))


@each("value", [1, 1.5, True, None])
def test_a_token_as_the_name_of_a_member_is_replaced_above_any_value(tmp_path, value):
    """A-13: in records and in the header."""
    token = "gh" + "p_" + "a1B2" * 9
    fields = {"kind": "later", "t": 1, token: value, "x": {token: value}}
    lines = scrubbed(written(tmp_path / "a.jsonl", header(**{token: value}), fields))
    assert token not in str(lines)
    assert json.loads(lines[1])["t"] == 1
