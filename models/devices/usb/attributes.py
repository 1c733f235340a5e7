"""Attributes of `usb`. Pure."""

from __future__ import annotations

from models.devices.common.attributes import usb_number
from models.devices.common.encodings import Encoding
from schema import Attributes, UsbIdentity


class UsbConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the raw USB device."""

    vendor_id: str  # vendor number in hexadecimal, as lsusb prints it
    product_id: str  # product number in hexadecimal
    serial_number: str = ""  # serial number, if several such devices are connected
    port: str = ""  # USB port, as the kernel names it: 1-1.4
    encoding: Encoding = "base64"  # encoding of data in commands: base64, utf-8 or latin-1

    def __post_init__(self) -> None:
        self.identity()

    def identity(self) -> UsbIdentity:
        """Return the identity to look for. ValueError if a number is invalid."""
        vendor, product = usb_number(self.vendor_id, "vendor_id"), usb_number(self.product_id, "product_id")
        if vendor is None or product is None:
            raise ValueError("vendor_id and product_id are four hexadecimal digits each, as lsusb prints them")
        return UsbIdentity(vendor, product, self.serial_number, self.port)
