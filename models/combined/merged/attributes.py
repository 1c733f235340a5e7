"""Attributes of `merged`. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from schema import Attributes

MEASUREMENTS = (
    "position",
    "orientation",
    "compass_heading",
    "linear_velocity",
    "angular_velocity",
    "linear_acceleration",
)


class MergedMovementSensorConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of a merged movement sensor: for each measurement, the sensors that may provide it, best first."""

    position: tuple[str, ...] = ()  # names of movement sensors with a position, such as GPS receivers
    orientation: tuple[str, ...] = ()  # names of movement sensors with an orientation
    compass_heading: tuple[str, ...] = ()  # names of movement sensors with a compass
    linear_velocity: tuple[str, ...] = ()  # names of movement sensors with a velocity
    angular_velocity: tuple[str, ...] = ()  # names of movement sensors with an angular velocity, such as gyroscopes
    linear_acceleration: tuple[str, ...] = ()  # names of movement sensors with an acceleration

    def __post_init__(self) -> None:
        if not self.sensors():
            raise ValueError(f"it has no sensor: name some for one of {', '.join(MEASUREMENTS)}")

    def uses(self) -> Iterable[str]:
        """Use those of the sensors that are present."""
        return self.sensors()

    def sensors(self) -> tuple[str, ...]:
        """Return the names of all sensors."""
        return tuple(dict.fromkeys(name for measurement in MEASUREMENTS for name in getattr(self, measurement)))
