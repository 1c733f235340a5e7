"""The family that Linux provides, assembled. Each back end and its library is imported when it is first used."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from hal.linux.i2c import I2cBuses
    from hal.linux.spi import SpiBuses


class LinuxHardware:
    """Everything of this computer."""

    family = "linux"

    def __init__(self) -> None:
        self.reservations = Reservations()
        self._i2c: I2cBuses | None = None
        self._spi: SpiBuses | None = None

    def board(self, name: str = "") -> BoardDefinition:
        """The board called `name`, or what the device tree says this computer is."""
        from hal.boards.detect import find_board

        return find_board(name)

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """A line of the character device."""
        from hal.linux.gpio import digital_input

        return digital_input(line, settings)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """A line of the character device."""
        from hal.linux.gpio import digital_output

        return digital_output(line, settings)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """A channel of sysfs, or a line that software toggles."""
        if isinstance(target, PwmChannel):
            from hal.linux.pwm import hardware_pwm

            return hardware_pwm(target)
        from hal.linux.software_pwm import software_pwm

        return software_pwm(target)

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """A bus of i2c-dev."""
        if self._i2c is None:
            from hal.linux.i2c import I2cBuses

            self._i2c = I2cBuses()
        return self._i2c.open(bus)

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """A device of spidev."""
        if self._spi is None:
            from hal.linux.spi import SpiBuses

            self._spi = SpiBuses()
        return self._spi.open(bus, select, settings)

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """A terminal."""
        from hal.linux.serial import open_serial

        return open_serial(port, settings)

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """A device by libusb."""
        from hal.linux.usb import open_usb

        return open_usb(identity)

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """A capture device of Video4Linux."""
        from hal.linux.video import open_video

        return open_video(camera, settings)

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """A device of the input subsystem."""
        from hal.linux.evdev import open_controls

        return open_controls(identity, grab=grab)

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Events of udev, or of the kernel where no udev runs."""
        from hal.linux.hotplug import listen

        return listen()

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """A timer of the kernel."""
        from hal.linux.timer import ticks

        return ticks(period)
