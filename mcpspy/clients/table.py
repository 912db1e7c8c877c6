"""The known MCP clients, as data: where each keeps its servers, and how it writes them.

To add a client, add a row here and a fixture in `tests/clients/fixtures`.

A path is a template: `{home}`, `{config}` (the platform's directory for settings), `{xdg}` (the same for programs that
use the XDG directories on every platform), `{local}` (Windows: not roaming), `{project}` (the working directory, and
then each parent that is in the home or in the same git working tree, because other parents may belong to someone else),
`{data}` (the XDG directory for data), `{cache}` (for caches), and for a log `{name}` (the server).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mcpspy.clients.formats import COMMA, COMMENT, JSON, MARK, TOML, YAML
from mcpspy.errors import UsageError
from mcpspy.text import suggestion

USER, PROJECT, LOCAL = SCOPES = ("user", "project", "local")
"""All projects of the user; one project, shared with others; one project, for this user only."""

STRING, LIST = "a string", "a list"
"""How an entry writes its command: alone, with `args` beside it, or together with its arguments."""

HOME, BRACES, ENV, DOLLAR, IN_BRACES = "~", "${NAME}", "${env:NAME}", "$NAME", "{env:NAME}"
"""What a client replaces: `~` at the beginning of a word by the home, and a variable in one of these forms.

With `ENV` it also replaces variables of its own, such as `${workspaceFolder}`.
"""

HTTP, SSE, WEBSOCKET = "Streamable HTTP", "HTTP+SSE", "WebSocket"
BOTH = "Streamable HTTP, then HTTP+SSE"
"""The transports with which a client connects to a remote server."""


@dataclass(frozen=True, slots=True)
class Place:
    """One file of a client, or one place in it, with a list of servers."""

    scope: str
    path: str | Mapping[str, str]
    """A template, or one for each platform that has such a place; a `*` matches any name."""
    form: str = JSON
    """A format of `clients.formats`."""
    root: tuple[str, ...] = ("mcpServers",)
    """The keys of the path to the servers; `{project}` is the key that names the nearest project."""
    variables: tuple[tuple[str, str], ...] = ()
    """Environment variables that move the file, the first one that is set, and the path below the value of each."""
    every: bool = False
    """The client reads the file in each of the project's directories, not only the nearest one."""
    foreign: bool = False
    """The file belongs to another client: its existence does not mean that this client is installed."""
    note: str = ""
    """A note for the user about this file: which programs ignore it, or that it needs approval."""


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client."""

    id: str
    name: str
    places: tuple[Place, ...]
    source: str
    """The URL of the documentation."""
    checked: str
    """When the documentation was read, or the client was run."""
    version: str = ""
    """The version that was run, or whose source was read; empty if there is only documentation."""
    remote: tuple[str, ...] = ("url",)
    """The keys of a remote server's URL."""
    commands: tuple[str, ...] = (STRING,)
    """How an entry may write its command."""
    splits: bool = False
    """It splits a command without arguments at its blanks, as a shell does."""
    nested: str = ""
    """The key of an object that may contain the command or URL, instead of the entry itself."""
    named: bool = False
    """Its servers are a list of entries with a name, not an object with names as keys."""
    entry: str = ""
    """Members that a new entry needs in addition to the command, as JSON."""
    env: str = "env"
    """The key of the variables that are added to a server's environment."""
    env_of_strings: bool = False
    """It starts no server with a variable whose value is not a string."""
    refuses: tuple[str, ...] = ()
    """What its own parser refuses in JSON with comments (`clients.formats`); then it ignores the whole file."""
    beside: bool = False
    """It starts servers in the directory of its file, not in its own working directory."""
    desktop: bool = True
    """It is started from the desktop, so with the desktop's PATH and not with a shell's."""
    asks_shell: bool = False
    """Started from the desktop, it takes its variables from an interactive login shell that it runs."""
    appends_path: bool = False
    """It appends the PATH of an entry to its own, which it does not replace."""
    forms: tuple[str, ...] = (BRACES, ENV)
    """What it replaces in the texts of an entry; the default is for a client that is not known well."""
    project_variables: str = ""
    """The beginning of the names of variables that it replaces only in a project's file."""
    debugs: Mapping[str, str] = field(default_factory=dict)
    """For each type of `dev.debug` the program that must be the command, or it refuses to start the server."""
    types: Mapping[str, str] = field(default_factory=dict)
    """The values of `type` in an entry of a remote server, and the transport of each; empty if it is not read."""
    untyped: str = BOTH
    """The transport for an entry of a remote server without a type; empty if it then starts none."""
    typed: Mapping[str, str] = field(default_factory=dict)
    """The transport for a remote server whose URL has this key; other keys mean `untyped`."""
    logs: tuple[str | Mapping[str, str], ...] = ()
    """Where it writes what it saw of a stdio server, as the path of a `Place`; the newest file counts."""
    advice: str = "restart the server in {name}"
    """What makes the client read its configuration again."""


_READ, _RUN = "2026-11-20", "2026-11-23"
"""When documentation was read; when clients were run with each format, parser oddity and variable listed here."""
_ALL = (COMMENT, COMMA, MARK)
_CLAUDE_DIR = (("CLAUDE_CONFIG_DIR", ".claude.json"),)
_CLINE = "cline_mcp_settings.json"
_APPROVE = "{name} asks for your approval before it starts servers of this file"
_OPENCODE = ("opencode.json", "opencode.jsonc", "config.json")
_MCPORTER = (("MCPORTER_CONFIG", ""),)
_VSCODE = ("Code", "Code - Insiders", "VSCodium")
_SERVERS = {"linux": "{data}/code-server/User/", "darwin": "{data}/code-server/User/"}
_PROFILE = "{name} reads this file in windows with that profile"
_REMOTE = "{name} reads this file in windows that are connected to this machine"
_BROWSER = "code-server reads this file"

CLIENTS = (
    Client(
        "cursor",
        "Cursor",
        (Place(USER, "{home}/.cursor/mcp.json"), Place(PROJECT, "{project}/.cursor/mcp.json")),
        "https://cursor.com/docs/mcp.md",
        _READ,
        asks_shell=True,
        forms=(ENV,),
        logs=(
            "{config}/Cursor/logs/*/mcp-server-user-{name}.log",
            "{config}/Cursor/logs/*/window*/exthost/anysphere.cursor-mcp/MCP user-{name}*.log",
        ),
        advice="restart the server in Cursor (Settings, MCP)",
    ),
    Client(
        "claude-desktop",
        "Claude Desktop",
        (
            Place(USER, "{config}/Claude/claude_desktop_config.json"),
            # As an MSIX package it reads a copy of its own (anthropics/claude-code#26073).
            Place(USER, {"win32": "{local}/Packages/Claude_*/LocalCache/Roaming/Claude/claude_desktop_config.json"}),
        ),
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        _READ,
        refuses=_ALL,
        forms=(),
        untyped="",
        logs=(
            {
                "darwin": "{home}/Library/Logs/Claude/mcp-server-{name}.log",
                "linux": "{config}/Claude/logs/mcp-server-{name}.log",
                "win32": "{config}/Claude/logs/mcp-server-{name}.log",
            },
        ),
        advice="quit Claude Desktop and start it again",
    ),
    Client(
        "claude-code",
        "Claude Code",
        (
            Place(USER, "{home}/.claude.json", variables=_CLAUDE_DIR),
            Place(LOCAL, "{home}/.claude.json", JSON, ("projects", "{project}", "mcpServers"), _CLAUDE_DIR),
            Place(PROJECT, "{project}/.mcp.json", every=True, note=_APPROVE),
        ),
        "https://code.claude.com/docs/en/mcp",
        _RUN,
        "2.1.330",
        env_of_strings=True,
        refuses=(COMMENT, COMMA),
        desktop=False,
        forms=(BRACES,),
        types={"http": HTTP, "streamable-http": HTTP, "sse": SSE, "ws": WEBSOCKET},
        untyped="",
        logs=("{cache}/claude-cli-nodejs/*/mcp-logs-{name}/*",),
        advice="start Claude Code again; a running one may overwrite its file",
    ),
    Client(
        "vscode",
        "VS Code",
        (
            *(Place(USER, f"{{config}}/{product}/User/mcp.json", JSON, ("servers",)) for product in _VSCODE),
            *(
                Place(USER, f"{{config}}/{product}/User/profiles/*/mcp.json", JSON, ("servers",), note=_PROFILE)
                for product in _VSCODE
            ),
            # microsoft/vscode, serverEnvironmentService.ts
            *(
                Place(USER, f"{{home}}/.{folder}/data/User/mcp.json", JSON, ("servers",), note=_REMOTE)
                for folder in ("vscode-server", "vscode-server-insiders", "vscodium-server")
            ),
            Place(USER, {key: path + "mcp.json" for key, path in _SERVERS.items()}, JSON, ("servers",), note=_BROWSER),
            Place(
                USER,
                {key: path + "profiles/*/mcp.json" for key, path in _SERVERS.items()},
                JSON,
                ("servers",),
                note=_PROFILE,
            ),
            Place(PROJECT, "{project}/.vscode/mcp.json", JSON, ("servers",)),
            Place(PROJECT, "{project}/.mcp.json", foreign=True),
            Place(USER, "{home}/.copilot/mcp-config.json", foreign=True),
        ),
        "https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        "2026-11-29",
        "1.139.1 (code-server 4.139.1)",
        asks_shell=True,
        appends_path=True,
        forms=(HOME, ENV),  # microsoft/vscode, extHostMcpNode.ts
        project_variables="workspaceFolder",
        debugs={"node": "node", "debugpy": "python"},  # microsoft/vscode, mcpDevMode.ts
        types={"http": BOTH, "sse": SSE},
        logs=tuple(f"{{config}}/{product}/logs/*/window*/mcpServer.*.{{name}}.log" for product in _VSCODE),
        advice="restart the server in VS Code (MCP: List Servers)",
    ),
    Client(
        "windsurf",
        "Windsurf",
        (Place(USER, "{home}/.codeium/windsurf/mcp_config.json"),),
        "https://docs.windsurf.com/windsurf/cascade/mcp",
        _READ,
        remote=("serverUrl", "url"),
        asks_shell=True,
        forms=(ENV,),
        advice="refresh the servers in Windsurf (Cascade, MCP)",
    ),
    Client(
        "cline",
        "Cline",
        (
            # cline/cline, sdk/packages/shared/src/storage/paths.ts: the command line and the extension share it.
            Place(
                USER,
                "{home}/.cline/data/settings/" + _CLINE,
                variables=(
                    ("CLINE_MCP_SETTINGS_PATH", ""),
                    ("CLINE_DATA_DIR", "settings/" + _CLINE),
                    ("CLINE_DIR", "data/settings/" + _CLINE),
                ),
            ),
            Place(
                USER,
                "{config}/Code/User/globalStorage/saoudrizwan.claude-dev/settings/" + _CLINE,
                note="only older versions of the VS Code extension read this file; newer ones copy it once",
            ),
        ),
        "https://docs.cline.bot/mcp/mcp-overview",
        _RUN,
        "3.0.65",
        nested="transport",
        refuses=_ALL,
        asks_shell=True,
        forms=(ENV,),
        types={"streamableHttp": HTTP, "sse": SSE},
        untyped=SSE,
        advice="start Cline again; its background process may keep the old servers until it has ended",
    ),
    Client(
        "zed",
        "Zed",
        (
            Place(
                USER,
                {
                    "darwin": "{home}/.config/zed/settings.json",
                    "linux": "{config}/zed/settings.json",
                    "win32": "{config}/Zed/settings.json",
                },
                JSON,
                ("context_servers",),
            ),
            Place(PROJECT, "{project}/.zed/settings.json", JSON, ("context_servers",)),
        ),
        "https://zed.dev/docs/ai/mcp",
        _READ,
        entry='"source": "custom", ',
        asks_shell=True,
        forms=(),
    ),
    Client(
        "continue",
        "Continue",
        (
            Place(USER, "{home}/.continue/config.yaml", YAML, variables=(("CONTINUE_GLOBAL_DIR", "config.yaml"),)),
            # continuedev/continue, core/context/mcp/json/loadJsonMcpConfigs.ts, which `cn` does not call.
            *(
                Place(
                    scope,
                    f"{folder}/.continue/mcpServers/*.{ending}",
                    form,
                    note="the IDE extensions read this file; the command line 'cn' ignores it",
                )
                for scope, folder in ((USER, "{home}"), (PROJECT, "{project}"))
                for ending, form in (("yaml", YAML), ("json", JSON))
            ),
        ),
        "https://docs.continue.dev/customize/deep-dives/mcp",
        _RUN,
        "1.5.47 (cn)",
        named=True,
        asks_shell=True,
        types={"streamable-http": HTTP, "sse": SSE},
        advice="start cn again, or reload the window of the IDE",
    ),
    Client(
        "librechat",
        "LibreChat",
        (Place(PROJECT, "{project}/librechat.yaml", YAML, variables=(("CONFIG_PATH", ""),)),),
        "https://www.librechat.ai/docs/configuration/librechat_yaml/object_structure/mcp_servers",
        _READ,
        desktop=False,
        forms=(BRACES,),
        types={"streamable-http": HTTP, "http": HTTP, "sse": SSE},
        advice="restart LibreChat",
    ),
    Client(
        "gemini-cli",
        "Gemini CLI",
        (
            Place(USER, "{home}/.gemini/settings.json", variables=(("GEMINI_CLI_HOME", ".gemini/settings.json"),)),
            Place(PROJECT, "{project}/.gemini/settings.json"),
        ),
        "https://geminicli.com/docs/tools/mcp-server",
        _RUN,
        "0.61.0",
        remote=("httpUrl", "url"),
        refuses=(COMMA, MARK),
        desktop=False,
        forms=(BRACES, DOLLAR),
        types={"http": HTTP, "sse": SSE},  # google-gemini/gemini-cli, mcp-client.ts
        typed={"httpUrl": HTTP},
        advice="start Gemini CLI again",
    ),
    Client(
        "qwen",
        "Qwen Code",
        (
            Place(USER, "{home}/.qwen/settings.json", variables=(("QWEN_HOME", "settings.json"),)),
            Place(PROJECT, "{project}/.qwen/settings.json", note=_APPROVE),
        ),
        "https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
        _RUN,
        "0.24.4",
        remote=("httpUrl", "url"),
        refuses=(COMMA,),
        desktop=False,
        forms=(BRACES, DOLLAR),
        types={"http": HTTP, "sse": SSE},
        untyped=SSE,
        typed={"httpUrl": HTTP},
        advice="start Qwen Code again",
    ),
    Client(
        "codex",
        "Codex CLI",
        (
            Place(USER, "{home}/.codex/config.toml", TOML, ("mcp_servers",), (("CODEX_HOME", "config.toml"),)),
            Place(PROJECT, "{project}/.codex/config.toml", TOML, ("mcp_servers",)),
        ),
        "https://developers.openai.com/codex/mcp",
        _RUN,
        "0.169.0",
        desktop=False,
        forms=(),
        untyped=HTTP,
        advice="start Codex again",
    ),
    Client(
        "copilot",
        "Copilot CLI",
        (
            Place(USER, "{home}/.copilot/mcp-config.json", variables=(("COPILOT_HOME", "mcp-config.json"),)),
            Place(PROJECT, "{project}/.mcp.json", every=True, foreign=True),
            Place(
                PROJECT,
                "{project}/.github/mcp.json",
                every=True,
                note="Copilot CLI ignores this file if a .mcp.json is in the same project directory",
            ),
        ),
        "https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        _RUN,
        "1.0.102",
        entry='"type": "local", "tools": ["*"], ',
        desktop=False,
        forms=(BRACES, DOLLAR),
        types={"http": HTTP, "sse": SSE},
        advice="start Copilot CLI again",
    ),
    Client(
        "opencode",
        "OpenCode",
        (
            *(Place(USER, f"{{xdg}}/opencode/{name}", JSON, ("mcp",)) for name in _OPENCODE),
            Place(USER, {}, JSON, ("mcp",), (("OPENCODE_CONFIG", ""),)),
            *(Place(USER, f"{{home}}/.opencode/{name}", JSON, ("mcp",)) for name in _OPENCODE[:2]),
            *(
                Place(PROJECT, f"{{project}}/{folder}{name}", JSON, ("mcp",), every=True)
                for folder in ("", ".opencode/")
                for name in _OPENCODE[:2]
            ),
        ),
        "https://opencode.ai/docs/mcp-servers/",
        _RUN,
        "1.18.34",
        commands=(LIST,),
        entry='"type": "local", "enabled": true, ',
        env="environment",
        desktop=False,
        forms=(IN_BRACES,),
        types={"remote": BOTH},
        untyped="",
        advice="quit OpenCode and start it again",
    ),
    Client(
        "mcporter",
        "mcporter",
        (
            Place(USER, "{home}/.mcporter/mcporter.json", variables=_MCPORTER),
            Place(
                USER,
                "{home}/.mcporter/mcporter.jsonc",
                variables=_MCPORTER,
                note="mcporter ignores this file if mcporter.json is beside it",
            ),
            Place(PROJECT, "{project}/config/mcporter.json", variables=_MCPORTER),
        ),
        "https://github.com/steipete/mcporter/blob/main/docs/config.md",
        _RUN,
        "0.12.3",
        remote=("baseUrl", "base_url", "url", "serverUrl", "server_url"),
        commands=(STRING, LIST),
        splits=True,
        refuses=(MARK,),
        beside=True,
        desktop=False,
        forms=(BRACES, DOLLAR),
        advice="nothing has to be restarted, unless 'mcporter daemon' keeps servers alive: 'mcporter daemon restart'",
    ),
)

BY_ID = {client.id: client for client in CLIENTS}


def client(name: str) -> Client:
    """Return the client called `name`, by id or by name. Raises UsageError with the nearest names."""
    plain = name.lower().replace(" ", "-").replace("_", "-")
    for candidate in CLIENTS:
        if plain in (candidate.id, candidate.name.lower().replace(" ", "-")):
            return candidate
    known = f"the clients are {', '.join(BY_ID)}"
    raise UsageError(f"there is no client {name!r}; {suggestion(plain, BY_ID, known)}")
