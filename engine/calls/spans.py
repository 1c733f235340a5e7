"""Creates trace spans of calls and of starting and stopping nodes."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from nursery_graph import Snapshot, State, Transition

if TYPE_CHECKING:
    from rpc.api import CallInfo
    from telemetry.metrics import Span

TRACEPARENT: Final = "traceparent"  # metadata key of a call, W3C Trace Context

_ACTIVITIES: Final = {State.CONFIGURING: "start", State.REMOVING: "stop"}


class Tracer:
    """Passes each finished span to `collect`; creates no spans unless started."""

    def __init__(self) -> None:
        self.enabled = False
        self._collect: Callable[[Span], None] = _discard
        self._in_progress: dict[str, tuple[str, float]] = {}

    def start(self, collect: Callable[[Span], None], snapshot: Snapshot | None = None) -> None:
        """Create spans from now on, also for the nodes that are starting or stopping in `snapshot`."""
        self._collect = collect
        self.enabled = True
        nodes = snapshot.nodes.values() if snapshot is not None else ()
        self._in_progress = {
            node.name: (_ACTIVITIES[node.state], node.since) for node in nodes if node.state in _ACTIVITIES
        }

    def stop(self) -> None:
        """Stop creating spans, and drop those of calls in progress."""
        self.enabled = False
        self._collect = _discard
        self._in_progress.clear()

    def take(self, span: Span) -> None:
        """Collect a span that another program sent."""
        self._collect(span)

    def begin_call(self, request: CallInfo) -> Span:
        """Return the span of a new call, in the trace of its caller if the metadata names one."""
        from telemetry.metrics import Span, parse_traceparent

        caller = parse_traceparent(request.metadata.get(TRACEPARENT))
        trace, parent = caller or (_random_hex(128), "")
        name = f"{request.api}/{request.name}.{request.method}" if request.api else request.rpc.lstrip("/")
        attributes = {"rpc.system": "grpc", "rpc.method": request.rpc, "resource": request.name}
        return Span(trace, _random_hex(64), parent, name, time.time_ns(), server=True, attributes=attributes)

    def end_call(self, span: Span, call: Any) -> None:
        """Collect the span of a call that has ended."""
        span.end = time.time_ns()
        status: int | None = call.status
        if status != 0:
            from grpclib.const import Status

            span.error = "CANCELLED by its caller" if status is None else Status(status).name
        span.attributes = {**span.attributes, "received_bytes": call.received, "sent_bytes": call.sent}
        self._collect(span)

    def note_transition(self, transition: Transition) -> None:
        """Record a change of a node's state: each start and each stop becomes a span in a trace of its own."""
        if not self.enabled:
            return
        activity = self._in_progress.pop(transition.name, None)
        if transition.after in _ACTIVITIES:
            if activity is not None and transition.before is transition.after:
                self._in_progress[transition.name] = activity  # only the reason has changed
            else:
                self._in_progress[transition.name] = (_ACTIVITIES[transition.after], transition.time)
        elif activity is not None:
            self._ended(transition, *activity)

    def _ended(self, transition: Transition, activity: str, since: float) -> None:
        from telemetry.metrics import Span

        wall = time.time_ns() - int(trio.current_time() * 1e9)
        self._collect(
            Span(
                trace=_random_hex(128),
                id=_random_hex(64),
                parent="",
                name=f"{activity} {transition.name}",
                start=wall + int(since * 1e9),
                end=wall + int(transition.time * 1e9),
                error=transition.reason if transition.after is State.UNHEALTHY else "",
                attributes={"node": transition.name},
            )
        )


def _random_hex(bits: int) -> str:
    return f"{random.getrandbits(bits) or 1:0{bits // 4}x}"


def _discard(span: Span) -> None:
    pass
