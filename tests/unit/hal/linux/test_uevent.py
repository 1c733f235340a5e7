"""Messages of the kernel and of udev, as bytes."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hal.linux.uevent import parse_kernel, parse_udev
from hal.ports.hotplug import HotplugEvent

# As sent by kernel 6.1 when a serial adapter was plugged in.
KERNEL = (
    b"add@/devices/pci0000:00/0000:00:04.0/usb2/2-1/2-1:1.0/ttyUSB0/tty/ttyUSB0\0ACTION=add\0"
    b"DEVPATH=/devices/pci0000:00/0000:00:04.0/usb2/2-1/2-1:1.0/ttyUSB0/tty/ttyUSB0\0SUBSYSTEM=tty\0MAJOR=188\0"
    b"MINOR=0\0DEVNAME=ttyUSB0\0SEQNUM=1523\0"
)
PROPERTIES = {"ACTION": "add", "DEVPATH": "/devices/x/gpiochip3", "SUBSYSTEM": "gpio", "DEVNAME": "/dev/gpiochip3"}


def encoded(properties: dict[str, str]) -> bytes:
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in properties.items())


def udev(properties: bytes, *, prefix: bytes = b"libudev\0", magic: int = 0xFEEDCAFE, start: int = 40) -> bytes:
    """Return a message with systemd's monitor_netlink_header: magic and hashes in big endian, sizes in native order."""
    sizes = struct.pack("=III", 40, start, len(properties))
    return prefix + struct.pack(">I", magic) + sizes + struct.pack(">IIII", 1, 2, 3, 4) + properties


def test_a_message_of_the_kernel() -> None:
    event = parse_kernel(KERNEL)
    assert event is not None
    assert (event.action, event.subsystem, event.node) == ("add", "tty", "ttyUSB0")
    assert event.device.endswith("/tty/ttyUSB0")
    assert event.properties["MAJOR"] == "188"


def test_a_message_of_udev() -> None:
    assert parse_udev(udev(encoded(PROPERTIES))) == HotplugEvent(
        "add", "gpio", "/devices/x/gpiochip3", "gpiochip3", PROPERTIES
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"libudev\0",
        udev(encoded(PROPERTIES), prefix=b"libudew\0"),
        udev(encoded(PROPERTIES), magic=0xCAFEFEED),
        udev(encoded(PROPERTIES), start=8),
        udev(encoded(PROPERTIES), start=4000),
        udev(encoded(PROPERTIES))[:-1],
        udev(encoded({"ACTION": "add"})),
        KERNEL,
    ],
)
def test_messages_not_from_udev_are_ignored(data: bytes) -> None:
    assert parse_udev(data) is None


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"hello", b"add@/x\0", b"add@/x\0ACTION=add\0", b"@\0=\0", udev(encoded(PROPERTIES))]
)
def test_messages_not_from_the_kernel_are_ignored(data: bytes) -> None:
    assert parse_kernel(data) is None


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(data: bytes) -> None:
    for parse in (parse_kernel, parse_udev):
        assert parse(data) is None or isinstance(parse(data), HotplugEvent)
        parse(b"add@/x\0" + data)
        parse(udev(data))


WORDS = st.text(st.characters(exclude_characters="\0=", exclude_categories=("Cs",)), min_size=1, max_size=12)


@given(st.dictionaries(WORDS, WORDS, max_size=6))
def test_every_property_arrives(more: dict[str, str]) -> None:
    properties = {**more, **PROPERTIES}
    for event in (
        parse_kernel(b"add@/devices/x/gpiochip3\0" + encoded(properties)),
        parse_udev(udev(encoded(properties))),
    ):
        assert event is not None
        assert event.properties == properties
