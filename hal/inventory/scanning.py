"""Take an inventory of all connected hardware."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import trio

from hal.errors import Fault, HalError
from hal.hardware import Hardware
from hal.inventory.board import device_tree, find_board
from hal.inventory.buses import i2c_adapters, one_wire, pwm_chips, spi_places
from hal.inventory.findings import Board, HardwareProblem, I2cAdapter, I2cDevice, Inventory
from hal.inventory.gpio import gpio_chips
from hal.inventory.media import cameras, input_devices
from hal.inventory.sysfs import ROOT
from hal.inventory.usb import serial_findings, usb_devices
from hal.ports.i2c import I2cBus
from schema import MachineError

SCAN_LIMIT: Final = 10.0  # seconds for one bus; a working bus takes 0.1 s, a stuck one a second per address
DISPLAY: Final = re.compile(
    r"gmbus|dpddc|ddc|aux |nvidia i2c|amdgpu|radeon|nvkm|drm|hdmi|fef0[49]500\.i2c|107d5082[08]0\.i2c", re.IGNORECASE
)
"""Adapters of screens and graphics cards; they are not probed, because some screens malfunction afterwards."""

_ON_LINUX: Final = ("linux", "gpiozero")
ChipsAt = Callable[[int], tuple[str, ...]]


def no_chips(address: int) -> tuple[str, ...]:
    """Return no chips, for an inventory that does not say which chips may be at an address."""
    return ()


async def take_inventory(
    hardware: Hardware, *, scan: bool = True, root: Path = ROOT, chips_at: ChipsAt = no_chips
) -> Inventory:
    """Return all hardware that is connected to the computer of `hardware`.

    With `scan`, the addresses of each I2C bus are probed like i2cdetect does, except those of screens and those used by
    drivers of the kernel or of this machine. `chips_at` returns the chips that may be at an address, the likely ones
    first. Failures are reported as problems in the result, never as exceptions. `root` contains /sys, /dev and /proc;
    for a family that is not on Linux, only the board's buses are listed.
    """
    if hardware.family not in _ON_LINUX:
        board = hardware.board()
        buses = tuple(_board_bus(number, path) for number, path in enumerate(board.i2c.values()))
        adapters, problems = await _scanned(hardware, buses, chips_at) if scan else (buses, ())
        return Inventory(Board(board.name, board.title), i2c=adapters, problems=problems)
    board = find_board(root=root)
    adapters, problems = i2c_adapters(root), ()
    if scan:
        adapters, problems = await _scanned(hardware, adapters, chips_at)
    return Inventory(
        Board(board.name, board.title, device_tree(root).model),
        gpio_chips(root),
        adapters,
        spi_places(root),
        serial_findings(root),
        usb_devices(root),
        cameras(root),
        input_devices(root),
        pwm_chips(root),
        one_wire(root),
        problems,
    )


def _board_bus(number: int, path: str) -> I2cAdapter:
    digits = re.search(r"(?<!\d)\d++$", path)
    return I2cAdapter(int(digits[0]) if digits else number, path, (), "")


async def _scanned(
    hardware: Hardware, adapters: tuple[I2cAdapter, ...], chips_at: ChipsAt
) -> tuple[tuple[I2cAdapter, ...], tuple[HardwareProblem, ...]]:
    """Scan the adapters one after the other; return them with their devices, and the problems that occurred."""
    scanned, problems = [], []
    for adapter in adapters:
        if DISPLAY.search(adapter.name):
            scanned.append(adapter)
            continue
        try:
            with trio.fail_after(SCAN_LIMIT):
                scanned.append(await _answering(hardware, adapter, chips_at))
        except (MachineError, trio.TooSlowError) as error:
            scanned.append(adapter)
            problems.append(_problem(adapter, error))
    return tuple(scanned), tuple(problems)


async def _answering(hardware: Hardware, adapter: I2cAdapter, chips_at: ChipsAt) -> I2cAdapter:
    from hal.inventory.i2c_scan import scan

    bound = {device.address: device for device in adapter.devices}
    async with hardware.i2c(adapter.path) as bus:
        prefix = f"{bus.name} address 0x"
        owned = {
            int(reserved.removeprefix(prefix), 16): owner
            for reserved, owner in hardware.reservations.all().items()
            if reserved.startswith(prefix)
        }
        addresses = await scan(_ReservingBus(bus, {**dict.fromkeys(bound, ""), **owned}))
    devices = tuple(
        bound.get(address) or I2cDevice(address, owned.get(address, ""), chips_at(address)) for address in addresses
    )
    return replace(adapter, scanned=True, devices=devices)


class _ReservingBus:
    """A bus that does not access addresses in use."""

    def __init__(self, bus: I2cBus, taken: Mapping[int, str]) -> None:
        self._bus = bus
        self._taken = taken

    @property
    def name(self) -> str:
        return self._bus.name

    async def transaction(self, address: int, *steps: bytes | int) -> list[bytes]:
        if address in self._taken:
            await trio.lowlevel.checkpoint()
            raise HalError(f"{self.name} address 0x{address:02x} is in use", Fault.BUSY)
        return await self._bus.transaction(address, *steps)

    async def lost(self) -> NoReturn:
        await self._bus.lost()


def _problem(adapter: I2cAdapter, error: MachineError | trio.TooSlowError) -> HardwareProblem:
    subject = f"{adapter.path} ({adapter.name})" if adapter.name else adapter.path
    if isinstance(error, trio.TooSlowError):
        return HardwareProblem(
            subject,
            f"the scan did not finish within {SCAN_LIMIT:g} s",
            "check the wiring and the pull-up resistors; power the bus off and on",
        )
    return HardwareProblem(subject, f"the scan failed: {error.message}", error.remedy)
