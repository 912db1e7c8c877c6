"""Private keys in several lines of one text; those in several frames: `test_frames.py`."""

import json

import pytest

from tests.sharing.scrub.captures import OUT, capture, frame, frames, result

_KEY = ["MIIEowIBAAKCAQEAx1", "q83vEjRWeJCrze8SNFZ4kKvN", "Zk39dw=="]


@pytest.mark.parametrize(("before", "after"), [("[srv] ", ""), ("'", "',"), ("\x1b[32m", "\x1b[0m"), ("(1) | ", "")])
def test_a_private_key_with_something_around_its_lines_in_a_text_is_taken_out(tmp_path, before, after):
    """A-17: up to its last line."""
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *_KEY, "-----END RSA PRIVATE KEY-----"]
    text = "\n".join(["the key (1)", *(f"{before}{line}{after}" for line in lines), "international/conversation"])
    (raw,) = frames(capture(tmp_path / "a.jsonl", frame(OUT, result(text))))
    new = json.loads(raw)["result"]["content"][0]["text"]
    assert not [part for part in _KEY if part in new]
    assert new.startswith("the key (1)\n")
    assert new.endswith("\ninternational/conversation")
