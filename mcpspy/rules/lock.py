"""Rules about a lock file: what a server offers, compared with what was locked (`check --lock`).

Only `mcpspy.contract.locked` knows the lock, so it makes these findings, and the judge asks none of these rules. What
stands here is what people read about them. In the examples, what stands above `-- locked` is in the lock.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.history import SessionHistory
from mcpspy.rules.rule import Fault, rule

_CHANGED = "server/tools#list-changed-notification"
_ECHO = '{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}'
_LISTED = f"""
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[{_ECHO}]}}
"""
_SAME = f"{_LISTED}        -- locked{_LISTED}"


def found_with_a_lock(message: Any, history: SessionHistory) -> Iterator[Fault]:
    """Nothing: a message alone does not tell what is locked."""
    return iter(())


rule(
    "lock/added",
    "warning",
    """The server lists a tool, prompt, resource or template that is not in the lock. Existing calls go on working, but
    a model reads a description that nobody has looked at. An error if it holds instructions to a model.""",
    fix="Publish a new version of the server, and name the addition in its changes.",
    meanwhile="Read the description of the addition. Accept it with `mcpspy lock --update`.",
    blame="server",
    spec=_CHANGED,
    fails=f"""{_LISTED}        -- locked
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[{_ECHO},{{"name":"delete","inputSchema":{{"type":"object"}}}}]}}
    """,
    passes=_SAME,
    on=(),
)(found_with_a_lock)

rule(
    "lock/changed",
    "error",
    """The server offers something other than what is in the lock. `breaking` is an error: a call that suited the lock
    may fail, such as with a new required argument. `additive` is a warning: more is allowed or promised. `other` is
    info: icons, `_meta`, the version of the server or of the protocol. Words have a rule of their own,
    `security/definition-changed`.""",
    fix="Undo a breaking change, or publish it as a new version of the server.",
    meanwhile="Adapt the client, then accept the change with `mcpspy lock --update`.",
    blame="server",
    spec=_CHANGED,
    fails=f"""{_LISTED}        -- locked
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[{_ECHO.replace("string", "integer")}]}}
    """,
    passes=_SAME,
    on=(),
)(found_with_a_lock)

rule(
    "lock/removed",
    "error",
    """A tool, prompt, resource or template that is in the lock is missing from a whole listing: every page was seen.
    Clients that use it break.""",
    fix="List it again, or publish its removal as a new version of the server.",
    meanwhile="Stop using it, then accept the change with `mcpspy lock --update`.",
    blame="server",
    spec=_CHANGED,
    fails=f"""{_LISTED}        -- locked
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[]}}
    """,
    passes=_SAME,
    on=(),
)(found_with_a_lock)

rule(
    "lock/not-listed",
    "info",
    """The lock has tools, prompts, resources or templates that the session does not list, or not on all pages. Nothing
    is known about them, so they do not count as removed. An error where the server has sent a list that cannot be
    read, for its client may have read it: one of more than 8 MiB, or one that is not an array.""",
    fix="Serve each page of a listing that a client requests.",
    meanwhile="To compare all of it, run `mcpspy lock -- COMMAND`, which requests every listing.",
    blame="server",
    spec=_CHANGED,
    fails=f"""{_LISTED}        -- locked
        = 2025-06-18
    """,
    passes=_SAME,
    on=(),
)(found_with_a_lock)

rule(
    "lock/unknown-server",
    "error",
    """The capture is of a server that is not in the lock, by the name that it gives itself and by the name of the
    capture. So nothing of it was compared. A server that takes another name is found here as well.""",
    fix="Keep the name in `serverInfo` the same in each version of the server.",
    meanwhile="Add the server with `mcpspy lock CAPTURE`, or give the name that it has in the lock with `--name`.",
    blame="server",
    spec="basic/lifecycle#initialization",
    fails="""
        = 2025-06-18
        -- locked
        > 0 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 0 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"other","version":"1"}}
        > notifications/initialized
    """,
    passes=_SAME,
    on=(),
)(found_with_a_lock)
