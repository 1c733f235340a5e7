"""The discovery service on simulated hardware, through its model."""

from __future__ import annotations

import pytest
import structlog
import trio
from trio.testing import MockClock

from engine.resource import Context
from hal.sim import World
from hal.sim.hardware import SimHardware
from models.chips.tmp102.simulation import Tmp102Target
from models.discovery.attributes import HardwareConfig
from models.discovery.model import HardwareDiscovery
from schema.errors import ErrorKind, MachineError
from schema.names import API, ResourceName


@pytest.fixture
async def sim(autojump_clock: MockClock) -> SimHardware:
    hardware = SimHardware(World())
    hardware.bus("1").attach(0x48, Tmp102Target())
    return hardware


def service(sim: SimHardware, **attributes: bool) -> HardwareDiscovery:
    name = ResourceName(API.parse("rdk:service:discovery"), "finder")
    return HardwareDiscovery(
        Context(name, HardwareConfig(**attributes), {}, sim.world, sim, structlog.get_logger("test"))
    )


async def test_answering_chips_are_offered_with_their_bus(sim: SimHardware) -> None:
    resources = await service(sim).discover_resources()
    assert (resources[0].name, resources[0].model) == ("local", "rdk:builtin:linux")
    assert (resources[1].name, resources[1].model) == ("tmp102-48", "rdk:builtin:tmp102")
    assert resources[1].attributes == {"i2c_bus": "/dev/i2c-1", "i2c_address": "0x48"}


async def test_the_scan_can_be_left_out(sim: SimHardware) -> None:
    assert [resource.name for resource in await service(sim, scan=False).discover_resources()] == ["local"]
    assert [item.name for item in await service(sim).discover_resources(extra={"scan": False})] == ["local"]


async def test_a_device_in_use_is_not_offered_again(sim: SimHardware) -> None:
    with sim.reservations.hold("rdk:component:sensor/t", "i2c-1 address 0x48"):
        assert [resource.name for resource in await service(sim).discover_resources()] == ["local"]


async def test_the_findings_themselves(sim: SimHardware) -> None:
    answer = await service(sim).do_command({"command": "inventory"})
    assert answer["board"]["name"] == "raspberry-pi-4"
    assert answer["i2c"][0]["devices"][0]["address"] == 0x48
    assert "TMP102" in answer["i2c"][0]["devices"][0]["likely"]


async def test_obstacles_are_reported(sim: SimHardware) -> None:
    sim.bus("1").stall()
    answer = await service(sim).do_command({"command": "problems"})
    assert answer["problems"][0]["subject"] == "/dev/i2c-1"
    assert answer["problems"][0]["remedy"]


async def test_an_unknown_command_names_the_right_ones(sim: SimHardware) -> None:
    with pytest.raises(MachineError, match=r"use ..command.: .inventory..") as caught:
        await service(sim).do_command({"inventory": True})
    assert caught.value.kind is ErrorKind.INVALID


async def test_two_clients_at_once(sim: SimHardware) -> None:
    finder = service(sim)
    results: list[int] = []

    async def look() -> None:
        results.append(len(await finder.discover_resources()))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(look)
        nursery.start_soon(look)
    assert results[0] == results[1] > 1
