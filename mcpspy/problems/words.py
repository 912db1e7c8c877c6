"""The words of problems: which kind a failure is, what equal ones share, headlines, and what to do."""

import re

from mcpspy.conversation.refusals import POST_AS_GET, denies_session
from mcpspy.problems.problem import FailedRequest, Kind
from mcpspy.rules import RULES, Finding
from mcpspy.spec.client_limits import time_outs_of
from mcpspy.text import duration_text, series

_LIKE = 80  # characters of an error that equal problems share
_VARIES = re.compile(r"\d+|\"[^\"]*\"|'[^']*'|`[^`]*`")
_UNAUTHORIZED = (401, 407)
_OAUTH = ("/authorize", "/token", "/register", "/oauth", "/.well-known/")
_STREAMS = "GET "
_LISTINGS = ("tools/list",)
_HUNG = ("timed-out", "unanswered")
_TIMES = "\0"  # where the words for how often belong
_ARTICLES = ("the ", "login ")
_REDIRECTION, _NO_RIGHT, _NOT_FOUND, _PROXY, _SERVER_FAILURE = 300, 403, 404, 407, 500
_ABSENT, _MOVED = (404, 405, 410), (307, 308)
_METHOD_MISSING, _NO_COMMON_REVISION, _MISMATCH = -32601, -32022, -32020


def kind_of_failure(failure: FailedRequest) -> Kind:
    """Return the kind of problem that a failed request is."""
    if failure.outcome == "server-exit":
        return "start" if failure.method == "initialize" else "exit"
    if failure.outcome == "broken" or failure.ours:
        return "connection"
    if failure.method.startswith("OPTIONS "):
        return "call"
    challenged = failure.status in _UNAUTHORIZED or (failure.status and failure.challenge is not None)
    if failure.named and not failure.credentials and failure.challenge is None and denies_session(failure.text):
        challenged = False
    if challenged or (failure.status and any(part in failure.method for part in _OAUTH)):
        return "login"
    if failure.method == "initialize":
        return "handshake"
    if failure.method in _LISTINGS and not failure.status:
        return "not-offered"
    return "hung" if failure.outcome in _HUNG else "call"


def likeness(failure: FailedRequest) -> str:
    """Return what a failed request shares with equal ones."""
    kind = kind_of_failure(failure)
    if kind == "login":
        return f"{failure.status} {failure.credentials} {likeness_of(failure.challenge)}"
    if kind in ("exit", "start") or failure.outcome == "broken":
        return failure.outcome
    if failure.outcome == "refused" and failure.status:  # whatever was requested
        return f"{failure.outcome} {failure.status} {failure.ours} {likeness_of(failure.text)}"
    code = "" if failure.code is None else failure.code
    return f"{failure.outcome} {failure.method} {failure.name} {code} {likeness_of(failure.text)}"


def likeness_of(text: str | None) -> str:
    """Return what a text shares with equal ones: its beginning, without numbers and quotations."""
    return _VARIES.sub("#", text or "")[:_LIKE]


def headline(kind: Kind, failures: list[FailedRequest]) -> tuple[str, ...]:
    """Return what failed, in one sentence, as what comes before and after the words for how often.

    One text if the sentence does not say how often. `failures` are the first of those that are equal.
    """
    told = _HEADLINES.get(kind, _failed)(failures, failures[0], _TIMES)
    return tuple(capitalized(told).split(_TIMES))


OF_METHOD = {
    "framing/glued": "the answer{many} to {} could not be read",
    "paging/no-advance": "{}: the listing never ends",
    "paging/unread-pages": "{}: the client reads only a part of the listing",
    "schema/invalid": "{}: a strict {peer} refuses the {what}",
}
"""By rule: what a user loses by it, as `Rule.loss` says it, with the method that it concerns."""


def loss_of(finding: Finding, methods: list[str]) -> str:
    """Return what a user loses by what a rule found, about the messages with some methods, if they are known."""
    if not methods:
        return RULES[finding.rule].loss
    peer = "server" if finding.blame == "client" else "client"
    what = "notification" if methods[0].startswith("notifications/") else "answer"
    many = "s" if len(methods) > 1 else ""
    return OF_METHOD[finding.rule].format(series(methods), peer=peer, what=what, many=many)


def capitalized(sentence: str) -> str:
    """Return a sentence with a capital letter, unless it begins with the name of a method."""
    return sentence[:1].upper() + sentence[1:] if sentence.startswith(_ARTICLES) else sentence


def _start(_: list[FailedRequest], first: FailedRequest, times: str) -> str:
    return f"the server ended before it answered {first.method}{times}"


def _exit(failures: list[FailedRequest], _: FailedRequest, times: str) -> str:  # noqa: ARG001 (a table)
    return f"the server ended during {_subjects(failures)}"


def _handshake(_: list[FailedRequest], first: FailedRequest, times: str) -> str:
    if first.outcome in _HUNG:
        return f"the handshake failed: initialize got no answer within {duration_text(first.waited)}{times}"
    return f"the handshake failed{times}: initialize was {_refusal(first)}"


def _login(failures: list[FailedRequest], first: FailedRequest, times: str) -> str:
    told = f": {first.text}" if first.text else ""
    return f"login failed: {_subjects(failures)} {_was(failures)} refused{times} with {_status(first)}{told}"


def _connection(failures: list[FailedRequest], first: FailedRequest, times: str) -> str:
    if first.ours:
        return f"the server could not be reached{times}: {first.text or _status(first)}"
    requests = [failure for failure in failures if not failure.method.startswith(_STREAMS)]
    if not requests:
        return f"the stream of {_subjects(failures)} broke{times}"
    often = times if len(requests) == len(failures) else ""
    return f"the connection ended before the answer to {_subjects(requests)}{often}"


def _hung(_: list[FailedRequest], first: FailedRequest, times: str) -> str:
    if first.outcome == "unanswered":
        return f"{first.subject} was never answered{times}"
    return f"{first.subject} got no answer{times}; the {first.side} gave up after {duration_text(first.waited)}"


def _not_offered(_: list[FailedRequest], first: FailedRequest, times: str) -> str:
    if first.outcome in _HUNG:
        return f"the tools could not be listed{times}: {first.method} got no answer"
    return f"the tools could not be listed{times}: {first.method} was {_refusal(first)}"


def _failed(failures: list[FailedRequest], first: FailedRequest, times: str) -> str:
    if first.status:
        return f"{_subjects(failures)} {_was(failures)} {_refusal(first, times)}"
    why = f": {first.text}" if first.text else ""
    code = f" with error {first.code}" if first.code is not None and first.outcome == "error" else ""
    return f"{first.subject} failed{times}{code}{why}"


_HEADLINES = {
    "start": _start,
    "exit": _exit,
    "handshake": _handshake,
    "login": _login,
    "connection": _connection,
    "hung": _hung,
    "not-offered": _not_offered,
}


def _refusal(failure: FailedRequest, times: str = "") -> str:
    told = f": {failure.text}" if failure.text else ""
    if 0 < failure.status < _REDIRECTION:
        return f"answered{times} with {_status(failure)}, but without a JSON-RPC answer"
    if failure.status:
        return f"refused{times} with {_status(failure)}{told}"
    if failure.code is not None:
        return f"refused{times} with error {failure.code}{told}"
    return f"answered{times} with a tool error{told}" if failure.outcome == "tool-error" else f"not answered{times}"


def _status(failure: FailedRequest) -> str:
    return f"{failure.status} {failure.reason}".strip() if failure.status else failure.outcome


def _subjects(failures: list[FailedRequest]) -> str:
    return series(list(dict.fromkeys(failure.subject for failure in failures)))


def _was(failures: list[FailedRequest]) -> str:
    return "was" if len({failure.subject for failure in failures}) == 1 else "were"


ADVICE: dict[Kind, tuple[str, ...]] = {
    "start": ("Run the command of the server in a terminal, and look at what it writes to stderr.",
              "`mcpspy doctor` tests the entry in the client's configuration."),
    "handshake": ("The server must answer `initialize` with a result, with a revision that it supports.",),
    "login": ("Log in again in the client, or correct the token in its configuration.",),
    "connection": ("Look at the log of the server and of every proxy in front of it at that time.",),
    "exit": ("Look at the last lines of stderr: the server should catch the exception and answer with an error.",),
    "not-offered": ("Correct the listing: without it, the client offers no tool of this server.",),
    "call": ("Look at the request and its answer; then send it again with other arguments.",),
    "hung": ("Find out what the server waits for: a lock, a network request, a question to a person.",
             "Answer long calls with progress notifications, or give the client more time."),
    "noise": ("Write logs to stderr: stdout is only for messages.",),
    "fault": (),
}  # fmt: skip
"""What to do about each kind of problem, if no rule says it better."""


_BY_STATUS = {
    404: (
        "The client must begin a new session with `initialize`; replicas behind a load balancer must share sessions.",
    ),
    413: ("Send less, or raise the limit for bodies in the gateway.",),
    429: ("Send fewer requests, or wait as long as `Retry-After` says.",),
    502: ("Look at the log of the gateway and of the server behind it.",),
    503: ("Look at the log of the server and of the gateway: the server is overloaded, or not running.",),
    504: ("Raise the time-out of the gateway, or make the call faster.",),
    522: ("Look whether the server runs, and whether the gateway reaches it.",),
    524: ("Raise the time-out of the gateway, or make the call faster.",),
}
_WRONG_URL = ("Look whether the URL in the client is that of the MCP endpoint, and who answers there.",)
_FORBIDDEN = ("Look at who refuses this client: a list of allowed addresses, a firewall, or rights that it lacks.",)
_FAILED = ("Look at the log of the server at that time.",)
_OF_PROXY = ("Give the client the credentials of the proxy that is between it and the server.",)
_NO_LOGIN = ("Answer 401 with `WWW-Authenticate`, and publish the metadata of the authorization server.",)
_REDIRECTED = ("Configure the URL that answers, or redirect with 307 or 308: then clients repeat the POST.",)
_SLOW = ("Make it faster, send progress notifications, or give the client more time.",)
_REVISION = (
    "Use a revision that both sides support: the error lists those of the server in `data.supported`.",
    "Else update the client, or install a version of the server that supports the revision of the client.",
)
_UPDATE = ("Use a client that supports 2026-07-28, or a server that also supports an older revision.",)
_PATIENT = (
    "In the client, restart the time-out with each progress notification (TypeScript SDK: `resetTimeoutOnProgress`).",
)
_PING = ("Answer `ping` at once, also during a call: do not block the loop that reads messages.",)
_UNKNOWN_METHOD = ("Do not send a method that the other side does not declare, or implement it.",)
NO_INPUT = (
    "Find out why the server ends without reading stdin: its arguments may select another transport than stdio.",
    "In a container, `-i` passes stdin to the server, and the script that starts it must not read it.",
)
"""What to do if the server exits as if all was well, and has answered nothing."""
ANSWER = ("Answer the requests of the server, with an error if it cannot be done: it declared the capability.",)
"""What to do if a server waits for its client."""
_TOOL = ("Look at the code of the tool and at the lines of stderr at that time, then call it again.",)


def with_stdin(command: str) -> tuple[str, ...]:
    """Return what to do if a container is run without stdin by a command such as `docker run`."""
    return (f"Add `-i` to the command in the configuration of the client: `{command} -i …`.",)


def advice_for(kind: Kind, first: FailedRequest) -> tuple[str, ...]:
    """Return what to do about a problem, if no rule says it better; `first` is its first failed request."""
    if first.status in POST_AS_GET:
        return _REDIRECTED
    known = time_outs_of(first.client) if first.outcome in _HUNG and first.method == "initialize" else None
    more = (f"Give the server more time to start: {known.setting}.",) if known and known.setting else ()
    if first.method == "ping" and first.outcome in _HUNG:
        return _PING
    if first.outcome in _HUNG and first.progressed:
        return _PATIENT
    if first.late or (kind == "handshake" and first.outcome in _HUNG):
        return (*_SLOW, *more)
    if first.status == _PROXY:
        return _OF_PROXY
    if first.code == _NO_COMMON_REVISION:
        return _REVISION
    if kind == "handshake" and first.code == _MISMATCH:
        return _UPDATE
    if kind == "login" and first.challenge is None and not first.credentials:
        return _NO_LOGIN
    if kind in ("call", "handshake") and first.status >= _REDIRECTION:
        return _by_status(first)
    if kind == "call" and first.code == _METHOD_MISSING:
        return _UNKNOWN_METHOD
    return _TOOL if kind == "call" and first.outcome == "tool-error" else ADVICE[kind]


def _by_status(failure: FailedRequest) -> tuple[str, ...]:
    """Return what to do about a request that was refused by a status of HTTP."""
    code = failure.status
    if code in _BY_STATUS and (code != _NOT_FOUND or (failure.named and not failure.gateway)):
        return _BY_STATUS[code]
    if code == _NO_RIGHT:
        return _FORBIDDEN
    if code in _ABSENT or code in _MOVED:
        return _WRONG_URL
    return _FAILED if code >= _SERVER_FAILURE else ADVICE[kind_of_failure(failure)]
