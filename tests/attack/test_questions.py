"""2,000 questions of an agent, with random, hostile and wrong arguments, about captures with planted secrets.

No answer contains a secret, ends in a bug, or is too large; no file outside the directory is read. A failure names the
seed of its block and the question.
"""

import os
import random
import sys
import time

import anyio
import pytest
from mcp import Client, MCPError

from mcpspy.agent.answers import LARGEST
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.catalogue import TOOLS
from mcpspy.agent.server import AgentServer
from mcpspy.rules import RULES
from tests.agent.test_hostile import ARGV, BAD, HOSTILE, NAMED, TOKENS
from tests.limits import LIMIT
from tests.peers.serving import each
from tests.test_hostile import GOLDEN
from tests.timelines import CAPTURES
from tests.transcript import begin, finish, record

QUESTIONS = 2_000
BLOCK = 50
SECONDS = 30  # for one question, on a busy machine
SECRETS = [*TOKENS.values(), *NAMED]
OUTSIDE = "outside-the-directory-4711"  # the content of a file beside the directory
TEXTS = [
    *("", " ", "all", "run:", "#", "#1", "weather", "..", "../outside.jsonl", "/etc/passwd", "file:///etc/passwd", "~"),
    *("%2e%2e%2foutside.jsonl", "..\\outside.jsonl", "outside.jsonl", "a\0b", "\ud800", "\u202e", "é" * 5000),
    *(
        "x" * 100_000,
        "9" * 400,
        "-1",
        "NaN",
        "null",
        "{}",
        "*",
        "(" * 2000,
        "not " * 2000,
        '"',
        "'; --",
        "${HOME}",
        BAD,
    ),
    *(
        "method:",
        "stats:x",
        "time:>9999",
        "from:client and",
        "-",
        "tools/arguments",
        "schema/params",
        "secret",
        "**/**",
        "/~0/~1",
        "//",
        "/" + "a/" * 2000,
        "/0",
        "params",
    ),
]
FILTERS = [
    "method:*",
    "kind:request",
    "status:error or rule:*",
    "latency:>1s",
    "id:1",
    "severity:error",
    '"ghp_" or "pass"',
]
POINTERS = [
    "",
    "/params",
    "/result/content/0/text",
    "/params/arguments/password",
    "/error/data",
    "/params/arguments/env/0",
]
VALUES = [None, True, False, 0, -1, 1, 7, 200, 201, 2**63, 10**400, 1.5, -0.0, [], {}, ["a"], {"a": "b"}, [[[[]]]]]
URIS = [
    "mcpspy://capture/{}",
    "mcpspy://capture/{}/",
    "file://{}",
    "{}",
    "mcpspy://rule/{}",
    "mcpspy://{}",
    "http://{}",
]
KEY = os.path.join("~", ".mcpspy", "key")  # of redacted values: it names equal ones alike (docs/secrets.md)
OPENED = []
"""The files that were opened during a question."""
_watching = False


def _note(event, arguments):
    if _watching and event == "open" and isinstance(arguments[0], str | bytes):
        OPENED.append(os.fsdecode(arguments[0]))


sys.addaudithook(_note)  # cannot be removed; without `_watching`, it does nothing


@pytest.fixture
def folder(tmp_path):
    """A directory with golden captures, hostile ones with secrets, and damaged ones, beside a file outside."""
    inside = tmp_path / "captures"
    inside.mkdir()
    for path in sorted(CAPTURES.glob("*.jsonl"))[::4]:
        (inside / path.name).write_bytes(path.read_bytes())
    for number, name in enumerate(("weather", f"{BAD}{TOKENS['Server']}")):
        writer = begin(str(inside / f"2025-{number}.jsonl"), name=name, argv=ARGV)
        record(writer, HOSTILE)
        finish(writer, 10**10, None, f"killed with {TOKENS['Why']}")
    live = begin(str(inside / "live.jsonl"), name="live", argv=ARGV)
    record(live, HOSTILE)
    (inside / f"{TOKENS['File']}\u202e.jsonl").write_text("{")
    (inside / "cut.jsonl").write_bytes(b"\n".join(GOLDEN[1][:9])[:-20])
    (tmp_path / "outside.jsonl").write_text(OUTSIDE)
    yield inside
    finish(live, 10**10, 0)


def argument(chance, of, schema, names):
    """Return a value for an argument: usually of its type, else of any other."""
    if chance.random() < 0.15:
        return chance.choice([*VALUES, *TEXTS])
    kind = schema["type"]
    if kind == "boolean":
        return chance.random() < 0.5
    if kind in ("integer", "number"):
        return chance.choice([0, 1, 2, 10, 200, 10**6])
    address = f"{chance.choice(names)}#{chance.randrange(60)}"
    fitting = {
        "session": [*names, "all"], "address": [address], "a": [address, *names], "b": [address, *names],
        "rule": sorted(RULES), "filter": FILTERS, "pointer": POINTERS, "after": [address],
    }.get(of, names)  # fmt: skip
    value = chance.choice(fitting)
    return chance.choice([value, value, value, value, chance.choice(TEXTS), value + chance.choice(TEXTS)])


def question(chance, names):
    """Return the name of a tool and arguments for it."""
    tool = chance.choice(TOOLS)
    given = {
        name: argument(chance, name, schema, names)
        for name, schema in tool.takes.items()
        if chance.random() < (0.95 if name in tool.required else 0.1 if name == "cursor" else 0.4)
    }
    if tool.name == "wait_for":
        given["seconds"] = chance.choice([0, 0, 0, -1, "0", "soon"])
    if chance.random() < 0.05:
        given[chance.choice(["path", "sesion", "__class__", "\u202e", "file"])] = chance.choice(TEXTS)
    return (tool.name if chance.random() < 0.97 else sendable(chance.choice(TEXTS))), given


def sendable(text):
    """Return a text without surrogates: the client's SDK cannot send them in these places."""
    return text.encode("utf-8", "replace").decode()


def allowed(path, folder):
    """Return whether the server may open a file: a capture, or what belongs to Python, the package or the system."""
    path = os.path.realpath(os.path.join(os.getcwd(), path))
    own = [folder, sys.prefix, sys.base_prefix, os.getcwd(), "/proc", "/dev/null", os.path.expanduser(KEY)]
    return any(path.startswith(os.path.realpath(it)) for it in own)


def harmless(texts):
    """Assert that an answer, or the sentence of an error, is bounded and contains no secret and no bug."""
    whole = "".join(texts)
    assert len(whole.encode("utf-8", "surrogatepass")) <= LARGEST + 200
    assert not [secret for secret in SECRETS if secret in whole]
    assert OUTSIDE not in whole
    assert "Traceback" not in whole
    assert "mcpspy could not answer" not in whole  # an exception that is not one of ours


async def ask(client, chance, names):
    """Ask one question, or read one resource."""
    if chance.random() < 0.1:
        uri = sendable(chance.choice(URIS).format(chance.choice([*names, *TEXTS])))
        return uri, lambda: client.read_resource(uri)
    tool, given = question(chance, names)
    return (tool, given), lambda: client.call_tool(tool, given)


@pytest.mark.parametrize("block", each(range(QUESTIONS // BLOCK), usual=[0]))
def test_no_question_gets_a_secret_or_a_bug(folder, block):
    """A-13, M-06."""
    chance = random.Random(f"questions {block}")  # noqa: S311 (no secret)
    captures = AgentCaptures(str(folder), 0.3)
    captures.look()
    names = [captures.name(entry) for entry in captures.entries]

    async def talk():
        global _watching  # noqa: PLW0603 (an audit hook has no other state)
        async with Client(AgentServer(captures).server) as client:
            for number in range(BLOCK):
                asked, send = await ask(client, chance, names)
                begun, _watching = time.monotonic(), True
                try:
                    with anyio.fail_after(LIMIT):
                        answer = await send()
                    harmless(part.text for part in getattr(answer, "content", getattr(answer, "contents", ())))
                except MCPError as error:
                    harmless([error.message])
                except BaseException as error:
                    error.add_note(f"block {block}, question {number}: {ascii(asked)[:2000]}")
                    raise
                finally:
                    _watching = False
                assert time.monotonic() - begun < SECONDS, asked

    OPENED.clear()
    try:
        anyio.run(talk)
    finally:
        captures.close()
    assert not [path for path in OPENED if not allowed(path, str(folder))]
