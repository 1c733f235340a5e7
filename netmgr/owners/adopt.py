"""Networks of other programs as records: connections of NetworkManager, and files of wpa_supplicant. Pure."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv4Interface
from typing import Any, Final

from netmgr.model.network import Enterprise, Open, Personal, Security, StaticAddress, UsableNetwork, ssid_text

MAX_ADOPTED: Final = 100
"""Networks that are adopted from one program; a laptop that travels has some dozens."""
LOWEST, HIGHEST = -999, 999  # of a priority
_WIFI, _WIRED = "802-11-wireless", "802-3-ethernet"

Settings = Mapping[str, Mapping[str, Any]]
"""Connection of NetworkManager: values by key by section, without the types of D-Bus."""


def from_network_manager(settings: Settings, secrets: Settings) -> UsableNetwork | None:
    """Return the network of a connection; None for one that is not for this device's automatic use.

    These are connections that do not connect by themselves, hotspots, VPNs, shared networks, and security that is not
    supported (WEP, smart cards).
    """
    connection, ipv4 = settings.get("connection", {}), settings.get("ipv4", {})
    kind, wifi = connection.get("type"), settings.get(_WIFI, {})
    if kind not in (_WIFI, _WIRED) or not connection.get("autoconnect", True) or ipv4.get("method") == "shared":
        return None
    security: Security | None = Open()
    if kind == _WIFI:
        if wifi.get("mode", "infrastructure") != "infrastructure" or not wifi.get("ssid"):
            return None
        security = _security(settings, secrets)
    if security is None:
        return None
    name = str(connection.get("id") or connection.get("uuid") or "")
    return UsableNetwork(
        label=f"adopted: {name}",
        kind="wifi" if kind == _WIFI else "wired",
        source="adopted",
        interface=str(connection.get("interface-name", "")),
        ssid=bytes(wifi.get("ssid", b"")),
        security=security,
        hidden=bool(wifi.get("hidden", False)),
        priority=_priority(connection.get("autoconnect-priority", 0)),
        static=_static(ipv4),
        dns=tuple(_dns(ipv4)),
        metric=max(int(ipv4.get("route-metric", -1)), 0),
    )


def _security(settings: Settings, secrets: Settings) -> Security | None:
    section = "802-11-wireless-security"
    wifi_security = settings.get(section)
    if wifi_security is None:
        return Open()
    management = wifi_security.get("key-mgmt", "")
    if management in ("wpa-psk", "sae"):
        passphrase = str(secrets.get(section, {}).get("psk", ""))
        return Personal(passphrase=passphrase) if passphrase else None
    if management == "owe":
        return Open()
    return _enterprise(settings, secrets) if management in ("wpa-eap", "wpa-eap-suite-b-192") else None


def _enterprise(settings: Settings, secrets: Settings) -> Enterprise | None:
    """Return EAP-PEAP with a password. Certificates of NetworkManager are files, which are not adopted."""
    plain, secret = settings.get("802-1x", {}), secrets.get("802-1x", {})
    if list(plain.get("eap", [])) != ["peap"] or not secret.get("password") or plain.get("ca-cert"):
        return None
    return Enterprise(
        method="peap",
        identity=str(plain.get("identity", "")),
        anonymous_identity=str(plain.get("anonymous-identity", "")),
        password=str(secret["password"]),
        server_name=str(plain.get("domain-suffix-match", "")),
    )


def _static(ipv4: Mapping[str, Any]) -> StaticAddress | None:
    if ipv4.get("method") != "manual":
        return None
    for entry in ipv4.get("address-data", []):
        try:
            address = IPv4Interface(f"{_plain(entry['address'])}/{_plain(entry['prefix'])}")
            gateway = ipv4.get("gateway")
            return StaticAddress(address=address, gateway=IPv4Address(gateway) if gateway else None)
        except (KeyError, ValueError):
            continue
    return None


def _dns(ipv4: Mapping[str, Any]) -> Iterator[IPv4Address]:
    """Yield the name servers: bytes in network order, which D-Bus transports as a number of this computer."""
    for number in ipv4.get("dns", []):
        yield IPv4Address(int(number).to_bytes(4, sys.byteorder))


def _plain(value: Any) -> Any:
    return value[1] if isinstance(value, tuple) else value


def plain_settings(reply: Mapping[str, Mapping[str, tuple[str, Any]]]) -> Settings:
    """Return the sections of a connection without the types of D-Bus."""
    return {section: {key: value for key, (_, value) in fields.items()} for section, fields in reply.items()}


def _priority(value: object) -> int:
    number = value if isinstance(value, int) else 0
    return max(LOWEST, min(HIGHEST, number))


# ---- wpa_supplicant.conf

_BLOCK: Final = re.compile(
    r"^[ \t]*+network[ \t]*+=[ \t]*+\{[ \t]*+\n((?:(?![ \t]*+(?:\}|network[ \t]*+=))[^\n]*+\n)*+)[ \t]*+\}",
    re.MULTILINE,
)
_FIELD: Final = re.compile(r"^[ \t]*+([a-z0-9_]++)[ \t]*+=[ \t]*+(\S*+(?:[ \t]++\S++)*+)[ \t\r]*+$", re.MULTILINE)


def from_wpa_supplicant(text: str, interface: str) -> tuple[UsableNetwork, ...]:
    """Return the networks of a configuration file of wpa_supplicant, which dhcpcd and systems of old use."""
    networks: list[UsableNetwork] = []
    for number, block in enumerate(_BLOCK.finditer(text), 1):
        fields = dict(_FIELD.findall(block[1]))
        ssid, security = _ssid(fields.get("ssid", "")), _wpa_security(fields)
        if not 1 <= len(ssid) <= 32 or security is None or fields.get("disabled") == "1":
            continue
        networks.append(
            UsableNetwork(
                label=f"adopted: {number}. {ssid_text(ssid)}",
                kind="wifi",
                source="adopted",
                interface=interface,
                ssid=ssid,
                security=security,
                hidden=fields.get("scan_ssid") == "1",
                priority=_priority(_number(fields.get("priority", "0"))),
            )
        )
    return tuple(networks[:MAX_ADOPTED])


def _wpa_security(fields: Mapping[str, str]) -> Security | None:
    management = fields.get("key_mgmt", "WPA-PSK WPA-EAP").split()
    psk, password = fields.get("psk", ""), fields.get("sae_password", "")
    if management == ["NONE"]:
        return None if any(key.startswith("wep_key") for key in fields) else Open()
    if "OWE" in management:
        return Open()
    key = _text(psk) or _text(password)
    if key and any(name.startswith(("WPA-PSK", "SAE", "FT-")) for name in management):
        return Personal(passphrase=key)
    if "WPA-EAP" in management and fields.get("eap", "").split() == ["PEAP"] and "ca_cert" not in fields:
        return Enterprise(
            method="peap",
            identity=_text(fields.get("identity", "")),
            anonymous_identity=_text(fields.get("anonymous_identity", "")),
            password=_text(fields.get("password", "")),
            server_name=_text(fields.get("domain_suffix_match", "")),
        )
    return None


def _text(value: str) -> str:
    """Return a quoted text, or a key in hexadecimal digits; empty for other forms."""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value if re.fullmatch(r"[0-9A-Fa-f]{64}", value) else ""


def _ssid(value: str) -> bytes:
    """Return an SSID: a quoted text, or hexadecimal digits."""
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return value[1:-1].encode()
    try:
        return bytes.fromhex(value)
    except ValueError:
        return b""


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"-?\d{1,6}", text) else 0
