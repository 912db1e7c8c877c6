"""The real clients that `scripts/clients` starts, as data: package, configuration, command line, environment.

Texts may contain placeholders. `{url}` is the URL of the model, `{home}` and `{work}` are the directories of a run, and
`{prompt}` is the task of the model. `{tool}` and `{arguments}` are those of the first call, for a client without a
model.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parent / "clients_data"
MODEL = "scripted"
PROMPT = "Use the tools of the server plain."


class Server(NamedTuple):
    """The MCP server in a configuration: a command, or a URL."""

    argv: tuple[str, ...] = ()
    url: str = ""


@dataclass(frozen=True, eq=False)
class Client:
    """One client."""

    name: str
    package: str
    """npm: `NAME@VERSION`; PyPI: requirements, each with its version."""
    program: str
    """The name of the program in the package."""
    file: str
    """The path of its configuration."""
    text: Callable[[Server], str]
    """Returns the text of the configuration with a server."""
    arguments: tuple[str, ...] = ("{prompt}",)
    environ: dict[str, str] = field(default_factory=dict)
    untrusted: dict[str, str] = field(default_factory=dict)
    """The environment in which it does not trust the working directory, if it has such a setting."""
    beside: dict[str, Any] = field(default_factory=dict)
    """Other files that it needs, as JSON."""
    known: str = ""
    """Its id for `mcpspy install`; empty if it has no configuration of its own."""
    own: tuple[str, ...] = ()
    """Its own commands to add a server `other` to its configuration and to remove it."""
    different: dict[str, str] = field(default_factory=dict)
    """Scenario and connection -> the known difference through mcpspy, with the reason."""
    driver: str = ""
    """The file in `clients_data` that runs the client: the client is a library, or has no command line."""
    steps: tuple[str, ...] = ()
    """The commands that complete its installation, if its own script would download programs."""


def _object(server: Server, *, local: dict, remote: dict, key: str = "url") -> dict:
    if server.url:
        return remote | {key: server.url}
    return local | {"command": server.argv[0], "args": list(server.argv[1:])}


def servers(
    local: dict | None = None, remote: dict | None = None, key: str = "url", **beside: object
) -> Callable[[Server], str]:
    """Return a function that writes a JSON file with `mcpServers`.

    `local` and `remote` are members of entries, `beside` are other members of the file.
    """

    def text(server: Server) -> str:
        entry = _object(server, local=local or {}, remote=remote or {}, key=key)
        return json.dumps(beside | {"mcpServers": {"plain": entry}}, indent=2) + "\n"

    return text


def codex(server: Server) -> str:
    lines = [
        f'model = "{MODEL}"',
        'model_provider = "local"',
        "[model_providers.local]",
        'name = "local"',
        'base_url = "{url}/v1"',
        'wire_api = "responses"',
        'env_key = "OPENAI_API_KEY"',
        "[mcp_servers.plain]",
    ]
    if server.url:
        lines.append(f"url = {json.dumps(server.url)}")
    else:
        lines += [f"command = {json.dumps(server.argv[0])}", f"args = {json.dumps(server.argv[1:])}"]
    return "\n".join(lines) + "\n"


def opencode(server: Server) -> str:
    entry = {"type": "remote", "url": server.url} if server.url else {"type": "local", "command": server.argv}
    models = {MODEL: {"name": MODEL, "tool_call": True, "limit": {"context": 100000, "output": 1000}}}
    options = {"baseURL": "{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "local", "options": options, "models": models}
    settings = {"provider": {"local": provider}, "autoupdate": False, "share": "disabled"}
    return json.dumps(settings | {"mcp": {"plain": entry | {"enabled": True}}}, indent=2) + "\n"


def continues(server: Server) -> str:
    lines = ["name: mine", "version: 1.0.0", "schema: v1", "models:", f"  - name: {MODEL}", "    provider: openai"]
    lines += [f"    model: {MODEL}", "    apiBase: {url}/v1", "    apiKey: none", "    roles: [chat]"]
    lines += ["    capabilities: [tool_use]", "mcpServers:", "  - name: plain"]
    if server.url:
        lines += ["    type: streamable-http", f"    url: {server.url}"]
    else:
        lines += [f"    command: {server.argv[0]}", f"    args: {json.dumps(server.argv[1:])}"]
    return "\n".join(lines) + "\n"


def cline(server: Server) -> str:
    remote = {"type": "streamableHttp", "url": server.url}
    local = {"type": "stdio", "command": (server.argv or [""])[0], "args": list(server.argv[1:])}
    return json.dumps({"mcpServers": {"plain": {"transport": remote if server.url else local}}}, indent=2) + "\n"


def vscode(server: Server) -> str:
    entry = _object(server, local={"type": "stdio"}, remote={"type": "http"})
    return json.dumps({"servers": {"plain": entry}}, indent=2) + "\n"


DESCENDANTS = (
    "the client sends TERM to all descendants of a server process before it closes stdin; a server behind mcpspy or npx"
    " receives it too"
)
DIRECT = "code-server connects directly: it ignores the variables that `mcpspy run` sets"
OPENAI = {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "{url}/v1", "OPENAI_MODEL": MODEL}
MODELS = OPENAI | {"GOOGLE_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}"}
IN_VSCODE = "npm --prefix node_modules/code-server/lib/vscode --no-audit --no-fund --loglevel=error"
CLIENTS = (
    Client(
        "claude-code",
        "@anthropic-ai/claude-code@2.1.330",
        "claude",
        "{home}/.claude.json",
        servers({"type": "stdio"}, {"type": "http"}, hasCompletedOnboarding=True),
        ("-p", "{prompt}", "--model", MODEL, "--allowedTools", "mcp__plain"),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "ENABLE_TOOL_SEARCH": "false",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        known="claude-code",
        own=("mcp add -s user other -- /bin/true", "mcp remove -s user other"),
    ),
    Client(
        "codex",
        "@openai/codex@0.169.0",
        "codex",
        "{home}/.codex/config.toml",
        codex,
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "{prompt}"),
        {"OPENAI_API_KEY": "none"},
        known="codex",
        own=("mcp add other -- /bin/true", "mcp remove other"),
    ),
    Client(
        "gemini-cli",
        "@google/gemini-cli@0.61.0",
        "gemini",
        "{home}/.gemini/settings.json",
        servers(key="httpUrl", security={"auth": {"selectedType": "gemini-api-key"}}),
        ("-p", "{prompt}", "-y", "-m", MODEL),
        {"GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": "{url}", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        {"GEMINI_CLI_TRUST_WORKSPACE": "false"},
        known="gemini-cli",
        own=("mcp add -s user other /bin/true", "mcp remove -s user other"),
    ),
    Client(
        "mcporter",
        "mcporter@0.12.3",
        "mcporter",
        "{home}/.mcporter/mcporter.json",
        servers(),
        ("call", "plain.{tool}", "--args", "{arguments}"),
        known="mcporter",
        own=("config add other --command /bin/true --scope home", "config remove other"),
    ),
    Client(
        "opencode",
        "opencode-ai@1.18.33",
        "opencode",
        "{home}/.config/opencode/opencode.json",
        opencode,
        ("run", "{prompt}", "-m", f"local/{MODEL}"),
        {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        known="opencode",
        different=dict.fromkeys(("shutdown wrap", "clean-up wrap"), DESCENDANTS),
    ),
    Client(
        "qwen-code",
        "@qwen-code/qwen-code@0.24.4",
        "qwen",
        "{home}/.qwen/settings.json",
        servers(
            key="httpUrl",
            security={"auth": {"selectedType": "openai"}},
            tools={"toolSearch": {"enabled": False}},  # otherwise it hides tools from the model
        ),
        ("-p", "{prompt}", "-y"),
        OPENAI,
        known="qwen",
        own=("mcp add -s user other /bin/true", "mcp remove -s user other"),
    ),
    Client(
        "cline",
        "cline@3.0.65",
        "cline",
        "{home}/.cline/data/settings/cline_mcp_settings.json",
        cline,
        ("{prompt}",),
        beside={
            "{home}/.cline/data/settings/providers.json": {
                "version": 1,
                "lastUsedProvider": "openai-compatible",
                "providers": {
                    "openai-compatible": {
                        "settings": {
                            "provider": "openai-compatible",
                            "apiKey": "none",
                            "model": MODEL,
                            "baseUrl": "{url}/v1",
                        },
                        "updatedAt": "2026-01-01T00:00:00.000Z",
                        "tokenSource": "manual",
                    }
                },
            }
        },
        known="cline",
    ),
    Client(
        "continue",
        "@continuedev/cli@1.5.47",
        "cn",
        "{home}/.continue/config.yaml",
        continues,
        ("-p", "{prompt}", "--config", "{home}/.continue/config.yaml", "--auto"),
        known="continue",
    ),
    Client(
        "copilot-cli",
        "@github/copilot@1.0.102",
        "copilot",
        "{home}/.copilot/mcp-config.json",
        servers({"type": "local", "tools": ["*"]}, {"type": "http", "tools": ["*"]}),
        ("-p", "{prompt}", "--allow-all-tools"),
        {
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_MODEL": MODEL,
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        known="copilot",
        own=("mcp add other -- /bin/true", "mcp remove other"),
    ),
    Client(
        "vscode",
        "code-server@4.139.1",
        "code-server",
        "{home}/.local/share/code-server/User/mcp.json",
        vscode,
        beside={
            "{home}/.local/share/code-server/User/settings.json": {
                "chat.mcp.autostart": "newAndOutdated",
                "telemetry.telemetryLevel": "off",
                "workbench.startupEditor": "none",
            },
            "{home}/.local/share/code-server/User/chatLanguageModels.json": [
                {
                    "name": "local",
                    "vendor": "customendpoint",
                    "apiKey": "none",
                    "apiType": "chat-completions",
                    "models": [
                        {
                            "id": MODEL,
                            "name": MODEL,
                            "url": "{url}/v1/chat/completions",
                            "toolCalling": True,
                            "vision": False,
                            "maxInputTokens": 100000,
                            "maxOutputTokens": 4000,
                        }
                    ],
                }
            ],
        },
        known="vscode",
        different={"call mitm": DIRECT},
        driver="vscode.py",
        steps=(
            f"{IN_VSCODE} install --omit=dev --ignore-scripts --legacy-peer-deps",
            f"{IN_VSCODE} rebuild @vscode/spdlog node-pty @vscode/native-watchdog @parcel/watcher @vscode/sqlite3",
            "npm rebuild argon2",
        ),
    ),
    *(
        Client(name, package, program, "{work}/mcp.json", servers(), (), MODELS, driver=driver)
        for name, package, program, driver in (
            ("openai-agents", "openai-agents==0.24.0", "python", "openai_agents.py"),
            ("pydantic-ai", "pydantic-ai-slim[mcp,openai]==2.68.0", "python", "pydantic_ai.py"),
            (
                "langchain-mcp-adapters",
                "langchain-mcp-adapters==0.3.2 langchain==1.4.7 langchain-openai==1.7.3",
                "python",
                "langchain_mcp_adapters.py",
            ),
            ("smolagents", "smolagents[mcp,openai]==1.26.0 mcp[ws]==1.30.0", "python", "smolagents.py"),
            ("google-adk", "google-adk[mcp]==2.13.0", "python", "google_adk.py"),
            ("ai-sdk", "@ai-sdk/mcp@2.0.99 ai@7.0.173 @ai-sdk/openai-compatible@3.0.92", "node", "ai_sdk.mjs"),
            ("mastra", "@mastra/mcp@2.0.0 @mastra/core@1.71.0 @ai-sdk/openai-compatible@3.0.92", "node", "mastra.mjs"),
        )
    ),
)
