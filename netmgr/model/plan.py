"""Desired state of the network, and the effects that lead to it. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Network
from typing import Final

import msgspec

from netmgr.model.facts import Manager
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import Hotspot

PROTOCOL: Final = 77
"""Originator of the routes of netmgr, so that only these are removed. Numbers above RTPROT_STATIC (4) that
linux/rtnetlink.h does not list are free for programs."""
HOTSPOT_ADDRESSES: Final = tuple(map(IPv4Interface, ("10.42.0.1/24", "10.43.0.1/24", "192.168.242.1/24")))
"""Addresses of the device in its hotspot. The first whose network no other interface uses is chosen."""


class PlannedRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Route of an interface in the main table, with the protocol PROTOCOL."""

    destination: IPv4Network | IPv6Network
    gateway: IPv4Address | IPv6Address | None
    metric: int


class InterfacePlan(msgspec.Struct, frozen=True, kw_only=True):
    """Desired state of an interface that netmgr manages. Interfaces without a plan are left to their managers."""

    name: str
    network: UsableNetwork | None = None
    """Network to use. For wifi it is to be joined. None: the interface is up, without a network."""
    dhcp: bool = False
    addresses: frozenset[IPv4Interface] = frozenset()
    """IPv4 addresses, static or from the lease."""
    routes: frozenset[PlannedRoute] = frozenset()
    """IPv4 routes, static or from the lease. IPv6 routes come from router advertisements, in the kernel."""
    ra_metric: int | None = None
    """Metric of the routes from router advertisements; None: router advertisements are ignored."""
    mtu: int | None = None
    power_save: bool | None = None
    hotspot: Hotspot | None = None
    """Run the hotspot on the radio of this interface: on a second, virtual interface if a network is joined too."""


class NetworkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Desired state of everything that netmgr manages."""

    interfaces: tuple[InterfacePlan, ...] = ()
    dns: dict[str, tuple[str, ...]] = {}
    """Name servers by interface, in the order of the route metrics."""
    domains: dict[str, tuple[str, ...]] = {}
    country: str = ""
    unblock: tuple[int, ...] = ()
    """Radios whose soft block is removed."""


class Effect(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One change. Each can be repeated, and is without effect if the state is reached already."""

    interface: str = ""


class TakeOver(Effect, frozen=True, kw_only=True):
    """Make the present manager leave the interface alone, after its networks were adopted, and remove its addresses."""

    manager: Manager


class GiveBack(Effect, frozen=True, kw_only=True):
    """Undo TakeOver."""


class Unblock(Effect, frozen=True, kw_only=True):
    """Remove the soft block of a radio."""

    radio: int


class SetCountry(Effect, frozen=True, kw_only=True):
    """Set the regulatory domain."""

    country: str


class SetUp(Effect, frozen=True, kw_only=True):
    """Switch the interface on, and set its MTU."""

    mtu: int | None = None


class SetPowerSave(Effect, frozen=True, kw_only=True):
    """Switch power saving of a radio on or off."""

    on: bool


class Join(Effect, frozen=True, kw_only=True):
    """Join a wifi network. Completion and failure are reported as events."""

    network: UsableNetwork


class Leave(Effect, frozen=True, kw_only=True):
    """Leave the wifi network."""


class StartHotspot(Effect, frozen=True, kw_only=True):
    """Start the hotspot with its DHCP and DNS servers."""

    hotspot: Hotspot


class StopHotspot(Effect, frozen=True, kw_only=True):
    """Stop the hotspot."""


class StartDhcp(Effect, frozen=True, kw_only=True):
    """Ask for a lease, and keep it. The lease is reported as an event."""


class StopDhcp(Effect, frozen=True, kw_only=True):
    """Stop asking, without release of the lease."""


class AddAddress(Effect, frozen=True, kw_only=True):
    """Add an address."""

    address: IPv4Interface


class DeleteAddress(Effect, frozen=True, kw_only=True):
    """Delete an address."""

    address: IPv4Interface


class AddRoute(Effect, frozen=True, kw_only=True):
    """Add or replace a route."""

    route: PlannedRoute


class DeleteRoute(Effect, frozen=True, kw_only=True):
    """Delete a route with the protocol PROTOCOL."""

    route: PlannedRoute


class SetRouterAdvertisements(Effect, frozen=True, kw_only=True):
    """Accept router advertisements with this metric of their routes, or ignore them."""

    metric: int | None


class SetDns(Effect, frozen=True, kw_only=True):
    """Set the name servers of the system, by interface."""

    servers: dict[str, tuple[str, ...]]
    domains: dict[str, tuple[str, ...]]
