"""What reading a register through a resource costs, in calls of functions; `python -m bench hal` takes the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bench.hal_i2c import BY_RESOURCE, IN_THREAD, stand_in

READS = 200


class Calls:
    """Counts the calls of functions of every thread that is started in `counted`, while `on`."""

    def __init__(self) -> None:
        self.on = False
        self.count = 0

    def __call__(self, _frame: FrameType, event: str, _what: Any) -> None:
        self.count += self.on and event in ("call", "c_call")

    @contextmanager
    def counted(self) -> Iterator[None]:
        before = sys.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


async def test_a_register_through_a_resource_takes_few_more_calls_than_in_a_thread() -> None:
    calls = Calls()
    with calls.counted():
        async with stand_in() as ways:
            taken = {}
            for name in (IN_THREAD, BY_RESOURCE):
                await ways[name](READS // 10)
                calls.on, calls.count = True, 0
                await ways[name](READS)
                calls.on, taken[name] = False, calls.count / READS
    print(taken)
    assert taken[BY_RESOURCE] <= 1.1 * taken[IN_THREAD], "243 and 254 of Python 3.11"
