"""Texts of a listing that contain instructions to a model: the known patterns of tool poisoning.

A client gives a model the descriptions of all tools, and the user sees few of them. A server can put orders there: to
ignore other instructions, to hide something from the user, to read a file with keys and send it somewhere. Honest
descriptions give orders too ("call list_tables first", "IMPORTANT: dates are in UTC"), so a pattern must match only
what no honest tool needs. Text that people cannot see is read as well: Unicode tags, zero-width characters, base64.

The phrases are English, and known from attacks. An order in other words is not found.

Texts are hostile: every repetition in a pattern is bounded, and only both ends of a long text are examined.
"""

import base64
import binascii
import re
from typing import Any, NamedTuple

from mcpspy.json_values import Path, walk

_ENDS = 1 << 16  # characters at each end of a text that are examined
_SHOWN = 80  # characters that are quoted
_WINDOW = 200  # characters before the name of a secret file that may tell a model to read it
_PLACES = 50  # names of secret files, and runs of base64, that are examined in one text
_UNREAD = ("_meta", "icons")
"""Members of a definition that clients do not give to a model."""

_WORDS = r"(?:[^\s.;:!?]{1,24}\s{1,3})"
_PRIVATE = (
    r"(?:conversation|chat history|credentials?|passwords?|api[ _-]?keys?|access tokens?|secrets?|private keys?|"
    r"ssh keys?|environment variables?|system prompt)"
)


class Instruction(NamedTuple):
    """An instruction to a model in a text, or what hides one."""

    what: str
    """What it does, as a clause of a sentence: `it tells a model to …`."""
    quoted: str
    """The words. If they are hidden, the decoded words."""


class _Pattern(NamedTuple):
    what: str
    triggers: tuple[str, ...]
    """The pattern can match only if the text has one of these."""
    found: re.Pattern[str]


def _pattern(what: str, triggers: str, *parts: str) -> _Pattern:
    return _Pattern(what, tuple(triggers.split(", ")), re.compile("".join(parts), re.IGNORECASE))


_KNOWS = r"(?:know|see|notice|hear|learn|find out|be (?:told|informed|notified|aware|shown))\b"

_PATTERNS = (
    _pattern(
        "it tells a model to ignore other instructions",
        "ignore, disregard, forget, override, bypass, follow, attention to",
        r"\b(?:ignore|disregard|forget|override|bypass|(?:do not|don.?t|never|stop) follow(?:ing)?|no attention to)",
        rf"\s{{1,3}}{_WORDS}{{0,4}}?",
        r"(?:previous|prior|above|earlier|preceding|original|system|safety|other)\s{1,3}",
        rf"{_WORDS}{{0,2}}?(?:instructions?|prompts?|guidelines?|directives?|restrictions|rules\b)|",
        r"\b(?:ignore|disregard)\s{1,3}(?:(?:everything|all(?: of)?(?: the)?|the) above(?=[ ]?(?:[.,;!]|and\b|$))|",
        r"(?:all |any |the ){0,2}(?:previous|prior|earlier) messages)|",
        r"\bno attention to (?:the |any |all ){0,2}(?:instructions?|guidelines?|directives?|rules) (?:above|before)",
    ),
    _pattern(
        "it tells a model that other instructions do not hold",
        "instructions, directives, guidelines",
        r"\b(?:previous|prior|earlier|above|original|system) (?:instructions|directives|guidelines) ",
        r"(?:no longer (?:apply|hold)|(?:do not|don.?t) (?:apply|hold)|are (?:void|cancell?ed|superseded|obsolete))",
    ),
    _pattern(
        "it tells a model to keep something from the user",
        "user, human, mention, reveal, disclose",
        r"\b(?:do not|don.?t|never|must not) (?:mention|reveal|disclose) ",
        r"(?:that you\b|(?:this|these|the above) (?:instructions?|steps?|notes?)\b)|",
        rf"\b(?:do not|don.?t|never|must not|should not|not to|without)\s{{1,3}}{_WORDS}{{0,2}}?(?:",
        r"(?:tell|telling|inform|informing|notify|notifying|alert|alerting)",
        rf"\s{{1,3}}{_WORDS}{{0,8}}?(?<!\ba )(?:user|human)\b(?!.s)|",  # "a user": advice about what is true
        r"(?:mention|mentioning|reveal|revealing|disclose|disclosing)",
        rf"\s{{1,3}}{_WORDS}{{0,8}}?to (?:the |your )?(?:user|human)\b(?!.s)|",
        rf"(?:let|letting)\s{{1,3}}(?:the |your )?(?:user|human) {_KNOWS})|",
        rf"\b(?:user|human) (?:must not|mustn.?t|should not|shouldn.?t|need not|may not) (?:ever )?{_KNOWS}",
    ),
    _pattern(
        "it tells a model to act behind the back of the user",
        "user",
        r"\bwithout\s{1,3}(?:the\s{1,3})?user(?:.?s)?\s{1,3}",
        r"(?:knowledge|knowing|noticing|consent|awareness|being aware)|",
        r"\b(?:hide|conceal|keep)\s{1,3}(?:this|it|that|these)\s{1,3}(?:(?:steps?|calls?|actions?|facts?|secret|notes?)",
        r"\s{1,3}){0,2}from\s{1,3}(?:the\s{1,3})?user\b",
    ),
    _pattern(
        "it is marked as if it came from the system or the client",
        "<important, <system, <secret, <hidden, <admin, <critical",
        r"<(?:important|system(?:[-_]?(?:reminder|prompt|message))?|secret|hidden|admin|critical)>",
    ),
    _pattern(
        "it holds control tokens of a model",
        "<|, [inst], [/system], <<sys>>, \nhuman:, \nassistant:",
        r"<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|end_header_id|eot_id)\|>|",
        r"\[/?INST\]|\[/SYSTEM\]|<</?SYS>>|\n\n(?:Human|Assistant):\s",
    ),
    _pattern(
        "it gives a model another role",
        "you are now, you are no longer, new instructions, new system instructions, developer mode",
        rf"\byou are (?:now (?:a|an|the|in {_WORDS}{{0,2}}?mode)\b|no longer\b)|",
        r"\bnew (?:system )?instructions\s{0,3}:|",
        rf"\b(?:enter|enable|activate)\s{{1,3}}{_WORDS}?developer mode\b(?! (?:on|for|in) )",
    ),
    _pattern(
        "it asks for what only the model and its user should see",
        "system prompt, conversation, chat history, previous messages",
        rf"\b(?:reveal|print|output|repeat|leak|include|pass|append|send|forward|copy)\s{{1,3}}{_WORDS}{{0,3}}?",
        r"(?:system prompt|(?:entire|full|whole|complete) (?:conversation|chat)\b|(?:conversation|chat) history)|",
        rf"\b(?:reveal|leak|pass|append|send|forward)\s{{1,3}}{_WORDS}{{0,3}}?previous messages",
    ),
    _pattern(
        "it tells a model to send secrets elsewhere",
        "http, @",
        rf"\b(?:send|forward|post|upload|transmit|exfiltrate|copy|bcc|e-?mail)\s{{1,3}}{_WORDS}{{0,6}}?{_PRIVATE}",
        rf"\s{{1,3}}{_WORDS}{{0,6}}?(?:to|at)\s{{1,3}}(?:https?://|[\w.+-]{{1,64}}@)",
    ),
    _pattern("it holds escape sequences, which hide text on a terminal", "\x1b", r"\x1b[\[\]]"),
)
_SECRET_FILE = re.compile(
    r"~/\.(?:ssh|aws|gnupg|kube|netrc|npmrc|pypirc|config/gh)\b|\.ssh/|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/(?:passwd|shadow)\b|"
    r"\.aws/credentials|\.cursor/mcp\.json|\bclaude_desktop_config\.json|\.bash_history\b|\.zsh_history\b"
)
_TOLD_TO_READ = re.compile(
    r"\b(?:you (?:must|should|need to|have to|will)|always|first|before|please|otherwise|make sure)\b"
    r"[^\n]{0,150}?\b(?:(?:read|open|access|cat|fetch|retrieve|load|print)\b|hand over\b|"
    r"(?:include|pass|send|append)\b(?! (?:\w{1,20} ){0,3}path\b))",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{60,4096}={0,2}")
_PROSE = re.compile(r"[A-Za-z][a-z',.:;-]{0,20}(?: [A-Za-z][a-z',.:;-]{0,20}){5}")
_TO_SOMEBODY = re.compile(
    r"\b(?:you|your|user|must|ignore|instructions?|send|call|secrets?|passwords?|keys?|tools?)\b", re.IGNORECASE
)
_NO_WIDTH = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"))
_TAGS = re.compile("[\U000e0020-\U000e007e]{4,}")
_FLAG = "\U0001f3f4"  # a black flag: the tags after it name a region of a country
_SPACES = re.compile(r"[^\S\n]+")


def instruction_in(text: str) -> Instruction | None:
    """Return the first instruction to a model in a text, visible or hidden."""
    if len(text) > 2 * _ENDS:
        text = f"{text[:_ENDS]}\n{text[-_ENDS:]}"
    if not text.isascii():
        hidden = _in_tags(text)
        if hidden:
            return hidden
        text = text.translate(_NO_WIDTH)
    return _in_the_open(text) or _in_base64(text)


def instructions_in(definition: Any) -> "list[tuple[Path, Instruction]]":
    """Return the instructions in a definition of a tool, prompt or resource, with their paths, at any depth."""
    found = []
    for path, value in walk(definition):
        if path and path[0] in _UNREAD:
            continue
        key = path[-1] if path else None
        for text in (key, value):
            if isinstance(text, str) and len(text) > _LEAST:
                instruction = instruction_in(text)
                if instruction:
                    found.append((tuple(path), instruction))
                    break
    return found


_LEAST = 6  # characters: every match is longer, except control tokens, which never stand alone


def _in_the_open(text: str) -> Instruction | None:
    text = _SPACES.sub(" ", text)
    lowered = text.lower()
    for what, triggers, found in _PATTERNS:
        if any(trigger in lowered for trigger in triggers):
            match = found.search(text)
            if match:
                return Instruction(what, match[0][:_SHOWN])
    for _, match in zip(range(_PLACES), _SECRET_FILE.finditer(text), strict=False):
        before = text[max(match.start() - _WINDOW, 0) : match.start()]
        sentence = match.start() - len(_SENTENCE_END.split(before)[-1])
        if _TOLD_TO_READ.search(text, sentence, match.end()):
            return Instruction("it tells a model to read a file that holds secrets", match[0])
    return None


def _in_tags(text: str) -> Instruction | None:
    """Return what is written in invisible Unicode tags. Tags after a flag emoji name a region, and do not count."""
    for match in _TAGS.finditer(text):
        if text[match.start() - 1 : match.start()] != _FLAG:
            told = "".join(chr(ord(letter) - 0xE0000) for letter in match[0][:_SHOWN])
            return Instruction("it hides text in Unicode tags", told)
    return None


def _in_base64(text: str) -> Instruction | None:
    """Return what base64 hides, if it decodes to prose that addresses somebody. Images and example data do not."""
    for _, match in zip(range(_PLACES), _BASE64.finditer(text), strict=False):
        run = match[0].rstrip("=")
        try:
            told = base64.b64decode(run[: len(run) // 4 * 4]).decode("ascii")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if told.isprintable() and _PROSE.search(told) and _TO_SOMEBODY.search(told):
            return Instruction("it hides text in base64", told[:_SHOWN])
    return None
