"""The agent ends at an await, during an update that succeeds and one that is rolled back.

It is killed, so that nothing that it does afterwards has an effect; or all of its tasks are cancelled, as after an
error in one of them, and clean up. systemd starts it again, and the update ends by itself as without the crash.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from agent.layout import PROGRAMS
from tests.helpers.agent.cloud import Behavior
from tests.helpers.agent.device import Device, Life, Steps
from tests.sim.agent.scenario import reproducible, update

STRIDE = 29 if sys.platform != "win32" else 241
"""End the agent at each 29th of some 600 awaits; 1 ends it at each, which takes minutes. Wine is slow with files."""


class CrashingDevice(Device):
    """A device whose agent ends once: at the await with number `at`, counted over all of its processes."""

    def __init__(self, folder: Path, at: int, *, cleanly: bool) -> None:
        super().__init__(folder, random.Random(1))
        self.at, self.count, self.cleanly = at, 0, cleanly

    def after_step(self, life: Life) -> None:
        self.count += 1
        if self.count == self.at:
            self.crash(life, cleanly=self.cleanly)


@pytest.mark.parametrize("cleanly", [False, True], ids=["killed", "cancelled"])
@pytest.mark.parametrize("behavior", [Behavior(), Behavior(crashes_after=0.1)], ids=["good", "bad"])
@pytest.mark.parametrize("program", PROGRAMS)
async def test_an_agent_that_ends_at_an_await(
    program: str, behavior: Behavior, cleanly: bool, tmp_path: Path, autojump_clock: MockClock
) -> None:
    trio.lowlevel.add_instrument(Steps())
    at = awaits = 1
    while at <= awaits:
        device = CrashingDevice(tmp_path / str(at), at, cleanly=cleanly)
        reproducible(at)
        try:
            await update(device, program, behavior)
        except BaseException:
            print(f"the agent ended at await {at}")
            raise
        awaits = device.count
        at += STRIDE
    assert awaits > 500, "awaits were not counted"
