"""The gate of a relay, made of compiled gates.

Imported on the `wrap` path where gates are given: nothing heavy here.
"""

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    Answerers = Mapping[str, Callable[[bytes], bytes | None]]
    """By the name of a gate: what answers a request from a recording, or lets it pass."""


def declared(gates: "Sequence[dict[str, Any]]", answerers: "Answerers", say: "Callable[[str], None]") -> Gate:
    """The gate that consists of compiled ones; `say` gets a sentence for each that fails."""
    make: Callable[..., DeclaredGate] = DeclaredGate
    return Gate([make(gate, answerers) if answerers else make(gate) for gate in gates], say)
