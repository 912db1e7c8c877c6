"""The capture in a shared page is imported byte for byte; a damaged or hostile page uses no extra memory."""

import base64
import gzip
import tracemalloc

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.importers.shared_page import OPENING
from tests.importers.files import brought
from tests.sharing.page.written import carried, written
from tests.timelines import CAPTURES
from tests.transcript import capture


def page(content):
    """Return a page that contains these bytes verbatim."""
    return b"<!DOCTYPE html>\n<html>\n" + OPENING + content + b"</script>\n</html>\n"


def packed(content):
    return base64.b64encode(gzip.compress(content))


@pytest.fixture(name="session")
def _session(tmp_path):
    with open(capture(tmp_path / "a.jsonl", "= 2025-06-18"), "rb") as file:
        return file.read()


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_golden_capture_comes_back_equal(tmp_path, path):
    content = written(path)
    _, [made] = brought(tmp_path, content.encode(), "report.html")
    with open(made.path, "rb") as file:
        found = file.read()
    assert found == path.read_bytes() == carried(content)
    assert made.path.startswith(str(tmp_path / "captures"))


def test_what_a_filter_left_out_comes_back_as_it_is_in_the_page(tmp_path):
    content = written(CAPTURES / "everything-2025-11-25.jsonl", "name:echo")
    _, [made] = brought(tmp_path, content.encode(), "report.html")
    with open(made.path, "rb") as file:
        assert file.read() == carried(content)


def test_the_file_is_named_as_captures_are_and_only_the_user_can_read_it(tmp_path, session):
    _, [made] = brought(tmp_path, page(packed(session)))
    assert made.path.rpartition("/")[2].startswith("20251124T160000Z-weather-")
    assert (tmp_path / "captures").stat().st_mode & 0o777 == 0o700
    [file] = (tmp_path / "captures").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_white_space_that_a_mail_program_put_in_changes_nothing(tmp_path, session):
    lines = b"\r\n".join(packed(session)[at : at + 70] for at in range(0, len(packed(session)), 70))
    _, [made] = brought(tmp_path, page(b"\n" + lines + b"\n"))
    assert made.header.name == "weather"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda content: content[: len(content) // 2], "the capture in it is cut off"),
        (lambda content: content.partition(b"</script>")[0], "the capture in it is cut off"),
        (lambda content: content.replace(b"</script>", b"=</script>"), "the capture in it is damaged"),
        (lambda content: content.replace(b"H4sI", b"H4sJ"), "the capture in it is damaged"),
        (lambda _: page(b""), "the capture in it is cut off"),
        (lambda _: page(b"!!!!"), "the capture in it is damaged"),
        (
            lambda _: page(packed(b"hello\n")),
            "the capture in it is not a capture: its first line is not a capture header",
        ),
        (lambda _: page(packed(b'{"mcpspy":99,"tool":"mcpspy 9"}\n')), "the capture in it has format 99"),
        (
            lambda _: page(packed(b'{"mcpspy":1}\n')),
            "the capture in it is not a capture: its first line is not a capture header",
        ),
        (
            lambda _: page(packed(b"x" * 3_000_000)),
            "the capture in it is not a capture: its first line is not a capture header",
        ),
        (lambda _: page(packed(b"")), "the capture in it is not a capture: its first line is not a capture header"),
    ],
)
def test_a_damaged_page_is_one_fault_and_leaves_no_file(tmp_path, session, change, fault):
    account, made = brought(tmp_path, change(page(packed(session))))
    assert account.fault.startswith(fault)
    assert made == []
    assert not any((tmp_path / "captures").iterdir() if (tmp_path / "captures").exists() else ())


def test_what_is_packed_too_well_is_not_unpacked(tmp_path, session, monkeypatch):
    """40 megabytes compressed to 40 kilobytes: neither memory nor disk space is used for them."""
    monkeypatch.setattr("mcpspy.importers.shared_page.MOST", 1 << 25)
    packer = gzip.zlib.compressobj(9, wbits=31)
    zeros = bytes(1 << 20)
    bomb = packer.compress(session) + b"".join(packer.compress(zeros) for _ in range(40)) + packer.flush()
    content = page(base64.b64encode(bomb))
    tracemalloc.start()
    account, made = brought(tmp_path, content)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert account.fault == "the capture in it has more than 33.6 MB"
    assert made == []
    assert list((tmp_path / "captures").iterdir()) == []
    assert peak < 10_000_000


def test_the_header_tells_whose_capture_it_is(tmp_path, session):
    _, [made] = brought(tmp_path, page(packed(session)))
    assert made.header == Capture(str(tmp_path / "a.jsonl")).header


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_what_stands_behind_the_end_of_the_capture_is_damage(tmp_path, session, size):
    half = gzip.compress(session[:300]) + gzip.compress(session[300:]) + b"x" * size
    account, made = brought(tmp_path, page(base64.b64encode(half)))
    assert "there is data after its end" in account.fault
    assert not made
