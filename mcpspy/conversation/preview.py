"""Short forms: of a message the text that a row shows beside its method and name, of a value its text on one line.

A preview is for a person who scans many rows, so it contains the few words that distinguish this message from others of
its method. A result is recognised by its members and not by its method: the result of `tasks/result` looks like that of
`tools/call`, and the request of a response may be missing. Peers send anything: a value whose shape differs from the
specification is shown as JSON (R-14).

A row has room for a few words, and a value may have megabytes. So no more of a value is read than there is room for,
and nested values are followed only as far as a person would read. The result is raw text: the code that displays it
makes it `printable`.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from mcpspy.json_values import Number, member
from mcpspy.text import plural, size_text

LONGEST = 300
"""Maximum length of a preview, in characters."""
_DEEPEST = 6  # levels of a nested value that are shown
_BESIDE = 80  # characters of a string that is not the only member
_READ = 4096  # characters of a text that are searched for its first words
_DIGITS = 60
_NESTED = (dict, list)  # as a tuple: a union would be built again for each value
_LONG_NAME = 61  # characters of a name; at most 60 are shown
_NAME = re.compile(r"[\w.$/@-]{1,60}")
_MEMBER = re.compile(r'(?:^|(?<= ))([\w.$/@-]{1,60}=)("(?:[^"\\]|\\.)*"?)?')


def clipped(text: str, room: int = LONGEST) -> str:
    """Return at most `room` characters of a text; a shortened text ends in `…`."""
    return text if len(text) <= room else f"{text[: max(room - 1, 0)]}…"


def folded(text: str, room: int = LONGEST) -> str:
    """Return the first words of a text, on one line."""
    start = text[: 2 * room]
    if start.isascii() and start.isprintable() and "  " not in start and start.strip() == start:
        found = start  # true for most texts; the line below gives the same result more slowly
    else:
        found = " ".join(start.split())
    if len(text) > 2 * room and len(found) <= room:  # the part that was read was mostly white space
        found = " ".join(text[:_READ].split())
    return clipped(f"{found} …".lstrip() if len(text) > _READ and len(found) < room else found, room)


def words(value: Any, room: int = LONGEST) -> str:
    """Return a string as its words, an object as `name=value`, and anything else as JSON."""
    if isinstance(value, str) and not isinstance(value, Number):
        return folded(value, room)
    return members(value, room=room) if isinstance(value, dict) and value else brief_json(value, room)


def members(value: dict[Any, Any], *left_out: str, room: int = LONGEST) -> str:
    """Return the members of an object as `city="Oslo" days=3`, in their order, except those in `left_out`."""
    alone = len(value) <= 1 + (sum(name in value for name in left_out) if left_out else 0)
    most = room if alone else min(room, 2 * _BESIDE)
    of_text = most if alone or most < _BESIDE else _BESIDE
    found: list[str] = []
    used = 0
    for name, inner in value.items():
        if name in left_out:
            continue
        if used >= room:
            return clipped(" ".join([*found, "…"]), room)
        text = f"{_name(name[:_LONG_NAME])}={brief_json(inner, of_text if isinstance(inner, str) else most)}"
        found.append(text)
        used += len(text) + 1
    return clipped(" ".join(found), room)


def brief_json(value: Any, room: int = LONGEST) -> str:
    """Return a value as JSON without white space, shortened to `room`."""
    shown = _quoted(value, room) if type(value) is str else _json(value, room, 0)
    return shown if len(shown) <= room else clipped(shown, room)


def parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the pieces of a text with their kind: `name` of a member, `string` after such a name, or empty."""
    at = 0
    for found in _MEMBER.finditer(text):
        yield text[at : found.start()], ""
        yield found[1], "name"
        yield found[2] or "", "string"
        at = found.end()
    yield text[at:], ""


@lru_cache(maxsize=1000)
def _name(text: str) -> str:
    """Return the name of a member as it is shown; cached, because the same few names occur again and again."""
    return text if _NAME.fullmatch(text) else _quoted(text, _DIGITS)


def _json(value: Any, room: int, depth: int) -> str:
    """Return a value as JSON of little more than `room` characters, whatever its size."""
    if isinstance(value, str):
        return clipped(value, _DIGITS) if isinstance(value, Number) else _quoted(value, room)
    if type(value) is int:
        return str(value) if value.bit_length() <= 4 * _DIGITS else "a number of many digits"
    return _nested(value, room, depth) if isinstance(value, _NESTED) else json.dumps(value)


def _nested(value: dict[Any, Any] | list[Any], room: int, depth: int) -> str:
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    if not value:
        return opened + closed
    if depth == _DEEPEST or room <= 0:
        return f"{opened}…{closed}"
    found: list[str] = []
    left = room
    for inner in value:
        if left <= 0:
            found.append("…")
            break
        if isinstance(value, dict):
            name = _quoted(inner, left)
            found.append(f"{name}:{_json(value[inner], left - len(name), depth + 1)}")
        else:
            found.append(_json(inner, left, depth + 1))
        left -= len(found[-1]) + 1
    return opened + ",".join(found) + closed


def _quoted(text: str, room: int) -> str:
    return encode_basestring(text if len(text) <= room - 2 else clipped(text, max(room - 2, 1)))


INTRODUCE = ("initialize", "server/discover")
"""The requests by which the peers introduce themselves."""
_META = "io.modelcontextprotocol/"
_PEERS = (
    ("params", "clientInfo"),
    ("params", "_meta", f"{_META}clientInfo"),
    ("result", "serverInfo"),
    ("result", "_meta", f"{_META}serverInfo"),
)
_OUTER = 4  # nested content blocks
_NAMES = 40  # names shown of a list
_FIELDS = 4  # fields shown of a form
_LOOKED = 1000  # blocks that are searched for the first text
_BODY = re.compile(rb'"(?:params|result|error)"\s*:\s*')
_TEXT = re.compile(
    rb'\s*\{\s*"(?:content|contents|messages)"\s*:\s*\[\s*\{[^\[\]]{0,300}?"text"\s*:\s*'
    rb'"((?:[^"\\]|\\u[0-9a-fA-F]{4}|\\[^u]){0,2000})'
)
_INNER = re.compile(rb'\{\s*(?:"name"\s*:\s*"[^"\\]{0,200}"\s*,\s*)?"(?:arguments|structuredContent)"\s*:\s*')
_HEAD = 1 << 10  # bytes of a large frame before its params or result
_OF_A_CALL = frozenset(("name", "arguments", "inputResponses", "requestState", "task"))  # shown separately
_MOSTLY_OF_A_CALL = frozenset(("name", "arguments"))
_UNSEEN = ("_meta", "resultType")  # members that add nothing to the others


def preview(kind: str, method: str | None, value: Any) -> str:
    """Return the preview of a decoded message, not yet printable; for a response, `method` is that of its request."""
    look = _KINDS.get(kind)
    return clipped(look(method or "", value)) if look and isinstance(value, dict) else ""


def preview_of_large(raw: bytes) -> str:
    """Return the preview of an undecoded message: the first text in its first bytes, or the start of its JSON."""
    found = _BODY.search(raw, 0, _HEAD)
    start = found.end() if found else 0
    if text := _TEXT.match(raw, start):
        with suppress(ValueError):  # an escape that is not valid JSON
            return folded(json.loads(f'"{text[1].decode(errors="replace")}"', strict=False))
    if inner := _INNER.match(raw, start):  # the name is already shown in the row
        start = inner.end()
    return folded(raw[start : start + 2 * LONGEST].decode(errors="replace"))


def introduction(value: Any) -> str:
    """Return the name and version of the peer that a message introduces, or an empty string."""
    for path in _PEERS:
        if found := member(value, *path):
            parts = (member(found, "name"), member(found, "version"))
            return " ".join(words(part, 100) for part in parts if part is not None)
    return ""


def _request(method: str, value: dict[str, Any]) -> str:
    """Return the preview of a request or a notification."""
    params = value.get("params")
    look = _REQUESTS.get(method)
    if look and isinstance(params, dict):
        return look(params)
    if method in INTRODUCE:
        return _introduced(value, "protocolVersion")
    return _others(params, "uri") if method.startswith(_OF_RESOURCES) else _others(params)


def _others(params: Any, *shown: str) -> str:
    """Return params that have no meaning for their method, without those that are already shown."""
    if isinstance(params, dict):
        return members(params, "_meta", *shown)
    return "" if params is None else brief_json(params)


def _introduced(value: dict[str, Any], version: str) -> str:
    """Return who the peer is and which revisions it supports."""
    inner = value.get("params", value.get("result"))
    revisions = member(inner, version)
    spoken = ", ".join(words(it, 40) for it in (revisions[:_NAMES] if isinstance(revisions, list) else [revisions]))
    return ", ".join(filter(None, (introduction(value), spoken if revisions is not None else "")))


def _call(params: dict[str, Any]) -> str:
    """Return the arguments of a tool or prompt, and the other important members of the request."""
    arguments = params.get("arguments")
    shown = members(arguments) if isinstance(arguments, dict) else "" if arguments is None else brief_json(arguments)
    if params.keys() <= _MOSTLY_OF_A_CALL:
        return shown
    answers = params.get("inputResponses")
    given = f"(answers {_list(answers, _answer)})" if isinstance(answers, dict) else ""
    others = _others(params, *_OF_A_CALL) if not params.keys() <= _OF_A_CALL else ""
    return " ".join(filter(None, (shown, others, given, "(as a task)" if "task" in params else "")))


def _answer(answer: Any) -> str:
    return _result("", {"result": answer})


def _completion(params: dict[str, Any]) -> str:
    """Return the argument that is being typed: `style="fri"`."""
    argument, others = params.get("argument"), _others(params, "ref", "argument")
    if not isinstance(argument, dict) or not isinstance(argument.get("name"), str):
        return _others(params, "ref")
    typed = members({argument["name"]: argument.get("value")})
    return f"{typed} {others}".strip()


def _sampling(params: dict[str, Any]) -> str:
    """Return the first message and the number of others: `user: What is it? (+1 message)`."""
    return _messages(params.get("messages")) or _others(params)


def _elicitation(params: dict[str, Any]) -> str:
    """Return the question, with its URL if it is answered in a browser."""
    if "message" not in params:
        return _others(params)
    asked, url = words(params["message"]), params.get("url")
    schema = member(params, "requestedSchema", "properties")
    return " ".join(filter(None, (asked, words(url) if url is not None else "", _form(schema))))


def _form(schema: Any) -> str:
    """Return the first fields of a form: `(name, email, …)`."""
    if not isinstance(schema, dict) or not schema:
        return ""
    more = ", …" if len(schema) > _FIELDS else ""
    return f"({', '.join(words(name, 40) for name in list(schema)[:_FIELDS])}{more})"


def _log(params: dict[str, Any]) -> str:
    """Return `info [logger]: text` (server/utilities/logging)."""
    level, logger = params.get("level"), params.get("logger")
    parts = ("" if level is None else words(level, 20), "" if logger is None else f"[{words(logger, 60)}]")
    start = " ".join(filter(None, parts))
    told = words(params["data"]) if "data" in params else ""
    return f"{start}: {told}" if start else told


def _progress(params: dict[str, Any]) -> str:
    """Return `2/3 message` (basic/utilities/progress)."""
    done, total, message = (params.get(name) for name in ("progress", "total", "message"))
    if done is None:
        return ""
    found = _count(done) if total is None else f"{_count(done)}/{_count(total)}"
    return found if message is None else f"{found} {words(message)}"


def _count(value: Any) -> str:
    """Return 2.0 as 2, because Python peers count in floats."""
    return brief_json(int(value) if isinstance(value, float) and value.is_integer() else value, 40)


def _cancelled(params: dict[str, Any]) -> str:
    """Return `id 17 reason`, with the id of the request."""
    if "requestId" not in params:
        return _others(params)
    reason = params.get("reason")
    return f"id {brief_json(params['requestId'], 60)} {words(reason) if reason is not None else ''}".rstrip()


def _subscription(params: dict[str, Any]) -> str:
    chosen = params.get("notifications")
    return members(chosen) if isinstance(chosen, dict) else _others(params)


def _task(task: Any) -> str:
    """Return `task working: message (786512e2)`."""
    if not isinstance(task, dict):
        return brief_json(task)
    number, status, message = (task.get(name) for name in ("taskId", "status", "statusMessage"))
    found = "task" if status is None else f"task {words(status, 40)}"
    found += "" if message is None else f": {words(message, 160)}"
    return found if number is None else f"{found} ({words(number, 60)})"


def _level(params: dict[str, Any]) -> str:
    return words(params["level"], 20) if "level" in params else _others(params)


def _error(_: str, value: dict[str, Any]) -> str:
    """Return `-32602 Unknown tool: foo`, then the data."""
    error = value.get("error")
    if not isinstance(error, dict):
        return brief_json(error)
    code, message = error.get("code"), error.get("message")
    found = [brief_json(code, 40) if code is not None else "", words(message) if message is not None else ""]
    return " ".join(filter(None, (*found, words(error["data"]) if error.get("data") is not None else "")))


def _result(_: str, value: dict[str, Any]) -> str:
    """Return the preview of a result, from the first of its members that gives one."""
    result = value.get("result")
    if not isinstance(result, dict):
        return words(result)
    for name, look in _RESULTS.items():
        if name in result and (found := look(result)):
            return found
    return members(result, *_UNSEEN)


def _called(result: dict[str, Any]) -> str:
    """Return the first text of a result, or its structured content if the text only repeats that as JSON."""
    content, structured = result.get("content"), result.get("structuredContent")
    text = _blocks(content, "block")
    if isinstance(structured, dict) and structured and (not text or text.startswith(("{", "["))):
        return members(structured)
    return text


def _sampled(result: dict[str, Any]) -> str:
    """Return `model: text`."""
    return f"{words(result['model'], 60)}: {_blocks(result.get('content'), 'block')}"


def _elicited(result: dict[str, Any]) -> str:
    """Return `accept name="Ada"`."""
    content = result.get("content")
    return f"{words(result['action'], 40)} {words(content) if content is not None else ''}".rstrip()


def _asked(result: dict[str, Any]) -> str:
    """Return `asks elicitation/create: Your name?` (2026-07-28, a result that is `input_required`)."""
    wanted = result["inputRequests"]
    return f"asks {_list(wanted, _question)}" if isinstance(wanted, dict) and wanted else ""


def _question(request: Any) -> str:
    method, params = member(request, "method"), member(request, "params")
    look = _ASKED.get(method) if isinstance(method, str) else None
    told = look(params) if look and isinstance(params, dict) else _others(params)
    if not isinstance(method, str):
        return words(request)
    return f"{words(method, 60)}: {told}" if told else words(method, 60)


def _list(value: dict[str, Any], look: Callable[[Any], str]) -> str:
    """Return the first member of an object, and the number of others."""
    return _counted(look(next(iter(value.values()))) if value else "nothing", len(value), "more")


def _counted(first: str, number: int, noun: str) -> str:
    """Return the first entry and the number of others: `text (+2 blocks)`."""
    if number < 2:
        return first
    more = f" (+{number - 1:,} more)" if noun == "more" else f" (+{plural(number - 1, noun)})"
    return f"{clipped(first, LONGEST - len(more))}{more}".lstrip()  # the first entry may be an empty text


def _messages(found: Any) -> str:
    if not isinstance(found, list) or not found:
        return ""
    first = found[0]
    role, content = member(first, "role"), member(first, "content")
    told = words(first) if content is None else _blocks(content, "block")
    return _counted(f"{words(role, 20)}: {told}" if role is not None else told, len(found), "message")


def _blocks(found: Any, noun: str) -> str:
    """Return the first text among blocks, or else the first block, and the number of others."""
    if not isinstance(found, list):
        return "" if found is None else _block(found)
    if len(found) == 1:
        return _block(found[0])
    texts = (it for it in found[:_LOOKED] if isinstance(member(it, "text"), str) and member(it, "text"))
    return _counted(_block(next(texts, found[0])), len(found), noun) if found else ""


def _block(block: Any, depth: int = 0) -> str:
    """Return a text unchanged, a picture as `image/png 12.0 kB`, a link as its URI."""
    if not isinstance(block, dict) or depth == _OUTER:
        return words(block)
    if isinstance(block.get("text"), str):
        return folded(block["text"])
    kind, inner = block.get("type"), block.get("resource", block.get("content"))
    for data in (block.get("data"), block.get("blob")):
        if isinstance(data, str):  # in base64
            return f"{words(block.get('mimeType', kind or 'blob'), 60)} {size_text(len(data) * 3 // 4)}"
    if kind == "resource" and isinstance(inner, dict):
        return f"{words(inner.get('uri', ''))} {_block(inner, depth + 1)}"
    if kind == "tool_result" and isinstance(inner, list) and inner:
        return _block(inner[0], depth + 1)
    if kind == "tool_use" and isinstance(block.get("input"), dict):
        return f"{words(block.get('name', ''), 60)} {members(block['input'])}"
    return words(block["uri"]) if kind == "resource_link" and "uri" in block else members(block, "type", *_UNSEEN)


def _listed(name: str, noun: str, *keys: str) -> Callable[[dict[str, Any]], str]:
    """Return a function that returns `12 tools: search, fetch, …` for a list; a cursor means that more follow."""

    def look(result: dict[str, Any]) -> str:
        found = result[name]
        if not isinstance(found, list):
            return ""
        names, used = [], 0
        for it in found[:_NAMES]:
            known = next((member(it, key) for key in keys if member(it, key) is not None), it)
            names.append(words(known, 60))
            used += len(names[-1]) + 2
            if used > LONGEST:
                break
        more = "more follow" if result.get("nextCursor") is not None else ""
        told = f"{plural(len(found), noun)}" + (f" ({more})" if more else "")
        rest = ", …" if len(found) > len(names) else ""
        return f"{told}: {', '.join(names)}{rest}" if names else f"no {noun}s {more}".rstrip()

    return look


def _completed(result: dict[str, Any]) -> str:
    """Return `2 values of 10: formal, friendly`."""
    completion = result["completion"]
    values, total = member(completion, "values"), member(completion, "total")
    if not isinstance(values, list):
        return brief_json(completion)
    of = f" of {brief_json(total, 40)}" if isinstance(total, int) and total > len(values) else ""
    more = " (more follow)" if member(completion, "hasMore") is True else ""
    names = ", ".join(words(it, 60) for it in values[:_NAMES])
    return f"{plural(len(values), 'value')}{of}{more}: {names}" if values else f"no values{more}"


_OF_RESOURCES = ("resources/", "notifications/resources/")  # the URI is the name of the row
_KINDS: dict[str, Callable[[str, dict[str, Any]], str]] = {
    "request": _request,
    "notification": _request,
    "result": _result,
    "error": _error,
}
_REQUESTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "tools/call": _call,
    "prompts/get": _call,
    "completion/complete": _completion,
    "logging/setLevel": _level,
    "sampling/createMessage": _sampling,
    "elicitation/create": _elicitation,
    "subscriptions/listen": _subscription,
    "notifications/message": _log,
    "notifications/progress": _progress,
    "notifications/cancelled": _cancelled,
    "notifications/subscriptions/acknowledged": _subscription,
    "notifications/tasks/status": _task,
}
"""By method: the function that returns the preview of the params."""
_ASKED = {name: _REQUESTS[name] for name in ("sampling/createMessage", "elicitation/create")}
_RESULTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "serverInfo": lambda result: _introduced({"result": result}, "protocolVersion"),
    "protocolVersion": lambda result: _introduced({"result": result}, "protocolVersion"),
    "supportedVersions": lambda result: _introduced({"result": result}, "supportedVersions"),
    "inputRequests": _asked,
    "model": _sampled,
    "action": _elicited,
    "content": _called,
    "structuredContent": _called,
    "contents": lambda result: _blocks(result["contents"], "part"),
    "messages": lambda result: _messages(result["messages"]),
    "tools": _listed("tools", "tool", "name"),
    "prompts": _listed("prompts", "prompt", "name"),
    "resources": _listed("resources", "resource", "name", "uri"),
    "resourceTemplates": _listed("resourceTemplates", "template", "name", "uriTemplate"),
    "roots": _listed("roots", "root", "uri", "name"),
    "tasks": _listed("tasks", "task", "taskId"),
    "completion": _completed,
    "task": lambda result: _task(result["task"]),
    "taskId": _task,
}
"""By member of the result, in the order of the search: the function that returns the preview."""
