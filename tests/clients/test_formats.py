import pytest

from mcpspy.clients.formats import JSON, TOML, YAML, member, read
from mcpspy.clients.tree import plain
from mcpspy.errors import ConfigError

FORMS = (JSON, TOML, YAML)
SAME = {JSON: '{"a": ["x"],} // c', TOML: 'a = ["x"]', YAML: "a:\n- x"}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_is_read_into_the_same_tree(form):
    assert plain(read(SAME[form], form)) == {"a": ["x"]}


@pytest.mark.parametrize("form", FORMS)
def test_a_member_is_written_as_the_format_wants_it(form):
    text = member("a", '["x"]', form)
    assert plain(read(f"{{{text}}}" if form == JSON else text, form)) == {"a": ["x"]}


@pytest.mark.parametrize("form", FORMS)
def test_an_error_says_line_column_and_reason(form):
    broken = {TOML: "\na = = 1", YAML: "\na: ]"}.get(form, '\n{"a" = 1}')
    with pytest.raises(ConfigError, match=r"^line 2, column \d: .+"):
        read(broken, form)
