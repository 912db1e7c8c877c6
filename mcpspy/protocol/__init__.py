"""What the specification says, and the fold that follows it."""
