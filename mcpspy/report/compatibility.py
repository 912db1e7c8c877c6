"""`docs/compat.md`: what clients and model APIs refuse, generated from the table that `check --client` uses."""

from collections.abc import Iterator

from mcpspy.spec.client_limits import CLIENTS, LIMITS, SEEN, Limit


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
