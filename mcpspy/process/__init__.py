"""Child processes, command lines and ports, and work spread over several processes."""
