"""Skills: correct sessions (X-01), and entries with faults."""

import json

import pytest

from tests.rules.examples import findings, told
from tests.rules.test_extension import discover

SKILLS = "io.modelcontextprotocol/skills"
DIGEST = f"sha256:{'0a' * 32}"
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def file(uri, **other):
    return {"uri": uri, "digest": DIGEST, "size": 9} | other


def skill(uri="skill://acme/pdf/SKILL.md", name="pdf", files=None):
    files = [file(uri), file("skill://acme/pdf/forms/a.md")] if files is None else files
    return {"uri": uri, "frontmatter": {"name": name, "description": "d"}, "resources": files}


DOTTED = skill(files=[file(f"skill://acme/pdf/{name}") for name in ("SKILL.md", ".a", "..b", "c..d/e.", "f?g=/../h")])


def result(**members):
    return json.dumps(CACHE | members)


READ = '{"uri":"skill://acme/pdf/SKILL.md","mimeType":"text/markdown","text":"---"}'
CLEAN = {
    "skills are listed, read and refreshed": f"""{discover(f'{SKILLS}={{"directoryRead":true}}')}
        > 2 skills/list {{META}}
        < 2 = {result(skills=[DOTTED, skill("github://o/r/ls/SKILL.md", "ls", "dynamic")], nextCursor="c")}
        > 3 skills/list {{META "cursor":"c"}}
        < 3 = {result(skills=[])}
        > 4 resources/read {{META "uri":"skill://acme/pdf/SKILL.md"}}
        < 4 = {{"resultType":"complete","ttlMs":0,"cacheScope":"public","contents":[{READ}]}}
        > 5 skills/get {{META "uri":"skill://acme/pdf/SKILL.md"}}
        < 5 = {result(skill=skill())}
        > 6 resources/directory/read {{META "uri":"skill://acme/pdf"}}
        < 6 = {{"resultType":"complete","resources":[{{"uri":"skill://acme/pdf/SKILL.md","name":"SKILL.md"}}]}}
    """,
    "skills of a session with a handshake have no hints about caching": """
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","serverInfo":{"name":"s","version":"1"},"capabilities":{"resources":{},\
"extensions":{"io.modelcontextprotocol/skills":{}}}}
        > notifications/initialized
        > 2 skills/list
        < 2 = {"skills":[]}
    """,
    "skills whose server is not asked first": f"""
        > 2 skills/get {{META with {SKILLS} "uri":"skill://a/SKILL.md"}}
        < 2 ! {{"code":-32602,"message":"no such skill"}}
    """,
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_x_01_a_session_with_skills_that_is_right_has_no_finding(text):
    assert findings(text) == []


FAULTY = [
    (skill("skill://acme/pdf/README.md"), "/uri", "is not the URI of a SKILL.md"),
    (skill(name="forms"), "/uri", "must be called"),
    (skill(files=[file("skill://acme/pdf/SKILL.md"), file("skill://acme/other.md")]), "/resources/1/uri", "is not in"),
    *(
        (skill(files=[file("skill://acme/pdf/SKILL.md"), file(f"skill://acme/pdf/{path}")]), "/resources/1/uri", "..")
        for path in ("../evil/x", "a/../../x", "./a", "a/..", "%2e%2E/evil", ".%2e/evil", "a/..%2F..%2Fevil")
    ),
    (skill("skill://acme/../pdf/SKILL.md", files="dynamic"), "/uri", ".."),
    (skill(files=[file("skill://acme/pdf/SKILL.md")] * 2), "/resources/1/uri", "is listed twice"),
    (skill(files=[file("skill://acme/pdf/a.md")]), "/resources", "do not list"),
    (skill(files=[file("skill://acme/pdf/SKILL.md", digest=DIGEST.upper())]), "/resources/0/digest", "expected sha256"),
    (
        skill(files=[file("skill://acme/pdf/SKILL.md", size=1 << 30)]),
        "/resources",
        "more than 512 files or 16,777,216 bytes in all; the skill has 1 file of 1,073,741,824 bytes",
    ),
]


@pytest.mark.parametrize(("entry", "pointer", "sentence"), FAULTY)
def test_x_01_the_first_fault_of_an_entry_is_told(entry, pointer, sentence):
    text = f"{discover(SKILLS)}\n> 2 skills/list {{META}}\n< 2 = {result(skills=[skill(), entry])}"
    (found,) = [it for it in findings(text) if it.rule == "skills/entry"]
    assert found.pointer == f"/result/skills/1{pointer}"
    assert sentence in found.message


@pytest.mark.parametrize("entry", [None, 7, {}, {"uri": 1}, skill() | {"resources": [1, {"uri": "a"}]}])
def test_x_01_what_has_no_shape_is_left_to_the_rules_about_shapes(entry):
    text = f"{discover(SKILLS)}\n> 2 skills/list {{META}}\n< 2 = {result(skills=[entry])}"
    assert "#4 schema/invalid" in told(text)


def test_x_01_skills_without_a_declaration_are_a_warning():
    text = f"{discover()}\n> 2 skills/list {{META}}\n< 2 ! {{}}"
    (found,) = [it for it in findings(text) if it.rule.startswith(("extension/", "schema/unknown"))]
    assert (found.rule, found.severity, found.blame) == ("extension/not-negotiated", "warning", "client")
