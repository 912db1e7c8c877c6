"""The message shapes of all revisions of MCP, in the notation of `mcpspy.spec.shapes`, by topic.

We wrote them ourselves, from the text of the specification and its schema.ts. `tests/spec/test_definitions.py` compares
the schemas that are built from them with the official ones, definition by definition, if those are available.
"""

from functools import cache

from mcpspy.spec.definitions import base, client_features, flow, lifecycle, messages, server_features
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Definitions, Schema, build

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TOPICS = {
    "base": base.BASE,
    "lifecycle": lifecycle.LIFECYCLE,
    "tools": server_features.TOOLS,
    "resources": server_features.RESOURCES,
    "prompts": server_features.PROMPTS,
    "content": server_features.CONTENT,
    "sampling": client_features.SAMPLING,
    "elicitation": client_features.ELICITATION,
    "flow": flow.FLOW,
    "tasks": flow.TASKS,
    "stateless": flow.STATELESS,
    "errors": base.ERRORS,
    "messages": messages.MESSAGES,
}
"""The definitions by topic. Each definition is in one topic only."""

DEFINITIONS: Definitions = {name: shape for topic in TOPICS.values() for name, shape in topic.items()}
"""All definitions, by their official names."""


@cache
def definitions(revision: Revision) -> dict[str, Schema]:
    """Return the definitions of a revision as JSON Schema, by their official names. Do not change the result."""
    return build(DEFINITIONS, revision)


def schema(revision: Revision) -> Schema:
    """Return the JSON Schema (2020-12) of a revision: only `$defs`, with nothing to validate by itself."""
    return {"$schema": DIALECT, "$defs": definitions(revision)}
