"""The arguments of all commands, as data: one module for each group of `mcpspy --help`.

From these tables derive the parser and the help (`mcpspy.cli.arguments`; `wrap` parses by itself), the page
docs/commands.md (`mcpspy.cli.command_reference`) and the completion of shells (`mcpspy.cli.complete`). So an option is
declared in one place.

Each Tab imports the tables, so a table imports nothing but this package. Values that are few stand in the table, and a
test compares them with what the command implements; many values come from a function, which imports them.

A client waits for `wrap`, and each file that is imported takes 0.1 ms. So this module imports nothing, and has the
table of `wrap` itself, with the options that other commands share with it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Names = Sequence[str] | Callable[[], Mapping[str, str]]
    """Values to complete, or a function that returns them with their meanings."""


class Positional:
    """One word of a command line, or several, whose meaning comes from the place."""

    def __init__(
        self, dest: str, placeholder: str, text: "str | None" = "", *, many: str = "", offers: "Names" = ()
    ) -> None:
        self.dest = dest
        """The name of its value."""
        self.placeholder = placeholder
        """What stands for it in texts; shells complete paths of the kind that it names."""
        self.text = text
        """What the help says; None hides it."""
        self.many = many
        """How many words it takes, as in `argparse`: "" for one, "?", "*", "+", or "..." for all that follow."""
        self.offers = offers
        """The values that shells complete. The command validates the value."""


class Option:
    """One option of a command; without a placeholder it takes no value."""

    def __init__(
        self,
        *names: str,
        text: "str | None",
        placeholder: str = "",
        dest: str = "",
        many: bool = False,
        default: "Any" = None,
        const: "Any" = None,
        choices: "Sequence[str]" = (),
        offers: "Names" = (),
        required: bool = False,
        convert: "Callable[[str], Any]" = str,
    ) -> None:
        if choices:
            default = None if required else choices[0]
            text = f"{text}: {', '.join(choices)}" + ("" if required else f" (default: {default})")
        if not placeholder:
            default, const = default or False, True if const is None else const
        self.names = names
        self.placeholder = placeholder
        """What stands for its value in texts; shells complete paths of the kind that it names."""
        self.text = text
        """What the help says; None hides it."""
        self.dest = dest or next((it for it in names if it.startswith("--")), names[0]).strip("-").replace("-", "_")
        """The name of its value."""
        self.many = many
        """It may be repeated, and its value is the list of all values."""
        self.default: Any = default
        self.const: Any = const
        """The value of the option alone; None if a value must follow."""
        self.choices = choices
        """All values, if they are fixed. The parser refuses others. The first is the default, unless it is required."""
        self.offers = choices or offers
        """The values that shells complete."""
        self.required = required
        self.convert = convert
        """Makes the value from the word, or raises UsageError."""


class Command:
    """One command, or a subcommand: what it is for, and its arguments in the order of its help."""

    def __init__(
        self,
        name: str,
        text: str,
        description: str,
        *arguments: Positional | Option,
        epilog: str = "",
        usage: str = "",
        subcommands: "Sequence[Command]" = (),
        server: bool = False,
        run: str = "",
        help_text: str = "show this help message and exit",
    ) -> None:
        self.name = name
        self.text = text
        """What it does, in one line."""
        self.description = description
        """The text above its options; lines that are broken already stay as they are."""
        self.epilog = epilog
        """The text below its options, likewise."""
        self.usage = usage
        """Its synopsis, if the arguments alone do not show it."""
        self.help = Option("-h", "--help", text=help_text)
        self.options = (self.help, *(it for it in arguments if isinstance(it, Option)))
        self.positionals = tuple(it for it in arguments if isinstance(it, Positional))
        self.subcommands = subcommands
        self.server = server
        """Whether the command line of another program may follow after `--`."""
        self.module, _, self.function = (run or f"{name}.run").partition(".")
        """The module in `mcpspy.cli` that runs it, and the function in that module."""

    @property
    def named_options(self) -> dict[str, Option]:
        """The options by each of their names."""
        return {name: option for option in self.options for name in option.names}


OUTPUT = Option(
    "-o",
    placeholder="FILE",
    dest="output",
    text="write the capture to FILE. If FILE is a finished capture, replace it; if it is any other file, keep it and "
    "use a similar name, which is printed",
)
MAX_CAPTURE = Option(
    "--max-capture", placeholder="SIZE", dest="limit", text="continue in a new file at this size, such as 500MB"
)
GATE = Option(
    "--gate", placeholder="FILE", text="hold, change or drop messages, as the gates in FILE say (TOML, docs/gate.md)"
)

WRAP = Command(
    "wrap",
    "run a stdio server and record its traffic",
    """\
Run COMMAND as an MCP server on stdio, forward every byte unchanged, and record
the traffic.

  client  <-- stdin, stdout, stderr -->  mcpspy wrap  <-- the same -->  COMMAND
                                             |
                                          capture""",
    Option("--name", placeholder="NAME", text="name of the server in captures (default: from COMMAND)"),
    OUTPUT,
    Option("--output", placeholder="FILE", dest="output", text=None),
    Option(
        "--capture-dir",
        placeholder="DIR",
        dest="folder",
        text="write the capture into DIR (default: $MCPSPY_CAPTURE_DIR, else ~/.mcpspy/captures)",
    ),
    MAX_CAPTURE,
    Option("--check", text="print protocol errors to stderr as they happen, one line for each"),
    GATE,
    Option(
        "--no-control",
        dest="control",
        default=True,
        const=False,
        text="do not let viewers hold or change frames of this session",
    ),
    Option(
        "--reload",
        placeholder="PATH",
        many=True,
        text="when files below PATH change, replace the server and keep the client connected; may be repeated",
    ),
    Option(
        "--reload-after",
        placeholder="idle",
        dest="after",
        offers=("idle",),
        text="wait for running calls first, at most 30 seconds",
    ),
    epilog="""\
The exit status is that of the server; 127 if COMMAND is not found, 126 if it
cannot be executed.""",
    usage="""\
mcpspy wrap [--name NAME] [-o FILE | --capture-dir DIR]
                   [--max-capture SIZE] [--check] [--gate FILE] [--no-control]
                   [--reload PATH]... [--reload-after idle]
                   -- COMMAND [ARG...]""",
    server=True,
)
