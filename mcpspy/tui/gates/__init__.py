"""What a person does to a running session: breakpoints, and frames that are held."""
