"""Rules about a lock file: what a server offers, compared with what was locked (`check --lock`).

Only `mcpspy.contract.changes` knows the lock, so it makes these findings, and the judge does not run these rules. This
module has their texts. In the examples, the lines above `-- locked` are in the lock.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.model import Session
from mcpspy.rules.rule import Fault, rule

_CHANGED = "server/tools#list-changed-notification"
_ECHO = '{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}'
_LISTED = f"""
        = 2025-06-18
        > 2 tools/list
        < 2 = {{"tools":[{_ECHO}]}}
"""
_SAME = f"{_LISTED}        -- locked{_LISTED}"


def found_with_a_lock(message: Any, session: Session) -> Iterator[Fault]:
    """Find nothing: a message alone does not show what is locked."""
    return iter(())


rule(
    "lock/added",
    "warning",
    """The server lists a tool, prompt, resource or template that is not in the lock. Existing calls still work, but a
    model reads a description that nobody has reviewed. If that description contains instructions to a model, the
    severity is error.""",
    fix="Publish a new version of the server, and list the addition in its changelog.",
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
    """The server offers something other than what is in the lock. The finding begins with the kind of change:
    `breaking` (error), a call that was valid before may fail, for example because of a new required argument;
    `additive` (warning), more is allowed or promised; `other` (info), icons, `_meta`, the version of the server or of
    the protocol. Changed texts have their own rule, `security/definition-changed`.""",
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
    """A tool, prompt, resource or template that is in the lock is missing, although the capture has every page of the
    listing. Clients that use it break.""",
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
    """The lock has tools, prompts, resources or templates that the session did not list, or not completely. mcpspy
    cannot know whether they still exist, so they do not count as removed. It is an error if the list was more than 8
    MiB or not an array, because mcpspy cannot read it but a client may.""",
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
    """The lock has no entry for the name in `serverInfo`, so nothing was compared. (The name of the capture counts if
    the server gives no name.) A server that changed its name is reported here too.""",
    fix="Keep the name in `serverInfo` the same in each version of the server.",
    meanwhile="""Add the server with `mcpspy lock CAPTURE`. If only its name changed, run
    `mcpspy lock CAPTURE --name NAME --update` with the name in the lock.""",
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
