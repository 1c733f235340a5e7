"""Wifi radios of the kernel: what they can do, virtual interfaces, power saving and the country."""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Mapping
from typing import Any, Final, Literal

import trio

from netmgr.model.facts import WifiRadio
from netmgr.netlink import radio_codecs as codecs
from netmgr.netlink.codecs import ctrlmsg
from netmgr.netlink.socket import KernelError, NetlinkRequests, open_socket
from schema import ErrorKind, MachineError

# linux/genetlink.h, linux/netlink.h
GENERIC: Final = 16  # NETLINK_GENERIC
_CONTROLLER, _GET_FAMILY = 16, 3
_SOL_NETLINK, _ADD_MEMBERSHIP = 270, 1
_READ: Final = 1 << 16
_BATCH: Final = 1000  # notifications that one call reads at most; the next call returns at once

Change = Literal["scan", "interfaces", "radios", "country"]
GROUPS: Final = ("config", "scan", "regulatory")
EVERYTHING: Final[frozenset[Change]] = frozenset({"scan", "interfaces", "radios", "country"})
COMMANDS: Final[Mapping[int, Change]] = {
    2: "radios",  # SET_WIPHY: also a new name
    3: "radios",  # NEW_WIPHY
    4: "radios",  # DEL_WIPHY
    6: "interfaces",  # SET_INTERFACE
    7: "interfaces",  # NEW_INTERFACE
    8: "interfaces",  # DEL_INTERFACE
    34: "scan",  # NEW_SCAN_RESULTS
    36: "country",  # REG_CHANGE
    113: "country",  # WIPHY_REG_CHANGE
}
"""What notifications of nl80211 mean, by command."""


class RadioFamily:
    """Numbers of nl80211 and of its multicast groups, which the kernel chooses when it loads the module."""

    def __init__(self, number: int, groups: Mapping[str, int]) -> None:
        self.number = number
        self.groups = groups


async def family() -> RadioFamily:
    """Return the numbers of nl80211. UNSUPPORTED if the kernel has no wifi, or its module is not loaded."""
    with NetlinkRequests({_CONTROLLER: ctrlmsg}, GENERIC) as requests:
        try:
            (message,) = await requests.ask(
                _CONTROLLER, {"cmd": _GET_FAMILY, "version": 1}, [("CTRL_ATTR_FAMILY_NAME", "nl80211")]
            )
        except KernelError as error:
            if error.number != errno.ENOENT:
                raise
            raise MachineError(
                "the kernel has no wifi", kind=ErrorKind.UNSUPPORTED,
                remedy="connect a wifi adapter, and check with `lsmod` that its module is loaded",
            ) from None  # fmt: skip
    groups = message.get_attr("CTRL_ATTR_MCAST_GROUPS") or ()
    return RadioFamily(
        message.get_attr("CTRL_ATTR_FAMILY_ID"),
        {group.get_attr("CTRL_ATTR_MCAST_GRP_NAME"): group.get_attr("CTRL_ATTR_MCAST_GRP_ID") for group in groups},
    )


class Radios:
    """Wifi radios of this network namespace. Close it, or use it as a context manager. Raises KernelError.

    Interfaces that `add_hotspot_interface` has made disappear when it is closed, also if the process is killed.
    """

    def __init__(self, numbers: RadioFamily) -> None:
        self._family = numbers.number
        self._requests = NetlinkRequests({numbers.number: codecs.RadioMessage}, GENERIC)

    def __enter__(self) -> Radios:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket."""
        self._requests.close()

    async def radios(self) -> tuple[WifiRadio, ...]:
        """Return the radios, by number. Whether they are blocked is known to netmgr.netlink.rfkill."""
        fields = {"cmd": codecs.GET_WIPHY}
        return codecs.radios_of(await self._requests.dump_all(self._family, fields, [("SPLIT_WIPHY_DUMP", True)]))

    async def interfaces(self) -> dict[str, int]:
        """Return the radio of each wifi interface, by the name of the interface."""
        messages = await self._requests.dump_all(self._family, {"cmd": codecs.GET_INTERFACE}, [])
        names = ((message.get_attr("IFNAME"), message.get_attr("WIPHY")) for message in messages)
        return {name: radio for name, radio in names if name is not None and radio is not None}

    async def joined(self) -> dict[str, bytes]:
        """Return the SSID of each interface that is connected with an access point, whichever program has done that."""
        messages = await self._requests.dump_all(self._family, {"cmd": codecs.GET_INTERFACE}, [])
        entries = (
            (message.get_attr("IFNAME"), message.get_attr("IFTYPE"), message.get_attr("SSID")) for message in messages
        )
        return {name: bytes(ssid) for name, kind, ssid in entries if name and ssid and kind == codecs.STATION}

    async def power_save(self, index: int) -> bool:
        """Return whether an interface saves power while it is connected."""
        (message,) = await self._ask(codecs.GET_POWER_SAVE, [("IFINDEX", index)])
        return bool(message.get_attr("PS_STATE"))

    async def set_power_save(self, index: int, on: bool) -> None:
        """Switch power saving of an interface. UNSUPPORTED if the driver has none."""
        try:
            await self._ask(codecs.SET_POWER_SAVE, [("IFINDEX", index), ("PS_STATE", int(on))])
        except KernelError as error:
            if error.number != errno.EOPNOTSUPP:
                raise
            raise MachineError("the driver cannot switch power saving", kind=ErrorKind.UNSUPPORTED) from None

    async def country(self) -> str:
        """Return the regulatory domain: two letters, or 00 if no country is set."""
        (message,) = await self._ask(codecs.GET_COUNTRY, [])
        return str(message.get_attr("REG_ALPHA2") or "00")

    async def set_country(self, country: str) -> None:
        """Ask for a regulatory domain, two letters. The kernel notifies when it applies; it may keep a stricter one."""
        await self._ask(codecs.REQUEST_SET_COUNTRY, [("REG_ALPHA2", country)])

    async def add_hotspot_interface(self, radio: int, name: str) -> None:
        """Add a second, virtual interface of a radio for the hotspot, unless there is one with this name."""
        if name in await self.interfaces():
            return
        attributes = [("WIPHY", radio), ("IFNAME", name), ("IFTYPE", codecs.ACCESS_POINT), ("SOCKET_OWNER", True)]
        await self._ask(codecs.NEW_INTERFACE, attributes)

    async def delete_interface(self, index: int) -> None:
        """Delete an interface that add_hotspot_interface has made, if it is there."""
        try:
            await self._ask(codecs.DEL_INTERFACE, [("IFINDEX", index)])
        except KernelError as error:
            if error.number != errno.ENODEV:
                raise

    async def _ask(self, command: int, attributes: list[tuple[str, Any]]) -> list[Any]:
        return await self._requests.ask(self._family, {"cmd": command}, attributes)


class RadioChanges:
    """Notices changes of radios from its creation on. Close it, or use it as a context manager."""

    def __init__(self, numbers: RadioFamily) -> None:
        self._family = numbers.number
        self._socket = open_socket(protocol=GENERIC)
        for group in GROUPS:
            self._socket.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP, numbers.groups[group])

    def __enter__(self) -> RadioChanges:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; a task that waits gets trio.ClosedResourceError."""
        trio.lowlevel.notify_closing(self._socket)
        self._socket.close()

    async def wait(self) -> frozenset[Change]:
        """Wait until something has changed since the last call, and return what: everything if the kernel lost some."""
        while True:
            await trio.lowlevel.wait_readable(self._socket)
            changes: set[Change] = set()
            for _ in range(_BATCH):
                try:
                    data, (sender, *_) = self._socket.recvfrom(_READ, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno != errno.ENOBUFS:
                        raise
                    changes |= EVERYTHING
                    continue
                if sender == 0:
                    changes |= changes_of(data, self._family)
            if changes:
                return frozenset(changes)


def changes_of(data: bytes, number: int) -> set[Change]:
    """Return what the notifications in a datagram mean."""
    changes: set[Change] = set()
    offset = 0
    while offset + 20 <= len(data):
        length, kind = struct.unpack_from("=IH", data, offset)
        change = COMMANDS.get(data[offset + 16]) if kind == number else None
        if change is not None:
            changes.add(change)
        if length < 16:
            break
        offset += (length + 3) & ~3
    return changes
