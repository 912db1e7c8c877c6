"""The arguments of the commands that set up clients, shells and certificates."""

from mcpspy.cli.options import Command, Option, Positional
from mcpspy.cli.options.shared import clients

SHELLS = {
    "bash": 'eval "$(mcpspy completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(mcpspy completion zsh)"     in ~/.zshrc, after compinit',
    "fish": "mcpspy completion fish | source     in ~/.config/fish/config.fish",
}
"""Shell -> the line that enables its completion script, and the file in which to put it."""
SCOPE = Option(
    "--scope",
    placeholder="SCOPE",
    offers=("user", "project", "local"),
    text="only servers of this scope: user, project or local",
)
CONFIG = Option(
    "--config", placeholder="FILE", text="the servers of this file, which has the format of CLIENT, instead of its own"
)
DRY_RUN = Option("--dry-run", text="only print the changes")


def _client(many: str = "") -> Positional:
    return Positional("client", "CLIENT", "cursor, claude-desktop, claude-code, vscode, …", many=many, offers=clients)


def _servers(verb: str) -> Positional:
    return Positional("servers", "SERVER", f"servers to {verb} (default: all of them)", many="*")


SET_UP = (
    Command(
        "install",
        "wrap the servers of an MCP client",
        "Wrap the servers in an MCP client's configuration; 'uninstall' undoes it. Without CLIENT, list the "
        "clients on this machine and what would be wrapped.",
        _client("?"),
        _servers("wrap"),
        SCOPE,
        CONFIG,
        DRY_RUN,
        Option("--agent", text="add the server 'mcpspy mcp', with which agents read captures"),
        Option("--yes", text="write without asking; required without a terminal"),
    ),
    Command(
        "uninstall",
        "undo 'install'",
        "Remove mcpspy from the servers in an MCP client's configuration.",
        _client(),
        _servers("unwrap"),
        SCOPE,
        CONFIG,
        DRY_RUN,
        Option("--agent", text="remove 'mcpspy mcp', which 'install --agent' added"),
        run="install.run_uninstall",
    ),
    Command(
        "status",
        "list the servers of all MCP clients",
        "List the servers of all MCP clients, whether they are wrapped, and their captures.",
        Option("--json", text="print one JSON object for each server"),
    ),
    Command(
        "doctor",
        "diagnose why no session appears",
        "Start each server as its MCP client would, and report problems and how to fix them.",
        Positional("target", "CLIENT|SERVER", "default: all clients", many="?", offers=clients),
        run="status.run_doctor",
    ),
    Command(
        "completion",
        "print the completion script of bash, zsh or fish",
        "Print the script with which a shell completes commands, options and captures.",
        Positional("shell", "SHELL", ", ".join(SHELLS), offers=tuple(SHELLS)),
        epilog="To switch it on:\n" + "".join(f"  {line}\n" for line in SHELLS.values()),
        run="complete.run_completion",
    ),
    Command(
        "ca",
        "manage the certificate authority of 'mitm'",
        "Manage the certificate authority of 'mcpspy mitm', in ~/.mcpspy/ca.",
        subcommands=(
            Command(
                "export",
                "print the certificate",
                "Print the certificate of the authority as PEM.",
                Positional("file", "FILE", "write the certificate to FILE", many="?"),
            ),
            Command(
                "env",
                "print variables that make clients trust the authority",
                "Print the environment variables that make clients trust the authority.",
            ),
            Command(
                "status",
                "show where the authority is",
                "Show where the authority is, when it expires, and who can read its key.",
            ),
        ),
        run="mitm.run_ca",
    ),
)
"""The group `Set up` of `mcpspy --help`."""
