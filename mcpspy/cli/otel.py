"""`mcpspy otel`: captures as telemetry for a collector of OpenTelemetry."""

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from mcpspy.capture.listing import captures
from mcpspy.capture.location import directory
from mcpspy.cli.targets import capture_paths
from mcpspy.errors import UsageError
from mcpspy.secrets.redactor import Redactor
from mcpspy.secrets.text import redacted_text, redacted_url
from mcpspy.telemetry.attributes import content_attributes
from mcpspy.telemetry.checkpoint import folder
from mcpspy.telemetry.followed import FollowedTelemetry
from mcpspy.telemetry.service import TelemetryService, followed
from mcpspy.text import plural, printable

if TYPE_CHECKING:
    from mcpspy.conversation.model import Exchange
    from mcpspy.telemetry.sender import Sender
    from mcpspy.telemetry.span import Value

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_DEFAULT = "http://localhost:4318"
_LARGEST = 32768  # characters of an argument or a result


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Send captures to an OpenTelemetry collector over OTLP/HTTP: each exchange as a span, stderr, log messages and "
        "findings as logs, durations as metrics. What the collector has taken is not sent again."
    )
    parser.epilog = "The OTEL_* variables of the OpenTelemetry SDK apply. Needs the extra mcpspy[otel]."
    parser.add_argument("captures", nargs="*", metavar="CAPTURE|DIR", help="default: the capture directory")
    parser.add_argument("--follow", action="store_true", help="go on with live captures and new ones, and send metrics")
    parser.add_argument(
        "--endpoint", metavar="URL", help=f"base URL of the collector (default: {_ENDPOINTS[1]}, or {_DEFAULT})"
    )
    parser.add_argument("--content", action="store_true", help="send arguments and results too, without known secrets")


def run(options: argparse.Namespace) -> int:
    """Send until all is sent, or with --follow until a signal comes."""
    endpoint = options.endpoint or next(filter(None, map(os.environ.get, _ENDPOINTS)), _DEFAULT)
    report = partial(_report, endpoint)
    sender = _sender(options, report)
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    mark = Redactor().mark
    redact = partial(_redacted, mark)
    contents = partial(_contents, redact) if options.content else _nothing
    place = folder(endpoint)
    service = TelemetryService(sender, stop.wait, report)
    known: set[str] = set()
    find = partial(_found, options.captures, follow=options.follow)
    try:
        whole = service.run(
            lambda: followed(find(), lambda path: FollowedTelemetry(path, place, redact, contents), known),
            follow=options.follow,
        )
    finally:
        sender.close()
    if not whole and not options.follow:
        raise UsageError(f"the collector at {endpoint} took no telemetry; start it, or name another with --endpoint")
    print(f"sent {plural(service.spans, 'span')} and {plural(service.logs, 'log record')}")
    return 0


def _report(endpoint: str, text: str) -> None:
    print(f"mcpspy: {endpoint}: {text}", file=sys.stderr, flush=True)


def _sender(options: argparse.Namespace, report: Callable[[str], None]) -> "Sender":
    try:
        from mcpspy.telemetry.sender import Sender
    except ModuleNotFoundError as error:
        command = f"{sys.executable} -m pip install 'mcpspy[otel]'"
        raise UsageError(
            f"'mcpspy otel' needs {printable(str(error.name), 60)}, which is not installed: {command}"
        ) from None
    return Sender(options.endpoint, report, metrics=options.follow)


def _found(named: list[str], *, follow: bool) -> Iterable[str]:
    """The paths of the captures, as far as there are any by now."""
    folders = [it for it in named if os.path.isdir(it)] if named else [directory(None, os.environ)]
    if not follow:
        return list(capture_paths(named or folders))
    files = [it for it in named if not os.path.isdir(it)]
    return [*files, *(listed.capture.path for place in folders for listed in captures(place))]


def _redacted(mark: Callable[[str], str], text: str) -> str:
    return redacted_text(redacted_url(text, mark), mark)


def _nothing(_: "Exchange") -> "dict[str, Value]":
    return {}


def _contents(redact: Callable[[str], str], exchange: "Exchange") -> "dict[str, Value]":
    """Arguments and results as JSON in a string, without known secrets."""
    return {
        name: redact(json.dumps(value, ensure_ascii=False)[:_LARGEST])
        for name, value in content_attributes(exchange).items()
    }
