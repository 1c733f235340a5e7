"""Live view for the cloud: while someone watches the machine there, sends resources and readings every second."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import trio

from uplink import Send, Watch

if TYPE_CHECKING:
    from engine.views import MachineStatus, PageSource, SensorReading, Shared
    from schema import Masker

PERIOD: Final = 1.0  # seconds between two snapshots
MAX_SNAPSHOT: Final = 256 * 1024  # bytes of JSON; the cloud accepts twice as many
MAX_SENSORS: Final = 50  # sensors that are read: the first ones by name
MAX_VALUES: Final = 100  # of one sensor
MAX_TEXT: Final = 300  # characters of a reason or a value


async def send_snapshots(source: PageSource, mask: Callable[[], Masker], watch: Watch, send: Send) -> None:
    """Send snapshots while the cloud asks for them; implements Tell. A slow sensor delays only its own readings."""
    from engine.views import Shared

    shared = Shared(source.call)
    while True:
        await watch.wait_active()
        async with trio.open_nursery() as nursery:
            sensors, since = _Sensors(source, shared, nursery), _Since()
            last: Mapping[str, Any] = {}
            while watch.is_active:
                status = since.settled(source.status())
                sensors.follow(status)
                current = snapshot(status, sensors.readings)
                if current != last:
                    last = current
                    await send(mask().value(bounded(current)))
                await trio.sleep(PERIOD)
            nursery.cancel_scope.cancel()


class _Since:
    """Stable times of states. Each status computes the times again, with small differences."""

    def __init__(self) -> None:
        self._reported: dict[str, tuple[tuple[object, ...], datetime]] = {}

    def settled(self, status: MachineStatus) -> MachineStatus:
        """Return `status` with the time that was reported first for the current state of each resource."""
        before, self._reported = self._reported, {}
        resources = []
        for resource in status.resources:
            restarts = resource.restarts if resource.state != "unhealthy" else 0  # attempts change nothing
            state = (resource.state, resource.reason, restarts, resource.revision)
            reported = before.get(resource.name)
            since = reported[1] if reported is not None and reported[0] == state else resource.since
            self._reported[resource.name] = (state, since)
            resources.append(replace(resource, since=since))
        return replace(status, resources=tuple(resources))


class _Sensors:
    """Reads sensors, with a task for each sensor that is ready."""

    def __init__(self, source: PageSource, shared: Shared, nursery: trio.Nursery) -> None:
        self._source = source
        self._shared = shared
        self._nursery = nursery
        self._followed: dict[str, trio.CancelScope] = {}
        self.readings: dict[str, SensorReading] = {}

    def follow(self, status: MachineStatus) -> None:
        """Read exactly the resources that are ready and have readings, at most MAX_SENSORS."""
        ready = sorted(resource.name for resource in status.resources if resource.state == "ready")
        sensors = [name for name in ready if self._has_readings(name)][:MAX_SENSORS]
        for name in set(self._followed) - set(sensors):
            self._followed.pop(name).cancel()
            self.readings.pop(name, None)
        for name in sensors:
            if name not in self._followed:
                self._followed[name] = trio.CancelScope()
                self._nursery.start_soon(self._read, name, self._followed[name])

    def _has_readings(self, name: str) -> bool:
        return any(method.name == "get_readings" for method in self._source.methods(name))

    async def _read(self, name: str, scope: trio.CancelScope) -> None:
        with scope, self._shared.watch(name) as watched:
            after = float("-inf")
            while True:
                reading = await watched.next(after)
                after = reading.at
                self.readings[name] = reading


def snapshot(status: MachineStatus, readings: Mapping[str, SensorReading]) -> Mapping[str, Any]:
    """Return a snapshot for JSON. Equal snapshots need not be sent again."""
    config = status.config
    return {
        "state": status.state.value,
        "started": status.started.isoformat(timespec="seconds"),
        "addresses": list(status.addresses),
        "revision": config.revision,
        "rejected": config.rejected[:MAX_TEXT],
        "pending": config.pending[:MAX_TEXT],
        "problems": [
            {"path": problem.path, "message": problem.message[:MAX_TEXT], "remedy": problem.remedy[:MAX_TEXT]}
            for problem in config.problems[:MAX_VALUES]
        ],
        "resources": [
            {
                "name": resource.name,
                "model": resource.model,
                "state": resource.state,
                "reason": resource.reason[:MAX_TEXT],
                "since": resource.since.isoformat(timespec="seconds"),
                "dependencies": list(resource.dependencies),
            }
            for resource in status.resources
        ],
        "readings": {
            name: {
                "values": [[key, text[:MAX_TEXT], number] for key, text, number in reading.values[:MAX_VALUES]],
                "error": reading.error[:MAX_TEXT],
            }
            for name, reading in sorted(readings.items())
        },
        "downloads": [
            {
                "name": download.name[:MAX_TEXT],
                "version": download.version,
                "done": download.done,
                "size": download.size,
            }
            for download in status.downloads[:MAX_VALUES]
        ],
        "omitted": 0,
    }


def bounded(view: Mapping[str, Any]) -> Mapping[str, Any]:
    """Reduce a snapshot to MAX_SNAPSHOT bytes: drop readings, then resources. `omitted` counts dropped resources."""
    size = len(json.dumps(view))
    if size > MAX_SNAPSHOT:
        view = {**view, "readings": {}}
    resources = list(view["resources"])
    kept = len(resources)
    while kept and len(json.dumps(view)) > MAX_SNAPSHOT:
        kept //= 2
        view = {**view, "resources": resources[:kept], "omitted": len(resources) - kept}
    return view
