"""Look at everything that is connected, now."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NoReturn

import trio

from hal.boards.detect import device_tree, find_board
from hal.chips.addresses import chips_at
from hal.errors import Fault, HalError
from hal.inventory.buses import i2c_adapters, one_wire, pwm_chips, spi_places
from hal.inventory.findings import Board, I2cAdapter, I2cDevice, Inventory, Problem
from hal.inventory.gpio import gpio_chips
from hal.inventory.media import cameras, input_devices
from hal.inventory.sysfs import ROOT
from hal.inventory.usb import serial_findings, usb_devices
from hal.ports.hardware import Hardware
from hal.ports.i2c import I2cBus
from schema.errors import MachineError

SCAN_LIMIT: Final = 10.0  # seconds for one bus; a free one takes a tenth of a second, a stuck one a second an address
DISPLAY: Final = re.compile(
    r"gmbus|dpddc|ddc|aux |nvidia i2c|amdgpu|radeon|nvkm|drm|hdmi|fef0[49]500\.i2c|107d5082[08]0\.i2c", re.IGNORECASE
)
"""Adapters of screens and graphics cards: nothing of ours is there, and some screens take a question amiss."""

_ON_LINUX: Final = ("linux", "gpiozero")


async def inventory(hardware: Hardware, *, scan: bool = True, root: Path = ROOT) -> Inventory:
    """Everything that is connected to the computer that `hardware` stands for.

    With `scan`, the addresses of each I2C bus are asked who answers, screens left out, and addresses that a driver of
    the kernel or of this machine has (i2cdetect asks the same way). What could not be looked at is a problem in the
    result, never an exception. `root` is where /sys, /dev and /proc are; a family that is not on Linux has its board's
    buses only.
    """
    if hardware.family not in _ON_LINUX:
        board = hardware.board()
        buses = tuple(_of_board(number, path) for number, path in enumerate(board.i2c.values()))
        adapters, problems = await _scanned(hardware, buses) if scan else (buses, ())
        return Inventory(Board(board.name, board.title), i2c=adapters, problems=problems)
    board = find_board(root=root)
    adapters, problems = i2c_adapters(root), ()
    if scan:
        adapters, problems = await _scanned(hardware, adapters)
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


def _of_board(number: int, path: str) -> I2cAdapter:
    digits = re.search(r"\d+$", path)
    return I2cAdapter(int(digits[0]) if digits else number, path, (), "")


async def _scanned(
    hardware: Hardware, adapters: tuple[I2cAdapter, ...]
) -> tuple[tuple[I2cAdapter, ...], tuple[Problem, ...]]:
    """The adapters with who answers, one after the other; and those that could not be asked."""
    found, problems = [], []
    for adapter in adapters:
        if DISPLAY.search(adapter.name):
            found.append(adapter)
            continue
        try:
            with trio.fail_after(SCAN_LIMIT):
                found.append(await _answering(hardware, adapter))
        except (MachineError, trio.TooSlowError) as error:
            found.append(adapter)
            problems.append(_problem(adapter, error))
    return tuple(found), tuple(problems)


async def _answering(hardware: Hardware, adapter: I2cAdapter) -> I2cAdapter:
    from hal.linux.i2c_scan import scan

    bound = {device.address: device for device in adapter.devices}
    async with hardware.i2c(adapter.path) as bus:
        prefix = f"{bus.name} address 0x"
        owned = {
            int(thing.removeprefix(prefix), 16): owner
            for thing, owner in hardware.reservations.all().items()
            if thing.startswith(prefix)
        }
        addresses = await scan(_Careful(bus, {**dict.fromkeys(bound, ""), **owned}))
    devices = tuple(
        bound.get(address) or I2cDevice(address, owned.get(address, ""), chips_at(address)) for address in addresses
    )
    return replace(adapter, scanned=True, devices=devices)


class _Careful:
    """A bus on which addresses that somebody has are not asked."""

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


def _problem(adapter: I2cAdapter, error: MachineError | trio.TooSlowError) -> Problem:
    subject = f"{adapter.path} ({adapter.name})" if adapter.name else adapter.path
    if isinstance(error, trio.TooSlowError):
        return Problem(
            subject,
            f"the scan was not done within {SCAN_LIMIT:g} s",
            "check the wiring and the pull-up resistors; power the bus off and on",
        )
    return Problem(subject, f"the scan failed: {error.message}", error.remedy)
