"""The log entries of a capture: stderr, log messages, findings."""

from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.logs import LogEntry
from mcpspy.telemetry.span import ExchangeSpan
from tests.telemetry.folded import STDIO
from tests.transcript import records


def logs(text):
    """Return the log entries and the spans of a transcript."""
    folded = CapturedTelemetry(STDIO, lambda text: text.replace("hunter2", "…"), lambda _: {})
    found = [*folded.feed(records(text)), *folded.end()]
    return [it for it in found if isinstance(it, LogEntry)], [it for it in found if isinstance(it, ExchangeSpan)]


def test_a_line_of_stderr_is_logged_without_its_secrets():
    ((entry,), _) = logs("@1 ! login with hunter2")
    assert entry == LogEntry(1_000_000_000, "login with …", "mcpspy.stderr", attributes={"mcpspy.frame": 1})


def test_a_log_message_has_the_severity_of_its_level():
    text = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":"slow"}}'
    entry = next(it for it in logs(f"< {text}")[0] if it.event == "mcp.log")
    assert (entry.body, entry.severity, entry.level, entry.attributes["mcp.logger"]) == ("slow", 13, "warning", "db")


def test_a_log_message_of_any_shape_is_logged():
    for params in ('{"level":7,"data":{"a":[1,2]}}', "[]", "{}", '{"level":"loud","data":null}'):
        entry = next(
            it for it in logs(f'< {{"method":"notifications/message","params":{params}}}')[0] if it.event == "mcp.log"
        )
        assert (entry.severity, entry.level) == (0, None)


def test_a_finding_belongs_to_the_span_of_its_message():
    entries, spans = logs("= 2025-06-18\n@1 > 1 ping\n@2 < 1 = []")
    entry = next(it for it in entries if it.attributes["mcpspy.frame"] == 5)
    assert (entry.t, entry.event, entry.severity) == (2_000_000_000, "mcpspy.finding", 17)
    assert entry.attributes["mcpspy.blame"] == "server"
    assert entry.context == next(span.context for span in spans if span.name == "ping")


def test_a_finding_that_is_made_at_the_end_has_the_span_of_its_request():
    entries, (span,) = logs("@1 > 1 ping\n@30 ! nothing")
    entry = next(it for it in entries if it.attributes.get("mcpspy.rule") == "pairing/unanswered")
    assert (entry.t, entry.context) == (1_000_000_000, span.context)


def test_a_finding_quotes_content_only_where_that_was_asked_for():
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}
        > 3 tools/call {"name":"a","arguments":{"n":"c0ntent"}}
    """
    bodies = []
    for contents in (None, lambda _: {}):
        folded = CapturedTelemetry(STDIO, str, contents)
        entries = [*folded.feed(records(text)), *folded.end()]
        bodies.append([it.body for it in entries if getattr(it, "event", "") == "mcpspy.finding"])
    assert len(bodies[0]) == len(bodies[1])
    assert "c0ntent" not in str(bodies[0])
    assert "c0ntent" in str(bodies[1])


def test_a_log_message_that_is_an_object_is_json():
    text = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"a":[1,"é"]}}}'
    entry = next(it for it in logs(f"< {text}")[0] if it.event == "mcp.log")
    assert entry.body == '{"a": [1, "é"]}'


def test_a_text_has_a_limit():
    ((entry,), _) = logs("! " + "x" * 100_000)
    assert len(entry.body) == 8192
