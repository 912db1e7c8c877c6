"""Fixtures, each a realistic configuration of a client, and generated configurations in every format.

A fixture is called CLIENT.SCOPE.PLATFORM.FORMAT. A generated configuration is a value and its text, with unusual
whitespace, quotes, line ends and numbered comments.
"""

import json
import os
from pathlib import Path

from hypothesis import strategies as st

from mcpspy.clients.places import Found, Machine
from mcpspy.clients.table import BY_ID

FIXTURES = sorted(path.name for path in (Path(__file__).parent / "fixtures").iterdir())
LAUNCHER = ["/opt/my tools/mcpspy"]


def machine(tmp_path, **changes):
    """Return a Linux machine whose home and working directory are in `tmp_path`."""
    parts = {"home": str(tmp_path / "home"), "platform": "linux", "environ": {}, "cwd": str(tmp_path / "home" / "work")}
    return Machine(**(parts | changes))


def fixture(name):
    """Return the bytes of a fixture."""
    return (Path(__file__).parent / "fixtures" / name).read_bytes()


def place(name):
    """Return the place that a fixture belongs to."""
    client, scope, _, form = name.split(".")
    fits = [
        one for one in BY_ID[client].places
        if one.scope == scope and one.form == form
    ]  # fmt: skip
    return Found(BY_ID[client], fits[0], f"/configurations/{name}")


def put(name, tmp_path):
    """Write a fixture to the path where a Linux client reads it. Return the path and the machine."""
    here = machine(tmp_path, **({"cwd": "/home/me/app"} if name == "claude-code.user.linux.json" else {}))
    from mcpspy.clients.places import candidates

    path = Path(candidates(place(name).place, here)[0].replace("*", "server"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(fixture(name))
    return path, here


WORDS = st.one_of(
    st.sampled_from(
        ["npx", "-y", "--", "--name", "wrap", "a b", "", "${env:X}", "/c", "x=1", "'", '"', "\\", "#", "C:\\x"]
    ),
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp"), exclude_characters="\ufeff"), max_size=8),
)
COMMANDS = st.one_of(st.sampled_from(["npx", "cmd", "uv", "C:\\Program Files\\x.exe"]), WORDS)
ENTRIES = st.fixed_dictionaries(
    {"command": COMMANDS},
    optional={"args": st.lists(WORDS, max_size=4), "env": st.dictionaries(WORDS, WORDS, max_size=2)},
)
SERVERS = st.dictionaries(WORDS.filter(bool), ENTRIES, min_size=1, max_size=3)


class Writer:
    """Writes values in unusual formatting. Every comment has its own number."""

    def __init__(self, draw):
        self.draw = draw
        self.comments = 0
        self.end = draw(st.sampled_from(["\n", "\r\n"]))

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def comment(self, before, after):
        self.comments += 1
        return f"{before}c{self.comments}c{after}"

    def shuffled(self, members):
        return self.draw(st.permutations(list(members.items())))


class Jsonc(Writer):
    def text(self, value):
        return self.pick("", "\ufeff") + self.blank() + self.value(value) + self.blank()

    def blank(self):
        kind = self.pick("", " ", "\t", "end", "line", "block")
        if kind == "end":
            return self.end + "  "
        if kind == "line":
            return self.comment(" // ", self.end)
        return self.comment("/* ", " */") if kind == "block" else kind

    def value(self, value):
        if isinstance(value, dict):
            items = [
                f"{self.value(key)}{self.blank()}:{self.blank()}{self.value(one)}" for key, one in self.shuffled(value)
            ]
            return self.between("{", items, "}")
        if isinstance(value, list):
            return self.between("[", [self.value(one) for one in value], "]")
        return json.dumps(value, ensure_ascii=self.pick(True, False))

    def between(self, opening, items, closing):
        inner = ",".join(f"{self.blank()}{one}{self.blank()}" for one in items)
        return opening + inner + (self.pick("", ",") if items else "") + self.blank() + closing


class Toml(Writer):
    def text(self, servers):
        lines = [self.comment("# ", ""), 'model = "x" # kept']
        for name, entry in servers.items():
            key = self.string(name, quoted=True)
            lines += ["", f"{self.pick('', '  ')}[mcp_servers.{key}]{self.trail()}"]
            margin = self.pick("", "  ", "\t")
            tables = []
            for member, value in self.shuffled(entry):
                if member == "env" and self.pick(True, False):
                    tables += [f"{margin}[ mcp_servers . {key} . env ]{self.trail()}"]
                    tables += [f"{self.string(k, quoted=True)}={self.string(v)}" for k, v in value.items()]
                else:
                    lines.append(f"{margin}{member}{self.pick(' = ', '=')}{self.value(value)}{self.trail()}")
            lines += tables
        lines += [f"[other]{self.trail()}", "command = 'no'", "args = ['no']"]
        return self.end.join(lines) + self.pick("", self.end)

    def trail(self):
        return self.comment(" # ", "") if self.pick(True, False) else self.pick("", " ")

    def string(self, text, *, quoted=False):
        plain = not set(text) & set("'")
        if plain and self.pick(True, False):
            return f"'{text}'"
        escaped = json.dumps(text, ensure_ascii=False)
        return escaped if quoted or self.pick(True, False) else f'""{escaped}""'

    def value(self, value):
        if isinstance(value, dict):
            return "{" + ", ".join(f"{self.string(k, quoted=True)} = {self.string(v)}" for k, v in value.items()) + "}"
        if isinstance(value, list):
            gap = self.pick("", " ", self.end + "  ", self.comment("# ", self.end))
            inner = ",".join(f"{gap}{self.string(one)}" for one in value)
            return f"[{inner}{gap if value else ''}]"
        return self.string(value)


class Yaml(Writer):
    def text(self, servers):
        lines = [self.comment("# ", ""), f"name: x{self.trail()}", "mcpServers:" + self.trail()]
        as_list = self.pick(True, False)
        for name, entry in servers.items():
            members = [("name", name), *entry.items()] if as_list else list(entry.items())
            written = []
            for member, value in self.draw(st.permutations(members)):
                written += self.member(member, value)
            if as_list:
                lines += [f"  - {written[0]}", *(f"    {line}" if line.strip() else line for line in written[1:])]
            else:
                lines += [f"  {self.string(name)}:{self.trail()}"]
                lines += [f"    {line}" if line.strip() else line for line in written]
        lines += ["text: |", "  command: no", "  # no comment", f"last: [a, b]{self.trail()}"]
        return self.pick("", "\ufeff") + self.end.join(lines) + self.end

    def trail(self):
        return self.comment(" # ", "") if self.pick(True, False) else ""

    def string(self, text):
        if self.pick(True, False):
            return "'" + text.replace("'", "''") + "'"
        if text.isascii() and text.isalpha() and len(text) > 2 and text.lower() not in ("null", "true", "false"):
            return text
        return (
            json.dumps(text, ensure_ascii=True)
            if max(text, default="") < "\U00010000"
            else json.dumps(text, ensure_ascii=False)
        )

    def member(self, key, value):
        if isinstance(value, list) and value and self.pick(True, False):
            margin = self.pick("", "  ")
            lines = [f"{key}:{self.trail()}"]
            for one in value:
                lines += self.pick([], [""], [margin + self.comment("# ", "")])
                lines.append(f"{margin}- {self.string(one)}{self.trail()}")
            return lines
        if isinstance(value, list):
            return [f"{key}: [{', '.join(self.string(one) for one in value)}]{self.trail()}"]
        if isinstance(value, dict):
            inner = ", ".join(f"{self.string(k)}: {self.string(v)}" for k, v in value.items())
            return [f"{key}: {{{inner}}}{self.trail()}"]
        return [f"{key}: {self.string(value)}{self.trail()}"]


@st.composite
def generated(draw, writer):
    """Draw a mapping of servers and a configuration text that holds it."""
    servers = draw(SERVERS)
    if writer is Jsonc:
        return servers, Jsonc(draw).text({"other": [1, None, {"command": "no"}], "mcpServers": servers})
    return servers, writer(draw).text(servers)


def read_bytes(path):
    with open(os.fspath(path), "rb") as file:
        return file.read()
