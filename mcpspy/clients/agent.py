"""Which command lines start `mcpspy mcp`: the server through which an agent reads captures, which is not to be watched.

Pure: words in, an answer out.
"""

import re
from collections.abc import Sequence

NAME = "mcpspy"
"""What the server is called in the configuration of a client."""
COMMAND = "mcp"


def is_agent(words: Sequence[str]) -> bool:
    """Whether a command line starts it, whatever the path of mcpspy is, and whatever starts that."""
    return any(_is_mcpspy(word) and words[at + 1] == COMMAND for at, word in enumerate(words[:-1]))


def _is_mcpspy(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return re.fullmatch(r"mcpspy(?:\.exe)?(?:(?:==|@|\[).*)?", name) is not None
