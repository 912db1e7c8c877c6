"""The live directory: a relay reads exactly what a viewer writes, and ignores files of anybody else."""

import os
import stat
import subprocess
import sys

import pytest

from mcpspy.capture.live import LiveFolder, LiveViewer, live_directory, refusal
from mcpspy.errors import CaptureError
from tests import limits
from tests.limits import LIMIT

GATES = [{"name": "a", "when": {}, "action": {"drop": True}}]


@pytest.fixture
def capture(tmp_path):
    return str(tmp_path / "session.jsonl")


@pytest.fixture
def viewer(capture):
    viewer = LiveViewer(capture, "ab12")
    yield viewer
    viewer.close()


@pytest.fixture
def folder(capture):
    return LiveFolder(live_directory(capture, "ab12"))


def test_it_stands_beside_the_capture_and_is_private(capture, viewer):
    viewer.set_gates(GATES)
    assert live_directory(capture, "ab12") == os.path.join(os.path.dirname(capture), ".ab12.live")
    assert stat.S_IMODE(os.stat(viewer.path).st_mode) == 0o700
    assert all(stat.S_IMODE(os.stat(entry).st_mode) == 0o600 for entry in os.scandir(viewer.path))


def test_nothing_is_there_to_read_before_a_viewer_comes(folder):
    assert not folder.changed()
    assert folder.read() == ([], [], [])


def test_gates_are_read_and_taken_back(folder, viewer):
    viewer.set_gates(GATES)
    assert folder.changed()
    assert folder.read() == (GATES, [], [])
    viewer.set_gates([])
    assert folder.changed()
    assert folder.read() == ([], [], [])


def test_gates_of_several_viewers_are_all_in_force(capture, folder, viewer):
    other = LiveViewer(capture, "ab12")
    viewer.set_gates(GATES)
    other.set_gates([{"name": "b"}])
    assert sorted(gate["name"] for gate in folder.read()[0]) == ["a", "b"]
    other.close()
    assert folder.read()[0] == GATES


def test_gates_that_are_taken_back_while_they_are_read_are_no_fault(folder, viewer, monkeypatch):
    viewer.set_gates(GATES)

    def opened(*arguments, open_file=os.open):
        fd = open_file(*arguments)
        viewer.set_gates([])
        return fd

    monkeypatch.setattr("os.open", opened)
    assert folder.read()[2] == []
    assert folder.read() == ([], [], [])


def test_orders_are_read_once_in_their_order(folder, viewer):
    viewer.release(3, "edited", '{"a":1}')
    viewer.send('{"id":"mcpspy-1"}', "s")
    viewer.release(4, "continued")
    orders = [
        {"release": 3, "how": "edited", "frame": '{"a":1}'},
        {"send": '{"id":"mcpspy-1"}', "session": "s"},
        {"release": 4, "how": "continued"},
    ]
    assert folder.read()[1] == orders
    assert folder.read()[1] == []


def test_a_change_right_after_a_look_is_seen_however_coarse_the_clock_of_the_file_system(folder, viewer):
    viewer.set_gates(GATES)
    folder.read()
    changed = os.stat(viewer.path).st_mtime_ns
    viewer.release(1, "continued")
    os.utime(viewer.path, ns=(changed, changed))
    assert folder.changed()
    assert folder.read()[1] == [{"release": 1, "how": "continued"}]


def test_the_gates_of_a_viewer_that_died_are_in_force_no_longer(capture, folder):
    program = (
        "import sys, os, signal; from mcpspy.capture.live import LiveViewer\n"
        f"LiveViewer({capture!r}, 'ab12').set_gates({GATES!r}); print(flush=True); sys.stdin.read()"
    )
    process = limits.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        assert folder.read()[0] == GATES
        process.kill()
        process.wait(timeout=LIMIT)
        assert folder.changed()
        assert folder.read()[0] == []
        assert os.listdir(folder.path) == []
    finally:
        process.kill()
        process.communicate(timeout=LIMIT)


def test_the_relay_removes_it_at_its_end(folder, viewer):
    viewer.set_gates(GATES)
    viewer.release(1, "continued")
    folder.read()
    folder.remove()
    assert not os.path.exists(folder.path)
    folder.remove()


@pytest.mark.skipif(os.name != "posix", reason="named pipes and devices of POSIX")
def test_what_would_make_the_relay_wait_is_not_read(folder, viewer):
    viewer.set_gates(GATES)
    for name in ("1.order.json", "gates-2.json"):
        os.mkfifo(os.path.join(viewer.path, name))
    os.symlink("/dev/zero", os.path.join(viewer.path, "3.order.json"))
    gates, orders, faults = folder.read()
    assert (gates, orders) == (GATES, [])
    assert [os.path.basename(fault.split()[0]) for fault in faults] == ["1.order.json", "3.order.json"]


def test_a_viewer_that_comes_too_late_is_told(monkeypatch, viewer):
    viewer.set_gates(GATES)
    replace = os.replace

    def late(source, target):
        os.unlink(source)
        replace(source, target)

    monkeypatch.setattr(os, "replace", late)
    with pytest.raises(CaptureError, match="the session has ended"):
        viewer.release(1, "continued")


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"[" * 100_000, b'"' + b"a" * (17 << 20) + b'"'])
def test_a_file_that_is_none_of_ours_is_named_and_ignored(folder, viewer, content):
    viewer.set_gates(GATES)
    with open(os.path.join(viewer.path, "1.order.json"), "wb") as file:
        file.write(content)
    gates, orders, faults = folder.read()
    assert (gates, orders) == (GATES, [])
    assert len(faults) == 1
    assert "1.order.json holds no JSON object" in faults[0]


def test_a_symbolic_link_is_refused_by_both(tmp_path, folder, viewer):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", folder.path)
    assert "is not a directory" in refusal(folder.path)
    with pytest.raises(CaptureError, match=r"cannot control this session: .* is not a directory"):
        viewer.set_gates(GATES)
    assert folder.changed()
    assert len(folder.read()[2]) == 1
    assert folder.read() == ([], [], []), "it is said once"
    folder.remove()
    assert os.path.exists(tmp_path / "elsewhere")


def test_a_directory_that_others_may_use_is_refused(folder, viewer):
    os.mkdir(folder.path)
    os.chmod(folder.path, 0o770)  # noqa: S103 (the mode that is refused)
    assert "other users may use" in refusal(folder.path)
    with pytest.raises(CaptureError, match="mode 770, expected 700"):
        viewer.set_gates(GATES)


def test_a_directory_of_another_user_is_refused(monkeypatch, folder, viewer):
    os.mkdir(folder.path, 0o700)
    monkeypatch.setattr(os, "getuid", lambda: os.stat(folder.path).st_uid + 1)
    assert "belongs to another user" in refusal(folder.path)
    with pytest.raises(CaptureError, match="belongs to another user"):
        viewer.release(1, "continued")


def test_a_capture_in_a_directory_that_nobody_may_write_to_cannot_be_controlled(tmp_path):
    viewer = LiveViewer(str(tmp_path / "not there" / "session.jsonl"), "ab12")
    with pytest.raises(CaptureError, match="cannot control this session"):
        viewer.set_gates(GATES)


def test_some_orders_are_read_at_a_time_and_none_is_lost(folder, viewer):
    """A-21: a relay waits meanwhile."""
    for number in range(250):
        viewer.release(number, "continued")
    counts = []
    while folder.changed() and len(counts) < 10:
        counts.append(len(folder.read()[1]))
    assert counts[:3] == [100, 100, 50]
    assert sum(counts) == 250


def test_directories_do_not_take_the_place_of_orders(folder, viewer):
    """A-21: 100 of them, which cannot be unlinked, were looked at each time instead of the orders after them."""
    viewer.set_gates(GATES)
    for number in range(100):
        os.mkdir(os.path.join(viewer.path, f"{number:06}.order.json"))
    viewer.release(3, "continued")
    assert folder.read() == (GATES, [{"release": 3, "how": "continued"}], [])


def test_the_orders_of_one_look_have_a_limited_size(folder, viewer):
    """A-21: a relay waits meanwhile; no order is lost, and a single larger one is carried out."""
    sizes = [3 << 20, 1 << 19, 3 << 20, 8 << 20, 1, 1]
    for number, size in enumerate(sizes):
        viewer.release(number, "edited", "x" * size)
    looks = []
    while folder.changed() and len(looks) < 20:
        if found := folder.read()[1]:
            looks.append([order["release"] for order in found])
    assert looks == [[0, 1], [2], [3], [4, 5]]


def test_the_gates_of_a_limited_number_of_viewers_are_in_force(capture, folder):
    """A-21."""
    viewers = [LiveViewer(capture, "ab12") for _ in range(20)]
    try:
        for viewer in viewers:
            viewer.set_gates(GATES)
        gates, _, faults = folder.read()
        assert len(gates) == 16
        assert faults == ["more than 16 viewers have set gates; those of the others are not in force"]
    finally:
        for viewer in viewers:
            viewer.close()
