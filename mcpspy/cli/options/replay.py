"""The arguments of the commands that replay captures, and compare what they replay."""

from mcpspy.cli.options import GATE, Command, Option, Positional
from mcpspy.cli.options.shared import ACCESS, CAPTURE, HEADER, REPORT, URL
from mcpspy.errors import UsageError


def row_numbers(text: str) -> list[int]:
    """Return the value of `--only`."""
    try:
        return [int(word.strip().removeprefix("#")) for word in text.split(",")]
    except ValueError:
        raise UsageError(f"--only takes the numbers of rows, such as 7 or 7,9, not {text!r}") from None


IGNORE = Option(
    "--ignore",
    placeholder="POINTER",
    many=True,
    text="ignore differences at this JSON pointer, such as /result/content/*/text (docs/replay.md); repeatable",
)
TOLERANCES = (
    IGNORE,
    Option(
        "--is",
        placeholder="POINTER=FORM",
        many=True,
        text="allow any value of a form at this pointer: date-time, date, uuid, integer, number, url, base64 or any; "
        "repeatable",
    ),
    Option(
        "--matches",
        placeholder="POINTER=REGEX",
        many=True,
        text="allow any text that matches a regular expression at this pointer; repeatable",
    ),
    Option(
        "--within",
        placeholder="POINTER=NUMBER",
        many=True,
        text="allow any number that differs by at most this much at this pointer; repeatable",
    ),
)

REPLAY = (
    Command(
        "mock",
        "serve a capture as a mock server",
        "Serve captures as a mock MCP server, on stdin and stdout or over HTTP.",
        Positional("captures", "CAPTURE", many="+"),
        Option(
            "--listen",
            placeholder="HOST:PORT",
            text="serve over HTTP until Ctrl-C and print the URL; port 0: any free port",
        ),
        Option(
            "--pace",
            placeholder="PACE",
            choices=("fast", "recorded"),
            text="answer at once, or with the recorded delays",
        ),
        Option(
            "--loose",
            text="if no recorded request has the same params, answer with the nearest one of the same method and name, "
            "and report it on stderr",
        ),
        *TOLERANCES,
        Option("--all-used", text="exit with status 1 if a recorded request was not sent by the client, and list it"),
        Option(
            "--record-missing",
            text="send requests that are not in the capture to COMMAND, and add its answers to the capture",
        ),
        GATE,
        epilog="You can put --ignore, --is, --matches and --within into a file NAME.replay.toml beside NAME.jsonl "
        "(docs/replay.md). Exit status 1: a request or an answer of the client differs from the capture.",
        usage="mcpspy mock CAPTURE... [OPTION...] [--record-missing -- COMMAND [ARG...]]",
        server=True,
    ),
    Command(
        "replay",
        "replay a capture against a server and report differences",
        "Replay the client's messages from a capture against a server and report differences.",
        CAPTURE,
        URL,
        HEADER,
        Option(
            "--only",
            placeholder="N[,N...]",
            convert=row_numbers,
            text="send only these requests, given by row number, with what they need before them, and show the "
            "answers beside the recorded ones; without a server, to the recorded one, after a question",
        ),
        Option("--edit", text="with --only: change the request first, in $EDITOR or by standard input"),
        Option("--yes", text="with --only: send without a question"),
        *ACCESS,
        Option("-o", placeholder="FILE", dest="new", text="keep the new session as a capture"),
        *TOLERANCES,
        Option("--learn", placeholder="N", convert=int, text="run N times and propose what to allow or to ignore"),
        Option("--shape", text="compare only the structure of the answers"),
        Option("--read-only", text="skip calls of tools without readOnlyHint"),
        Option("--as-forwarded", text="send what gates forwarded, not what the client sent"),
        Option("--strict", text="compare log messages too"),
        Option("--update", text="replace the capture with the new session, if they differ"),
        Option(
            "--format", placeholder="FORMAT", choices=("text", "json", "junit", "github"), text="format of the report"
        ),
        REPORT,
        epilog="You can put --ignore, --is, --matches, --within, --shape, --strict and --read-only into a file "
        "NAME.replay.toml beside NAME.jsonl (docs/replay.md). Exit status 1: something differs.",
        usage="mcpspy replay CAPTURE [--only N[,N...]] [OPTION...] (--url URL | -- COMMAND [ARG...])",
        server=True,
    ),
    Command(
        "diff",
        "compare two captures of a server",
        "Compare two captures of a server: its tools, prompts and resources, its answers, its latency.",
        Positional("old", "A"),
        Positional("new", "B"),
        *TOLERANCES,
        Option("--format", placeholder="FORMAT", choices=("text", "json"), text="format of the report"),
        epilog="The settings in A.replay.toml beside A.jsonl apply too (docs/replay.md). Exit status 1: something "
        "differs.",
        run="replay.run_diff",
    ),
)
"""The group `Replay` of `mcpspy --help`."""
