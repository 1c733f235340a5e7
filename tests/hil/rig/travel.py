"""Simulate days of a real kernel in seconds: the clock of an idle guest jumps to its next timer.

The host cannot take part: an idle guest does not wait for it, so seconds of the host would be months of the guest.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

import trio

from tests.hil.guest.scenario import JOURNAL, ORDER, RESULT
from tests.hil.image.contents import SCENARIO_OPTION, SOURCE_OPTION
from tests.hil.rig.uml_machine import UmlMachine

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
LIMIT: Final = 180.0  # seconds of host time


class TravelMachine(UmlMachine):
    """A guest that runs the scenario from its order folder under time travel, and then ends."""

    logs = ("console.log", JOURNAL)
    start_time = START

    def _command_line(self, agent: int) -> list[str]:
        return [
            *super()._command_line(agent),
            *("time-travel=inf-cpu", f"time-travel-start={int(self.start_time.timestamp())}000000000"),
            *(f"{SCENARIO_OPTION}={self.folder}", f"{SOURCE_OPTION}={self.share}"),
        ]

    async def wait(self) -> None:
        """Return when the machine has ended."""
        assert self.process is not None
        descriptor = os.pidfd_open(self.process.pid)
        try:
            await trio.lowlevel.wait_readable(descriptor)
        finally:
            os.close(descriptor)


class TimeTravel:
    """Run scenarios, each in a guest of its own: `result = await time_travel(scenario, days=2)`.

    A second call in a test boots from the disk that the first call left.
    """

    def __init__(self, vm: TravelMachine) -> None:
        self.vm = vm
        vm.prepare_disk()

    async def __call__(
        self,
        scenario: Callable[..., Awaitable[Any]],
        /,
        *arguments: Any,
        days: float,
        systemd: bool = False,
        start: datetime = START,
        power_cut: bool = False,
        limit: float = LIMIT,
    ) -> Any:
        """Boot the guest, run `await scenario(*arguments)` in it, and return the result after the guest has ended.

        `scenario` is a function in a module below the project's root; arguments and result must be JSON values. It
        takes `days` of guest time, beginning at `start`, and `limit` seconds of host time in all. At the end the
        machine is powered off; with `power_cut`, data not flushed to the disk is lost. Raises AssertionError with the
        scenario's traceback if it fails.
        """
        module, name = scenario.__module__, scenario.__qualname__  # type: ignore[attr-defined]
        order = {"module": module, "function": name, "arguments": arguments, "days": days, "power_cut": power_cut}
        vm = self.vm
        for file in (*vm.logs, RESULT):
            (vm.folder / file).unlink(missing_ok=True)
        (vm.folder / ORDER).write_text(json.dumps(order))
        vm.systemd, vm.start_time = systemd, start
        began = time.monotonic()
        try:
            vm.start(resume=False)
            with trio.move_on_after(limit) as scope:
                await vm.wait()
        finally:
            vm.kill()
        taken = time.monotonic() - began
        print((vm.folder / "console.log").read_text(errors="replace"), end="")
        assert not scope.cancelled_caught, (
            f"{name} has not ended within {limit:.0f} s: too much work, or a loop in the guest that "
            f"never sleeps; the console said:\n{vm.log()}"
        )
        answer = self._answer()
        print(f"{name}: {answer['seconds']:.0f} s in the guest took {taken:.1f} s")
        if "error" in answer:
            raise AssertionError(f"{name} failed in the guest:\n{answer['error']}")
        return answer["result"]

    def _answer(self) -> dict[str, Any]:
        path = self.vm.folder / RESULT
        if not path.exists():
            raise AssertionError(f"the guest ended without a result of the scenario:\n{self.vm.log()}")
        answer: dict[str, Any] = json.loads(path.read_text())
        return answer
