"""The stored record of netmgr, and its file format: JSON, readable only by root. Pure."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any, Final

import msgspec

from netmgr.model.facts import AddressLease, Manager
from netmgr.model.network import UsableNetwork
from netmgr.provisioning import trial
from netmgr.provisioning.states import Kept

FORMAT: Final = 1
MAX_BYTES: Final = 1 << 20
MAX_NETWORKS: Final = 200
"""Networks that people have entered or that were adopted."""
MAX_LEASES: Final = 50
ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"
"""Characters of the generated password: none that look alike."""
PASSWORD_LENGTH: Final = 12
"""60 bits: the hotspot's handshake can be recorded, and passwords tried against it at millions per second."""


class RememberedLease(msgspec.Struct, frozen=True, kw_only=True):
    """Address that was used in a network, so that it is requested again."""

    interface: str
    ssid: bytes
    """Empty for a cable."""
    lease: AddressLease


class StoredNetworks(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is kept."""

    format: int = FORMAT
    networks: tuple[UsableNetwork, ...] = ()
    """Networks that people have entered, with the source portal or console."""
    kept: Kept = Kept()
    trial: trial.TrialRecord = trial.TrialRecord()
    managers: dict[str, Manager] = {}
    """By interface that was taken over: its former manager."""
    addresses: tuple[tuple[str, IPv4Interface], ...] = ()
    """Addresses that netmgr has added, by interface."""
    joined: dict[str, UsableNetwork] = {}
    """Networks that are joined, by interface."""
    leases: tuple[RememberedLease, ...] = ()
    """The last used one comes first."""
    password: str = ""
    """Generated password of the hotspot."""
    device_secret: str = ""
    """Generated proof that a person may give the device to another cloud."""
    connectivity_key: str = ""
    """Key of rpc.access.proof, from the cloud."""

    def __repr__(self) -> str:
        return f"Stored({len(self.networks)} networks, ...)"

    def lease(self, interface: str, ssid: bytes) -> AddressLease | None:
        """Return the lease that was used last on this interface in this network."""
        matches = (entry.lease for entry in self.leases if (entry.interface, entry.ssid) == (interface, ssid))
        return next(matches, None)


def with_lease(stored: StoredNetworks, interface: str, ssid: bytes, lease: AddressLease) -> StoredNetworks:
    """Return the record with a lease in front."""
    others = [entry for entry in stored.leases if (entry.interface, entry.ssid) != (interface, ssid)]
    first = RememberedLease(interface=interface, ssid=ssid, lease=lease)
    return msgspec.structs.replace(stored, leases=(first, *others)[:MAX_LEASES])


def with_network(stored: StoredNetworks, network: UsableNetwork) -> StoredNetworks:
    """Return the record with a network that a person has entered. It replaces the one with the same label."""
    others = [entry for entry in stored.networks if entry.label != network.label]
    return msgspec.structs.replace(stored, networks=(network, *others)[:MAX_NETWORKS])


def without_network(stored: StoredNetworks, label: str) -> StoredNetworks:
    """Return the record without a network."""
    return msgspec.structs.replace(stored, networks=tuple(entry for entry in stored.networks if entry.label != label))


def new_password(choose: Callable[[Sequence[str]], str] = secrets.choice) -> str:
    """Return a random password for the hotspot."""
    return "".join(choose(ALPHABET) for _ in range(PASSWORD_LENGTH))


class InvalidStoredError(ValueError):
    """The content of the file cannot be used. The text has none of it."""


def encode(stored: StoredNetworks) -> bytes:
    """Return the content of the file."""
    stored = msgspec.structs.replace(stored, trial=trial.stored(stored.trial))
    return msgspec.json.encode(stored, enc_hook=str, order="deterministic")


def decode(data: bytes) -> StoredNetworks:
    """Return the record of a file. Raises InvalidStoredError."""
    if len(data) > MAX_BYTES:
        raise InvalidStoredError(f"it is larger than {MAX_BYTES >> 10} KiB")
    try:
        stored = msgspec.json.decode(data, type=StoredNetworks, dec_hook=_address, strict=True)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        where = str(error).partition(" - at ")[2]
        raise InvalidStoredError(f"it is damaged{f' at {where}' if where else ''}") from None
    if stored.format != FORMAT:
        raise InvalidStoredError(f"it has the format {stored.format}, and this version reads {FORMAT}")
    return stored


def _address(kind: type, value: Any) -> Any:
    if kind in (IPv4Address, IPv4Interface, IPv4Network) and isinstance(value, str):
        return kind(value)
    raise NotImplementedError(kind)
