"""The simulated family, assembled: the same ports over the world of one bench."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import NoReturn

import trio

from hal.boards.definition import BoardDefinition
from hal.errors import Fault, HalError
from hal.ports.digital import DigitalInput, DigitalOutput, InputSettings, Line, OutputSettings
from hal.ports.hotplug import HotplugEvents
from hal.ports.i2c import I2cBus
from hal.ports.pwm import PwmChannel, PwmOutput
from hal.ports.serial import SerialSettings
from hal.ports.spi import SpiDevice, SpiSettings
from hal.ports.ticks import Ticks
from hal.ports.usb import UsbDevice, UsbIdentity
from hal.reservations import Reservations
from hal.sim.world import World


class SimHardware:
    """Everything of a simulated computer. `world` is the bench it stands on."""

    family = "sim"

    def __init__(self, world: World) -> None:
        self.world = world
        self.reservations = Reservations()

    def board(self, name: str = "") -> BoardDefinition:
        """The board called `name`; a Raspberry Pi 4 without a name."""
        _missing("boards")

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """A pin of the world."""
        _missing("digital lines")

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """A pin of the world."""
        _missing("digital lines")

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """A pin of the world."""
        _missing("PWM")

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """A bus of the world."""
        _missing("I2C")

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """A device of the world."""
        _missing("SPI")

    def serial(self, path: str, settings: SerialSettings) -> trio.abc.Stream:
        """A port of the world."""
        _missing("serial ports")

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """A device of the world."""
        _missing("USB")

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """What is plugged and unplugged in the world."""
        _missing("hot-plug")

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """A beat of the world's clock."""
        _missing("ticks")


def _missing(what: str) -> NoReturn:
    raise HalError(f"the simulated family has no {what} yet", Fault.UNSUPPORTED)
