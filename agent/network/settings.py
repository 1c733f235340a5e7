"""Settings of netmgr from the settings of the agent, and from what people have entered on the device. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address, IPv4Interface
from typing import Final

from msgspec.structs import replace

from netmgr.model import (
    HIGHEST_PRIORITY,
    Enterprise,
    Hotspot,
    NetworkSettings,
    Open,
    Personal,
    Security,
    StaticAddress,
    UsableNetwork,
)
from schema.agent import AdditionalNetwork, EnterpriseAccount, Settings

PORTAL: Final = "portal: "
"""Beginning of the labels of networks that were entered in the portal or an app."""

MAX_ENTERED: Final = 32
"""Networks that were entered on the device and are kept. Everyone near a device can enter some in its portal."""


def network_settings(
    settings: Settings,
    cloud_networks: Iterable[UsableNetwork],
    entered: Iterable[UsableNetwork],
    adopted: Iterable[UsableNetwork],
    *,
    hostname: str,
    password: str,
    is_pi: bool = False,
) -> NetworkSettings:
    """Return the settings of netmgr.

    `cloud_networks` are those of the configuration that apply (see netmgr.provisioning.trial), `entered` those of
    people, `adopted` those of other programs; `password` is the generated one of the hotspot.
    """
    section = settings.network_configuration
    power_save = section.wifi_power_save
    if power_save is None and is_pi:
        power_save = False
    hotspot = Hotspot(
        ssid=section.ssid(hostname).encode(),
        password=section.hotspot_password or password,
        redirect_all=not section.disable_captive_portal_redirect,
    )
    return NetworkSettings(
        enabled=not settings.advanced_settings.disable_network_configuration,
        networks=unique([*cloud_networks, *entered, *adopted]),
        hotspot=None if section.disable_wifi_provisioning else hotspot,
        wifi_interface=section.hotspot_interface,
        needs_internet=section.turn_on_hotspot_if_wifi_has_no_internet,
        offline_before_hotspot=section.offline_before_starting_hotspot,
        retry=section.retry_connection_timeout,
        user_idle=section.user_idle,
        reboot_after_offline=section.device_reboot_after_offline,
        wifi_power_save=power_save,
        country=section.country,
    )


def unique(networks: Iterable[UsableNetwork]) -> tuple[UsableNetwork, ...]:
    """Return the networks with different labels; the first one with a label stays."""
    by_label: dict[str, UsableNetwork] = {}
    for network in networks:
        by_label.setdefault(network.label, network)
    return tuple(by_label.values())


def networks_of(additional: Mapping[str, AdditionalNetwork]) -> tuple[UsableNetwork, ...]:
    """Return the networks of the configuration."""
    return tuple(_network(label, network) for label, network in additional.items())


def _network(label: str, network: AdditionalNetwork) -> UsableNetwork:
    static = None
    if network.ipv4_address != "auto":
        static = StaticAddress(
            address=IPv4Interface(network.ipv4_address),
            gateway=IPv4Address(network.ipv4_gateway) if network.ipv4_gateway else None,
        )
    is_wifi = network.type == "wifi"
    return UsableNetwork(
        label=label,
        kind=network.type,
        source="cloud",
        interface=network.interface,
        ssid=network.ssid.encode() if is_wifi else b"",
        security=_security(network) if is_wifi else Open(),
        hidden=network.hidden,
        priority=network.priority,
        static=static,
        dns=tuple(IPv4Address(address) for address in network.ipv4_dns),
        metric=network.ipv4_route_metric,
    )


def _security(network: AdditionalNetwork) -> Security:
    if network.enterprise is not None:
        return _enterprise(network.enterprise)
    return Personal(passphrase=network.psk) if network.psk else Open()


def _enterprise(account: EnterpriseAccount) -> Enterprise:
    return Enterprise(
        method=account.method,
        identity=account.identity,
        anonymous_identity=account.anonymous_identity,
        password=account.password,
        ca_certificate=account.ca_certificate,
        server_name=account.server_name,
        client_certificate=account.client_certificate,
        private_key=account.private_key,
        private_key_password=account.private_key_password,
    )


def entered(networks: Iterable[UsableNetwork], network: UsableNetwork, *, tries_all: bool) -> tuple[UsableNetwork, ...]:
    """Return the entered networks with a new one in front: it has the highest priority, and others lose theirs.

    At most MAX_ENTERED are kept, those entered last.

    `tries_all`: all networks are tried in order, and a network of the configuration may be preferred (priority 100).
    """
    others = [replace(other, priority=min(other.priority, HIGHEST_PRIORITY - 1)) for other in networks]
    others = [other for other in others if other.label != network.label]
    return (replace(network, priority=100 if tries_all else HIGHEST_PRIORITY), *others[: MAX_ENTERED - 1])
