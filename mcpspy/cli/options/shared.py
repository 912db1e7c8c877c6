"""What commands of several groups have in common: arguments, and the names of rules, revisions and clients.

The options that `wrap` has too stand in `mcpspy.cli.options`, which does not import these.
"""

from mcpspy.cli.options import Option, Positional

SEVERITIES = ("error", "warning", "info")
REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
CAPTURE = Positional("capture", "CAPTURE", "a file, which may be compressed (.jsonl.gz); - is standard input")
ALL_CAPTURES = Positional("captures", "CAPTURE|DIR", "default: the capture directory", many="*")
CAPTURE_DIRECTORY = Positional("directory", "DIR", "default: the capture directory", many="?")
FOLDER_OF_CAPTURES = Option("--capture-dir", placeholder="DIR", dest="folder", text="write the captures into DIR")
REPORT = Option("--output", placeholder="FILE", text="write the report to FILE")
URL = Option("--url", placeholder="URL", text="URL of the server, instead of its command")
HEADER = Option(
    "--header", placeholder="'NAME: VALUE'", many=True, text="send this header with each request; repeatable"
)

CA = Option("--ca", placeholder="FILE", text="also trust the certificates in FILE")
CERTIFICATE = (
    Option("--cert", placeholder="FILE", text="send this client certificate to servers that require one (PEM)"),
    Option(
        "--key",
        placeholder="FILE",
        text="read the private key of --cert from FILE, if it is not in the same file (a passphrase is asked for, or "
        "taken from MCPSPY_KEY_PASSPHRASE)",
    ),
)
UNIX = Option("--unix", placeholder="PATH", text="connect to this Unix socket instead of the host of the URL")
ACCESS = (CA, *CERTIFICATE, UNIX)
"""How a server at a URL is reached; `mcpspy.cli.access` reads them."""


def rules() -> dict[str, str]:
    """Return the rules with their explanations."""
    from mcpspy.rules import RULES

    return {rule.id: rule.explanation for rule in RULES.values()}


def clients() -> dict[str, str]:
    """Return the ids of the MCP clients whose configuration is known, with their names."""
    from mcpspy.clients.table import CLIENTS

    return {client.id: client.name for client in CLIENTS}
