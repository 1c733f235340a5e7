"""Networks and hotspots as settings of wpa_supplicant. Pure.

Values of people are written as hexadecimal digits, which need no quoting. The only one that cannot be, because digits
mean the key itself there, is `psk`: wpa_supplicant reads it up to the last quotation mark.
"""

from __future__ import annotations

import binascii
import math
import re
from typing import Final

import msgspec

from netmgr.model.network import Enterprise, Open, Personal, Secret, UsableNetwork, ssid_text
from netmgr.model.settings import Hotspot
from schema import ErrorKind, MachineError

SYSTEM_AUTHORITIES: Final = "/etc/ssl/certs/ca-certificates.crt"
"""Certificates that Debian trusts."""
MAX_BLOB: Final = 4000
"""Bytes of a certificate or key: a request has at most 8192 bytes, and two digits are needed for a byte."""
PREFERRED_CHANNEL: Final = 6
CHANNELS: Final = {1: 2412, 6: 2437, 11: 2462}
"""Channels of a hotspot without a joined network, in MHz: allowed in every country, and they do not overlap."""
CERTAIN: Final = 1_735_689_600
"""2025-01-01 in seconds since 1970: a clock before this is certainly wrong."""
_ANY_DATE: Final = '"tls_disable_time_checks=1"'
_KEY: Final = re.compile(r"[0-9a-fA-F]{64}")
_PASSPHRASE: Final = re.compile(r"[\x20-\x7e]{8,63}")
_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----\s([^-]*+(?:-[^-]++)*+)-----END \1-----")
_CIPHERS: Final = {"proto": "RSN", "pairwise": "CCMP", "group": "CCMP"}


class Requested(Secret, frozen=True, kw_only=True):
    """What configures a network: values of SET_NETWORK, of one or more alternatives, and blobs that they name."""

    alternatives: tuple[dict[str, str], ...]
    """All are enabled; wpa_supplicant prefers one with a higher priority if both fit."""
    blobs: dict[str, bytes] = msgspec.field(default_factory=dict)


def client(network: UsableNetwork, *, sae: bool = True, now: float = math.inf) -> Requested:
    """Return the settings that join a network; `sae`: the radio and wpa_supplicant can use WPA3.

    `now` is the clock in seconds since 1970. Before CERTAIN it is wrong, and the dates of certificates are not checked:
    a computer without a clock of its own needs the network to set it.

    INVALID, without the value, if wpa_supplicant cannot use a credential.
    """
    values = {"ssid": network.ssid.hex(), "scan_ssid": str(int(network.hidden))}
    security = network.security
    if isinstance(security, Open):
        # Together in one key_mgmt, NONE would be used with access points that have only OWE.
        owe = {**values, "key_mgmt": "OWE", "ieee80211w": "2", "priority": "1"}
        return Requested(alternatives=(owe, {**values, "key_mgmt": "NONE"}))
    if isinstance(security, Personal):
        return Requested(alternatives=({**values, **_personal(network, security, sae)},))
    return _enterprise(network, security, values if now >= CERTAIN else {**values, "phase1": _ANY_DATE})


def _personal(network: UsableNetwork, security: Personal, sae: bool) -> dict[str, str]:
    passphrase = security.passphrase
    if _KEY.fullmatch(passphrase):
        return {"key_mgmt": "WPA-PSK WPA-PSK-SHA256", "psk": passphrase, "ieee80211w": "1"}
    if not _PASSPHRASE.fullmatch(passphrase):
        raise _invalid(network, "the password", "enter 8 to 63 printable ASCII characters")
    values = {"key_mgmt": "WPA-PSK WPA-PSK-SHA256", "psk": f'"{passphrase}"', "ieee80211w": "1"}
    if sae:
        values["key_mgmt"] += " SAE"
        values["sae_password"] = passphrase.encode().hex()
    return values


def _enterprise(network: UsableNetwork, security: Enterprise, values: dict[str, str]) -> Requested:
    blobs: dict[str, bytes] = {}

    def blob(name: str, pem: str) -> str:
        data = _der(pem)
        if data is None:
            raise _invalid(network, name.replace("-", " "), "enter one as PEM, from BEGIN to END")
        if len(data) > MAX_BLOB:
            raise _invalid(network, name.replace("-", " "), f"it has more than {MAX_BLOB} bytes")
        blobs[name] = data
        return f'"blob://{name}"'

    values = {
        **values,
        "key_mgmt": "WPA-EAP WPA-EAP-SHA256",
        "ieee80211w": "1",
        "eap": security.method.upper(),
        "identity": security.identity.encode().hex(),
    }
    if security.ca_certificate:
        values["ca_cert"] = blob("ca-certificate", security.ca_certificate)
    elif security.server_name:
        values["ca_cert"] = f'"{SYSTEM_AUTHORITIES}"'
    else:
        raise _invalid(network, "ca_certificate", "enter it, or enter server_name to accept what the system trusts")
    if security.server_name:
        values["domain_suffix_match"] = security.server_name.encode().hex()
    if security.method == "peap":
        values["anonymous_identity"] = (security.anonymous_identity or security.identity).encode().hex()
        values |= {"password": security.password.encode().hex(), "phase2": '"auth=MSCHAPV2"'}
    else:
        values["client_cert"] = blob("client-certificate", security.client_certificate)
        values["private_key"] = blob("private-key", security.private_key)
        if security.private_key_password:
            values["private_key_passwd"] = security.private_key_password.encode().hex()
    return Requested(alternatives=({key: value for key, value in values.items() if value},), blobs=blobs)


def _der(pem: str) -> bytes | None:
    """Return a certificate or key in binary form, which is a quarter shorter; an encrypted key as it is.

    None unless it is exactly one: wpa_supplicant 2.10 uses only the first one of a blob.
    """
    parts = [part for part in _PEM.finditer(pem) if part[1] != "EC PARAMETERS"]  # openssl writes them before a key
    if len(parts) != 1:
        return None
    if "ENCRYPTED" in parts[0][0]:
        return parts[0][0].encode() + b"\n"
    try:
        return binascii.a2b_base64(parts[0][2])
    except binascii.Error:
        return None


def hotspot(settings: Hotspot, frequency: int) -> Requested:
    """Return the settings of a hotspot with WPA2 on a channel, in MHz. INVALID if the password cannot be used."""
    if not _PASSPHRASE.fullmatch(settings.password):
        raise MachineError(
            "the password of the hotspot cannot be used", kind=ErrorKind.INVALID,
            remedy="set 8 to 63 printable ASCII characters",
        )  # fmt: skip
    values = {
        "ssid": settings.ssid.hex(),
        "mode": "2",
        "frequency": str(frequency),
        "key_mgmt": "WPA-PSK",
        "wps_disabled": "1",  # it would let a neighbour join who guesses a number of 8 digits
        **_CIPHERS,
        "psk": f'"{settings.password}"',
    }
    return Requested(alternatives=(values,))


def quietest(frequencies: list[int]) -> int:
    """Return the frequency of CHANNELS that is used by the fewest access points; the usual one if several are."""
    counts = {frequency: sum(abs(frequency - used) < 25 for used in frequencies) for frequency in CHANNELS.values()}
    preferred = CHANNELS[PREFERRED_CHANNEL]
    return min(counts, key=lambda frequency: (counts[frequency], frequency != preferred))


def _invalid(network: UsableNetwork, what: str, remedy: str) -> MachineError:
    return MachineError(
        f"{what} of the network {ssid_text(network.ssid)} cannot be used", kind=ErrorKind.INVALID, remedy=remedy
    )
