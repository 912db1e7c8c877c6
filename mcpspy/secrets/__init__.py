"""What is secret, and how it is kept out of captures."""
