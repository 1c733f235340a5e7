"""The Linux implementation of all ports. Each back end and its library is imported when it is first used."""

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
    from hal.linux.i2c.bus import I2cBuses
    from hal.linux.spi import SpiBuses


class LinuxHardware:
    """The hardware of this computer, through the interfaces of the Linux kernel."""

    family = "linux"

    def __init__(self) -> None:
        self.reservations = Reservations()
        self._i2c: I2cBuses | None = None
        self._spi: SpiBuses | None = None

    def board(self, name: str = "") -> BoardDefinition:
        """Return the board `name`, by default that of this computer."""
        from hal.inventory.board import find_board

        return find_board(name)

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Open a line of the GPIO character device."""
        from hal.linux.gpio.lines import digital_input

        return digital_input(line, settings)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a line of the GPIO character device."""
        from hal.linux.gpio.lines import digital_output

        return digital_output(line, settings)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a channel of a PWM chip, or a line on which software generates the wave."""
        if isinstance(target, PwmChannel):
            from hal.linux.pwm.sysfs import hardware_pwm

            return hardware_pwm(target)
        from hal.linux.pwm.software import software_pwm

        return software_pwm(target)

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """Open a bus through i2c-dev."""
        if self._i2c is None:
            from hal.linux.i2c.bus import I2cBuses

            self._i2c = I2cBuses()
        return self._i2c.open(bus)

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """Open a device through spidev."""
        if self._spi is None:
            from hal.linux.spi import SpiBuses

            self._spi = SpiBuses()
        return self._spi.open(bus, select, settings)

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Open a serial port."""
        from hal.linux.serial import open_serial

        return open_serial(port, settings)

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """Open a device through libusb."""
        from hal.linux.usb.device import open_usb

        return open_usb(identity)

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """Open a capture device of Video4Linux."""
        from hal.linux.video.camera import open_video

        return open_video(camera, settings)

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """Open a device of the input subsystem."""
        from hal.linux.evdev import open_controls

        return open_controls(identity, grab=grab)

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Listen to device events from udev, or from the kernel if udev does not run."""
        from hal.linux.hotplug import listen

        return listen()

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """Open a periodic kernel timer."""
        from hal.linux.timer import ticks

        return ticks(period)
