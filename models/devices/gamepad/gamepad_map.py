"""Names of the codes of a gamepad, and scaling of its axes. Pure.

Codes: linux/input-event-codes.h; their use by gamepads: Documentation/input/gamepad.rst of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from hal.ports import AxisRange, ControlChange

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
    # Joysticks, and gamepads that report as joysticks: numbered buttons, in the usual order.
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
"""Standard names by code. Other buttons are omitted, because official clients reject unknown names."""

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
DIRECTIONS: Final = {  # of a directional pad with four buttons: the hat axis and the direction
    0x220: (0x11, -1),
    0x221: (0x11, 1),
    0x222: (0x10, -1),
    0x223: (0x10, 1),
}
_X, _Y, _Z, _RX, _RY, _RZ = range(6)
_ONE_SIDED: Final = frozenset({0x09, 0x0A, *range(0x12, 0x16)})  # pedals; triggers reported as hats 1 and 2
_RELEASED, _HELD = 0, 2  # values of a key


class ControlEvent(NamedTuple):
    """An event of a control, with the standard names."""

    event: str
    control: str
    value: float


def one_sided(axis: int, axes: Iterable[int]) -> bool:
    """Return whether an axis rests at its minimum, like triggers and pedals.

    Z and RZ are triggers if RX and RY exist as the right stick; otherwise Z and RZ are the right stick.
    """
    return axis in _ONE_SIDED or (axis in (_Z, _RZ) and {_RX, _RY} <= set(axes))


def scaled(value: int, span: AxisRange, *, trigger: bool, dead_zone: float | None = None) -> float:
    """Scale a value to -1 to 1 (a trigger: 0 to 1), 0 at rest and continuous at the edge of the dead zone.

    `dead_zone` is a share (0 to 1) of the travel from rest to the end; None uses the value of the device.
    """
    rest = span.minimum if trigger else (span.minimum + span.maximum + 1) // 2
    offset = value - rest
    reach = span.maximum - rest if offset > 0 else rest - span.minimum
    if reach <= 0:
        return 0.0
    dead_zone_size = span.flat if dead_zone is None else dead_zone * reach
    if abs(offset) <= dead_zone_size:
        return 0.0
    fraction = min(1.0, (abs(offset) - dead_zone_size) / (reach - dead_zone_size)) if reach > dead_zone_size else 1.0
    return fraction if offset > 0 else -fraction


class GamepadMap:
    """The controls of one gamepad, and the translation of its reports to events."""

    def __init__(self, keys: Iterable[int], axes: Mapping[int, AxisRange], *, dead_zone: float | None = None) -> None:
        self._dead_zone = dead_zone
        self._axes = {axis: span for axis, span in axes.items() if axis in AXES}
        hats = {hat for hat, _ in DIRECTIONS.values() if hat in axes}
        self._directional_pad = {
            key: direction
            for key in keys
            if (direction := DIRECTIONS.get(key)) is not None and direction[0] not in hats
        }
        self._pressed: set[int] = set()  # pressed buttons of the directional pad
        self._buttons: dict[int, str] = {}
        for code, name in BUTTONS.items():  # gamepad codes take precedence over joystick codes
            if code in keys and name not in self._buttons.values():
                self._buttons[code] = name
        self._values = dict.fromkeys(
            (
                *(
                    name
                    for axis, name in AXES.items()
                    if axis in axes or any(axis == pad_axis for pad_axis, _ in self._directional_pad.values())
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
        """Return the last value of every control; 0 if not reported yet."""
        return dict(self._values)

    def translate(self, changes: Iterable[ControlChange]) -> list[ControlEvent]:
        """Translate one report to events. Movement within the dead zone yields none."""
        events = []
        for change in changes:
            event = self._key(change.code, change.value) if change.key else self._axis(change.code, change.value)
            if event is not None and (event.event == "ButtonHold" or event.value != self._values[event.control]):
                self._values[event.control] = event.value
                events.append(event)
        return events

    def _key(self, key: int, value: int) -> ControlEvent | None:
        if key in self._directional_pad:
            (self._pressed.add if value else self._pressed.discard)(key)
            hat = self._directional_pad[key][0]
            directions = [
                direction
                for pressed, (axis, direction) in self._directional_pad.items()
                if axis == hat and pressed in self._pressed
            ]
            return ControlEvent("PositionChangeAbs", AXES[hat], float(sum(directions)))
        if key not in self._buttons:
            return None
        event = ("ButtonRelease", "ButtonPress", "ButtonHold")[min(value, _HELD)]
        return ControlEvent(event, self._buttons[key], float(value != _RELEASED))

    def _axis(self, axis: int, value: int) -> ControlEvent | None:
        if axis not in self._axes:
            return None
        trigger = one_sided(axis, self._axes)
        fraction = scaled(value, self._axes[axis], trigger=trigger, dead_zone=self._dead_zone)
        return ControlEvent("PositionChangeAbs", AXES[axis], fraction)


def neutral(values: Mapping[str, float]) -> list[ControlEvent]:
    """Return the events that return every control to rest."""
    return [
        ControlEvent("ButtonRelease" if control.startswith("Button") else "PositionChangeAbs", control, 0.0)
        for control, value in values.items()
        if value
    ]
