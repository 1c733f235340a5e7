"""Motor `gpio`: a DC motor on a power bridge, with or without an encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Board, Encoder, Extra, Motor, MotorProperties, Powered, Started, model
from hal.control import DEFAULT_GAINS, Gains
from models.common.drive import Drive, check_revolutions, check_rpm
from models.common.motion import check_finite, run_shielded
from models.gpio.encoder.model import SingleEncoder
from models.gpio.motor.attributes import GpioMotorConfig
from models.gpio.motor.bridge import Bridge
from models.gpio.motor.encoded import EncodedDrive
from models.gpio.motor.timed import TimedDrive

RAMP_PERIOD: Final = 0.05  # seconds: the time unit of `ramp_rate`
DEFAULT_RPM: Final = 100.0  # assumed highest speed of a motor with an encoder; feedback corrects errors


@model("rdk:builtin:gpio")
class GpioMotor(Motor):
    """Unpowered at start, at stop, and when its board or encoder fails. Without power it coasts.

    With an encoder, speeds are controlled and positions reached within a tick or half a degree, whichever is more.
    Without an encoder, speed is estimated from power, and position from time; all commands except set_power then need
    `max_rpm`.
    """

    Config: ClassVar[type[Attributes]] = GpioMotorConfig
    _drive: Drive

    async def run(self, *, task_status: Started) -> None:
        """Reserve the pins until cancelled. The power is switched off at start and at stop."""
        config: GpioMotorConfig = self.attributes
        board = self.dependency(Board, config.board)
        self._bridge = Bridge(
            board,
            config.pins,
            frequency=config.pwm_freq,
            flip=config.dir_flip,
            min_power=config.min_power_pct,
            max_power=config.max_power_pct,
        )
        with ExitStack() as stack:
            stack.enter_context(self.reserve(*(board.identify(pin) for pin in config.pins.all())))
            if config.encoder:
                encoder = self.dependency(Encoder, config.encoder)
                if isinstance(encoder, SingleEncoder):
                    stack.enter_context(encoder.following(lambda: self._bridge.direction * self._direction))
                self._drive = self._encoded(encoder)
            else:
                self._drive = TimedDrive(str(self.name), bridge=self._bridge, top_rpm=config.max_rpm)
            try:
                await self._bridge.prepare()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._drive.run)
                    task_status.started()
            finally:
                await run_shielded(self._bridge.off)

    @property
    def _direction(self) -> int:
        return -1 if self.attributes.dir_flip else 1

    def _encoded(self, encoder: Encoder) -> EncodedDrive:
        config: GpioMotorConfig = self.attributes
        top_rpm = config.max_rpm or DEFAULT_RPM
        gains = config.control_parameters
        configured = Gains(gains.p, gains.i, gains.d)
        return EncodedDrive(
            str(self.name),
            bridge=self._bridge,
            encoder=encoder,
            ticks_per_rotation=config.ticks_per_rotation * self._direction,
            top_rpm=top_rpm,
            acceleration=config.ramp_rate / RAMP_PERIOD * top_rpm / 60,
            gains=DEFAULT_GAINS if configured == Gains(0, 0, 0) else configured,
            stall=config.stall_s,
            period=config.control_period_ms / 1000,
            ticks=self.hardware.ticks,
            log=self.log,
        )

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Apply power at once within the configured limits."""
        check_finite("the power", power_pct)
        await self._drive.set_power(max(-1.0, min(1.0, power_pct)))

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Keep a speed, measured by the encoder or estimated from power."""
        self._check_rpm(rpm)
        await self._drive.set_rpm(rpm)

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn by a number of revolutions, measured by the encoder or estimated from time."""
        self._check_rpm(rpm)
        check_revolutions(str(self.name), revolutions)
        await self._drive.go_for(abs(rpm), math.copysign(revolutions, rpm * revolutions))

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position; without an encoder, from the estimated position."""
        self._check_rpm(rpm)
        check_finite("the position", position_revolutions)
        await self._drive.go_to(abs(rpm), position_revolutions)

    def _check_rpm(self, rpm: float) -> None:
        check_rpm(str(self.name), rpm)
        top_rpm = self._drive.top_rpm
        if abs(rpm) > top_rpm > 0:
            self.log.warning("speed limited", asked_rpm=rpm, max_rpm=top_rpm)

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Define the current position as `-offset`."""
        check_finite("the offset", offset)
        await self._drive.reset_zero(offset)

    async def get_position(self, *, extra: Extra = None) -> float:
        """Return the revolutions from zero, counted by the encoder or estimated from power and time."""
        return await self._drive.position()

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """Report whether the position is measured."""
        await trio.lowlevel.checkpoint()
        return MotorProperties(position_reporting=bool(self.attributes.encoder))

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """Return the power applied last."""
        await trio.lowlevel.checkpoint()
        power = self._bridge.power
        return Powered(is_on=power != 0, power_pct=power)

    async def stop(self, *, extra: Extra = None) -> None:
        """Switch the power off; the motor coasts to rest."""
        await self._drive.stop()

    async def is_moving(self) -> bool:
        """Return whether the motor is powered or executing a command; coasting after a stop does not count."""
        await trio.lowlevel.checkpoint()
        return self._bridge.power != 0 or self._drive.busy

    async def get_status(self) -> Mapping[str, Any]:
        """Return power and position."""
        return {"power_pct": self._bridge.power, "position_revolutions": await self._drive.position()}
