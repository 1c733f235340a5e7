"""The simulated family, assembled: the same ports over the world of one bench, and what can be done to it from outside.

Lines, buses and selects exist as soon as they are named; a serial port or a USB device once it was plugged in.
"""

from __future__ import annotations

import re
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

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
from hal.sim.controls import SimGamepad, open_controls
from hal.sim.faults import Faults
from hal.sim.hotplug import Hotplug
from hal.sim.i2c import SimI2cBus
from hal.sim.lines import Lines
from hal.sim.owners import Owners
from hal.sim.serial_port import SimSerialPort, fitting_port
from hal.sim.spi import SimSpiBus
from hal.sim.target import UsbTarget
from hal.sim.ticks import ticks
from hal.sim.usb import SimUsbDevice, fitting
from hal.sim.video import SimCamera
from hal.sim.wiring import Pin
from hal.sim.world import World

DEFAULT_BOARD: Final = "raspberry-pi-4"
_NUMBERED: Final = re.compile(r"(?:/dev/)?(?:i2c-|spidev)?(\d+)(?:\.\d+)?")


class Plug(Protocol):
    """What can be plugged in and out."""

    def names(self) -> tuple[str, ...]:
        """By what it is known."""

    def plug(self) -> None:
        """Let it be there."""

    def unplug(self) -> None:
        """Let it be gone."""


class SimHardware:
    """Everything of a simulated computer. `world` is the bench it stands on; `lines` are its GPIO and PWM."""

    family = "sim"

    def __init__(self, world: World) -> None:
        self.world = world
        self.reservations = Reservations()
        self.lines = Lines(world.wiring, world.now, world.faults, Owners())
        self._boards: dict[str, BoardDefinition] = {}  # that drivers asked for
        self._events = Hotplug()
        self._owners = Owners()
        self._i2c: dict[str, SimI2cBus] = {}
        self._spi: dict[str, SimSpiBus] = {}
        self._serial: list[SimSerialPort] = []
        self._usb: list[SimUsbDevice] = []
        self._gamepads: list[SimGamepad] = []
        self._cameras: dict[str, SimCamera] = {}

    @property
    def faults(self) -> Faults:
        """Those of the bench."""
        return self.world.faults

    # ---- what a bench is built of

    def pin(self, line: Line | PwmChannel) -> Pin:
        """The pin of the world behind a line or a PWM channel: `world.wiring` drives it and wires it."""
        return self.lines.pin(line)

    def bus(self, name: str) -> SimI2cBus:
        """The I2C bus that drivers open as `i2c(name)`: attach chips to it, stall it, unplug it."""
        number = _number(name)
        if number not in self._i2c:
            self._i2c[number] = SimI2cBus(number, self.faults, self._events)
        return self._i2c[number]

    def spi_bus(self, name: str) -> SimSpiBus:
        """The SPI bus that drivers open as `spi(name, select, ...)`."""
        number = _number(name)
        if number not in self._spi:
            self._spi[number] = SimSpiBus(number, self.faults, self._events, self._owners)
        return self._spi[number]

    def plug_serial(
        self, path: str, by_id: str = "", *, identity: SerialIdentity | None = None, in_memory: bool = False
    ) -> SimSerialPort:
        """Plug in a new serial port at `path`, and at /dev/serial/by-id/`by_id`; `in_memory` for the virtual clock."""
        port = SimSerialPort(path, by_id, identity, in_memory=in_memory, faults=self.faults, hotplug=self._events)
        port.plug()
        self._serial.append(port)
        return port

    def plug_usb(self, identity: UsbIdentity, target: UsbTarget) -> SimUsbDevice:
        """Plug in a new USB device; `identity.port` is its socket."""
        device = SimUsbDevice(identity, target, faults=self.faults, hotplug=self._events, owners=self._owners)
        device.plug()
        self._usb.append(device)
        return device

    def plug_gamepad(self, identity: ControlsIdentity) -> SimGamepad:
        """Plug in a new gamepad at `identity.path`."""
        gamepad = SimGamepad(identity, self._events)
        gamepad.plug()
        self._gamepads.append(gamepad)
        return gamepad

    def camera(self, name: str = "") -> SimCamera:
        """The camera above the bench that drivers open as `video(name, ...)`."""
        if name not in self._cameras:
            self._cameras[name] = SimCamera(name, self.world, self._events)
        return self._cameras[name]

    def set_plugged(self, name: str, plugged: bool) -> None:
        """Plug or unplug by name: `i2c-1`, `spidev0`, a serial port's path, a USB socket, a GPIO chip in use."""
        things: list[Plug] = [*self._i2c.values(), *self._spi.values(), *self._serial, *self._usb]
        for thing in things:
            if name in thing.names():
                thing.plug() if plugged else thing.unplug()
                return
        if not self.lines.has_chip(name):
            raise ValueError(f"the bench has nothing called {name!r} to be plugged or unplugged")
        self.lines.plug(name) if plugged else self.lines.unplug(name)

    def power_off(self) -> None:
        """The computer has no power: its pins let go, and nothing it does reaches anybody, until `power_on`."""
        self._set_powered(False)
        self.lines.power_off()

    def power_on(self) -> None:
        """The power is back; no pin is an output yet."""
        self._set_powered(True)
        self.lines.power_on()

    def _set_powered(self, powered: bool) -> None:
        for bus in self._i2c.values():
            bus.powered = powered
        for spi in self._spi.values():
            spi.powered = powered

    # ---- what drivers open

    def board(self, name: str = "") -> BoardDefinition:
        """The board called `name`; a Raspberry Pi 4 without a name."""
        from hal.boards.detect import find_board

        board = find_board(name or DEFAULT_BOARD)
        self._boards[board.name] = board
        return board

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """A pin of the world."""
        return self.lines.digital_input(line, settings)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """A pin of the world."""
        return self.lines.digital_output(line, settings)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """A pin of the world; a channel comes out on the lines that the boards in use have for it."""
        pins = [pin for board in self._boards.values() for pin in board.pins]
        return self.lines.pwm(target, tuple(pin.line for pin in pins if pin.pwm == target and pin.line is not None))

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """A bus of the world."""
        return self.bus(bus).opened()

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """A device of the world."""
        return self.spi_bus(bus).opened(select, settings)

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """A port of the world."""
        return fitting_port(self._serial, port).open(str(port), settings)

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """A device of the world."""
        return fitting(self._usb, identity).opened()

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """A camera above the bench."""
        return self.camera(camera).opened(settings)

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """A gamepad of the world."""
        return open_controls(self._gamepads, identity, grab=grab)

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """What is plugged and unplugged in the world."""
        return self._events.listening()

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """A beat of Trio's clock, virtual or real."""
        return ticks(period)


def _number(name: str) -> str:
    """A bus by what all its names have in common; a name without a number is itself."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name
