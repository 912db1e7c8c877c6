"""`mcpspy otel`: send captures as telemetry to an OpenTelemetry collector."""

import argparse
import json
import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mcpspy.capture.location import SUFFIX, directory
from mcpspy.cli.installation import missing
from mcpspy.cli.options.share import COLLECTOR
from mcpspy.cli.output import say
from mcpspy.cli.targets import existing_path, refuse_to_follow
from mcpspy.errors import CaptureError, UsageError
from mcpspy.secrets.body import redacted_content
from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.redactor import Redactor, shown
from mcpspy.telemetry.followed import Claims, FollowedTelemetry, WatchedCaptures, folder
from mcpspy.telemetry.service import TelemetryService
from mcpspy.telemetry.spans import bounded, content_attributes
from mcpspy.text import plural, printable

if TYPE_CHECKING:
    from mcpspy.conversation.model import Exchange
    from mcpspy.telemetry.sender import Sender
    from mcpspy.telemetry.spans import Value

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
_LATENCY = 0.125  # seconds until a signal is noticed
_LARGEST = 32768  # maximum length of an argument or a result, in characters


def run(options: argparse.Namespace) -> int:
    """Send until everything is sent, or with --follow until a signal arrives."""
    _check_environment()
    endpoint = (options.endpoint or next(filter(None, map(os.environ.get, _ENDPOINTS)), COLLECTOR)).rstrip("/")
    report = partial(_report, shown(endpoint))
    named = [existing_path(path) for path in options.captures] or [directory(None, os.environ)]
    for path in named if options.follow else ():
        if not os.path.isdir(path):
            refuse_to_follow(path)
    sender = _sender(options, report)
    place = folder(endpoint)
    claims = Claims(place)
    wake = _signals()
    redact = partial(redacted_content, mark=Redactor().mark)
    contents = partial(_contents, redact) if options.content else None
    watched = WatchedCaptures(named, _skipped, follow=options.follow)
    service = TelemetryService(sender, claims, wake, report)
    try:
        whole = service.run(
            watched.look, lambda path: FollowedTelemetry(path, place, redact, contents), follow=options.follow
        )
    finally:
        sender.close()
        claims.close()
    if service.failure and not options.follow:
        raise UsageError(f"{shown(endpoint)}: {service.failure}; start a collector, or name another with --endpoint")
    if watched.empty and not options.follow:
        raise CaptureError(f"there is no capture (*{SUFFIX}) in {', '.join(named)}")
    if service.live and not options.follow:
        say(f"{plural(service.live, 'capture')} still live; --follow sends what comes later")
    print(f"sent {plural(service.spans, 'span')} and {plural(service.logs, 'log record')}")
    return 0 if whole or options.follow else 130


def _check_environment() -> None:
    """Raise UsageError for environment variables that would prevent any export."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        raise UsageError("nothing is sent, because OTEL_SDK_DISABLED is true")
    if os.environ.get("OTEL_TRACES_EXPORTER", "otlp").strip().lower() not in ("otlp", ""):
        raise UsageError("'mcpspy otel' sends spans over OTLP only; unset OTEL_TRACES_EXPORTER or set it to otlp")
    for name in _PROTOCOLS:
        value = os.environ.get(name, "").strip().lower()
        if value not in ("", "http/protobuf"):
            raise UsageError(
                f"{name} is {printable(value, 40)}, but 'mcpspy otel' sends http/protobuf only (usually port 4318)"
            )


def _signals() -> Callable[[float], bool]:
    """Make the first SIGINT or SIGTERM end the command soon, and a second one at once.

    Returns a function that waits for some seconds, and returns whether a signal arrived. A signal handler must not
    acquire a lock, such as that of an event, because the interrupted code may hold it.
    """
    came: list[int] = []

    def stop(number: int, _: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)

    def wait(seconds: float) -> bool:
        end = time.monotonic() + seconds
        while not came and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LATENCY))
        return bool(came)

    return wait


def _skipped(why: str) -> None:
    say(f"skipped: {why}")


def _report(endpoint: str, text: str) -> None:
    say(f"{endpoint}: {text}")


def _sender(options: argparse.Namespace, report: Callable[[str], None]) -> "Sender":
    try:
        from mcpspy.telemetry.sender import Sender
    except ModuleNotFoundError as error:
        raise UsageError(missing("'mcpspy otel' needs", error.name, "otel")) from None
    return Sender(options.endpoint, report, metrics=options.follow)


def _contents(redact: Callable[[str], str], exchange: "Exchange") -> "dict[str, Value]":
    """Return arguments and results as JSON text, and strings unchanged, with known secrets redacted."""
    found: dict[str, Value] = {}
    for name, value in content_attributes(exchange).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        hidden = is_secret_name(name.rpartition(".")[2])
        found[name] = "«withheld»" if hidden else bounded(text, redact, _LARGEST)
    return found
