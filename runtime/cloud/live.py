"""How the machine is, told to the cloud while somebody looks at it there: resources, and readings once a second."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import trio

from uplink.watch import Send, Watch

if TYPE_CHECKING:
    from runtime.machine import Machine
    from runtime.status import MachineStatus
    from runtime.web.machine import MachineSource
    from runtime.web.readings import Reading, Shared

PERIOD: Final = 1.0  # seconds between two snapshots
MAX_SNAPSHOT: Final = 256 * 1024  # bytes of JSON; the cloud takes twice as many
MAX_SENSORS: Final = 50  # that are read; the first ones by name
MAX_VALUES: Final = 100  # of one sensor
MAX_TEXT: Final = 300  # characters of a reason or a value


async def tell(machine: Machine, watch: Watch, send: Send) -> None:
    """The Tell of a machine. A sensor that is slow to answer delays nothing but its own readings."""
    from runtime.web.machine import MachineSource
    from runtime.web.readings import Shared

    source = MachineSource(machine)
    shared = Shared(source.call)
    while True:
        await watch.begun()
        async with trio.open_nursery() as nursery:
            sensors, since = _Sensors(source, shared, nursery), _Since()
            last: Mapping[str, Any] = {}
            while watch.looking:
                status = since.settled(machine.status())
                sensors.follow(status)
                found = snapshot(status, sensors.readings)
                if found != last:
                    last = found
                    await send(machine.masker.value(bounded(found)))
                await trio.sleep(PERIOD)
            nursery.cancel_scope.cancel()


class _Since:
    """Times of states that do not waver: a status computes them anew each time, and they differ by a little."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[object, ...], datetime]] = {}

    def settled(self, status: MachineStatus) -> MachineStatus:
        """`status` with the time that was told first for each state of each resource."""
        before, self._known = self._known, {}
        resources = []
        for one in status.resources:
            state = (one.state, one.reason, one.restarts, one.revision)
            known = before.get(one.name)
            since = known[1] if known is not None and known[0] == state else one.since
            self._known[one.name] = (state, since)
            resources.append(replace(one, since=since))
        return replace(status, resources=tuple(resources))


class _Sensors:
    """One task for each sensor that is ready."""

    def __init__(self, source: MachineSource, shared: Shared, nursery: trio.Nursery) -> None:
        self._source = source
        self._shared = shared
        self._nursery = nursery
        self._followed: dict[str, trio.CancelScope] = {}
        self.readings: dict[str, Reading] = {}

    def follow(self, status: MachineStatus) -> None:
        """Read what is ready and has readings, and nothing else."""
        ready = sorted(one.name for one in status.resources if one.state == "ready")
        wanted = [name for name in ready if self._has_readings(name)][:MAX_SENSORS]
        for name in set(self._followed) - set(wanted):
            self._followed.pop(name).cancel()
            self.readings.pop(name, None)
        for name in wanted:
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


def snapshot(status: MachineStatus, readings: Mapping[str, Reading]) -> Mapping[str, Any]:
    """What is sent, as JSON; equal ones tell the same."""
    config = status.config
    return {
        "state": status.state.value,
        "started": status.started.isoformat(timespec="seconds"),
        "addresses": list(status.addresses),
        "revision": config.revision,
        "rejected": config.rejected[:MAX_TEXT],
        "pending": config.pending[:MAX_TEXT],
        "problems": [
            {"path": one.path, "message": one.message[:MAX_TEXT], "remedy": one.remedy[:MAX_TEXT]}
            for one in config.problems[:MAX_VALUES]
        ],
        "resources": [
            {
                "name": one.name,
                "model": one.model,
                "state": one.state,
                "reason": one.reason[:MAX_TEXT],
                "since": one.since.isoformat(timespec="seconds"),
                "dependencies": list(one.dependencies),
            }
            for one in status.resources
        ],
        "readings": {
            name: {
                "values": [[key, text[:MAX_TEXT], number] for key, text, number in one.values[:MAX_VALUES]],
                "error": one.error[:MAX_TEXT],
            }
            for name, one in sorted(readings.items())
        },
        "downloads": [
            {"name": one.name[:MAX_TEXT], "version": one.version, "done": one.done, "size": one.size}
            for one in status.downloads[:MAX_VALUES]
        ],
        "omitted": 0,
    }


def bounded(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """`found` in at most MAX_SNAPSHOT bytes: without readings, then with fewer resources; `omitted` is the rest."""
    size = len(json.dumps(found))
    if size > MAX_SNAPSHOT:
        found = {**found, "readings": {}}
    resources = list(found["resources"])
    kept = len(resources)
    while kept and len(json.dumps(found)) > MAX_SNAPSHOT:
        kept //= 2
        found = {**found, "resources": resources[:kept], "omitted": len(resources) - kept}
    return found
