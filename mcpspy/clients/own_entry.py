"""What `install --agent` adds to the text of a configuration, and `uninstall --agent` removes. Pure.

The entry is put before the first server, in the style of the existing text. Nothing else changes, and that is verified:
the new text is parsed again, and must contain the entry and otherwise the same values.
"""

import re
from collections.abc import Sequence
from typing import Any

from mcpspy.clients.agent import NAME, is_agent
from mcpspy.clients.entries import Entry, Refusal, launch
from mcpspy.clients.formats import JSON, TOML, read
from mcpspy.clients.machine import Machine
from mcpspy.clients.places import Found
from mcpspy.clients.plan import LEAVE, UNDO, Plan, Step, line_end, listed_in
from mcpspy.clients.table import STRING
from mcpspy.clients.tree import Edit, Node, edited, plain, quote
from mcpspy.errors import ConfigError, Unwrappable

ADD = "add"
"""The action if the entry does not exist."""
_BLANK = re.compile(r"\s*")
_NOT_ADDED = "cannot be edited without changing more; add or remove the server 'mcpspy' by hand"
_TABLE = re.compile(r"(?m)^\[")


def add(text: str, found: Found, machine: Machine, words: Sequence[str]) -> Plan:
    """Add the server that `words` start. Raises ConfigError."""
    listed = listed_in(text, found, machine)
    there = next((entry for entry in listed if entry.name == NAME), None)
    if there is not None:
        if not _ours(there):
            raise Unwrappable(f"it has another server called {NAME!r}, which is not 'mcpspy mcp'; nothing was changed")
        return Plan(text, [Step(NAME, LEAVE, "there already")], [entry.name for entry in listed])
    edit = _added(text, found, words)
    step = Step(NAME, ADD, " ".join(words), words, (edit,))
    return Plan(_proved(text, edit, found, machine, words), [step], [entry.name for entry in listed])


def remove(text: str, found: Found, machine: Machine) -> Plan:
    """Remove the entry, if it exists and starts mcpspy. Raises ConfigError."""
    listed = listed_in(text, found, machine)
    names = [entry.name for entry in listed]
    there = next((entry for entry in listed if entry.name == NAME and _ours(entry)), None)
    if there is None:
        return Plan(text, [Step(NAME, LEAVE, "not there")], names)
    edit = _removed(text, found, there)
    return Plan(_proved(text, edit, found, machine, None), [Step(NAME, UNDO, "", (), (edit,))], names)


def _ours(entry: Entry) -> bool:
    try:
        launched = launch(entry)
    except Refusal:
        return False
    return launched is not None and is_agent(launched.words)


def _added(text: str, found: Found, words: Sequence[str]) -> Edit:
    """Return the edit that adds the entry before the first server, or a new list of servers at the start or end."""
    form, place = found.place.form, found.place
    if len(place.root) != 1:
        raise Unwrappable("servers of this scope cannot be added; choose another with --scope")
    key = place.root[0]
    if form == TOML:
        table = f"[{key}.{NAME}]\ncommand = {quote(words[0])}\nargs = {_list(words[1:])}\n"
        before = ("" if text.endswith("\n") else "\n") + "\n" if text.strip() else ""
        return Edit(len(text), len(text), (before + table).replace("\n", line_end(text)))
    root = read(text, form)
    if not isinstance(root.value, dict):
        raise Unwrappable(f"the whole is not an object with {key!r}")
    member = root.value.get(key)
    servers = member.node if member else None
    if servers is not None and (servers.fixed or not isinstance(servers.value, dict | list)):
        raise Unwrappable(f"its {key!r} is not a list of servers")
    if form == JSON:
        value = _json(found, words)
        if servers is not None:
            return _before_first(text, servers, f"{quote(NAME)}: {value}")
        return _before_first(text, root, f"{quote(key)}: {{{quote(NAME)}: {value}}}")
    return _yaml(text, found, servers, words)


def _json(found: Found, words: Sequence[str]) -> str:
    more = found.client.entry
    if STRING in found.client.commands:
        return f'{{{more}"command": {quote(words[0])}, "args": {_list(words[1:])}}}'
    return f'{{{more}"command": {_list(words)}}}'


def _list(words: Sequence[str]) -> str:
    return f"[{', '.join(map(quote, words))}]"


def _before_first(text: str, holder: Node, member: str) -> Edit:
    """Return the edit that adds a member before all others of a JSON object, formatted like the first of them."""
    place = holder.start + 1
    if not holder.value:
        return Edit(place, place, member)
    blank = _BLANK.match(text, place)
    assert blank
    gap = blank[0] or " "
    return Edit(blank.end(), blank.end(), f"{member},{gap}")


def _yaml(text: str, found: Found, servers: Node | None, words: Sequence[str]) -> Edit:
    """Return the edit that adds the entry to a YAML block: to a mapping, or to a list as an element with a name."""
    key, listed = found.place.root[0], found.client.named if servers is None else isinstance(servers.value, list)
    if servers is None or not servers.value:
        if servers is not None:
            raise Unwrappable(f"its {key!r} is empty; add the server {NAME!r} by hand")
        before = "" if not text or text.endswith("\n") else "\n"
        return Edit(
            len(text),
            len(text),
            (f"{before}{key}:\n" + _block("  ", words, listed=listed)).replace("\n", line_end(text)),
        )
    if not servers.lines:
        raise Unwrappable(_NOT_ADDED)
    line = text.rfind("\n", 0, servers.start) + 1
    margin = text[line : servers.start]
    if margin.strip():
        raise Unwrappable(_NOT_ADDED)
    return Edit(line, line, _block(margin, words, listed=listed).replace("\n", line_end(text)))


def _block(margin: str, words: Sequence[str], *, listed: bool) -> str:
    first = f"{margin}- name: {NAME}\n" if listed else f"{margin}{NAME}:\n"
    return f"{first}{margin}  command: {quote(words[0])}\n{margin}  args: {_list(words[1:])}\n"


def _removed(text: str, found: Found, entry: Entry) -> Edit:
    """Return the edit that removes the entry, with what separates it from its neighbours."""
    form, key = found.place.form, found.place.root[0]
    if len(found.place.root) != 1:
        raise Unwrappable(_NOT_ADDED)
    if form == TOML:
        header = re.search(rf"(?m)^\[{re.escape(key)}\.{NAME}\][^\n]*\n", text)
        if not header:
            raise Unwrappable(_NOT_ADDED)
        following = _TABLE.search(text, header.end())
        start = header.start()
        while text[:start].endswith(("\n\n", "\n\r\n")):
            start -= 2 if text[:start].endswith("\r\n") else 1
        end = following.start() if following else len(text)
        return Edit(header.start() if following else start, end, "")
    whole = read(text, form).value[key]
    servers = whole.node
    if form == JSON:
        return _without_member(text, servers)
    first = entry.node.start if isinstance(servers.value, list) else servers.value[NAME].start
    first = whole.start if len(servers.value) == 1 else first  # otherwise a key without a value would remain
    start = text.rfind("\n", 0, first) + 1
    indent = len(text[start:]) - len(text[start:].lstrip(" "))
    end = start
    for line in text[start:].splitlines(keepends=True):
        if end > start and line.strip() and len(line) - len(line.lstrip(" ")) <= indent:
            break
        end += len(line)
    return Edit(start, end, "")


def _without_member(text: str, servers: Node) -> Edit:
    """Return the edit that removes one member of a JSON object, and one comma."""
    own = servers.value[NAME]
    comma = re.compile(r"\s*,\s*").match(text, own.node.end)
    others = [it for name, it in servers.value.items() if name != NAME]
    if comma and any(it.start > own.start for it in others):
        return Edit(own.start, comma.end(), "")
    if before := re.search(r",\s*$", text[: own.start]):
        return Edit(before.start(), own.node.end, "")
    return Edit(own.start, comma.end() if comma else own.node.end, "")


def _proved(text: str, edit: Edit, found: Found, machine: Machine, words: Sequence[str] | None) -> str:
    """Return the text with the edit. Raises Unwrappable if the result differs from the intended one."""
    new, form, key = edited(text, [edit]), found.place.form, found.place.root[0]
    try:
        before, after = plain(read(text, form)) or {}, plain(read(new, form)) or {}
        names = [entry.name for entry in listed_in(new, found, machine)]
        right = (NAME in names) == (words is not None) and _others(before, key) == _others(after, key)
        if words is not None:
            entry = next(it for it in listed_in(new, found, machine) if it.name == NAME)
            launched = launch(entry)
            right = right and launched is not None and launched.words == list(words)
    except (ConfigError, Refusal, StopIteration):
        right = False
    if not right:
        raise Unwrappable(_NOT_ADDED)
    return new


def _others(values: Any, key: str) -> Any:
    """Return all values without the entry of mcpspy, and without the list of servers if it contains nothing else."""
    servers = values.get(key)
    if isinstance(servers, dict):
        servers = {name: it for name, it in servers.items() if name != NAME}
    elif isinstance(servers, list):
        servers = [it for it in servers if not isinstance(it, dict) or it.get("name") != NAME]
    rest = {name: it for name, it in values.items() if name != key}
    return rest | {key: servers} if servers else rest
