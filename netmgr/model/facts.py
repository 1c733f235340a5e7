"""Facts about the computer's network, as the kernel and the daemons report them. Pure."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network
from typing import Final, Literal

import msgspec

from netmgr.model.events import JoinFailure
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import Hotspot

Manager = Literal["", "NetworkManager", "dhcpcd", "systemd-networkd", "ifupdown", "machine-agent"]
"""Program that configures an interface; empty means none."""
OWN: Final[Manager] = "machine-agent"
Cipher = Literal["open", "owe", "wep", "wpa1", "wpa2", "wpa3", "wpa2-wpa3", "enterprise"]
"""What an access point requires, as its announcements say."""


class InterfaceAddress(msgspec.Struct, frozen=True):
    """IP address of an interface."""

    value: IPv4Interface | IPv6Interface
    dynamic: bool = False
    """It has a lifetime: it comes from a router advertisement or from another program's DHCP."""


class KernelRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Route of the main table."""

    destination: IPv4Network | IPv6Network
    gateway: IPv4Address | IPv6Address | None = None
    interface: str
    metric: int
    protocol: int
    """Originator: RTPROT_KERNEL, RTPROT_RA, RTPROT_STATIC, ... of linux/rtnetlink.h. Routes of netmgr have
    netmgr.model.plan.PROTOCOL."""


class NetworkLink(msgspec.Struct, frozen=True, kw_only=True):
    """Interface of the kernel."""

    index: int
    name: str
    kind: Literal["wired", "wifi", "other"]
    """`other` is everything that is never configured: loopback, bridges, tunnels, containers' links, ..."""
    up: bool
    """Switched on (IFF_UP)."""
    carrier: bool
    """Connected: a cable or an access point is there (IFF_LOWER_UP)."""
    mac: str
    radio: int | None = None
    """Number of the radio (wiphy) of a wifi device."""
    manager: Manager = ""
    addresses: tuple[InterfaceAddress, ...] = ()
    mtu: int | None = None
    """None: not observed."""
    ra_metric: int | None = None
    """Metric of the routes from router advertisements; None: they are ignored, or it was not observed."""
    power_save: bool | None = None
    """None: not observed, or not a wifi device."""


class WifiRadio(msgspec.Struct, frozen=True, kw_only=True):
    """Wifi radio (wiphy)."""

    number: int
    blocked: Literal["", "soft", "hard"] = ""
    """State of rfkill: a soft block can be removed by software, a hard block is a switch."""
    hotspot: bool
    """It can be an access point."""
    both: bool
    """It can be an access point and a client at the same time, on the same channel."""
    sae: bool = True
    """It can use WPA3."""


class AccessPoint(msgspec.Struct, frozen=True, kw_only=True):
    """Access point heard in a scan."""

    ssid: bytes
    """Empty if it is not announced."""
    bssid: str
    frequency: int
    """MHz."""
    signal: int
    """dBm."""
    cipher: Cipher
    seen: float
    """Monotonic time in seconds."""

    @property
    def percent(self) -> int:
        """Signal from 0 to 100, as NetworkManager computes it: -90 dBm is 0, -40 dBm is 100."""
        return max(0, min(100, 2 * (self.signal + 90)))


class AddressLease(msgspec.Struct, frozen=True, kw_only=True):
    """What a DHCP server has granted."""

    address: IPv4Interface
    gateway: IPv4Address | None
    routes: tuple[tuple[IPv4Network, IPv4Address], ...] = ()
    """Classless static routes (RFC 3442), which replace `gateway` if there are any."""
    dns: tuple[IPv4Address, ...] = ()
    domains: tuple[str, ...] = ()
    mtu: int | None = None
    server: IPv4Address
    obtained: float
    """Monotonic time in seconds."""
    renew: float
    """Seconds after `obtained` at which it is renewed (T1)."""
    rebind: float
    expire: float


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """State of a wifi client."""

    ssid: bytes
    bssid: str
    frequency: int
    signal: int | None = None


class NetworkFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything observed at one time."""

    now: float
    """Monotonic time in seconds."""
    links: tuple[NetworkLink, ...] = ()
    routes: tuple[KernelRoute, ...] = ()
    radios: tuple[WifiRadio, ...] = ()
    access_points: tuple[AccessPoint, ...] = ()
    leases: dict[str, AddressLease] = {}
    """By interface."""
    associations: dict[str, Association] = {}
    """By interface, only of clients with completed authentication."""
    joining: dict[str, str] = {}
    """By interface: label of the network that is being joined or is joined."""
    clients: dict[str, UsableNetwork] = {}
    """By interface: the network as the wifi client was given it, with the label in `joining`. It differs from the
    settings after these have changed, for example in the password."""
    hotspot: str = ""
    """Interface for which the hotspot was started; empty means none."""
    hosted: Hotspot | None = None
    """The hotspot as it was started. It differs from the settings after these have changed."""
    dhcp: frozenset[str] = frozenset()
    """Interfaces on which the DHCP client of netmgr runs. Leases of others are not in `leases`."""
    dns: tuple[str, ...] = ()
    """Name servers in use, as text."""
    resolvers: dict[str, tuple[str, ...]] = {}
    """By interface, in order: the name servers that netmgr has set and that are in effect."""
    domains: dict[str, tuple[str, ...]] = {}
    """By interface: the search domains that netmgr has set and that are in effect."""
    country: str = ""
    """Regulatory domain; empty: not observed."""
    cloud: dict[str, bool] = {}
    """By interface: the last proof of the cloud's answer through it succeeded."""
    unproved: dict[str, JoinFailure] = {}
    """By interface: why the last proof did not succeed."""

    def link(self, name: str) -> NetworkLink | None:
        """Return the link with this name."""
        return next((link for link in self.links if link.name == name), None)

    def radio_of(self, interface: str) -> WifiRadio | None:
        """Return the radio of a wifi interface."""
        link = self.link(interface)
        number = link.radio if link is not None else None
        return next((radio for radio in self.radios if radio.number == number), None)
