"""HTTP requests to a collector, and the reason why one was not accepted.

The exporters of the SDK count a redirection, or a page of any web server, as success, and do not report the cause of a
failure. So the responses are checked here, before the exporters receive them.
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
_BEFORE_RETRY = 2  # attempts; the server may have closed a connection that was kept open
_LONGEST = 200  # characters of a text from a collector or a library
_PROTOBUF = "application/x-protobuf"


class NotTaken(RequestException):
    """The other side accepted nothing; the exporters do not retry after this."""


class CollectorSession(Session):
    """Sends requests. `report` receives a sentence if a collector accepts only a part, once for each reason."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._reported: set[str] = set()
        self.status: int | None = None
        """The status of the last response; None if none came."""
        self.failure = ""
        """Why the last request was not accepted; empty if it was."""

    def request(self, *args: Any, **options: Any) -> Response:
        """Send a request. Raises NotTaken if it failed for good, or if the collector was unreachable."""
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
        """Report rejected entries; the responses for spans, logs and metrics have the same two fields."""
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
    """Return why a response is not an acceptance by a collector; empty if it is."""
    status = response.status_code
    if status >= 400:
        reason = printable(response.reason or "", 60)
        return f"the collector answers with status {status}{reason and f' ({reason})'}"
    if status >= 300:
        return f"the collector answers with a redirection (status {status}); use the URL that it points to"
    if "html" in response.headers.get("content-type", "").lower():
        return "the response is a web page, so no collector of OTLP over HTTP listens there"
    return ""


def _reason(error: RequestException) -> str:
    """Return why no response came."""
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
    """Yield an exception and its causes: libraries store them as arguments, reasons and contexts."""
    known: list[BaseException] = []
    found: list[object] = [error]
    while found and len(known) < _LONGEST:
        one = found.pop(0)
        if isinstance(one, BaseException) and one not in known:
            known.append(one)
            found += [*one.args, getattr(one, "reason", None), one.__cause__, one.__context__]
    yield from known
