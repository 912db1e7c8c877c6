"""A session with two calls whose answers differ in an interesting way."""

import json

from tests.replay.scripts import call
from tests.transcript import capture


def answer(number, text, at, *more):
    structured = {"at": at, "city": "Oslo"}
    result = {"content": [*more, {"type": "text", "text": text}], "structuredContent": structured}
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result})


def weather(path):
    """Write the session to `path` and return the path."""
    link = {"type": "resource_link", "uri": "weather://oslo", "name": "oslo"}
    return capture(
        path,
        f"""
        > {call(1, "get_forecast", '{"city":"Oslo","days":3}')}
        < {answer(1, "18 degrees", "2026-07-02T10:00:02Z")}
        > {call(2, "get_forecast", '{"city":"Oslo","days":4}')}
        < {answer(2, "21 degrees", "2026-07-02T11:00:02Z", link)}
        """,
    )
