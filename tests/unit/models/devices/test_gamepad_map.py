"""Mapping of gamepad codes to names and of values to the range -1 to 1."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hal.ports.controls import AxisRange, ControlChange
from hal.sim.controls import AXES, KEYS
from models.common.controls import CONTROLS
from models.devices.gamepad.gamepad_map import AXES as MAPPED
from models.devices.gamepad.gamepad_map import BUTTONS, GamepadMap, neutral, one_sided, scaled

STICK, BYTE, HAT = AxisRange(-32768, 32767, 128), AxisRange(0, 255, 15), AxisRange(-1, 1)


def test_the_ends_and_the_middle() -> None:
    for span, rest in ((STICK, 0), (BYTE, 128), (HAT, 0)):
        assert scaled(span.minimum, span, trigger=False) == -1
        assert scaled(span.maximum, span, trigger=False) == 1
        assert scaled(rest, span, trigger=False) == 0
    assert scaled(128 + 15, BYTE, trigger=False) == 0
    assert 0 < scaled(128 + 16, BYTE, trigger=False) < 0.02
    assert [scaled(v, AxisRange(0, 255), trigger=True) for v in (0, 51, 255)] == [0, 0.2, 1]
    assert scaled(5, AxisRange(0, 0), trigger=False) == 0


@given(
    st.integers(-40000, 40000),
    st.integers(-40000, 40000),
    st.sampled_from([STICK, BYTE, HAT]),
    st.booleans(),
    st.none() | st.floats(0, 0.9),
)
def test_more_is_never_less_and_nothing_is_beyond_the_ends(
    item: int, other: int, span: AxisRange, trigger: bool, dead_zone: float | None
) -> None:
    low, high = sorted((item, other))
    first, second = (scaled(value, span, trigger=trigger, dead_zone=dead_zone) for value in (low, high))
    assert -1 <= first <= second <= 1


def test_triggers_are_distinguished_from_sticks_by_the_other_axes() -> None:
    assert one_sided(2, {0, 1, 2, 3, 4, 5})
    assert not one_sided(2, {0, 1, 2, 5})  # on such a pad, Z and RZ are the right stick
    assert not one_sided(0, {0, 1, 2, 3, 4, 5})
    assert one_sided(9, {0, 9})


def test_every_name_is_one_that_clients_know() -> None:
    assert {*BUTTONS.values(), *MAPPED.values()} <= set(CONTROLS)


def test_a_usual_gamepad_has_names_that_clients_know() -> None:
    pad = GamepadMap(KEYS, AXES)
    assert set(pad.controls) <= set(CONTROLS)
    assert len(pad.controls) == len(KEYS) + len(AXES)


def test_a_pad_of_four_buttons_is_a_hat() -> None:
    pad = GamepadMap((0x220, 0x221, 0x222, 0x223), {})
    assert set(pad.controls) == {"AbsoluteHat0X", "AbsoluteHat0Y"}
    up, left = ControlChange(True, 0x220, 1), ControlChange(True, 0x222, 1)
    assert pad.translate([up, left]) == [
        ("PositionChangeAbs", "AbsoluteHat0Y", -1.0),
        ("PositionChangeAbs", "AbsoluteHat0X", -1.0),
    ]
    assert pad.translate([ControlChange(True, 0x221, 1)]) == [("PositionChangeAbs", "AbsoluteHat0Y", 0.0)]
    assert GamepadMap((0x220,), {0x11: HAT}).translate([up]) == []  # a real hat reports the same press


def test_controls_without_a_published_name_are_left_out() -> None:
    pad = GamepadMap((0x2C0,), {0x28: BYTE})
    assert pad.controls == ()
    assert pad.translate([ControlChange(True, 0x2C0, 1), ControlChange(False, 0x28, 255)]) == []


def test_a_joystick_s_numbered_buttons_have_names() -> None:
    stick = GamepadMap((0x120, 0x123), {0: BYTE})
    assert stick.controls == ("AbsoluteX", "ButtonSouth", "ButtonNorth")
    assert stick.translate([ControlChange(True, 0x120, 1)]) == [("ButtonPress", "ButtonSouth", 1.0)]
    both = GamepadMap((0x120, 0x130), {})
    assert both.controls == ("ButtonSouth",)
    assert both.translate([ControlChange(True, 0x120, 1)]) == []


def test_only_what_changes_is_an_event_and_neutral_undoes_it() -> None:
    pad = GamepadMap(KEYS, AXES)
    moves = [ControlChange(False, 0, 100), ControlChange(False, 0, -32768), ControlChange(True, 0x130, 1)]
    assert len(pad.translate(moves)) == 2  # the first was within the dead zone
    assert pad.translate([ControlChange(True, 0x130, 1)]) == []
    assert pad.translate([ControlChange(False, 0x3F, 1)]) == []  # there is no such axis
    assert set(neutral(pad.values())) == {
        ("PositionChangeAbs", "AbsoluteX", 0.0),
        ("ButtonRelease", "ButtonSouth", 0.0),
    }
