"""`mcpspy lock`: write what servers offer to a file, which is committed and compared with later captures."""

import argparse
import os
import tempfile
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from mcpspy.capture.location import server_name
from mcpspy.capture.reader import Capture
from mcpspy.cli.access import access_to_url
from mcpspy.cli.output import ProgressBar, refuse_to_overwrite, say, size_of
from mcpspy.cli.targets import capture_paths
from mcpspy.contract import lock as lock_file
from mcpspy.contract.ask import ROOM, record_offer
from mcpspy.contract.changes import LockChange, between
from mcpspy.contract.lock import KINDS, NOUNS, Lock, LockedServer, Offered, entry_of, locked, offers
from mcpspy.cost import tokens_text
from mcpspy.errors import CaptureError, UsageError
from mcpspy.network.access import Access
from mcpspy.report.lines import finding_head
from mcpspy.secrets.redactor import Redactor
from mcpspy.text import plural, printable
from mcpspy.transport.link import Link

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink


def run(options: argparse.Namespace) -> int:
    """Lock the servers. Returns 1 if the file has different content and was not changed."""
    sources = [bool(options.captures), bool(options.url), bool(options.server)]
    if sum(sources) != 1:
        raise UsageError("lock needs captures, or a server: mcpspy lock CAPTURE..., --url URL, or -- COMMAND [ARG...]")
    access = access_to_url(options)
    known = _known(options.output, update=options.update)
    found = _from_captures(options, known) if options.captures else _from_server(options, access, known)
    new = known | {name: known[name].updated(server) if name in known else server for name, server in found.items()}
    changes = {name: list(between(known[name], new[name])) for name in found if name in known}
    for name, server in new.items():
        if name in found:
            _print(name, server, changes.get(name))
    differing = sum(bool(told) for told in changes.values())
    if differing and not options.update:
        say(f"{options.output} was not changed: differences in {plural(differing, 'server')}; --update accepts them")
        return 1
    if lock_file.as_text(new) == lock_file.as_text(known) and os.path.exists(options.output):
        say(f"{options.output} is up to date")
        return 0
    lock_file.write(options.output, new)
    say(f"{options.output} has {plural(len(new), 'server')}")
    return 0


def _known(path: str, *, update: bool) -> Lock:
    """Return the current content of the file. An entry that was edited by hand can only be replaced."""
    if not os.path.lexists(path):
        return {}
    try:
        return lock_file.read(path)
    except lock_file.EditedLock as error:
        if not update:
            raise
        say(f"{error}; servers that were edited there count as not locked")
        return error.sound


def _from_captures(options: argparse.Namespace, known: Lock) -> Lock:
    paths = list(capture_paths(options.captures))
    refuse_to_overwrite("-o", options.output, paths)
    found: Lock = {}
    with ProgressBar("reading", sum(map(size_of, paths))) as bar:
        for path in paths:
            capture, seen = Capture(path), False
            for offered in offers(capture, bar.advance):
                server = locked(offered)
                name = options.name or _name(known, offered, capture.header.name)
                if server.told or server.listings:
                    seen = True
                    found[name] = found[name].updated(server) if name in found else server
                for kind, listing in offered.listings.items():
                    if not listing.whole:
                        say(f"{path}: not all pages of {NOUNS[kind]}s are there; they are left out")
            if not seen:
                raise CaptureError(f"{path} has no handshake and no complete listing: nothing to lock")
    if options.name and len(paths) > 1:
        say(
            f"all captures count as one server, {printable(options.name, 100)}: the last listing of each kind is locked"
        )
    return found


def _from_server(options: argparse.Namespace, access: Access, known: Lock) -> Lock:
    """Start the server or connect to it, and list what it offers."""
    argv: list[str] = options.server
    name = options.name or (server_name(argv, Redactor().argv(argv)) if argv else "server")
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        path = os.path.join(folder, "session.jsonl")
        record_offer(partial(_connect, options, access, name, path))
        for offered in offers(Capture(path)):
            server = locked(offered)
            unknown = [kind for kind in KINDS if kind not in server.listings]
            if server.told and unknown:
                what = f"the list of {NOUNS[unknown[0]]}s"
                raise CaptureError(f"{what} that the server sends cannot be read: it is too long, or is not an array")
            if server.told:
                return {options.name or _name(known, offered, name): server}
    raise CaptureError("the server does not introduce itself: there is nothing to lock")


def _name(known: Lock, offered: Offered, capture: str) -> str:
    """Return the name of a server in the file: of its existing entry, else its own name, else that of the capture."""
    return entry_of(known, offered.name, capture) or offered.name or capture


def _connect(options: argparse.Namespace, access: Access, name: str, path: str) -> "Link | WebLink":
    if os.path.exists(path):
        os.unlink(path)
    if options.url:
        from mcpspy.transport.http_link import WebLink

        return WebLink(options.url, options.header, name, path, ROOM, access)
    return Link(options.server, name, path, say, ROOM)


def _print(name: str, server: LockedServer, changes: Sequence[LockChange] | None) -> None:
    """Print a line for the server, and one for each change."""
    known = [plural(len(server.listings[kind]), NOUNS[kind]) for kind in KINDS if server.listings.get(kind)]
    told = ", ".join(known) or "nothing listed"
    state = "new" if changes is None else f"{plural(len(changes), 'change')}" if changes else "unchanged"
    print(f"{printable(name, 100)}: {told}, {tokens_text(4 * server.cost)} tokens ({state})")
    for change in changes or ():
        print(f"{finding_head(change.severity, change.rule)}  {printable(change.sentence, 500)}")
