"""Settings of netmgr from those of the agent; invalid networks are reported and left out."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest

from agent.network.settings import MAX_ENTERED, entered, network_settings, networks_of, unique
from netmgr.model.network import Enterprise, Open, Personal, StaticAddress, UsableNetwork
from netmgr.model.settings import NetworkSettings
from schema.agent.reading import read_settings

PEAP = {"method": "peap", "identity": "robot", "password": "secret!!", "server_name": "radius.example"}
WIFI = UsableNetwork(label="home", kind="wifi", source="cloud", ssid=b"home")


def settings_of(document: dict[str, Any], *, is_pi: bool = False) -> NetworkSettings:
    settings, problems = read_settings(None, document)
    assert problems == ()
    networks = networks_of(settings.additional_networks)
    return network_settings(settings, networks, (), (), hostname="Rover", password="generated", is_pi=is_pi)


def test_defaults() -> None:
    settings = settings_of({})
    assert settings.enabled
    assert settings.hotspot is not None
    assert (settings.hotspot.ssid, settings.hotspot.password) == (b"machine-setup-rover", "generated")
    assert settings.hotspot.redirect_all
    times = (settings.offline_before_hotspot, settings.retry, settings.user_idle, settings.reboot_after_offline)
    assert times == (120, 600, 300, 0)
    assert settings.wifi_power_save is None
    assert settings_of({}, is_pi=True).wifi_power_save is False


def test_switches() -> None:
    settings = settings_of(
        {
            "advanced_settings": {"disable_network_configuration": True},
            "network_configuration": {
                "disable_captive_portal_redirect": True,
                "hotspot_password": "our password",
                "hotspot_prefix": "plant",
                "hotspot_interface": "wlan1",
                "turn_on_hotspot_if_wifi_has_no_internet": True,
                "retry_connection_timeout_minutes": 3,
                "device_reboot_after_offline_minutes": 30,
                "wifi_power_save": True,
                "country": "DE",
            },
        },
        is_pi=True,
    )
    assert settings.hotspot is not None
    assert (settings.hotspot.ssid, settings.hotspot.password) == (b"plant-rover", "our password")
    assert not settings.hotspot.redirect_all
    assert not settings.enabled
    assert (settings.wifi_interface, settings.needs_internet, settings.country) == ("wlan1", True, "DE")
    assert (settings.retry, settings.reboot_after_offline, settings.wifi_power_save) == (180, 1800, True)
    assert settings_of({"network_configuration": {"disable_wifi_provisioning": True}}).hotspot is None


def test_networks() -> None:
    settings = settings_of(
        {
            "additional_networks": {
                "home": {"type": "wifi", "ssid": "Zuhause \u2665", "psk": "12345678", "hidden": True, "priority": 5},
                "cafe": {"type": "wifi", "ssid": "cafe"},
                "plant": {"type": "wifi", "ssid": "plant", "enterprise": PEAP},
                "line": {
                    "type": "wired", "interface": "eth1", "ipv4_address": "10.0.0.5/24", "ipv4_gateway": "10.0.0.1",
                    "ipv4_dns": ["9.9.9.9"], "ipv4_route_metric": 50,
                },
            }
        }
    )  # fmt: skip
    home, cafe, plant, line = settings.networks
    assert (home.ssid, home.security, home.hidden, home.priority) == (
        "Zuhause \u2665".encode(), Personal(passphrase="12345678"), True, 5,
    )  # fmt: skip
    assert cafe.security == Open()
    assert isinstance(plant.security, Enterprise)
    assert (plant.security.method, plant.security.password) == ("peap", "secret!!")
    static = StaticAddress(address=IPv4Interface("10.0.0.5/24"), gateway=IPv4Address("10.0.0.1"))
    assert (line.static, line.dns, line.metric) == (static, (IPv4Address("9.9.9.9"),), 50)
    assert (line.interface, line.ssid) == ("eth1", b"")


@pytest.mark.parametrize(
    ("change", "path", "text"),
    [
        ({"psk": "short"}, "psk", "8 to 63 ASCII characters or 64 hexadecimal digits"),
        ({"psk": "1234567\u2665"}, "psk", "8 to 63 ASCII characters"),
        ({"ssid": "x" * 33}, "ssid", "at most 32 bytes"),
        ({"ssid": ""}, "ssid", "write the name of the network"),
        ({"ssid": "a\nb"}, "ssid", "without control characters"),
        ({"ipv4_address": "192.168.1.5"}, "ipv4_address", "192.168.1.20/24"),
        ({"ipv4_address": "192.168.1.5/33"}, "ipv4_address", "192.168.1.20/24"),
        ({"ipv4_address": "10.0.0.5/24", "ipv4_gateway": "10.0.1.1"}, "ipv4_gateway", "not in the network 10.0.0.0/24"),
        ({"ipv4_gateway": "10.0.1.1"}, "ipv4_gateway", "DHCP provides the gateway"),
        ({"ipv4_dns": ["nine"]}, "ipv4_dns", "addresses such as"),
        ({"priority": 1000}, "priority", "999"),
        ({"ipv4_route_metric": -1}, "ipv4_route_metric", "0"),
        ({"interface": "much/too/long"}, "interface", "at most 15 bytes"),
        ({"psk": "12345678", "enterprise": PEAP}, "psk", "keep one of them"),
        ({"enterprise": {**PEAP, "password": ""}}, "enterprise.password", "is missing, but the method is 'peap'"),
        (
            {"enterprise": {**PEAP, "server_name": ""}},
            "enterprise.server_name",
            "any computer could pose as the server",
        ),
        ({"enterprise": {**PEAP, "method": "tls"}}, "enterprise.client_certificate", "is missing"),
        ({"type": "cellular"}, "type", "wired"),
    ],
)
def test_an_invalid_network_is_reported_and_left_out(change: dict[str, Any], path: str, text: str) -> None:
    documents = {"bad": {"type": "wifi", "ssid": "bad", **change}, "good": {"type": "wifi", "ssid": "good"}}
    settings, problems = read_settings(None, {"additional_networks": documents})
    assert list(settings.additional_networks) == ["good"]
    (problem,) = problems
    assert problem.path == f"agent.additional_networks.bad.{path}"
    assert text in f"{problem} {problem.remedy}"
    assert "short" not in str(problem)
    assert "secret" not in str(problem)


@pytest.mark.parametrize("label", ["", "x" * 65, "a\nb"])
def test_an_invalid_label_is_reported(label: str) -> None:
    settings, problems = read_settings(
        None, {"additional_networks": {label: {"type": "wired"}, "good": {"type": "wired"}}}
    )
    assert list(settings.additional_networks) == ["good"]
    assert "1 to 64 printable characters" in problems[0].remedy


def test_labels_are_unique_and_entered_networks_come_first() -> None:
    other = UsableNetwork(label="home", kind="wifi", source="portal", ssid=b"other")
    assert unique([WIFI, other]) == (WIFI,)
    new = UsableNetwork(label="portal: new", kind="wifi", source="portal", ssid=b"new")
    first = entered((), new, tries_all=False)
    second = entered(first, other, tries_all=False)
    assert [(network.label, network.priority) for network in second] == [("home", 999), ("portal: new", 998)]
    assert entered((), new, tries_all=True)[0].priority == 100


def test_only_the_networks_that_were_entered_last_are_kept() -> None:
    networks: tuple[UsableNetwork, ...] = ()
    for number in range(MAX_ENTERED + 10):
        new = UsableNetwork(label=f"portal: {number}", kind="wifi", source="portal", ssid=b"x")
        networks = entered(networks, new, tries_all=False)
    assert [each.label for each in networks] == [f"portal: {number}" for number in range(41, 9, -1)]
