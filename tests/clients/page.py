"""The parts of `docs/recipes/clients.md` that are generated from the table of clients by `scripts/write-rules`."""

import re
from pathlib import Path

from mcpspy.clients.table import BY_ID
from mcpspy.spec.client_limits import BY_CLIENT

PAGE = Path(__file__).parent.parent.parent / "docs" / "recipes" / "clients.md"
FOLDERS = {"{home}": "~", "{xdg}": "~/.config", "{data}": "~/.local/share", "{project}/": ""}


def document(text):
    """Return `text` with everything between `<!-- ID -->` and `<!-- /ID -->` generated again."""
    return re.sub(
        r"(?s)(<!-- ([\w-]+) -->\n).*?(<!-- /\2 -->)", lambda match: match[1] + part(match[2]) + match[3], text
    )


def part(name):
    """Return the list about one client."""
    client, waits = BY_ID[name], BY_CLIENT.get(name)
    lines = [f"- Tried with {client.version} on {client.checked}." if client.version else "- From its documentation."]
    lines += [f"- File ({place.scope}): {path}" for place in client.places for path in files(place)]
    lines += [f"- After a change: {client.advice.format(name=client.name)}."]
    if client.refuses:
        lines.append(f"- Its parser refuses {' and '.join(client.refuses)}; `doctor` says where.")
    if waits:
        more = f" To give it more: {waits.setting}." if waits.setting else ""
        call = f"{waits.call:g} s" if waits.call else "a long time"
        lines.append(f"- It waits {waits.begin:g} s for a server to begin, and {call} for a call.{more}")
    return "\n".join(lines) + "\n\n"


def files(place):
    """Yield the path of a place as a person writes it, with the variables that move it and its note."""
    moved = ", ".join(f"`{variable}`" for variable, _ in place.variables)
    path = place.path if isinstance(place.path, str) else place.path.get("linux", "")
    if path.startswith("{data}") or (isinstance(place.path, str) and "{config}" not in path):
        for name, short in FOLDERS.items():
            path = path.replace(name, short)
        yield f"`{path}`" + (f", moved by {moved}" if moved else "") + (f"; {note(place)}" if place.note else "")
    elif not place.path and moved:
        yield f"the one that {moved} names"
    elif isinstance(place.path, str):
        yield f"`{place.path.replace('{config}', '~/.config')}` on Linux" + (f"; {note(place)}" if place.note else "")


def note(place):
    """Return the note about a place, without the name of the client."""
    return place.note.format(name="the client")
