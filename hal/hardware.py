"""Hardware: a family of back ends, and everything that a driver can open through it.

It is created by the composition root and passed to drivers, which do not depend on the family. Leaving a context
manager releases what it has opened, outputs at their safe level first. Opening raises HalError.
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
    """A family: `linux`, `sim` or `gpiozero`."""

    @property
    def family(self) -> str:
        """The name of the family."""

    @property
    def reservations(self) -> Reservations:
        """The owners of pins and addresses in the whole machine."""

    def board(self, name: str = "") -> BoardDefinition:
        """Return the board `name`, by default that of this computer; NOT_FOUND with similar names."""

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Open a line as an input."""

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a line as an output at its safe level."""

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a hardware channel, or a line on which software generates the wave (slow and with jitter)."""

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """Open or share a bus, given by number (`1`), path (/dev/i2c-1, a stable link) or the name of its adapter."""

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """Open the device at chip select `select` of a bus, given by number (`0`) or path (/dev/spidev0.0)."""

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Open the serial port with that path or identity for exclusive use; the caller closes it."""

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """Open the only device that matches `identity`; HalError with a list of devices if none or several match."""

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """Open a camera, given by path (stable below /dev/v4l/by-id) or by its own name; the first one if empty."""

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """Open a gamepad or similar device; with `grab`, other programs do not receive its events."""

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Listen to hot-plug events."""

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """Yield ticks every `period` seconds, the first one period after entering."""
