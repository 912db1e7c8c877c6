"""The problems of a session, or of all sessions of a merge, as lines that can be folded, without a screen.

Each problem has the line of its headline and one for each cause; unfolded, also one for each row that proves it. The
problems may change while a session grows, so a line is addressed by its content, never by its position alone.
"""

import time
from typing import NamedTuple

from mcpspy.browse.timeline import OpenCapture
from mcpspy.problems.problem import KINDS, Cause, Problem
from mcpspy.report.problems import labelled_causes
from mcpspy.tui.model.merged import Merged

_PAUSE = 20  # a thousand problems take 0.1 s: so much longer is the pause after it


class ProblemLine(NamedTuple):
    """The line of a headline, of a cause, or of a row."""

    session: OpenCapture
    problem: Problem
    label: str = ""
    """What precedes a cause: the responsible side and the certainty."""
    cause: Cause | None = None
    row: int = 0
    """The line number of a row in the session."""

    @property
    def proof(self) -> int:
        """The line number of the row that it leads to; 0 if there is none."""
        rows = (self.cause or self.problem.cause).rows
        return self.row or (rows or self.problem.rows[-1:] or (0,))[0]


class ProblemLines:
    """The lines so far. Call `arrange` after the sessions have grown."""

    def __init__(self, shown: OpenCapture | Merged) -> None:
        self._shown = shown
        self._unfolded: set[tuple[str, str]] = set()
        self._lines: list[ProblemLine] = []
        self._versions: list[int] = []
        self._again = 0.0  # when the lines may be made again
        self.arrange()

    def __len__(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def at(self, line: int) -> ProblemLine:
        """Return the entry on a line."""
        return self._lines[line]

    def line_of(self, place: ProblemLine) -> int:
        """Return the current line of an entry: if it is gone, the line of its problem's headline, else 0."""
        alike = [at for at, it in enumerate(self._lines) if _key(it) == _key(place)]
        same = [at for at in alike if (self._lines[at].cause, self._lines[at].row) == (place.cause, place.row)]
        return (same or alike or [0])[0]

    def arrange(self) -> None:
        """Show what the problems are now; if that takes long, not too often."""
        versions, now = [session.problems.version for session in self._shown.sessions], time.monotonic()
        if versions != self._versions and now >= self._again:
            self._versions = versions
            self._make()
            self._again = now + _PAUSE * (time.monotonic() - now)

    def is_unfolded(self, place: ProblemLine) -> bool:
        """Return whether the rows of a problem are shown."""
        return _key(place) in self._unfolded

    def fold(self, place: ProblemLine, *, unfold: bool) -> None:
        """Fold or unfold a problem."""
        (self._unfolded.add if unfold else self._unfolded.discard)(_key(place))
        self._make()

    def fold_all(self, *, unfold: bool) -> None:
        """Fold or unfold all problems."""
        self._unfolded = set(map(_key, self._lines)) if unfold else set()
        self._make()

    def number(self, place: ProblemLine, n: int) -> int:
        """Return the number of the row on line `n` of an entry's session; in a merge 0 before the row is merged."""
        return self._shown.number(place.session, n) if isinstance(self._shown, Merged) else n

    def _make(self) -> None:
        sessions, kinds = self._shown.sessions, list(KINDS)
        found = [ProblemLine(session, problem) for session in sessions for problem in session.problems.made()]
        self._lines = []
        for headline in sorted(found, key=lambda it: kinds.index(it.problem.kind)):
            self._lines.append(headline)
            causes = labelled_causes(headline.problem)
            self._lines += [headline._replace(label=label, cause=cause) for label, cause in causes]
            if self.is_unfolded(headline):
                self._lines += [headline._replace(row=n) for n in headline.problem.rows]


def _key(place: ProblemLine) -> tuple[str, str]:
    """Return what identifies a problem."""
    return place.session.path, place.problem.likeness
