"""Sensor `mcp3008`: voltages measured by an MCP3004, MCP3008, MCP3204 or MCP3208 on an SPI bus.

Public, in the order in which to read them:

* `simulation`: Simulated converters MCP3004/MCP3008 (Microchip DS21295D) and MCP3204/MCP3208 (DS21298E) on SPI, bit by
  bit
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.chips.mcp3008.simulation import Mcp3008Target as Mcp3008Target
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "simulation": ["Mcp3008Target"],
        },
    )
