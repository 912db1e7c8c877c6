"""Moments as people read and write them: in the local time zone (`TZ`), or in UTC if they ask for it.

Programs read moments in UTC (`wall_time` in `timeline.py`).
"""

from datetime import UTC, datetime, timedelta, tzinfo

zone: tzinfo | None = None
"""The time zone of the user of this process; None: the local one, whose offset depends on the moment."""


def use_utc() -> None:
    """Show moments in UTC, and read those without a time zone as UTC, in this process from now on."""
    global zone  # noqa: PLW0603 (it is the state of this process)
    zone = UTC


def shown(moment: datetime) -> datetime:
    """Return a moment in the time zone in which people read it."""
    return moment.astimezone(zone)


def typed(moment: datetime) -> tuple[datetime, ...]:
    """Return the moment that a person means who typed no time zone, or both if clocks show that time twice.

    Raises ValueError or OverflowError.
    """
    if zone:
        return (moment.replace(tzinfo=zone),)
    # `astimezone` is wrong within the hour that a clock skips
    first, again = (datetime.fromtimestamp(moment.replace(fold=fold).timestamp(), UTC) for fold in (0, 1))
    return (first, again) if first < again else (first,)


def moment(started: str, t: int = 0) -> datetime:
    """Return the moment `t` nanoseconds after the start of a capture, in the time zone in which people read it."""
    start = datetime.fromisoformat(started)
    return shown((start if start.tzinfo else start.replace(tzinfo=UTC)) + timedelta(microseconds=t // 1000))


def zone_text(moment: datetime) -> str:
    """Return the time zone of a moment: `UTC` or its offset."""
    return "UTC" if moment.tzname() == "UTC" else moment.isoformat()[-len("+00:00") :]


def clock_text(moment: datetime) -> str:
    """Return the time of day with milliseconds."""
    return moment.time().isoformat("milliseconds")


def moment_text(moment: datetime) -> str:
    """Return date, time of day and time zone."""
    return f"{moment.date()} {clock_text(moment)} {zone_text(moment)}"
