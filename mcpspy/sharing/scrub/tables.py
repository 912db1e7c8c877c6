"""Secrets in tables of a text: a column of CSV or Markdown, a table of TOML, a mapping of YAML.

The name of the secret stands in another line than its values: at the head of the column, or of the table. A value is a
secret if it looks like one. Below the name of a password, any single word is one.
"""

import re
from collections.abc import Callable

from mcpspy.secrets.patterns import FOREIGN_NAMES, FOREIGN_WORDS, is_secret_name
from mcpspy.sharing.scrub.values import is_placeholder, looks_random, looks_secret_below

_PASSWORD = re.compile(rf"(?i)(?:passw(?:or)?d|pwd|passphrase|{'|'.join((*FOREIGN_NAMES, *FOREIGN_WORDS))})s?\d*$")
_RULE = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")
_TABLE = re.compile(r"\s{0,64}\[{1,2}(?P<name>[\w.\" -]{1,128})\]{1,2}\s*(?:#.*)?")
_MAPPING = re.compile(r"(?P<indent> {0,64}(?:- )?)['\"]?(?P<name>[\w.-]{1,64})['\"]?:\s*(?:#.*)?")
_ENTRY = re.compile(
    r"(?P<before>(?P<indent>\s{0,64})(?:- )?(?:['\"]?(?P<name>[\w.-]{1,64})['\"]?\s{0,8}[:=]\s{0,8})?['\"]?)"
    r"(?P<value>[^\s'\",#][^\s'\",]*)(?P<after>['\"]?,?\s*(?:#.*)?)"
)
_WORD = re.compile(r"(?!\s*\d+\s*$)\s{0,8}[\"']?[\w.-]{1,40}[\"']?\s{0,8}")
_WORDS = re.compile(r"\s*|(?!\s*\d+\s*$)\s*[\"'`*]{0,2}[\w.-]{1,40}(?: [\w.()-]{1,40}){0,2}[\"'`*]{0,2}\s*")
"""The head of a column: of CSV, and of Markdown, where it may have several words or be empty."""
_DESCRIPTIVE = frozenset(
    "type description title format in scheme ref example minlength maxlength length policy hash hashing algorithm"
    " encryption encoding name label hint rule rules rounds rotation strength".split()
)
"""Entries that describe the secret, without punctuation: the value must look random."""
_WIDEST = 64  # columns
_LONGEST = 4096  # characters of a line


def redacted_tables(text: str, mark: Callable[[str], str]) -> str:
    """Redact the values of tables in a text of several lines."""
    if "\n" not in text:
        return text
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        at = max(at + 1, _columns(lines, at, mark), _entries(lines, at, mark))
    return "\n".join(lines)


def _columns(lines: list[str], at: int, mark: Callable[[str], str]) -> int:
    """Redact the rows below a line that is the head of a table with a secret column. Return where the table ends."""
    head = lines[at]
    separator = next((sign for sign in ("|", "\t", ";", ",") if sign in head), "") if len(head) < _LONGEST else ""
    names = head.split(separator) if separator else []
    if not names or len(names) > _WIDEST:
        return at
    secret = [(n, name) for n, cell in enumerate(names) if is_secret_name(name := cell.strip().strip("\"'`* "))]
    form = _WORDS if separator == "|" else _WORD
    if not secret or not all(form.fullmatch(name) for name in names):
        return at
    row = at + 1
    if separator == "|":
        if row >= len(lines) or not _RULE.fullmatch(lines[row]):
            return at
        row += 1
    while row < len(lines) and len(cells := lines[row].split(separator)) == len(names):
        for n, name in secret:
            cells[n] = _cell(name, cells[n], mark)
        lines[row] = separator.join(cells)
        row += 1
    return row


def _cell(name: str, cell: str, mark: Callable[[str], str]) -> str:
    value = cell.strip().strip("\"'`")
    return cell.replace(value, mark(value)) if is_secret_cell(name, value) else cell


def _entries(lines: list[str], at: int, mark: Callable[[str], str]) -> int:
    """Redact the entries below a line that begins a table or mapping with a secret name. Return where it ends."""
    table, mapping = _TABLE.fullmatch(lines[at][:_LONGEST]), _MAPPING.fullmatch(lines[at][:_LONGEST])
    found = table or mapping
    if found is None or not is_secret_name(name := found["name"].rpartition(".")[2].strip('" ')):
        return at
    row = at + 1
    while row < len(lines):
        line = lines[row]
        entry = _ENTRY.fullmatch(line) if len(line) < _LONGEST else None
        if table and line.lstrip().startswith("["):
            break
        if mapping and line.strip() and len(line) - len(line.lstrip()) <= len(mapping["indent"]):
            break
        if entry and _is_secret_entry(name, entry["name"] or "", entry["value"]):
            lines[row] = entry["before"] + mark(entry["value"]) + entry["after"]
        row += 1
    return row


def _is_secret_entry(table: str, name: str, value: str) -> bool:
    if name.lower().replace("_", "").replace("-", "") in _DESCRIPTIVE:
        return looks_random(value) and not is_placeholder(value)
    return is_secret_cell(table, value)


def is_secret_cell(name: str, value: str) -> bool:
    """Return whether a value is a secret in a column, or a table, with the name of a secret."""
    if name.lower() == "token":  # a word of a language, or a symbol, as well
        return looks_random(value) and not is_placeholder(value)
    if looks_secret_below(name, value):
        return True
    word = _PASSWORD.search(name) is not None and len(value) > 1 and not re.search(r"[\s(){}<>\[\]]", value)
    return word and not is_placeholder(value) and not value.isdecimal() and "redacted" not in value
