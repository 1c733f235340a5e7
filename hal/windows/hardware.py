"""The ports on Windows: ticks, and refusals with their reasons."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Final, NoReturn

import trio

from hal.boards.definition import BoardDefinition
from hal.errors import Fault, HalError
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

REMEDY: Final = "run this machine on Linux, or use a fake model, or a module with its own driver"
_BUSES: Final = "computers with Windows have no interface for it"
_LATER: Final = "this version has a driver for Linux only"


class WindowsHardware:
    """The hardware of this computer, if it runs Windows. Opening anything but ticks raises HalError (UNSUPPORTED)."""

    family = "windows"

    def __init__(self) -> None:
        self.reservations = Reservations()

    def board(self, name: str = "") -> BoardDefinition:
        """Refuse: a board needs GPIO."""
        _refuse("a board with GPIO", _BUSES)

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Refuse."""
        _refuse("GPIO", _BUSES)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Refuse."""
        _refuse("GPIO", _BUSES)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Refuse."""
        _refuse("PWM", _BUSES)

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """Refuse."""
        _refuse(f"the I2C bus {bus}", _BUSES)

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """Refuse."""
        _refuse(f"the SPI bus {bus}", _BUSES)

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Refuse."""
        _refuse(f"the serial port {port}", _LATER)

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """Refuse."""
        _refuse("direct access to a USB device", _LATER)

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """Refuse."""
        _refuse("a camera of this computer", _LATER)

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """Refuse."""
        _refuse("a gamepad", _LATER)

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Refuse."""
        _refuse("detection of new devices", _LATER)

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """Yield periodic ticks of Trio's clock, whose resolution on Windows is up to 16 ms."""
        from hal.sim.ticks import ticks

        return ticks(period)


def _refuse(what: str, reason: str) -> NoReturn:
    raise HalError(f"{what} is not available on Windows: {reason}", Fault.UNSUPPORTED, remedy=REMEDY)
