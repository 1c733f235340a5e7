"""Compare ways to read a two-byte register over I2C: smbus2, smbus2 in a thread, our port, a resource."""

from __future__ import annotations

import os
import tempfile
import termios
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from fcntl import ioctl
from pathlib import Path
from typing import Any, ClassVar

import smbus2
import trio

from bench.hal import Way, compare, table
from engine.components.sensing.sensor import Sensor
from engine.registry import Registry
from engine.resource import Attributes, Extra, Started, Value
from hal.linux.hardware import LinuxHardware
from hal.linux.i2c.adapters import find_adapter
from hal.linux.i2c.bus import FUNC_I2C, I2C_FUNCS, I2cBuses
from hal.ports.i2c import I2cBus
from models import BUILTIN
from runtime.server.memory import open_machine
from schema.names import Model

IN_THREAD = "smbus2 in trio.to_thread.run_sync"
BY_RESOURCE = "the resource API, in process"
BUDGET = 1.5  # ratio of the resource API to smbus2 in a thread


class RegisterConfig(Attributes, kw_only=True, frozen=True):
    bus: str
    address: int
    register: int


class Register(Sensor):
    """A minimal driver."""

    Config: ClassVar[type[Attributes]] = RegisterConfig
    attributes: RegisterConfig

    async def run(self, *, task_status: Started) -> None:
        async with self.hardware.i2c(self.attributes.bus) as self._bus:
            task_status.started()
            await self._bus.lost()

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        data = await self._bus.transaction(self.attributes.address, bytes([self.attributes.register]), 2)
        return {"value": int.from_bytes(data[0], "big")}


class StandIn:
    """smbus2.SMBus on a file: the system calls of a real adapter, in which the kernel does nothing."""

    def __init__(self, path: str = "") -> None:
        self.fd = os.open(path, os.O_RDWR) if path else -1
        self.funcs = FUNC_I2C

    def i2c_rdwr(self, *messages: Any) -> None:
        no_adapter(self.fd)

    def close(self) -> None:
        os.close(self.fd)


def no_adapter(fd: int, request: int = 0, value: Any = 0) -> None:
    ioctl(fd, termios.FIONREAD, b"1234")
    if request == I2C_FUNCS:
        value[0] = FUNC_I2C


class BenchHardware(LinuxHardware):
    def __init__(self, buses: I2cBuses) -> None:
        super().__init__()
        self._buses = buses

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        return self._buses.open(bus)


async def measure(device: str, count: int, rounds: int) -> bool:
    """Print the figures of a real bus, or of a stub without `device`; return whether the budget is kept."""
    if device:
        bus, address, register = (*device.split(":"), "0")[:3]
        opened = ways(I2cBuses(), smbus2.SMBus, bus, int(address, 0), int(register, 0))
    else:
        print("I2C: no device given (--i2c); figures of a stub that takes no time")
        opened = stand_in()
    async with opened as ways_to_read:
        figures = await compare(ways_to_read, count, rounds)
    table("I2C, a register of two bytes", figures, IN_THREAD)
    ratio = figures[BY_RESOURCE] / figures[IN_THREAD]
    print(f"  {'budget kept' if ratio <= BUDGET else 'BUDGET MISSED'}: {ratio:.2f}, at most {BUDGET}")
    return ratio <= BUDGET


@asynccontextmanager
async def stand_in() -> AsyncIterator[dict[str, Way]]:
    """Open the ways to read from a bus stub."""
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/i2c-0", "w"):  # noqa: ASYNC230 - a file instead of the device node
            pass
        buses = I2cBuses(sys=Path(folder), dev=Path(folder), smbus=StandIn, ioctl=no_adapter)
        async with ways(buses, StandIn, "0", 0x48, 0) as opened_ways:
            yield opened_ways


@asynccontextmanager
async def ways(
    buses: I2cBuses, open_smbus: Any, bus: str, address: int, register: int
) -> AsyncIterator[dict[str, Way]]:
    """Open the ways to read a register, by name."""
    raw = open_smbus(str(buses.dev / find_adapter(bus, buses.sys, buses.dev).name))

    def plain() -> bytes:
        write, read = smbus2.i2c_msg.write(address, [register]), smbus2.i2c_msg.read(address, 2)
        raw.i2c_rdwr(write, read)
        return bytes(read)

    def by_smbus() -> bytes:
        word: int = raw.read_word_data(address, register)
        return word.to_bytes(2, "little")

    read = plain if raw.funcs & FUNC_I2C else by_smbus

    async def direct(count: int) -> None:
        for _ in range(count):
            read()

    async def in_thread(count: int) -> None:
        for _ in range(count):
            await trio.to_thread.run_sync(read)

    registry = Registry(BUILTIN)
    registry.add(Sensor.API, Model.parse("bench:hal:register"), Register)
    attributes = {"bus": bus, "address": address, "register": register}
    document = {
        "components": [{"name": "r", "api": str(Sensor.API), "model": "bench:hal:register", "attributes": attributes}]
    }
    try:
        async with (
            buses.open(bus) as port,
            open_machine(document, registry=registry, hardware=BenchHardware(buses)) as machine,
        ):
            await machine.machine.lifecycle.running.wait()
            host = machine.machine.roster.find("r")

            async def by_port(count: int) -> None:
                for _ in range(count):
                    await port.transaction(address, bytes([register]), 2)

            async def by_resource(count: int) -> None:
                for _ in range(count):
                    async with host.use() as resource:
                        assert isinstance(resource, Sensor)
                        await resource.get_readings()

            yield {
                "smbus2 alone, which blocks the loop": direct,
                IN_THREAD: in_thread,
                "the port": by_port,
                BY_RESOURCE: by_resource,
            }
    finally:
        raw.close()
