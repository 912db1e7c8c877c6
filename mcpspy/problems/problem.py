"""A problem: something that a user lost, with its cause."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from mcpspy.text import plural

Kind = Literal["start", "handshake", "login", "connection", "exit", "not-offered", "call", "hung", "noise", "fault"]
KINDS: dict[Kind, str] = {
    "start": "the server did not start",
    "handshake": "the handshake failed",
    "login": "login failed",
    "connection": "the connection was refused or broke",
    "exit": "the server ended",
    "not-offered": "a tool was not offered",
    "call": "a request failed",
    "hung": "a request was never answered",
    "noise": "text on stdout that is not MCP",
    "fault": "a fault that costs something, although no request failed",
}
"""What each kind means; in the order in which problems are listed, because an earlier kind may cause a later one."""

Certainty = Literal["known", "likely", "unknown"]
"""`known`: a finding, a status or an exit code proves it; `likely`: it happened at that time; `unknown`."""


class Cause(NamedTuple):
    """Why something failed, as one sentence."""

    text: str
    certainty: Certainty = "known"
    rows: tuple[int, ...] = ()
    """The line numbers that show it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a user lost, with its cause. Equal problems are one, with a count."""

    kind: Kind
    sentence: tuple[str, ...]
    """Who and what, as what comes before and after the words for how often."""
    side: str
    """The responsible side: client, server, network, gate; `unknown` if nothing shows it."""
    cause: Cause
    further: tuple[Cause, ...] = ()
    """What else may explain it, or help to find the cause."""
    advice: tuple[str, ...] = ()
    """What to do."""
    count: int = 1
    """How often it happened."""
    failed: int = 0
    """The number of failed requests in it."""
    method: str | None = None
    name: str | None = None
    """The tool, prompt or resource concerned."""
    rows: tuple[int, ...] = ()
    """The line numbers that prove it, in order; of many equal ones, those of the first."""
    t: int = 0
    """When it happened first, in nanoseconds since the capture started."""
    rules: tuple[str, ...] = ()
    """The rules of the findings that it contains, so that they are not shown twice."""
    likeness: str = ""
    """What equal problems of other sessions share."""

    @property
    def headline(self) -> str:
        """One sentence: who, what, how often."""
        return (f" {plural(self.count, 'time')}" if self.count > 1 else "").join(self.sentence)
