"""Access to the registers of an I2C device: write a register's address, then write or read its content."""

from __future__ import annotations

from typing import Literal, TypeAlias

from hal.ports.i2c import I2cBus

Order: TypeAlias = Literal["big", "little"]


def place(bus: I2cBus, address: int) -> str:
    """Return the name of a device in errors and reservations, such as `i2c-1 address 0x48`."""
    return f"{bus.name} address 0x{address:02x}"


class Registers:
    """The registers of the device at an address, with 8-bit register addresses.

    A call is one transaction of at most one write and one read, since some controllers, including that of the Raspberry
    Pi, support no more between a start and a stop. Errors are those of the bus (HalError).
    """

    def __init__(self, bus: I2cBus, address: int, *, order: Order = "big") -> None:
        self.bus = bus
        self.address = address
        self.order: Order = order

    def __str__(self) -> str:
        return place(self.bus, self.address)

    async def read(self, register: int, count: int) -> bytes:
        """Read `count` bytes from `register` in the device's order."""
        return (await self.bus.transaction(self.address, bytes([register]), count))[0]

    async def write(self, register: int, data: bytes) -> None:
        """Write bytes to `register` and the following ones."""
        await self.bus.transaction(self.address, bytes([register]) + data)

    async def read_int(self, register: int, size: int = 1, *, signed: bool = False) -> int:
        """Read a number of `size` bytes in the device's byte order; two's complement if `signed`."""
        return int.from_bytes(await self.read(register, size), self.order, signed=signed)

    async def write_int(self, register: int, value: int, size: int = 1) -> None:
        """Write a number of `size` bytes; negative ones as two's complement. ValueError if it does not fit."""
        limit = 1 << (8 * size)
        if not -limit // 2 <= value < limit:
            raise ValueError(
                f"{value} does not fit into {size} byte{'s' if size > 1 else ''} of register 0x{register:02x}"
            )
        await self.write(register, (value % limit).to_bytes(size, self.order))
