"""The page has one script, one style sheet, and a policy that allows only these two."""

import base64
import hashlib
import re

import pytest

from mcpspy.sharing.page.assemble import one_script, page

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
        "base-uri 'none'; form-action 'none'"
    )
    assert text.index("Content-Security-Policy") < text.index("<style>")


@pytest.mark.parametrize("part", ["<!--", "<script", "</script", "</style", "\r"])
def test_nothing_in_the_script_ends_it_early(part):
    _, after = page()
    assert part not in after.removeprefix("<script>").partition("</script>")[0]


def test_nothing_of_the_sources_is_left_out_and_no_module_is_named():
    text = "".join(page())
    assert not re.search(r"^(?:import|export)\s", text, re.MULTILINE)
    assert 'src="' not in text
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
