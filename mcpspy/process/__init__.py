"""Child processes and ports."""
