"""How the controls of each mode drive a base. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from schema import Vector3

REST: Final = 0.1  # a control whose value is nearer to 0 is at rest


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a control in a part of the motion; x is right, y forward, z up, and turn to the left."""

    part: str
    factor: float


_STEER: Final = {"AbsoluteX": Share("turn", -1.0)}
MODES: Final[Mapping[str, Mapping[str, Share]]] = {
    "arrowControl": {"AbsoluteHat0X": Share("turn", -1.0), "AbsoluteHat0Y": Share("y", -1.0)},
    "triggerSpeedControl": {**_STEER, "AbsoluteZ": Share("y", -1.0), "AbsoluteRZ": Share("y", 1.0)},
    "buttonControl": {
        "ButtonNorth": Share("y", 1.0),
        "ButtonSouth": Share("y", -1.0),
        "ButtonEast": Share("turn", -1.0),
        "ButtonWest": Share("turn", 1.0),
    },
    "joystickControl": {**_STEER, "AbsoluteY": Share("y", -1.0)},
    "droneControl": {
        **_STEER,
        "AbsoluteY": Share("z", -1.0),
        "AbsoluteRX": Share("x", 1.0),
        "AbsoluteRY": Share("y", -1.0),
    },
}
"""Controls of each mode. Sticks and the directional pad are negative when they are pushed up or to the left."""

_VALUES: Final = {"ButtonPress": 1.0, "ButtonHold": 1.0, "ButtonRelease": 0.0, "Connect": 0.0, "Disconnect": 0.0}


def value_of(kind: str, value: float) -> float:
    """Return the value of a control after an event: -1 to 1. An event that says nothing certain is a control at rest.

    Connect is at rest too: a control that is held while it connects drives only when it is moved.
    """
    if not math.isfinite(value):
        return 0.0
    return min(max(_VALUES.get(kind, value), -1.0), 1.0)


@dataclass(frozen=True, slots=True)
class Motion:
    """A motion of a base: shares of its power or of its highest velocity, each -1 to 1."""

    linear: Vector3 = field(default_factory=Vector3)
    turn: float = 0.0

    @property
    def rest(self) -> bool:
        """Whether the base is to stand still."""
        return self == Motion()


def motion_of(mode: str, values: Mapping[str, float]) -> Motion:
    """Return the motion for the values of the controls; those without a value are at rest."""
    parts = dict.fromkeys(("x", "y", "z", "turn"), 0.0)
    for control, share in MODES[mode].items():
        parts[share.part] += share.factor * values.get(control, 0.0)
    x, y, z, turn = (min(max(part, -1.0), 1.0) + 0.0 for part in parts.values())
    return Motion(Vector3(x, y, z), turn)


def all_at_rest(values: Mapping[str, float]) -> bool:
    """Return whether no control is held."""
    return all(abs(value) < REST for value in values.values())
