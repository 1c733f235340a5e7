"""What the portal shows, and what a person enters there. Pure."""

from __future__ import annotations

from typing import Literal

import msgspec

from netmgr.model.facts import Cipher
from netmgr.model.network import Secret

Progress = Literal["joining", "joined", "online", "failed"]


class SeenNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """Wifi network that the device has heard: the strongest access point of its SSID."""

    ssid: bytes
    cipher: Cipher
    percent: int
    """Signal from 0 to 100."""
    connected: bool = False
    last_error: str = ""
    """Why the last attempt to join it has failed, for people."""


class PortalAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """The last attempt to get online with what a person has entered. It is kept until the next one."""

    ssid: bytes
    progress: Progress
    text: str
    """Step, or reason and remedy, for people."""
    ago: float
    """Seconds since it reached this step."""


class PortalState(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the portal shows."""

    name: str
    """Host name of the device."""
    manufacturer: str
    model: str
    fragment_id: str = ""
    agent_version: str
    configured: bool
    """It has credentials of a cloud."""
    online: bool
    networks: tuple[SeenNetwork, ...] = ()
    scanned_ago: float | None = None
    """Seconds since the networks were heard; None before the first scan."""
    attempt: PortalAttempt | None = None
    next_text: str = ""
    """What happens next, and when, for people."""
    stays: bool = False
    """The hotspot stays while the device joins a network."""
    next_url: str = ""
    """Where to go when the device is online: its page in the cloud."""
    replaceable: str = ""
    """Why new credentials are accepted from a configured device without a proof; empty if they are not."""


class NetworkEntry(Secret, frozen=True, kw_only=True):
    """Network that a person has entered."""

    ssid: bytes
    passphrase: str = ""
    hidden: bool = False
    """It was typed, and was not in the list."""


class CredentialsEntry(Secret, frozen=True, kw_only=True):
    """Credentials of a cloud that a person has entered: the text of a credentials file."""

    document: bytes
    proof: str = ""
    """The device's own secret, or the secret or key of the credentials that it has."""
