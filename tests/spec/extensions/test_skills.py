"""The shapes of skills (X-01), tested with messages written for this test."""

import pytest

from mcpspy.spec.extensions import extension_methods
from mcpspy.spec.extensions.skills import SKILLS
from mcpspy.spec.revisions import R2025_06_18, R2026_07_28, Revision
from mcpspy.spec.schema import explain, verdict

FILE = {"uri": "skill://pdf/SKILL.md", "digest": "sha256:00", "size": 7}
SKILL = {"uri": "skill://pdf/SKILL.md", "frontmatter": {"name": "pdf", "description": "d", "license": "MIT"},
         "resources": [FILE]}  # fmt: skip
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("skills.ListSkillsResult", CACHE | {"skills": [SKILL, SKILL | {"resources": "dynamic"}], "nextCursor": "c"}),
        ("skills.ListSkillsResult", CACHE | {"skills": []}),
        ("skills.GetSkillResult", CACHE | {"skill": SKILL}),
        ("skills.ReadResourceDirectoryResult",
         {"resultType": "complete", "resources": [{"uri": "skill://pdf", "name": "a", "mimeType": "inode/directory"}]}),
    ],
)  # fmt: skip
def test_x_01_a_message_of_skills_has_its_shape(definition, message):
    assert explain(R2026_07_28, definition, message) is None
    assert verdict(R2026_07_28, definition, message)


@pytest.mark.parametrize(
    ("definition", "message", "expected"),
    [
        ("skills.ListSkillsResult", {"resultType": "complete", "skills": []}, 'the member "ttlMs"'),
        ("skills.GetSkillResult", CACHE | {"skill": {**SKILL, "frontmatter": {"name": "pdf"}}},
         'the member "description"'),
        ("skills.GetSkillResult", CACHE | {"skill": SKILL | {"resources": [{"uri": "a:b", "digest": "x"}]}},
         'the member "size"'),
        ("skills.GetSkillResult", CACHE | {"skill": {"uri": "a:b", "frontmatter": SKILL["frontmatter"]}},
         'the member "resources"'),
    ],
)  # fmt: skip
def test_x_01_x_04_what_is_wrong_in_a_message_of_skills_is_said(definition, message, expected):
    assert not verdict(R2026_07_28, definition, message)
    assert explain(R2026_07_28, definition, message).expected == expected


def test_x_04_a_revision_without_caching_needs_no_hints():
    assert verdict(R2025_06_18, "skills.ListSkillsResult", {"skills": [SKILL]})


def test_x_01_every_revision_may_have_skills():
    for revision in Revision:
        methods = {name for name, (extension, _) in extension_methods(revision).items() if extension is SKILLS}
        assert methods == {"skills/list", "skills/get", "resources/directory/read"}


def test_every_name_begins_with_the_prefix():
    assert all(name.startswith(SKILLS.prefix) for name in SKILLS.definitions)
