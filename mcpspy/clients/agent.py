"""Which command lines start `mcpspy mcp`, the server for agents that read captures, which is not wrapped.

Pure: words in, an answer out.
"""

import re
from collections.abc import Sequence

NAME = "mcpspy"
"""The name of the server in the configuration of a client."""
COMMAND = "mcp"


def is_agent(words: Sequence[str]) -> bool:
    """Return whether a command line starts that server, whatever the path of mcpspy and its launcher."""
    return any(_is_mcpspy(word) and words[at + 1] == COMMAND for at, word in enumerate(words[:-1]))


def _is_mcpspy(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"mcpspy(?:\.exe)?(?:(?:==|@|\[).*)?", name) is not None
