"""The arguments of the commands that record traffic."""

from mcpspy.cli.options import GATE, MAX_CAPTURE, OUTPUT, WRAP, Command, Option, Positional
from mcpspy.cli.options.shared import ACCESS, CA, CERTIFICATE, FOLDER_OF_CAPTURES, clients

MITM = "127.0.0.1:6279"
"""Where `mitm` listens, and where `run` expects it."""
INSECURE = Option("--insecure", text="accept any certificate of a server")
NO_CONTROL = Option(
    "--no-control",
    dest="control",
    default=True,
    const=False,
    text="do not let viewers hold or change frames of these sessions",
)


def _listen(place: str, other: str = "") -> Option:
    text = f"listen on this address{other} (default: {place}; port 0: any free port)"
    return Option("--listen", placeholder="HOST:PORT", default=place, text=text)


RECORD = (
    WRAP,
    Command(
        "proxy",
        "proxy and record HTTP traffic",
        "Proxy HTTP traffic between clients and one or several MCP servers, and record it.",
        Positional("url", "URL", "URL of the server, as it is in the client's configuration now", many="?"),
        _listen("127.0.0.1:6278", " or unix:PATH"),
        Option("--name", placeholder="NAME", text="name of the server in captures (default: its host)"),
        OUTPUT,
        Option("--capture-dir", placeholder="DIR", dest="folder", text="write the capture into DIR"),
        MAX_CAPTURE,
        Option("--route", placeholder="NAME=URL", many=True, text="forward /NAME/ to URL; repeatable"),
        Option(
            "--from",
            placeholder="CLIENT",
            dest="clients",
            many=True,
            offers=clients,
            text="forward to the remote servers whose URLs 'mcpspy install CLIENT' changed; with --listen, write the "
            "new port into these URLs in the client's file; repeatable",
        ),
        Option(
            "--allow-host",
            placeholder="HOST",
            many=True,
            text="accept HOST in the headers Host and Origin; repeatable",
        ),
        Option("--preserve-host", text="forward the client's Host and Origin unchanged"),
        *ACCESS,
        INSECURE,
        Option(
            "--rewrite-oauth",
            text="put this proxy's URL into the server's OAuth metadata; try it if a login fails "
            "(docs/how-to/oauth.md)",
        ),
        GATE,
        NO_CONTROL,
        epilog="It prints the URL to put into the client. Ctrl-C ends it.",
    ),
    Command(
        "mitm",
        "decrypt and record HTTPS traffic of clients whose URL is fixed",
        "Decrypt and record the MCP traffic of clients that connect directly to an HTTPS server.",
        Option(
            "--allow",
            placeholder="HOST",
            many=True,
            text="decrypt connections to HOST, '*.example.com' or HOST:PORT, and leave all others encrypted; "
            "repeatable; required unless --mode is reverse:URL",
        ),
        _listen(MITM),
        Option(
            "--mode",
            placeholder="MODE",
            default="regular",
            text="how clients reach this proxy, a mode of mitmproxy: regular (default), upstream:URL, reverse:URL, "
            "socks5, local or local:PROGRAM; upstream alone takes the proxy of https_proxy",
        ),
        Option("--all-http", text="also record HTTP traffic that is not MCP"),
        CA,
        *CERTIFICATE,
        INSECURE,
        FOLDER_OF_CAPTURES,
        MAX_CAPTURE,
        GATE,
        NO_CONTROL,
        epilog="It prints its own URL. Ctrl-C ends it. Each server gets its own capture.",
    ),
    Command(
        "run",
        "start a client behind 'mcpspy mitm'",
        "Start a client with environment variables that send its traffic through 'mcpspy mitm' and make it trust "
        "the certificate authority of mitm.",
        Option(
            "--proxy",
            placeholder="HOST:PORT",
            default=MITM,
            text=f"use this address of 'mcpspy mitm' (default: {MITM})",
        ),
        Positional("without_dashes", "COMMAND", None, many="..."),
        usage="mcpspy run [--proxy HOST:PORT] -- COMMAND [ARG...]",
        server=True,
        run="mitm.run_client",
    ),
)
"""The group `Record` of `mcpspy --help`."""
