"""The tools of a server: the size of their definitions in tokens, how often they were called, and with what outcome."""

from mcpspy.agent.answers import LARGEST, Answer, address, cursor_at, facts, milliseconds, place_of, progress, size_of
from mcpspy.agent.captures import AgentCaptures
from mcpspy.browse.timeline import OpenCapture
from mcpspy.cost import tokens
from mcpspy.overview import ToolUse


def tool_usage(captures: AgentCaptures, *, session: str = "", cursor: str = "") -> Answer:
    """Return the cost and the outcomes of each tool, the most expensive first."""
    entry = captures.find(session)
    capture, name = captures.open(entry), captures.name(entry)
    announced = capture.announced
    tools = sorted(announced.tools.values(), key=lambda it: (-it.context, -it.calls, it.name))
    listed = [it for it in tools if announced.is_current(it)]
    key = ("tool_usage", name)
    first = place_of(cursor, key)
    answer = facts(session=name, server=captures.server(entry)) | progress(capture)
    answer["totals"] = {
        "tools": len(listed),
        "definition_tokens": tokens(sum(it.context for it in listed)),
        "calls": sum(it.calls for it in tools),
        "errors": sum(it.errors for it in tools),
        "never_called": sum(not it.calls for it in listed),
    }
    told: list[Answer] = []
    room = LARGEST - size_of(answer) - 100
    for tool in tools[first:]:
        fields = _tool(captures, capture, name, tool)
        room -= size_of(fields) + 1
        if room < 0 and told:
            break
        told.append(fields)
    answer["tools"] = told
    if first + len(told) < len(tools):
        answer["next"] = cursor_at(key, first + len(told))
    return answer


def _tool(captures: AgentCaptures, capture: OpenCapture, name: str, tool: ToolUse) -> Answer:
    times = [milliseconds(it) for it in tool.latencies.quantiles(0.5, 0.95, 1)]
    return facts(
        name=captures.scrubber.text(tool.name, 120),
        listed=None if capture.announced.is_current(tool) else False,
        definition_tokens=tokens(tool.context) if tool.context else None,
        calls=tool.calls,
        errors=tool.errors or None,
        findings=tool.found or None,
        ms=dict(zip(("p50", "p95", "max"), times, strict=False)),
        definition=address(name, tool.listed) if tool.listed else None,
        first_call=address(name, tool.called) if tool.called else None,
    )
