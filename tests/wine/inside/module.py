"""A module with one sensor, which returns the id of its process."""

from __future__ import annotations

import os
from collections.abc import Mapping

from engine import Extra, Sensor, Value, model
from runtime.sdk import run_module


@model("tests:wine:pid")
class Pid(Sensor):
    """The id of the process."""

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the id."""
        return {"pid": os.getpid()}


if __name__ == "__main__":
    run_module(Pid)
