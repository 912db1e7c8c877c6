"""The arguments of the commands that pass captures on to people and programs."""

from mcpspy.cli.options import Command, Option, Positional
from mcpspy.cli.options.shared import ALL_CAPTURES, CAPTURE, FOLDER_OF_CAPTURES

COLLECTOR = "http://localhost:4318"
"""Where `otel` sends to if neither an option nor a variable says it."""
FORCE = Option("--force", text="replace FILE if it exists")
SCRUBBING = (
    Option("--yes", text="write without asking"),
    Option("--replace", placeholder="REGEX", many=True, text="also replace text that matches REGEX; repeatable"),
    Option(
        "--keep",
        placeholder="POINTER",
        many=True,
        text="in every message, keep the value at this JSON pointer; repeatable",
    ),
    Option("--only-secrets", text="replace secrets only, not e-mail addresses, home directories and user names"),
)
"""What is replaced; `mcpspy.cli.share` reads them."""

SHARE = (
    Command(
        "share",
        "write a capture as one HTML page without secrets",
        "Write a capture as one HTML page that opens offline in any browser and holds the whole session. Secrets, "
        "e-mail addresses, home directories and user names are replaced first. 'mcpspy import' reads the page back.",
        CAPTURE,
        Option(
            "-o",
            placeholder="FILE",
            dest="file",
            text="write to FILE (default: CAPTURE's name with .html, in the current directory)",
        ),
        FORCE,
        Option(
            "--filter",
            placeholder="EXPR",
            text="share only matching rows, each request with its response (docs/filters.md)",
        ),
        Option("--raw", text="keep everything, also secrets; the page says so"),
        *SCRUBBING,
    ),
    Command(
        "cut",
        "make a small capture of a large one",
        "Write a capture with only the matching rows of another one, each with its whole exchange, and with the "
        "handshake. 'mcpspy mock' and 'mcpspy replay' can play it. Nothing is replaced: run 'mcpspy scrub' if you give "
        "it to somebody else.",
        CAPTURE,
        Option("-o", placeholder="FILE", dest="file", text="write the new capture to FILE (required)", required=True),
        Option("--filter", placeholder="EXPR", text="keep matching rows: 'method:tools/call' (docs/filters.md)"),
        Option("--from", placeholder="N", dest="first", convert=int, text="keep rows from number N on"),
        Option("--to", placeholder="N", dest="last", convert=int, text="keep rows up to number N"),
        FORCE,
        epilog="What stays with a row: docs/replay.md.",
        run="share.run_cut",
    ),
    Command(
        "scrub",
        "remove secrets and personal data from a capture",
        "Write a copy of a capture without secrets, e-mail addresses, home directories and user names; or, "
        "with --check, exit 1 if captures hold any. Record numbers stay the same, and equal values get the "
        "same replacement.",
        Positional("captures", "CAPTURE", "one capture; with --check any number of captures or directories", many="+"),
        Option("-o", placeholder="FILE", dest="file", text="write the new capture to FILE (required without --check)"),
        FORCE,
        *SCRUBBING,
        Option("--check", text="write nothing; report what would be replaced, and where"),
        Option(
            "--format",
            placeholder="FORMAT",
            choices=("text", "json", "sarif", "github"),
            text="with --check: format of the report",
        ),
        Option("--output", placeholder="FILE", text="with --check: write the report to FILE"),
        Option(
            "--waivers",
            placeholder="FILE",
            text="with --check: accept the places that FILE lists, with reasons (TOML)",
        ),
        run="share.run_scrub",
    ),
    Command(
        "import",
        "make captures from recordings of other programs",
        "Make a capture for each server in a recording of another program, or in a page of 'mcpspy share', and "
        "print the paths.",
        Positional("file", "FILE"),
        FOLDER_OF_CAPTURES,
        epilog="It reads files of mitmproxy, browsers (HAR), the MCP Inspector and others: docs/import.md.",
        run="convert.run_import",
    ),
    Command(
        "export",
        "convert captures: HAR, Mermaid, Perfetto, CSV, curl, Parquet",
        "Convert captures to formats of other programs. Secrets are kept: run 'mcpspy scrub' first if you "
        "give the result to somebody else.",
        Positional("captures", "CAPTURE|DIR", "a directory stands for its *.jsonl and *.jsonl.gz files", many="+"),
        Option(
            "--format",
            placeholder="FORMAT",
            choices=("har", "mermaid", "perfetto", "csv", "otlp", "curl", "parquet"),
            required=True,
            text="output format (required)",
        ),
        Option(
            "-o",
            placeholder="PATH",
            dest="output",
            text="file to write, instead of stdout. Several captures need a directory, which gets one file for each; "
            "but csv, perfetto, otlp and curl write all of them to one file if PATH ends in .csv (csv), .json "
            "(perfetto, otlp) or .sh (curl). parquet always needs a directory",
        ),
        Option(
            "--filter",
            placeholder="EXPR",
            text="export matching rows only: 'method:tools/call' (docs/filters.md)",
        ),
        Option(
            "--force",
            text="replace existing files; with parquet, write unchanged captures again instead of skipping them",
        ),
        epilog="What each format holds, and which program opens it: docs/export.md.",
        run="convert.run",
    ),
    Command(
        "otel",
        "send captures to an OpenTelemetry collector",
        "Send captures to an OpenTelemetry collector over OTLP/HTTP: each exchange as a span; stderr, log messages and "
        "findings as logs; with --follow also durations as metrics. What the collector has accepted is not sent again.",
        ALL_CAPTURES,
        Option("--follow", text="keep sending: live captures, new captures, and metrics"),
        Option(
            "--endpoint",
            placeholder="URL",
            text=f"base URL of the collector (default: OTEL_EXPORTER_OTLP_ENDPOINT, or {COLLECTOR})",
        ),
        Option("--content", text="send arguments and results too, without known secrets"),
        epilog="The OTEL_* variables of the OpenTelemetry SDK apply. Needs the extra mcpspy[otel].",
    ),
)
"""The group `Share` of `mcpspy --help`."""
