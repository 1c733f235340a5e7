"""Introductions: what a caller through the cloud needs to reach this machine directly, in the same network.

The cloud has authenticated both ends, so the machine sends the caller its addresses, the digest of its certificate and
a token, over that path. The caller connects to an address only if it proves to have this certificate. No key is sent,
and whatever else answers at the address learns nothing.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from rpc.api import CallInfo

INTRODUCTION_KEY: Final = "machine-introduction"
"""Metadata key of GetVersion, specific to this project: in a call, a request for an introduction; in a reply, JSON."""

CLOUD: Final = ("cloud",)
"""Address of callers through the cloud, in place of one of the network: such a caller is never local."""

MAX_ADDRESSES: Final = 8
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")


class Introduction(msgspec.Struct, frozen=True, kw_only=True):
    """What one caller needs to reach a machine directly."""

    addresses: tuple[str, ...]  # IP address and port
    certificate: str  # SHA-256 of the certificate of the port over DER, hexadecimal
    token: str  # authenticates the caller at this machine only
    computer: str = ""  # see `this_computer`

    def __repr__(self) -> str:
        return f"Introduction({', '.join(self.addresses)})"


def requests_introduction(call: CallInfo) -> bool:
    """Return whether a call asks for an introduction, and may: others have logged in here, perhaps for a short time."""
    through_cloud = call.peer is not None and call.peer.address == CLOUD
    return INTRODUCTION_KEY in call.metadata and through_cloud and call.identity is not None


def parse_introduction(text: str) -> Introduction | None:
    """Parse an introduction, and keep the addresses that may be tried; None if there is none, or it is not valid.

    The machine chooses the addresses, so that only what can be a machine in a network is kept. Loopback is kept if both
    run on one computer.
    """
    try:
        introduction = msgspec.json.decode(text, type=Introduction)
    except (msgspec.DecodeError, UnicodeError):
        return None
    usable = tuple(_usable(introduction.addresses, same=introduction.computer == this_computer()))[:MAX_ADDRESSES]
    if not usable or not introduction.token.isascii() or not introduction.token.isprintable():
        return None
    return msgspec.structs.replace(introduction, addresses=usable)


def reachable(listening: Iterable[str], outward: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses at which others reach a port that listens at `listening`; `outward` are this computer's."""
    addresses: list[str] = []
    for text in listening:
        host, _, port = text.rpartition(":")
        host = host.strip("[]")
        if host in ("0.0.0.0", "::"):
            version = 4 if host == "0.0.0.0" else 6
            hosts = [each for each in outward if ipaddress.ip_address(each).version == version] or [_LOOPBACK[version]]
        else:
            hosts = [host]
        addresses += [f"[{each}]:{port}" if ":" in each else f"{each}:{port}" for each in hosts]
    return tuple(dict.fromkeys(addresses))[:MAX_ADDRESSES]


_LOOPBACK: Final = {4: "127.0.0.1", 6: "::1"}


@cache
def this_computer() -> str:
    """Return a digest that is the same for all programs of this computer until it restarts; "" if there is none."""
    try:
        boot = _BOOT.read_text("ascii").strip()
    except OSError:
        return ""
    return hashlib.sha256(f"introduction {boot}".encode()).hexdigest()[:32]


def _usable(addresses: Iterable[str], *, same: bool) -> Iterator[str]:
    for text in addresses:
        host, _, port = text.rpartition(":")
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            continue
        local = address.is_loopback
        if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16):
            continue
        if not (address.is_unspecified or address.is_multicast) and (same or not local):
            yield text
