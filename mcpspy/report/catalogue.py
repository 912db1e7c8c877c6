"""The rules and limits explained: the output of `mcpspy rules`, and two pages that are generated from the same tables.

`docs/rules.md` has the rules. `docs/compat.md` has what clients and model APIs refuse (`check --client`).
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from textwrap import dedent, fill

from mcpspy.rules import RULES, Rule
from mcpspy.spec.client_limits import CLIENTS, LIMITS, SEEN, Limit
from mcpspy.spec.revisions import Revision

NOTATION = """\
= 2025-06-18                          client and server are initialized, with every capability
> 2 tools/list {"cursor":"a"}         the client sends request 2
< 2 = {"tools":[]}                    its result
< 2 ! {"code":-32603,"message":"no"}  its error
< notifications/message {…}           the server sends a notification
! text                                the server writes a line to stderr
< | text                              a raw line; \\xNN and \\r stand for bytes
< |… text                             the same, but the stream ends before the newline
< |x9000 text                         padded with spaces to that many bytes
< |nest90                             nested arrays, that many levels deep
< |deep-schema 2                      the result of tools/list request 2, with a schema of 70 levels
< |tools129 2                         the result of tools/list request 2, with that many tools
< |description2049 2                  the same, with one tool whose description has that many characters
< |result110000 2                     the result of tools/call request 2, with a text of that many characters
@5 > 3 ping                           a message that is sent five seconds after the start
. stdin closed                        the client closes stdin
. stdout closed                       the server closes stdout
. signal 15                           the client sends a signal
. exit 1                              the server's process exits with a code
. killed 9                            the server's process ends by a signal
. unstarted text                      the server could not be started; the text is the reason
-- locked                             everything above is in the lock file, everything below is compared with it

= 2025-06-18 http                     the same over Streamable HTTP, in a session
>> 2 tools/list                       the client sends request 2 in a POST with the required headers
>> [accept: text/html] 2 tools/list   the same with another header value
>> [accept:] 2 tools/list             the same without that header
>> GET [last-event-id: 7]             a request without a body
<< 200 2 = {"tools":[]}               the answer to the last request: status, headers if any, body
<< 202                                an answer without a body
<< 200 events                         an answer that is a stream of events
<- [id: 7] 2 = {"tools":[]}           an event of the last stream
<- ~ text                             text in the last stream that is no event
<x text                               the last body could not be decompressed; the text is the reason
<. closed                             the server ends the last stream
<. broken                             the connection breaks
<. left                               the client disconnects before the last answer, or during the last stream

`{META …}` stands for params with the `_meta` that every request of 2026-07-28 must have. Words after `META` add to that
`_meta`: `logLevel info` requests log messages, `can roots` declares the client's capability `roots`, and `with ID`
declares the extension ID.
"""
"""How to read the examples."""

_NARROW = 20  # columns: text is not wrapped to a smaller width
_HOW_TO_READ = (
    "In the examples > is the client and < the server; a number is the id of a request, = its result, ! its error. "
    ">> is an HTTP request, << its answer, <- an event of a stream; '= REVISION' stands for a handshake. "
    "docs/rules.md has the whole notation."
)


def overview(width: int = 0) -> str:
    """Return every rule with its summary, by group, wrapped at a width in columns if one is given."""
    longest = max(map(len, RULES))
    lines = []
    for group, rules in _groups():
        lines.append(group)
        for rule in rules:
            name = f"  {rule.id:<{longest}}  {rule.severity:<7}  "
            lines.append(_wrapped(rule.summary, width, name, " " * len(name)))
        lines.append("")
    return "\n".join([*lines, "'mcpspy rules RULE' explains one: its fix, and examples that fail and pass.\n"])


def explanation(rule: Rule, width: int = 0) -> str:
    """Return the full description of one rule, wrapped at a width in columns if one is given."""
    return "\n".join(
        [
            f"{rule.id}: {rule.severity}",
            "",
            _wrapped(rule.explanation, width),
            "",
            *(line for title, text in rule.advice() for line in (title, _wrapped(text, width, "  ", "  "), "")),
            f"revisions  {_revisions(rule)}",
            f"blame      the {rule.blame}",
            f"see        {rule.url(None)}",
            "",
            "this fails",
            _example(rule.fails, "  "),
            "",
            "this passes",
            _example(rule.passes, "  "),
            "",
            _wrapped(_HOW_TO_READ, width),
            "",
        ]
    )


def document() -> str:
    """Return `docs/rules.md`."""
    groups = ", ".join(f"[{group}](#{group})" for group, _ in _groups())
    return "\n".join(
        [
            "# Rules",
            "",
            "What `mcpspy check` finds. `scripts/write-rules` writes this page from the table of rules, and",
            "`mcpspy rules RULE` prints the entry of one rule. The tests run each example.",
            "",
            "Each rule has a *fix*: what the responsible side has to change. Most also have a *meanwhile*: what the",
            "other side can do until then.",
            "",
            "- **error**: the specification forbids it, or peers break on it.",
            "- **warning**: the specification advises against it, or it is most likely a mistake.",
            "- **info**: allowed, and worth knowing.",
            "",
            "Rules of `compat` run only for clients that `--client` names, rules of `lock` only with `--lock`, and",
            "rules of `ops` and `expect` only if you ask for them ([expect.md](expect.md)). Rules of `mrtr` are about",
            "multi round-trip requests: the server answers with a request for input, and the client sends its request",
            "again, with the input.",
            "",
            f"Groups: {groups}.",
            "",
            "## How to read the examples",
            "",
            "```",
            NOTATION.rpartition("\n\n")[0],
            "```",
            "",
            NOTATION.rpartition("\n\n")[2],
            *(line for group, rules in _groups() for line in _section(group, rules)),
        ]
    )


def _section(group: str, rules: Iterable[Rule]) -> Iterator[str]:
    yield f"## {group}"
    yield ""
    for rule in rules:
        yield f"### {rule.id}"
        yield ""
        yield f"**{rule.severity}**, {_revisions(rule)}; responsible: the {rule.blame}."
        yield f"{rule.explanation} [Specification]({rule.url(None)})"
        yield ""
        yield from (f"- {title}: {text}" for title, text in rule.advice())
        yield ""
        yield "Fails:"
        yield ""
        yield _fenced(rule.fails)
        yield ""
        yield "Passes:"
        yield ""
        yield _fenced(rule.passes)
        yield ""


def _groups() -> list[tuple[str, list[Rule]]]:
    """Return the rules of each group, groups and rules in alphabetical order."""
    rules = sorted(RULES.values(), key=lambda rule: rule.id)
    return [(group, list(found)) for group, found in groupby(rules, lambda rule: rule.id.partition("/")[0])]


def _wrapped(text: str, width: int, first: str = "", rest: str = "") -> str:
    """Wrap a text after `first`, with `rest` before the other lines. Names such as `text/event-stream` stay whole."""
    if width - len(first) < _NARROW:
        return first + text
    return fill(
        text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False, break_long_words=False
    )


def _fenced(text: str) -> str:
    return f"```\n{_example(text)}\n```"


def _example(text: str, indent: str = "") -> str:
    return "\n".join(f"{indent}{line}" for line in dedent(text).strip().split("\n"))


def _revisions(rule: Rule) -> str:
    every, first, last = tuple(Revision), rule.revisions[0].value, rule.revisions[-1].value
    missing = [revision.value for revision in every if revision not in rule.revisions]
    if not missing:
        return "every revision"
    if len(missing) == 1 and rule.revisions[0] is every[0] and rule.revisions[-1] is every[-1]:
        return f"every revision except {missing[0]}"
    if rule.revisions[-1] is every[-1]:
        return f"{first} and later"
    return f"{first} only" if len(rule.revisions) == 1 else f"{first} to {last}"


def compatibility_page() -> str:
    """Return the page."""
    return "\n".join(
        [
            "# What clients refuse",
            "",
            "MCP allows more than clients and model APIs accept. Often one tool makes all tools of a server",
            "unavailable, and nobody gets a message. `mcpspy check --client NAME CAPTURE` reports what a client",
            "refuses in the tool lists of a capture. Repeat `--client` for several clients, or use `--client all`.",
            "Without the option none of this is reported. In the TUI, press `c` and choose one client or all of",
            "them: the views *findings* and *tools* show what is refused, and why.",
            "",
            "- **error**: the whole request is refused, or all tools of the server are dropped.",
            "- **warning**: the tool is left out.",
            "- **info**: a text is cut off.",
            "",
            "The rules are in the group [compat](rules.md#compat), which also explains how to fix each problem. If",
            "several clients refuse a tool for the same reason, this is one finding.",
            "",
            f"`scripts/write-rules` writes this page from a table. All sources were read by {SEEN}. The last",
            "column has the date of each source, and the version if the source names one. Limits change. The table",
            "leaves out limits without a public source, and problems that a client repairs itself. A test compares",
            "the rows of the SDKs with what the SDKs do.",
            *(line for client in CLIENTS for line in _client_section(client)),
            "",
        ]
    )


def _client_section(client: str) -> Iterator[str]:
    yield from ("", f"## {client}", "", f"{CLIENTS[client]}.", "", "| expected | otherwise | source |", "|---|---|---|")
    yield from (_limit_row(limit) for limit in LIMITS if limit.client == client)


def _limit_row(limit: Limit) -> str:
    expected = f"`{limit.pattern}`".join(limit.expected.split(limit.pattern)) if limit.pattern else limit.expected
    version = f"; {limit.version}" if limit.version else ""
    return f"| {expected} | {limit.effect.value} | [{limit.dated}]({limit.source}){version} |"
