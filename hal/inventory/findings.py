"""The records of an inventory. Pure; `msgspec.to_builtins` converts them for JSON."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GpioLine:
    """A GPIO line: the kernel's name for it and its user, both empty if unknown."""

    offset: int
    name: str = ""
    used_by: str = ""
    output: bool = False


@dataclass(frozen=True, slots=True)
class GpioChip:
    """A GPIO chip: its name such as `gpiochip0`, label and lines; without lines if this user may not open it."""

    name: str
    path: str
    label: str
    count: int
    lines: tuple[GpioLine, ...] = ()


@dataclass(frozen=True, slots=True)
class I2cDevice:
    """A device at an address: the kernel `driver` that uses it, or else the chips that commonly have this address."""

    address: int
    driver: str = ""
    likely: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class I2cAdapter:
    """An I2C bus: its number, the adapter's name and its devices. `scanned` is False if addresses were not probed."""

    number: int
    path: str
    stable: tuple[str, ...]  # names that do not depend on the probing order, the best first
    name: str
    scanned: bool = False
    devices: tuple[I2cDevice, ...] = ()

    @property
    def best(self) -> str:
        """The path to use in a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class SpiPlace:
    """A chip select that programs may use, or that a kernel driver uses."""

    bus: int
    select: int
    path: str  # empty if a kernel driver uses it
    driver: str = ""
    stable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SerialFinding:
    """A serial port and, if it is a USB device, its ids (hexadecimal, as lsusb prints them)."""

    path: str
    stable: tuple[str, ...] = ()
    vendor: str = ""
    product: str = ""
    serial: str = ""
    interface: int | None = None
    title: str = ""

    @property
    def best(self) -> str:
        """The path to use in a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class UsbFinding:
    """A USB device that is not a hub. `port` is the kernel's name of the socket, `drivers` those of the interfaces."""

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
    """A camera or another source of images."""

    path: str
    name: str
    stable: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The path to use in a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class InputFinding:
    """An input device; `kind` is gamepad, keyboard, mouse or other."""

    path: str
    name: str
    kind: str
    stable: tuple[str, ...] = ()

    @property
    def best(self) -> str:
        """The path to use in a configuration."""
        return self.stable[0] if self.stable else self.path


@dataclass(frozen=True, slots=True)
class PwmFinding:
    """A PWM chip: its name such as `pwmchip0`, the name of its device, and the number of channels."""

    name: str
    device: str
    channels: int


@dataclass(frozen=True, slots=True)
class OneWireFinding:
    """A device on a 1-wire bus: its id such as `28-0316a2797bff`, and its type by the family code."""

    id: str
    path: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class HardwareProblem:
    """A problem with the use of a device: the subject, the reason and the remedy."""

    subject: str
    reason: str
    remedy: str
    hint: bool = False  # informational only


@dataclass(frozen=True, slots=True)
class Board:
    """The board of this computer."""

    name: str
    title: str
    model: str = ""  # from the firmware


@dataclass(frozen=True, slots=True)
class Inventory:
    """All hardware of a computer that was found, and problems with it."""

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
    problems: tuple[HardwareProblem, ...] = ()
