"""Control of a motor's power bridge through the pins of a board."""

from __future__ import annotations

import math
from functools import partial

import trio

from catalogue.gpio.bridge import BridgePins
from runtime.engine.components.controls.board import Board
from runtime.models.motion import every, or_else


class Bridge:
    """The power of one motor: -1 to 1, where positive is forward, or backward with `flip`.

    Power is limited to `least` to `most`. The two inputs are never high at the same time: one is switched off before
    the other is switched on, and the direction changes only without power. If an error or a cancellation interrupts a
    change, every input is switched off. With all inputs off the motor coasts.
    """

    def __init__(
        self,
        board: Board,
        pins: BridgePins,
        *,
        frequency: int = 0,
        flip: bool = False,
        least: float = 0.0,
        most: float = 1.0,
    ) -> None:
        self.towards = 1  # current or last direction of the motor: 1 is forward
        self._board = board
        self._pins = pins
        self._frequency = frequency
        self._flip = -1 if flip else 1
        self._least, self._most = least, most
        self._lock = trio.Lock()
        self._known = False  # whether the state of every input is certain
        self._power = 0.0  # the last power written
        self._sense = 0  # direction of the inputs: -1 or 1; 0 while all are off

    @property
    def power(self) -> float:
        """The power applied last; still applied if switching it off failed."""
        return self._power * self._flip

    async def prepare(self) -> None:
        """Switch every input off and set the PWM frequency. MachineError of the board."""
        await self.off()
        if self._frequency:
            for pin in self._pins.waves():
                await self._board.set_pwm_frequency(pin, self._frequency)

    async def set(self, power: float) -> None:
        """Apply `power` within the limits. MachineError of the board, after which every input is off."""
        power = within(power, self._least, self._most) * self._flip
        async with self._lock:
            if self._known and power == self._power:
                return
            known, self._known = self._known, False
            async with or_else(self._all_off):
                if not known:
                    await self._all_off()
                await self._apply(power)
                self._known = True

    async def _apply(self, power: float) -> None:
        sense, magnitude = (power > 0) - (power < 0), abs(power)
        if sense != self._sense and self._sense:
            await self._all_off()
        if not sense:
            return
        board, pins = self._board, self._pins
        fresh = sense != self._sense
        self._power, self._sense = power, sense
        self.towards = sense * self._flip
        if fresh and pins.dir:
            await board.set_gpio(pins.dir, sense > 0)
        if fresh and pins.a and pins.pwm:
            await board.set_gpio(pins.a if sense > 0 else pins.b, True)
        await board.set_pwm(pins.pwm or (pins.a if sense > 0 else pins.b), magnitude)
        if fresh and pins.en_high:
            await board.set_gpio(pins.en_high, True)
        if fresh and pins.en_low:
            await board.set_gpio(pins.en_low, False)

    async def off(self) -> None:
        """Switch every input off, even if it should be off already; an error of one does not affect the others."""
        async with self._lock:
            await self._all_off()

    async def _all_off(self) -> None:
        board, pins = self._board, self._pins
        waves = pins.waves()
        # Not `dir`: if PWM could not be stopped, changing it would reverse the motor.
        levels = [pin for pin in (pins.a, pins.b, pins.en_high) if pin and pin not in waves]
        self._known = False
        await every(
            *(partial(board.set_pwm, pin, 0.0) for pin in waves),
            *(partial(board.set_gpio, pin, False) for pin in levels),
            *(partial(board.set_gpio, pin, True) for pin in (pins.en_low,) if pin),
        )
        self._known, self._power, self._sense = True, 0.0, 0


def within(power: float, least: float, most: float) -> float:
    """Limit the magnitude of `power` (-1 to 1) to `least` to `most`; less than half of `least` becomes 0."""
    magnitude = min(most, abs(power))
    if magnitude == 0 or magnitude < least / 2:
        return 0.0
    return math.copysign(max(least, magnitude), power)
