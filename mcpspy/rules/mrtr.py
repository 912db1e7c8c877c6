"""Rules about multi-round trips (2026-07-28): a server answers with a request for input, and the client retries.

Each round is an exchange of its own. A retry is recognized only by the members that only a retry has (`inputResponses`,
`requestState`). It continues the latest answer to an equal request, and the state tells which one. That answer may be
recorded a moment later, so every check of a retry runs a second after it.
"""

from collections.abc import Iterator

from mcpspy.conversation.bounds import REMEMBERED, keep
from mcpspy.conversation.context import ASKED, capabilities
from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.pairing import continued, mark, rounds_before
from mcpspy.conversation.times import PERSONAL
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.lifecycle.capabilities import undeclared
from mcpspy.rules.rule import Fault, Later, StatefulCheck, rule
from mcpspy.spec.revisions import ROUNDS
from mcpspy.wire.jsonrpc import Request, Result

_MRTR = "basic/patterns/mrtr"
_ASKING = ("tools/call", "prompts/get", "resources/read")
"""Methods whose answer may request input."""
_SOON, _BY_A_PERSON = 10_000_000_000, 600_000_000_000  # nanoseconds for which a client may take to find the input


@rule(
    "mrtr/state-missing",
    "error",
    """The `input_required` result had a `requestState`, but the retry (the request that is sent again, with the input)
    does not. The retry must repeat it, otherwise the server cannot match the two.""",
    fix="Copy `requestState` from the result into the `params` of the retry.",
    meanwhile="Answer a retry without its state with an error.",
    blame="client",
    spec=_MRTR,
    about="meta",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}}}
    """,
    passes="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}
    """,
    on=(Request,),
)
def state_missing(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a retry without the `requestState` of the answer."""
    params = member(message.body.value, "params")
    if member(params, "inputResponses") is None or member(params, "requestState") is not None:
        return

    def question() -> Iterator[Fault]:
        rounds = rounds_before(message)
        if rounds and all(known.state is not None for known in rounds):
            answer = rounds[-1].answer
            yield Fault(f"the retry lacks the requestState of #{answer}", "/params", (answer,))

    yield Later(question())


@rule(
    "mrtr/state-changed",
    "error",
    "The retry must repeat `requestState` unchanged, and have none if the result had none.",
    fix="Copy `requestState` from the result into the retry unchanged; leave it out if the result has none.",
    meanwhile="Verify `requestState`, and refuse one that you did not issue.",
    blame="client",
    spec=_MRTR,
    about="meta",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s2"}
    """,
    passes="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}},"requestState":"s1"}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}},"requestState":"s1"}
    """,
    on=(Request,),
)
def state_changed(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a retry with another `requestState` than the answer."""
    echoed = member(message.body.value, "params", "requestState")
    if echoed is None:
        return

    def question() -> Iterator[Fault]:
        rounds = rounds_before(message)
        if rounds and all(known.state != mark(echoed) for known in rounds):
            known = rounds[-1]
            what = "has a requestState, but there is none in" if known.state is None else "changes the requestState of"
            yield Fault(f"the retry {what} #{known.answer}", "/params/requestState", (known.answer,))

    yield Later(question())


@rule(
    "mrtr/unrequested-input",
    "warning",
    "`inputResponses` has a key that is not in `inputRequests`. Servers ignore it.",
    fix="Use the keys of `inputRequests` as the keys of `inputResponses`.",
    blame="client",
    spec=_MRTR,
    about="meta",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        > 2 tools/call {META "name":"book","inputResponses":{"root":{"roots":[]}}}
    """,
    passes="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}}}
    """,
    on=(Request,),
)
def unrequested_input(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report the first input of a retry that was not requested."""
    params = member(message.body.value, "params")
    given = member(params, "inputResponses")
    if not isinstance(given, dict):
        return

    def question() -> Iterator[Fault]:
        rounds = continued(message)
        asked = {name for known in rounds for name in known.asked}
        name = next((name for name in given if name not in asked), None)
        if rounds and name is not None:
            answer = rounds[-1].answer
            yield Fault(
                f"{excerpt(name)} is not among the inputRequests of #{answer}", "/params/inputResponses", (answer,)
            )

    yield Later(question())


@rule(
    "mrtr/same-id",
    "error",
    """The retry (the request that is sent again, with the input) must not reuse the id of the first request. A server
    or gateway that caches answers by id may return the first answer again.""",
    fix="Give the retry an `id` of its own.",
    blame="client",
    spec=f"{_MRTR}#client-requirements-basic-workflow",
    about="meta",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","requestState":"s1"}
        > 1 tools/call {META "name":"book","requestState":"s1"}
    """,
    passes="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","requestState":"s1"}
        > 2 tools/call {META "name":"book","requestState":"s1"}
    """,
    on=(Request,),
)
def same_id(message: Message, session: Session) -> Iterator[Fault | Later]:
    """Report a retry with the id of the request that it continues."""
    params = member(message.body.value, "params")
    if member(params, "inputResponses") is None and member(params, "requestState") is None:
        return

    def question() -> Iterator[Fault]:
        rounds = continued(message)
        if isinstance(message.body, Request) and rounds and all(known.id == message.body.id for known in rounds):
            answer = rounds[-1].answer
            yield Fault(f"the retry reuses the id of the request that #{answer} answered", "/id", (answer,))

    yield Later(question())


@rule(
    "mrtr/undeclared-input",
    "error",
    """The server requests an input that the client cannot give: this request does not declare the capability. A server
    that needs the input must answer with the error -32021.""",
    fix="Request only input whose capability this request declares in its `_meta`, or answer with the error -32021.",
    meanwhile="Declare the capability in the `_meta` of each request if you support it.",
    blame="server",
    spec=f"{_MRTR}#server-requirements-basic-workflow",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"where":{"method":"roots/list"}}}
    """,
    passes="""
        > 1 tools/call {META can elicitation "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":\
{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}
    """,
    on=(Result,),
    methods=_ASKING,
)
def undeclared_input(message: Message, session: Session) -> Iterator[Fault]:
    """Report requested input that the client did not declare, each capability once per message."""
    result = member(message.body.value, "result")
    if member(result, "resultType") != "input_required":
        return
    session.of(NeverRetried).note(message)
    declared, asked = capabilities("client", message, session), member(result, "inputRequests")
    if declared is None or not isinstance(asked, dict):
        return
    told: set[str] = set()
    for name, request in asked.items():
        method = member(request, "method")
        known = isinstance(method, str) and method in ASKED
        lacking = undeclared(method, member(request, "params"), declared) if known else None
        if lacking and lacking not in told:
            told.add(lacking)
            where = pointer("result", "inputRequests", name)
            yield Fault(f"the client did not declare the capability {lacking}, which {method} needs", where)


@rule(
    "mrtr/nothing-asked",
    "error",
    """An `input_required` result must have `inputRequests`, `requestState` or both. Without them the client has nothing
    to send with the retry.""",
    fix="Add `inputRequests`, or a `requestState` if the client should only repeat the request.",
    meanwhile="Treat the result as an error.",
    blame="server",
    spec=f"{_MRTR}#server-requirements-basic-workflow",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required"}
    """,
    passes="""
        > 1 tools/call {META "name":"book"}
        < 1 = {"resultType":"input_required","requestState":"s1"}
    """,
    on=(Result,),
    methods=_ASKING,
)
def nothing_asked(message: Message, session: Session) -> Iterator[Fault]:
    """Report an `input_required` result with neither requests nor a state."""
    result = member(message.body.value, "result")
    if member(result, "resultType") != "input_required":
        return
    if member(result, "inputRequests") is None and member(result, "requestState") is None:
        yield Fault("the result has neither inputRequests nor requestState", "/result")


@rule(
    "mrtr/never-retried",
    "info",
    """The server requested input, and the client went on without sending the request again. So the request was never
    completed. A client may do so, and servers must not assume that it sends the request again. Not reported if the
    session ended soon, or while a person may still be thinking about the answer.""",
    fix="""Send the request again with `inputResponses` and `requestState`. If the user declines, send the response that
    says so.""",
    meanwhile="Forget the state after a while.",
    blame="client",
    spec=f"{_MRTR}#client-requirements-basic-workflow",
    revisions=ROUNDS,
    fails="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        @20 > 2 tools/list {META}
        @21 < 2 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    passes="""
        > 1 tools/call {META can roots "name":"book"}
        < 1 = {"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}}
        > 2 tools/call {META "name":"book","inputResponses":{"roots":{"roots":[]}}}
        @20 > 3 tools/list {META}
        @21 < 3 = {"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"public"}
    """,
    on=(),
    loss="The client did not continue a request that needs its input",
)
class NeverRetried(StatefulCheck):
    """Report the results `input_required` that no request continued, if the client went on.

    `mrtr/undeclared-input` looks at these results, and notes them here.
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._asking: dict[int, tuple[Message, bool]] = {}  # by line number: the result, and whether a person is asked

    def note(self, message: Message) -> None:
        """Remember a result that requests input."""
        if message.exchange and message.exchange.inputs is not None and message.frame.size <= REMEMBERED:
            keep(self._asking, message.n, (message, not message.exchange.inputs.isdisjoint(PERSONAL)))

    def close(self) -> Iterator[Fault]:
        """Report those that were not continued."""
        session = self.session
        if session.lossy:
            return
        open_rounds = {it.answer for alike in session.rounds.values() for it in alike if not it.continued}
        for n, (message, personal) in self._asking.items():
            went_on = session.answered - message.t >= (_BY_A_PERSON if personal else _SOON)
            if n in open_rounds and went_on and session.last_answered > n:
                yield Fault("the client never sends the request again with the input that the server needs", "/result",
                            blame="client", at=message)  # fmt: skip
