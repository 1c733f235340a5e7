"""Makes spans of calls and of what the graph does, for whoever collects them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import trio

from nursery_graph import Snapshot, State, Transition

if TYPE_CHECKING:
    from rpc.api.target import CallInfo
    from telemetry.spans import Span

TRACEPARENT: Final = "traceparent"  # metadata of a call, W3C Trace Context

_DOING: Final = {State.CONFIGURING: "start", State.REMOVING: "stop"}


class Tracer:
    """Gives every finished span to `collect`; without one nothing is made."""

    def __init__(self) -> None:
        self.enabled = False
        self._collect: Callable[[Span], None] = _nowhere
        self._doing: dict[str, tuple[str, float]] = {}

    def start(self, collect: Callable[[Span], None], snapshot: Snapshot | None = None) -> None:
        """Make spans from now on; what `snapshot` shows to be starting or stopping is followed too."""
        self._collect = collect
        self.enabled = True
        nodes = snapshot.nodes.values() if snapshot is not None else ()
        self._doing = {node.name: (_DOING[node.state], node.since) for node in nodes if node.state in _DOING}

    def stop(self) -> None:
        """Make none any more; those of calls that still run are dropped."""
        self.enabled = False
        self._collect = _nowhere
        self._doing.clear()

    def take(self, span: Span) -> None:
        """A span that somebody else made and sent here."""
        self._collect(span)

    def begin_call(self, request: CallInfo) -> Span:
        """A call has come; it belongs to its caller's trace if that says so."""
        from telemetry.spans import Span, parse_traceparent

        caller = parse_traceparent(request.metadata.get(TRACEPARENT))
        trace, parent = caller or (_digits(128), "")
        name = f"{request.api}/{request.name}.{request.method}" if request.api else request.rpc.lstrip("/")
        attributes = {"rpc.system": "grpc", "rpc.method": request.rpc, "resource": request.name}
        return Span(trace, _digits(64), parent, name, time.time_ns(), server=True, attributes=attributes)

    def end_call(self, span: Span, call: Any) -> None:
        """The call has ended."""
        span.end = time.time_ns()
        status: int | None = call.status
        if status != 0:
            from grpclib.const import Status

            span.error = "CANCELLED by its caller" if status is None else Status(status).name
        span.attributes = {**span.attributes, "received_bytes": call.received, "sent_bytes": call.sent}
        self._collect(span)

    def note_transition(self, transition: Transition) -> None:
        """What a node takes to start and to stop is a span each, by itself."""
        if not self.enabled:
            return
        doing = self._doing.pop(transition.name, None)
        if transition.after in _DOING:
            if doing is not None and transition.before is transition.after:
                self._doing[transition.name] = doing  # only its reason is new
            else:
                self._doing[transition.name] = (_DOING[transition.after], transition.time)
        elif doing is not None:
            self._ended(transition, *doing)

    def _ended(self, transition: Transition, doing: str, since: float) -> None:
        from telemetry.spans import Span

        wall = time.time_ns() - int(trio.current_time() * 1e9)
        self._collect(
            Span(
                trace=_digits(128),
                id=_digits(64),
                parent="",
                name=f"{doing} {transition.name}",
                start=wall + int(since * 1e9),
                end=wall + int(transition.time * 1e9),
                error=transition.reason if transition.after is State.UNHEALTHY else "",
                attributes={"node": transition.name},
            )
        )


def _digits(bits: int) -> str:
    return f"{random.getrandbits(bits) or 1:0{bits // 4}x}"


def _nowhere(span: Span) -> None:
    pass
