"""Fakes of libusb and of the kernel's view of USB, so that the tests cover pyusb itself."""

from __future__ import annotations

import array
import errno
import os
import queue
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import usb.backend
import usb.core
import usb.util

BULK_OUT, BULK_IN, INTERRUPT_IN = 0x01, 0x81, 0x82
PACKET = 64


def usb_error(number: int) -> usb.core.USBError:
    kind = usb.core.USBTimeoutError if number == errno.ETIMEDOUT else usb.core.USBError
    return kind(os.strerror(number), -1, number)


class Instrument:
    """A device with two interfaces: the first has bulk endpoints, the second an interrupt endpoint."""

    def __init__(self, bus: int, address: int) -> None:
        self.bus = bus
        self.address = address
        self.configured = True
        self.sends: queue.SimpleQueue[bytes | int] = queue.SimpleQueue()  # packets or errno values
        self.reads = 0
        self.taken = bytearray()
        self.takes: list[int] = []  # how many bytes each write accepts; if empty, all
        self.requests: list[tuple[int, int, int, int]] = []
        self.answers: dict[int, bytes | int] = {}  # reply or errno, by request
        self.drivers: dict[int, str] = {}
        self.log: list[str] = []
        self.fail: dict[str, int] = {}


class FakeLibusb(usb.backend.IBackend):  # type: ignore[misc]
    """The part of libusb that pyusb needs for instruments."""

    def __init__(self, *instruments: Instrument) -> None:
        self.instruments = list(instruments)

    def enumerate_devices(self) -> Any:
        return iter(self.instruments)

    def get_parent(self, dev: Instrument) -> None:
        return None

    def get_device_descriptor(self, dev: Instrument) -> SimpleNamespace:
        return SimpleNamespace(
            bLength=18, bDescriptorType=1, bcdUSB=0x200, bDeviceClass=0, bDeviceSubClass=0, bDeviceProtocol=0,
            bMaxPacketSize0=64, idVendor=0x1209, idProduct=0x0001, bcdDevice=1, iManufacturer=1, iProduct=2,
            iSerialNumber=3, bNumConfigurations=1, address=dev.address, bus=dev.bus, port_number=1, port_numbers=(1,),
            speed=2,
        )  # fmt: skip

    def get_configuration_descriptor(self, dev: Instrument, config: int) -> SimpleNamespace:
        if config:
            raise IndexError
        return SimpleNamespace(
            bLength=9, bDescriptorType=2, wTotalLength=48, bNumInterfaces=2, bConfigurationValue=1, iConfiguration=0,
            bmAttributes=0x80, bMaxPower=50, extra_descriptors=[], interface_length=2,
        )  # fmt: skip

    def get_interface_descriptor(self, dev: Instrument, intf: int, alt: int, config: int) -> SimpleNamespace:
        if alt or config or intf > 1:
            raise IndexError
        return SimpleNamespace(
            bLength=9, bDescriptorType=4, bInterfaceNumber=intf, bAlternateSetting=0, bNumEndpoints=2 - intf,
            bInterfaceClass=255, bInterfaceSubClass=0, bInterfaceProtocol=0, iInterface=0, extra_descriptors=[],
        )  # fmt: skip

    def get_endpoint_descriptor(self, dev: Instrument, ep: int, intf: int, alt: int, config: int) -> SimpleNamespace:
        address, attributes = [[(BULK_OUT, 2), (BULK_IN, 2)], [(INTERRUPT_IN, 3)]][intf][ep]
        return SimpleNamespace(
            bLength=7, bDescriptorType=5, bEndpointAddress=address, bmAttributes=attributes, wMaxPacketSize=PACKET,
            bInterval=1, bRefresh=0, bSynchAddress=0, extra_descriptors=[],
        )  # fmt: skip

    def open_device(self, dev: Instrument) -> Instrument:
        self._fail(dev, "open")
        return dev

    def close_device(self, handle: Instrument) -> None:
        handle.log.append("close")

    def set_configuration(self, handle: Instrument, value: int) -> None:
        handle.configured = True
        handle.log.append(f"configure {value}")

    def get_configuration(self, handle: Instrument) -> int:
        return int(handle.configured)

    def claim_interface(self, handle: Instrument, intf: int) -> None:
        self._fail(handle, "claim")
        if intf in handle.drivers:
            raise usb_error(errno.EBUSY)
        handle.log.append(f"claim {intf}")

    def release_interface(self, handle: Instrument, intf: int) -> None:
        self._fail(handle, "release")
        handle.log.append(f"release {intf}")

    def is_kernel_driver_active(self, handle: Instrument, intf: int) -> bool:
        return intf in handle.drivers

    def detach_kernel_driver(self, handle: Instrument, intf: int) -> None:
        self._fail(handle, "detach")
        handle.log.append(f"detach {handle.drivers.pop(intf)}")

    def attach_kernel_driver(self, handle: Instrument, intf: int) -> None:
        handle.log.append(f"attach {intf}")

    def clear_halt(self, handle: Instrument, ep: int) -> None:
        handle.log.append(f"clear halt {ep:02x}")

    def bulk_read(self, handle: Instrument, ep: int, intf: int, buff: array.array[int], timeout: int) -> int:
        handle.reads += 1
        try:
            packet = handle.sends.get(timeout=timeout / 1000)
        except queue.Empty:
            raise usb_error(errno.ETIMEDOUT) from None
        if isinstance(packet, int):
            raise usb_error(packet)
        if len(packet) > len(buff):
            raise usb_error(errno.EOVERFLOW)
        buff[: len(packet)] = array.array("B", packet)
        return len(packet)

    intr_read = bulk_read

    def bulk_write(self, handle: Instrument, ep: int, intf: int, data: array.array[int], timeout: int) -> int:
        self._fail(handle, "write")
        count = min(handle.takes.pop(0), len(data)) if handle.takes else len(data)
        if not count and len(data):
            raise usb_error(errno.ETIMEDOUT)
        handle.taken += data.tobytes()[:count]
        return count

    def ctrl_transfer(
        self, handle: Instrument, bm: int, request: int, value: int, index: int, data: array.array[int], timeout: int
    ) -> int:
        handle.requests.append((bm, request, value, index))
        answer = handle.answers.get(request, b"")
        if isinstance(answer, int):
            raise usb_error(answer)
        if not bm & usb.util.ENDPOINT_IN:
            handle.taken += data.tobytes()
            return len(data)
        count = min(len(answer), len(data))
        data[:count] = array.array("B", answer[:count])
        return count

    def _fail(self, instrument: Instrument, what: str) -> None:
        if number := instrument.fail.pop(what, 0):
            raise usb_error(number)


class UsbTree:
    """A computer whose USB devices are files below `root`."""

    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        self.dev = root / "dev"
        (self.sys / "bus/usb/devices").mkdir(parents=True)
        self.backend = FakeLibusb()

    def plug(self, port: str, serial: str = "", *, address: int = 4, vendor: str = "1209") -> Instrument:
        device = self.sys / "bus/usb/devices" / port
        (self.sys / f"bus/usb/devices/{port}:1.0").mkdir()
        (self.sys / f"bus/usb/devices/{port}:1.0/bInterfaceNumber").write_text("00\n")
        device.mkdir()
        facts = {"idVendor": vendor, "idProduct": "0001", "busnum": "1", "devnum": str(address), "serial": serial}
        facts |= {"manufacturer": "Acme", "product": "Meter"}
        for name, value in facts.items():
            if value:
                (device / name).write_text(f"{value}\n")
        node = self.dev / f"bus/usb/001/{address:03d}"
        node.parent.mkdir(parents=True, exist_ok=True)
        node.touch()
        self.backend.instruments.append(instrument := Instrument(1, address))
        return instrument

    def bind(self, port: str, driver: str) -> None:
        drivers = self.sys / f"bus/usb/drivers/{driver}"
        drivers.mkdir(parents=True)
        (self.sys / f"bus/usb/devices/{port}:1.0/driver").symlink_to(drivers)

    def unplug(self, port: str, instrument: Instrument) -> None:
        self.backend.instruments.remove(instrument)
        shutil.rmtree(self.sys / "bus/usb/devices" / port)
        (self.dev / f"bus/usb/001/{instrument.address:03d}").unlink()
