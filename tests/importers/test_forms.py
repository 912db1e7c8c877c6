import json
import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError, NotACapture
from mcpspy.importers.forms import FORMS, bring
from tests.each import each
from tests.importers.files import START, brought, dumps, entry, flow, har, imported
from tests.sharing.page.written import written
from tests.transcript import capture

LOG = b"server says hello\n2025-06-27T07:58:07.000Z [info] [weather] Initializing server...\nwarming up\n"
SNOOP = b'{"session_id":"s","server_label":"w","seq":1,"ts":"2026-03-17T10:00:00Z","direction":"stderr","text":"x"}\n'
HISTORY = [{"id": "a", "timestamp": START, "direction": "request", "message": {"jsonrpc": "2.0", "method": "x"}}]
NETWORK = [
    {
        "id": "a",
        "timestamp": START,
        "method": "POST",
        "url": "http://h/mcp",
        "requestHeaders": {"mcp-method": "x"},
        "category": "transport",
    }
]
FILES = {
    "a flow file of mitmproxy": dumps(flow()),
    "a HAR": har(entry()),
    "a history of the MCP Inspector": json.dumps(HISTORY, indent=2).encode(),
    "a network log of the MCP Inspector": json.dumps(NETWORK).encode(),
    "a log of Claude Desktop": LOG,
    "a log of VS Code": b"\xef\xbb\xbf2026-07-24 02:03:14.031 [info] Starting server weather\r\nat x\n",
    "a session log of mcpsnoop": SNOOP,
}


@pytest.mark.parametrize("form", FILES)
@pytest.mark.parametrize("name", ["file", "x.har", "x.mitm", "mcp.log", "x.jsonl"])
def test_the_form_is_told_from_the_content_and_not_from_the_name(tmp_path, form, name):
    account, [made] = brought(tmp_path, FILES[form], name)
    assert imported(made)["from"] == form
    assert account.read >= 1


@pytest.mark.parametrize("name", ["report.html", "x.jsonl"])
def test_a_shared_page_is_known_by_what_it_carries(tmp_path, name):
    path = capture(tmp_path / "a.jsonl", "= 2025-06-18")
    account, [made] = brought(tmp_path, written(path).encode(), name)
    assert made.header == Capture(path).header
    assert account.read == 1


@pytest.mark.parametrize("form", FILES)
def test_what_is_done_adds_up_to_the_file(tmp_path, form):
    """For a progress bar; bytes between the elements of an array are not counted."""
    path, done = tmp_path / "file", []
    path.write_bytes(FILES[form])
    bring(str(path), {"MCPSPY_CAPTURE_DIR": str(tmp_path)}, advance=done.append)
    assert len(FILES[form]) * 0.6 < sum(done) <= len(FILES[form])


def test_the_first_line_or_element_may_be_damaged(tmp_path):
    account, [made] = brought(tmp_path, b'{"session_id":\n' + SNOOP)
    assert (imported(made)["from"], account.lost) == ("a session log of mcpsnoop", 1)
    account, [made] = brought(tmp_path, json.dumps([{}, *HISTORY]).encode())
    assert (imported(made)["from"], account.lost) == ("a history of the MCP Inspector", 1)


def test_the_first_message_may_be_large(tmp_path):
    large = SNOOP.replace(b'"x"', b'"' + b"x" * 3_000_000 + b'"')
    _, [made] = brought(tmp_path, b"\xef\xbb\xbf" + large)
    assert imported(made)["from"] == "a session log of mcpsnoop"


def test_every_form_is_tried():
    assert {form.name for form in FORMS} == {*FILES, "a page of 'mcpspy share'"}


@each(
    "content",
    [
        b"",
        b"hello",
        b"\0" * 10_000,
        b"\x1f\x8b\x08\0\0",
        b"[]",
        b"[1,2]",
        b"[" * 100_000,
        b"{",
        b"{}\n{}\n",
        b'{"log":7}',
        b'[{"timestamp":1}]',
        b"5:hello,",
        b'{"a":' * 50_000,
        "{“".encode(),
    ],
)
def test_another_file_is_refused_with_the_forms_that_are_read(tmp_path, content):
    with pytest.raises(NotACapture) as caught:
        brought(tmp_path, content)
    assert all(form.name in str(caught.value) for form in FORMS)
    assert not (tmp_path / "captures").exists()


def test_a_capture_needs_no_import(tmp_path):
    path = capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}')
    with pytest.raises(CaptureError, match=r"a\.jsonl is a capture already"):
        bring(path, {})


def test_what_is_no_file_is_named(tmp_path):
    with pytest.raises(CaptureError, match=r"cannot read .*nothing: No such file"):
        bring(str(tmp_path / "nothing"), {})
    with pytest.raises(CaptureError, match="Is a directory"):
        bring(str(tmp_path), {})
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(CaptureError, match="is not a regular file"):
            bring(str(tmp_path / "pipe"), {})
