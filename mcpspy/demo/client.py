"""A scripted MCP client of the weather server: `python -m mcpspy.demo.client [--pace SECONDS] [options of wrap]`.

The theory. It starts the server under `mcpspy wrap` like any client, with pipes on stdin and stdout. It sends one
request after the other, and answers the server's requests meanwhile. It skips invalid lines; a real client may not be
so tolerant. In all cases the server has exited before the client exits.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from typing import IO, Any

from mcpspy.demo.server import REVISION

_ADVICE = "A warm coat, boots and a hat."
_MESSAGE = {"role": "assistant", "content": {"type": "text", "text": _ADVICE}, "model": "scripted"}


class WeatherClient:
    """The client's end of a session: writes to `stdin`, reads `stdout`, waits `pace` seconds before a request."""

    def __init__(self, stdin: IO[bytes], stdout: IO[bytes], pace: float) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self._pace = pace
        self._requests = 0

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return the response. Raises EOFError if the server exits without one."""
        time.sleep(self._pace)
        self._requests += 1
        self._send({"id": self._requests, "method": method} | ({"params": params} if params else {}))
        for line in self._stdout:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if not isinstance(message, dict):
                continue
            if "method" in message and "id" in message:
                self._send({"id": message["id"]} | _answer(message["method"]))
            elif message.get("id") == self._requests:
                return message
        raise EOFError(f"the server ended before it answered {method}")

    def notify(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def _send(self, message: dict[str, Any]) -> None:
        text = json.dumps({"jsonrpc": "2.0"} | message, separators=(",", ":"))
        self._stdin.write(text.encode() + b"\n")
        self._stdin.flush()


def _answer(method: str) -> dict[str, Any]:
    """Return the client's response to a request of the server."""
    if method == "sampling/createMessage":
        return {"result": _MESSAGE | {"stopReason": "endTurn"}}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def script(client: WeatherClient, watch: float) -> None:
    """Send everything that the demo shows, in this order; the slow call takes `watch` seconds."""
    client.request(
        "initialize",
        {
            "protocolVersion": REVISION,
            "capabilities": {"sampling": {}},
            "clientInfo": {"name": "mcpspy-demo", "version": "1.0.0"},
        },
    )
    client.notify("notifications/initialized")
    for method in ("tools/list", "resources/list", "prompts/list"):
        client.request(method)
    calls: list[dict[str, Any]] = [
        {"name": "get_forecast", "arguments": {"city": "Oslo", "days": 2}},
        {
            "name": "watch_wind",
            "arguments": {"city": "Bergen", "seconds": watch},
            "_meta": {"progressToken": "wind"},
        },
        {"name": "get_forecast", "arguments": {"city": "Atlantis"}},  # fails: an unknown city
        {"name": "get_forecast", "arguments": {"city": "Oslo", "days": "two"}},  # violates the input schema
        {"name": "what_to_wear", "arguments": {"city": "Oslo"}},  # makes the server send a request
    ]
    for call in calls:
        client.request("tools/call", call)


def main() -> int:
    """Play the script; return the server's exit status."""
    parser = argparse.ArgumentParser(prog="python -m mcpspy.demo.client")
    parser.add_argument("--pace", type=float, default=0, metavar="SECONDS", help="wait so long before each request")
    options, for_wrap = parser.parse_known_args()
    wrap = [sys.executable, "-P", "-m", "mcpspy", "wrap", "--name", "weather", *for_wrap]
    command = [*wrap, "--", sys.executable, "-m", "mcpspy.demo.server"]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
            assert server.stdin
            assert server.stdout
            try:
                script(WeatherClient(server.stdin, server.stdout, options.pace), watch=1.2 if options.pace else 0.4)
                server.stdin.close()
                return server.wait()
            finally:
                server.terminate()  # does nothing if it has exited
                server.wait()
    except (EOFError, OSError) as error:
        print(f"the session broke off: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
