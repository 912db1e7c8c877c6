"""The relay of `wrap --reload`: servers that replace one another behind a living client."""
