"""How far a machine is between its start and its stop."""

from __future__ import annotations

import trio

from engine.views.status import MachineState


class Lifecycle:
    """`running` is set when everything of the first configuration was tried once, `stopping` when a stop begins."""

    def __init__(self) -> None:
        self.state = MachineState.INITIALIZING
        self.running = trio.Event()
        self.stopping = trio.Event()
        self.stop_reason = ""
        self.failed = False  # it stops because it could not start

    def request_stop(self, reason: str) -> None:
        """Ask for an orderly stop of the whole server; returns at once. The first reason is kept."""
        if not self.stopping.is_set():
            self.stop_reason = reason
            self.state = MachineState.STOPPING
            self.stopping.set()
