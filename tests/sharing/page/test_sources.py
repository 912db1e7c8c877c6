"""The sources of the page are typed, linted, joined and readable, and neither run text as code nor use the network."""

import base64
import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.sharing.page.sources import names_module, one_script, page
from tests.each import each
from tests.exporters.consumers import GOLDEN
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


@each("name", sorted(sources()))
def test_no_script_runs_a_text_or_reaches_a_network(name):
    assert FORBIDDEN.findall(sources()[name]) == []


@each(
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


MODULES = {
    "main.js": 'import { b } from "./b.js";\nimport {\n  c,\n  d,\n} from "./c.js";\nb(c, d);\n',
    "b.js": (
        'import { c } from "./c.js";\n\n/** @typedef {import("./c.js").C} C */\n'
        '/** @param {import("./c.js").C} c */\nexport function b(c) {}\nexport class B {}\n'
    ),
    "c.js": "export const c = 1;\nexport async function d() {}\nconst exported = 1;\n",
    "unused.js": "export const unused = 1;\n",
}


def test_a_module_stands_behind_those_that_it_imports_and_without_import_and_export():
    assert one_script(MODULES) == (
        "const c = 1;\nasync function d() {}\nconst exported = 1;\n\n"
        "/** @param {C} c */\nfunction b(c) {}\nclass B {}\n\n"
        "b(c, d);\n"
    )


def test_the_policy_names_the_script_and_the_styles_by_hash_and_nothing_else():
    text = "".join(page())
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    [script] = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    [styles] = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (script, styles)]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<style>")


@each("part", ["<!--", "<script", "</script", "</style", "\r"])
def test_nothing_in_the_script_ends_it_early(part):
    _, after = page()
    assert part not in after.removeprefix("<script>").partition("</script>")[0]


def test_nothing_of_the_sources_is_left_out_and_no_module_is_named():
    text = "".join(page())
    assert not re.search(r"^(?:import|export)\s", text, re.MULTILINE)
    assert 'src="' not in text
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")


TEXTS = ("text", "dim", "blue", "green", "orange", "red", "purple")
BACKS = ("back", "panel", "hover", "chosen", "partner", "hit")


def _luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read_on_every_background(theme):
    styles = (PAGE / "page.css").read_text()
    start = styles.index(":root {" if theme == "light" else ':root[data-theme="dark"]')
    colours = dict(re.findall(r"--(\w+): (#\w{6});", styles[start : styles.index("}", start)]))
    faint = [
        (text, back, round(_contrast(colours[text], colours[back]), 2))
        for text in TEXTS
        for back in BACKS
        if _contrast(colours[text], colours[back]) < 4.5
    ]
    assert faint == []
    assert _contrast("#ffffff", colours["loud"]) >= 4.5


def test_both_ways_to_the_dark_colours_lead_to_the_same():
    styles = (PAGE / "page.css").read_text()
    chosen, system = re.findall(r"color-scheme: dark;\s*(.*?)}", styles, re.DOTALL)
    assert chosen.split() == system.split()


def test_the_module_of_names_is_as_the_tables_are_now():
    """`scripts/write-rules` writes the module."""
    assert (PAGE / "names.js").read_text(encoding="utf-8") == names_module()


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
