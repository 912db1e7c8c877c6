"""Prints the members of every class of PyPI `mcp-types`, by revision: `{"2025-11-25": {"Tool": {"name": true, …}}}`.

True is a required member. These classes are made from the official schemas by the SDK's authors: a second reference
for the two revisions that they know, where the schemas themselves are not at hand.
"""

import importlib
import json

from pydantic import BaseModel

MODULES = {"2025-11-25": "mcp_types._v2025_11_25", "2026-07-28": "mcp_types._v2026_07_28"}


def shapes(module):
    classes = {name: it for name, it in vars(module).items() if isinstance(it, type) and issubclass(it, BaseModel)}
    return {
        name: {(field.alias or member): field.is_required() for member, field in it.model_fields.items()}
        for name, it in classes.items()
        if it.__module__ == module.__name__
    }


print(json.dumps({revision: shapes(importlib.import_module(name)) for revision, name in MODULES.items()}))
