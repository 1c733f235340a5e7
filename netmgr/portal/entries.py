"""Check what a person has entered: forms of the portal, and requests of the gRPC API. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from netmgr.portal.state import NetworkEntry
from schema import ConfigError, MachineError

MAX_SSID: Final = 32  # bytes; IEEE 802.11
MAX_DOCUMENT: Final = 16 * 1024  # bytes of credentials; those of the cloud have some 300
_PASSPHRASE: Final = re.compile(r"[ -~]{8,63}|[0-9A-Fa-f]{64}")


def network_of(ssid: bytes, passphrase: str, *, hidden: bool = False) -> NetworkEntry:
    """Return the network that was entered. ConfigError names the field; it never contains the password."""
    if not 1 <= len(ssid) <= MAX_SSID:
        raise ConfigError(
            "ssid", f"has {len(ssid)} bytes", remedy=f"choose a network, or type its name: 1 to {MAX_SSID} bytes"
        )
    if passphrase and not _PASSPHRASE.fullmatch(passphrase):
        count = f"{len(passphrase)} characters" if passphrase.isascii() else "characters that no wifi password has"
        raise ConfigError(
            "password", f"has {count}", remedy="enter 8 to 63 letters, digits and signs, or nothing for an open network"
        )
    return NetworkEntry(ssid=ssid, passphrase=passphrase, hidden=hidden)


def network_of_form(form: Mapping[str, str]) -> NetworkEntry | None:
    """Return the network in a form of the portal, None if there is none. ConfigError names the field.

    `network` is the SSID of a network in the list, in hexadecimal; `ssid` is a typed one, and comes first.
    """
    typed, chosen, password = form.get("ssid", ""), form.get("network", ""), form.get("password", "")
    if typed.strip():
        return network_of(typed.encode(errors="replace"), password, hidden=True)
    if not chosen:
        if password:
            raise ConfigError("ssid", "is missing", remedy="choose a network, or type its name")
        return None
    try:
        return network_of(bytes.fromhex(chosen), password)
    except ValueError:
        raise ConfigError("ssid", "cannot be read", remedy="load the page again") from None


def document_of(text: str) -> bytes:
    """Return credentials as entered. ConfigError if they are too large; they are decoded when they are stored."""
    document = text.strip().encode(errors="replace")
    if len(document) > MAX_DOCUMENT:
        raise ConfigError(
            "credentials", f"have {len(document)} bytes", remedy="paste the text from the machine's page in the cloud"
        )
    return document


def plain(error: MachineError) -> str:
    """Return an error for people without the language of configuration files."""
    if isinstance(error, ConfigError):
        name = {"ssid": "The name of the network", "password": "The password", "credentials": "The credentials"}
        return f"{name.get(error.path, error.path)} {error.reason}: {error.remedy}."
    return f"{str(error)[:1].upper()}{str(error)[1:]}."
