"""Links, addresses and routes of the kernel as facts, and changes of them."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface, ip_network
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace

from netmgr.model.facts import InterfaceAddress, KernelRoute, NetworkLink
from netmgr.model.plan import PROTOCOL, PlannedRoute
from netmgr.netlink import codecs
from netmgr.netlink.socket import CREATE, REPLACE, KernelError, NetlinkRequests

# linux/if.h, linux/rtnetlink.h, linux/if_addr.h
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
ETHERNET: Final = 1  # ARPHRD_ETHER
MAIN_TABLE: Final = 254
UNICAST: Final = 1
SCOPE_UNIVERSE, SCOPE_LINK = 0, 253
PERMANENT: Final = 0x80
FAMILIES: Final = (socket.AF_INET, socket.AF_INET6)
SYSFS: Final = Path("/sys/class/net")
_GONE: Final = frozenset({3, 6, 19, 99})  # ESRCH, ENXIO, ENODEV, EADDRNOTAVAIL
_EXISTS: Final = 17


def link_of(message: Any, wifi: Mapping[str, int | None], physical: bool) -> NetworkLink:
    """Return the link of a message. `wifi` has the wiphy of wifi devices by name; `physical`: it has hardware."""
    name = message.get_attr("IFLA_IFNAME")
    kind: Literal["wired", "wifi", "other"] = "other"
    if name in wifi:
        kind = "wifi"
    elif message["ifi_type"] == ETHERNET and physical:
        kind = "wired"
    flags = message["flags"]
    return NetworkLink(
        index=message["index"],
        name=name,
        kind=kind,
        up=bool(flags & IFF_UP),
        carrier=bool(flags & IFF_LOWER_UP),
        mac=message.get_attr("IFLA_ADDRESS") or "",
        mtu=message.get_attr("IFLA_MTU"),
        radio=wifi.get(name),
    )


def address_of(message: Any) -> InterfaceAddress:
    """Return the address of a message."""
    value = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
    flags = message.get_attr("IFA_FLAGS") or message["flags"]
    return InterfaceAddress(ip_interface(f"{value}/{message['prefixlen']}"), dynamic=not flags & PERMANENT)


def route_of(message: Any, names: Mapping[int, str]) -> KernelRoute | None:
    """Return the route of a message; None unless it is a unicast route of the main table through one interface."""
    name = names.get(message.get_attr("RTA_OIF") or 0)
    table = message.get_attr("RTA_TABLE") or message["table"]
    if table != MAIN_TABLE or message["type"] != UNICAST or name is None:
        return None
    everything = "0.0.0.0" if message["family"] == socket.AF_INET else "::"
    gateway = message.get_attr("RTA_GATEWAY")
    return KernelRoute(
        destination=ip_network(f"{message.get_attr('RTA_DST') or everything}/{message['dst_len']}"),
        gateway=ip_address(gateway) if gateway else None,
        interface=name,
        metric=message.get_attr("RTA_PRIORITY") or 0,
        protocol=message["proto"],
    )


class Kernel:
    """Network configuration of the kernel, in the network namespace of this process. Raises KernelError."""

    def __init__(self, requests: NetlinkRequests) -> None:
        self._requests = requests

    async def links(self) -> tuple[NetworkLink, ...]:
        """Return all links with their addresses, by index."""
        links = await self.dump_links()
        addresses: dict[int, list[InterfaceAddress]] = {}
        for message in await self._requests.dump(codecs.GET_ADDRESS):
            addresses.setdefault(message["index"], []).append(address_of(message))
        return tuple(_with_addresses(message, addresses.get(message["index"], [])) for message in links)

    async def dump_links(self) -> list[Any]:
        """Return the kernel's messages about all links, without their addresses."""
        return await self._requests.dump(codecs.GET_LINK)

    async def routes(self) -> tuple[KernelRoute, ...]:
        """Return the unicast routes of the main table."""
        links = await self.dump_links()
        names = {message["index"]: message.get_attr("IFLA_IFNAME") for message in links}
        routes: list[KernelRoute] = []
        for family in FAMILIES:
            parsed = (route_of(message, names) for message in await self._requests.dump(codecs.GET_ROUTE, family))
            routes += (route for route in parsed if route is not None)
        return tuple(routes)

    async def set_up(self, index: int, *, up: bool = True, mtu: int | None = None) -> None:
        """Switch an interface on or off, and set its MTU."""
        fields = {"index": index, "flags": IFF_UP if up else 0, "change": IFF_UP}
        await self._requests.change(codecs.NEW_LINK, fields, [("IFLA_MTU", mtu)])

    async def add_address(
        self, index: int, address: IPv4Interface | IPv6Interface, lifetime: int | None = None
    ) -> None:
        """Add an address, or renew it. After `lifetime` seconds the kernel removes it; None keeps it."""
        attributes = _address(address)
        if lifetime is not None:
            attributes.append(
                ("IFA_CACHEINFO", {"ifa_preferred": lifetime, "ifa_valid": lifetime, "cstamp": 0, "tstamp": 0})
            )
        await self._requests.change(
            codecs.NEW_ADDRESS, _address_fields(index, address), attributes, flags=CREATE | REPLACE
        )

    async def delete_address(self, index: int, address: IPv4Interface | IPv6Interface) -> None:
        """Delete an address, if it is there."""
        await self._forget(codecs.DEL_ADDRESS, _address_fields(index, address), _address(address))

    async def add_route(self, index: int, route: PlannedRoute) -> None:
        """Add a route of netmgr, or replace the one with the same destination and metric."""
        await self._requests.change(codecs.NEW_ROUTE, *_route(index, route), flags=CREATE | REPLACE)

    async def delete_route(self, index: int, route: PlannedRoute) -> None:
        """Delete a route of netmgr, if it is there. Routes of other programs stay."""
        await self._forget(codecs.DEL_ROUTE, *_route(index, route))

    async def _forget(self, kind: int, fields: dict[str, int], attributes: list[tuple[str, Any]]) -> None:
        try:
            await self._requests.change(kind, fields, attributes)
        except KernelError as error:
            if error.number not in _GONE:
                raise


def _with_addresses(message: Any, addresses: list[InterfaceAddress]) -> NetworkLink:
    name = message.get_attr("IFLA_IFNAME")
    folder = SYSFS / name
    wifi = {name: _number(folder / "phy80211" / "index")} if (folder / "phy80211").exists() else {}
    return replace(link_of(message, wifi, (folder / "device").exists()), addresses=tuple(addresses))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _family(address: IPv4Interface | IPv6Interface) -> int:
    return socket.AF_INET if address.version == 4 else socket.AF_INET6


def _address_fields(index: int, address: IPv4Interface | IPv6Interface) -> dict[str, int]:
    return {"family": _family(address), "prefixlen": address.network.prefixlen, "index": index}


def _address(address: IPv4Interface | IPv6Interface) -> list[tuple[str, Any]]:
    text = str(address.ip)
    attributes: list[tuple[str, Any]] = [("IFA_LOCAL", text), ("IFA_ADDRESS", text)]
    if address.version == 4 and address.network.prefixlen < 31:
        attributes.append(("IFA_BROADCAST", str(address.network.broadcast_address)))
    return attributes


def _route(index: int, route: PlannedRoute) -> tuple[dict[str, int], list[tuple[str, Any]]]:
    destination, gateway = route.destination, route.gateway
    fields = {
        "family": socket.AF_INET if destination.version == 4 else socket.AF_INET6,
        "dst_len": destination.prefixlen,
        "table": MAIN_TABLE,
        "proto": PROTOCOL,
        "scope": SCOPE_LINK if gateway is None and destination.version == 4 else SCOPE_UNIVERSE,
        "type": UNICAST,
    }
    text = str(destination.network_address) if destination.prefixlen else None
    attributes: list[tuple[str, Any]] = [
        ("RTA_DST", text),
        ("RTA_GATEWAY", str(gateway) if gateway is not None else None),
        ("RTA_OIF", index),
        ("RTA_PRIORITY", route.metric),
    ]
    return fields, attributes
