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
    # Joysticks, and gamepads that say they are joysticks: numbered buttons, in the usual order of their numbers.
    0x120: "ButtonSouth",
    0x121: "ButtonEast",
    0x122: "ButtonWest",
    0x123: "ButtonNorth",
    0x124: "ButtonLT",
    0x125: "ButtonRT",
    0x126: "ButtonLT2",
    0x127: "ButtonRT2",
    0x128: "ButtonSelect",
    0x129: "ButtonStart",
    0x12A: "ButtonLThumb",
    0x12B: "ButtonRThumb",
}
"""Names by code, all known to clients: what has no such name is left out, for official clients refuse others."""

AXES: Final = {
    0x00: "AbsoluteX",
    0x01: "AbsoluteY",
    0x02: "AbsoluteZ",
    0x03: "AbsoluteRX",
    0x04: "AbsoluteRY",
    0x05: "AbsoluteRZ",
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
_RELEASED, _HELD = 0, 2  # values of a key


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
        self._dead_zone = dead_zone
        self._axes = {axis: span for axis, span in axes.items() if axis in AXES}
        hats = {hat for hat, _ in DIRECTIONS.values() if hat in axes}
        self._pad = {key: way for key in keys if (way := DIRECTIONS.get(key)) is not None and way[0] not in hats}
        self._pressed: set[int] = set()  # of the directional pad's four buttons
        self._buttons: dict[int, str] = {}
        for code, name in BUTTONS.items():  # a gamepad's own codes first
            if code in keys and name not in self._buttons.values():
                self._buttons[code] = name
        self._values = dict.fromkeys(
            (
                *(
                    name
                    for axis, name in AXES.items()
                    if axis in axes or any(axis == to for to, _ in self._pad.values())
                ),
                *self._buttons.values(),
            ),
            0.0,
        )

    @property
    def controls(self) -> tuple[str, ...]:
        """Names of the controls."""
        return tuple(self._values)

    def values(self) -> dict[str, float]:
        """Every control as it was last reported; 0 if it was not."""
        return dict(self._values)

    def translate(self, changes: Iterable[ControlChange]) -> list[ControlEvent]:
        """The events of one report. An axis that moved within its dead zone has none."""
        events = []
        for change in changes:
            event = self._key(change.code, change.value) if change.key else self._axis(change.code, change.value)
            if event is not None and (event.event == "ButtonHold" or event.value != self._values[event.control]):
                self._values[event.control] = event.value
                events.append(event)
        return events

    def _key(self, key: int, value: int) -> ControlEvent | None:
        if key in self._pad:
            (self._pressed.add if value else self._pressed.discard)(key)
            hat = self._pad[key][0]
            ways = [way for pressed, (to, way) in self._pad.items() if to == hat and pressed in self._pressed]
            return ControlEvent("PositionChangeAbs", AXES[hat], float(sum(ways)))
        if key not in self._buttons:
            return None
        event = ("ButtonRelease", "ButtonPress", "ButtonHold")[min(value, _HELD)]
        return ControlEvent(event, self._buttons[key], float(value != _RELEASED))

    def _axis(self, axis: int, value: int) -> ControlEvent | None:
        if axis not in self._axes:
            return None
        trigger = one_sided(axis, self._axes)
        share = scaled(value, self._axes[axis], trigger=trigger, dead_zone=self._dead_zone)
        return ControlEvent("PositionChangeAbs", AXES[axis], share)


def neutral(values: Mapping[str, float]) -> list[ControlEvent]:
    """What lets go of every control that is not at rest."""
    return [
        ControlEvent("ButtonRelease" if control.startswith("Button") else "PositionChangeAbs", control, 0.0)
        for control, value in values.items()
        if value
    ]
