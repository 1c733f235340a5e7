"""`make test`: the guests of the rig are built while the rooms run, and a failure on either side is a failure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from tests import everything
from tests.__main__ import Run

PART = Run("hil-0", ("hil/test_a.py",))


@pytest.mark.parametrize(("rooms", "rig"), [(0, 0), (1, 0), (0, 1)])
async def test_the_rig_waits_for_its_guests_and_gets_a_second_turn_when_no_room_waits(
    rooms: int, rig: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, ended, built = [], trio.Event(), trio.Event()

    async def build() -> None:
        steps.append("build")
        await built.wait()

    async def carry_out_all(
        every: list[Run],
        arguments: object,
        turns: trio.Semaphore,
        report: Path,
        idle: Callable[[], None] = lambda: None,
    ) -> int:
        if every == [PART]:
            steps.append(f"rig, {turns.value} at a time")
            ended.set()
            await turns.acquire()
            await turns.acquire()
            steps.append("second turn")
            return rig
        steps.append("rooms")
        built.set()
        await ended.wait()
        idle()
        idle()
        return rooms

    monkeypatch.setattr(everything, "OUTPUT", tmp_path)
    for name, replacement in {
        "build_guests": build,
        "carry_out_all": carry_out_all,
        "clear": lambda: None,
        "parts": lambda: [PART],
        "rooms_at_once": lambda: 3,
    }.items():
        monkeypatch.setattr(everything, name, replacement)
    assert await everything.main() == max(rooms, rig)
    assert sorted(steps[:2]) == ["build", "rooms"]
    assert steps[2:] == ["rig, 1 at a time", "second turn"]


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
