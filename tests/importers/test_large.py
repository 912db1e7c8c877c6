"""A-21: large files that consist of tiny values. Each is imported or refused in seconds and with little memory."""

import json
import subprocess
import sys

import pytest

from mcpspy.importers import captures
from tests import limits
from tests.importers.files import AT, PING, brought, dumps, entry, flow, har
from tests.importers.test_inspector import fetch, message
from tests.importers.test_mcpsnoop import META, envelope

SCALE = 8
"""The limits of the importers are divided by this, for files that are as much smaller."""
SIZE = (12 << 20) // SCALE
SECONDS = 2
MEMORY = 40
"""MiB: the program itself, and the most values that one entry may have."""
MEMORY_OF_A_BODY = 100
"""MiB: several copies of a body of 12 MB, which is a string of its file, and not its values."""
MANY = b"{}," * (SIZE // 3) + b"{}"
NESTED = b"[" * (SIZE // 2) + b"]" * (SIZE // 2)
STRINGS = b'"",' * (SIZE // 3) + b'""'
FEW = 30_000
TOO_MANY = b"[" + b"{}," * FEW + b"{}]"
"""More than FEW values, in more bytes than those by which a format is recognised."""
IMPORT = """
import os, sys, time
from mcpspy.errors import CaptureError
from mcpspy.importers import forms, captures, flow_file, text
scale = int(sys.argv[1])
captures.VALUES = text.VALUES = flow_file.VALUES = captures.VALUES // scale
captures.LOST //= scale
text.CHUNK //= scale
text.BEFORE //= scale
for path in sys.argv[2:]:
    if os.fork():
        os.wait()
        continue
    begun = time.process_time()
    try:
        account = forms.bring(path, {"MCPSPY_CAPTURE_DIR": path + "-captures"})
        said = account.left_out or f"imported {account.fault}"
    except CaptureError as error:
        said = error
    with open("/proc/self/status") as file:
        peak = next(line.split()[1] for line in file if line.startswith("VmHWM"))
    print(int(peak) >> 10, time.process_time() - begun, said)
    sys.exit()
"""


def element(fields, raw):
    """Return an object as JSON with one more member, whose value is `raw`."""
    return json.dumps(fields).encode()[:-1] + b',"_x":' + raw + b"}"


def archive(*entries, pages=b""):
    return b'{"log":{"version":"1.2","pages":[' + pages + b'],"entries":[' + b",".join(entries) + b"]}}"


def array(*elements):
    return b"[" + b",".join(elements) + b"]"


def netstring(raw, kind):
    return b"%d:%b%b" % (len(raw), raw, kind)


HAR_ENTRY, HISTORY, NETWORK = (json.dumps(one).encode() for one in (entry(), message(), fetch()))
FILES = {
    "HAR: in an entry": lambda: archive(HAR_ENTRY, element(entry(), b"[" + MANY + b"]")),
    "HAR: nested in an entry": lambda: archive(HAR_ENTRY, element(entry(), NESTED)),
    "HAR: strings in an entry": lambda: archive(HAR_ENTRY, element(entry(), b"[" + STRINGS + b"]")),
    "HAR: as entries": lambda: archive(HAR_ENTRY, MANY),
    "HAR: arrays as entries": lambda: archive(HAR_ENTRY, MANY.replace(b"{}", b"[]")),
    "HAR: before the entries": lambda: archive(HAR_ENTRY, pages=MANY),
    "HAR: in a body": lambda: har(entry(request=PING[:-1] + b',"params":[' + (MANY + b",") * SCALE + b"{}]}")),
    "history: in a message": lambda: array(HISTORY, element(message(), b"[" + MANY + b"]")),
    "history: as messages": lambda: array(HISTORY, MANY),
    "network log: in a request": lambda: array(NETWORK, element(fetch(), b"[" + MANY + b"]")),
    "network log: as requests": lambda: array(NETWORK, MANY),
    "mcpsnoop: in a line": lambda: META + envelope(2, "c2s", b"[" + MANY + b"]"),
    "mcpsnoop: as lines": lambda: META + b"{}\n" * (SIZE // 3),
    "flows: in a flow": lambda: dumps(flow()) + netstring(netstring(b"0:}" * (SIZE // 3), b"]"), b"]"),
    "flows: as flows": lambda: dumps(flow()) + b"0:}" * (SIZE // 3),
}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_of_tiny_values_is_imported_or_refused_quickly(tmp_path):
    """A-21: each file in a process that is forked where the modules are imported."""
    for number, content in enumerate(FILES.values()):
        (tmp_path / str(number)).write_bytes(content())
    command = [sys.executable, "-c", IMPORT, str(SCALE), *(tmp_path / str(number) for number in range(len(FILES)))]
    done = limits.run(command, stdout=subprocess.PIPE, text=True, check=True)
    taken = dict(zip(FILES, done.stdout.splitlines(), strict=True))
    for name, line in taken.items():
        memory, seconds, words = line.split(" ", 2)
        assert float(seconds) < SECONDS, (name, words)
        assert float(memory) < (MEMORY_OF_A_BODY if "body" in name else MEMORY), (name, words)


def test_a_flow_of_many_values_is_left_out_and_named(tmp_path, monkeypatch):
    """A-21: the limit of flow files."""
    monkeypatch.setattr("mcpspy.importers.flow_file.VALUES", FEW)
    many = netstring(netstring(b"0:}" * (FEW + 1), b"]"), b"]")
    account, [capture] = brought(tmp_path, dumps(flow()) + many + dumps(flow(start=AT + 1)))
    assert (account.read, account.lost) == (3, 1)
    assert account.left_out == f"flow 2 has more than {FEW:,} values"
    assert len(list(capture.records())) > 4


@pytest.mark.parametrize(
    ("content", "left_out"),
    [
        (b"".join(envelope(number, "c2s", TOO_MANY) for number in range(17)), "line 1"),
        (array(*[element(message(), TOO_MANY)] * 17), "message 1"),
        (array(*[element(fetch(), TOO_MANY)] * 17), "request 1"),
    ],
    ids=["mcpsnoop", "history", "network log"],
)
def test_a_file_whose_first_parts_are_all_too_large_has_a_format(tmp_path, monkeypatch, content, left_out):
    """A-21: it is not an unknown format."""
    for module in ("text", "captures"):
        monkeypatch.setattr(f"mcpspy.importers.{module}.VALUES", FEW)
    account, captures = brought(tmp_path, content)
    assert (account.read, account.lost, captures) == (17, 17, [])
    assert account.left_out.startswith(f"{left_out} has more than")


@pytest.mark.parametrize(
    "content",
    [archive(HAR_ENTRY, *[b"{}"] * 9), META + envelope(2, "c2s", PING) + b"{}\n" * 9, dumps(flow()) + b"0:}" * 9],
    ids=["HAR", "mcpsnoop", "flows"],
)
def test_a_file_of_damaged_parts_is_not_read_to_its_end(tmp_path, monkeypatch, content):
    """A-21: it may have millions of them."""
    monkeypatch.setattr(captures, "LOST", 5)
    account, made = brought(tmp_path, content)
    assert (account.lost, len(made)) == (6, 1)
    assert account.fault == f"6 damaged {account.unit}s, so the rest is not read"
    monkeypatch.setattr(captures, "LOST", 9)
    assert brought(tmp_path / "all", content)[0].fault == ""


def test_the_entries_of_an_archive_begin_in_its_first_megabytes(tmp_path, monkeypatch):
    """A-21."""
    monkeypatch.setattr("mcpspy.importers.text.BEFORE", 1000)
    account, captures = brought(tmp_path, archive(HAR_ENTRY, pages=b"{}," * 1000 + b"{}"))
    assert (account.fault, captures) == ("what precedes its entries is larger than 0 MiB", [])
