"""What can happen during an update. Pure."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from agent.update.record import ReleaseOffer, UpdateStep


class Offered(NamedTuple):
    """The cloud or a person wants this release; None: the program is to stay as it is. May be repeated.

    The caller decides whose wish counts. A cloud that cannot be asked has no wish: then deliver nothing.
    """

    offer: ReleaseOffer | None


class Succeeded(NamedTuple):
    """The action of `step` for the release with this hash is done."""

    step: UpdateStep
    sha256: str


class Failed(NamedTuple):
    """The action of `step` failed; `permanent` if the same release would fail again."""

    step: UpdateStep
    sha256: str
    reason: str
    permanent: bool = False


class DeadlinePassed(NamedTuple):
    """The deadline of the progress is over. Ignored if it is not, so an outdated timer does no harm."""


class WindowOpened(NamedTuple):
    """Maintenance is allowed now; delivered repeatedly while this is so, since a hold may end in the meantime.

    `offline` is a stable word for why the machine is offline now, or empty.
    """

    offline: str = ""


class Started(NamedTuple):
    """The release with this hash is about to be started; the launcher counts this before it does so."""

    sha256: str


class ProgramObserved(NamedTuple):
    """Facts about the running release: all of them, each time."""

    sha256: str
    up: float  # seconds since its last start
    served: bool  # it answers real requests now
    configured: bool = False  # it has fetched its configuration from the cloud
    offline: str = ""  # a stable word for why the machine is offline, or empty


class RollBackRequested(NamedTuple):
    """A person wants the release back that ran before."""


class HoldRequested(NamedTuple):
    """A person allows no switch before this time, except to a release that a person asked for; 0 ends the hold.

    It ends after MAX_HOLD at the latest.

    The time is finite, because infinity cannot be stored.
    """

    until: float


class Resumed(NamedTuple):
    """The caller has started, after a power loss or otherwise."""


Event: TypeAlias = (
    Offered
    | Succeeded
    | Failed
    | DeadlinePassed
    | WindowOpened
    | Started
    | ProgramObserved
    | RollBackRequested
    | HoldRequested
    | Resumed
)
