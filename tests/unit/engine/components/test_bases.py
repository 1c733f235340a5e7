"""The base classes: default behavior and a consistent structure."""

import dataclasses
import enum
import importlib
import inspect
import pkgutil

import pytest

import engine.components
import engine.services
from engine.apis import BASES, base_of
from engine.components.sensing.movement_sensor import GeoPosition, MovementProperties, MovementSensor
from engine.components.sensing.power_sensor import Current, PowerSensor, Voltage
from engine.components.sensing.sensor import Sensor
from engine.resource import Actuator, Component, Resource, Service, Unsupported, model
from rpc.api.client import methods_for
from rpc.api.table import APIS
from schema.errors import ConfigError, MachineError
from schema.names import API
from schema.space.geometry import GeoPoint, Orientation, Vector3

PACKAGES = (engine.components, engine.services)
MODULES = [
    importlib.import_module(item.name)
    for package in PACKAGES
    for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
]
CLASSES = [
    pytest.param(cls, id=f"{module.__name__}.{cls.__name__}")
    for module in MODULES
    for cls in vars(module).values()
    if isinstance(cls, type) and cls.__module__ == module.__name__
]


def bare(cls, **methods):
    new_class = type(cls.__name__, (cls,), methods)
    return new_class.__new__(new_class)


def answers(value):
    async def answer(self, *, extra=None):
        return value

    return answer


def test_every_base_class_is_in_the_table_and_nothing_else():
    values = {
        cls.API: f"{cls.__module__}:{cls.__name__}"
        for (cls,) in (p.values for p in CLASSES)
        if issubclass(cls, Resource)
    }
    assert values == dict(BASES)


def test_every_component_api_of_the_published_ones_has_a_base_class():
    assert {api for api in APIS if api.type == "component"} <= BASES.keys()


def test_unknown_api_has_no_base_class():
    assert base_of(API("acme", "component", "x")) is None


@pytest.mark.parametrize("cls", CLASSES)
def test_values_are_frozen_and_documented(cls):
    assert cls.__doc__
    if issubclass(cls, enum.Enum):
        assert issubclass(cls, enum.IntEnum)
        assert cls(0).name == "UNSPECIFIED"
    elif not issubclass(cls, Resource):
        assert cls.__dataclass_params__.frozen
        assert hasattr(cls, "__slots__")
        assert dataclasses.fields(cls)


@pytest.mark.parametrize("api", [pytest.param(api, id=str(api)) for api in BASES])
def test_actuators_are_those_that_can_be_stopped(api):
    base = base_of(api)
    assert issubclass(base, Component if api.type == "component" else Service)
    assert issubclass(base, Actuator) == ("stop" in methods_for(api)) == ("is_moving" in methods_for(api))


@pytest.mark.parametrize("api", [pytest.param(api, id=str(api)) for api in BASES])
def test_extra_is_keyword_only_and_optional(api):
    for name in methods_for(api):
        extra = inspect.signature(getattr(base_of(api), name)).parameters.get("extra")
        if extra is not None:
            assert extra.kind is inspect.Parameter.KEYWORD_ONLY
            assert extra.default is None


async def test_readings_of_a_movement_sensor_are_what_it_supports():
    sensor = bare(
        MovementSensor,
        get_properties=answers(MovementProperties(position_supported=True, compass_heading_supported=True)),
        get_position=answers(GeoPosition(GeoPoint(1.0, 2.0), 3.0)),
        get_compass_heading=answers(90.0),
    )
    assert await sensor.get_readings() == {"position": GeoPoint(1.0, 2.0), "altitude": 3.0, "compass": 90.0}


async def test_readings_of_a_movement_sensor_that_supports_everything():
    sensor = bare(
        MovementSensor,
        get_properties=answers(MovementProperties(True, True, True, True, True, True)),
        get_position=answers(GeoPosition(GeoPoint())),
        get_linear_velocity=answers(Vector3(1.0)),
        get_angular_velocity=answers(Vector3(2.0)),
        get_linear_acceleration=answers(Vector3(3.0)),
        get_compass_heading=answers(0.0),
        get_orientation=answers(Orientation()),
    )
    readings = await sensor.get_readings()
    assert (readings["linear_velocity"].x, readings["angular_velocity"].x) == (1.0, 2.0)
    assert readings["linear_acceleration"].x == 3.0
    assert readings.keys() == {
        "position",
        "altitude",
        "linear_velocity",
        "angular_velocity",
        "linear_acceleration",
        "compass",
        "orientation",
    }


async def test_readings_of_a_power_sensor_leave_out_what_it_does_not_measure():
    async def unsupported(self, *, extra=None):
        raise Unsupported("no shunt")

    whole = bare(
        PowerSensor,
        get_voltage=answers(Voltage(12.0, is_ac=True)),
        get_current=answers(Current(2.0, is_ac=True)),
        get_power=answers(24.0),
    )
    assert await whole.get_readings() == {"volts": 12.0, "amps": 2.0, "is_ac": True, "watts": 24.0}
    assert await bare(PowerSensor, get_current=unsupported, get_power=answers(1.0)).get_readings() == {"watts": 1.0}
    assert await bare(PowerSensor).get_readings() == {}


async def test_failure_of_a_power_sensor_is_not_hidden():
    async def broken(self, *, extra=None):
        raise MachineError("bus error")

    with pytest.raises(MachineError, match="bus error"):
        await bare(PowerSensor, get_voltage=broken).get_readings()


def test_model_names_a_driver():
    @model("acme:demo:thing")
    class Thing(Sensor):
        pass

    assert str(Thing.MODEL) == "acme:demo:thing"
    assert Sensor.MODEL is None
    with pytest.raises(ConfigError, match="not a model"):
        model("acme thing")
