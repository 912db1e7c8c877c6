"""The filter language over rows: `method:tools/call status:error latency:>200ms -name:search* "needle"`.

`docs/filters.md` describes it. It knows rows, but no captures, screens or clocks.
"""

from mcpspy.filters.blocks import BlockFilter, Gathered, LineBlock
from mcpspy.filters.syntax import parse
from mcpspy.filters.terms import KEYS
from mcpspy.filters.tree import Filter

__all__ = ["KEYS", "BlockFilter", "Filter", "Gathered", "LineBlock", "parse"]
