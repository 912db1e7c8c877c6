"""What clients and model APIs refuse in a list of tools, and how long clients wait, as data. MCP allows all of it.

A client passes the tools of its servers on to the API of a model, which has limits of its own. Many validate the whole
list at once, so one tool that breaks a limit makes all tools unavailable. Each row is one limit of one client, with a
public source that shows it. A limit without such a source is left out. So is a limit that a client works around by
itself (Codex and Cline rename tools, VS Code removes `oneOf` at the top level). The rules of the group `compat` use
these rows, and `docs/compat.md` is generated from them.

After its time-out, for the start of a server or for one call of a tool, a client gives up, and the user sees no tools,
or a failed call. Times are seconds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mcpspy.text import series

SEEN = "2026-11-29"
"""The date by which all sources were read."""
_NOV_22 = "2026-11-22"

CLIENTS = {
    "anthropic-api": "Anthropic API",
    "bedrock-api": "Amazon Bedrock, Converse API",
    "claude-code": "Claude Code",
    "claude-desktop": "Claude Desktop",
    "codex": "Codex CLI",
    "cursor": "Cursor",
    "gemini-api": "Gemini API",
    "gemini-cli": "Gemini CLI",
    "openai-api": "OpenAI API",
    "opencode": "OpenCode",
    "py-sdk": "MCP Python SDK",
    "ts-sdk": "MCP TypeScript SDK",
    "vscode": "VS Code",
}
"""The clients that have rows: names for people, by the names that `check --client` accepts."""


_NAMES = {
    "claude-code": "claude-code",
    "claude-ai": "claude-desktop",
    "codex-mcp-client": "codex",
    "cursor-vscode": "cursor",
    "gemini-cli-mcp-client": "gemini-cli",
    "opencode": "opencode",
    "Visual Studio Code": "vscode",
    "code-server": "vscode",
}
"""By the beginning of the name in `clientInfo`: the client."""


def clients_named(name: str) -> frozenset[str]:
    """Return the client that introduces itself with this name, as a set; empty if it has no rows."""
    return frozenset(client for beginning, client in _NAMES.items() if name.startswith(beginning))


class Effect(Enum):
    """What happens if a limit is broken."""

    REQUEST = "the whole request is refused"
    """By a model API: every request fails while the tool is in the list."""
    LIST = "all tools of the server are dropped"
    TOOL = "this tool is left out"
    CUT = "the rest is cut off"


EXPECTED = {
    "compat/tool-name": "a tool name that matches {pattern}",
    "compat/tool-count": "at most {most} tools",
    "compat/description-length": "a description of at most {most} characters",
    "compat/property-name": "property names that match {pattern}",
    "compat/schema-missing": "an object as inputSchema",
    "compat/schema-type": 'an inputSchema with "type": "object"',
    "compat/schema-combination": "an inputSchema without {keywords} at its top level",
    "compat/schema-properties": "an inputSchema with properties",
    "compat/schema-members": "an object for each property, and an array of strings for required",
    "compat/schema-dialect": "an inputSchema that is valid JSON Schema {keywords}",
    "compat/array-items": "items for each array in the inputSchema",
    "compat/enum-values": "strings in each enum",
    "compat/reference-siblings": "nothing but {keywords} beside a $ref",
    "compat/output-schema-reference": "an outputSchema that holds what it refers to",
    "compat/output-schema-type": 'an outputSchema with "type": "object"',
    "compat/image-type": "{keywords}",
    "compat/result-size": "at most {most} tokens",
}
"""By rule: what a limit expects. The values of the limit replace the braces."""


@dataclass(frozen=True, slots=True)
class Limit:
    """One row: one limit of one client."""

    rule: str
    """The rule that uses it."""
    client: str
    effect: Effect
    source: str
    """URL of the evidence: the client's code, its documentation, or a report with the error message."""
    dated: str
    """The date of that source. For code and documentation that change: when they were read."""
    pattern: str = ""
    """A regular expression for the whole name."""
    most: int = 0
    keywords: tuple[str, ...] = ()
    version: str = ""
    """The version of the client, if the source names one. For a model API, the models."""

    @property
    def expected(self) -> str:
        """What the client expects."""
        return EXPECTED[self.rule].format(pattern=self.pattern, most=self.most, keywords=series(self.keywords, "or"))


_WORD_64, _WORD_128 = "^[a-zA-Z0-9_-]{1,64}$", "^[a-zA-Z0-9_-]{1,128}$"
_PROPERTY = "^[a-zA-Z0-9_.-]{1,64}$"
_WEB_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_COMBINING = ("oneOf", "allOf", "anyOf")
_BOTH = ("inputSchema", "outputSchema")
_GITHUB = "https://github.com"
_TS_TYPES = f"{_GITHUB}/modelcontextprotocol/typescript-sdk/blob/v1.29.0/src/types.ts"
_PY_SESSION = f"{_GITHUB}/modelcontextprotocol/python-sdk/blob/v2.0.0/src/mcp/client/session.py"
_GEMINI_CLI = f"{_GITHUB}/google-gemini/gemini-cli/blob/main/packages/core/package.json"
_GEMINI_VERSION = "0.56.0 (TypeScript SDK 1.23.0)"
_NORMALIZER = "extensions/copilot/src/extension/tools/common/toolSchemaNormalizer.ts"
_REQUEST, _LIST, _TOOL, _CUT = Effect.REQUEST, Effect.LIST, Effect.TOOL, Effect.CUT

LIMITS = (
    Limit("compat/tool-name", "anthropic-api", _REQUEST, f"{_GITHUB}/github/copilot-cli/issues/1879", "2026-03-06",
          pattern=_WORD_128),
    Limit("compat/tool-name", "bedrock-api", _REQUEST,
          "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ToolSpecification.html", _NOV_22,
          pattern=_WORD_64),
    Limit("compat/tool-name", "claude-desktop", _LIST, f"{_GITHUB}/evoila/meho/issues/2745", "2026-08-02",
          pattern=_WORD_64),
    # For the shortest name that a server can have.
    Limit("compat/tool-name", "cursor", _TOOL, f"{_GITHUB}/PostHog/posthog/pull/51483", "2026-03-18",
          pattern="^.{1,58}$", version="with the name of the server less than 60 characters"),
    Limit("compat/tool-name", "gemini-api", _REQUEST, f"{_GITHUB}/kaitranntt/ccs/issues/25", "2025-11-30",
          pattern="^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$"),
    Limit("compat/tool-name", "openai-api", _REQUEST,
          f"{_GITHUB}/openai/openai-python/blob/main/src/openai/types/shared/function_definition.py", _NOV_22,
          pattern=_WORD_64, version="Chat Completions"),

    Limit("compat/tool-count", "openai-api", _REQUEST, f"{_GITHUB}/zed-industries/zed/issues/42393", "2025-11-10",
          most=128, version="Chat Completions, GPT-5"),
    Limit("compat/description-length", "claude-code", _CUT, f"{_GITHUB}/anthropics/claude-code/issues/41593",
          "2026-03-31", most=2048, version="2.1.84"),

    Limit("compat/property-name", "anthropic-api", _REQUEST, f"{_GITHUB}/decocms/studio/pull/6874", "2026-09-02",
          pattern=_PROPERTY),
    Limit("compat/property-name", "claude-code", _REQUEST, f"{_GITHUB}/anthropics/claude-code/issues/79418",
          "2026-08-17", pattern=_PROPERTY, version="2.1.233, once the tool is loaded"),

    Limit("compat/schema-missing", "codex", _LIST, f"{_GITHUB}/juspay/olai/issues/548", "2026-09-06"),
    Limit("compat/schema-missing", "gemini-cli", _LIST, _GEMINI_CLI, _NOV_22, version=_GEMINI_VERSION),
    Limit("compat/schema-missing", "py-sdk", _LIST, _PY_SESSION, _NOV_22, version="1.30.0, 2.3.0"),
    Limit("compat/schema-missing", "ts-sdk", _LIST, _TS_TYPES, _NOV_22, version="1.32.2, 2.0.0"),

    Limit("compat/schema-type", "bedrock-api", _REQUEST, f"{_GITHUB}/Yeachan-Heo/gajae-code/pull/864", "2026-06-18"),
    Limit("compat/schema-type", "claude-code", _LIST, f"{_GITHUB}/anthropics/claude-code/issues/88049", "2026-08-19"),
    Limit("compat/schema-type", "gemini-cli", _LIST, _GEMINI_CLI, _NOV_22, version=_GEMINI_VERSION),
    Limit("compat/schema-type", "openai-api", _REQUEST, f"{_GITHUB}/langchain-ai/langchainjs/issues/9804",
          "2026-01-14"),
    Limit("compat/schema-type", "py-sdk", _LIST, _PY_SESSION, _NOV_22, version="2.3.0; 1.x accepts it"),
    Limit("compat/schema-type", "ts-sdk", _LIST, _TS_TYPES, _NOV_22, version="1.32.2, 2.0.0"),

    Limit("compat/schema-combination", "anthropic-api", _REQUEST, f"{_GITHUB}/anomalyco/opencode/issues/46628",
          "2026-09-01", keywords=_COMBINING),
    Limit("compat/schema-combination", "claude-code", _TOOL, f"{_GITHUB}/anthropics/claude-code/issues/95504",
          "2026-09-19", keywords=_COMBINING),
    Limit("compat/schema-combination", "openai-api", _REQUEST, f"{_GITHUB}/BerriAI/litellm/pull/38792", "2026-08-29",
          keywords=_COMBINING, version="GPT-3.5, GPT-4, o1, o3, o4; GPT-5 and later accept it"),

    Limit("compat/schema-properties", "openai-api", _REQUEST,
          f"{_GITHUB}/openai/openai-agents-python/blob/main/src/agents/mcp/util.py", _NOV_22),

    Limit("compat/schema-members", "claude-code", _LIST, f"{_GITHUB}/anthropics/claude-code/issues/92900",
          "2026-09-08", keywords=_BOTH),
    Limit("compat/schema-members", "cursor", _LIST, f"{_GITHUB}/MervinPraison/PraisonAI/issues/3111", "2026-07-16",
          keywords=("inputSchema",)),
    Limit("compat/schema-members", "gemini-cli", _LIST, _GEMINI_CLI, _NOV_22, keywords=_BOTH, version=_GEMINI_VERSION),
    Limit("compat/schema-members", "opencode", _LIST, f"{_GITHUB}/anomalyco/opencode/issues/49464", "2026-09-17",
          keywords=_BOTH),
    Limit("compat/schema-members", "ts-sdk", _LIST, _TS_TYPES, _NOV_22, keywords=_BOTH,
          version="1.32.2; 2.0.0 accepts it"),

    Limit("compat/schema-dialect", "anthropic-api", _REQUEST, f"{_GITHUB}/anthropics/claude-code/issues/86664",
          "2026-08-14", keywords=("draft 2020-12",)),
    Limit("compat/schema-dialect", "vscode", _TOOL,
          f"{_GITHUB}/microsoft/vscode/blob/main/src/vs/workbench/contrib/mcp/common/mcpServer.ts", _NOV_22,
          keywords=("draft-07",)),

    Limit("compat/array-items", "gemini-api", _REQUEST, f"{_GITHUB}/NousResearch/hermes-agent/issues/77617",
          "2026-08-03"),
    Limit("compat/array-items", "openai-api", _REQUEST, f"{_GITHUB}/spacelift-io/spacectl/issues/402", "2026-03-18"),
    Limit("compat/array-items", "vscode", _REQUEST, f"{_GITHUB}/microsoft/vscode/blob/main/{_NORMALIZER}", _NOV_22),

    Limit("compat/enum-values", "gemini-api", _REQUEST, f"{_GITHUB}/router-for-me/CLIProxyAPI/pull/1076",
          "2026-01-17"),
    Limit("compat/reference-siblings", "gemini-api", _REQUEST, f"{_GITHUB}/anomalyco/opencode/issues/12295",
          "2026-02-05", keywords=("description", "default")),

    Limit("compat/output-schema-type", "claude-code", _TOOL, f"{_GITHUB}/Wynelson94/longhand/issues/10", "2026-05-22"),
    Limit("compat/output-schema-type", "cursor", _LIST, f"{_GITHUB}/anthropics/claude-code/issues/10031",
          "2025-10-21"),
    Limit("compat/output-schema-type", "gemini-cli", _LIST, _GEMINI_CLI, _NOV_22, version=_GEMINI_VERSION),
    Limit("compat/output-schema-type", "py-sdk", _LIST, _PY_SESSION, _NOV_22, version="2.3.0; 1.x accepts it"),
    Limit("compat/output-schema-type", "ts-sdk", _LIST, _TS_TYPES, _NOV_22, version="1.32.2, 2.0.0"),

    Limit("compat/output-schema-reference", "ts-sdk", _LIST, f"{_GITHUB}/anomalyco/opencode/issues/21591",
          "2026-04-09", version="1.32.2; 2.0.0 accepts it"),

    Limit("compat/image-type", "anthropic-api", _REQUEST, f"{_GITHUB}/anomalyco/opencode/issues/12519", "2026-02-06",
          keywords=_WEB_IMAGES),
    Limit("compat/image-type", "claude-code", _REQUEST, f"{_GITHUB}/anthropics/claude-code/issues/28279",
          "2026-02-24", keywords=_WEB_IMAGES),
    Limit("compat/image-type", "gemini-api", _REQUEST,
          "https://docs.cloud.google.com/vertex-ai/docs/generative-ai/image/image-captioning", SEEN,
          keywords=("image/jpeg", "image/png", "image/webp", "image/heic", "image/heif")),
    Limit("compat/image-type", "openai-api", _REQUEST, "https://developers.openai.com/api/docs/guides/images-vision",
          SEEN, keywords=_WEB_IMAGES),

    Limit("compat/result-size", "claude-code", _CUT,
          "https://developers.figma.com/docs/figma-mcp-server/mcp-clients-issues", SEEN, most=25_000,
          version="unless MAX_MCP_OUTPUT_TOKENS raises it"),
)  # fmt: skip
"""The rows, by rule and client."""


def limits(rule: str, clients: Iterable[str]) -> list[Limit]:
    """Return the limits of these clients that a rule uses."""
    return [limit for limit in LIMITS if limit.rule == rule and limit.client in clients]


_RUN = "2026-11-22"  # when the clients were run with a slow server


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
