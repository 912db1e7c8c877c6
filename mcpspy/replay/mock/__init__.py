"""A capture as a server."""
