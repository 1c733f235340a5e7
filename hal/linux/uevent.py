"""Decoder for device events of the kernel and of udev. Pure."""

from __future__ import annotations

import struct
from typing import Final

from hal.ports.hotplug import HotplugEvent

LOST: Final = HotplugEvent("lost", "", "")
"""Stands for lost events: all devices must be checked again."""

_UDEV: Final = b"libudev\0"
_MAGIC: Final = b"\xfe\xed\xca\xfe"  # systemd, src/libsystemd/sd-device/device-monitor.c, monitor_netlink_header
# Prefix, magic, size of the header, offset and length of the properties; the following hashes are for filters in the
# kernel.
_HEADER: Final = struct.Struct("=8s4sIII")


def parse_kernel(data: bytes) -> HotplugEvent | None:
    """Decode a message of the kernel's group: `action@path`, then properties. None if it is invalid."""
    summary, _, properties = data.partition(b"\0")
    if data.startswith(_UDEV) or b"@" not in summary:
        return None
    return _event(properties)


def parse_udev(data: bytes) -> HotplugEvent | None:
    """Decode a message of udev's group: a header, then properties. None if it is invalid."""
    if len(data) < _HEADER.size:
        return None
    prefix, magic, _, start, length = _HEADER.unpack_from(data)
    if prefix != _UDEV or magic != _MAGIC:
        return None
    if not _HEADER.size <= start <= start + length <= len(data):
        return None
    return _event(data[start : start + length])


def _event(data: bytes) -> HotplugEvent | None:
    properties = {}
    for entry in data.split(b"\0"):
        key, equals, value = entry.decode(errors="replace").partition("=")
        if equals:
            properties[key] = value
    if not (properties.get("ACTION") and properties.get("DEVPATH")):
        return None
    return HotplugEvent(
        action=properties["ACTION"],
        subsystem=properties.get("SUBSYSTEM", ""),
        device=properties["DEVPATH"],
        node=properties.get("DEVNAME", "").removeprefix("/dev/"),
        properties=properties,
    )
