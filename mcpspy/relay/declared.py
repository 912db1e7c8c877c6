"""The gate of a relay, made of compiled gates.

Imported on the `wrap` path where gates are given: nothing heavy here.
"""

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from mcpspy.gate.compiled import Answerers


def declared(gates: "Sequence[dict[str, Any]]", answerers: "Answerers", say: "Callable[[str], None]") -> Gate:
    """The gate that consists of compiled ones; `say` gets a sentence for each that fails."""
    return Gate([DeclaredGate(gate, answerers) for gate in gates], say)
