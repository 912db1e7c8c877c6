"""One message on the screen: its document, what is known of it, and what can be done with it."""
