"""The motions for the controls of each mode."""

from __future__ import annotations

import math

import pytest

from models.common.controls import CONTROLS
from models.remote_control.modes import MODES, Motion, all_at_rest, motion_of, value_of
from schema import Vector3

FORWARD, BACK = Vector3(0.0, 1.0, 0.0), Vector3(0.0, -1.0, 0.0)


@pytest.mark.parametrize(
    ("mode", "values", "motion"),
    [
        ("arrowControl", {"AbsoluteHat0Y": -1.0}, Motion(FORWARD)),
        ("arrowControl", {"AbsoluteHat0Y": 1.0, "AbsoluteHat0X": 1.0}, Motion(BACK, -1.0)),
        ("triggerSpeedControl", {"AbsoluteRZ": 1.0}, Motion(FORWARD)),
        ("triggerSpeedControl", {"AbsoluteZ": 1.0, "AbsoluteX": -0.5}, Motion(BACK, 0.5)),
        ("triggerSpeedControl", {"AbsoluteZ": 1.0, "AbsoluteRZ": 1.0}, Motion()),
        ("buttonControl", {"ButtonNorth": 1.0, "ButtonEast": 1.0}, Motion(FORWARD, -1.0)),
        ("buttonControl", {"ButtonSouth": 1.0, "ButtonWest": 1.0}, Motion(BACK, 1.0)),
        ("joystickControl", {"AbsoluteX": 0.25, "AbsoluteY": -1.0}, Motion(FORWARD, -0.25)),
        ("droneControl", {"AbsoluteX": -1.0, "AbsoluteY": -1.0}, Motion(Vector3(0.0, 0.0, 1.0), 1.0)),
        ("droneControl", {"AbsoluteRX": 1.0, "AbsoluteRY": -1.0}, Motion(Vector3(1.0, 1.0, 0.0))),
        ("joystickControl", {}, Motion()),
    ],
)
def test_motion(mode: str, values: dict[str, float], motion: Motion) -> None:
    assert motion_of(mode, values) == motion


def test_controls_are_those_that_all_clients_have() -> None:
    assert {control for mode in MODES.values() for control in mode} <= set(CONTROLS)


@pytest.mark.parametrize(
    ("kind", "value", "result"),
    [
        ("PositionChangeAbs", 0.5, 0.5),
        ("PositionChangeAbs", 1e300, 1.0),
        ("PositionChangeAbs", -7.0, -1.0),
        ("PositionChangeAbs", math.nan, 0.0),
        ("PositionChangeAbs", math.inf, 0.0),
        ("ButtonPress", 1.0, 1.0),
        ("ButtonHold", 0.3, 1.0),
        ("ButtonRelease", 0.7, 0.0),
        ("Connect", 1.0, 0.0),
        ("Disconnect", 1.0, 0.0),
    ],
)
def test_value_after_an_event(kind: str, value: float, result: float) -> None:
    assert value_of(kind, value) == result


def test_drift_is_rest() -> None:
    assert all_at_rest({"AbsoluteX": 0.05, "AbsoluteY": -0.05})
    assert not all_at_rest({"AbsoluteX": 0.05, "AbsoluteY": -0.2})
