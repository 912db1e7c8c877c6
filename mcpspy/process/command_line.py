"""Split commands into words, and build command lines for Windows. Pure functions, for any platform.

On Windows `npx`, `uvx` and others are scripts (`npx.cmd`). Only `cmd.exe` runs scripts, and it interprets `%`, `!`, `&`
and others even where the quoting rules of the program would protect them (CVE-2024-27980).
"""

import shlex
from collections.abc import Mapping, Sequence

_SCRIPTS = (".cmd", ".bat")
_READ_BY_CMD = frozenset("()[]%!^\"`<>&|;,= *?'\t")


def words_of(text: str, platform: str) -> list[str]:
    """Split a command that a person has written into words; `platform` is as `sys.platform`. Raises ValueError.

    On Windows a backslash separates directories, and only double quotes keep words together.
    """
    if platform != "win32":
        return shlex.split(text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    return list(lexer)


def command_line(argv: Sequence[str], environ: Mapping[str, str], program: str) -> str | list[str]:
    """Return the argument for `subprocess` on Windows to start `argv`, whose first word was found as `program`.

    Raises ValueError if `cmd.exe` has to run it and an argument has a line break.
    """
    if not program.lower().endswith(_SCRIPTS):
        return [program, *argv[1:]]
    if any("\n" in word or "\r" in word for word in argv):
        raise ValueError("cmd.exe takes no line break in an argument")
    line = " ".join((_escaped(program), *(_escaped(_quoted(word)) for word in argv[1:])))
    return f'{environ.get("COMSPEC", "cmd.exe")} /d /s /c "{line}"'


def _quoted(word: str) -> str:
    """Quote a word, whatever it contains, because the script parses its arguments a second time (`%*`).

    A quote is doubled, so that `cmd.exe` sees pairs of quotes then, too. A backslash is doubled before a quote, because
    the C runtime of the program requires it. The standard library of Rust does the same.
    """
    out, backslashes = ['"'], 0
    for character in word:
        if character == '"':
            out.append("\\" * backslashes + '"')
        out.append(character)
        backslashes = backslashes + 1 if character == "\\" else 0
    return "".join(out) + "\\" * backslashes + '"'


def _escaped(text: str) -> str:
    """Put a caret before each character with a meaning for `cmd.exe`, so that it sees no quotes and splits nothing."""
    return "".join(f"^{character}" if character in _READ_BY_CMD else character for character in text)
