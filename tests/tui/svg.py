"""The screen of the application as a small SVG, with one line of the file for each line of the screen."""

from html import escape

from rich.cells import cell_len
from rich.segment import Segment
from textual.app import App

from tests.tui.screen import strips

_WIDTH, _HEIGHT = 8, 17  # pixels of a cell
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
    'font-family="monospace" font-size="13" shape-rendering="crispEdges">'
)


def drawn(app: App) -> str:
    """Return the screen as SVG. The same screen gives the same text on every machine."""
    lines = strips(app)
    found = [_HEAD.format(width=app.size.width * _WIDTH, height=len(lines) * _HEIGHT)]
    for y, strip in enumerate(lines):
        grounds, texts, x = [], [], 0
        for segment in Segment.simplify(strip):
            columns = cell_len(segment.text)
            colour, ground, look = _look(segment.style)
            if grounds and grounds[-1][0] == ground:
                grounds[-1][1] += columns
            else:
                grounds.append([ground, columns])
            if segment.text.strip():
                place = f'x="{x * _WIDTH}" y="{y * _HEIGHT + 13}" textLength="{columns * _WIDTH}"'
                texts.append(f'<text {place} fill="{colour}"{look}>{_text(segment.text)}</text>')
            x += columns
        found.append("".join([*_rectangles(grounds, y * _HEIGHT), *texts]))
    return "\n".join([*found, "</svg>", ""])


def _rectangles(grounds, y):
    x = 0
    for colour, columns in grounds:
        yield f'<rect x="{x}" y="{y}" width="{columns * _WIDTH}" height="{_HEIGHT}" fill="{colour}"/>'
        x += columns * _WIDTH


def _look(style):
    """Return the colour of a text, its background, and the other attributes of its style."""
    colour = style.color.get_truecolor().hex if style and style.color else "#ffffff"
    ground = style.bgcolor.get_truecolor().hex if style and style.bgcolor else "#000000"
    if style is None:
        return colour, ground, ""
    looks = {
        'font-weight="bold"': style.bold,
        'opacity="0.6"': style.dim,
        'text-decoration="underline"': style.underline,
    }
    text = "".join(f" {look}" for look, has in looks.items() if has)
    return (ground, colour, text) if style.reverse else (colour, ground, text)


def _text(text):
    """Return a text with spaces that a browser does not collapse."""
    return escape(text, quote=False).replace(" ", "\xa0")
