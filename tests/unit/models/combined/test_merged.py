"""The movement sensor `merged`."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from engine import Accuracy, Attributes, Extra, GeoPosition, MovementProperties, MovementSensor
from engine.resource import Unsupported
from schema.errors import ErrorKind, MachineError
from schema.space.geometry import GeoPoint
from tests.unit.models.builtin.support import Bench

MERGED = "rdk:builtin:merged"


class Receiver(MovementSensor):
    """A GPS receiver that loses its fix when `lost` is set."""

    Config: ClassVar[type[Attributes]] = Attributes
    latitude = 1.0
    lost = False

    async def get_position(self, *, extra: Extra = None) -> GeoPosition:
        if self.lost:
            raise MachineError(f"{self.name.name} has no fix", kind=ErrorKind.UNAVAILABLE)
        return GeoPosition(GeoPoint(self.latitude, 2.0))

    async def get_accuracy(self, *, extra: Extra = None) -> Accuracy:
        return Accuracy({"satellites": self.latitude}, position_hdop=self.latitude, compass_degrees_error=9.0)

    async def get_properties(self, *, extra: Extra = None) -> MovementProperties:
        return MovementProperties(position_supported=True)


async def test_each_measurement_comes_from_the_first_sensor_that_answers(bench: Bench) -> None:
    good, spare = [await bench.add("movement_sensor", name, cls=Receiver) for name in ("good", "spare")]
    await bench.add("movement_sensor", "imu")
    attributes = {"position": ["good", "spare", "imu"], "compass_heading": ["imu"]}
    merged = await bench.add("movement_sensor", "it", attributes, model=MERGED)
    spare.latitude = 5.0
    assert (await merged.get_position()).coordinate == GeoPoint(1.0, 2.0)
    good.lost = True
    assert (await merged.get_position()).coordinate == GeoPoint(5.0, 2.0)
    spare.lost = True
    assert (await merged.get_position()).coordinate == GeoPoint(40.7, -73.98)
    assert await merged.get_compass_heading() == 25.0
    properties = await merged.get_properties()
    assert properties == MovementProperties(position_supported=True, compass_heading_supported=True)
    assert set(await merged.get_readings()) == {"position", "altitude", "compass"}
    with pytest.raises(Unsupported, match="no sensor for orientation"):
        await merged.get_orientation()


async def test_if_no_sensor_answers_the_error_is_that_of_the_first(bench: Bench) -> None:
    for name in ("first", "second"):
        (await bench.add("movement_sensor", name, cls=Receiver)).lost = True
    merged = await bench.add("movement_sensor", "it", {"position": ["first", "second"]}, model=MERGED)
    with pytest.raises(MachineError, match="first has no fix"):
        await merged.get_position()


async def test_accuracy_names_its_sensor(bench: Bench) -> None:
    await bench.add("movement_sensor", "gps", cls=Receiver)
    await bench.add("movement_sensor", "imu")
    attributes = {"position": ["gps"], "compass_heading": ["imu"]}
    accuracy = await (await bench.add("movement_sensor", "it", attributes, model=MERGED)).get_accuracy()
    assert accuracy == Accuracy({"gps_satellites": 1.0}, position_hdop=1.0, compass_degrees_error=0.0)


async def test_a_sensor_that_is_missing_is_left_out(bench: Bench) -> None:
    await bench.add("movement_sensor", "imu")
    attributes = {"position": ["gone", "imu"], "orientation": ["gone"]}
    merged = await bench.add("movement_sensor", "it", attributes, model=MERGED)
    assert (await merged.get_position()).coordinate == GeoPoint(40.7, -73.98)
    with pytest.raises(MachineError, match="no sensor for orientation is ready: gone"):
        await merged.get_orientation()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"position": ["gone"]}, "none of gone is ready"),
        ({"orientation": ["gps"]}, "orientation: gps does not measure it"),
    ],
)
async def test_it_does_not_start_without_a_sensor_that_fits(
    bench: Bench, attributes: dict[str, Any], message: str
) -> None:
    await bench.add("movement_sensor", "gps", cls=Receiver)
    with pytest.raises(MachineError, match=message) as caught:
        await bench.add("movement_sensor", "it", attributes, model=MERGED)
    assert caught.value.kind is ErrorKind.PRECONDITION
