"""The page's content.js agrees with `mcpspy.reading`: the same lines for the same message, the same media by bytes."""

import base64
import json
import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from mcpspy.reading.content import READ, content_lines, parse
from mcpspy.reading.media import decoded, media_of
from tests import NIGHTLY
from tests.reading import test_media as samples
from tests.reading.test_content import cases
from tests.sharing.page.sources import PAGE

HERE = Path(__file__).parent
PARTS = (
    "a", "\n", "\r\n", " ", "東", "\U0001f469\U0001f4bb", "\u202e", '"', "\\", "\t", "word " * 30, "x" * 700, "[",
    "{}", "\ud83d", "é" * 90, "\U0001f600" * 45,
)  # fmt: skip
NAMES = (
    "type", "text", "data", "content", "contents", "mimeType", "name", "id", "role", "uri", "_meta", "icons", "a", "",
)  # fmt: skip
KINDS = ("text", "image", "resource", "text/plain", "image/png", "audio")
needs_node = pytest.mark.needs("node")


def ask(folder, messages=(), media=(), written=()):
    """Return the answers of the page's modules; all questions go to one process."""
    for source in PAGE.glob("*.js"):
        shutil.copy(source, folder)
    (folder / "package.json").write_text('{"type": "module"}')
    given = json.dumps({"messages": list(messages), "media": list(media), "written": list(written)})
    command = ["node", str(HERE / "run_content.mjs"), str(folder)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def expected(text):
    """Return the lines of `mcpspy.reading`; None for a text that is not JSON."""
    try:
        message = parse(text)
    except ValueError:
        return None
    return [[*line[:4], list(line.path), line.opens, line.folded, line.start] for line in content_lines(message)]


def _text(chosen):
    return "".join(chosen.choice(PARTS) for _ in range(chosen.randint(0, 6)))


def _file(chosen):
    head = chosen.choice([samples.PNG, samples.GIF, samples.WAV, samples.SVG, b"%PDF-1.4", b"<!doctype html>", b"??"])
    text = base64.b64encode(head + bytes(chosen.randint(0, 60))).decode()
    return chosen.choice(["", "", "data:image/png;base64,", "data:;base64,"]) + text


def _value(chosen, depth=0):
    """Return any JSON value, with the names that a message has more often than others."""
    kind = chosen.randint(0, 9 if depth < 5 else 5)
    if kind < 3:
        return _text(chosen)
    if kind == 3:
        return chosen.choice([None, True, False, 1, 2.5, 10**30, float("nan"), chosen.choice(KINDS)])
    if kind == 4:
        return _file(chosen)
    if kind == 5:
        return {"type": chosen.choice(KINDS), chosen.choice(NAMES): _text(chosen), "data": _file(chosen)}
    if kind == 6:
        return json.dumps(_value(chosen, depth + 1), ensure_ascii=chosen.random() < 0.5)
    if kind == 7:
        return [_value(chosen, depth + 1) for _ in range(chosen.randint(0, 4))]
    return {chosen.choice(NAMES): _value(chosen, depth + 1) for _ in range(chosen.randint(0, 5))}


def _message(chosen):
    value = _value(chosen)
    around = chosen.choice(["result", "params", "error", None])
    if around is None:
        return json.dumps(value)
    inside = chosen.choice([value, {"content": [value]}, {"contents": [value], "_meta": 1, "a": value}])
    if chosen.random() < 0.2:
        inside = {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}
    text = json.dumps({"jsonrpc": "2.0", "id": 1, around: inside}, ensure_ascii=chosen.random() < 0.5)
    one, other = chosen.sample(NAMES, 2)
    for quote in ('"', '\\"'):  # names that occur several times, also in JSON in a string
        text = text.replace(f"{quote}{one}{quote}:", f"{quote}{other}{quote}:")
    return text


@needs_node
def test_every_case_has_the_lines_of_the_terminal(tmp_path):
    texts = [text for _, text, _ in cases()]
    answers = ask(tmp_path, texts)
    assert set(answers["read"]) == READ
    for text, lines in zip(texts, answers["messages"], strict=True):
        assert lines == expected(text), text


@needs_node
def test_any_message_has_the_lines_of_the_terminal(tmp_path):
    """Python and JavaScript differ in characters, numbers and spaces, so many odd messages are tried."""
    chosen = random.Random(45)  # noqa: S311 (the same in every run)
    texts = [_message(chosen) for _ in range(20_000 if NIGHTLY else 2_000)]
    texts += [
        '{"result":{"a":1,"b":2,"a":[3]}}',
        '{"result":{"_meta":{"x":1,"x":2},"a":"NaN"}}',
        '{"a":-Infinity}',
        "[1,]",
    ]
    for text, lines in zip(texts, ask(tmp_path, texts)["messages"], strict=True):
        assert lines == expected(text), text


@needs_node
def test_media_are_what_their_bytes_say_and_decoded_whole(tmp_path):
    heads = [getattr(samples, name) for name in dir(samples) if isinstance(getattr(samples, name), bytes)]
    heads += [
        *(head[:cut] for head in heads for cut in (2, 12, 20, 24, 30)),
        b"\0\0\0\x20ftypavif" + bytes(40) + b"ispe" + struct.pack(">III", 0, 640, 480),
        b"BM" + bytes(12) + struct.pack("<IiiHH", 40, 320, -200, 1, 24),
        *(head + bytes(200) for head in (b"OggS", b"fLaC", b"\x1aE\xdf\xa3", b"\xff\xf1", b"FORM0000AIFF", b"II*\0")),
        b"\0\0\0\x20ftypmp42", b"\0\0\x01\0\x02\0", b"<HTML>", b" <!DOCTYPE html>", b"ID3" + bytes(3),
        samples.WAV + b"data" + struct.pack("<I", 32), samples.WAV + b"data" + struct.pack("<I", 2) + bytes(2),
        samples.WAV + b"data" + bytes(6), samples.GIF[:6] + bytes(7), b'<svg width="0.0" height="20">',
        samples.MP3[:10] + b"\xff\xfb\xf0",
    ]  # fmt: skip
    texts = [base64.b64encode(head).decode() for head in heads]
    texts += [base64.encodebytes(samples.EXIF).decode(), base64.urlsafe_b64encode(bytes(range(256)) * 3).decode()]
    texts += ["data:text/html;base64," + texts[0], "", "A", "AAAAA", "no base64!", "data:text/plain,hello"]
    texts += samples.SLOW
    for text, found in zip(texts, ask(tmp_path, media=texts)["media"], strict=True):
        media = media_of(text)
        assert (media is None) == (found is None), text[:80]
        if media:
            shown, empty, extension, data, url = found
            assert (shown, empty, f".{extension}") == (str(media), media.empty, media.extension), text[:80]
            assert base64.b64decode(data) == decoded(text)
            assert not media.types or url.startswith(f"data:{media.types[0]};base64,")


@needs_node
def test_letters_are_decoded_in_a_tree_and_what_json_needs_is_not(tmp_path):
    written = {
        r'"\u6771\u4eac \/a"': '"東京 /a"',
        r'"\ud83d\ude00 \ud83d \ude00"': '"\U0001f600 \\ud83d \\ude00"',
        r'"\u0022 \u005c \" \\u6771"': r'"\u0022 \u005c \" \\u6771"',
        r'"\n \u0000 \u001b \u007f \u0085"': r'"\n \u0000 \u001b \u007f \u0085"',
    }
    assert ask(tmp_path, written=written)["written"] == list(written.values())
