"""Machine documents for micro servers."""

from __future__ import annotations

from typing import Any

KEY_ID, KEY = "4c2e7f3e-3f0a-4a43-9a9f-0d5d7a0b9a11", "a-key-that-only-this-test-knows"
AUTH = {"handlers": [{"type": "api-key", "config": {KEY_ID: KEY, "keys": [KEY_ID]}}]}


def component(api: str, name: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": f"rdk:component:{api}", "model": f"rdk:builtin:{model}", "attributes": attributes}


SELF = component("sensor", "self", "host")
PINS = component("board", "pins", "esp32", analogs=[{"name": "light", "pin": "4"}])
LEFT = component("motor", "left", "gpio", board="pins", pins={"a": "1", "b": "2"}, max_rpm=600)
RIGHT = component("motor", "right", "gpio", board="pins", pins={"a": "3", "b": "5"}, max_rpm=600)
ROVER = component("base", "rover", "wheeled", left=["left"], right=["right"], width_mm=200, wheel_circumference_mm=100)
EYE = component("camera", "eye", "webcam")

SMALL = {"components": [SELF]}
CAR = {"components": [SELF, PINS, LEFT, RIGHT, ROVER, EYE]}
