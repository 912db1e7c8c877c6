"""Bytes that count how many of them are copied, for what must take time linear in a message."""


class Counted(bytes):
    """What is sliced, split or joined of it counts as well."""

    copied = 0

    def __getitem__(self, key):
        found = super().__getitem__(key)
        return found if isinstance(found, int) else counted(found)

    def __radd__(self, other):
        return counted(other + bytes(self))

    def split(self, *separator):
        return [counted(part) for part in super().split(*separator)]


def counted(raw):
    Counted.copied += len(raw)
    return Counted(raw)


def copied_by(feed, raw):
    """How many bytes are copied while `feed` takes these at once, and what it returns."""
    Counted.copied = 0
    found = feed(Counted(raw))
    return Counted.copied, found
