"""Attributes of `common`. Pure."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from schema import Attributes, Parity, SerialIdentity, SerialSettings


def usb_number(text: str, key: str) -> int | None:
    """Parse a USB vendor or product number: hexadecimal, with or without 0x. None if empty; ValueError if invalid."""
    if not text:
        return None
    try:
        number = int(text, 16)
    except ValueError:
        number = -1
    if not 0 <= number <= 0xFFFF:
        raise ValueError(f"{key} {text!r} is not four hexadecimal digits such as 0403, as lsusb prints them")
    return number


class SerialAttributes(Attributes, kw_only=True, frozen=True):
    """Attributes of a serial port. Name the port by `path`, or by the identity of its USB device."""

    path: str = ""  # path of the port; paths under /dev/serial/by-id do not change when devices are replugged
    vendor_id: str = ""  # USB vendor number in hexadecimal, as lsusb prints it
    product_id: str = ""  # USB product number in hexadecimal
    serial_number: str = ""  # serial number of the USB device
    interface: Annotated[int, msgspec.Meta(ge=0)] | None = None  # USB interface number, for a device with several ports
    baud: Annotated[int, msgspec.Meta(gt=0)] = 115200  # bits per second; any rate that the port supports
    bits: Literal[5, 6, 7, 8] = 8  # data bits
    parity: Parity = "none"  # none, even or odd
    stop_bits: Literal[1, 2] = 1  # stop bits
    hardware_flow: bool = False  # RTS/CTS flow control
    software_flow: bool = False  # XON/XOFF flow control

    def __post_init__(self) -> None:
        by_identity = bool(self.vendor_id or self.product_id or self.serial_number)
        if bool(self.path) == by_identity:
            raise ValueError(
                "give either path (such as /dev/serial/by-id/...), or vendor_id, product_id and serial_number"
            )
        if self.path and self.interface is not None:
            raise ValueError("interface is used only with vendor_id, product_id or serial_number")
        self.port()

    def port(self) -> str | SerialIdentity:
        """Return the port to open: a path or an identity."""
        return self.path or SerialIdentity(
            usb_number(self.vendor_id, "vendor_id"),
            usb_number(self.product_id, "product_id"),
            self.serial_number,
            self.interface,
        )

    def settings(self) -> SerialSettings:
        """Return the line settings."""
        return SerialSettings(self.baud, self.bits, self.parity, self.stop_bits, self.hardware_flow, self.software_flow)
