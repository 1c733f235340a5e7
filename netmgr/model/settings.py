"""Settings of netmgr: `network_configuration` of the agent's settings, with times in seconds. Pure."""

from __future__ import annotations

from ipaddress import IPv4Interface

import msgspec

from netmgr.model.network import Secret, UsableNetwork


class Hotspot(Secret, frozen=True, kw_only=True):
    """Hotspot of provisioning."""

    ssid: bytes
    password: str
    """Password of this device: from the defaults file, a label, or generated at the first start."""
    address: IPv4Interface = IPv4Interface("10.42.0.1/24")
    """Address of the device in it; the default is that of NetworkManager and the reference."""
    redirect_all: bool = True
    """Answer every DNS query of the hotspot's clients with the device's address, not only names below `.setup`."""


class NetworkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides what the network of the device should be, except what is observed."""

    enabled: bool = True
    """False gives back what was taken over, and leaves the network alone."""
    networks: tuple[UsableNetwork, ...] = ()
    """Networks that the device may use, of all sources, with different labels."""
    hotspot: Hotspot | None = None
    """None never starts a hotspot."""
    wifi_interface: str = ""
    """Interface for the hotspot and for wifi; empty means the first wifi device."""
    needs_internet: bool = False
    """`turn_on_hotspot_if_wifi_has_no_internet`: be online only if the cloud can be reached, and try all networks."""
    offline_before_hotspot: float = 120.0
    retry: float = 600.0
    """Seconds after which provisioning ends, so that other connections are tried."""
    user_idle: float = 300.0
    reboot_after_offline: float = 0.0
    """Seconds offline after which the device reboots; 0 never reboots."""
    wifi_power_save: bool | None = None
    """None leaves the driver's choice."""
    country: str = ""
    """Regulatory domain, two letters; empty leaves the system's."""
