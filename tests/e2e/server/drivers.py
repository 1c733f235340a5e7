"""A driver for real processes, loaded through MACHINE_MODELS: it writes what happens to it, and when, into a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import trio

from runtime.engine.components.motion.motor import Motor
from runtime.engine.resource import Attributes, Extra, Started, model


class Needs(Attributes):
    """What it needs and how it misbehaves: crash, hang or stubborn, or nothing."""

    needs: tuple[str, ...] = ()
    trick: str = ""

    def requires(self) -> Iterable[str]:
        """Names of other motors."""
        return self.needs


@model("test:server:recorder")
class Recorder(Motor):
    """Appends `time event name` to the file named in TEST_EVENTS."""

    Config = Needs

    def note(self, event: str) -> None:
        """One line, written as a whole."""
        line = f"{time.monotonic():.6f} {event} {self.name.name}\n"
        descriptor = os.open(os.environ["TEST_EVENTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    async def run(self, *, task_status: Started) -> None:
        self.note("start")
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            if self.attributes.trick == "crash":
                self.note("end")
                raise RuntimeError("crashed in cleanup")
            if self.attributes.trick == "stubborn":
                with trio.CancelScope(shield=True):
                    await trio.to_thread.run_sync(time.sleep, 1.0)
            self.note("end")

    async def set_power(self, power_pct: float, *, extra: Extra = None) -> None:
        self.note("power")

    async def stop(self, *, extra: Extra = None) -> None:
        self.note("stop")
        if self.attributes.trick == "hang":
            await trio.sleep_forever()

    async def is_moving(self) -> bool:
        return False


@model("test:server:linked")
class Linked(Recorder):
    """Notes a violation when it, or what it depends on, is used after it has ended."""

    def note(self, event: str) -> None:
        """Only violations: a thousand changes would make a large file."""
        if event == "violation":
            super().note(event)

    ended = False

    async def run(self, *, task_status: Started) -> None:
        self.check()
        task_status.started()
        try:
            await trio.sleep_forever()
        finally:
            self.check()
            self.ended = True

    def check(self) -> None:
        """Everything that is used here must live."""
        if self.ended or any(isinstance(other, Linked) and other.ended for other in self.dependencies.values()):
            self.note("violation")

    async def is_moving(self) -> bool:
        self.check()
        await trio.sleep(0.002)  # as long as a bus transaction: calls are inside whenever a change comes
        self.check()
        return False
