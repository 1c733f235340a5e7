"""The power fails between two operations on files or in a write, during an update that succeeds and one that does not.

After each cut, Invariants.check finds a release to start for both programs, and the update ends as without the cut.
"""

from __future__ import annotations

import builtins
import io
import os
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from trio.testing import MockClock

from agent.layout import PROGRAMS
from agent.update import store
from agent.update.record import decode
from tests.helpers.agent.cloud import Behavior
from tests.helpers.agent.device import Device, PowerLoss
from tests.sim.agent.scenario import reproducible, update

STRIDE = 13
"""Cut every 13th of some 1800 operations; 1 cuts all of them, which takes more than a minute."""
OPERATIONS = ("replace", "unlink", "mkdir", "rmdir", "symlink", "open", "fsync", "fchmod", "posix_fallocate")


symlink = os.symlink


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
        weight = STRIDE if function is symlink else 1  # the power fails before each change of a link

        def operation(*arguments: Any, **options: Any) -> Any:
            if self.cut(weight):
                raise PowerLoss
            result = function(*arguments, **options)
            return _File(result, self) if getattr(result, "writable", bool)() else result

        return operation

    def cut(self, weight: int = 1) -> bool:
        """Count an operation; return whether the power is off. Then nothing that cleans up has an effect either."""
        if self.active:
            before = self.count
            self.count += weight
            self.off = self.off or before < self.at <= self.count
        return self.off

    @property
    def happened(self) -> bool:
        return self.count >= self.at


class _File:
    """A file that is open for writing, of which half is written when the power fails."""

    def __init__(self, file: Any, cuts: Cuts) -> None:
        self._file, self._cuts = file, cuts

    def write(self, data: Any) -> int:
        cut = self._cuts.cut()
        written: int = self._file.write(data[: len(data) // 2] if cut else data)
        if cut:
            raise PowerLoss
        return written

    def __enter__(self) -> _File:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class CutDevice(Device):
    """A device whose power fails once."""

    def __init__(self, folder: Path, cuts: Cuts) -> None:
        super().__init__(folder, random.Random(1))
        self._cuts = cuts

    def _call(self, function: Callable[[], Any]) -> Any:
        self._cuts.active = True
        try:
            return function()
        except PowerLoss:
            self._cuts.active = False
            if isinstance(function, partial) and function.func is store.save:
                path, record = function.args
                kept = decode(path.read_bytes())
                assert kept in (self.drivers[record.program].record, record), "the record was destroyed"
            raise
        finally:
            self._cuts.active = self._cuts.off = False


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
