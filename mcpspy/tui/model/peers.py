"""What client and server declare about themselves, as a list of facts; each fact knows its frame.

A peer may send anything: unknown members are shown unchanged, as JSON. Their number and their lengths are limited. The
texts are not made printable here; the view does that.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.times import waited_text
from mcpspy.cost import compact_json, tokens_text
from mcpspy.overview import Peer
from mcpspy.text import plural, size_text
from mcpspy.tui.model.merged import Merged

_MEMBERS, _LONG = 60, 4000  # maximum facts of one kind, and characters of one fact
_INSTRUCTIONS = 100_000  # maximum characters
_NAMES = 200  # maximum number of listed names
_ICON = ("src", "mimeType", "sizes", "theme")
_LISTINGS = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resourceTemplates": "templates"}


class Fact(NamedTuple):
    """One fact, or a heading."""

    title: str
    text: str = ""
    n: int = 0
    """The line number of the frame that states it; 0 if there is none."""
    heading: bool = False


def facts(shown: OpenCapture | Merged) -> Iterator[Fact]:
    """Yield what is known about both sides, and how long each was waited for; for a merge, session by session.

    Sessions of a merge run side by side, so their times do not add up.
    """
    if isinstance(shown, Merged):
        for number, session in enumerate(shown.sessions):
            yield Fact("" if number else "waited for", f"{session.header.name}: {_waited(session)}")
        for session in shown.sessions:
            yield from (Fact(""), Fact("session", session.header.name, heading=True))
            yield from (it._replace(n=shown.number(session, it.n)) for it in _sides(session))
    else:
        yield Fact("waited for", _waited(shown))
        yield from _sides(shown)


def _waited(session: OpenCapture) -> str:
    return waited_text(session.times.spent) or "nothing so far"


def _sides(session: OpenCapture) -> Iterator[Fact]:
    """Yield what is known about both sides of one session, and what the server lists."""
    announced = session.announced
    for side, peer in (("client", announced.client), ("server", announced.server)):
        yield Fact("")
        if peer is None:
            yield Fact(side, "has sent no name", heading=True)
            continue
        yield Fact(side, "", peer.n, heading=True)
        yield from _peer(side, peer, asked=announced.client.revision if announced.client else "")
        declared = {name: sides[side] for name, sides in announced.extensions.sides.items() if side in sides}
        for name, n in islice(sorted(declared.items()), _MEMBERS):
            yield Fact("extension", name, n)
    yield from _lists(session)


def _peer(side: str, peer: Peer, asked: str) -> Iterator[Fact]:
    """Yield what one side states about itself."""
    told, n = peer.told, peer.n
    identity: dict[str, Any] = told.identity if told and isinstance(told.identity, dict) else {}
    for key, value in islice(identity.items(), _MEMBERS):
        if key == "icons" and isinstance(value, list):
            yield from (Fact("icon", _icon(icon), n) for icon in value[:_MEMBERS])
        else:
            yield Fact("website" if key == "websiteUrl" else key, _value(value), n)
    if peer.revision:
        other = f"; the client asks for {asked}" if side == "server" and asked not in ("", peer.revision) else ""
        yield Fact("revision", f"{'asks for' if side == 'client' else 'agrees to'} {peer.revision}{other}", n)
    capabilities = told.capabilities if told else None
    if isinstance(capabilities, dict):
        for name, options in islice(capabilities.items(), _MEMBERS):
            yield Fact("capability", name if options in ({}, None) else f"{name}  {_value(options)}", n)
    if not capabilities:
        yield Fact("capability", "none", n)
    if told and isinstance(told.instructions, str) and told.instructions:
        text = told.instructions
        yield Fact("instructions", f"{size_text(peer.instructions)}, {tokens_text(peer.instructions)} tokens", n)
        yield Fact("", text[:_INSTRUCTIONS] + "…" * (len(text) > _INSTRUCTIONS), n)


def _lists(session: OpenCapture) -> Iterator[Fact]:
    """Yield what the server lists."""
    first = True
    for kind, title in _LISTINGS.items():
        listing = session.announced.listings.get(kind)
        if listing is None:
            continue
        if first:
            yield from (Fact(""), Fact("lists", heading=True))
            first = False
        shown = [name or "(no name)" for name in listing.names[:_NAMES]]
        more = f" and {listing.count - len(shown):,} more" if listing.count > len(shown) else ""
        count = f"{plural(listing.count, title.removesuffix('s'))}, {size_text(listing.size)}"
        yield Fact(title, f"{count}{': ' if shown else ''}{', '.join(shown)}{more}", listing.n)


def _icon(icon: Any) -> str:
    """Return the URL and type of an icon, shortened: a `data:` URL is long, and its start shows enough."""
    if not isinstance(icon, dict):
        return _value(icon)
    return "  ".join(_value(icon[key])[:300] for key in _ICON if key in icon)


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else compact_json(value).decode()
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
