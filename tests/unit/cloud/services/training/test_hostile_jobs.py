"""The queue of training jobs after jobs that leave, or do, what this program did not expect."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from structlog.testing import capture_logs

from cloud.services.training import remains as remains_module
from cloud.services.training import runner as runner_module
from cloud.services.training.remains import Remains
from support.foreign.removal import Removal, remove
from support.worker import Worker
from tests.unit.cloud.services.training.runner_world import World, well
from tests.unit.cloud.services.training.runner_world import world as world
from tests.unit.support.hostile import dig
from training.engine.port import Order, RunOutcome, Sink


async def gone(folder: Path) -> None:
    with trio.fail_after(20):
        while os.path.lexists(folder):  # noqa: ASYNC110, ASYNC240 - the remover announces nothing
            await trio.sleep(0.01)


async def test_a_job_that_leaves_deep_folders_does_not_stop_the_others(world: World) -> None:
    async def deep(order: Order, sink: Sink) -> RunOutcome:
        order.checkpoints.parent.mkdir(exist_ok=True)
        dig(order.checkpoints, 1900)
        return await well(order, sink)

    async with world.running(deep) as engine:
        subject = await world.us.submit()
        await world.until(subject, "COMPLETED")
        engine.program = well
        await world.until(await world.us.submit(model_version="2"), "COMPLETED")
        await gone(world.folder / "training" / subject)


async def test_folders_of_ended_jobs_are_removed_while_jobs_run(world: World) -> None:
    folder = world.folder / "training" / "old"
    folder.mkdir(parents=True)
    dig(folder / "checkpoints", 1900)
    async with world.running(well, stale=[folder]):
        await world.until(await world.us.submit(), "COMPLETED")
        await gone(folder)


@pytest.mark.parametrize("error", [RecursionError, ValueError])
async def test_a_job_at_which_this_program_fails_twice_fails(
    world: World, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """The error is that of this program: nothing that a program of a job does should cause one."""
    starts = 0

    def broken(folder: Path) -> None:
        nonlocal starts
        starts += 1
        raise error("nested too deeply")

    async def again(order: Order, sink: Sink) -> RunOutcome:
        remove(order.output)
        return await well(order, sink)

    report_in: Callable[..., object] = runner_module.report_in
    monkeypatch.setattr(runner_module, "report_in", broken)
    async with world.running(again) as engine:
        with capture_logs() as entries:
            subject = await world.us.submit()
            job = await world.until(subject, "FAILED")
        assert "failed at running it 2 times" in job["error_status"]["message"]
        assert starts == 2
        failures = [entry for entry in entries if entry["event"] == "this program failed at a training job"]
        assert [(entry["log_level"], entry["failures"], entry["job"]) for entry in failures] == [
            ("error", 1, subject),
            ("error", 2, subject),
        ]
        assert all(f"{error.__name__}: nested too deeply" in entry["reason"] for entry in failures)
        assert "a training job was given up" in [entry["event"] for entry in entries]
        monkeypatch.setattr(runner_module, "report_in", report_in)
        assert engine.running == {}
        await world.until(await world.us.submit(model_version="2"), "COMPLETED")
        await gone(world.folder / "training" / subject)


async def test_large_folders_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def slow(folder: Path, *, seconds: float) -> Removal:
        calls.append(folder.name)
        return Removal(folder, out_of_time=calls.count(folder.name) < 3)

    monkeypatch.setattr(remains_module, "remove", slow)
    remains = Remains()
    for name in ("a", "b"):
        remains.add(tmp_path / name)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(remains.run)
        with trio.fail_after(20):
            while len(calls) < 6:  # noqa: ASYNC110 - the remover announces nothing
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    assert calls == ["a", "b", "a", "b", "a", "b"]


async def test_the_log_names_leftovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remains_module, "remove", lambda folder, seconds: Removal(folder, left={"x": "busy"}))
    worker = Worker("test")
    with capture_logs() as entries:
        async with worker.opened():
            await Remains().remove(tmp_path / "job", worker)
    assert entries[0]["log_level"] == "error"
    assert f"{tmp_path / 'job'} is not removed completely: x: busy" in entries[0]["reason"]
