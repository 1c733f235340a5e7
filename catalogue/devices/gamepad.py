"""Attributes that `runtime.builtin.devices.gamepad` reads."""

from __future__ import annotations

from typing import Annotated

import msgspec

from catalogue.devices.attributes import usb_number
from hal.ports.controls import ControlsIdentity
from schema.attributes import Attributes


class GamepadConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the gamepad. Without path, name and numbers it is the first one that the computer knows."""

    path: str = ""  # of its event device; one under /dev/input/by-id stays the same after unplugging
    dev_file: str = ""  # the same by its other name
    name: str = ""  # what it calls itself, such as Xbox Wireless Controller
    vendor_id: str = ""  # USB or Bluetooth vendor in hexadecimal, as lsusb prints it
    product_id: str = ""  # product in hexadecimal
    serial_number: str = ""  # what makes it unique, such as its Bluetooth address
    auto_reconnect: bool = True  # stay ready without it; otherwise it must be there, and losing it is a failure
    grab: bool = False  # nobody else on this computer hears it
    dead_zone: Annotated[float, msgspec.Meta(ge=0, le=0.9)] | None = None  # share of the way; else as it says itself

    def __post_init__(self) -> None:
        if self.path and self.dev_file:
            raise ValueError("path and dev_file mean the same; give one of them")
        self.identity()

    def identity(self) -> ControlsIdentity:
        """Which one."""
        return ControlsIdentity(
            self.path or self.dev_file,
            self.name,
            usb_number(self.vendor_id, "vendor_id"),
            usb_number(self.product_id, "product_id"),
            self.serial_number,
        )
