"""Which media type bytes have: the first bytes of an image, of a sound or of a document show it.

Only the head of a base64 text is decoded, whatever its length.
"""

import binascii
import re
from typing import NamedTuple

_HEAD = 512  # characters of base64 that are decoded
_SPACE = re.compile(r"\s+")
_SAFE = str.maketrans("-_", "+/")  # the alphabet for URLs
_FTYP = rb".{4}ftyp"


class MediaForm(NamedTuple):
    """One form of bytes."""

    name: str
    """The name for people."""
    types: tuple[str, ...]
    """The media types that say so, the registered one first."""
    pattern: re.Pattern[bytes]
    """Matches the first bytes."""


def _form(name: str, types: str, pattern: bytes) -> MediaForm:
    return MediaForm(name, tuple(types.split()), re.compile(pattern, re.DOTALL))


_FORMS = (
    _form("PNG", "image/png image/apng image/x-png", rb"\x89PNG\r\n\x1a\n"),
    _form("JPEG", "image/jpeg image/pjpeg", rb"\xff\xd8\xff"),
    _form("GIF", "image/gif", rb"GIF8[79]a"),
    _form("WebP", "image/webp", rb"RIFF.{4}WEBP"),
    _form("AVIF", "image/avif image/avif-sequence", _FTYP + rb"avi[fs]"),
    _form("HEIF", "image/heic image/heif image/heif-sequence", _FTYP + rb"(?:hei[cxs]|hevc|m[is]f1)"),
    _form("TIFF", "image/tiff", rb"II\*\0|MM\0\*"),
    _form("BMP", "image/bmp image/x-bmp image/x-ms-bmp", rb"BM.{4}\0{4}"),
    _form("ICO", "image/vnd.microsoft.icon image/x-icon", rb"\0\0\x01\0[\x01-\x20]\0"),
    _form("HTML", "text/html", rb"(?i:\s*<!doctype html|\s*<html[\s>])"),
    _form("SVG", "image/svg+xml", rb"(?=[\s\xef\xbb\xbf]*+<)[^\0]*?<svg[\s>]"),
    _form("PDF", "application/pdf", rb"%PDF-"),
    _form("WAV", "audio/wav audio/wave audio/x-wav audio/vnd.wave", rb"RIFF.{4}WAVE"),
    _form("MP3", "audio/mpeg audio/mp3 audio/mpeg3 audio/x-mp3 audio/x-mpeg", rb"ID3|\xff[\xf2\xf3\xfa\xfb]"),
    _form("Ogg", "audio/ogg audio/opus audio/vorbis audio/x-ogg application/ogg video/ogg", rb"OggS"),
    _form("FLAC", "audio/flac audio/x-flac", rb"fLaC"),
    _form("MP4", "audio/mp4 audio/m4a audio/x-m4a audio/aac video/mp4", _FTYP + rb"(?:M4[ABV]|mp4|iso|dash|avc1)"),
    _form("WebM", "audio/webm audio/x-matroska video/webm video/x-matroska", rb"\x1aE\xdf\xa3"),
    _form("AAC", "audio/aac audio/aacp audio/x-aac", rb"\xff[\xf0\xf1\xf8\xf9]"),
    _form("AIFF", "audio/aiff audio/x-aiff", rb"FORM.{4}AIF[FC]"),
)
_OTHERS = ("image/jpg", "image/svg", "image/jpe")
KNOWN = frozenset(it for form in _FORMS for it in form.types).union(_OTHERS)
"""The media types whose bytes are known."""
_TWICE = re.compile(rb"iVBORw0KGgo|/9j/|R0lGOD|UklGR")


def media_form(data: str) -> MediaForm | None:
    """Return the form of the bytes that a base64 text has, or None if it is not known."""
    head = _decoded(data)
    return next((form for form in _FORMS if form.pattern.match(head)), None)


def is_encoded_twice(data: str) -> bool:
    """Return whether the bytes of a base64 text are an image in base64 themselves."""
    return _TWICE.match(_decoded(data)) is not None


def _decoded(data: str) -> bytes:
    """Return the first bytes of a base64 text; empty if it cannot be decoded."""
    head = base64_letters(data[:_HEAD])
    return base64_bytes(head[: len(head) // 4 * 4] if len(data) > _HEAD else head)


def base64_letters(text: str) -> str:
    """Return the letters of a base64 text in the usual alphabet (RFC 4648, 4), without white space and padding."""
    return _SPACE.sub("", text).rstrip("=").translate(_SAFE)


def base64_bytes(letters: str) -> bytes:
    """Return the bytes of such letters; empty if they are damaged."""
    try:
        return binascii.a2b_base64(letters + "=" * (-len(letters) % 4))
    except ValueError:
        return b""
