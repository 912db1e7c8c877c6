"""HTTP requests to a collector, and why one was not taken.

The exporters of the SDK count a redirection, or a page that any web server answers with, as success, and keep the cause
of a failure to themselves. So the answers are looked at here, before the exporters see them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from requests import Response, Session
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import InvalidSchema, InvalidURL, MissingSchema, RequestException, SSLError, Timeout

from mcpspy.text import printable

TOO_LARGE = 413
_BEFORE_RETRY = 2  # a connection that was kept open may have been closed meanwhile
_LONGEST = 200  # characters of what a collector or a library says
_PROTOBUF = "application/x-protobuf"


class NotTaken(RequestException):
    """Whoever answered took nothing; the exporters do not try again after this."""


class CollectorSession(Session):
    """Sends requests. `report` gets a sentence where a collector takes a part only, once for each of its reasons."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._reported: set[str] = set()
        self.status: int | None = None
        """That of the last answer; None if none came."""
        self.failure = ""
        """Why the last request was not taken; empty if it was."""

    def request(self, *args: Any, **options: Any) -> Response:
        """Send a request. Raises NotTaken where that failed for good, or nobody was there."""
        self.status, self.failure = None, ""
        try:
            response = self._attempt(*args, **options)
        except RequestException as error:
            self.failure = _reason(error)
            raise NotTaken(self.failure) from error
        self.status, self.failure = response.status_code, _refusal(response)
        if self.failure and response.status_code < 400:
            raise NotTaken(self.failure)
        if not self.failure:
            self._note_rejections(response)
        return response

    def _attempt(self, *args: Any, **options: Any) -> Response:
        for _ in range(_BEFORE_RETRY - 1):
            try:
                return super().request(*args, **options)
            except (SSLError, Timeout):
                raise
            except NoConnection:
                continue
        return super().request(*args, **options)

    def _note_rejections(self, response: Response) -> None:
        """The responses about spans, logs and metrics have the same two fields with the same numbers."""
        if not response.headers.get("content-type", "").startswith(_PROTOBUF):
            return
        try:
            partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        except DecodeError:
            return
        why = printable(partial.error_message, _LONGEST)
        if partial.rejected_spans > 0 and why not in self._reported and len(self._reported) < _LONGEST:
            self._reported.add(why)
            self._report(f"the collector rejected {partial.rejected_spans} of what was sent{why and ': '}{why}")


def _refusal(response: Response) -> str:
    """Why an answer is not that of a collector that has taken something; empty if it is."""
    status = response.status_code
    if status >= 400:
        reason = printable(response.reason or "", 60)
        return f"the collector answers with status {status}{reason and f' ({reason})'}"
    if status >= 300:
        return f"the collector answers with a redirection (status {status}); name the place it leads to"
    if "html" in response.headers.get("content-type", "").lower():
        return "a web page was answered, so no collector of OTLP over HTTP listens there"
    return ""


def _reason(error: RequestException) -> str:
    """Why no answer came."""
    if isinstance(error, MissingSchema | InvalidSchema | InvalidURL):
        return "the endpoint is not a valid URL that begins with http:// or https://"
    if isinstance(error, Timeout):
        return "the collector does not answer in time (OTEL_EXPORTER_OTLP_TIMEOUT)"
    system = [it for it in _causes(error) if isinstance(it, OSError) and it.strerror]
    if isinstance(error, SSLError):
        why = getattr(system[-1], "verify_message", "") or system[-1].strerror if system else "no TLS there"
        return f"the collector cannot be reached over TLS: {printable(str(why), _LONGEST)}"
    why = system[-1].strerror if system else type(error).__name__
    return f"the collector cannot be reached: {printable(str(why), _LONGEST)}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """An exception and those it was made from: libraries give them as arguments, reasons and contexts."""
    known: list[BaseException] = []
    found: list[object] = [error]
    while found and len(known) < _LONGEST:
        one = found.pop(0)
        if isinstance(one, BaseException) and one not in known:
            known.append(one)
            found += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
    yield from known
