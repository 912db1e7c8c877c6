"""Quantities as people read them."""


def plural(number: int, noun: str) -> str:
    """`1 frame`, `2 frames`, `1,000 frames`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size_text(size: float) -> str:
    """Bytes as people read them, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def age_text(seconds: float) -> str:
    """How long ago, in the largest unit that fits."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{max(seconds, 0):.0f} s ago"


def duration_text(nanoseconds: int) -> str:
    """How long something took, in the unit that suits it."""
    if nanoseconds < 1_000_000:
        return f"{nanoseconds / 1e3:.0f} µs"
    return f"{nanoseconds / 1e6:.1f} ms" if nanoseconds < 1_000_000_000 else f"{nanoseconds / 1e9:.2f} s"
