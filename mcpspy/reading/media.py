"""What an image, a sound or a document is, told by its bytes: form, size in bytes, dimensions, length.

`mimeType` is what the sender says; it is never believed here. Only the beginning of the base64 text is decoded, because
a result may have megabytes of it. Formats: PNG (W3C), GIF89a, JPEG (ITU-T T.81, B.2), WebP (RFC 9649), RIFF WAVE, MPEG
audio (ISO 11172-3, 2.4), SVG 2, PDF (ISO 32000).
"""

import re
import struct
from typing import NamedTuple

from mcpspy.text import duration_text, printable, size_text
from mcpspy.wire.media_bytes import base64_bytes, base64_letters, media_form

_OPENED = {"PNG": ".png", "JPEG": ".jpg", "GIF": ".gif", "WebP": ".webp", "WAV": ".wav", "MP3": ".mp3"}
"""The forms that the system's viewer may open: they contain no code."""
_SAVED = _OPENED | {
    "SVG": ".svg", "PDF": ".pdf", "AVIF": ".avif", "HEIF": ".heic", "TIFF": ".tiff", "BMP": ".bmp", "ICO": ".ico",
    "Ogg": ".ogg", "FLAC": ".flac", "MP4": ".mp4", "WebM": ".webm", "AAC": ".aac", "AIFF": ".aiff",
}  # fmt: skip
_HEAD = 256 << 10  # characters of base64 that are decoded: a JPEG may have a thumbnail before its dimensions
_BASE64 = re.compile(r"[A-Za-z0-9+/_\-\s]*(?:={1,2}\s*)?")  # one way to match blanks: else the time is quadratic
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[\w.+-]+=[^;,]*)*;base64,", re.IGNORECASE)
_SVG_TAG = re.compile(rb"<svg[\s>][^>]*>?", re.IGNORECASE)
_LENGTH = rb"""\s*=\s*["']\s*(\d+(?:\.\d+)?)(?:px)?\s*["']"""
_SVG_SIZES = tuple(re.compile(rb"[\s\"']" + name + _LENGTH) for name in (b"width", b"height"))
_SVG_BOX = re.compile(
    rb"""\sviewBox\s*=\s*["']\s*[^\s,"']+[\s,]+[^\s,"']+[\s,]+(\d+(?:\.\d+)?)[\s,]+(\d+(?:\.\d+)?)\s*["']"""
)
_PDF_VERSION = re.compile(rb"%PDF-(\d\.\d)")
_NO_FRAME = frozenset((0xC4, 0xC8, 0xCC))  # markers of JPEG in the range of those that begin a frame
_KBITS = {
    (3, 3): (0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448),
    (3, 2): (0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384),
    (3, 1): (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
}  # by the bits of version and layer; other versions are not estimated


class MediaFile(NamedTuple):
    """An image, a sound or a document."""

    form: str
    """The name for people, such as PNG; empty if the bytes are of no known form."""
    types: tuple[str, ...]
    """The media types of the form, the registered one first."""
    size: int
    """Its bytes."""
    detail: str = ""
    """Dimensions or length, as in `1280 × 720` and `3.20 s`."""
    empty: bool = False
    """Whether it has no pixels or no samples."""

    @property
    def extension(self) -> str:
        """The extension of a file that holds it."""
        return _SAVED.get(self.form, ".bin")

    @property
    def opened(self) -> str:
        """The extension of a file for the system's viewer; empty if the viewer does not get it."""
        return "" if self.empty else _OPENED.get(self.form, "")

    def __str__(self) -> str:
        """Say what it is, such as `PNG 1280 × 720, 84.2 kB`."""
        return f"{' '.join(filter(None, (self.form or 'bytes', self.detail)))}, {size_text(self.size)}"


def media_of(text: str) -> MediaFile | None:
    """Return what a base64 text or a `data:` URL holds; None if it is neither."""
    url = _DATA_URL.match(text)
    data = text[url.end() :] if url else text
    if not _BASE64.fullmatch(data[:_HEAD]) or not data:
        return None
    head = decoded(data[:_HEAD])
    if not head:
        return None
    form = media_form(data)
    letters = len(data) - data.count("\n") - data.count("\r") - data.count(" ") - data[-4:].count("=")
    size = letters * 3 // 4
    return MediaFile(form.name, form.types, size, *_detail(form.name, head, size)) if form else MediaFile("", (), size)


def decoded(text: str) -> bytes:
    """Return the bytes of a base64 text or a `data:` URL, with or without padding; empty if it is damaged."""
    url = _DATA_URL.match(text)
    letters = base64_letters(text[url.end() :] if url else text)
    return base64_bytes(letters[:-1] if len(letters) % 4 == 1 else letters)  # one letter alone has no whole byte


def disagreement(media: MediaFile, said: object) -> str:
    """Return what to tell if a `mimeType` is not that of the bytes, or the form of these is not known; else empty."""
    if not isinstance(said, str) or not said or said.partition(";")[0].strip().lower() in media.types:
        return ""
    return f"mimeType says {printable(said, 60)}"


def _detail(form: str, head: bytes, size: int) -> tuple[str, bool]:
    """Return dimensions or length of a form, as far as its head tells them, and whether it is empty."""
    try:
        if form in _DIMENSIONS:
            found = _DIMENSIONS[form](head)
            return (f"{found[0]} × {found[1]}", 0 in map(float, found)) if found else ("", False)
        if form == "WAV":
            return _wave_length(head, size)
        if form == "MP3":
            return _mpeg_length(head, size), False
        version = _PDF_VERSION.match(head) if form == "PDF" else None
        return version[1].decode() if version else "", False
    except (struct.error, IndexError):  # the head ends too early
        return "", False


def _png(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<HH", head, 6)
    return width, height


def _bmp(head: bytes) -> tuple[int, int]:
    width, height = struct.unpack_from("<Ii", head, 18)
    return width, abs(height)  # negative if the first line is the upper one


def _avif(head: bytes) -> tuple[int, int] | None:
    """Find the box with the size of the picture (ISO 23008-12, 6.5.3)."""
    at = head.find(b"ispe")
    if at < 0:
        return None
    width, height = struct.unpack_from(">II", head, at + 8)
    return width, height


def _jpeg(head: bytes) -> tuple[int, int] | None:
    """Find the segment that begins the frame, going from segment to segment."""
    at = 2
    while at + 9 <= len(head):
        if head[at] != 0xFF:
            return None
        marker = head[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in _NO_FRAME:
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        else:
            at += 2 + struct.unpack_from(">H", head, at + 2)[0]
    return None


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        width, height = struct.unpack_from("<I", head, 24)[0], struct.unpack_from("<I", head, 26)[0]
        return 1 + (width & 0xFFFFFF), 1 + (height >> 8)
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", head, 21)[0]
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _svg(head: bytes) -> tuple[str, str] | None:
    tag = _SVG_TAG.search(head)
    if tag is None:
        return None
    width, height = (pattern.search(tag[0]) for pattern in _SVG_SIZES)
    if width and height:
        return width[1].decode(), height[1].decode()
    box = _SVG_BOX.search(tag[0])
    return (box[1].decode(), box[2].decode()) if box else None


_DIMENSIONS = {"PNG": _png, "GIF": _gif, "BMP": _bmp, "AVIF": _avif, "JPEG": _jpeg, "WebP": _webp, "SVG": _svg}


def _wave_length(head: bytes, size: int) -> tuple[str, bool]:
    """Return the length of a sound in RIFF WAVE, by the sizes of its chunks, and whether it has no samples."""
    at, rate = 12, 0
    while at + 8 <= len(head):
        name, length = head[at : at + 4], struct.unpack_from("<I", head, at + 4)[0]
        if name == b"fmt " and at + 20 <= len(head):
            rate = struct.unpack_from("<I", head, at + 16)[0]
        elif name == b"data":
            empty = not length or at + 8 >= size
            return duration_text(length * 1_000_000_000 // rate) if rate else "", empty
        at += 8 + length + length % 2
    return "", at >= size


def _mpeg_length(head: bytes, size: int) -> str:
    """Return the length of a sound in MPEG-1 audio, estimated by the bit rate of its first frame."""
    at = 0
    if head.startswith(b"ID3"):  # seven bits in each byte
        at = 10 + sum((head[6 + place] & 0x7F) << 7 * (3 - place) for place in range(4))
    if head[at] != 0xFF or head[at + 1] < 0xE0:
        return ""
    version, layer, rate = head[at + 1] >> 3 & 3, head[at + 1] >> 1 & 3, head[at + 2] >> 4
    rates = _KBITS.get((version, layer), ())
    return f"about {duration_text((size - at) * 8_000_000 // rates[rate])}" if 0 < rate < len(rates) else ""
