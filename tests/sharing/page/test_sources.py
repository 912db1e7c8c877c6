"""The page's sources are typed, formatted and linted, and use nothing that runs text as code or uses the network."""

import re
import subprocess
from pathlib import Path

import pytest

from mcpspy.sharing.page.assemble import page
from tests.limits import LIMIT
from tests.sharing.page.sources import HERE, PAGE, program

needs_node = pytest.mark.needs(".peers/node")
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment|setHTMLUnsafe|parseHTMLUnsafe|DOMParser|srcdoc"
    r"|document\s*\.\s*write|\beval\b|\bFunction\s*\(|\bfetch\b|XMLHttpRequest|WebSocket\s*\(|EventSource|sendBeacon"
    r"|\bimport\s*\((?!\"\./[\w-]+\.js\"\)\.)|importScripts|\bWorker\b|set(?:Timeout|Interval)\s*\(\s*[\"'`]|javascript:"
    r"|\.style\.cssText|setAttribute\(\s*[\"'](?:style|on)"
)


def sources():
    """Return the scripts of the page by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(PAGE.glob("*.js"))}


def run(*command):
    """Run a check that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def checked(folder, script):
    """Check the types of a script as those of the page; return the completed process."""
    (folder / "page.js").write_text(script, encoding="utf-8")
    settings = (HERE / "tsconfig.json").read_text().replace("../../../mcpspy/sharing/page/*.js", "page.js")
    (folder / "tsconfig.json").write_text(settings)
    command = [program("tsc"), "-p", str(folder / "tsconfig.json")]
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)


@needs_node
def test_the_modules_have_types():
    run(program("tsc"), "-p", str(HERE / "tsconfig.json"))


@needs_node
def test_the_script_of_the_page_has_types(tmp_path):
    """So no name is defined in two modules, and no name is missing in the joined script."""
    done = checked(tmp_path, re.search(r"<script>(.*)</script>", page().after, re.DOTALL)[1])
    assert done.returncode == 0, done.stdout


@needs_node
def test_the_sources_are_formatted_and_linted():
    """`biome check --write` with the same arguments formats them."""
    run(program("biome"), "check", "--error-on-warnings", f"--config-path={HERE / 'biome.jsonc'}", str(PAGE))


@needs_node
def test_planted_faults_of_types_are_found(tmp_path):
    misspelled = "/** @param {string} a */\nexport function f(a) {\n  return a.lengt;\n}\n"
    done = checked(tmp_path, misspelled + "export function g(a) {\n  return a;\n}\n")
    assert re.findall("error (TS[0-9]+)", done.stdout) == ["TS2551", "TS7006"]


@pytest.mark.parametrize("name", sorted(sources()))
def test_no_script_runs_a_text_or_reaches_a_network(name):
    assert FORBIDDEN.findall(sources()[name]) == []


@pytest.mark.parametrize(
    "source",
    [
        "a.innerHTML = b", "a.outerHTML", 'a.insertAdjacentHTML("x", b)', "document.write(a)", "eval(a)",
        "new Function(a)", "fetch(a)", "new XMLHttpRequest()", "new WebSocket(a)", "new EventSource(a)",
        "navigator.sendBeacon(a)", 'await import("x")', 'setTimeout("a")', 'a.setAttribute("onclick", b)',
    ],
)  # fmt: skip
def test_a_planted_call_is_found(source):
    assert FORBIDDEN.search(source)


def test_the_frame_has_no_script_style_or_handler_of_its_own():
    frame = Path(PAGE / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:|https?://(?!www\.w3\.org/)", frame)
    assert re.findall(r"<script[^>]*>", frame) == ['<script type="module" src="main.js">']


def test_the_styles_load_nothing():
    styles = (PAGE / "page.css").read_text(encoding="utf-8")
    assert not re.search(r"@import|url\((?![\"']?data:)", styles)
