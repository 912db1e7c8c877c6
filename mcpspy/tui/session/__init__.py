"""The screen of one session, and its views."""
