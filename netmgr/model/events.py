"""Events of the network that decisions need in addition to the facts. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class JoinFailure(StrEnum):
    """Why a network could not be joined, in the words that are shown to people (netmgr.model.words)."""

    NOT_FOUND = "not-found"  # no access point with this SSID answered
    WRONG_PASSWORD = "wrong-password"
    REJECTED = "rejected"  # the access point refuses this device, or has no place
    CREDENTIALS = "credentials"  # EAP: identity, password or certificate was refused
    SERVER_CERTIFICATE = "server-certificate"  # EAP: the server's certificate is not the expected one
    NO_ADDRESS = "no-address"  # DHCP did not answer
    NO_INTERNET = "no-internet"  # joined, but the cloud does not answer through it
    PORTAL = "portal"  # joined, but a page of the network answers instead of the cloud
    NO_NAME = "no-name"  # joined, but the name of the cloud cannot be resolved
    TIMEOUT = "timeout"
    RADIO = "radio"  # the radio failed, was blocked or was removed


class Joined(msgspec.Struct, frozen=True, kw_only=True):
    """A wifi network was joined."""

    interface: str
    label: str


class JoinFailed(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt to join a wifi network has ended without success."""

    interface: str
    label: str
    failure: JoinFailure
    detail: str = ""
    """Text of the daemon, without secrets."""


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """The connection with a wifi network was lost."""

    interface: str
    label: str
    detail: str = ""
