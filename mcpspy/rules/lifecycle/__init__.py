"""Rules about the course of a session: who may say what, when, and under which revision."""
