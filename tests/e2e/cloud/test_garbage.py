"""The objects that the garbage collector examines while a cloud runs."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import trio
from trio.testing import MockClock

from cloud.commands.options import Options
from cloud.server.app import AGING, App, age_young_objects, run


async def test_packages_present_at_the_start_are_not_read(tmp_path: Path) -> None:
    before = gc.get_freeze_count()
    ready, written = os.pipe()
    app = App(Options(data=tmp_path / "data", address="localhost:0", ready_fd=written))

    async def stop() -> None:
        async with trio.lowlevel.FdStream(ready) as stream:
            assert await stream.receive_some()
        app.graph.stop("the test is over")

    try:
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop)
                await run(app)
                nursery.cancel_scope.cancel()
        assert gc.get_freeze_count() > before + 10_000
    finally:
        if not before:
            gc.unfreeze()


async def test_objects_do_not_stay_young(autojump_clock: MockClock) -> None:
    """Otherwise one collection would traverse all that machines replaced since the last one."""
    young = ["an object that the collector tracks"]
    gc.disable()
    try:
        with trio.move_on_after(1.5 * AGING):
            await age_young_objects()
        assert any(each is young for each in gc.get_objects(generation=2))
    finally:
        gc.enable()
