"""Bytes to values, without I/O: framing, content codings, HTTP heads, JSON-RPC, the forms of media."""
