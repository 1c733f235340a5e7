"""`make test`: the guests of the rig are built while the rooms run, and a failure on either side is a failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from tests import everything
from tests.__main__ import Run

PARTS = [Run("hil-0", ("hil/test_a.py",)), Run("hil-1", ("hil/test_b.py",))]


@pytest.mark.parametrize(("rooms", "rig"), [(0, 0), (1, 0), (0, 1)])
async def test_the_rig_waits_for_its_guests_and_gives_its_turns_to_the_rooms(
    rooms: int, rig: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, built, began, over = [], trio.Event(), trio.Event(), trio.Event()

    async def build() -> None:
        steps.append("build")
        await built.wait()

    async def carry_out_all(
        every: list[Run],
        arguments: object,
        turns: trio.CapacityLimiter,
        report: Path,
        ended: Callable[[], None] = lambda: None,
    ) -> int:
        if every == PARTS:
            steps.append(f"rig, {turns.total_tokens} at a time")
            began.set()
            await over.wait()
            for _ in every:
                ended()
            return rig
        steps.append(f"rooms, {turns.total_tokens} at a time")
        built.set()
        await began.wait()
        steps.append(f"rooms, {turns.total_tokens} at a time")
        over.set()
        await trio.testing.wait_all_tasks_blocked()
        steps.append(f"rooms, {turns.total_tokens} at a time")
        return rooms

    monkeypatch.setattr(everything, "OUTPUT", tmp_path)
    for name, replacement in {
        "build_guests": build,
        "carry_out_all": carry_out_all,
        "clear": lambda: None,
        "parts": lambda: PARTS,
        "rooms_at_once": lambda: 3,
    }.items():
        monkeypatch.setattr(everything, name, replacement)
    assert await everything.main() == max(rooms, rig)
    assert sorted(steps[:2]) == ["build", "rooms, 3 at a time"]
    assert steps[2:] == ["rig, 2 at a time", "rooms, 2 at a time", "rooms, 4 at a time"]


async def test_guests_that_cannot_be_built_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(everything, "BUILD", tmp_path / "build")
    monkeypatch.setattr(everything, "ROOT", tmp_path)
    (tmp_path / "Makefile").write_text("hil:\n\t@echo there is no kernel; exit 3\n")
    await everything.build_guests()
    printed = capsys.readouterr().out
    assert "there is no kernel" in printed
    assert "Going on without the hardware rig" in printed
