"""The file formats of configurations."""

from functools import lru_cache

from mcpspy.clients.tree import Node, Syntax, where
from mcpspy.errors import ConfigError

JSON, TOML, YAML = "json", "toml", "yaml"
"""JSON is parsed with comments and trailing commas; the row of a client states which of these its parser refuses."""


@lru_cache(maxsize=8)  # a plan parses the same text several times, and it may be megabytes
def read(text: str, form: str) -> Node:
    """Return the tree of a configuration, which must not be changed.

    Raises ConfigError with line, column and reason.
    """
    try:
        if form == TOML:
            from mcpspy.clients import toml

            return toml.read(text)
        if form == YAML:
            from mcpspy.clients import yaml  # takes 25 ms

            return yaml.read(text)
        from mcpspy.clients import jsonc

        return jsonc.read_jsonc(text)
    except Syntax as error:
        raise ConfigError(f"{where(text, error.offset)}: {error}") from error


def member(key: str, value: str, form: str) -> str:
    """Return the text of a key, which must be a plain word, and of its value."""
    if form == JSON:
        return f'"{key}": {value}'
    return f"{key} = {value}" if form == TOML else f"{key}: {value}"
