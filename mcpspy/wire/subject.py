"""What a request or notification is about: the name or URI in its params.

The gate imports this module while a server starts, so it imports nothing heavy.
"""

from mcpspy.json_values import member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def subject(method: str, params: "Any") -> str | None:
    """The tool, prompt or resource that a request or notification is about."""
    if method == "completion/complete":
        params = member(params, "ref")
        found = member(params, "name") or member(params, "uri")
    elif method in ("tools/call", "prompts/get"):
        found = member(params, "name")
    elif method.startswith(("resources/", "notifications/resources/")):
        found = member(params, "uri")
    else:
        return None
    return found if type(found) is str else None  # in the gate a number is a subclass of str with its digits
