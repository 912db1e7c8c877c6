"""One session: its screen, and the views of it."""
