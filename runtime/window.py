"""The maintenance window of a running machine: asks the sensor that a document names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio

from runtime.maintenance import ANSWER_LIMIT, Answer, Decision, NoAnswer, NoWindow, decide
from schema.machine import MachineDocument

if TYPE_CHECKING:
    from runtime.machine import Machine


class Window:
    """Decides from what the sensor says now, wherever it lives: built in, of a module, of a remote."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._warned = ""

    async def ask(self, document: MachineDocument) -> Decision:
        """Whether maintenance is allowed by the sensor that `document` names; takes at most ANSWER_LIMIT seconds."""
        if document.maintenance is None:
            self._warned = ""
            return decide(NoWindow("no maintenance window is configured"))
        sensor, key = document.maintenance.sensor_name, document.maintenance.maintenance_allowed_key
        answer = await self._readings(sensor, document)
        decision = decide(answer, sensor, key)
        if isinstance(answer, NoWindow) and decision.reason != self._warned:
            self._machine.log.warning("the maintenance window is not in force", reason=decision.reason)
        self._warned = decision.reason if isinstance(answer, NoWindow) else ""
        return decision

    async def _readings(self, sensor: str, document: MachineDocument) -> Answer:
        machine = self._machine
        wanted = machine.wanted.get(sensor)
        if wanted is None:
            remote = _remote_of(sensor)
            if any(remote == one.name for one in (*machine.document.remotes, *document.remotes)):
                return NoAnswer(f"the remote {remote!r} has no such resource, or has not told of it yet")
            return NoWindow(f"the sensor {sensor} is not configured")
        if any(str(entry.resource) == sensor for entry in machine.document.broken):
            return NoWindow(f"the entry of {sensor} has mistakes: {wanted.fault}")
        with trio.move_on_after(ANSWER_LIMIT):
            try:
                async with machine.find(sensor).use() as driver:
                    get_readings = getattr(driver, "get_readings", None)
                    if get_readings is None:
                        return NoWindow(f"{sensor} has no readings: maintenance.sensor_name must name a sensor")
                    readings: Any = await get_readings()
                    if isinstance(readings, Mapping):
                        return readings
                    return NoAnswer(f"they are {type(readings).__name__}, not a mapping")
            except Exception as error:
                return NoAnswer(str(error) or repr(error))
        return NoAnswer(f"nothing within {ANSWER_LIMIT:g} s")


def _remote_of(sensor: str) -> str:
    """`pi` of rdk:component:sensor/pi:door; empty for a resource of the machine itself."""
    head, colon, _ = sensor.partition("/")[2].partition(":")
    return head if colon else ""
