"""Rules about the content of results: images and sounds whose bytes are of another type, resources of another URI.

Clients pass an image on to the API of a model with its `mimeType`. The APIs look at the bytes and refuse the whole
request if the two differ, and again each time the conversation is sent.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import Path, excerpt, member, pointer
from mcpspy.rules.rule import Fault, rule
from mcpspy.wire.jsonrpc import Result
from mcpspy.wire.media_bytes import KNOWN, is_encoded_twice, media_form

MARK = b'"mimeType"'
"""What a message with an image or a sound has in its bytes."""
_WITH_MEDIA = ("tools/call", "prompts/get", "resources/read", "tasks/result", "sampling/createMessage")
_MEDIA = ("image", "audio")
_MOST = 64  # images and sounds of a message that are looked at
_SHOWN = 60
_VAGUE = "application/octet-stream"


class Media(NamedTuple):
    """An image or a sound in a result."""

    path: Path
    data: str
    kind: str
    """`image`, `audio`, or `blob` for a resource."""
    declared: str
    """Its `mimeType`, in lower case and without parameters."""


def media_in(message: Message) -> list[Media]:
    """Return the images and sounds in a result, the first ones; nothing for the usual result."""
    body = message.body
    result = body.value.get("result") if isinstance(body, Result) else None
    found: list[Media] = []
    if not isinstance(result, dict):
        return found
    for name in ("content", "contents"):
        blocks = result.get(name)
        for place, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if isinstance(block, dict) and block.get("type") != "text":
                _add(found, block, ("result", name, place))
        if isinstance(blocks, dict):
            _add(found, blocks, ("result", name))
    prompts = result.get("messages")
    for place, prompt in enumerate(prompts if isinstance(prompts, list) else ()):
        block = member(prompt, "content")
        if isinstance(block, dict):
            _add(found, block, ("result", "messages", place, "content"))
    return found


def _add(found: list[Media], block: dict[str, Any], path: Path) -> None:
    if len(found) >= _MOST:
        return
    kind, name = block.get("type"), "data"
    if kind == "resource":
        path, inner = (*path, "resource"), block.get("resource")
        block = inner if isinstance(inner, dict) else {}
    if kind not in _MEDIA:
        kind, name = "blob", "blob"
    data, declared = block.get(name), block.get("mimeType")
    if isinstance(data, str) and isinstance(declared, str):
        declared = declared.partition(";")[0].strip().lower()
        if kind != "blob" or declared.startswith(("image/", "audio/")):
            found.append(Media((*path, name), data, kind, declared))


@rule(
    "content/image-type",
    "warning",
    """The bytes of an image or a sound are of another type than its `mimeType`, or `data` is not plain base64 of them:
    a `data:` URL, or base64 of base64. Clients pass both on to the API of a model, which refuses the whole request, and
    each later one of the conversation.""",
    fix="""Take `mimeType` from the bytes, as a registered name such as `image/jpeg`, and write only the base64 of the
    bytes into `data`.""",
    meanwhile="Look at the first bytes of an image before you pass it on, and correct its type.",
    spec="schema#imagecontent",
    about="content",
    fails="""
        = 2025-06-18
        > 2 tools/call {"name":"photo"}
        < 2 = {"content":[{"type":"image","data":"/9j/4AAQSkZJRgABAQAAAQABAAD/","mimeType":"image/png"}]}
    """,
    passes="""
        = 2025-06-18
        > 2 tools/call {"name":"photo"}
        < 2 = {"content":[{"type":"image","data":"/9j/4AAQSkZJRgABAQAAAQABAAD/","mimeType":"image/jpeg"}]}
    """,
    on=(Result,),
    methods=_WITH_MEDIA,
    loss="A result has an image or a sound that the APIs of models refuse",
)
def image_type(message: Message, session: Session) -> Iterator[Fault]:
    """Report images and sounds whose bytes do not fit their type."""
    for media in media_in(message):
        where = pointer(*media.path)
        if media.data[:5].lower() == "data:":
            shown = media.data[:_SHOWN].partition(",")[0]
            yield Fault(f"{where.rpartition('/')[2]} is a data: URL ({shown},…); expected only what follows the comma",
                        where)  # fmt: skip
            continue
        form = media_form(media.data)
        if form is None:
            if is_encoded_twice(media.data):
                yield Fault("the bytes are base64 again: the image was encoded twice", where)
            continue
        declared = media.declared
        vague = declared == _VAGUE or "/" not in declared
        if declared not in form.types and (declared in KNOWN or vague):
            yield Fault(f"the bytes are {form.name}, mimeType says {excerpt(declared)}; expected {form.types[0]}",
                        pointer(*media.path[:-1], "mimeType"))  # fmt: skip


@rule(
    "content/other-uri",
    "info",
    """The result of `resources/read` has no content with the requested URI. A resource may consist of several with
    other URIs, such as the files of a directory. But a client that looks for the URI that it requested finds
    nothing.""",
    fix="Return the requested URI, character by character, as the `uri` of the content.",
    meanwhile="Take the only content of a result, whatever its URI.",
    blame="server",
    spec="server/resources#reading-resources",
    fails="""
        = 2025-06-18
        > 2 resources/read {"uri":"file:///a"}
        < 2 = {"contents":[{"uri":"file:///a.txt","text":"a"}]}
    """,
    passes="""
        = 2025-06-18
        > 2 resources/read {"uri":"file:///a"}
        < 2 = {"contents":[{"uri":"file:///a","text":"a"}]}
    """,
    on=(Result,),
    methods=("resources/read",),
)
def other_uri(message: Message, session: Session) -> Iterator[Fault]:
    """Report a resource that comes back under another URI; `ui/other-uri` reports interfaces."""
    wanted, contents = message.name or "", member(message.body.value, "result", "contents")
    uri = member(contents[0], "uri") if isinstance(contents, list) and len(contents) == 1 else None
    if wanted and isinstance(uri, str) and not wanted.startswith("ui://") and _normal(uri) != _normal(wanted):
        yield Fault(f"the content has the URI {excerpt(uri)}; requested was {excerpt(wanted)}",
                    "/result/contents/0/uri")  # fmt: skip


def _normal(uri: str) -> str:
    """Return a URI in a form for comparison: percent-encoding and a slash at the end do not count."""
    return unquote(uri).rstrip("/")
