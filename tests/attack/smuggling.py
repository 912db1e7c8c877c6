"""Requests that two HTTP parsers could read in two ways, made from tables, and parsers that read them differently.

Every request carries the text of a second one, `GET /smuggled`, where at least one reading takes it for part of the
first one, and another for a request of its own. Every request is followed by `GET /after` on the same connection.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

HIDDEN = b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
AFTER = b"GET /after HTTP/1.1\r\nHost: localhost\r\n\r\n"
POST = b"POST /first HTTP/1.1\r\nHost: localhost\r\n"
LAST = b"0\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n"
CHUNK = b"%x\r\n" % len(HIDDEN) + HIDDEN + b"\r\n" + LAST
KEY = b"A" * 22 + b"=="  # of a WebSocket

CODINGS = [
    *(b"chunked", b"Chunked", b"CHUNKED", b"xchunked", b"chunkedx", b"chunked,", b",chunked", b"chunked, ", b"chunk"),
    *(b"chunked, chunked", b"chunked,identity", b"identity, chunked", b"gzip, chunked", b"chunked, gzip", b"identity"),
    *(b"chunked;q=1", b"chunked; a=b", b'"chunked"', b"'chunked'", b"chunked\0", b"\0chunked", b"\tchunked"),
    *(b"chunked\t", b" chunked ", b"\x0bchunked", b"chunked\x0b", b"\x0cchunked", b"chunked\x0c", b"\xa0chunked"),
    *(b"\xc2\xa0chunked", b"chunked\r", b"\rchunked", b"\nchunked", b"\n chunked", b"\r\n chunked", b"\r\n\tchunked"),
    *(b"chunked\r\n X", b"ch\r\n unked", b"chunked\nX: y", b"chunked\rX: y", b"c%68unked", b"chu nked", b"", b" "),
    *(b"chunked\x7f", b"chunked\x85", b"cow", b"trailers, chunked", b"chunked#", b"chunked/1", b"=?utf-8?q?chunked?="),
    *(b"chunked\r\nTransfer-Encoding: identity", b"identity\r\nTransfer-Encoding: chunked"),
    *(b"x\r\nTransfer-Encoding: chunked", b"chunked\r\nTransfer-Encoding: x", b"chunked\r\nTransfer-Encoding:"),
    b"chunked\r\nTransfer-Encoding: chunked",
]
NAMES = [
    *(b"Transfer-Encoding ", b"Transfer-Encoding\t", b" Transfer-Encoding", b"\tTransfer-Encoding"),
    *(b"Transfer-Encoding\0", b"\0Transfer-Encoding", b"Transfer-Encoding\x0b", b"Transfer-Encoding\r"),
    *(b"Transfer-Encoding\n", b"Transfer-\r\n Encoding", b"X: y\nTransfer-Encoding", b"X: y\rTransfer-Encoding"),
    *(b"X: y\r\n\x00Transfer-Encoding", b"TRANSFER-ENCODING", b"Transfer-Encoding:", b":Transfer-Encoding"),
    *(b"Transfer\x00-Encoding", b'"Transfer-Encoding"', b"Transfer-Encoding\x7f", b"Transfer-Encoding(a)"),
]
LENGTHS = [
    *(
        b"+%d",
        b"-%d",
        b" %d",
        b"%d ",
        b"\t%d",
        b"%d\t",
        b"0%d",
        b"00000000000000000000%d",
        b"%d.0",
        b"%de0",
        b"%d_",
        b"_%d",
    ),
    *(b"%d,", b",%d", b"%d, %d", b"%d,%d", b"%d, 0", b"0, %d", b"%d;", b"%d;a=b", b'"%d"', b"'%d'", b"%d\0", b"\0%d"),
    *(
        b"%dx",
        b"x%d",
        b"%d\x0b",
        b"\x0b%d",
        b"%d\x0c",
        b"\xa0%d",
        b"%d\xa0",
        b"%d\r",
        b"\r%d",
        b"\n%d",
        b"\r\n %d",
        b"%d\r\n ",
    ),
    *(
        b"%d\nX: y",
        b"%d\rX: y",
        b"1%d%d%d%d%d%d%d%d%d%d%d%d",
        b"1844674407370955161%d",
        b"\xd9\xa1%d",
        b"%d %d",
        b"0 %d",
    ),
    *(b"%d\r\nContent-Length: 0", b"0\r\nContent-Length: %d", b"%d\r\nContent-Length: %d", b"%d\r\nContent-Length:"),
    *(b"%d\r\ncontent-length: 1", b"\r\nContent-Length: %d", b"%d\r\nContent-Length: +%d", b"%d\r\nContent-Length: -1"),
]
HEX_LENGTHS = [b"0x%x", b"%x", b"0X%x", b"0o%o", b"0b1", b"\\x%x", b"%xh", b"#%x"]
LENGTH_NAMES = [
    *(b"Content-Length ", b"Content-Length\t", b" Content-Length", b"Content-Length\0", b"\0Content-Length"),
    *(
        b"Content-Length\x0b",
        b"Content-Length\r",
        b"Content-Length\n",
        b"X: y\nContent-Length",
        b"X: y\rContent-Length",
    ),
    *(b"Content-\r\n Length", b"Content-Length:", b":Content-Length", b'"Content-Length"', b"Content\0-Length"),
]
SIZES = [
    *(b"%x", b"%X", b"0%x", b"0000000000%x", b"0" * 40 + b"%x", b"0" * 5000 + b"%x"),
    *(b"0x%x", b"0X%x", b"+%x", b"-%x", b" %x", b"\t%x"),
    *(b"%x ", b"%x\t", b"%x  ", b"%x_", b"_%x", b"0_%x"),
    *(b"%xg", b"%x.", b"%x,", b"%x\0", b"\0%x", b"%x\x0b", b"\xa0%x"),
    *(b"%x;", b"%x;a", b"%x;a=b", b'%x;a="b"', b'%x;a="\r\n"'),
    *(b"%x;a=b;c", b"%x ;a", b"%x; a = b", b"%x;\0", b"%x;a\nb"),
    *(b"%x;a\rb", b"%x;" + b"a" * 5000, b"%x;\xff", b"%x\r", b"%x\n", b"%x\r\r", b"1%015x0", b"10000000000000%04x"),
    *(b"10000000000000000%04x", b"ffffffffffffffff%x", b"\xd9\xa1%x", b'"%x"', b"(%x)", b"%x#", b"%x:", b"%x/", b""),
]  # fmt: skip
ENDS = [  # of a chunk, and what follows it
    *(b"", b"\n", b"\r", b"\r\r\n", b"\n\r", b"XX", b"\0\0", b"\r\nX\r\n", b"\r\n\r\n", b"  \r\n", b"\r\n\0"),
]
TRAILERS = [
    *(b"X: y", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: evil", b"GET /smuggled HTTP/1.1"),
    *(b" X: y", b"X : y", b"X: y\n", b"X: a\rb", b"X", b":", b"\0", b"X: y\r\n folded", b"X: " + b"y" * 5000),
    *(b"X: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 9", b"\n", b"\r"),
]
FIELDS = [  # that may stand beside a body
    *(b"Connection: Content-Length", b"Connection: Transfer-Encoding", b"Connection: close, Content-Length"),
    *(b"Connection: Host", b"Connection: keep-alive, Transfer-Encoding, Content-Length", b"Connection: Connection"),
    *(b"Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__", b"Upgrade: websocket"),
    *(b"Connection: Upgrade\r\nUpgrade: TLS/1.0", b"Expect: 100-continue", b"Expect: 100-continue, x", b"Expect: x"),
    b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY,
    *(b"Expect:\r\n 100-continue", b"TE: trailers, chunked", b"Trailer: Content-Length", b"Trailer: Transfer-Encoding"),
    *(b"X: a\nb", b"X: a\rb", b"X: a\0b", b"X: a\r\n b", b"X: a\r\n\tb", b"X\0: a", b"X : a", b" X: a", b"X", b": a"),
    *(b"X: a\n\nGET /smuggled HTTP/1.1\nHost: localhost\n", b"X: a\r\rGET /smuggled HTTP/1.1\rHost: localhost\r"),
    *(b"X: a\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost", b"X: a\r\n\n", b"X: a\r\n\r", b"X: \xff\xfe", b"X(a): b"),
    *(b"Host: localhost", b"Host: evil", b"host:localhost:1", b"Content-Encoding: chunked", b"Proxy-Connection: close"),
    *(b"Content-Type: message/http", b"Keep-Alive: timeout=0", b"Max-Forwards: 0", b"X-HTTP-Method-Override: GET"),
    *(b"Content_Length: 0", b"Transfer_Encoding: chunked", b"X: " + b"a" * 7000, b"Sec-Fetch-Site: none"),
]  # fmt: skip
STARTS = [  # request lines; the first body is framed as it should be
    *(b"POST /first HTTP/1.0", b"POST /first HTTP/1.2"),
    *(b"POST /first HTTP/2.0", b"POST /first HTTP/0.9", b"POST /first"),
    *(b"POST /first HTTP/1.1 ", b" POST /first HTTP/1.1", b"POST  /first HTTP/1.1", b"POST\t/first\tHTTP/1.1"),
    *(b"POST /first  HTTP/1.1", b"POST /first HTTP/1.1\r"),
    *(b"POST /first http/1.1", b"POST /first HTTP/1", b"POST /first HTTP/01.1"),
    *(b"POST /first HTTP/1.1\0", b"POST /fi\0rst HTTP/1.1"),
    *(b"POST /fi\nrst HTTP/1.1", b"POST /fi\rrst HTTP/1.1", b"POST"),
    *(b"POST /first HTTP/1.1 HTTP/1.1", b"POST /first GET /smuggled HTTP/1.1", b"POST http://localhost/first HTTP/1.1"),
    *(b"POST http://evil/first HTTP/1.1", b"POST //evil/first HTTP/1.1"),
    *(b"POST localhost:80 HTTP/1.1", b"POST * HTTP/1.1"),
    *(b"CONNECT localhost:80 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"HEAD /first HTTP/1.1", b"GET /first HTTP/1.1"),
    *(b"TRACE /first HTTP/1.1", b"DELETE /first HTTP/1.1"),
    *(b"get /first HTTP/1.1", b"P(ST /first HTTP/1.1", b"\r\nPOST /first HTTP/1.1"),
    *(b"\r\n\r\nPOST /first HTTP/1.1", b"\nPOST /first HTTP/1.1", b"\rPOST /first HTTP/1.1", b"\0POST /first HTTP/1.1"),
    *(b"POST /first#x HTTP/1.1", b"POST /first%0d%0aX:y HTTP/1.1", b"POST /first%00 HTTP/1.1", b"POST first HTTP/1.1"),
    *(b"POST /\xff HTTP/1.1", b"POST /first?\r\n HTTP/1.1", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nPOST /first HTTP/1.1"),
]  # fmt: skip


def _numbers(form: bytes, number: int) -> bytes:
    """Fill every number into a form."""
    return form % ((number,) * len(re.findall(rb"%\d*[dxXo]", form)))


def _requests() -> Iterator[tuple[str, bytes]]:
    """Yield each request with the name of the part that varies."""
    whole = LENGTH % (len(LAST) + len(HIDDEN))
    for field in [*(b"Transfer-Encoding: " + it for it in CODINGS), *(it + b": chunked" for it in NAMES)]:
        yield "te", POST + field + b"\r\n\r\n" + CHUNK
        yield "cl.te", POST + whole + field + b"\r\n\r\n" + LAST + HIDDEN
        yield "te.cl", POST + field + b"\r\nContent-Length: 4\r\n\r\n" + CHUNK
    for form in [b"Content-Length: " + it for it in LENGTHS + HEX_LENGTHS] + [it + b": %d" for it in LENGTH_NAMES]:
        field = _numbers(form, len(HIDDEN))
        yield "cl", POST + field + b"\r\n\r\n" + HIDDEN
        if not field.lower().startswith((b" ", b"content-length : ", b"content-length\t: ")):
            yield "cl.cl", POST + LENGTH % len(HIDDEN) + field + b"\r\n\r\n" + HIDDEN
    for size in SIZES:
        yield "chunk", POST + CHUNKED + b"\r\n" + _numbers(size, len(HIDDEN)) + b"\r\n" + HIDDEN + b"\r\n" + LAST
        yield "last chunk", POST + CHUNKED + b"\r\n2\r\n{}\r\n" + _numbers(size, 0) + b"\r\n" + b"X: y" + b"\r\n\r\n"
    for end in ENDS:
        yield "end", POST + CHUNKED + b"\r\n%x\r\n" % len(HIDDEN) + HIDDEN + end + LAST
        yield "end of the last", POST + CHUNKED + b"\r\n" + CHUNK[:-2] + end
    for trailer in TRAILERS:
        yield "trailer", POST + CHUNKED + b"\r\n" + CHUNK[:-2] + trailer + b"\r\n\r\n"
    for field in FIELDS:
        yield "field, length", POST + LENGTH % len(HIDDEN) + field + b"\r\n\r\n" + HIDDEN
        yield "field, chunks", POST + CHUNKED + field + b"\r\n\r\n" + CHUNK
    for start in STARTS:
        yield "start, length", start + b"\r\nHost: localhost\r\n" + LENGTH % len(HIDDEN) + b"\r\n" + HIDDEN
        yield "start, chunks", start + b"\r\nHost: localhost\r\n" + CHUNKED + b"\r\n" + CHUNK


REQUESTS = {f"{n} {name}": request for n, (name, request) in enumerate(dict.fromkeys(_requests()))}


@dataclass(frozen=True)
class Parser:
    """A server's way to read requests. The defaults follow RFC 9112; each other value is a mistake of real servers."""

    line: bytes = rb"\r\n"
    """What ends a line, as a pattern."""
    trim: bytes = b""
    """What is removed around the name and the value of a field, besides spaces and tabs around the value."""
    any_coding: bool = False
    """Whether a coding that contains `chunked` is taken for it."""
    length_first: bool = False
    """Whether a length counts if there are also chunks."""
    which: int = 0
    """Which of several lengths counts."""
    sizes: bytes = rb"[0-9a-fA-F]+"
    """The pattern of the size of a chunk; what follows it is ignored."""

    def requests(self, data: bytes) -> list[bytes]:
        """Return method and target of each request in the bytes of a connection, up to what cannot be parsed."""
        found = []
        while head := re.match(rb"(?:%b)*(.+?)(?:%b){2}" % (self.line, self.line), data, re.DOTALL):
            start, *lines = re.split(self.line, head[1])
            words = start.split()
            if len(words) < 2:
                break
            found.append(b" ".join(words[:2]))
            data = self._without_body(lines, data[head.end() :])
        return found

    def _without_body(self, lines: list[bytes], data: bytes) -> bytes:
        """Return what follows the body of a request."""
        fields = [
            (name.strip(self.trim).lower(), value.strip(b" \t" + self.trim)) for name, _, value in map(_split, lines)
        ]
        codings = [value.lower() for name, value in fields if name == b"transfer-encoding"]
        lengths = [
            int(it[0]) for name, value in fields if name == b"content-length" and (it := re.search(rb"\d+", value))
        ]
        chunked = any(b"chunked" in it if self.any_coding else it == b"chunked" for it in codings)
        if lengths and not (chunked and not self.length_first):
            return data[lengths[self.which] :]
        while chunked:
            size = re.match(rb"(%b)[^\r\n]*(?:%b)" % (self.sizes, self.line), data)
            if size is None:
                return b""
            number = int(size[1], 16)
            if number == 0:
                return data[size.end() :].partition(b"\r\n")[2]
            data = re.sub(rb"\A%b" % self.line, b"", data[size.end() + number :])
        return data


def _split(line: bytes) -> tuple[bytes, bytes, bytes]:
    return line.partition(b":")


STRICT = Parser()
LENIENT = [
    Parser(line=rb"\r?\n"),
    Parser(line=rb"(?>\r\n|\r|\n)"),
    Parser(trim=b" \t\r\n\0\x0b\x0c\xa0", any_coding=True),
    Parser(any_coding=True, length_first=True, which=-1),
    Parser(which=-1, sizes=rb"[\s+-]*(?:0[xX])?[0-9a-fA-F_]+"),
    Parser(line=rb"\r?\n", trim=b" \t\r\n\0\x0b\x0c\xa0", any_coding=True, which=-1),
]
