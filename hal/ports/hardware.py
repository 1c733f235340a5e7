"""Hardware: one family of back ends, and everything a driver may open through it.

Owned by the composition root and given to drivers; a driver never knows which family it has. Each context manager
releases what it opened on leaving it, outputs at their safe level first. Opening raises HalError.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

import trio

from hal.boards.definition import BoardDefinition
from hal.ports.controls import Controls, ControlsIdentity
from hal.ports.digital import DigitalInput, DigitalOutput, InputSettings, Line, OutputSettings
from hal.ports.hotplug import HotplugEvents
from hal.ports.i2c import I2cBus
from hal.ports.pwm import PwmChannel, PwmOutput
from hal.ports.serial import SerialIdentity, SerialSettings
from hal.ports.spi import SpiDevice, SpiSettings
from hal.ports.ticks import Ticks
from hal.ports.usb import UsbDevice, UsbIdentity
from hal.ports.video import Video, VideoSettings
from hal.reservations import Reservations


class Hardware(Protocol):
    """One family: `linux`, `sim` or `gpiozero`."""

    @property
    def family(self) -> str:
        """Its name."""

    @property
    def reservations(self) -> Reservations:
        """Who uses which pin and address, for the whole machine."""

    def board(self, name: str = "") -> BoardDefinition:
        """The board called `name`, or the one this computer is; NOT_FOUND with near names, or what was looked at."""

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Take a line as an input."""

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Take a line as an output, at its safe level."""

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Take a hardware channel, or a line on which the wave is made by software (slow and not steady)."""

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """Share a bus, named by number (`1`), by path (/dev/i2c-1, a stable link) or by its adapter's name."""

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """Take the device at chip select `select` of a bus, named by number (`0`) or path (/dev/spidev0.0)."""

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Open the serial port with that path or identity, exclusively; the caller closes it."""

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """Take the device that fits `identity`; HalError if none does or several do, with what is there."""

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """Take a camera, named by path (stable under /dev/v4l/by-id) or by its own name; empty for the first one."""

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """Take a gamepad or the like; with `grab` nobody else on this computer hears it."""

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Listen to devices coming and going."""

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """A beat of `period` seconds, the first one period after entering."""
