import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, SUBSCRIPTION_ID, Era, Revision


def test_there_are_five_revisions():
    assert [revision.value for revision in Revision] == [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ]


def test_the_newest_has_no_handshake_and_the_others_have():
    eras = {revision.value: revision.era for revision in Revision}
    assert eras.pop("2026-07-28") is Era.PER_REQUEST
    assert set(eras.values()) == {Era.HANDSHAKE}
    assert NEWEST_HANDSHAKE is Revision.R2025_11_25


@pytest.mark.parametrize("revision", Revision)
def test_a_revision_is_found_by_its_name(revision):
    assert Revision.of(revision.value) is revision


@pytest.mark.parametrize("name", ["2025-06-19", "", "2025-06-18 ", None, 20250618, True, [], {}, ["2025-06-18"], 1.5])
def test_what_names_no_revision_is_none(name):
    assert Revision.of(name) is None


@given(st.text() | st.none() | st.integers() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_a_peer_may_call_a_revision_anything(name):
    assert Revision.of(name) is None or Revision.of(name).value == name


def test_revisions_are_a_set_without_an_order():
    with pytest.raises(TypeError):
        assert Revision.R2024_11_05 < Revision.R2025_03_26


def test_the_keys_of_meta_are_those_of_the_specification():
    assert PROTOCOL_VERSION == "io.modelcontextprotocol/protocolVersion"
    assert SUBSCRIPTION_ID == "io.modelcontextprotocol/subscriptionId"
