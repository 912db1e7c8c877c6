"""What an exchange speaks: its revision, and the extensions that its two sides declared for it."""

from dataclasses import dataclass

from mcpspy.spec.extensions import EXTENSIONS
from mcpspy.spec.methods import RESULT_TYPES, methods
from mcpspy.spec.revisions import Revision


@dataclass(frozen=True, slots=True)
class Dialect:
    """A revision with extensions."""

    revision: Revision | None
    """None if nothing tells it."""
    extensions: frozenset[str] = frozenset()
    """The names of those that a side declared."""

    def has_method(self, name: str) -> bool:
        """Whether the revision has a method, or an extension may have it."""
        if self.revision and name in methods(self.revision):
            return True
        known = [EXTENSIONS.get(extension) for extension in self.extensions]
        return any(extension is None or name in extension.methods for extension in known)

    def has_result_type(self, name: str) -> bool:
        """Whether the protocol has a `resultType`, or an extension may have it."""
        known = [EXTENSIONS.get(extension) for extension in self.extensions]
        return name in RESULT_TYPES or any(extension is None or name in extension.result_types for extension in known)
