"""The tests; every run of them tries the same examples."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=100)
settings.load_profile("repeatable")
