"""A module with one driver: a sensor that returns the mean of the recent readings of another sensor."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import fmean
from typing import Annotated, ClassVar

import msgspec
import trio

from engine import Attributes, Extra, Sensor, Started, Value, model
from runtime.sdk import run_module


class SmoothConfig(Attributes, kw_only=True, frozen=True):
    """The `attributes` of the resource's entry."""

    sensor: str  # name of the sensor to read
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # seconds between two readings
    count: Annotated[int, msgspec.Meta(ge=1)] = 10  # number of readings in the mean

    def requires(self) -> list[str]:
        """Require the sensor: it starts before this one and stops after it."""
        return [self.sensor]


@model("acme:smooth:mean")
class Smooth(Sensor):
    """The mean of another sensor's last readings, number by number."""

    Config: ClassVar[type[Attributes]] = SmoothConfig
    attributes: SmoothConfig

    async def run(self, *, task_status: Started) -> None:
        """Read the sensor at regular intervals; ready after its first answer."""
        source = self.dependency(Sensor, self.attributes.sensor)
        self.last = deque([await source.get_readings()], maxlen=self.attributes.count)
        task_status.started()
        while True:
            await trio.sleep(self.attributes.period_s)
            self.last.append(await source.get_readings())

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """Return the means. Values that are not numbers are left out."""
        numbers: dict[str, list[float]] = {}
        for reading in self.last:
            for key, value in reading.items():
                if isinstance(value, (int, float)):
                    numbers.setdefault(key, []).append(value)
        return {key: fmean(values) for key, values in numbers.items()}


if __name__ == "__main__":
    run_module(Smooth)
