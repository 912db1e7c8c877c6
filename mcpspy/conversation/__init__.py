"""What happened, told once: messages, exchanges, sessions."""
