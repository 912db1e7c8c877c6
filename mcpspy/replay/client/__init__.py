"""A capture as a client."""
