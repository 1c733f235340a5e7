"""Limit the function calls per register read through a resource; `python -m bench hal` measures the time."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from bench.hal_i2c import BY_RESOURCE, stand_in

READS = 200
MOST = 300
"""Calls per read. A read takes 244 with Python 3.11, and 374 with one more turn of the bus's thread. smbus2 in
trio.to_thread takes 206 to 254, depending on whether its thread is idle again at the next call.
"""


class Calls:
    """Counts the function calls, while `on`, of this thread and of every thread started within `counted`."""

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


async def test_a_register_through_a_resource_takes_few_calls() -> None:
    calls = Calls()
    with calls.counted():
        async with stand_in() as ways:
            await ways[BY_RESOURCE](READS // 10)
            calls.on, calls.count = True, 0
            await ways[BY_RESOURCE](READS)
            calls.on = False
    print(calls.count / READS)
    assert calls.count / READS <= MOST
