"""The rules of expectations: what a user expects of a session. `mcpspy.contract` checks it.

They are in the table so that reports, waivers and filters know them. They look at no message, so the judge finds
nothing with them.
"""

from collections.abc import Iterator

from mcpspy.conversation.model import Message, Session
from mcpspy.rules.rule import Blame, Fault, rule

_CALLED = """
        = 2025-06-18
        > 2 tools/call {"name":"echo","arguments":{"text":"a"}}
        @1 < 2 = {"content":[]}
"""
_OTHER = """
        = 2025-06-18
        > 2 tools/call {"name":"other"}
        < 2 = {"content":[]}
"""
_FAILED = """
        = 2025-06-18
        > 2 tools/call {"name":"echo","arguments":{"text":5}}
        @9 < 2 ! {"code":-32603,"message":"no"}
"""
_CALLS = "server/tools#calling-tools"


def _expected(id: str, explanation: str, fix: str, blame: Blame, spec: str, fails: str, passes: str) -> None:  # noqa: A002
    """Enter a rule that looks at no message."""

    @rule(id, "error", explanation, fix=fix, blame=blame, spec=spec, fails=fails, passes=passes, on=())
    def nothing(message: Message, session: Session) -> Iterator[Fault]:
        return iter(())


_expected(
    "expect/called",
    """A tool was called less or more often than expected (`[[tool]]` with `times`, `--expect-tool`). The examples
    expect one call of echo.""",
    "Look at the calls that the finding names, and correct the client, its prompt or the expectation.",
    "client",
    _CALLS,
    _OTHER,
    _CALLED,
)
_expected(
    "expect/never",
    "A tool was called that must not be called (`never`, `--forbid-tool`). The examples forbid the tool other.",
    "Keep the client from calling the tool, or correct the expectation.",
    "client",
    _CALLS,
    _OTHER,
    _CALLED,
)
_expected(
    "expect/arguments",
    """The arguments of a call do not satisfy the `schema` of an expectation. The examples expect that `text` is a
    string.""",
    "Correct the arguments, or the schema in the file of expectations.",
    "client",
    _CALLS,
    _FAILED,
    _CALLED,
)
_expected(
    "expect/call-duration",
    """A call took longer than expected (`max_duration` of a `[[tool]]`), or was not answered. Time in which a person
    was asked, or a gate held the request, does not count. The examples expect at most two seconds.""",
    "Make the tool faster, or allow more time.",
    "server",
    _CALLS,
    _FAILED,
    _CALLED,
)
_expected(
    "expect/order",
    """Tools were not called in the expected `order`. Other calls in between are allowed. The examples expect echo, then
    other.""",
    "Correct the order of the calls, or the expectation.",
    "client",
    _CALLS,
    _CALLED,
    _CALLED + '        > 3 tools/call {"name":"other"}\n        < 3 = {"content":[]}\n',
)
_expected(
    "expect/duration",
    """The session took longer than expected (`max_duration` of `[session]`, `--max-duration`). A session on stdio lasts
    from its first message to its end, a session over HTTP to its last message. The examples expect at most five
    seconds.""",
    "Run `mcpspy stats` to see where the time was spent, or allow more time.",
    "client",
    _CALLS,
    _FAILED,
    _CALLED,
)
_expected(
    "expect/tokens",
    """The definitions and results of tools take more of a model's context than expected (`max_tokens`). The number is
    an estimate: a quarter of the bytes of compact JSON. The examples expect at most 20 tokens.""",
    "Shorten definitions and results, or allow more tokens; `mcpspy stats` shows what takes most.",
    "server",
    "server/tools#tool-result",
    _CALLED.replace("[]", '[{"type":"text","text":"' + "a" * 60 + '"}]'),
    _CALLED,
)
_expected(
    "expect/no-error",
    """A request failed, but `no_errors` or `--no-failures` is set: an error, a result with `isError`, a refusal over
    HTTP, a time-out, no response. Steps of a negotiation, and what the client repeated with success, do not count.""",
    "Correct what the finding names, or remove the expectation.",
    "sender",
    "server/tools#error-handling",
    _FAILED,
    _CALLED,
)
_expected(
    "expect/stderr",
    """The server wrote a line to stderr that contains a forbidden text (`stderr_without`). The examples forbid
    `Traceback`.""",
    "Look at the line, and correct the server or the expectation.",
    "server",
    "basic/transports#stdio",
    _CALLED + "        ! Traceback (most recent call last):\n",
    _CALLED + "        ! listening\n",
)
_expected(
    "expect/start",
    """The first answer of the server came later than expected (`started_within`), or never. Time counts from the start
    of the server on stdio, from the first request over HTTP. The examples expect a second.""",
    "Make the server start faster, or allow more time.",
    "server",
    "basic/lifecycle#initialization",
    "        > 1 ping\n        @3 < 1 = {}\n",
    _CALLED,
)
