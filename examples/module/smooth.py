"""A module with one driver: a sensor that says the mean of what another sensor has said lately."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from statistics import fmean
from typing import Annotated, ClassVar

import msgspec
import trio

from runtime.components.sensor import Sensor
from runtime.module import run_module
from runtime.resource import Attributes, Extra, Started, Value, model


class SmoothConfig(Attributes, kw_only=True, frozen=True):
    """What `attributes` of a configuration may say."""

    sensor: str  # name of the sensor that is read
    period_s: Annotated[float, msgspec.Meta(gt=0)] = 0.5  # seconds between two readings
    count: Annotated[int, msgspec.Meta(ge=1)] = 10  # readings that the mean is taken of

    def requires(self) -> list[str]:
        """The sensor is ready before this one, and alive as long."""
        return [self.sensor]


@model("acme:smooth:mean")
class Smooth(Sensor):
    """The mean of another sensor's last readings, number by number."""

    Config: ClassVar[type[Attributes]] = SmoothConfig
    attributes: SmoothConfig

    async def run(self, *, task_status: Started) -> None:
        """Read the sensor all the time; ready once it has answered."""
        source = self.dependency(Sensor, self.attributes.sensor)
        self.last = deque([await source.get_readings()], maxlen=self.attributes.count)
        task_status.started()
        while True:
            await trio.sleep(self.attributes.period_s)
            self.last.append(await source.get_readings())

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The means; what is not a number is left out."""
        numbers: dict[str, list[float]] = {}
        for reading in self.last:
            for key, value in reading.items():
                if isinstance(value, (int, float)):
                    numbers.setdefault(key, []).append(value)
        return {key: fmean(values) for key, values in numbers.items()}


if __name__ == "__main__":
    run_module(Smooth)
