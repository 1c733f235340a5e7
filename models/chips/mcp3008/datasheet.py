"""Tables of the data sheets of MCP3004, MCP3008, MCP3204 and MCP3208. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MOST_HZ: Final = 1_000_000
"""At 2.7 V the limits are 1.35 MHz (DS21295D, section 1.0) and 1 MHz (DS21298E, section 1.0)."""


@dataclass(frozen=True, slots=True)
class McpChip:
    """A chip: its channels and bits."""

    title: str
    channels: int
    bits: int

    @property
    def counts(self) -> int:
        """The number of different values; the largest one is one step below the reference."""
        return 1 << self.bits

    def volts(self, count: int, reference: float) -> float:
        """Convert `count` to volts: count * reference / counts (DS21295D, equation 4-2; DS21298E, equation 4-2)."""
        return count * reference / self.counts


MODELS: Final = {
    "mcp3004": McpChip("MCP3004", 4, 10),
    "mcp3008": McpChip("MCP3008", 8, 10),
    "mcp3204": McpChip("MCP3204", 4, 12),
    "mcp3208": McpChip("MCP3208", 8, 12),
}
