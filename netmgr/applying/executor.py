"""Applies effects, one after the other. A failed one is reported and repeated with growing pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

import structlog
import trio
from msgspec import Struct

from netmgr.model.plan import Effect
from schema import MachineError
from support import doubled

FIRST_PAUSE: Final = 1.0
"""Seconds until a failed effect is tried again; doubled each time."""
MAX_PAUSE: Final = 60.0

Handlers = Mapping[type[Effect], Callable[[Any], Awaitable[None]]]
"""Function for each kind of effect; it raises MachineError if the effect fails."""

_log = structlog.get_logger("netmgr.effects")


class Failure(Struct, frozen=True, kw_only=True):
    """Effect that has failed, and when it is tried again."""

    effect: Effect
    reason: str
    since: float
    """Monotonic time of the first failure in seconds."""
    count: int
    """Failures in a row."""
    again: float
    """Monotonic time of the next attempt in seconds."""


class Executor:
    """Applies effects with handlers."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._failures: list[Failure] = []  # some effects contain dictionaries, which have no hash

    async def apply(self, effects: Iterable[Effect]) -> None:
        """Apply effects in order. After a failure, the other effects of the same interface wait for the next call."""
        due = tuple(effects)
        self._failures = [failure for failure in self._failures if failure.effect in due]
        blocked: set[str] = set()
        for effect in due:
            if effect.interface in blocked:
                continue
            failure = next((entry for entry in self._failures if entry.effect == effect), None)
            if failure is not None and trio.current_time() < failure.again:
                blocked.add(effect.interface)
                continue
            try:
                await self._handlers[type(effect)](effect)
            except MachineError as error:
                blocked.add(effect.interface)
                self._failed(effect, failure, str(error))
            else:
                self._forget(effect)

    def failures(self) -> tuple[Failure, ...]:
        """Return the effects that have failed at their last attempt."""
        return tuple(self._failures)

    def next_attempt(self) -> float:
        """Return the monotonic time at which a failed effect is tried again; infinity if none has failed."""
        return min((failure.again for failure in self._failures), default=float("inf"))

    def _forget(self, effect: Effect) -> None:
        self._failures = [entry for entry in self._failures if entry.effect != effect]

    def _failed(self, effect: Effect, before: Failure | None, reason: str) -> None:
        now = trio.current_time()
        count = 1 if before is None else before.count + 1
        since = now if before is None else before.since
        self._forget(effect)
        again = now + doubled(FIRST_PAUSE, MAX_PAUSE, count)
        self._failures.append(Failure(effect=effect, reason=reason, since=since, count=count, again=again))
        if before is None or before.reason != reason:
            kind = type(effect).__name__
            _log.warning("a change of the network has failed", change=kind, interface=effect.interface, reason=reason)
