"""Control of a motor's power bridge through the pins of a board."""

from __future__ import annotations

import math
from functools import partial

import trio

from engine import Board
from models.common.motion import halt_on_failure, run_all
from models.gpio.motor.bridge_pins import BridgePins


class Bridge:
    """The power of one motor: -1 to 1, where positive is forward, or backward with `flip`.

    Power is limited to `min_power` to `max_power`. The two inputs are never high at the same time: one is switched off
    before the other is switched on, and the direction changes only without power. If an error or a cancellation
    interrupts a change, every input is switched off. With all inputs off the motor coasts.
    """

    def __init__(
        self,
        board: Board,
        pins: BridgePins,
        *,
        frequency: int = 0,
        flip: bool = False,
        min_power: float = 0.0,
        max_power: float = 1.0,
    ) -> None:
        self.direction = 1  # current or last direction of the motor: 1 is forward
        self._board = board
        self._pins = pins
        self._frequency = frequency
        self._flip = -1 if flip else 1
        self._min_power, self._max_power = min_power, max_power
        self._lock = trio.Lock()
        self._state_known = False  # whether the state of every input is certain
        self._power = 0.0  # the last power written
        self._input_direction = 0  # direction of the inputs: -1 or 1; 0 while all are off

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
        power = limited(power, self._min_power, self._max_power) * self._flip
        async with self._lock:
            if self._state_known and power == self._power:
                return
            state_known, self._state_known = self._state_known, False
            async with halt_on_failure(self._all_off):
                if not state_known:
                    await self._all_off()
                await self._apply(power)
                self._state_known = True

    async def _apply(self, power: float) -> None:
        input_direction, magnitude = (power > 0) - (power < 0), abs(power)
        if input_direction != self._input_direction and self._input_direction:
            await self._all_off()
        if not input_direction:
            return
        board, pins = self._board, self._pins
        direction_changed = input_direction != self._input_direction
        self._power, self._input_direction = power, input_direction
        self.direction = input_direction * self._flip
        if direction_changed and pins.dir:
            await board.set_gpio(pins.dir, input_direction > 0)
        if direction_changed and pins.a and pins.pwm:
            await board.set_gpio(pins.a if input_direction > 0 else pins.b, True)
        await board.set_pwm(pins.pwm or (pins.a if input_direction > 0 else pins.b), magnitude)
        if direction_changed and pins.en_high:
            await board.set_gpio(pins.en_high, True)
        if direction_changed and pins.en_low:
            await board.set_gpio(pins.en_low, False)

    async def off(self) -> None:
        """Switch every input off, even if it should be off already; an error of one does not affect the others."""
        async with self._lock:
            await self._all_off()

    async def _all_off(self) -> None:
        board, pins = self._board, self._pins
        pwm_pins = pins.waves()
        # Not `dir`: if PWM could not be stopped, changing it would reverse the motor.
        level_pins = [pin for pin in (pins.a, pins.b, pins.en_high) if pin and pin not in pwm_pins]
        self._state_known = False
        await run_all(
            *(partial(board.set_pwm, pin, 0.0) for pin in pwm_pins),
            *(partial(board.set_gpio, pin, False) for pin in level_pins),
            *(partial(board.set_gpio, pin, True) for pin in (pins.en_low,) if pin),
        )
        self._state_known, self._power, self._input_direction = True, 0.0, 0


def limited(power: float, min_power: float, max_power: float) -> float:
    """Limit the magnitude of `power` (-1 to 1) to these limits; less than half of `min_power` becomes 0."""
    magnitude = min(max_power, abs(power))
    if magnitude == 0 or magnitude < min_power / 2:
        return 0.0
    return math.copysign(max(min_power, magnitude), power)
