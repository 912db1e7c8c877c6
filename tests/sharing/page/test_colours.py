import re

import pytest

from tests.sharing.page.sources import PAGE

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
