"""The power fails between two operations on files, during an update that succeeds and one that is rolled back.

After each cut, Device.check finds a release to start for both programs, and the update ends as without the cut.
"""

from __future__ import annotations

import builtins
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from agent.layout import PROGRAMS
from tests.sim.agent.device import Behavior, Device, Life, PowerLoss
from tests.sim.agent.scenario import reproducible, update

STRIDE = 11
"""Cut every 11th of some 1800 operations; 1 cuts all of them, which takes more than a minute."""
OPERATIONS = ("replace", "unlink", "mkdir", "rmdir", "symlink", "open", "fsync", "fchmod", "posix_fallocate")


class Cuts:
    """Counts the operations on files of a device, and cuts the power before the one with number `at`."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.at = self.count = 0
        self.active = self.off = False
        for name in OPERATIONS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))
        for module in (builtins, io):
            patch.setattr(module, "open", self._wrapped(module.open))

    def _wrapped(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any, **options: Any) -> Any:
            if self.active:
                self.count += 1
                self.off = self.off or self.count == self.at
                if self.off:
                    raise PowerLoss  # handlers that clean up after an error must not run either
            return function(*arguments, **options)

        return operation

    @property
    def happened(self) -> bool:
        return self.count >= self.at


class CutDevice(Device):
    """A device whose power fails once."""

    def __init__(self, folder: Path, cuts: Cuts) -> None:
        super().__init__(folder, random.Random(1))
        self._cuts = cuts

    async def _blocking(self, function: Callable[[], Any], life: Life | None = None) -> Any:
        await trio.lowlevel.checkpoint()
        self._cuts.active = True
        try:
            return function()
        finally:
            self._cuts.active = self._cuts.off = False
            self.check()


@pytest.mark.parametrize("behavior", [Behavior(), Behavior(crashes_after=0.1)], ids=["good", "bad"])
@pytest.mark.parametrize("program", PROGRAMS)
async def test_a_cut_between_two_operations(
    program: str, behavior: Behavior, tmp_path: Path, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cuts = Cuts(monkeypatch)
    number = 0
    while cuts.happened:
        number += STRIDE
        reproducible(number)
        cuts.at, cuts.count = number, 0
        try:
            await update(CutDevice(tmp_path / str(number), cuts), program, behavior)
        except BaseException:
            print(f"the cut was before operation {number}")
            raise
    assert number > 100, "operations were not counted"
