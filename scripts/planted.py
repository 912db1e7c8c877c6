"""Run a stdio server with a planted regression: `python scripts/planted.py KIND COMMAND…`.

It stands between a client and a real server, and changes what one kind of answer says (`KINDS`).
"""

import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

Message = dict
JSON = object


def _texts(message: Message) -> list[dict]:
    return [it for it in message["result"]["content"] if it.get("type") == "text"]


def _text(change: Callable[[str], str]) -> Callable[[Message], None]:
    def changed(message: Message) -> None:
        block = _texts(message)[0]
        block["text"] = change(block["text"])

    return changed


def _first_tool(change: Callable[[dict], object]) -> Callable[[Message], None]:
    return lambda message: change(message["result"]["tools"][0]) and None


def _objects(value: JSON) -> Iterator[dict]:
    if isinstance(value, dict):
        yield value
    for it in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _objects(it)


def _in_structure(change: Callable[[dict, str], object], kind: type) -> Callable[[Message], None]:
    """Change the first member of a kind in the structured content, or in a text that is JSON."""

    def changed(message: Message) -> None:
        result = message["result"]
        whole = result.get("structuredContent") or json.loads(_texts(message)[0]["text"])
        owner, key = next((it, key) for it in _objects(whole) for key in it if it[key] and type(it[key]) is kind)
        change(owner, key)
        if "structuredContent" not in result:
            _texts(message)[0]["text"] = json.dumps(whole)

    return changed


def _replaced(**members: JSON) -> Callable[[Message], None]:
    def changed(message: Message) -> None:
        message.pop("result")
        message |= members

    return changed


def _schema(tool: dict) -> dict:
    return tool["inputSchema"]


def _once(pattern: str, new: str | Callable[[re.Match], str]) -> Callable[[str], str]:
    return lambda text: re.sub(pattern, new, text, count=1)


CALL, LIST, HELLO = "tools/call", "tools/list", "initialize"
FAILED = {"content": [{"type": "text", "text": "failed"}], "isError": True}
KINDS: dict[str, tuple[str, Callable[[Message], object]]] = {
    "a letter changed": (CALL, _text(_once("[a-z](?=[^a-z]*$)", "_"))),
    "a number in a text changed": (CALL, _text(_once("[0-9]+", lambda it: str(int(it[0]) + 7)))),
    "no text": (CALL, _text(lambda _: "")),
    "the last line is lost": (CALL, _text(lambda text: text.rstrip().rpartition("\n")[0])),
    "words in place of a time": (CALL, _text(_once(r"[0-9]+:[0-9]+(:[0-9.]+)?", "no clock today"))),
    "words in place of a number": (CALL, _text(_once(r"[0-9]+(\.[0-9]+)?", "unknown"))),
    "a changed number": (CALL, _in_structure(lambda owner, key: owner.update({key: owner[key] + 1}), int)),
    "a number as a text": (CALL, _in_structure(lambda owner, key: owner.update({key: f"{owner[key]} "}), int)),
    "null in place of a text": (CALL, _in_structure(lambda owner, key: owner.update({key: None}), str)),
    "a lost item": (CALL, _in_structure(lambda owner, key: owner[key].pop(), list)),
    "a failed tool": (CALL, _replaced(result=FAILED)),
    "an error in place of a result": (CALL, _replaced(error={"code": -32603, "message": "Internal error"})),
    "an empty result": (CALL, _replaced(result={})),
    "one more block": (CALL, lambda it: it["result"]["content"].append({"type": "text", "text": "more"})),
    "no content": (CALL, lambda it: it["result"]["content"].clear()),
    "a lost tool": (LIST, lambda it: it["result"]["tools"].pop()),
    "a renamed tool": (LIST, _first_tool(lambda tool: tool.update(name=f"{tool['name']}2"))),
    "another description": (LIST, _first_tool(lambda tool: tool.update(description="Changed."))),
    "a lost parameter": (LIST, _first_tool(lambda tool: _schema(tool)["properties"].popitem())),
    "another required parameter": (LIST, _first_tool(lambda tool: _schema(tool).update(required=["new"]))),
    "a schema without a type": (LIST, _first_tool(lambda tool: _schema(tool).pop("type"))),
    "another server name": (HELLO, lambda it: it["result"]["serverInfo"].update(name="other")),
    "a lost capability": (HELLO, lambda it: it["result"]["capabilities"].pop("tools")),
}
"""The method whose answers are changed, and the change, by the name of the regression."""


def main(kind: str, *command: str) -> int:
    """Relay, and return the exit status of the server."""
    method, change = KINDS[kind]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    wanted: set[JSON] = set()
    threading.Thread(target=_forward, args=(server, method, wanted), daemon=True).start()
    for line in server.stdout:
        sys.stdout.buffer.write(_changed(line, wanted, change))
        sys.stdout.buffer.flush()
    return server.wait()


def _forward(server: subprocess.Popen, method: str, wanted: set[JSON]) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if message.get("method") == method:
            wanted.add(message["id"])
        server.stdin.write(line)
        server.stdin.flush()
    server.stdin.close()


def _changed(line: bytes, wanted: set[JSON], change: Callable[[Message], object]) -> bytes:
    try:
        message = json.loads(line)
        if message["id"] in wanted and "result" in message:
            change(message)
            return json.dumps(message).encode() + b"\n"
    except (ValueError, TypeError, KeyError, LookupError, StopIteration):
        pass  # this answer lacks what would be changed
    return line


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
