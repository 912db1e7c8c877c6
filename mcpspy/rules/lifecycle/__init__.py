"""Rules about the course of a session: which side may send what, when, and under which revision."""
