"""OTLP in JSON, read by the official protocol buffers."""

import base64
import json
import os

import pytest
from google.protobuf.json_format import ParseDict, ParseError
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

from tests.exporters.consumers import exported, golden
from tests.telemetry.collector import attributes
from tests.telemetry.folded import spans_of
from tests.transcript import capture


def parsed(text):
    """Return the spans of a file; OTLP in JSON writes ids in hexadecimal, where protocol buffers expect base64."""
    found = []
    for line in text.splitlines():
        data = ParseDict(json.loads(line, object_hook=binary), TracesData())
        found += [(it.resource, span) for it in data.resource_spans for scope in it.scope_spans for span in scope.spans]
    return found


def binary(fields):
    ids = {name: fields[name] for name in ("traceId", "spanId", "parentSpanId") if name in fields}
    return fields | {name: base64.b64encode(bytes.fromhex(value)).decode() for name, value in ids.items()}


@pytest.mark.parametrize("path", golden(), ids=os.path.basename)
def test_the_spans_of_every_golden_capture_are_those_that_are_sent(path):
    wanted = {span.context.span: span for span in spans_of(path)}
    found = {span.span_id: span for _, span in parsed(exported("otlp", path))}
    assert found.keys() == wanted.keys()
    for key, span in wanted.items():
        there = found[key]
        assert (there.name, there.kind, attributes(there.attributes)) == (span.name, 3, span.attributes)
        assert there.parent_span_id == (span.parent.span if span.parent else b"")
        assert there.end_time_unix_nano - there.start_time_unix_nano == span.end - span.start
        assert (there.status.code == there.status.STATUS_CODE_ERROR) == (span.error is not None)
        assert len(there.events) == len(span.events)


def test_a_broken_file_is_refused():
    with pytest.raises(ParseError):
        parsed(b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"kind":"none"}]}]}]}')


def test_a_filter_chooses_exchanges_and_several_captures_are_one_file(tmp_path):
    text = (
        '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}\n> {"id":2,"method":"tools/list"}\n< {"id":2,"result":{}}'
    )
    paths = [capture(tmp_path / f"{name}.jsonl", text) for name in "ab"]
    chosen = parsed(exported("otlp", *paths, wants=lambda row: row.method == "ping"))
    assert [span.name for _, span in chosen] == ["ping", "ping"]
    assert len({attributes(resource.attributes)["service.instance.id"] for resource, _ in chosen}) == 2


def test_whatever_a_peer_sends_can_be_read(tmp_path):
    """Lone surrogates, and numbers with more than 64 bits."""
    text = """
        > {"id":1,"method":"tools/call","params":{"name":"a\\ud800","_meta":{"progressToken":1}}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":1%s}}
        < {"method":"notifications/progress","params":{"progressToken":1,"progress":2,"message":"\\udfff"}}
        < {"id":1,"error":{"code":123456789012345678901234567890,"message":"\\ud800"}}
    """ % ("0" * 400)  # fmt: skip
    ((_, span),) = parsed(exported("otlp", capture(tmp_path / "a.jsonl", text)))
    assert span.name.startswith("tools/call a")
    assert span.status.code == span.status.STATUS_CODE_ERROR
