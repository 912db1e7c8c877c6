"""What happened in a capture: messages, exchanges, sessions."""
