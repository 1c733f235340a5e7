"""Helpers for tests of chips: plant models on an emulated adapter, a machine that uses them, the kernel's drivers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from tests.hil.rig.guest import Guest
from tests.hil.rig.plant import Adapter, Thing
from tests.hil.rig.sdk import Sdk
from tests.hil.rig.server import Server

BUS = "i2c-tiny-usb"  # by the adapter's name, which does not change with its number
CHIPS = "models.chips"

# name: plant model, its arguments, address, API, model, attributes
TABLE: Mapping[str, tuple[str, dict[str, Any], int, str, str, dict[str, Any]]] = {
    "tmp102": ("tmp102:Tmp102Target", {}, 0x48, "sensor", "tmp102", {}),
    "lm75": ("lm75:Lm75Target", {}, 0x49, "sensor", "lm75", {}),
    "tmp75": ("lm75:Lm75Target", {"bits": 12}, 0x4F, "sensor", "lm75", {"chip": "tmp75"}),
    "bme280": ("bme280:Bme280Target", {}, 0x76, "sensor", "bme280", {"oversampling": 4}),
    "bmp280": ("bme280:Bme280Target", {"humid": False}, 0x77, "sensor", "bme280", {}),
    "sht3x": ("sht3x:Sht3xTarget", {}, 0x44, "sensor", "sht3x", {}),
    "ina219": ("ina2xx:Ina219Target", {}, 0x40, "power_sensor", "ina219", {}),
    "ina226": ("ina2xx:Ina226Target", {}, 0x41, "power_sensor", "ina226", {}),
    "ads1115": ("ads1115:Ads1115Target", {}, 0x4A, "sensor", "ads1115", {"samples_per_sec": 860}),
    "ads1015": ("ads1115:Ads1115Target", {"bits": 12}, 0x4B, "sensor", "ads1115", {"chip": "ads1015"}),
    "mpu6050": ("mpu6050:Mpu6050Target", {}, 0x68, "movement_sensor", "mpu6050", {}),
    "mpu6500": ("mpu6050:Mpu6050Target", {"who_am_i": 0x70}, 0x69, "movement_sensor", "mpu6050", {"accel_range_g": 16}),
    "pca9685": ("pca9685:Pca9685Target", {}, 0x60, "board", "pca9685", {"pwm_frequency_hz": 50}),
    "at24c32": ("at24:At24Target", {"size": 4096}, 0x50, "generic", "at24", {"chip": "24c32"}),
    "at24c02": ("at24:At24Target", {"size": 256}, 0x53, "generic", "at24", {"chip": "24c02"}),
}


def entry(name: str, **changes: Any) -> dict[str, Any]:
    """Return the configuration of a chip."""
    _, _, address, api, model, attributes = TABLE[name]
    return {
        "name": name,
        "api": f"rdk:component:{api}",
        "model": model,
        "attributes": {"i2c_bus": BUS, "i2c_address": address, **attributes, **changes},
    }


async def solder(adapter: Adapter, *names: str) -> dict[str, Thing]:
    """Attach the plant models of these chips to the bus."""
    models = {}
    for name in names:
        what, settings, address, *_ = TABLE[name]
        models[name] = await adapter.attach(address, f"{CHIPS}.{what}", **settings)
    return models


@asynccontextmanager
async def machine(guest: Guest, *names: str) -> AsyncIterator[tuple[Server, Sdk]]:
    """Run machine-server with these chips; yield it with a connected client of the official SDK."""
    async with guest.server({"components": [entry(name) for name in names]}) as server, server.sdk() as sdk:
        yield server, sdk


async def ready(server: Server, name: str, method: str = "get_readings", **arguments: Any) -> float:
    """Wait until a method succeeds again; return the seconds that took."""
    began = time.monotonic()
    with trio.fail_after(60):
        async with server.client() as client:
            while True:
                try:
                    await client.call(f"rdk:component:{TABLE[name][3]}", name, method, **arguments)
                except Exception:
                    await trio.sleep(0.05)
                else:
                    return time.monotonic() - began


def said(error: BaseException) -> str:
    """Return the message that a user of the official SDK reads."""
    return str(getattr(error, "message", error))


class Kernel:
    """A chip as seen by a driver of the kernel."""

    def __init__(self, guest: Guest, bus: str, address: int) -> None:
        self.guest = guest
        self.number = bus.removeprefix("/dev/i2c-")
        self.address = address
        self.folder = f"/sys/bus/i2c/devices/{self.number}-{address:04x}"

    async def bind(self, module: str, chip: str) -> None:
        await self.guest.run(f"modprobe {module}")
        await self.guest.run(f"echo {chip} 0x{self.address:02x} > /sys/bus/i2c/devices/i2c-{self.number}/new_device")

    async def release(self) -> None:
        await self.guest.run(f"echo 0x{self.address:02x} > /sys/bus/i2c/devices/i2c-{self.number}/delete_device")

    async def number_of(self, attribute: str) -> float:
        """Return the value of a sysfs attribute; its path may have a wildcard for the number of the device."""
        return float((await self.guest.run(f"cat {self.folder}/{attribute}")).stdout)


@asynccontextmanager
async def bound(guest: Guest, adapter: Adapter, address: int, module: str, chip: str) -> AsyncIterator[Kernel]:
    """Bind the kernel's driver to the chip until the block ends; skip the test if this kernel has no such driver."""
    if (await guest.run(["modprobe", module], check=False)).returncode:
        pytest.skip(f"the kernel has no {module}")
    kernel = Kernel(guest, adapter.bus, address)
    await kernel.bind(module, chip)
    try:
        yield kernel
    finally:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + 20):
            await kernel.release()


async def ours(server: Server, name: str, method: str = "get_readings") -> Any:
    async with server.client() as client:
        return await client.call(f"rdk:component:{TABLE[name][3]}", name, method)
