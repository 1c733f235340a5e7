"""A simulated motor whose power determines its speed and position, measured by an encoder if configured."""

from __future__ import annotations

import math
from typing import ClassVar, Final

import trio

from engine import Attributes, Board, Encoder, Extra, Motor, MotorProperties, PositionType, Powered, Started, model
from hal.sim import MotorPins, SimBoard, SimEncoder, SimMotor
from models.common.motion import ExclusiveMotion, check_finite
from models.fake.common.simulated import SimulatedResource
from models.fake.motor.attributes import FakeMotorConfig, Pins
from schema import ErrorKind, MachineError

DEFAULT_MAX_RPM: Final = 100.0
MIN_RPM: Final = 0.1  # slower speeds are rejected as mistakes


@model("rdk:builtin:fake")
class FakeMotor(SimulatedResource, Motor):
    """Approaches the speed of its power with a time constant of 50 ms. Without power it comes to rest; `stop` brakes.

    Programs that are tried with it expect that a stopped motor does not move any more.
    """

    Config: ClassVar[type[Attributes]] = FakeMotorConfig

    async def run(self, *, task_status: Started) -> None:
        """Add the motor to the simulated world until cancelled, then switch its power off."""
        config: FakeMotorConfig = self.attributes
        self._max_rpm = config.max_rpm or DEFAULT_MAX_RPM
        self._motion = ExclusiveMotion()
        self._zero = self._encoder_zero = 0.0
        self._board = self.dependency(Board, config.board) if config.board else None
        self._encoder = self.dependency(Encoder, config.encoder) if config.encoder else None
        direction = -1 if config.dir_flip or config.direction_flip else 1
        self._device = SimMotor(self.name.short, self._max_rpm, self.world.now(), mount=direction)
        if self._board is not None and config.pins is not None:
            if self.world.find(SimBoard, self._board.name.short) is not None:
                self._device.pins = self._bridge(self._board, config.pins)
            for pin in (config.pins.pwm,) if config.pins.pwm else (config.pins.a, config.pins.b):
                if pin and config.pwm_freq:
                    await self._board.set_pwm_frequency(pin, config.pwm_freq)
        if self._encoder is not None:
            self._device.encoder = self.world.find(SimEncoder, self._encoder.name.short)
            self._device.ticks_per_rotation = config.ticks_per_rotation
        with self.world.holding(self._device):
            task_status.started()
            try:
                await trio.sleep_forever()
            finally:
                with trio.move_on_after(2, shield=True):
                    await self._power(0.0)

    def _bridge(self, board: Board, pins: Pins) -> MotorPins:
        a, b, direction, pwm = (
            self.world.pin(board.name.short, pin) if pin else None for pin in (pins.a, pins.b, pins.dir, pins.pwm)
        )
        return MotorPins(self.world.wiring, self._device.shaft, a=a, b=b, direction=direction, pwm=pwm)

    async def _power(self, power: float) -> None:
        """Power the bridge or, without pins, the shaft; positive is forward for the user of the motor."""
        power *= self._device.mount
        config: FakeMotorConfig = self.attributes
        board, pins = self._board, config.pins
        if board is not None and pins is not None:
            await self._drive_pins(board, pins, power)
        bridge = self._device.pins
        now = self.world.now()
        # Repeat what the pins did, so that a planned stop of the shaft is discarded even if no pin changed.
        self._device.shaft.drive(power if bridge is None else bridge.power(now), now)

    async def _drive_pins(self, board: Board, pins: Pins, power: float) -> None:
        magnitude = abs(power)
        if power == 0 and pins.pwm:
            await board.set_pwm(pins.pwm, 0.0)
        if pins.dir and power != 0:
            await board.set_gpio(pins.dir, power > 0)
        for pin, on in ((pins.a, power > 0), (pins.b, power < 0)):
            if pin and pins.pwm:
                await board.set_gpio(pin, on)
            elif pin:
                await board.set_pwm(pin, magnitude if on else 0.0)
        if pins.pwm and power != 0:
            await board.set_pwm(pins.pwm, magnitude)
        if pins.en_high:
            await board.set_gpio(pins.en_high, power != 0)
        if pins.en_low:
            await board.set_gpio(pins.en_low, power == 0)

    def _limited(self, power: float) -> float:
        config: FakeMotorConfig = self.attributes
        magnitude = min(config.max_power_pct, max(config.min_power_pct, abs(power)))
        return math.copysign(magnitude, power) if power else 0.0

    def _power_for(self, rpm: float) -> float:
        check_finite("the speed", rpm)
        if abs(rpm) < MIN_RPM:
            raise MachineError(
                f"{self.name}: a speed of {rpm:g} rpm is nearly 0", kind=ErrorKind.INVALID, remedy="call stop instead"
            )
        if abs(rpm) > self._max_rpm:
            self.log.warning("speed limited", asked_rpm=rpm, max_rpm=self._max_rpm)
        return self._limited(max(-1.0, min(1.0, rpm / self._max_rpm)))

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Apply power within the configured limits."""
        check_finite("the power", power_pct)
        await self.access()
        await self._motion.supersede()
        await self._power(self._limited(max(-1.0, min(1.0, power_pct))))

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Apply the power for a speed. A speed above the maximum is limited with a warning."""
        power = self._power_for(rpm)
        await self.access()
        await self._motion.supersede()
        await self._power(power)

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn by exactly this number of revolutions. INVALID for 0."""
        check_finite("the number of revolutions", revolutions)
        power = abs(self._power_for(rpm))
        if revolutions == 0:
            raise MachineError(
                f"{self.name} cannot turn by 0 revolutions", kind=ErrorKind.INVALID, remedy="call stop instead"
            )
        now = await self.access()
        await self._turn_to(self._device.travel(now) + math.copysign(revolutions, rpm * revolutions), power)

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to exactly this position."""
        check_finite("the position", position_revolutions)
        power = abs(self._power_for(rpm))
        await self.access()
        await self._turn_to(position_revolutions + self._zero, power)

    async def _turn_to(self, target: float, power: float) -> None:
        shaft, direction = self._device.shaft, self._device.mount
        goal = target * direction
        async with self._motion.begin(lambda: self._power(0.0)):
            while True:
                heading = shaft.heading(goal, self.world.now())
                await self._power(heading * direction * power)
                rest_time = shaft.stop_at(goal, self.world.now())
                if rest_time is not None:
                    break
            await self.world.sleep_until(rest_time)
            # The shaft is already at rest; now update the pins.
            await self._power(0.0)

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Define the current position as `-offset`."""
        check_finite("the offset", offset)
        now = await self.access()
        self._zero = self._device.travel(now) + offset
        if self._encoder is not None:
            self._encoder_zero = await self._encoder_revolutions(self._encoder) + offset

    async def _encoder_revolutions(self, encoder: Encoder) -> float:
        ticks = (await encoder.get_position(PositionType.TICKS_COUNT)).value
        return self._device.mount * ticks / float(self.attributes.ticks_per_rotation)

    async def get_position(self, *, extra: Extra = None) -> float:
        """Return the revolutions from zero, as counted by the encoder if configured."""
        now = await self.access()
        if self._encoder is not None:
            return await self._encoder_revolutions(self._encoder) - self._encoder_zero
        return self._device.travel(now) - self._zero

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """Report support of positions."""
        await self.access()
        return MotorProperties(position_reporting=True)

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """Return the current power of the shaft."""
        await self.access()
        power = self._device.shaft.power * self._device.mount
        return Powered(is_on=power != 0, power_pct=power)

    async def stop(self, *, extra: Extra = None) -> None:
        """Switch the power off, and brake: the motor is at rest at once."""
        await self.access()
        await self._motion.supersede()
        await self._power(0.0)
        self._device.shaft.brake(self.world.now())

    async def is_moving(self) -> bool:
        """Return whether the motor is powered or executing a command; coasting after a stop does not count."""
        return self._device.shaft.driven(await self.access()) or self._motion.running
