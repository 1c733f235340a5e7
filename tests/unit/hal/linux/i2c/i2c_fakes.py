"""Fakes of the kernel's I2C: a tree of files, and objects that act like smbus2 on certain adapters."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import smbus2

from hal.errors import HalError
from hal.linux.i2c import bus as i2c
from hal.linux.i2c import smbus
from hal.ports.i2c import I2cBus

STUB_FUNCTIONS = (
    smbus.QUICK
    | smbus.READ_BYTE
    | smbus.WRITE_BYTE
    | smbus.READ_BYTE_DATA
    | smbus.WRITE_BYTE_DATA
    | smbus.READ_WORD_DATA
    | smbus.WRITE_WORD_DATA
    | smbus.READ_BLOCK
    | smbus.WRITE_BLOCK
)
"""Functions of i2c-stub: STUB_FUNC_DEFAULT in Linux's drivers/i2c/i2c-stub.c."""


def error(number: int) -> OSError:
    return OSError(number, os.strerror(number))


class StubChip:
    """A chip of i2c-stub: 256 words, of which blocks use the low bytes, and a pointer that byte calls move."""

    def __init__(self) -> None:
        self.words = [0] * 256
        self.pointer = 0


class StubAdapter:
    """The calls of `smbus2.SMBus` that the HAL uses, as i2c-stub answers them."""

    def __init__(self, *addresses: int) -> None:
        self.functions = STUB_FUNCTIONS
        self.chips = {address: StubChip() for address in addresses}
        self.calls: list[str] = []

    def chip(self, address: int, call: str) -> StubChip:
        self.calls.append(call)
        if address not in self.chips:
            raise error(errno.ENODEV)
        return self.chips[address]

    def write_quick(self, address: int) -> None:
        self.chip(address, "write_quick")

    def read_byte(self, address: int) -> int:
        chip = self.chip(address, "read_byte")
        chip.pointer += 1
        return chip.words[chip.pointer - 1] & 0xFF

    def write_byte(self, address: int, value: int) -> None:
        self.chip(address, "write_byte").pointer = value

    def read_byte_data(self, address: int, register: int) -> int:
        chip = self.chip(address, "read_byte_data")
        chip.pointer = register + 1
        return chip.words[register] & 0xFF

    def write_byte_data(self, address: int, register: int, value: int) -> None:
        chip = self.chip(address, "write_byte_data")
        chip.words[register] = chip.words[register] & 0xFF00 | value
        chip.pointer = register + 1

    def read_word_data(self, address: int, register: int) -> int:
        return self.chip(address, "read_word_data").words[register]

    def write_word_data(self, address: int, register: int, value: int) -> None:
        self.chip(address, "write_word_data").words[register] = value

    def read_i2c_block_data(self, address: int, register: int, length: int) -> list[int]:
        words = self.chip(address, "read_i2c_block_data").words
        return [word & 0xFF for word in words[register : register + length]]

    def write_i2c_block_data(self, address: int, register: int, data: Sequence[int]) -> None:
        chip = self.chip(address, "write_i2c_block_data")
        for place, value in enumerate(data, register):
            chip.words[place] = chip.words[place] & 0xFF00 | value


class PlainAdapter:
    """`smbus2.SMBus` on an adapter with plain I2C: chips of 256 one-byte registers, and errors on request."""

    def __init__(self, *addresses: int) -> None:
        self.functions = i2c.FUNC_I2C | STUB_FUNCTIONS
        self.chips = {address: bytearray(range(256)) for address in addresses}
        self.fail: list[OSError] = []
        self.transfers: list[list[tuple[int, int, bytes]]] = []

    def i2c_rdwr(self, *messages: smbus2.i2c_msg) -> None:
        self.transfers.append([(m.addr, m.flags, b"" if m.flags else bytes(m)) for m in messages])
        if self.fail:
            raise self.fail.pop(0)
        register = 0
        for message in messages:
            if message.addr not in self.chips:
                raise error(errno.EREMOTEIO)
            chip = self.chips[message.addr]
            if message.flags:
                for place in range(message.len):
                    message.buf[place] = chip[register + place]
            elif data := bytes(message):
                register = data[0]
                chip[register : register + len(data) - 1] = data[1:]


class Kernel:
    """A computer whose I2C adapters are files below `root`; `buses` is the HAL's view of it."""

    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        self.dev = root / "dev"
        (self.sys / "bus/i2c/devices").mkdir(parents=True)
        self.dev.mkdir()
        self.adapters: dict[int, Any] = {}
        self.requests: list[tuple[int, Any]] = []
        self.refused: dict[int, int] = {}
        self.buses = i2c.I2cBuses(sys=self.sys, dev=self.dev, smbus=self._smbus, ioctl=self._ioctl)

    def plug(self, number: int, title: str, adapter: Any) -> None:
        self.adapters[number] = adapter
        device = self.sys / f"bus/i2c/devices/i2c-{number}"
        device.mkdir()
        (device / "name").write_text(f"{title}\n")
        (self.dev / f"i2c-{number}").touch()

    def unplug(self, number: int) -> None:
        del self.adapters[number]
        device = self.sys / f"bus/i2c/devices/i2c-{number}"
        (device / "name").unlink()
        device.rmdir()
        # Renamed, not deleted: a new file could get the same inode number, but a new device node does not.
        (self.dev / f"i2c-{number}").rename(self.dev / f"removed-{len(list(self.dev.iterdir()))}")

    def bind(self, number: int, address: int, driver: str) -> None:
        """Bind a kernel driver to the address."""
        drivers = self.sys / f"bus/i2c/drivers/{driver}"
        drivers.mkdir(parents=True, exist_ok=True)
        device = self.sys / f"bus/i2c/devices/{number}-{address:04x}"
        device.mkdir()
        (device / "driver").symlink_to(drivers)
        self.refused[address] = errno.EBUSY

    def _smbus(self) -> _Smbus:
        return _Smbus(self)

    def adapter(self, fd: int) -> Any:
        """Return the adapter whose node is open as `fd`."""
        return self.adapters[int(os.readlink(f"/proc/self/fd/{fd}").rpartition("-")[2])]

    def open_nodes(self) -> list[str]:
        """Return the paths of all nodes that are open now."""
        links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return [link for link in links if link.startswith(str(self.dev))]

    def _ioctl(self, fd: int, request: int, value: Any) -> None:
        adapter = self.adapter(fd)
        self.requests.append((request, value))
        if request == i2c.I2C_FUNCS:
            value[:] = adapter.functions.to_bytes(len(value), sys.byteorder)
        elif request == i2c.I2C_SLAVE and value in self.refused:
            raise error(self.refused[value])


class _Smbus:
    """`smbus2.SMBus` with a descriptor set by its user."""

    fd = -1

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernel.adapter(self.fd), name)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def watches() -> int:
    """Return the number of inotify instances of this process."""
    links = [os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
    return links.count("anon_inode:inotify")


async def failure(bus: I2cBus, address: int, *steps: bytes | int) -> HalError:
    with pytest.raises(HalError) as caught:
        await bus.transaction(address, *steps)
    return caught.value
