"""What an inventory consists of. Pure; `msgspec.to_builtins` makes JSON of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpioLine:
    """One line: the kernel's name for it and who uses it, both empty if nobody said."""

    offset: int
    name: str = ""
    used_by: str = ""
    output: bool = False


@dataclass(frozen=True, slots=True)
class GpioChip:
    """One chip: `gpiochip0`, its label, and its lines, none of them if this user may not open it."""

    name: str
    path: str
    label: str
    count: int
    lines: tuple[GpioLine, ...] = ()


@dataclass(frozen=True, slots=True)
class I2cDevice:
    """Something at an address: `driver` if the kernel has it, otherwise chips that are known to live there."""

    address: int
    driver: str = ""
    likely: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class I2cAdapter:
    """One bus: its number, the adapter's name and what is there. `scanned` is False if nobody was asked."""

    number: int
    path: str
    stable: tuple[str, ...]  # names that survive another order of probing, the best first
    name: str
    scanned: bool = False
    devices: tuple[I2cDevice, ...] = ()

    @property
    def best(self) -> str:
        """The path to write into a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class SpiPlace:
    """One chip select that programs may use, or that a driver of the kernel has."""

    bus: int
    select: int
    path: str  # empty if a driver has it
    driver: str = ""
    stable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SerialFinding:
    """One serial port and, of a USB device, which one it is (hexadecimal, as lsusb prints it)."""

    path: str
    stable: tuple[str, ...] = ()
    vendor: str = ""
    product: str = ""
    serial: str = ""
    interface: int | None = None
    title: str = ""

    @property
    def best(self) -> str:
        """The path to write into a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class UsbFinding:
    """One USB device, hubs left out. `port` is the kernel's name of the socket, `drivers` those of the interfaces."""

    vendor: str
    product: str
    port: str
    serial: str = ""
    manufacturer: str = ""
    title: str = ""
    path: str = ""  # /dev/bus/usb/001/004
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CameraFinding:
    """One device that gives pictures."""

    path: str
    name: str
    stable: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The path to write into a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class InputFinding:
    """One input device; `kind` is gamepad, keyboard, mouse or other."""

    path: str
    name: str
    kind: str
    stable: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The path to write into a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class PwmFinding:
    """One PWM chip: `pwmchip0`, the name of its device, and how many channels."""

    name: str
    device: str
    channels: int


@dataclass(frozen=True, slots=True)
class OneWireFinding:
    """One device on a 1-wire bus: `28-0316a2797bff`, and what its family code says it is."""

    id: str
    path: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that stands in the way: of what, why, and what a person can do."""

    subject: str
    reason: str
    remedy: str
    hint: bool = False  # worth knowing, but nothing is wrong


@dataclass(frozen=True, slots=True)
class Board:
    """Which board this is."""

    name: str
    title: str
    model: str = ""  # as the firmware says


@dataclass(frozen=True, slots=True)
class Inventory:
    """Everything that was found."""

    board: Board
    gpio: tuple[GpioChip, ...] = ()
    i2c: tuple[I2cAdapter, ...] = ()
    spi: tuple[SpiPlace, ...] = ()
    serial: tuple[SerialFinding, ...] = ()
    usb: tuple[UsbFinding, ...] = ()
    cameras: tuple[CameraFinding, ...] = ()
    inputs: tuple[InputFinding, ...] = ()
    pwm: tuple[PwmFinding, ...] = ()
    one_wire: tuple[OneWireFinding, ...] = ()
    problems: tuple[Problem, ...] = ()
