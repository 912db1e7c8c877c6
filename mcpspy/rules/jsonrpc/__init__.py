"""Rules about JSON-RPC."""
