"""A sensor for real processes, loaded through MACHINE_MODELS: each reading is the next number of its process."""

from __future__ import annotations

import os
from collections.abc import Mapping

import trio

from engine.components.sensing.sensor import Sensor
from engine.resource import Context, Extra, Value, model


@model("test:data:counter")
class Counter(Sensor):
    """A counter from 0; `life` is the TEST_LIFE of its process."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._next = 0

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        await trio.lowlevel.checkpoint()
        number, self._next = self._next, self._next + 1
        return {"life": os.environ["TEST_LIFE"], "number": number}
