"""Files of short transcripts (`tests/transcript.py`), each with its outcome below it.

A file has parts, which begin with comments (`# `). A case is a transcript and its outcome. The lines of an outcome
begin with `#` and a line number; `ok` stands for an empty outcome. Blank lines separate cases. What stands above a line
`...` is the beginning of each case below it, up to the next comment.

`MCPSPY_RENEW=1` writes the outcomes of this version into the files. The difference is reviewed like code.
"""

import os


def check(path, outcome):
    """Compare a file with the outcomes of its cases: `outcome(transcript, lines)` returns the lines of one case."""
    text = path.read_text(encoding="utf-8")
    found = renewed(text, outcome)
    if os.environ.get("MCPSPY_RENEW"):
        path.write_text(found, encoding="utf-8")
    assert found == text


def renewed(text, outcome):
    """Return the content of a file with the outcomes of this version."""
    blocks, beginning = [], []
    for block in text.rstrip("\n").split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("# ") or line == "#"]
        told = [line for line in lines if line == "ok" or (line[0] == "#" and line[1:2].isdigit())]
        transcript = [line for line in lines if line not in (*comments, *told)]
        beginning = [] if comments else beginning
        if transcript[-1] == "...":
            beginning = transcript[:-1]
            blocks.append(block)
        else:
            found = outcome("\n".join(beginning + transcript), told)
            blocks.append("\n".join([*comments, *transcript, *(found or ["ok"])]))
    return "\n\n".join(blocks) + "\n"


def pairs(path):
    """Return the lines of a file, each with the line that is indented below it, or with itself, if there is none."""
    found = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.startswith("    "):
            found[-1] = found[-1][0], line.strip()
        elif line and not line.startswith("# "):
            found.append((line, line))
    return found
