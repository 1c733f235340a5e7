"""Messages of nl80211 with the attributes that netmgr needs, as classes of pyroute2, and their meaning. Pure.

pyroute2's own classes for nl80211 import asyncio and the rest of its sockets (1.6 MiB and 17 ms more in the agent).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from netmgr.model.facts import WifiRadio
from netmgr.netlink.codecs import genlmsg, nla

# linux/nl80211.h
GET_WIPHY, GET_INTERFACE, NEW_INTERFACE, DEL_INTERFACE = 1, 5, 7, 8
REQUEST_SET_COUNTRY, GET_COUNTRY, SET_POWER_SAVE, GET_POWER_SAVE = 27, 31, 61, 62
STATION, ACCESS_POINT = 2, 3
FEATURE_SAE: Final = 1 << 5
EXTENDED_SAE_OFFLOAD: Final = 38
_TYPES: Final = tuple((number, f"TYPE{number}", "flag") for number in range(1, 13))


class RadioMessage(genlmsg):  # type: ignore[misc]
    """Message of nl80211; other attributes are ignored."""

    nla_map = (
        (1, "WIPHY", "uint32"),
        (3, "IFINDEX", "uint32"),
        (4, "IFNAME", "asciiz"),
        (5, "IFTYPE", "uint32"),
        (32, "SUPPORTED_IFTYPES", "types"),
        (33, "REG_ALPHA2", "asciiz"),
        (52, "SSID", "cdata"),
        (93, "PS_STATE", "uint32"),
        (120, "INTERFACE_COMBINATIONS", "*combination"),
        (143, "FEATURE_FLAGS", "uint32"),
        (174, "SPLIT_WIPHY_DUMP", "flag"),
        (204, "SOCKET_OWNER", "flag"),
        (217, "EXT_FEATURES", "cdata"),
    )

    class types(nla):  # type: ignore[misc]
        """Flags, by type of interface."""

        nla_map = _TYPES

    class combination(nla):  # type: ignore[misc]
        """Interfaces that a radio can have at the same time."""

        nla_map = (
            (1, "LIMITS", "*limit"),
            (2, "MAXNUM", "uint32"),
            (4, "NUM_CHANNELS", "uint32"),
        )

        class limit(nla):  # type: ignore[misc]
            """How many interfaces of some types."""

            nla_map = ((1, "MAX", "uint32"), (2, "TYPES", "types"))

            class types(nla):  # type: ignore[misc]
                """Flags, by type of interface."""

                nla_map = _TYPES


def radios_of(messages: Iterable[Any]) -> tuple[WifiRadio, ...]:
    """Return the radios in the messages of a dump, which describe each radio in parts."""
    parts: dict[int, list[Any]] = {}
    for message in messages:
        number = message.get_attr("WIPHY")
        if number is not None:
            parts.setdefault(number, []).append(message)
    return tuple(_radio(number, messages) for number, messages in sorted(parts.items()))


def _radio(number: int, messages: list[Any]) -> WifiRadio:
    def values(name: str) -> list[Any]:
        return [value for message in messages if (value := message.get_attr(name)) is not None]

    supported = {kind for value in values("SUPPORTED_IFTYPES") for kind in _kinds(value)}
    combinations = [entry for value in values("INTERFACE_COMBINATIONS") for entry in value]
    hotspot = ACCESS_POINT in supported
    return WifiRadio(
        number=number,
        hotspot=hotspot,
        both=hotspot and any(_allows_both(entry) for entry in combinations),
        sae=any(flags & FEATURE_SAE for flags in values("FEATURE_FLAGS"))
        or any(_bit(data, EXTENDED_SAE_OFFLOAD) for data in values("EXT_FEATURES")),
    )


def _allows_both(combination: Any) -> bool:
    """Return whether a client and an access point are allowed at the same time."""
    entries = combination.get_attr("LIMITS") or ()
    limits = [(entry.get_attr("MAX") or 0, _kinds(entry.get_attr("TYPES"))) for entry in entries]
    if (combination.get_attr("MAXNUM") or 0) < 2:
        return False
    return any(
        STATION in stations and ACCESS_POINT in points and number >= (2 if first == second else 1) and others >= 1
        for first, (number, stations) in enumerate(limits)
        for second, (others, points) in enumerate(limits)
    )


def _kinds(value: Any) -> frozenset[int]:
    """Return the types of interfaces in nested flags."""
    attributes = value["attrs"] if value is not None else ()
    return frozenset(int(name.removeprefix("TYPE")) for name, *_ in attributes if name.startswith("TYPE"))


def _bit(data: bytes, number: int) -> bool:
    return number // 8 < len(data) and bool(data[number // 8] >> number % 8 & 1)
