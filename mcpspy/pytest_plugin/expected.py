"""The expectations of a test for its recorded sessions; keys and sentences are those of a file of expectations."""

from collections.abc import Iterable
from typing import Any

from mcpspy.capture.reader import Capture
from mcpspy.contract.expectations import SESSION_KEYS, TOOL_KEYS, Expectations, expectations
from mcpspy.contract.watch import ExpectationWatch
from mcpspy.conversation.conversation import decided_events
from mcpspy.errors import UsageError
from mcpspy.gate_files.values import instead
from mcpspy.rules import Finding
from mcpspy.text import printable

_WHERE = "expect()"


def failures(expected: dict[str, Any], captures: Iterable[str]) -> list[str]:
    """Return the unmet expectations in some captures, each as a sentence with its frames.

    Raises UsageError or CaptureError.
    """
    held = _expectations(expected)
    found: list[str] = []
    servers = []
    for path in captures:
        capture = Capture(path)
        servers.append(capture.header.name)
        watch = ExpectationWatch(held.of_server(capture.header.name), capture.header)
        for event in decided_events(capture.records()):
            found += [_told(it.finding, path) for it in watch.add(event)]
        found += [_told(it.finding, path) for it in watch.end()]
    for it in held.every:
        if not any(it.concerns(name) for name in servers):
            raise UsageError(f"{_WHERE}: no session is of a server {it.server!r}; there are {', '.join(servers)}")
    return found


def _expectations(expected: dict[str, Any]) -> Expectations:
    """Return the expectations that the arguments of `expect` state."""
    given = dict(expected)
    if "tool" in given:
        return expectations({"tool": [{"name": given.pop("tool"), **given}]}, _WHERE)
    for key in given:
        if key in TOOL_KEYS and key not in ("server", *SESSION_KEYS):
            raise UsageError(f'{_WHERE}: {key} is about the calls of a tool; add tool="NAME"')
        if key not in (known := ("tool", "order", "server", *SESSION_KEYS)):
            raise UsageError(f"{_WHERE} has no argument {printable(key, 60)}; {instead(key, known)}")
    found = {key: given.pop(key) for key in ("order", "server") if key in given}
    held = expectations(found | ({"session": given} if given else {}), _WHERE)
    if not held.every:
        raise UsageError(f"{_WHERE} expects nothing; it takes tool, order, {', '.join(SESSION_KEYS)}")
    return held


def _told(finding: Finding, path: str) -> str:
    frames = [f"#{n}" for n in sorted({*finding.related, *([finding.frame] if finding.frame > 1 else [])})]
    where = f" ({', '.join(frames)} of {path})" if frames else f" ({path})"
    return printable(finding.message, 1000) + where
