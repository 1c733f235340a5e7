"""State and events of provisioning, and its times. Pure."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Final, Literal

import msgspec

from netmgr.model.decision import NetworkDecision
from netmgr.model.events import Joined, JoinFailed, JoinFailure, Left
from netmgr.model.facts import NetworkFacts
from netmgr.model.network import UsableNetwork
from netmgr.model.settings import NetworkSettings

JOIN_LIMIT: Final = 60.0
"""Seconds for joining a network, with its address: twice what a slow router with DHCP takes."""
MISSED: Final = 25.0
"""Seconds after the loss of a network in which it must be heard again, if others are: more than one scan."""
PROOF_LIMIT: Final = 30.0
"""Seconds after joining until the cloud must have answered, if that is needed."""
HEARD: Final = 60.0
"""Seconds since its last announcement in which a network counts as present."""
ABSENT: Final = 150.0
"""Seconds without an announcement after which a network counts as new, while one is joined: scans are 120 seconds
apart then. HEARD applies while none is joined."""
LEAVE_PAUSE: Final = 3.0
"""Seconds between the end of an entry and the end of the hotspot, so that its answer reaches the phone."""
FIRST_RETRY: Final = 15.0
"""Seconds between a failure to join a network and the next attempt; doubled each time, up to Settings.retry."""
FIRST_WRONG_PASSWORD: Final = 600.0
"""The same after a wrong password, up to MAX_WRONG_PASSWORD: it does not become right by waiting."""
MAX_WRONG_PASSWORD: Final = 3600.0
MAX_JOINS: Final = 40
"""Attempts to join in an hour, of all networks together, except those that people request."""
HOUR: Final = 3600.0
ROAM_AFTER: Final = 60.0
"""Seconds in which a preferred network must be heard well before the device changes to it."""
ROAM_SIGNAL: Final = -75
"""dBm that count as well."""
MAX_REBOOT_INTERVAL: Final = 86400.0
"""Seconds offline until a reboot, which double with each reboot in a row; the limit of the doubling."""
REBOOT_WAIT: Final = 300.0
"""Seconds between two requests for the same reboot."""

PERMANENT: Final = frozenset({JoinFailure.WRONG_PASSWORD, JoinFailure.CREDENTIALS, JoinFailure.SERVER_CERTIFICATE})
"""Failures that only a person can end."""


class Mode(StrEnum):
    """What provisioning is doing."""

    SEARCHING = "searching"
    """Offline; known networks are tried."""
    ONLINE = "online"
    HOTSPOT = "hotspot"
    """The hotspot runs, and waits for a person."""
    TESTING = "testing"
    """A network that a person has entered is joined."""


class Interacted(msgspec.Struct, frozen=True):
    """A person is active in the portal or in an app."""


class Entered(msgspec.Struct, frozen=True, kw_only=True):
    """A person has entered a network, which is part of the settings now. It is joined after Leave, or when idle."""

    label: str
    now: bool = False
    """Join it at once, also outside of the hotspot: it was entered on the device itself."""


class EnteringFinished(msgspec.Struct, frozen=True):
    """A person has finished entering: what was entered is used."""


class Forced(msgspec.Struct, frozen=True):
    """A person at the device wants the hotspot."""


Event = Joined | JoinFailed | Left | Interacted | Entered | EnteringFinished | Forced


class JoinTarget(msgspec.Struct, frozen=True, kw_only=True):
    """Network that an interface joins or has joined."""

    label: str
    since: float
    joined: float = math.inf
    """Time at which it had an address."""
    lost: bool = False
    """It was joined, and its connection was lost at `since`."""


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """Memory of failed attempts to join a network."""

    network: UsableNetwork
    """As it was tried: with another password it is tried at once."""
    failures: int
    last: float
    failure: JoinFailure
    detail: str = ""


class NetworkPresence(msgspec.Struct, frozen=True, kw_only=True):
    """When a network was heard."""

    first: float
    last: float
    strong: float = math.inf
    """Since when its signal is at least ROAM_SIGNAL."""


class JoinAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """Last attempt to join a network that a person has entered."""

    label: str
    progress: Literal["joining", "joined", "failed"]
    failure: JoinFailure | None = None
    detail: str = ""
    at: float
    """Time of the last change."""


class ProvisioningState(msgspec.Struct, frozen=True, kw_only=True):
    """State of provisioning. All times are monotonic, in seconds."""

    mode: Mode = Mode.SEARCHING
    since: float = 0.0
    """Time of the last change of the mode."""
    started: float = 0.0
    online: bool = False
    online_at: float = -math.inf
    """Last time at which the device was online."""
    left_hotspot: float = -math.inf
    interaction: float = -math.inf
    forced_until: float = -math.inf
    entered: str = ""
    """Label of the network that a person has entered and that has not been tried yet."""
    leave_at: float = math.inf
    """Time at which what was entered is used."""
    targets: dict[str, JoinTarget] = {}
    """By interface."""
    tried: dict[str, Tried] = {}
    """By label."""
    joins: tuple[float, ...] = ()
    """Times of the attempts of the last hour."""
    heard: dict[str, NetworkPresence] = {}
    """By label."""
    reboot_asked: float = -math.inf
    attempt: JoinAttempt | None = None

    # Kept over a reboot, with `attempt`.
    ever_online: bool = False
    reboots: int = 0
    """Reboots in a row because the device was offline."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Part of the state that is stored."""

    ever_online: bool = False
    reboots: int = 0
    attempt: JoinAttempt | None = None


def kept(state: ProvisioningState) -> Kept:
    """Return what is stored of a state."""
    return Kept(ever_online=state.ever_online, reboots=state.reboots, attempt=state.attempt)


def restored(stored: Kept, now: float) -> ProvisioningState:
    """Return the state at a start of the agent. Monotonic times of the former start mean nothing any more."""
    attempt = stored.attempt
    if attempt is not None and attempt.progress == "joining":
        attempt = JoinAttempt(
            label=attempt.label, progress="failed", detail="the device was restarted meanwhile", at=now
        )
    elif attempt is not None:
        attempt = msgspec.structs.replace(attempt, at=now)
    return ProvisioningState(
        started=now, since=now, ever_online=stored.ever_online, reboots=stored.reboots, attempt=attempt
    )


class ProvisioningWorld(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a step considers beside the state."""

    settings: NetworkSettings
    facts: NetworkFacts
    configured: bool
    """The device has credentials of a cloud."""


class ProvisioningOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a step."""

    state: ProvisioningState
    decision: NetworkDecision
    reboot: bool = False
    wake: float = math.inf
    """Time of the next step that is needed without an event or another change of the facts."""
    reasons: tuple[str, ...] = ()
    """Why the mode has changed, for the log."""
