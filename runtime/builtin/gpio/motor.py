"""Motor `gpio`: a DC motor behind a power bridge, with or without an encoder."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any, ClassVar, Final

import trio

from catalogue.gpio.motor import GpioMotorConfig
from hal.control.pid import Gains
from hal.control.speed import DEFAULT_GAINS
from runtime.builtin.gpio.bridge import Bridge
from runtime.builtin.gpio.drive import Drive, check_rpm, check_way
from runtime.builtin.gpio.encoded import EncodedDrive
from runtime.builtin.gpio.encoder import SingleEncoder
from runtime.builtin.gpio.timed import TimedDrive
from runtime.builtin.motion import at_rest, finite
from runtime.components.board import Board
from runtime.components.encoder import Encoder
from runtime.components.motor import Motor, MotorProperties, Powered
from runtime.resource import Attributes, Extra, Started

RAMP_PERIOD: Final = 0.05  # seconds: what `ramp_rate` is counted in
DEFAULT_RPM: Final = 100.0  # assumed top speed of a motor with an encoder; feedback makes up for what is wrong with it


class GpioMotor(Motor):
    """Unpowered when it starts, when it stops, and when its board or its encoder fails. Without power it coasts.

    With an encoder, speeds are kept, and places are reached within a tick or half a degree, whichever is more. Without
    one, speed is power and way is time: the position is an estimate, and `max_rpm` must be configured for everything
    but set_power.
    """

    Config: ClassVar[type[Attributes]] = GpioMotorConfig
    _drive: Drive

    async def run(self, *, task_status: Started) -> None:
        """Own the pins. The power is taken away first and last."""
        config: GpioMotorConfig = self.attributes
        board = self.dependency(Board, config.board)
        self._bridge = Bridge(
            board,
            config.pins,
            frequency=config.pwm_freq,
            flip=config.dir_flip,
            least=config.min_power_pct,
            most=config.max_power_pct,
        )
        with ExitStack() as held:
            held.enter_context(self.reserve(*(board.identify(pin) for pin in config.pins.all())))
            if config.encoder:
                encoder = self.dependency(Encoder, config.encoder)
                if isinstance(encoder, SingleEncoder):
                    held.enter_context(encoder.following(lambda: self._bridge.towards * self._sense))
                self._drive = self._encoded(encoder)
            else:
                self._drive = TimedDrive(str(self.name), bridge=self._bridge, top_rpm=config.max_rpm)
            try:
                await self._bridge.prepare()
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._drive.run)
                    task_status.started()
            finally:
                await at_rest(self._bridge.off)

    @property
    def _sense(self) -> int:
        return -1 if self.attributes.dir_flip else 1

    def _encoded(self, encoder: Encoder) -> EncodedDrive:
        config: GpioMotorConfig = self.attributes
        top_rpm = config.max_rpm or DEFAULT_RPM
        gains = config.control_parameters
        given = Gains(gains.p, gains.i, gains.d)
        return EncodedDrive(
            str(self.name),
            bridge=self._bridge,
            encoder=encoder,
            ticks_per_rotation=config.ticks_per_rotation * self._sense,
            top_rpm=top_rpm,
            acceleration=config.ramp_rate / RAMP_PERIOD * top_rpm / 60,
            gains=DEFAULT_GAINS if given == Gains(0, 0, 0) else given,
            stall=config.stall_s,
            period=config.control_period_ms / 1000,
            ticks=self.hardware.ticks,
            log=self.log,
        )

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        """Apply power at once, within the configured limits."""
        finite("the power", power_pct)
        await self._drive.set_power(max(-1.0, min(1.0, power_pct)))

    async def set_rpm(self, rpm: float, *, extra: Extra = None) -> None:
        """Keep a speed: by the encoder, or by the power that should give it."""
        self._check_rpm(rpm)
        await self._drive.set_rpm(rpm)

    async def go_for(self, rpm: float, revolutions: float, *, extra: Extra = None) -> None:
        """Turn from here: until the encoder says so, or for the time it should take."""
        self._check_rpm(rpm)
        check_way(str(self.name), revolutions)
        await self._drive.go_for(abs(rpm), math.copysign(revolutions, rpm * revolutions))

    async def go_to(self, rpm: float, position_revolutions: float, *, extra: Extra = None) -> None:
        """Turn to a position; without an encoder from where it is estimated to be."""
        self._check_rpm(rpm)
        finite("the position", position_revolutions)
        await self._drive.go_to(abs(rpm), position_revolutions)

    def _check_rpm(self, rpm: float) -> None:
        check_rpm(str(self.name), rpm)
        top = self._drive.top_rpm
        if abs(rpm) > top > 0:
            self.log.warning("speed limited", asked_rpm=rpm, max_rpm=top)

    async def reset_zero_position(self, offset: float, *, extra: Extra = None) -> None:
        """Call the present position `-offset`."""
        finite("the offset", offset)
        await self._drive.reset_zero(offset)

    async def get_position(self, *, extra: Extra = None) -> float:
        """Revolutions from zero: as the encoder counted them, or estimated from power and time."""
        return await self._drive.position()

    async def get_properties(self, *, extra: Extra = None) -> MotorProperties:
        """Whether the position is measured."""
        await trio.lowlevel.checkpoint()
        return MotorProperties(position_reporting=bool(self.attributes.encoder))

    async def is_powered(self, *, extra: Extra = None) -> Powered:
        """What the bridge was told last."""
        await trio.lowlevel.checkpoint()
        power = self._bridge.power
        return Powered(is_on=power != 0, power_pct=power)

    async def stop(self, *, extra: Extra = None) -> None:
        """Take the power away; it coasts to rest."""
        await self._drive.stop()

    async def is_moving(self) -> bool:
        """True while it has power or is on its way somewhere; coasting after a stop is not moving by command."""
        await trio.lowlevel.checkpoint()
        return self._bridge.power != 0 or self._drive.busy

    async def get_status(self) -> Mapping[str, Any]:
        """Power and position."""
        return {"power_pct": self._bridge.power, "position_revolutions": await self._drive.position()}
