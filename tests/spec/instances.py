"""Messages to validate: from real sessions, generated from a schema, or damaged, by a seeded `random.Random`."""

import copy
from pathlib import Path

from mcpspy.capture.reader import Capture
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.spec.methods import error_definition, methods, result_definition
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

CAPTURES = sorted((Path(__file__).parents[2] / "captures").glob("*.jsonl"))
WORDS = ["text", "image", "user", "object", "string", "2.0", "complete", "", "a", "file:///a", "YQ==", "tools/call"]
SCALARS = [None, True, False, 0, 1, -1, 1.5, 1e300, 2**70, "", "x", [], {}, [1], {"a": None}]


def spoken(path):
    """Yield the messages of a capture as (revision, definition, message or result, address)."""
    conversation = Conversation()
    for record in Capture(str(path)).records():
        for event in conversation.feed(record):
            if isinstance(event, Message) and event.revision and _method(event) in methods(event.revision):
                yield event.revision, *_judged(event), f"#{event.n}"


def _method(message):
    return message.body.method if isinstance(message.body, Request | Notification) else message.exchange.method


def _judged(message):
    there = methods(message.revision)
    match message.body:
        case Request() | Notification() as body:
            return there[body.method].definition, body.value
        case Result() as body:
            request = message.exchange.request.body
            return result_definition(there[request.method], request.params, body.result), body.result
        case Error() as body:
            return error_definition(message.revision, body.error["code"]), body.value


def made_up(schema, definitions, chance, depth=0):
    """Generate an instance of a schema, nearly always a valid one."""
    if "$ref" in schema:
        return made_up(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions, chance, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    if "anyOf" in schema:
        return made_up(chance.choice(schema["anyOf"]), definitions, chance, depth)
    if "allOf" in schema:
        return {
            key: value for part in schema["allOf"] for key, value in made_up(part, definitions, chance, depth).items()
        }
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = chance.choice(kind)
    if kind == "object":
        return _object(schema, definitions, chance, depth)
    if kind == "array":
        return [
            made_up(schema["items"], definitions, chance, depth + 1)
            for _ in range(chance.randrange(3) if depth < 6 else 0)
        ]
    if kind is None:
        return copy.deepcopy(chance.choice(SCALARS))
    return {"string": chance.choice(WORDS), "integer": chance.choice([0, 1, 7, 2**60]), "number": chance.random(),
            "boolean": True, "null": None}[kind]  # fmt: skip


def _object(schema, definitions, chance, depth):
    required = schema.get("required", ())
    found = {
        name: made_up(member, definitions, chance, depth + 1)
        for name, member in schema.get("properties", {}).items()
        if name in required or (depth < 5 and chance.random() < 0.4)
    }
    others = schema.get("additionalProperties")
    if isinstance(others, dict) and others and depth < 5:
        found |= {
            chance.choice("abc"): made_up(others, definitions, chance, depth + 1) for _ in range(chance.randrange(3))
        }
    return found


def spoilt(value, chance):
    """Return a copy of a message with one to three random changes."""
    found = [copy.deepcopy(value)]
    for _ in range(chance.randint(1, 3)):
        holder, key = chance.choice(list(_places(found)))
        _change(holder, key, chance)
    return found[0]


def _places(holder):
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _change(holder, key, chance):
    change = chance.randrange(4)
    if change == 0 and isinstance(holder, dict):
        del holder[key]
    elif change == 1 and isinstance(holder, dict):
        holder[chance.choice(["extra", "_meta", "type", "name", "id"])] = holder.pop(key)
    elif change == 2:
        holder[key] = chance.choice(WORDS)
    else:
        holder[key] = copy.deepcopy(chance.choice(SCALARS))
