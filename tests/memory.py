"""The objects that an object holds in memory, found without knowing the names of its attributes."""

import gc
import types

SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)
"""Types of objects that refer to much that is shared."""


def objects_in(root, kind):
    """Return the objects of a class that an object holds, directly or indirectly. The nearest come first."""
    seen, level, found = {id(root): root}, [root], []
    while level:
        below = [it for it in gc.get_referents(*level) if not isinstance(it, SHARED)]
        level = list({id(it): it for it in below if id(it) not in seen}.values())
        seen |= {id(it): it for it in level}
        found += [it for it in level if isinstance(it, kind)]
    return found
