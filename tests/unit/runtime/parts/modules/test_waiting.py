"""Services that may use every resource of an API do not wait for a starting module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import trio

from runtime.parts.modules.memory import Behaviour
from runtime.server.memory import MemoryMachine
from tests.unit.runtime.parts.modules.support import SENSOR, entry, machine, ready, sensor

CAMERA, VISION, SENSORS = "rdk:component:camera", "rdk:service:vision", "rdk:service:sensors"
EYE = {"detect_color": "#ff0000", "hue_tolerance_pct": 0.1, "segment_size_px": 100, "camera_name": "cam"}
DOCUMENT: dict[str, Any] = {
    "modules": [entry()],
    "components": [
        {"name": "cam", "api": CAMERA, "model": "fake"},
        {"name": "late", "api": CAMERA, "model": "acme:memory:camera"},
        sensor("plain", "fake"),
        sensor("one"),
    ],
    "services": [
        {"name": "eye", "api": VISION, "model": "color_detector", "attributes": EYE},
        {"name": "all", "api": SENSORS, "model": "builtin"},
    ],
}


async def opened(memory: MemoryMachine, *names: str) -> None:
    async for _ in memory.graph.changes():
        if memory.machine.roster.hosts.keys() >= set(names):
            return


async def test_they_are_ready_and_see_what_is_there(tmp_path: Path) -> None:
    """The clock is real because a vision service has a thread."""
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(DOCUMENT, lambda name: Behaviour(start_after=1000), home) as (memory, _):
        with trio.fail_after(10):
            await opened(memory, f"{VISION}/eye", f"{SENSORS}/all", f"{CAMERA}/cam", f"{SENSOR}/plain")
        client = memory.client()
        await client.call(VISION, "eye", "get_detections_from_camera", camera_name="")
        assert await client.call(SENSORS, "all", "get_sensors") == [f"{SENSOR}/plain"]


async def test_a_late_sensor_is_seen_without_a_restart(autojump_clock: object, tmp_path: Path) -> None:
    document = {**DOCUMENT, "services": [{"name": "all", "api": SENSORS, "model": "builtin"}]}
    home = {"MACHINE_HOME": str(tmp_path)}
    async with machine(document, lambda name: Behaviour(start_after=50), home) as (memory, _):
        await opened(memory, f"{SENSORS}/all")
        service = memory.machine.roster.find("all")
        await opened(memory, f"{SENSOR}/one", f"{SENSOR}/plain")
        assert ready(memory, "one", "plain")
        assert await memory.client().call(SENSORS, "all", "get_sensors") == [f"{SENSOR}/one", f"{SENSOR}/plain"]
        assert memory.machine.roster.find("all") is service
