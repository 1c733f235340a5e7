"""Attributes of `gamepad`. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec

from models.devices.common.attributes import usb_number
from schema import Attributes, ControlsIdentity


class GamepadConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the gamepad. Without path, name and numbers, the first gamepad of the computer is used."""

    path: str = ""  # path of the event device; paths under /dev/input/by-id do not change when devices are replugged
    dev_file: str = ""  # another name of path
    name: str = ""  # name that the device reports, such as Xbox Wireless Controller
    vendor_id: str = ""  # USB or Bluetooth vendor number in hexadecimal, as lsusb prints it
    product_id: str = ""  # product number in hexadecimal
    serial_number: str = ""  # unique identifier of the device, such as its Bluetooth address
    auto_reconnect: bool = True  # stay ready while the gamepad is disconnected; if false, that is a failure
    grab: bool = False  # take exclusive use: no other program receives its events
    dead_zone: Annotated[float, msgspec.Meta(ge=0, le=0.9)] | None = None  # share of the travel; default: the device's

    def __post_init__(self) -> None:
        if self.path and self.dev_file:
            raise ValueError("path and dev_file mean the same; give one of them")
        self.identity()

    def identity(self) -> ControlsIdentity:
        """Return the identity to look for. ValueError if a number is invalid."""
        return ControlsIdentity(
            self.path or self.dev_file,
            self.name,
            usb_number(self.vendor_id, "vendor_id"),
            usb_number(self.product_id, "product_id"),
            self.serial_number,
        )
