"""A label is not a secret, and is safe in the place of the value."""

import re
from urllib.parse import quote

from mcpspy.secrets.patterns import KINDS
from mcpspy.secrets.tokens import in_frame
from mcpspy.sharing.scrub import categories
from mcpspy.sharing.scrub.categories import LABEL, RULES, Category, of_token
from tests.each import each
from tests.secrets import examples

EACH = [one for one in vars(categories).values() if isinstance(one, Category)] + [of_token(kind) for kind in KINDS]


@each("category", EACH, ids=lambda it: it.title)
def test_a_label_is_safe_in_json_urls_and_heads_and_is_known_again(category):
    label = f"{category.stem}12{category.ending}"
    assert re.fullmatch(r"[a-z0-9@.-]+", label)
    assert quote(label, safe="@") == label
    assert category.title == "frame that was not decoded" or LABEL.fullmatch(label)
    assert category.rule in ("", *RULES)


@each("kind", KINDS, ids=lambda it: it.name)
def test_a_label_in_the_place_of_a_token_is_no_token(kind):
    label = f"{of_token(kind).stem}12"
    text = examples.token(kind, kind.literals[0])
    text = text.replace(text.partition(kind.literals[0])[2], label) if kind.kept else label
    assert in_frame(text.encode()) is None
