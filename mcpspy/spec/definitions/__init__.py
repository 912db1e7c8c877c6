"""The message shapes of all revisions of MCP, in the notation of `mcpspy.spec.shapes`, one module for each topic.

We wrote them ourselves, from the text of the specification and its schema.ts. `tests/spec/test_definitions.py` compares
the schemas that are built from them with the official ones, definition by definition, if those are available.
"""

from functools import cache

from mcpspy.spec.definitions import (
    base,
    content,
    elicitation,
    errors,
    flow,
    lifecycle,
    messages,
    prompts,
    resources,
    sampling,
    stateless,
    tasks,
    tools,
)
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Definitions, Schema, build

DIALECT = "https://json-schema.org/draft/2020-12/schema"

TOPICS = {
    "base": base.DEFINITIONS,
    "lifecycle": lifecycle.DEFINITIONS,
    "tools": tools.DEFINITIONS,
    "resources": resources.DEFINITIONS,
    "prompts": prompts.DEFINITIONS,
    "content": content.DEFINITIONS,
    "sampling": sampling.DEFINITIONS,
    "elicitation": elicitation.DEFINITIONS,
    "flow": flow.DEFINITIONS,
    "tasks": tasks.DEFINITIONS,
    "stateless": stateless.DEFINITIONS,
    "errors": errors.DEFINITIONS,
    "messages": messages.DEFINITIONS,
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
