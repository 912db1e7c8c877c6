"""How `install`, `uninstall` and another port change a configuration: text in, new text and steps out. Pure.

stdio: the command becomes mcpspy, and the arguments begin with `wrap --name NAME -- COMMAND`. Each word is kept as it
was written, so the new text shows how to undo the change. The URL of a remote server gets another origin
(`clients.routes`), and another port of the proxy changes the port in each URL of mcpspy. `install --agent` puts an
entry of its own before the first server, in the style of the existing text.

Nothing else in the text changes, and that is verified each time: the new text is parsed again and compared.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcpspy.clients.entries import (
    Entry,
    Launch,
    Refusal,
    Unchangeable,
    entries,
    launch,
    only_switched,
    remote,
    unknown,
    wrapped,
    wrapped_otherwise,
)
from mcpspy.clients.formats import JSON, TOML, YAML, member, read
from mcpspy.clients.launcher import NAME, is_agent
from mcpspy.clients.places import Found, Machine
from mcpspy.clients.routes import Assignment, Route, base, local, ours, ports_of, refused, routed, split
from mcpspy.clients.table import STRING
from mcpspy.clients.tree import Edit, Member, Node, edited, outline, plain, quote, where
from mcpspy.errors import ConfigError, Unwrappable

WRAP, ROUTE, UNDO, LEAVE = "wrap", "route", "undo", "leave"
REFUSE, CANNOT = "refuse", "cannot"
"""The actions for a server; `leave` means that it already is as requested.

If the form of an entry is unknown, the action is `refuse`, and then nothing at all is written. If the form is known but
the entry cannot be changed, the action is `cannot`, and the other servers are changed as planned.
"""

_PLAIN = re.compile(r"[A-Za-z/][\w./@-]*")  # a YAML plain scalar in any place, if it is a string
_BY_HAND = "it was wrapped by hand in another form; undo it by hand"
_LOGIN = ("auth", "oauth", "authProviderType", "requiresOAuth")


@dataclass(frozen=True, slots=True)
class Step:
    """What to do with one server, or why nothing is done."""

    server: str
    action: str
    detail: str
    becomes: Sequence[str] = ()
    """The command line, or only the URL, that the edits produce or that already exists."""
    edits: tuple[Edit, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration with its changes."""

    text: str
    steps: list[Step]
    servers: list[str]
    """The names of all its servers."""
    routes: Mapping[str, Route] = field(default_factory=dict)


def install(
    text: str,
    found: Found,
    machine: Machine,
    names: Sequence[str],
    launcher: Sequence[str],
    routes: Mapping[str, Route],
) -> Plan:
    """Put mcpspy, which `launcher` starts, in front of the servers called `names`, or of all without names."""
    form = found.place.form
    listed = listed_in(text, found, machine)
    steps, assignment = [], Assignment(routes, found.client.id, found.path)
    for entry in _chosen(listed, names):
        try:
            if launched := launch(entry):
                step = _wrap(text, form, entry, launched, launcher)
            elif only_switched(entry):
                step = Step(entry.name, LEAVE, "not a server: it only enables or disables one of another file")
            else:
                step = _route(text, entry, assignment)
        except Refusal as refusal:
            action = CANNOT if isinstance(refusal, Unchangeable) else REFUSE
            step = Step(entry.name, action, f"{where(text, entry.node.start)}: {refusal}")
        steps.append(step)
    text = proved(text, names, steps, found, machine)
    return Plan(text, steps, [entry.name for entry in listed], assignment.routes)


def uninstall(
    text: str,
    found: Found,
    machine: Machine,
    names: Sequence[str],
    routes: Mapping[str, Route],
    original: str | None,
) -> Plan:
    """Remove mcpspy from the servers called `names`, or from all; `original` is the text before the first edit."""
    listed = listed_in(text, found, machine)
    before = {entry.name: entry for entry in listed_in(original, found, machine)} if original is not None else {}
    steps, ports = [], ports_of(routes)
    for entry in _chosen(listed, names):
        try:
            if launched := launch(entry):
                step = _unwrap(text, found.place.form, entry, launched, before.get(entry.name), entry.name in names)
            else:
                step = _unroute(text, entry, routes, before.get(entry.name))
        except Refusal as refusal:
            step = Step(entry.name, LEAVE, "not wrapped")
            if ours(str(plain(entry.node)), ports):
                step = Step(entry.name, CANNOT, f"{where(text, entry.node.start)}: {refusal}")
        steps.append(step)
    return Plan(proved(text, names, steps, found, machine), steps, [entry.name for entry in listed])


def listed_in(text: str, found: Found, machine: Machine) -> list[Entry]:
    """Return the servers at a place in `text`. Raises ConfigError."""
    return entries(read(text, found.place.form), found, machine, text)


def _chosen(listed: list[Entry], names: Sequence[str]) -> list[Entry]:
    return [entry for entry in listed if not names or entry.name in names]


def _wrap(text: str, form: str, entry: Entry, launched: Launch, launcher: Sequence[str]) -> Step:
    words = launched.words
    if is_agent(words):
        return Step(entry.name, LEAVE, "mcpspy itself, for agents", words, notes=_notes(entry))
    if wrapped(words) or wrapped_otherwise(words):
        return Step(entry.name, LEAVE, "wrapped already", words, notes=_notes(entry))
    if program := entry.client.debugs.get(entry.debugger):
        raise Unchangeable(
            f"{entry.client.name} starts its debugger (dev.debug) only if {program} is the command: remove dev.debug, "
            "and it can be wrapped"
        )
    own = ("wrap", "--name", entry.label, "--")
    becomes, notes = (*launcher, *own, *words), _notes(entry)
    command, args = launched.command.node, launched.args
    if launched.in_one:
        edit = _prepended(text, command, [quote(word) for word in (*launcher, *own)])
        return Step(entry.name, WRAP, "", becomes, (edit,), notes)
    prefix = [quote(word) for word in (*launcher[1:], *own)] + [_moved(text, command)]
    edits = [Edit(command.start, command.end, quote(launcher[0]))]
    if args is None:
        place, before = _beside(text, form, launched)
        edits.append(Edit(place, place, before + member("args", f"[{', '.join(prefix)}]", form)))
    else:
        edits.append(_prepended(text, args.node, prefix))
    return Step(entry.name, WRAP, "", becomes, tuple(edits), notes)


def _unwrap(text: str, form: str, entry: Entry, launched: Launch, before: Entry | None, named: bool) -> Step:
    behind = wrapped(launched.words)
    if not behind and wrapped_otherwise(launched.words):
        raise Refusal(_BY_HAND)
    if not behind:
        itself = is_agent(launched.words)
        return Step(entry.name, LEAVE, "mcpspy itself; --agent removes it" if itself else "not wrapped")
    if behind.by_hand and not named:
        return Step(entry.name, LEAVE, "it was wrapped by hand; name it to undo that too")
    if not (behind.ours and behind.words):
        raise Refusal(_BY_HAND)
    command, args, elements = launched.command.node, launched.args, launched.nodes
    own = len(elements) - len(behind.words)  # where the server's own command begins
    if launched.in_one:
        first = Edit(_begin(text, command, elements[0]), _begin(text, command, elements[own]), "")
        return Step(entry.name, UNDO, "", behind.words, (first,))
    assert args
    elements, own = elements[1:], own - 1
    edits = [Edit(command.start, command.end, _moved(text, elements[own]))]
    if rest := elements[own + 1 :]:
        edits.append(Edit(_begin(text, args.node, elements[0]), _begin(text, args.node, rest[0]), ""))
    elif (place := _ours_alone(text, form, launched, before)) is not None:
        edits.append(Edit(place, args.node.end, ""))
    elif args.node.lines:
        edits.append(Edit(args.own, elements[-1].end, member("args", "[]", form)))
    else:
        end = re.compile(r"(?:\s*,)?").match(text, elements[-1].end)
        assert end
        begin, last = elements[0].start, end.end()
        around = text[args.node.start + 1 : begin], text[last : args.node.end - 1]
        if "\n" in around[0] and not "".join(around).strip():  # the client has put each on a line of its own
            begin, last = args.node.start + 1, args.node.end - 1
        edits.append(Edit(begin, last, ""))
    return Step(entry.name, UNDO, "", behind.words, tuple(edits))


def _ours_alone(text: str, form: str, launched: Launch, before: Entry | None) -> int | None:
    """Return where the arguments were added, if `before` had none as far as is known, and they are there; else None."""
    place, _ = _beside(text, form, launched)
    try:
        had_args = before is not None and (was := launch(before)) is not None and was.args is not None
    except Refusal:
        return None
    assert launched.args
    beside = place <= launched.args.start and not text[place : launched.args.start].strip(", \t\r\n")
    return place if beside and not had_args else None


def _route(text: str, entry: Entry, assignment: Assignment) -> Step:
    target = remote(entry)
    if target is None:
        raise unknown(entry)
    url: str = target.node.value
    if (through := routed(url, assignment.routes)) and through.name in assignment.routes:
        assignment.keep(through.name)
        return Step(entry.name, LEAVE, "routed already", notes=_notes(entry))
    parts = split(url)
    if any(mark in (parts.origin if parts else url) for mark in "${}"):
        raise Unchangeable("the origin of its URL has a variable, and the proxy cannot expand it")
    if not parts:
        raise Unchangeable("its URL is neither http nor https")
    if reason := refused(parts.origin):
        raise Unchangeable(reason)
    if any(entry.scalar(key) not in (None, False) for key in _LOGIN):
        raise Unchangeable("it logs in with OAuth, which another origin would break: see 'mcpspy mitm --help'")
    name = assignment.assign(entry.name, parts.origin)
    notes = _notes(entry)
    if not (local(parts.origin) or _credentials(entry)):
        notes += ("no credentials are configured: if it requires a login, uninstall it and use 'mcpspy mitm'",)
    new = base(name, assignment.routes[name].port)
    edit = other_origin(text, target.node, parts.origin, new, parts.rest)
    return Step(entry.name, ROUTE, f"{new} for {parts.origin}", (new + parts.rest,), (edit,), notes)


def _unroute(text: str, entry: Entry, routes: Mapping[str, Route], before: Entry | None) -> Step:
    target = remote(entry)
    through = routed(target.node.value, routes) if target else None
    if not target or not through:
        return Step(entry.name, LEAVE, "not routed")
    old, _, name, rest = through
    was = remote(before) if before else None
    own = split(was.node.value) if was else None
    if name in routes:
        origin = routes[name].origin
    elif own and own.rest == rest and not refused(own.origin):
        origin = own.origin
    else:
        raise Refusal(f"no origin is known for the route {name!r}; put the server's own URL there")
    edit = other_origin(text, target.node, old, origin, rest)
    return Step(entry.name, UNDO, "", (origin + rest,), (edit,))


def _credentials(entry: Entry) -> bool:
    """Return whether the entry contains credentials."""
    headers = ("headers", "http_headers", "env_http_headers", "requestOptions", "bearer_token_env_var")
    return any(entry.scalar(key) for key in headers)


def _notes(entry: Entry) -> tuple[str, ...]:
    return ("disabled in the client",) if entry.disabled else ()


def other_origin(text: str, node: Node, old: str, new: str, rest: str) -> Edit:
    """Return the edit that changes the origin of a URL; keep its quotes and escapes if the old origin is literal."""
    raw = text[node.start : node.end]
    return Edit(node.start, node.end, raw.replace(old, new, 1) if raw.count(old) == 1 else quote(new + rest))


def _moved(text: str, node: Node) -> str:
    """Return a string as written, if that is valid in any place, else in double quotes."""
    raw = text[node.start : node.end]
    return raw if (raw[0] in "\"'" and "\n" not in raw) or _PLAIN.fullmatch(raw) else quote(str(node.value))


def _beside(text: str, form: str, launched: Launch) -> tuple[int, str]:
    """Return where to insert a member beside the command, and the text before it."""
    command = launched.command
    if launched.holder.lines:
        end = re.compile(r"[^\r\n]*").match(text, command.node.end)
        assert end
        line = text.rfind("\n", 0, command.start) + 1
        margin = text[line : command.start] if form != YAML else " " * (command.start - line)
        return end.end(), line_end(text) + margin + text[command.start : command.own]
    start = command.start
    while start and text[start - 1].isspace():
        start -= 1
    blank = text[start : command.start]
    return command.node.end, "," + (blank if "\n" in blank else " ")


def _prepended(text: str, args: Node, words: list[str]) -> Edit:
    """Return the edit that puts `words` before all elements of a list, formatted like the elements."""
    if not args.value:
        return Edit(args.start + 1, args.start + 1, ", ".join(words))
    first = args.value[0].start
    if args.lines:
        margin = line_end(text) + " " * (args.start - text.rfind("\n", 0, args.start) - 1)
        return Edit(args.start, args.start, "".join(f"- {word}{margin}" for word in words))
    gap = text[args.start + 1 : first]
    between = "," + (gap if "\n" in gap and not gap.strip() else " ")
    return Edit(first, first, "".join(word + between for word in words))


def _begin(text: str, args: Node, element: Node) -> int:
    """Return where an element of a list begins; in a block list that is its dash."""
    if not args.lines:
        return element.start
    column = args.start - text.rfind("\n", 0, args.start) - 1
    line = text.rfind("\n", 0, element.start) + 1
    while text[line + column] != "-" or text[line : line + column].strip():
        line = text.rfind("\n", 0, line - 1) + 1
    return line + column


def line_end(text: str) -> str:
    """Return the line end of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def proved(text: str, names: Sequence[str], steps: list[Step], found: Found, machine: Machine) -> str:
    """Return `text` with the edits of all steps. Raises ConfigError if the result differs from the intended one."""
    edits = [edit for step in steps for edit in step.edits]
    new = edited(text, edits)
    if edits and not _as_meant(text, new, names, steps, found, machine):
        raise ConfigError("cannot be edited without changing more; put 'mcpspy wrap --' before the command by hand")
    return new


def _as_meant(text: str, new: str, names: Sequence[str], steps: list[Step], found: Found, machine: Machine) -> bool:
    """Return whether `new` contains the result of each step, and otherwise equals `text`."""
    try:
        changed: set[int] = set()
        roots = [(read(of, found.place.form), of) for of in (text, new)]
        before, after = (_chosen(entries(root, found, machine, of), names) for root, of in roots)
        for old, made, step in zip(before, after, steps, strict=True):
            if step.edits:
                (_, was), (words, now) = _changeable(old), _changeable(made)
                changed |= {id(member) for member in (*was, *now)}
                if words != list(step.becomes):
                    return False
        outlines = [outline(root, of, changed) for root, of in roots]
    except (ConfigError, Refusal, ValueError):
        return False
    return bool(outlines[0] == outlines[1])


def _changeable(entry: Entry) -> tuple[list[str], list[Member | None]]:
    """Return the command line or the URL of an entry, and its members: only these may be changed by an edit."""
    if launched := launch(entry):
        return launched.words, [launched.command, launched.args]
    target = remote(entry)
    return [target.node.value] if target else [], [target]


ADD = "add"
"""The action if the entry does not exist."""
_BLANK = re.compile(r"\s*")
_NOT_ADDED = "cannot be edited without changing more; add or remove the server 'mcpspy' by hand"
_TABLE = re.compile(r"(?m)^\[")


def add_agent(text: str, found: Found, machine: Machine, words: Sequence[str]) -> Plan:
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


def remove_agent(text: str, found: Found, machine: Machine) -> Plan:
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


def move(text: str, found: Found, machine: Machine, routes: Mapping[str, Route], port: int) -> Plan:
    """Change the port of every route in `text`. Raises ConfigError."""
    listed = listed_in(text, found, machine)
    steps = [_other_port(text, entry, routes, port) for entry in listed]
    return Plan(proved(text, (), steps, found, machine), steps, [entry.name for entry in listed])


def _other_port(text: str, entry: Entry, routes: Mapping[str, Route], port: int) -> Step:
    try:
        target = remote(entry)
    except Refusal:
        target = None
    through = routed(target.node.value, routes) if target else None
    if not target or not through or through.port == port or through.name not in routes:
        return Step(entry.name, LEAVE, "not moved")
    new = base(through.name, port)
    edit = other_origin(text, target.node, through.base, new, through.rest)
    return Step(entry.name, ROUTE, f"{new}, before {through.base}", (new + through.rest,), (edit,))
