"""A worker reports its bus when it hangs, as a hardware error with a remedy."""

from __future__ import annotations

import threading

import pytest
import trio

from hal.errors import Fault, HalError
from hal.worker import BusWorker
from support import worker


async def test_a_transaction_that_hangs_in_the_kernel_is_named_when_the_bus_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker, "CLOSING_LIMIT", 0.05)
    bus, begun, release = BusWorker("i2c-7"), trio.Event(), threading.Event()
    token = trio.lowlevel.current_trio_token()

    def transaction() -> None:
        token.run_sync_soon(begun.set)
        release.wait(20)

    async def use() -> None:
        async with bus.opened(), trio.open_nursery() as nursery:
            nursery.start_soon(bus.run, transaction)
            await begun.wait()
            nursery.cancel_scope.cancel()

    try:
        with pytest.raises(HalError, match="i2c-7: a transaction has been hanging in the kernel") as caught:
            await use()
    finally:
        release.set()
    assert caught.value.fault is Fault.TIMEOUT
    assert "unplug the adapter" in caught.value.remedy
