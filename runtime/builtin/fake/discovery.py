"""Finds what is on the simulated bench, and the serial ports of the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hal.linux.serial import ports
from hal.sim.axes import SimAxes, SimControl
from hal.sim.device import Device
from runtime.builtin.fake.bench import OnBench
from runtime.resource import Extra
from runtime.services.discovery import Discovery, DiscoveryService

FAKE: Final = "rdk:builtin:fake"


class FakeDiscovery(OnBench, DiscoveryService):
    """Entries are complete: paste one into the machine's document and it works."""

    async def discover_resources(self, *, extra: Extra = None) -> Sequence[Discovery]:
        """The bench first, then the host's stable device paths."""
        await self.access()
        return [*self._bench(), *_serial_lines()]

    def _bench(self) -> Iterator[Discovery]:
        for device in self.world.devices():
            yield Discovery(device.name, f"rdk:component:{_api(device)}", FAKE)


def _api(device: Device) -> str:
    return device.look if isinstance(device, SimAxes | SimControl) else device.kind


def _serial_lines() -> Iterator[Discovery]:
    for index, path in enumerate(ports()):
        attributes = {"path": path, "baud": 115200, "parser": "json"}
        yield Discovery(f"serial-{index}", "rdk:component:sensor", "rdk:builtin:serial_line", attributes)
