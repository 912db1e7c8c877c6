"""The words that a scrub keeps are closed sets of the specification."""

import pytest

from mcpspy.sharing.scrub.protocol_words import is_member, is_word_of, members
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import Revision


@pytest.mark.parametrize(
    ("member", "word"),
    [("role", "assistant"), ("type", "resource_link"), ("type", "object"), ("status", "working"), ("level", "debug"),
     ("jsonrpc", "2.0"), ("audience", "user"), ("resultType", "complete"), ("from", "client"), ("method", "POST")],
)  # fmt: skip
def test_a_word_of_the_specification_is_one(member, word):
    assert is_word_of(member, word)
    assert not is_word_of("text", word)
    assert not is_word_of(member, "zebra")


def test_every_method_and_revision_is_a_word():
    for revision in Revision:
        assert is_word_of("protocolVersion", revision.value)
        assert all(is_word_of("method", method) for method in methods(revision))


@pytest.mark.parametrize(
    "member", ["text", "uri", "name", "description", "id", "progressToken", "pattern", "required", 5]
)
def test_a_member_with_any_value_has_no_words(member):
    """A-13."""
    assert not is_word_of(member, "zebra")


def test_members_are_those_of_the_specification_and_of_schemas():
    assert is_member("arguments")
    assert is_member("patternProperties")
    assert not is_member("zebra")
    assert len(members()) > 150
