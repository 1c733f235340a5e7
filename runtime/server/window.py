"""The maintenance window of a running machine, which reads the configured sensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from engine.planning import ANSWER_LIMIT, Answer, Decision, NoAnswer, NoWindow, decide
from schema.document import MachineDocument

if TYPE_CHECKING:
    import structlog

    from engine import Roster
    from runtime.server.configured import Configured


class Window:
    """Decides from the current readings of the sensor, which may be built in, from a module, or on a remote."""

    def __init__(self, roster: Roster, configured: Configured, log: structlog.stdlib.BoundLogger) -> None:
        self._roster = roster
        self._configured = configured
        self._log = log
        self._warned = ""

    async def ask(self, document: MachineDocument) -> Decision:
        """Decide whether the sensor in `document` allows maintenance; takes at most ANSWER_LIMIT seconds."""
        if document.maintenance is None:
            self._warned = ""
            return decide(NoWindow("no maintenance window is configured"))
        sensor, key = document.maintenance.sensor_name, document.maintenance.maintenance_allowed_key
        answer = await self._readings(sensor, document)
        decision = decide(answer, sensor, key)
        if isinstance(answer, NoWindow) and decision.reason != self._warned:
            self._log.warning("the maintenance window has no effect", reason=decision.reason)
        self._warned = decision.reason if isinstance(answer, NoWindow) else ""
        return decision

    async def _readings(self, sensor: str, document: MachineDocument) -> Answer:
        active = self._configured.document
        planned = self._roster.planned.get(sensor)
        if planned is None:
            remote = _remote_of(sensor)
            if any(remote == entry.name for entry in (*active.remotes, *document.remotes)):
                return NoAnswer(f"the remote {remote!r} has no such resource, or has not listed it yet")
            return NoWindow(f"the sensor {sensor} is not configured")
        if any(str(entry.resource) == sensor for entry in active.broken):
            return NoWindow(f"the entry of {sensor} has mistakes: {planned.fault}")
        with trio.move_on_after(ANSWER_LIMIT):
            try:
                async with self._roster.find(sensor).use() as driver:
                    get_readings = getattr(driver, "get_readings", None)
                    if get_readings is None:
                        return NoWindow(f"{sensor} has no readings: maintenance.sensor_name must name a sensor")
                    readings: Any = await get_readings()
                    if isinstance(readings, Mapping):
                        return readings
                    return NoAnswer(f"it returned {type(readings).__name__}, not a mapping")
            except Exception as error:
                return NoAnswer(str(error) or repr(error))
        return NoAnswer(f"no answer within {ANSWER_LIMIT:g} s")


def _remote_of(sensor: str) -> str:
    """Return the remote in a name: `pi` for rdk:component:sensor/pi:door; empty for the machine's own resources."""
    head, colon, _ = sensor.partition("/")[2].partition(":")
    return head if colon else ""
