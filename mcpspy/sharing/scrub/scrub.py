"""One scrub of one capture, in two passes.

A secret that has a name in one place may appear in other places without a name. So the first pass reads the capture to
learn all values, and discards its output. The second pass does the same again, and knows every value from the first
line on. Both passes are the same code, and both stream: only the values are kept.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import orjson

from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.reader import Capture
from mcpspy.capture.scan import FileLines
from mcpspy.report.checked import Checked, Repeated
from mcpspy.rules import Finding
from mcpspy.secrets.tokens import has_escapes, in_frame
from mcpspy.sharing.scrub.lines import DAMAGED, FrameScrub, LineScrub, RecordScrub
from mcpspy.sharing.scrub.messages import MessageScrub
from mcpspy.sharing.scrub.texts import ScrubOptions, Texts, is_suspicious
from mcpspy.sharing.scrub.values import WITHHELD, Category, KnownValues, Leftover, Leftovers, may_have_leftovers

Read = Callable[[int], None]
_SHORT_NAMES = re.compile(r'(?:[pP](?:ins?|at)|P(?:INS?|AT))\d*\\*"')
"""Names that are parts of many words: they count only at the end of a string."""
_CHUNK = 1 << 20  # bytes read at once
_ITEM = re.compile(r"/\d+(?=/|#|$)")


@dataclass(frozen=True, slots=True)
class Replaced:
    """A value that is replaced, and how often."""

    kind: str
    """For people: `GitHub token`, `e-mail address`."""
    label: str
    count: int
    """The number of places."""
    first: int
    """The number of the first record."""


@dataclass(frozen=True, slots=True)
class ScrubbedPlace:
    """A place at which something is replaced."""

    n: int
    """The number of the record."""
    where: str
    """A JSON Pointer into the message, or words such as `header Authorization`; empty for the whole frame."""
    category: Category
    label: str


class Scrub:
    """One scrub of one capture: what is replaced, what is left, and the lines of the new capture.

    The constructor reads the capture once. Raises CaptureError if it cannot be read.
    """

    def __init__(self, path: str, options: ScrubOptions = ScrubOptions(), read: Read | None = None) -> None:  # noqa: B008
        """`read` is called with the number of bytes of each chunk that the first pass has read."""
        self._path = path
        self._options = options
        self._known = KnownValues()
        self._undecoded: set[int] = set()
        self._size: int | None = None  # bytes that the first pass has read; a live capture grows
        self.live = Capture(path).live
        """Whether a relay was still writing the capture, which is then scrubbed as far as it goes."""
        size = 0

        def advance(number: int) -> None:
            nonlocal size
            size += number
            if read:
                read(number)

        leftovers = Leftovers()
        self.damaged = sum(line == DAMAGED for line in self._pass(lambda _: None, leftovers).lines(advance))
        """The number of damaged lines."""
        self._size = size
        self.leftovers: tuple[Leftover, ...] = leftovers.of(self._known)
        """What still looks random, the most frequent first."""

    @cached_property
    def replaced(self) -> tuple[Replaced, ...]:
        """What is replaced, in the order of first appearance; the capture is read again to count it."""
        counts: dict[tuple[str, str], tuple[int, int]] = {}
        for place in self.places():
            key = place.category.title, place.label
            count, first = counts.get(key, (0, place.n))
            counts[key] = count + 1, first
        return tuple(Replaced(kind, label, *found) for (kind, label), found in counts.items())

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the new capture, each with its newline, read again from the file."""
        return self._pass(lambda _: None, None).lines(None)

    def text(self, text: str) -> str:
        """Scrub a text that is not part of the capture, such as its name."""
        return self._pass(lambda _: None, None).texts.text(text)

    def places(self, read: Read | None = None) -> Iterator[ScrubbedPlace]:
        """Yield each place at which something is replaced, read again from the file."""
        found: list[ScrubbedPlace] = []
        for _ in self._pass(found.append, None).lines(read):
            yield from found
            found.clear()

    def _pass(self, note: "Callable[[ScrubbedPlace], None]", leftovers: Leftovers | None) -> "_Pass":
        return _Pass(self._path, self._size, self._options, self._known, self._undecoded, note, leftovers)


def check(path: str, options: ScrubOptions, read: Read | None = None) -> Checked:
    """Find what `scrub` would replace in a capture, without the values; session ids and requestStates are no secrets.

    Repeated findings are one for each kind and place; the elements of an array count as one place.
    """
    first: dict[tuple[str, str, str], ScrubbedPlace] = {}
    repeated: dict[tuple[str, str, str], Repeated] = defaultdict(Repeated)
    for place in Scrub(path, options, read).places():
        if place.category.rule:
            kind = place.category.rule, place.category.title, _ITEM.sub("/*", place.where)
            first.setdefault(kind, place)
            repeated[kind].add(place.n)
    findings = [repeated[kind].told(_finding(place)) for kind, place in first.items()]
    return Checked(path, 0, (), tuple(sorted(findings, key=lambda it: (it.frame, it.pointer, it.rule))))


def _finding(place: ScrubbedPlace) -> Finding:
    return Finding(place.category.rule, "error", "", place.n, 0, (), place.where, place.category.title, None, "")


class _Pass:
    """One reading of the capture."""

    def __init__(
        self,
        path: str,
        size: int | None,
        options: ScrubOptions,
        known: KnownValues,
        undecoded: set[int],
        note: Callable[[ScrubbedPlace], None],
        leftovers: Leftovers | None,
    ) -> None:
        self._path = path
        self._size = size
        self._options = options
        self._known = known
        self._undecoded = undecoded
        self._note = note
        self._leftovers = leftovers
        self.texts = texts = Texts(known, self._found, self._left if leftovers else None, options)
        self._messages = MessageScrub(texts, known, options.keep)
        frames = FrameScrub(self._messages, texts)
        self._records = RecordScrub(frames, self._messages, texts)
        self._lines = LineScrub(self._records, frames, self._is_suspicious, undecoded, self._withheld)

    def lines(self, read: Read | None) -> Iterator[bytes]:
        """Yield the lines of the new capture."""
        for line in _file_lines(self._path, self._size, read):
            if b'"reason"' in line and line.startswith(b'{"kind":"close"'):
                self._learn_undecoded(line)
            yield from self._lines.feed(line)
        yield from self._lines.end()

    def _learn_undecoded(self, line: bytes) -> None:
        """Note a channel whose content coding could not be decoded: the second pass withholds its frames."""
        try:
            fields = orjson.loads(line)
        except ValueError:
            return
        if fields.get("reason") is not None and fields.get("code") is None and isinstance(fields.get("ch"), int):
            self._undecoded.add(fields["ch"])

    def _is_suspicious(self, text: str, line: bytes) -> bool:
        """Return whether a line, as text and as bytes of the file, has to be examined string by string."""
        return (
            bool(self._options.replace)
            or (self._leftovers is not None and may_have_leftovers(line))
            or may_change(self._known, text, line, only_secrets=self._options.only_secrets)
        )

    def _where(self) -> str:
        return self._records.words or self._messages.where

    def _found(self, category: Category, label: str) -> None:
        self._note(ScrubbedPlace(self._lines.n, self._where(), category, label))

    def _withheld(self, label: str) -> None:
        self._note(ScrubbedPlace(self._lines.n, "", WITHHELD, label))

    def _left(self, text: str) -> None:
        if self._leftovers is not None:
            self._leftovers.look(text, self._lines.n, self._where())


def may_change(known: KnownValues, text: str, line: bytes, *, only_secrets: bool = False) -> bool:
    """Return whether a scrub may replace anything in a frame's line, as text and as bytes; never wrongly False."""
    return (
        is_suspicious(text, only_secrets=only_secrets)
        or known.may_stand_in(text)
        or in_frame(line) is not None
        or has_escapes(text)
        or "\\\\u" in text  # it may contain an escaped name
        or _SHORT_NAMES.search(text) is not None
        or "\\u001b[" in text  # a colour before a word
    )


def _file_lines(path: str, size: int | None, read: Read | None) -> Iterator[bytes]:
    """Yield the lines of a capture and its further files, without newlines; the first `size` bytes, or all."""
    lines = FileLines()
    with JoinedFiles(path) as file:
        while chunk := file.read(_CHUNK if size is None else min(_CHUNK, size - file.tell())):
            if read:
                read(len(chunk))
            yield from lines.feed(chunk)
    if lines.unfinished:
        yield lines.pending
