"""Extensions of the protocol: what one adds, the known ones as a table, and the dialect that they make of a revision.

A side declares extensions in its capabilities, by id under `extensions` (since 2026-07-28; some do it in earlier
revisions). Private additions of any revision are under `experimental`, by name. We wrote the shapes of the known ones
ourselves, from the specification of each. They are versioned like those of the protocol: a revision that lacks a
definition lacks the method. For an extension without a row in `EXTENSIONS` only the name is known. Methods and result
types with that name belong to it:

- The name is the part after the last `/` of the id, without a version at its end: `turbo` for `com.example/turbo-v2`.
- A method belongs to it if, without `notifications/`, it equals the name or the id, or begins with one of them and a
  `/`. A word with which the protocol's own methods begin, such as `tools`, does not count.
- A result type belongs to it if its first word is the first word of the name, apart from a plural `s`.

The dialect of an exchange is its revision with the extensions that both sides declared for it. A known extension adds
only what its shapes define. For an unknown one, everything that has its name is accepted. Neither changes the rules of
the revision for anything else.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, islice
from typing import Any, TypeVar

from mcpspy.spec.definitions import DEFINITIONS
from mcpspy.spec.definitions.base import PAGE, notification, request
from mcpspy.spec.methods import RESULT_TYPES, Method, Side, methods, methods_of, result_definition
from mcpspy.spec.revisions import R2026_07_28, Revision
from mcpspy.spec.shapes import (
    BOOLEAN,
    INTEGER,
    OBJECT,
    STRING,
    URI,
    Definitions,
    Schema,
    Type,
    Union,
    array,
    build,
    const,
    either,
    enum,
    record,
    since,
)
from mcpspy.wire.jsonrpc import Notification, Request, Result

_DECLARED_BY = ("extensions", "experimental")  # members of the capabilities of either side
_MOST = 100  # names of each that are examined
_NOTHING = frozenset[str]()
_VERSION = re.compile(r"[-_.]?v\d+$")
_WORD = re.compile(r"[A-Za-z][a-z]*")


@dataclass(frozen=True, slots=True)
class Extension:
    """What one extension adds to the revisions that have it."""

    id: str
    needs: tuple[Side, ...] = ()
    """The sides that must declare it before it is used."""
    prefix: str = ""
    """The beginning of the names of its definitions: `tasks.`."""
    definitions: Definitions = field(default_factory=dict)
    """Its shapes, in the notation of `mcpspy.spec.shapes`. Unions tell who sends what, as in the protocol's."""
    result_types: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By value of `resultType`, then by method whose result may have it: the definition of the result."""
    filters: tuple[str, ...] = ()
    """Members of the filter of `subscriptions/listen` that belong to it."""
    additions: Mapping[tuple[str, type], str] = field(default_factory=dict)
    """By method and kind (Request, Notification, Result) of the protocol's own messages: an additional definition."""


def declared(capabilities: Any) -> frozenset[str]:
    """Return the names of the extensions and experiments that a side declares. Accepts malformed capabilities."""
    if not isinstance(capabilities, dict):
        return _NOTHING
    named = [value for name in _DECLARED_BY if isinstance(value := capabilities.get(name), dict)]
    return frozenset(chain.from_iterable(islice(value, _MOST) for value in named)) if named else _NOTHING


def owns_method(extension: str, method: str) -> bool:
    """Return whether a method has the name of an extension that is known by its id only."""
    name, own = _name(extension), method.removeprefix("notifications/")
    stems = {extension, name} - _first_segments()
    return bool(name) and any(own == stem or own.startswith(f"{stem}/") for stem in stems)


def owns_result_type(extension: str, result_type: str) -> bool:
    """Return whether a `resultType` has the name of an extension that is known by its id only."""
    first = _first_word(_name(extension))
    return bool(first) and _first_word(result_type.rpartition("/")[2]) == first


@cache
def _first_segments() -> frozenset[str]:
    """Return the first segments of the protocol's own methods, in any revision."""
    names = (name for revision in Revision for name in methods(revision))
    return frozenset(name.removeprefix("notifications/").partition("/")[0] for name in names)


def _name(extension: str) -> str:
    return _VERSION.sub("", extension.rpartition("/")[2])


def _first_word(text: str) -> str:
    found = _WORD.match(text)
    return found[0].lower().removesuffix("s") if found else ""


_SKILL_SHAPES: Definitions = {
    "skills.SkillResource": record({"uri": URI, "digest": STRING, "size": INTEGER | {"minimum": 0}}),
    "skills.Skill": record(
        {
            "uri": URI,
            "frontmatter": record({"name": STRING, "description": STRING}),
            "resources": either(array("skills.SkillResource"), const("dynamic")),
        }
    ),
    "skills.ListSkillsRequest": request("skills/list", PAGE),
    "skills.ListSkillsResult": record({"skills": array("skills.Skill")}, "PaginatedResult", "CacheableResult"),
    "skills.GetSkillRequest": request("skills/get", record({"uri": URI}, "RequestParams")),
    "skills.GetSkillResult": record({"skill": "skills.Skill"}, "Result", "CacheableResult"),
    "skills.ReadResourceDirectoryRequest": request(
        "resources/directory/read", record({"uri": URI}, "PaginatedRequestParams")
    ),
    "skills.ReadResourceDirectoryResult": record({"resources": array("Resource")}, "PaginatedResult"),
    "skills.ClientRequest": either(
        "skills.ListSkillsRequest", "skills.GetSkillRequest", "skills.ReadResourceDirectoryRequest"
    ),
}

SKILLS = Extension("io.modelcontextprotocol/skills", needs=("server",), prefix="skills.", definitions=_SKILL_SHAPES)
"""Directories of instructions for agents, served as resources (SEP-2640, final 2026-09-13).

https://github.com/modelcontextprotocol/ext-skills. Only a server declares them. The text specifies them for 2026-07-28
and later. Its SDK serves the same methods after a handshake of an older revision too, without `ttlMs` and `cacheScope`.
So every revision has the shapes, and those two members are required only if the revision has them.
"""


_STATES: dict[str, dict[str, Type]] = {
    "working": {},
    "input_required": {"inputRequests": "InputRequests"},
    "completed": {"result": "JSONObject"},
    "failed": {"error": "Error"},
    "cancelled": {},
}
"""By status: the members that a task has only in that state."""


def _detailed(*bases: Type) -> Union:
    """Define a task with the members of its state."""
    states = (record({"status": const(status)} | own, *bases, "tasks.Task") for status, own in _STATES.items())
    return either(*states)


_COMPLETE: Type = record({"resultType": const("complete")}, "Result")
_NAMED: Type = record({"taskId": STRING}, "RequestParams")
_FILTER: Type = record({"notifications": record({"taskIds?": array(STRING)})})

_TASK_SHAPES: Definitions = {
    "tasks.Task": record(
        {
            "taskId": STRING,
            "status": enum(*_STATES),
            "statusMessage?": STRING,
            "createdAt": STRING,
            "lastUpdatedAt": STRING,
            "ttlMs": {"type": ["integer", "null"]},
            "pollIntervalMs?": INTEGER,
        }
    ),
    "tasks.CreateTaskResult": record({"resultType": const("task")}, "Result", "tasks.Task"),
    "tasks.GetTaskRequest": request("tasks/get", _NAMED),
    "tasks.GetTaskResult": _detailed(_COMPLETE),
    "tasks.UpdateTaskRequest": request("tasks/update", record({"inputResponses": "InputResponses"}, _NAMED)),
    "tasks.UpdateTaskResult": _COMPLETE,
    "tasks.CancelTaskRequest": request("tasks/cancel", _NAMED),
    "tasks.CancelTaskResult": _COMPLETE,
    "tasks.TaskStatusNotification": notification("notifications/tasks", "tasks.TaskStatusNotificationParams"),
    "tasks.TaskStatusNotificationParams": _detailed("NotificationParams"),
    "tasks.ClientRequest": either("tasks.GetTaskRequest", "tasks.UpdateTaskRequest", "tasks.CancelTaskRequest"),
    "tasks.ServerNotification": either("tasks.TaskStatusNotification"),
    "tasks.Subscription": record({"params": _FILTER}),
}

TASKS = Extension(
    "io.modelcontextprotocol/tasks",
    needs=("client", "server"),
    prefix="tasks.",
    definitions={name: since(R2026_07_28, shape) for name, shape in _TASK_SHAPES.items()},
    result_types={"task": {"tools/call": "tasks.CreateTaskResult"}},
    filters=("taskIds",),
    additions={
        ("subscriptions/listen", Request): "tasks.Subscription",
        ("notifications/subscriptions/acknowledged", Notification): "tasks.Subscription",
    },
)
"""A tool call that is answered with a task, whose result is fetched later (SEP-2663, since 2026-07-28).

https://github.com/modelcontextprotocol/ext-tasks. The tasks of 2025-11-25 itself are different ones
(`mcpspy.spec.definitions.flow`).
"""


MIME_TYPE = "text/html;profile=mcp-app"
"""The type of an interface, unless the client declared other ones."""

_DOMAINS = array(STRING)

_UI_SHAPES: Definitions = {
    "ui.ToolMeta": record({"resourceUri?": STRING, "visibility?": array(enum("model", "app"))}),
    "ui.ResourceMeta": record(
        {
            "csp?": record(
                {
                    "connectDomains?": _DOMAINS,
                    "resourceDomains?": _DOMAINS,
                    "frameDomains?": _DOMAINS,
                    "baseUriDomains?": _DOMAINS,
                }
            ),
            "permissions?": record(
                {"camera?": OBJECT, "microphone?": OBJECT, "geolocation?": OBJECT, "clipboardWrite?": OBJECT}
            ),
            "domain?": STRING,
            "prefersBorder?": BOOLEAN,
        }
    ),
    "ui.Tool": record({"_meta?": record({"ui?": "ui.ToolMeta", "ui/resourceUri?": STRING})}),
    "ui.Resource": record({"_meta?": record({"ui?": "ui.ResourceMeta"})}),
    "ui.Tools": record({"tools": array("ui.Tool")}),
    "ui.Resources": record({"resources": array("ui.Resource")}),
    "ui.Contents": record({"contents": array("ui.Resource")}),
}

UI = Extension(
    "io.modelcontextprotocol/ui",
    needs=("client",),
    prefix="ui.",
    definitions=_UI_SHAPES,
    additions={
        ("tools/list", Result): "ui.Tools",
        ("resources/list", Result): "ui.Resources",
        ("resources/read", Result): "ui.Contents",
    },
)
"""MCP Apps: tools whose results are shown by an interface that the server has as a resource (stable 2026-01-26).

https://github.com/modelcontextprotocol/ext-apps. It adds no methods. Its definitions are in the `_meta` of tools and
resources. Only a client declares it.
"""


_Key = TypeVar("_Key")

_AUTHORIZATION = (  # they add nothing to messages
    Extension("io.modelcontextprotocol/oauth-client-credentials"),
    Extension("io.modelcontextprotocol/enterprise-managed-authorization"),
)

EXTENSIONS: dict[str, Extension] = {extension.id: extension for extension in (TASKS, SKILLS, UI, *_AUTHORIZATION)}
"""The known extensions, by id."""


@cache
def all_definitions(revision: Revision) -> dict[str, Schema]:
    """Return the definitions of a revision and of the known extensions, as JSON Schema. Do not change the result."""
    own = {name: shape for extension in EXTENSIONS.values() for name, shape in extension.definitions.items()}
    return build(DEFINITIONS | own, revision)


@cache
def known_extensions(revision: Revision) -> dict[str, Extension]:
    """Return the known extensions by id, each with what it adds to a revision. Do not change the result."""
    there = all_definitions(revision)
    listens = "subscriptions/listen" in methods(revision)
    return {
        extension.id: replace(
            extension,
            result_types={name: _those(by_method, there) for name, by_method in extension.result_types.items()},
            filters=extension.filters if listens else (),
            additions=_those(extension.additions, there),
        )
        for extension in EXTENSIONS.values()
    }


def _those(definitions: Mapping[_Key, str], there: dict[str, Schema]) -> dict[_Key, str]:
    return {key: definition for key, definition in definitions.items() if definition in there}


@cache
def extension_methods(revision: Revision) -> dict[str, tuple[Extension, Method]]:
    """Return the methods that known extensions add to a revision, by name, without its own methods."""
    return {
        name: (extension, method)
        for extension in EXTENSIONS.values()
        if extension.prefix
        for name, method in methods_of(all_definitions(revision), revision, extension.prefix).items()
        if name not in methods(revision)
    }


def extension_with(method: str) -> Extension | None:
    """Return the known extension that adds a method to any revision."""
    owners = (extension_methods(revision).get(method) for revision in Revision)
    return next((owner for owner, _ in filter(None, owners)), None)


def is_known(method: str, revision: Revision) -> bool:
    """Return whether a revision has a method, or a known extension adds it."""
    return method in methods(revision) or method in extension_methods(revision)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A revision with extensions."""

    revision: Revision | None
    """None if it is unknown."""
    extensions: frozenset[str] = frozenset()
    """The names of the declared extensions."""

    def method(self, name: str) -> Method | None:
        """Return a method of the revision, or of a known extension that was declared."""
        if self.revision is None:
            return None
        own = methods(self.revision).get(name)
        if own or not self.extensions:
            return own
        extension, method = extension_methods(self.revision).get(name, (None, None))
        return method if extension and extension.id in self.extensions else None

    def has_method(self, name: str) -> bool:
        """Return whether the revision or a known extension has a method, or an unknown extension may have it."""
        return self.method(name) is not None or any(owns_method(extension, name) for extension in self._unknown())

    def has_result_type(self, name: str, method: str) -> bool:
        """Return whether the protocol or an extension allows this `resultType` for the result of a method."""
        if name in RESULT_TYPES or any(method in it.result_types.get(name, ()) for it in self._known()):
            return True
        return any(owns_result_type(extension, name) for extension in self._unknown())

    def result(self, method: Method, params: Any, result: Any) -> str:
        """Return the definition for the result of a request. `params` are those of the request."""
        result_type = result.get("resultType") if isinstance(result, dict) else None
        if isinstance(result_type, str) and self.extensions:
            for extension in self._known():
                definition = extension.result_types.get(result_type, {}).get(method.name)
                if definition:
                    return definition
        return result_definition(method, params, result)

    def additions(self, method: str, kind: type) -> list[str]:
        """Return the definitions that extensions add to one of the protocol's own messages."""
        return [it.additions[method, kind] for it in self._known() if (method, kind) in it.additions]

    def _known(self) -> Iterator[Extension]:
        known = known_extensions(self.revision) if self.revision else {}
        return (known[name] for name in self.extensions if name in known)

    def _unknown(self) -> Iterator[str]:
        return (name for name in self.extensions if name not in EXTENSIONS)
