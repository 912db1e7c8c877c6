"""Bytes that count how many of them are copied, to test that code takes time linear in the length of a message."""


class Counted(bytes):
    """Slices, parts and joins of it count as well."""

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
    """Feed these bytes at once; return the number of copied bytes, and the result of `feed`."""
    Counted.copied = 0
    found = feed(Counted(raw))
    return Counted.copied, found
