import json
import os
import stat

import pytest

from tests.cli.conftest import refusal
from tests.exporters.consumers import GOLDEN, exported
from tests.transcript import capture

WEB = os.path.join(GOLDEN, "http-everything-2025-11-25.jsonl")


@pytest.fixture
def made(tmp_path):
    return capture(str(tmp_path / "made.jsonl"), "> 1 ping\n< 1 = {}\n> 2 tools/list")


@pytest.fixture
def folder(tmp_path, made):
    capture(str(tmp_path / "other.jsonl"), "> 1 ping")
    return str(tmp_path)


@pytest.mark.parametrize("form", ["mermaid", "perfetto", "csv"])
def test_one_capture_goes_to_stdout(made, mcpspy, form):
    status, out, err = mcpspy("export", made, "--format", form)
    assert (status, err) == (0, "")
    assert out.replace("\r\n", "\n") == exported(form, made).decode().replace("\r\n", "\n")


def test_an_archive_goes_to_a_file_that_is_the_users_alone(tmp_path, mcpspy):
    path = tmp_path / "x.har"
    assert mcpspy("export", WEB, "--format", "har", "-o", str(path)) == (0, f"{path}\n", "")
    assert json.loads(path.read_bytes())["log"]["entries"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nothing_is_overwritten_without_force(tmp_path, made, mcpspy):
    path = tmp_path / "x.mmd"
    path.write_text("mine")
    arguments = ("export", made, "--format", "mermaid", "-o", str(path))
    assert mcpspy(*arguments) == (2, "", f"mcpspy: {path} exists; --force replaces it\n")
    assert path.read_text() == "mine"
    assert mcpspy(*arguments, "--force")[0] == 0
    assert path.read_text().startswith("sequenceDiagram\n")


def test_a_capture_is_not_replaced_by_its_export_even_with_force(made, mcpspy):
    status, _, err = mcpspy("export", made, "--format", "csv", "-o", made, "--force")
    assert (status, err) == (
        2, f"mcpspy: {made} is a capture that is exported here; the export needs another name\n",
    )  # fmt: skip


def test_several_captures_are_files_of_a_directory(tmp_path, folder, mcpspy):
    out = tmp_path / "new" / "out"
    assert mcpspy("export", folder, "--format", "mermaid", "-o", str(out)) == (
        0, f"{out}/made.mmd\n{out}/other.mmd\n", "",
    )  # fmt: skip
    again = mcpspy("export", folder, "--format", "mermaid", "-o", str(out))
    assert again == (2, "", f"mcpspy: {out}/made.mmd exists; --force replaces it\n")


def test_captures_of_one_name_have_files_of_their_own(tmp_path, made, mcpspy):
    other = tmp_path / "there"
    other.mkdir()
    second = capture(str(other / "made.jsonl"), "> 1 ping")
    assert mcpspy("export", made, second, "--format", "csv", "-o", str(tmp_path / "out"))[1].split() == [
        f"{tmp_path}/out/made.csv", f"{tmp_path}/out/made-2.csv",
    ]  # fmt: skip


@pytest.mark.parametrize(("form", "name"), [("csv", "all.csv"), ("perfetto", "all.json")])
def test_formats_that_can_hold_several_captures_make_one_file_where_its_name_says_so(
    tmp_path, folder, mcpspy, form, name
):
    assert mcpspy("export", folder, "--format", form, "-o", str(tmp_path / name))[0] == 0
    assert b"other" in (tmp_path / name).read_bytes()


def test_several_captures_of_a_format_that_holds_one_need_a_directory(folder, mcpspy):
    status, out, err = mcpspy("export", folder, "--format", "mermaid")
    assert (status, out) == (2, "")
    assert err.endswith("use a format that can hold several: perfetto, csv, otlp, curl\n")


def test_of_a_directory_har_takes_the_captures_of_http(tmp_path, made, mcpspy):
    status, out, err = mcpspy("export", made, WEB, "--format", "har", "-o", str(tmp_path / "out"))
    assert (status, out) == (0, f"{tmp_path}/out/http-everything-2025-11-25.har\n")
    assert err == f"mcpspy: skipped: {made} is a stdio session, and har holds HTTP only\n"


def test_har_refuses_stdio_and_writes_nothing(tmp_path, made, mcpspy):
    status, out, err = mcpspy("export", made, "--format", "har", "-o", str(tmp_path / "x.har"))
    assert (status, out) == (2, "")
    assert err == f"mcpspy: {made} is a stdio session, and har holds HTTP only; use mermaid, perfetto, csv, otlp\n"
    assert not [name for name in os.listdir(tmp_path) if "har" in name]


def test_a_filter_chooses_rows_and_a_mistake_in_it_is_pointed_at(made, mcpspy):
    out = mcpspy("export", made, "--format", "csv", "--filter", "method:ping")[1]
    assert out.count("\n") == 3
    status, out, err = mcpspy("export", made, "--format", "csv", "--filter", "status:eror")
    assert (status, out) == (2, "")
    assert "^" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--format", "mermad"), "--format cannot be 'mermad'; did you mean 'mermaid'?"),
        ((), "export needs --format"),
        (("--format", "csv", "-o", "/nowhere/at/all.csv"), "cannot write /nowhere/at/all.csv: No such file"),
    ],
)
def test_a_mistake_is_one_line(made, mcpspy, arguments, words):
    assert words in refusal(mcpspy("export", made, *arguments))


def test_a_file_that_is_no_capture_is_one_line(tmp_path, mcpspy):
    (tmp_path / "x.jsonl").write_text("{}\n")
    refusal(mcpspy("export", str(tmp_path / "x.jsonl"), "--format", "csv"))


@pytest.fixture
def lake(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "lake"


def test_parquet_adds_what_is_new_to_a_directory(made, lake, mcpspy):
    arguments = ("export", made, "--format", "parquet", "-o", str(lake))
    assert mcpspy(*arguments) == (0, f"{lake}: 1 capture written, 0 unchanged\n", "")
    assert mcpspy(*arguments) == (0, f"{lake}: 0 captures written, 1 unchanged\n", "")
    assert mcpspy(*arguments, "--force") == (0, f"{lake}: 1 capture written, 0 unchanged\n", "")
    assert sorted(os.listdir(lake)) == ["captures", "exchanges", "findings", "frames", "messages"]


def test_parquet_needs_a_directory_and_takes_no_filter(made, lake, mcpspy):
    arguments = ("export", made, "--format", "parquet")
    assert mcpspy(*arguments) == (2, "", "mcpspy: --format parquet needs a directory: -o DIR\n")
    assert mcpspy(*arguments, "-o", str(lake), "--filter", "id:1") == (
        2, "", "mcpspy: --format parquet takes no --filter: tables are whole, and queries choose rows\n",
    )  # fmt: skip
    assert not lake.exists()
