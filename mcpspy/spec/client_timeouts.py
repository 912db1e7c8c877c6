"""The time-outs of clients, as data: for the start of a server, and for one call of a tool.

After its time-out a client gives up, and the user sees no tools, or a failed call. Each row has its source and its
date; a limit without a source is left out. Times are seconds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_RUN = "2026-11-22"  # when the clients were run with a slow server
_GITHUB = "https://github.com"


@dataclass(frozen=True, slots=True)
class TimeOuts:
    """The time-outs of one client."""

    client: str
    """Its id in `clients.table`."""
    names: tuple[str, ...]
    """Its name in `clientInfo`, or the beginning of it: some clients append the name of the server."""
    begin: float | None
    """From the start of a stdio server to its response to `initialize`."""
    call: float | None
    """For the response to a `tools/call`; None means no time-out, or more than the 140 s that were tested."""
    source: str
    """The source; if the time-out was only measured, the client's documentation."""
    dated: str
    version: str
    begin_key: str = ""
    """The key of an entry that sets `begin`."""
    call_key: str = ""
    """The key of an entry that sets `call`."""
    unit: float = 0.001
    """Seconds in one unit of these keys."""
    setting: str = ""
    """How the user gives a server more time to start."""

    def begin_of(self, member: Callable[[str], Any]) -> float | None:
        """Return the time-out for the start in an entry; `member` returns the value of each of its keys."""
        own = member(self.begin_key) if self.begin_key else None
        return own * self.unit if isinstance(own, int | float) and not isinstance(own, bool) and own > 0 else self.begin


TIME_OUTS = (
    TimeOuts(
        "claude-code", ("claude-code",), 30, None, "https://code.claude.com/docs/en/mcp", _RUN, "2.1.330",
        call_key="timeout", setting="start it with MCP_TIMEOUT=60000 (milliseconds)",
    ),
    # Two tries of 3 s: lines, then Content-Length framing (sdk/packages/core/src/extensions/mcp/client.ts).
    TimeOuts(
        "cline", ("@cline/core", "Cline"), 3, 60, f"{_GITHUB}/cline/cline/blob/main/sdk/packages/shared/src/mcp.ts",
        _RUN, "3.0.65", "timeout", "timeout", 1, 'write "timeout": 60 (seconds) into its entry',
    ),
    TimeOuts(
        "codex", ("codex-mcp-client",), 10, None, f"{_GITHUB}/openai/codex/issues/11851", "2026-02-14", "0.101.0",
        "startup_timeout_sec", "tool_timeout_sec", 1, "write startup_timeout_sec = 60 into its table",
    ),
    # The command line; the IDE extensions wait 20 s (core/context/mcp/MCPConnection.ts, 2026-06-18).
    TimeOuts("continue", ("continue-cli-client",), 60, 60, "https://docs.continue.dev/guides/cli", _RUN, "1.5.47 (cn)"),
    TimeOuts(
        "copilot", ("copilot-cli",), 60, None,
        "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers", _RUN, "1.0.102",
    ),
    TimeOuts(
        "gemini-cli", ("gemini-cli-mcp-client",), 600, 600,
        f"{_GITHUB}/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
        _RUN, "0.61.0", "timeout", "timeout", setting='write "timeout": 600000 (milliseconds) into its entry',
    ),
    TimeOuts(
        "mcporter", ("mcporter",), 30, 60, f"{_GITHUB}/steipete/mcporter/blob/main/docs/config.md", _RUN, "0.12.3",
        setting="set MCPORTER_LIST_TIMEOUT=60000 (milliseconds)",
    ),
    TimeOuts(
        "opencode", ("opencode",), 30, 60, "https://opencode.ai/docs/mcp-servers/", _RUN, "1.18.34",
        "timeout", "timeout", setting='write "timeout": 60000 (milliseconds) into its entry',
    ),
    TimeOuts(
        "qwen", ("qwen-cli-mcp-client",), 30, 600,
        "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/", _RUN, "0.24.4",
        "discoveryTimeoutMs", "timeout", setting='write "discoveryTimeoutMs": 60000 into its entry',
    ),
)  # fmt: skip
"""The rows, by client."""

BY_CLIENT = {row.client: row for row in TIME_OUTS}


def time_outs_of(name: str) -> TimeOuts | None:
    """Return the row of the client with this name in `clientInfo`; None if there is none."""
    return next((row for row in TIME_OUTS if name.startswith(row.names)), None)
