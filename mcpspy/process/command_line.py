"""Commands as text: the words of one, and how Windows starts one. Pure functions, for any platform.

`npx`, `uvx` and others are scripts there (`npx.cmd`). Only `cmd.exe` runs those, and it reads `%`, `!`, `&` and others
even where the program's own rules would quote them (CVE-2024-27980).
"""

import shlex
from collections.abc import Mapping, Sequence

_SCRIPTS = (".cmd", ".bat")
_READ_BY_CMD = frozenset("()[]%!^\"`<>&|;,= *?'\t")


def words_of(text: str, platform: str) -> list[str]:
    """The words of a command that a person has written; `platform` is as `sys.platform`. Raises ValueError.

    On Windows a backslash separates folders, and only double quotes keep words together.
    """
    if platform != "win32":
        return shlex.split(text)
    lexer = shlex.shlex(text, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    return list(lexer)


def command_line(argv: Sequence[str], environ: Mapping[str, str], program: str) -> str | list[str]:
    """What `subprocess` takes on Windows to start `argv`, whose first word was found as the file `program`.

    Raises ValueError where `cmd.exe` would run it and cannot be given a line break.
    """
    if not program.lower().endswith(_SCRIPTS):
        return [program, *argv[1:]]
    if any("\n" in word or "\r" in word for word in argv):
        raise ValueError("cmd.exe takes no line break in an argument")
    line = " ".join((_escaped(program), *(_escaped(_quoted(word)) for word in argv[1:])))
    return f'{environ.get("COMSPEC", "cmd.exe")} /d /s /c "{line}"'


def _quoted(word: str) -> str:
    """A word between quotes, whatever is in it, because the script has its arguments parsed a second time (`%*`).

    A quote is doubled, so that `cmd.exe` sees pairs of them then too; a backslash is doubled before a quote, as the C
    runtime of the program reads it. The standard library of Rust does the same.
    """
    out, backslashes = ['"'], 0
    for character in word:
        if character == '"':
            out.append("\\" * backslashes + '"')
        out.append(character)
        backslashes = backslashes + 1 if character == "\\" else 0
    return "".join(out) + "\\" * backslashes + '"'


def _escaped(text: str) -> str:
    """With a caret before each character that `cmd.exe` would act on, so that it sees no quotes, and splits nowhere."""
    return "".join(f"^{character}" if character in _READ_BY_CMD else character for character in text)
