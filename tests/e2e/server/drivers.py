"""A driver for real processes, loaded through MACHINE_MODELS: it writes its events and their times to a file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

import trio

from engine.components.motion.motor import Motor
from engine.resource import Attributes, Extra, Started, model


class Needs(Attributes):
    """Dependencies and misbehavior: crash, hang, stubborn, or none."""

    needs: tuple[str, ...] = ()
    trick: str = ""

    def requires(self) -> Iterable[str]:
        """Return the names of other motors."""
        return self.needs


@model("test:server:recorder")
class Recorder(Motor):
    """A motor that appends `time event name` to the file named in TEST_EVENTS."""

    Config = Needs

    def note(self, event: str) -> None:
        """Append a line with one system call, so that lines of processes do not mix."""
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
    """A motor that records a violation when it, or one of its dependencies, is used after it has ended."""

    def note(self, event: str) -> None:
        """Record only violations: a thousand changes would make a large file."""
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
        """Check that this motor and its dependencies have not ended."""
        if self.ended or any(isinstance(other, Linked) and other.ended for other in self.dependencies.values()):
            self.note("violation")

    async def is_moving(self) -> bool:
        self.check()
        await trio.sleep(0.002)  # as long as a bus transaction, so that changes arrive during calls
        self.check()
        return False
