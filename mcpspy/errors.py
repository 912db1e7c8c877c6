"""Every exception that mcpspy raises on purpose.

    McpspyError             an error of the user, or of mcpspy: one line on stderr, exit code 2
    ├── UsageError          the command line cannot be understood
    │   └── GateError       a gate, or a file of gates, cannot be understood
    ├── FilterError         a filter cannot be understood
    ├── SpawnError          the server's command cannot be started
    ├── ConfigError         a client's configuration cannot be read or changed
    │   └── Unwrappable     it has an unknown form, or its server cannot run behind mcpspy: exit code 1
    └── CaptureError        a capture cannot be read
        ├── NotACapture     the file is something else
        └── NewerFormat     the file was written by a later mcpspy

An error of a peer is never an exception: it becomes a finding, and mcpspy continues to forward traffic.
"""


class McpspyError(Exception):
    """The base class: the text is one sentence for the user that names the object, its state and what to do."""

    exit_code = 2


class UsageError(McpspyError):
    """The command line cannot be understood."""


class GateError(UsageError):
    """A gate, or a file of gates, cannot be understood; `line` and `column` count from 1.

    Both are 0 for a file that cannot be read. The text begins with the position, like a compiler message.
    """

    def __init__(self, what: str, line: int = 1, column: int = 1, file: str = "") -> None:
        place = f"{file}:{line}:{column}" if file and line else file or f"column {column}"
        super().__init__(f"{place}: {what}")
        self.what = what
        self.line = line
        self.column = column


class FilterError(McpspyError):
    """A filter cannot be understood; `column` counts from 1."""

    def __init__(self, sentence: str, column: int) -> None:
        super().__init__(sentence)
        self.column = column


class SpawnError(McpspyError):
    """The server's command cannot be started.

    `status` is the exit status for this failure (POSIX, 2.8.2). `why` is the cause without the command and the PATH,
    because these may contain secrets; `reason` is a sentence with it.
    """

    NOT_FOUND = 127
    NOT_EXECUTABLE = 126

    def __init__(self, sentence: str, reason: str, status: int) -> None:
        super().__init__(sentence)
        self.why = reason
        self.reason = f"cannot start the server: {reason}"
        self.status = status


class ConfigError(McpspyError):
    """A client's configuration cannot be read or changed."""


class Unwrappable(ConfigError):
    """An entry in a client's configuration has an unknown form, or its server cannot run behind mcpspy."""

    exit_code = 1


class CaptureError(McpspyError):
    """A capture cannot be read."""


class NotACapture(CaptureError):
    """The file is not a capture: its first line is not a capture header."""


class NewerFormat(CaptureError):
    """The file has a format number that is newer than this version of mcpspy supports."""
