"""What an object holds in memory, found without the names of its parts."""

import gc
import types

SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.FrameType)
"""What leads to much that belongs to nobody in particular."""


def objects_in(root, kind):
    """The objects of a class that an object holds, itself or through others; near ones first, each in its order."""
    seen, level, found = {id(root): root}, [root], []
    while level:
        below = [it for it in gc.get_referents(*level) if not isinstance(it, SHARED)]
        level = list({id(it): it for it in below if id(it) not in seen}.values())
        seen |= {id(it): it for it in level}
        found += [it for it in level if isinstance(it, kind)]
    return found
