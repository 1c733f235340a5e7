"""Generic component `usb`: commands for a raw USB device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import trio

from engine import Attributes, Generic, Started, model
from hal.ports import UsbDevice
from models.devices.common.commands import Keys, decoded, encoded, seconds, whole
from models.devices.common.encodings import Encoding
from models.devices.usb.attributes import UsbConfig
from schema import ErrorKind, MachineError

DEFAULT_TIMEOUT: Final = 5.0  # default limit of a transfer in seconds
LARGEST: Final = 1024 * 1024  # bytes per transfer
IN: Final = 0x80  # direction bit of endpoints and request types: from the device (USB 2.0, tables 9-2 and 9-13)
_COMMANDS: Final = ("control_in", "control_out", "bulk_read", "bulk_write", "info")
_SETUP: Final = ("request_type", "request", "value", "index")


@model("rdk:builtin:usb")
class Usb(Generic):
    """Opens the device exclusively, without a kernel driver. Fails when it is unplugged; the machine retries."""

    Config: ClassVar[type[Attributes]] = UsbConfig
    attributes: UsbConfig
    _device: UsbDevice  # set by run

    async def run(self, *, task_status: Started) -> None:
        """Run the driver; ready when the device is open. HalError (GONE) if it disappears."""
        async with self.hardware.usb(self.attributes.identity()) as self._device:
            task_status.started()
            await self._device.lost()

    async def do_command(self, command: Mapping[str, Any]) -> Mapping[str, Any]:
        """Execute one transfer.

        `control_in`: {request_type, request, value, index, length}; `control_out`: {request_type, request, value,
        index, data}; `bulk_read`: {endpoint, length} and `bulk_write`: {endpoint, data}, of bulk and interrupt
        endpoints; `info`: true. Numbers may be text such as "0x81". `value` and `index` default to 0. Optional keys:
        `timeout_s` (5) and `encoding` of data. Returns `data`, `written` (bytes) or the device's identity. TIMEOUT if
        the device does not answer; a read that times out loses no data.
        """
        keys = Keys(command, (*_COMMANDS, "timeout_s", "encoding"), str(self.name))
        encoding = keys.choice("encoding", ("utf-8", "latin-1", "base64"), self.attributes.encoding)
        limit = seconds(command, "timeout_s", DEFAULT_TIMEOUT)
        requested = [key for key in _COMMANDS if key in command]
        if len(requested) != 1:
            raise MachineError(
                "a command must have exactly one transfer",
                kind=ErrorKind.INVALID,
                remedy=f"use one of {', '.join(_COMMANDS)}",
            )
        (transfer,) = requested
        if transfer == "info":
            await trio.lowlevel.checkpoint()
            return self._info()
        details = command[transfer]
        if not isinstance(details, Mapping):
            raise MachineError(f"{transfer} is {details!r}", kind=ErrorKind.INVALID, remedy="use an object")
        try:
            with trio.fail_after(limit):
                return await self._transfer(transfer, details, encoding)
        except trio.TooSlowError:
            raise MachineError(
                f"{self.name}: the device has not answered {transfer} within {limit:g} s",
                kind=ErrorKind.TIMEOUT,
                remedy="check the endpoint, or increase timeout_s",
            ) from None

    def _info(self) -> Mapping[str, Any]:
        identity = self._device.identity
        return {
            "vendor_id": f"{identity.vendor:04x}",
            "product_id": f"{identity.product:04x}",
            "serial_number": identity.serial,
            "port": identity.port,
        }

    async def _transfer(self, transfer: str, details: Mapping[str, Any], encoding: Encoding) -> Mapping[str, Any]:
        device, name = self._device, f"{transfer} of {self.name}"
        match transfer:
            case "control_in":
                Keys(details, (*_SETUP, "length"), name)
                length = whole(details, "length", 0, 0xFFFF)
                data = await device.control_in(*_setup(details, IN), length)
                return {"data": encoded(data, encoding)}
            case "control_out":
                Keys(details, (*_SETUP, "data"), name)
                data = decoded(details.get("data", ""), encoding, "data")
                await device.control_out(*_setup(details, 0), data)
                return {"written": len(data)}
            case "bulk_read":
                Keys(details, ("endpoint", "length"), name)
                endpoint, length = whole(details, "endpoint", IN | 1, IN | 15), whole(details, "length", 1, LARGEST)
                return {"data": encoded(await device.read(endpoint, length), encoding)}
            case _:
                Keys(details, ("endpoint", "data"), name)
                data = decoded(details.get("data"), encoding, "data")
                await device.write(whole(details, "endpoint", 1, 15), data)
                return {"written": len(data)}


def _setup(details: Mapping[str, Any], direction: int) -> tuple[int, int, int, int]:
    """Parse a setup packet (USB 2.0, table 9-2). INVALID if its direction is not that of the command."""
    return (
        whole(details, "request_type", direction, direction | 0x7F),
        whole(details, "request", 0, 0xFF),
        whole(details, "value", 0, 0xFFFF, 0),
        whole(details, "index", 0, 0xFFFF, 0),
    )
