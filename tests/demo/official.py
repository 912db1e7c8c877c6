"""The official schema of revision 2025-11-25, if it is in a directory beside the repository."""

import functools
import json
from pathlib import Path

import jsonschema_rs
import pytest

PATH = Path(__file__).parents[3] / "shared" / "mcp-spec" / "2025-11-25" / "schema.json"


@functools.cache
def definitions():
    if not PATH.exists():
        pytest.skip(f"the official schema is not at {PATH}")
    return json.loads(PATH.read_text())["$defs"]


@functools.cache
def validator(name):
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", "$defs": definitions()})


@functools.cache
def by_method():
    """Return the definition's name for each method of a request or notification."""
    found = {name: shape.get("properties", {}).get("method", {}).get("const") for name, shape in definitions().items()}
    return {method: name for name, method in found.items() if method}


def validate(message, asked=None):
    """Raise if a message violates its own definition. For a result, `asked` is the method of its request."""
    if "method" in message:
        validator(by_method()[message["method"]]).validate(message)
    elif "error" in message:
        validator("JSONRPCErrorResponse").validate(message)
    else:
        validator("JSONRPCResultResponse").validate(message)
        name = by_method()[asked].removesuffix("Request") + "Result"
        validator(name if name in definitions() else "EmptyResult").validate(message["result"])
