"""Edges made whole again. Pure.

For a line whose edges are detected both ways, the kernel reads the level after the interrupt to know which edge it was
(edge_irq_thread in drivers/gpio/gpiolib-cdev.c). A pulse that is shorter than that takes is reported as two falling
edges, or as one if its end came while the interrupt was masked.
"""

from __future__ import annotations


class Alternation:
    """Turns reports of the kernel into edges that alternate and end at the level that the kernel saw last.

    `level` is the line's level before the first report.
    """

    def __init__(self, level: bool) -> None:
        self._level = level
        self._ahead = False  # the last pulse was told whole, when the first of its reports came

    def edges(self, high: bool, lost: int) -> tuple[bool, ...]:
        """The edges of one report, before which `lost` others are missing: none, one, or both of a short pulse."""
        if high != self._level or lost:
            self._level, self._ahead = high, False
            return (high,)
        if self._ahead:
            self._ahead = False
            return ()
        self._ahead = True
        return (not high, high)
