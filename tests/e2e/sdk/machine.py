"""The machine of the SDK tests: one fake of every component API, wired where the tests need it."""

from __future__ import annotations

from typing import Any


def component(api: str, name: str, **attributes: Any) -> dict[str, Any]:
    return {"api": f"rdk:component:{api}", "name": name, "model": "fake", "attributes": attributes}


COMPONENTS: list[dict[str, Any]] = [
    component(
        "board",
        "board",
        analogs=[{"name": "light", "pin": "1"}],
        digital_interrupts=[{"name": "in", "pin": "13"}],
        wires=[["11", "13"]],
    ),
    component("encoder", "encoder"),
    component("motor", "motor", board="board", encoder="encoder", max_rpm=600, ticks_per_rotation=100),
    component("motor", "left", max_rpm=600),
    component("motor", "right", max_rpm=600),
    component("base", "base", left=["left"], right=["right"], width_mm=200, wheel_circumference_mm=300),
    component("arm", "arm"),
    component("audio_in", "microphone"),
    component("audio_out", "speaker"),
    component("button", "button"),
    component("camera", "camera", width_px=160, height_px=120),
    component("gantry", "gantry"),
    component("generic", "generic"),
    component("gripper", "gripper"),
    component("input_controller", "gamepad"),
    component("movement_sensor", "gps"),
    component("pose_tracker", "tracker"),
    component("power_sensor", "power"),
    component("sensor", "sensor"),
    component("servo", "servo"),
    component("switch", "switch", position_count=3, labels=["off", "low", "high"]),
]

SERVICES: list[dict[str, Any]] = [
    {"api": "rdk:service:generic", "name": "notes", "model": "fake"},
    {"api": "rdk:service:discovery", "name": "discovery", "model": "fake"},
]

SESSION_WINDOW_S = 2.0  # ten times the heartbeat interval: a client on a busy computer may be late


def document(**extra: Any) -> dict[str, Any]:
    network = {"sessions": {"heartbeat_window": f"{int(SESSION_WINDOW_S * 1000)}ms"}, **extra.pop("network", {})}
    return {"components": COMPONENTS, "services": SERVICES, "network": network, **extra}
