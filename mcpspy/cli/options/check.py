"""The arguments of the commands that check captures and servers."""

from mcpspy.cli.options import Command, Option, Positional
from mcpspy.cli.options.shared import ACCESS, HEADER, REPORT, REVISIONS, SEVERITIES, URL, rules
from mcpspy.errors import UsageError

LIMITING_CLIENTS = (
    *("anthropic-api", "bedrock-api", "claude-code", "claude-desktop", "codex", "cursor", "gemini-api", "gemini-cli"),
    *("openai-api", "opencode", "py-sdk", "ts-sdk", "vscode"),
)
"""The clients, SDKs and model APIs whose limits are known."""
LOCK_FILE = "mcp.lock.json"


def seconds(text: str) -> float:
    """Return the value of `--timeout`."""
    try:
        found = float(text)
    except ValueError:
        found = 0
    if not 0 < found < 86400:
        raise UsageError(f"--timeout takes seconds, such as 30, not {text!r}")
    return found


EXPECTATIONS = (
    Option("--expect", placeholder="FILE", text="check each capture against the expectations in FILE (TOML)"),
    Option("--max-duration", placeholder="TIME", text="expect that a session takes at most this long, such as 30s"),
    Option("--no-failures", text="expect that no request fails (docs/expect.md)"),
    Option(
        "--expect-tool", placeholder="NAME", many=True, text="expect that a tool is called; * is any text; repeatable"
    ),
    Option(
        "--forbid-tool",
        placeholder="NAME",
        many=True,
        text="expect that a tool is never called; * is any text; repeatable",
    ),
)
"""What a session must do; `mcpspy.cli.check` reads them."""

CHECK = (
    Command(
        "check",
        "find protocol violations in captures",
        "Find protocol violations in captures, by the revision of MCP that client and server use. Exit status 2: "
        "wrong usage, unreadable input, or a bug in mcpspy stopped a check. After such a bug, stderr has the details, "
        "and the report has all other findings.",
        Positional(
            "captures",
            "CAPTURE|DIR",
            "a directory stands for its *.jsonl and *.jsonl.gz files; default: the newest capture",
            many="*",
        ),
        Option(
            "--as",
            placeholder="REVISION",
            dest="revision",
            offers=REVISIONS,
            text="check against another revision, to see what a migration needs",
        ),
        Option(
            "--fail-on",
            placeholder="SEVERITY",
            choices=(*SEVERITIES, "never"),
            text="exit 1 if a finding has at least this severity",
        ),
        Option(
            "--client",
            placeholder="NAME",
            many=True,
            offers=(*LIMITING_CLIENTS, "all"),
            text="also report what this client, SDK or model API refuses; repeatable; 'all' or one of "
            + ", ".join(LIMITING_CLIENTS),
        ),
        Option("--ignore", placeholder="RULE", many=True, offers=rules, text="skip a rule, or 'group/*'; repeatable"),
        Option("--lock", placeholder="FILE", text="compare with the lock file FILE, which 'mcpspy lock' writes"),
        Option("--waivers", placeholder="FILE", text="accept the findings that FILE lists, with reasons (TOML)"),
        *EXPECTATIONS,
        Option(
            "--format",
            placeholder="FORMAT",
            choices=("text", "json", "junit", "sarif", "github"),
            text="format of the report",
        ),
        REPORT,
        Option("--follow", text="print findings of a live capture as they occur"),
    ),
    Command(
        "verify",
        "prove that mcpspy is transparent in front of a server",
        "Run the same session with a server twice, directly and through mcpspy, and compare all that client and server "
        "can see: bytes, environment, signals and exit status on stdio, requests and responses over HTTP.",
        Option("--url", placeholder="URL", text="verify 'mcpspy proxy' in front of the server at URL"),
        Option(
            "--through",
            placeholder="COMMAND",
            text="verify another program instead of mcpspy: a command that takes the server's command as its last "
            "arguments; with --url: the URL of another proxy",
        ),
        Option(
            "--capture",
            placeholder="FILE",
            text="send what the client sent in this capture, instead of requesting the listings",
        ),
        Option(
            "--call",
            placeholder="NAME[=JSON]",
            many=True,
            text="call this tool too, with these arguments; repeatable; 'all': every tool",
        ),
        Option(
            "--header",
            placeholder="'NAME: VALUE'",
            many=True,
            text="send this header with each request; needs --url; repeatable",
        ),
        *ACCESS,
        Option(
            "--timeout",
            placeholder="SECONDS",
            default=30.0,
            convert=seconds,
            text="wait at most this long for an answer (default: 30)",
        ),
        Option("--json", text="print JSON (docs/json.md)"),
        epilog="It requests the listings, and calls only tools that are read-only and need no arguments. --call adds "
        "other tools. Exit status 0: nothing differs; 1: something does.",
        usage="mcpspy verify [OPTION...] -- COMMAND [ARG...]\n       mcpspy verify [OPTION...] --url URL",
        server=True,
    ),
    Command(
        "rules",
        "list the rules of 'check', or explain one",
        "List the rules, or explain one of them: what it finds, how to fix it, and examples.",
        Positional("rule", "RULE", many="?", offers=rules),
        run="reference.run_rules",
    ),
    Command(
        "lock",
        "write a lock file of what servers offer",
        "Write a lock file of what servers offer: capabilities, instructions, tools, prompts, resources and "
        "resource templates, as captures show it or as the server answers now. No tool is called.",
        Positional("captures", "CAPTURE|DIR", "a directory stands for its *.jsonl and *.jsonl.gz files", many="*"),
        URL,
        HEADER,
        *ACCESS,
        Option("--name", placeholder="NAME", text="name of the server in the file (default: its own)"),
        Option(
            "-o", placeholder="FILE", dest="output", default=LOCK_FILE, text=f"the lock file (default: {LOCK_FILE})"
        ),
        Option("--update", text="accept the changes since the file was written"),
        epilog="Exit status 1: the servers differ from the lock file, and --update is not given. The file stays "
        "unchanged.",
        usage="mcpspy lock [OPTION...] (CAPTURE|DIR... | --url URL | -- COMMAND [ARG...])",
        server=True,
    ),
    Command(
        "schema",
        "print and compare the message schemas of MCP revisions",
        "Print the message schemas of each revision of MCP, and what changed between two of them.",
        subcommands=(
            Command(
                "list",
                "list the revisions and the known extensions",
                "List the revisions and the known extensions.",
            ),
            Command(
                "show",
                "print a revision as JSON Schema",
                "Print as JSON Schema: a revision, one DEFINITION of it, or what an EXTENSION adds to it.",
                Positional("revision", "REVISION", offers=REVISIONS),
                Positional("definition", "DEFINITION|EXTENSION", many="?"),
            ),
            Command(
                "diff",
                "compare two revisions",
                "Print what changed from one revision to another.",
                Positional("old", "OLD", offers=REVISIONS),
                Positional("new", "NEW", offers=REVISIONS),
            ),
        ),
        run="reference.run_schema",
    ),
)
"""The group `Check` of `mcpspy --help`."""
