"""SHT30, SHT31, SHT35: temperature and humidity on I2C (Sensirion "Datasheet SHT3x-DIS", version 5, May 2018)."""

from __future__ import annotations

from typing import Final

import trio

from hal import Fault, HalError
from models.chips.common.chip import Chip

MEASURE: Final = b"\x24\x00"  # table 9: one measurement, high repeatability, no clock stretching
STATUS: Final = b"\xf3\x2d"  # table 17
BREAK: Final = b"\x30\x93"  # table 13: stop periodic measurements of another program
MEASURING_TIME: Final = 0.0155  # s, table 4: maximum at high repeatability and lowest supply voltage
BREAK_TIME: Final = 0.001  # s, section 4.8


def crc8(data: bytes) -> int:
    """Return the checksum of two bytes; table 20: polynomial 0x31, initial value 0xFF; that of 0xBEEF is 0x92."""
    crc = 0xFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ 0x31 if crc & 0x80 else crc << 1) & 0xFF
    return crc


def celsius(raw: int) -> float:
    """Convert to degrees Celsius; section 4.13."""
    return -45 + 175 * raw / 65535


def percent(raw: int) -> float:
    """Convert to relative humidity in percent; section 4.13."""
    return 100 * raw / 65535


class Sht3x(Chip):
    """An SHT3x. It has commands instead of registers, and no settings that could be lost."""

    title = "SHT3x"

    async def identify(self) -> None:
        """Check that the chip returns a status with a valid checksum."""
        reply = await self._answer(STATUS, 3)
        if crc8(reply[:2]) != reply[2]:
            raise self.wrong_chip(f"its answer to a status request is {reply.hex(' ')}")

    async def configure(self) -> None:
        """Stop measurements of another program, so that the chip accepts commands."""
        await self._command(BREAK)
        await trio.sleep(BREAK_TIME)

    async def measure(self) -> tuple[float, float]:
        """Measure degrees Celsius and percent of relative humidity. HalError (bus) for an invalid checksum."""
        await self._command(MEASURE)
        await trio.sleep(MEASURING_TIME)
        reply = (await self.registers.bus.transaction(self.registers.address, 6))[0]
        for word, crc in ((reply[0:2], reply[2]), (reply[3:5], reply[5])):
            if crc8(word) != crc:
                raise HalError(
                    f"{self}: {word.hex()} has the checksum 0x{crc:02x} instead of 0x{crc8(word):02x}",
                    Fault.BUS,
                    remedy="shorten the wires, or check the pull-up resistors",
                )
        return celsius(int.from_bytes(reply[0:2], "big")), percent(int.from_bytes(reply[3:5], "big"))

    async def _command(self, command: bytes) -> None:
        await self.registers.bus.transaction(self.registers.address, command)

    async def _answer(self, command: bytes, count: int) -> bytes:
        return (await self.registers.bus.transaction(self.registers.address, command, count))[0]
