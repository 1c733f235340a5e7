"""Discovery of simulated devices and of the serial ports of this computer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from engine import Discovery, DiscoveryService, Extra, model
from hal.inventory import serial_port_paths
from hal.sim import Device, SimAxes, SimControl
from models.fake.common.simulated import SimulatedResource

FAKE: Final = "rdk:builtin:fake"


@model("rdk:builtin:fake")
class FakeDiscovery(SimulatedResource, DiscoveryService):
    """Returns complete entries for the machine's document."""

    async def discover_resources(self, *, extra: Extra = None) -> Sequence[Discovery]:
        """Return the simulated devices, then serial ports with stable paths."""
        await self.access()
        return [*self._bench(), *_serial_lines()]

    def _bench(self) -> Iterator[Discovery]:
        for device in self.world.devices():
            yield Discovery(device.name, f"rdk:component:{_api(device)}", FAKE)


def _api(device: Device) -> str:
    return device.look if isinstance(device, SimAxes | SimControl) else device.kind


def _serial_lines() -> Iterator[Discovery]:
    for index, path in enumerate(serial_port_paths()):
        attributes = {"path": path, "baud": 115200, "parser": "json"}
        yield Discovery(f"serial-{index}", "rdk:component:sensor", "rdk:builtin:serial_line", attributes)
