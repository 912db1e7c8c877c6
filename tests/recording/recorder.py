"""A sink that keeps its calls."""


class Recorder:
    """A writer that keeps its calls; the call that `fail` names raises."""

    path = "a.jsonl"

    def __init__(self, fail=None):
        self.calls = []
        self.fail = fail

    def __getattr__(self, name):
        def call(*values):
            if name == self.fail:
                raise RuntimeError("a bug")
            self.calls.append((name, *values))

        return call
