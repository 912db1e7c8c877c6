"""Two messages, or two sessions, beside each other."""
