"""`mcpspy rules` and `mcpspy schema`: what mcpspy checks, and the message shapes of revisions and known extensions."""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpspy.cli.output import line_width
from mcpspy.errors import UsageError
from mcpspy.json_values import walk
from mcpspy.report.catalogue import explanation, overview
from mcpspy.report.waivers import no_rule
from mcpspy.rules import RULES, current
from mcpspy.spec.definitions import DIALECT, definitions, schema
from mcpspy.spec.extensions import EXTENSIONS, Extension, all_definitions, extension_methods
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import Revision
from mcpspy.spec.shapes import Schema
from mcpspy.text import plural, suggestion

_WIDEST = 100  # maximum width of prose on a terminal, in columns


def run_rules(options: argparse.Namespace) -> int:
    """Print the table, or the requested rule."""
    width = min(line_width(0), _WIDEST)
    if options.rule is None:
        print(overview(width), end="")
        return 0
    name = current(options.rule)
    if name not in RULES:
        raise UsageError(no_rule(name))
    print(explanation(RULES[name], width), end="")
    return 0


Definitions = dict[str, Schema]


def run_schema(options: argparse.Namespace) -> int:
    """Print what was requested."""
    if options.what == "list":
        for revision in Revision:
            here = f"{plural(len(definitions(revision)), 'definition')}, {plural(len(methods(revision)), 'method')}"
            print(f"{revision.value}  {revision.era.value:<11}  {here}")
        for extension in EXTENSIONS.values():
            if extension.prefix:
                print(f"{extension.id:<30}  {_extent(extension)}")
    elif options.what == "show":
        _show(_revision(options.revision), options.definition)
    else:
        for line in changes(_revision(options.old), _revision(options.new)):
            print(line)
    return 0


def _show(revision: Revision, name: str | None) -> None:
    extension = _extension(name, revision) if name else None
    if extension:
        shown = _schema_of(extension, revision)
    else:
        shown = schema(revision) if name is None else all_definitions(revision)[_definition(revision, name)]
    layout: dict[str, Any] = {"indent": 2} if sys.stdout.isatty() else {"separators": (",", ":")}
    print(json.dumps(shown, **layout))


def _extent(extension: Extension) -> str:
    """Return the first revision that has an extension, and its size in the newest revision."""
    having = [revision for revision in Revision if _own(extension, revision)]
    first, newest = having[0], having[-1]
    added = [owner for owner, _ in extension_methods(newest).values() if owner is extension]
    return f"since {first.value}  {plural(len(_own(extension, newest)), 'definition')}, {plural(len(added), 'method')}"


def _own(extension: Extension, revision: Revision) -> list[str]:
    """Return the names of an extension's definitions that exist in a revision."""
    return [name for name in all_definitions(revision) if name in extension.definitions]


def _extension(name: str, revision: Revision) -> Extension | None:
    """Return the extension of a revision whose id, or the last part of it, is `name`."""
    named = (it for it in EXTENSIONS.values() if it.prefix and name in (it.id, it.id.rpartition("/")[2]))
    return next((it for it in named if _own(it, revision)), None)


def _schema_of(extension: Extension, revision: Revision) -> Schema:
    """Return the JSON Schema of an extension, including the protocol definitions that it refers to."""
    every = all_definitions(revision)
    found: dict[str, Schema] = {}
    wanted = _own(extension, revision)
    while wanted:
        name = wanted.pop(0)
        if name not in found:
            found[name] = every[name]
            steps = (part for path, part in walk(every[name]) if path[-1:] == ["$ref"])
            wanted += [step.removeprefix("#/$defs/") for step in steps]
    return {"$schema": DIALECT, "$defs": found}


def _revision(name: str) -> Revision:
    revision = Revision.of(name)
    if revision is None:
        known = [each.value for each in Revision]
        hint = suggestion(name, known, f"the revisions are {', '.join(known)}")
        raise UsageError(f"there is no revision {name!r}; {hint}")
    return revision


def _definition(revision: Revision, name: str) -> str:
    if name in all_definitions(revision):
        return name
    others = ", ".join(other.value for other in Revision if name in all_definitions(other))
    hint = suggestion(name, all_definitions(revision), f"'mcpspy schema show {revision.value}' shows all", most=3)
    where = f" (it is in {others})" if others else ""
    raise UsageError(f"{revision.value} has no definition {name!r}{where}; {hint}")


def changes(old: Revision, new: Revision) -> Iterator[str]:
    """Yield lines about what was added, removed and changed from one revision to another."""
    before, after = definitions(old), definitions(new)
    came, went = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    yield from (f"+ {name}{_state(after[name])}" for name in came)
    yield from (f"- {name}" for name in went)
    changed = 0
    for name in sorted(before.keys() & after.keys()):
        lines = list(_Comparison(before, after).lines("", before[name], after[name]))
        if lines:
            changed += 1
            yield f"  {name}"
            yield from (f"    {line}" for line in lines)
    yield f"{len(came)} came, {len(went)} went, {changed} changed from {old.value} to {new.value}"


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A comparison of the definitions of two revisions. The path of a part is empty for the whole definition."""

    before: Definitions
    after: Definitions

    def lines(self, path: str, was: Schema, now: Schema) -> Iterator[str]:
        """Yield the changes in a definition, or in a part that exists in both revisions."""
        was, now = (
            self._spelled_out(path, was, now, self.before, self.after),
            self._spelled_out(path, now, was, self.after, self.before),
        )
        if _state(was) != _state(now):
            yield f"~ {path or 'all of it'}: {'deprecated' if _state(now) else 'no longer deprecated'}"
        if "properties" in was and "properties" in now:
            yield from self._members(f"{path}." if path else "", was, now)
        elif "items" in was and "items" in now and was.get("maxItems") == now.get("maxItems"):
            yield from self.lines(f"{path}[]", was["items"], now["items"])
        elif type_text(was) != type_text(now):
            yield from _retyped(f"{path}: " if path else "", was, now)

    def _members(self, above: str, was: Schema, now: Schema) -> Iterator[str]:
        old, new = was["properties"], now["properties"]
        yield from (f"+ {above}{name}: {_member(name, now)}" for name in new if name not in old)
        yield from (f"- {above}{name}: {_member(name, was)}" for name in old if name not in new)
        for name in new:
            if name in old:
                if _presence(name, was) != _presence(name, now):
                    yield f"~ {above}{name}: {_presence(name, was)}  ->  {_presence(name, now)}"
                yield from self.lines(above + name, old[name], new[name])

    @staticmethod
    def _spelled_out(path: str, schema: Schema, other: Schema, here: Definitions, there: Definitions) -> Schema:
        """Resolve a reference if that shows more.

        The other revision must not have the same reference. The target must be params, not an object, or equal to the
        schema in the other revision. Until 2025-06-18 params were part of the definitions of their requests.
        """
        name = schema.get("$ref", "").removeprefix("#/$defs/")
        if not name or name in there:
            return schema
        told = path == "params" or "properties" not in here[name] or here[name] == other
        return here[name] if told else schema


def _retyped(label: str, was: Schema, now: Schema) -> Iterator[str]:
    if "anyOf" in was and "anyOf" in now:
        old, new = ([type_text(alternative) for alternative in one["anyOf"]] for one in (was, now))
        yield from (f"+ {label}{name}" for name in new if name not in old)
        yield from (f"- {label}{name}" for name in old if name not in new)
    else:
        yield f"~ {label}{type_text(was)}  ->  {type_text(now)}"


def _member(name: str, schema: Schema) -> str:
    return f"{_presence(name, schema)} {type_text(schema['properties'][name])}{_state(schema['properties'][name])}"


def _presence(name: str, schema: Schema) -> str:
    return "required" if name in schema.get("required", ()) else "optional"


def _state(schema: Schema) -> str:
    return ", deprecated" if schema.get("deprecated") else ""


def type_text(schema: Schema) -> str:
    """Return a schema as a short type: `string`, `Tool[]`, `"user" | "assistant"`, `{name, title?}`."""
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix("#/$defs/"))
    for keyword, sign in (("anyOf", " | "), ("allOf", " & ")):
        if keyword in schema:
            return sign.join(type_text(part) for part in schema[keyword])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if isinstance(schema.get("type"), list):
        return " | ".join(schema["type"])
    if "properties" in schema:
        required = schema.get("required", ())
        members = [
            f"{name}{'' if name in required else '?'}: {type_text(member)}"
            for name, member in schema["properties"].items()
        ]
        return f"{{{', '.join(members)}}}"
    if "items" in schema:
        items = type_text(schema["items"])
        bound = f" (at most {schema['maxItems']})" if "maxItems" in schema else ""
        return (f"({items})[]" if " " in items else f"{items}[]") + bound
    if schema.get("additionalProperties"):
        return f"map of {type_text(schema['additionalProperties'])}"
    bounds = [f"{word} {schema[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in schema]
    return " ".join([schema.get("type", "anything"), *bounds]) + (
        f" ({schema['format']})" if "format" in schema else ""
    )
