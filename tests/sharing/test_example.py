"""docs/example.html is a page in its current form; `scripts/picture` writes it."""

import os
import re

from mcpspy import cli
from mcpspy.sharing.page.assemble import page
from tests.exporters.consumers import GOLDEN

EXAMPLE = os.path.join(os.path.dirname(GOLDEN), "docs", "example.html")


def test_the_example_has_the_script_and_the_style_of_today():
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    frame = page()
    assert text.startswith(frame.before), "scripts/picture makes it anew"
    assert text.endswith(frame.after)
    carried = text[len(frame.before) : -len(frame.after)]
    assert re.fullmatch(
        r'(<script type="application/gzip;base64" id="(session|capture)">[\w+/=]+</script>\n){2}', carried
    )


def test_the_capture_in_it_passes_the_check(tmp_path, monkeypatch, capsys):
    for words in (["import", EXAMPLE, "--capture-dir", str(tmp_path)], ["scrub", "--check", str(tmp_path)]):
        monkeypatch.setattr("sys.argv", ["mcpspy", *words])
        assert cli.main() == 0
    assert capsys.readouterr().out.endswith("0 places in 1 capture\n")
