"""Attributes of the simulated sensor. Pure."""

from __future__ import annotations

from typing import Any, Final

from schema import Attributes

QUANTITIES: Final = ("temperature_c", "light_lux", "supply_v", "supply_a", "supply_w")


class FakeSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a simulated sensor."""

    readings: dict[str, Any] | None = None  # constant readings; default without quantities: {"a": 1, "b": 2, "c": 3}
    quantities: tuple[str, ...] = ()  # simulated: temperature_c, light_lux, supply_v, supply_a, supply_w

    def __post_init__(self) -> None:
        for name in self.quantities:
            if name not in QUANTITIES:
                raise ValueError(f"quantity {name!r} is not one of {', '.join(QUANTITIES)}")
