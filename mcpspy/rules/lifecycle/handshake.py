"""Rules about the course of a session: who may say what, when, and under which revision.

Handshake era: `initialize`, its answer, `notifications/initialized`, then everything that was declared
(`mcpspy.rules.lifecycle.capabilities`). What is said without a session: `mcpspy.rules.lifecycle.stateless`.
"""

from collections.abc import Iterator

from mcpspy.conversation.model import Message
from mcpspy.json_values import member, pointer
from mcpspy.rules.rule import RULES, Fault, rule
from mcpspy.rules.state import State, becomes_round, stated_revision
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import HANDSHAKE, NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS, Revision
from mcpspy.wire.jsonrpc import Notification, Request, Result

_MOST_EARLY = 100  # requests before their time that are told of
_KNOWN = ", ".join(revision.value for revision in Revision)


@rule(
    "lifecycle/before-initialize",
    "warning",
    """Before the server has answered `initialize` the client should send nothing but pings, and before the client has
    sent `notifications/initialized` the server nothing but pings and log messages. Without `initialize`, only requests
    that state a revision themselves mean anything (2026-07-28).""",
    spec="basic/lifecycle#initialization",
    about="handshake",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        > 2 tools/list
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        > 2 ping
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 3 tools/list
    """,
    on=(Request, Result, Notification),
)
def before_initialize(message: Message, state: State) -> Iterator[Fault]:
    """Requests whose time had not come; told when it has come, because they may only be recorded too early."""
    body = message.body
    if isinstance(body, Request):
        if state.initialized or state.lossy or body.method in ("ping", "initialize"):
            return
        modern = message.revision in STATELESS
        if not modern and (message.sender == "server" or state.agreed is None) and len(state.early) < _MOST_EARLY:
            state.early.append(message)
            yield from _ask_whether_initialized(message, state)
        return
    agreed = isinstance(body, Result) and message.exchange is not None and message.exchange.method == "initialize"
    if agreed or (isinstance(body, Notification) and body.method == "notifications/initialized"):
        side = "client" if agreed else "server"
        awaited = "`initialize` was answered" if agreed else "`notifications/initialized` had come"
        for early in [it for it in state.early if it.sender == side]:
            state.early.remove(early)
            if early.t < message.t and isinstance(early.body, Request):
                yield Fault(f"{early.body.method} was sent before {awaited}", at=early, related=(message.n,))


def _ask_whether_initialized(message: Message, state: State) -> Iterator[Fault]:
    """Whether the first request of a client stays without an `initialize`; once a session."""
    method = message.body.method if isinstance(message.body, Request) else ""
    modern = message.session.stated is not None or method == "server/discover"
    if message.sender == "server" or modern or state.initialize or not state.once("not initialized"):
        return

    def question() -> Iterator[Fault]:
        if state.initialize is None and message.session.stated is None:
            state.early.clear()
            yield Fault(f"{method[:60]} was sent, and the session is not initialized", "/method")

    state.ask_later(RULES["lifecycle/before-initialize"], message, question)
    yield from ()


@rule(
    "lifecycle/initialize-twice",
    "error",
    "A session is initialized once; a second `initialize` has no meaning in it.",
    spec="basic/lifecycle#initialization",
    revisions=HANDSHAKE,
    fails="""
        = 2025-06-18
        > 5 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request,),
    methods=("initialize",),
)
def initialize_twice(message: Message, state: State) -> Iterator[Fault]:
    """A second `initialize` after one that succeeded."""
    if state.agreed is not None and state.initialize:
        yield Fault("the session is initialized already", "/method", (state.initialize,))


@rule(
    "lifecycle/initialized-missing",
    "error",
    """After the answer to `initialize` the client must send `notifications/initialized` before it asks for anything.
    Servers refuse requests until then, or never begin to send theirs.""",
    spec="basic/lifecycle#initialization",
    about="handshake",
    revisions=HANDSHAKE,
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
        > 2 tools/list
    """,
    passes="""
        = 2025-06-18
        > 2 tools/list
    """,
    on=(Request,),
)
def initialized_missing(message: Message, state: State) -> Iterator[Fault]:
    """The first request of a client that skipped it."""
    if message.sender != "client" or state.initialized or state.agreed is None or state.lossy:
        return
    asks = isinstance(message.body, Request) and message.body.method not in ("ping", "initialize")
    if not (asks and message.t > state.agreed and state.once("initialized-missing")):
        return
    crossing = message.http is not None  # of two HTTP requests that are sent at once either may be the first

    def question() -> Iterator[Fault]:
        if not (crossing and state.initialized):
            yield Fault("the request comes before `notifications/initialized`", "/method")

    state.ask_later(RULES["lifecycle/initialized-missing"], message, question)
    yield from ()


@rule(
    "lifecycle/wrong-direction",
    "error",
    "The method exists, but only the other side may send it; in 2026-07-28 servers send no requests at all.",
    spec="schema",
    about="direction",
    fails="""
        = 2025-06-18
        > 2 sampling/createMessage {"messages":[],"maxTokens":1}
    """,
    passes="""
        = 2025-06-18
        < 2 sampling/createMessage {"messages":[],"maxTokens":1}
    """,
    on=(Request, Notification),
)
def wrong_direction(message: Message, state: State) -> Iterator[Fault]:
    """Methods that only the other side has."""
    body = message.body
    if not isinstance(body, Request | Notification) or message.revision is None:
        return
    method = methods(message.revision).get(body.method)
    if method and message.sender not in method.senders:
        yield Fault(f"only the {method.senders[0]} sends {body.method}", "/method")
    elif becomes_round(message):
        yield Fault(f"a server sends no requests; {body.method} is asked for by `input_required`", "/method")


@rule(
    "lifecycle/unknown-revision",
    "warning",
    f"The message names a revision that was never published. There are: {_KNOWN}.",
    spec="basic/lifecycle#version-negotiation",
    about="meta",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-19","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request, Result),
)
def unknown_revision(message: Message, state: State) -> Iterator[Fault]:
    """Names of revisions that do not exist."""
    body = message.body
    if isinstance(body, Request):
        found = [(pointer("params", "_meta", PROTOCOL_VERSION), stated_revision(message))]
        if body.method == "initialize":
            found.append(("/params/protocolVersion", member(body.params, "protocolVersion")))
    elif isinstance(body, Result) and message.exchange and message.exchange.method == "initialize":
        found = [("/result/protocolVersion", member(body.result, "protocolVersion"))]
    else:
        return
    for where, name in found:
        if isinstance(name, str) and Revision.of(name) is None:
            yield Fault(f"there is no revision {name[:40]}; there are {_KNOWN}", where)


@rule(
    "lifecycle/revision-mismatch",
    "error",
    """The server answered `initialize` by a revision that has no handshake, or a request states another revision than
    the session agreed on.""",
    spec="basic/lifecycle#version-negotiation",
    about="meta",
    fails="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2026-07-28","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
    """,
    on=(Request, Result),
)
def revision_mismatch(message: Message, state: State) -> Iterator[Fault]:
    """Revisions that cannot be meant."""
    body = message.body
    if isinstance(body, Result):
        agrees = message.exchange is not None and message.exchange.method == "initialize"
        if agrees and message.revision and message.revision in STATELESS:
            sentence = f"{message.revision.value} has no `initialize`; the newest with one is {NEWEST_HANDSHAKE.value}"
            yield Fault(sentence, "/result/protocolVersion")
    elif isinstance(body, Request) and state.agreed is not None and message.session.negotiated:
        stated = Revision.of(stated_revision(message))
        if stated and stated in HANDSHAKE and stated is not message.session.negotiated:
            agreed = message.session.negotiated.value
            yield Fault(f"the request states {stated.value}, the session agreed on {agreed}", "/params/_meta")


@rule(
    "lifecycle/era-mixed",
    "error",
    """A client that has discovered a server of the per-request era goes on with `initialize`, or the other way round. A
    `server/discover` that was refused, followed by `initialize`, is a probe and fine.""",
    spec="basic/lifecycle",
    about="meta",
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,\
"cacheScope":"public"}
        > 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 ! {"code":-32601,"message":"Method not found"}
        > 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """,
    on=(Request,),
)
def era_mixed(message: Message, state: State) -> Iterator[Fault]:
    """One client, two eras."""
    if message.sender != "client" or not isinstance(message.body, Request):
        return
    if message.body.method == "initialize" and state.discovered and state.once("era-mixed"):
        yield Fault("the server was discovered to need no handshake, and is initialized all the same", "/method")
    elif state.agreed is not None and message.revision in STATELESS and state.once("era-mixed"):
        yield Fault("the session was initialized, and this request stands by itself", "/params/_meta")
