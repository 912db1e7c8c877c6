"""The file formats that can be imported, recognised by the content of a file and never by its name."""

import os
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import BinaryIO, NamedTuple

from mcpspy.capture.location import printable_name
from mcpspy.errors import CaptureError, NotACapture
from mcpspy.foreign_file import open_foreign
from mcpspy.importers import claude, har, inspector, mcpsnoop, shared_page, vscode
from mcpspy.importers import flow_file as mitm
from mcpspy.importers.captures import Account, Captures, TooManyValues, Torn
from mcpspy.importers.text import LONGEST, MARK, elements, lines, members

_HEAD = 1 << 16  # bytes by which a file is recognised
_FIRST = 16  # lines or elements that are examined, because one may be damaged
_FLOW = re.compile(rb"\d{1,12}:\d{1,3}:[a-z_]+[;,]")
_KEY = re.compile(rb'"(\w{1,32})"\s*:')
_CURSOR = re.compile(
    rb"Handling (?:ListOfferings|CreateClient|ReloadClient) action|Starting new stdio process with command: "
    rb"|No server info found|listOfferings: Found |Client (?:error|closed) for command"
)
_ARCHIVE = re.compile(rb'\s*\{\s*(?:"[^"]*"\s*:\s*"[^"]*"\s*,\s*)*"log"\s*:\s*\{')


class Form(NamedTuple):
    """One format: its name and unit, what its captures state about it, and the function that reads it."""

    name: str
    unit: str
    approximate: tuple[str, ...]
    """What differs in the captures from the wire: `times of events`, `times of stderr`, `time zone`, `bytes`."""
    missing: tuple[str, ...]
    """What the format cannot contain: `heads`, `stderr`, `argv`."""
    record: Callable[[BinaryIO, Captures], None]


MITM = Form("a flow file of mitmproxy", "flow", ("times of events",), (), mitm.record)
HAR = Form("a HAR", "request", ("times of events", "bytes"), (), har.record)
HISTORY = Form("a history of the MCP Inspector", "message", ("bytes",), ("heads", "stderr"), inspector.record_history)
NETWORK = Form(
    "a network log of the MCP Inspector",
    "request",
    ("times of events", "bytes"),
    (),
    inspector.record_network,
)
CLAUDE = Form("a log of Claude Desktop", "line", ("times of stderr", "bytes"), ("argv",), claude.record)
VSCODE = Form("a log of VS Code", "line", ("time zone", "bytes"), ("heads", "argv"), vscode.record)
MCPSNOOP = Form("a session log of mcpsnoop", "line", ("bytes",), ("heads",), mcpsnoop.record)
SHARED = Form("a page of 'mcpspy share'", "capture", (), (), shared_page.record)
FORMS = (MITM, HAR, HISTORY, NETWORK, CLAUDE, VSCODE, MCPSNOOP, SHARED)


def bring(
    path: str,
    environ: Mapping[str, str],
    folder: str | None = None,
    advance: Callable[[int], None] = lambda _: None,
) -> Account:
    """Import the file at `path` to captures in `folder`, or in the default directory; return how much was read.

    `advance` is called with the number of bytes of the file that were processed.

    Raises CaptureError if the file cannot be read, has an unknown format, or if captures cannot be written.
    """
    try:
        with open_foreign(path) as file:
            return _bring(file, path, environ, folder, advance)
    except OSError as error:
        raise CaptureError(f"cannot read {path}: {error.strerror}") from error


def _bring(
    file: BinaryIO, path: str, environ: Mapping[str, str], folder: str | None, advance: Callable[[int], None]
) -> Account:
    try:
        form = recognise(file)
    except CaptureError as error:
        raise CaptureError(f"{path} {error}") from None
    if form is None:
        known = ", ".join(each.name for each in FORMS)
        raise NotACapture(f"{path} has no format that can be imported; the formats are: {known}")
    account = Account(form.unit, advance=advance)
    imported = {"from": form.name, "approximate": list(form.approximate), "missing": list(form.missing)}
    name = printable_name(os.path.splitext(os.path.basename(path))[0])
    captures = Captures(imported, environ, account, name, folder)
    file.seek(0)
    try:
        form.record(file, captures)
    finally:
        captures.end()
    return account


def recognise(file: BinaryIO) -> Form | None:
    """Return the format of a file, or None if it is unknown.

    Raises CaptureError for a capture, which needs no import, and for a log without messages.
    """
    head = file.read(_HEAD).removeprefix(MARK)
    if head.startswith(b'{"mcpspy":'):
        raise CaptureError("is a capture already: 'mcpspy show' reads it")
    if _FLOW.match(head):
        return MITM
    if _ARCHIVE.match(head):
        return HAR
    if head.lstrip()[:1] == b"[":
        return _inspector(file)
    if head.lstrip()[:9].lower() == b"<!doctype" and shared_page.recognised(file):
        return SHARED
    if log := _log([line.removesuffix(b"\r") for line in head.split(b"\n")]):
        return log
    if any({"session_id", "seq", "ts", "direction"} <= _keys(line or b"") for line in islice(lines(file), _FIRST)):
        return MCPSNOOP
    return None


def _log(head: list[bytes]) -> Form | None:
    """Return which log of a client this is, by its first lines. Raises CaptureError for one of Cursor."""
    if any(map(claude.LINE.fullmatch, head)):
        return CLAUDE
    texts = [found["rest"] for line in head if (found := vscode.LINE.fullmatch(line))]
    if any(map(vscode.KNOWN.match, texts)):
        return VSCODE
    if any(map(_CURSOR.search, texts)):
        raise CaptureError("is a log of Cursor, which has no messages; to record them, run 'mcpspy install cursor'")
    return None


def _inspector(file: BinaryIO) -> Form | None:
    """Return which array of the Inspector this is, by its first elements."""
    try:
        for offset, size in islice(elements(file, ()), _FIRST):
            file.seek(offset)
            keys = _keys(file.read(min(size, LONGEST)))
            if {"timestamp", "direction", "message"} <= keys:
                return HISTORY
            if {"timestamp", "method", "url", "requestHeaders"} <= keys:
                return NETWORK
    except Torn:
        pass
    return None


def _keys(raw: bytes) -> set[str]:
    """Return the keys of an object; of one that is too large to be parsed, the keys in its first bytes."""
    try:
        return set(members(raw.decode("utf-8", "replace")))
    except TooManyValues:
        return {key.decode() for key in _KEY.findall(raw, 0, _HEAD)}
    except (ValueError, RecursionError):
        return set()
