"""When a failed node is restarted: policy, intensity within a period, jittered exponential back-off. Pure.

The terms have the same meaning as for OTP supervisors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

Kind = Literal["permanent", "transient", "temporary"]

_KINDS: Final = get_args(Kind)
_MAX_DOUBLINGS: Final = 60  # beyond any sensible `max_delay`; avoids an overflow


@dataclass(frozen=True, slots=True)
class Restart:
    """What happens after a node's run has ended by itself.

    `permanent`: it always restarts. `transient`: it restarts only after a failure; returning when ready means that its
    work is done. `temporary`: it never restarts. Ending before it was ready is always a failure.

    A node that crashes more than `intensity` times within `period` seconds after having been ready is not restarted: it
    rests, unhealthy, until its configuration changes, a dependency becomes ready again, or `Graph.retry` is called. A
    failure to start never makes it rest (hardware may be plugged in later); only the delay before the next attempt
    grows.

    The n-th consecutive attempt waits between half and all of `first_delay * 2**(n - 1)` seconds, at most `max_delay`.
    The count starts again when the node has been ready for `period` seconds.
    """

    kind: Kind = "permanent"
    intensity: int = 5
    period: float = 60.0
    first_delay: float = 0.5
    max_delay: float = 60.0

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise ValueError(f"restart kind {self.kind!r} is not one of {', '.join(_KINDS)}")
        if self.intensity < 0:
            raise ValueError(f"restart intensity {self.intensity} is negative: use 0 to rest after the first crash")
        if self.period <= 0:
            raise ValueError(f"restart period {self.period:g} s is not positive")
        if not 0 < self.first_delay <= self.max_delay:
            raise ValueError(
                f"restart delays must be positive and first_delay ({self.first_delay:g} s) at most "
                f"max_delay ({self.max_delay:g} s)"
            )


@dataclass(frozen=True, slots=True)
class History:
    """Failures of one node in earlier runs; a new configuration clears them."""

    failures: int = 0  # consecutive
    crashes: tuple[float, ...] = ()  # times of the crashes after ready within the period


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do after a failure: restart after `delay` seconds, or rest if it is None, for the reason in `reason`."""

    history: History
    delay: float | None
    reason: str = ""


def back_off(restart: Restart, failures: int, draw: float) -> float:
    """Return the seconds before the next attempt after `failures` consecutive failures; `draw` is random in [0, 1)."""
    ceiling = min(restart.max_delay, restart.first_delay * 2.0 ** min(failures - 1, _MAX_DOUBLINGS))
    return ceiling * (1 + draw) / 2


def after_failure(restart: Restart, history: History, now: float, ready_at: float | None, draw: float) -> Verdict:
    """Decide what to do with a node that failed at `now` and was ready since `ready_at` (None: it was never ready)."""
    failures, crashes = history.failures + 1, history.crashes
    if ready_at is not None:
        crashes = (*(at for at in crashes if now - at < restart.period), now)
        if now - ready_at >= restart.period:
            failures = 1
    after = History(failures, crashes)
    if restart.kind == "temporary":
        return Verdict(after, None, "its restart policy is temporary: it is not restarted")
    if ready_at is not None and len(crashes) > restart.intensity:
        return Verdict(after, None, f"gave up: crashed {len(crashes)} times within {restart.period:g} s")
    return Verdict(after, back_off(restart, failures, draw))
