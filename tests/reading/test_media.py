import base64
import struct

import pytest

from mcpspy.reading.media import MediaFile, decoded, disagreement, media_of
from tests.each import each
from tests.limits import proportionate

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 1280, 720) + bytes(9)
GIF = b"GIF89a" + struct.pack("<HH", 32, 16) + bytes(3)
APP0 = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + bytes(9)
EXIF = b"\xff\xe1" + struct.pack(">H", 40_000) + bytes(39_998)  # with a thumbnail
JPEG = b"\xff\xd8" + APP0 + EXIF + b"\xff\xff\xc2" + struct.pack(">HBHH", 17, 8, 480, 640) + bytes(12)
VP8X = b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8X" + struct.pack("<I", 10) + bytes(4) + b"\x7f\x02\0" + b"\xdf\x01\0"
VP8L = b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8L" + struct.pack("<IBI", 10, 0x2F, 99 | 49 << 14) + bytes(9)
VP8 = b"RIFF" + struct.pack("<I", 30) + b"WEBPVP8 " + struct.pack("<I", 10) + bytes(6) + struct.pack("<HH", 100, 50)
WAV = b"RIFF" + struct.pack("<I", 36) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16_000, 2, 16)
MP3 = b"ID3\4\0\0" + bytes((0, 0, 0, 10)) + bytes(10) + b"\xff\xfb\x90\0" + bytes(16_000)
SVG = (
    b"""<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width='10.5px' height="20"><path d=""/></svg>"""
)
SLOW = (" " * 300_000 + "!", base64.b64encode(b'<svg viewBox="' + b"," * 3000 + b'">').decode())
"""Texts in which a pattern could try the same blanks and commas again and again."""


@each(
    "data, said",
    [
        (PNG, "PNG 1280 × 720, 33 B"),
        (PNG[:18], "PNG, 18 B"),
        (GIF, "GIF 32 × 16, 13 B"),
        (JPEG, "JPEG 640 × 480, 40.0 kB"),
        (b"\xff\xd8\xff" + bytes(100), "JPEG, 103 B"),
        (VP8X, "WebP 640 × 480, 30 B"),
        (VP8L, "WebP 100 × 50, 34 B"),
        (VP8, "WebP 100 × 50, 30 B"),
        (WAV + b"LIST" + struct.pack("<I", 3) + b"abc\0data" + struct.pack("<I", 52_800), "WAV 3.30 s, 56 B"),
        (b"\0\0\0\x20ftypavif" + bytes(8) + b"ispe" + struct.pack(">III", 0, 640, 480), "AVIF 640 × 480, 36 B"),
        (b"\0\0\0\x20ftypavif" + bytes(8), "AVIF, 20 B"),
        (b"BM" + bytes(12) + struct.pack("<IIi", 40, 320, -200), "BMP 320 × 200, 26 B"),
        (WAV[:24], "WAV, 24 B"),
        (MP3, "MP3 about 1.00 s, 16.0 kB"),
        (b"\xff\xf2\x90\0" + bytes(100), "MP3, 104 B"),
        (SVG, "SVG 10.5 × 20, 107 B"),
        (b'<svg viewBox="0 0 24 12"/>', "SVG 24 × 12, 26 B"),
        (b"<svg viewBox=' -5,-5 , 7.5,\n6'>", "SVG 7.5 × 6, 31 B"),
        (b'<svg width="100%">', "SVG, 18 B"),
        (b"%PDF-1.7\n", "PDF 1.7, 9 B"),
        (b"\0\1\2", "bytes, 3 B"),
    ],
)
def test_media_are_what_their_bytes_say(data, said):
    assert str(media_of(base64.b64encode(data).decode())) == said


def test_the_alphabet_for_urls_line_breaks_and_missing_padding_are_read():
    data = bytes(range(256)) * 2
    lines = base64.encodebytes(data).decode()
    plain = base64.urlsafe_b64encode(data).decode().rstrip("=")
    for text in (lines, plain, f"data:;base64,{plain}", f"data:image/png;x=1;base64,{lines}"):
        assert decoded(text) == data
        found = media_of(text)
        assert found is not None
        assert found.size == len(data)


@pytest.mark.parametrize("text", ["", "no base64!", "data:text/plain,hello", "A"])
def test_other_text_is_no_media(text):
    assert media_of(text) is None


def test_no_text_takes_long():
    with proportionate(2):
        assert [str(media_of(text)) for text in SLOW] == ["None", "SVG, 3.0 kB"]


def test_a_type_that_is_said_is_not_believed():
    media = media_of(base64.b64encode(PNG).decode())
    assert disagreement(media, "image/png; q=1") == ""
    assert disagreement(media, None) == ""
    assert disagreement(media, "image/x\x1b[31m") == "mimeType says image/x\\e[31m"


def test_only_forms_without_code_are_opened():
    forms = ("PNG", "JPEG", "GIF", "WebP", "WAV", "MP3", "SVG", "PDF", "HTML", "")
    assert [MediaFile(form, (), 1).opened for form in forms] == [
        ".png", ".jpg", ".gif", ".webp", ".wav", ".mp3", "", "", "", "",
    ]  # fmt: skip
    assert MediaFile("HTML", ("text/html",), 1).extension == ".bin"
    assert MediaFile("PNG", ("image/png",), 1).extension == ".png"


@each(
    "data, empty",
    [
        (GIF, False),
        (b"GIF89a" + struct.pack("<HH", 0, 16) + bytes(3), True),
        (PNG[:16] + bytes(17), True),
        (PNG[:18], False),
        (WAV[:20], True),
        (WAV, True),
        (WAV + b"data" + bytes(4), True),
        (WAV + b"data" + struct.pack("<I", 2), True),
        (WAV + b"data" + struct.pack("<I", 2) + bytes(2), False),
        (WAV + b"LIST" + struct.pack("<I", 1 << 20) + bytes(1 << 20) + b"data" + struct.pack("<I", 2), False),
    ],
)
def test_what_has_no_pixels_or_samples_is_not_opened(data, empty):
    media = media_of(base64.b64encode(data).decode())
    assert media.empty == empty
    assert bool(media.opened) == (not empty)
