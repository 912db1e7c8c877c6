"""Rules about tools: what was listed, and whether calls and results conform to it."""
