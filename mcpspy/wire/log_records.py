"""What looks like a record of a log: a JSON object or a line of text, as the usual logging libraries write it.

Known are the JSON of pino, bunyan, winston, zap, zerolog, logrus, slog, structlog, loguru, python-json-logger, tracing
(Rust), Serilog, ECS and Google Cloud, and lines with a time or a level at their beginning.
"""

import re
from itertools import islice
from typing import Any

from mcpspy.json_values import member

_LEVELS = frozenset({"level", "severity", "levelname", "lvl", "loglevel", "log.level", "@l", "severitytext"})
_TIMES = frozenset({"time", "timestamp", "ts", "@timestamp", "@t", "datetime", "asctime"})
_TEXTS = frozenset({"msg", "message", "event", "text", "short_message", "@m", "@mt", "data", "fields"})
_MEMBERS = 64  # of an object that are looked at
_BEGINNING = 300  # bytes of a line
_ESCAPES = re.compile(r"\x1b\[[\d;]*m")
_LEVEL = r"(?:TRACE|DEBUG|DBG|INFO|INF|NOTICE|WARN|WARNING|WRN|ERROR|ERR|FATAL|FTL|CRITICAL|SEVERE)"
_LINE = re.compile(
    rf"""\W{{0,3}}\d{{4}}[-/.]\d\d[-/.]\d\d[T ]\d\d:\d\d(?::\d\d)?\b  # 2026-04-17 10:00:00
    | \W{{0,3}}\d\d:\d\d:\d\d(?:[.,]\d+)?\W+(?:.{{0,40}}?\W)?{_LEVEL}\b  # 10:00:00.123 [main] INFO
    | [\[(<]\s*(?:{_LEVEL}|{_LEVEL.lower()})\s*[\])>]  # [info]
    | (?:{_LEVEL}|{_LEVEL.lower()})(?:\[\d+\]|\s*[:|]|\s+\[)  # INFO: or WARN[0000] or info: Namespace
    | (?:\w+=(?:"[^"]{{0,80}}"|\S{{0,80}})\s+){{0,3}}(?:level|lvl)=\w+\b  # time=... level=info
    | [IWEF]\d{{4}}\s\d\d:\d\d:\d\d\.\d+  # klog
    | (?:<\d+>)?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\s[\s\d]\d\s\d\d:\d\d:\d\d\s  # syslog
    """,
    re.VERBOSE,
)


def is_log_record(value: dict[str, Any], *, without_level: bool = False) -> bool:
    """Return whether a JSON object has a level, and a text or a time. Without a level, both are required."""
    names = {name.lower() for name in islice(value, _MEMBERS)}
    told, timed = not names.isdisjoint(_TEXTS), not names.isdisjoint(_TIMES)
    if names.isdisjoint(_LEVELS) and "level" not in (member(value, "record") or ()):
        return without_level and told and timed
    return told or timed


def is_log_line(raw: bytes) -> bool:
    """Return whether a line begins like one of a log."""
    return _LINE.match(_ESCAPES.sub("", raw[:_BEGINNING].decode(errors="replace")).lstrip()) is not None
