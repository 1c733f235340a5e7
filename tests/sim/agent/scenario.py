"""One update of one program, from the offer until it is confirmed or rolled back; and runs that can be repeated."""

from __future__ import annotations

import random

import trio

from agent.layout import PROGRAMS, SERVER
from tests.helpers.agent.cloud import Behavior
from tests.helpers.agent.device import Device

HOUR = 3600.0


def reproducible(seed: int) -> None:
    """Let everything that follows happen in the same order each time: Trio's scheduler, and the jitter of the agent."""
    trio._core._run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[attr-defined, misc]
    trio._core._run._r.seed(seed)  # type: ignore[attr-defined]
    random.seed(seed)


async def update(device: Device, program: str, behavior: Behavior) -> None:
    """Offer a release, and let it be confirmed or rolled back."""
    for name in PROGRAMS:
        device.install(name)
    old = device.record(program).slots.current
    new = device.cloud.publish(program, "1.1.0", behavior)
    device.offer(program, new)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(device.run)
        await trio.sleep(3 * HOUR)
        nursery.cancel_scope.cancel()
    record = device.record(program)
    good = new if behavior == Behavior() else old
    assert (record.slots.current, record.progress) == (good, None)
    assert record.is_quarantined(new) == (good != new)
    assert (device.server.release if program == SERVER else device.agents[-1]) == good.sha256
    assert list(device.layout.downloads.iterdir()) == []
    kept = {path.name for path in device.layout.releases(program).iterdir()}
    assert kept == {old.sha256, good.sha256, "factory"}
