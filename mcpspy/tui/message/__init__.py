"""One message on the screen: its document, facts about it, and actions on it."""
