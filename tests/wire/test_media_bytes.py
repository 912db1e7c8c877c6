"""The form of bytes in base64: by their beginning, whatever follows."""

import base64

import pytest

from mcpspy.wire.media_bytes import KNOWN, is_encoded_twice, media_form

HEADS = {
    "PNG": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "JPEG": b"\xff\xd8\xff\xe0\0\x10JFIF",
    "GIF": b"GIF89a\1\0\1\0",
    "WebP": b"RIFF\x24\0\0\0WEBPVP8 ",
    "AVIF": b"\0\0\0\x20ftypavif",
    "HEIF": b"\0\0\0\x18ftypheic",
    "TIFF": b"II*\0\x08\0\0\0",
    "BMP": b"BM\x46\0\0\0\0\0\0\0",
    "ICO": b"\0\0\1\0\1\0\x10\x10",
    "SVG": b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- made by hand -->\n<!DOCTYPE svg>\n<svg xmlns='x'>",
    "HTML": b"\n<!DOCTYPE html><body><svg></svg>",
    "PDF": b"%PDF-1.7",
    "WAV": b"RIFF\x24\0\0\0WAVEfmt ",
    "MP3": b"ID3\x04\0\0",
    "Ogg": b"OggS\0\2",
    "FLAC": b"fLaC\0",
    "MP4": b"\0\0\0\x1cftypM4A ",
    "WebM": b"\x1aE\xdf\xa3\x9f",
    "AAC": b"\xff\xf1\x50\x80",
    "AIFF": b"FORM\0\0\0\0AIFF",
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("size", [0, 1, 2, 10_000])
def test_bytes_are_recognised_by_their_beginning(name, size):
    data = base64.b64encode(HEADS[name] + b"\0" * size).decode()
    form = media_form(data)
    assert form is not None
    assert form.name == name
    assert KNOWN.issuperset(form.types)
    assert media_form("\n".join(data[at : at + 76] for at in range(0, len(data), 76))) is form
    assert media_form(data.replace("+", "-").replace("/", "_").rstrip("=")) is form


@pytest.mark.parametrize(
    "data", ["", "=", "x", "!!!!", "aGVsbG8=", "PGE+", "é" * 600, "<" * 600, base64.b64encode(b"<!----" * 99).decode()]
)
def test_other_bytes_have_no_form(data):
    assert media_form(data) is None
    assert not is_encoded_twice(data)


def test_an_image_that_was_encoded_twice_is_found():
    once = base64.b64encode(HEADS["PNG"] + b"\0" * 20)
    assert is_encoded_twice(base64.b64encode(once).decode())
    assert not is_encoded_twice(once.decode())
