"""Values of every JSON type, and documents in which one member has another type than its readers expect."""

import copy

from mcpspy.json_values import pointer, walk


def nested(levels):
    """Return an array in an array, `levels` deep."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


WRONG: dict[str, object] = {
    "null": None,
    "true": True,
    "number": 5,
    "negative": -1,
    "fraction": 0.5,
    "huge": 10**400,
    "text": "x",
    "list": [5],
    "lists": [[None], [{}]],
    "object": {"a": {"b": [5]}},
    "deep": nested(900),
}
"""By name: a value of each type, and some that are large or nested."""


def documents(value, wrong=WRONG):
    """Yield copies of a document with one value replaced by each wrong one; each with a name for the test."""
    for steps in [tuple(steps) for steps, _ in walk(value)]:
        for name, other in wrong.items():
            changed = copy.deepcopy(value) if steps else other
            place = changed
            for step in steps[:-1]:
                place = place[step]
            if steps:
                place[steps[-1]] = other
            yield f"{pointer(*steps) or 'all'} {name}", changed
