"""Reconstruction of GPIO edges that the kernel reports incompletely. Pure.

For a line with detection of both edges, the kernel reads the level after the interrupt to determine the direction
(edge_irq_thread in drivers/gpio/gpiolib-cdev.c). A pulse that ends before that is reported as two falling edges, or as
one if it ends while the interrupt is masked.
"""

from __future__ import annotations


class Alternation:
    """Converts reports of the kernel to alternating edges that end at the level that the kernel read last.

    `level` is the line's level before the first report.
    """

    def __init__(self, level: bool) -> None:
        self._level = level
        self._ahead = False  # both edges of the last pulse were returned for the first of its reports

    def edges(self, high: bool, lost: int) -> tuple[bool, ...]:
        """Return the edges of a report that follows `lost` missing ones: none, one, or both of a short pulse."""
        if high != self._level or lost:
            self._level, self._ahead = high, False
            return (high,)
        if self._ahead:
            self._ahead = False
            return ()
        self._ahead = True
        return (not high, high)
