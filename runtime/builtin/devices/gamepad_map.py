"""What a gamepad's codes are called and how its axes are scaled. Pure.

Codes: linux/input-event-codes.h; which of them a gamepad uses for what: the kernel's Documentation/input/gamepad.rst.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hal.ports.controls import AxisRange, ControlChange

BUTTONS: Final = {
    0x130: "ButtonSouth",
    0x131: "ButtonEast",
    0x133: "ButtonNorth",
    0x134: "ButtonWest",
    0x136: "ButtonLT",
    0x137: "ButtonRT",
    0x138: "ButtonLT2",
    0x139: "ButtonRT2",
    0x13A: "ButtonSelect",
    0x13B: "ButtonStart",
    0x13C: "ButtonMenu",
    0x13D: "ButtonLThumb",
    0x13E: "ButtonRThumb",
    0xA7: "ButtonRecord",
}
AXES: Final = {
    0x00: "AbsoluteX",
    0x01: "AbsoluteY",
    0x02: "AbsoluteZ",
    0x03: "AbsoluteRX",
    0x04: "AbsoluteRY",
    0x05: "AbsoluteRZ",
    0x06: "AbsoluteThrottle",
    0x07: "AbsoluteRudder",
    0x08: "AbsoluteWheel",
    0x09: "AbsolutePedalAccelerator",
    0x0A: "AbsolutePedalBrake",
    0x10: "AbsoluteHat0X",
    0x11: "AbsoluteHat0Y",
}
DIRECTIONS: Final = {  # of a directional pad that is four buttons: the hat they stand for, and which way
    0x220: (0x11, -1),
    0x221: (0x11, 1),
    0x222: (0x10, -1),
    0x223: (0x10, 1),
}
_X, _Y, _Z, _RX, _RY, _RZ = range(6)
_ONE_SIDED: Final = frozenset({0x09, 0x0A, *range(0x12, 0x16)})  # pedals; triggers as hats 1 and 2
_RELEASED, _PRESSED, _HELD = range(3)


class ControlEvent(NamedTuple):
    """An event of a control, by the names that clients know."""

    event: str
    control: str
    value: float


def one_sided(axis: int, axes: Iterable[int]) -> bool:
    """Whether an axis rests at its minimum, as triggers and pedals do.

    Z and RZ are triggers where the right stick is RX and RY; otherwise they are the right stick themselves.
    """
    return axis in _ONE_SIDED or (axis in (_Z, _RZ) and {_RX, _RY} <= set(axes))


def scaled(value: int, span: AxisRange, *, trigger: bool, dead_zone: float | None = None) -> float:
    """From -1 to 1, 0 at rest; a trigger from 0 to 1. Beyond the dead zone it begins at 0 again, without a jump.

    `dead_zone` is a share of the way from rest to the end, 0 to 1; None takes what the device itself says.
    """
    rest = span.minimum if trigger else (span.minimum + span.maximum + 1) // 2
    way = value - rest
    reach = span.maximum - rest if way > 0 else rest - span.minimum
    if reach <= 0:
        return 0.0
    dead = span.flat if dead_zone is None else dead_zone * reach
    if abs(way) <= dead:
        return 0.0
    share = min(1.0, (abs(way) - dead) / (reach - dead)) if reach > dead else 1.0
    return share if way > 0 else -share


class GamepadMap:
    """The controls of one gamepad, and what its reports mean."""

    def __init__(self, keys: Iterable[int], axes: Mapping[int, AxisRange], *, dead_zone: float | None = None) -> None:
        self._axes = dict(axes)
        self._dead_zone = dead_zone
        pad = {} if AXES_OF_HAT & set(axes) else {key: DIRECTIONS[key] for key in keys if key in DIRECTIONS}
        self._pad = dict(pad)
        self._pressed: set[int] = set()  # of the pad's four buttons
        self._values: dict[str, float] = {}
        names = [AXES.get(axis, f"Absolute0x{axis:02x}") for axis in sorted(axes)]
        names += [name for hat, name in AXES.items() if any(hat == to for to, _ in pad.values())]
        names += [BUTTONS.get(key, f"Button0x{key:x}") for key in sorted(keys) if key not in pad]
        self.controls: tuple[str, ...] = tuple(dict.fromkeys(names))

    def values(self) -> dict[str, float]:
        """Every control as it was last reported; 0 if it was not."""
        return {control: self._values.get(control, 0.0) for control in self.controls}

    def translate(self, changes: Iterable[ControlChange]) -> list[ControlEvent]:
        """The events of one report. An axis that moved within its dead zone has none."""
        events = []
        for change in changes:
            event = self._key(change.code, change.value) if change.key else self._axis(change.code, change.value)
            if event is not None:
                self._values[event.control] = event.value
                events.append(event)
        return events

    def _key(self, key: int, value: int) -> ControlEvent | None:
        if key in self._pad:
            (self._pressed.add if value else self._pressed.discard)(key)
            hat, _ = self._pad[key]
            return self._moved(
                AXES[hat], float(sum(way for k, (to, way) in self._pad.items() if to == hat and k in self._pressed))
            )
        control = BUTTONS.get(key, f"Button0x{key:x}")
        if value == _HELD:
            return ControlEvent("ButtonHold", control, 1.0)
        if value == self._values.get(control, _RELEASED):
            return None
        return ControlEvent("ButtonPress" if value == _PRESSED else "ButtonRelease", control, float(value))

    def _axis(self, axis: int, value: int) -> ControlEvent | None:
        if axis not in self._axes:
            return None
        trigger = one_sided(axis, self._axes)
        control = AXES.get(axis, f"Absolute0x{axis:02x}")
        return self._moved(control, scaled(value, self._axes[axis], trigger=trigger, dead_zone=self._dead_zone))

    def _moved(self, control: str, value: float) -> ControlEvent | None:
        if value == self._values.get(control, 0.0):
            return None
        return ControlEvent("PositionChangeAbs", control, value)


AXES_OF_HAT: Final = frozenset({0x10, 0x11})


def neutral(values: Mapping[str, float]) -> list[ControlEvent]:
    """What lets go of every control that is not at rest."""
    return [
        ControlEvent("ButtonRelease" if control.startswith("Button") else "PositionChangeAbs", control, 0.0)
        for control, value in values.items()
        if value
    ]
