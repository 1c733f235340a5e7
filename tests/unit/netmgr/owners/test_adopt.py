"""Networks of NetworkManager and wpa_supplicant as records."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Interface
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netmgr.model.network import Enterprise, Open, Personal, StaticAddress
from netmgr.owners.adopt import MAX_ADOPTED, from_network_manager, from_wpa_supplicant

WIFI: dict[str, dict[str, Any]] = {
    "connection": {"id": "home", "type": "802-11-wireless", "autoconnect-priority": 7, "interface-name": "wlan0"},
    "802-11-wireless": {"ssid": b"home", "mode": "infrastructure", "hidden": True},
    "802-11-wireless-security": {"key-mgmt": "wpa-psk"},
    "ipv4": {"method": "auto", "dns": [0x01000A0A], "route-metric": 50},
}
PSK = {"802-11-wireless-security": {"psk": "correct horse"}}


def changed(section: str, **values: Any) -> dict[str, dict[str, Any]]:
    return {**WIFI, section: {**WIFI.get(section, {}), **values}}


def test_a_connection_becomes_a_network() -> None:
    network = from_network_manager(WIFI, PSK)
    assert network is not None
    assert (network.label, network.kind, network.source, network.interface) == (
        "adopted: home", "wifi", "adopted", "wlan0",
    )  # fmt: skip
    assert (network.ssid, network.security, network.hidden) == (b"home", Personal(passphrase="correct horse"), True)
    assert (network.priority, network.metric, network.static) == (7, 50, None)
    assert network.dns == (IPv4Address("10.10.0.1"),)
    assert "horse" not in repr(network)


def test_a_static_address_is_adopted() -> None:
    ipv4 = {"method": "manual", "address-data": [{"address": "192.0.2.7", "prefix": 24}], "gateway": "192.0.2.1"}
    network = from_network_manager({**WIFI, "ipv4": ipv4}, PSK)
    assert network is not None
    assert network.static == StaticAddress(address=IPv4Interface("192.0.2.7/24"), gateway=IPv4Address("192.0.2.1"))
    typed = {**ipv4, "address-data": [{"address": ("s", "192.0.2.7"), "prefix": ("u", 24)}]}
    again = from_network_manager({**WIFI, "ipv4": typed}, PSK)
    assert again is not None
    assert again.static == network.static


@pytest.mark.parametrize(
    ("settings", "secrets"),
    [
        ({}, {}),
        (changed("connection", type="vpn"), PSK),
        (changed("connection", autoconnect=False), PSK),
        (changed("802-11-wireless", mode="ap"), PSK),
        (changed("802-11-wireless", ssid=b""), PSK),
        (changed("802-11-wireless-security", **{"key-mgmt": "none"}), {}),  # WEP
        (changed("ipv4", method="shared"), PSK),
        (WIFI, {}),  # the password is kept by an agent of a person who is not logged in
    ],
)
def test_connections_for_other_uses_are_left_out(settings: dict[str, Any], secrets: dict[str, Any]) -> None:
    assert from_network_manager(settings, secrets) is None


def test_open_and_enterprise_connections_are_adopted() -> None:
    plain = {key: value for key, value in WIFI.items() if key != "802-11-wireless-security"}
    network = from_network_manager(plain, {})
    assert network is not None
    assert network.security == Open()
    eap = {**changed("802-11-wireless-security", **{"key-mgmt": "wpa-eap"}), "802-1x": {
        "eap": ["peap"], "identity": "ada", "domain-suffix-match": "example.com",
    }}  # fmt: skip
    enterprise = from_network_manager(eap, {"802-1x": {"password": "secret"}})
    assert enterprise is not None
    assert enterprise.security == Enterprise(
        method="peap", identity="ada", password="secret", server_name="example.com"
    )
    assert from_network_manager({**eap, "802-1x": {"eap": ["tls"]}}, {}) is None


WPA = """
country=DE
ctrl_interface=DIR=/var/run/wpa_supplicant GROUP=netdev
network={
    ssid="home"
    psk="correct horse"
    priority=5
}
network={
    ssid=636166e9
    scan_ssid=1
    key_mgmt=NONE
}
network={
    ssid="key"
    psk=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    key_mgmt=WPA-PSK SAE
}
network={
    ssid="old"
    key_mgmt=NONE
    wep_key0="abcde"
}
network={
    ssid="off"
    psk="correct horse"
    disabled=1
}
network={
    ssid="office"
    key_mgmt=WPA-EAP
    eap=PEAP
    identity="ada"
    password="secret"
}
"""


def test_a_file_of_wpa_supplicant_is_adopted() -> None:
    home, hidden, key, office = from_wpa_supplicant(WPA, "wlan0")
    assert (home.ssid, home.security, home.priority) == (b"home", Personal(passphrase="correct horse"), 5)
    assert (hidden.ssid, hidden.security, hidden.hidden) == (b"caf\xe9", Open(), True)
    assert key.security == Personal(passphrase="0123456789abcdef" * 4)
    assert office.security == Enterprise(method="peap", identity="ada", password="secret")
    assert {network.interface for network in (home, hidden, key, office)} == {"wlan0"}
    assert len({network.label for network in (home, hidden, key, office)}) == 4


def test_many_networks_are_cut() -> None:
    text = "".join(f'network={{\n ssid="n{number}"\n key_mgmt=NONE\n}}\n' for number in range(MAX_ADOPTED + 5))
    assert len(from_wpa_supplicant(text, "wlan0")) == MAX_ADOPTED


@given(st.text(max_size=400))
def test_no_file_raises(text: str) -> None:
    from_wpa_supplicant(text, "wlan0")
    from_wpa_supplicant(f"network={{\n{text}\n}}\n", "wlan0")
