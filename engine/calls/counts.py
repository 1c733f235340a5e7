"""Counts calls by resource and method, and creates spans of calls while tracing is enabled."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from engine.calls.spans import Tracer
from rpc.api import CallInfo, CallTarget

if TYPE_CHECKING:
    from engine.roster import Roster

UNKNOWN: Final = "unknown"  # calls to resources that are not configured: callers can send any number of such names


@dataclass(slots=True)
class Counts:
    """Statistics of a method of a resource, since the resource was added."""

    calls: int = 0  # started
    errors: int = 0  # ended with a status other than OK, or cancelled by the caller
    active: int = 0
    seconds: float = 0.0  # total duration of the calls that have ended
    received: int = 0  # bytes of messages in the calls that have ended
    sent: int = 0


class Calls:
    """The counts of a machine, by full name of the resource (or name of a machine-wide service) and method."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer = tracer
        self.by_method: dict[tuple[str, str], Counts] = {}
        self._by_call: dict[tuple[object, str, str], Counts] = {}  # cache, by API, name and method of a call

    def observed(self, roster: Roster, inner: CallTarget) -> CallTarget:
        """Return a target that counts every call and passes it to `inner`."""
        return _Observed(self, roster, inner)

    def counts(self, roster: Roster, request: CallInfo) -> Counts:
        """Return the counts of the method that `request` calls."""
        key = (request.api, request.name, request.method)
        counts = self._by_call.get(key)
        if counts is None:
            owner = _owner(roster, request)
            counts = self.by_method.setdefault((owner, request.method), Counts())
            if owner != UNKNOWN:
                self._by_call[key] = counts
        return counts

    def forget(self, present: Callable[[str], bool]) -> None:
        """Drop the counts of resources that are no longer `present` and have no call in progress."""
        absent = [
            key for key, counts in self.by_method.items() if "/" in key[0] and not counts.active and not present(key[0])
        ]
        for key in absent:
            dropped = self.by_method.pop(key)
            for alias in [alias for alias, counts in self._by_call.items() if counts is dropped]:
                del self._by_call[alias]

    def measure(self, values: MutableMapping[str, float]) -> None:
        """Add `rpc.<resource>.<method>.Calls` and the other counts to `values`."""
        for (owner, method), counts in self.by_method.items():
            name = f"rpc.{owner}.{method}"
            values[f"{name}.Calls"] = counts.calls
            values[f"{name}.Errors"] = counts.errors
            values[f"{name}.InFlight"] = counts.active
            values[f"{name}.TimeMs"] = counts.seconds * 1000
            values[f"{name}.ReceivedBytes"] = counts.received
            values[f"{name}.SentBytes"] = counts.sent


class _Observed:
    """Wraps `inner`; the cost of a call is recorded when it has ended, so that nothing is between it and its driver."""

    def __init__(self, calls: Calls, roster: Roster, inner: CallTarget) -> None:
        self._calls = calls
        self._roster = roster
        self._inner = inner
        if (offload := getattr(inner, "offload", None)) is not None:
            self.offload = offload

    def call(self, request: CallInfo) -> AbstractAsyncContextManager[Any]:
        if request.call is not None:
            counts = self._calls.counts(self._roster, request)
            counts.calls += 1
            counts.active += 1
            tracer = self._calls.tracer
            span = tracer.begin_call(request) if tracer.enabled else None
            request.call.ended = partial(_ended, counts, perf_counter(), tracer, span)
        return self._inner.call(request)


def _ended(counts: Counts, begun: float, tracer: Tracer, span: Any, call: Any) -> None:
    counts.active -= 1
    counts.seconds += perf_counter() - begun
    counts.received += call.received
    counts.sent += call.sent
    counts.errors += call.status != 0
    if span is not None:
        tracer.end_call(span, call)


def _owner(roster: Roster, request: CallInfo) -> str:
    if request.api is None:
        return request.rpc.rpartition("/")[0].rpartition(".")[2]
    full = f"{request.api}/{request.name}"
    return full if full in roster.planned or full in roster.hosts else UNKNOWN
