"""PCA9685: 16 outputs with pulse-width modulation of 12 bits, on I2C (NXP PCA9685 revision 4, 16 April 2015)."""

from __future__ import annotations

from typing import Final

import trio

from hal.chips.chip import Chip
from hal.registers import Registers

CHANNELS: Final = 16
COUNTS: Final = 4096  # steps of one period, section 7.3.3

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
FULL: Final = 0x1000  # bit 12 of ON: always on; of OFF: always off, which wins (section 7.3.3)

OSCILLATOR: Final = 25e6  # Hz, section 7.3.5
FIRST_PRE_SCALE: Final = 3  # "the hardware forces a minimum value", section 7.3.5
LAST_PRE_SCALE: Final = 255
WAKE_TIME: Final = 500e-6  # s until the oscillator runs, section 7.3.1.1


def frequency_of(pre_scale: int) -> float:
    """Hz of all outputs; section 7.3.5, equation 1."""
    return OSCILLATOR / (COUNTS * (pre_scale + 1))


LOWEST: Final = frequency_of(LAST_PRE_SCALE)  # 23.8 Hz
HIGHEST: Final = frequency_of(FIRST_PRE_SCALE)  # 1526 Hz


def pre_scale_of(frequency: float) -> int:
    """The register that comes nearest to a frequency in Hz; ValueError beyond what the chip can."""
    pre_scale = round(OSCILLATOR / (COUNTS * frequency)) - 1 if frequency > 0 else 0
    if not FIRST_PRE_SCALE <= pre_scale <= LAST_PRE_SCALE:
        raise ValueError(f"a PCA9685 makes {LOWEST:.0f} to {HIGHEST:.0f} Hz, not {frequency:g} Hz")
    return pre_scale


def words_of(duty: float) -> tuple[int, int]:
    """ON and OFF of an output that is on for `duty` (0 to 1) of each period, rounded to 1/4096; figures 7 and 8."""
    off = round(duty * COUNTS)
    if off <= 0:
        return 0, FULL
    return (FULL, 0) if off >= COUNTS else (0, off)


def duty_of(on: int, off: int) -> float:
    """The duty that ON and OFF stand for."""
    if off & FULL:
        return 0.0
    if on & FULL:
        return 1.0
    return ((off - on) % COUNTS) / COUNTS


class Pca9685(Chip):
    """All outputs off after `configure`. A chip that was without power sleeps, and its outputs are off too."""

    title = "PCA9685"

    def __init__(
        self, registers: Registers, frequency: float = 200.0, *, inverted: bool = False, open_drain: bool = False
    ) -> None:
        super().__init__(registers)
        self.pre_scale = pre_scale_of(frequency)
        self._mode2 = (INVERT if inverted else 0) | (0 if open_drain else PUSH_PULL)

    @property
    def frequency(self) -> float:
        """Hz of all outputs, as the chip makes them: its oscillator is exact to a few percent."""
        return frequency_of(self.pre_scale)

    async def identify(self) -> None:
        """It has no identity: the three bits of MODE2 that read 0 tell as much as there is (table 6)."""
        value = await self.registers.read_int(MODE2)
        if value & 0xE0:
            raise self.stranger(f"MODE2 reads 0x{value:02x}")

    async def configure(self) -> None:
        """Outputs off, then the frequency, then awake."""
        await self.all_off()
        await self.registers.write_int(MODE2, self._mode2)
        await self._wake()
        mode1, mode2 = await self.registers.read_int(MODE1), await self.registers.read_int(MODE2)
        if mode1 & ~RESTART != AUTO_INCREMENT:
            raise self.forgetful("MODE1", AUTO_INCREMENT, mode1, 1)
        if mode2 != self._mode2:
            raise self.forgetful("MODE2", self._mode2, mode2, 1)

    async def configured(self) -> bool:
        """Power-up leaves it asleep, without auto-increment (MODE1 0x11)."""
        return await self.registers.read_int(MODE1) & ~RESTART == AUTO_INCREMENT

    async def all_off(self) -> None:
        """All outputs off at once, asleep or awake."""
        for offset, value in enumerate((0x00, 0x00, 0x00, FULL >> 8)):  # without auto-increment: one by one
            await self.registers.write_int(ALL_LED + offset, value)

    async def set_duty(self, channel: int, duty: float) -> None:
        """Let an output be on for `duty` (0 to 1) of each period; 0 and 1 are constant levels."""
        on, off = words_of(duty)
        data = on.to_bytes(2, "little") + off.to_bytes(2, "little")
        await self.registers.write(LED0 + 4 * channel, data)

    async def duty(self, channel: int) -> float:
        """The duty of an output, as the chip has it."""
        data = await self.registers.read(LED0 + 4 * channel, 4)
        return duty_of(int.from_bytes(data[:2], "little"), int.from_bytes(data[2:], "little"))

    async def set_frequency(self, frequency: float) -> None:
        """Change the frequency of all outputs (Hz), which pause for half a millisecond. ValueError beyond the chip."""
        pre_scale = pre_scale_of(frequency)
        if pre_scale != self.pre_scale:
            self.pre_scale = pre_scale
            await self._wake()

    async def _wake(self) -> None:
        # The frequency can be written only while it sleeps (section 7.3.5); RESTART lets waves go on (7.3.1.1).
        await self.registers.write_int(MODE1, AUTO_INCREMENT | SLEEP)
        await self.registers.write_int(PRE_SCALE, self.pre_scale)
        await self.registers.write_int(MODE1, AUTO_INCREMENT)
        await trio.sleep(WAKE_TIME)
        await self.registers.write_int(MODE1, AUTO_INCREMENT | RESTART)
