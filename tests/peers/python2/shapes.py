"""Print the members of every class of PyPI `mcp-types`, by revision: `{"2025-11-25": {"Tool": {"name": true, …}}}`.

True marks a required member. The SDK's authors generate these classes from the official schemas. They are a second
reference for the two revisions that they cover, if the schemas themselves are not available.
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
