"""A small machine in memory for page tests; the test sets states, readings and logs."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import trio

from engine.views.source import Field, Method, Picture, ShownEntry
from engine.views.status import (
    ConfigProblem,
    ConfigStatus,
    MachineState,
    MachineStatus,
    NodeView,
    ResourceStatus,
)
from schema.errors import ErrorKind, MachineError

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

MOTOR = "rdk:component:motor/left"
SENSOR = "rdk:component:sensor/thermometer"
CAMERA = "rdk:component:camera/front"
BASE = "rdk:component:base/rover"
BOARD = "rdk:component:board/pi"


def node(name: str, state: str = "ready", reason: str = "", needs: Sequence[str] = (), **more: Any) -> ResourceStatus:
    facts: dict[str, Any] = {
        "name": name,
        "api": name.partition("/")[0],
        "model": "rdk:builtin:fake",
        "state": state,
        "reason": reason,
        "since": START,
        "revision": "a1b2c3d4e5f60718",
        "restarts": 0,
        "dependencies": tuple(needs),
        "dependents": (),
        "calls": 0,
    }
    return ResourceStatus(**(facts | more))


def part(name: str, state: str = "ready", needs: Sequence[str] = ()) -> NodeView:
    return NodeView(name, state, "", START, 0, tuple(needs), ())


def machine_status(*resources: ResourceStatus, **more: Any) -> MachineStatus:
    needed: dict[str, list[str]] = {}
    for resource in resources:
        for name in resource.dependencies:
            needed.setdefault(name, []).append(resource.name)
    facts: dict[str, Any] = {
        "host": "rover-7",
        "version": "0.1.0",
        "state": MachineState.RUNNING,
        "started": START - timedelta(hours=5),
        "restart_allowed": True,
        "config": ConfigStatus("/etc/machine.json", "a1b2c3d4e5f60718", START),
        "resources": tuple(
            replace(resource, dependents=tuple(needed.get(resource.name, ())))
            for resource in sorted(resources, key=lambda resource: resource.name)
        ),
        "internal": (part("internal/modules"), part("internal/rpc")),
        "sessions": (),
        "operations": (),
        "addresses": ("0.0.0.0:8080",),
        "secure": False,
    }
    return MachineStatus(**(facts | more))


def rover() -> MachineStatus:
    """Return a status with every state, a missing dependency and a problem in the configuration."""
    return machine_status(
        node(BOARD, model="rdk:builtin:linux"),
        node(MOTOR, needs=[BOARD, "rdk:component:encoder/left-encoder"], model="rdk:builtin:gpio"),
        node(
            "rdk:component:motor/right", needs=[BOARD, "rdk:component:encoder/right-encoder"], model="rdk:builtin:gpio"
        ),
        node("rdk:component:encoder/left-encoder", needs=[BOARD], model="rdk:builtin:incremental"),
        node(
            "rdk:component:encoder/right-encoder",
            "unhealthy",
            "i2c bus 1: no acknowledge from 0x40: check the wiring and the address (tried 3 times)",
            needs=[BOARD],
            model="rdk:builtin:incremental",
            restarts=3,
        ),
        node(BASE, "unconfigured", "waits for motor/right", needs=[MOTOR, "rdk:component:motor/right"]),
        node(SENSOR, needs=[BOARD]),
        node(CAMERA, "configuring", "opening /dev/video0", tasks=("open", "probe")),
        node("rdk:component:servo/gripper-tilt", "removing", needs=[BOARD]),
        node("rdk:service:vision/people", needs=[CAMERA, "rdk:service:mlmodel/detector"], model="acme:vision:people"),
        config=ConfigStatus(
            "/etc/machine.json",
            "a1b2c3d4e5f60718",
            START,
            problems=(
                ConfigProblem(
                    "components.3.attributes.pins.a", "'GPIO99' is not a pin of this board", "use a pin from 1 to 40"
                ),
            ),
        ),
        internal=(part("internal/modules"), part("internal/rpc"), part("internal/sessions", needs=["internal/rpc"])),
    )


MOTOR_METHODS = (
    Method("get_position", "Revolutions from zero."),
    Method(
        "go_for",
        "Turn `revolutions` at `rpm`; the sign of the product is the direction.",
        "Returns when there; cancelling stops it.",
        (Field("rpm", "number", hint="rev/min"), Field("revolutions", "number"), Field("extra", "json", optional=True)),
    ),
    Method("is_moving", "True while it moves by command."),
    Method("set_power", "Apply power: -1 (full reverse) to 1 (full forward).", "", (Field("power_pct", "number"),)),
    Method("stop", "Bring it to rest now."),
    Method("stream_ticks", "Every tick.", streaming=True),
)
SENSOR_METHODS = (
    Method("get_readings", "Readings by name."),
    Method("do_command", "", "", (Field("command", "json"),)),
)


class MachineInMemory:
    """Implements `engine.views.source.PageSource`."""

    def __init__(self, status: MachineStatus | None = None) -> None:
        self.now = status or rover()
        self.entries: list[ShownEntry] = []
        self.values: Mapping[str, object] = {"temperature_c": 21.5, "door": {"open": False}, "note": "ok"}
        self.calls: list[tuple[str, str, Mapping[str, str]]] = []
        self.cancelled: list[str] = []
        self.stops = 0
        self.picture_type = "image/png"
        self.failure: Exception | None = None
        self.results: dict[str, object] = {"get_position": 1.25}
        self._waiting: set[trio.Event] = set()

    def set(self, status: MachineStatus) -> None:
        self.now = status
        self._wake()

    def set_state(self, name: str, state: str, reason: str = "") -> None:
        changed = [
            replace(status, state=state, reason=reason) if status.name == name else status
            for status in self.now.resources
        ]
        self.set(replace(self.now, resources=tuple(changed)))

    def write(self, message: str, level: str = "info", *, resource: str = "", fields: str = "") -> None:
        seq = len(self.entries) + 1
        logger = f"rdk.resource_manager.{resource}" if resource else "rdk.config"
        when = START + timedelta(seconds=seq)
        self.entries.append(ShownEntry(seq, when, level, logger, message, resource, fields))
        self._wake()

    def _wake(self) -> None:
        for event in self._waiting:
            event.set()
        self._waiting.clear()

    # ---- Source

    def status(self) -> MachineStatus:
        return self.now

    async def _next(self) -> AsyncIterator[object]:
        while True:
            event = trio.Event()
            self._waiting.add(event)
            await event.wait()
            yield None

    def changes(self) -> Sequence[AsyncIterator[object]]:
        return [self._next()]

    async def log_changes(self, since: int) -> AsyncGenerator[object, None]:
        while True:
            while not self.logs(since):
                event = trio.Event()
                self._waiting.add(event)
                await event.wait()
            since = self.entries[-1].seq
            yield None

    def logs(self, since: int = 0) -> Sequence[ShownEntry]:
        return self.entries[since:]

    def module_server(self) -> str:
        return "127.0.0.1:40001"

    async def statistics(self, start: int, end: int, points: int) -> dict[str, Any]:
        return {"from": start, "to": end, "points": points}

    async def ask_maintenance(self) -> None:
        """Do nothing: there is no maintenance sensor."""

    def attributes(self, name: str) -> Mapping[str, Any] | None:
        if name == MOTOR:
            return {"pins": {"a": "11", "b": "13", "pwm": "15"}, "board": "pi", "api_key": "***"}
        return None

    def methods(self, name: str) -> Sequence[Method]:
        if name == CAMERA:
            return (Method("get_images", "Images of all sensors."),)
        return {"motor": MOTOR_METHODS, "sensor": SENSOR_METHODS}.get(name.partition("/")[0].rpartition(":")[2], ())

    def is_actuator(self, name: str) -> bool:
        return name.startswith(("rdk:component:motor/", "rdk:component:base/", "rdk:component:servo/"))

    async def call(self, name: str, method: str, arguments: Mapping[str, str]) -> object:
        self.calls.append((name, method, arguments))
        if self.failure is not None:
            raise self.failure
        if method == "go_for":
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                self.cancelled.append(name)
                raise
        return self.values if method == "get_readings" else self.results.get(method)

    async def picture(self, name: str) -> Picture:
        from PIL import Image

        if name != CAMERA:
            raise MachineError(f"{name} is not a camera", kind=ErrorKind.UNSUPPORTED)
        data = io.BytesIO()
        Image.linear_gradient("L").resize((320, 200)).save(data, "PNG")
        return Picture(data.getvalue(), self.picture_type)

    async def stop_all(self) -> None:
        self.stops += 1
        if self.failure is not None:
            raise self.failure
