"""What a user lost in a session, and why: problems, made from outcomes, findings, stderr and the ends of streams."""
