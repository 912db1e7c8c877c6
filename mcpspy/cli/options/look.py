"""The arguments of the commands that show captures."""

from mcpspy.cli.options import Command, Option, Positional
from mcpspy.cli.options.shared import ALL_CAPTURES, CAPTURE_DIRECTORY

SQL_TABLES = ("captures", "frames", "messages", "exchanges", "findings", "tools")
SQL_FORMATS = ("table", "json", "csv", "parquet")

_UTC = Option("--utc", text="show times of day in UTC instead of local time, and read those of a filter as UTC")

LOOK = (
    Command(
        "tui",
        "browse captures in the terminal; 'mcpspy' alone lists all",
        "Browse captures in the terminal: one, several, or all of a directory. Live ones are followed.",
        Positional(
            "targets",
            "CAPTURE|DIR",
            "default: the newest capture; with --web, all of the capture directory",
            many="*",
        ),
        Option(
            "--web",
            placeholder="HOST:PORT",
            const="127.0.0.1:0",
            text="serve the TUI to a browser (default: a free port of 127.0.0.1); needs the extra mcpspy[web]",
        ),
        _UTC,
    ),
    Command(
        "why",
        "say what failed, and why",
        "Say what failed in captures, and why: the cause, the responsible side, the rows that prove it, and what to "
        "do. In several captures of one server, equal problems are counted together.",
        Positional("captures", "CAPTURE|DIR", "default: the newest capture", many="*"),
        Option(
            "--filter",
            placeholder="EXPR",
            text="only problems with a matching row: 'method:tools/call' (docs/filters.md)",
        ),
        Option("--json", text="print one JSON object (docs/json.md)"),
        epilog="Returns 1 if there are problems.",
        run="check.run_why",
    ),
    Command(
        "show",
        "print a capture as a timeline",
        "Print a capture as a timeline.",
        Positional("capture", "CAPTURE", "default: the newest capture; - is standard input", many="?"),
        Option(
            "--long",
            text="print each message below its row, as people read it: text with its line breaks, JSON within strings "
            "unfolded, schemas and media as one line",
        ),
        Option("--json", text="print one JSON object for each message"),
        Option("--follow", text="print new messages while the capture is live"),
        Option(
            "--filter",
            placeholder="EXPR",
            text="print matching rows only: 'status:error latency:>1s' (docs/filters.md)",
        ),
        _UTC,
        Option(
            "--gate",
            placeholder="FILE",
            text="mark the frames that the gates in FILE match, without applying the gates; their keys 'chance', "
            "'after' and 'times' are ignored (docs/gate.md)",
        ),
    ),
    Command(
        "ls",
        "list captures",
        "List the captures of a directory, live ones first. Captures of the same client process are grouped.",
        CAPTURE_DIRECTORY,
        Option("--runs", text="print one line for each client process instead of one for each capture"),
        Option("--json", text="print one JSON object for each capture, or with --runs for each client process"),
    ),
    Command(
        "stats",
        "count what servers, tools and clients do",
        "Count what servers, tools and clients do: calls, errors, latencies, bytes, findings, and requests "
        "that clients gave up on. Also show where the time was spent, and how much of a model's context the tools "
        "use.",
        ALL_CAPTURES,
        Option("--json", text="print one JSON object for each server and each client"),
        epilog="Half of the calls took at most p50, and 95 percent at most p95. "
        "Tokens are estimated as one for each 4 bytes of JSON. Of a tool's definition, only name, description "
        "and inputSchema count. The base64 of images, audio and blobs does not count.",
    ),
    Command(
        "sql",
        "query captures with SQL",
        f"Query captures with SQL (DuckDB). The tables are {', '.join(SQL_TABLES)}; "
        '"DESCRIBE messages" lists the columns of the table "messages".',
        Positional("query", "QUERY", "one SELECT statement"),
        Positional("captures", "CAPTURE|DIR", "a glob pattern works too; default: the capture directory", many="*"),
        Option("--format", placeholder="FORMAT", choices=SQL_FORMATS, text="output format"),
        Option("-o", placeholder="FILE", dest="output", text="write to this file instead of stdout"),
        Option("--force", text="replace the file if it exists"),
        epilog="Example: mcpspy sql \"SELECT name, count(*) FROM exchanges WHERE status <> 'ok' GROUP BY name\". All "
        "columns, and more examples: docs/sql.md. Needs the extra mcpspy[sql].",
    ),
    Command(
        "mcp",
        "serve captures to agents as an MCP server",
        "Serve captures to agents: an MCP server on stdin and stdout, read-only, without secrets and personal data.",
        CAPTURE_DIRECTORY,
        epilog="'mcpspy install CLIENT --agent' adds it to a client (docs/agents.md). Needs the extra mcpspy[agent].",
    ),
    Command(
        "prune",
        "delete old captures",
        "Delete old captures, but never a live one. It needs --older, --keep or both.",
        CAPTURE_DIRECTORY,
        Option("--older", placeholder="AGE", text="delete captures older than this: 90m, 12h, 30d, 8w"),
        Option("--keep", placeholder="SIZE", text="delete the oldest until the rest takes at most this: 500MB, 2GB"),
        Option("--dry-run", text="only print what would be deleted"),
        run="ls.run_prune",
    ),
    Command(
        "demo",
        "run a sample session",
        "Run a sample session: a client calls a small weather server behind 'mcpspy wrap'. Show it live.",
    ),
)
"""The group `Look` of `mcpspy --help`."""
