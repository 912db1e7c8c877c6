"""The formats that configurations are written in."""

from functools import lru_cache

from mcpspy.clients.tree import Node, Syntax, where
from mcpspy.errors import ConfigError

JSON, TOML, YAML = "json", "toml", "yaml"
"""JSON is read with comments and trailing commas; what a client's own parser refuses of these, its row says."""


@lru_cache(maxsize=8)  # a plan looks at the same text several times, and it may be megabytes
def read(text: str, form: str) -> Node:
    """The tree of a configuration, not to be changed; raises ConfigError with line, column and reason."""
    try:
        if form == TOML:
            from mcpspy.clients import toml

            return toml.read(text)
        if form == YAML:
            from mcpspy.clients import yaml  # takes 25 ms

            return yaml.read(text)
        from mcpspy.clients import jsonc

        return jsonc.read(text)
    except Syntax as error:
        raise ConfigError(f"{where(text, error.offset)}: {error}") from error


def member(key: str, value: str, form: str) -> str:
    """The text of a key that is a plain word, and of its value."""
    if form == JSON:
        return f'"{key}": {value}'
    return f"{key} = {value}" if form == TOML else f"{key}: {value}"
