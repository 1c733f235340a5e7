"""Logs the transitions of resources and of the server's parts, and activity events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import structlog

from engine.planning import INTERNAL, plain
from nursery_graph import State, Transition
from telemetry.logs import log_event
from telemetry.logs.logger_names import RESOURCES, ROOT

CONNECTIONS: Final[Mapping[str, tuple[str, str, str]]] = {
    f"{INTERNAL}module/": ("module", "start", "stop"),
    f"{INTERNAL}remote/": ("remote", "connect", "disconnect"),
}
"""Prefixes of node names, with the kind of part and its events for becoming ready and no longer being ready."""


class TransitionLog:
    """Logs each transition with the logger of its node.

    A failure is logged as an error if its reason is new. Retries that fail for the same reason are logged at debug
    level until the node has been ready or is removed.
    """

    def __init__(self) -> None:
        self._failing: dict[str, str] = {}  # last logged reason, by node

    def note(self, transition: Transition) -> None:
        """Log a transition."""
        name, before, after = transition.name, transition.before, transition.after
        internal = name.startswith(INTERNAL)
        log = structlog.get_logger(f"{ROOT}.{name}" if internal else f"{RESOURCES}.{name}")
        word = after.value if after is not None else "removed"
        facts = {"reason": plain(transition.reason)} if transition.reason else {}
        if after is State.READY or after is None:
            self._failing.pop(name, None)
        if after is State.UNHEALTHY and before is not after and self._failing.get(name) != transition.reason:
            self._failing[name] = transition.reason
            log.error(word, **facts)
        elif before is not after and (after is State.READY or after is None) and not internal:
            log.info(word, **facts)
        else:
            log.debug(word, **facts)


class Activity:
    """Records activity events for built resources, and for modules and remotes that connect and disconnect."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}  # start times of nodes that are starting
        self._built: set[str] = set()

    def note(self, transition: Transition) -> None:
        """Record the events of a transition."""
        name, after = transition.name, transition.after
        if after is State.CONFIGURING:
            self._began[name] = transition.time
        began = self._began.pop(name, None) if after is State.READY or after is None else None
        facts = {"duration": round(transition.time - began, 3)} if began is not None else {}
        if name.startswith(INTERNAL):
            self._part(transition, facts)
        elif after is State.READY and began is not None:
            log_event("resource", "rebuild" if name in self._built else "construct", resource=name, **facts)
            self._built.add(name)
        elif after is None and name in self._built:
            log_event("resource", "remove", resource=name)
            self._built.discard(name)

    def _part(self, transition: Transition, facts: Mapping[str, float]) -> None:
        for beginning, (kind, came, went) in CONNECTIONS.items():
            if transition.name.startswith(beginning):
                fields = {kind: transition.name.removeprefix(beginning)}
                ready = transition.after is State.READY
                if ready and transition.before is not State.READY:
                    log_event(kind, came, **fields, **facts)
                elif transition.before is State.READY and not ready:
                    log_event(kind, went, **fields, reason=transition.reason)
