"""The subject of a request or notification: the name or URI in its params.

The gate imports this module while a server starts, so it imports nothing heavy.
"""

from mcpspy.json_values import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def subject(method: str, params: "Any") -> str | None:
    """Return the tool, prompt or resource that the params name; None if the method names none."""
    if method in ("tools/call", "prompts/get"):
        found = params.get("name") if isinstance(params, dict) else None  # `member` takes twice as long
    elif method == "completion/complete":
        params = member(params, "ref")
        found = member(params, "name") or member(params, "uri")
    elif method.startswith(("resources/", "notifications/resources/")):
        found = member(params, "uri")
    else:
        return None
    return found if type(found) is str else None  # the gate decodes a number as a subclass of str that keeps its digits
