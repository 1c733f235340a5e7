"""Simulated PCA9685 (NXP revision 4, 16 April 2015): 16 outputs with pulse-width modulation."""

from __future__ import annotations

from collections.abc import Callable

import trio

from models.chips.common.simulated_registers import ByteRegisters

REGISTERS = frozenset((*range(0x46), *range(0xFA, 0x100)))  # table 4; the others do not exist


class Pca9685Target(ByteRegisters):
    """A PCA9685. `duty(n)`, `frequency` and `level(n)` describe the outputs; `enabled` is True if the pin OE is low."""

    def __init__(self, *, clock: Callable[[], float] = trio.current_time) -> None:
        self.enabled = True
        self._clock = clock
        self.power_cycle()

    def power_cycle(self) -> None:
        """Set the reset values: asleep, all outputs off, 200 Hz."""
        self.pointer = 0
        self._memory = bytearray(256)
        self._memory[0x00] = 0x11
        self._memory[0x01] = 0x04
        self._memory[0x02:0x06] = bytes([0xE2, 0xE4, 0xE8, 0xE0])
        for output in range(16):
            self._memory[0x09 + 4 * output] = 0x10
        self._memory[0xFE] = 0x1E
        self._running_from = float("inf")  # when the oscillator is running
        self._restart = False

    @property
    def frequency(self) -> float:
        """The frequency of the outputs in Hz."""
        return 25e6 / 4096 / (self._memory[0xFE] + 1)

    def duty(self, output: int) -> float:
        """Return the duty of an output (0 to 1); 0 while the chip sleeps, unless the output is always on."""
        on_low, on_high, off_low, off_high = self._memory[0x06 + 4 * output : 0x0A + 4 * output]
        if off_high & 0x10:
            return 0.0
        if on_high & 0x10:
            return 1.0
        if self._memory[0] & 0x10 or self._restart or self._clock() < self._running_from:
            return 0.0
        on, off = (on_high & 15) << 8 | on_low, (off_high & 15) << 8 | off_low
        return (off - on if off >= on else 4096 - on + off) / 4096

    def level(self, output: int) -> float:
        """Return the mean level of a pin, 0 to 1, including inversion and OE."""
        if not self.enabled:
            return (0.0, 1.0, 0.0, 0.0)[self._memory[1] & 3]
        duty = self.duty(output)
        return 1 - duty if self._memory[1] & 0x10 else duty

    def write(self, data: bytes) -> None:
        """Write registers; the pointer is incremented only with auto-increment (AI)."""
        super().write(data)

    def after(self, pointer: int) -> int:
        """Return the pointer after an access; auto-increment wraps from the outputs to 0 (section 7.3.1, table 5)."""
        if not self._memory[0] & 0x20:
            return pointer
        return 0 if pointer == 0x45 else (pointer + 1) & 0xFF

    def load(self, pointer: int) -> int:
        """Return a register; ALL_LED registers read 0 (section 7.3.4)."""
        if 0xFA <= pointer <= 0xFD or pointer not in REGISTERS:
            return 0
        if pointer == 0:
            return self._memory[0] | (0x80 if self._restart else 0)
        return self._memory[pointer]

    def store(self, pointer: int, value: int) -> None:
        """Write a mode or output register, or, while the chip sleeps, the frequency."""
        if pointer == 0:
            self._mode1(value)
        elif pointer == 1:
            self._memory[1] = value & 0x1F
        elif 0xFA <= pointer <= 0xFD:
            for output in range(16):
                self._memory[0x06 + 4 * output + pointer - 0xFA] = value & (0xFF if pointer % 2 == 0 else 0x1F)
            self._output_written()
        elif pointer == 0xFE:
            if self._memory[0] & 0x10:
                self._memory[0xFE] = max(3, value)
        elif 0x06 <= pointer <= 0x45:
            self._memory[pointer] = value & (0xFF if pointer % 2 == 0 else 0x1F)
            self._output_written()
        elif pointer in REGISTERS and pointer != 0xFF:
            self._memory[pointer] = value

    def _output_written(self) -> None:
        """Restart outputs that change with the stop condition (OCH 0) when one is written (section 7.3.1.1)."""
        if not self._memory[1] & 0x08:
            self._restart = False

    def _mode1(self, value: int) -> None:
        was_asleep = bool(self._memory[0] & 0x10)
        asleep = bool(value & 0x10)
        running = any(self.duty(output) not in (0.0, 1.0) for output in range(16))
        self._memory[0] = value & 0x7F
        if asleep and not was_asleep and running:
            self._restart = True
        if asleep:
            self._running_from = float("inf")
        elif was_asleep:
            self._running_from = self._clock() + 500e-6
        if value & 0x80 and self._restart and not asleep and self._clock() >= self._running_from:
            self._restart = False
