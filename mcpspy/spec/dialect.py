"""The dialect of an exchange: its revision, and the extensions that both sides declared for it.

A known extension adds only what its shapes define, and adds nothing to a revision that lacks the shapes. For an unknown
extension, everything that has its name is accepted (`mcpspy.spec.extensions.extension`). Neither changes the rules of
the revision for anything else.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mcpspy.spec.extensions import EXTENSIONS, extension_methods, known_extensions
from mcpspy.spec.extensions.extension import Extension, owns_method, owns_result_type
from mcpspy.spec.methods import RESULT_TYPES, Method, methods, result_definition
from mcpspy.spec.revisions import Revision


@dataclass(frozen=True, slots=True)
class Dialect:
    """A revision with extensions."""

    revision: Revision | None
    """None if it is unknown."""
    extensions: frozenset[str] = frozenset()
    """The names of the declared extensions."""

    def method(self, name: str) -> Method | None:
        """Return a method of the revision, or of a known extension that was declared."""
        if self.revision is None:
            return None
        own = methods(self.revision).get(name)
        if own or not self.extensions:
            return own
        extension, method = extension_methods(self.revision).get(name, (None, None))
        return method if extension and extension.id in self.extensions else None

    def has_method(self, name: str) -> bool:
        """Return whether the revision or a known extension has a method, or an unknown extension may have it."""
        return self.method(name) is not None or any(owns_method(extension, name) for extension in self._unknown())

    def has_result_type(self, name: str, method: str) -> bool:
        """Return whether the protocol or an extension allows this `resultType` for the result of a method."""
        if name in RESULT_TYPES or any(method in it.result_types.get(name, ()) for it in self._known()):
            return True
        return any(owns_result_type(extension, name) for extension in self._unknown())

    def result(self, method: Method, params: Any, result: Any) -> str:
        """Return the definition for the result of a request. `params` are those of the request."""
        result_type = result.get("resultType") if isinstance(result, dict) else None
        if isinstance(result_type, str) and self.extensions:
            for extension in self._known():
                definition = extension.result_types.get(result_type, {}).get(method.name)
                if definition:
                    return definition
        return result_definition(method, params, result)

    def additions(self, method: str, kind: type) -> list[str]:
        """Return the definitions that extensions add to one of the protocol's own messages."""
        return [it.additions[method, kind] for it in self._known() if (method, kind) in it.additions]

    def _known(self) -> Iterator[Extension]:
        known = known_extensions(self.revision) if self.revision else {}
        return (known[name] for name in self.extensions if name in known)

    def _unknown(self) -> Iterator[str]:
        return (name for name in self.extensions if name not in EXTENSIONS)
