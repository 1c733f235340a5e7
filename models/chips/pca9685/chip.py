"""PCA9685: 16 outputs with 12-bit pulse-width modulation, on I2C (NXP PCA9685 revision 4, 16 April 2015)."""

from __future__ import annotations

from typing import Final

import trio

from hal import Registers
from models.chips.common.chip import Chip
from models.chips.pca9685.datasheet import COUNTS, frequency_of, pre_scale_of

CHANNELS: Final = 16
MODE1: Final = 0x00  # section 7.3, table 4
MODE2: Final = 0x01
LED0: Final = 0x06  # four registers for each output: ON low, ON high, OFF low, OFF high
ALL_LED: Final = 0xFA
PRE_SCALE: Final = 0xFE
AUTO_INCREMENT: Final = 0x20  # MODE1, table 5
SLEEP: Final = 0x10
RESTART: Final = 0x80
PUSH_PULL: Final = 0x04  # MODE2 OUTDRV, table 6
INVERT: Final = 0x10
FULL: Final = 0x1000  # bit 12 of ON: always on; of OFF: always off, which takes precedence (section 7.3.3)
WAKE_TIME: Final = 500e-6  # s until the oscillator runs, section 7.3.1.1


def words_of(duty: float) -> tuple[int, int]:
    """Return ON and OFF of an output with the given `duty` (0 to 1), rounded to 1/4096; figures 7 and 8."""
    off = round(duty * COUNTS)
    if off <= 0:
        return 0, FULL
    return (FULL, 0) if off >= COUNTS else (0, off)


def duty_of(on: int, off: int) -> float:
    """Return the duty (0 to 1) for ON and OFF."""
    if off & FULL:
        return 0.0
    if on & FULL:
        return 1.0
    return ((off - on) % COUNTS) / COUNTS


class Pca9685(Chip):
    """A PCA9685. Its outputs are off after `configure`, and also after a loss of power, when it sleeps."""

    title = "PCA9685"

    def __init__(
        self, registers: Registers, frequency: float = 200.0, *, inverted: bool = False, open_drain: bool = False
    ) -> None:
        super().__init__(registers)
        self.pre_scale = pre_scale_of(frequency)
        self._mode2 = (INVERT if inverted else 0) | (0 if open_drain else PUSH_PULL)

    @property
    def frequency(self) -> float:
        """The nominal frequency of all outputs in Hz; the oscillator is accurate to a few percent."""
        return frequency_of(self.pre_scale)

    async def identify(self) -> None:
        """Check the three bits of MODE2 that always read 0 (table 6): the chip has no identity register."""
        value = await self.registers.read_int(MODE2)
        if value & 0xE0:
            raise self.wrong_chip(f"MODE2 reads 0x{value:02x}")

    async def configure(self) -> None:
        """Switch the outputs off, set the frequency and wake the chip."""
        await self.all_off()
        await self.registers.write_int(MODE2, self._mode2)
        await self._wake()
        mode1, mode2 = await self.registers.read_int(MODE1), await self.registers.read_int(MODE2)
        if mode1 & ~RESTART != AUTO_INCREMENT:
            raise self.not_stored("MODE1", AUTO_INCREMENT, mode1, 1)
        if mode2 != self._mode2:
            raise self.not_stored("MODE2", self._mode2, mode2, 1)

    async def configured(self) -> bool:
        """Return whether the mode is still set; after power-up the chip sleeps without auto-increment (MODE1 0x11)."""
        return await self.registers.read_int(MODE1) & ~RESTART == AUTO_INCREMENT

    async def all_off(self) -> None:
        """Switch all outputs off at once; works also while the chip sleeps."""
        for offset, value in enumerate((0x00, 0x00, 0x00, FULL >> 8)):  # byte by byte: auto-increment may be off
            await self.registers.write_int(ALL_LED + offset, value)

    async def set_duty(self, channel: int, duty: float) -> None:
        """Set the duty of an output (0 to 1); 0 and 1 are constant levels."""
        on, off = words_of(duty)
        data = on.to_bytes(2, "little") + off.to_bytes(2, "little")
        await self.registers.write(LED0 + 4 * channel, data)

    async def duty(self, channel: int) -> float:
        """Read the duty of an output from the chip."""
        data = await self.registers.read(LED0 + 4 * channel, 4)
        return duty_of(int.from_bytes(data[:2], "little"), int.from_bytes(data[2:], "little"))

    async def set_frequency(self, frequency: float) -> None:
        """Change the frequency of all outputs (Hz), which pause for 0.5 ms. ValueError outside the range."""
        pre_scale = pre_scale_of(frequency)
        if pre_scale != self.pre_scale:
            self.pre_scale = pre_scale
            await self._wake()

    async def _wake(self) -> None:
        # The frequency can be written only while the chip sleeps (section 7.3.5); RESTART resumes the outputs
        # (7.3.1.1).
        await self.registers.write_int(MODE1, AUTO_INCREMENT | SLEEP)
        await self.registers.write_int(PRE_SCALE, self.pre_scale)
        await self.registers.write_int(MODE1, AUTO_INCREMENT)
        await trio.sleep(WAKE_TIME)
        await self.registers.write_int(MODE1, AUTO_INCREMENT | RESTART)
