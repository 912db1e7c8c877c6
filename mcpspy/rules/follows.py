"""One fault, one finding: which findings follow from others and are therefore left out.

`FOLLOWS` maps a general rule to rules that report the same fault more precisely. If both find something at the same
part of a message, the general finding is left out. `FOLLOWS_FROM_LOCK` does the same for the findings of a lock, which
the judge does not know. `UNFIT` and `LOST_ANSWER` explain why a request has no answer. In the first case the request is
faulty, and the peer that does not answer it is not responsible. In the second case the answer is faulty and already
has a finding.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    "cancel/id-loose-match": ("schema/invalid",),
    "cancel/unknown-request": ("schema/invalid",),
    "compat/schema-dialect": ("compat/schema-type",),
    "framing/glued": ("http/body-type",),
    "framing/log-record": ("framing/glued",),
    "framing/not-json": ("framing/glued",),
    "http/not-json": ("framing/glued", "http/body-type", "http/notification-status"),
    "jsonrpc/id-null": ("http/notification-status", "pairing/notification-answered"),
    "jsonrpc/neither-result-nor-error": (
        "framing/log-record",
        "http/notification-status",
        "pairing/notification-answered",
    ),
    "jsonrpc/not-an-object": ("http/notification-status", "jsonrpc/not-a-number"),
    "jsonrpc/version-missing": ("framing/log-record", "jsonrpc/neither-result-nor-error"),
    "pairing/answered-late": ("lifecycle/buffered-output",),
    "pairing/duplicate-response": ("pairing/notification-answered",),
    "pairing/orphan-response": (
        "http/session-header-lost",
        "http/session-status",
        "jsonrpc/id-type",
        "pairing/notification-answered",
    ),
    "progress/unknown-token": ("schema/invalid",),
    "schema/format": ("content/image-type",),
    "security/hidden-text": ("security/instructions-to-model",),
    "tools/arguments": ("schema/invalid",),
}
"""By the rule that follows: the rules that it follows from, if one pointer is inside the other."""
FOLLOWS_FROM_LOCK = {
    "security/definition-changed": "security/definition-changed",
    "tools/definition-changed": "lock/changed",
}
"""By the rule that compares two listings of a session: the rule with the same result for the lock (`check --lock`)."""
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
        "tools/schema-not-object",
    }
)
"""Rules whose violation makes peers drop or refuse a request or a listing, or makes an answer ambiguous."""
LOST_ANSWER = frozenset(
    {
        "framing/glued",
        "framing/multiline-json",
        "framing/undecodable",
        "http/answer-type",
        "http/body-type",
        "http/empty-answer",
        "http/event-name",
        "http/host-refused",
        "http/not-json",
        "http/redirect-elsewhere",
        "http/session-header-lost",
        "http/session-lost",
        "http/session-status",
        "http/type-refused",
        "jsonrpc/id-null",
        "jsonrpc/id-type",
        "jsonrpc/neither-result-nor-error",
        "jsonrpc/not-an-object",
        "pairing/duplicate-response",
        "pairing/id-loose-match",
        "pairing/orphan-response",
    }
)
"""Rules about an answer that the client cannot recognize as its answer. The client goes on waiting."""


def specific(faults: Sequence[tuple[Rule, Fault]]) -> Sequence[tuple[Rule, Fault]]:
    """Return the faults of one message, without those that follow from another fault of it.

    The first pass collects the causes, the second looks them up, because a peer may send thousands of bad elements.
    """
    wanted = {cause for name in {rule.id for rule, _ in faults} for cause in FOLLOWS.get(name, ())}
    causes: dict[tuple[str, int], _Places] = {}
    for rule, fault in faults:
        if rule.id in wanted:
            causes.setdefault((rule.id, id(fault.at)), _Places()).add(fault.pointer)
    return [it for it in faults if not _follows(*it, causes)] if causes else faults


def told_by_lock(finding: Finding, of_lock: Iterable[Finding]) -> bool:
    """Return whether a finding of the lock about the same message reports the same change of the same definition."""
    cause = FOLLOWS_FROM_LOCK.get(finding.rule)
    return any(it.rule == cause and _definition(it) == _definition(finding) for it in of_lock)


def _definition(finding: Finding) -> list[str]:
    """Return the pointer of a finding up to the definition: `/result/tools/0`."""
    return finding.pointer.split("/")[:4]


class _Places:
    """Pointers, stored so that a lookup finds whether another pointer is inside one of them or contains one."""

    def __init__(self) -> None:
        self._pointers: set[str] = set()
        self._around: set[str] = set()

    def add(self, pointer: str) -> None:
        if pointer not in self._pointers:
            self._pointers.add(pointer)
            self._around.update(_up(pointer))

    def meet(self, pointer: str) -> bool:
        return pointer in self._around or any(it in self._pointers for it in _up(pointer))


def _up(pointer: str) -> Iterator[str]:
    """Yield a pointer and its parents, up to the pointer of the whole message."""
    while pointer:
        yield pointer
        pointer = pointer.rpartition("/")[0]
    yield ""


def _follows(rule: Rule, fault: Fault, causes: Mapping[tuple[str, int], _Places]) -> bool:
    found = (causes.get((cause, id(fault.at))) for cause in FOLLOWS.get(rule.id, ()))
    return any(places.meet(fault.pointer) for places in found if places)


def explained(finding: Finding, message: Judged) -> Iterator[int]:
    """Yield the line numbers of the requests whose missing answer a finding about a message explains."""
    if finding.rule in UNFIT:
        yield finding.frame
    if finding.rule in LOST_ANSWER:
        yield from finding.related
        if message.http and message.http.request:
            yield from (carried.n for carried in message.http.request.carried)
