"""A small MCP weather server on stdio: `python -m mcpspy.demo.server`.

The theory. It speaks revision 2025-11-25 and uses no outside data: the weather is invented and always the same.
`WeatherServer` takes a line and yields the lines to write, so it knows neither streams nor processes. It never blocks
for a response of the client: it stores the purpose of its own request until the response comes.

It has two deliberate faults, which are what people look for with `mcpspy`:

- `get_forecast` prints a debug line to stdout, where only messages are allowed (2025-11-25, basic/transports);
- wrong arguments are refused by a JSON-RPC error, from which a model learns nothing: since 2025-11-25 the response
  should be a result with `isError` (server/tools, "Error Handling").
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

REVISION = "2025-11-25"

_DAYS: dict[str, list[dict[str, Any]]] = {
    "Oslo": [
        {"day": "Monday", "high": 2, "low": -4, "sky": "snow"},
        {"day": "Tuesday", "high": 1, "low": -6, "sky": "clear"},
        {"day": "Wednesday", "high": 3, "low": -2, "sky": "cloudy"},
    ],
    "Bergen": [
        {"day": "Monday", "high": 8, "low": 5, "sky": "rain"},
        {"day": "Tuesday", "high": 7, "low": 5, "sky": "rain"},
        {"day": "Wednesday", "high": 9, "low": 6, "sky": "rain"},
    ],
    "Nairobi": [
        {"day": "Monday", "high": 26, "low": 14, "sky": "clear"},
        {"day": "Tuesday", "high": 25, "low": 14, "sky": "cloudy"},
        {"day": "Wednesday", "high": 24, "low": 15, "sky": "rain"},
    ],
}
_WIND = {"Oslo": (3, 6), "Bergen": (12, 21), "Nairobi": (4, 7)}  # metres per second: mean and gusts
_LOOKS = 4  # the number of measurements of `watch_wind`

_CITY = {"type": "string", "description": f"One of {', '.join(_DAYS)}"}
_TOOLS: dict[str, dict[str, Any]] = {
    "get_forecast": {
        "title": "Forecast",
        "description": "The weather of the next days.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": _CITY, "days": {"type": "integer", "minimum": 1, "maximum": 3}},
            "required": ["city"],
            "additionalProperties": False,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "day": {"type": "string"},
                            "high": {"type": "integer", "description": "Degrees Celsius"},
                            "low": {"type": "integer", "description": "Degrees Celsius"},
                            "sky": {"enum": ["clear", "cloudy", "rain", "snow"]},
                        },
                        "required": ["day", "high", "low", "sky"],
                    },
                },
            },
            "required": ["city", "days"],
        },
    },
    "watch_wind": {
        "title": "Wind watch",
        "description": "Watch the wind for some seconds and tell how it blows.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": _CITY, "seconds": {"type": "number", "minimum": 0, "maximum": 10}},
            "required": ["city", "seconds"],
            "additionalProperties": False,
        },
    },
    "what_to_wear": {
        "title": "What to wear",
        "description": "Ask the client's model what to wear in the weather of Monday.",
        "inputSchema": {
            "type": "object",
            "properties": {"city": _CITY},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float)}

_CITIES_URI = "weather://cities"
_LEVELS = "debug info notice warning error critical alert emergency".split()

_CONSTANT: dict[str, dict[str, Any]] = {
    "ping": {},
    "tools/list": {"tools": [{"name": name} | tool for name, tool in _TOOLS.items()]},
    "resources/list": {"resources": [{"uri": _CITIES_URI, "name": "cities", "mimeType": "text/plain"}]},
    "resources/templates/list": {"resourceTemplates": []},
    "prompts/list": {
        "prompts": [
            {
                "name": "packing_list",
                "description": "What to pack for a journey.",
                "arguments": [{"name": "city", "required": True}],
            }
        ]
    },
}
_INITIALIZED: dict[str, Any] = {
    "protocolVersion": REVISION,
    "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
    "serverInfo": {"name": "weather", "title": "Made-up weather", "version": "1.0.0"},
    "instructions": f"Weather that never changes, of {', '.join(_DAYS)}.",
}

_PARSE_ERROR, _INVALID_REQUEST, _METHOD_NOT_FOUND, _INVALID_PARAMS = -32700, -32600, -32601, -32602
_RESOURCE_NOT_FOUND = -32002  # server/resources, "Error Handling"


class Refused(Exception):
    """A request that is answered by a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class WeatherServer:
    """One session with one client. `sleep` takes seconds; `log` receives the lines for stderr."""

    def __init__(self, sleep: Callable[[float], None], log: Callable[[str], None]) -> None:
        self._sleep = sleep
        self._log = log
        self._level = "info"
        self._client_samples = False
        self._asked: dict[int, Any] = {}  # by the id of the server's request: the id of the call that caused it
        self._requests = 0

    def answer(self, line: bytes) -> Iterator[bytes]:
        """Yield the lines to write in response to one line, each as soon as it is due."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            yield _line({"error": {"code": _PARSE_ERROR, "message": "Parse error"}})
            return
        if isinstance(message, dict) and "id" in message and "method" not in message:
            yield from self._advised(message)
        elif isinstance(message, dict) and "id" in message:
            try:
                yield from self._request(message["id"], message["method"], message.get("params", {}))
            except Refused as refused:
                yield _line({"id": message["id"], "error": {"code": refused.code, "message": str(refused)}})
        elif not isinstance(message, dict) or "method" not in message:
            yield _line({"error": {"code": _INVALID_REQUEST, "message": "Neither a request nor a notification"}})

    def _request(self, number: Any, method: Any, params: Any) -> Iterator[bytes]:
        if not isinstance(method, str) or isinstance(number, bool) or not isinstance(number, str | int | float):
            raise Refused(_INVALID_REQUEST, "A request has a string as method, and a string or number as id")
        if not isinstance(params, dict):
            raise Refused(_INVALID_PARAMS, "The parameters must be an object")
        if method == "tools/call":
            yield from self._call(number, params)
        else:
            yield _line({"id": number, "result": self._result(method, params)})

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method in _CONSTANT:
            return _CONSTANT[method]
        if method == "initialize":
            capabilities = params.get("capabilities")
            self._client_samples = isinstance(capabilities, dict) and "sampling" in capabilities
            return _INITIALIZED
        if method == "logging/setLevel":
            if params.get("level") not in _LEVELS:
                raise Refused(_INVALID_PARAMS, f"The level must be one of {', '.join(_LEVELS)}")
            self._level = params["level"]
            return {}
        if method == "resources/read":
            if params.get("uri") != _CITIES_URI:
                raise Refused(_RESOURCE_NOT_FOUND, "Resource not found")
            return {"contents": [{"uri": _CITIES_URI, "mimeType": "text/plain", "text": "\n".join(_DAYS)}]}
        if method == "prompts/get":
            arguments = params.get("arguments")
            if params.get("name") != "packing_list" or not isinstance(arguments, dict) or "city" not in arguments:
                raise Refused(_INVALID_PARAMS, "There is the prompt packing_list, and it needs a city")
            text = f"What shall I pack for {arguments['city']}?"
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        raise Refused(_METHOD_NOT_FOUND, f"Method not found: {method}")

    def _call(self, number: Any, params: dict[str, Any]) -> Iterator[bytes]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or name not in _TOOLS:
            raise Refused(_INVALID_PARAMS, f"Unknown tool: {name}")
        fault = wrong(arguments, _TOOLS[name]["inputSchema"])
        if fault:
            raise Refused(_INVALID_PARAMS, f"Invalid arguments for {name}: {fault}")
        city = arguments["city"]
        if city not in _DAYS:
            self._log(f"no such city: {city}")
            yield _text(number, f"Unknown city: {city}. Known are {', '.join(_DAYS)}.", is_error=True)
        elif name == "get_forecast":
            yield f"Fetching forecast for {city}…".encode()  # the fault: a debug line among the messages
            forecast = {"city": city, "days": _DAYS[city][: arguments.get("days", 3)]}
            yield _text(number, json.dumps(forecast), structuredContent=forecast)
        elif name == "watch_wind":
            meta = params.get("_meta")
            token = meta.get("progressToken") if isinstance(meta, dict) else None
            yield from self._watch_wind(number, city, arguments["seconds"], token)
        else:
            yield from self._ask_what_to_wear(number, city)

    def _watch_wind(self, number: Any, city: str, seconds: float, token: Any) -> Iterator[bytes]:
        mean, gusts = _WIND[city]
        for look in range(1, _LOOKS + 1):
            self._sleep(seconds / _LOOKS)
            if token is not None:
                progress = {"progressToken": token, "progress": look, "total": _LOOKS, "message": f"look {look}"}
                yield _line({"method": "notifications/progress", "params": progress})
        if gusts > 20 and _LEVELS.index(self._level) <= _LEVELS.index("warning"):
            warning = {"level": "warning", "logger": "wind", "data": f"Gusts of {gusts} m/s in {city}"}
            yield _line({"method": "notifications/message", "params": warning})
        yield _text(number, f"{city}: {mean} m/s, in gusts {gusts} m/s.")

    def _ask_what_to_wear(self, number: Any, city: str) -> Iterator[bytes]:
        if not self._client_samples:
            yield _text(number, "This client has no model to ask: it did not declare sampling.", is_error=True)
            return
        day = _DAYS[city][0]
        question = f"What shall I wear in {city}? {day['sky']}, {day['low']} to {day['high']} degrees Celsius."
        messages = [{"role": "user", "content": {"type": "text", "text": question}}]
        self._requests += 1
        self._asked[self._requests] = number
        params = {"messages": messages, "maxTokens": 100}
        yield _line({"id": self._requests, "method": "sampling/createMessage", "params": params})

    def _advised(self, response: dict[str, Any]) -> Iterator[bytes]:
        """Finish the call that the client's response belongs to; ignore a response to no request."""
        asked = response["id"]
        if isinstance(asked, bool) or not isinstance(asked, int) or asked not in self._asked:
            return
        number = self._asked.pop(asked)
        try:
            yield _text(number, str(response["result"]["content"]["text"]))
        except (KeyError, TypeError):
            yield _text(number, "The client's model gave no advice.", is_error=True)


def wrong(arguments: Any, schema: dict[str, Any]) -> str | None:
    """Return what is wrong with the arguments of a call by the input schema, as far as these tools need it."""
    if not isinstance(arguments, dict):
        return "they must be an object"
    for name in schema["required"]:
        if name not in arguments:
            return f"{name} is missing"
    for name, value in arguments.items():
        if name not in schema["properties"]:
            return f"there is no {name}"
        wanted = schema["properties"][name]
        if isinstance(value, bool) or not isinstance(value, _TYPES[wanted["type"]]):
            return f"{name} must be of type {wanted['type']}, not {json.dumps(value)}"
        if "minimum" in wanted and not wanted["minimum"] <= value <= wanted["maximum"]:
            return f"{name} must be from {wanted['minimum']} to {wanted['maximum']}, not {json.dumps(value)}"
    return None


def _text(number: Any, text: str, *, is_error: bool = False, **more: Any) -> bytes:
    """Return the result of a tool."""
    result = {"content": [{"type": "text", "text": text}]} | more | ({"isError": True} if is_error else {})
    return _line({"id": number, "result": result})


def _line(message: dict[str, Any]) -> bytes:
    text = json.dumps({"jsonrpc": "2.0"} | message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def main() -> int:
    """Serve on stdin and stdout until the client closes one of them."""

    def log(text: str) -> None:
        print(f"weather: {text}", file=sys.stderr, flush=True)

    server = WeatherServer(time.sleep, log)
    log(f"ready, with {len(_DAYS)} cities")
    with open(1, "wb", buffering=0, closefd=False) as stdout:  # unbuffered: nothing remains if the peer exits
        try:
            for line in sys.stdin.buffer:
                stdout.writelines(answer + b"\n" for answer in server.answer(line))
        except BrokenPipeError:
            log("the client does not listen any more")
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
