"""Test the driver on a machine in memory, in virtual time, through the API like a client."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio
from smooth import Smooth, SmoothConfig

from engine import Extra, Sensor, Value, model
from rig import Rig
from schema import ConfigError, decode_attributes


@model("acme:test:counter")
class Counter(Sensor):
    """A sensor with known readings: 0, 1, 2, ..."""

    count = -1

    async def get_readings(self, *, extra: Extra = None) -> Mapping[str, Value]:
        """The next number."""
        self.count += 1
        return {"count": self.count, "unit": "pieces"}


SENSOR = "rdk:component:sensor"
MACHINE = {
    "components": [
        {"name": "counter", "api": SENSOR, "model": "acme:test:counter"},
        {
            "name": "mean",
            "api": SENSOR,
            "model": "acme:smooth:mean",
            "attributes": {"sensor": "counter", "period_s": 1, "count": 5},
        },
    ]
}
pytestmark = pytest.mark.machine(MACHINE, models=[Smooth, Counter])


async def test_the_mean_of_the_last_five(rig: Rig) -> None:
    """Numbers are averaged over the window, and other values are left out."""
    mean = rig.get(Sensor, "mean")
    assert await mean.get_readings() == {"count": 0}
    await trio.sleep(4.5)
    assert await mean.get_readings() == {"count": 2}  # of 0, 1, 2, 3, 4
    await trio.sleep(1)
    assert await mean.get_readings() == {"count": 3}  # of 1, 2, 3, 4, 5


@pytest.mark.parametrize(
    ("attributes", "place"),
    [({}, "sensor"), ({"sensor": "a", "count": 0}, "attributes.count"), ({"sensor": "a", "period_s": "1"}, "period_s")],
)
def test_errors_are_named(attributes: Mapping[str, Value], place: str) -> None:
    """A wrong attribute is rejected with its path, before the driver is constructed."""
    with pytest.raises(ConfigError, match=place):
        decode_attributes(SmoothConfig, attributes, path="attributes")
