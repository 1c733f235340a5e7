"""The simulated implementation of all ports on the world of a bench, with functions for tests to change the world.

Lines, buses and chip selects exist when they are first used; a serial port or a USB device when it is plugged in.
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
from hal.sim.bench.world import World
from hal.sim.controls import SimGamepad, open_controls
from hal.sim.faults import Faults
from hal.sim.gpio.lines import Lines
from hal.sim.gpio.wiring import Pin
from hal.sim.hotplug import Hotplug
from hal.sim.i2c import SimI2cBus
from hal.sim.owners import Owners
from hal.sim.serial_port import SimSerialPort, fitting_port
from hal.sim.spi import SimSpiBus
from hal.sim.target import UsbTarget
from hal.sim.ticks import ticks
from hal.sim.usb import SimUsbDevice, fitting
from hal.sim.video import SimCamera

DEFAULT_BOARD: Final = "raspberry-pi-4"
_NUMBERED: Final = re.compile(r"(?:/dev/)?(?:i2c-|spidev)?(\d+)(?:\.\d+)?")


class Plug(Protocol):
    """A device that can be plugged in and unplugged."""

    def names(self) -> tuple[str, ...]:
        """Return the names of the device."""

    def plug(self) -> None:
        """Connect the device."""

    def unplug(self) -> None:
        """Disconnect the device."""


class SimHardware:
    """The hardware of a simulated computer. `world` is its bench; `lines` are its GPIO lines and PWM channels."""

    family = "sim"

    def __init__(self, world: World) -> None:
        self.world = world
        self.reservations = Reservations()
        self.lines = Lines(world.wiring, world.now, world.faults, Owners())
        self._boards: dict[str, BoardDefinition] = {}  # boards that drivers have requested
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
        """The faults of the bench."""
        return self.world.faults

    # ---- for tests

    def pin(self, line: Line | PwmChannel) -> Pin:
        """Return the pin of the world for a line or a PWM channel, to drive and connect it with `world.wiring`."""
        return self.lines.pin(line)

    def bus(self, name: str) -> SimI2cBus:
        """Return the I2C bus that drivers open as `i2c(name)`, to attach chips, stall or unplug it."""
        number = _number(name)
        if number not in self._i2c:
            self._i2c[number] = SimI2cBus(number, self.faults, self._events)
        return self._i2c[number]

    def spi_bus(self, name: str) -> SimSpiBus:
        """Return the SPI bus that drivers open as `spi(name, select, ...)`."""
        number = _number(name)
        if number not in self._spi:
            self._spi[number] = SimSpiBus(number, self.faults, self._events, self._owners)
        return self._spi[number]

    def plug_serial(
        self, path: str, by_id: str = "", *, identity: SerialIdentity | None = None, in_memory: bool = False
    ) -> SimSerialPort:
        """Plug in a new serial port at `path` and /dev/serial/by-id/`by_id`; use `in_memory` with a virtual clock."""
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
        """Return the camera above the bench that drivers open as `video(name, ...)`."""
        if name not in self._cameras:
            self._cameras[name] = SimCamera(name, self.world, self._events)
        return self._cameras[name]

    def set_plugged(self, name: str, plugged: bool) -> None:
        """Plug or unplug by name: `i2c-1`, `spidev0`, the path of a serial port, a USB socket, a GPIO chip in use."""
        devices: list[Plug] = [*self._i2c.values(), *self._spi.values(), *self._serial, *self._usb]
        for device in devices:
            if name in device.names():
                device.plug() if plugged else device.unplug()
                return
        if not self.lines.has_chip(name):
            raise ValueError(f"the bench has no device {name!r} to plug or unplug")
        self.lines.plug(name) if plugged else self.lines.unplug(name)

    def power_off(self) -> None:
        """Switch the computer off: its pins are released, and its actions have no effect until `power_on`."""
        self._set_powered(False)
        self.lines.power_off()

    def power_on(self) -> None:
        """Switch the computer on; no pin is an output yet."""
        self._set_powered(True)
        self.lines.power_on()

    def _set_powered(self, powered: bool) -> None:
        for bus in self._i2c.values():
            bus.powered = powered
        for spi in self._spi.values():
            spi.powered = powered

    # ---- for drivers

    def board(self, name: str = "") -> BoardDefinition:
        """Return the board `name`, by default a Raspberry Pi 4."""
        from hal.inventory.board import find_board

        board = find_board(name or DEFAULT_BOARD)
        self._boards[board.name] = board
        return board

    def digital_input(self, line: Line, settings: InputSettings) -> AbstractAsyncContextManager[DigitalInput]:
        """Open a pin of the world."""
        return self.lines.digital_input(line, settings)

    def digital_output(self, line: Line, settings: OutputSettings) -> AbstractAsyncContextManager[DigitalOutput]:
        """Open a pin of the world."""
        return self.lines.digital_output(line, settings)

    def pwm(self, target: PwmChannel | Line) -> AbstractAsyncContextManager[PwmOutput]:
        """Open a pin of the world; a channel is connected to the lines for it on the boards in use."""
        pins = [pin for board in self._boards.values() for pin in board.pins]
        return self.lines.pwm(target, tuple(pin.line for pin in pins if pin.pwm == target and pin.line is not None))

    def i2c(self, bus: str) -> AbstractAsyncContextManager[I2cBus]:
        """Open a bus of the world."""
        return self.bus(bus).opened()

    def spi(self, bus: str, select: int, settings: SpiSettings) -> AbstractAsyncContextManager[SpiDevice]:
        """Open a device of the world."""
        return self.spi_bus(bus).opened(select, settings)

    def serial(self, port: str | SerialIdentity, settings: SerialSettings) -> trio.abc.Stream:
        """Open a port of the world."""
        return fitting_port(self._serial, port).open(str(port), settings)

    def usb(self, identity: UsbIdentity) -> AbstractAsyncContextManager[UsbDevice]:
        """Open a device of the world."""
        return fitting(self._usb, identity).opened()

    def video(self, camera: str, settings: VideoSettings) -> AbstractAsyncContextManager[Video]:
        """Open a camera above the bench."""
        return self.camera(camera).opened(settings)

    def controls(self, identity: ControlsIdentity, *, grab: bool = False) -> AbstractAsyncContextManager[Controls]:
        """Open a gamepad of the world."""
        return open_controls(self._gamepads, identity, grab=grab)

    def hotplug(self) -> AbstractAsyncContextManager[HotplugEvents]:
        """Listen to devices that are plugged in and unplugged in the world."""
        return self._events.listening()

    def ticks(self, period: float) -> AbstractAsyncContextManager[Ticks]:
        """Yield periodic ticks of Trio's clock, virtual or real."""
        return ticks(period)


def _number(name: str) -> str:
    """Return the number in a bus name; a name without a number is returned unchanged."""
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name
