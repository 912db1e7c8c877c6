"""Rules about the extension `io.modelcontextprotocol/skills`: what a server declares, and the entries of skills."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, Severity, rule
from mcpspy.spec.extensions import SKILLS
from mcpspy.text import plural
from mcpspy.wire.jsonrpc import Request, Result

_PAGE = "https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable/skills.mdx"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FILE = "/SKILL.md"
_MOST_FILES, _MOST_BYTES = 512, 16 << 20  # limits for one skill


@rule(
    "skills/resources-undeclared",
    "error",
    """A server that declares skills must also declare the capability `resources`, because clients read the files of a
    skill with `resources/read`.""",
    fix="Declare the capability `resources`, and serve `resources/read`.",
    blame="server",
    spec=f"{_PAGE}#capability-negotiation",
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"extensions":{"io.modelcontextprotocol/skills":{}}}}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}}
    """,
    on=(Result,),
    methods=("initialize", "server/discover"),
)
def resources_undeclared(message: Message, session: Session) -> Iterator[Fault]:
    """Report a server that declares skills but not resources."""
    capabilities = member(message.body.value, "result", "capabilities")
    if member(capabilities, "extensions", SKILLS.id) is not None and member(capabilities, "resources") is None:
        yield Fault("the server declares skills, but not the capability resources", "/result/capabilities")


@rule(
    "skills/directory-undeclared",
    "error",
    """A client reads directories only from a server that declares `directoryRead: true` with its skills. Other servers
    need not support the method.""",
    fix="""Read directories only if the server declares `directoryRead: true`; otherwise read the files in the entry
    of the skill.""",
    meanwhile="Declare `directoryRead: true` if you serve the method.",
    blame="client",
    spec=f"{_PAGE}#capability-negotiation",
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}}
        > 2 resources/directory/read {META "uri":"skill://pdf/templates"}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{"directoryRead":true}}}}
        > 2 resources/directory/read {META "uri":"skill://pdf/templates"}
        < 2 = {"resultType":"complete","resources":[]}
    """,
    on=(Request,),
    methods=("resources/directory/read",),
)
def directory_undeclared(message: Message, session: Session) -> Iterator[Fault]:
    """Report reading a directory without `directoryRead`. Undeclared skills: `extension/not-negotiated`."""
    settings = member(session.server, "extensions", SKILLS.id)
    if settings is not None and member(settings, "directoryRead") is not True and not session.lossy:
        yield Fault("the server did not declare directoryRead: true", "/method")


@rule(
    "skills/entry",
    "error",
    """The entry of a skill must have the URI of its SKILL.md, in a directory with the skill's name, and list every file
    of that directory once with the SHA-256 of its bytes. Clients must not load a skill whose entry breaks this rule. A
    URI with a segment `.` or `..`, percent-encoded or not, can point outside the directory once it is resolved (RFC
    3986, section 5.2.4).""",
    fix="""Generate the entry from the directory: each file once, with `sha256:` and its digest in lowercase
    hexadecimal.""",
    meanwhile="Do not load the skill, and tell the user.",
    blame="server",
    spec=f"{_PAGE}#skill-entries",
    fails="""
        > 1 skills/get {META "uri":"skill://pdf/SKILL.md"}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","skill":{"uri":"skill://pdf/SKILL.md",\
"frontmatter":{"name":"pdf","description":"Forms"},"resources":[{"uri":"skill://pdf/SKILL.md","size":9,\
"digest":"md5:00000000000000000000000000000000"}]}}
    """,
    passes="""
        > 1 skills/get {META "uri":"skill://pdf/SKILL.md"}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","skill":{"uri":"skill://pdf/SKILL.md",\
"frontmatter":{"name":"pdf","description":"Forms"},"resources":[{"uri":"skill://pdf/SKILL.md","size":9,\
"digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}]}}
    """,
    on=(Result,),
    methods=("skills/list", "skills/get"),
)
def entry(message: Message, session: Session) -> Iterator[Fault]:
    """Report the first fault of each entry that is inconsistent. Other rules check the shape of entries."""
    result = member(message.body.value, "result")
    listed = member(result, "skills")
    skills = [(f"/result/skills/{n}", skill) for n, skill in enumerate(listed)] if isinstance(listed, list) else []
    for where, skill in [*skills, ("/result/skill", member(result, "skill"))]:
        for sentence, pointer, severity in _faults(skill):
            yield Fault(sentence, where + pointer, severity=severity)
            break


def _has_dot_segments(uri: str) -> bool:
    """Return whether the path of a URI has `.` or `..` (RFC 3986, section 3.3), also if percent-encoded."""
    path = re.split("[?#]", uri, maxsplit=1)[0]
    return not {".", ".."}.isdisjoint(unquote(path).split("/"))


def _faults(skill: Any) -> Iterator[tuple[str, str, Severity | None]]:
    """Yield what is wrong with an entry: sentence, pointer into the entry, and severity or None for the rule's."""
    uri, name, files = member(skill, "uri"), member(skill, "frontmatter", "name"), member(skill, "resources")
    if not isinstance(uri, str) or not isinstance(name, str):
        return
    root = uri.removesuffix(_FILE)
    if _has_dot_segments(uri):
        yield f"{excerpt(uri)} has a segment . or .., which leads elsewhere", "/uri", None
    if root == uri:
        yield f"{excerpt(uri)} is not the URI of a SKILL.md", "/uri", None
    elif root.rpartition("/")[2] != name:
        yield f"the directory of {excerpt(uri)} must be called {excerpt(name)}, like the skill", "/uri", None
    if not isinstance(files, list):
        return
    found: set[str] = set()
    for place, file in enumerate(files):
        own, digest = member(file, "uri"), member(file, "digest")
        if not isinstance(own, str) or not isinstance(digest, str):
            continue
        if _has_dot_segments(own):
            yield f"{excerpt(own)} has a segment . or .., which leads elsewhere", f"/resources/{place}/uri", None
        if not own.startswith(f"{root}/"):
            yield f"{excerpt(own)} is not in the directory of the skill", f"/resources/{place}/uri", None
        if own in found:
            yield f"{excerpt(own)} is listed twice", f"/resources/{place}/uri", None
        if not _DIGEST.fullmatch(digest):
            sentence = f"expected sha256: and 64 lowercase hexadecimal digits, got {excerpt(digest)}"
            yield sentence, f"/resources/{place}/digest", None
        found.add(own)
    if uri not in found:
        yield f"the resources do not list {excerpt(uri)} itself", "/resources", None
    size = sum(size for size in (member(file, "size") for file in files) if type(size) is int)
    if len(files) > _MOST_FILES or size > _MOST_BYTES:
        limit = f"{plural(_MOST_FILES, 'file')} or {plural(_MOST_BYTES, 'byte')} in all"
        has = f"{plural(len(files), 'file')} of {plural(size, 'byte')}"
        sentence = f"clients need not accept more than {limit}; the skill has {has}"
        yield sentence, "/resources", "warning"
