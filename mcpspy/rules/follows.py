"""One fault, one finding: which findings follow from others, and so are left out.

`FOLLOWS`: a general rule, and those that say the same of the same part of a message, only better; then the general one
is left out. `UNFIT` and `LOST_ANSWER` explain why a request has no answer: it was faulty itself, and then whoever does
not answer it is not to blame; or its answer was, and then that has a finding already.
"""

from collections.abc import Iterator, Sequence

from mcpspy.conversation.model import Judged
from mcpspy.rules.rule import Fault, Finding, Rule

FOLLOWS: dict[str, tuple[str, ...]] = {
    "schema/invalid": (
        "jsonrpc/id-null",
        "jsonrpc/id-type",
        "jsonrpc/result-and-error",
        "lifecycle/discover-missing-meta",
        "tools/schema-invalid",
        "tools/schema-not-object",
    ),
    "cancel/unknown-request": ("schema/invalid",),
    "jsonrpc/not-an-object": ("jsonrpc/not-a-number",),
    "progress/unknown-token": ("schema/invalid",),
    "tools/arguments": ("schema/invalid",),
}
"""By the rule that follows: those that it follows from, where one pointer lies within the other."""
UNFIT = frozenset(
    {
        "framing/bom",
        "framing/invalid-utf8",
        "framing/oversize",
        "framing/unterminated",
        "jsonrpc/batch",
        "jsonrpc/duplicate-key",
        "jsonrpc/extra-member",
        "jsonrpc/id-fraction",
        "jsonrpc/id-null",
        "jsonrpc/id-type",
        "jsonrpc/lone-surrogate",
        "jsonrpc/not-a-number",
        "jsonrpc/version-missing",
        "lifecycle/discover-missing-meta",
        "lifecycle/meta-missing",
        "pairing/id-in-flight",
        "schema/invalid",
    }
)
"""The rules that a request breaks which peers drop or refuse, or whose answer cannot be told from another's."""
LOST_ANSWER = frozenset(
    {
        "framing/multiline-json",
        "framing/undecodable",
        "http/answer-type",
        "http/not-json",
        "http/redirect-elsewhere",
        "lifecycle/server-exit",
        "jsonrpc/neither-result-nor-error",
        "jsonrpc/not-an-object",
        "pairing/id-loose-match",
        "pairing/orphan-response",
    }
)
"""The rules that an answer breaks which its client cannot take for one: it waits on."""


def specific(faults: Sequence[tuple[Rule, Fault]]) -> list[tuple[Rule, Fault]]:
    """What was found in one message, less what follows from something else of it."""
    return [(rule, fault) for rule, fault in faults if not any(_follows(rule, fault, *other) for other in faults)]


def _follows(rule: Rule, fault: Fault, cause: Rule, why: Fault) -> bool:
    if cause.id not in FOLLOWS.get(rule.id, ()) or why.at is not fault.at:
        return False
    return f"{fault.pointer}/".startswith(f"{why.pointer}/") or f"{why.pointer}/".startswith(f"{fault.pointer}/")


def explained(finding: Finding, message: Judged) -> Iterator[int]:
    """The line numbers of the requests of which a finding about a message explains that they have no answer."""
    if finding.rule in UNFIT:
        yield finding.frame
    if finding.rule in LOST_ANSWER:
        yield from finding.related
        if message.http and message.http.request:
            yield from (carried.n for carried in message.http.request.carried)
